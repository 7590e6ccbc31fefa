# H.264 payloads (RFC 6184): where a key frame begins.

cdef bint h264_starts_keyframe(const uint8_t *payload, int size) noexcept nogil:
    """As shared.rtc.h264.starts_keyframe: an SPS, or the beginning of an IDR picture."""
    cdef int kind, position = 1, length
    if size == 0:
        return False
    kind = payload[0] & 0x1F
    if kind == 5 or kind == 7:
        return True
    if kind == 28:
        return size > 1 and payload[1] & 0x80 and (payload[1] & 0x1F == 5 or payload[1] & 0x1F == 7)
    if kind != 24:
        return False
    while position + 2 < size:
        length = read16(payload + position)
        if length == 0 or position + 2 + length > size:
            return False
        kind = payload[position + 2] & 0x1F
        if kind == 5 or kind == 7:
            return True
        position += 2 + length
    return False
