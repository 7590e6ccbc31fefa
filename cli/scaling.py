"""`sluice scaling`: what the autoscaler has decided and why; `sluice scaling check`: whether a file can be used."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

from cyclopts import App
from rich.console import Group
from rich.table import Table
from rich.text import Text

from cli.environment import where_only
from cli.last import check_last
from cli.output import out, plain, print_json
from cli.tables import columns
from control.core.pool_settings import read_pool
from control.shell.program import load_settings
from operators.config import HERE, Where
from operators.core.scaling_view import leader_words, load_words, node_words, plan_words, record_figures, streak_words
from operators.core.since import at_time, since_words
from operators.shell.operations import open_store
from operators.shell.target import find_target
from shared.scaling_records import ScaleAction, ScalingRecord
from shared.store.answers import Scaling

app = App(name="scaling", config=where_only, result_action="return_value")
_STYLES = {
    ScaleAction.SCALE_OUT: "green",
    ScaleAction.LAUNCHED: "green",
    ScaleAction.LAUNCH_FAILED: "red",
    ScaleAction.LAUNCH_GIVEN_UP: "red",
    ScaleAction.SCALE_IN: "yellow",
    ScaleAction.TERMINATED: "yellow",
}


@app.default
async def scaling(*, where: Where = HERE, last: int = 20, json: bool = False) -> None:
    """Show who scales the fleet, how close the next change is, and the last decisions with their reasons.

    For example:

        sluice scaling --last 5

        sluice scaling check scaling.toml

    Parameters
    ----------
    last
        How many decisions.
    json
        Print leader, state, records and since when these are known [Unix seconds] as JSON.
    """
    check_last(last)
    async with open_store(find_target(where)) as store:
        seen, since_at = await store.read_scaling(last), await store.known_since()
    if json:
        print_json(seen.answer() | {"known_since_at": since_at})
        return
    out.print(summary(seen))
    out.print(records_table(seen.records) if seen.records else "nothing has been decided yet")
    out.print(since_words(since_at))


@app.command
async def check(file: Path, /) -> None:
    """Check a scaling file: its keys, their values, and that they do not contradict each other.

    The exit status is 2 and the error names line and key when the file can't be used.

    Parameters
    ----------
    file
        The TOML file that `sluice control --scaling` would be given.
    """
    settings = load_settings(file)
    read_pool(settings.pool)
    floors = f", {len(settings.floors)} scheduled floors" if settings.floors else ""
    pool = f"{settings.min_nodes} to {settings.max_nodes} nodes of a {settings.pool.kind} pool{floors}"
    more = f"out at {settings.scale_out_at:g} in {settings.scale_out_hits} of {settings.scale_out_window} ticks"
    less = f"in at {settings.scale_in_at:g} in {settings.scale_in_ticks}"
    out.print(plain(f"{file} can be used: {pool}; {more} of {settings.tick_s:g} s, {less}"))


def summary(seen: Scaling) -> Table:
    """Leader, load, nodes, streaks and what is under way."""
    table = Table(box=None, show_header=False, padding=(0, 2, 1, 0))
    rows = {"leader": leader_words(seen.leader)}
    if seen.state is not None:
        rows |= {
            "load": load_words(seen.state.figures),
            "nodes": node_words(seen.state.figures),
            "streaks": streak_words(seen.state.figures),
            "under way": "\n".join(plan_words(seen.state)),
        }
    for name, words in rows.items():
        table.add_row(Text(name, style="bold dim"), Group(*map(plain, words.split("\n"))))
    return table


def records_table(records: tuple[ScalingRecord, ...]) -> Table:
    """The decisions, newest first."""
    table = columns("at (UTC)", "action", "reason", "SFU", "figures", "detail")
    for record in records:
        action = f"{record.action} (dry run)" if record.dry_run else record.action
        table.add_row(
            at_time(record.at, "%m-%d %H:%M:%S", zone=UTC),
            plain(action, _STYLES.get(_known(record.action), "")),
            plain(record.reason),
            plain(record.node),
            plain(record_figures(record)),
            plain(record.detail),
        )
    return table


def _known(action: str) -> ScaleAction:
    try:
        return ScaleAction(action)
    except ValueError:  # of a newer version
        return ScaleAction.NONE
