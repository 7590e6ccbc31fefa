# Transport-wide congestion control: feedback to publishers, and from viewers.

cdef enum:
    MAX_DELIVERY_EVENTS = 4096  # waiting for Python


# -- to publishers

cdef inline int transport_sequence(const uint8_t *data, const Header *header, int identifier) noexcept nogil:
    """The transport-wide sequence number of a packet, under its negotiated id; -1 without one."""
    cdef int position = header.extension_start, start = 0, length = 0, found
    if identifier == 0:
        return -1
    while True:
        found = extension_next(data, header, &position, &start, &length)
        if found == 0:
            return -1
        if found == identifier:
            return read16(data + start) if length == 2 else -1


cdef void arrived(Engine *engine, Peer *peer, const uint8_t *data, const Header *header, double now) noexcept nogil:
    """Note the number of an authentic packet, whatever becomes of it, and tell its sender when that is due."""
    cdef int sequence = transport_sequence(data, header, peer.transport_cc)
    cdef double at = now
    if sequence < 0:
        return
    if peer.arrivals == NULL:
        peer.arrivals = <Arrivals *>calloc(1, sizeof(Arrivals))
        if peer.arrivals == NULL:
            engine.totals.drops[NO_MEMORY] += 1
            return
    if engine.received_ns:
        # The kernel's own time: a sender sees this machine's wake-ups as queues of the network otherwise.
        at -= fmin(fmax((engine.woken_ns - engine.received_ns) * 1e-9, 0.0), 1.0)
    if not arrivals_note(peer.arrivals, <uint16_t>sequence, at, header.ssrc, now):
        return
    if arrivals_due(peer.arrivals, now):
        arrivals_send(engine, peer, peer.arrivals)
    elif not peer.feedback_timer:
        peer.feedback_timer = True
        timer_add(engine, now + SOON_S, TRANSPORT_FEEDBACK, peer.serial)


cdef double peer_transport_feedback(Engine *engine, Peer *peer, double now) noexcept nogil:
    if peer.arrivals == NULL or peer.arrivals.waiting == 0:
        peer.feedback_timer = False
        return 0.0
    if not arrivals_due(peer.arrivals, now):
        return peer.arrivals.first_at + LATEST_S
    peer.feedback_timer = False
    arrivals_send(engine, peer, peer.arrivals)
    return 0.0


cdef void arrivals_send(Engine *engine, Peer *peer, Arrivals *arrivals) noexcept nogil:
    """All that waits, in as many packets as it needs."""
    cdef uint8_t out[MAX_FEEDBACK]
    cdef int length
    while arrivals.next <= arrivals.highest:
        length = arrivals_report(arrivals, out)
        # Senders take feedback only with an SSRC of theirs in it.
        write32(out + 4, engine.ssrc)
        write32(out + 8, arrivals.ssrc)
        out[19] = <uint8_t>peer.counts.feedbacks_sent
        peer.counts.feedbacks_sent += 1
        engine.totals.counts.feedbacks_sent += 1
        peer_send_rtcp(engine, peer, out, length)
    arrivals.waiting = 0


# -- from viewers

cdef void transport_feedback(Engine *engine, Peer *peer, const uint8_t *body, int length, double now) noexcept nogil:
    """Take a readable feedback about what the peer was sent."""
    cdef Reported news
    engine.totals.counts.feedbacks_received += 1
    if peer.delivery.ring == NULL:
        return
    memset(&news, 0, sizeof(Reported))
    news.wanted = peer.follows_delivery
    delivery_heard(engine, &peer.delivery, body, length, &news)
    if news.count:
        delivery_tell(engine, peer, &news, now)
    else:
        free(news.packets)


cdef void delivery_tell(Engine *engine, Peer *peer, Reported *reported, double now) noexcept nogil:
    cdef Event *event = NULL
    if engine.delivery_events < MAX_DELIVERY_EVENTS:
        event = event_add(engine, DELIVERY_REPORTED, peer.id)
    else:
        engine.totals.drops[QUEUE_FULL] += 1
    if event == NULL:
        free(reported.packets)
        return
    engine.delivery_events += 1
    event.at = now
    event.packets = <DeliveredPacket *>realloc(reported.packets, reported.count * sizeof(DeliveredPacket))
    if event.packets == NULL:
        event.packets = reported.packets
    event.packet_count = reported.count
