# VP8 payload descriptors (RFC 7741 section 4.2); each index is checked against the payload's length.

cdef struct Vp8:
    bint present
    bint keyframe_start
    int length
    int picture_id
    int picture_id_at
    int picture_id_mask
    int tl0
    int tl0_at


cdef int vp8_parse(const uint8_t *payload, int size, Vp8 *descriptor) noexcept nogil:
    """0, or -1 when it is truncated; as shared.rtc.vp8.parse."""
    cdef int position = 1
    cdef uint8_t flags
    descriptor.picture_id = descriptor.picture_id_at = descriptor.tl0 = descriptor.tl0_at = -1
    descriptor.picture_id_mask = 0
    if size < 2:
        return -1
    if payload[0] & 0x80:
        flags = payload[1]
        position = 2
        if flags & 0x80:
            if position + 1 >= size:
                return -1
            descriptor.picture_id_at = position
            if payload[position] & 0x80:
                descriptor.picture_id = (payload[position] & 0x7F) << 8 | payload[position + 1]
                descriptor.picture_id_mask = 0x7FFF
                position += 2
            else:
                descriptor.picture_id = payload[position]
                descriptor.picture_id_mask = 0x7F
                position += 1
        if flags & 0x40:
            if position >= size:
                return -1
            descriptor.tl0_at = position
            descriptor.tl0 = payload[position]
            position += 1
        if flags & 0x30:
            position += 1
    if position >= size:
        return -1
    descriptor.length = position
    descriptor.keyframe_start = payload[0] & 0x17 == 0x10 and payload[position] & 1 == 0
    descriptor.present = True
    return 0


cdef void vp8_shift(uint8_t *payload, const Vp8 *descriptor, int64_t picture_id, int64_t tl0) noexcept nogil:
    """Move picture id and TL0PICIDX on, each within its own width."""
    cdef int moved
    if descriptor.picture_id_mask:
        moved = <int>((descriptor.picture_id + picture_id) & descriptor.picture_id_mask)
        if descriptor.picture_id_mask == 0x7FFF:
            payload[descriptor.picture_id_at] = <uint8_t>(0x80 | moved >> 8)
            payload[descriptor.picture_id_at + 1] = <uint8_t>moved
        else:
            payload[descriptor.picture_id_at] = <uint8_t>moved
    if descriptor.tl0_at >= 0:
        payload[descriptor.tl0_at] = <uint8_t>(descriptor.tl0 + tl0)
