"""A slow reader is closed and never slows the others (invariant 10)."""

from __future__ import annotations

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from sfu.shell.outbox import MAX_BUFFERED, PlayerOutbox
from shared.messages.player import Failed
from tests.fakes.rtc_peer import until

BIG = Failed(code="x", message="m" * 64_000)


@pytest.mark.process
async def test_a_reader_that_reads_nothing_is_closed_and_the_others_get_everything() -> None:
    outboxes: list[PlayerOutbox] = []
    connections: list[ServerConnection] = []

    async def handler(websocket: ServerConnection) -> None:
        outboxes.append(PlayerOutbox(websocket))
        connections.append(websocket)
        await websocket.wait_closed()

    async with serve(handler, "127.0.0.1", 0, compression=None, close_timeout=1) as server:
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with connect(url, compression=None) as slow, connect(url, compression=None, max_queue=None) as quick:
            await until(lambda: len(outboxes) == 2)
            slow.transport.pause_reading()
            received = 0
            sent = 0
            while not outboxes[0].closed:
                assert sent < 1000, "the bound was never reached"
                for outbox in outboxes:
                    outbox.send(BIG)
                sent += 1
                while received < sent:
                    await quick.recv()
                    received += 1
            assert connections[0].transport.get_write_buffer_size() <= MAX_BUFFERED + 70_000
            assert not outboxes[1].closed
            await outboxes[0].wait_closed(within_s=20)
            await until(lambda: connections[0].close_code is not None)
            slow.transport.abort()


async def test_nothing_is_sent_after_closing() -> None:
    async def handler(websocket: ServerConnection) -> None:
        outbox = PlayerOutbox(websocket)
        outbox.send(Failed(code="last"))
        outbox.close(4011, "refused")
        outbox.close(4001, "again")
        outbox.send(Failed(code="too late"))
        await websocket.wait_closed()

    async with serve(handler, "127.0.0.1", 0, compression=None) as server:
        websocket = await connect(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", compression=None)
        assert '"last"' in str(await websocket.recv())
        with pytest.raises(ConnectionClosed):
            await websocket.recv()
        assert websocket.close_code == 4011
