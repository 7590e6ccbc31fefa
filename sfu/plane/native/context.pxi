# What all parts of one plane share. One mutex guards it all; see thread.pxi.

cdef struct Engine:
    pthread_mutex_t mutex
    uint32_t ssrc
    uint64_t last_serial
    Table objects               # serial -> whatever has timers
    Table peers                 # id -> Peer
    Table addresses             # address -> KnownAddress
    Table producers
    Table consumers
    Vector all_peers            # in the order of their making, for the snapshot
    Vector all_producers
    Vector all_consumers
    Vector old_sessions         # references for Python to let go of
    Timer *timers
    int timer_count
    int timer_room
    uint64_t timer_order
    Event *events
    int event_count
    int event_room
    int delivery_events
    Raws raws                   # STUN and DTLS for Python
    Raws streamed               # what Python sends over TCP
    Totals totals
    Sent sent
    Sender *sender
    Receiver *receiver
    Batch *batch                # what is being filled
    Batch *spare                # what is being sent
    Batch batches[2]
    uint64_t last_batch
    int64_t received_ns         # of the datagram in hand
    int64_t woken_ns            # wall clock of its wake
    uint8_t block[MAX_BLOCK]    # the extension block in hand
    # The thread's side; see thread.pxi.
    bint threaded
    bint gso
    bint six                    # the socket is an IPv6 one
    bint wild                   # it is bound to all addresses, and tells which one was asked
    Local locals[MAX_LOCALS]    # which ones have been; only added to
    int local_count
    bint coalesce
    bint pad
    int fd
    int wake_fd
    int event_fd
    bint stopping
    bint told
    bint sending                # the spare batch is on its way, and `sender` in use
    pthread_t thread
    Vector waiting              # producers with pending packets
    double flush_at
    uint64_t last_flush
    uint64_t last_round
    bint crowded                # a producer has hardly room for another batch of datagrams
    int refused_runs            # in a row, by devices without checksums for segments


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
    raws_free(&engine.raws)
    raws_free(&engine.streamed)
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
