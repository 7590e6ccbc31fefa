# cython: language_level=3, cdivision=True, wraparound=False, initializedcheck=False
#
# No directive checks an index into a C pointer or array. What guards them: whatever a datagram says of lengths and counts
# is held against its size before it is used (rtp_parse and extension_next in rtp.pxi, body_length, rtcp_readable and
# transport_deltas for RTCP), rings are indexed modulo their size and tables by their mask, batches and extension blocks are
# checked for room where they are written. scripts/fuzz-asan.sh runs all of it under AddressSanitizer; the build has
# _FORTIFY_SOURCE and stack protectors (pyproject.toml) for what would slip through.
"""The compiled plane: the same promises as `sfu.plane.reference`, kept in C structs by a thread that never takes the GIL.

Until `start` it works like the reference, one call at a time, through `handle` and `tick`; that is how the same tests run
over both. After `start` it owns a socket.
"""

import os
import random
import socket

from cpython.ref cimport Py_DECREF, Py_INCREF
from pylibsrtp._binding import ffi

from sfu.core.media.delivery import Delivered
from sfu.plane import api
from sfu.plane.packet import HOP_BY_HOP
from sfu.plane.symbols import find_symbols
from shared.rtc import rtp
from shared.rtc.srtp import SrtpProfile, SrtpSession

include "native/system.pxi"
include "native/table.pxi"
include "native/transport_model.pxi"
include "native/model.pxi"
include "native/crypto.pxi"
include "native/srtp.pxi"
include "native/rtp.pxi"
include "native/timers.pxi"
include "native/reports.pxi"
include "native/egress.pxi"
include "native/encoding.pxi"
include "native/producer.pxi"
include "native/consumer.pxi"
include "native/arrivals.pxi"
include "native/delivery.pxi"
include "native/feedback.pxi"
include "native/gso.pxi"
include "native/thread.pxi"
include "native/control.pxi"
include "native/facts.pxi"

resolve_crypto(find_symbols())
table_seed = int.from_bytes(os.urandom(8), "little")

_DROPS = (
    "unknown-address", "no-keys", "not-authentic", "too-many-ssrcs", "bad-rtp", "bad-rtcp", "bad-payload", "unknown-ssrc",
    "foreign-codec", "duplicate", "late", "probe", "not-sent", "resend-repeated", "resend-over-budget", "resend-awaited",
    "resend-unknown", "send-buffer-full", "send-failed", "queue-full", "no-memory", "unreadable",
)  # fmt: skip
_KEYFRAME_CODECS = {"VP8": CODEC_VP8, "H264": CODEC_H264}
_EXTENSION_KINDS = {
    rtp.MID_URI: EXTENSION_MID,
    rtp.RID_URI: EXTENSION_RID,
    rtp.REPAIRED_RID_URI: EXTENSION_REPAIRED_RID,
}


cdef int set_name(Name *name, str text) except -1:
    cdef bytes encoded = text.encode()[:MAX_NAME]
    name_set(name, encoded, <int>len(encoded))
    return 0


cdef str get_name(const Name *name):
    return name.text[:name.length].decode("utf8", "replace")


cdef int set_address(Address *address, object given) except -1:
    """An IPv4 or IPv6 address and a port. Raises `ValueError` for anything else."""
    host, port = given[0], given[1]
    try:
        packed = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    except OSError:
        raise ValueError(f"no IP address: {host!r}") from None
    if len(packed) == 16 and packed[:12] == bytes(10) + b"\xff\xff":
        packed = packed[12:]
    whole = int.from_bytes(packed, "big")
    address.high = whole >> 64
    address.low = whole & 0xFFFFFFFFFFFFFFFF
    address.port = (4 if len(packed) == 4 else 6) << 16 | <uint64_t>port
    return 0


cdef tuple get_address(const Address *address):
    if address.port >> 16 == 4:
        return f"{address.low >> 24 & 255}.{address.low >> 16 & 255}.{address.low >> 8 & 255}.{address.low & 255}", int(address.port & 0xFFFF)
    whole = (<object>address.high) << 64 | address.low
    return socket.inet_ntop(socket.AF_INET6, whole.to_bytes(16, "big")), int(address.port & 0xFFFF)


cdef uintptr_t session_address(object session) except 0:
    return <uintptr_t>int(ffi.cast("uintptr_t", session._srtp[0]))


cdef int fill_producer(Producer *producer, spec) except -1:
    """All that the spec says, but for the layers."""
    cdef Codec *into
    cdef int at = 0
    producer.id = spec.producer
    producer.audio = spec.kind == "audio"
    producer.nack = spec.nack
    producer.remb_bps = spec.remb_bps
    set_name(&producer.mid, spec.mid)
    for codec in spec.codecs:
        if not 0 <= codec.payload_type < 128:
            raise ValueError(f"payload type {codec.payload_type}")
        into = &producer.codecs[<int>codec.payload_type]
        into.kind = _KEYFRAME_CODECS.get(codec.name.upper(), CODEC_OTHER)
        into.clock_rate = codec.clock_rate
        set_name(&into.name, codec.name.upper())
        if codec.rtx_payload_type is not None:
            if not 0 <= codec.rtx_payload_type < 128:
                raise ValueError(f"payload type {codec.rtx_payload_type}")
            producer.rtx_of[<int>codec.rtx_payload_type] = codec.payload_type + 1
    for identifier, uri in spec.extensions.items():
        if 0 < identifier < 256:
            producer.extension[<int>identifier] = _EXTENSION_KINDS.get(uri, EXTENSION_OTHER)
    known = [(one.ssrc, one.rid, False) for one in spec.ssrcs]
    known += [(one.rtx_ssrc, one.rid, True) for one in spec.ssrcs if one.rtx_ssrc is not None]
    producer.known = <Known *>calloc(len(known) + 1, sizeof(Known))
    if producer.known == NULL:
        raise MemoryError
    for ssrc, rid, rtx in known:
        producer.known[at].ssrc = ssrc
        producer.known[at].rtx = rtx
        set_name(&producer.known[at].rid, rid)
        at += 1
    producer.known_count = at
    return 0


cdef int fill_consumer(Consumer *consumer, spec) except -1:
    consumer.id = spec.consumer
    consumer.ssrc = spec.ssrc
    consumer.payload_type = spec.payload_type & 127
    consumer.has_rtx = spec.rtx_ssrc is not None and spec.rtx_payload_type is not None
    if spec.rtx_ssrc is not None:
        consumer.rtx_ssrc = spec.rtx_ssrc
    if spec.rtx_payload_type is not None:
        consumer.rtx_payload_type = spec.rtx_payload_type & 127
    set_name(&consumer.cname, spec.cname or "sluice")
    return 0


cdef int fill_plan(Plan *plan, dict incoming, outgoing) except -1:
    """How header extensions of a producer look to a consumer; as sfu.plane.packet.ExtensionPlan."""
    memset(plan, 0, sizeof(Plan))
    for identifier, uri in incoming.items():
        if 0 < identifier < 256 and uri in outgoing and uri not in HOP_BY_HOP and uri != rtp.ABS_SEND_TIME_URI:
            plan.copied[<int>identifier] = outgoing[uri] if 0 < outgoing[uri] < 256 else 0
    stamped = outgoing.get(rtp.ABS_SEND_TIME_URI, 0)
    plan.stamped = stamped if 0 < stamped < 256 else 0
    sequenced = outgoing.get(rtp.TRANSPORT_CC_URI, 0)
    plan.sequenced = sequenced if 0 < sequenced < 256 else 0
    return 0


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

    cdef void _end(self):
        """End the thread; the socket is its maker's again."""
        cdef uint64_t one = 1
        cdef Engine *engine = self.engine
        if not engine.threaded:
            return
        with nogil:
            pthread_mutex_lock(&engine.mutex)
            engine.stopping = True
            pthread_mutex_unlock(&engine.mutex)
            write(engine.wake_fd, &one, 8)
            pthread_join(engine.thread, NULL)
        engine.threaded = False
        engine.coalesce = False

    cdef void _let_go(self):
        """Of sessions that no peer uses any more."""
        cdef Engine *engine = self.engine
        cdef Vector old
        cdef int at
        pthread_mutex_lock(&engine.mutex)
        old = engine.old_sessions
        memset(&engine.old_sessions, 0, sizeof(Vector))
        pthread_mutex_unlock(&engine.mutex)
        for at in range(old.count):
            Py_DECREF(<object>old.items[at])
        vector_free(&old)

    # -- the thread

    def start(self, int fd):
        """Own a bound UDP socket from now on. Raises `OSError`, or `RuntimeError` for a second start."""
        cdef Engine *engine = self.engine
        cdef int failed
        if self.has_started:
            raise RuntimeError("the plane has been started")
        sock = socket.socket(fileno=os.dup(fd))
        engine.six = sock.family == socket.AF_INET6
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
        """Whether runs of datagrams are sent as one."""
        return bool(self.engine.gso)

    def datagrams(self):
        """What has arrived that is no media (STUN, DTLS), with its source, in order. Call it before `events`."""
        cdef Engine *engine = self.engine
        cdef Raw *raws
        cdef int count, at
        cdef uint64_t told
        with nogil:
            pthread_mutex_lock(&engine.mutex)
            raws = engine.raws
            count = engine.raw_count
            engine.raws = NULL
            engine.raw_count = engine.raw_room = 0
            if engine.told:
                read(engine.event_fd, &told, 8)
                engine.told = False
            pthread_mutex_unlock(&engine.mutex)
        taken = []
        for at in range(count):
            taken.append((raws[at].bytes[:raws[at].length], get_address(&raws[at].source)))
            free(raws[at].bytes)
        free(raws)
        return taken

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
             get_address(&batch.destinations[batch.outs[at].destination].address))
            for at in range(batch.count)
        ]
        batch_reset(engine, batch)
        for datagram, address in waiting:
            self.send(datagram, address)
        return 0

    # -- peers

    def add_peer(self, int64_t peer):
        cdef Engine *engine = self.engine
        cdef int failed
        if peer in self.used:
            raise ValueError(f"peer {peer} exists")
        with nogil:
            pthread_mutex_lock(&engine.mutex)
            failed = peer_add(engine, peer)
            pthread_mutex_unlock(&engine.mutex)
        if failed:
            raise MemoryError
        self.used[peer] = {}

    def set_keys(self, int64_t peer, keys, *, double now):
        cdef Engine *engine = self.engine
        cdef Peer *known
        cdef void *owned
        cdef void *srtp_rx = NULL
        cdef void *srtp_tx = NULL
        cdef int failed = 0, length = <int>len(keys.rx_key)
        cdef bytes rx = keys.rx_key, tx = keys.tx_key, rx_salt = keys.rx_salt, tx_salt = keys.tx_salt
        cdef const uint8_t *rx_at = rx
        cdef const uint8_t *tx_at = tx
        cdef const uint8_t *rx_salt_at = rx_salt
        cdef const uint8_t *tx_salt_at = tx_salt
        if peer not in self.used:
            return
        session = None
        owned = NULL
        if not direct_gcm or keys.profile is SrtpProfile.AES128_CM_SHA1_80:
            session = SrtpSession(keys)
            srtp_rx = <void *>session_address(session._rx)
            srtp_tx = <void *>session_address(session._tx)
            owned = <void *>session
            # Ours until the plane has let go: not even the garbage collector may free it before.
            Py_INCREF(session)
        elif (length not in (16, 32)) or len(tx) != length or len(rx_salt) != 12 or len(tx_salt) != 12:
            raise ValueError(f"keys of {keys.profile.value} have another length")
        with nogil:
            pthread_mutex_lock(&engine.mutex)
            known = <Peer *>table_get(&engine.peers, <uint64_t>peer, 0, 0)
            if known != NULL:
                failed = peer_set_keys(engine, known, rx_at, tx_at, length, rx_salt_at, tx_salt_at, owned, srtp_rx, srtp_tx, now)
            pthread_mutex_unlock(&engine.mutex)
        self._let_go()
        # Only SSRCs of consumers that are still there have been used with the new keys.
        self.used[peer] = {ssrc: consumer for ssrc, consumer in self.used[peer].items() if self._consumer_exists(consumer)}
        if failed:
            raise MemoryError
        self._done()

    def set_address(self, int64_t peer, address, *, double now):
        cdef Engine *engine = self.engine
        cdef Peer *known
        cdef Address at
        set_address(&at, address)
        with nogil:
            pthread_mutex_lock(&engine.mutex)
            known = <Peer *>table_get(&engine.peers, <uint64_t>peer, 0, 0)
            if known != NULL:
                peer_set_address(engine, known, &at, now)
            pthread_mutex_unlock(&engine.mutex)
        self._done()

    def remove_peer(self, int64_t peer):
        cdef Engine *engine = self.engine
        cdef Peer *known
        with nogil:
            pthread_mutex_lock(&engine.mutex)
            known = <Peer *>table_get(&engine.peers, <uint64_t>peer, 0, 0)
            if known != NULL:
                peer_remove(engine, known)
            pthread_mutex_unlock(&engine.mutex)
        for producer in [p for p in self.incoming if table_get(&engine.producers, <uint64_t>p, 0, 0) == NULL]:
            del self.incoming[producer]
        self._let_go()
        self.used.pop(peer, None)

    # -- tracks

    def produce(self, spec, *, double now):
        cdef Engine *engine = self.engine
        cdef Peer *peer
        cdef Producer *producer
        cdef Name *rids = <Name *>calloc(len(spec.rids) + 1, sizeof(Name))
        cdef int64_t id = spec.producer, owner = spec.peer
        cdef int failed = 0, at, count = <int>len(spec.rids), transport_cc = 0
        for identifier, uri in spec.extensions.items():
            if uri == rtp.TRANSPORT_CC_URI and 0 < identifier < 256:
                transport_cc = identifier
        producer = <Producer *>calloc(1, sizeof(Producer))
        if rids == NULL or producer == NULL:
            free(rids)
            free(producer)
            raise MemoryError
        try:
            for at in range(count):
                set_name(&rids[at], spec.rids[at])
            fill_producer(producer, spec)
            with nogil:
                pthread_mutex_lock(&engine.mutex)
                peer = <Peer *>table_get(&engine.peers, <uint64_t>owner, 0, 0)
                if table_get(&engine.producers, <uint64_t>id, 0, 0) != NULL:
                    failed = 1
                elif peer == NULL:
                    failed = 2
                else:
                    failed = producer_add(engine, producer, peer, rids, count, now)
                    if failed == 0 and transport_cc:
                        peer.transport_cc = <uint8_t>transport_cc
                pthread_mutex_unlock(&engine.mutex)
            if failed == 0 or failed == -2:
                producer = NULL
        finally:
            free(rids)
            if producer != NULL:
                free(producer.known)
                free(producer)
        if failed == 1:
            raise ValueError(f"producer {id} exists")
        if failed < 0:
            raise MemoryError
        if failed == 0:
            self.incoming[id] = dict(spec.extensions)
        return failed == 0

    def close_producer(self, int64_t producer):
        cdef Engine *engine = self.engine
        cdef Producer *known
        with nogil:
            pthread_mutex_lock(&engine.mutex)
            known = <Producer *>table_get(&engine.producers, <uint64_t>producer, 0, 0)
            if known != NULL:
                producer_close(engine, known)
            pthread_mutex_unlock(&engine.mutex)
        self.incoming.pop(producer, None)

    def consume(self, spec, *, double now):
        cdef Engine *engine = self.engine
        cdef Peer *peer
        cdef Producer *producer
        cdef Consumer *consumer
        cdef Plan plan
        cdef Name codec
        cdef int64_t id = spec.consumer, owner = spec.peer, source = spec.producer
        cdef int failed = 0
        with nogil:
            pthread_mutex_lock(&engine.mutex)
            if table_get(&engine.consumers, <uint64_t>id, 0, 0) != NULL:
                failed = 1
            elif table_get(&engine.peers, <uint64_t>owner, 0, 0) == NULL or table_get(&engine.producers, <uint64_t>source, 0, 0) == NULL:
                failed = 2
            pthread_mutex_unlock(&engine.mutex)
        if failed == 1:
            raise ValueError(f"consumer {id} exists")
        if failed:
            return False
        for ssrc in (spec.ssrc,) if spec.rtx_ssrc is None else (spec.ssrc, spec.rtx_ssrc):
            # A second stream under one SSRC would repeat SRTP indexes (RFC 7714 section 8.4).
            if ssrc in self.used[spec.peer]:
                raise ValueError(f"SSRC {ssrc} has been used towards peer {spec.peer}")
            self.used[spec.peer][ssrc] = id
        consumer = <Consumer *>calloc(1, sizeof(Consumer))
        if consumer == NULL:
            raise MemoryError
        try:
            fill_consumer(consumer, spec)
            # Under half the range: SRTP's rollover counter starts at 0 on both sides only if no early packet is lost.
            consumer.highest_out = 0x10000 + self.rng.randrange(0x4000)
            consumer.rtx_index = self.rng.randrange(0x4000)
            set_name(&codec, spec.codec.upper())
            fill_plan(&plan, self.incoming[source], spec.extensions)
            with nogil:
                pthread_mutex_lock(&engine.mutex)
                producer = <Producer *>table_get(&engine.producers, <uint64_t>source, 0, 0)
                peer = <Peer *>table_get(&engine.peers, <uint64_t>owner, 0, 0)
                if peer == NULL or producer == NULL:
                    failed = 2
                else:
                    if not producer.audio and not consumer.has_rtx:
                        # It is sent again the same to the byte, and no number of the transport is used twice.
                        plan.sequenced = 0
                    failed = consumer_add(engine, consumer, peer, producer, &plan, &codec, now)
                pthread_mutex_unlock(&engine.mutex)
            if failed == 0 or failed == -2:
                consumer = NULL
        finally:
            free(consumer)
        if failed < 0:
            raise MemoryError
        self._done()
        return failed == 0

    cdef bint _consumer_exists(self, int64_t consumer):
        return table_get(&self.engine.consumers, <uint64_t>consumer, 0, 0) != NULL

    def close_consumer(self, int64_t consumer):
        cdef Engine *engine = self.engine
        cdef Consumer *known
        with nogil:
            pthread_mutex_lock(&engine.mutex)
            known = <Consumer *>table_get(&engine.consumers, <uint64_t>consumer, 0, 0)
            if known != NULL:
                consumer_close(engine, known)
            pthread_mutex_unlock(&engine.mutex)

    def set_layer(self, int64_t consumer, rid, *, double now):
        cdef Engine *engine = self.engine
        cdef Consumer *known
        cdef Name preferred
        cdef bint prefers = rid is not None
        set_name(&preferred, rid or "")
        with nogil:
            pthread_mutex_lock(&engine.mutex)
            known = <Consumer *>table_get(&engine.consumers, <uint64_t>consumer, 0, 0)
            if known != NULL:
                known.prefers = prefers
                known.preferred = preferred
                consumer_choose(engine, known, now, True)
            pthread_mutex_unlock(&engine.mutex)
        self._done()

    def pause(self, int64_t consumer, bint paused, *, double now):
        cdef Engine *engine = self.engine
        cdef Consumer *known
        with nogil:
            pthread_mutex_lock(&engine.mutex)
            known = <Consumer *>table_get(&engine.consumers, <uint64_t>consumer, 0, 0)
            if known != NULL:
                consumer_pause(engine, known, paused, now)
            pthread_mutex_unlock(&engine.mutex)
        self._done()

    def request_keyframe(self, int64_t producer, *, double now):
        cdef Engine *engine = self.engine
        cdef Producer *known
        with nogil:
            pthread_mutex_lock(&engine.mutex)
            known = <Producer *>table_get(&engine.producers, <uint64_t>producer, 0, 0)
            if known != NULL:
                producer_request_keyframes(engine, known, now)
            pthread_mutex_unlock(&engine.mutex)
        self._done()

    def follow_delivery(self, int64_t peer, bint wanted):
        cdef Engine *engine = self.engine
        cdef Peer *known
        with nogil:
            pthread_mutex_lock(&engine.mutex)
            known = <Peer *>table_get(&engine.peers, <uint64_t>peer, 0, 0)
            if known != NULL:
                known.follows_delivery = wanted
            pthread_mutex_unlock(&engine.mutex)

    # -- datagrams and time, for who has not started the thread

    def handle(self, bytes datagram, address, *, double now):
        cdef Engine *engine = self.engine
        cdef Address source
        cdef uint8_t data[RECEIVE_ROOM]
        cdef const uint8_t *given = datagram
        cdef int length = <int>min(len(datagram), RECEIVE_ROOM)
        set_address(&source, address)
        with nogil:
            memcpy(data, given, length)
            pthread_mutex_lock(&engine.mutex)
            handle_media(engine, data, length, &source, now)
            pthread_mutex_unlock(&engine.mutex)
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
        cdef Engine *engine = self.engine
        cdef Event *events
        cdef int count, at
        with nogil:
            pthread_mutex_lock(&engine.mutex)
            events = engine.events
            count = engine.event_count
            engine.events = NULL
            engine.event_count = engine.event_room = engine.delivery_events = 0
            pthread_mutex_unlock(&engine.mutex)
        told = []
        for at in range(count):
            told.append(make_event(&events[at]))
            free(events[at].packets)
        free(events)
        return told

    def snapshot(self):
        cdef Engine *engine = self.engine
        cdef Facts facts
        cdef int failed, at, encodings = 0
        with nogil:
            pthread_mutex_lock(&engine.mutex)
            failed = facts_take(engine, &facts)
            pthread_mutex_unlock(&engine.mutex)
        try:
            if failed:
                raise MemoryError
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
        """`(sends, sendmmsg calls, wakes, delays)`: how well sends are batched, and the forwarding delay from the kernel's
        receive time-stamp to the return of its send, as `(upper bound in microseconds, packets)` pairs."""
        cdef Engine *engine = self.engine
        cdef int at
        delays = [(delay_bound(at), engine.sent.delays[at]) for at in range(HISTOGRAM) if engine.sent.delays[at]]
        return engine.sent.sends, engine.sent.send_calls, engine.totals.wakes, delays


cdef int64_t delay_bound(int bucket):
    """Microseconds at which the bucket ends; see delay_bucket."""
    if bucket < 8:
        return bucket + 1
    return <int64_t>(8 + bucket % 8 + 1) << (bucket // 8 - 1)


cdef object make_event(const Event *event):
    cdef int at
    if event.kind == PRODUCER_FLOWING:
        return api.ProducerFlowing(event.subject)
    if event.kind == PRODUCER_SILENT:
        return api.ProducerSilent(event.subject)
    if event.kind == PRODUCER_RESUMED:
        return api.ProducerResumed(event.subject)
    if event.kind == PRODUCER_ENDED:
        return api.ProducerEnded(event.subject)
    if event.kind == CONSUMER_FLOWING:
        return api.ConsumerFlowing(event.subject)
    if event.kind == LAYER_SWITCHED:
        return api.LayerSwitched(event.subject, get_name(&event.rid))
    if event.kind == DELIVERY_REPORTED:
        packets = tuple([make_delivered(&event.packets[at]) for at in range(event.packet_count)])
        return api.DeliveryReported(event.subject, event.at, packets)
    return api.PeerHeard(event.subject)


cdef object make_delivered(const DeliveredPacket *packet):
    arrived_at = packet.ticks / 4000.0 if packet.arrived else None
    return Delivered(packet.sent_at, arrived_at, packet.size, packet.ssrc)


cdef object make_totals(const Facts *facts):
    cdef int at
    cdef const Totals *totals = &facts.totals
    counts = [totals.drops[at] + facts.sent.drops[at] for at in range(DROP_KINDS)]
    return api.PlaneTotals(
        packets_in=totals.packets_in,
        bytes_in=totals.bytes_in,
        packets_out=totals.packets_out,
        bytes_out=totals.bytes_out,
        forwarded=totals.forwarded,
        forwarded_bytes=totals.forwarded_bytes,
        nacks_sent=totals.nacks_sent,
        nacks_received=totals.nacks_received,
        plis_sent=totals.plis_sent,
        plis_received=totals.plis_received,
        rtx_received=totals.rtx_received,
        resent=totals.resent,
        feedbacks_sent=totals.feedbacks_sent,
        feedbacks_received=totals.feedbacks_received,
        drops={reason: count for reason, count in zip(_DROPS, counts) if count},
    )


cdef object make_peer(const PeerFact *fact):
    return api.PeerSnapshot(
        peer=fact.id,
        packets_in=fact.packets_in,
        bytes_in=fact.bytes_in,
        packets_out=fact.packets_out,
        bytes_out=fact.bytes_out,
        last_heard=fact.last_heard if fact.heard else None,
        feedbacks_sent=fact.feedbacks_sent,
        delivery=make_delivery(&fact.delivery) if fact.delivery.ring != NULL else None,
    )


cdef object make_delivery(const Delivery *delivery):
    return api.DeliverySnapshot(
        sent=delivery.next,
        feedbacks=delivery.feedbacks,
        acknowledged=delivery.acknowledged,
        acknowledged_bytes=delivery.acknowledged_bytes,
        lost=delivery.lost,
        receive_rate_bps=delivery.rate_bps if delivery.has_rate else None,
    )


cdef object make_producer(const ProducerFact *fact, const EncodingFact *encodings):
    cdef int at
    return api.ProducerSnapshot(
        producer=fact.id,
        peer=fact.peer,
        kind="audio" if fact.audio else "video",
        flowing=bool(fact.flowing),
        encodings=tuple([make_encoding(&encodings[at]) for at in range(fact.encodings)]),
        consumers=fact.consumers,
    )


cdef object make_encoding(const EncodingFact *fact):
    return api.EncodingSnapshot(
        rid=get_name(&fact.rid),
        ssrc=fact.ssrc,
        packets=fact.packets,
        bytes=fact.octets,
        lost=fact.lost,
        jitter_ms=fact.jitter_ms,
        keyframes=fact.keyframes,
        nacked=fact.nacked,
        repaired=fact.repaired,
        plis=fact.plis,
        probes=fact.probes,
    )


cdef object make_consumer(const ConsumerFact *fact):
    return api.ConsumerSnapshot(
        consumer=fact.id,
        peer=fact.peer,
        producer=fact.producer,
        flowing=bool(fact.flowing),
        paused=bool(fact.paused),
        rid=get_name(&fact.rid),
        packets=fact.packets,
        bytes=fact.octets,
        nacks=fact.nacks,
        resent=fact.resent,
        unanswered=fact.unanswered,
        plis=fact.plis,
        fraction_lost=fact.fraction_lost,
        rtt_ms=1000.0 * fact.rtt_s if fact.has_rtt else None,
    )
