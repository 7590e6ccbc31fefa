# H.264 payloads (RFC 6184): where a key frame begins, and parameter sets.

from shared.rtc import h264

cdef enum:
    IDR = 5, SPS = 7, PPS = 8, STAP_A = 24, FU_A = 28

cpdef enum:
    MAX_SETS = 8

cdef int MAX_SET_ID = h264.MAX_SET_ID

cdef struct Units:
    bint has_idr
    bint has_sps
    int sets                    # how many, of these lengths at these places of the payload
    int starts[MAX_SETS]
    int lengths[MAX_SETS]


cdef void h264_read(const uint8_t *payload, int size, Units *units) noexcept nogil:
    """As shared.rtc.h264.read."""
    cdef int position = 1, length, kind
    memset(units, 0, sizeof(Units))
    if size == 0:
        return
    kind = payload[0] & 0x1F
    if kind == FU_A:
        kind = payload[1] & 0x1F if size > 1 and payload[1] & 0x80 else 0
        units.has_idr = kind == IDR
        units.has_sps = kind == SPS
        return
    if kind != STAP_A:
        h264_unit(units, kind, 0, size)
        return
    while position + 2 < size:
        length = read16(payload + position)
        if length == 0 or position + 2 + length > size:
            return
        h264_unit(units, payload[position + 2] & 0x1F, position + 2, length)
        position += 2 + length


cdef inline void h264_unit(Units *units, int kind, int start, int length) noexcept nogil:
    units.has_idr = units.has_idr or kind == IDR
    units.has_sps = units.has_sps or kind == SPS
    if (kind == SPS or kind == PPS) and units.sets < MAX_SETS:
        units.starts[units.sets] = start
        units.lengths[units.sets] = length
        units.sets += 1


cdef int h264_set_key(const uint8_t *unit, int length) noexcept nogil:
    """As shared.rtc.h264.set_key; -1 when it can't be read."""
    cdef int kind = unit[0] & 0x1F
    cdef int identifier
    if kind != SPS and kind != PPS:
        return -1
    identifier = exp_golomb(unit, length, 4 if kind == SPS else 1)
    if identifier < 0 or (kind == SPS and identifier > 31):
        return -1
    return kind << 8 | identifier


cdef int exp_golomb(const uint8_t *unit, int length, int start) noexcept nogil:
    """An unsigned number that begins with byte `start`; -1 for one above MAX_SET_ID or a cut one."""
    cdef uint32_t bits = 0
    cdef int at, zeros = 0, number
    for at in range(start, start + 3):
        bits = bits << 8 | (unit[at] if at < length else 0)
    while zeros <= 8 and not bits & (1 << (23 - zeros)):
        zeros += 1
    if zeros > 8 or 8 * (length - start) < 2 * zeros + 1:
        return -1
    number = <int>(bits >> (23 - 2 * zeros)) - 1
    return number if number <= MAX_SET_ID else -1
