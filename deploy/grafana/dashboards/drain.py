"""What drains cost, per release (D10)."""

from __future__ import annotations

from model import AMBER, BLUE, Dashboard, Panel, Query, Row

from dashboards.queries import FAULT, GAP, quantile, rate

VERSION = '{version=~"$version"}'

DRAIN = Dashboard(
    uid="sluice-drain",
    title="Sluice: drain",
    help="What drains cost, per release: time to the end, evictions, how long conversations went on.",
    by_version=True,
    span="now-24h",
    rows=(
        Row(
            title="Going on",
            panels=(
                Panel(
                    title="Until players are asked to move",
                    queries=(
                        Query(
                            expr="sluice_sfu_drain_deadline_seconds >= 0 "
                            "and on (instance, job) (sluice_sfu_cordoned == 1)",
                            legend="{{instance}}",
                        ),
                    ),
                    kind="bargauge",
                    unit="s",
                    first=AMBER,
                    steps=((300, BLUE),),
                    help="0: they are being asked. Held by hand, an SFU has no such bound and is not listed.",
                ),
                Panel(
                    title="Players on cordoned SFUs",
                    queries=(
                        Query(
                            expr="sluice_sfu_players and on (instance, job) (sluice_sfu_cordoned == 1)",
                            legend="{{instance}}",
                        ),
                    ),
                    help="Falls to zero, then the SFU ends. One that stays level is worth a look on the fleet page.",
                ),
                Panel(
                    title="Until a controller's cordon lapses",
                    queries=(
                        Query(
                            expr="sluice_sfu_cordon_lease_seconds >= 0 "
                            "and on (instance, job) (sluice_sfu_cordoned == 1)",
                            legend="{{instance}}",
                        ),
                    ),
                    unit="s",
                    help="Renewed while the drain goes on; near zero means that no controller renews it.",
                ),
            ),
        ),
        Row(
            title="Results of drains, by release",
            panels=(
                Panel(
                    title="Ended drains",
                    queries=(
                        Query(
                            expr=f"sum by (version, outcome) (increase(sluice_router_drains_total{VERSION}[$__range]))",
                            legend="{{version}}: {{outcome}}",
                        ),
                    ),
                    kind="stat",
                    height=6,
                    decimals=0,
                    help="`empty`: all players had left. `grace`: its time was over. `forced`: an operator ended it.",
                ),
                Panel(
                    title="Players cut off",
                    queries=(
                        Query(
                            expr=f"sum by (version) (increase(sluice_router_drain_evicted_total{VERSION}[$__range]))",
                            legend="{{version}}",
                        ),
                    ),
                    kind="stat",
                    height=6,
                    decimals=0,
                    steps=FAULT,
                    help="Still there when the transports were closed. The aim is zero.",
                ),
                Panel(
                    title="Tracks left at the exit",
                    queries=(
                        Query(
                            expr=f"sum by (version, side) "
                            f"(increase(sluice_router_drain_tracks_at_exit_total{VERSION}[$__range]))",
                            legend="{{version}}: {{side}}",
                        ),
                    ),
                    kind="stat",
                    height=6,
                    decimals=0,
                    steps=FAULT,
                    help="Producers and consumers when the process ended.",
                ),
                Panel(
                    title="From the cordon to the end",
                    queries=(
                        Query(
                            expr=quantile(
                                0.5, "sluice_router_drain_seconds", by="version", over="$__range", where=VERSION
                            ),
                            legend="{{version}} median",
                        ),
                        Query(
                            expr=quantile(
                                0.95, "sluice_router_drain_seconds", by="version", over="$__range", where=VERSION
                            ),
                            legend="{{version}} 95 %",
                        ),
                    ),
                    kind="bargauge",
                    width=12,
                    unit="s",
                    first=BLUE,
                    help="Over the time shown.",
                ),
                Panel(
                    title="How long conversations went on after the cordon",
                    queries=(
                        Query(
                            expr=quantile(
                                0.5,
                                "sluice_router_drain_conversation_seconds",
                                by="version",
                                over="$__range",
                                where=VERSION,
                            ),
                            legend="{{version}} median",
                        ),
                        Query(
                            expr=quantile(
                                0.95,
                                "sluice_router_drain_conversation_seconds",
                                by="version",
                                over="$__range",
                                where=VERSION,
                            ),
                            legend="{{version}} 95 %",
                        ),
                    ),
                    kind="bargauge",
                    width=12,
                    unit="s",
                    first=BLUE,
                    help="Choose drain_max above the 95 % line, and few will ever be asked.",
                ),
            ),
        ),
        Row(
            title="Moves",
            panels=(
                Panel(
                    title="Video gap of a move",
                    queries=(
                        Query(expr=quantile(0.5, "sluice_router_move_video_gap_ms"), legend="median"),
                        Query(expr=quantile(0.95, "sluice_router_move_video_gap_ms"), legend="95 %"),
                    ),
                    unit="ms",
                    steps=GAP,
                    help="As players measure it on the way from one SFU to the next.",
                ),
                Panel(
                    title="Audio gap of a move",
                    queries=(
                        Query(expr=quantile(0.5, "sluice_router_move_audio_gap_ms"), legend="median"),
                        Query(expr=quantile(0.95, "sluice_router_move_audio_gap_ms"), legend="95 %"),
                    ),
                    unit="ms",
                    steps=GAP,
                    help="As players measure it on the way from one SFU to the next.",
                ),
                Panel(
                    title="Players asked to move",
                    queries=(
                        Query(
                            expr=rate("sluice_sfu_drain_asked_total", where=VERSION, by="version"), legend="{{version}}"
                        ),
                    ),
                    unit="reqps",
                    help="Past drain_max the remaining players are asked, a few at a time.",
                ),
                Panel(
                    title="Notices told to players",
                    queries=(Query(expr=rate("sluice_router_told_total"), legend="told"),),
                    unit="reqps",
                    width=12,
                    help="`cordoned-sfu`, `uncordoned-sfu` and `sfu-gone` on players' wires.",
                ),
                Panel(
                    title="Stay after the cordon, as SFUs saw it",
                    queries=(
                        Query(
                            expr=quantile(0.95, "sluice_sfu_drain_stayed_seconds", by="version", where=VERSION),
                            legend="{{version}} 95 %",
                        ),
                    ),
                    unit="s",
                    width=12,
                    help="An SFU's own figures are lost when they are not scraped in its last seconds; the "
                    "routers' copy above is kept.",
                ),
            ),
        ),
    ),
)
