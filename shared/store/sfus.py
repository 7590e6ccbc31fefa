"""SFUs in the store: their states, ordered by `(incarnation, revision)` and dated by Redis' clock."""

from __future__ import annotations

import msgspec

from shared.errors import BadRecord
from shared.keys import EXIT_TTL_S, SFU_TTL_S
from shared.records import SfuState, SfuStatus, sfu_id, status_of, write_record
from shared.store.answers import HeardSfu, PutSfu
from shared.store.calls import Calls, WrongType, text

STAMPS_TTL_S = EXIT_TTL_S
"""Stamps outlive the record: an SFU that had lost its routers is not taken for one started after an exit order."""

OWNER_ALIVE_S = 3.0
"""Another process with this id is refused for so long after the owner's last write; routers write each second."""

_DRAINING = {
    SfuStatus.ONLINE: "0",
    SfuStatus.CORDONED: "1",
    SfuStatus.TERMINATING: "1",
    SfuStatus.UNKNOWN: "?",
}


class Sfus(Calls):
    """Reads and writes of SFU states."""

    async def put_sfu(self, state: SfuState) -> PutSfu:
        """Write a state unless a newer one is known, or one of another process with this id that is alive; an equal one
        is written again and renews its lifetime."""
        sfu = sfu_id(state)
        since_at = state.drain.since_at if state.drain else None
        answer = await self._run(
            "put_sfu",
            [self.keys.sfu(sfu), self.keys.sfu_stamps(sfu), self.keys.sfus],
            sfu,
            write_record(state),
            max(0, state.incarnation),
            max(0, state.revision),
            _DRAINING[status_of(state)],
            _stamp(state.started_at),
            _stamp(since_at),
            SFU_TTL_S,
            STAMPS_TTL_S,
            state.boot,
            OWNER_ALIVE_S,
        )
        accepted, started_at, cordoned_at, incarnation, revision, taken = answer
        stamps = (_at(started_at), _at(cordoned_at), int(incarnation), int(revision))
        return PutSfu(bool(accepted), *stamps, bool(taken))

    async def read_sfus(self) -> list[SfuState]:
        """All SFUs that some router has written within `SFU_TTL_S`, with what Redis' clock says of them filled in."""
        return [heard.state for heard in await self.hear_sfus()]

    async def hear_sfus(self) -> list[HeardSfu]:
        """The same, with how long ago by Redis' clock each of them had news.

        A frozen SFU has none either: its router goes on writing the last state, whose revision stays.
        """
        try:
            ids = [text(raw) for raw in await self._send("read_sfus", "SMEMBERS", self.keys.sfus)]
        except WrongType:
            return []
        if not ids:
            return []
        keys = [self.keys.sfus]
        for sfu in ids:
            keys += [self.keys.sfu(sfu), self.keys.sfu_stamps(sfu)]
        answer = await self._run("read_sfus", keys, *ids)
        heard = (self._heard(*answer[i : i + 6]) for i in range(0, len(answer), 6))
        return sorted((each for each in heard if each), key=lambda each: sfu_id(each.state))

    async def remove_sfu(self, sfu: str, incarnation: int) -> bool:
        """Unregister an SFU that has ended; False when a newer incarnation is there. Its late states are refused."""
        keys = [self.keys.sfu(sfu), self.keys.sfu_stamps(sfu), self.keys.sfus]
        return bool(await self._run("remove_sfu", keys, sfu, max(0, incarnation), SFU_TTL_S))

    def _heard(
        self, raw_id: bytes, raw: bytes, incarnation: bytes, started_at: bytes, cordoned_at: bytes, silent: bytes
    ) -> HeardSfu | None:
        sfu = text(raw_id)
        state = self._record(SfuState, raw, self.keys.sfu(sfu))
        if state is None:
            return None
        if state.sfu and state.sfu != sfu:
            self._note_bad(BadRecord(key=self.keys.sfu(sfu), detail="it says it is another SFU"))
            return None
        if sfu_id(state) != sfu:
            state = msgspec.structs.replace(state, sfu=sfu)
        if text(incarnation) != str(max(0, state.incarnation)):
            # An older program has written over a newer one's record: these stamps are not this state's.
            return HeardSfu(state)
        return HeardSfu(fill_stamps(state, _at(started_at), _at(cordoned_at)), silent_for_s=_at(silent))


def fill_stamps(state: SfuState, started_at: float | None, cordoned_at: float | None) -> SfuState:
    """The state with the two times that only Redis' clock knows, where the SFU does not repeat them itself yet."""
    if state.started_at is None and started_at is not None:
        state = msgspec.structs.replace(state, started_at=started_at)
    if state.drain is not None and state.drain.since_at is None and cordoned_at is not None:
        state = msgspec.structs.replace(state, drain=msgspec.structs.replace(state.drain, since_at=cordoned_at))
    return state


def _stamp(at: float | None) -> str:
    return "" if at is None else f"{at:.6f}"


def _at(raw: bytes) -> float | None:
    try:
        return float(raw) if raw else None
    except ValueError:
        return None
