# What the generator takes from the kernel besides what the plane takes (sfu/plane/native/system.pxi).

cdef extern from *:
    """
    #ifndef UDP_GRO
    #define UDP_GRO 104
    #endif
    """
    int UDP_GRO
    pthread_t pthread_self() noexcept nogil


cdef inline int64_t monotonic_ns() noexcept nogil:
    cdef timespec at
    clock_gettime(CLOCK_MONOTONIC, &at)
    return <int64_t>at.tv_sec * 1000000000 + at.tv_nsec


cdef inline void four(sockaddr_in *out, uint32_t host, int port) noexcept nogil:
    """An IPv4 address of host-order parts."""
    memset(out, 0, sizeof(sockaddr_in))
    out.sin_family = AF_INET
    write16(<uint8_t *>&out.sin_port, port)
    write32(<uint8_t *>&out.sin_addr, host)


cdef inline size_t control_source(uint8_t *control, uint32_t host) noexcept nogil:
    """Send from this address of ours; the bytes written."""
    cdef cmsghdr *head = <cmsghdr *>control
    cdef in_pktinfo *info = <in_pktinfo *>CMSG_DATA(head)
    head.cmsg_len = CMSG_LEN(sizeof(in_pktinfo))
    head.cmsg_level = IPPROTO_IP
    head.cmsg_type = IP_PKTINFO
    memset(info, 0, sizeof(in_pktinfo))
    write32(<uint8_t *>&info.ipi_spec_dst, host)
    return CMSG_SPACE(sizeof(in_pktinfo))


cdef inline size_t control_segment(uint8_t *control, int size) noexcept nogil:
    """Cut what is sent into datagrams of this size (UDP GSO); the bytes written."""
    cdef cmsghdr *head = <cmsghdr *>control
    head.cmsg_len = CMSG_LEN(sizeof(uint16_t))
    head.cmsg_level = SOL_UDP
    head.cmsg_type = UDP_SEGMENT
    (<uint16_t *>CMSG_DATA(head))[0] = <uint16_t>size
    return CMSG_SPACE(sizeof(uint16_t))
