# What receiver and sender reports are made of: arrival statistics, the publisher's clock, round trips (RFC 3550).

from sfu.core.media import reports

cpdef enum:
    KEPT_REPORTS = 4

cdef int64_t NTP_UNIT = reports.NTP_UNIT
cdef double JITTER_SHARE = reports.JITTER_SHARE
cdef double RTT_RISE = reports.RTT_RISE
cdef double MAX_EXTRAPOLATION_S = reports.MAX_EXTRAPOLATION_S

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

cdef struct RoundTrip:
    uint32_t ntp[KEPT_REPORTS]
    double at[KEPT_REPORTS]
    int reports
    bint known
    double rtt_s
    double least_s              # without the path's jitter


# -- arrival statistics

cdef void stats_begin(Stats *stats, uint32_t ssrc, int clock_rate, uint16_t sequence) noexcept nogil:
    memset(stats, 0, sizeof(Stats))
    stats.on = True
    stats.ssrc = ssrc
    stats.clock_rate = clock_rate
    stats.base = stats.highest = 0x10000 + sequence


cdef inline int64_t stats_extend(Stats *stats, uint16_t sequence) noexcept nogil:
    return stats.highest + sequence_delta(sequence, <uint16_t>stats.highest)


cdef void stats_count(Stats *stats, int64_t index, uint32_t timestamp, int size, double now) noexcept nogil:
    cdef double transit, difference
    stats.received += 1
    stats.octets += size
    if index > stats.highest:
        stats.highest = index
        transit = now * stats.clock_rate - timestamp
        if stats.has_transit:
            difference = transit - stats.transit + <double>0x80000000u
            difference -= floor(difference / <double>0x100000000) * <double>0x100000000
            stats.jitter += (fabs(difference - <double>0x80000000u) - stats.jitter) * JITTER_SHARE
        stats.transit = transit
        stats.has_transit = True
    elif index < stats.base:
        stats.base = index


cdef inline int64_t stats_lost(Stats *stats) noexcept nogil:
    return stats.highest - stats.base + 1 - stats.received


cdef void stats_block(Stats *stats, double now, uint8_t *out) noexcept nogil:
    """Write the 24 bytes of a report block; starts a new interval (RFC 3550 appendix A.3)."""
    cdef int64_t expected = stats.highest - stats.base + 1
    cdef int64_t expected_interval = expected - stats.expected_prior
    cdef int64_t lost_interval = expected_interval - (stats.received - stats.received_prior)
    cdef int64_t fraction = 0, lost = stats_lost(stats), delay = 0
    stats.expected_prior = expected
    stats.received_prior = stats.received
    if expected_interval > 0 and lost_interval > 0:
        fraction = min(<int64_t>255, (lost_interval << 8) // expected_interval)
    lost = max(<int64_t>-0x800000, min(<int64_t>0x7FFFFF, lost))
    if stats.last_sr:
        delay = <int64_t>((now - stats.last_sr_at) * 65536)
    write32(out, stats.ssrc)
    write32(out + 4, <uint32_t>(fraction << 24 | (lost & 0xFFFFFF)))
    write32(out + 8, <uint32_t>stats.highest)
    write32(out + 12, <uint32_t>(<int64_t>stats.jitter))
    write32(out + 16, stats.last_sr)
    write32(out + 20, <uint32_t>delay)


# -- the publisher's clock

cdef bint clock_at(Clock *clock, double now, uint64_t *ntp, uint32_t *timestamp) noexcept nogil:
    """This moment by the publisher's clock; False when its last report is older than 30 s."""
    cdef double elapsed = now - clock.at
    if not clock.on or elapsed > MAX_EXTRAPOLATION_S:
        return False
    ntp[0] = clock.ntp + <uint64_t>(<int64_t>(elapsed * NTP_UNIT))
    timestamp[0] = clock.timestamp + <uint32_t>(<int64_t>(elapsed * clock.rate))
    return True


cdef inline int128_t divided(int128_t value, int128_t by) noexcept nogil:
    """Rounded down, for a positive divisor."""
    cdef int128_t quotient = value / by
    return quotient - 1 if value % by < 0 else quotient


cdef uint32_t clock_align(Clock *old, Clock *new, uint32_t timestamp) noexcept nogil:
    """A timestamp of the new layer on the old layer's clock, as their sender reports pair them."""
    cdef int128_t unit = NTP_UNIT
    cdef int128_t since = timestamp_delta(timestamp, new.timestamp)
    cdef int128_t ntp = <int128_t>new.ntp + divided(since * unit, new.rate)
    cdef int128_t moved = divided((ntp - <int128_t>old.ntp) * old.rate + unit / 2, unit)
    return <uint32_t>(<int128_t>old.timestamp + moved)


# -- the round trip to a receiver

cdef void round_trip_report_sent(RoundTrip *trip, uint64_t ntp, double now) noexcept nogil:
    cdef int slot = trip.reports % KEPT_REPORTS
    trip.ntp[slot] = <uint32_t>(ntp >> 16)
    trip.at[slot] = now
    trip.reports += 1


cdef void round_trip_echoed(RoundTrip *trip, uint32_t last_sr, uint32_t delay_since_sr, double now) noexcept nogil:
    """Of several reports with one NTP time the newest is meant."""
    cdef int back, at
    for back in range(1, min(trip.reports, <int>KEPT_REPORTS) + 1):
        at = (trip.reports - back) % KEPT_REPORTS
        if trip.ntp[at] == last_sr:
            trip.rtt_s = fmax(0.0, now - trip.at[at] - delay_since_sr / 65536.0)
            if not trip.known or trip.rtt_s < trip.least_s:
                trip.least_s = trip.rtt_s
            else:
                trip.least_s += (trip.rtt_s - trip.least_s) * RTT_RISE
            trip.known = True
            return
