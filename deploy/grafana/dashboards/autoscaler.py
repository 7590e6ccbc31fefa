"""What the controller sees, how near it is to acting, what it has done (A10)."""

from __future__ import annotations

from model import AMBER, BLUE, GREEN, RED, Dashboard, Panel, Query, Row

from dashboards.queries import FAULT, HIGH, SHARE, quantile, rate

AUTOSCALER = Dashboard(
    uid="sluice-autoscaler",
    title="Sluice: autoscaler",
    help="What the controller sees, how near it is to acting, and what it has done.",
    rows=(
        Row(
            title="Now",
            panels=(
                Panel(
                    title="Leaders",
                    kind="stat",
                    width=4,
                    height=4,
                    queries=(Query(expr="sum(sluice_control_leader)"),),
                    first=RED,
                    steps=((1, GREEN), (2, AMBER)),
                    help="One. None: nothing is scaled. Two for longer than a lease: one was paused, its writes are "
                    "refused.",
                ),
                Panel(
                    title="Mean load",
                    kind="stat",
                    width=4,
                    height=4,
                    unit="percentunit",
                    queries=(Query(expr="max(sluice_control_mean_load)"),),
                    steps=SHARE,
                    help="Over the nodes that count as capacity.",
                ),
                Panel(
                    title="Capacity",
                    kind="stat",
                    width=4,
                    height=4,
                    queries=(Query(expr='max(sluice_control_nodes{kind="capacity"})'),),
                    help="Healthy, not cordoned, warmed up, with a report.",
                ),
                Panel(
                    title="Unknown or lost",
                    kind="stat",
                    width=4,
                    height=4,
                    queries=(Query(expr='sum(max by (kind) (sluice_control_nodes{kind=~"unknown|lost"}))'),),
                    steps=FAULT,
                    help="While a node is unknown, nothing is removed.",
                ),
                Panel(
                    title="Cooldown left",
                    kind="stat",
                    width=4,
                    height=4,
                    unit="s",
                    queries=(Query(expr="max(sluice_control_cooldown_left_seconds)"),),
                    first=BLUE,
                    help="Until the pool may change again.",
                ),
                Panel(
                    title="Fencing token",
                    kind="stat",
                    width=4,
                    height=4,
                    queries=(Query(expr="max(sluice_control_token)"),),
                    first=BLUE,
                    help="Grows with each change of leader.",
                ),
            ),
        ),
        Row(
            title="What decides",
            panels=(
                Panel(
                    title="Mean load and its parts",
                    queries=(
                        Query(expr="max(sluice_control_mean_load)", legend="load"),
                        Query(expr="max by (part) (sluice_control_mean_part)", legend="{{part}}"),
                    ),
                    unit="percentunit",
                    steps=((0.3, BLUE), (HIGH, AMBER)),
                    width=12,
                    help="By default a node is added at 65 % and removed at 30 %. The load is the mean of each "
                    "node's fullest part.",
                ),
                Panel(
                    title="Nodes",
                    queries=(
                        Query(expr="max by (kind) (sluice_control_nodes)", legend="{{kind}}"),
                        Query(expr="max(sluice_control_floor)", legend="floor"),
                        Query(expr="max(sluice_control_maximum)", legend="maximum"),
                    ),
                    width=12,
                    help="By what they count as. A cordoned node is a planned removal, never a lost one.",
                ),
                Panel(
                    title="Hot ticks in the window",
                    queries=(Query(expr="max(sluice_control_out_hits)", legend="hits"),),
                    help="At four of the last five a node is added.",
                ),
                Panel(
                    title="Quiet ticks in a row",
                    queries=(Query(expr="max(sluice_control_quiet_ticks)", legend="quiet"),),
                    help="At twenty one node is drained.",
                ),
                Panel(
                    title="Cooldown left",
                    queries=(Query(expr="max(sluice_control_cooldown_left_seconds)", legend="left"),),
                    unit="s",
                    help="Between any two changes of the pool.",
                ),
            ),
        ),
        Row(
            title="What was done",
            panels=(
                Panel(
                    title="Decisions",
                    queries=(
                        Query(
                            expr="sum by (action) (increase(sluice_control_decisions_total[$__rate_interval]))",
                            legend="{{action}}",
                        ),
                    ),
                    stack=True,
                    width=12,
                    help="Each is an audit record with its figures: `sluice scaling --last 20`.",
                ),
                Panel(
                    title="Launch to capacity",
                    queries=(
                        Query(
                            expr=quantile(0.95, "sluice_control_launch_seconds", by="stage", over="$__range"),
                            legend="{{stage}}",
                        ),
                    ),
                    kind="bargauge",
                    unit="s",
                    first=BLUE,
                    width=12,
                    help="95 % of launches were healthy, had forwarded a packet, were capacity, had a first room "
                    "after this time.",
                ),
                Panel(
                    title="Ticks by outcome",
                    queries=(Query(expr=rate("sluice_control_ticks_total", by="outcome"), legend="{{outcome}}"),),
                    unit="reqps",
                    help="`store_down`: nothing is decided without Redis. `held`: a change was due, but a rule "
                    "prevented it.",
                ),
                Panel(
                    title="Pool errors",
                    queries=(
                        Query(
                            expr=rate("sluice_control_pool_errors_total", by="pool, call"), legend="{{pool}}: {{call}}"
                        ),
                    ),
                    unit="reqps",
                    help="Calls to the pool that failed: an error never reads as an empty pool.",
                ),
                Panel(
                    title="Refused writes and bad input",
                    queries=(
                        Query(expr=rate("sluice_control_refused_writes_total"), legend="late write refused"),
                        Query(expr=rate("sluice_control_bad_input_total", by="kind"), legend="{{kind}}"),
                    ),
                    unit="reqps",
                    help="A refused write is fencing at work: a paused leader came back.",
                ),
            ),
        ),
        Row(
            title="Warm-up",
            panels=(
                Panel(
                    title="SFUs not warmed up",
                    queries=(Query(expr="count(sluice_sfu_warmed_up == 0) or vector(0)", legend="not warmed up"),),
                    help="They have not forwarded a packet yet, so they are no capacity.",
                ),
                Panel(
                    title="Since the process' start",
                    queries=(Query(expr="max by (milestone) (sluice_sfu_milestone_seconds)", legend="{{milestone}}"),),
                    unit="s",
                    help="The slowest SFU to each milestone.",
                ),
                Panel(
                    title="Failed probe calls",
                    queries=(Query(expr=rate("sluice_sfu_probe_failures_total", by="reason"), legend="{{reason}}"),),
                    unit="reqps",
                    help="An SFU calls itself through its announced address until a packet comes back.",
                ),
            ),
        ),
    ),
)
