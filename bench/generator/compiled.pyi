"""The load generator, as Python sees it."""

from collections.abc import Sequence

from shared.rtc.srtp import SrtpKeys

Frames = Sequence[Sequence[int]]
"""The payload lengths [bytes] of each frame's packets; a track sends these frames over and over."""

class Generator:
    """Subscriber number n has the address `first_host` + n, as far as `hosts`; media for the first `watched` goes to
    Python too. `gso`: a publisher's frame goes to the kernel as one; `gro`: received runs come as one."""

    def __init__(
        self, fd: int, first_host: int, hosts: int, watched: int, *, gso: bool = False, gro: bool = False
    ) -> None:
        """Raises `OSError` when the kernel lacks something, `MemoryError`."""

    def run(self) -> None:
        """Send and receive without the GIL until `stop`: have a thread call it."""

    def stop(self) -> None: ...
    @property
    def event_fd(self) -> int:
        """Readable when `datagrams` has something."""

    def datagrams(self) -> list[tuple[int, bytes]]:
        """`(destination host, datagram)` of what came that is no media, and of the watched subscribers' media."""

    def add_publisher(self, host: int, server: tuple[str, int], keys: SrtpKeys) -> int:
        """A sender from `host` to `server`; returns its number for `add_track`."""

    def add_track(
        self,
        publisher: int,
        *,
        ssrc: int,
        payload_type: int,
        mid: str,
        sequence: int,
        first_frame: int,
        interval_ns: int,
        phase_ns: int,
        frames: Frames,
    ) -> int:
        """One frame each `interval_ns`, the first `phase_ns` after `go`. Returns the first RTP timestamp.

        RTP timestamps count 3000 (VP8) or 960 (Opus) a frame, from `first_frame` of them on."""

    def go(self) -> None:
        """Begin to send, or go on after `hold`, with the frames that were due next; else do nothing."""

    def hold(self) -> None:
        """Send nothing more until `go`."""

    def sent(self) -> tuple[int, int, int, int, int]:
        """`(packets, bytes, frames, frames sent over 2 ms late, packets refused by the kernel)`."""

    def sent_by(self) -> dict[int, int]:
        """Packets that the kernel took, by the SSRC of their track."""

    def flows(self) -> list[tuple[int, int, int, int, int, int]]:
        """`(subscriber, ssrc, packets, bytes, highest, fresh)` of each stream.

        `highest` is an extended sequence number; `fresh` packets have a published payload type and came for the first
        time (one over 63 late seems a repetition)."""

    def shift(self, subscriber: int, ssrc: int, by: int) -> None:
        """Before the first packet of a stream: its RTP timestamps are the published ones less `by`."""

    def time_only(self, first: int) -> None:
        """From now on `arrivals` is of the first so many subscribers."""

    def arrivals(self) -> list[tuple[int, int]]:
        """`(upper bound [us], packets)`: how long after its frame was sent each packet came.

        By its RTP timestamp and the kernel's receive time-stamp."""

    @property
    def untimed(self) -> int:
        """Packets whose RTP timestamp is not their publisher's."""

    @property
    def overlooked(self) -> int:
        """Datagrams that were neither counted nor given to Python."""

def send_floor(
    fd: int,
    first_host: int,
    port: int,
    streams: Sequence[tuple[int, int, int, Frames, Sequence[int]]],
    seconds: float,
    *,
    gso: bool,
    overhead: int,
) -> tuple[int, int, int]:
    """Send `(interval_ns, phase_ns, ticks, frames, subscriber numbers)` streams of plain bytes for a while.

    Frames are payload lengths; `overhead` is what a packet has besides. Returns packets, sends, and packets refused.
    """
