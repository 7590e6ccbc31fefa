# Making and removing: each is one short hold of the lock, and safe at any moment.

cdef int engine_open(Engine *engine, uint32_t ssrc) noexcept nogil:
    memset(engine, 0, sizeof(Engine))
    pthread_mutex_init(&engine.mutex, NULL)
    engine.ssrc = ssrc
    engine.fd = engine.wake_fd = engine.event_fd = -1
    engine.batch = &engine.batches[0]
    engine.spare = &engine.batches[1]
    if batch_open(engine.batch) < 0 or batch_open(engine.spare) < 0:
        return -1
    batch_reset(engine, engine.batch)
    batch_reset(engine, engine.spare)
    return 0


cdef void engine_forget(Engine *engine) noexcept nogil:
    """Everything that Python has made; the thread has ended."""
    while engine.all_peers.count:
        peer_remove(engine, <Peer *>engine.all_peers.items[engine.all_peers.count - 1])


cdef void engine_close(Engine *engine) noexcept nogil:
    """After `engine_forget`."""
    cdef int at
    for at in range(engine.raw_count):
        free(engine.raws[at].bytes)
    for at in range(engine.event_count):
        free(engine.events[at].packets)
    batch_close(&engine.batches[0])
    batch_close(&engine.batches[1])
    table_free(&engine.objects)
    table_free(&engine.peers)
    table_free(&engine.addresses)
    table_free(&engine.producers)
    table_free(&engine.consumers)
    vector_free(&engine.all_peers)
    vector_free(&engine.all_producers)
    vector_free(&engine.all_consumers)
    vector_free(&engine.waiting)
    free(engine.timers)
    free(engine.events)
    free(engine.raws)
    free(engine.sender)
    free(engine.receiver)
    if engine.wake_fd >= 0:
        close(engine.wake_fd)
        close(engine.event_fd)
    pthread_mutex_destroy(&engine.mutex)


cdef int enlist(Engine *engine, Table *table, Vector *all, int64_t id, uint64_t *serial, void *made) noexcept nogil:
    """Give an object its serial and its places; 0, or -1 without memory."""
    engine.last_serial += 1
    serial[0] = engine.last_serial
    if table_put(&engine.objects, serial[0], 0, 0, made) < 0:
        return -1
    if table_put(table, <uint64_t>id, 0, 0, made) < 0 or vector_add(all, made) < 0:
        table_remove(table, <uint64_t>id, 0, 0)
        table_remove(&engine.objects, serial[0], 0, 0)
        return -1
    return 0


cdef int peer_add(Engine *engine, int64_t id) noexcept nogil:
    cdef Peer *peer = <Peer *>calloc(1, sizeof(Peer))
    if peer == NULL:
        return -1
    peer.id = id
    if enlist(engine, &engine.peers, &engine.all_peers, id, &peer.serial, peer) < 0:
        free(peer)
        return -1
    return 0


cdef void peer_forget_streams(Peer *peer) noexcept nogil:
    cdef uint32_t at
    for at in range(peer.streams.size):
        free(peer.streams.slots[at].value)
    table_free(&peer.streams)


cdef void peer_refresh(Engine *engine, Peer *peer, double now) noexcept nogil:
    """Whether media can be sent to the peer may have changed."""
    cdef int at
    for at in range(peer.consumers.count):
        consumer_choose(engine, <Consumer *>peer.consumers.items[at], now, True)


cdef void peer_set_address(Engine *engine, Peer *peer, const Address *address, double now) noexcept nogil:
    cdef Peer *previous
    if peer.placed and same_address(&peer.address, address):
        return
    if peer.placed:
        table_remove(&engine.addresses, peer.address.high, peer.address.low, peer.address.port)
    previous = <Peer *>table_get(&engine.addresses, address.high, address.low, address.port)
    if previous != NULL:
        previous.placed = False
        peer_refresh(engine, previous, now)
    peer.address = address[0]
    peer.placed = table_put(&engine.addresses, address.high, address.low, address.port, peer) == 0
    peer_refresh(engine, peer, now)


cdef int peer_set_keys(Engine *engine, Peer *peer, const uint8_t *rx, const uint8_t *tx, int key_length, const uint8_t *rx_salt, const uint8_t *tx_salt, void *session, void *srtp_rx, void *srtp_tx, double now) noexcept nogil:
    """With sessions of libsrtp, or without them GCM on libcrypto. A second call replaces the keys."""
    cdef int at, failed = 0
    cdef Consumer *consumer
    srtp_forget_keys(engine, peer)
    peer_forget_streams(peer)
    if peer.arrivals != NULL:
        # A new association numbers anew.
        memset(peer.arrivals, 0, sizeof(Arrivals))
    if srtp_rx != NULL:
        peer.srtp_rx = srtp_rx
        peer.srtp_tx = srtp_tx
        peer.session = session
    else:
        failed = srtp_set_gcm(peer, rx, tx, key_length, rx_salt, tx_salt)
    peer.keyed = failed == 0
    for at in range(peer.consumers.count):
        # The receiver's rollover counters begin at 0 with the keys.
        consumer = <Consumer *>peer.consumers.items[at]
        consumer.cycle = consumer.highest_out >> 16
        consumer.rtx_cycle = consumer.rtx_index >> 16
    peer_refresh(engine, peer, now)
    return failed


cdef void peer_remove(Engine *engine, Peer *peer) noexcept nogil:
    while peer.producers.count:
        producer_close(engine, <Producer *>peer.producers.items[0])
    while peer.consumers.count:
        consumer_close(engine, <Consumer *>peer.consumers.items[0])
    if peer.placed:
        table_remove(&engine.addresses, peer.address.high, peer.address.low, peer.address.port)
    table_remove(&engine.objects, peer.serial, 0, 0)
    table_remove(&engine.peers, <uint64_t>peer.id, 0, 0)
    vector_remove(&engine.all_peers, peer)
    srtp_forget_keys(engine, peer)
    peer_forget_streams(peer)
    table_free(&peer.routes)
    table_free(&peer.by_ssrc)
    free(peer.arrivals)
    free(peer.delivery.ring)
    vector_free(&peer.producers)
    vector_free(&peer.consumers)
    free(peer)


cdef int producer_add(Engine *engine, Producer *producer, Peer *peer, const Name *rids, int count, double now) noexcept nogil:
    """`producer` is filled but for its places. 0, or -1 without memory."""
    cdef int at
    cdef Name none
    none.length = 0
    producer.peer = peer
    producer.rids = count
    if enlist(engine, &engine.producers, &engine.all_producers, producer.id, &producer.serial, producer) < 0:
        return -1
    if vector_add(&peer.producers, producer) < 0:
        producer_close(engine, producer)
        return -2
    for at in range(max(count, 1)):
        if producer_add_encoding(engine, producer, &rids[at] if count else &none) == NULL:
            producer_close(engine, producer)
            return -2
    timer_add(engine, now + 0.2, WATCH, producer.serial)
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


cdef int consumer_add(Engine *engine, Consumer *consumer, Peer *peer, Producer *producer, const Plan *plan, const Name *codec, double now) noexcept nogil:
    """`consumer` is filled but for its places. 0, or -1 without memory."""
    cdef int at
    consumer.peer = peer
    consumer.producer = producer
    consumer.tokens = 50.0
    consumer.cycle = consumer.highest_out >> 16
    consumer.rtx_cycle = consumer.rtx_index >> 16
    for at in range(128):
        consumer.accepted[at] = producer.codecs[at].kind != CODEC_NONE and same_name(&producer.codecs[at].name, codec)
    consumer.plan = producer_plan(producer, plan)
    if consumer.plan == NULL or (plan.sequenced and delivery_open(&peer.delivery) < 0):
        return -1
    if enlist(engine, &engine.consumers, &engine.all_consumers, consumer.id, &consumer.serial, consumer) < 0:
        return -1
    if (
        vector_add(&peer.consumers, consumer) < 0
        or vector_add(&producer.consumers, consumer) < 0
        or table_put(&peer.by_ssrc, consumer.ssrc, 0, 0, consumer) < 0
    ):
        consumer_close(engine, consumer)
        return -2
    consumer_choose(engine, consumer, now, True)
    return 0


cdef void consumer_close(Engine *engine, Consumer *consumer) noexcept nogil:
    cdef Peer *peer = consumer.peer
    if table_get(&peer.by_ssrc, consumer.ssrc, 0, 0) == consumer:
        table_remove(&peer.by_ssrc, consumer.ssrc, 0, 0)
    table_remove(&engine.consumers, <uint64_t>consumer.id, 0, 0)
    vector_remove(&engine.all_consumers, consumer)
    vector_remove(&peer.consumers, consumer)
    vector_remove(&consumer.producer.consumers, consumer)
    consumer.producer.served = 0
    if peer.srtp_tx != NULL:
        # Nothing will be sent with these any more; libsrtp takes SSRCs in network order.
        crypto.remove_stream(peer.srtp_tx, network_order(consumer.ssrc))
        if consumer.has_rtx:
            crypto.remove_stream(peer.srtp_tx, network_order(consumer.rtx_ssrc))
    consumer_free(engine, consumer)


cdef inline uint32_t network_order(uint32_t value) noexcept nogil:
    cdef uint32_t ordered = 0
    write32(<uint8_t *>&ordered, value)
    return ordered


cdef void consumer_pause(Engine *engine, Consumer *consumer, bint paused, double now) noexcept nogil:
    """Stop, or go on at the next key frame with continuous numbers."""
    if consumer.paused == paused:
        return
    consumer.paused = paused
    consumer.source = NULL
    consumer_choose(engine, consumer, now, True)
