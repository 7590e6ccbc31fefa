# cython: language_level=3, cdivision=True, wraparound=False, initializedcheck=False
#
# No directive checks an index into a C pointer or array. What guards them: each length and count in a datagram is held
# against its size before it is used (rtp_parse and extension_next in rtp.pxi, body_length and rtcp_readable in
# rtcp.pxi, transport_deltas in transport_cc.pxi), rings are indexed modulo their size and tables by their mask, batches
# and extension blocks are checked for room where they are written. scripts/fuzz-asan.sh runs all of it under
# AddressSanitizer; the build has _FORTIFY_SOURCE and stack protectors (pyproject.toml) for what would slip through.
"""The compiled plane: the promises of `sfu.plane.reference`, kept in C structs by a thread that never takes the GIL.

Until `start` it works like the reference, one call at a time, through `handle` and `tick`; that is how the same tests
run over both. After `start` it owns a socket.

Each module of the reference has a native file of its name with the same rules. A rule's numbers are read from the
Python module when this one is imported; sizes of arrays must be known before that, and a test holds them equal.
"""

import os
import random
import socket

from cpython.ref cimport Py_DECREF, Py_INCREF
from pylibsrtp._binding import ffi

from sfu.plane.symbols import find_symbols
from shared.rtc.srtp import SrtpProfile, SrtpSession

# Of the platform: C library and kernel, tables, values, cryptography.
include "native/system.pxi"
include "native/table.pxi"
include "native/values.pxi"

cdef struct Engine

include "native/pktinfo.pxi"
include "native/crypto.pxi"
include "native/srtp.pxi"

cdef struct Peer
cdef struct Producer
cdef struct Encoding
cdef struct Consumer
include "native/drops.pxi"

# Formats, as shared.rtc.
include "native/rtp.pxi"
include "native/vp8.pxi"
include "native/h264.pxi"
include "native/rtcp.pxi"
include "native/transport_cc.pxi"

# Decisions, as sfu.core.media.
include "native/parameter_sets.pxi"
include "native/packet.pxi"
include "native/ring.pxi"
include "native/missing.pxi"
include "native/keyframes.pxi"
include "native/reports.pxi"
include "native/rewrite.pxi"
include "native/retransmit.pxi"
include "native/arrivals.pxi"
include "native/delivery.pxi"
include "native/addresses.pxi"
include "native/binder.pxi"
include "native/layers.pxi"

# What the plane is made of, as sfu.plane.
include "native/encoding.pxi"
include "native/producer.pxi"
include "native/consumer.pxi"
include "native/peer.pxi"
include "native/timers.pxi"
include "native/feedback.pxi"
include "native/transport_feedback.pxi"
include "native/entry.pxi"

# Its counters, its thread, its socket, and what Python's calls do.
include "native/api.pxi"
include "native/egress.pxi"
include "native/gso.pxi"
include "native/context.pxi"
include "native/thread.pxi"
include "native/control.pxi"

resolve_crypto(find_symbols())
table_seed = int.from_bytes(os.urandom(8), "little")


cdef uintptr_t session_address(object session) except 0:
    return <uintptr_t>int(ffi.cast("uintptr_t", session._srtp[0]))


cdef class CompiledPlane:
    """See `sfu.plane.api.SocketPlane` for the promises. `send` is used until `start`."""

    cdef Engine *engine
    cdef object send
    cdef object rng
    cdef dict used
    cdef dict incoming
    cdef tuple wanted
    cdef bint has_started

    def __cinit__(self, *, send=None, rng=None, gso=True, coalesce=True, pad=True):
        self.rng = rng or random.SystemRandom()
        self.send = send
        self.used = {}
        """Peer -> SSRC towards it -> the consumer it was used for."""
        self.incoming = {}
        """Producer -> its header extensions: id -> URI."""
        self.engine = <Engine *>malloc(sizeof(Engine))
        if self.engine == NULL or engine_open(self.engine, self.rng.randrange(1, 1 << 32)) < 0:
            raise MemoryError
        self.engine.gso = gso
        self.engine.coalesce = False
        self.engine.pad = False
        self.has_started = False
        self.wanted = (coalesce, pad)

    def __dealloc__(self):
        if self.engine != NULL:
            self._end()
            engine_forget(self.engine)
            self._let_go()
            engine_close(self.engine)
            free(self.engine)

    cdef int _act(self, Table *table, int64_t id, Act act, void *argument, double now) except -1:
        """Have an object do something, with the lock held; GONE where there is none. Raises `MemoryError`."""
        cdef Engine *engine = self.engine
        cdef int result
        with nogil:
            result = locked(engine, table, id, act, argument, now)
        if result == NO_ROOM:
            raise MemoryError
        return result

    cdef int _address(self, Address *address, given) except -1:
        """As `sfu.plane.api.Address` says. Raises `ValueError` for what is none."""
        cdef Address ours
        cdef Local local
        set_address(address, given)
        if len(given) > 2 and given[2].startswith("tcp/"):
            address.port |= STREAM_BIT | <uint64_t>int(given[2][4:]) << LOCAL_SHIFT
        elif len(given) > 2:
            set_address(&ours, (given[2], 0))
            local = Local(ours.high, ours.low, is_four(&ours))
            address.port |= <uint64_t>self._act(NULL, 0, on_local, &local, 0) << LOCAL_SHIFT
        return 0

    cdef int _end(self) except -1:
        """End the thread; the socket is its maker's again."""
        cdef uint64_t one = 1
        cdef Engine *engine = self.engine
        if not engine.threaded:
            return 0
        self._act(NULL, 0, on_stop, NULL, 0)
        with nogil:
            write(engine.wake_fd, &one, 8)
            pthread_join(engine.thread, NULL)
        engine.threaded = False
        engine.coalesce = False
        return 0

    cdef int _let_go(self) except -1:
        """Of sessions that no peer uses any more."""
        cdef Vector old
        cdef int at
        self._act(NULL, 0, take_old_sessions, &old, 0)
        for at in range(old.count):
            Py_DECREF(<object>old.items[at])
        vector_free(&old)
        return 0

    # -- the thread

    def start(self, int fd):
        """Own a bound UDP socket from now on. Raises `OSError`, or `RuntimeError` for a second start."""
        cdef Engine *engine = self.engine
        cdef int failed
        if self.has_started:
            raise RuntimeError("the plane has been started")
        sock = socket.socket(fileno=os.dup(fd))
        engine.six = sock.family == socket.AF_INET6
        engine.wild = sock.getsockname()[0] in ("0.0.0.0", "::")
        sock.close()
        engine.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)
        engine.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)
        if engine.wake_fd < 0 or engine.event_fd < 0:
            raise OSError(errno, "no eventfd for the plane")
        engine.fd = fd
        engine.coalesce, engine.pad = self.wanted
        with nogil:
            failed = plane_start(engine)
        if failed:
            engine.threaded = False
            close(engine.wake_fd)
            close(engine.event_fd)
            engine.wake_fd = engine.event_fd = -1
            raise OSError(failed, "the plane's thread was not started")
        self.has_started = True

    def stop(self):
        """End the thread and let the socket go; safe twice. Tables and counters stay."""
        self._end()

    @property
    def event_fd(self):
        """Readable when `events` or `datagrams` has something; -1 before `start`."""
        return self.engine.event_fd

    @property
    def gso(self):
        return bool(self.engine.gso)

    def datagrams(self):
        """What has arrived that is no media (STUN, DTLS), with its source, in order. Call it before `events`."""
        return self._take(take_raws)

    def streamed(self):
        """What is to be sent over TCP, with its connection, in order."""
        return self._take(take_streamed)

    cdef list _take(self, Act take):
        cdef Taken taken
        cdef Raw *raws
        cdef int at
        self._act(NULL, 0, take, &taken, 0)
        raws = <Raw *>taken.items
        told = []
        for at in range(taken.count):
            told.append((raws[at].bytes[:raws[at].length], get_asked(self.engine, &raws[at].address)))
            free(raws[at].bytes)
        free(raws)
        return told

    cdef int _done(self) except -1:
        """After a call that may have made datagrams: send them, or have the thread do it."""
        cdef Engine *engine = self.engine
        cdef Batch *batch = engine.batch
        cdef uint64_t one = 1
        cdef int at
        if engine.threaded:
            write(engine.wake_fd, &one, 8)
            return 0
        waiting = [
            (batch.bytes[batch.outs[at].offset:batch.outs[at].offset + batch.outs[at].length],
             get_asked(self.engine, &batch.destinations[batch.outs[at].destination].address))
            for at in range(batch.count)
        ]
        batch_reset(engine, batch)
        for datagram, address in waiting:
            self.send(datagram, address)
        return 0

    # -- peers

    def add_peer(self, int64_t peer):
        if peer in self.used:
            raise ValueError(f"peer {peer} exists")
        self._act(NULL, 0, on_add_peer, &peer, 0)
        self.used[peer] = {}

    def set_keys(self, int64_t peer, keys, *, address, double now):
        cdef NewKeys new
        cdef bytes rx = keys.rx_key, tx = keys.tx_key, rx_salt = keys.rx_salt, tx_salt = keys.tx_salt
        if peer not in self.used:
            return
        memset(&new, 0, sizeof(NewKeys))
        self._address(&new.address, address)
        new.rx, new.tx, new.rx_salt, new.tx_salt, new.length = rx, tx, rx_salt, tx_salt, <int>len(rx)
        if not direct_gcm or keys.profile is SrtpProfile.AES128_CM_SHA1_80:
            session = SrtpSession(keys)
            new.srtp_rx = <void *>session_address(session._rx)
            new.srtp_tx = <void *>session_address(session._tx)
            new.rx_policy = <void *><uintptr_t>int(ffi.cast("uintptr_t", session.rx_policy._policy))
            new.session = <void *>session
            # Ours until the plane has let go: not even the garbage collector may free it before.
            Py_INCREF(session)
        elif (new.length not in (16, 32)) or len(tx) != new.length or len(rx_salt) != 12 or len(tx_salt) != 12:
            raise ValueError(f"keys of {keys.profile.value} have another length")
        self._act(&self.engine.peers, peer, on_set_keys, &new, now)
        self._let_go()
        # Only SSRCs of consumers that are still there have been used with the new keys.
        self.used[peer] = {ssrc: one for ssrc, one in self.used[peer].items() if self._consumer_exists(one)}
        self._done()

    def add_address(self, int64_t peer, address, *, bint nominated, double now):
        cdef Shown shown
        self._address(&shown.address, address)
        shown.nominated = nominated
        self._act(&self.engine.peers, peer, on_add_address, &shown, now)
        self._done()

    def peer_at(self, address):
        cdef Found found
        self._address(&found.address, address)
        return found.peer if self._act(NULL, 0, on_peer_at, &found, 0) == 0 else None

    def address_of(self, int64_t peer):
        cdef Found found
        if self._act(&self.engine.peers, peer, on_address_of, &found, 0) != 0:
            return None
        return get_asked(self.engine, &found.address)

    def remove_peer(self, int64_t peer):
        self._act(&self.engine.peers, peer, on_remove_peer, NULL, 0)
        for producer in [one for one in self.incoming if not self._producer_exists(one)]:
            del self.incoming[producer]
        self._let_go()
        self.used.pop(peer, None)

    # -- tracks

    def produce(self, spec, *, double now):
        cdef NewProducer new
        cdef int at
        cdef bint handed_over = False
        if spec.producer in self.incoming:
            raise ValueError(f"producer {spec.producer} exists")
        if spec.peer not in self.used:
            return False
        memset(&new, 0, sizeof(NewProducer))
        for identifier, uri in spec.extensions.items():
            if uri == rtp.TRANSPORT_CC_URI and 0 < identifier < 256:
                new.transport_cc = identifier
        new.count = <int>len(spec.rids)
        new.rids = <Name *>calloc(new.count + 1, sizeof(Name))
        new.producer = <Producer *>calloc(1, sizeof(Producer))
        try:
            if new.rids == NULL or new.producer == NULL:
                raise MemoryError
            for at in range(new.count):
                set_name(&new.rids[at], spec.rids[at])
            fill_producer(new.producer, spec)
            handed_over = True
            self._act(&self.engine.peers, spec.peer, on_produce, &new, now)
        finally:
            free(new.rids)
            if not handed_over and new.producer != NULL:
                free(new.producer.known)
                free(new.producer)
        self.incoming[spec.producer] = dict(spec.extensions)
        return True

    def close_producer(self, int64_t producer):
        self._act(&self.engine.producers, producer, on_close_producer, NULL, 0)
        self.incoming.pop(producer, None)

    def consume(self, spec, *, double now):
        cdef NewConsumer new
        if self._consumer_exists(spec.consumer):
            raise ValueError(f"consumer {spec.consumer} exists")
        if spec.peer not in self.used or spec.producer not in self.incoming:
            return False
        used = self.used[spec.peer]
        for ssrc in spec.ssrcs:
            # A second stream under one SSRC would repeat SRTP indexes (RFC 7714 section 8.4).
            if ssrc in used or spec.ssrcs.count(ssrc) > 1:
                raise ValueError(f"SSRC {ssrc} has been used towards peer {spec.peer}")
        new.consumer = <Consumer *>calloc(1, sizeof(Consumer))
        if new.consumer == NULL:
            raise MemoryError
        new.peer = spec.peer
        try:
            fill_consumer(new.consumer, spec)
            # Under half the range: SRTP's rollover counter starts at 0 on both sides only if no early packet is lost.
            new.consumer.highest_out = 0x10000 + self.rng.randrange(0x4000)
            new.consumer.rtx_index = self.rng.randrange(0x4000)
            set_name(&new.codec, spec.codec.upper())
            fill_plan(&new.plan, self.incoming[spec.producer], spec.extensions)
        except BaseException:
            free(new.consumer)
            raise
        self._act(&self.engine.producers, spec.producer, on_consume, &new, now)
        used.update(dict.fromkeys(spec.ssrcs, spec.consumer))
        self._done()
        return True

    cdef bint _consumer_exists(self, int64_t consumer):
        """Python alone changes the tables, so it may look without the lock."""
        return table_get(&self.engine.consumers, <uint64_t>consumer, 0, 0) != NULL

    cdef bint _producer_exists(self, int64_t producer):
        return table_get(&self.engine.producers, <uint64_t>producer, 0, 0) != NULL

    def close_consumer(self, int64_t consumer):
        self._act(&self.engine.consumers, consumer, on_close_consumer, NULL, 0)

    def set_layer(self, int64_t consumer, rid, *, double now):
        cdef Wish wish
        wish.prefers = rid is not None
        set_name(&wish.rid, rid or "")
        self._act(&self.engine.consumers, consumer, on_set_layer, &wish, now)
        self._done()

    def pause(self, int64_t consumer, bint paused, *, double now):
        self._act(&self.engine.consumers, consumer, on_pause, &paused, now)
        self._done()

    def request_keyframe(self, int64_t producer, *, double now):
        self._act(&self.engine.producers, producer, on_request_keyframe, NULL, now)
        self._done()

    def follow_delivery(self, int64_t peer, bint wanted):
        self._act(&self.engine.peers, peer, on_follow_delivery, &wanted, 0)

    # -- datagrams and time, before the thread is started

    def handle(self, bytes datagram, address, *, double now):
        cdef uint8_t data[RECEIVE_ROOM]
        cdef const uint8_t *bytes_at = datagram
        cdef Datagram given
        given.data = data
        given.length = <int>min(len(datagram), RECEIVE_ROOM)
        self._address(&given.source, address)
        memcpy(data, bytes_at, given.length)
        self._act(NULL, 0, on_datagram, &given, now)
        self._done()

    def tick(self, *, double now):
        cdef Engine *engine = self.engine
        if engine.threaded:
            return
        timers_run(engine, now)
        self._done()

    def next_deadline(self):
        if self.engine.threaded or self.engine.timer_count == 0:
            return None
        return self.engine.timers[0].when

    # -- telling

    def events(self):
        cdef Taken taken
        cdef Event *events
        cdef int at
        self._act(NULL, 0, take_events, &taken, 0)
        events = <Event *>taken.items
        told = []
        for at in range(taken.count):
            told.append(make_event(&events[at]))
            free(events[at].packets)
        free(events)
        return told

    def snapshot(self):
        cdef Facts facts
        cdef int at, encodings = 0
        try:
            self._act(NULL, 0, take_facts, &facts, 0)
            producers = []
            for at in range(facts.producer_count):
                producers.append(make_producer(&facts.producers[at], &facts.encodings[encodings]))
                encodings += facts.producers[at].encodings
            return api.PlaneSnapshot(
                totals=make_totals(&facts),
                peers=tuple([make_peer(&facts.peers[at]) for at in range(facts.peer_count)]),
                producers=tuple(producers),
                consumers=tuple([make_consumer(&facts.consumers[at]) for at in range(facts.consumer_count)]),
            )
        finally:
            facts_free(&facts)

    def sending(self):
        cdef Engine *engine = self.engine
        cdef int at
        delays = [(delay_bound(at), engine.sent.delays[at]) for at in range(HISTOGRAM) if engine.sent.delays[at]]
        return engine.sent.sends, engine.sent.send_calls, engine.totals.wakes, delays
