# The receiving half: subscribers told apart by destination address, their streams counted by RTP header, which SRTP
# leaves readable. STUN and DTLS, and all media of the subscribers that are looked at closely, are queued for Python.

cdef enum:
    RECEIVED = 128              # datagrams per recvmmsg
    DATAGRAM = 2048
    TRAIN = 65536               # room for what UDP_GRO hands over as one
    CONTROLS = 128
    FLOWS = 32                  # streams told apart per subscriber
    MAX_RAW = 4096              # datagrams that wait for Python
    DELAYS = 2000               # buckets of the histogram of arrivals
    DELAY_STEP_NS = 50000

cdef struct Flow:
    uint32_t ssrc
    int64_t packets
    int64_t octets
    int64_t highest
    uint64_t seen               # bit n: `highest` - n has come
    int64_t fresh               # published packets, each counted once
    uint32_t shift              # what its timestamps lack of the published ones

cdef struct Shift:
    uint32_t ssrc
    uint32_t by

cdef struct Subscriber:
    uint32_t ssrcs[FLOWS]
    Flow flows[FLOWS]
    int flow_count
    Shift shifts[FLOWS]         # known before the first packet
    int shift_count

cdef struct Waiting:
    uint32_t host
    int length
    uint8_t bytes[DATAGRAM]

cdef struct Receiving:
    int fd
    uint32_t first_host
    int hosts
    int watched                 # the first so many are looked at closely
    int timed                   # of the first so many the delay is measured
    bint gro
    Subscriber *subscribers
    Waiting *raws
    int raw_count
    int64_t overflown           # datagrams for Python that found its queue full
    int64_t foreign             # media that no client expects, or of a stream too many
    Sending *sending            # whose frames the arrivals are of
    int64_t delays[DELAYS]
    int64_t untimed             # packets whose RTP timestamp is not their publisher's
    pthread_mutex_t raw_mutex
    int event_fd
    bint told
    int room
    mmsghdr messages[RECEIVED]
    iovec vectors[RECEIVED]
    uint8_t controls[RECEIVED * CONTROLS]
    uint8_t *bytes


cdef int receiving_open(Receiving *r) noexcept nogil:
    """0, or -1 without memory."""
    cdef int at
    r.room = TRAIN if r.gro else DATAGRAM
    r.subscribers = <Subscriber *>calloc(r.hosts, sizeof(Subscriber))
    r.raws = <Waiting *>malloc(MAX_RAW * sizeof(Waiting))
    r.bytes = <uint8_t *>malloc(RECEIVED * r.room)
    if r.subscribers == NULL or r.raws == NULL or r.bytes == NULL:
        return -1
    pthread_mutex_init(&r.raw_mutex, NULL)
    for at in range(RECEIVED):
        r.vectors[at].iov_base = r.bytes + at * r.room
        r.vectors[at].iov_len = r.room
        memset(&r.messages[at], 0, sizeof(mmsghdr))
        r.messages[at].msg_hdr.msg_iov = &r.vectors[at]
        r.messages[at].msg_hdr.msg_iovlen = 1
        r.messages[at].msg_hdr.msg_control = r.controls + at * CONTROLS
    return 0


cdef void receiving_close(Receiving *r) noexcept nogil:
    free(r.subscribers)
    free(r.raws)
    free(r.bytes)
    if r.event_fd > 0:
        close(r.event_fd)


cdef int receive(Receiving *r) noexcept nogil:
    """One batch; how many datagrams (or trains of them) it had."""
    cdef int at, count, length, start, size
    cdef uint32_t host
    cdef int64_t arrived
    cdef cmsghdr *control
    for at in range(RECEIVED):
        r.messages[at].msg_hdr.msg_controllen = CONTROLS
    count = recvmmsg(r.fd, r.messages, RECEIVED, MSG_DONTWAIT, NULL)
    for at in range(count):
        host = 0
        arrived = 0
        length = size = <int>r.messages[at].msg_len
        control = CMSG_FIRSTHDR(&r.messages[at].msg_hdr)
        while control != NULL:
            if control.cmsg_level == IPPROTO_IP and control.cmsg_type == IP_PKTINFO:
                host = read32(<uint8_t *>&(<in_pktinfo *>CMSG_DATA(control)).ipi_addr)
            elif control.cmsg_level == SOL_SOCKET and control.cmsg_type == SCM_TIMESTAMPNS:
                arrived = (<timespec *>CMSG_DATA(control)).tv_sec * <int64_t>1000000000
                arrived += (<timespec *>CMSG_DATA(control)).tv_nsec
            elif control.cmsg_level == SOL_UDP and control.cmsg_type == UDP_GRO:
                size = (<int *>CMSG_DATA(control))[0]
            control = CMSG_NXTHDR(&r.messages[at].msg_hdr, control)
        start = 0
        while start < length and size > 0:
            datagram(r, host, r.bytes + at * r.room + start, min(size, length - start), arrived)
            start += size
    return count


cdef void datagram(Receiving *r, uint32_t host, uint8_t *data, int length, int64_t arrived) noexcept nogil:
    cdef int64_t number = <int64_t>host - r.first_host
    cdef bint ours = 0 <= number < r.hosts
    cdef bint media = length >= 12 and 128 <= data[0] <= 191
    if media and not 192 <= data[1] <= 223:
        if ours:
            count_packet(r, <int>number, data, length, arrived)
        else:
            r.foreign += 1
    if not media or (ours and number < r.watched):
        queue_raw(r, host, data, length)


cdef void queue_raw(Receiving *r, uint32_t host, uint8_t *data, int length) noexcept nogil:
    """For Python, which is woken once until it has looked."""
    cdef Waiting *raw
    cdef uint64_t one = 1
    pthread_mutex_lock(&r.raw_mutex)
    if r.raw_count == MAX_RAW or length > DATAGRAM:
        r.overflown += 1
    else:
        raw = &r.raws[r.raw_count]
        raw.host = host
        raw.length = length
        memcpy(raw.bytes, data, length)
        r.raw_count += 1
        if not r.told:
            r.told = True
            write(r.event_fd, &one, 8)
    pthread_mutex_unlock(&r.raw_mutex)


cdef void count_packet(Receiving *r, int subscriber, uint8_t *data, int length, int64_t arrived) noexcept nogil:
    cdef Subscriber *known = &r.subscribers[subscriber]
    cdef uint32_t ssrc = read32(data + 8)
    cdef uint16_t sequence = read16(data + 2)
    cdef Flow *flow
    cdef int64_t number
    cdef int at = 0
    while at < known.flow_count and known.ssrcs[at] != ssrc:
        at += 1
    if at == FLOWS:
        r.foreign += 1
        return
    flow = &known.flows[at]
    if at == known.flow_count:
        known.ssrcs[at] = ssrc
        known.flow_count += 1
        flow[0] = Flow(ssrc, 0, 0, 0x10000 + sequence - 1, 0, 0, shift_of(known, ssrc))
    number = flow.highest + sequence_delta(sequence, <uint16_t>flow.highest)
    if first_time(flow, number) and (data[1] & 0x7F == VIDEO or data[1] & 0x7F == AUDIO):
        flow.fresh += 1
    flow.packets += 1
    flow.octets += length
    if subscriber < r.timed and arrived:
        time_packet(r, read32(data + 4) + flow.shift, data[1] & 0x7F, arrived)


cdef bint first_time(Flow *flow, int64_t number) noexcept nogil:
    """Whether a packet is no repetition; what comes more than 63 late is taken for one."""
    cdef int64_t behind = flow.highest - number
    if behind < 0:
        flow.seen = flow.seen << -behind if behind > -64 else 0
        flow.highest = number
        behind = 0
    if behind >= 64 or flow.seen >> behind & 1:
        return False
    flow.seen |= <uint64_t>1 << behind
    return True


cdef uint32_t shift_of(Subscriber *known, uint32_t ssrc) noexcept nogil:
    cdef int at
    for at in range(known.shift_count):
        if known.shifts[at].ssrc == ssrc:
            return known.shifts[at].by
    return 0


cdef inline void time_packet(Receiving *r, uint32_t timestamp, int payload_type, int64_t arrived) noexcept nogil:
    """How long after its frame was sent a packet came. The RTP timestamp tells which frame of whom: see TIMED."""
    cdef uint32_t ticks = VIDEO_TICKS if payload_type == VIDEO else AUDIO_TICKS
    cdef Track *track = r.sending.timed[1 if payload_type == VIDEO else 0][timestamp % ticks]
    cdef int64_t spent
    if track == NULL:
        r.untimed += 1
        return
    spent = arrived - track.sent_ns[(timestamp // ticks) % STAMPS]
    if 0 <= spent < DELAYS * <int64_t>DELAY_STEP_NS:
        r.delays[spent // DELAY_STEP_NS] += 1
    elif 0 <= spent < STAMPS * track.interval_ns:
        r.delays[DELAYS - 1] += 1
    else:
        r.untimed += 1
