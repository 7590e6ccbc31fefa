"""What spoils a measurement is noticed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time

import pytest

from bench import machine
from bench.machine import Cores, busy_seconds, socket_drops, warnings
from tests.fakes.needed import need_installed

EVERY = range(os.cpu_count() or 1)


def test_work_on_the_cores_is_seen() -> None:
    before, ours = busy_seconds(EVERY), time.process_time()
    while time.process_time() - ours < 0.3:
        pass
    # /proc/stat counts in steps of 10 ms, and samples.
    assert busy_seconds(EVERY) - before > 0.15
    assert busy_seconds(()) == 0


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_datagrams_that_find_a_socket_full_are_counted(host: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as full:
        full.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        full.bind((host, 0))
        port = full.getsockname()[1]
        assert socket_drops(port, host=host) == 0
        for _ in range(50):
            full.sendto(bytes(1000), ("127.0.0.1", port))
        assert 0 < socket_drops(port, host=host) < 50


def test_the_first_two_cores_are_taken() -> None:
    cores = machine.split_cores()
    if cores.server is not None:
        assert cores.both == {cores.server, cores.generator}
        assert cores.server != cores.generator


@pytest.mark.parametrize(
    ("share", "tracks", "told"),
    [
        (0.02, False, []),
        (0.5, False, ["50% of a core"]),
        (0.0, True, ["netfilter"]),
        (1.0, True, ["100%", "netfilter"]),
    ],
)
def test_warnings_name_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, share: float, tracks: bool, told: list[str]
) -> None:
    monkeypatch.setattr(machine, "others_share", lambda cores: share)
    monkeypatch.setattr(machine, "tracks_loopback", lambda: tracks)
    said = warnings(Cores(server=0, generator=1))
    assert len(said) == len(told)
    assert all(word in sentence for word, sentence in zip(told, said, strict=True))


def test_one_core_is_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "others_share", lambda cores: 0.0)
    monkeypatch.setattr(machine, "tracks_loopback", lambda: False)
    assert "one core" in warnings(Cores(server=None, generator=None))[0]


@pytest.mark.process
def test_nat_rules_make_netfilter_track_loopback() -> None:
    if os.geteuid():
        pytest.skip("needs root")
    tools = all(map(shutil.which, ("unshare", "iptables", "ip")))
    need_installed(tools, "unshare, iptables and ip", "apt-get install util-linux iptables iproute2", also_in_ci=False)
    script = "from bench.machine import tracks_loopback; print(tracks_loopback())"
    rule = "iptables -t nat -A OUTPUT -d 192.0.2.1 -j DNAT --to 192.0.2.2"
    look = f"{sys.executable} -c '{script}'"
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", f"ip link set lo up && {look} && {rule} && {look}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no network namespace with NAT here: {done.stderr.strip()[-100:]}")
    assert done.stdout.split() == ["False", "True"]
