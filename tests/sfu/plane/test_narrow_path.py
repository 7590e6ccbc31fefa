"""A viewer behind a path too narrow for the plane's runs gets their datagrams one by one, in fragments."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

from tests.fakes.needed import need, need_installed

NARROW = ("unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo mtu 1000 up && exec "$@"', "sh")


def test_runs_longer_than_the_path_takes_go_as_single_datagrams() -> None:
    ready = shutil.which("unshare") and shutil.which("ip") and subprocess.run([*NARROW, "true"], check=False)
    need_installed(shutil.which("ip"), "ip", "apt-get install iproute2")
    need(ready and not ready.returncode, "no network namespaces here")
    ran = subprocess.run(
        [*NARROW, sys.executable, "-m", "tests.sfu.plane.narrow_path"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["whole"]
    assert told["gso"], "one narrow path is no reason to give runs up for all"
    assert not any(told["drops"].values())
