# When to ask a publisher's layer for a key frame: requests merged, paced, and repeated until one comes.

from sfu.core.media import keyframes

cdef double LOW_LAYER_INTERVAL_S = keyframes.LOW_LAYER_INTERVAL_S
cdef double HIGH_LAYER_INTERVAL_S = keyframes.HIGH_LAYER_INTERVAL_S
cdef double LAPSE_S = keyframes.LAPSE_S

cdef struct Keyframes:
    double interval_s
    double asked_at
    bint sent
    double sent_at
    bint wanted


cdef inline double keyframes_next(Keyframes *requests, double now) noexcept nogil:
    return requests.sent_at + requests.interval_s if requests.sent else now


cdef bint keyframes_due(Keyframes *requests, double now) noexcept nogil:
    """True when a PLI is to be sent now; it counts as sent then."""
    if now - requests.asked_at > LAPSE_S:
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
