# Where a peer is: the addresses that it showed by authentic checks, and the one that its media is sent to.

from sfu.core.media import addresses

cpdef enum:
    MAX_ADDRESSES = 8

cdef double MOVE_EVERY_S = addresses.MOVE_EVERY_S
cdef double QUIET_S = addresses.QUIET_S
cdef double OWNED_S = addresses.OWNED_S

cdef struct KnownAddress:
    Peer *peer
    Address address
    double seen_at
    bint heard
    double heard_at

cdef struct PeerAddresses:
    KnownAddress *known[MAX_ADDRESSES + 1]
    int count
    KnownAddress *sending
    KnownAddress *nominated
    double moved_at


cdef inline bint address_is_owned(const KnownAddress *address, double now) noexcept nogil:
    """Another peer can't have it."""
    return now - address.seen_at < OWNED_S


cdef KnownAddress *addresses_add(PeerAddresses *of, KnownAddress *address) noexcept nogil:
    """Know another address; returns the one that is evicted for it, or NULL. The caller frees it."""
    cdef KnownAddress *evicted = NULL
    cdef int at
    of.known[of.count] = address
    of.count += 1
    if of.count <= MAX_ADDRESSES:
        return NULL
    for at in range(of.count - 1):
        if of.known[at] != of.sending and (evicted == NULL or of.known[at].seen_at < evicted.seen_at):
            evicted = of.known[at]
    addresses_remove(of, evicted)
    return evicted


cdef void addresses_remove(PeerAddresses *of, KnownAddress *address) noexcept nogil:
    cdef int at
    for at in range(of.count):
        if of.known[at] == address:
            memmove(&of.known[at], &of.known[at + 1], (of.count - at - 1) * sizeof(KnownAddress *))
            of.count -= 1
            break
    if of.sending == address:
        of.sending = NULL
    if of.nominated == address:
        of.nominated = NULL


cdef void addresses_start_again(PeerAddresses *of) noexcept nogil:
    """There are new keys: what came with the old ones earns nothing any more."""
    cdef int at
    of.sending = NULL
    for at in range(of.count):
        of.known[at].heard = False


cdef inline bint addresses_heard(PeerAddresses *of, KnownAddress *address, double now) noexcept nogil:
    """Something that can't be forged came from there. True when media is sent there from now on."""
    address.seen_at = address.heard_at = now
    address.heard = True
    if address == of.sending or not addresses_may_move_to(of, address, now):
        return False
    of.sending = address
    of.moved_at = now
    return True


cdef bint addresses_may_move_to(PeerAddresses *of, const KnownAddress *address, double now) noexcept nogil:
    if of.sending == NULL or not of.sending.heard:
        return True
    if now - of.moved_at < MOVE_EVERY_S:
        return False
    return address == of.nominated or now - of.sending.heard_at >= QUIET_S
