"""The client library's own tests, which run in node without a browser."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from playwright._impl._driver import compute_driver_executable

from tests.fakes.needed import need_installed

pytestmark = pytest.mark.unit
UNIT = Path(__file__).parent / "unit"


def find_node() -> str | None:
    """A node of 20 or later: the machine's, or the one that comes with playwright."""
    for node in (shutil.which("node"), compute_driver_executable()[0]):
        if node is not None and Path(node).exists():
            version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
            if version.startswith("v") and int(version[1:].split(".")[0]) >= 20:
                return str(node)
    return None


def test_client_library() -> None:
    """Every rule in tests/browser/unit holds."""
    node = find_node()
    need_installed(node, "node 20 or later", "apt-get install nodejs")
    assert node is not None
    files = sorted(map(str, UNIT.glob("*.test.mjs")))
    assert files, "the unit tests are gone"
    run = subprocess.run([node, "--test", *files], capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
