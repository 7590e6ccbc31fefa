"""A burst of joins through the placing of several routers, on a clock that stands still, as within one report interval.

Only the websockets are left out: each join reads its room and is placed by `Placing`, as `SessionStarter` does it,
sixteen at a time on each router.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from router.core.plan import Ask
from router.core.rooms import HostedRooms
from router.core.selector.decision import PlacementDecision
from router.core.sessions import Session
from router.shell.placing import Placing
from router.shell.session_starter import AT_ONCE
from router.shell.state import RouterState
from router.shell.store_writer import StoreWriter
from shared.errors import StoreUnavailable
from shared.records import LoadParts, SfuState
from shared.store.api import StoreApi
from shared.tokens import ResumeClaims
from tests.router.conftest import config


@dataclass(frozen=True, kw_only=True)
class Node:
    """An SFU before the burst, and what a player costs there."""

    sfu: str
    clients: int = 0
    cost: float = 0.002

    def report(self, revision: int, clients: int) -> SfuState:
        """Its report with that many clients."""
        parts = LoadParts(
            clients=clients,
            rooms=clients,
            tracks=2 * clients,
            cpu=clients * self.cost / 2,
            sysload=clients * self.cost / 2,
            egress_bps=clients * self.cost * 700e6,
            ingress_bps=clients * 1e5,
        )
        return SfuState(
            sfu=self.sfu,
            address=f"ws://{self.sfu}",
            load=round(clients * self.cost, 4),
            incarnation=1,
            revision=revision,
            load_parts=parts,
            warmed_up=True,
        )


class Burst:
    """Routers before one fleet of SFUs whose reports stand still until `report` is called."""

    def __init__(self, stores: Sequence[StoreApi], nodes: Sequence[Node], *, seed: int = 1, **settings: Any) -> None:
        self.now = 100.0
        self.nodes = {node.sfu: node for node in nodes}
        self.clients = Counter({node.sfu: node.clients for node in nodes})
        self.revision = 1
        self.rooms: dict[str, str] = {}
        """Room -> the SFU it was placed on."""
        self.placing: list[tuple[RouterState, Placing]] = []
        for n, store in enumerate(stores):
            state = RouterState(
                config=config(router=f"r{n}", **settings),
                store=store,
                rooms=HostedRooms(resume_window_s=25.0),
                rng=random.Random(seed + n),
            )
            state.mono = lambda: self.now
            writer = StoreWriter(state, replaced=lambda _: None, reread=lambda _: None)
            self.placing.append((state, Placing(state, writer)))
        self.report()

    def report(self) -> None:
        """Every SFU reports to every router what it has by now."""
        self.revision += 1
        for node in self.nodes.values():
            for state, _ in self.placing:
                state.directory.hear(node.report(self.revision, self.clients[node.sfu]), now=self.now)

    async def joins(self, rooms: Sequence[str], *, exclude: Sequence[str] = ()) -> Counter[str]:
        """One player after another into these rooms, through the routers in turn; how many each SFU got.

        `exclude`: SFUs that none of these players can use.
        """
        turns = [asyncio.Semaphore(AT_ONCE) for _ in self.placing]
        got: Counter[str] = Counter()

        async def join(n: int, room: str) -> None:
            which = n % len(self.placing)
            async with turns[which]:
                sfu = await self._place(which, Ask(room=room, exclude=exclude), f"p{n}")
            got[sfu] += 1

        await asyncio.gather(*(join(n, room) for n, room in enumerate(rooms)))
        self.clients.update(got)
        return got

    async def _place(self, which: int, ask: Ask, identity: str) -> str:
        state, placing = self.placing[which]
        room = ask.room
        claims = ResumeClaims(player=f"{identity}@{room}", room=room, identity=identity, epoch=1)
        decisions: list[PlacementDecision] = []
        try:
            seen = await state.need_store("read_room").read_room(room)
        except StoreUnavailable:
            seen = None
        session = Session(claims, wire=None, home_at=0.0)
        await placing.place(ask, session=session, deliver=decisions.append, seen=seen)
        (decision,) = decisions
        assert decision.chosen is not None
        if not ask.exclude:
            self.rooms[room] = decision.chosen
        return decision.chosen

    def ideal(self, rooms: Sequence[str], *, rng: random.Random | None = None) -> Counter[str]:
        """How many each SFU would get if every join showed in its load at once.

        Of equals the first by name is taken, and players come in this order; with `rng` chance decides both.
        """
        clients, placed, got = Counter(self.clients), dict(self.rooms), Counter[str]()
        for room in rng.sample(rooms, len(rooms)) if rng else rooms:
            draw = {node: rng.random() if rng else node for node in self.nodes}
            best = min(self.nodes.values(), key=lambda node: (clients[node.sfu] * node.cost, draw[node.sfu]))
            sfu = placed.setdefault(room, best.sfu)
            clients[sfu] += 1
            got[sfu] += 1
        return got


def furthest(got: Counter[str], ideal: Counter[str], *, before: Counter[str]) -> float:
    """By what share of its ideal number of clients the SFU is off that is off the most."""
    wanted = {sfu: before[sfu] + ideal[sfu] for sfu in before | ideal | got}
    return max(abs(got[sfu] - ideal[sfu]) / wanted[sfu] for sfu in wanted if wanted[sfu])
