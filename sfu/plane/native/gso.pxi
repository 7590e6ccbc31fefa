# Sending a batch: the datagrams of one destination in runs of equal size, each run one UDP GSO send.

cdef enum:
    MESSAGES = 256              # per sendmmsg
    VECTORS = 2048              # datagrams per sendmmsg
    MAX_SEGMENTS = 64           # UDP_MAX_SEGMENTS of kernels before 6.9
    RUN_BYTES = 65000           # of one run: an IP datagram's limit, headers off
    CONTROL = 64                # CMSG_SPACE of an in6_pktinfo and of a uint16_t
    PATIENCE = 4                # waits of WAIT_NS at most for room to send, per batch
    WAIT_NS = 1000000
    REFUSED_RUNS = 16           # so many in a row, and runs are given up

cdef struct Sender:
    mmsghdr messages[MESSAGES]
    iovec vectors[VECTORS]
    sockaddr_in6 addresses[MESSAGES]
    uint8_t controls[MESSAGES * CONTROL]
    int first_out[MESSAGES]     # the datagrams of a message: linked by Out.next
    int segments[MESSAGES]
    int message_count
    int vector_count


cdef bint gso_probe(int fd) noexcept nogil:
    """Whether the kernel knows UDP_SEGMENT; asking changes nothing."""
    cdef int value = 0
    cdef socklen_t length = sizeof(int)
    return getsockopt(fd, SOL_UDP, UDP_SEGMENT, &value, &length) == 0


cdef void message_begin(
    Engine *engine, Sender *sender, Batch *batch, const Address *address, int number
) noexcept nogil:
    cdef int at = sender.message_count
    cdef msghdr *message = &sender.messages[at].msg_hdr
    memset(message, 0, sizeof(msghdr))
    message.msg_name = &sender.addresses[at]
    message.msg_namelen = address_write(address, &sender.addresses[at], engine.six)
    message.msg_iov = &sender.vectors[sender.vector_count]
    message.msg_controllen = address_answer(engine, address, &sender.controls[at * CONTROL])
    if message.msg_controllen:
        message.msg_control = &sender.controls[at * CONTROL]
    sender.first_out[at] = number
    sender.segments[at] = 0
    sender.message_count += 1


cdef void message_segmented(Sender *sender, int at, int size) noexcept nogil:
    cdef msghdr *message = &sender.messages[at].msg_hdr
    cdef cmsghdr *control = <cmsghdr *>&sender.controls[at * CONTROL + message.msg_controllen]
    control.cmsg_len = CMSG_LEN(sizeof(uint16_t))
    control.cmsg_level = SOL_UDP
    control.cmsg_type = UDP_SEGMENT
    (<uint16_t *>CMSG_DATA(control))[0] = <uint16_t>size
    message.msg_control = &sender.controls[at * CONTROL]
    message.msg_controllen += CMSG_SPACE(sizeof(uint16_t))


cdef void send_batch(Engine *engine, Batch *batch) noexcept nogil:
    """Send all of it. Needs no lock: destinations are copies, so that their peers may be gone by now."""
    cdef Sender *sender = engine.sender
    cdef Destination *destination
    cdef int at, number, size, total
    cdef Out *out
    sender.message_count = sender.vector_count = 0
    for at in range(batch.destination_count):
        destination = &batch.destinations[at]
        number = destination.first
        size = total = 0
        while number >= 0:
            out = &batch.outs[number]
            if sender.vector_count == VECTORS:
                send_messages(engine, sender, batch)
                size = 0
            if (
                size == 0
                or out.length > size
                or total + out.length > RUN_BYTES
                or sender.segments[sender.message_count - 1] == MAX_SEGMENTS
            ):
                if sender.message_count == MESSAGES:
                    send_messages(engine, sender, batch)
                message_begin(engine, sender, batch, &destination.address, number)
                size = out.length
                total = 0
            message_append(sender, batch, out, size)
            total += out.length
            # A shorter datagram ends its run, and without GSO every run is one datagram.
            if out.length < size or not engine.gso:
                size = 0
            number = out.next
    if sender.message_count:
        send_messages(engine, sender, batch)


cdef inline void message_append(Sender *sender, Batch *batch, Out *out, int size) noexcept nogil:
    cdef int at = sender.message_count - 1
    sender.vectors[sender.vector_count].iov_base = batch.bytes + out.offset
    sender.vectors[sender.vector_count].iov_len = out.length
    sender.vector_count += 1
    sender.messages[at].msg_hdr.msg_iovlen += 1
    sender.segments[at] += 1
    if sender.segments[at] == 2:
        message_segmented(sender, at, size)


cdef void send_messages(Engine *engine, Sender *sender, Batch *batch) noexcept nogil:
    """Hand the messages to the kernel: what it refuses is dropped and counted, the rest goes on."""
    cdef int at = 0, sent, patience = PATIENCE
    while at < sender.message_count:
        sent = sendmmsg(engine.fd, &sender.messages[at], sender.message_count - at, MSG_DONTWAIT | MSG_NOSIGNAL)
        engine.sent.send_calls += 1
        if sent > 0:
            sent_messages(engine, sender, batch, at, sent)
            at += sent
        elif errno == EINTR:
            continue
        elif sender.segments[at] > 1 and run_refused(engine, errno):
            send_single(engine, sender, batch, at)
            at += 1
        elif (errno == EAGAIN or errno == ENOBUFS) and patience > 0 and engine.sending:
            patience -= 1
            wait_for_room(engine)
        else:
            engine.sent.drops[refusal(errno)] += sender.segments[at]
            at += 1
    sender.message_count = sender.vector_count = 0


cdef inline int refusal(int error) noexcept nogil:
    return SEND_BUFFER_FULL if error == EAGAIN or error == ENOBUFS else SEND_FAILED


cdef bint run_refused(Engine *engine, int error) noexcept nogil:
    """Whether the datagrams may go one by one where the run may not.

    EINVAL and EMSGSIZE: a datagram is longer than the path takes in one piece, so that it can't be a segment; alone it
    is cut into fragments. EIO: the way out can't do checksums for segments; where none can, runs are given up."""
    if error == EINVAL or error == EMSGSIZE:
        return True
    if error != EIO:
        return False
    engine.refused_runs += 1
    if engine.refused_runs >= REFUSED_RUNS:
        engine.gso = False
    return True


cdef void wait_for_room(Engine *engine) noexcept nogil:
    """The socket's buffer is full, or the device's queue, which does not say when there is room again."""
    cdef pollfd fds
    cdef timespec timeout
    cdef int full = errno
    timeout.tv_sec = 0
    timeout.tv_nsec = WAIT_NS if full == EAGAIN else WAIT_NS // 4
    fds.fd = engine.fd
    fds.events = POLLOUT
    fds.revents = 0
    ppoll(&fds if full == EAGAIN else NULL, 1 if full == EAGAIN else 0, &timeout, NULL)


cdef void send_single(Engine *engine, Sender *sender, Batch *batch, int at) noexcept nogil:
    """A run's datagrams without segmentation."""
    cdef mmsghdr one = sender.messages[at]
    cdef int segment
    one.msg_hdr.msg_controllen -= CMSG_SPACE(sizeof(uint16_t))
    one.msg_hdr.msg_iovlen = 1
    for segment in range(sender.segments[at]):
        one.msg_hdr.msg_iov = &sender.messages[at].msg_hdr.msg_iov[segment]
        if sendmmsg(engine.fd, &one, 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1:
            engine.sent.drops[refusal(errno)] += 1


cdef void sent_messages(Engine *engine, Sender *sender, Batch *batch, int first, int count) noexcept nogil:
    cdef int64_t now = wall_ns()
    cdef int at, number, segment
    for at in range(first, first + count):
        if sender.segments[at] > 1:
            engine.refused_runs = 0
        engine.sent.sends += 1
        number = sender.first_out[at]
        for segment in range(sender.segments[at]):
            if batch.outs[number].received_ns:
                engine.sent.delays[delay_bucket(now - batch.outs[number].received_ns)] += 1
            number = batch.outs[number].next


cdef inline int delay_bucket(int64_t ns) noexcept nogil:
    """Eight buckets an octave of microseconds: bucket b > 7 begins at (8 + b % 8) << (b // 8 - 1) us, within 12 %."""
    cdef uint64_t us = <uint64_t>(ns // 1000) if ns > 0 else 0
    cdef int octave = 0
    if us < 8:
        return <int>us
    while us >= 16:
        us >>= 1
        octave += 1
    return min(<int>(8 * (octave + 1) + us - 8), HISTOGRAM - 1)


cdef int64_t delay_bound(int bucket):
    """Microseconds at which the bucket ends; see delay_bucket."""
    if bucket < 8:
        return bucket + 1
    return <int64_t>(8 + bucket % 8 + 1) << (bucket // 8 - 1)
