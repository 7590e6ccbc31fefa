# Which producer and layer an unknown SSRC belongs to, decided once per SSRC by a ladder of rules.

cdef enum:  # ExtensionKind
    EXTENSION_NONE, EXTENSION_OTHER, EXTENSION_MID, EXTENSION_RID, EXTENSION_REPAIRED_RID

_EXTENSION_KINDS = {
    rtp.MID_URI: EXTENSION_MID,
    rtp.RID_URI: EXTENSION_RID,
    rtp.REPAIRED_RID_URI: EXTENSION_REPAIRED_RID,
}

cdef struct Known:
    uint32_t ssrc
    Name rid
    bint rtx

cdef struct Sight:
    uint32_t ssrc
    uint8_t payload_type
    Name mid
    Name rid

cdef struct Binding:
    Producer *producer
    Name rid
    bint rtx


cdef void look(Peer *peer, const uint8_t *data, const Header *header, Sight *sight) noexcept nogil:
    """What the first packet of an SSRC shows. An id means the same in all m-lines of a bundle (RFC 8843 section 9)."""
    cdef int position = header.extension_start, start = 0, length = 0, identifier, kind, at
    cdef Name repaired
    sight.ssrc = header.ssrc
    sight.payload_type = header.payload_type
    sight.mid.length = sight.rid.length = repaired.length = 0
    while True:
        identifier = extension_next(data, header, &position, &start, &length)
        if identifier == 0:
            break
        kind = EXTENSION_NONE
        for at in range(peer.producers.count):
            if (<Producer *>peer.producers.items[at]).extension[identifier] != EXTENSION_NONE:
                kind = (<Producer *>peer.producers.items[at]).extension[identifier]
        if kind == EXTENSION_MID:
            name_set(&sight.mid, data + start, length)
        elif kind == EXTENSION_RID:
            name_set(&sight.rid, data + start, length)
        elif kind == EXTENSION_REPAIRED_RID:
            name_set(&repaired, data + start, length)
    if sight.rid.length == 0:
        sight.rid = repaired


cdef inline bint has_rid(Producer *producer, const Name *rid) noexcept nogil:
    cdef int at
    for at in range(producer.rids):
        if same_name(&(<Encoding *>producer.encodings.items[at]).rid, rid):
            return True
    return False


cdef bint bind_checked(Producer *producer, Sight *sight, const Name *rid, bint rtx, Binding *binding) noexcept nogil:
    if rtx:
        if producer.rtx_of[sight.payload_type] == 0:
            return False
    elif producer.codecs[sight.payload_type].kind == CODEC_NONE:
        return False
    binding.producer = producer
    binding.rid = rid[0]
    binding.rtx = rtx
    return True


cdef bint bind_by_rid(Producer *producer, Sight *sight, Binding *binding) noexcept nogil:
    if sight.rid.length and not has_rid(producer, &sight.rid):
        return False
    if sight.rid.length == 0 and producer.rids:
        # A simulcast track without a RID yet: any guess would show the wrong layer.
        return False
    return bind_checked(producer, sight, &sight.rid, producer.rtx_of[sight.payload_type] != 0, binding)


cdef bint bind_find(Peer *peer, Sight *sight, Binding *binding) noexcept nogil:
    cdef Producer *producer
    cdef Producer *owner = NULL
    cdef Known *known
    cdef int at, one, owners = 0
    for at in range(peer.producers.count):
        producer = <Producer *>peer.producers.items[at]
        for one in range(producer.known_count):
            known = &producer.known[one]
            if known.ssrc == sight.ssrc:
                return bind_checked(producer, sight, &known.rid, known.rtx, binding)
    if sight.mid.length:
        for at in range(peer.producers.count):
            producer = <Producer *>peer.producers.items[at]
            if same_name(&producer.mid, &sight.mid):
                return bind_by_rid(producer, sight, binding)
        return False
    for at in range(peer.producers.count):
        producer = <Producer *>peer.producers.items[at]
        if sight.rid.length:
            if has_rid(producer, &sight.rid):
                owner = producer
                owners += 1
        elif producer.rids == 0 and (producer.codecs[sight.payload_type].kind or producer.rtx_of[sight.payload_type]):
            owner = producer
            owners += 1
    if owners != 1:
        return False
    if sight.rid.length:
        return bind_by_rid(owner, sight, binding)
    return bind_checked(owner, sight, &sight.rid, owner.rtx_of[sight.payload_type] != 0, binding)
