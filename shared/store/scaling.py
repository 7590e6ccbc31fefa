"""The autoscaler in the store: its state, its audit and its commands, written under the newest fencing token only."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from shared.errors import BadRecord, Fenced, Refused
from shared.keys import COMMAND_TTL_S, SCALING_RECORDS_KEPT
from shared.records import CommandVerb, SfuCommand, read_record, write_record
from shared.scaling_records import AUTOSCALER, ScalingRecord, ScalingState
from shared.store.answers import Scaling
from shared.store.lease import ScalingLease, leader

PATIENCE_S = 10.0
"""A person's command is not overwritten for this long: it takes up to a sync interval to reach the SFU and its state as
long to come back, and before then the autoscaler does not know of it."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The autoscaler's state and when it was read, by Redis' clock [Unix seconds]."""

    state: ScalingState
    at: float


class ScalingStore(ScalingLease):
    """Reads and writes of the autoscaler. Each write raises `Fenced` when `token` is not the newest, and `WrongType`
    when a key of the autoscaler holds something else; nothing is written then."""

    async def read_scaling_state(self, token: int) -> Kept:
        """The state as the last leader left it, or a new one. Raises `BadRecord` when it can't be read."""
        keys = [self.keys.scaling_token, self.keys.scaling_state]
        newest, at, raw = await self._run("read_scaling_state", keys, token)
        if int(newest) != token:
            raise Fenced(token=token, newest=int(newest))
        if raw is None:
            return Kept(ScalingState(), float(at))
        try:
            return Kept(read_record(ScalingState, raw, key=self.keys.scaling_state), float(at))
        except BadRecord as error:
            self._note_bad(error)
            raise

    async def put_scaling(self, token: int, state: ScalingState, records: Sequence[ScalingRecord] = ()) -> None:
        """Write the state and add to the audit, in one step; the script numbers and dates the records."""
        keys = [self.keys.scaling_token, self.keys.scaling_state, self.keys.scaling_audit]
        audit = [write_record(msgspec.structs.replace(record, token=token, id=0, at=0.0)) for record in records]
        answer = await self._run("put_scaling", keys, token, write_record(state), SCALING_RECORDS_KEPT, *audit)
        if isinstance(answer, bytes):
            raise Fenced(token=token, newest=int(answer))

    async def command_fenced(
        self,
        verb: CommandVerb,
        sfu: str,
        *,
        token: int,
        reason: str = "",
        lease_s: float | None = None,
        drain_max_s: float | None = None,
    ) -> SfuCommand:
        """Leave the autoscaler's command for one SFU. Raises `Refused` (`newer-command`) while a person's is new."""
        command = SfuCommand(
            command=secrets.token_hex(8),
            verb=verb.value,
            sfu=sfu,
            by=AUTOSCALER,
            reason=reason,
            lease_s=lease_s,
            drain_max_s=drain_max_s,
            token=token,
        )
        keys = [self.keys.scaling_token, self.keys.commands]
        raw = write_record(command)
        code, answer = await self._run("put_fenced_order", keys, token, sfu, raw, COMMAND_TTL_S, AUTOSCALER, PATIENCE_S)
        if code == 0:
            raise Fenced(token=token, newest=int(answer))
        if code == 2:
            raise Refused("newer-command", f"{answer.decode(errors='replace')[:64]} has just commanded {sfu}")
        return msgspec.json.decode(answer, type=SfuCommand)

    async def read_scaling(self, n: int) -> Scaling:
        """Leader, state and the last `n` audit records; what can't be read is left out and counted."""
        keys = [self.keys.scaling_lease, self.keys.scaling_state, self.keys.scaling_audit]
        bad, controller, token, left_ms, raw, *raws = await self._run("read_scaling", keys, max(0, n))
        if bad:
            self._note_bad(BadRecord(key=self.keys.scaling_state, detail=f"{bad} keys hold another type of value"))
        records = (self._record(ScalingRecord, record, self.keys.scaling_audit) for record in raws)
        return Scaling(
            leader=leader(controller, token, left_ms) if controller else None,
            state=self._record(ScalingState, raw, self.keys.scaling_state) if raw else None,
            records=tuple(record for record in records if record),
        )
