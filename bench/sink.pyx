# cython: language_level=3, cdivision=True
"""The receiving half of a load generator: hundreds of subscribers on one socket, told apart by destination address.

Media is counted by its RTP header, which SRTP leaves readable; STUN and DTLS, and all media of the subscribers that are
looked at closely, go to Python. One `poll` at a time, without the GIL.
"""

include "../sfu/plane/native/system.pxi"

cdef extern from *:
    struct in_pktinfo:
        int ipi_ifindex
        in_addr ipi_spec_dst
        in_addr ipi_addr
    int IPPROTO_IP, IP_PKTINFO

cdef enum:
    COUNT = 128
    ROOM = 2048
    SSRCS = 4                   # per subscriber
    MAX_RAW = 512               # datagrams handed to Python by one poll
    NAP_NS = 500000

cdef struct Flow:
    uint32_t ssrc
    int64_t packets
    int64_t octets
    int64_t first
    int64_t highest
    int64_t backwards

cdef struct Subscriber:
    Flow flows[SSRCS]
    int flow_count

cdef struct Raw:
    uint32_t host
    int length
    uint8_t bytes[ROOM]


cdef class Sink:
    """`hosts` subscribers have the addresses from `first_host` on; the first `watched` of them are looked at closely."""

    cdef int fd
    cdef uint32_t first_host
    cdef int hosts
    cdef int watched
    cdef Subscriber *subscribers
    cdef Raw *raws
    cdef int raw_count
    cdef mmsghdr messages[COUNT]
    cdef iovec vectors[COUNT]
    cdef uint8_t *bytes
    cdef uint8_t controls[COUNT * 64]
    cdef sockaddr_in sources[COUNT]

    def __cinit__(self, int fd, uint32_t first_host, int hosts, int watched):
        cdef int at
        self.fd = fd
        self.first_host = first_host
        self.hosts = hosts
        self.watched = watched
        self.subscribers = <Subscriber *>calloc(hosts, sizeof(Subscriber))
        self.raws = <Raw *>malloc(MAX_RAW * sizeof(Raw))
        self.bytes = <uint8_t *>malloc(COUNT * ROOM)
        if not (self.subscribers and self.raws and self.bytes):
            raise MemoryError
        for at in range(COUNT):
            self.vectors[at].iov_base = self.bytes + at * ROOM
            self.vectors[at].iov_len = ROOM
            memset(&self.messages[at], 0, sizeof(mmsghdr))
            self.messages[at].msg_hdr.msg_name = &self.sources[at]
            self.messages[at].msg_hdr.msg_iov = &self.vectors[at]
            self.messages[at].msg_hdr.msg_iovlen = 1
            self.messages[at].msg_hdr.msg_control = self.controls + at * 64

    def __dealloc__(self):
        free(self.subscribers)
        free(self.raws)
        free(self.bytes)

    def poll(self, double seconds):
        """Receive until something for Python came and the socket is empty, or for that long: `(host, datagram)` pairs."""
        cdef double until = monotonic() + seconds
        cdef int at
        self.raw_count = 0
        with nogil:
            while True:
                while self._receive() == COUNT and self.raw_count + COUNT <= MAX_RAW:
                    pass
                if self.raw_count or not self._wait(until - monotonic()):
                    break
        return [
            (self.raws[at].host, self.raws[at].bytes[: self.raws[at].length])
            for at in range(self.raw_count)
        ]

    cdef bint _wait(self, double left) noexcept nogil:
        """Sleep a little, off the socket: a receiver that waits on it is woken by the sender, packet by packet, on the
        sender's account; receivers on other machines are not."""
        cdef timespec nap
        if left <= 0:
            return False
        nap.tv_sec = 0
        nap.tv_nsec = NAP_NS
        ppoll(NULL, 0, &nap, NULL)
        return True

    cdef int _receive(self) noexcept nogil:
        cdef int at, count
        cdef uint32_t host
        cdef cmsghdr *control
        for at in range(COUNT):
            self.messages[at].msg_hdr.msg_namelen = sizeof(sockaddr_in)
            self.messages[at].msg_hdr.msg_controllen = 64
        count = recvmmsg(self.fd, self.messages, COUNT, MSG_DONTWAIT, NULL)
        for at in range(count):
            host = 0
            control = CMSG_FIRSTHDR(&self.messages[at].msg_hdr)
            if control != NULL and control.cmsg_level == IPPROTO_IP and control.cmsg_type == IP_PKTINFO:
                host = read32(<uint8_t *>&(<in_pktinfo *>CMSG_DATA(control)).ipi_addr)
            self._datagram(host, self.bytes + at * ROOM, <int>self.messages[at].msg_len)
        return count

    cdef void _datagram(self, uint32_t host, uint8_t *data, int length) noexcept nogil:
        cdef int64_t number = <int64_t>host - self.first_host
        cdef bint ours = 0 <= number < self.hosts
        cdef bint media = length >= 12 and 128 <= data[0] <= 191
        if ours and media and not 192 <= data[1] <= 223:
            self._count(&self.subscribers[number], data, length)
        if (not media or not ours or number < self.watched) and self.raw_count < MAX_RAW and length <= ROOM:
            self.raws[self.raw_count].host = host
            self.raws[self.raw_count].length = length
            memcpy(self.raws[self.raw_count].bytes, data, length)
            self.raw_count += 1

    cdef void _count(self, Subscriber *subscriber, uint8_t *data, int length) noexcept nogil:
        cdef uint32_t ssrc = read32(data + 8)
        cdef uint16_t sequence = read16(data + 2)
        cdef Flow *flow = NULL
        cdef int64_t number
        cdef int at
        for at in range(subscriber.flow_count):
            if subscriber.flows[at].ssrc == ssrc:
                flow = &subscriber.flows[at]
        if flow == NULL:
            if subscriber.flow_count == SSRCS:
                return
            flow = &subscriber.flows[subscriber.flow_count]
            subscriber.flow_count += 1
            flow[0] = Flow(ssrc, 0, 0, 0x10000 + sequence, 0xFFFF + sequence, 0)
        number = flow.highest + sequence_delta(sequence, <uint16_t>flow.highest)
        if number > flow.highest:
            flow.highest = number
        else:
            flow.backwards += 1
        flow.packets += 1
        flow.octets += length

    def flows(self):
        """`(subscriber, ssrc, packets, bytes, highest, backwards)` of each stream; `highest` is an extended number."""
        cdef int at, one
        cdef Flow *flow
        told = []
        for at in range(self.hosts):
            for one in range(self.subscribers[at].flow_count):
                flow = &self.subscribers[at].flows[one]
                told.append((at, flow.ssrc, flow.packets, flow.octets, flow.highest, flow.backwards))
        return told
