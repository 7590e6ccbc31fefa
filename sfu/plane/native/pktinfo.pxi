# Which of this host's addresses a datagram was sent to, and sending from that one (ip(7), RFC 3542 section 6).
#
# An `Address` holds a number for it, so that two ways to one peer are two addresses; 0 where the socket is bound to one
# address, and nothing is asked of the kernel then.

cdef enum:
    MAX_LOCALS = 255            # addresses of a host that are told apart; beyond that the kernel chooses
    LOCAL_SHIFT = 32            # of the number within `Address.port`

cdef struct Local:
    uint64_t high
    uint64_t low
    bint four


cdef int local_number(Engine *engine, const Local *local) noexcept nogil:
    """The number of one of our addresses, with the lock held; 0 when there are too many."""
    cdef int at
    for at in range(engine.local_count):
        if (
            engine.locals[at].low == local.low
            and engine.locals[at].high == local.high
            and engine.locals[at].four == local.four
        ):
            return at + 1
    if engine.local_count == MAX_LOCALS:
        return 0
    engine.locals[engine.local_count] = local[0]
    engine.local_count += 1
    return engine.local_count


cdef void local_read(Local *local, const uint8_t *six) noexcept nogil:
    """An IPv4-mapped IPv6 address is the IPv4 one."""
    local.high = read64(six)
    local.low = read64(six + 8)
    local.four = local.high == 0 and local.low >> 32 == 0xFFFF
    if local.four:
        local.low &= 0xFFFFFFFFu


cdef void address_asked(Engine *engine, msghdr *message, Address *source) noexcept nogil:
    """Put the number of the address that was asked into `source`."""
    cdef cmsghdr *control = CMSG_FIRSTHDR(message)
    cdef Local local
    cdef int number = 0
    while control != NULL:
        if control.cmsg_level == IPPROTO_IP and control.cmsg_type == IP_PKTINFO:
            local = Local(0, read32(<const uint8_t *>&(<in_pktinfo *>CMSG_DATA(control)).ipi_spec_dst), True)
            number = local_number(engine, &local)
        elif control.cmsg_level == IPPROTO_IPV6 and control.cmsg_type == IPV6_PKTINFO:
            local_read(&local, (<in6_pktinfo *>CMSG_DATA(control)).ipi6_addr.s6_addr)
            number = local_number(engine, &local)
        control = CMSG_NXTHDR(message, control)
    source.port |= <uint64_t>number << LOCAL_SHIFT


cdef size_t address_answer(Engine *engine, const Address *address, uint8_t *out) noexcept nogil:
    """Write the control message that has it sent from the address that was asked; its size, 0 for none."""
    cdef int number = <int>(address.port >> LOCAL_SHIFT)
    cdef cmsghdr *control = <cmsghdr *>out
    cdef Local *local
    cdef in_pktinfo *four
    cdef in6_pktinfo *six
    if number == 0:
        return 0
    local = &engine.locals[number - 1]
    if not engine.six:
        control.cmsg_level = IPPROTO_IP
        control.cmsg_type = IP_PKTINFO
        control.cmsg_len = CMSG_LEN(sizeof(in_pktinfo))
        four = <in_pktinfo *>CMSG_DATA(control)
        memset(four, 0, sizeof(in_pktinfo))
        write32(<uint8_t *>&four.ipi_spec_dst, <uint32_t>local.low)
        return CMSG_SPACE(sizeof(in_pktinfo))
    control.cmsg_level = IPPROTO_IPV6
    control.cmsg_type = IPV6_PKTINFO
    control.cmsg_len = CMSG_LEN(sizeof(in6_pktinfo))
    six = <in6_pktinfo *>CMSG_DATA(control)
    memset(six, 0, sizeof(in6_pktinfo))
    if local.four:
        write16(six.ipi6_addr.s6_addr + 10, 0xFFFF)
    else:
        write32(six.ipi6_addr.s6_addr, <uint32_t>(local.high >> 32))
        write32(six.ipi6_addr.s6_addr + 4, <uint32_t>local.high)
        write32(six.ipi6_addr.s6_addr + 8, <uint32_t>(local.low >> 32))
    write32(six.ipi6_addr.s6_addr + 12, <uint32_t>local.low)
    return CMSG_SPACE(sizeof(in6_pktinfo))


cdef tuple get_asked(Engine *engine, const Address *address):
    """The address, and which one of ours it asked where that is known."""
    cdef int number = <int>(address.port >> LOCAL_SHIFT)
    cdef Address ours
    if is_stream(address):
        return *get_address(address), f"tcp/{address.port >> LOCAL_SHIFT}"
    if number == 0:
        return get_address(address)
    ours.high, ours.low = engine.locals[number - 1].high, engine.locals[number - 1].low
    ours.port = (4 if engine.locals[number - 1].four else 6) << 16
    return *get_address(address), get_address(&ours)[0]
