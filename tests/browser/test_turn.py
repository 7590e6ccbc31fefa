"""A call whose media goes through a real TURN server over TCP, as from a network that lets no UDP through (M10)."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import BrowserContext

from localfleet.fleet import Fleet, FleetSpec
from tests.browser.room import Person, until
from tests.fakes.needed import need_installed

pytestmark = pytest.mark.asyncio(loop_scope="session")

SECRET = "a secret that coturn and the routers share"
SELECTED = """async () => (await Promise.all(openedPeers.map((each) => each.getStats()))).flatMap((stats) => {
    const all = [...stats.values()];
    return all.filter((each) => each.type === "candidate-pair" && each.nominated).map((pair) => {
        const { candidateType, relayProtocol } = all.find((each) => each.id === pair.localCandidateId);
        return `${candidateType} ${relayProtocol}`;
    });
})"""


@asynccontextmanager
async def coturn(folder: Path) -> AsyncIterator[int]:
    """Debian's coturn on loopback, TCP only towards clients; gives its port."""
    executable = shutil.which("turnserver")
    need_installed(executable, "coturn", "apt-get install coturn")
    assert executable is not None
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    flags = (
        f"--listening-port={port} --listening-ip=127.0.0.1 --relay-ip=127.0.0.1 --no-udp --no-tls --no-dtls --no-cli "
        "--allow-loopback-peers --realm=sluice --use-auth-secret --log-file=stdout --simple-log --pidfile="
    ).split()
    own = [f"--static-auth-secret={SECRET}", f"--userdb={folder / 'turn.db'}", "-n"]
    log = (folder / "coturn.log").open("wb")
    process = await asyncio.create_subprocess_exec(executable, *flags, *own, stdout=log, stderr=log, cwd=folder)

    async def listens() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return False
        writer.close()
        return True

    try:
        await until(listens, "coturn listens", within_s=10)
        yield port
    finally:
        process.terminate()
        await process.wait()
        log.close()


async def test_two_people_talk_through_turn_over_tcp(browser: BrowserContext, tmp_path: Path) -> None:
    async with coturn(tmp_path) as port:
        url = f"turn:127.0.0.1:{port}?transport=tcp"
        flags = ("--dev-tokens", "--turn-urls", url, "--turn-secret", SECRET)
        async with Fleet(FleetSpec(routers=1, sfus=2, router_flags=flags)) as fleet:
            ada = await Person.join(browser, fleet.page, room="turn", name="Ada", relay=True)
            bob = await Person.join(browser, fleet.page, room="turn", name="Bob")
            for who in (ada, bob):
                await until(lambda who=who: _hears_and_sees(who), f"{who.name} hears and sees the other")

            ways = await ada.page.evaluate(SELECTED)
            assert set(ways) == {"relay tcp"}
            assert not await _refusals(tmp_path)

            home = await ada.home()
            assert home is not None
            fleet.signal_sfu(home, signal.SIGTERM)
            await until(lambda: _moved_from(ada, home), "Ada moves through TURN as well")
            await until(lambda: _hears_and_sees(ada), "Ada hears and sees on the other SFU")
            assert set(await ada.page.evaluate(SELECTED)) == {"relay tcp"}
            assert not ada.problems + bob.problems


async def _hears_and_sees(who: Person) -> bool:
    received = [each for each in await who.received() if each.packets > 20]
    return {each.kind for each in received if each.kind == "audio" or each.frames_decoded > 5} == {"audio", "video"}


async def _moved_from(who: Person, sfu: str) -> bool:
    return await who.home() not in (None, sfu)


async def _refusals(folder: Path) -> list[str]:
    """Lines of the server's log that tell of credentials it would not take."""
    lines = (folder / "coturn.log").read_text(errors="replace").splitlines()
    return [line for line in lines if "check_stun_auth" in line or "expired" in line]
