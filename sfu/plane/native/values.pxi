# Text and addresses as C values, and how the kernel and Python write them.

cdef enum:
    MAX_NAME = 255              # a MID, RID or CNAME: what its length field can say

cdef struct Name:
    int length
    uint8_t text[MAX_NAME + 1]

cdef struct Address:
    uint64_t high
    uint64_t low
    # The port, with the family above it, STREAM_BIT, and which of our addresses it asked (see pktinfo.pxi) or which TCP
    # connection it is.
    uint64_t port

cdef enum:
    STREAM_BIT = 1 << 24


cdef inline bint same_name(const Name *a, const Name *b) noexcept nogil:
    return a.length == b.length and memcmp(a.text, b.text, a.length) == 0


cdef void name_set(Name *name, const uint8_t *text, int length) noexcept nogil:
    name.length = length if length <= MAX_NAME else MAX_NAME
    memcpy(name.text, text, name.length)


cdef int set_name(Name *name, str text) except -1:
    cdef bytes encoded = text.encode()[:MAX_NAME]
    name_set(name, encoded, <int>len(encoded))
    return 0


cdef str get_name(const Name *name):
    return name.text[:name.length].decode("utf8", "replace")


cdef inline bint same_address(const Address *a, const Address *b) noexcept nogil:
    return a.high == b.high and a.low == b.low and a.port == b.port


cdef inline bint is_four(const Address *address) noexcept nogil:
    return (address.port >> 16 & 0xFF) == 4


cdef inline bint is_stream(const Address *address) noexcept nogil:
    """Whether it is a TCP connection, which Python has."""
    return address.port & STREAM_BIT != 0


cdef int set_address(Address *address, object given) except -1:
    """An IPv4 or IPv6 address and a port. Raises `ValueError` for anything else."""
    host, port = given[0], given[1]
    try:
        packed = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    except OSError:
        raise ValueError(f"no IP address: {host!r}") from None
    if len(packed) == 16 and packed[:12] == bytes(10) + b"\xff\xff":
        packed = packed[12:]
    whole = int.from_bytes(packed, "big")
    address.high = whole >> 64
    address.low = whole & 0xFFFFFFFFFFFFFFFF
    address.port = (4 if len(packed) == 4 else 6) << 16 | <uint64_t>port
    return 0


cdef tuple get_address(const Address *address):
    if is_four(address):
        host = f"{address.low >> 24 & 255}.{address.low >> 16 & 255}.{address.low >> 8 & 255}.{address.low & 255}"
        return host, int(address.port & 0xFFFF)
    whole = (<object>address.high) << 64 | address.low
    return socket.inet_ntop(socket.AF_INET6, whole.to_bytes(16, "big")), int(address.port & 0xFFFF)


cdef socklen_t address_write(const Address *address, sockaddr_in6 *out, bint mapped) noexcept nogil:
    """The kernel's form; on an IPv6 socket (`mapped`) an IPv4 address is written as an IPv6 one."""
    cdef sockaddr_in *four = <sockaddr_in *>out
    memset(out, 0, sizeof(sockaddr_in6))
    if is_four(address) and not mapped:
        four.sin_family = AF_INET
        write16(<uint8_t *>&four.sin_port, address.port & 0xFFFF)
        write32(<uint8_t *>&four.sin_addr, <uint32_t>address.low)
        return sizeof(sockaddr_in)
    out.sin6_family = AF_INET6
    write16(<uint8_t *>&out.sin6_port, address.port & 0xFFFF)
    if is_four(address):
        out.sin6_addr.s6_addr[10] = out.sin6_addr.s6_addr[11] = 0xFF
        write32(out.sin6_addr.s6_addr + 12, <uint32_t>address.low)
    else:
        write32(out.sin6_addr.s6_addr, <uint32_t>(address.high >> 32))
        write32(out.sin6_addr.s6_addr + 4, <uint32_t>address.high)
        write32(out.sin6_addr.s6_addr + 8, <uint32_t>(address.low >> 32))
        write32(out.sin6_addr.s6_addr + 12, <uint32_t>address.low)
    return sizeof(sockaddr_in6)


cdef void address_read(const sockaddr_in6 *given, Address *address) noexcept nogil:
    """An IPv4-mapped IPv6 address is the IPv4 one."""
    cdef const sockaddr_in *four = <const sockaddr_in *>given
    cdef const uint8_t *six = given.sin6_addr.s6_addr
    if given.sin6_family == AF_INET:
        address.high = 0
        address.low = read32(<const uint8_t *>&four.sin_addr)
        address.port = <uint64_t>4 << 16 | read16(<const uint8_t *>&four.sin_port)
        return
    address.high = read64(six)
    address.low = read64(six + 8)
    address.port = <uint64_t>6 << 16 | read16(<const uint8_t *>&given.sin6_port)
    if address.high == 0 and address.low >> 32 == 0xFFFF:
        address.low &= 0xFFFFFFFFu
        address.port = <uint64_t>4 << 16 | (address.port & 0xFFFF)
