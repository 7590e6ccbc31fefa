# Why packets are dropped: `DropReason` has the words, and a member of the same name for each of these.

from sfu.plane.drops import DropReason

cpdef enum:
    UNKNOWN_ADDRESS, NO_KEYS, NOT_AUTHENTIC, RETIRED_SSRC, BAD_RTP, BAD_RTCP, BAD_PAYLOAD, UNKNOWN_SSRC
    FOREIGN_CODEC, DUPLICATE, LATE, PROBE, NOT_SENT, RESEND_REPEATED, RESEND_OVER_BUDGET, RESEND_AWAITED
    RESEND_UNKNOWN, SEND_BUFFER_FULL, SEND_FAILED, QUEUE_FULL, NO_MEMORY, UNREADABLE
    DROP_KINDS


cdef int drop_place(object reason) except -1:
    return globals()[reason.name]
