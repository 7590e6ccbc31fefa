# Transport-wide feedback to publishers: what arrived when, and the packets that tell it; as sfu.core.media.arrivals and
# shared.rtc.transport_cc.

cdef enum:
    MANY = 20                   # packets waiting that are told of sooner
    MAX_RECEIVED = 256          # arrivals in one feedback
    RUN_MASK = 0x1FFF           # the longest run of a chunk
    MAX_FEEDBACK = 1128         # bytes: 20, a chunk for each 7 of ARRIVALS, MAX_RECEIVED large deltas, filling
    NOT_ARRIVED = -1
    LOST = 0                    # symbols of a feedback's chunks; those of arrivals are as large as their deltas
    SMALL = 1
    LARGE = 2

cdef double SOON_S = 0.05
cdef double LATEST_S = 0.1


cdef inline int transport_sequence(const uint8_t *data, const Header *header, int identifier) noexcept nogil:
    """The transport-wide sequence number of a packet, under its negotiated id; -1 without one."""
    cdef int position = header.extension_start, start = 0, length = 0, found
    if identifier == 0:
        return -1
    while True:
        found = extension_next(data, header, &position, &start, &length)
        if found == 0:
            return -1
        if found == identifier:
            return read16(data + start) if length == 2 else -1


cdef void arrivals_begin(Arrivals *arrivals, int64_t index) noexcept nogil:
    cdef int at
    for at in range(ARRIVALS):
        arrivals.ticks[at] = NOT_ARRIVED
    arrivals.on = True
    arrivals.highest = arrivals.next = index


cdef bint arrivals_note(Arrivals *arrivals, uint16_t sequence, double arrived, uint32_t ssrc, double now) noexcept nogil:
    """A packet arrived; False for one that is noted already or too old to tell."""
    cdef int64_t index, skipped
    if not arrivals.on:
        index = 0x10000 + sequence
        arrivals_begin(arrivals, index)
    else:
        index = arrivals.highest + sequence_delta(sequence, <uint16_t>arrivals.highest)
        if index <= arrivals.highest - ARRIVALS:
            return False
        if index >= arrivals.highest + ARRIVALS:
            arrivals_begin(arrivals, index)
        elif index > arrivals.highest:
            for skipped in range(arrivals.highest + 1, index + 1):
                arrivals.ticks[skipped & (ARRIVALS - 1)] = NOT_ARRIVED
            arrivals.highest = index
            arrivals.next = max(arrivals.next, index - ARRIVALS + 1)
    if arrivals.ticks[index & (ARRIVALS - 1)] != NOT_ARRIVED:
        return False
    arrivals.ticks[index & (ARRIVALS - 1)] = <int64_t>(arrived * 4000.0)
    arrivals.next = min(arrivals.next, index)
    if arrivals.waiting == 0:
        arrivals.first_at = now
    arrivals.waiting += 1
    arrivals.ssrc = ssrc
    return True


cdef inline bint arrivals_due(Arrivals *arrivals, double now) noexcept nogil:
    if arrivals.waiting >= MANY:
        return now >= arrivals.first_at + SOON_S
    return arrivals.waiting > 0 and now >= arrivals.first_at + LATEST_S


cdef void arrived(Engine *engine, Peer *peer, const uint8_t *data, const Header *header, double now) noexcept nogil:
    """Note the number of an authentic packet, whatever becomes of it, and tell its sender when that is due."""
    cdef int sequence = transport_sequence(data, header, peer.transport_cc)
    cdef double at = now
    if sequence < 0:
        return
    if peer.arrivals == NULL:
        peer.arrivals = <Arrivals *>calloc(1, sizeof(Arrivals))
        if peer.arrivals == NULL:
            engine.totals.drops[NO_MEMORY] += 1
            return
    if engine.received_ns:
        # The kernel's own time: a sender sees this machine's wake-ups as queues of the network otherwise.
        at -= fmin(fmax((engine.woken_ns - engine.received_ns) * 1e-9, 0.0), 1.0)
    if not arrivals_note(peer.arrivals, <uint16_t>sequence, at, header.ssrc, now):
        return
    if arrivals_due(peer.arrivals, now):
        arrivals_send(engine, peer, peer.arrivals)
    elif not peer.feedback_timer:
        peer.feedback_timer = True
        timer_add(engine, now + SOON_S, TRANSPORT_FEEDBACK, peer.serial)


cdef double peer_transport_feedback(Engine *engine, Peer *peer, double now) noexcept nogil:
    if peer.arrivals == NULL or peer.arrivals.waiting == 0:
        peer.feedback_timer = False
        return 0.0
    if not arrivals_due(peer.arrivals, now):
        return peer.arrivals.first_at + LATEST_S
    peer.feedback_timer = False
    arrivals_send(engine, peer, peer.arrivals)
    return 0.0


cdef void arrivals_send(Engine *engine, Peer *peer, Arrivals *arrivals) noexcept nogil:
    """All that waits, in as many packets as it needs."""
    cdef uint8_t out[MAX_FEEDBACK]
    cdef int length
    while arrivals.next <= arrivals.highest:
        length = arrivals_report(arrivals, out)
        # Senders take feedback only with an SSRC of theirs in it.
        write32(out + 4, engine.ssrc)
        write32(out + 8, arrivals.ssrc)
        out[19] = <uint8_t>peer.feedbacks_sent
        peer.feedbacks_sent += 1
        engine.totals.feedbacks_sent += 1
        peer_send_rtcp(engine, peer, out, length)
    arrivals.waiting = 0


cdef int arrivals_report(Arrivals *arrivals, uint8_t *out) noexcept nogil:
    """A feedback packet but for its SSRCs and count: up to the last arrival that fits. Its length."""
    cdef uint8_t symbols[ARRIVALS]
    cdef uint8_t deltas[2 * MAX_RECEIVED]
    cdef int64_t index, ticks, reference = 0, last = 0
    cdef int count = 0, received = 0, told = 0, written = 0, at
    for index in range(arrivals.next, arrivals.highest + 1):
        ticks = arrivals.ticks[index & (ARRIVALS - 1)]
        symbols[count] = LOST
        if ticks != NOT_ARRIVED:
            if received == 0:
                reference = ticks >> 8
                last = reference << 8
            elif received == MAX_RECEIVED or ticks - last > 0x7FFF or ticks - last < -0x8000:
                break
            if 0 <= ticks - last <= 0xFF:
                symbols[count] = SMALL
                deltas[written] = <uint8_t>(ticks - last)
            else:
                symbols[count] = LARGE
                write16(deltas + written, <uint32_t>(ticks - last) & 0xFFFF)
            written += symbols[count]
            last = ticks
            received += 1
            told = count + 1
        count += 1
    write16(out + 12, <uint32_t>arrivals.next & 0xFFFF)
    write16(out + 14, told)
    write32(out + 16, <uint32_t>reference << 8)
    arrivals.next += told
    at = 20 + chunks_write(symbols, told, out + 20)
    memcpy(out + at, deltas, written)
    at += written
    while at & 3:
        out[at] = 0
        at += 1
    rtcp_head(out, 15, 205, at)
    return at


cdef int chunks_write(const uint8_t *symbols, int count, uint8_t *out) noexcept nogil:
    """A run where that says at least as much as a vector does, else the narrower vector that can say it. Their length."""
    cdef int at = 0, length = 0, left, run, one, chunk
    cdef bint large
    while at < count:
        left = count - at
        run = 1
        while run < left and run < RUN_MASK and symbols[at + run] == symbols[at]:
            run += 1
        large = False
        for one in range(min(left, 14)):
            large = large or symbols[at + one] == LARGE
        if run < min(left, 14) and not large:
            chunk = 0x8000
            for one in range(min(left, 14)):
                chunk |= symbols[at + one] << (13 - one)
            at += 14
        elif run < min(left, 7):
            chunk = 0xC000
            for one in range(min(left, 7)):
                chunk |= symbols[at + one] << 2 * (6 - one)
            at += 7
        else:
            chunk = symbols[at] << 13 | run
            at += run
        write16(out + length, chunk)
        length += 2
    return length
