"""`sluice roll`: replace every SFU, and start every router again, without cutting a call (D13)."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import msgspec
from cyclopts import Parameter

from cli.output import err, out, plain, print_json, step
from cli.roll_view import RollView, print_report
from cli.sigterm import ended_by_sigterm
from operators.config import HERE, Where
from operators.core.roll.aborting import abort as plan_abort
from operators.core.roll.aborting import aborted
from operators.core.roll.machine import go_on
from operators.core.roll.news import state_words
from operators.core.roll.planning import RollOrder, make_plan
from operators.core.roll.report import report_of
from operators.core.roll.seen import RollSeen, seen_of
from operators.shell.operations import command, open_store, operator
from operators.shell.roll.platform import DoorPlatform, HookPlatform, RollPlatform
from operators.shell.roll.runner import FOLLOW, RollRunner
from operators.shell.target import find_door, find_target, known_secret
from shared.errors import BadSetting, Refused, SluiceError
from shared.keys import PLACEMENTS_KEPT
from shared.records import CommandVerb
from shared.roll_records import RollRecord, RollState
from shared.store.rolls import ROLL_LEASE_S, KeptRoll
from shared.store.store import Store

OPEN = (RollState.RUNNING, RollState.PAUSED)
COMPOSE_SPARE = "sfu-spare"
RENEWED_WITHIN_S = 3.0
"""A command that goes on with a roll renews its lease with each look, twice a second."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class Platform:
    """What starts and stops SFUs. Without any of these: the `sluice up` that runs here."""

    start: str = ""
    """Shell command that starts SFU $SLUICE_ROLL_SFU at release $SLUICE_ROLL_VERSION. It may be run twice."""
    stop: str = ""
    """Shell command that clears away what is left of SFU $SLUICE_ROLL_SFU once its process has ended."""
    restart_router: str = ""
    """Shell command that starts router $SLUICE_ROLL_ROUTER again; without it routers stay as they are."""
    compose: str = ""
    """How compose is called here, "docker compose" or "docker-compose": the three commands are made for it."""
    follow: bool = False
    """Another program rolls, as Kubernetes does: start and drain nothing, but tell placement, and report."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class RollSettings:
    """How to roll."""

    version: str = ""
    """Label of the release to roll to; SFUs that have it stay. Without it all are replaced under the one they have."""
    surge: int = 1
    """Replacements that are started ahead of the SFUs that go."""
    spare: tuple[str, ...] = ()
    """SFU that runs for the time of the roll only, so that all others keep their ids; may be given several times."""
    routers: bool = True
    """Start the routers again first, one at a time; their players resume on others."""
    warm_up_within_s: float = 120.0
    """Seconds after which the roll pauses because a replacement has not warmed up."""


async def roll(
    *,
    where: Where = HERE,
    settings: RollSettings = RollSettings(),
    platform: Platform = Platform(),
    watch: bool = False,
    abort: bool = False,
    json: bool = False,
) -> int:
    """Replace every SFU of a fleet and start its routers again, without cutting a call.

    For each SFU: its replacement is started; when that has warmed up, the old one is cordoned and drained, and ends
    when its last player has left. Placement sends nobody to an SFU whose turn is still to come, while another can take
    them. With `sluice up` running in another terminal:

        sluice roll

        sluice roll --version v2 --surge 2

    The plan is kept in the fleet's Redis. After Ctrl-C, a crash, or from another terminal, the same command goes on
    where it was:

        sluice roll

        sluice roll --watch

        sluice roll --abort

    It pauses, says why and ends with status 1 when a player could not connect, a move froze for more than 500 ms, an
    SFU died, a replacement did not warm up, or a command failed. `--abort` lifts the cordons of SFUs that still run;
    one that got SIGTERM, or has ended, can't be taken back. Compose, hosts of your own, and Kubernetes:

        sluice roll --version v2 --compose "docker compose"

        sluice roll --version v2 --start 'ssh $SLUICE_ROLL_SFU ...' --stop 'ssh $SLUICE_ROLL_SFU ...'

        sluice roll --version v2 --follow

    Parameters
    ----------
    watch
        Only look, until the roll pauses or ends.
    abort
        Take the roll back, also from a command that goes on with it elsewhere.
    json
        Print JSON: a document for each change, the report last.
    """
    if watch and abort:
        raise BadSetting(setting="roll", detail="give --watch or --abort, not both")
    target, secret = find_target(where), known_secret(where)
    async with open_store(target) as store, aiohttp.ClientSession() as session:
        view = RollView(store, session, secret=secret, json=json)
        if abort:
            plan = await _abort(store)
        elif watch:
            plan = await view.watch()
        else:
            plan = await _roll(store, session, view, where, settings, platform, secret=secret)
        report = report_of(plan, await store.read_placements(PLACEMENTS_KEPT), now=await store.now())
    print_json(report) if json else print_report(report)
    if plan.state == RollState.PAUSED:
        err.print(plain(state_words(plan)))
    return 1 if plan.state == RollState.PAUSED else 0


async def _roll(
    store: Store,
    session: aiohttp.ClientSession,
    view: RollView,
    where: Where,
    settings: RollSettings,
    platform: Platform,
    *,
    secret: str,
) -> RollRecord:
    async with _held(store) as held:
        name, token, kept = held.name, held.token, held.kept
        now, seen = kept.at, await look(store)
        if kept.plan is not None and kept.plan.state in OPEN:
            plan = go_on(_same(kept.plan, settings), seen, now=now)
            step(f"going on with {state_words(plan)}")
        else:
            plan = _new(settings, platform, seen, now=now)
        acting = _platform(plan, where)
        runner = RollRunner(store, session, acting, name=name, token=token, secret=secret, show=view.show)
        with ended_by_sigterm():
            async with view:
                try:
                    return await runner.run(plan)
                except asyncio.CancelledError:
                    step(
                        "the roll stays where it is: 'sluice roll' goes on with it, 'sluice roll --abort' takes it back"
                    )
                    raise
                finally:
                    held.token = runner.token


@dataclass(kw_only=True, slots=True)
class HeldRoll:
    """The roll, held by this command."""

    name: str
    token: int
    kept: KeptRoll


@asynccontextmanager
async def _held(store: Store, *, force: bool = False) -> AsyncIterator[HeldRoll]:
    """Hold the roll. Raises `Refused` while another command does.

    A command that was killed has not renewed its lease; the end of that is waited for.
    """
    name = f"{operator()}:{os.getpid()}:{secrets.token_hex(2)}"
    term = await store.take_roll(name, force=force)
    while not term.mine:
        holder = term.leader
        who = holder.controller.rpartition(":")[0]
        if holder.left_s > ROLL_LEASE_S - RENEWED_WITHIN_S:
            await asyncio.sleep(RENEWED_WITHIN_S)
            term = await store.take_roll(name)
            if not term.mine and term.leader.left_s > ROLL_LEASE_S - RENEWED_WITHIN_S:
                detail = (
                    f"{who} goes on with a roll; 'sluice roll --watch' looks at it, 'sluice roll --abort' takes it back"
                )
                raise Refused("roll-held", detail)
            continue
        step(f"{who} was killed while it held the roll: waiting {holder.left_s:.0f} s for its lease to end")
        await asyncio.sleep(holder.left_s + 0.1)
        term = await store.take_roll(name)
    held = HeldRoll(name=name, token=term.leader.token, kept=await store.read_roll())
    try:
        yield held
    finally:
        try:
            await store.release_roll(name, held.token)
        except SluiceError:
            step("the roll could not be given back; it is free when its lease has ended")


async def look(store: Store) -> RollSeen:
    """The fleet now, without what routers export."""
    return seen_of(await store.hear_sfus(), await store.hear_routers(), await store.read_drain_reports(200))


def _same(plan: RollRecord, settings: RollSettings) -> RollRecord:
    """The open roll. Raises `Refused` when another release is asked for."""
    if settings.version and settings.version != plan.version:
        detail = (
            f"{state_words(plan)}; this would roll to {settings.version!r}. "
            "Finish that one with 'sluice roll', or take it back with 'sluice roll --abort'"
        )
        raise Refused("roll-open", detail)
    return plan


def _new(settings: RollSettings, platform: Platform, seen: RollSeen, *, now: float) -> RollRecord:
    kind, start, stop, restart = commands_of(platform)
    if kind == FOLLOW:
        if not settings.version:
            raise BadSetting(setting="--version", detail="--follow needs the release that is being rolled out")
        roll_id, version = secrets.token_hex(3), settings.version
        return RollRecord(roll=roll_id, version=version, by=operator(), platform=FOLLOW, began_at=now)
    order = RollOrder(
        version=settings.version,
        surge=settings.surge,
        spares=settings.spare or ((COMPOSE_SPARE,) if kind == "compose" else ()),
        routers=settings.routers and (kind == "local" or bool(restart)),
        warm_up_within_s=settings.warm_up_within_s,
    )
    plan = make_plan(order, seen, roll=secrets.token_hex(3), by=operator(), platform=kind, now=now)
    return msgspec.structs.replace(plan, start=start, stop=stop, restart=restart)


def commands_of(platform: Platform) -> tuple[str, str, str, str]:
    """The kind of platform and its commands. Raises `BadSetting` for a contradiction."""
    hooks = (platform.start, platform.stop, platform.restart_router)
    given = [
        name
        for name, it in (("--start", any(hooks)), ("--compose", platform.compose), ("--follow", platform.follow))
        if it
    ]
    if len(given) > 1:
        raise BadSetting(setting="roll", detail=f"{' and '.join(given)} don't go together")
    if platform.follow:
        return (FOLLOW, "", "", "")
    if platform.compose:
        up = f'SLUICE_IMAGE="$SLUICE_ROLL_VERSION" {platform.compose} --profile roll up -d --no-deps --force-recreate'
        stop = f'{platform.compose} --profile roll stop "$SLUICE_ROLL_SFU"'
        return ("compose", f'{up} "$SLUICE_ROLL_SFU"', stop, f'{up} "$SLUICE_ROLL_ROUTER"')
    if any(hooks):
        if not platform.start:
            raise BadSetting(setting="--start", detail="without it nothing starts a replacement")
        return ("hooks", *hooks)
    return ("local", "", "", "")


def _platform(plan: RollRecord, where: Where) -> RollPlatform:
    return DoorPlatform(find_door(where)) if plan.platform == "local" else HookPlatform(plan)


async def _abort(store: Store) -> RollRecord:
    """Take over, lift what can be lifted, and say what can't."""
    async with _held(store, force=True) as held:
        name, token, kept = held.name, held.token, held.kept
        if kept.plan is None or kept.plan.state not in OPEN:
            raise Refused("no-roll", "no roll goes on or is paused")
        plan = aborted(kept.plan, now=kept.at)
        await store.put_roll(name, token, plan)  # from here on nothing goes on with it
        what = plan_abort(kept.plan, await look(store))
        for sfu in what.uncordon:
            try:
                await command(store, CommandVerb.UNCORDON, sfu)
            except SluiceError as error:
                out.print(plain(error.sentence()))
            else:
                step(f"{sfu} takes players again")
        for sentence in what.kept:
            step(sentence)
    return plan
