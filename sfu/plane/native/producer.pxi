# One published track: its layers, how SSRCs find them, and those who consume it; as sfu.plane.producer and core.binder.

cdef inline bint same_name(const Name *a, const Name *b) noexcept nogil:
    return a.length == b.length and memcmp(a.text, b.text, a.length) == 0


cdef Encoding *producer_encoding(Producer *producer, const Name *rid, int *place) noexcept nogil:
    cdef int at
    for at in range(producer.encodings.count):
        if same_name(&(<Encoding *>producer.encodings.items[at]).rid, rid):
            place[0] = at
            return <Encoding *>producer.encodings.items[at]
    return NULL


cdef Encoding *producer_add_encoding(Engine *engine, Producer *producer, const Name *rid) noexcept nogil:
    cdef bint lowest = producer.rids == 0 or producer.encodings.count == 0
    cdef Encoding *encoding = encoding_new(engine, producer, rid, lowest)
    if encoding != NULL and vector_add(&producer.encodings, encoding) < 0:
        encoding_free(engine, encoding)
        return NULL
    return encoding


# -- which layer an SSRC is: the ladder of sfu.core.media.binder

cdef struct Sight:
    uint32_t ssrc
    uint8_t payload_type
    Name mid
    Name rid

cdef struct Binding:
    Producer *producer
    Name rid
    bint rtx


cdef void name_set(Name *name, const uint8_t *text, int length) noexcept nogil:
    name.length = length if length <= MAX_NAME else MAX_NAME
    memcpy(name.text, text, name.length)


cdef void look(Peer *peer, const uint8_t *data, const Header *header, Sight *sight) noexcept nogil:
    """What the first packet of an SSRC shows. An id means the same in every m-line of a bundle (RFC 8843 section 9.4)."""
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


cdef inline Encoding *route_encoding(void *route) noexcept nogil:
    """NULL for an SSRC that was replaced."""
    if <uintptr_t>route == REPLACED:
        return NULL
    return <Encoding *>(<uintptr_t>route & ~<uintptr_t>1)


cdef inline bint route_is_rtx(void *route) noexcept nogil:
    return <uintptr_t>route & 1


cdef inline void *route_to(Encoding *encoding, bint rtx) noexcept nogil:
    return <void *>(<uintptr_t>encoding | (1 if rtx else 0))


cdef void *peer_bind(Engine *engine, Peer *peer, const uint8_t *data, const Header *header, double now) noexcept nogil:
    """Find the layer of an SSRC that is new; its route, or NULL."""
    cdef Sight sight
    cdef Binding binding
    cdef Encoding *encoding
    cdef void *route
    look(peer, data, header, &sight)
    if not bind_find(peer, &sight, &binding):
        return NULL
    encoding = producer_bind(engine, binding.producer, &binding.rid, header.ssrc, binding.rtx, now)
    if encoding == NULL:
        return NULL
    route = route_to(encoding, binding.rtx)
    if table_put(&peer.routes, header.ssrc, 0, 0, route) < 0:
        return NULL
    feedback_new_ssrc(engine, peer, now)
    return route


cdef Encoding *producer_bind(Engine *engine, Producer *producer, const Name *rid, uint32_t ssrc, bint rtx, double now) noexcept nogil:
    """Give an SSRC to a layer. One that begins anew with another SSRC gets a new Encoding, whose numbers start afresh."""
    cdef int place = 0, at
    cdef Peer *peer = producer.peer
    cdef Encoding *encoding = producer_encoding(producer, rid, &place)
    cdef Encoding *old
    if encoding == NULL:
        encoding = producer_add_encoding(engine, producer, rid)
        if encoding == NULL:
            return NULL
    if rtx:
        if encoding.rtx_bound:
            table_put(&peer.routes, encoding.rtx_ssrc, 0, 0, <void *>REPLACED)
        encoding.rtx_bound = True
        encoding.rtx_ssrc = ssrc
        encoding.rtx_stats.on = False
        return encoding
    if encoding.bound:
        old = encoding
        encoding = encoding_new(engine, producer, rid, place == 0 or producer.rids == 0)
        if encoding == NULL or vector_add(&producer.retired, old) < 0:
            return NULL
        producer.encodings.items[place] = encoding
        old.bound = False
        table_put(&peer.routes, old.ssrc, 0, 0, <void *>REPLACED)
        if old.rtx_bound:
            encoding.rtx_bound = True
            encoding.rtx_ssrc = old.rtx_ssrc
            table_put(&peer.routes, old.rtx_ssrc, 0, 0, route_to(encoding, True))
        producer_drop_retired(engine, producer)
    encoding.bound = True
    encoding.ssrc = ssrc
    for at in range(producer.consumers.count):
        consumer_choose(engine, <Consumer *>producer.consumers.items[at], now, False)
    return encoding


cdef void producer_drop_retired(Engine *engine, Producer *producer) noexcept nogil:
    """Free the replaced encodings that nobody needs any more, and the oldest one when too many are left."""
    cdef int at = 0
    pending_deliver_all(engine, producer)
    while at < producer.retired.count:
        if not encoding_needed(producer, <Encoding *>producer.retired.items[at]):
            encoding_retire(engine, producer, <Encoding *>producer.retired.items[at])
        else:
            at += 1
    if producer.retired.count > KEPT_RETIRED:
        encoding_retire(engine, producer, <Encoding *>producer.retired.items[0])


cdef bint encoding_needed(Producer *producer, Encoding *encoding) noexcept nogil:
    """Whether a consumer may still be asked for its packets."""
    cdef int at, back
    cdef Consumer *consumer
    for at in range(producer.consumers.count):
        consumer = <Consumer *>producer.consumers.items[at]
        if consumer.source == encoding or consumer.target == encoding or consumer.newest.encoding == encoding:
            return True
        for back in range(consumer.span_count):
            if span_at(consumer, back).source == encoding:
                return True
    return False


cdef void encoding_retire(Engine *engine, Producer *producer, Encoding *encoding) noexcept nogil:
    cdef int at
    for at in range(producer.consumers.count):
        consumer_let_go(<Consumer *>producer.consumers.items[at], encoding)
    vector_remove(&producer.retired, encoding)
    encoding_free(engine, encoding)


# -- layers

cdef Encoding *producer_target(Producer *producer, bint prefers, const Name *preferred) noexcept nogil:
    """The layer that a consumer with this preference should get: the ladder of sfu.core.media.layers; NULL while none flows."""
    cdef int at, count = producer.encodings.count, wanted = -1
    cdef Encoding *encoding
    cdef bint any_media = False
    cdef double newest = 0.0
    if count == 1:
        return <Encoding *>producer.encodings.items[0]
    for at in range(count):
        encoding = <Encoding *>producer.encodings.items[at]
        if encoding.has_media and (not any_media or encoding.last_media > newest):
            newest = encoding.last_media
            any_media = True
        if prefers and same_name(&encoding.rid, preferred):
            wanted = at
    if not any_media:
        return NULL
    if wanted < 0:
        wanted = count - 1
    for at in range(wanted, -1, -1):
        if layer_flows(<Encoding *>producer.encodings.items[at], newest):
            return <Encoding *>producer.encodings.items[at]
    for at in range(wanted + 1, count):
        if layer_flows(<Encoding *>producer.encodings.items[at], newest):
            return <Encoding *>producer.encodings.items[at]
    return NULL


cdef inline bint layer_flows(Encoding *encoding, double newest) noexcept nogil:
    return encoding.has_media and newest - encoding.last_media < 0.5


cdef void producer_request_keyframes(Engine *engine, Producer *producer, double now) noexcept nogil:
    """Of each layer in use, or of all where nobody has one yet."""
    cdef int at, before
    cdef bint any_target = False, repeated
    cdef Encoding *target
    for at in range(producer.consumers.count):
        target = (<Consumer *>producer.consumers.items[at]).target
        if target == NULL:
            continue
        any_target = True
        repeated = False
        for before in range(at):
            repeated = repeated or (<Consumer *>producer.consumers.items[before]).target == target
        if not repeated:
            encoding_request_keyframe(engine, target, now)
    if not any_target:
        for at in range(producer.encodings.count):
            encoding_request_keyframe(engine, <Encoding *>producer.encodings.items[at], now)


# -- media

cdef void producer_deliver(Engine *engine, Producer *producer, Encoding *encoding, Packet *packet, double now) noexcept nogil:
    cdef int at
    producer.has_media = True
    producer.last_media = now
    if not producer.flowing:
        if packet.keyframe_start or encoding.opaque:
            producer.flowing = True
            event_add(engine, PRODUCER_FLOWING, producer.id)
        else:
            encoding_request_keyframe(engine, encoding, now)
    if producer.silent:
        producer.silent = False
        event_add(engine, PRODUCER_RESUMED, producer.id)
    if packet.keyframe_start and producer.encodings.count > 1:
        # A layer that has just begun to flow starts with a key frame: taking it now saves asking for another.
        for at in range(producer.consumers.count):
            consumer_choose(engine, <Consumer *>producer.consumers.items[at], now, False)
    if engine.coalesce and not producer.audio:
        pending_add(engine, producer, encoding, packet, now)
        return
    for at in range(producer.consumers.count):
        consumer_forward(engine, <Consumer *>producer.consumers.items[at], encoding, packet, now)


cdef void producer_bye(Engine *engine, Peer *peer, uint32_t ssrc) noexcept nogil:
    cdef void *route = table_get(&peer.routes, ssrc, 0, 0)
    cdef Encoding *encoding
    cdef Producer *producer
    cdef int at
    cdef bint any_bound = False
    if route == NULL or route_encoding(route) == NULL or route_is_rtx(route):
        return
    producer = route_encoding(route).producer
    for at in range(producer.encodings.count):
        encoding = <Encoding *>producer.encodings.items[at]
        if encoding.bound and encoding.ssrc == ssrc:
            encoding.ended = True
    for at in range(producer.encodings.count):
        encoding = <Encoding *>producer.encodings.items[at]
        if encoding.bound:
            any_bound = True
            if not encoding.ended:
                return
    if any_bound and not producer.has_ended:
        producer.has_ended = True
        event_add(engine, PRODUCER_ENDED, producer.id)


cdef double producer_watch(Engine *engine, Producer *producer, double now) noexcept nogil:
    cdef int at
    if producer.flowing and not producer.silent and producer.has_media and now - producer.last_media >= 3.0:
        producer.silent = True
        event_add(engine, PRODUCER_SILENT, producer.id)
    for at in range(producer.consumers.count):
        consumer_choose(engine, <Consumer *>producer.consumers.items[at], now, True)
    return now + 0.2


cdef void producer_free(Engine *engine, Producer *producer) noexcept nogil:
    """Its consumers are gone already."""
    cdef int at
    pending_drop(engine, producer)
    table_remove(&engine.objects, producer.serial, 0, 0)
    for at in range(producer.encodings.count):
        encoding_free(engine, <Encoding *>producer.encodings.items[at])
    for at in range(producer.retired.count):
        encoding_free(engine, <Encoding *>producer.retired.items[at])
    for at in range(producer.plans.count):
        free(producer.plans.items[at])
    vector_free(&producer.encodings)
    vector_free(&producer.retired)
    vector_free(&producer.plans)
    vector_free(&producer.consumers)
    free(producer.known)
    free(producer)
