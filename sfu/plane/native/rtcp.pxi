# RTCP framed, checked and written (RFC 3550, 3611, 4585, 5104, REMB draft).

from shared.rtc import rtcp

cpdef enum:
    MAX_BLOCKS = 31

cdef int MAX_NACKED = rtcp.MAX_NACKED


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


# -- reading

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
    """Whether a whole compound is framed well and asks for no more than a cache holds; else nothing of it is used."""
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
