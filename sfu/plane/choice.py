"""Which plane runs: the compiled one when it can be loaded, the reference when that is asked for or all there is."""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import StrEnum

from sfu.plane.api import Address, Plane
from sfu.plane.reference import ReferencePlane

log = logging.getLogger("sfu.media")


class PlaneKind(StrEnum):
    """Values of the setting `plane` (`SLUICE_PLANE`)."""

    COMPILED = "compiled"
    """Its own thread, one socket, no Python per packet."""
    REFERENCE = "reference"
    """Readable Python, a hundred times as dear per packet."""


def make_plane(
    send: Callable[[bytes, Address], None], *, kind: PlaneKind = PlaneKind.COMPILED, gso: bool = True
) -> Plane:
    """The plane of that kind, or the reference where it can't be loaded; a log line says which one runs."""
    if kind is PlaneKind.REFERENCE:
        log.info("[media] the reference plane runs, as asked")
        return ReferencePlane(send=send)
    try:
        from sfu.plane.compiled import CompiledPlane
    except ImportError as error:
        log.warning("[media] the reference plane runs, because the compiled one can't be loaded: %s", error)
        return ReferencePlane(send=send)
    log.info("[media] the compiled plane runs%s", "" if gso else ", without GSO")
    return CompiledPlane(send=send, gso=gso)
