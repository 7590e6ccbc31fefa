"""What a pool lists is believed only where it is unambiguous (A8)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from control.core.pool import NodePhase, Oddity, OddKind, PoolNode, without_oddities

NODES = st.builds(
    PoolNode, node=st.sampled_from("abcd"), sfu=st.sampled_from(["", "s", "t", "u"]), phase=st.sampled_from(NodePhase)
)


def node(name: str, sfu: str = "") -> PoolNode:
    return PoolNode(node=name, sfu=sfu, phase=NodePhase.RUNNING)


def test_two_of_one_name_are_both_left_out_and_the_listing_is_incomplete() -> None:
    listing = without_oddities([node("a", "s"), node("a", "t"), node("b", "u")])
    assert ([each.node for each in listing.nodes], listing.complete) == (["b"], False)
    assert [(odd.kind, odd.node) for odd in listing.oddities] == [(OddKind.TWICE, "a"), (OddKind.TWICE, "a")]


def test_two_that_run_one_sfu_are_both_left_out() -> None:
    listing = without_oddities([node("a", "s"), node("b", "s"), node("c", "t")])
    assert ([each.node for each in listing.nodes], listing.complete) == (["c"], False)


def test_nodes_whose_sfu_is_not_known_yet_do_not_clash() -> None:
    assert len(without_oddities([node("a"), node("b")]).nodes) == 2


def test_a_stranger_alone_leaves_the_listing_complete() -> None:
    stranger = Oddity(kind=OddKind.STRANGER, node="x")
    listing = without_oddities([node("a")], odd=[stranger])
    assert (listing.complete, listing.oddities) == (True, (stranger,))


def test_what_was_incomplete_stays_so() -> None:
    assert not without_oddities([node("a")], complete=False).complete


@given(st.lists(NODES, max_size=8))
def test_names_and_sfus_are_unique_and_nothing_vanishes_unsaid(nodes: list[PoolNode]) -> None:
    listing = without_oddities(nodes)
    names, sfus = [n.node for n in listing.nodes], [n.sfu for n in listing.nodes if n.sfu]
    assert len(set(names)) == len(names)
    assert len(set(sfus)) == len(sfus)
    assert len(listing.nodes) + len(listing.oddities) == len(nodes)
    assert listing.complete == (not listing.oddities)
    assert without_oddities(listing.nodes, complete=listing.complete, odd=listing.oddities) == listing
