# The chunks of a transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1).

from shared.rtc import transport_cc

cdef enum:
    LOST = 0                    # symbols of the chunks; those of arrivals are as large as their deltas
    SMALL = 1
    LARGE = 2

cdef int TICKS_PER_S = transport_cc.TICKS_PER_S
cdef int REFERENCE_TICKS = transport_cc.REFERENCE_TICKS
cdef int MAX_RUN = transport_cc.MAX_RUN
cdef int MAX_REPORTED = transport_cc.MAX_REPORTED


cdef int chunks_write(const uint8_t *symbols, int count, uint8_t *out) noexcept nogil:
    """A run where that says at least as much as a vector, else the narrower vector that can say it. Their length."""
    cdef int at = 0, length = 0, left, run, one, chunk
    cdef bint large
    while at < count:
        left = count - at
        run = 1
        while run < left and run < MAX_RUN and symbols[at + run] == symbols[at]:
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


# -- reading

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
        return min(chunk & MAX_RUN, left)
    return min(7 if chunk & 0x4000 else 14, left)


cdef inline int chunk_symbol(int chunk, int one) noexcept nogil:
    if not chunk & 0x8000:
        return chunk >> 13
    if chunk & 0x4000:
        return chunk >> 2 * (6 - one) & 3
    return chunk >> (13 - one) & 1
