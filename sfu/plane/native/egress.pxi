# What leaves: protected datagrams of one batch, grouped by destination; facts and raw datagrams for Python.

cdef enum:
    BATCH_BYTES = 4 << 20
    BATCH_OUTS = 4096
    SPACE = MAX_PLAIN + 144     # reserved for a datagram while it is made: what libsrtp may write
    MAX_EVENTS = 1 << 16
    MAX_RAWS = 4096

cdef struct Raw:
    Address address             # its source, or where it goes
    int length
    uint8_t *bytes

cdef struct Raws:
    Raw *items
    int count
    int room

cdef struct Out:
    uint32_t offset
    int length
    int next                    # of the same destination
    int destination
    int64_t received_ns

cdef struct Destination:
    Address address
    int first
    int last

cdef struct Batch:
    uint8_t *bytes
    uint32_t used
    uint32_t room
    Out *outs
    int count
    int outs_room
    Destination *destinations
    int destination_count
    uint64_t serial


cdef int batch_open(Batch *batch) noexcept nogil:
    batch.bytes = <uint8_t *>malloc(BATCH_BYTES)
    batch.outs = <Out *>malloc(BATCH_OUTS * sizeof(Out))
    batch.destinations = <Destination *>malloc(BATCH_OUTS * sizeof(Destination))
    batch.room = BATCH_BYTES
    batch.outs_room = BATCH_OUTS
    return 0 if batch.bytes and batch.outs and batch.destinations else -1


cdef void batch_close(Batch *batch) noexcept nogil:
    free(batch.bytes)
    free(batch.outs)
    free(batch.destinations)


cdef void batch_reset(Engine *engine, Batch *batch) noexcept nogil:
    batch.used = 0
    batch.count = batch.destination_count = 0
    engine.last_batch += 1
    batch.serial = engine.last_batch


cdef uint8_t *out_reserve(Engine *engine) noexcept nogil:
    """Room for one datagram; NULL when the batch is full and can't be sent from here."""
    cdef Batch *batch = engine.batch
    if batch.count < BATCH_OUTS and batch.used + SPACE <= batch.room:
        return batch.bytes + batch.used
    if not engine.threaded or engine.sending:
        return NULL
    # Rare: a thousand viewers' worth of one wake. The lock is held for these sends.
    send_batch(engine, batch)
    batch_reset(engine, batch)
    return batch.bytes


cdef void out_commit(Engine *engine, Peer *peer, int length, int64_t received_ns) noexcept nogil:
    """The datagram in the reserved room is for this peer."""
    cdef Batch *batch = engine.batch
    cdef Destination *destination
    cdef int number = batch.count
    cdef const Address *address = &peer.addresses.sending.address
    peer.counts.packets_out += 1
    peer.counts.bytes_out += length
    engine.totals.counts.packets_out += 1
    engine.totals.counts.bytes_out += length
    if engine.threaded and is_stream(address):
        raw_add(engine, &engine.streamed, address, batch.bytes + batch.used, length)
        return
    if peer.batch_serial == batch.serial and same_address(&batch.destinations[peer.destination].address, address):
        destination = &batch.destinations[peer.destination]
        batch.outs[destination.last].next = number
        destination.last = number
    else:
        peer.batch_serial = batch.serial
        peer.destination = batch.destination_count
        batch.destinations[batch.destination_count] = Destination(address[0], number, number)
        batch.destination_count += 1
    batch.outs[number] = Out(batch.used, length, -1, peer.destination, received_ns)
    # Rounded up, so that no two datagrams share a cache line's half.
    batch.used += (length + 31) & ~31
    batch.count += 1


# -- to Python

cdef void raws_free(Raws *raws) noexcept nogil:
    cdef int at
    for at in range(raws.count):
        free(raws.items[at].bytes)
    free(raws.items)


cdef void tell(Engine *engine) noexcept nogil:
    """Wake Python, once until it has looked."""
    cdef uint64_t one = 1
    if engine.threaded and not engine.told:
        engine.told = True
        write(engine.event_fd, &one, 8)


cdef Event *event_add(Engine *engine, int kind, int64_t subject) noexcept nogil:
    cdef int room
    cdef Event *events
    if engine.event_count == engine.event_room:
        room = engine.event_room * 2 if engine.event_room else 64
        events = <Event *>realloc(engine.events, room * sizeof(Event)) if room <= MAX_EVENTS else NULL
        if events == NULL:
            engine.totals.drops[QUEUE_FULL] += 1
            return NULL
        engine.events = events
        engine.event_room = room
    cdef Event *event = &engine.events[engine.event_count]
    event.kind = kind
    event.subject = subject
    event.rid.length = 0
    event.packets = NULL
    engine.event_count += 1
    tell(engine)
    return event


cdef void raw_add(
    Engine *engine, Raws *raws, const Address *address, const uint8_t *data, int length
) noexcept nogil:
    """A datagram for Python: one that is no media, or that goes over TCP."""
    cdef int room
    cdef Raw *items
    cdef uint8_t *copied
    if raws.count == raws.room:
        room = raws.room * 2 if raws.room else 64
        items = <Raw *>realloc(raws.items, room * sizeof(Raw)) if room <= MAX_RAWS else NULL
        if items == NULL:
            engine.totals.drops[QUEUE_FULL] += 1
            return
        raws.items = items
        raws.room = room
    copied = <uint8_t *>malloc(length + 1)
    if copied == NULL:
        engine.totals.drops[NO_MEMORY] += 1
        return
    memcpy(copied, data, length)
    raws.items[raws.count] = Raw(address[0], length, copied)
    raws.count += 1
    tell(engine)
