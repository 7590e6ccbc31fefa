# Arrival statistics, the publisher's clock, missing packets, key frame requests: sfu.core in C.

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
            difference = transit - stats.transit + 2147483648.0
            difference = fabs(difference - floor(difference / 4294967296.0) * 4294967296.0 - 2147483648.0)
            stats.jitter += (difference - stats.jitter) / 16.0
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


cdef bint clock_at(Clock *clock, double now, uint64_t *ntp, uint32_t *timestamp) noexcept nogil:
    """This moment by the publisher's clock; False when its last report is older than 30 s."""
    cdef double elapsed = now - clock.at
    if not clock.on or elapsed > 30.0:
        return False
    ntp[0] = clock.ntp + <uint64_t>(<int64_t>(elapsed * 4294967296.0))
    timestamp[0] = clock.timestamp + <uint32_t>(<int64_t>(elapsed * clock.rate))
    return True


cdef inline int128_t divided(int128_t value, int128_t by) noexcept nogil:
    """Rounded down, for a positive divisor."""
    cdef int128_t quotient = value / by
    return quotient - 1 if value % by < 0 else quotient


cdef uint32_t clock_align(Clock *old, Clock *new, uint32_t timestamp) noexcept nogil:
    """A timestamp of the new layer on the old layer's clock, as their sender reports pair them."""
    cdef int128_t unit = <int128_t>1 << 32
    cdef int128_t ntp = <int128_t>new.ntp + divided(<int128_t>timestamp_delta(timestamp, new.timestamp) * unit, new.rate)
    cdef int128_t moved = divided((ntp - <int128_t>old.ntp) * old.rate + unit / 2, unit)
    return <uint32_t>(<int128_t>old.timestamp + moved)


# -- missing packets

cdef bint missing_gap(Missing *missing, int64_t first, int64_t end, double now) noexcept nogil:
    """Packets `first` .. `end - 1` were skipped. False when that is too much to ask for."""
    cdef int64_t index
    if end - first + missing.count > MAX_MISSING:
        missing.count = 0
        return False
    if missing.open == NULL:
        missing.open = <Wanted *>malloc(MAX_MISSING * sizeof(Wanted))
        if missing.open == NULL:
            return False
    for index in range(first, end):
        missing.open[missing.count] = Wanted(index, 0, now + missing.reorder_s, now, now)
        missing.count += 1
    return True


cdef int missing_find(Missing *missing, int64_t index) noexcept nogil:
    cdef int at
    for at in range(missing.count):
        if missing.open[at].index == index:
            return at
    return -1


cdef void missing_answered(Missing *missing, Wanted *wanted, double now) noexcept nogil:
    """What the time of an answer teaches; one to a later try, only when there is no other."""
    cdef double took_s
    if wanted.tries == 1:
        missing.doubts = 0
    elif not missing.doubted or wanted.asked_at != missing.doubted_at:
        missing.doubted = True
        missing.doubted_at = wanted.asked_at
        missing.doubts = min(missing.doubts + 1, 6)
    else:
        return
    if wanted.tries == 1 or missing.doubts == 6:
        took_s = fmin(now - wanted.asked_at, 0.4)
        missing.answer_s = took_s if missing.answer_s == 0.0 else missing.answer_s + (took_s - missing.answer_s) * 0.125


cdef void missing_arrived(Missing *missing, int64_t index, bint original, double now) noexcept nogil:
    """A packet came. `original`: it can't be the answer to our asking."""
    cdef int at = missing_find(missing, index)
    cdef double late_s = 0.0
    if at < 0:
        return
    if not original and missing.open[at].tries > 0:
        missing_answered(missing, &missing.open[at], now)
    if original or missing.open[at].tries == 0:
        late_s = now - missing.open[at].missed_at
    if late_s > missing.reorder_s:
        missing.reorder_s = fmin(late_s * 1.25, 0.04)
    else:
        missing.reorder_s -= missing.reorder_s * (1.0 / 128)
    memmove(&missing.open[at], &missing.open[at + 1], (missing.count - at - 1) * sizeof(Wanted))
    missing.count -= 1


cdef void missing_forget_before(Missing *missing, int64_t index) noexcept nogil:
    cdef int at = 0
    while at < missing.count and missing.open[at].index < index:
        at += 1
    if at:
        memmove(missing.open, &missing.open[at], (missing.count - at) * sizeof(Wanted))
        missing.count -= at


cdef int missing_due(Missing *missing, double now, uint16_t *sequences) noexcept nogil:
    """The numbers to ask for now, in order; of those tried often enough the answer is waited for, and then no more."""
    cdef int at, kept = 0, asking = 0
    cdef Wanted *wanted
    cdef double step_s
    for at in range(missing.count):
        wanted = &missing.open[at]
        if wanted.next_at <= now:
            if wanted.tries >= MAX_TRIES:
                wanted.next_at = wanted.asked_at + 2.5
                if wanted.next_at > now:
                    missing.open[kept] = wanted[0]
                    kept += 1
                continue
            if wanted.tries == 0:
                missing.asked += 1
                wanted.asked_at = now
            step_s = 0.04 if missing.answer_s == 0.0 else fmax(missing.answer_s * 1.5, 0.02)
            wanted.next_at = now + fmax(fmin(step_s * pow(1.5, wanted.tries), 0.2), step_s)
            wanted.tries += 1
            sequences[asking] = <uint16_t>wanted.index
            asking += 1
        missing.open[kept] = wanted[0]
        kept += 1
    missing.count = kept
    return asking


# -- key frame requests

cdef inline double keyframes_next(Keyframes *requests, double now) noexcept nogil:
    return requests.sent_at + requests.interval_s if requests.sent else now


cdef bint keyframes_due(Keyframes *requests, double now) noexcept nogil:
    """True when a PLI is to be sent now; it counts as sent then."""
    if now - requests.asked_at > 1.5:
        requests.wanted = False
    if not requests.wanted or now < keyframes_next(requests, now):
        return False
    requests.sent = True
    requests.sent_at = now
    return True


cdef inline bint keyframes_request(Keyframes *requests, double now) noexcept nogil:
    requests.wanted = True
    requests.asked_at = now
    return keyframes_due(requests, now)
