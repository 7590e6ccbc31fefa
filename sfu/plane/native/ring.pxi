# The last packets of one producer encoding, by extended sequence number: one ring for all its consumers.

cpdef enum:
    RING_SIZE = 1000

cdef struct Ring:
    Packet *packets[RING_SIZE]


cdef inline Packet *ring_get(Ring *ring, int64_t index) noexcept nogil:
    cdef Packet *packet = ring.packets[modulo(index, RING_SIZE)]
    return packet if packet != NULL and packet.index == index else NULL


cdef inline Packet **ring_place(Ring *ring, int64_t index) noexcept nogil:
    return &ring.packets[modulo(index, RING_SIZE)]


cdef void ring_clear(Ring *ring) noexcept nogil:
    cdef int at
    for at in range(RING_SIZE):
        if ring.packets[at] != NULL:
            packet_release(ring.packets[at])
