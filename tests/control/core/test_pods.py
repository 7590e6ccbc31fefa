"""Which pod a launch made, and which one a ReplicaSet would take (A8)."""

from __future__ import annotations

import pytest

from control.core.kube_objects import Condition, Meta, Pod, PodSpec, PodStatus
from control.core.pods import COST, REQUEST, LaunchNote, in_the_way, note_of, unclaimed, with_cost


def pod(name: str, created: str = "2026-11-30T00:00:01Z", *, going: bool = False, **annotations: str) -> Pod:
    metadata = Meta(
        name=name,
        creation_timestamp=created,
        deletion_timestamp="2026-11-30T09:00:00Z" if going else None,
        labels={"pod-template-hash": "h"},
        annotations={REQUEST: annotations["request"]} if annotations else None,
    )
    status = PodStatus(phase="Running", conditions=[Condition(type="Ready", status="True")])
    return Pod(metadata=metadata, spec=PodSpec(node_name="m"), status=status)


OLD, TWIN = pod("old"), pod("twin", "2026-11-30T00:00:07Z")
NOTE = note_of("r", replicas=3, pods=[OLD, TWIN])


def test_pods_that_were_there_are_not_the_launchs_even_when_made_in_the_same_second() -> None:
    assert LaunchNote(request="r", replicas=3, newest="2026-11-30T00:00:07Z", of_then=("twin",)) == NOTE
    assert unclaimed(NOTE, [OLD, TWIN]) is None
    same_second = pod("new", "2026-11-30T00:00:07Z")
    assert unclaimed(NOTE, [OLD, TWIN, same_second]) is same_second


def test_of_several_new_pods_the_oldest_that_lives_and_has_no_request_is_the_launchs() -> None:
    going = pod("a", "2026-11-30T00:00:08Z", going=True)
    anothers = pod("b", "2026-11-30T00:00:08Z", request="q")
    first, second = pod("c", "2026-11-30T00:00:09Z"), pod("d", "2026-11-30T00:00:10Z")
    assert unclaimed(NOTE, [second, anothers, first, going, OLD]) is first


def test_a_launch_has_one_pod() -> None:
    its, new = pod("its", "2026-11-30T00:00:08Z", request="r"), pod("new", "2026-11-30T00:00:09Z")
    assert unclaimed(NOTE, [its, new]) is None
    assert unclaimed(None, [new]) is None


def test_in_an_empty_deployment_any_pod_is_new() -> None:
    new = pod("new")
    assert unclaimed(note_of("r", replicas=1, pods=[]), [new]) is new


def test_with_the_mark_a_ready_pod_goes_before_its_equals_and_without_it_any_may() -> None:
    victim, other = pod("v"), pod("o")
    assert in_the_way(with_cost(victim, "-1000"), [with_cost(victim, "-1000"), other]) == ""
    assert "o would be taken" in in_the_way(victim, [victim, other])


@pytest.mark.parametrize("cost", ["-1000", "-5000"])
def test_another_as_cheap_or_cheaper_is_in_the_way(cost: str) -> None:
    victim, other = with_cost(pod("v"), "-1000"), with_cost(pod("o"), cost)
    assert in_the_way(victim, [victim, other])


def test_a_cost_that_is_no_number_counts_as_none() -> None:
    victim, other = with_cost(pod("v"), "-1000"), with_cost(pod("o"), "cheap")
    assert in_the_way(victim, [victim, other]) == ""


def test_pods_that_are_going_are_in_no_other_pods_way() -> None:
    victim = with_cost(pod("v"), "-1000")
    assert in_the_way(victim, [victim, with_cost(pod("o", going=True), "-9000")]) == ""


def test_taking_our_mark_away_leaves_what_others_have_set() -> None:
    assert with_cost(with_cost(pod("a"), "-1000"), "").metadata.annotation(COST) == ""
    assert with_cost(with_cost(pod("a"), "50"), "").metadata.annotation(COST) == "50"
