# Where a media datagram enters: whose it is, SRTP undone, the layer of its SSRC found.

cdef enum:
    REPLACED = 2                # a route's value for an SSRC that was replaced and must not be bound again


cdef void handle_media(Engine *engine, uint8_t *data, int size, const Address *source, double now) noexcept nogil:
    """An SRTP or SRTCP datagram (first byte 128..191), changed in place."""
    cdef KnownAddress *known = peer_known_at(engine, source)
    cdef Peer *peer
    cdef int plain
    engine.totals.counts.packets_in += 1
    engine.totals.counts.bytes_in += size
    if known == NULL:
        engine.totals.drops[UNKNOWN_ADDRESS] += 1
        return
    peer = known.peer
    if size < 12:
        engine.totals.drops[BAD_RTP] += 1
    elif 192 <= data[1] <= 223:
        plain = peer_unprotect(engine, peer, data, size, read32(data + 4), True)
        if plain >= 0:
            peer_heard_from(engine, known, now)
            handle_rtcp(engine, peer, data, plain, now)
    else:
        plain = peer_unprotect(engine, peer, data, size, read32(data + 8), False)
        if plain >= 0:
            peer_heard_from(engine, known, now)
            handle_rtp(engine, peer, data, plain, now)


cdef void handle_rtp(Engine *engine, Peer *peer, const uint8_t *data, int size, double now) noexcept nogil:
    cdef Header header
    cdef void *route
    cdef Encoding *encoding
    cdef Packet *packet
    if rtp_parse(data, size, &header) < 0:
        engine.totals.drops[BAD_RTP] += 1
        return
    heard(engine, peer, now)
    arrived(engine, peer, data, &header, now)
    route = table_get(&peer.routes, header.ssrc, 0, 0)
    if route == NULL:
        route = peer_bind(engine, peer, data, &header, now)
    if route == NULL or route_encoding(route) == NULL:
        engine.totals.drops[UNKNOWN_SSRC] += 1
        return
    encoding = route_encoding(route)
    if route_is_rtx(route):
        packet = encoding_take_rtx(engine, encoding, data, size, &header, now)
    else:
        packet = encoding_take(engine, encoding, data, size, &header, now)
    if packet != NULL:
        producer_deliver(engine, encoding.producer, encoding, packet, now)


cdef void *peer_bind(Engine *engine, Peer *peer, const uint8_t *data, const Header *header, double now) noexcept nogil:
    """Find the layer of an SSRC that is new; its route, or NULL."""
    cdef Sight sight
    cdef Binding binding
    cdef Encoding *encoding
    cdef void *route
    look(peer, data, header, &sight)
    if not bind_find(peer, &sight, &binding):
        return NULL
    # Room for it first: a layer must not lose its SSRC to one that then has no route.
    if table_put(&peer.routes, header.ssrc, 0, 0, <void *>REPLACED) < 0:
        return NULL
    encoding = producer_bind(engine, binding.producer, &binding.rid, header.ssrc, binding.rtx, now)
    if encoding == NULL:
        table_remove(&peer.routes, header.ssrc, 0, 0)
        return NULL
    route = route_to(encoding, binding.rtx)
    table_put(&peer.routes, header.ssrc, 0, 0, route)
    feedback_new_ssrc(engine, peer, now)
    return route


# -- routes: SSRC -> Encoding, and whether it is its RTX

cdef inline Encoding *route_encoding(void *route) noexcept nogil:
    """NULL for an SSRC that was replaced."""
    if <uintptr_t>route == REPLACED:
        return NULL
    return <Encoding *>(<uintptr_t>route & ~<uintptr_t>1)


cdef inline bint route_is_rtx(void *route) noexcept nogil:
    return <uintptr_t>route & 1


cdef inline void *route_to(Encoding *encoding, bint rtx) noexcept nogil:
    return <void *>(<uintptr_t>encoding | (1 if rtx else 0))
