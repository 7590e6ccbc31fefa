# Which simulcast layer a consumer should get, from what flows and what it prefers.

from sfu.core.media import layers

cdef double STALLED_AFTER_S = layers.STALLED_AFTER_S


cdef Encoding *producer_target(Producer *producer, bint prefers, const Name *preferred) noexcept nogil:
    """The layer that a consumer with this preference should get; NULL while none flows."""
    cdef int at, count = producer.encodings.count, wanted = -1
    cdef Encoding *encoding
    cdef bint any_media = False
    cdef double newest = 0.0
    if count == 1:
        return <Encoding *>producer.encodings.items[0]
    for at in range(count):
        encoding = <Encoding *>producer.encodings.items[at]
        if encoding.has_media and (not any_media or encoding.last_media > newest):
            newest = encoding.last_media
            any_media = True
        if prefers and same_name(&encoding.rid, preferred):
            wanted = at
    if not any_media:
        return NULL
    if wanted < 0:
        wanted = count - 1
    for at in range(wanted, -1, -1):
        if layer_flows(<Encoding *>producer.encodings.items[at], newest):
            return <Encoding *>producer.encodings.items[at]
    for at in range(wanted + 1, count):
        if layer_flows(<Encoding *>producer.encodings.items[at], newest):
            return <Encoding *>producer.encodings.items[at]
    return NULL


cdef inline bint layer_flows(Encoding *encoding, double newest) noexcept nogil:
    return encoding.has_media and newest - encoding.last_media < STALLED_AFTER_S
