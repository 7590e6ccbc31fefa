"""The plane's thread goes before Python's where the process may say so."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.sfu.plane.test_thread import bench

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may raise a priority")


def test_the_planes_thread_is_nicer_to_itself_than_to_python() -> None:
    with bench():
        deadline = time.monotonic() + 20
        while plane_nice() == os.getpriority(os.PRIO_PROCESS, 0):
            assert time.monotonic() < deadline, "the plane's thread has the priority of the others"
            time.sleep(0.01)
        assert plane_nice() < os.getpriority(os.PRIO_PROCESS, 0)


def plane_nice() -> int:
    """Of the thread that forwards; see proc(5), `stat`."""
    (task,) = [task for task in Path("/proc/self/task").iterdir() if (task / "comm").read_text() == "sluice-plane\n"]
    return int((task / "stat").read_text().rpartition(")")[2].split()[16])
