"""What the plane tells: a publication flows, and the first packet forwarded shows that the SFU can carry calls (A5)."""

from __future__ import annotations

from collections.abc import Collection

from sfu.plane.api import Address, ConsumerFlowing, Event, ProducerFlowing
from sfu.shell.parts import SfuParts
from sfu.shell.reporting import Reporting
from sfu.shell.router_link import RouterLinks
from shared.messages.link import SfuReport, pack_state


class PlaneNews:
    """Takes the plane's facts. Silence and BYE end nothing: a muted or paused track is still published."""

    def __init__(self, parts: SfuParts, reports: Reporting, links: RouterLinks) -> None:
        self._parts = parts
        self._reports = reports
        self._links = links

    def take(self, events: Collection[Event]) -> None:
        """Facts of players and of probe calls; those of a probe call are of no consequence here."""
        for event in events:
            match event:
                case ProducerFlowing():
                    self._flowing(event.producer)
                case ConsumerFlowing() if not self._reports.state.warmed_up and event.consumer in self._parts.consumers:
                    self._warmed_up(by="player")

    def proved(self, address: Address) -> None:
        """A probe call went through an announced address."""
        self._warmed_up(by="probe", address=f"{address[0]}:{address[1]}")

    def _flowing(self, producer: int) -> None:
        found = self._parts.producers.get(producer)
        if found is not None:
            player, publication = found
            player.publications[publication].flowing = True
            player.tell_flowing(publication)

    def _warmed_up(self, **facts: str) -> None:
        if self._reports.reach("first_packet_s", **facts):
            self._links.send(SfuReport(state=pack_state(self._reports.refresh())))
