"""An installed Sluice runs its own code, the compiled plane included, whatever the folder is that it is run in."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sysconfig
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN_WITHIN_S = 90.0
ENTRY = "import sys\nfrom cli.__main__ import main\nsys.exit(main())\n"
"""What pip writes as the console script, below the line with the interpreter."""


def product() -> list[str]:
    """The folders that a wheel has."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]
    return [pattern.removesuffix("*") for pattern in build["include"]]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with what a wheel puts there; everything else is this environment's."""
    place = tmp_path_factory.mktemp("installed")
    venv.create(place, with_pip=False)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(place)}))
    for package in product():
        shutil.copytree(ROOT / package, site / package, ignore=shutil.ignore_patterns("__pycache__"))
    # A path from a .pth file has its own .pth files ignored: the checkout is not found through its editable install.
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n" + sysconfig.get_path("platlib") + "\n")
    script = place / "bin" / "sluice"
    script.write_text(f"#!{place}/bin/python\n{ENTRY}")
    script.chmod(0o755)
    return place


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of another project, with packages of the same names."""
    for package in product():
        (tmp_path / "project" / package).mkdir(parents=True)
        (tmp_path / "project" / package / "__init__.py").write_text("raise SystemExit('code of another project')\n")
    return tmp_path / "project"


def descendants(pid: int) -> Iterator[int]:
    """The processes that a process has started, theirs included."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        yield int(child)
        yield from descendants(int(child))


def running(pid: int, module: str) -> list[int]:
    """Those of them that run this module."""
    return [each for each in descendants(pid) if f"-m\0{module}\0" in Path(f"/proc/{each}/cmdline").read_text()]


async def test_a_fleet_started_in_another_projects_folder_runs_the_installed_code(
    installed: Path, elsewhere: Path, tmp_path: Path
) -> None:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("SLUICE_", "PYTHON"))}
    environment = {**ours, "XDG_STATE_HOME": str(tmp_path)}
    sluice = str(installed / "bin" / "sluice")
    command = [sluice, "up", "--routers", "1", "--sfus", "1", "--bots", "1", "--port", "0"]
    log = tmp_path / "up.log"
    with log.open("wb") as output:
        fleet = subprocess.Popen(  # noqa: ASYNC220 - it only starts
            command, cwd=elsewhere, env=environment, stdout=output, stderr=output
        )
    try:
        async with asyncio.timeout(RUN_WITHIN_S):
            while not all(running(fleet.pid, module) for module in ("router", "sfu", "client_sim")):
                assert fleet.poll() is None, log.read_text()
                await asyncio.sleep(0.2)
        status = [sluice, "status"]
        async with asyncio.timeout(RUN_WITHIN_S):
            while True:
                seen = await asyncio.to_thread(
                    subprocess.run, status, cwd=elsewhere, env=environment, capture_output=True, text=True
                )
                assert "another project" not in seen.stderr
                if "ONLINE" in seen.stdout:
                    break
                await asyncio.sleep(0.5)
        (sfu,) = running(fleet.pid, "sfu")
        assert Path(f"/proc/{sfu}/cwd").resolve() == elsewhere
        loaded = Path(f"/proc/{sfu}/maps").read_text()
        assert f"{installed}/lib" in loaded
        assert any("/sfu/plane/compiled" in line and str(installed) in line for line in loaded.splitlines()), loaded
        assert str(ROOT / "sfu") not in loaded
    finally:
        fleet.send_signal(signal.SIGINT)
        await asyncio.to_thread(fleet.wait, 60)


def test_every_child_is_started_by_the_one_function_that_shuts_the_current_folder_out() -> None:
    found = {
        str(path.relative_to(ROOT))
        for package in product()
        for path in (ROOT / package).rglob("*.py")
        if "sys.executable" in path.read_text()
    }
    assert found == {"shared/host/child.py"}


def test_this_test_is_no_blank_shot(installed: Path, elsewhere: Path) -> None:
    python = str(installed / "bin" / "python")
    for flags, said in (([], "code of another project"), (["-P"], "")):
        run = subprocess.run([python, *flags, "-c", "import sfu"], cwd=elsewhere, capture_output=True, text=True)
        assert run.stderr.strip() == said
