"""`sluice capacity`: how many forwarded streams this machine holds, as ceilings for SFUs and the autoscaler (A2)."""

from __future__ import annotations

import time

import uvloop

from bench.capacity.file import write
from bench.capacity.host import default_interface, egress_ceiling, read_host, read_interface
from bench.capacity.plot import plot_finding
from bench.capacity.settings import CapacitySettings
from bench.capacity.text import CapacityReport, caveats, ceilings, report_json, report_text, story
from bench.machine import split_cores, warnings
from bench.plot import check_plot, draw
from cli.bench_relay import require_generator
from cli.output import err, out, print_json, step
from shared.errors import BadSetting
from shared.host.files import raise_open_files

DEFAULT = CapacitySettings()


def capacity(*, settings: CapacitySettings = DEFAULT) -> int:
    """Find the ceilings of an SFU on this machine, and write them as settings.

    A real SFU (signalling, ICE, DTLS, SRTP) runs on one core, and on another a generator that stands for its players.
    The forwarded streams are raised in steps of 100 until one packet in a hundred takes longer than 3 ms, more than
    0.1 % are lost, or the SFU uses more than 85 % of its core; a step that breaks is tried again before it counts.
    `stream_ceiling` is 80 % of where it broke, `egress_ceiling_mbps` 70 % of the network interface.

    Leave the machine alone meanwhile, or give it priority over other programs with `chrt -r 5`. What a stream costs
    depends on what it carries: say what your players do.

        sluice capacity

        sluice capacity --quick --interface-mbps 10000 --sfus 8

        sluice capacity --cameras 0.5 --kbps 1200 --room-size 12

        sluice capacity --out sfu.env --out ceilings.toml --plot capacity.png

    SFUs take the `.env` file (`docker run --env-file`, systemd's `EnvironmentFile=`); the lines of the `.toml` file
    go into the autoscaler's.
    """
    settings.check()
    require_generator()
    if settings.plot is not None:
        check_plot(settings.plot)
    from bench.capacity.run import find  # needs the generator; without it `--help` should still work

    interface = read_interface(settings.interface or default_interface())
    if settings.interface and interface is None:
        raise BadSetting(setting="--interface", detail=f"there is no {settings.interface!r} here; see `ip link`")
    egress = egress_ceiling(interface, told_mbps=settings.interface_mbps, sfus=settings.sfus)
    cores = split_cores()
    for warning in warnings(cores):
        err.print(f"[yellow]warning:[/yellow] {warning}")
    raise_open_files()
    host = read_host(cores.both)
    finding = uvloop.run(find(settings, cores, say=step))
    report = CapacityReport(finding=finding, egress=egress, host=host, settings=settings, at=time.time())
    for path in settings.out:
        write(path, ceilings(report), story(report))
    if settings.plot is not None:
        draw(plot_finding(report), settings.plot)
    for caveat in caveats(report):
        err.print(f"[yellow]warning:[/yellow] {caveat}")
    if settings.json:
        print_json(report_json(report))
    else:
        out.print(report_text(report, settings.out), markup=False)
    return 0
