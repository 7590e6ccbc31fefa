# Which transport-wide sequence numbers of a peer arrived when, and what its next feedback says of them.

from sfu.core.media import arrivals

cpdef enum:
    WINDOW = 2048               # a power of two
    MAX_RECEIVED = 256

cdef enum:
    MAX_FEEDBACK = 24 + 2 * (WINDOW // 7 + 1) + 2 * MAX_RECEIVED    # bytes: head, chunks, large deltas, filling
    NOT_ARRIVED = -1

cdef int MANY = arrivals.MANY
cdef double SOON_S = arrivals.SOON_S
cdef double LATEST_S = arrivals.LATEST_S

cdef struct Arrivals:
    bint on
    int64_t highest
    int64_t next                # the first that the next feedback tells of
    int waiting
    double first_at
    uint32_t ssrc               # of the packet noted last
    int64_t ticks[WINDOW]


cdef void arrivals_begin(Arrivals *arrivals, int64_t index) noexcept nogil:
    cdef int at
    for at in range(WINDOW):
        arrivals.ticks[at] = NOT_ARRIVED
    arrivals.on = True
    arrivals.highest = arrivals.next = index


cdef bint arrivals_note(
    Arrivals *arrivals, uint16_t sequence, double arrived, uint32_t ssrc, double now
) noexcept nogil:
    """A packet arrived; False for one that is noted already or too old to tell."""
    cdef int64_t index, skipped
    if not arrivals.on:
        index = 0x10000 + sequence
        arrivals_begin(arrivals, index)
    else:
        index = arrivals.highest + sequence_delta(sequence, <uint16_t>arrivals.highest)
        if index <= arrivals.highest - WINDOW:
            return False
        if index >= arrivals.highest + WINDOW:
            arrivals_begin(arrivals, index)
        elif index > arrivals.highest:
            for skipped in range(arrivals.highest + 1, index + 1):
                arrivals.ticks[skipped & (WINDOW - 1)] = NOT_ARRIVED
            arrivals.highest = index
            arrivals.next = max(arrivals.next, index - WINDOW + 1)
    if arrivals.ticks[index & (WINDOW - 1)] != NOT_ARRIVED:
        return False
    arrivals.ticks[index & (WINDOW - 1)] = <int64_t>(arrived * TICKS_PER_S)
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


cdef int arrivals_report(Arrivals *arrivals, uint8_t *out) noexcept nogil:
    """A feedback packet but for its SSRCs and count: up to the last arrival that fits. Its length."""
    cdef uint8_t symbols[WINDOW]
    cdef uint8_t deltas[2 * MAX_RECEIVED]
    cdef int64_t index, ticks, reference = 0, last = 0
    cdef int count = 0, received = 0, told = 0, written = 0, at
    for index in range(arrivals.next, arrivals.highest + 1):
        ticks = arrivals.ticks[index & (WINDOW - 1)]
        symbols[count] = LOST
        if ticks != NOT_ARRIVED:
            if received == 0:
                reference = ticks // REFERENCE_TICKS
                last = reference * REFERENCE_TICKS
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
