# What we sent to a peer under transport-wide sequence numbers, and what its feedback says became of it.

from sfu.core.media import delivery

cdef enum:  # SentState
    ON_ITS_WAY, TOLD_LOST, ARRIVED

cdef int FEWEST = delivery.FEWEST       # powers of two
cdef int MOST = delivery.MOST
cdef int RATE_TICKS = delivery.RATE_TICKS
cdef double KEPT_S = delivery.KEPT_S

cdef struct DeliveredPacket:
    double sent_at
    int64_t ticks               # of arrival
    uint32_t ssrc
    uint16_t size
    bint arrived

cdef struct SentPacket:
    double at
    uint32_t ssrc
    uint16_t size
    uint16_t state

cdef struct Delivery:
    SentPacket *ring            # NULL before a consumer has negotiated transport-wide sequence numbers
    int64_t room
    int64_t next
    int64_t first               # the oldest remembered
    int64_t told                # the newest that a feedback told of
    int64_t feedbacks
    int64_t acknowledged
    int64_t acknowledged_bytes
    int64_t lost
    bint has_reference
    int64_t reference
    bint rate_on
    int64_t rate_start
    int64_t rate_newest
    int64_t rate_bytes
    bint has_rate
    int64_t rate_bps

cdef struct Reported:
    bint wanted
    int room
    int count
    DeliveredPacket *packets


cdef int delivery_open(Delivery *delivery) noexcept nogil:
    """0, or -1 without memory; nothing changes when it is open already."""
    if delivery.ring != NULL:
        return 0
    delivery.ring = <SentPacket *>calloc(FEWEST, sizeof(SentPacket))
    delivery.room = FEWEST
    delivery.told = -1
    return 0 if delivery.ring != NULL else -1


cdef inline SentPacket *sent_at(Delivery *delivery, int64_t index) noexcept nogil:
    return &delivery.ring[index & (delivery.room - 1)]


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
    if delivery.feedbacks == 0 or oldest <= delivery.told or delivery.room >= MOST:
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


# -- what a feedback says

cdef void delivery_heard(
    Engine *engine, Delivery *delivery, const uint8_t *body, int length, Reported *news
) noexcept nogil:
    """Take a readable feedback. Its cost grows with its bytes and with what was sent, not with the numbers in it."""
    cdef int left = read16(body + 10), chunks = 16, deltas = transport_deltas(body, length), chunk, run, one, symbol
    cdef int64_t newest = delivery.next - 1, index, ticks
    delivery.feedbacks += 1
    ticks = delivery_ticks(delivery, read32(body + 12) >> 8)
    index = newest + sequence_delta(read16(body + 8), <uint16_t>newest)
    news.room = min(left, <int>delivery.room)
    while left > 0:
        chunk = read16(body + chunks)
        chunks += 2
        run = chunk_run(chunk, left)
        left -= run
        if chunk & 0xE000 == 0:
            delivery_lost(engine, delivery, index, index + run, news)
            index += run
            continue
        for one in range(run):
            symbol = chunk_symbol(chunk, one)
            if symbol == LOST:
                delivery_lost(engine, delivery, index, index + 1, news)
            elif symbol == SMALL:
                ticks += body[deltas]
            else:
                ticks += <int16_t>read16(body + deltas)
            deltas += symbol
            if symbol:
                delivery_arrived(engine, delivery, index, ticks, news)
            index += 1
    delivery.told = max(delivery.told, min(index - 1, newest))
    delivery_rate(delivery)


cdef inline int64_t delivery_ticks(Delivery *delivery, uint32_t reference) noexcept nogil:
    """The reference time without its wrap, which comes every 12 days."""
    if delivery.has_reference:
        delivery.reference += (<int64_t>((reference - delivery.reference + 0x800000) & 0xFFFFFF)) - 0x800000
    else:
        delivery.has_reference = True
        delivery.reference = reference
    return delivery.reference * REFERENCE_TICKS


cdef void delivery_lost(
    Engine *engine, Delivery *delivery, int64_t start, int64_t end, Reported *reported
) noexcept nogil:
    """Numbers from `start` to before `end` have not arrived, as far as the peer knows; each is told once."""
    cdef int64_t index
    cdef SentPacket *packet
    for index in range(max(start, delivery.told + 1, delivery.first), min(end, delivery.next)):
        packet = sent_at(delivery, index)
        packet.state = TOLD_LOST
        delivery.lost += 1
        reported_add(engine, reported, packet, False, 0)


cdef void delivery_arrived(
    Engine *engine, Delivery *delivery, int64_t index, int64_t ticks, Reported *reported
) noexcept nogil:
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
    delivery.rate_bps = delivery.rate_bytes * 8 * TICKS_PER_S // span
    delivery.rate_start = delivery.rate_newest
    delivery.rate_bytes = 0


cdef inline void reported_add(
    Engine *engine, Reported *reported, SentPacket *packet, bint has_arrived, int64_t ticks
) noexcept nogil:
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
