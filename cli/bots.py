"""`sluice bots`: simulated players, in the fleet that runs here unless another one is named."""

from __future__ import annotations

from dataclasses import replace

from client_sim.__main__ import bots_command
from client_sim.config import BotsConfig
from localfleet import runfiles
from shared.host.state import state_directory

ROUTER = "ws://127.0.0.1:7000"
"""Of a router that was started by hand with its defaults."""


def bots(config: BotsConfig | None = None, *, fleet: str = "") -> int:
    """Join simulated players with real media, and report gaps, moves and losses.

    They join the fleet that `sluice up` runs here, or the one whose routers and secret are given:

        sluice bots --bots 6

        sluice bots --routers wss://a.example.org wss://b.example.org

    Ends with status 1 when a player was cut: evicted, without an SFU at the end, or with a connection that failed.

    Parameters
    ----------
    fleet
        Name of the fleet, when several run here.
    """
    return bots_command(find(config or BotsConfig(), fleet=fleet))


def find(config: BotsConfig, *, fleet: str) -> BotsConfig:
    """The settings with what was not given: routers and secret of the fleet that runs here, if one does."""
    if config.routers:
        return config
    run = runfiles.choose(fleet, where=state_directory())
    if run is None:
        return replace(config, routers=(ROUTER,))
    routers = tuple(router.ws for router in run.routers)
    return replace(config, routers=routers, secret=config.secret or run.secret)
