"""Pods as a pool (A8), against a fake of Kubernetes' API: one replica a request, our victim, errors are no pods."""

from __future__ import annotations

import asyncio
import copy
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from kubernetes_asyncio.config import incluster_config

from control.core.autoscaler.progress import TickProgress
from control.core.autoscaler.removals import sweep
from control.core.autoscaler.world import join
from control.core.pods import COST, REQUEST, SAFE_TO_EVICT
from control.core.pool import NodePhase, OddKind
from control.core.pool_settings import KubernetesPoolSettings
from control.errors import PoolError, PoolTrouble
from control.shell.pools import kube_api as kube_api_module
from control.shell.pools import kubernetes as kubernetes_module
from control.shell.pools.kubernetes import KubernetesPool
from shared.errors import BadSetting
from shared.scaling_records import ScalingState
from tests.fakes import kube_api as kube_module
from tests.fakes.kube_api import DEPLOYMENT, NAMESPACE, TOKEN, FakeKube, status

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
clusters: [{{name: c, cluster: {{server: "{url}"}}}}]
users: [{{name: u, user: {{token: {token}}}}}]
contexts: [{{name: here, context: {{cluster: c, user: u, namespace: {namespace}}}}}]
"""


class World:
    """A fake cluster and the controllers that use it."""

    def __init__(self, kube: FakeKube, kubeconfig: Path) -> None:
        self.kube = kube
        self.kubeconfig = kubeconfig
        self.pools: list[KubernetesPool] = []

    def pool(self, **settings: Any) -> KubernetesPool:
        plain = {"deployment": DEPLOYMENT, "kubeconfig": str(self.kubeconfig), "timeout_s": 10.0, "page": 2}
        pool = KubernetesPool(KubernetesPoolSettings(**(plain | settings)))
        self.pools.append(pool)
        return pool

    @property
    def replicas(self) -> int:
        count: int = self.kube.deployment["spec"]["replicas"]
        return count

    def annotations(self, pod: str) -> dict[str, str]:
        return self.kube.pods[pod]["metadata"].get("annotations") or {}


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(kubernetes_module, "SETTLE_S", 0.0)
    kube = FakeKube(replicas=5)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG.format(url=await kube.start(), token=TOKEN, namespace=NAMESPACE))
    world = World(kube, kubeconfig)
    yield world
    for pool in world.pools:
        await pool.close()
    await kube.stop()


async def names(pool: KubernetesPool) -> list[str]:
    return sorted(node.node for node in (await pool.list()).nodes)


# --- listing ---


async def test_all_pages_are_read_and_a_pods_name_is_its_sfu(world: World) -> None:
    listing = await world.pool().list()
    assert sorted(node.sfu for node in listing.nodes) == sorted(world.kube.pods)
    assert all(node.sfu == node.node and node.phase is NodePhase.RUNNING for node in listing.nodes)
    assert listing.complete
    assert sum("/pods?" in path for _, path in world.kube.calls) == 3


@pytest.mark.parametrize(
    ("change", "phase", "detail"),
    [
        ({"status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]}},
         NodePhase.STARTING, "Unschedulable: 0/3 nodes"),
        ({"status": {"phase": "Pending", "containerStatuses": [
            {"state": {"waiting": {"reason": "ContainerCreating"}}}]}}, NodePhase.STARTING, "Pending"),
        ({"status": {"phase": "Pending", "containerStatuses": [
            {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}}]}},
         NodePhase.STARTING, "ImagePullBackOff: no such tag"),
        ({"status": {"phase": "Pending", "containerStatuses": [
            {"state": {"waiting": {"reason": "CreateContainerConfigError", "message": "no secret sluice"}}}]}},
         NodePhase.STARTING, "CreateContainerConfigError: no secret sluice"),
        ({"status": {"phase": "Running", "containerStatuses": [
            {"state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}}}]}},
         NodePhase.STARTING, "CrashLoopBackOff: back-off 40s"),
        ({"status": {"phase": "Running", "containerStatuses": [{"state": {"terminated": {"reason": "OOMKilled"}}}]}},
         NodePhase.STARTING, "OOMKilled"),
        ({"status": {"phase": "Running", "containerStatuses": [
            {"state": {"waiting": {"reason": "CrashLoopBackOff", "message": "the sidecar"}}},
            {"state": {"running": {"startedAt": "x"}}}]}}, NodePhase.RUNNING, "CrashLoopBackOff: the sidecar"),
        ({"status": {"phase": "Running", "containerStatuses": [{"state": None}, {}]}}, NodePhase.STARTING, "Running"),
        ({"status": {"phase": "Failed", "reason": "Evicted"}}, NodePhase.FAILED, "Evicted"),
        ({"status": {"phase": "Running", "containerStatuses": None, "conditions": None}}, NodePhase.RUNNING, ""),
        ({"metadata": {"deletionTimestamp": "2026-11-30T01:00:00Z"}}, NodePhase.ENDING, ""),
    ],
)  # fmt: skip
async def test_how_far_a_pod_has_come(world: World, change: dict[str, Any], phase: NodePhase, detail: str) -> None:
    name, pod = next(iter(world.kube.pods.items()))
    for part, values in change.items():
        pod[part] = {**(pod[part] if part == "metadata" else {}), **values}
    found = next(node for node in (await world.pool().list()).nodes if node.node == name)
    assert (found.phase, found.detail) == (phase, detail)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (lambda: status(403, "Forbidden", "pods is forbidden"), PoolTrouble.FORBIDDEN),
        (lambda: status(401, "Unauthorized", "Unauthorized"), PoolTrouble.FORBIDDEN),
        (lambda: status(404, "NotFound", "deployments.apps not found"), PoolTrouble.NOT_FOUND),
        (lambda: status(500, "InternalError", "etcdserver: leader changed"), PoolTrouble.FAULT),
        (lambda: status(504, "Timeout", "the server was unable to respond in time"), PoolTrouble.TIMEOUT),
        (lambda: web.Response(status=502, text="<html>bad gateway</html>"), PoolTrouble.FAULT),
        (lambda: web.json_response({}), PoolTrouble.UNREADABLE),
        (lambda: web.json_response({"kind": "Status", "items": []}), PoolTrouble.UNREADABLE),
        (lambda: web.Response(text="null"), PoolTrouble.UNREADABLE),
        (lambda: web.Response(body=b'{"kind":"PodList","items":[{"metadata":{"na'), PoolTrouble.UNREADABLE),
        (lambda: web.Response(body=b'{"kind":"PodList","items":[{"metadata":{"name":"\xff"}}]}'),
         PoolTrouble.UNREADABLE),
        (lambda: web.Response(body=b"[" * 100_000), PoolTrouble.UNREADABLE),
        (lambda: "truncate", PoolTrouble.UNREADABLE),
    ],
)  # fmt: skip
@pytest.mark.parametrize("page", [0, 1])
async def test_no_error_on_any_page_is_an_empty_or_a_shorter_pool(
    world: World, answer: Any, kind: PoolTrouble, page: int
) -> None:
    world.kube.trouble["GET pods"] = [None] * page + [answer()]
    pool = world.pool()
    with pytest.raises(PoolError) as failed:
        await pool.list()
    assert failed.value.kind is kind
    assert len(await names(pool)) == 5, "it recovers"


async def test_too_many_requests_say_when_to_come_back(world: World) -> None:
    for header, seconds in (("7", 7.0), ("999999999", 3600.0), ("soon", None), ("-1", None), ("Wed, 1 Jan", None)):
        answer = status(429, "TooManyRequests", "slow down", {"Retry-After": header})
        world.kube.trouble["GET deployment"] = [answer]
        with pytest.raises(PoolError) as failed:
            await world.pool().launch("a")
        assert (failed.value.kind, failed.value.retry_after_s) == (PoolTrouble.THROTTLED, seconds)
    assert world.replicas == 5


async def test_a_listing_that_expires_is_begun_again_once(world: World) -> None:
    def gone() -> web.Response:
        return status(410, "Expired", "The provided continue parameter is too old")

    world.kube.trouble["GET pods"] = [None, gone()]
    assert len(await names(world.pool())) == 5
    world.kube.trouble["GET pods"] = [None, gone(), None, gone()]
    with pytest.raises(PoolError) as failed:
        await world.pool().list()
    assert failed.value.kind is PoolTrouble.EXPIRED


@pytest.mark.parametrize("call", ["GET pods", "GET deployment"])
async def test_an_api_that_hangs_is_a_time_out(world: World, call: str) -> None:
    world.kube.trouble[call] = ["hang"]
    with pytest.raises(PoolError) as failed:
        await world.pool(timeout_s=0.3).list()
    assert failed.value.kind is PoolTrouble.TIMEOUT


async def test_an_api_that_is_gone_is_unreachable(world: World) -> None:
    pool = world.pool()
    await world.kube.stop()
    with pytest.raises(PoolError) as failed:
        await pool.list()
    assert failed.value.kind is PoolTrouble.UNREACHABLE


async def test_a_cluster_that_is_not_configured_is_no_empty_pool(world: World, tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("apiVersion: v1\nkind: Config\n")
    for file in (tmp_path / "none", tmp_path / "bad"):
        with pytest.raises(PoolError) as failed:
            await world.pool(kubeconfig=str(file)).list()
        assert failed.value.kind is PoolTrouble.NOT_FOUND


async def test_within_a_pod_the_service_account_says_where_and_who(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "namespace").write_text(f"{NAMESPACE}\n")
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "ca.crt").write_text("a certificate")
    monkeypatch.setattr(kube_api_module, "_NAMESPACE", tmp_path / "namespace")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    server = server_of(world.kubeconfig)

    def as_in_a_pod(client_configuration: Any) -> None:
        files = {"token_filename": str(tmp_path / "token"), "cert_filename": str(tmp_path / "ca.crt")}
        incluster_config.InClusterConfigLoader(**files).load_and_set(client_configuration)
        # The fake speaks neither TLS nor at the cluster's own address.
        client_configuration.host, client_configuration.ssl_ca_cert = server, None

    monkeypatch.setattr("kubernetes_asyncio.config.load_incluster_config", as_in_a_pod)
    assert len(await names(world.pool(kubeconfig=""))) == 5


def server_of(kubeconfig: Path) -> str:
    return kubeconfig.read_text().partition('server: "')[2].partition('"')[0]


async def test_strangers_are_reported_and_a_pod_listed_twice_makes_the_listing_incomplete(world: World) -> None:
    pool = world.pool()
    name = next(iter(world.kube.pods))
    alone = copy.deepcopy(world.kube.pods[name])
    alone["metadata"] |= {"name": "debug", "ownerReferences": None, "uid": "x"}
    world.kube.pods["debug"] = alone
    listing = await pool.list()
    assert [(odd.kind, odd.node) for odd in listing.oddities] == [(OddKind.STRANGER, "debug")]
    assert (len(listing.nodes), listing.complete) == (5, True)
    world.kube.pods["debug"] = world.kube.pods[name]
    listing = await pool.list()
    assert {(odd.kind, odd.node) for odd in listing.oddities} == {(OddKind.TWICE, name)}
    assert (len(listing.nodes), listing.complete) == (4, False)


# --- launching ---


async def test_a_launch_is_one_replica_and_its_pod_says_whose_it_is(world: World) -> None:
    pool = world.pool()
    before = set(world.kube.pods)
    node = await pool.launch("a")
    assert (node.phase, node.sfu, node.request) == (NodePhase.STARTING, "", "a")
    assert world.replicas == 6
    assert [n for n in (await pool.list()).nodes if n.request == "a"] == [node], "no pod yet, but it is a node"
    world.kube.settle()
    (new,) = set(world.kube.pods) - before
    (found,) = [n for n in (await pool.list()).nodes if n.request == "a"]
    assert (found.node, found.sfu, found.phase) == (new, new, NodePhase.RUNNING)
    assert world.annotations(new)[REQUEST] == "a"
    assert len(await names(pool)) == 6
    assert world.kube.deployment["metadata"]["annotations"]["kept"] == "yes"


async def test_a_repeated_request_raises_nothing_twice_also_from_another_controller(world: World) -> None:
    await world.pool().launch("a")
    await world.pool().launch("a")
    world.kube.settle()
    assert (await world.pool().launch("a")).sfu
    assert (world.replicas, len(world.kube.patches)) == (6, 1)


async def test_a_request_is_remembered_by_its_pod_after_another_was_made(world: World) -> None:
    pool = world.pool()
    for request in ("a", "b"):
        await pool.launch(request)
        world.kube.settle()
        await pool.list()
    assert (await pool.launch("a")).node != (await pool.launch("b")).node
    assert world.replicas == 7


async def test_a_launch_whose_answer_is_lost_is_found_done(world: World) -> None:
    world.kube.trouble["PATCH deployment"] = ["lost"]
    with pytest.raises(PoolError) as failed:
        await world.pool().launch("a")
    assert failed.value.kind is PoolTrouble.UNREACHABLE
    assert (await world.pool().launch("a")).request == "a"
    assert world.replicas == 6


async def test_a_launch_that_an_operator_is_quicker_than_counts_from_their_number(world: World) -> None:
    def operator_scales() -> None:
        world.kube.deployment["spec"]["replicas"] = 8
        world.kube.deployment["metadata"]["resourceVersion"] = world.kube.next_version()

    world.kube.before["PATCH deployment"] = operator_scales
    await world.pool().launch("a")
    assert world.replicas == 9


async def test_two_controllers_that_ask_for_the_same_at_once_raise_once(world: World) -> None:
    await asyncio.gather(world.pool().launch("a"), world.pool().launch("a"))
    assert world.replicas == 6


async def test_a_write_that_always_conflicts_is_given_up(world: World) -> None:
    world.kube.trouble["PATCH deployment"] = [status(409, "Conflict", "modified") for _ in range(9)]
    with pytest.raises(PoolError) as failed:
        await world.pool().launch("a")
    assert (failed.value.kind, world.replicas) == (PoolTrouble.CONFLICT, 5)
    assert len(world.kube.trouble["PATCH deployment"]) == 5


async def test_a_launch_without_room_can_be_taken_back(world: World) -> None:
    world.kube.quota = 5
    pool = world.pool()
    node = await pool.launch("a")
    world.kube.settle()
    await pool.terminate(node.node)
    await pool.terminate(node.node)
    assert world.replicas == 5
    assert len(await names(pool)) == 5


async def test_a_launch_that_is_taken_back_by_its_first_name_takes_its_own_pod(world: World) -> None:
    pool = world.pool()
    before = set(world.kube.pods)
    node = await pool.launch("a")
    world.kube.settle()
    await pool.terminate(node.node)
    world.kube.settle()
    assert (set(world.kube.pods), world.replicas) == (before, 5)


async def test_a_note_that_cant_be_read_is_none(world: World) -> None:
    world.kube.deployment["metadata"]["annotations"]["sluice.dev/launch"] = "{"
    assert len(await names(world.pool())) == 5


# --- removing ---


async def test_the_victim_is_the_cheapest_alone_and_not_to_be_evicted(world: World) -> None:
    pool = world.pool()
    first, second = sorted(world.kube.pods)[2:4]
    await pool.prefer_victim(first)
    assert (world.annotations(first)[COST], world.annotations(first)[SAFE_TO_EVICT]) == ("-1000", "false")
    await pool.prefer_victim(second)
    assert COST not in world.annotations(first), "that removal was cancelled"
    assert world.annotations(second)[COST] == "-1000"
    await pool.prefer_victim("gone")


@pytest.mark.parametrize("marked_before", [True, False])
async def test_terminate_takes_the_victim_and_no_other_once(world: World, marked_before: bool) -> None:
    pool = world.pool()
    victim = sorted(world.kube.pods)[2]
    if marked_before:
        await pool.prefer_victim(victim)
    await pool.terminate(victim)
    await pool.terminate(victim)
    world.kube.reconcile()
    assert [n.node for n in (await pool.list()).nodes if n.phase is NodePhase.ENDING] == [victim]
    await pool.terminate(victim)
    world.kube.settle()
    await pool.terminate(victim)
    assert (world.replicas, victim in world.kube.pods, len(world.kube.pods)) == (4, False, 4)


async def test_a_removal_whose_answer_is_lost_is_not_made_twice(world: World) -> None:
    victim = sorted(world.kube.pods)[2]
    world.kube.trouble["PATCH deployment"] = ["lost"]
    with pytest.raises(PoolError):
        await world.pool().terminate(victim)
    await world.pool().terminate(victim)
    world.kube.settle()
    assert (world.replicas, victim in world.kube.pods) == (4, False)


async def test_when_another_pod_is_taken_all_the_same_the_victim_goes_and_no_third(world: World) -> None:
    """Else each tick would lower the replicas once more, and take one pod after the other, calls and all."""
    pool = world.pool()
    first, *_, victim = sorted(world.kube.pods)
    await pool.prefer_victim(victim)
    world.kube.before["PATCH deployment"] = lambda: world.kube.run(world.kube.pods[first], ready=False)
    await pool.terminate(victim)
    world.kube.settle()
    assert (first in world.kube.pods, victim in world.kube.pods) == (False, True)
    for _ in range(3):
        await world.pool().terminate(victim)
        world.kube.settle()
    assert (world.replicas, victim in world.kube.pods, len(world.kube.pods)) == (4, False, 4)


async def test_two_removals_at_once_on_a_cluster_that_ignores_the_cost_cost_two_replicas(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube_module, "_rank", lambda pod: pod["metadata"]["uid"])
    pool = world.pool()
    victims = sorted(world.kube.pods)[3:]
    for _ in range(6):
        for victim in victims:
            await pool.terminate(victim)
            world.kube.settle()
    assert (world.replicas, len(world.kube.pods)) == (3, 3)
    assert not set(victims) & set(world.kube.pods)


async def test_a_victim_that_was_taken_back_costs_a_replica_when_it_is_one_again(world: World) -> None:
    pool = world.pool()
    first, *_, victim = sorted(world.kube.pods)
    world.kube.before["PATCH deployment"] = lambda: world.kube.run(world.kube.pods[first], ready=False)
    await pool.terminate(victim)
    world.kube.settle()  # another went; an operator uncordons the victim, and it works on
    await pool.prefer_victim(victim)
    await pool.terminate(victim)
    world.kube.settle()
    assert (world.replicas, victim in world.kube.pods, len(world.kube.pods)) == (3, False, 3)


@pytest.mark.parametrize("trait", ["unscheduled", "pending", "unready", "cheaper"])
async def test_replicas_are_not_lowered_while_another_pod_would_go_first(world: World, trait: str) -> None:
    """The deletion cost comes last: a ReplicaSet takes whatever is not ready before it looks at it."""
    victim, other = sorted(world.kube.pods)[2:4]
    pod = world.kube.pods[other]
    match trait:
        case "unscheduled":
            pod["status"] = {"phase": "Pending"}
            del pod["spec"]["nodeName"]
        case "pending":
            pod["status"] = {"phase": "Pending"}
        case "unready":
            world.kube.run(pod, ready=False)
        case "cheaper":
            pod["metadata"]["annotations"] = {COST: "-5000"}
    with pytest.raises(PoolError) as failed:
        await world.pool().terminate(victim)
    assert (failed.value.kind, other in str(failed.value)) == (PoolTrouble.REFUSED, True)
    assert world.replicas == 5


async def test_replicas_are_not_lowered_during_a_rollout(world: World) -> None:
    victim = sorted(world.kube.pods)[2]
    world.kube.template = "8aaa"
    world.kube.run(world.kube.make())
    world.kube.deployment["spec"]["replicas"] = 6
    with pytest.raises(PoolError) as failed:
        await world.pool().terminate(victim)
    assert "rollout" in str(failed.value)
    assert world.replicas == 6


async def test_a_pod_that_is_no_replica_any_more_is_deleted_and_costs_none(world: World) -> None:
    victim = sorted(world.kube.pods)[2]
    world.kube.pods[victim]["status"] = {"phase": "Failed", "reason": "Evicted"}
    world.kube.settle()
    await world.pool().terminate(victim)
    assert (victim in world.kube.pods, world.replicas, len(world.kube.pods)) == (False, 5, 5)


@pytest.mark.parametrize("reason", ["CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull"])
async def test_what_keeps_all_pods_down_and_heals_later_costs_no_replica(world: World, reason: str) -> None:
    """A Secret that was put wrong, a registry that is away: the sweep of failed nodes takes none of them."""
    pool = world.pool()
    for pod in world.kube.pods.values():
        world.kube.hold_back(pod, reason)
    found = join(await pool.list(), {})
    swept = sweep(TickProgress(state=ScalingState()), found.members, spare=9)
    assert swept.effects == ()
    world.kube.heal()
    assert {node.phase for node in (await pool.list()).nodes} == {NodePhase.RUNNING}
    assert (world.replicas, len(world.kube.pods)) == (5, 5)


async def test_a_crash_looping_pod_that_is_given_up_goes_with_its_replica(world: World) -> None:
    victim = sorted(world.kube.pods)[2]
    world.kube.hold_back(world.kube.pods[victim], "CrashLoopBackOff")
    await world.pool().terminate(victim)
    world.kube.settle()
    assert (victim in world.kube.pods, world.replicas) == (False, 4)


async def test_a_stranger_is_never_terminated(world: World) -> None:
    alone = copy.deepcopy(next(iter(world.kube.pods.values())))
    alone["metadata"] |= {"name": "debug", "ownerReferences": None}
    world.kube.pods["debug"] = alone
    await world.pool().terminate("debug")
    assert ("debug" in world.kube.pods, world.replicas) == (True, 5)


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes_asyncio.client", None)
    with pytest.raises(BadSetting) as bad:
        KubernetesPool(KubernetesPoolSettings(deployment="a"))
    assert "pip install 'sluice[kubernetes]'" in str(bad.value)
