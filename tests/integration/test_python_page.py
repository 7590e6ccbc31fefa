"""The scripts of docs/python-client.md do what the page says, on a real fleet; its tables name what there is."""

from __future__ import annotations

import asyncio
import inspect
import re
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

import player
from localfleet.fleet import Fleet, FleetSpec
from shared.tokens import PlayerClaims, issue

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(120)]
PAGE = (Path(__file__).parents[2] / "docs" / "python-client.md").read_text(encoding="utf-8")
SCRIPTS = dict(re.findall(r"^`(\w+\.py)`:\n\n```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
WITHIN_S = 60.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet() -> AsyncIterator[Fleet]:
    async with Fleet(FleetSpec(routers=1, sfus=2)) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def started() -> AsyncIterator[list[asyncio.subprocess.Process]]:
    """Processes of a test; those that still run at its end are killed."""
    processes: list[asyncio.subprocess.Process] = []
    yield processes
    for process in processes:
        if process.returncode is None:
            process.kill()
        await process.wait()


class PageScript:
    """One script of the page, run as its reader would."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, name: str, fleet: Fleet, directory: Path, *, identity: str) -> PageScript:
        path = directory / name
        path.write_text(SCRIPTS[name], encoding="utf-8")
        claims = PlayerClaims(room="lobby", identity=identity)
        token = issue(claims, secret=fleet.secret, now_at=time.time(), ttl_s=600.0)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-u", str(path), fleet.router_urls()[0], token, stdout=pipe, stderr=pipe, cwd=directory
        )
        return cls(process)

    async def line(self, beginning: str) -> str:
        """Wait for a line that begins so."""
        assert self.process.stdout is not None
        async with asyncio.timeout(WITHIN_S):
            while line := (await self.process.stdout.readline()).decode():
                if line.startswith(beginning):
                    return line.strip()
        raise AssertionError(f"it ended without {beginning!r}: {await self._errors()}")

    async def end(self) -> None:
        """Wait for its own end, which is a good one."""
        status = await asyncio.wait_for(self.process.wait(), WITHIN_S)
        assert status == 0, await self._errors()

    async def _errors(self) -> str:
        assert self.process.stderr is not None
        return (await self.process.stderr.read()).decode()


async def test_the_page_has_the_scripts_that_are_run_here() -> None:
    assert SCRIPTS.keys() == {"listen.py", "talk.py", "watch.py", "agent.py"}
    assert PAGE.count("```python") == len(SCRIPTS)
    body = SCRIPTS["listen.py"].split("\n\n\n")[1]
    assert len(body.splitlines()) <= 20


async def test_the_scripts_talk_to_one_another(fleet: Fleet, tmp_path: Path) -> None:
    agent = await PageScript.start("agent.py", fleet, tmp_path, identity="agent")
    talker = await PageScript.start("talk.py", fleet, tmp_path, identity="ann")
    assert await agent.line("hello") == "hello, ann"
    watcher = await PageScript.start("watch.py", fleet, tmp_path, identity="eve")
    listener = await PageScript.start("listen.py", fleet, tmp_path, identity="bob")
    await agent.line("hearing")
    pictures = await watcher.line("50 pictures")
    size, seconds = re.fullmatch(r"50 pictures of (\S+) in (\S+) s", pictures).groups()  # type: ignore[union-attr]
    assert size == "320x180"
    assert float(seconds) >= 1.9, "25 pictures a second, by the talker's clock"
    assert await talker.line("talked on") in {f"talked on {name}" for name in fleet.sfus}
    heard = await listener.line("in lobby bob heard")
    counts = {name: int(count) for name, count in re.findall(r"'(\w+)': (\d+)", heard)}
    assert counts["ann"] > 100
    assert counts["agent"] >= 1, "its silence, until it leaves"
    assert (await agent.line("goodbye")).split()[1] in {"ann", "bob", "eve"}
    for script in (agent, talker, watcher, listener):
        await script.end()


async def test_the_tables_name_every_event_and_every_error() -> None:
    def named(heading: str) -> set[str]:
        section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
        firsts = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
        return {name for cell in firsts for name in re.findall(r"`(\w+)`", cell)}

    public = {name: getattr(player, name) for name in player.__all__}
    classes = {name: thing for name, thing in public.items() if inspect.isclass(thing)}
    assert named("Events") == {name for name, thing in classes.items() if issubclass(thing, player.PlayerEvent)} - {
        "PlayerEvent"
    }
    assert named("Errors") == {name for name, thing in classes.items() if issubclass(thing, player.SluiceError)} - {
        "SluiceError"
    }
