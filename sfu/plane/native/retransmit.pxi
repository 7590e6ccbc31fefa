# Whether to answer a consumer's NACK: once per round trip, and within a budget.

from sfu.core.media import retransmit

cdef double DEFAULT_RTT_S = retransmit.DEFAULT_RTT_S
cdef double MIN_REPEAT_S = retransmit.MIN_REPEAT_S
cdef double MAX_REPEAT_S = retransmit.MAX_REPEAT_S
cdef int REMEMBERED = retransmit.REMEMBERED
cdef double BUDGET_SHARE = retransmit.BUDGET_SHARE
cdef double BUDGET_MAX = retransmit.BUDGET_MAX
cdef double BUDGET_START = retransmit.BUDGET_START

cdef struct Resent:
    int64_t index
    double at
    bint on

cdef struct ResendGate:
    Resent *sent
    double tokens
    int64_t earned_at


cdef int resend_ask(ResendGate *gate, int64_t out_index, double rtt_s, int64_t forwarded, double now) noexcept nogil:
    """-1: send it; else why not. `rtt_s` is negative while it is not known."""
    cdef double wait = fmin(fmax(rtt_s if rtt_s >= 0.0 else DEFAULT_RTT_S, MIN_REPEAT_S), MAX_REPEAT_S)
    cdef Resent *last
    if gate.sent == NULL:
        # Made on the first NACK: most consumers never send one.
        gate.sent = <Resent *>calloc(REMEMBERED, sizeof(Resent))
        if gate.sent == NULL:
            return NO_MEMORY
    last = &gate.sent[modulo(out_index, REMEMBERED)]
    if last.on and last.index == out_index and now - last.at < wait:
        return RESEND_REPEATED
    gate.tokens = fmin(BUDGET_MAX, gate.tokens + (forwarded - gate.earned_at) * BUDGET_SHARE)
    gate.earned_at = forwarded
    if gate.tokens < 1.0:
        return RESEND_OVER_BUDGET
    gate.tokens -= 1.0
    last[0] = Resent(out_index, now, True)
    return -1
