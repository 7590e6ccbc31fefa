# The parameter sets of one H.264 stream that a decoder needs which begins now, where they were sent only once.

cpdef enum:
    MAX_KEPT = 8
    MAX_KEPT_BYTES = 1200

cdef struct ParameterSet:
    int name
    int length
    int64_t index               # of the packet that brought it

cdef struct ParameterSets:
    int count                   # oldest first, their bytes one after another in the same order
    int used
    ParameterSet kept[MAX_KEPT]
    uint8_t bytes[MAX_KEPT_BYTES]


cdef int fill_sets(ParameterSets *sets, described) except -1:
    """Those that the SDP told."""
    cdef bytes unit
    for unit in described:
        sets_keep(sets, unit, <int>len(unit), -1)
    return 0


cdef void sets_inherit(ParameterSets *sets, const ParameterSets *old) noexcept nogil:
    """For a stream that goes on under another SSRC: any set of its own is newer."""
    cdef int at
    sets[0] = old[0]
    for at in range(sets.count):
        sets.kept[at].index = -1


cdef void sets_keep(ParameterSets *sets, const uint8_t *unit, int length, int64_t index) noexcept nogil:
    """A set that packet `index` brought. One that is too long takes its older namesake away: that is not valid."""
    cdef int name = h264_set_key(unit, length), at
    if name < 0:
        return
    for at in range(sets.count):
        if sets.kept[at].name == name:
            if sets.kept[at].index > index:
                return
            sets_remove(sets, at)
            break
    if 3 + length > MAX_KEPT_BYTES:
        return
    while sets.count == MAX_KEPT or sets_length(sets) + 2 + length > MAX_KEPT_BYTES:
        sets_remove(sets, 0)
    sets.kept[sets.count] = ParameterSet(name, length, index)
    memcpy(sets.bytes + sets.used, unit, length)
    sets.count += 1
    sets.used += length


cdef void sets_remove(ParameterSets *sets, int which) noexcept nogil:
    cdef int at, start = 0, length = sets.kept[which].length
    for at in range(which):
        start += sets.kept[at].length
    memmove(sets.bytes + start, sets.bytes + start + length, sets.used - start - length)
    for at in range(which + 1, sets.count):
        sets.kept[at - 1] = sets.kept[at]
    sets.count -= 1
    sets.used -= length


cdef inline int sets_length(const ParameterSets *sets) noexcept nogil:
    """Of the aggregate."""
    return 1 + 2 * sets.count + sets.used


cdef bint sets_complete(const ParameterSets *sets) noexcept nogil:
    """Whether a decoder can begin with them."""
    cdef int at
    cdef bint sequence = False, picture = False
    for at in range(sets.count):
        sequence = sequence or sets.kept[at].name >> 8 == SPS
        picture = picture or sets.kept[at].name >> 8 == PPS
    return sequence and picture


cdef void sets_aggregate(const ParameterSets *sets, uint8_t *out) noexcept nogil:
    """All of them in one STAP-A of `sets_length`, sequences before the pictures that refer to them."""
    cdef int kind, at, start, written = 1
    cdef uint8_t importance = 0
    for kind in range(SPS, PPS + 1):
        start = 0
        for at in range(sets.count):
            if sets.kept[at].name >> 8 == kind:
                write16(out + written, sets.kept[at].length)
                memcpy(out + written + 2, sets.bytes + start, sets.kept[at].length)
                written += 2 + sets.kept[at].length
                importance = max(importance, <uint8_t>(sets.bytes[start] & 0x60))
            start += sets.kept[at].length
    out[0] = importance | STAP_A
