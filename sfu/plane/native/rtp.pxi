# RTP headers, header extensions and payload descriptors; each index is checked against the packet's length.

cdef enum:  # ExtensionKind
    EXTENSION_NONE, EXTENSION_OTHER, EXTENSION_MID, EXTENSION_RID, EXTENSION_REPAIRED_RID


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


cdef inline int extension_next(const uint8_t *data, const Header *header, int *position, int *start, int *length) noexcept nogil:
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


cdef int extension_block(Plan *plan, const Packet *packet, double now, uint8_t *out) noexcept nogil:
    """The whole block for a packet sent at `now`; its length, 0 without elements. `out` has room for MAX_BLOCK bytes.

    In one-byte form where all elements fit, as shared.rtc.rtp.encode_extensions.
    """
    cdef int position, start = 0, length = 0, identifier, elements = 0, at = 4
    cdef bint one_byte = True
    cdef uint32_t stamp
    position = packet.header.extension_start
    while True:
        identifier = extension_next(packet.bytes, &packet.header, &position, &start, &length)
        if identifier == 0:
            break
        if plan.copied[identifier]:
            elements += 1
            one_byte = one_byte and plan.copied[identifier] <= 14 and 1 <= length <= 16
    if plan.stamped:
        elements += 1
        one_byte = one_byte and plan.stamped <= 14
    if plan.sequenced:
        elements += 1
        one_byte = one_byte and plan.sequenced <= 14
    if elements == 0:
        return 0
    if plan.sequenced:
        # First, so that its place is known: each packet's own number is written there, see block_sequence.
        at += element_head(out + at, plan.sequenced, 2, one_byte)
        write16(out + at, 0)
        at += 2
    position = packet.header.extension_start
    while True:
        identifier = extension_next(packet.bytes, &packet.header, &position, &start, &length)
        if identifier == 0:
            break
        if plan.copied[identifier]:
            at += element_head(out + at, plan.copied[identifier], length, one_byte)
            memcpy(out + at, packet.bytes + start, length)
            at += length
    if plan.stamped:
        at += element_head(out + at, plan.stamped, 3, one_byte)
        stamp = <uint32_t>(<int64_t>(now * 262144.0) & 0xFFFFFF)
        out[at] = <uint8_t>(stamp >> 16)
        write16(out + at + 1, stamp)
        at += 3
    while at & 3:
        out[at] = 0
        at += 1
    write16(out, 0xBEDE if one_byte else 0x1000)
    write16(out + 2, (at - 4) // 4)
    return at


cdef inline int element_head(uint8_t *out, int identifier, int length, bint one_byte) noexcept nogil:
    if one_byte:
        out[0] = <uint8_t>(identifier << 4 | (length - 1))
        return 1
    out[0] = <uint8_t>identifier
    out[1] = <uint8_t>length
    return 2


cdef inline const uint8_t *packet_block(Engine *engine, Packet *packet, Plan *plan, int *length) noexcept nogil:
    """The block of a packet as all consumers with this plan get it, each time the same."""
    if packet.block_plan == plan:
        length[0] = packet.block_length
        return packet.block
    length[0] = extension_block(plan, packet, packet.stamp, engine.block)
    if length[0] > BLOCK_KEPT:
        return engine.block
    memcpy(packet.block, engine.block, length[0])
    packet.block_plan = plan
    packet.block_length = length[0]
    return packet.block


# -- packets

cdef Packet *packet_new(const uint8_t *data, int size, const Header *header, int64_t index, double now, int padding) noexcept nogil:
    """A copy without its padding, one reference; NULL without memory. Our own padding follows the payload."""
    cdef int payload = header.payload_end - header.payload_start
    cdef Packet *packet = <Packet *>malloc(sizeof(Packet) + header.payload_start + payload + padding)
    if packet == NULL:
        return NULL
    packet.references = 1
    packet.index = index
    packet.header = header[0]
    packet.vp8.present = packet.keyframe_start = False
    packet.arrived = now
    packet.stamp = 0.0
    packet.block_plan = NULL
    packet.received_ns = 0
    packet.size = size
    packet.payload_at = header.payload_start
    packet.payload_length = payload
    packet.padding = padding
    memcpy(packet.bytes, data, header.payload_end)
    if padding:
        memset(packet.bytes + header.payload_end, 0, padding - 1)
        packet.bytes[header.payload_end + padding - 1] = <uint8_t>padding
    return packet


cdef inline void packet_release(Packet *packet) noexcept nogil:
    packet.references -= 1
    if packet.references == 0:
        free(packet)


# -- payload descriptors

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
