# RTCP of the plane: what peers report and ask for, and the reports they get.

from sfu.plane import feedback

cpdef enum:
    MAX_REMB_SSRCS = 64

cdef double FIRST_REPORT_S = feedback.FIRST_REPORT_S
cdef double REPORT_S = feedback.REPORT_S
cdef double REFERENCE_EVERY_S = feedback.REFERENCE_EVERY_S


# -- arriving

cdef void heard(Engine *engine, Peer *peer, double now) noexcept nogil:
    """An authentic packet came."""
    if not peer.heard:
        peer.heard = True
        event_add(engine, PEER_HEARD, peer.id)
    peer.last_heard = now


cdef void handle_rtcp(Engine *engine, Peer *peer, const uint8_t *data, int size, double now) noexcept nogil:
    cdef int position = 0, length, body
    if not rtcp_check(data, size):
        engine.totals.drops[BAD_RTCP] += 1
        return
    heard(engine, peer, now)
    while position < size:
        length = 4 + 4 * read16(data + position + 2)
        body = body_length(data + position, length)
        rtcp_one(engine, peer, data[position + 1], data[position] & 0x1F, data + position + 4, body, now)
        position += length
    if peer.reference_answered and now - peer.reference_answered_at < REFERENCE_EVERY_S:
        return  # no flood
    position = 0
    while position < size:
        length = 4 + 4 * read16(data + position + 2)
        body = body_length(data + position, length)
        if data[position + 1] == 207 and since_reference(engine, peer, data + position + 4, body):
            peer.reference_answered = True
            peer.reference_answered_at = now
            return
        position += length


cdef void rtcp_one(
    Engine *engine, Peer *peer, int packet_type, int count, const uint8_t *body, int length, double now
) noexcept nogil:
    cdef int at
    if packet_type == 200:
        sender_report(peer, body, now)
        report_blocks(peer, body + 24, count, now)
    elif packet_type == 201:
        report_blocks(peer, body + 4, count, now)
    elif packet_type == 203:
        for at in range(count):
            producer_bye(engine, peer, read32(body + 4 * at))
    elif packet_type == 205 and count == 1:
        nack(engine, peer, body, length, now)
    elif packet_type == 205 and count == 15:
        transport_feedback(engine, peer, body, length, now)
    elif packet_type == 206 and count == 1:
        picture_loss(engine, peer, read32(body + 4), now)
    elif packet_type == 206 and count == 4:
        # The media SSRC of the head is unused; each entry names its own (RFC 5104 section 4.3.1.2).
        for at in range(8, length - 7, 8):
            picture_loss(engine, peer, read32(body + at), now)


cdef bint since_reference(Engine *engine, Peer *peer, const uint8_t *body, int length) noexcept nogil:
    """Answer a reference time at once (RFC 3611 section 4.5); False when there is none."""
    cdef uint8_t out[24]
    cdef int at = reference_time(body, length)
    if at <= 0:
        return False
    rtcp_head(out, 0, 207, 24)
    write32(out + 4, engine.ssrc)
    write32(out + 8, 5 << 24 | 3)
    write32(out + 12, read32(body))
    write32(out + 16, <uint32_t>(read64(body + at) >> 16))
    write32(out + 20, 0)
    peer_send_rtcp(engine, peer, out, 24)
    return True


cdef void sender_report(Peer *peer, const uint8_t *body, double now) noexcept nogil:
    cdef void *route = table_get(&peer.routes, read32(body), 0, 0)
    cdef Encoding *encoding
    cdef Stats *stats
    if route == NULL or route_encoding(route) == NULL:
        return
    encoding = route_encoding(route)
    stats = &encoding.rtx_stats if route_is_rtx(route) else &encoding.stats
    if not stats.on:
        return
    stats.last_sr = <uint32_t>(read64(body + 4) >> 16)
    stats.last_sr_at = now
    if not route_is_rtx(route):
        encoding.clock = Clock(True, read64(body + 4), read32(body + 12), encoding.clock_rate, now)


cdef void report_blocks(Peer *peer, const uint8_t *blocks, int count, double now) noexcept nogil:
    cdef int at
    cdef Consumer *consumer
    for at in range(count):
        consumer = <Consumer *>table_get(&peer.by_ssrc, read32(blocks + 24 * at), 0, 0)
        if consumer != NULL:
            consumer_reported(consumer, blocks + 24 * at, now)


cdef void nack(Engine *engine, Peer *peer, const uint8_t *body, int length, double now) noexcept nogil:
    cdef Consumer *consumer = <Consumer *>table_get(&peer.by_ssrc, read32(body + 4), 0, 0)
    cdef int position, bit
    cdef uint16_t base, mask
    engine.totals.counts.nacks_received += nack_count(body, length)
    if consumer == NULL:
        return
    for position in range(8, length - 3, 4):
        base = read16(body + position)
        mask = read16(body + position + 2)
        consumer_nack(engine, consumer, base, now)
        for bit in range(16):
            if mask >> bit & 1:
                consumer_nack(engine, consumer, <uint16_t>(base + bit + 1), now)


cdef void picture_loss(Engine *engine, Peer *peer, uint32_t ssrc, double now) noexcept nogil:
    cdef Consumer *consumer = <Consumer *>table_get(&peer.by_ssrc, ssrc, 0, 0)
    cdef Encoding *wanted
    engine.totals.counts.plis_received += 1
    if consumer == NULL:
        return
    consumer.counts.plis += 1
    wanted = consumer.source if consumer.source != NULL else consumer.target
    if wanted != NULL:
        encoding_request_keyframe(engine, wanted, now)


# -- leaving

cdef void feedback_new_ssrc(Engine *engine, Peer *peer, double now) noexcept nogil:
    """An SSRC was bound: report on it soon (Chromium sends MID and RID until then), and then once a second."""
    if not peer.report_pending:
        peer.report_pending = True
        timer_add(engine, now + FIRST_REPORT_S, EARLY_REPORT, peer.serial)
    if not peer.reporting:
        peer.reporting = True
        timer_add(engine, now + REPORT_S, RECEIVER_REPORT, peer.serial)


cdef double peer_report(Engine *engine, Peer *peer, double now) noexcept nogil:
    """Receiver reports about all that the peer sends, and what its videos may use."""
    cdef uint8_t out[8 + 24 * MAX_BLOCKS + 20 + 4 * MAX_REMB_SSRCS]
    cdef int one, layer, which, blocks = 0
    cdef Encoding *encoding
    cdef Producer *producer
    cdef Stats *stats
    for one in range(peer.producers.count):
        producer = <Producer *>peer.producers.items[one]
        for layer in range(producer.encodings.count):
            encoding = <Encoding *>producer.encodings.items[layer]
            for which in range(2):
                stats = &encoding.rtx_stats if which else &encoding.stats
                if not stats.on:
                    continue
                if blocks == MAX_BLOCKS:
                    report_send(engine, peer, out, blocks, 0)
                    blocks = 0
                stats_block(stats, now, out + 8 + 24 * blocks)
                blocks += 1
    report_send(engine, peer, out, blocks, remb(engine, peer, out + 8 + 24 * blocks))
    return now + REPORT_S


cdef void report_send(Engine *engine, Peer *peer, uint8_t *out, int blocks, int more) noexcept nogil:
    rtcp_head(out, blocks, 201, 8 + 24 * blocks)
    write32(out + 4, engine.ssrc)
    peer_send_rtcp(engine, peer, out, 8 + 24 * blocks + more)


cdef int remb(Engine *engine, Peer *peer, uint8_t *out) noexcept nogil:
    """The bandwidth of a peer's videos together; without it a browser never sends its highest layer. Its length."""
    cdef int one, layer, count = 0, exponent = 0
    cdef int64_t allowed = 0
    cdef Producer *producer
    cdef Encoding *encoding
    for one in range(peer.producers.count):
        producer = <Producer *>peer.producers.items[one]
        if producer.audio:
            continue
        allowed += producer.remb_bps
        for layer in range(producer.encodings.count):
            encoding = <Encoding *>producer.encodings.items[layer]
            if encoding.bound and count < MAX_REMB_SSRCS:
                write32(out + 20 + 4 * count, encoding.ssrc)
                count += 1
    if count == 0:
        return 0
    while allowed >> exponent >= 1 << 18:
        exponent += 1
    rtcp_head(out, 15, 206, 20 + 4 * count)
    write32(out + 4, engine.ssrc)
    write32(out + 8, 0)
    memcpy(out + 12, b"REMB", 4)
    write32(out + 16, <uint32_t>(count << 24 | exponent << 18 | (allowed >> exponent)))
    return 20 + 4 * count
