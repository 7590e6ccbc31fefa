# What the kernel alone takes for a workload's sends: the same runs to the same destinations, and nothing else done.

cdef struct Stream:
    int64_t interval_ns
    int64_t due
    uint32_t ssrc
    uint32_t timestamp
    uint32_t ticks
    int64_t frames
    Cycle cycle
    int *destinations
    uint16_t *sequences         # next, per destination
    int destination_count

cdef struct Floor:
    Sending out                 # its batch; no publishers
    Stream *streams
    int stream_count
    uint32_t first_host
    int port
    sockaddr_in addresses[OUT_COUNT]
    int64_t sends


cdef void floor_frame(Floor *f, Stream *stream) noexcept nogil:
    """A frame to each destination, in runs of one size: what the SFU's padding makes of frames a byte apart."""
    cdef int frame = <int>(stream.frames % stream.cycle.count)
    cdef int start = stream.cycle.ends[frame - 1] if frame else 0
    cdef int count = stream.cycle.ends[frame] - start
    cdef int to, at, size = 0
    for at in range(start, start + count):
        size = max(size, stream.cycle.lengths[at])
    for to in range(stream.destination_count):
        if f.out.message_count == OUT_COUNT or f.out.count + count > OUT_COUNT:
            floor_out(f)
        floor_run(f, stream, to, count, size)
    stream.timestamp += stream.ticks
    stream.frames += 1


cdef void floor_run(Floor *f, Stream *stream, int to, int count, int size) noexcept nogil:
    cdef Sending *s = &f.out
    cdef msghdr *message
    cdef uint8_t *out
    cdef int at
    for at in range(count):
        if at == 0 or not s.gso:
            four(&f.addresses[s.message_count], f.first_host + stream.destinations[to], f.port)
            message = &s.messages[s.message_count].msg_hdr
            memset(message, 0, sizeof(msghdr))
            message.msg_name = &f.addresses[s.message_count]
            message.msg_namelen = sizeof(sockaddr_in)
            message.msg_iov = &s.vectors[s.count]
            if s.gso and count > 1:
                message.msg_control = s.controls + s.message_count * OUT_CONTROL
                message.msg_controllen = control_segment(<uint8_t *>message.msg_control, size)
            s.segments[s.message_count] = 0
            s.message_count += 1
        out = s.bytes + s.count * OUT_ROOM
        out[0] = 0x80
        out[1] = VIDEO if stream.ticks == 3000 else AUDIO
        write16(out + 2, stream.sequences[to])
        write32(out + 4, stream.timestamp)
        write32(out + 8, stream.ssrc)
        stream.sequences[to] += 1
        s.vectors[s.count].iov_len = size
        s.count += 1
        message.msg_iovlen += 1
        s.segments[s.message_count - 1] += 1


cdef void floor_out(Floor *f) noexcept nogil:
    f.sends += f.out.message_count
    send_out(&f.out)


cdef void floor_for(Floor *f, int64_t length_ns) noexcept nogil:
    """Keep to the streams' schedule for that long."""
    cdef int64_t now = monotonic_ns(), next
    cdef int64_t end = now + length_ns
    cdef timespec nap
    cdef int at
    for at in range(f.stream_count):
        f.streams[at].due += now
    while now < end:
        next = end
        for at in range(f.stream_count):
            if f.streams[at].due <= now:
                floor_frame(f, &f.streams[at])
                f.streams[at].due += f.streams[at].interval_ns
            next = min(next, f.streams[at].due)
        if f.out.message_count:
            floor_out(f)
        now = monotonic_ns()
        if next > now:
            nap.tv_sec = 0
            nap.tv_nsec = <long>(next - now)
            ppoll(NULL, 0, &nap, NULL)
            now = monotonic_ns()
