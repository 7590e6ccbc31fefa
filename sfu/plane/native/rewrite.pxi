# How the numbers of incoming packets become those of one consumer, continuous over switches, pauses, probes.

from sfu.core.media import rewrite

cpdef enum:
    KEPT_SPANS = 32

cdef double MIN_STEP_S = rewrite.MIN_STEP_S
cdef double MAX_STEP_SLACK_S = rewrite.MAX_STEP_SLACK_S

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

cdef struct Spans:
    Span kept[KEPT_SPANS]
    int first
    int count

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


cdef inline Span *span_at(Spans *spans, int back) noexcept nogil:
    """`back` 0 is the newest; there are `count`."""
    return &spans.kept[(spans.first + spans.count - 1 - back) % KEPT_SPANS]


cdef Span *span_begin(
    Spans *spans, Encoding *source, int64_t in_start, int64_t out_start, Shifts shifts
) noexcept nogil:
    if spans.count == KEPT_SPANS:
        spans.first = (spans.first + 1) % KEPT_SPANS
    else:
        spans.count += 1
    cdef Span *span = span_at(spans, 0)
    span[0] = Span(source, in_start, out_start, shifts)
    return span


cdef void span_skip(Spans *spans, int64_t index) noexcept nogil:
    """Leave packet `index`, the newest of the current span, out: what follows closes up."""
    cdef Span *span = span_at(spans, 0)
    cdef Shifts closer = span.shifts
    closer.sequence -= 1
    span_begin(spans, span.source, index + 1, index + span.shifts.sequence, closer)


cdef Span *span_for_late(Spans *spans, Encoding *source, int64_t index) noexcept nogil:
    """The span of a packet older than the newest one's start; NULL when it was never wanted, or came during a pause,
    whose numbers have gone to what came after it: two packets under one SRTP index give AES-GCM's key away."""
    cdef int back
    cdef Span *span
    for back in range(spans.count):
        span = span_at(spans, back)
        if span.source != source:
            return NULL
        if span.in_start <= index:
            if back and index + span.shifts.sequence >= span_at(spans, back - 1).out_start:
                return NULL
            return span
    return NULL


cdef Span *span_locate(Spans *spans, int64_t out_index) noexcept nogil:
    """The span of an output number; NULL when it is forgotten, and without a source when that is."""
    cdef int back
    for back in range(spans.count):
        if span_at(spans, back).out_start <= out_index:
            return span_at(spans, back)
    return NULL


cdef bint span_uses(Spans *spans, Encoding *source) noexcept nogil:
    """Whether what it sent may still be asked for."""
    cdef int back
    for back in range(spans.count):
        if span_at(spans, back).source == source:
            return True
    return False


cdef void span_let_go(Spans *spans, Encoding *source) noexcept nogil:
    """The source is about to be freed."""
    cdef int back
    for back in range(spans.count):
        if span_at(spans, back).source == source:
            span_at(spans, back).source = NULL


cdef Shifts switch_shifts(
    Newest *newest, Encoding *encoding, Packet *packet, int64_t out_index, double now
) noexcept nogil:
    """For a packet that begins a span as `out_index`."""
    cdef Shifts shifts = Shifts(out_index - packet.index, 0, 0, 0)
    if not newest.on:
        return shifts
    if newest.encoding == encoding and packet.index > newest.index:
        # After a pause: time and pictures have gone on at the publisher as well.
        shifts.timestamp = newest.shifts.timestamp
        shifts.picture_id = newest.shifts.picture_id
        shifts.tl0 = newest.shifts.tl0
        return shifts
    shifts.timestamp = <int64_t>switch_timestamp(newest, encoding, packet, now) - packet.header.timestamp
    if packet.vp8.present and newest.vp8:
        if packet.vp8.picture_id >= 0:
            shifts.picture_id = newest.picture_id + newest.shifts.picture_id + 1 - packet.vp8.picture_id
        if packet.vp8.tl0 >= 0:
            shifts.tl0 = newest.tl0 + newest.shifts.tl0 + 1 - packet.vp8.tl0
    return shifts


cdef uint32_t switch_timestamp(Newest *newest, Encoding *encoding, Packet *packet, double now) noexcept nogil:
    """The output timestamp of a layer's first packet, by both layers' sender reports or else by the time gone by."""
    cdef uint32_t last = <uint32_t>(newest.timestamp + newest.shifts.timestamp)
    cdef int64_t least = max(<int64_t>1, <int64_t>(MIN_STEP_S * encoding.clock_rate))
    cdef int64_t by_arrival = max(least, <int64_t>rint((now - newest.arrived) * encoding.clock_rate))
    cdef int64_t step = by_arrival, by_reports
    cdef uint32_t aligned
    if newest.encoding != NULL and newest.encoding.clock.on and encoding.clock.on:
        aligned = clock_align(&newest.encoding.clock, &encoding.clock, packet.header.timestamp)
        by_reports = timestamp_delta(<uint32_t>(aligned + newest.shifts.timestamp), last)
        if fabs(<double>(by_reports - by_arrival)) <= MAX_STEP_SLACK_S * encoding.clock_rate:
            step = max(least, by_reports)
    return <uint32_t>(last + step)
