# cython: language_level=3, cdivision=True, wraparound=False
"""A load generator cheap enough to share two cores with what it measures: hundreds of publishers and subscribers on one
socket, each with an address of its own, in one thread that never takes the GIL.

The thread sends each publisher's frames when they are due, protected by the plane's own SRTP, and receives for all
subscribers. Handshakes are Python's: what is no media is queued for it.
"""

from pylibsrtp._binding import ffi

from sfu.plane.symbols import find_symbols
from shared.rtc.srtp import SrtpProfile, SrtpSession

include "../../sfu/plane/native/system.pxi"
include "../../sfu/plane/native/table.pxi"
include "../../sfu/plane/native/crypto.pxi"
include "../../sfu/plane/native/srtp.pxi"
include "native/kernel.pxi"
include "native/send.pxi"
include "native/receive.pxi"
include "native/floor.pxi"

resolve_crypto(find_symbols())

cdef enum:
    BATCHES = 4                 # received between two looks at the schedule
    QUANTUM_NS = 250000         # frames due within it are sent together, a little late
    NAP_NS = 500000             # longest time off the socket


cdef uint32_t host_number(str address) except 0:
    one, two, three, four_ = (int(part) for part in address.split("."))
    return one << 24 | two << 16 | three << 8 | four_


cdef int fill_cycle(Cycle *cycle, frames, int extra) except -1:
    """Packet lengths per frame, each `extra` bytes longer than given."""
    cdef int at = 0
    cycle.count = <int>len(frames)
    cycle.ends = <int *>malloc(cycle.count * sizeof(int))
    cycle.lengths = <int *>malloc(sum(len(frame) for frame in frames) * sizeof(int))
    if cycle.ends == NULL or cycle.lengths == NULL:
        raise MemoryError
    for number, frame in enumerate(frames):
        for length in frame:
            if not HEAD + TAIL <= length <= MAX_PAYLOAD:
                raise ValueError(f"a payload of {length} bytes")
            cycle.lengths[at] = length + extra
            at += 1
        cycle.ends[<int>number] = at
    return 0


cdef class Generator:
    """`hosts` subscribers have the addresses from `first_host` on; see the `.pyi` for the rest."""

    cdef Sending sending
    cdef Receiving receiving
    cdef pthread_mutex_t mutex  # over the tables of the sending half
    cdef bint stopping
    cdef list sessions          # libsrtp's, of publishers that need it

    def __cinit__(self, int fd, uint32_t first_host, int hosts, int watched, *, bint gso=False, bint gro=False):
        cdef int on = 1
        pthread_mutex_init(&self.mutex, NULL)
        self.sessions = []
        self.sending.fd = self.receiving.fd = fd
        self.sending.gso = gso
        self.receiving.first_host = first_host
        self.receiving.hosts = self.receiving.timed = hosts
        self.receiving.watched = watched
        self.receiving.gro = gro
        self.receiving.sending = &self.sending
        self.receiving.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)
        if self.receiving.event_fd < 0:
            raise OSError(errno, "no eventfd for the generator")
        if sending_open(&self.sending) < 0 or receiving_open(&self.receiving) < 0:
            raise MemoryError
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(int))
        if gro and setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof(int)) < 0:
            raise OSError(errno, "the kernel has no UDP_GRO")

    def __dealloc__(self):
        sending_close(&self.sending)
        receiving_close(&self.receiving)

    # -- the thread

    def run(self):
        cdef int64_t next, now
        cdef int batch, count
        cdef timespec nap
        nap.tv_sec = 0
        pthread_setname_np(pthread_self(), b"sluice-load")
        with nogil:
            while not self.stopping:
                pthread_mutex_lock(&self.mutex)
                next = send_due(&self.sending, monotonic_ns())
                pthread_mutex_unlock(&self.mutex)
                count = RECEIVED
                batch = 0
                while count == RECEIVED and batch < BATCHES:
                    count = receive(&self.receiving)
                    batch += 1
                if count == RECEIVED:
                    continue
                # Off the socket: a receiver that waits on it is woken by the sender, packet by packet, on the sender's
                # account; receivers on other machines are not.
                now = monotonic_ns()
                nap.tv_nsec = <long>min(max(next - now, <int64_t>QUANTUM_NS), <int64_t>NAP_NS)
                ppoll(NULL, 0, &nap, NULL)

    def stop(self):
        self.stopping = True

    @property
    def event_fd(self):
        return self.receiving.event_fd

    def datagrams(self):
        cdef uint64_t told
        cdef int at
        with nogil:
            pthread_mutex_lock(&self.receiving.raw_mutex)
        try:
            taken = [
                (self.receiving.raws[at].host, self.receiving.raws[at].bytes[: self.receiving.raws[at].length])
                for at in range(self.receiving.raw_count)
            ]
            self.receiving.raw_count = 0
            if self.receiving.told:
                read(self.receiving.event_fd, &told, 8)
                self.receiving.told = False
        finally:
            pthread_mutex_unlock(&self.receiving.raw_mutex)
        return taken

    # -- publishers

    def add_publisher(self, uint32_t host, server, keys):
        cdef Publisher *publisher = <Publisher *>calloc(1, sizeof(Publisher))
        cdef Publisher **grown
        cdef bytes key = keys.tx_key, salt = keys.tx_salt
        if publisher == NULL:
            raise MemoryError
        publisher.host = host
        four(&publisher.server, host_number(server[0]), server[1])
        if direct_gcm and keys.profile is not SrtpProfile.AES128_CM_SHA1_80:
            # Receiving keys are not used: what comes back to a publisher is left to Python.
            if srtp_set_gcm(&publisher.keys, key, key, <int>len(key), salt, salt) < 0:
                free(publisher)
                raise MemoryError
        else:
            session = SrtpSession(keys)
            self.sessions.append(session)
            publisher.keys.srtp_tx = <void *><uintptr_t>int(ffi.cast("uintptr_t", session._tx._srtp[0]))
        pthread_mutex_lock(&self.mutex)
        grown = <Publisher **>realloc(self.sending.publishers, (self.sending.publisher_count + 1) * sizeof(void *))
        if grown != NULL:
            self.sending.publishers = grown
            grown[self.sending.publisher_count] = publisher
            self.sending.publisher_count += 1
        pthread_mutex_unlock(&self.mutex)
        if grown == NULL:
            free(publisher)
            raise MemoryError
        return self.sending.publisher_count - 1

    def add_track(
        self, int publisher, *, uint32_t ssrc, int payload_type, str mid, int sequence, int first_frame,
        int64_t interval_ns, int64_t phase_ns, frames,
    ):
        cdef Track *track
        cdef Track **tracks
        cdef int64_t *dues
        cdef bytes name = mid.encode()
        cdef int kind = 1 if payload_type == VIDEO else 0
        cdef uint32_t remainder, first = 0
        if not 0 <= publisher < self.sending.publisher_count:
            raise ValueError(f"no publisher {publisher}")
        if not 1 <= len(name) <= 16 or not frames or interval_ns <= 0:
            raise ValueError("a track needs a MID of 1 to 16 bytes, frames and an interval")
        track = <Track *>calloc(1, sizeof(Track))
        if track == NULL:
            raise MemoryError
        track.publisher = publisher
        track.payload_type = payload_type
        track.ssrc = ssrc
        track.index = sequence
        track.ticks = VIDEO_TICKS if payload_type == VIDEO else AUDIO_TICKS
        track.interval_ns = interval_ns
        block = bytes([0x22, 0, 0, 0, 0x40 | (len(name) - 1)]) + name
        block += bytes(-len(block) & 3)
        block = b"\xbe\xde" + (len(block) // 4).to_bytes(2, "big") + block
        track.block_length = <int>len(block)
        memcpy(track.block, <const uint8_t *><bytes>block, track.block_length)
        try:
            fill_cycle(&track.cycle, frames, 0)
        except BaseException:
            cycle_free(&track.cycle)
            free(track)
            raise
        pthread_mutex_lock(&self.mutex)
        tracks = <Track **>realloc(self.sending.tracks, (self.sending.track_count + 1) * sizeof(void *))
        if tracks != NULL:
            self.sending.tracks = tracks
        dues = <int64_t *>realloc(self.sending.dues, (self.sending.track_count + 1) * sizeof(int64_t))
        if dues != NULL:
            self.sending.dues = dues
        if tracks != NULL and dues != NULL:
            tracks[self.sending.track_count] = track
            dues[self.sending.track_count] = phase_ns
            remainder = self.sending.timed_count[kind] % track.ticks
            self.sending.timed[kind][remainder] = track
            self.sending.timed_count[kind] += 1
            first = track.timestamp = first_frame * track.ticks + remainder
            self.sending.track_count += 1
        pthread_mutex_unlock(&self.mutex)
        if tracks == NULL or dues == NULL:
            cycle_free(&track.cycle)
            free(track)
            raise MemoryError
        return first

    def go(self):
        cdef int64_t now
        cdef int at
        pthread_mutex_lock(&self.mutex)
        if not self.sending.on:
            now = monotonic_ns()
            for at in range(self.sending.track_count):
                self.sending.dues[at] += now - self.sending.held
            self.sending.on = True
        pthread_mutex_unlock(&self.mutex)

    def hold(self):
        pthread_mutex_lock(&self.mutex)
        if self.sending.on:
            self.sending.held = monotonic_ns()
            self.sending.on = False
        pthread_mutex_unlock(&self.mutex)

    # -- counters: single words, read as they are

    def sent(self):
        cdef Sending *s = &self.sending
        return s.packets, s.octets, s.frames, s.late, s.refused

    def sent_by(self):
        return {self.sending.tracks[at].ssrc: self.sending.tracks[at].sent for at in range(self.sending.track_count)}

    def flows(self):
        cdef int at, one
        cdef Flow *flow
        told = []
        for at in range(self.receiving.hosts):
            for one in range(self.receiving.subscribers[at].flow_count):
                flow = &self.receiving.subscribers[at].flows[one]
                told.append((at, flow.ssrc, flow.packets, flow.octets, flow.highest, flow.fresh))
        return told

    def shift(self, int subscriber, uint32_t ssrc, uint32_t by):
        cdef Subscriber *known
        if not 0 <= subscriber < self.receiving.hosts:
            raise ValueError(f"no subscriber {subscriber}")
        known = &self.receiving.subscribers[subscriber]
        if known.shift_count == FLOWS:
            raise ValueError(f"more than {FLOWS} streams")
        known.shifts[known.shift_count] = Shift(ssrc, by)
        known.shift_count += 1

    def time_only(self, int first):
        self.receiving.timed = min(first, self.receiving.hosts)

    @property
    def untimed(self):
        return self.receiving.untimed

    def arrivals(self):
        cdef int at
        return [
            ((at + 1) * DELAY_STEP_NS // 1000, self.receiving.delays[at])
            for at in range(DELAYS) if self.receiving.delays[at]
        ]

    @property
    def overlooked(self):
        return self.receiving.overflown + self.receiving.foreign


def send_floor(int fd, uint32_t first_host, int port, streams, double seconds, *, bint gso, int overhead):
    cdef Floor *f = <Floor *>calloc(1, sizeof(Floor))
    cdef Stream *stream
    cdef int at, one
    if f == NULL:
        raise MemoryError
    try:
        f.first_host = first_host
        f.port = port
        f.out.fd = fd
        f.out.gso = gso
        f.streams = <Stream *>calloc(len(streams) + 1, sizeof(Stream))
        if sending_open(&f.out) < 0 or f.streams == NULL:
            raise MemoryError
        for at, (interval_ns, phase_ns, ticks, frames, destinations) in enumerate(streams):
            stream = &f.streams[at]
            f.stream_count += 1
            stream.interval_ns, stream.due, stream.ticks, stream.ssrc = interval_ns, phase_ns, ticks, 1000 + at
            fill_cycle(&stream.cycle, frames, overhead)
            stream.destination_count = <int>len(destinations)
            stream.destinations = <int *>malloc((len(destinations) + 1) * sizeof(int))
            stream.sequences = <uint16_t *>calloc(len(destinations) + 1, sizeof(uint16_t))
            if stream.destinations == NULL or stream.sequences == NULL:
                raise MemoryError
            for one in range(stream.destination_count):
                stream.destinations[one] = destinations[one]
        with nogil:
            floor_for(f, <int64_t>(seconds * 1e9))
        return f.out.packets, f.sends, f.out.refused
    finally:
        for at in range(f.stream_count):
            cycle_free(&f.streams[at].cycle)
            free(f.streams[at].destinations)
            free(f.streams[at].sequences)
        free(f.streams)
        free(f.out.bytes)
        free(f)
