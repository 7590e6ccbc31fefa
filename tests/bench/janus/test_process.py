"""Janus as a child: how it is configured, and that it never outlives its block."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from bench.janus.process import Installed, JanusFailed, JanusProcess, find_janus, janus_process, write_configuration
from bench.relay.peers import PeerMissing
from tests.bench.janus.janus_installed import need_janus

INSTALLED = Installed(
    program=Path("/usr/bin/janus"),
    plugin=Path("/usr/lib/some-arch/janus/plugins/libjanus_videoroom.so"),
    transport=Path("/usr/lib/some-arch/janus/transports/libjanus_websockets.so"),
    shim=Path("/somewhere/janus_loopback.so"),
)


def test_without_janus_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PeerMissing, match=r"apt-get install.*janus"):
        find_janus()


def test_a_janus_without_its_plugin_is_missing_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "janus"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PeerMissing, match="videoroom"):
        find_janus(libraries=tmp_path)


def test_it_loads_one_plugin_and_one_transport_and_listens_on_loopback(tmp_path: Path) -> None:
    write_configuration(tmp_path, INSTALLED, event_loops=1)
    assert [path.name for path in (tmp_path / "plugins").iterdir()] == ["libjanus_videoroom.so"]
    assert [path.name for path in (tmp_path / "transports").iterdir()] == ["libjanus_websockets.so"]
    main = (tmp_path / "janus.jcfg").read_text()
    for setting in (
        "event_loops = 1",
        "ice_lite = true",
        'ice_enforce_list = "127.0.0.1"',
        'rtp_port_range = "20000-31999"',
    ):
        assert setting in main
    assert "stun" not in main
    assert f'ws_unix = "{tmp_path / "api"}"' in (tmp_path / "janus.transport.websockets.jcfg").read_text()


def test_no_event_loops_is_the_package_s_own_default(tmp_path: Path) -> None:
    write_configuration(tmp_path, INSTALLED, event_loops=0)
    assert "event_loops =" not in (tmp_path / "janus.jcfg").read_text()


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.slow
@pytest.mark.process
async def test_it_runs_on_its_core_and_ends_with_its_block() -> None:
    need_janus()
    core = min(os.sched_getaffinity(0))
    ours = os.sched_getaffinity(0)
    async with janus_process(find_janus(), core=core, event_loops=1) as janus:
        threads = [int(path.name) for path in Path(f"/proc/{janus.pid}/task").iterdir()]
        assert len(threads) > 1
        assert all(os.sched_getaffinity(thread) == {core} for thread in threads)
        assert sum(janus.cpu_seconds()) > 0
        assert janus.resident_bytes() > 1_000_000
    assert gone(janus.pid)
    assert os.sched_getaffinity(0) == ours
    assert not janus.api.parent.exists()


@pytest.mark.slow
@pytest.mark.process
async def test_it_ends_when_the_run_fails() -> None:
    need_janus()
    pids: list[int] = []
    with pytest.raises(ZeroDivisionError):
        await _fail(pids)
    assert gone(pids[0])


async def _fail(pids: list[int]) -> None:
    async with janus_process(find_janus(), core=None, event_loops=1) as janus:
        pids.append(janus.pid)
        raise ZeroDivisionError


@pytest.mark.slow
@pytest.mark.process
async def test_an_early_end_is_told_with_its_log() -> None:
    need_janus()
    async with janus_process(find_janus(), core=None, event_loops=1) as janus:
        os.kill(janus.pid, signal.SIGKILL)
        await _ended(janus)
        with pytest.raises(JanusFailed, match=r"(?s)status -9.*VideoRoom plugin initialized"):
            janus.cpu_seconds()


async def _ended(janus: JanusProcess) -> None:
    await janus._process.wait()
