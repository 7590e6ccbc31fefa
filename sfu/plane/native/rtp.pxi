# RTP headers and header extensions; each index is checked against the packet's length.

from shared.rtc import rtp

cdef struct Header:
    uint8_t marker
    uint8_t payload_type
    uint16_t sequence
    uint32_t timestamp
    uint32_t ssrc
    int profile
    int extension_start
    int extension_end
    int payload_start
    int payload_end


cdef int rtp_parse(const uint8_t *data, int size, Header *header) noexcept nogil:
    """0, or -1 when a length points outside the packet; as shared.rtc.rtp.parse."""
    cdef int position
    if size < 12 or data[0] >> 6 != 2:
        return -1
    header.marker = data[1] & 0x80
    header.payload_type = data[1] & 0x7F
    header.sequence = read16(data + 2)
    header.timestamp = read32(data + 4)
    header.ssrc = read32(data + 8)
    header.profile = header.extension_start = header.extension_end = 0
    position = 12 + 4 * (data[0] & 0x0F)
    if data[0] & 0x10:
        if position + 4 > size:
            return -1
        header.profile = read16(data + position)
        header.extension_start = position + 4
        position = header.extension_end = position + 4 + 4 * read16(data + position + 2)
    header.payload_start = position
    header.payload_end = size
    if data[0] & 0x20:
        if data[size - 1] == 0:
            return -1
        header.payload_end = size - data[size - 1]
    return -1 if header.payload_end < position else 0


cdef inline void rtp_head(
    uint8_t *out, bint extended, bint padded, uint8_t second, int64_t sequence, uint32_t timestamp, uint32_t ssrc
) noexcept nogil:
    out[0] = 0x80 | (0x10 if extended else 0) | (0x20 if padded else 0)
    out[1] = second
    write16(out + 2, <uint32_t>sequence & 0xFFFF)
    write32(out + 4, timestamp)
    write32(out + 8, ssrc)


cdef inline int extension_next(
    const uint8_t *data, const Header *header, int *position, int *start, int *length
) noexcept nogil:
    """The id of the next element from `position` on (begin with `extension_start`), or 0 at the end.

    As shared.rtc.rtp.walk_extensions: a truncated element ends the walk.
    """
    cdef int at = position[0]
    cdef int end = header.extension_end
    cdef int identifier
    if header.profile == 0xBEDE:
        while at < end:
            if data[at] == 0:
                at += 1
                continue
            identifier = data[at] >> 4
            length[0] = (data[at] & 0x0F) + 1
            start[0] = at + 1
            if identifier == 0 or identifier == 15 or start[0] + length[0] > end:
                break
            position[0] = start[0] + length[0]
            return identifier
    elif header.profile & 0xFFF0 == 0x1000:
        while at + 1 < end:
            identifier = data[at]
            if identifier == 0:
                at += 1
                continue
            length[0] = data[at + 1]
            start[0] = at + 2
            if start[0] + length[0] > end:
                break
            position[0] = start[0] + length[0]
            return identifier
    position[0] = end
    return 0


cdef inline int element_head(uint8_t *out, int identifier, int length, bint one_byte) noexcept nogil:
    if one_byte:
        out[0] = <uint8_t>(identifier << 4 | (length - 1))
        return 1
    out[0] = <uint8_t>identifier
    out[1] = <uint8_t>length
    return 2
