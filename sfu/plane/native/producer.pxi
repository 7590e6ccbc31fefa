# One published track: its layers and its consumers.

from sfu.plane import api, producer

cdef enum:
    MAX_PENDING = 256           # packets of a producer that wait for the tick or for their turn

cdef int KEPT_RETIRED = producer.KEPT_RETIRED
cdef double WATCH_S = producer.WATCH_S
cdef double SILENT_AFTER_S = api.SILENT_AFTER_S

cdef struct Pending:
    Encoding *encoding
    Packet *packet

cdef struct Producer:
    int64_t id
    uint64_t serial
    Peer *peer
    bint audio
    bint simulcast
    bint nack
    Name mid
    Codec codecs[128]           # by payload type
    uint8_t rtx_of[128]         # RTX payload type -> its media payload type + 1
    uint8_t extension[256]      # id -> ExtensionKind, for binding
    int rids                    # how many of the encodings the SDP named
    Known *known
    int known_count
    int64_t remb_bps
    ParameterSets described     # in the SDP
    Vector encodings            # in the order of their layers, lowest first
    Vector retired
    Vector consumers
    Vector plans
    bint flowing
    bint silent
    bint has_ended
    bint has_media
    double last_media
    Pending pending[MAX_PENDING]
    int pending_count
    int serving                 # so many of the pending, the first ones, are being forwarded; 0: none
    int served                  # where among the consumers that has come to
    uint64_t flush              # its number, which a consumer that has been served bears
    uint64_t round              # the last round of flushes that served it


cdef int fill_producer(Producer *producer, spec) except -1:
    """All that the spec says, but for the layers."""
    cdef Codec *into
    cdef int at = 0
    producer.id = spec.producer
    producer.audio = spec.kind == "audio"
    producer.nack = spec.nack
    producer.remb_bps = spec.remb_bps
    set_name(&producer.mid, spec.mid)
    fill_sets(&producer.described, spec.parameter_sets)
    for codec in spec.codecs:
        if not 0 <= codec.payload_type < 128:
            raise ValueError(f"payload type {codec.payload_type}")
        into = &producer.codecs[<int>codec.payload_type]
        into.kind = _KEYFRAME_CODECS.get(codec.name.upper(), CODEC_OTHER)
        into.clock_rate = codec.clock_rate
        set_name(&into.name, codec.name.upper())
        if codec.rtx_payload_type is not None:
            if not 0 <= codec.rtx_payload_type < 128:
                raise ValueError(f"payload type {codec.rtx_payload_type}")
            producer.rtx_of[<int>codec.rtx_payload_type] = codec.payload_type + 1
    for identifier, uri in spec.extensions.items():
        if 0 < identifier < 256:
            producer.extension[<int>identifier] = _EXTENSION_KINDS.get(uri, EXTENSION_OTHER)
    known = [(one.ssrc, one.rid, False) for one in spec.ssrcs]
    known += [(one.rtx_ssrc, one.rid, True) for one in spec.ssrcs if one.rtx_ssrc is not None]
    producer.known = <Known *>calloc(len(known) + 1, sizeof(Known))
    if producer.known == NULL:
        raise MemoryError
    for ssrc, rid, rtx in known:
        producer.known[at].ssrc = ssrc
        producer.known[at].rtx = rtx
        set_name(&producer.known[at].rid, rid)
        at += 1
    producer.known_count = at
    return 0


cdef int producer_add(
    Engine *engine, Producer *producer, Peer *peer, const Name *rids, int count, double now
) noexcept nogil:
    """`producer` is filled but for its places. 0, or NO_ROOM."""
    cdef int at
    cdef Name none
    none.length = 0
    producer.peer = peer
    producer.rids = count
    if enlist(engine, &engine.producers, &engine.all_producers, producer.id, &producer.serial, producer) < 0:
        producer_free(engine, producer)
        return NO_ROOM
    if vector_add(&peer.producers, producer) < 0:
        producer_close(engine, producer)
        return NO_ROOM
    for at in range(max(count, 1)):
        if producer_add_encoding(engine, producer, &rids[at] if count else &none) == NULL:
            producer_close(engine, producer)
            return NO_ROOM
    timer_add(engine, now + WATCH_S, WATCH, producer.serial)
    return 0


cdef void producer_close(Engine *engine, Producer *producer) noexcept nogil:
    """End it with its consumers. Its SSRCs may be used again: browsers keep a sender's SSRC for its next track."""
    cdef Table *routes = &producer.peer.routes
    cdef uint32_t at = 0
    cdef Encoding *encoding
    while producer.consumers.count:
        consumer_close(engine, <Consumer *>producer.consumers.items[0])
    while at < routes.size:
        encoding = route_encoding(routes.slots[at].value)
        if routes.slots[at].value != NULL and encoding != NULL and encoding.producer == producer:
            # Another one may move into this place, or past the end to the front.
            table_remove_at(routes, at)
            at = 0
        else:
            at += 1
    table_remove(&engine.producers, <uint64_t>producer.id, 0, 0)
    vector_remove(&engine.all_producers, producer)
    vector_remove(&producer.peer.producers, producer)
    producer_free(engine, producer)


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


# -- layers

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


cdef Encoding *producer_bind(
    Engine *engine, Producer *producer, const Name *rid, uint32_t ssrc, bint rtx, double now
) noexcept nogil:
    """Give an SSRC to a layer. One that starts again with another SSRC gets a new Encoding, with numbers of its own.
    NULL without memory: then nothing has changed."""
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
            peer_replace_route(peer, encoding.rtx_ssrc)
        encoding.rtx_bound = True
        encoding.rtx_ssrc = ssrc
        encoding.rtx_stats.on = False
        return encoding
    if encoding.bound:
        old = encoding
        encoding = encoding_new(engine, producer, rid, place == 0 or producer.rids == 0)
        if encoding != NULL and vector_add(&producer.retired, old) < 0:
            encoding_free(engine, encoding)
            encoding = NULL
        if encoding == NULL:
            return NULL
        producer.encodings.items[place] = encoding
        old.bound = False
        peer_replace_route(peer, old.ssrc)
        sets_inherit(&encoding.sets, &old.sets)
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
    """Free the replaced encodings that are not needed any more, and the oldest one when too many are left."""
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
    cdef int at
    cdef Consumer *consumer
    for at in range(producer.consumers.count):
        consumer = <Consumer *>producer.consumers.items[at]
        if consumer.source == encoding or consumer.target == encoding or consumer.newest.encoding == encoding:
            return True
        if span_uses(&consumer.spans, encoding):
            return True
    return False


cdef void encoding_retire(Engine *engine, Producer *producer, Encoding *encoding) noexcept nogil:
    cdef int at
    for at in range(producer.consumers.count):
        consumer_let_go(<Consumer *>producer.consumers.items[at], encoding)
    vector_remove(&producer.retired, encoding)
    encoding_free(engine, encoding)


cdef void producer_request_keyframes(Engine *engine, Producer *producer, double now) noexcept nogil:
    """Of each layer in use, or of all where no consumer has one yet."""
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

cdef void producer_deliver(
    Engine *engine, Producer *producer, Encoding *encoding, Packet *packet, double now
) noexcept nogil:
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
    if producer.flowing and not producer.silent and producer.has_media and now - producer.last_media >= SILENT_AFTER_S:
        producer.silent = True
        event_add(engine, PRODUCER_SILENT, producer.id)
    for at in range(producer.consumers.count):
        consumer_choose(engine, <Consumer *>producer.consumers.items[at], now, True)
    return now + WATCH_S


# -- consumers

cdef Plan *producer_plan(Producer *producer, const Plan *wanted) noexcept nogil:
    """The one plan for all consumers that negotiated the same ids."""
    cdef int at
    cdef Plan *plan
    for at in range(producer.plans.count):
        plan = <Plan *>producer.plans.items[at]
        if memcmp(plan, wanted, sizeof(Plan)) == 0:
            return plan
    plan = <Plan *>malloc(sizeof(Plan))
    if plan == NULL or vector_add(&producer.plans, plan) < 0:
        free(plan)
        return NULL
    plan[0] = wanted[0]
    return plan
