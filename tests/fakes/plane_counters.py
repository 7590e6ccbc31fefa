"""The media counters of a running SFU, as its `/metrics` tells them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

PREFIX = "sluice_sfu_media_"


@dataclass(frozen=True)
class PlaneCounters:
    """Totals by their name in `PlaneTotals`, and drops by reason. The difference of two is what happened between."""

    totals: Counter[str] = field(default_factory=Counter)
    drops: Counter[str] = field(default_factory=Counter)

    def __getitem__(self, name: str) -> int:
        return self.totals[name]

    def __sub__(self, earlier: PlaneCounters) -> PlaneCounters:
        totals, drops = Counter(self.totals), Counter(self.drops)
        totals.subtract(earlier.totals)
        drops.subtract(earlier.drops)
        return PlaneCounters(totals, +drops)


async def plane_counters(http: str) -> PlaneCounters:
    """Ask the SFU whose HTTP side is at `http`."""
    async with aiohttp.ClientSession() as session, session.get(f"{http}/metrics") as response:
        text = await response.text()
    counters = PlaneCounters()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = sample.name.removeprefix(PREFIX).removesuffix("_total")
            if sample.name == f"{PREFIX}drops_total":
                counters.drops[sample.labels["reason"]] = int(sample.value)
            elif sample.name.startswith(PREFIX):
                counters.totals[name] = int(sample.value)
    return counters
