# What a peer's transport-wide congestion control keeps: see arrivals.pxi and delivery.pxi.

cdef enum:
    ARRIVALS = 2048             # transport-wide numbers remembered, as sfu.core.media.arrivals; a power of two

cdef struct DeliveredPacket:
    double sent_at
    int64_t ticks               # of arrival
    uint32_t ssrc
    uint16_t size
    bint arrived

cdef struct Arrivals:
    bint on
    int64_t highest
    int64_t next                # the first that the next feedback tells of
    int waiting
    double first_at
    uint32_t ssrc               # of the packet noted last
    int64_t ticks[ARRIVALS]

cdef struct SentPacket:
    double at
    uint32_t ssrc
    uint16_t size
    uint16_t state

cdef struct Delivery:
    SentPacket *ring            # NULL before a consumer has negotiated transport-wide sequence numbers
    int64_t room
    int64_t next
    int64_t first               # the oldest remembered
    int64_t told                # the newest that a feedback told of
    int64_t feedbacks
    int64_t acknowledged
    int64_t acknowledged_bytes
    int64_t lost
    bint has_reference
    int64_t reference
    bint rate_on
    int64_t rate_start
    int64_t rate_newest
    int64_t rate_bytes
    bint has_rate
    int64_t rate_bps

cdef struct Reported:
    bint wanted
    int room
    int count
    DeliveredPacket *packets
