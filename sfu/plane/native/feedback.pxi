# Datagrams of media by kind, RTCP read and written (RFC 3550, 3611, 4585, 5104, REMB draft); as sfu.plane.feedback.

cdef inline void rtcp_head(uint8_t *out, int count, int packet_type, int length) noexcept nogil:
    out[0] = <uint8_t>(0x80 | count)
    out[1] = <uint8_t>packet_type
    write16(out + 2, length // 4 - 1)


cdef int rtcp_nack(uint8_t *out, uint32_t sender, uint32_t media, const uint16_t *sequences, int count) noexcept nogil:
    """Ask for packets again, at most MAX_MISSING in ascending order across the wrap; the length."""
    cdef int at, length = 12, ahead
    cdef uint16_t base = 0, mask = 0
    for at in range(count):
        ahead = (sequences[at] - base) & 0xFFFF
        if length > 12 and 1 <= ahead <= 16:
            mask |= <uint16_t>(1 << (ahead - 1))
        else:
            base = sequences[at]
            mask = 0
            length += 4
        write16(out + length - 4, base)
        write16(out + length - 2, mask)
    rtcp_head(out, 1, 205, length)
    write32(out + 4, sender)
    write32(out + 8, media)
    return length


# -- arriving

cdef int body_length(const uint8_t *data, int length) noexcept nogil:
    """Of the packet at `data`, which is framed well: without head and padding, or -1."""
    cdef int body = length - 4
    if not data[0] & 0x20:
        return body
    if body == 0 or data[length - 1] == 0 or data[length - 1] > body:
        return -1
    return body - data[length - 1]


cdef bint rtcp_readable(int packet_type, int count, const uint8_t *body, int length) noexcept nogil:
    """Whether a packet of a kind we use has all that its counts promise, as shared.rtc.rtcp.parse wants it."""
    if packet_type == 200:
        return length >= 24 + 24 * count
    if packet_type == 201:
        return length >= 4 + 24 * count
    if packet_type == 202:
        return sdes_readable(count, body, length)
    if packet_type == 203:
        return length >= 4 * count
    if packet_type == 205 and count == 1:
        return length >= 8
    if packet_type == 205 and count == 15:
        return transport_deltas(body, length) >= 0
    if packet_type == 206:
        if length < 8:
            return False
        if count == 15 and length >= 12 and memcmp(body + 8, b"REMB", 4) == 0:
            return length >= 16 and length >= 16 + 4 * body[12]
    if packet_type == 207:
        return reference_time(body, length) >= 0
    return True


cdef int reference_time(const uint8_t *body, int length) noexcept nogil:
    """Where the first reference time of an extended report begins (RFC 3611 section 4.4): 0 without one, -1 broken."""
    cdef int position = 4, end
    if length < 4:
        return -1
    while position < length:
        if position + 4 > length:
            return -1
        end = position + 4 + 4 * read16(body + position + 2)
        if end > length:
            return -1
        if body[position] == 4 and end == position + 12:
            return position + 4
        position = end
    return 0


cdef bint sdes_readable(int count, const uint8_t *body, int length) noexcept nogil:
    cdef int position = 0, chunk
    for chunk in range(count):
        if position + 4 > length:
            return False
        position += 4
        while True:
            if position >= length:
                return False
            if body[position] == 0:
                break
            if position + 1 >= length:
                return False
            position += 2 + body[position + 1]
        position += 4 - position % 4
    return True


cdef int nack_count(const uint8_t *body, int length) noexcept nogil:
    """Sequence numbers in a NACK."""
    cdef int position, count = 0, bit
    for position in range(8, length - 3, 4):
        count += 1
        for bit in range(16):
            count += read16(body + position + 2) >> bit & 1
    return count


cdef bint rtcp_check(const uint8_t *data, int size) noexcept nogil:
    """Whether a whole compound is framed well and asks for no more than a cache holds; nothing of it is used otherwise."""
    cdef int position = 0, length, body, nacked = 0
    if size == 0:
        return False
    while position < size:
        if position + 4 > size:
            return False
        length = 4 + 4 * read16(data + position + 2)
        if data[position] >> 6 != 2 or position + length > size:
            return False
        body = body_length(data + position, length)
        if body < 0 or not rtcp_readable(data[position + 1], data[position] & 0x1F, data + position + 4, body):
            return False
        if data[position + 1] == 205 and data[position] & 0x1F == 1:
            nacked += nack_count(data + position + 4, body)
            if nacked > MAX_NACKED:
                return False
        position += length
    return True


cdef void heard(Engine *engine, Peer *peer, double now) noexcept nogil:
    """An authentic packet came."""
    if not peer.heard:
        peer.heard = True
        event_add(engine, PEER_HEARD, peer.id)
    peer.last_heard = now


cdef void handle_rtcp(Engine *engine, Peer *peer, const uint8_t *data, int size, double now) noexcept nogil:
    cdef int position = 0, length
    if not rtcp_check(data, size):
        engine.totals.drops[BAD_RTCP] += 1
        return
    heard(engine, peer, now)
    while position < size:
        length = 4 + 4 * read16(data + position + 2)
        rtcp_one(engine, peer, data[position + 1], data[position] & 0x1F, data + position + 4, body_length(data + position, length), now)
        position += length
    if peer.reference_answered and now - peer.reference_answered_at < 0.1:
        return  # no flood
    position = 0
    while position < size:
        length = 4 + 4 * read16(data + position + 2)
        if data[position + 1] == 207 and since_reference(engine, peer, data + position + 4, body_length(data + position, length)):
            peer.reference_answered = True
            peer.reference_answered_at = now
            return
        position += length


cdef void rtcp_one(Engine *engine, Peer *peer, int packet_type, int count, const uint8_t *body, int length, double now) noexcept nogil:
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
    engine.totals.nacks_received += nack_count(body, length)
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
    engine.totals.plis_received += 1
    if consumer == NULL:
        return
    consumer.plis += 1
    wanted = consumer.source if consumer.source != NULL else consumer.target
    if wanted != NULL:
        encoding_request_keyframe(engine, wanted, now)


cdef void handle_rtp(Engine *engine, Peer *peer, const uint8_t *data, int size, double now) noexcept nogil:
    cdef Header header
    cdef void *route
    cdef Encoding *encoding
    cdef Packet *packet
    if rtp_parse(data, size, &header) < 0:
        engine.totals.drops[BAD_RTP] += 1
        return
    heard(engine, peer, now)
    arrived(engine, peer, data, &header, now)
    route = table_get(&peer.routes, header.ssrc, 0, 0)
    if route == NULL:
        route = peer_bind(engine, peer, data, &header, now)
    if route == NULL or route_encoding(route) == NULL:
        engine.totals.drops[UNKNOWN_SSRC] += 1
        return
    encoding = route_encoding(route)
    if route_is_rtx(route):
        packet = encoding_take_rtx(engine, encoding, data, size, &header, now)
    else:
        packet = encoding_take(engine, encoding, data, size, &header, now)
    if packet != NULL:
        producer_deliver(engine, encoding.producer, encoding, packet, now)


cdef void handle_media(Engine *engine, uint8_t *data, int size, const Address *source, double now) noexcept nogil:
    """An SRTP or SRTCP datagram (first byte 128..191), changed in place."""
    cdef Peer *peer = <Peer *>table_get(&engine.addresses, source.high, source.low, source.port)
    cdef int plain
    engine.totals.packets_in += 1
    engine.totals.bytes_in += size
    if peer == NULL:
        engine.totals.drops[UNKNOWN_ADDRESS] += 1
    elif size < 12:
        engine.totals.drops[BAD_RTP] += 1
    elif 192 <= data[1] <= 223:
        plain = srtp_unprotect(engine, peer, data, size, read32(data + 4), True)
        if plain >= 0:
            handle_rtcp(engine, peer, data, plain, now)
    else:
        plain = srtp_unprotect(engine, peer, data, size, read32(data + 8), False)
        if plain >= 0:
            handle_rtp(engine, peer, data, plain, now)


# -- leaving

cdef void feedback_new_ssrc(Engine *engine, Peer *peer, double now) noexcept nogil:
    """An SSRC was bound: report on it soon (Chromium sends MID and RID until then), and then once a second."""
    if not peer.report_pending:
        peer.report_pending = True
        timer_add(engine, now + 0.1, EARLY_REPORT, peer.serial)
    if not peer.reporting:
        peer.reporting = True
        timer_add(engine, now + 1.0, RECEIVER_REPORT, peer.serial)


cdef double peer_report(Engine *engine, Peer *peer, double now) noexcept nogil:
    """Receiver reports about all that the peer sends, and what its videos may use."""
    cdef uint8_t out[8 + 24 * 31 + 20 + 4 * 64]
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
                if blocks == 31:
                    report_send(engine, peer, out, blocks, 0)
                    blocks = 0
                stats_block(stats, now, out + 8 + 24 * blocks)
                blocks += 1
    report_send(engine, peer, out, blocks, remb(engine, peer, out + 8 + 24 * blocks))
    return now + 1.0


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
            if encoding.bound and count < 64:
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
