# The facts and counters of sfu.plane.api: a copy is made with the lock held, and turned into Python objects without it.

from sfu.core.media.delivery import Delivered

# -- facts

cdef enum:  # EventKind
    PRODUCER_FLOWING, PRODUCER_SILENT, PRODUCER_RESUMED, PRODUCER_ENDED, CONSUMER_FLOWING, LAYER_SWITCHED, PEER_HEARD
    DELIVERY_REPORTED

cdef struct Event:
    int kind
    int64_t subject
    Name rid
    double at                   # of a DELIVERY_REPORTED, as what follows; the event owns the packets
    DeliveredPacket *packets
    int packet_count


cdef object make_event(const Event *event):
    cdef int at
    if event.kind == PRODUCER_FLOWING:
        return api.ProducerFlowing(event.subject)
    if event.kind == PRODUCER_SILENT:
        return api.ProducerSilent(event.subject)
    if event.kind == PRODUCER_RESUMED:
        return api.ProducerResumed(event.subject)
    if event.kind == PRODUCER_ENDED:
        return api.ProducerEnded(event.subject)
    if event.kind == CONSUMER_FLOWING:
        return api.ConsumerFlowing(event.subject)
    if event.kind == LAYER_SWITCHED:
        return api.LayerSwitched(event.subject, get_name(&event.rid))
    if event.kind == DELIVERY_REPORTED:
        packets = tuple([make_delivered(&event.packets[at]) for at in range(event.packet_count)])
        return api.DeliveryReported(event.subject, event.at, packets)
    return api.PeerHeard(event.subject)


cdef object make_delivered(const DeliveredPacket *packet):
    arrived_at = packet.ticks / <double>TICKS_PER_S if packet.arrived else None
    return Delivered(packet.sent_at, arrived_at, packet.size, packet.ssrc)


# -- counters

cdef enum:
    HISTOGRAM = 128

cdef struct Sent:
    # Written by the thread that sends, without the lock: single words, read as they are.
    int64_t sends               # messages, each a run of one or more datagrams
    int64_t send_calls
    int64_t drops[DROP_KINDS]
    int64_t delays[HISTOGRAM]

cdef struct PlaneCounts:
    # Named as in `PlaneTotals`.
    int64_t packets_in, bytes_in, packets_out, bytes_out, forwarded, forwarded_bytes
    int64_t nacks_sent, nacks_received, plis_sent, plis_received, rtx_received, resent
    int64_t feedbacks_sent, feedbacks_received

cdef struct Totals:
    PlaneCounts counts
    int64_t wakes
    int64_t drops[DROP_KINDS]

cdef struct EncodingFact:
    Name rid
    uint32_t ssrc
    int64_t packets, octets, lost, keyframes, nacked, repaired, plis, probes
    double jitter_ms

cdef struct ProducerFact:
    int64_t id, peer
    bint audio, flowing
    int consumers
    int encodings               # how many of the encoding facts are its

cdef struct ConsumerFact:
    int64_t id, peer, producer
    bint flowing, paused, has_rtt
    Name rid
    ConsumerCounts counts
    double rtt_s

cdef struct PeerFact:
    int64_t id
    PeerCounts counts
    bint heard
    double last_heard
    Delivery delivery

cdef struct Facts:
    Totals totals
    Sent sent
    PeerFact *peers
    ProducerFact *producers
    EncodingFact *encodings
    ConsumerFact *consumers
    int peer_count, producer_count, encoding_count, consumer_count


cdef int facts_take(Engine *engine, Facts *facts) noexcept nogil:
    """0, or NO_ROOM; `facts_free` them in either case."""
    cdef int at, encodings = 0
    memset(facts, 0, sizeof(Facts))
    for at in range(engine.all_producers.count):
        encodings += (<Producer *>engine.all_producers.items[at]).encodings.count
    facts.peers = <PeerFact *>malloc((engine.all_peers.count + 1) * sizeof(PeerFact))
    facts.producers = <ProducerFact *>malloc((engine.all_producers.count + 1) * sizeof(ProducerFact))
    facts.encodings = <EncodingFact *>malloc((encodings + 1) * sizeof(EncodingFact))
    facts.consumers = <ConsumerFact *>malloc((engine.all_consumers.count + 1) * sizeof(ConsumerFact))
    if not (facts.peers and facts.producers and facts.encodings and facts.consumers):
        return NO_ROOM
    facts.totals = engine.totals
    facts.sent = engine.sent
    for at in range(engine.all_peers.count):
        peer_fact(<Peer *>engine.all_peers.items[at], &facts.peers[at])
    for at in range(engine.all_producers.count):
        producer_fact(<Producer *>engine.all_producers.items[at], &facts.producers[at], facts)
    for at in range(engine.all_consumers.count):
        consumer_fact(<Consumer *>engine.all_consumers.items[at], &facts.consumers[at])
    facts.peer_count = engine.all_peers.count
    facts.producer_count = engine.all_producers.count
    facts.consumer_count = engine.all_consumers.count
    return 0


cdef void facts_free(Facts *facts) noexcept nogil:
    free(facts.peers)
    free(facts.producers)
    free(facts.encodings)
    free(facts.consumers)


cdef void peer_fact(Peer *peer, PeerFact *fact) noexcept nogil:
    fact.id = peer.id
    fact.counts = peer.counts
    fact.heard = peer.heard
    fact.last_heard = peer.last_heard
    fact.delivery = peer.delivery


cdef void producer_fact(Producer *producer, ProducerFact *fact, Facts *facts) noexcept nogil:
    cdef int at
    cdef Encoding *encoding
    fact.id = producer.id
    fact.peer = producer.peer.id
    fact.audio = producer.audio
    fact.flowing = producer.flowing and not producer.silent
    fact.consumers = producer.consumers.count
    fact.encodings = 0
    for at in range(producer.encodings.count):
        encoding = <Encoding *>producer.encodings.items[at]
        if encoding.stats.on:
            encoding_fact(encoding, &facts.encodings[facts.encoding_count])
            facts.encoding_count += 1
            fact.encodings += 1


cdef void encoding_fact(Encoding *encoding, EncodingFact *fact) noexcept nogil:
    fact.rid = encoding.rid
    fact.ssrc = encoding.ssrc
    fact.packets = encoding.stats.received
    fact.octets = encoding.stats.octets
    fact.lost = stats_lost(&encoding.stats)
    fact.jitter_ms = 1000.0 * encoding.stats.jitter / encoding.stats.clock_rate
    fact.keyframes = encoding.keyframes_seen
    fact.nacked = encoding.missing.asked
    fact.repaired = encoding.repaired
    fact.plis = encoding.plis
    fact.probes = encoding.probes


cdef void consumer_fact(Consumer *consumer, ConsumerFact *fact) noexcept nogil:
    fact.id = consumer.id
    fact.peer = consumer.peer.id
    fact.producer = consumer.producer.id
    fact.flowing = consumer.flowing
    fact.paused = consumer.paused
    fact.rid.length = 0
    if consumer.source != NULL:
        fact.rid = consumer.source.rid
    fact.counts = consumer.counts
    fact.has_rtt = consumer.round_trip.known
    fact.rtt_s = consumer.round_trip.rtt_s


cdef object make_totals(const Facts *facts):
    cdef const Totals *totals = &facts.totals
    cdef int place
    drops = {}
    for reason in DropReason:
        place = drop_place(reason)
        if count := totals.drops[place] + facts.sent.drops[place]:
            drops[reason.value] = count
    return api.PlaneTotals(drops=drops, **totals.counts)


cdef object make_peer(const PeerFact *fact):
    return api.PeerSnapshot(
        peer=fact.id,
        last_heard=fact.last_heard if fact.heard else None,
        delivery=make_delivery(&fact.delivery) if fact.delivery.ring != NULL else None,
        **fact.counts,
    )


cdef object make_delivery(const Delivery *delivery):
    return api.DeliverySnapshot(
        sent=delivery.next,
        feedbacks=delivery.feedbacks,
        acknowledged=delivery.acknowledged,
        acknowledged_bytes=delivery.acknowledged_bytes,
        lost=delivery.lost,
        receive_rate_bps=delivery.rate_bps if delivery.has_rate else None,
    )


cdef object make_producer(const ProducerFact *fact, const EncodingFact *encodings):
    cdef int at
    return api.ProducerSnapshot(
        producer=fact.id,
        peer=fact.peer,
        kind="audio" if fact.audio else "video",
        flowing=bool(fact.flowing),
        encodings=tuple([make_encoding(&encodings[at]) for at in range(fact.encodings)]),
        consumers=fact.consumers,
    )


cdef object make_encoding(const EncodingFact *fact):
    return api.EncodingSnapshot(
        rid=get_name(&fact.rid),
        ssrc=fact.ssrc,
        packets=fact.packets,
        bytes=fact.octets,
        lost=fact.lost,
        jitter_ms=fact.jitter_ms,
        keyframes=fact.keyframes,
        nacked=fact.nacked,
        repaired=fact.repaired,
        plis=fact.plis,
        probes=fact.probes,
    )


cdef object make_consumer(const ConsumerFact *fact):
    return api.ConsumerSnapshot(
        consumer=fact.id,
        peer=fact.peer,
        producer=fact.producer,
        flowing=bool(fact.flowing),
        paused=bool(fact.paused),
        rid=get_name(&fact.rid),
        rtt_ms=1000.0 * fact.rtt_s if fact.has_rtt else None,
        **fact.counts,
    )
