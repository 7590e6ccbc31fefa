# One producer's track on its way to one peer: rewriting, layers, retransmissions, reports; as sfu.plane.consumer.

cdef inline Span *span_at(Consumer *consumer, int back) noexcept nogil:
    """`back` 0 is the newest; there are `span_count`."""
    return &consumer.spans[(consumer.span_first + consumer.span_count - 1 - back) % KEPT_SPANS]


cdef Span *span_begin(Consumer *consumer, Encoding *source, int64_t in_start, int64_t out_start, Shifts shifts) noexcept nogil:
    if consumer.span_count == KEPT_SPANS:
        consumer.span_first = (consumer.span_first + 1) % KEPT_SPANS
    else:
        consumer.span_count += 1
    cdef Span *span = span_at(consumer, 0)
    span[0] = Span(source, in_start, out_start, shifts)
    return span


cdef Span *span_for_late(Consumer *consumer, Encoding *source, int64_t index) noexcept nogil:
    """The span of a packet older than the newest one's start; NULL when it was never wanted, or came during a pause,
    whose numbers have gone to what came after it: two packets under one SRTP index give AES-GCM's key away."""
    cdef int back
    cdef Span *span
    for back in range(consumer.span_count):
        span = span_at(consumer, back)
        if span.source != source:
            return NULL
        if span.in_start <= index:
            if back and index + span.shifts.sequence >= span_at(consumer, back - 1).out_start:
                return NULL
            return span
    return NULL


cdef void consumer_let_go(Consumer *consumer, Encoding *encoding) noexcept nogil:
    """The encoding is about to be freed."""
    cdef int back
    for back in range(consumer.span_count):
        if span_at(consumer, back).source == encoding:
            span_at(consumer, back).source = NULL
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
    if ask and consumer.target != NULL and consumer.target != consumer.source and not consumer.paused and peer_ready(consumer.peer):
        encoding_request_keyframe(engine, consumer.target, now)


cdef Span *consumer_switch(Engine *engine, Consumer *consumer, Encoding *encoding, Packet *packet, double now) noexcept nogil:
    """Begin with this packet's layer where that may be: at a key frame of the target, at first of any layer."""
    cdef bint may_begin = encoding == consumer.target or consumer.source == NULL
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
    return span_begin(consumer, encoding, packet.index, consumer.highest_out + 1, switch_shifts(consumer, encoding, packet, now))


cdef Shifts switch_shifts(Consumer *consumer, Encoding *encoding, Packet *packet, double now) noexcept nogil:
    cdef Newest *newest = &consumer.newest
    cdef Shifts shifts = Shifts(consumer.highest_out + 1 - packet.index, 0, 0, 0)
    if not newest.on:
        return shifts
    if newest.encoding == encoding and packet.index > newest.index:
        # After a pause: time and pictures have gone on at the publisher as well.
        shifts.timestamp = newest.shifts.timestamp
        shifts.picture_id = newest.shifts.picture_id
        shifts.tl0 = newest.shifts.tl0
        return shifts
    shifts.timestamp = <int64_t>switch_timestamp(newest, encoding, packet, now) - packet.header.timestamp
    if packet.vp8.present and newest.vp8:
        if packet.vp8.picture_id >= 0:
            shifts.picture_id = newest.picture_id + newest.shifts.picture_id + 1 - packet.vp8.picture_id
        if packet.vp8.tl0 >= 0:
            shifts.tl0 = newest.tl0 + newest.shifts.tl0 + 1 - packet.vp8.tl0
    return shifts


cdef uint32_t switch_timestamp(Newest *newest, Encoding *encoding, Packet *packet, double now) noexcept nogil:
    """The output timestamp of a layer's first packet, by both layers' sender reports or else by the time gone by."""
    cdef uint32_t last = <uint32_t>(newest.timestamp + newest.shifts.timestamp)
    cdef int64_t least = max(<int64_t>1, <int64_t>(0.001 * encoding.clock_rate))
    cdef int64_t by_arrival = max(least, <int64_t>rint((now - newest.arrived) * encoding.clock_rate))
    cdef int64_t step = by_arrival, by_reports
    cdef uint32_t aligned
    if newest.encoding != NULL and newest.encoding.clock.on and encoding.clock.on:
        aligned = clock_align(&newest.encoding.clock, &encoding.clock, packet.header.timestamp)
        by_reports = timestamp_delta(<uint32_t>(aligned + newest.shifts.timestamp), last)
        if fabs(<double>(by_reports - by_arrival)) <= encoding.clock_rate:
            step = max(least, by_reports)
    return <uint32_t>(last + step)


# -- forwarding

cdef void consumer_forward(Engine *engine, Consumer *consumer, Encoding *encoding, Packet *packet, double now) noexcept nogil:
    """Send a new packet of the producer, if this consumer is to have it."""
    cdef Span *span
    cdef int64_t out_index
    cdef bint first
    cdef Shifts closer
    if consumer.paused or not peer_ready(consumer.peer):
        return
    if encoding != consumer.source:
        span = consumer_switch(engine, consumer, encoding, packet, now)
    else:
        span = span_at(consumer, 0)
        if packet.index < span.in_start:
            span = span_for_late(consumer, encoding, packet.index)
    if span == NULL:
        return
    if not consumer.accepted[packet.header.payload_type]:
        engine.totals.drops[FOREIGN_CODEC] += 1
        return
    first = not consumer.newest.on
    out_index = packet.index + span.shifts.sequence
    if out_index > consumer.highest_out:
        if packet.payload_length == 0 and span == span_at(consumer, 0):
            closer = span.shifts
            closer.sequence -= 1
            span_begin(consumer, encoding, packet.index + 1, packet.index + span.shifts.sequence, closer)
            return
        consumer.highest_out = out_index
        consumer_remember(consumer, encoding, packet, span)
    if consumer_emit(engine, consumer, packet, &span.shifts, out_index, now) and first:
        consumer.flowing = True
        event_add(engine, CONSUMER_FLOWING, consumer.id)
        timer_add(engine, now + 0.1, SENDER_REPORT, consumer.serial)


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


cdef inline void rtp_head(uint8_t *out, bint extended, bint padded, uint8_t second, int64_t sequence, uint32_t timestamp, uint32_t ssrc) noexcept nogil:
    out[0] = 0x80 | (0x10 if extended else 0) | (0x20 if padded else 0)
    out[1] = second
    write16(out + 2, <uint32_t>sequence & 0xFFFF)
    write32(out + 4, timestamp)
    write32(out + 8, ssrc)


cdef bint consumer_emit(Engine *engine, Consumer *consumer, Packet *packet, Shifts *shifts, int64_t out_index, double now) noexcept nogil:
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
    if out == NULL or 12 + head + length > MAX_PLAIN or consumer.highest_out - out_index >= WINDOW_WORDS * 64:
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
        block_sequence(out + 12, &consumer.peer.delivery)
    head += 12
    if packet.vp8.present and (shifts.picture_id or shifts.tl0):
        memcpy(moved, payload, length)
        vp8_shift(moved, &packet.vp8, shifts.picture_id, shifts.tl0)
        payload = moved
    written = srtp_protect(consumer.peer, out, head, payload, length, consumer.ssrc, out_index - (consumer.cycle << 16))
    if written < 0:
        engine.totals.drops[NOT_SENT] += 1
        return False
    consumer.octets += packet.payload_length
    if consumer.plan.sequenced:
        delivery_sent(&consumer.peer.delivery, head + length, consumer.ssrc, now)
    consumer_sent(engine, consumer, written, head + length, packet.received_ns)
    return True


cdef inline void consumer_sent(Engine *engine, Consumer *consumer, int written, int plain, int64_t received_ns) noexcept nogil:
    out_commit(engine, consumer.peer, written, received_ns)
    consumer.sent += 1
    consumer.sent_bytes += plain
    engine.totals.forwarded += 1
    engine.totals.forwarded_bytes += plain


# -- feedback of the peer

cdef void consumer_nack(Engine *engine, Consumer *consumer, uint16_t sequence, double now) noexcept nogil:
    """Send again what the peer misses and the ring still has."""
    cdef int64_t out_index = consumer.highest_out + sequence_delta(sequence, <uint16_t>consumer.highest_out)
    cdef Packet *packet = NULL
    cdef Span *span = NULL
    cdef int back, verdict
    consumer.nacks += 1
    if out_index <= consumer.highest_out:
        for back in range(consumer.span_count):
            if span_at(consumer, back).out_start <= out_index:
                span = span_at(consumer, back)
                break
    if span != NULL and span.source != NULL:
        packet = ring_get(span.source, out_index - span.shifts.sequence)
        if packet == NULL and missing_find(&span.source.missing, out_index - span.shifts.sequence) >= 0:
            engine.totals.drops[RESEND_AWAITED] += 1
            return
    # Without RTX a resend is the same to the byte, and a transport-wide number is never used twice.
    if packet == NULL or (consumer.plan.sequenced and not consumer.has_rtx):
        consumer.unanswered += 1
        engine.totals.drops[RESEND_UNKNOWN] += 1
        return
    verdict = resend_ask(consumer, out_index, now)
    if verdict >= 0:
        engine.totals.drops[verdict] += 1
    elif consumer_resend(engine, consumer, packet, &span.shifts, out_index, now):
        consumer.resent += 1
        engine.totals.resent += 1


cdef int resend_ask(Consumer *consumer, int64_t out_index, double now) noexcept nogil:
    """-1: send it; else why not. Once per round trip, and within a budget; as sfu.core.media.retransmit."""
    cdef double wait = fmin(fmax(consumer.least_rtt_s if consumer.has_rtt else 0.05, 0.02), 0.5)
    cdef Resent *last
    if consumer.resents == NULL:
        # Made on the first NACK: most consumers never send one.
        consumer.resents = <Resent *>calloc(REMEMBERED, sizeof(Resent))
        if consumer.resents == NULL:
            return NO_MEMORY
    last = &consumer.resents[modulo(out_index, REMEMBERED)]
    if last.on and last.index == out_index and now - last.at < wait:
        return RESEND_REPEATED
    consumer.tokens = fmin(200.0, consumer.tokens + (consumer.sent - consumer.resent - consumer.earned_at) * 0.5)
    consumer.earned_at = consumer.sent - consumer.resent
    if consumer.tokens < 1.0:
        return RESEND_OVER_BUDGET
    consumer.tokens -= 1.0
    last[0] = Resent(out_index, now, True)
    return -1


cdef bint consumer_resend(Engine *engine, Consumer *consumer, Packet *packet, Shifts *shifts, int64_t out_index, double now) noexcept nogil:
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
        block_sequence(out + 12, &consumer.peer.delivery)
    write16(payload, <uint32_t>out_index & 0xFFFF)
    memcpy(payload + 2, packet.bytes + packet.payload_at, length)
    if packet.vp8.present and (shifts.picture_id or shifts.tl0):
        vp8_shift(payload + 2, &packet.vp8, shifts.picture_id, shifts.tl0)
    written = srtp_protect(
        consumer.peer, out, 12 + block, payload, 2 + length, consumer.rtx_ssrc, consumer.rtx_index - (consumer.rtx_cycle << 16)
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
    cdef uint32_t last_sr = read32(block + 16)
    cdef int back, at
    consumer.fraction_lost = block[4] / 256.0
    if last_sr == 0:
        return
    for back in range(1, min(consumer.reports, <int>KEPT_REPORTS) + 1):
        at = (consumer.reports - back) % KEPT_REPORTS
        if consumer.report_ntp[at] == last_sr:
            consumer.rtt_s = fmax(0.0, now - consumer.report_at[at] - read32(block + 20) / 65536.0)
            if not consumer.has_rtt or consumer.rtt_s < consumer.least_rtt_s:
                consumer.least_rtt_s = consumer.rtt_s
            else:
                consumer.least_rtt_s += (consumer.rtt_s - consumer.least_rtt_s) / 8
            consumer.has_rtt = True
            return


cdef double consumer_report(Engine *engine, Consumer *consumer, double now) noexcept nogil:
    """A sender report: the publisher's own pairing of NTP and RTP time, moved onto this consumer's timestamps."""
    cdef uint8_t out[28 + 8 + 2 + MAX_NAME + 8]
    cdef uint64_t ntp = 0
    cdef uint32_t timestamp = 0
    cdef int length, chunk, slot
    if consumer.newest.encoding == NULL or not clock_at(&consumer.newest.encoding.clock, now, &ntp, &timestamp):
        return now + 1.0
    rtcp_head(out, 0, 200, 28)
    write32(out + 4, consumer.ssrc)
    write32(out + 8, <uint32_t>(ntp >> 32))
    write32(out + 12, <uint32_t>ntp)
    write32(out + 16, <uint32_t>(timestamp + consumer.newest.shifts.timestamp))
    write32(out + 20, <uint32_t>consumer.sent)
    write32(out + 24, <uint32_t>consumer.octets)
    chunk = 6 + consumer.cname.length
    length = 28 + 4 + chunk + 4 - chunk % 4
    memset(out + 28, 0, length - 28)
    rtcp_head(out + 28, 1, 202, length - 28)
    write32(out + 32, consumer.ssrc)
    out[36] = 1
    out[37] = <uint8_t>consumer.cname.length
    memcpy(out + 38, consumer.cname.text, consumer.cname.length)
    slot = consumer.reports % KEPT_REPORTS
    consumer.report_ntp[slot] = <uint32_t>(ntp >> 16)
    consumer.report_at[slot] = now
    consumer.reports += 1
    peer_send_rtcp(engine, consumer.peer, out, length)
    return now + 1.0


cdef void consumer_free(Engine *engine, Consumer *consumer) noexcept nogil:
    table_remove(&engine.objects, consumer.serial, 0, 0)
    free(consumer.resents)
    free(consumer)
