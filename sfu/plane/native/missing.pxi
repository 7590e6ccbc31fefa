# Which packets of a publisher's stream are missing and when to ask for them again.

from sfu.core.media import missing

cpdef enum:
    MAX_MISSING = 250

cdef double RETRY_S = missing.RETRY_S
cdef double MIN_RETRY_S = missing.MIN_RETRY_S
cdef double RETRY_GROWTH = missing.RETRY_GROWTH
cdef double MAX_RETRY_WAIT_S = missing.MAX_RETRY_WAIT_S
cdef double ANSWER_MARGIN = missing.ANSWER_MARGIN
cdef double MAX_ANSWER_S = missing.MAX_ANSWER_S
cdef double ANSWER_WEIGHT = missing.ANSWER_WEIGHT
cdef int DOUBTS = missing.DOUBTS
cdef int MAX_TRIES = missing.MAX_TRIES
cdef double REMEMBERED_S = missing.REMEMBERED_S
cdef double LOOK_S = missing.LOOK_S
cdef double MAX_REORDER_S = missing.MAX_REORDER_S
cdef double REORDER_MARGIN = missing.REORDER_MARGIN
cdef double FORGETTING = missing.FORGETTING

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
        missing.doubts = min(missing.doubts + 1, DOUBTS)
    else:
        return
    if wanted.tries == 1 or missing.doubts == DOUBTS:
        took_s = fmin(now - wanted.asked_at, MAX_ANSWER_S)
        if missing.answer_s == 0.0:
            missing.answer_s = took_s
        else:
            missing.answer_s += (took_s - missing.answer_s) * ANSWER_WEIGHT


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
        missing.reorder_s = fmin(late_s * REORDER_MARGIN, MAX_REORDER_S)
    else:
        missing.reorder_s -= missing.reorder_s * FORGETTING
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
                wanted.next_at = wanted.asked_at + REMEMBERED_S
                if wanted.next_at > now:
                    missing.open[kept] = wanted[0]
                    kept += 1
                continue
            if wanted.tries == 0:
                missing.asked += 1
                wanted.asked_at = now
            step_s = RETRY_S if missing.answer_s == 0.0 else fmax(missing.answer_s * ANSWER_MARGIN, MIN_RETRY_S)
            wanted.next_at = now + fmax(fmin(step_s * pow(RETRY_GROWTH, wanted.tries), MAX_RETRY_WAIT_S), step_s)
            wanted.tries += 1
            sequences[asking] = <uint16_t>wanted.index
            asking += 1
        missing.open[kept] = wanted[0]
        kept += 1
    missing.count = kept
    return asking
