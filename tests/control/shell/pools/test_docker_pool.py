"""Containers as a pool (A8), against a fake of Docker's API: no error is ever an empty pool."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from control.core.pool import NodePhase, OddKind
from control.core.pool_settings import DockerPoolSettings
from control.errors import PoolError, PoolTrouble
from control.shell.pools import docker as docker_module
from control.shell.pools.docker import DockerPool
from shared.errors import BadSetting
from tests.fakes.docker_api import FakeContainer, FakeDocker


class World:
    """A fake Docker host and the controllers that use it."""

    def __init__(self, docker: FakeDocker) -> None:
        self.docker = docker
        self.pools: list[DockerPool] = []

    def pool(self, **settings: Any) -> DockerPool:
        pool = DockerPool(
            DockerPoolSettings(**({"image": "sluice:1", "docker": self.docker.url, "timeout_s": 5.0} | settings)),
            fleet="f",
            environ={"SLUICE_SECRET": "s" * 32, "SLUICE_ROUTERS": "ws://r:7000", "HOME": "/root"},
        )
        self.pools.append(pool)
        return pool

    def container(self, node: str) -> FakeContainer:
        return self.docker.named(f"f-{node}")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    docker = FakeDocker(tmp_path / "docker.sock")
    await docker.start()
    world = World(docker)
    yield world
    for pool in world.pools:
        await pool.close()
    await docker.stop()


async def test_a_host_without_any_docker_is_no_empty_pool(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("aiodocker.docker._sock_search_paths", [])
    with pytest.raises(PoolError) as caught:
        await world.pool(docker="").list()
    assert caught.value.kind is PoolTrouble.UNREACHABLE


async def test_a_launch_makes_a_labelled_container_that_announces_the_port_it_has(world: World) -> None:
    pool = world.pool(stop_grace_s=120.0, version="7", flags=("--gso=false",), network="calls", bind="0.0.0.0")
    node = await pool.launch("a")
    assert (node.phase, node.request, node.sfu) == (NodePhase.RUNNING, "a", node.node)
    config = world.container(node.node).config
    env = dict(item.split("=", 1) for item in config["Env"])
    port = env["SLUICE_UDP_PORT"]
    assert (env["SLUICE_SFU"], env["SLUICE_ROUTERS"], env["SLUICE_GRACE_S"]) == (node.node, "ws://r:7000", "120")
    assert (env["SLUICE_ANNOUNCED_UDP_PORT"], env["SLUICE_HOST"], env["SLUICE_DRAIN_MAX_S"]) == (port, "0.0.0.0", "60")
    assert "HOME" not in env
    assert config["HostConfig"]["PortBindings"] == {
        f"{port}/{kind}": [{"HostIp": "0.0.0.0", "HostPort": port}] for kind in ("tcp", "udp")
    }
    assert config["Labels"] == {
        "io.sluice.fleet": "f", "io.sluice.pool": "sfu", "io.sluice.node": node.node,
        "io.sluice.request": "a", "io.sluice.port": port, "io.sluice.http_port": "9090",
    }  # fmt: skip
    assert (config["Cmd"], config["StopTimeout"], config["HostConfig"]["NetworkMode"]) == (
        ["sfu", "--gso=false"], 120, "calls",
    )  # fmt: skip


async def test_on_the_hosts_network_no_port_is_mapped_and_none_is_shared(world: World) -> None:
    pool = world.pool(network="host")
    envs = []
    for request in ("a", "b"):
        config = world.container((await pool.launch(request)).node).config
        assert config["HostConfig"]["PortBindings"] == {}
        envs.append(dict(item.split("=", 1) for item in config["Env"]))
    ports = {env[f"SLUICE_{kind}_PORT"] for env in envs for kind in ("UDP", "HTTP")}
    assert len(ports) == 4
    assert envs[0]["SLUICE_HOST"] == "127.0.0.1"
    labels = [each.config["Labels"] for each in world.docker.containers.values()]
    assert {labels[n][f"io.sluice.{kind}"] for n in (0, 1) for kind in ("port", "http_port")} == ports


async def test_on_the_hosts_network_a_nodes_http_port_is_its_own(world: World) -> None:
    """Four ports are room for two nodes, and for no third one."""
    pool = world.pool(network="host", ports="20000-20003")
    for request in ("a", "b"):
        await pool.launch(request)
    with pytest.raises(PoolError) as failed:
        await pool.launch("c")
    assert failed.value.kind is PoolTrouble.FULL


@pytest.mark.parametrize(("settings", "logs"), [({}, "local"), ({"log_driver": "journald"}, "journald"),
                                                ({"log_driver": ""}, None)])  # fmt: skip
async def test_logs_of_a_container_are_bounded_unless_the_daemon_shall_decide(
    world: World, settings: dict[str, str], logs: str | None
) -> None:
    node = await world.pool(**settings).launch("a")
    told = world.container(node.node).config["HostConfig"].get("LogConfig")
    assert told == (None if logs is None else {"Type": logs, "Config": {}})


async def test_a_repeated_request_makes_no_second_container_also_from_another_controller(world: World) -> None:
    first = await world.pool().launch("a")
    assert await world.pool().launch("a") == first
    assert len(world.docker.containers) == 1


async def test_a_container_that_was_made_and_not_started_is_started_when_asked_again(world: World) -> None:
    world.docker.trouble["start"] = (500, "cannot start: out of memory")
    with pytest.raises(PoolError) as failed:
        await world.pool().launch("a")
    assert failed.value.kind is PoolTrouble.FAULT
    assert [node.phase for node in (await world.pool().list()).nodes] == [NodePhase.STARTING]
    world.docker.trouble.clear()
    assert (await world.pool().launch("a")).phase is NodePhase.RUNNING
    assert len(world.docker.containers) == 1


async def test_two_controllers_that_ask_at_once_make_one(world: World) -> None:
    """The second one's look is older than the first one's container: Docker refuses the name."""
    node = await world.pool().launch("a")
    late = world.pool()
    seen = []

    async def not_yet(docker: Any, name: str) -> Any:
        seen.append(name)
        return None if len(seen) == 1 else await DockerPool._find(late, docker, name)

    late._find = not_yet  # type: ignore[method-assign]
    assert await late.launch("a") == node
    assert len(world.docker.containers) == 1


async def test_a_port_that_another_program_has_is_not_insisted_on(world: World) -> None:
    pool = world.pool(ports="20000-20003")
    world.docker.taken_ports = {"20000", "20001"}
    nodes = set()
    for request in ("a", "b"):
        for _ in range(4):
            with contextlib.suppress(PoolError):  # a try's five ports may all be the taken ones
                nodes.add((await pool.launch(request)).node)
    assert {world.container(node).config["Labels"]["io.sluice.port"] for node in nodes} == {"20002", "20003"}
    assert len(world.docker.containers) == 2


async def test_a_name_that_a_stranger_has_is_a_conflict(world: World) -> None:
    node = await world.pool().launch("a")
    world.container(node.node).config["Labels"] = {}
    with pytest.raises(PoolError) as failed:
        await world.pool().launch("a")
    assert failed.value.kind is PoolTrouble.CONFLICT


async def test_an_image_that_is_not_there_is_named(world: World) -> None:
    with pytest.raises(PoolError) as failed:
        await world.pool(image="sluice:2").launch("a")
    assert (failed.value.kind, "No such image: sluice:2" in str(failed.value)) == (PoolTrouble.NOT_FOUND, True)


async def test_terminate_is_sigterm_and_an_ended_container_is_removed(world: World) -> None:
    pool = world.pool()
    node = (await pool.launch("a")).node
    container = world.container(node)
    await pool.terminate(node)
    await pool.terminate(node)
    assert container.signals == ["SIGTERM"]
    assert (await pool.list()).nodes == ()
    assert world.docker.containers == {}
    await pool.terminate(node)


async def test_a_node_that_takes_its_time_is_ending_and_killed_only_past_the_grace(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = world.pool(stop_grace_s=100.0)
    node = (await pool.launch("a")).node
    container = world.container(node)
    container.deaf = True
    now = [1000.0]
    monkeypatch.setattr(docker_module.time, "monotonic", lambda: now[0])
    await pool.terminate(node)
    now[0] += 99
    assert [each.phase for each in (await pool.list()).nodes] == [NodePhase.ENDING]
    assert container.signals == ["SIGTERM"]
    now[0] += 2
    await pool.list()
    assert container.signals == ["SIGTERM", "SIGKILL"]
    assert (await pool.list()).nodes == ()
    assert world.docker.containers == {}


async def test_a_crash_is_failed_until_it_is_terminated_and_a_good_end_is_forgotten(world: World) -> None:
    pool = world.pool()
    crashed, drained = (await pool.launch("a")).node, (await pool.launch("b")).node
    world.container(crashed).end(3)
    world.container(drained).end(0)
    (node,) = (await pool.list()).nodes
    assert (node.node, node.phase, node.detail) == (crashed, NodePhase.FAILED, "exited with status 3")
    assert (await pool.launch("a")).phase is NodePhase.FAILED
    await pool.terminate(crashed)
    assert world.docker.containers == {}


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        ((500, "something broke"), PoolTrouble.FAULT),
        ((503, "starting"), PoolTrouble.FAULT),
        ((403, "plugin said no"), PoolTrouble.FORBIDDEN),
        ((429, "slower"), PoolTrouble.THROTTLED),
        ((400, "bad filter"), PoolTrouble.REFUSED),
        ("truncate", PoolTrouble.UNREADABLE),
        ("garbage", PoolTrouble.UNREADABLE),
    ],
)
async def test_no_error_is_an_empty_pool(world: World, trouble: Any, kind: PoolTrouble) -> None:
    pool = world.pool()
    await pool.launch("a")
    world.docker.trouble["json"] = trouble
    for call in (pool.list(), pool.launch("b"), pool.terminate("x")):
        with pytest.raises(PoolError) as failed:
            await call
        assert failed.value.kind is kind
    world.docker.trouble.clear()
    assert len((await pool.list()).nodes) == 1, "it recovers"


async def test_a_docker_that_hangs_is_a_time_out(world: World) -> None:
    world.docker.trouble["json"] = "hang"
    with pytest.raises(PoolError) as failed:
        await world.pool(timeout_s=0.2).list()
    assert failed.value.kind is PoolTrouble.TIMEOUT


async def test_a_docker_that_is_gone_is_unreachable_and_used_again_when_it_is_back(world: World) -> None:
    pool = world.pool()
    await pool.launch("a")
    await world.docker.stop()
    with pytest.raises(PoolError) as failed:
        await pool.list()
    assert failed.value.kind is PoolTrouble.UNREACHABLE
    world.docker.socket.unlink(missing_ok=True)
    await world.docker.start()
    assert len((await pool.list()).nodes) == 1


async def test_strangers_are_reported_and_left_alone(world: World) -> None:
    pool = world.pool()
    node = (await pool.launch("a")).node
    good = world.container(node).listed()
    stranger = good | {"Id": "b" * 64, "Names": ["/postgres"], "Labels": None}
    world.docker.shown = [good, stranger]
    listing = await pool.list()
    assert ([each.node for each in listing.nodes], listing.complete) == ([node], True)
    assert [(odd.kind, odd.node) for odd in listing.oddities] == [(OddKind.STRANGER, "postgres")]
    world.docker.shown = [good, stranger | {"Labels": {"io.sluice.fleet": "f", "io.sluice.pool": "sfu"}}]
    assert not (await pool.list()).complete, "ours, but which node?"


async def test_a_node_that_is_listed_twice_is_reported_and_neither_is_believed(world: World) -> None:
    pool = world.pool()
    good = world.container((await pool.launch("a")).node).listed()
    world.docker.shown = [good, good | {"Id": "b" * 64}]
    listing = await pool.list()
    assert (listing.nodes, listing.complete) == ((), False)
    assert {odd.kind for odd in listing.oddities} == {OddKind.TWICE}


async def test_tidying_up_that_fails_does_not_spoil_a_listing(world: World) -> None:
    pool = world.pool()
    keep, gone = (await pool.launch("a")).node, (await pool.launch("b")).node
    world.container(gone).end(0)
    world.docker.trouble["delete"] = (500, "device or resource busy")
    assert [each.node for each in (await pool.list()).nodes] == [keep]
    world.docker.trouble.clear()
    await pool.list()
    assert len(world.docker.containers) == 1


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiodocker", None)
    with pytest.raises(BadSetting) as bad:
        DockerPool(DockerPoolSettings(image="a"), fleet="f", environ={})
    assert "pip install 'sluice[docker]'" in str(bad.value)
