"""Bots with real media through real routers, SFUs and Redis: what they hear, and that nothing is cut when SFUs go."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from client_sim.config import MAX_BOTS, BotsConfig
from client_sim.core.commands import JoinCommand, LeaveCommand, MarkCommand
from client_sim.core.report import BotReport, FleetReport
from client_sim.core.script import presence_of
from client_sim.shell.bot import Bot
from client_sim.shell.clip import load
from client_sim.shell.fleet import BotFleet
from client_sim.shell.idle_swarm import IdleSwarm
from localfleet.fleet import Fleet, FleetSpec
from player.core.rules import safe_to_move
from shared.errors import BadMessage

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]
WITHIN_S = 40.0
GENEROUS_GAP_MS = 1500.0
"""The machine may be busy; `sluice rehearse` has the strict bounds."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet() -> AsyncIterator[Fleet]:
    async with Fleet(FleetSpec(routers=2, sfus=2)) as running:
        yield running


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.02)


@dataclass
class Crowd:
    """Bots in this process, and what they have told."""

    bots: BotFleet
    events: list[dict[str, Any]] = field(default_factory=list)

    def told(self, event: str, **facts: object) -> list[dict[str, Any]]:
        return [
            one for one in self.events if one["event"] == event and all(one.get(key) == facts[key] for key in facts)
        ]

    def report(self) -> FleetReport:
        return self.bots.report()

    def hearing(self, publications_each: int) -> bool:
        """Everybody has received that many publications, and new units of each keep coming."""
        reports = self.report().reports
        heard = [len(self.told("hearing", bot=one.bot)) for one in reports]
        return len(heard) == self.bots.config.bots and min(heard) >= publications_each

    def all_on(self, sfu: str) -> bool:
        return all(one.sfu == sfu and one.phase == "settled" for one in self.report().reports)

    async def hear_more(self, units: int = 25) -> None:
        """Wait until everybody has received that many more units of sound."""
        before = {one.bot: one.gaps.audio_units for one in self.report().reports}
        await until(lambda: all(one.gaps.audio_units >= before[one.bot] + units for one in self.report().reports))


@asynccontextmanager
async def crowd(fleet: Fleet, **settings: Any) -> AsyncIterator[Crowd]:
    settings = {"routers": tuple(fleet.router_urls()), "seed": 5, **settings}
    config = BotsConfig(secret=fleet.secret, move_spread_s=0.2, **settings).check()
    gathered: list[dict[str, Any]] = []
    bots = BotFleet(
        config, clip=load(), rule=safe_to_move, emit=lambda event, **facts: gathered.append({"event": event, **facts})
    )
    running = asyncio.create_task(bots.run())
    try:
        yield Crowd(bots, gathered)
    finally:
        bots.stopping.set()
        await running


def untouched(report: BotReport) -> bool:
    gaps = report.gaps
    return gaps.damaged == 0 and gaps.audio_missing == 0 and gaps.audio_gap_ms is not None


async def sfu_of(people: Crowd) -> str:
    """The one SFU that carries the whole room."""
    await until(lambda: len({one.sfu for one in people.report().reports}) == 1 and people.report().reports[0].sfu != "")
    return people.report().reports[0].sfu


async def replace_sfu(fleet: Fleet, name: str) -> None:
    """The SFU has ended or will: another one takes its place, so that the next test finds two."""
    await fleet.add_sfu()
    await asyncio.wait_for(fleet.sfus[name].child.wait(), WITHIN_S)
    del fleet.sfus[name]
    for router in fleet.routers:
        deadline = time.monotonic() + WITHIN_S
        while ((await fleet.sfu_states(router)) or {}).get(name, {}).get("placeable", False):
            assert time.monotonic() < deadline, f"{router} still places players on {name}"
            await asyncio.sleep(0.05)


async def test_two_bots_hear_and_see_each_other_untouched(fleet: Fleet) -> None:
    async with crowd(fleet, room="two", bots=2) as people:
        await until(lambda: people.hearing(2))
        await people.hear_more(60)
        report = people.report()
    assert report.cut == ()
    for one in report.reports:
        assert untouched(one)
        assert one.gaps.video_units > 10
        assert one.gaps.audio_gap_ms is not None
        assert one.gaps.audio_gap_ms < GENEROUS_GAP_MS


async def test_a_listener_without_tracks_hears_everybody(fleet: Fleet) -> None:
    async with crowd(fleet, room="audience", bots=3, subscribe_only=1, video=False) as people:
        await until(lambda: len(people.told("hearing", bot="bot-3")) == 2)
        await people.hear_more()
        assert people.report().cut == ()


async def test_a_drain_moves_the_room_without_losing_a_packet(fleet: Fleet) -> None:
    async with crowd(fleet, room="drain", bots=3) as people:
        await until(lambda: people.hearing(4))
        old = await sfu_of(people)
        fleet.signal_sfu(old, signal.SIGTERM)
        await until(lambda: len(people.told("moved", left=old)) == 3)
        await people.hear_more()
        report = people.report()
    assert report.cut == ()
    assert report.counts.moves == 3
    assert report.gaps.duplicates > 0, "both copies were heard for a while"
    for one in report.reports:
        assert untouched(one)
        assert one.sfu != old
        assert one.gaps.audio_gap_ms is not None
        assert one.gaps.audio_gap_ms < GENEROUS_GAP_MS
        (move,) = one.moves
        assert (move.left, move.reason) == (old, "cordoned")
        assert 0 < (move.new_link_up_ms or 0) <= (move.flowing_ms or 0) <= (move.switched_ms or 0)
    await asyncio.wait_for(fleet.sfus[old].child.wait(), WITHIN_S)
    assert fleet.sfus[old].child.exit_code == 0
    await replace_sfu(fleet, old)


async def test_players_come_and_go_by_command_and_who_has_left_is_neither_cut_nor_a_gap(fleet: Fleet) -> None:
    async with crowd(fleet, room="door", bots=2) as people:
        await until(lambda: people.hearing(2))
        people.bots.command(JoinCommand(room="door"))
        await until(lambda: len(people.told("hearing", bot="bot-3")) == 4)
        await people.hear_more()
        people.bots.command(LeaveCommand(bot="bot-1"))
        assert [len(one["publications"]) for one in people.told("left", bot="bot-1")] == [2]
        await until(lambda: all(len(bot.player.follower.publications) == 2 for bot in people.bots.bots))
        people.bots.command(MarkCommand())
        heard = people.report().reports[-1].gaps.audio_units
        await until(lambda: people.report().reports[-1].gaps.audio_units >= heard + 100)
        report = people.report()
        with pytest.raises(BadMessage):
            people.bots.command(JoinCommand(room="door", bots=MAX_BOTS))
    gone, *there = report.reports
    assert report.cut == ()
    assert [one.bot for one in report.reports] == ["bot-1", "bot-2", "bot-3"]
    assert gone.gaps.audio_units > 0
    assert (gone.marked_audio_gap_ms, gone.marked_video_gap_ms) == (None, None)
    for one in there:
        assert one.marked_audio_gap_ms is not None
        assert one.marked_audio_gap_ms < GENEROUS_GAP_MS, "the silence of who has left counts as a gap"


async def test_who_is_in_a_conversation_stays_until_it_is_over_and_is_heard_all_the_while(fleet: Fleet) -> None:
    async with crowd(fleet, room="talk", bots=2, behaviour="0s conversation") as people:
        await until(lambda: people.hearing(2))
        old = await sfu_of(people)
        fleet.signal_sfu(old, signal.SIGTERM)
        await until(lambda: len(people.told("decided", sfu=old, move=False)) == 2)
        people.bots.bots[0].player.set_presence(presence_of("desk"))
        await until(lambda: len(people.told("moved", left=old, bot="bot-1")) == 1)
        await people.hear_more()
        assert people.report().reports[1].sfu == old, "the other one stays, and both hear each other across two SFUs"
        people.bots.bots[1].player.set_presence(presence_of("idle"))
        await until(lambda: len(people.told("moved", left=old)) == 2)
        await people.hear_more()
        report = people.report()
    assert report.cut == ()
    assert all(untouched(one) for one in report.reports)
    assert [one["reason"] for one in people.told("decided", bot="bot-2")] == ["away-from-desk", "conversation-over"]
    await replace_sfu(fleet, old)


async def test_an_sfu_that_is_killed_is_replaced_and_the_eviction_is_counted(fleet: Fleet) -> None:
    async with crowd(fleet, room="kill", bots=2) as people:
        await until(lambda: people.hearing(2))
        old = await sfu_of(people)
        fleet.signal_sfu(old, signal.SIGKILL)
        await until(lambda: len(people.told("rejoined")) == 2)
        await people.hear_more()
        report = people.report()
    assert report.counts.evictions == report.counts.rejoins == 2
    assert any("without having moved" in sentence for sentence in report.cut)
    assert report.gaps.damaged == 0
    await replace_sfu(fleet, old)


def break_websocket(bot: Bot) -> None:
    """Cut the websocket to the SFU as a dead network would, and nothing else."""
    link = bot.player.connections.at(bot.player.sfu)
    assert link is not None
    connection = link._socket._wire._connection
    assert connection is not None
    connection.transport.abort()


async def test_a_broken_media_websocket_costs_no_media(fleet: Fleet) -> None:
    async with crowd(fleet, room="broken", bots=2) as people:
        await until(lambda: people.hearing(2))
        await sfu_of(people)
        bot = people.bots.bots[0]
        link = bot.player.connections.at(bot.player.sfu)
        assert link is not None
        before = link.transports
        break_websocket(bot)
        await until(lambda: not link.entered)
        await until(lambda: link.entered)
        await people.hear_more(60)
        assert link.transports == before
        assert people.told("link-lost") == people.told("move-started") == []
        report = people.report()
    assert report.counts.evictions == 0
    assert report.counts.failed_connections == 0
    assert all(untouched(one) for one in report.reports)


async def test_a_router_that_goes_is_resumed_elsewhere_while_media_goes_on(fleet: Fleet) -> None:
    async with crowd(fleet, room="router", bots=2) as people:
        await until(lambda: people.hearing(2))
        for bot in people.bots.bots:
            assert bot.player.router._wire is not None
            assert bot.player.router._wire._connection is not None
            bot.player.router._wire._connection.transport.abort()
        await until(lambda: len(people.told("resumed")) == 2)
        await people.hear_more(60)
        report = people.report()
    assert report.cut == ()
    assert report.counts.resumes == 2
    assert all(untouched(one) for one in report.reports)


async def test_idle_players_hear_of_a_cordon_with_the_time_of_each(fleet: Fleet) -> None:
    swarm = IdleSwarm(routers=fleet.router_urls(), secret=fleet.secret, players=20, rooms=4, joins_per_s=200.0)
    await swarm.fill()
    assert swarm.connected == 20
    sfu = max(fleet.sfus, key=swarm.on)
    count = swarm.on(sfu)
    assert count > 0
    sent = fleet.signal_sfu(sfu, signal.SIGTERM)
    told = await swarm.wait_told(sfu, count=count, within_s=WITHIN_S)
    assert len(told) == count
    assert all(at > sent for at in told)
    assert swarm.connected == 20
    await swarm.close()
    await replace_sfu(fleet, sfu)


async def run_bots(fleet: Fleet, *arguments: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
    routers = [part for url in fleet.router_urls() for part in ("--routers", url)]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "client_sim",
        *routers,
        "--secret",
        fleet.secret,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(stdin), 90)
    assert process.returncode is not None
    return process.returncode, out, err


async def test_the_command_reports_in_json_and_says_by_its_status_that_no_player_was_cut(fleet: Fleet) -> None:
    arguments = ("--room", "cli", "--bots", "2", "--duration-s", "4", "--json")
    status, out, err = await run_bots(fleet, *arguments)
    report = json.loads(out)
    assert status == 0, (report["cut"], err)
    assert report["bots"] == 2
    assert report["gaps"]["audio_units"] > 0
    assert {one["bot"] for one in report["reports"]} == {"bot-1", "bot-2"}


async def test_the_command_tells_events_and_takes_commands(fleet: Fleet) -> None:
    commands = b'{"cmd":"mark"}\nnonsense\n{"cmd":"presence","bot":"bot-1","at_desk":false}\n{"cmd":"report"}\n'
    arguments = ("--room", "events", "--bots", "1", "--duration-s", "2", "--events", "--metrics-port", "0")
    _, out, _ = await run_bots(fleet, *arguments, stdin=commands)
    events = [json.loads(line) for line in out.splitlines()]
    names = [event["event"] for event in events]
    assert {"joined", "started", "report", "refused", "switched"} <= set(names)
    assert names[-1] == "final-report"
    assert all(isinstance(event["t"], float) for event in events)
