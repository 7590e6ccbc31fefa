# One decrypted RTP packet with all that its consumers share, worked out once.

from sfu.plane.packet import HOP_BY_HOP

cdef enum:
    MAX_BLOCK = 4096            # an extension block before its length is checked
    BLOCK_KEPT = 48             # an extension block that is kept with its packet for the next consumer

cdef struct Plan:
    uint8_t copied[256]         # incoming id -> outgoing id, 0: not copied
    uint8_t stamped             # id of abs-send-time, 0: none
    uint8_t sequenced           # id of the transport-wide sequence number, which comes first; 0: none

cdef struct Packet:
    int references
    int64_t index
    Header header
    Vp8 vp8
    bint keyframe_start
    Packet *lead                # what a consumer that begins with this packet is sent before it; NULL: nothing
    double arrived
    double stamp                # its abs-send-time: of its first forwarding, the same for every resend; 0 before
    int64_t received_ns         # the kernel's time-stamp; 0 without one
    Plan *block_plan            # whose extension block `block` is
    int block_length
    uint8_t block[BLOCK_KEPT]
    int size
    int payload_at
    int payload_length
    int padding
    uint8_t bytes[1]            # header and extensions as they came, the payload, then our padding


cdef int fill_plan(Plan *plan, dict incoming, outgoing) except -1:
    """How header extensions of a producer look to a consumer."""
    memset(plan, 0, sizeof(Plan))
    for identifier, uri in incoming.items():
        if 0 < identifier < 256 and uri in outgoing and uri not in HOP_BY_HOP and uri != rtp.ABS_SEND_TIME_URI:
            plan.copied[<int>identifier] = outgoing[uri] if 0 < outgoing[uri] < 256 else 0
    stamped = outgoing.get(rtp.ABS_SEND_TIME_URI, 0)
    plan.stamped = stamped if 0 < stamped < 256 else 0
    sequenced = outgoing.get(rtp.TRANSPORT_CC_URI, 0)
    plan.sequenced = sequenced if 0 < sequenced < 256 else 0
    return 0


cdef Packet *packet_new(
    const uint8_t *data, int size, const Header *header, int64_t index, double now, int padding
) noexcept nogil:
    """A copy without its padding, one reference; NULL without memory. Our own padding follows the payload."""
    cdef int payload = header.payload_end - header.payload_start
    cdef Packet *packet = <Packet *>malloc(sizeof(Packet) + header.payload_start + payload + padding)
    if packet == NULL:
        return NULL
    packet.references = 1
    packet.index = index
    packet.header = header[0]
    packet.vp8.present = packet.keyframe_start = False
    packet.lead = NULL
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
        free(packet.lead)
        free(packet)


cdef Packet *packet_led_by(Packet *packet, const ParameterSets *sets) noexcept nogil:
    """Make its `lead` of these sets: the same picture's, and not its end. NULL without memory."""
    cdef int length = sets_length(sets)
    cdef Packet *lead = <Packet *>malloc(sizeof(Packet) + packet.payload_at + length)
    if lead == NULL:
        return NULL
    lead[0] = packet[0]
    lead.header.marker = 0
    lead.payload_length = length
    lead.padding = 0
    lead.received_ns = 0
    memcpy(lead.bytes, packet.bytes, packet.payload_at)
    sets_aggregate(sets, lead.bytes + packet.payload_at)
    packet.lead = lead
    return lead


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


cdef inline void block_sequence(uint8_t *block, int64_t sequence) noexcept nogil:
    """Write the transport-wide number of one packet into its own copy of a block, where the plan has left room."""
    write16(block + (5 if block[0] == 0xBE else 6), <uint32_t>sequence & 0xFFFF)
