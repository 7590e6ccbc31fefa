"""A real Firefox, driven over WebDriver BiDi: a page with as much of Playwright's interface as `Person` uses."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import ParseResult, urlparse

from playwright.async_api import BrowserContext
from websockets.asyncio.client import ClientConnection, connect

from tests.browser.network import Network
from tests.fakes.needed import need_installed

STARTED_WITHIN_S = 60.0
ANSWERED_WITHIN_S = 60.0
PREFERENCES: dict[str, bool | int | str] = {
    "media.autoplay.default": 0,
    "media.autoplay.blocking_policy": 0,
    "dom.timeout.enable_budget_timer_throttling": False,
    "dom.min_background_timeout_value": 4,
    # It is to talk to us only.
    "app.update.auto": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "media.gmp-manager.updateEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,#remote-settings-dummy/v1",
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}


def find_firefox() -> str:
    """Debian's Firefox, or any; without one the test is left out."""
    executable = shutil.which("firefox-esr") or shutil.which("firefox")
    need_installed(executable, "Firefox", "apt-get install firefox-esr")
    assert executable is not None
    return executable


class FirefoxPage:
    """One tab."""

    def __init__(self, firefox: Firefox, context: str) -> None:
        self._firefox = firefox
        self._context = context

    def on(self, event: str, handler: Callable[[Any], None]) -> None:
        """`pageerror` only: what scripts throw and do not catch."""
        assert event == "pageerror"
        self._firefox.error_handlers[self._context] = handler

    async def add_init_script(self, script: str) -> None:
        """Run this in the tab before any script of a page."""
        function = f"() => {{ {script} }}"
        await self._firefox.call("script.addPreloadScript", functionDeclaration=function, contexts=[self._context])

    async def goto(self, url: str) -> None:
        """Load a page and wait until it is complete."""
        await self._firefox.call("browsingContext.navigate", context=self._context, url=url, wait="complete")

    async def evaluate(self, script: str, argument: Any = None) -> Any:
        """The value of an expression, or of a function called with `argument`."""
        function = f"""async (argument) => {{
            const it = ({script});
            const value = typeof it === "function" ? await it(JSON.parse(argument)) : await it;
            return JSON.stringify(value) ?? "null";
        }}"""
        answer = await self._firefox.call(
            "script.callFunction",
            functionDeclaration=function,
            awaitPromise=True,
            target={"context": self._context},
            arguments=[{"type": "string", "value": json.dumps(argument)}],
        )
        if answer["type"] == "exception":
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])


class Firefox:
    """The browser behind its BiDi websocket."""

    def __init__(self, websocket: ClientConnection) -> None:
        self.error_handlers: dict[str, Callable[[Any], None]] = {}
        self._websocket = websocket
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def new_page(self) -> FirefoxPage:
        """An empty tab."""
        return FirefoxPage(self, (await self.call("browsingContext.create", type="tab"))["context"])

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command and its answer. Raises `RuntimeError` with the browser's words."""
        number = next(self._ids)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._websocket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        async with asyncio.timeout(ANSWERED_WITHIN_S):
            return await answer

    async def read(self) -> None:
        """Take in answers and events, until the browser ends."""
        async for frame in self._websocket:
            message = json.loads(frame)
            if message["type"] == "event":
                self._handle(message["params"])
            elif (answer := self._waiting.pop(message["id"], None)) is not None and not answer.done():
                if message["type"] == "error":
                    answer.set_exception(RuntimeError(f"{message['error']}: {message['message']}"))
                else:
                    answer.set_result(message["result"])

    def _handle(self, entry: dict[str, Any]) -> None:
        handler = self.error_handlers.get(entry.get("source", {}).get("context", ""))
        if handler is not None and entry.get("type") == "javascript" and entry.get("level") == "error":
            handler(entry["text"])


@asynccontextmanager
async def open_firefox(executable: str, network: Network) -> AsyncIterator[BrowserContext]:
    """A headless Firefox in this network, with a profile of its own, gone afterwards. It finds no way to an SFU on
    loopback, hence the network. What is given is a `Firefox`; `Person.join` may use it as a `BrowserContext`."""
    with tempfile.TemporaryDirectory(prefix="sluice-firefox-", ignore_cleanup_errors=True) as profile:
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items()]
        (Path(profile) / "user.js").write_text("\n".join(lines))
        flags = ("--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank")
        process = await asyncio.create_subprocess_exec(
            *network.command(executable), *flags, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        assert process.stderr is not None
        try:
            async with asyncio.timeout(STARTED_WITHIN_S):
                url = await _address(process.stderr)
            rest = asyncio.create_task(_discard(process.stderr))
            sock = await network.connected(url.port or 0)
            async with connect(f"{url.geturl()}/session", sock=sock, max_size=None) as websocket:
                firefox = Firefox(websocket)
                reader = asyncio.create_task(firefox.read())
                await firefox.call("session.new", capabilities={})
                await firefox.call("session.subscribe", events=["log.entryAdded"])
                try:
                    yield cast(BrowserContext, firefox)
                finally:
                    reader.cancel()
                    rest.cancel()
        finally:
            process.terminate()
            await process.wait()


async def _address(stderr: asyncio.StreamReader) -> ParseResult:
    said = b""
    async for line in stderr:
        said += line
        if found := re.search(rb"WebDriver BiDi listening on (ws://\S+)", line):
            return urlparse(found[1].decode())
    raise RuntimeError(f"Firefox ended at its start: {said.decode(errors='replace')[-500:]}")


async def _discard(stderr: asyncio.StreamReader) -> None:
    while await stderr.read(65536):
        pass
