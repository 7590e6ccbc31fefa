# One layer of a producer as it arrives: order, loss and its repair, key frames.

cdef enum:  # CodecKind
    CODEC_NONE, CODEC_OTHER, CODEC_VP8, CODEC_H264

_KEYFRAME_CODECS = {"VP8": CODEC_VP8, "H264": CODEC_H264}

cdef struct Codec:
    int kind
    Name name
    int clock_rate

cdef struct Encoding:
    uint64_t serial
    Producer *producer
    Name rid
    bint opaque
    bint asks_nacks
    bint ended
    bint bound
    bint rtx_bound
    uint32_t ssrc
    uint32_t rtx_ssrc
    int clock_rate
    Stats stats
    Stats rtx_stats
    Clock clock
    Ring ring
    ParameterSets sets
    int64_t highest
    Missing missing
    Keyframes keyframes
    bint has_media
    double last_media
    int64_t keyframe_timestamp
    int64_t keyframes_seen
    int64_t plis
    int64_t repaired
    int64_t probes
    bint nack_timer
    bint keyframe_timer


cdef Encoding *encoding_new(Engine *engine, Producer *producer, const Name *rid, bint lowest) noexcept nogil:
    cdef Encoding *encoding = <Encoding *>calloc(1, sizeof(Encoding))
    if encoding == NULL:
        return NULL
    engine.last_serial += 1
    encoding.serial = engine.last_serial
    if table_put(&engine.objects, encoding.serial, 0, 0, encoding) < 0:
        free(encoding)
        return NULL
    encoding.producer = producer
    encoding.rid = rid[0]
    encoding.opaque = producer.audio
    encoding.asks_nacks = producer.nack and not producer.audio
    encoding.highest = -1
    encoding.keyframe_timestamp = -1
    encoding.sets = producer.described
    encoding.keyframes.interval_s = LOW_LAYER_INTERVAL_S if lowest else HIGH_LAYER_INTERVAL_S
    return encoding


cdef void encoding_free(Engine *engine, Encoding *encoding) noexcept nogil:
    table_remove(&engine.objects, encoding.serial, 0, 0)
    ring_clear(&encoding.ring)
    free(encoding.missing.open)
    free(encoding)


cdef inline int our_padding(Engine *engine, Encoding *encoding, const Header *header) noexcept nogil:
    """Bytes that make the payload a multiple of 8: packets of a frame differ by a byte or so, and only equal ones share
    a GSO run. Small packets are left alone: there the bytes weigh more than the run."""
    cdef int payload = header.payload_end - header.payload_start
    if not engine.pad or encoding.producer.audio or payload < 256 or payload > 1280:
        return 0
    return -payload & 7


# -- arriving packets

cdef Packet *encoding_take(
    Engine *engine, Encoding *encoding, const uint8_t *data, int size, Header *header, double now
) noexcept nogil:
    """A packet of the media SSRC: what is new and usable, owned by the ring; NULL when it was dropped and counted."""
    cdef Codec *codec = &encoding.producer.codecs[header.payload_type]
    cdef Packet *packet
    if codec.kind == CODEC_NONE:
        engine.totals.drops[FOREIGN_CODEC] += 1
        return NULL
    if not encoding.stats.on:
        stats_begin(&encoding.stats, header.ssrc, codec.clock_rate, header.sequence)
        encoding.clock_rate = codec.clock_rate
        encoding.opaque = codec.kind == CODEC_OTHER
    # Where retransmissions have an SSRC of their own, what comes on this one is late, not sent again.
    packet = encoding_admit(
        engine, encoding, data, size, header, codec, stats_extend(&encoding.stats, header.sequence),
        encoding.rtx_bound, now,
    )
    if packet != NULL:
        stats_count(&encoding.stats, packet.index, header.timestamp, size, now)
    return packet


cdef Packet *encoding_take_rtx(
    Engine *engine, Encoding *encoding, const uint8_t *data, int size, Header *header, double now
) noexcept nogil:
    """A packet of the RTX SSRC: the original when that is still of use (RFC 4588 section 4)."""
    cdef int media = encoding.producer.rtx_of[header.payload_type] - 1
    cdef int64_t index
    cdef Packet *packet
    engine.totals.counts.rtx_received += 1
    if not encoding.rtx_stats.on:
        stats_begin(&encoding.rtx_stats, header.ssrc, 90000, header.sequence)
    index = stats_extend(&encoding.rtx_stats, header.sequence)
    stats_count(&encoding.rtx_stats, index, header.timestamp, size, now)
    if media < 0 or not encoding.stats.on or header.payload_end - header.payload_start <= 2:
        # Before the first media packet nothing can be missing: a bandwidth probe.
        encoding_probe(engine, encoding)
        return NULL
    index = stats_extend(&encoding.stats, read16(data + header.payload_start))
    header.payload_start += 2
    header.payload_type = <uint8_t>media
    if index <= encoding.highest - RING_SIZE or ring_get(&encoding.ring, index) != NULL:
        encoding_probe(engine, encoding)
        return NULL
    packet = encoding_admit(engine, encoding, data, size, header, &encoding.producer.codecs[media], index, False, now)
    if packet != NULL:
        encoding.repaired += 1
    return packet


cdef void encoding_probe(Engine *engine, Encoding *encoding) noexcept nogil:
    encoding.probes += 1
    engine.totals.drops[PROBE] += 1


cdef Packet *encoding_admit(
    Engine *engine, Encoding *encoding, const uint8_t *data, int size, Header *header, Codec *codec, int64_t index,
    bint original, double now,
) noexcept nogil:
    cdef Packet **place = ring_place(&encoding.ring, index)
    cdef Packet *old = place[0]
    cdef Packet *packet
    if index <= encoding.highest - RING_SIZE:
        # No restart of the sender's numbers: SRTP never goes back under the same keys (RFC 3711 section 3.3.1).
        engine.totals.drops[LATE] += 1
        return NULL
    if old != NULL and old.index == index:
        engine.totals.drops[DUPLICATE] += 1
        return NULL
    packet = packet_new(data, size, header, index, now, our_padding(engine, encoding, header))
    if packet == NULL:
        engine.totals.drops[NO_MEMORY] += 1
        return NULL
    packet.received_ns = engine.received_ns
    if old != NULL:
        packet_release(old)
    place[0] = packet
    if index > encoding.highest:
        if encoding.highest >= 0 and index > encoding.highest + 1:
            encoding_gap(engine, encoding, encoding.highest + 1, index, now)
        encoding.highest = index
    else:
        missing_arrived(&encoding.missing, index, original, now)
    encoding.has_media = True
    encoding.last_media = now
    if packet.payload_length:
        encoding_inspect(engine, encoding, packet, codec)
    else:
        encoding_probe(engine, encoding)
    return packet


cdef void encoding_inspect(Engine *engine, Encoding *encoding, Packet *packet, Codec *codec) noexcept nogil:
    """Find out whether a key frame begins here."""
    cdef const uint8_t *payload = packet.bytes + packet.payload_at
    if encoding.opaque:
        return
    if codec.kind == CODEC_VP8:
        if vp8_parse(payload, packet.payload_length, &packet.vp8) < 0:
            # Its number is taken and not asked for again; consumers close up over it as over padding.
            packet.payload_length = packet.padding = 0
            engine.totals.drops[BAD_PAYLOAD] += 1
            return
        packet.keyframe_start = packet.vp8.keyframe_start
    else:
        encoding_inspect_h264(engine, encoding, packet, payload)
    if packet.keyframe_start and packet.header.timestamp != encoding.keyframe_timestamp:
        encoding.keyframe_timestamp = packet.header.timestamp
        encoding.keyframes_seen += 1
        encoding.keyframes.wanted = False
        missing_forget_before(&encoding.missing, packet.index)


cdef void encoding_inspect_h264(
    Engine *engine, Encoding *encoding, Packet *packet, const uint8_t *payload
) noexcept nogil:
    """A decoder can begin with an SPS, and with an IDR picture whose parameter sets we can send before it."""
    cdef Units units
    cdef int at
    h264_read(payload, packet.payload_length, &units)
    for at in range(units.sets):
        sets_keep(&encoding.sets, payload + units.starts[at], units.lengths[at], packet.index)
    packet.keyframe_start = units.has_sps
    if units.has_idr and not units.has_sps and sets_complete(&encoding.sets):
        packet.keyframe_start = True
        if packet_led_by(packet, &encoding.sets) == NULL:
            engine.totals.drops[NO_MEMORY] += 1


# -- asking the publisher

cdef void encoding_gap(Engine *engine, Encoding *encoding, int64_t first, int64_t end, double now) noexcept nogil:
    if not encoding.asks_nacks:
        return
    if not missing_gap(&encoding.missing, first, end, now):
        encoding_request_keyframe(engine, encoding, now)
        return
    encoding_ask_missing(engine, encoding, now)
    if not encoding.nack_timer:
        encoding.nack_timer = True
        timer_add(engine, now + LOOK_S, RETRY_NACK, encoding.serial)


cdef void encoding_ask_missing(Engine *engine, Encoding *encoding, double now) noexcept nogil:
    cdef uint16_t sequences[MAX_MISSING]
    cdef uint8_t out[12 + 4 * MAX_MISSING]
    cdef int count = missing_due(&encoding.missing, now, sequences)
    cdef int length
    if count == 0 or not encoding.bound:
        return
    engine.totals.counts.nacks_sent += count
    length = rtcp_nack(out, engine.ssrc, encoding.ssrc, sequences, count)
    peer_send_rtcp(engine, encoding.producer.peer, out, length)


cdef double encoding_retry_nack(Engine *engine, Encoding *encoding, double now) noexcept nogil:
    encoding_ask_missing(engine, encoding, now)
    if encoding.missing.count == 0 or not encoding.bound:
        encoding.nack_timer = False
        return 0.0
    return now + LOOK_S


cdef void encoding_request_keyframe(Engine *engine, Encoding *encoding, double now) noexcept nogil:
    """Ask at once or when the throttle allows, and again until one comes."""
    if encoding.opaque or not encoding.bound or not peer_ready(encoding.producer.peer):
        return
    if keyframes_request(&encoding.keyframes, now):
        encoding_send_pli(engine, encoding)
    if not encoding.keyframe_timer:
        encoding.keyframe_timer = True
        timer_add(engine, keyframes_next(&encoding.keyframes, now), RETRY_KEYFRAME, encoding.serial)


cdef double encoding_retry_keyframe(Engine *engine, Encoding *encoding, double now) noexcept nogil:
    if keyframes_due(&encoding.keyframes, now):
        encoding_send_pli(engine, encoding)
    if not encoding.keyframes.wanted or not encoding.bound:
        encoding.keyframe_timer = False
        return 0.0
    return keyframes_next(&encoding.keyframes, now)


cdef void encoding_send_pli(Engine *engine, Encoding *encoding) noexcept nogil:
    cdef uint8_t out[12]
    if not encoding.bound or not peer_ready(encoding.producer.peer):
        return
    encoding.plis += 1
    engine.totals.counts.plis_sent += 1
    rtcp_head(out, 1, 206, 12)
    write32(out + 4, engine.ssrc)
    write32(out + 8, encoding.ssrc)
    peer_send_rtcp(engine, encoding.producer.peer, out, 12)
