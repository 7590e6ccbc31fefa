# A copy of all counters, made with the lock held and turned into Python objects without it.

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
    int64_t packets, octets, nacks, resent, unanswered, plis
    double fraction_lost, rtt_s

cdef struct PeerFact:
    int64_t id, packets_in, bytes_in, packets_out, bytes_out
    bint heard
    double last_heard
    int64_t feedbacks_sent
    Delivery delivery

cdef struct Facts:
    Totals totals
    Sent sent
    PeerFact *peers
    ProducerFact *producers
    EncodingFact *encodings
    ConsumerFact *consumers
    int peer_count, producer_count, encoding_count, consumer_count


cdef void facts_free(Facts *facts) noexcept nogil:
    free(facts.peers)
    free(facts.producers)
    free(facts.encodings)
    free(facts.consumers)


cdef int facts_take(Engine *engine, Facts *facts) noexcept nogil:
    """0, or -1 without memory; `facts_free` them in either case."""
    cdef int at, encodings = 0
    memset(facts, 0, sizeof(Facts))
    for at in range(engine.all_producers.count):
        encodings += (<Producer *>engine.all_producers.items[at]).encodings.count
    facts.peers = <PeerFact *>malloc((engine.all_peers.count + 1) * sizeof(PeerFact))
    facts.producers = <ProducerFact *>malloc((engine.all_producers.count + 1) * sizeof(ProducerFact))
    facts.encodings = <EncodingFact *>malloc((encodings + 1) * sizeof(EncodingFact))
    facts.consumers = <ConsumerFact *>malloc((engine.all_consumers.count + 1) * sizeof(ConsumerFact))
    if not (facts.peers and facts.producers and facts.encodings and facts.consumers):
        return -1
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


cdef void peer_fact(Peer *peer, PeerFact *fact) noexcept nogil:
    fact.id = peer.id
    fact.packets_in = peer.packets_in
    fact.bytes_in = peer.bytes_in
    fact.packets_out = peer.packets_out
    fact.bytes_out = peer.bytes_out
    fact.heard = peer.heard
    fact.last_heard = peer.last_heard
    fact.feedbacks_sent = peer.feedbacks_sent
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
    fact.packets = consumer.sent
    fact.octets = consumer.sent_bytes
    fact.nacks = consumer.nacks
    fact.resent = consumer.resent
    fact.unanswered = consumer.unanswered
    fact.plis = consumer.plis
    fact.fraction_lost = consumer.fraction_lost
    fact.has_rtt = consumer.has_rtt
    fact.rtt_s = consumer.rtt_s
