"""`sluice bench join`: how long a browser takes from its websocket to the router until it shows a first video frame.

A private fleet with one router and one SFU, one page that publishes a pattern, and page after page that joins to watch.
The target on loopback is a median under 300 ms.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

from cyclopts import App, Parameter

from bench.chromium import find_chromium, open_chromium, wait_true
from bench.stats import percentile
from localfleet.fleet import Fleet, FleetSpec

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

TARGET_MS = 300.0
JOIN_WITHIN_MS = 30_000
app = App(name="join", help="Time from a browser's websocket to its first video frame.")


@dataclass(frozen=True, kw_only=True, slots=True)
class JoinTimes:
    """What the joins took [ms]. Keys are what `--json` prints."""

    joins: int
    median_ms: float
    p90_ms: float
    max_ms: float
    median_welcome_ms: float
    """From the websocket's opening to the router's `welcome`: the part that is no media."""
    target_ms: float = TARGET_MS
    met: bool = False


@app.default
def join(
    joins: Annotated[int, Parameter(help="How often to join.")] = 10,
    *,
    json_: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Measure and print; status 1 when the median misses the target."""
    import_module("playwright")  # an extra; better missed before a fleet is started
    executable = find_chromium()
    if executable is None:
        print("bench join needs Chromium: `apt-get install chromium`, or set SLUICE_CHROMIUM to a Chrome")
        return 2
    times = asyncio.run(measure(joins=joins, executable=executable))
    if json_:
        print(json.dumps(asdict(times)))
    else:
        print(
            f"{times.joins} joins: median {times.median_ms:.0f} ms, 90 % within {times.p90_ms:.0f} ms, longest "
            f"{times.max_ms:.0f} ms; of these {times.median_welcome_ms:.0f} ms until `welcome`. Target: median < "
            f"{times.target_ms:.0f} ms, {'met' if times.met else 'missed'}."
        )
    return 0 if times.met else 1


async def measure(*, joins: int, executable: str) -> JoinTimes:
    """Start a fleet and a browser, join `joins` times one after another."""
    spec = FleetSpec(routers=1, sfus=1, router_flags=("--dev-tokens",))
    async with Fleet(spec) as fleet, open_chromium(executable) as context:
        rows = await _joins(context, fleet.page, joins)
    firsts = [row["first"] for row in rows]
    median = percentile(firsts, 0.5)
    return JoinTimes(
        joins=joins,
        median_ms=median,
        p90_ms=percentile(firsts, 0.9),
        max_ms=max(firsts),
        median_welcome_ms=percentile([row["welcome"] for row in rows], 0.5),
        met=median < TARGET_MS,
    )


async def _joins(context: BrowserContext, page_url: str, joins: int) -> list[dict[str, float]]:
    publisher = await _open(context, page_url, "publisher", media="pattern")
    await wait_true(publisher, "sluice.state.published.length === 2", within_ms=JOIN_WITHIN_MS)
    rows = []
    for number in range(joins):
        page = await _open(context, page_url, f"viewer-{number}", media="none")
        await wait_true(page, "sluice.state.timings.firstVideoAt", within_ms=JOIN_WITHIN_MS)
        timings: dict[str, Any] = await page.evaluate("sluice.state.timings")
        opened = timings["openedAt"]
        rows.append({"first": timings["firstVideoAt"] - opened, "welcome": timings["welcomeAt"] - opened})
        await page.close()
    return rows


async def _open(context: BrowserContext, page_url: str, name: str, *, media: str) -> Page:
    page = await context.new_page()
    query = urlencode({"room": "bench", "name": name, "media": media, "autojoin": "1"})
    await page.goto(f"{page_url}?{query}")
    await wait_true(page, "window.sluice !== undefined", within_ms=JOIN_WITHIN_MS)
    return page


if __name__ == "__main__":
    raise SystemExit(app())
