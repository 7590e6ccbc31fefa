# What Python's calls do: each is one short hold of the lock, and safe at any moment.

ctypedef int (*Act)(Engine *engine, void *subject, void *argument, double now) noexcept nogil

cdef enum:
    GONE = 1
    NO_ROOM = -1                # no memory; what was handed over has been freed

cdef struct NewKeys:
    const uint8_t *rx
    const uint8_t *tx
    const uint8_t *rx_salt
    const uint8_t *tx_salt
    int length
    void *session               # of libsrtp, with the two that it owns; NULL for GCM on libcrypto
    void *srtp_rx
    void *srtp_tx
    void *rx_policy
    Address address             # where the handshake was finished from

cdef struct Shown:
    Address address
    bint nominated

cdef struct Found:
    Address address
    int64_t peer

cdef struct NewProducer:
    Producer *producer
    Name *rids
    int count
    uint8_t transport_cc        # id of the transport-wide sequence number in what its peer sends, 0: none

cdef struct NewConsumer:
    Consumer *consumer
    int64_t peer
    Name codec
    Plan plan

cdef struct Wish:
    bint prefers
    Name rid

cdef struct Datagram:
    uint8_t *data
    int length
    Address source

cdef struct Taken:
    # What Python takes away, and frees.
    void *items
    int count


cdef int locked(Engine *engine, Table *table, int64_t id, Act act, void *argument, double now) noexcept nogil:
    """Hold the lock, look an object up and act on it; GONE where there is none. Without a table: on the engine."""
    cdef int result = GONE
    cdef void *subject = engine
    pthread_mutex_lock(&engine.mutex)
    if table != NULL:
        subject = table_get(table, <uint64_t>id, 0, 0)
    if subject != NULL:
        result = act(engine, subject, argument, now)
    pthread_mutex_unlock(&engine.mutex)
    return result


# -- the engine

cdef int on_stop(Engine *engine, void *_, void *argument, double now) noexcept nogil:
    engine.stopping = True
    return 0


cdef int on_datagram(Engine *engine, void *_, void *given, double now) noexcept nogil:
    cdef Datagram *datagram = <Datagram *>given
    handle_media(engine, datagram.data, datagram.length, &datagram.source, now)
    return 0


cdef int on_local(Engine *engine, void *_, void *local, double now) noexcept nogil:
    return local_number(engine, <Local *>local)


cdef int take_raws(Engine *engine, void *_, void *out, double now) noexcept nogil:
    cdef uint64_t told
    (<Taken *>out)[0] = Taken(engine.raws.items, engine.raws.count)
    memset(&engine.raws, 0, sizeof(Raws))
    if engine.told:
        read(engine.event_fd, &told, 8)
        engine.told = False
    return 0


cdef int take_streamed(Engine *engine, void *_, void *out, double now) noexcept nogil:
    (<Taken *>out)[0] = Taken(engine.streamed.items, engine.streamed.count)
    memset(&engine.streamed, 0, sizeof(Raws))
    return 0


cdef int take_events(Engine *engine, void *_, void *out, double now) noexcept nogil:
    (<Taken *>out)[0] = Taken(engine.events, engine.event_count)
    engine.events = NULL
    engine.event_count = engine.event_room = engine.delivery_events = 0
    return 0


cdef int take_old_sessions(Engine *engine, void *_, void *out, double now) noexcept nogil:
    (<Vector *>out)[0] = engine.old_sessions
    memset(&engine.old_sessions, 0, sizeof(Vector))
    return 0


cdef int take_facts(Engine *engine, void *_, void *facts, double now) noexcept nogil:
    return facts_take(engine, <Facts *>facts)


# -- peers

cdef int on_add_peer(Engine *engine, void *_, void *id, double now) noexcept nogil:
    return peer_add(engine, (<int64_t *>id)[0])


cdef int on_set_keys(Engine *engine, void *peer, void *keys, double now) noexcept nogil:
    return peer_set_keys(engine, <Peer *>peer, <NewKeys *>keys, now)


cdef int on_add_address(Engine *engine, void *peer, void *given, double now) noexcept nogil:
    cdef Shown *shown = <Shown *>given
    return peer_add_address(engine, <Peer *>peer, &shown.address, shown.nominated, now)


cdef int on_peer_at(Engine *engine, void *_, void *given, double now) noexcept nogil:
    cdef Found *found = <Found *>given
    cdef KnownAddress *known = peer_known_at(engine, &found.address)
    if known == NULL:
        return GONE
    found.peer = known.peer.id
    return 0


cdef int on_address_of(Engine *engine, void *peer, void *found, double now) noexcept nogil:
    cdef KnownAddress *sending = (<Peer *>peer).addresses.sending
    if sending == NULL:
        return GONE
    (<Found *>found).address = sending.address
    return 0


cdef int on_follow_delivery(Engine *engine, void *peer, void *wanted, double now) noexcept nogil:
    (<Peer *>peer).follows_delivery = (<bint *>wanted)[0]
    return 0


cdef int on_remove_peer(Engine *engine, void *peer, void *_, double now) noexcept nogil:
    peer_remove(engine, <Peer *>peer)
    return 0


# -- tracks

cdef int on_produce(Engine *engine, void *peer, void *given, double now) noexcept nogil:
    cdef NewProducer *new = <NewProducer *>given
    if producer_add(engine, new.producer, <Peer *>peer, new.rids, new.count, now) < 0:
        return NO_ROOM
    if new.transport_cc:
        (<Peer *>peer).transport_cc = new.transport_cc
    return 0


cdef int on_request_keyframe(Engine *engine, void *producer, void *_, double now) noexcept nogil:
    producer_request_keyframes(engine, <Producer *>producer, now)
    return 0


cdef int on_close_producer(Engine *engine, void *producer, void *_, double now) noexcept nogil:
    producer_close(engine, <Producer *>producer)
    return 0


cdef int on_consume(Engine *engine, void *producer, void *given, double now) noexcept nogil:
    cdef NewConsumer *new = <NewConsumer *>given
    cdef Peer *peer = <Peer *>table_get(&engine.peers, <uint64_t>new.peer, 0, 0)
    if peer == NULL:
        return GONE
    return consumer_add(engine, new.consumer, peer, <Producer *>producer, &new.plan, &new.codec, now)


cdef int on_set_layer(Engine *engine, void *consumer, void *given, double now) noexcept nogil:
    cdef Wish *wish = <Wish *>given
    (<Consumer *>consumer).prefers = wish.prefers
    (<Consumer *>consumer).preferred = wish.rid
    consumer_choose(engine, <Consumer *>consumer, now, True)
    return 0


cdef int on_pause(Engine *engine, void *consumer, void *paused, double now) noexcept nogil:
    consumer_pause(engine, <Consumer *>consumer, (<bint *>paused)[0], now)
    return 0


cdef int on_close_consumer(Engine *engine, void *consumer, void *_, double now) noexcept nogil:
    consumer_close(engine, <Consumer *>consumer)
    return 0
