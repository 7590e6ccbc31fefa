"""A roll in the store: its plan under the newest fencing token only, and what placement is told of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from shared.errors import BadRecord, Fenced
from shared.keys import ROLL_TTL_S
from shared.records import read_record, write_record
from shared.roll_records import RollRecord
from shared.store.answers import Leader, Term
from shared.store.calls import Calls, WrongType
from shared.store.lease import leader

ROLL_LEASE_S = 15.0
"""A command that was killed holds the roll, and placement's rule, no longer than this."""
FORCE_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRoll:
    """What the store knows of rolls."""

    at: float
    """Now, by Redis' clock [Unix seconds]."""
    holder: Leader | None = None
    """The command that goes on with it."""
    plan: RollRecord | None = None


class Rolls(Calls):
    """Reads and writes of the roll. Each write raises `Fenced` when another command has taken over."""

    async def take_roll(self, command: str, *, force: bool = False, seen: int = 0) -> Term:
        """Take the lease if it is free; with `force` also from the command that holds it, whose writes end with that.

        `seen`: a token that the new one must exceed, of before the server lost its data.
        Raises `WrongType` when a key holds something else.
        """
        term = await self._take_roll(command, seen)
        for _ in range(FORCE_TRIES if force and not term.mine else 0):
            held = term.leader
            await self._run("release_lease", [self.keys.roll_lease], held.controller, held.token)
            # Between the two its holder may renew it: then once more.
            if (term := await self._take_roll(command, seen)).mine:
                break
        return term

    async def _take_roll(self, command: str, seen: int) -> Term:
        keys = [self.keys.roll_lease, self.keys.roll_token]
        mine, name, token, left_ms = await self._run("take_lease", keys, command, 0, round(ROLL_LEASE_S * 1000), seen)
        return Term(bool(mine), leader(name, token, left_ms))

    async def put_roll(self, command: str, token: int, plan: RollRecord, *, rolled_next: Iterable[str] = ()) -> None:
        """Write the plan, renew the lease, and tell placement which SFUs are still to be rolled, in one step."""
        keys = [self.keys.roll_token, self.keys.roll_lease, self.keys.roll, self.keys.roll_next]
        sfus = sorted(set(rolled_next))
        told = msgspec.json.encode(sfus) if sfus else b""
        lease_ms = round(ROLL_LEASE_S * 1000)
        answer = await self._run("put_roll", keys, token, command, lease_ms, write_record(plan), ROLL_TTL_S, told)
        if isinstance(answer, bytes):
            raise Fenced(token=token, newest=int(answer))

    async def release_roll(self, command: str, token: int) -> None:
        """Give the lease back; placement hears no more of the roll."""
        if await self._run("release_lease", [self.keys.roll_lease], command, token):
            await self._send("release_roll", "DEL", self.keys.roll_next)

    async def read_roll(self) -> KeptRoll:
        """Who goes on with it, and the plan. Raises `BadRecord` when that can't be read, as from a newer version."""
        keys = [self.keys.roll_lease, self.keys.roll]
        at, command, token, left_ms, raw = await self._run("read_roll", keys)
        holder = leader(command, token, left_ms) if command else None
        try:
            plan = read_record(RollRecord, raw, key=self.keys.roll) if raw else None
        except BadRecord as error:
            self._note_bad(error)
            raise
        return KeptRoll(at=float(at), holder=holder, plan=plan)

    async def read_roll_next(self) -> frozenset[str]:
        """The SFUs that are still to be rolled; none unless a command holds the roll."""
        key = self.keys.roll_next
        try:
            raw = await self._send("read_roll_next", "GET", key)
            return frozenset(msgspec.json.decode(raw, type=list[str])) if raw else frozenset()
        except WrongType:
            return frozenset()
        except msgspec.DecodeError as error:
            self._note_bad(BadRecord(key=key, detail=str(error)))
            return frozenset()
