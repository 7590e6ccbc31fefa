# Transport-wide feedback from those who get media: what we sent, and what became of it; as sfu.core.media.delivery.

cdef enum:
    FEWEST_SENT = 256           # packets remembered at first; powers of two
    MOST_SENT = 4096
    MAX_REPORTED = 8192         # as shared.rtc.transport_cc
    RATE_TICKS = 2000
    MAX_DELIVERY_EVENTS = 4096  # waiting for Python

cdef enum:  # SentState
    ON_ITS_WAY, TOLD_LOST, ARRIVED

cdef double KEPT_S = 1.0


cdef int delivery_open(Delivery *delivery) noexcept nogil:
    """0, or -1 without memory. For who is open already nothing changes."""
    if delivery.ring != NULL:
        return 0
    delivery.ring = <SentPacket *>calloc(FEWEST_SENT, sizeof(SentPacket))
    delivery.room = FEWEST_SENT
    delivery.told = -1
    return 0 if delivery.ring != NULL else -1


cdef inline SentPacket *sent_at(Delivery *delivery, int64_t index) noexcept nogil:
    return &delivery.ring[index & (delivery.room - 1)]


cdef inline void block_sequence(uint8_t *block, Delivery *delivery) noexcept nogil:
    """Write the number of the next packet into its own copy of a block, where the plan has left room for it."""
    write16(block + (5 if block[0] == 0xBE else 6), <uint32_t>delivery.next & 0xFFFF)


cdef inline void delivery_sent(Delivery *delivery, int size, uint32_t ssrc, double now) noexcept nogil:
    """The packet with the next number has been made."""
    cdef int64_t oldest = delivery.next - delivery.room
    if oldest >= delivery.first and not delivery_grows(delivery, oldest, now):
        delivery.first = oldest + 1
    sent_at(delivery, delivery.next)[0] = SentPacket(now, ssrc, <uint16_t>size, ON_ITS_WAY)
    delivery.next += 1


cdef bint delivery_grows(Delivery *delivery, int64_t oldest, double now) noexcept nogil:
    """What feedback will still tell of is not forgotten for a newer packet; a peer that gives none needs no memory."""
    cdef SentPacket *larger
    cdef int64_t index
    if delivery.feedbacks == 0 or oldest <= delivery.told or delivery.room >= MOST_SENT:
        return False
    if now - sent_at(delivery, oldest).at >= KEPT_S:
        return False
    larger = <SentPacket *>calloc(2 * delivery.room, sizeof(SentPacket))
    if larger == NULL:
        return False
    for index in range(delivery.first, delivery.next):
        larger[index & (2 * delivery.room - 1)] = sent_at(delivery, index)[0]
    free(delivery.ring)
    delivery.ring = larger
    delivery.room *= 2
    return True


# -- reading a feedback

cdef int transport_deltas(const uint8_t *body, int length) noexcept nogil:
    """Where a feedback's deltas begin; -1 when it does not have all that its counts promise."""
    cdef int left, position = 16, deltas = 0, chunk, run, one, symbol
    if length < 16:
        return -1
    left = read16(body + 10)
    if left > MAX_REPORTED:
        return -1
    while left > 0:
        if position + 2 > length:
            return -1
        chunk = read16(body + position)
        position += 2
        run = chunk_run(chunk, left)
        if run == 0:
            return -1
        for one in range(run if chunk & 0x8000 else 1):
            symbol = chunk_symbol(chunk, one)
            if symbol > LARGE:
                return -1
            deltas += symbol if chunk & 0x8000 else symbol * run
        left -= run
    return position if position + deltas <= length else -1


cdef inline int chunk_run(int chunk, int left) noexcept nogil:
    """How many statuses a chunk says, at most `left`: its rest is filling."""
    if not chunk & 0x8000:
        return min(chunk & RUN_MASK, left)
    return min(7 if chunk & 0x4000 else 14, left)


cdef inline int chunk_symbol(int chunk, int one) noexcept nogil:
    if not chunk & 0x8000:
        return chunk >> 13
    if chunk & 0x4000:
        return chunk >> 2 * (6 - one) & 3
    return chunk >> (13 - one) & 1


cdef void transport_feedback(Engine *engine, Peer *peer, const uint8_t *body, int length, double now) noexcept nogil:
    """Take a readable feedback. Its cost grows with its bytes and with what was sent, not with the numbers in it."""
    cdef Delivery *delivery = &peer.delivery
    cdef Reported reported
    cdef int left = read16(body + 10), chunks = 16, deltas = transport_deltas(body, length), chunk, run, one, symbol
    cdef int64_t newest = delivery.next - 1, index, ticks
    engine.totals.feedbacks_received += 1
    if delivery.ring == NULL:
        return
    delivery.feedbacks += 1
    ticks = delivery_ticks(delivery, read32(body + 12) >> 8)
    index = newest + sequence_delta(read16(body + 8), <uint16_t>newest)
    memset(&reported, 0, sizeof(Reported))
    reported.wanted = peer.follows_delivery
    reported.room = min(left, <int>delivery.room)
    while left > 0:
        chunk = read16(body + chunks)
        chunks += 2
        run = chunk_run(chunk, left)
        left -= run
        if chunk & 0xE000 == 0:
            delivery_lost(engine, delivery, index, index + run, &reported)
            index += run
            continue
        for one in range(run):
            symbol = chunk_symbol(chunk, one)
            if symbol == LOST:
                delivery_lost(engine, delivery, index, index + 1, &reported)
            elif symbol == SMALL:
                ticks += body[deltas]
            else:
                ticks += <int16_t>read16(body + deltas)
            deltas += symbol
            if symbol:
                delivery_arrived(engine, delivery, index, ticks, &reported)
            index += 1
    delivery.told = max(delivery.told, min(index - 1, newest))
    delivery_rate(delivery)
    if reported.count:
        delivery_tell(engine, peer, &reported, now)
    else:
        free(reported.packets)


cdef inline int64_t delivery_ticks(Delivery *delivery, uint32_t reference) noexcept nogil:
    """The reference time without its wrap, which comes every 12 days."""
    if delivery.has_reference:
        delivery.reference += (<int64_t>((reference - delivery.reference + 0x800000) & 0xFFFFFF)) - 0x800000
    else:
        delivery.has_reference = True
        delivery.reference = reference
    return delivery.reference * 256


cdef void delivery_lost(Engine *engine, Delivery *delivery, int64_t start, int64_t end, Reported *reported) noexcept nogil:
    """Numbers from `start` to before `end` have not arrived, as far as the peer knows; each is told once."""
    cdef int64_t index
    cdef SentPacket *packet
    for index in range(max(start, delivery.told + 1, delivery.first), min(end, delivery.next)):
        packet = sent_at(delivery, index)
        packet.state = TOLD_LOST
        delivery.lost += 1
        reported_add(engine, reported, packet, False, 0)


cdef void delivery_arrived(Engine *engine, Delivery *delivery, int64_t index, int64_t ticks, Reported *reported) noexcept nogil:
    cdef SentPacket *packet
    if index < delivery.first or index >= delivery.next:
        return
    packet = sent_at(delivery, index)
    if packet.state == ARRIVED:
        return
    if packet.state == TOLD_LOST:
        delivery.lost -= 1
    packet.state = ARRIVED
    delivery.acknowledged += 1
    delivery.acknowledged_bytes += packet.size
    if not delivery.rate_on or ticks < delivery.rate_start:
        # What has arrived by the beginning of the interval is no part of it.
        delivery.rate_on = True
        delivery.rate_start = delivery.rate_newest = ticks
        delivery.rate_bytes = 0
    else:
        delivery.rate_newest = max(delivery.rate_newest, ticks)
        delivery.rate_bytes += packet.size
    reported_add(engine, reported, packet, True, ticks)


cdef inline void delivery_rate(Delivery *delivery) noexcept nogil:
    cdef int64_t span = delivery.rate_newest - delivery.rate_start
    if not delivery.rate_on or span < RATE_TICKS:
        return
    delivery.has_rate = True
    delivery.rate_bps = delivery.rate_bytes * 32000 // span
    delivery.rate_start = delivery.rate_newest
    delivery.rate_bytes = 0


# -- telling Python, for peers that it follows

cdef inline void reported_add(Engine *engine, Reported *reported, SentPacket *packet, bint has_arrived, int64_t ticks) noexcept nogil:
    if not reported.wanted:
        return
    if reported.packets == NULL:
        reported.packets = <DeliveredPacket *>malloc(reported.room * sizeof(DeliveredPacket))
        if reported.packets == NULL:
            engine.totals.drops[NO_MEMORY] += 1
            reported.wanted = False
            return
    reported.packets[reported.count] = DeliveredPacket(packet.at, ticks, packet.ssrc, packet.size, has_arrived)
    reported.count += 1


cdef void delivery_tell(Engine *engine, Peer *peer, Reported *reported, double now) noexcept nogil:
    cdef Event *event = NULL
    if engine.delivery_events < MAX_DELIVERY_EVENTS:
        event = event_add(engine, DELIVERY_REPORTED, peer.id)
    else:
        engine.totals.drops[QUEUE_FULL] += 1
    if event == NULL:
        free(reported.packets)
        return
    engine.delivery_events += 1
    event.at = now
    event.packets = <DeliveredPacket *>realloc(reported.packets, reported.count * sizeof(DeliveredPacket))
    if event.packets == NULL:
        event.packets = reported.packets
    event.packet_count = reported.count
