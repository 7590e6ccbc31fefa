"""What a roll asks of its platform: a command's failure is a sentence, and a fleet's door may be asked twice."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from localfleet.door import FleetDoor
from localfleet.errors import FleetFailed
from localfleet.fleet import Fleet, FleetSpec
from localfleet.program import Program
from operators.shell.roll import platform
from operators.shell.roll.platform import DoorPlatform, HookPlatform, ask_door, run_hook
from shared.errors import Refused
from shared.host.child import start
from shared.roll_records import RollRecord

SLEEPER = ["sleep", "60"]


async def test_hooks_are_told_which_sfu_and_release(tmp_path: Path) -> None:
    plan = RollRecord(
        roll="r",
        version="v2",
        start=f'echo "$SLUICE_ROLL_SFU $SLUICE_ROLL_VERSION" > {tmp_path}/start',
        stop=f'echo "$SLUICE_ROLL_SFU" > {tmp_path}/stop',
        restart=f'echo "$SLUICE_ROLL_ROUTER" > {tmp_path}/restart',
    )
    hooks = HookPlatform(plan)
    await hooks.start("sfu 1; exit 3", "v2")
    await hooks.stop("sfu-1")
    await hooks.restart("router-1", "v2")
    said = [(tmp_path / name).read_text().strip() for name in ("start", "stop", "restart")]
    assert said == ["sfu 1; exit 3 v2", "sfu-1", "router-1"], "what comes from a record is never a command"


async def test_a_hook_that_fails_says_how_its_output_ended() -> None:
    with pytest.raises(Refused, match=r"status 7: y / y / no such image$"):
        await run_hook("yes | head -100000; echo no such image; exit 7", {})
    with pytest.raises(Refused, match="it said nothing"):
        await run_hook("exit 1", {})


async def test_a_hook_that_hangs_is_ended_with_all_that_it_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(platform, "HOOK_WITHIN_S", 0.5)
    with pytest.raises(Refused, match="still ran"):
        await run_hook(f"sleep 60 & echo $! > {tmp_path}/pid; wait", {})
    pid = int((tmp_path / "pid").read_text())
    async with asyncio.timeout(10):
        while _alive(pid):  # noqa: ASYNC110 - a process that is not ours sets no event
            await asyncio.sleep(0.02)


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


class NamedFleet(Fleet):
    """Starts a sleeper for each SFU and router."""

    made: list[str]

    async def add_sfu(self, name: str | None = None, *, version: str | None = None, wait: bool = True) -> Program:
        name = name or f"sfu-{len(self.sfus) + 1}"
        if name == "sick":
            raise FleetFailed(program="sick", detail="is not ready after 60 s", log="one\nno\x1b[31m port left\n")
        self.made.append(f"{name} {version}")
        self.sfus[name] = Program(name=name, child=await start(name, SLEEPER, logs=self.logs), http="", ws="")
        return self.sfus[name]

    async def restart_router(self, name: str) -> Program:
        self.made.append(f"restart {name}")
        return self.routers[name]


@pytest.fixture
def fleet(tmp_path: Path) -> NamedFleet:
    made = NamedFleet(FleetSpec(), logs=tmp_path)
    made.made = []
    return made


async def test_a_door_starts_an_sfu_once_however_often_it_is_asked(fleet: NamedFleet) -> None:
    async with FleetDoor(fleet) as door:
        asked = DoorPlatform(door.path)
        await asyncio.gather(asked.start("sfu-1-v2", "v2"), asked.start("sfu-1-v2", "v2"))
        assert fleet.made == ["sfu-1-v2 v2"]
        assert await ask_door(door.path, "sfus") == {"sfu": "sfu-2"}
        assert fleet.made == ["sfu-1-v2 v2", "sfu-2 None"]
        fleet.sfus["sfu-1-v2"].child.kill_group()
        await fleet.sfus["sfu-1-v2"].child.wait(10)
        await asked.start("sfu-1-v2", "v2")
        assert len(fleet.made) == 3
        fleet.routers["router-1"] = fleet.sfus["sfu-2"]
        await asked.restart("router-1", "v2")
        assert fleet.made[-1] == "restart router-1"
    for program in fleet.sfus.values():
        program.child.kill_group()
        await program.child.wait(10)


@pytest.mark.parametrize("name", ["../x", "a b", ".a", "x" * 101, "é"])
async def test_a_door_refuses_names_that_are_no_file_s(fleet: NamedFleet, name: str) -> None:
    async with FleetDoor(fleet) as door:
        with pytest.raises(Refused, match="letters, digits"):
            await ask_door(door.path, "sfus", sfu=name)
    assert fleet.made == []


async def test_a_door_says_why_it_does_not_follow(fleet: NamedFleet) -> None:
    async with FleetDoor(fleet) as door:
        with pytest.raises(Refused, match=r"sick is not ready after 60 s; its log ends with: no\\x1b\[31m port left"):
            await ask_door(door.path, "sfus", sfu="sick")
        with pytest.raises(Refused, match="no router 'x' runs here"):
            await ask_door(door.path, "routers", router="x")
        with pytest.raises(Refused, match="not an order"):
            await ask_door(door.path, "routers", sfu="x")
    async with FleetDoor(fleet, pool="local") as door:
        with pytest.raises(Refused, match="belong to pool 'local'"):
            await ask_door(door.path, "sfus", sfu="x")


async def test_a_door_is_its_user_s_alone_and_ends_with_the_fleet(fleet: NamedFleet) -> None:
    async with FleetDoor(fleet) as door:
        path = Path(door.path)
        assert path.parent.stat().st_mode & 0o077 == 0
        assert path.parent.stat().st_uid == os.getuid()
    assert not path.parent.exists()
    with pytest.raises(Refused, match="does not answer"):
        await ask_door(str(path), "sfus")
