# The thread that owns the socket: wait, receive, forward, send; it never takes the GIL.
#
# One mutex guards the model. The thread holds it for one datagram or one slice of a flush at a time, and never while it
# waits or sends: a batch that is being sent holds copies of addresses and bytes, so a peer may vanish in the middle.

from shared.rtc import demux

cdef enum:
    RECEIVED = 64               # datagrams per recvmmsg
    RECEIVE_ROOM = 2048
    RECEIVE_CONTROL = 128       # a time-stamp and an in6_pktinfo
    SLICE = 64                  # datagrams made before they are sent: about 80 KB, a part of a core's own cache

cdef unsigned int MAX_DATAGRAM = demux.MAX_DATAGRAM
cdef double TICK_S = 0.001      # how long video waits at most for the rest of its frame

cdef struct Receiver:
    mmsghdr messages[RECEIVED]
    iovec vectors[RECEIVED]
    sockaddr_in6 addresses[RECEIVED]
    uint8_t controls[RECEIVED * RECEIVE_CONTROL]
    uint8_t bytes[RECEIVED * RECEIVE_ROOM]


# -- packets that wait for the tick

cdef void pending_add(
    Engine *engine, Producer *producer, Encoding *encoding, Packet *packet, double now
) noexcept nogil:
    """Keep a packet until the tick, or until its frame is whole."""
    if producer.pending_count == MAX_PENDING:
        pending_deliver_all(engine, producer)
    if producer.pending_count == 0:
        if engine.waiting.count == 0:
            engine.flush_at = now + TICK_S
        if vector_add(&engine.waiting, producer) < 0:
            engine.totals.drops[NO_MEMORY] += 1
            return
    packet.references += 1
    producer.pending[producer.pending_count] = Pending(encoding, packet)
    producer.pending_count += 1
    if producer.pending_count > MAX_PENDING - RECEIVED:
        engine.crowded = True
    if packet.header.marker or engine.crowded:
        engine.flush_at = now


cdef bint pending_serve(Engine *engine, Producer *producer, double now, int most) noexcept nogil:
    """Forward what is pending, consumer by consumer, until the batch holds `most`; True when all consumers are served.

    What comes meanwhile waits for the next time."""
    cdef int one
    cdef Consumer *consumer
    if producer.serving == 0:
        engine.last_flush += 1
        producer.flush = engine.last_flush
        producer.serving = producer.pending_count
        producer.served = 0
    while producer.served < producer.consumers.count:
        consumer = <Consumer *>producer.consumers.items[producer.served]
        producer.served += 1
        # A consumer that joins or leaves between two slices sets `served` back to 0.
        if consumer.flushed == producer.flush:
            continue
        consumer.flushed = producer.flush
        for one in range(producer.serving):
            consumer_forward(engine, consumer, producer.pending[one].encoding, producer.pending[one].packet, now)
        if engine.batch.count >= most:
            break
    return producer.served >= producer.consumers.count


cdef void pending_served(Engine *engine, Producer *producer) noexcept nogil:
    """Let go of what all consumers have had."""
    cdef int at
    for at in range(producer.serving):
        packet_release(producer.pending[at].packet)
    producer.pending_count -= producer.serving
    memmove(producer.pending, &producer.pending[producer.serving], producer.pending_count * sizeof(Pending))
    producer.serving = 0
    if producer.pending_count == 0:
        vector_remove(&engine.waiting, producer)


cdef void pending_drop(Engine *engine, Producer *producer) noexcept nogil:
    if producer.pending_count:
        producer.serving = producer.pending_count
        pending_served(engine, producer)


cdef void pending_deliver_all(Engine *engine, Producer *producer) noexcept nogil:
    """At once, with the lock held: what waits may belong to an encoding that is about to go."""
    while producer.pending_count:
        pending_serve(engine, producer, monotonic(), BATCH_OUTS + 1)
        pending_served(engine, producer)


cdef void flush_pending(Engine *engine) noexcept nogil:
    """Forward what waits, consumer by consumer, so that a consumer's packets stand together.

    Releases the lock to send each slice, and looks at the socket in between: audio does not wait for a burst of
    video."""
    cdef Producer *producer
    cdef double now = monotonic()
    cdef int at = 0
    engine.last_round += 1
    engine.crowded = False
    engine.flush_at = now + TICK_S
    while at < engine.waiting.count:
        producer = <Producer *>engine.waiting.items[at]
        if producer.round == engine.last_round:
            at += 1
        elif pending_serve(engine, producer, now, SLICE):
            producer.round = engine.last_round
            pending_served(engine, producer)
        if engine.batch.count >= SLICE:
            send_now(engine)
            if not engine.crowded:
                pthread_mutex_unlock(&engine.mutex)
                plane_receive(engine, engine.receiver)
                pthread_mutex_lock(&engine.mutex)
            now = monotonic()
            at = 0


cdef void send_now(Engine *engine) noexcept nogil:
    """Send what the batch holds, with the lock let go meanwhile."""
    cdef Batch *batch = engine.batch
    engine.batch = engine.spare
    engine.spare = batch
    engine.sending = True
    pthread_mutex_unlock(&engine.mutex)
    send_batch(engine, batch)
    pthread_mutex_lock(&engine.mutex)
    engine.sending = False
    batch_reset(engine, batch)


# -- receiving

cdef void receiver_open(Receiver *receiver) noexcept nogil:
    cdef int at
    for at in range(RECEIVED):
        receiver.vectors[at].iov_base = receiver.bytes + at * RECEIVE_ROOM
        receiver.vectors[at].iov_len = RECEIVE_ROOM
        memset(&receiver.messages[at], 0, sizeof(mmsghdr))
        receiver.messages[at].msg_hdr.msg_name = &receiver.addresses[at]
        receiver.messages[at].msg_hdr.msg_iov = &receiver.vectors[at]
        receiver.messages[at].msg_hdr.msg_iovlen = 1
        receiver.messages[at].msg_hdr.msg_control = receiver.controls + at * RECEIVE_CONTROL


cdef int64_t received_at(msghdr *message) noexcept nogil:
    """The kernel's time-stamp; 0 without one."""
    cdef cmsghdr *control = CMSG_FIRSTHDR(message)
    cdef timespec *at
    while control != NULL:
        if control.cmsg_level == SOL_SOCKET and control.cmsg_type == SCM_TIMESTAMPNS:
            at = <timespec *>CMSG_DATA(control)
            return <int64_t>at.tv_sec * 1000000000 + at.tv_nsec
        control = CMSG_NXTHDR(message, control)
    return 0


cdef void plane_receive(Engine *engine, Receiver *receiver) noexcept nogil:
    cdef int at, count
    cdef double now
    cdef Address source
    cdef uint8_t *data
    for at in range(RECEIVED):
        receiver.messages[at].msg_hdr.msg_namelen = sizeof(sockaddr_in6)
        receiver.messages[at].msg_hdr.msg_controllen = RECEIVE_CONTROL
        receiver.messages[at].msg_hdr.msg_flags = 0
    count = recvmmsg(engine.fd, receiver.messages, RECEIVED, MSG_DONTWAIT, NULL)
    if count <= 0:
        return
    now = monotonic()
    engine.woken_ns = wall_ns()
    for at in range(count):
        data = receiver.bytes + at * RECEIVE_ROOM
        address_read(&receiver.addresses[at], &source)
        pthread_mutex_lock(&engine.mutex)
        engine.received_ns = received_at(&receiver.messages[at].msg_hdr)
        if engine.wild:
            address_asked(engine, &receiver.messages[at].msg_hdr, &source)
        plane_datagram(
            engine, data, receiver.messages[at].msg_len, receiver.messages[at].msg_hdr.msg_flags, &source, now
        )
        engine.received_ns = 0
        pthread_mutex_unlock(&engine.mutex)


cdef inline void plane_datagram(
    Engine *engine, uint8_t *data, unsigned int length, int flags, const Address *source, double now
) noexcept nogil:
    """Sort by the first byte (RFC 7983 section 7)."""
    if length < 12 or length > MAX_DATAGRAM or flags & MSG_TRUNC:
        engine.totals.drops[UNREADABLE] += 1
    elif 128 <= data[0] <= 191:
        handle_media(engine, data, <int>length, source, now)
    elif data[0] <= 3 or 20 <= data[0] <= 63:
        raw_add(engine, &engine.raws, source, data, <int>length)
    else:
        engine.totals.drops[UNREADABLE] += 1


# -- the loop

cdef double plane_deadline(Engine *engine, double now) noexcept nogil:
    """When the thread must look again."""
    cdef double deadline = now + 1.0
    if engine.batch.count:
        return now
    if engine.timer_count:
        deadline = fmin(deadline, engine.timers[0].when)
    if engine.waiting.count:
        deadline = fmin(deadline, engine.flush_at)
    return deadline


cdef void plane_wait(Engine *engine) noexcept nogil:
    cdef pollfd fds[2]
    cdef timespec timeout
    cdef uint64_t count
    cdef double now = monotonic(), left
    pthread_mutex_lock(&engine.mutex)
    left = fmax(0.0, plane_deadline(engine, now) - now)
    pthread_mutex_unlock(&engine.mutex)
    timeout.tv_sec = <long>left
    timeout.tv_nsec = <long>((left - <double>timeout.tv_sec) * 1e9)
    fds[0].fd = engine.fd
    fds[1].fd = engine.wake_fd
    fds[0].events = fds[1].events = POLLIN
    fds[0].revents = fds[1].revents = 0
    ppoll(fds, 2, &timeout, NULL)
    if fds[1].revents & POLLIN:
        read(engine.wake_fd, &count, 8)


cdef void go_first() noexcept nogil:
    """Before Python's threads, where that is allowed: a handshake or a look at the tables takes them a millisecond, and
    the plane seldom more than that. Five steps are three times the weight: even a plane that needs the whole core
    leaves Python a quarter of it, to answer checks and to drain. A real-time priority would leave nothing. 0 is this
    thread, to Linux."""
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - 5)


cdef void *plane_run(void *argument) noexcept nogil:
    cdef Engine *engine = <Engine *>argument
    cdef double now
    go_first()
    while True:
        plane_wait(engine)
        plane_receive(engine, engine.receiver)
        now = monotonic()
        pthread_mutex_lock(&engine.mutex)
        engine.totals.wakes += 1
        timers_run(engine, now)
        if engine.waiting.count and now >= engine.flush_at:
            flush_pending(engine)
        if engine.batch.count:
            send_now(engine)
        if engine.stopping:
            pthread_mutex_unlock(&engine.mutex)
            return NULL
        pthread_mutex_unlock(&engine.mutex)


cdef int plane_start(Engine *engine) noexcept nogil:
    """0, or an errno. Signals stay with Python's threads."""
    cdef sigset_t every, before
    cdef int on = 1, failed
    setsockopt(engine.fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(int))
    engine.gso = engine.gso and gso_probe(engine.fd)
    if engine.sender == NULL:
        engine.sender = <Sender *>calloc(1, sizeof(Sender))
    if engine.receiver == NULL:
        engine.receiver = <Receiver *>calloc(1, sizeof(Receiver))
    if engine.sender == NULL or engine.receiver == NULL:
        return ENOMEM
    receiver_open(engine.receiver)
    engine.threaded = True
    sigfillset(&every)
    pthread_sigmask(SIG_SETMASK, &every, &before)
    failed = pthread_create(&engine.thread, NULL, plane_run, engine)
    pthread_sigmask(SIG_SETMASK, &before, NULL)
    if failed == 0:
        pthread_setname_np(engine.thread, b"sluice-plane")
    return failed
