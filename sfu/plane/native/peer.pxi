# One peer: its keys, its address, and what it sends and gets.

from sfu.plane import peer

cpdef enum:
    MAX_RETIRED = 4096

cdef uint32_t MAX_SSRCS = peer.MAX_SSRCS

cdef struct Retired:
    # SSRCs whose replay windows are gone; a ring.
    uint32_t ssrcs[MAX_RETIRED]
    int count
    int oldest

cdef struct PeerCounts:
    # Named as in `PeerSnapshot`.
    int64_t packets_in, bytes_in, packets_out, bytes_out, feedbacks_sent

cdef struct Peer:
    int64_t id
    uint64_t serial
    bint keyed
    Srtp keys
    PeerAddresses addresses
    Table streams               # SSRC -> RxStream
    Retired *retired
    Table routes                # SSRC -> Encoding, tagged; see entry.pxi
    Table by_ssrc               # SSRC -> Consumer
    Vector producers
    Vector consumers
    bint heard
    double last_heard
    bint reporting
    bint report_pending
    bint reference_answered
    double reference_answered_at
    uint8_t transport_cc        # id of the transport-wide sequence number in what it sends, 0: none
    Arrivals *arrivals
    bint feedback_timer
    Delivery delivery
    bint follows_delivery
    PeerCounts counts
    int destination             # in the batch `batch_serial`
    uint64_t batch_serial


cdef int peer_add(Engine *engine, int64_t id) noexcept nogil:
    cdef Peer *peer = <Peer *>calloc(1, sizeof(Peer))
    if peer == NULL:
        return -1
    peer.id = id
    if enlist(engine, &engine.peers, &engine.all_peers, id, &peer.serial, peer) < 0:
        free(peer)
        return -1
    return 0


cdef void peer_remove(Engine *engine, Peer *peer) noexcept nogil:
    while peer.producers.count:
        producer_close(engine, <Producer *>peer.producers.items[0])
    while peer.consumers.count:
        consumer_close(engine, <Consumer *>peer.consumers.items[0])
    while peer.addresses.count:
        peer_forget_address(engine, peer.addresses.known[0])
    table_remove(&engine.objects, peer.serial, 0, 0)
    table_remove(&engine.peers, <uint64_t>peer.id, 0, 0)
    vector_remove(&engine.all_peers, peer)
    peer_forget_keys(engine, peer)
    table_free(&peer.routes)
    table_free(&peer.by_ssrc)
    free(peer.arrivals)
    free(peer.delivery.ring)
    vector_free(&peer.producers)
    vector_free(&peer.consumers)
    free(peer)


cdef void peer_forget_keys(Engine *engine, Peer *peer) noexcept nogil:
    """With all that was received under them. What owns libsrtp's sessions is let go of once no peer names them."""
    cdef uint32_t at
    cdef void *session = srtp_close(&peer.keys)
    if session != NULL:
        # Without memory it is never let go of: a leak, but nothing dangles.
        vector_add(&engine.old_sessions, session)
    peer.keyed = False
    for at in range(peer.streams.size):
        free(peer.streams.slots[at].value)
    table_free(&peer.streams)
    free(peer.retired)
    peer.retired = NULL


cdef int peer_set_keys(Engine *engine, Peer *peer, const NewKeys *given, double now) noexcept nogil:
    """A second call replaces the keys. 0, or NO_ROOM."""
    cdef int at, failed = 0
    cdef Consumer *consumer
    cdef KnownAddress *known
    peer_forget_keys(engine, peer)
    if peer.arrivals != NULL:
        # A new association starts its numbers again.
        memset(peer.arrivals, 0, sizeof(Arrivals))
    if given.session != NULL:
        peer.keys.srtp_rx = given.srtp_rx
        peer.keys.srtp_tx = given.srtp_tx
        peer.keys.rx_policy = <uint32_t *>given.rx_policy
        peer.keys.session = given.session
    else:
        failed = srtp_set_gcm(&peer.keys, given.rx, given.tx, given.length, given.rx_salt, given.tx_salt)
    peer.keyed = failed == 0
    addresses_start_again(&peer.addresses)
    failed = peer_add_address(engine, peer, &given.address, False, now) or failed
    known = peer_known_at(engine, &given.address)
    if known != NULL and known.peer == peer:
        peer_heard_from(engine, known, now)
    for at in range(peer.consumers.count):
        # The receiver's rollover counters begin at 0 with the keys.
        consumer = <Consumer *>peer.consumers.items[at]
        consumer.cycle = consumer.highest_out >> 16
        consumer.rtx_cycle = consumer.rtx_index >> 16
    peer_refresh(engine, peer, now)
    return NO_ROOM if failed else 0


cdef inline KnownAddress *peer_known_at(Engine *engine, const Address *address) noexcept nogil:
    return <KnownAddress *>table_get(&engine.addresses, address.high, address.low, address.port)


cdef int peer_add_address(
    Engine *engine, Peer *peer, const Address *address, bint nominated, double now
) noexcept nogil:
    """An authentic check of the peer came from there. 0, or NO_ROOM."""
    cdef KnownAddress *known = peer_known_at(engine, address)
    cdef KnownAddress *evicted
    cdef Peer *owner
    if known != NULL and known.peer != peer:
        if address_is_owned(known, now):
            return 0
        owner = known.peer
        peer_forget_address(engine, known)
        peer_refresh(engine, owner, now)
        known = NULL
    if known == NULL:
        known = <KnownAddress *>calloc(1, sizeof(KnownAddress))
        if known == NULL or table_put(&engine.addresses, address.high, address.low, address.port, known) < 0:
            free(known)
            return NO_ROOM
        known.peer = peer
        known.address = address[0]
        known.seen_at = now
        evicted = addresses_add(&peer.addresses, known)
        if evicted != NULL:
            table_remove(&engine.addresses, evicted.address.high, evicted.address.low, evicted.address.port)
            free(evicted)
    known.seen_at = now
    if nominated:
        peer.addresses.nominated = known
    return 0


cdef void peer_forget_address(Engine *engine, KnownAddress *known) noexcept nogil:
    addresses_remove(&known.peer.addresses, known)
    table_remove(&engine.addresses, known.address.high, known.address.low, known.address.port)
    free(known)


cdef inline void peer_heard_from(Engine *engine, KnownAddress *known, double now) noexcept nogil:
    """Something that can't be forged came from there."""
    if addresses_heard(&known.peer.addresses, known, now):
        peer_refresh(engine, known.peer, now)


cdef void peer_refresh(Engine *engine, Peer *peer, double now) noexcept nogil:
    """Whether media can be sent to the peer may have changed."""
    cdef int at
    for at in range(peer.consumers.count):
        consumer_choose(engine, <Consumer *>peer.consumers.items[at], now, True)


cdef inline bint peer_ready(Peer *peer) noexcept nogil:
    return peer.keyed and peer.addresses.sending != NULL


# -- datagrams

cdef int peer_unprotect(
    Engine *engine, Peer *peer, uint8_t *data, int length, uint32_t ssrc, bint rtcp
) noexcept nogil:
    """Decrypt in place: the plain length, or -1 when it was dropped and counted. `length` is at least 12."""
    cdef RxStream fresh
    cdef int64_t delta = 0
    cdef uint32_t index = 0
    cdef int plain = -1
    if not peer.keyed:
        engine.totals.drops[NO_KEYS] += 1
        return -1
    cdef RxStream *stream = <RxStream *>table_get(&peer.streams, ssrc, 0, 0)
    if stream == NULL:
        if is_retired(peer, ssrc):
            engine.totals.drops[RETIRED_SSRC] += 1
            return -1
        memset(&fresh, 0, sizeof(RxStream))
        stream = &fresh
    if length > MAX_PROTECTED:
        plain = -1
    elif not rtcp and not stream.heard:
        plain = srtp_unprotect_first(&peer.keys, stream, data, length, ssrc, &delta)
    elif peer.keys.direct:
        if rtcp:
            plain = gcm_unprotect_rtcp(&peer.keys, stream, data, length, ssrc, &index)
        else:
            plain = gcm_unprotect_rtp(&peer.keys, stream, data, length, ssrc, &delta)
    else:
        plain = length
        if (crypto.unprotect_rtcp if rtcp else crypto.unprotect)(peer.keys.srtp_rx, data, &plain):
            plain = -1
    if plain < 0:
        engine.totals.drops[NOT_AUTHENTIC] += 1
        return -1
    # Only what is authentic makes the plane remember an SSRC.
    if stream == &fresh:
        stream = <RxStream *>calloc(1, sizeof(RxStream))
        if (
            stream == NULL
            or (peer.streams.count >= MAX_SSRCS and peer_retire_oldest(peer) < 0)
            or table_put(&peer.streams, ssrc, 0, 0, stream) < 0
        ):
            free(stream)
            engine.totals.drops[NO_MEMORY] += 1
            return -1
        stream[0] = fresh
    stream.heard = stream.heard or not rtcp
    if peer.keys.direct:
        if rtcp:
            rtcp_add(stream, index)
        else:
            replay_add(stream, delta)
    peer.counts.packets_in += 1
    peer.counts.bytes_in += length
    stream.last = peer.counts.packets_in
    return plain


cdef bint is_retired(Peer *peer, uint32_t ssrc) noexcept nogil:
    cdef int at
    if peer.retired != NULL:
        for at in range(peer.retired.count):
            if peer.retired.ssrcs[at] == ssrc:
                return True
    return False


cdef int peer_retire_oldest(Peer *peer) noexcept nogil:
    """Forget all about the SSRC that was silent longest, but that it was used. 0, or -1 without memory."""
    cdef uint32_t at, ssrc
    cdef Slot *oldest = NULL
    cdef Retired *retired
    if peer.retired == NULL:
        peer.retired = <Retired *>calloc(1, sizeof(Retired))
        if peer.retired == NULL:
            return -1
    for at in range(peer.streams.size):
        if peer.streams.slots[at].value != NULL and (
            oldest == NULL or (<RxStream *>peer.streams.slots[at].value).last < (<RxStream *>oldest.value).last
        ):
            oldest = &peer.streams.slots[at]
    ssrc = <uint32_t>oldest.a
    free(oldest.value)
    table_remove(&peer.streams, ssrc, 0, 0)
    if not peer.keys.direct:
        crypto.remove_stream(peer.keys.srtp_rx, network_order(ssrc))
    table_remove(&peer.routes, ssrc, 0, 0)
    retired = peer.retired
    if retired.count < MAX_RETIRED:
        retired.ssrcs[retired.count] = ssrc
        retired.count += 1
    else:
        retired.ssrcs[retired.oldest] = ssrc
        retired.oldest = (retired.oldest + 1) % MAX_RETIRED
    return 0


cdef void peer_replace_route(Peer *peer, uint32_t ssrc) noexcept nogil:
    """An SSRC was replaced by another one and must not be bound again."""
    if table_get(&peer.streams, ssrc, 0, 0) != NULL:
        table_put(&peer.routes, ssrc, 0, 0, <void *>REPLACED)
    else:
        table_remove(&peer.routes, ssrc, 0, 0)


cdef void peer_send_rtcp(Engine *engine, Peer *peer, const uint8_t *compound, int length) noexcept nogil:
    cdef uint8_t *out
    cdef int written
    if not peer_ready(peer):
        return
    out = out_reserve(engine)
    written = srtp_protect_rtcp(&peer.keys, out, compound, length) if out != NULL else -1
    if written < 0:
        engine.totals.drops[NOT_SENT] += 1
        return
    out_commit(engine, peer, written, 0)
