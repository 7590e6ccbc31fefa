"""Where an autoscaler's nodes come from (A8): the interface behind which processes, containers and pods are alike.

A pool knows nodes by names of its own and says which SFU each one runs. It never decides: it lists, launches the node
that a request asks for, and ends the node it is told to. If it can't find something out it raises an error: "no nodes"
is never a guess.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class NodePhase(StrEnum):
    """How far a node has come, as its pool sees it. Whether it is capacity depends on the SFU's own report (A5)."""

    STARTING = "starting"
    """Asked for; nothing runs yet."""
    RUNNING = "running"
    """Its process runs."""
    ENDING = "ending"
    """Told to end; still there."""
    FAILED = "failed"
    """Ended without being told to, or can't start; `detail` says why. It stays listed until it is terminated."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolNode:
    """A node as its pool knows it."""

    node: str
    """The pool's name for it: what `terminate` takes."""
    sfu: str
    """Id of the SFU it runs; empty while that is not known."""
    phase: NodePhase
    request: str = ""
    """The launch request that made it; empty for one that was there before."""
    detail: str = ""
    """What people are told of it."""


class OddKind(StrEnum):
    """Entries of a listing that must not be acted on."""

    TWICE = "twice"
    """Two nodes of one name, or two nodes that run one SFU."""
    STRANGER = "stranger"
    """An object among ours that is not ours: without a mark of this pool, or with a mark that can't be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Oddity:
    """A bad input from a pool: reported and counted, never launched over and never terminated."""

    kind: OddKind
    node: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """What a pool has."""

    nodes: tuple[PoolNode, ...]
    complete: bool = True
    """False when a part could not be read: a node that is missing then is unknown, not gone (invariant 4)."""
    oddities: tuple[Oddity, ...] = ()
    """Entries that were listed and left out of `nodes`."""


class Pool(Protocol):
    """The four things an autoscaler asks of a platform. Every call raises `control.errors.PoolError` when it failed or
    when its outcome is not known; none waits longer than its own time-out. `launch` and `terminate` can be repeated."""

    name: str

    async def list(self) -> Listing:
        """Every node of this pool, with ended ones that were not cleaned up."""

    async def launch(self, request: str) -> PoolNode:
        """Bring up one node for this request; the node it already made, when the request was made before (A7)."""

    async def prefer_victim(self, node: str) -> None:
        """Tell the platform that this is the node to lose, where the platform chooses."""

    async def terminate(self, node: str) -> None:
        """End a node: SIGTERM, on which an SFU without players exits at once. A node that is gone is not an error."""

    async def close(self) -> None:
        """Let go of connections; nodes stay as they are."""


def without_oddities(nodes: Iterable[PoolNode], *, complete: bool = True, odd: Iterable[Oddity] = ()) -> Listing:
    """A listing in which every name and every SFU occurs once.

    Of two nodes that claim one name or one SFU it can't be known which is the right one, so both are left out and the
    listing is incomplete: a caller must not conclude that they are gone.
    """
    nodes, oddities = list(nodes), list(odd)
    doubled = _repeated(node.node for node in nodes)
    shared = _repeated(node.sfu for node in nodes if node.sfu and node.node not in doubled)
    kept = []
    for node in nodes:
        if node.node in doubled or node.sfu in shared:
            oddities.append(Oddity(kind=OddKind.TWICE, node=node.node, detail=f"sfu {node.sfu or 'unknown'}"))
        else:
            kept.append(node)
    return Listing(nodes=tuple(kept), complete=complete and len(kept) == len(nodes), oddities=tuple(oddities))


def _repeated(names: Iterable[str]) -> set[str]:
    return {name for name, times in Counter(names).items() if times > 1}
