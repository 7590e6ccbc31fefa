"""Stereo from one browser to another, before and after a move of its publisher."""

from __future__ import annotations

import secrets
import signal

import pytest
from playwright.async_api import BrowserContext

from localfleet.fleet import Fleet
from tests.browser.room import Person, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

PLAY_LEFT = """async () => {
    const context = new AudioContext();
    await context.resume();
    const [tone, merger, out] = [
      new OscillatorNode(context, { frequency: 440 }), new ChannelMergerNode(context, { numberOfInputs: 2 }),
      new MediaStreamAudioDestinationNode(context, { channelCount: 2 }),
    ];
    tone.connect(merger, 0, 0);
    merger.connect(out);
    tone.start();
    window.keptAlive = [context, tone, merger, out];
    sluice.publish(out.stream.getAudioTracks()[0], { stereo: true });
}"""
LEVELS = """async () => {
    const open = openedPeers.filter(({ connectionState }) => connectionState === "connected");
    const heard = open.flatMap((each) => each.getTransceivers())
      .filter(({ currentDirection, receiver }) => currentDirection === "recvonly" && receiver.track.kind === "audio");
    if (!heard.length) return null;
    const context = window.ears ??= new AudioContext();
    await context.resume();
    const source = context.createMediaStreamSource(new MediaStream([heard.at(-1).receiver.track]));
    const splitter = new ChannelSplitterNode(context, { numberOfOutputs: 2 });
    source.connect(splitter);
    const ears = [0, 1].map((channel) => {
      const ear = new AnalyserNode(context);
      splitter.connect(ear, channel);
      return ear;
    });
    await new Promise((resolve) => setTimeout(resolve, 300));
    const levels = ears.map((ear) => {
      const samples = new Float32Array(ear.fftSize);
      ear.getFloatTimeDomainData(samples);
      return Math.max(...samples.map(Math.abs));
    });
    source.disconnect();
    return levels;
}"""


async def test_a_stereo_publication_is_heard_in_stereo_and_stays_so_over_a_move(
    browser: BrowserContext, live: Fleet
) -> None:
    room = f"stereo-{secrets.token_hex(4)}"
    ada = await Person.join(browser, live.page, room=room, name="Ada", media="none")
    bob = await Person.join(browser, live.page, room=room, name="Bob", media="none")
    await ada.page.evaluate(PLAY_LEFT)

    async def only_the_left_ear() -> bool:
        levels = await bob.page.evaluate(LEVELS)
        return levels is not None and levels[0] > 0.2 and levels[1] < levels[0] / 4

    await until(only_the_left_ear, "Bob hears Ada on the left only")
    home = await ada.home()
    assert home is not None
    live.signal_sfu(home, signal.SIGTERM)

    async def moved() -> bool:
        return await ada.home() not in (None, home)

    await until(moved, "Ada has moved")
    await until(only_the_left_ear, "Bob hears her on the left only from the new SFU")
    assert ada.problems == bob.problems == []
