"""Local processes as a pool (A8): each request makes one, any controller finds them, nothing is orphaned or killed."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from control.core.pool import Listing, NodePhase, OddKind
from control.core.pool_settings import ProcessPoolSettings
from control.errors import PoolError, PoolTrouble
from control.shell.pools import process as process_module
from control.shell.pools import process_records
from control.shell.pools.proc import marked, send, started_ticks
from control.shell.pools.process import MARK, ProcessPool
from tests.fakes.rtc_peer import until

POLITE = (
    "import signal,sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\nprint('up', flush=True)\nsignal.pause()"
)
TALKS = POLITE.replace(
    "print(", "signal.signal(signal.SIGUSR1, lambda *_: print('here', flush=True))\nprint(", 1
).replace("signal.pause()", "while True: signal.pause()")
DEAF = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\nsignal.pause()"
BROKEN = "import sys\nprint('no secret given', file=sys.stderr)\nsys.exit(3)"


class World:
    """A state directory, and the controllers that use it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def pool(self, program: str = POLITE, **settings: object) -> ProcessPool:
        return ProcessPool(
            ProcessPoolSettings(state_dir=str(self.directory), **settings),  # type: ignore[arg-type]
            fleet="f",
            environ={**os.environ, "SLUICE_SECRET": "s" * 32, "SLUICE_REDIS": "redis://x"},
            command=(sys.executable, "-c", program),
        )

    @property
    def processes(self) -> dict[str, int]:
        place = f"{self.directory / 'sfu'}:"
        return {mark.removeprefix(place): pid for pid, mark in marked(MARK) if mark.startswith(place)}

    def environ(self, node: str) -> dict[str, str]:
        raw = Path(f"/proc/{self.processes[node]}/environ").read_bytes().decode()
        return dict(item.split("=", 1) for item in raw.split("\0") if "=" in item)

    async def up(self, node: str) -> None:
        log = self.directory / "sfu" / f"{node}.log"
        await until(lambda: log.exists() and "up" in log.read_text())


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path.resolve())
    yield world
    for pid in world.processes.values():
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


async def forgotten(pool: ProcessPool) -> None:
    """A process that ends loses its environment a moment before its id."""
    for _ in range(600):
        if not (await pool.list()).nodes:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("still listed after half a minute")


def only(listing: Listing) -> tuple[str, NodePhase]:
    (node,) = listing.nodes
    return node.node, node.phase


async def test_a_launch_makes_one_process_with_ports_of_its_own_and_no_setting_of_the_controllers(world: World) -> None:
    pool = world.pool(version="7")
    one, two = await pool.launch("a"), await pool.launch("b")
    assert (one.phase, one.request, one.sfu) == (NodePhase.RUNNING, "a", one.node)
    assert set(world.processes) == {one.node, two.node}
    first, second = world.environ(one.node), world.environ(two.node)
    assert (first["SLUICE_SFU"], first["SLUICE_VERSION"], first["SLUICE_GRACE_S"]) == (one.node, "7", "3600")
    assert first["SLUICE_SECRET"] == "s" * 32
    assert "SLUICE_REDIS" not in first
    ports = [env[f"SLUICE_{kind}_PORT"] for env in (first, second) for kind in ("WS", "UDP", "HTTP")]
    assert len(set(ports)) == 6
    assert os.getsid(world.processes[one.node]) == world.processes[one.node], "a session of its own: it outlives us"


async def test_a_repeated_request_makes_no_second_process_also_from_another_controller(world: World) -> None:
    first = await world.pool().launch("a")
    assert await world.pool().launch("a") == first
    assert len(world.processes) == 1
    assert len((await world.pool().list()).nodes) == 1


async def test_terminate_is_sigterm_and_what_has_ended_is_forgotten(world: World) -> None:
    pool = world.pool()
    node = (await pool.launch("a")).node
    await world.up(node)
    await pool.terminate(node)
    await pool.terminate(node)
    await until(lambda: not world.processes)
    await forgotten(pool)
    assert not list((world.directory / "sfu").glob("*.json"))
    await pool.terminate(node)
    await pool.terminate("never-was")


async def test_a_node_that_takes_its_time_to_end_is_ending_and_not_killed(world: World) -> None:
    pool = world.pool(DEAF)
    node = (await pool.launch("a")).node
    await world.up(node)
    await pool.terminate(node)
    assert only(await world.pool(DEAF).list()) == (node, NodePhase.ENDING)
    assert set(world.processes) == {node}


async def test_what_hangs_past_the_grace_is_killed_as_every_platform_does(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = world.pool(DEAF)
    node = (await pool.launch("a")).node
    await world.up(node)
    await pool.terminate(node)
    since_boot = process_module._since_boot()
    monkeypatch.setattr(process_module, "_since_boot", lambda: since_boot + 3599)
    await pool.list()
    assert set(world.processes) == {node}
    monkeypatch.setattr(process_module, "_since_boot", lambda: since_boot + 3601)
    await pool.list()
    await until(lambda: not world.processes)
    await forgotten(pool)


async def test_a_process_that_ends_unasked_stays_listed_as_failed_with_its_last_words(world: World) -> None:
    pool = world.pool(BROKEN)
    node = (await pool.launch("a")).node
    await until(lambda: not world.processes)
    for _ in range(2):
        (listed,) = (await pool.list()).nodes
        assert (listed.node, listed.phase) == (node, NodePhase.FAILED)
        assert listed.detail == "ended unasked with status 3: no secret given"
    assert (await pool.launch("a")).phase is NodePhase.FAILED, "the request was made"
    await pool.terminate(node)
    assert (await pool.list()).nodes == ()
    assert "no secret given" in (world.directory / "sfu" / "last-failed.log").read_text()


async def test_a_log_that_grows_long_is_put_aside_and_goes_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_records, "MOST_LOG", 1000)
    pool = world.pool(TALKS)
    node = (await pool.launch("a")).node
    await world.up(node)
    log, older = (world.directory / "sfu" / f"{node}.log{end}" for end in ("", ".1"))
    for round_ in range(2):
        with log.open("a") as sink:
            sink.write(f"{round_}" * 2000)
        await pool.list()
        assert f"{round_}" * 2000 in older.read_text()
        assert log.read_bytes() == b""
        os.kill(world.processes[node], signal.SIGUSR1)
        await until(lambda: log.read_bytes() == b"here\n")
    await pool.list()
    assert log.read_bytes() == b"here\n", "short ones stay"
    await pool.terminate(node)
    await until(lambda: not world.processes)
    await forgotten(pool)
    assert not list((world.directory / "sfu").glob("*.log*"))


async def test_a_process_killed_from_outside_is_failed_and_a_later_one_of_its_id_is_not_taken_for_it(
    world: World,
) -> None:
    pool = world.pool()
    node = (await pool.launch("a")).node
    pid = world.processes[node]
    started = started_ticks(pid)
    assert started is not None
    assert not send(pid, started + 1, signal.SIGKILL), "another process by now"
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not world.processes)
    (listed,) = (await pool.list()).nodes
    assert (listed.phase, "status -9" in listed.detail) == (NodePhase.FAILED, True)


async def test_a_process_that_could_not_be_written_down_is_found_by_its_mark(world: World) -> None:
    """The controller died between the start and the second write of the file."""
    pool = world.pool()
    node = (await pool.launch("a")).node
    path = world.directory / "sfu" / f"{node}.json"
    path.write_bytes(path.read_bytes().replace(b'"pid":%d' % world.processes[node], b'"pid":0'))
    assert only(await world.pool().list()) == (node, NodePhase.RUNNING)
    path.write_bytes(path.read_bytes().replace(b'"pid":%d' % world.processes[node], b'"pid":0'))
    await world.pool().launch("a")
    assert len(world.processes) == 1


async def test_a_request_whose_process_was_never_started_is_starting_and_started_when_asked_again(world: World) -> None:
    pool = world.pool()
    node = (await pool.launch("a")).node
    await world.up(node)
    await pool.terminate(node)
    await until(lambda: not world.processes)
    path = world.directory / "sfu" / f"{node}.json"
    path.write_text(f'{{"node":"{node}","request":"a","ws_port":1,"udp_port":2,"http_port":3}}')
    assert only(await pool.list()) == (node, NodePhase.STARTING)
    assert (await pool.launch("a")).phase is NodePhase.RUNNING
    assert set(world.processes) == {node}


async def test_a_file_that_cant_be_read_makes_the_listing_incomplete_and_ends_nothing(world: World) -> None:
    pool = world.pool()
    node = (await pool.launch("a")).node
    path = world.directory / "sfu" / f"{node}.json"
    path.write_text('{"node": "sfu-')
    (world.directory / "sfu" / "other.json").write_text(
        f'{{"node":"{node}","request":"","ws_port":1,"udp_port":2,"http_port":3}}'
    )
    listing = await pool.list()
    assert (listing.nodes, listing.complete) == ((), False)
    assert [(odd.kind, odd.node) for odd in listing.oddities] == [
        (OddKind.STRANGER, "other.json"),
        (OddKind.STRANGER, f"{node}.json"),
    ]
    with pytest.raises(PoolError) as failed:
        await pool.launch("a")
    assert failed.value.kind is PoolTrouble.UNREADABLE
    assert set(world.processes) == {node}


@pytest.mark.parametrize("pid", [-1, 2**31, 2**63])
async def test_a_file_with_a_process_id_that_is_none_is_no_nodes_file(world: World, pid: int) -> None:
    """-1 would be any child of ours, and greater ones are no number that the system takes."""
    pool = world.pool()
    node = (await pool.launch("a")).node
    (world.directory / "sfu" / f"{node}.json").write_text(
        f'{{"node":"{node}","request":"a","ws_port":1,"udp_port":2,"http_port":3,"pid":{pid}}}'
    )
    listing = await pool.list()
    assert (listing.nodes, listing.complete) == ((), False)
    assert set(world.processes) == {node}


async def test_a_process_without_a_file_is_reported_and_not_acted_on(world: World) -> None:
    pool = world.pool()
    node = (await pool.launch("a")).node
    (world.directory / "sfu" / f"{node}.json").unlink()
    listing = await pool.list()
    assert (listing.nodes, listing.complete) == ((), False)
    assert [(odd.kind, odd.node) for odd in listing.oddities] == [(OddKind.STRANGER, node)]
    assert set(world.processes) == {node}


async def test_a_directory_that_cant_be_used_is_an_error_and_no_empty_pool(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    pool = World(tmp_path / "file").pool()
    with pytest.raises(PoolError) as failed:
        await pool.list()
    assert failed.value.kind is PoolTrouble.UNREACHABLE


async def test_a_directory_that_another_controller_holds_is_a_time_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_records, "LOCK_WITHIN_S", 0.1)
    await world.pool().list()
    held = (
        "import fcntl,sys\nlock = open(sys.argv[1])\nfcntl.flock(lock, fcntl.LOCK_EX)\nprint('held', flush=True)\n"
        "sys.stdin.read()"
    )
    with subprocess.Popen(  # noqa: ASYNC220 - it only starts
        [sys.executable, "-c", held, str(world.directory / "sfu" / "lock")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as holder:  # fmt: skip
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(PoolError) as failed:
            await world.pool().launch("a")
        assert failed.value.kind is PoolTrouble.TIMEOUT
        assert holder.stdin is not None
        holder.stdin.close()
    assert not world.processes
    assert (await world.pool().launch("a")).phase is NodePhase.RUNNING


async def test_without_ports_there_is_no_node(world: World) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(PoolError) as failed:
            await world.pool(ports=f"{port}-{port}").launch("a")
    assert failed.value.kind is PoolTrouble.FULL
    assert (await world.pool().list()).nodes == ()


async def test_a_program_that_cant_be_started_leaves_no_node(world: World) -> None:
    pool = world.pool()
    pool._command = ["/no/such/program"]
    with pytest.raises(PoolError) as failed:
        await pool.launch("a")
    assert failed.value.kind is PoolTrouble.REFUSED
    assert (await pool.list()).nodes == ()


async def test_a_real_sfu_comes_up_warmed_up_and_ends_when_it_is_told_to(world: World) -> None:
    pool = ProcessPool(
        ProcessPoolSettings(state_dir=str(world.directory), stop_grace_s=60.0, flags=("--stream-ceiling", "77")),
        fleet="f",
        environ={**os.environ, "SLUICE_SECRET": "s" * 32, "SLUICE_ROUTERS": "ws://127.0.0.1:9"},
    )
    node = await pool.launch("a")
    log = world.directory / "sfu" / f"{node.node}.log"
    await until(lambda: "milestone=first_packet" in log.read_text())
    assert f"sfu={node.sfu}" in log.read_text()
    await pool.terminate(node.node)
    await until(lambda: not world.processes)
    assert "[drain] ended" in log.read_text()
    await forgotten(pool)
