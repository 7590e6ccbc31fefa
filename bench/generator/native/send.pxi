# The sending half: publishers' frames, made, protected and sent when they are due.

cdef enum:
    VIDEO = 96                  # payload type of VP8, as bench.relay.peers
    AUDIO = 111
    OUT_COUNT = 256             # datagrams per sendmmsg
    OUT_ROOM = 1536
    OUT_CONTROL = 64
    BLOCK = 64
    MAX_PAYLOAD = 1300
    HEAD = 7                    # VP8 payload descriptor with picture id and TL0PICIDX, then the frame's first byte
    TAIL = 8                    # "body" and a counter, which the receiving side checks
    KEY_EVERY = 30              # frames
    LATE_NS = 2000000           # a frame sent later than this is counted
    LOST_NS = 200000000         # and later than this the schedule starts again
    VIDEO_TICKS = 3000          # RTP clock per frame
    AUDIO_TICKS = 960
    STAMPS = 64                 # frames of a track whose time of sending is remembered
    # A track's RTP timestamps leave a remainder of its own modulo its ticks per frame, the quotient counts its frames:
    # the receiver of a packet knows its sender and frame, if the server leaves timestamps alone as it should.
    TIMED = 3000                # so many tracks of a kind can be told apart at most

cdef struct Cycle:
    # The frames of a track, over and over.
    int count
    int *ends                   # where each frame ends in `lengths`
    int *lengths                # of all frames' packets, one after another [bytes]

cdef struct Publisher:
    Srtp keys                   # only its outgoing half is used
    uint32_t host
    sockaddr_in server

cdef struct Track:
    int publisher
    uint8_t payload_type
    uint32_t ssrc
    int64_t index               # SRTP's, of the next packet
    uint32_t timestamp
    uint32_t ticks              # per frame
    int64_t interval_ns
    uint8_t block[BLOCK]        # the header extensions
    int block_length
    Cycle cycle
    int64_t frames
    uint32_t packets
    int64_t sent                # of these, taken by the kernel
    int64_t sent_ns[STAMPS]     # CLOCK_REALTIME, by the frame's number as its timestamp tells it

cdef struct Sending:
    int fd
    bint gso
    bint on
    int64_t held                # CLOCK_MONOTONIC of `hold`; 0 before the first `go`
    Publisher **publishers
    int publisher_count
    Track **tracks
    int64_t *dues               # of `tracks`, by CLOCK_MONOTONIC
    int track_count
    Track *timed[2][TIMED]      # audio and video, by the remainder of their timestamps
    int timed_count[2]
    int64_t packets
    int64_t octets
    int64_t frames
    int64_t late
    int64_t refused             # datagrams the kernel did not take
    mmsghdr messages[OUT_COUNT]
    iovec vectors[OUT_COUNT]
    uint8_t controls[OUT_COUNT * OUT_CONTROL]
    int segments[OUT_COUNT]
    int64_t *stamps[OUT_COUNT]  # where the time of sending is noted
    Track *owners[OUT_COUNT]    # whose packets they are; NULL: of no track
    int message_count
    int count
    uint8_t *bytes
    uint8_t payload[MAX_PAYLOAD]


cdef int sending_open(Sending *s) noexcept nogil:
    """0, or -1 without memory."""
    cdef int at
    s.bytes = <uint8_t *>malloc(OUT_COUNT * OUT_ROOM)
    if s.bytes == NULL:
        return -1
    for at in range(OUT_COUNT):
        s.vectors[at].iov_base = s.bytes + at * OUT_ROOM
    return 0


cdef void sending_close(Sending *s) noexcept nogil:
    cdef int at
    for at in range(s.track_count):
        cycle_free(&s.tracks[at].cycle)
        free(s.tracks[at])
    for at in range(s.publisher_count):
        gcm_close(&s.publishers[at].keys.tx)
        gcm_close(&s.publishers[at].keys.tx_rtcp)
        gcm_close(&s.publishers[at].keys.rx)
        gcm_close(&s.publishers[at].keys.rx_rtcp)
        free(s.publishers[at])
    free(s.publishers)
    free(s.tracks)
    free(s.dues)
    free(s.bytes)


cdef void cycle_free(Cycle *cycle) noexcept nogil:
    free(cycle.ends)
    free(cycle.lengths)


# -- one frame

cdef void send_frame(Sending *s, Track *track, double now) noexcept nogil:
    """Its packets join the batch; equal ones, and a shorter last one, as one run."""
    cdef int frame = <int>(track.frames % track.cycle.count)
    cdef int at = track.cycle.ends[frame - 1] if frame else 0
    cdef int end = track.cycle.ends[frame]
    cdef int run = 0, length
    cdef bint first = True
    while at < end:
        if s.count == OUT_COUNT or (run == 0 and s.message_count == OUT_COUNT):
            stamp_out(s)
            send_out(s)
            run = 0
        length = make_packet(s, track, track.cycle.lengths[at], first, at == end - 1, now)
        if length < 0:
            s.refused += 1
        else:
            if run == 0 or length > run:
                begin_message(s, s.publishers[track.publisher])
                s.owners[s.message_count - 1] = track
                s.stamps[s.message_count - 1] = &track.sent_ns[(track.timestamp // track.ticks) % STAMPS]
                run = length
            add_datagram(s, length, run)
            if length < run or not s.gso:
                run = 0
        first = False
        at += 1
    track.timestamp += track.ticks
    track.frames += 1
    s.frames += 1


cdef int make_packet(Sending *s, Track *track, int length, bint first, bint last, double now) noexcept nogil:
    """A protected packet in the next place of the batch: its length, or -1."""
    cdef uint8_t *out = s.bytes + s.count * OUT_ROOM
    cdef uint8_t *payload = s.payload
    cdef uint32_t stamp = <uint32_t>(<int64_t>(now * 262144.0) & 0xFFFFFF)
    out[0] = 0x90
    out[1] = track.payload_type | (0x80 if last else 0)
    write16(out + 2, <uint32_t>(track.index & 0xFFFF))
    write32(out + 4, track.timestamp)
    write32(out + 8, track.ssrc)
    memcpy(out + 12, track.block, track.block_length)
    # abs-send-time is the block's first element: 6.18 fixed-point seconds.
    out[17] = <uint8_t>(stamp >> 16)
    write16(out + 18, stamp)
    if track.payload_type == VIDEO:
        payload[0] = 0x90 if first else 0x80
        payload[1] = 0xE0
        write16(payload + 2, 0x8000 | <uint32_t>(track.frames & 0x7FFF))
        payload[4] = <uint8_t>track.frames
        payload[5] = 0
        payload[6] = 0 if track.frames % KEY_EVERY == 0 else 1
    memcpy(payload + length - TAIL, b"body", 4)
    write32(payload + length - 4, track.packets)
    track.packets += 1
    track.index += 1
    return srtp_protect(
        &s.publishers[track.publisher].keys, out, 12 + track.block_length, payload, length, track.ssrc, track.index - 1
    )


cdef void begin_message(Sending *s, Publisher *publisher) noexcept nogil:
    cdef msghdr *message = &s.messages[s.message_count].msg_hdr
    memset(message, 0, sizeof(msghdr))
    message.msg_name = &publisher.server
    message.msg_namelen = sizeof(sockaddr_in)
    message.msg_iov = &s.vectors[s.count]
    message.msg_control = s.controls + s.message_count * OUT_CONTROL
    message.msg_controllen = control_source(<uint8_t *>message.msg_control, publisher.host)
    s.segments[s.message_count] = 0
    s.message_count += 1


cdef void add_datagram(Sending *s, int length, int run) noexcept nogil:
    cdef int at = s.message_count - 1
    cdef msghdr *message = &s.messages[at].msg_hdr
    s.vectors[s.count].iov_len = length
    s.count += 1
    message.msg_iovlen += 1
    s.segments[at] += 1
    s.octets += length
    if s.segments[at] == 2:
        message.msg_controllen += control_segment(<uint8_t *>message.msg_control + message.msg_controllen, run)


cdef void stamp_out(Sending *s) noexcept nogil:
    cdef int64_t now = wall_ns()
    cdef int at
    for at in range(s.message_count):
        s.stamps[at][0] = now


cdef void send_out(Sending *s) noexcept nogil:
    cdef int at = 0, sent, one
    while at < s.message_count:
        sent = sendmmsg(s.fd, &s.messages[at], s.message_count - at, MSG_DONTWAIT | MSG_NOSIGNAL)
        if sent > 0:
            for one in range(at, at + sent):
                s.packets += s.segments[one]
                if s.owners[one] != NULL:
                    s.owners[one].sent += s.segments[one]
            at += sent
        elif errno != EINTR:
            s.refused += s.segments[at]
            at += 1
    s.message_count = s.count = 0


# -- the schedule

cdef int64_t send_due(Sending *s, int64_t now) noexcept nogil:
    """Send every frame that is due at `now`; when the next one is."""
    cdef int64_t next = now + 1000000000
    cdef int at
    if not s.on:
        return next
    for at in range(s.track_count):
        if s.dues[at] <= now:
            if now - s.dues[at] > LATE_NS:
                s.late += 1
            send_frame(s, s.tracks[at], now * 1e-9)
            s.dues[at] += s.tracks[at].interval_ns
            if now - s.dues[at] > LOST_NS:
                s.dues[at] = now + s.tracks[at].interval_ns
        next = min(next, s.dues[at])
    if s.message_count:
        stamp_out(s)
        send_out(s)
    return next
