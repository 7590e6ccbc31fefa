"""Every key, channel and lifetime in Redis. A fleet shares one hash tag, so scripts work on a Cluster."""

from __future__ import annotations

from dataclasses import dataclass

SFU_TTL_S = 45
"""Presence of an SFU is lost when no router has written it for this long (jicofo's 45 s)."""
NOT_PLACEABLE_AFTER_S = 5.0
"""An SFU not heard of for this long gets no new work, but is not dead (LiveKit)."""
ROUTER_TTL_S = 15
PLAYER_LEASE_S = 40
"""A player's place in its room outlives its router by more than the resume window of 25 s."""
ROOM_TTL_S = 120
"""A room's keys go when no player there was renewed for this long."""
COMMAND_TTL_S = 600
EXIT_TTL_S = 3600
DRAIN_REPORTS_KEPT = 1000
SCALING_RECORDS_KEPT = 1000
PLACEMENTS_KEPT = 2000
ROLL_TTL_S = 7 * 24 * 3600
"""A roll that nothing has written for a week is forgotten; a finished one is its own report until then."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The names of one fleet's keys; several fleets can share a Redis under different names."""

    fleet: str = "sluice"

    def _key(self, *parts: str) -> str:
        return ":".join((f"{{{self.fleet}}}", *parts))

    def sfu(self, sfu: str) -> str:
        """String: SfuState as JSON."""
        return self._key("sfu", sfu)

    def sfu_stamps(self, sfu: str) -> str:
        """Hash: incarnation, revision, started_at, cordoned_at, heard_at, removed; what scripts read without JSON."""
        return self._key("sfu", sfu, "stamps")

    @property
    def sfus(self) -> str:
        """Set: ids of SFUs that may have a record."""
        return self._key("sfus")

    def router(self, router: str) -> str:
        """String: RouterRecord."""
        return self._key("router", router)

    @property
    def routers(self) -> str:
        """Set: ids of routers that may have a record."""
        return self._key("routers")

    @property
    def since(self) -> str:
        """String: when the fleet's first router wrote to this Redis [Unix seconds]; its histories know no more. It ends
        with the histories, which have no lifetime either."""
        return self._key("since")

    def room(self, room: str) -> str:
        """Hash: `version`, `place`, `p:<player>`, `b:<publication>`, `o:<player>` (what it owns), `e:<identity>`."""
        return self._key("room", _part(room))

    def room_leases(self, room: str) -> str:
        """Sorted set, by Redis' clock [ms]: `p:<player>` -> end of its lease, `e:<identity>` -> when to forget it."""
        return self._key("room", _part(room), "leases")

    def in_flight(self, sfu: str) -> str:
        """String with a lifetime: what was placed on the SFU and its reports can't show yet (`lua/_inflight.lua`)."""
        return self._key("inflight", sfu)

    def tried(self, sfu: str, incarnation: int) -> str:
        """Sorted set by Redis' clock [ms]: players that were sent to this run of the SFU lately."""
        return self._key("tries", sfu, str(incarnation), "all")

    def failed(self, sfu: str, incarnation: int) -> str:
        """Sorted set by Redis' clock [ms]: those of them whose connection failed."""
        return self._key("tries", sfu, str(incarnation), "failed")

    @property
    def failing(self) -> str:
        """Hash: SFU -> `<incarnation> <until [ms]>` of those whose connections fail for many."""
        return self._key("failing")

    @property
    def placements(self) -> str:
        """List: PlacementRecord, newest first, capped."""
        return self._key("placements")

    @property
    def exits(self) -> str:
        """Hash: `<scope>:<target>` -> ExitOrder."""
        return self._key("exits")

    @property
    def commands(self) -> str:
        """Hash: SFU id -> SfuCommand, the newest."""
        return self._key("commands")

    @property
    def drain_reports(self) -> str:
        """List: DrainReport, newest first, capped."""
        return self._key("drain-reports")

    @property
    def scaling_lease(self) -> str:
        """Hash with a lifetime: `controller` and `token` of the controller that may scale (A7)."""
        return self._key("scaling", "lease")

    @property
    def scaling_token(self) -> str:
        """String: the newest fencing token; a write with another one is refused."""
        return self._key("scaling", "token")

    @property
    def scaling_state(self) -> str:
        """String: ScalingState."""
        return self._key("scaling", "state")

    @property
    def scaling_audit(self) -> str:
        """List: ScalingRecord, newest first, capped."""
        return self._key("scaling", "audit")

    @property
    def roll(self) -> str:
        """String: RollRecord of the roll that goes on, is paused, or was the last."""
        return self._key("roll")

    @property
    def roll_lease(self) -> str:
        """Hash with a lifetime: `controller` and `token` of the command that may go on with the roll."""
        return self._key("roll", "lease")

    @property
    def roll_token(self) -> str:
        """String: the newest fencing token of rolls."""
        return self._key("roll", "token")

    @property
    def roll_next(self) -> str:
        """String with the lifetime of the lease: ids of the SFUs that are still to be rolled, a JSON list."""
        return self._key("roll", "next")

    @property
    def wake(self) -> str:
        """Channel: hints that something changed; `sfu <id>`, `room <id>`, `exit`, `command <sfu>`. Never the truth."""
        return self._key("wake")


def _part(name: str) -> str:
    """A name that players choose as one part of a key: else the room `x:leases` would sit on the leases of room `x`."""
    return name.replace("%", "%25").replace(":", "%3A")
