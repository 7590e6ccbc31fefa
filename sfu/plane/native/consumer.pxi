# One producer's track on its way to one peer: rewriting, layers, retransmissions, sender reports.

from sfu.plane import consumer

cdef double FIRST_SENDER_REPORT_S = consumer.FIRST_SENDER_REPORT_S
cdef double SENDER_REPORT_S = consumer.SENDER_REPORT_S

cdef struct ConsumerCounts:
    # Named as in `ConsumerSnapshot`.
    int64_t packets, bytes, nacks, resent, unanswered, plis
    double fraction_lost

cdef struct Consumer:
    int64_t id
    uint64_t serial
    Peer *peer
    Producer *producer
    Plan *plan
    uint8_t accepted[128]
    uint32_t ssrc
    uint8_t payload_type
    bint has_rtx
    uint32_t rtx_ssrc
    uint8_t rtx_payload_type
    bint paused
    bint flowing
    bint prefers
    Name preferred
    Name cname
    Encoding *source
    Encoding *target
    Spans spans
    int64_t highest_out
    int64_t rtx_index
    int64_t cycle               # of highest_out at which the keys in use began: SRTP's rollover counter 0
    int64_t rtx_cycle
    Newest newest
    ResendGate gate
    RoundTrip round_trip
    int64_t octets              # as sender reports count them: payload, resends left out
    ConsumerCounts counts
    uint64_t flushed            # the flush that has served it


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


cdef int consumer_add(
    Engine *engine, Consumer *consumer, Peer *peer, Producer *producer, Plan *plan, const Name *codec, double now
) noexcept nogil:
    """`consumer` is filled but for its places. 0, or NO_ROOM."""
    cdef int at
    consumer.peer = peer
    consumer.producer = producer
    consumer.gate.tokens = BUDGET_START
    consumer.cycle = consumer.highest_out >> 16
    consumer.rtx_cycle = consumer.rtx_index >> 16
    for at in range(128):
        consumer.accepted[at] = producer.codecs[at].kind != CODEC_NONE and same_name(&producer.codecs[at].name, codec)
    if not producer.audio and not consumer.has_rtx:
        # It is sent again the same to the byte, and no number of the transport is used twice.
        plan.sequenced = 0
    consumer.plan = producer_plan(producer, plan)
    if consumer.plan == NULL or (consumer.plan.sequenced and delivery_open(&peer.delivery) < 0):
        consumer_free(engine, consumer)
        return NO_ROOM
    if enlist(engine, &engine.consumers, &engine.all_consumers, consumer.id, &consumer.serial, consumer) < 0:
        consumer_free(engine, consumer)
        return NO_ROOM
    if (
        vector_add(&peer.consumers, consumer) < 0
        or vector_add(&producer.consumers, consumer) < 0
        or table_put(&peer.by_ssrc, consumer.ssrc, 0, 0, consumer) < 0
    ):
        consumer_close(engine, consumer)
        return NO_ROOM
    consumer_choose(engine, consumer, now, True)
    return 0


cdef void consumer_close(Engine *engine, Consumer *consumer) noexcept nogil:
    cdef Peer *peer = consumer.peer
    if table_get(&peer.by_ssrc, consumer.ssrc, 0, 0) == consumer:
        table_remove(&peer.by_ssrc, consumer.ssrc, 0, 0)
    table_remove(&engine.consumers, <uint64_t>consumer.id, 0, 0)
    vector_remove(&engine.all_consumers, consumer)
    vector_remove(&peer.consumers, consumer)
    vector_remove(&consumer.producer.consumers, consumer)
    consumer.producer.served = 0
    if peer.keys.srtp_tx != NULL:
        # Nothing will be sent with these any more; libsrtp takes SSRCs in network order.
        crypto.remove_stream(peer.keys.srtp_tx, network_order(consumer.ssrc))
        if consumer.has_rtx:
            crypto.remove_stream(peer.keys.srtp_tx, network_order(consumer.rtx_ssrc))
    consumer_free(engine, consumer)


cdef void consumer_free(Engine *engine, Consumer *consumer) noexcept nogil:
    table_remove(&engine.objects, consumer.serial, 0, 0)
    free(consumer.gate.sent)
    free(consumer)


cdef void consumer_let_go(Consumer *consumer, Encoding *encoding) noexcept nogil:
    """The encoding is about to be freed."""
    span_let_go(&consumer.spans, encoding)
    if consumer.source == encoding:
        consumer.source = NULL
    if consumer.target == encoding:
        consumer.target = NULL
    if consumer.newest.encoding == encoding:
        consumer.newest.encoding = NULL


# -- which layer

cdef void consumer_choose(Engine *engine, Consumer *consumer, double now, bint ask) noexcept nogil:
    """Look again at which layer to get, and ask for its key frame while it is not the one being sent."""
    cdef Encoding *target = producer_target(consumer.producer, consumer.prefers, &consumer.preferred)
    if target != NULL:
        consumer.target = target
    if not ask or consumer.paused or not peer_ready(consumer.peer):
        return
    if consumer.target != NULL and consumer.target != consumer.source:
        encoding_request_keyframe(engine, consumer.target, now)


cdef void consumer_pause(Engine *engine, Consumer *consumer, bint paused, double now) noexcept nogil:
    """Stop, or go on at the next key frame with continuous numbers."""
    if consumer.paused == paused:
        return
    consumer.paused = paused
    consumer.source = NULL
    consumer_choose(engine, consumer, now, True)


cdef Span *consumer_switch(
    Engine *engine, Consumer *consumer, Encoding *encoding, Packet *packet, double now
) noexcept nogil:
    """Begin with this packet's layer where that may be: at a key frame of the target, at first of any layer."""
    cdef bint may_begin = encoding == consumer.target or consumer.source == NULL
    cdef int64_t out_index = consumer.highest_out + 1, first = out_index + (packet.lead != NULL)
    cdef Event *event
    if not encoding.opaque:
        may_begin = may_begin and packet.keyframe_start
    if not may_begin or packet.payload_length == 0 or not consumer.accepted[packet.header.payload_type]:
        return NULL
    consumer.source = encoding
    if encoding.rid.length:
        event = event_add(engine, LAYER_SWITCHED, consumer.id)
        if event != NULL:
            event.rid = encoding.rid
    return span_begin(
        &consumer.spans, encoding, packet.index, out_index,
        switch_shifts(&consumer.newest, encoding, packet, first, now),
    )


# -- forwarding

cdef void consumer_forward(
    Engine *engine, Consumer *consumer, Encoding *encoding, Packet *packet, double now
) noexcept nogil:
    """Send a new packet of the producer, if this consumer is to have it."""
    cdef Span *span
    cdef int64_t out_index
    cdef bint first
    if consumer.paused or not peer_ready(consumer.peer):
        return
    if encoding != consumer.source:
        span = consumer_switch(engine, consumer, encoding, packet, now)
        if span != NULL and packet.lead != NULL:
            consumer_emit(engine, consumer, packet.lead, &span.shifts, span.out_start, now)
    else:
        span = span_at(&consumer.spans, 0)
        if packet.index < span.in_start:
            span = span_for_late(&consumer.spans, encoding, packet.index)
    if span == NULL:
        return
    if not consumer.accepted[packet.header.payload_type]:
        engine.totals.drops[FOREIGN_CODEC] += 1
        return
    first = not consumer.newest.on
    out_index = packet.index + span.shifts.sequence
    if out_index > consumer.highest_out:
        if packet.payload_length == 0 and span == span_at(&consumer.spans, 0):
            span_skip(&consumer.spans, packet.index)
            return
        consumer.highest_out = out_index
        consumer_remember(consumer, encoding, packet, span)
    if consumer_emit(engine, consumer, packet, &span.shifts, out_index, now) and first:
        consumer.flowing = True
        event_add(engine, CONSUMER_FLOWING, consumer.id)
        timer_add(engine, now + FIRST_SENDER_REPORT_S, SENDER_REPORT, consumer.serial)


cdef inline void consumer_remember(Consumer *consumer, Encoding *encoding, Packet *packet, Span *span) noexcept nogil:
    consumer.newest.on = True
    consumer.newest.encoding = encoding
    consumer.newest.index = packet.index
    consumer.newest.timestamp = packet.header.timestamp
    consumer.newest.vp8 = packet.vp8.present
    consumer.newest.picture_id = packet.vp8.picture_id
    consumer.newest.tl0 = packet.vp8.tl0
    consumer.newest.arrived = packet.arrived
    consumer.newest.shifts = span.shifts


cdef bint consumer_emit(
    Engine *engine, Consumer *consumer, Packet *packet, Shifts *shifts, int64_t out_index, double now
) noexcept nogil:
    """The packet with this consumer's numbers; to the byte the same each time."""
    cdef uint8_t *out = out_reserve(engine)
    cdef uint8_t moved[MAX_PLAIN + 8]
    cdef const uint8_t *payload = packet.bytes + packet.payload_at
    cdef const uint8_t *block
    cdef int length = packet.payload_length + packet.padding, written, head = 0
    if packet.stamp == 0.0:
        packet.stamp = now
    block = packet_block(engine, packet, consumer.plan, &head)
    # Older than the receiver's replay window it would be refused there, as libsrtp refuses to protect it here.
    if out == NULL or 12 + head + length > MAX_PLAIN or consumer.highest_out - out_index >= REPLAY_WINDOW:
        engine.totals.drops[NOT_SENT] += 1
        return False
    rtp_head(
        out,
        head > 0,
        packet.padding > 0,
        packet.header.marker | consumer.payload_type,
        out_index,
        <uint32_t>(packet.header.timestamp + shifts.timestamp),
        consumer.ssrc,
    )
    memcpy(out + 12, block, head)
    if consumer.plan.sequenced:
        block_sequence(out + 12, consumer.peer.delivery.next)
    head += 12
    if packet.vp8.present and (shifts.picture_id or shifts.tl0):
        memcpy(moved, payload, length)
        vp8_shift(moved, &packet.vp8, shifts.picture_id, shifts.tl0)
        payload = moved
    written = srtp_protect(
        &consumer.peer.keys, out, head, payload, length, consumer.ssrc, out_index - (consumer.cycle << 16)
    )
    if written < 0:
        engine.totals.drops[NOT_SENT] += 1
        return False
    consumer.octets += packet.payload_length
    if consumer.plan.sequenced:
        delivery_sent(&consumer.peer.delivery, head + length, consumer.ssrc, now)
    consumer_sent(engine, consumer, written, head + length, packet.received_ns)
    return True


cdef inline void consumer_sent(
    Engine *engine, Consumer *consumer, int written, int plain, int64_t received_ns
) noexcept nogil:
    out_commit(engine, consumer.peer, written, received_ns)
    consumer.counts.packets += 1
    consumer.counts.bytes += plain
    engine.totals.counts.forwarded += 1
    engine.totals.counts.forwarded_bytes += plain


# -- feedback of the peer

cdef Packet *sent_as(int64_t out_index, const Span *span) noexcept nogil:
    """The packet under an output number of the span; NULL when it has left the ring, or never came."""
    cdef int64_t index = out_index - span.shifts.sequence
    cdef Packet *first
    if index >= span.in_start:
        return ring_get(&span.source.ring, index)
    # What was sent before the first packet is kept with it.
    first = ring_get(&span.source.ring, span.in_start)
    return first.lead if first != NULL else NULL


cdef void consumer_nack(Engine *engine, Consumer *consumer, uint16_t sequence, double now) noexcept nogil:
    """Send again what the peer misses and the ring still has."""
    cdef int64_t out_index = consumer.highest_out + sequence_delta(sequence, <uint16_t>consumer.highest_out)
    cdef Packet *packet = NULL
    cdef Span *span = NULL
    cdef int verdict
    consumer.counts.nacks += 1
    if out_index <= consumer.highest_out:
        span = span_locate(&consumer.spans, out_index)
    if span != NULL and span.source != NULL:
        packet = sent_as(out_index, span)
        if packet == NULL and missing_find(&span.source.missing, out_index - span.shifts.sequence) >= 0:
            engine.totals.drops[RESEND_AWAITED] += 1
            return
    # Without RTX a resend is the same to the byte, and a transport-wide number is never used twice.
    if packet == NULL or (consumer.plan.sequenced and not consumer.has_rtx):
        consumer.counts.unanswered += 1
        engine.totals.drops[RESEND_UNKNOWN] += 1
        return
    verdict = resend_ask(
        &consumer.gate, out_index, consumer.round_trip.least_s if consumer.round_trip.known else -1.0,
        consumer.counts.packets - consumer.counts.resent, now,
    )
    if verdict >= 0:
        engine.totals.drops[verdict] += 1
    elif consumer_resend(engine, consumer, packet, &span.shifts, out_index, now):
        consumer.counts.resent += 1
        engine.totals.counts.resent += 1


cdef bint consumer_resend(
    Engine *engine, Consumer *consumer, Packet *packet, Shifts *shifts, int64_t out_index, double now
) noexcept nogil:
    cdef uint8_t payload[MAX_PLAIN + 8]
    cdef uint8_t *out
    cdef int length = packet.payload_length + packet.padding, block, written
    if not consumer.has_rtx:
        # The same to the byte: other bytes under one SRTP index give AES-GCM's key away.
        written = consumer_emit(engine, consumer, packet, shifts, out_index, now)
        if written:
            consumer.octets -= packet.payload_length
        return written
    if not peer_ready(consumer.peer):
        return False
    block = extension_block(consumer.plan, packet, now, engine.block)
    out = out_reserve(engine)
    consumer.rtx_index += 1
    if out == NULL or 12 + block + 2 + length > MAX_PLAIN:
        engine.totals.drops[NOT_SENT] += 1
        return False
    rtp_head(
        out,
        block > 0,
        packet.padding > 0,
        packet.header.marker | consumer.rtx_payload_type,
        consumer.rtx_index,
        <uint32_t>(packet.header.timestamp + shifts.timestamp),
        consumer.rtx_ssrc,
    )
    memcpy(out + 12, engine.block, block)
    if consumer.plan.sequenced:
        block_sequence(out + 12, consumer.peer.delivery.next)
    write16(payload, <uint32_t>out_index & 0xFFFF)
    memcpy(payload + 2, packet.bytes + packet.payload_at, length)
    if packet.vp8.present and (shifts.picture_id or shifts.tl0):
        vp8_shift(payload + 2, &packet.vp8, shifts.picture_id, shifts.tl0)
    written = srtp_protect(
        &consumer.peer.keys, out, 12 + block, payload, 2 + length, consumer.rtx_ssrc,
        consumer.rtx_index - (consumer.rtx_cycle << 16),
    )
    if written < 0:
        engine.totals.drops[NOT_SENT] += 1
        return False
    if consumer.plan.sequenced:
        delivery_sent(&consumer.peer.delivery, 12 + block + 2 + length, consumer.rtx_ssrc, now)
    consumer_sent(engine, consumer, written, 12 + block + 2 + length, 0)
    return True


cdef void consumer_reported(Consumer *consumer, const uint8_t *block, double now) noexcept nogil:
    """A report block about what this consumer sends."""
    consumer.counts.fraction_lost = block[4] / 256.0
    if read32(block + 16):
        round_trip_echoed(&consumer.round_trip, read32(block + 16), read32(block + 20), now)


cdef double consumer_report(Engine *engine, Consumer *consumer, double now) noexcept nogil:
    """A sender report: the publisher's own pairing of NTP and RTP time, moved onto this consumer's timestamps."""
    cdef uint8_t out[28 + 8 + 2 + MAX_NAME + 8]
    cdef uint64_t ntp = 0
    cdef uint32_t timestamp = 0
    cdef int length, chunk
    if consumer.newest.encoding == NULL or not clock_at(&consumer.newest.encoding.clock, now, &ntp, &timestamp):
        return now + SENDER_REPORT_S
    rtcp_head(out, 0, 200, 28)
    write32(out + 4, consumer.ssrc)
    write32(out + 8, <uint32_t>(ntp >> 32))
    write32(out + 12, <uint32_t>ntp)
    write32(out + 16, <uint32_t>(timestamp + consumer.newest.shifts.timestamp))
    write32(out + 20, <uint32_t>consumer.counts.packets)
    write32(out + 24, <uint32_t>consumer.octets)
    chunk = 6 + consumer.cname.length
    length = 28 + 4 + chunk + 4 - chunk % 4
    memset(out + 28, 0, length - 28)
    rtcp_head(out + 28, 1, 202, length - 28)
    write32(out + 32, consumer.ssrc)
    out[36] = 1
    out[37] = <uint8_t>consumer.cname.length
    memcpy(out + 38, consumer.cname.text, consumer.cname.length)
    round_trip_report_sent(&consumer.round_trip, ntp, now)
    peer_send_rtcp(engine, consumer.peer, out, length)
    return now + SENDER_REPORT_S
