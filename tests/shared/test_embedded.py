"""The embedded server: comes up or says why not, listens on loopback only, and never outlives its parent."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from redis.asyncio import Redis

from shared.embedded import EmbeddedFailed, EmbeddedRedis, embedded_binary

DEADLINE_S = 60.0


async def setting(server: EmbeddedRedis, name: str) -> str:
    client: Redis = Redis.from_url(server.url, decode_responses=True)
    try:
        return str((await client.config_get(name))[name])
    finally:
        await client.aclose()


async def test_it_listens_on_loopback_only_and_keeps_nothing_on_disk() -> None:
    server = EmbeddedRedis()
    await server.start()
    try:
        assert await setting(server, "bind") == "127.0.0.1"
        assert await setting(server, "appendonly") == "no"
        assert await setting(server, "save") == ""
        directory = server.directory
        assert directory is not None
        assert directory.exists()
    finally:
        await server.stop()
    assert not directory.exists()
    assert server.pid is None


async def test_what_is_to_be_kept_is_there_after_a_crash(tmp_path: Path) -> None:
    server = EmbeddedRedis(directory=tmp_path, persist=True, settings={"appendfsync": "always"})
    await server.start()
    async with Redis.from_url(server.url) as client:
        await client.set("x", "1")
    port = server.port
    server.kill()
    await server.start()
    assert server.port == port
    async with Redis.from_url(server.url) as client:
        assert await client.get("x") == b"1"
    await server.stop()
    assert tmp_path.exists()


async def test_a_frozen_server_can_be_stopped() -> None:
    server = EmbeddedRedis()
    await server.start()
    assert server.pid is not None
    os.kill(server.pid, signal.SIGSTOP)
    async with asyncio.timeout(DEADLINE_S):
        await server.stop()
    assert not server.running


async def test_starting_twice_changes_nothing() -> None:
    server = EmbeddedRedis()
    await server.start()
    pid = server.pid
    await server.start()
    assert server.pid == pid
    await server.stop()
    await server.stop()


@pytest.mark.parametrize(
    ("binary", "settings", "says"),
    [
        ("/no/such/redis-server", {}, "can't be started"),
        (sys.executable, {}, "did not come up"),
        (None, {"no-such-setting": "1"}, "Bad directive"),
    ],
)
async def test_a_server_that_does_not_come_up_says_why(binary: str | None, settings: dict[str, str], says: str) -> None:
    server = EmbeddedRedis(binary=binary, settings=settings)
    with pytest.raises(EmbeddedFailed, match=says):
        await server.start()
    assert server.pid is None
    assert server.directory is None


async def test_a_port_that_is_taken_is_said_and_not_mistaken_for_ours() -> None:
    other = EmbeddedRedis()
    await other.start()
    server = EmbeddedRedis(port=other.port)
    with pytest.raises(EmbeddedFailed, match=f"port {other.port}"):
        await server.start()
    await other.stop()


def test_valkeylites_server_is_there() -> None:
    assert os.access(embedded_binary(), os.X_OK)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can tie a child to its parent")
def test_it_dies_with_its_parent_even_if_that_is_killed() -> None:
    program = (
        "import asyncio, time\n"
        "from shared.embedded import EmbeddedRedis\n"
        "server = EmbeddedRedis()\n"
        "asyncio.run(server.start())\n"
        "print(server.port, server.directory, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    port, directory = parent.stdout.readline().split()
    assert answers(int(port))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + DEADLINE_S
    while answers(int(port)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not answers(int(port))
    for left in Path(directory).iterdir():
        left.unlink()
    Path(directory).rmdir()


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def test_a_private_server_has_no_port_and_a_socket_that_only_its_user_can_open(tmp_path: Path) -> None:
    server = EmbeddedRedis(directory=tmp_path, private=True)
    await server.start()
    path = Path(server.url.removeprefix("unix://"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert server.pid is not None
    assert not listening(server.pid)
    async with Redis.from_url(server.url) as client:
        assert await client.ping()
    server.kill()
    await server.start()
    assert server.url == f"unix://{path}", "programs that know the old URL find the restarted server"
    await server.stop()
    assert not path.parent.exists()
    await server.start()
    assert server.url == f"unix://{path}", "after an outage as well"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    await server.stop()
    assert not path.parent.exists()


async def test_a_private_server_takes_no_directory_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = EmbeddedRedis(directory=tmp_path, private=True)
    await server.start()
    await server.stop()
    monkeypatch.setattr("os.getuid", lambda: 4711)
    with pytest.raises(EmbeddedFailed, match="another user"):
        await server.start()
    Path(server.url.removeprefix("unix://")).parent.rmdir()


def listening(pid: int) -> list[str]:
    """TCP sockets of a process that listen, as inode numbers."""
    listeners = {
        line.split()[9]
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        if line.split()[3] == "0A"
    }
    own = {os.readlink(fd).removeprefix("socket:[").removesuffix("]") for fd in Path(f"/proc/{pid}/fd").iterdir()}
    return sorted(listeners & own)
