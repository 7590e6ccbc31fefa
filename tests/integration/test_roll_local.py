"""`sluice add` and `sluice roll` from another terminal than the `sluice up` that they act on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(240)


async def test_a_fleet_that_runs_here_is_added_to_and_rolled(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    env["XDG_STATE_HOME"] = str(tmp_path)
    command = [sys.executable, "-P", "-m", "cli", "up", "--sfus", "2", "--port", "0", "--bots", "2"]
    up = await asyncio.create_subprocess_exec(
        *command, env=env, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(90):
            while not (tmp_path / "sluice" / "sluice.json").exists():  # noqa: ASYNC110 - a file sets no event
                await asyncio.sleep(0.1)
        assert (await sluice(env, "add", "--version", "v2"))[-1] == {"sfu": "sfu-3"}
        report = (await sluice(env, "roll", "--version", "v2"))[-1]
        assert (report["state"], report["platform"]) == ("done", "local")
        assert [step["old"] for step in report["steps"]] == ["sfu-1", "sfu-2"], "sfu-3 has the release already"
        assert report["routers_restarted"] == ["router-1", "router-2"]
        assert (report["players_evicted"], report["failed_connections"]) == (0, 0)
        fleet = (await sluice(env, "status"))[-1]
        assert {row["sfu"]: row["version"] for row in fleet["sfus"]} == dict.fromkeys(
            ("sfu-1-v2", "sfu-2-v2", "sfu-3"), "v2"
        )
    finally:
        up.send_signal(signal.SIGINT)
        await asyncio.wait_for(up.wait(), 60)


async def sluice(env: dict[str, str], *arguments: str) -> list[dict[str, Any]]:
    """Run a command that prints JSON; every document. A roll that a busy machine's freezes pause is gone on with."""
    for _ in range(4):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "cli", *arguments, "--json"),
            env=env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        if process.returncode == 0:
            break
        assert b"had a gap" in err, err.decode()
    decoder, text, documents = json.JSONDecoder(), out.decode().strip(), []
    while text:
        document, end = decoder.raw_decode(text)
        documents.append(document)
        text = text[end:].strip()
    return documents
