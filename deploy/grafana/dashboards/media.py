"""What is forwarded, lost, repaired, and what viewers would see."""

from __future__ import annotations

from model import AMBER, GREEN, RED, Dashboard, Panel, Query, Row

from dashboards.queries import rate

MEDIA = Dashboard(
    uid="sluice-media",
    title="Sluice: media",
    help="What SFUs forward, what is lost on the way and repaired, and what viewers would see.",
    span="now-1h",
    rows=(
        Row(
            title="Forwarding",
            panels=(
                Panel(
                    title="Sent and received",
                    queries=(
                        Query(expr="8 * " + rate("sluice_sfu_media_bytes_out_total"), legend="out"),
                        Query(expr="8 * " + rate("sluice_sfu_media_bytes_in_total"), legend="in"),
                    ),
                    unit="bps",
                    width=6,
                    help="Media datagrams of all SFUs.",
                ),
                Panel(
                    title="Packets",
                    queries=(
                        Query(expr=rate("sluice_sfu_media_packets_out_total"), legend="out"),
                        Query(expr=rate("sluice_sfu_media_packets_in_total"), legend="in"),
                        Query(expr=rate("sluice_sfu_media_forwarded_total"), legend="forwarded"),
                    ),
                    unit="pps",
                    width=6,
                    help="Datagrams, and RTP packets sent to consumers.",
                ),
                Panel(
                    title="Forwarding delay",
                    queries=(
                        Query(
                            expr="histogram_quantile(0.99, sum by (le, instance) "
                            "(rate(sluice_sfu_forwarding_delay_seconds_bucket[$__rate_interval])))",
                            legend="{{instance}}",
                        ),
                    ),
                    unit="s",
                    steps=((0.01, AMBER), (0.02, RED)),
                    width=6,
                    help="Of 100 packets, 99 leave the SFU sooner after they came. Grows with the burst of a frame to "
                    "all its viewers, and steeply when the core is full.",
                ),
                Panel(
                    title="Producers and consumers",
                    queries=(
                        Query(expr="sum(sluice_sfu_producers)", legend="producers"),
                        Query(expr="sum(sluice_sfu_consumers)", legend="consumers"),
                    ),
                    width=6,
                    help="Publications carried, and forwarded outbound streams.",
                ),
            ),
        ),
        Row(
            title="Loss",
            panels=(
                Panel(
                    title="Asked for again by viewers",
                    queries=(
                        Query(
                            expr="sum by (instance) (rate(sluice_sfu_media_nacks_received_total[$__rate_interval])) / "
                            "sum by (instance) (rate(sluice_sfu_media_forwarded_total[$__rate_interval]))",
                            legend="{{instance}}",
                        ),
                    ),
                    unit="percentunit",
                    steps=((0.02, AMBER), (0.05, RED)),
                    help="Share of forwarded packets that viewers miss: loss on the way from the SFU.",
                ),
                Panel(
                    title="Asked for again at publishers",
                    queries=(
                        Query(
                            expr="sum by (instance) (rate(sluice_sfu_media_nacks_sent_total[$__rate_interval])) / "
                            "sum by (instance) (rate(sluice_sfu_media_packets_in_total[$__rate_interval]))",
                            legend="{{instance}}",
                        ),
                    ),
                    unit="percentunit",
                    steps=((0.02, AMBER), (0.05, RED)),
                    help="Share of received packets: loss on the way to the SFU.",
                ),
                Panel(
                    title="Mended",
                    queries=(
                        Query(expr=rate("sluice_sfu_media_resent_total"), legend="sent again to viewers"),
                        Query(expr=rate("sluice_sfu_media_rtx_received_total"), legend="retransmissions received"),
                    ),
                    unit="pps",
                    help="From the ring of the producer, and from publishers.",
                ),
            ),
        ),
        Row(
            title="Freezes",
            panels=(
                Panel(
                    title="Key frames asked for, per stream",
                    queries=(
                        Query(
                            expr="sum by (instance) (rate(sluice_sfu_media_plis_received_total[$__rate_interval])) / "
                            "clamp_min(sum by (instance) (sluice_sfu_consumers), 1)",
                            legend="{{instance}}",
                        ),
                    ),
                    unit="reqps",
                    steps=((0.05, RED),),
                    help="A viewer that asks again and again has a frozen picture.",
                ),
                Panel(
                    title="Key frames asked for at publishers",
                    queries=(
                        Query(expr=rate("sluice_sfu_media_plis_sent_total", by="instance"), legend="{{instance}}"),
                    ),
                    unit="reqps",
                    help="Merged and limited; many would be a key frame storm.",
                ),
                Panel(
                    title="Worst gaps that bots have seen",
                    queries=(
                        Query(expr="max(sluice_bots_video_gap_ms)", legend="video"),
                        Query(expr="max(sluice_bots_audio_gap_ms)", legend="audio"),
                    ),
                    unit="ms",
                    steps=((200, AMBER), (1000, RED)),
                    help="Since the bots' start, where bots are in the rooms.",
                ),
            ),
        ),
        Row(
            title="Trouble",
            panels=(
                Panel(
                    title="Dropped datagrams",
                    queries=(Query(expr=rate("sluice_sfu_media_drops_total", by="reason"), legend="{{reason}}"),),
                    unit="pps",
                    help="By reason; packets of strangers and late packets are normal in small numbers.",
                ),
                Panel(
                    title="Ended peer connections",
                    queries=(
                        Query(expr=rate("sluice_sfu_peer_ends_total", by="reason"), legend="{{reason}}"),
                        Query(expr=rate("sluice_sfu_sessions_ended_total", by="reason"), legend="session: {{reason}}"),
                    ),
                    unit="reqps",
                    help="Ended from outside.",
                ),
                Panel(
                    title="Event loop lag",
                    queries=(
                        Query(expr="max by (instance) (sluice_sfu_event_loop_lag_seconds)", legend="{{instance}}"),
                    ),
                    unit="s",
                    steps=((0.1, AMBER), (0.5, RED)),
                    help="Worst of each second. The plane forwards without the event loop; signalling does not.",
                ),
                Panel(
                    title="Announced address reachable",
                    kind="stat",
                    height=5,
                    queries=(Query(expr="min(sluice_sfu_announced_reachable)"),),
                    first=RED,
                    steps=((1, GREEN),),
                    help="1 while every SFU's probe call through its own announced address works.",
                ),
                Panel(
                    title="Players refused, or bad input",
                    queries=(Query(expr=rate("sluice_sfu_trouble_total", by="kind"), legend="{{kind}}"),),
                    unit="reqps",
                    width=16,
                    height=5,
                    help="What SFUs refused.",
                ),
            ),
        ),
    ),
)
