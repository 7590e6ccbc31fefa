"""`sluice bench relay`: what forwarding costs with real ICE, DTLS and SRTP, SFU and load each on its own core."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import uvloop
from cyclopts import App

from bench.machine import split_cores, warnings
from bench.plot import check_plot, draw
from bench.relay.figures import RelayFigures
from bench.relay.knee import Knee
from bench.relay.plot import plot_knees, plot_run
from bench.relay.settings import RelaySettings
from bench.relay.text import knee_json, knee_text, report_json, report_text
from bench.relay.workloads import WORKLOADS, unit
from cli.output import err, out, print_json, step
from shared.errors import SluiceError

DEFAULT = RelaySettings()
_WORKLOAD_LIST = "\n\n".join(f"* `{one.name}` ({one.size}): {one.about}" for one in WORKLOADS.values())
app = App(
    name="relay",
    help="CPU per forwarded packet, delay, loss and memory of the data plane, at real sizes.",
    help_epilogue="""An SFU's media port runs on one core, and on another a generator that plays all publishers and
    subscribers, each with its own ICE, DTLS and SRTP. Leave the machine alone meanwhile, or run it as
    `chrt -r 5 sluice bench …`. Workloads, and how many subscribers (or rooms) each has by default:

"""
    + _WORKLOAD_LIST
    + """

For example:

    sluice bench relay fanout --subscribers 200

    sluice bench relay rooms --subscribers 50 --profile gcm --json

    sluice bench relay fanout --find-knee --plot knee.png

    sluice bench relay fanout --peer janus --rounds 3
""",
)


class GeneratorMissing(SluiceError):
    """The load generator, which is compiled code, is missing."""

    code = "generator-missing"

    detail: str

    def sentence(self) -> str:
        return (
            f"the load generator is not compiled ({self.detail}): install gcc and python3-dev, "
            "then `pip install --force-reinstall --no-deps -e .`"
        )


def require_generator() -> None:
    """Raises `GeneratorMissing`."""
    try:
        import_module("bench.generator.compiled")
    except ImportError as error:
        raise GeneratorMissing(detail=str(error)) from None


@app.default
def relay(workload: str = "fanout", *, settings: RelaySettings = DEFAULT) -> int:
    """Measure one workload.

    Parameters
    ----------
    workload
        What is published to whom.
    """
    settings.check(workload)
    require_generator()
    if settings.plot is not None:
        check_plot(settings.plot)
    # These need the generator; without it `--help` should still work.
    from bench.relay.rounds import measure_rounds, search

    cores = split_cores()
    for warning in warnings(cores):
        err.print(f"[yellow]warning:[/yellow] {warning}")
    if settings.find_knee:
        show_knees(workload, settings, uvloop.run(search(workload, settings, cores, say=step)))
    else:
        show_report(settings, uvloop.run(measure_rounds(workload, settings, cores, say=step)))
    return 0


def show_report(settings: RelaySettings, servers: Sequence[RelayFigures]) -> None:
    """Ours, and the other server's where there is one."""
    ours, peer = servers[0], servers[1] if len(servers) > 1 else None
    if settings.plot is not None:
        draw(plot_run(servers), settings.plot)
    if settings.json:
        print_json(report_json(ours, peer))
    else:
        out.print(report_text(ours, peer), markup=False)


def show_knees(workload: str, settings: RelaySettings, knees: Sequence[tuple[str, Knee]]) -> None:
    if settings.plot is not None:
        draw(plot_knees(workload, unit(workload), knees), settings.plot)
    if settings.json:
        print_json(knee_json(workload, knees))
    else:
        out.print("\n\n".join(knee_text(server, unit(workload), knee) for server, knee in knees), markup=False)
