# Everything the plane keeps, as C structs. One mutex guards it all; see thread.pxi.

cdef enum:
    RING = 1000                 # packets kept per encoding, as sfu.core.media.ring
    REMEMBERED = 1000           # resends remembered per consumer, as sfu.core.media.retransmit
    MAX_SSRCS = 1024            # as sfu.plane.peer
    MAX_MISSING = 250           # as sfu.core.media.missing
    MAX_NACKED = 1000           # as shared.rtc.rtcp
    MAX_TRIES = 10
    KEPT_SPANS = 32             # as sfu.core.media.rewrite
    KEPT_REPORTS = 4            # as sfu.core.media.reports
    KEPT_RETIRED = 16           # encodings replaced by a new SSRC that late packets may still need
    MAX_DATAGRAM = 1500
    MAX_PLAIN = 1456            # as shared.rtc.srtp
    MAX_BLOCK = 4096            # an extension block before its length is checked
    BLOCK_KEPT = 48             # an extension block that is kept with its packet for the next consumer
    MAX_NAME = 255              # a MID, RID or CNAME: what its length field can say
    TAG = 16
    WINDOW_WORDS = 16           # 1024 packets of replay window
    MAX_PENDING = 256           # packets of a producer that wait for the tick or for their turn
    REPLACED = 2                # a route's value for an SSRC that was replaced and must not be bound again

cdef struct Peer
cdef struct Producer
cdef struct Encoding

cdef enum:  # DropKind
    UNKNOWN_ADDRESS, NO_KEYS, NOT_AUTHENTIC, TOO_MANY_SSRCS, BAD_RTP, BAD_RTCP, BAD_PAYLOAD, UNKNOWN_SSRC
    FOREIGN_CODEC, DUPLICATE, LATE, PROBE, NOT_SENT, RESEND_REPEATED, RESEND_OVER_BUDGET, RESEND_AWAITED
    RESEND_UNKNOWN, SEND_BUFFER_FULL, SEND_FAILED, QUEUE_FULL, NO_MEMORY, UNREADABLE
    DROP_KINDS

cdef enum:  # EventKind
    PRODUCER_FLOWING, PRODUCER_SILENT, PRODUCER_RESUMED, PRODUCER_ENDED, CONSUMER_FLOWING, LAYER_SWITCHED, PEER_HEARD
    DELIVERY_REPORTED

cdef enum:  # TimerKind
    WATCH, RETRY_NACK, RETRY_KEYFRAME, SENDER_REPORT, RECEIVER_REPORT, EARLY_REPORT, TRANSPORT_FEEDBACK

cdef enum:  # CodecKind
    CODEC_NONE, CODEC_OTHER, CODEC_VP8, CODEC_H264

cdef struct Name:
    int length
    uint8_t text[MAX_NAME + 1]

cdef struct Address:
    uint64_t high
    uint64_t low
    uint64_t port               # with the family above it

cdef struct Event:
    int kind
    int64_t subject
    Name rid
    double at                   # of a DELIVERY_REPORTED, as what follows; the event owns the packets
    DeliveredPacket *packets
    int packet_count

cdef struct Raw:
    Address source
    int length
    uint8_t *bytes

cdef struct Timer:
    double when
    uint64_t order
    int kind
    uint64_t subject            # serial of its object; nothing happens when that is gone

cdef struct RxStream:
    uint64_t index              # SRTP's 48-bit index of the newest packet
    uint64_t window[WINDOW_WORDS]
    uint32_t rtcp_start
    uint64_t rtcp_seen[2]

cdef struct Shifts:
    int64_t sequence
    int64_t timestamp
    int64_t picture_id
    int64_t tl0

cdef struct Span:
    Encoding *source
    int64_t in_start
    int64_t out_start
    Shifts shifts

cdef struct Vp8:
    bint present
    bint keyframe_start
    int length
    int picture_id
    int picture_id_at
    int picture_id_mask
    int tl0
    int tl0_at

cdef struct Header:
    uint8_t marker
    uint8_t payload_type
    uint16_t sequence
    uint32_t timestamp
    uint32_t ssrc
    int profile
    int extension_start
    int extension_end
    int payload_start
    int payload_end

cdef struct Plan:
    uint8_t copied[256]         # incoming id -> outgoing id, 0: not copied
    uint8_t stamped             # id of abs-send-time, 0: none
    uint8_t sequenced           # id of the transport-wide sequence number, which comes first; 0: none

cdef struct Packet:
    int references
    int64_t index
    Header header
    Vp8 vp8
    bint keyframe_start
    double arrived
    double stamp                # its abs-send-time: of its first forwarding, the same for every resend; 0 before
    int64_t received_ns         # the kernel's time-stamp; 0 without one
    Plan *block_plan            # whose extension block `block` is
    int block_length
    uint8_t block[BLOCK_KEPT]
    int size
    int payload_at
    int payload_length
    int padding
    uint8_t bytes[1]            # header and extensions as they came, the payload, then our padding

cdef struct Stats:
    bint on
    uint32_t ssrc
    int clock_rate
    int64_t base
    int64_t highest
    int64_t received
    int64_t octets
    double jitter
    bint has_transit
    double transit
    int64_t expected_prior
    int64_t received_prior
    uint32_t last_sr
    double last_sr_at

cdef struct Clock:
    bint on
    uint64_t ntp
    uint32_t timestamp
    int rate
    double at

cdef struct Wanted:
    int64_t index
    int tries
    double next_at
    double missed_at
    double asked_at             # first

cdef struct Missing:
    Wanted *open
    int count
    double reorder_s
    double answer_s
    bint doubted                # ever
    double doubted_at
    int doubts
    int64_t asked

cdef struct Keyframes:
    double interval_s
    double asked_at
    bint sent
    double sent_at
    bint wanted

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
    Packet *ring[RING]
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

cdef struct Known:
    uint32_t ssrc
    Name rid
    bint rtx

cdef struct Pending:
    Encoding *encoding
    Packet *packet

cdef struct Producer:
    int64_t id
    uint64_t serial
    Peer *peer
    bint audio
    bint simulcast
    bint nack
    Name mid
    Codec codecs[128]           # by payload type
    uint8_t rtx_of[128]         # RTX payload type -> its media payload type + 1
    uint8_t extension[256]      # id -> ExtensionKind, for binding
    int rids                    # how many of the encodings the SDP named
    Known *known
    int known_count
    int64_t remb_bps
    Vector encodings            # in the order of their layers, lowest first
    Vector retired
    Vector consumers
    Vector plans
    bint flowing
    bint silent
    bint has_ended
    bint has_media
    double last_media
    Pending pending[MAX_PENDING]
    int pending_count
    int serving                 # so many of the pending, the first ones, are being forwarded; 0: none
    int served                  # where among the consumers that has come to
    uint64_t flush              # its number, which a consumer that has been served bears
    uint64_t round              # the last round of flushes that served it

cdef struct Newest:
    bint on
    Encoding *encoding
    int64_t index
    uint32_t timestamp
    bint vp8
    int picture_id
    int tl0
    double arrived
    Shifts shifts

cdef struct Resent:
    int64_t index
    double at
    bint on

cdef struct Consumer:
    int64_t id
    uint64_t serial
    Peer *peer
    Producer *producer
    Plan *plan
    uint8_t accepted[128]
    uint32_t ssrc
    uint8_t payload_type
    bint has_rtx
    uint32_t rtx_ssrc
    uint8_t rtx_payload_type
    bint paused
    bint flowing
    bint prefers
    Name preferred
    Name cname
    Encoding *source
    Encoding *target
    Span spans[KEPT_SPANS]
    int span_first
    int span_count
    int64_t highest_out
    int64_t rtx_index
    int64_t cycle               # of highest_out at which the keys in use began: SRTP's rollover counter 0
    int64_t rtx_cycle
    Newest newest
    Resent *resents
    double tokens
    int64_t earned_at
    uint32_t report_ntp[KEPT_REPORTS]
    double report_at[KEPT_REPORTS]
    int reports
    bint has_rtt
    double rtt_s
    double least_rtt_s          # without the path's jitter
    int64_t sent
    int64_t sent_bytes
    int64_t octets
    int64_t nacks
    int64_t resent
    int64_t unanswered
    int64_t plis
    double fraction_lost
    uint64_t flushed            # the flush that has served it

cdef struct Gcm:
    void *context               # EVP_CIPHER_CTX with its key set
    uint8_t salt[12]

cdef struct Peer:
    int64_t id
    uint64_t serial
    bint keyed
    bint direct                 # GCM on libcrypto itself; else libsrtp
    Gcm rx
    Gcm rx_rtcp
    Gcm tx
    Gcm tx_rtcp
    void *srtp_rx
    void *srtp_tx
    void *session               # the Python object that owns both, with a reference of ours
    uint32_t rtcp_index
    bint placed
    Address address
    Table streams               # SSRC -> RxStream
    Table routes                # SSRC -> Encoding, tagged; see route.pxi
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
    int64_t feedbacks_sent
    Delivery delivery
    bint follows_delivery
    int64_t packets_in
    int64_t bytes_in
    int64_t packets_out
    int64_t bytes_out
    int destination             # in the batch `batch_serial`
    uint64_t batch_serial

cdef struct Out:
    uint32_t offset
    int length
    int next                    # of the same destination
    int destination
    int64_t received_ns

cdef struct Destination:
    Address address
    int first
    int last

cdef struct Batch:
    uint8_t *bytes
    uint32_t used
    uint32_t room
    Out *outs
    int count
    int outs_room
    Destination *destinations
    int destination_count
    uint64_t serial

cdef enum:
    HISTOGRAM = 128

cdef struct Totals:
    int64_t packets_in, bytes_in, packets_out, bytes_out, forwarded, forwarded_bytes
    int64_t nacks_sent, nacks_received, plis_sent, plis_received, rtx_received, resent
    int64_t feedbacks_sent, feedbacks_received
    int64_t wakes, raws
    int64_t drops[DROP_KINDS]

cdef struct Sent:
    # Written by whoever sends, without the lock: single words, read as they are.
    int64_t sends               # messages, each a run of one or more datagrams
    int64_t send_calls
    int64_t drops[DROP_KINDS]
    int64_t delays[HISTOGRAM]

cdef struct Sender
cdef struct Receiver

cdef struct Engine:
    pthread_mutex_t mutex
    uint32_t ssrc
    uint64_t last_serial
    Table objects               # serial -> whatever has timers
    Table peers                 # id -> Peer
    Table addresses             # address -> Peer
    Table producers
    Table consumers
    Vector all_peers            # in the order of their making, for the snapshot
    Vector all_producers
    Vector all_consumers
    Vector old_sessions         # references for Python to let go of
    Timer *timers
    int timer_count
    int timer_room
    uint64_t timer_order
    Event *events
    int event_count
    int event_room
    int delivery_events
    Raw *raws
    int raw_count
    int raw_room
    Totals totals
    Sent sent
    Sender *sender
    Receiver *receiver
    Batch *batch                # what is being filled
    Batch *spare                # what is being sent
    Batch batches[2]
    uint64_t last_batch
    int64_t received_ns         # of the datagram in hand
    int64_t woken_ns            # wall clock of its wake
    uint8_t block[MAX_BLOCK]    # the extension block in hand
    # The thread's side; see thread.pxi.
    bint threaded
    bint gso
    bint six                    # the socket is an IPv6 one
    bint coalesce
    bint pad
    int fd
    int wake_fd
    int event_fd
    bint stopping
    bint told
    bint sending                # the spare batch is on its way, and `sender` in use
    pthread_t thread
    Vector waiting              # producers with pending packets
    double flush_at
    uint64_t last_flush
    uint64_t last_round
    bint crowded                # a producer has hardly room for another batch of datagrams
    int refused_runs            # in a row, by devices without checksums for segments
