"""Which SFUs there are, how full each is and of what, whether players get in."""

from __future__ import annotations

from model import BLUE, GREEN, RED, Dashboard, Panel, Query, Row

from dashboards.queries import FAULT, SHARE, quantile, rate

FLEET = Dashboard(
    uid="sluice-fleet",
    title="Sluice: fleet",
    help="Which SFUs there are, how full each is and of what, whether players get in.",
    rows=(
        Row(
            title="Now",
            panels=(
                Panel(
                    title="Players",
                    kind="stat",
                    width=4,
                    height=4,
                    queries=(Query(expr='sum(sluice_router_players{state="connected"})'),),
                    help="Player sessions whose websocket is open, over all routers.",
                ),
                Panel(
                    title="SFUs that take new work",
                    kind="stat",
                    width=4,
                    height=4,
                    queries=(Query(expr="count(sluice_sfu_cordoned == 0)"),),
                    first=RED,
                    steps=((1, GREEN),),
                    help="SFUs that Prometheus reaches and that are not cordoned.",
                ),
                Panel(
                    title="Draining",
                    kind="stat",
                    width=4,
                    height=4,
                    queries=(Query(expr="sum(sluice_sfu_cordoned)"),),
                    steps=((1, BLUE),),
                    help="Cordoned SFUs: drained by SIGTERM, by an operator, or held.",
                ),
                Panel(
                    title="Fullest SFU",
                    kind="stat",
                    width=4,
                    height=4,
                    unit="percentunit",
                    queries=(Query(expr='max(sluice_sfu_load{part="node"})'),),
                    steps=SHARE,
                    help="Load of the fullest SFU: the fullest of its parts, 100 % at the ceiling.",
                ),
                Panel(
                    title="Routers without Redis",
                    kind="stat",
                    width=4,
                    height=4,
                    queries=(Query(expr="count(sluice_router_store_up == 0) or vector(0)"),),
                    steps=FAULT,
                    help="Media goes on without Redis; scaling and news between routers wait.",
                ),
                Panel(
                    title="Silent or unknown SFUs",
                    kind="stat",
                    width=4,
                    height=4,
                    queries=(
                        Query(
                            expr="max(sum by (instance) (sluice_router_sfus_not_placeable"
                            '{why=~"stale|missing|unknown-status"}))'
                        ),
                    ),
                    steps=FAULT,
                    help="As the router sees it that misses most. Unknown is not zero: they count neither as idle "
                    "nor as capacity.",
                ),
            ),
        ),
        Row(
            title="Load and its fullest part",
            panels=(
                Panel(
                    title="Load of each SFU",
                    queries=(Query(expr='sluice_sfu_load{part="node"}', legend="{{instance}}"),),
                    unit="percentunit",
                    steps=SHARE,
                    width=12,
                    help="The fullest of egress, streams and CPU, each as a share of its ceiling. A gap is a load "
                    "that is not known.",
                ),
                Panel(
                    title="Mean of each part over SFUs that take new work",
                    queries=(
                        Query(
                            expr='avg by (part) (sluice_sfu_load{part!="node"} >= 0 '
                            "and on (instance, job) (sluice_sfu_cordoned == 0))",
                            legend="{{part}}",
                        ),
                    ),
                    unit="percentunit",
                    steps=SHARE,
                    width=12,
                    help="The highest line is what the pool runs out of first.",
                ),
                Panel(
                    title="Egress of each SFU",
                    queries=(
                        Query(expr='sluice_sfu_load_part{part="egress_bps"}', legend="{{instance}}"),
                        Query(expr='max(sluice_sfu_ceiling{part="egress"})', legend="ceiling"),
                    ),
                    unit="bps",
                    help="Bits sent a second, from byte counters.",
                ),
                Panel(
                    title="Forwarded streams",
                    queries=(Query(expr='sluice_sfu_load_part{part="streams"}', legend="{{instance}}"),),
                    help="Outbound streams of each SFU.",
                ),
                Panel(
                    title="CPU",
                    queries=(
                        Query(expr='sluice_sfu_load_part{part="cpu_process"}', legend="{{instance}} process"),
                        Query(expr='sluice_sfu_load_part{part="cpu_machine"}', legend="{{instance}} machine"),
                    ),
                    unit="percentunit",
                    help="Of the process, as a share of the cores it may use, and of its whole machine.",
                ),
            ),
        ),
        Row(
            title="Players and placement",
            panels=(
                Panel(
                    title="Players",
                    queries=(Query(expr="sum by (state) (sluice_router_players)", legend="{{state}}"),),
                    stack=True,
                    help="Waiting: the websocket is lost and may be resumed.",
                ),
                Panel(
                    title="Placements by reason",
                    queries=(Query(expr=rate("sluice_router_placements_total", by="reason"), legend="{{reason}}"),),
                    unit="reqps",
                    stack=True,
                    help="What decided; `no-sfu` means that a player got none.",
                ),
                Panel(
                    title="Failed joins",
                    queries=(
                        Query(expr=rate("sluice_router_placements_total", where='{reason="no-sfu"}'), legend="no SFU"),
                        Query(expr=rate("sluice_router_ice_failures_total"), legend="could not connect to its SFU"),
                        Query(
                            expr=rate("sluice_router_refused_total", where='{peer="player"}', by="code"),
                            legend="refused: {{code}}",
                        ),
                    ),
                    unit="reqps",
                    help="Players that got no SFU, or could not reach the one they got.",
                ),
                Panel(
                    title="SFUs by status, as routers see them",
                    queries=(Query(expr="max by (status) (sluice_router_sfus)", legend="{{status}}"),),
                    help="The router that sees most of each.",
                ),
                Panel(
                    title="Placed but not reported yet",
                    queries=(Query(expr="max(sluice_router_placement_inflight)", legend="in flight"),),
                    help="Joins that SFUs' reports can't show yet; placement counts them.",
                ),
                Panel(
                    title="SFUs left out, by why",
                    queries=(
                        Query(expr="max by (why) (sluice_router_sfus_not_placeable)", legend="{{why}}"),
                        Query(expr="max(sluice_router_failing_sfus)", legend="connections fail"),
                    ),
                    help="Why SFUs get no new work.",
                ),
            ),
        ),
        Row(
            title="Routers",
            panels=(
                Panel(
                    title="One exchange with Redis",
                    queries=(
                        Query(expr=quantile(0.5, "sluice_router_sync_seconds"), legend="median"),
                        Query(expr=quantile(0.99, "sluice_router_sync_seconds"), legend="99 %"),
                    ),
                    unit="s",
                    help="Each router does one a second.",
                ),
                Panel(
                    title="How late timers fire",
                    queries=(
                        Query(
                            expr=quantile(0.99, "sluice_router_loop_lag_seconds", by="instance"),
                            legend="{{instance}} 99 %",
                        ),
                    ),
                    unit="s",
                    help="A router that is late tells its players late.",
                ),
                Panel(
                    title="Operators' commands",
                    queries=(
                        Query(
                            expr=rate("sluice_router_admin_commands_total", by="verb, outcome"),
                            legend="{{verb}}: {{outcome}}",
                        ),
                    ),
                    unit="reqps",
                    help="From the fleet page and the HTTP API.",
                ),
            ),
        ),
    ),
)
