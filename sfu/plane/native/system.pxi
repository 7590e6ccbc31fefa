# What the plane takes from the C library and the kernel.

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memmove, memset
from libc.math cimport fabs, floor, fmax, fmin, pow, rint

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE 1
    #endif
    #include <errno.h>
    #include <poll.h>
    #include <pthread.h>
    #include <signal.h>
    #include <sys/eventfd.h>
    #include <sys/resource.h>
    #include <sys/socket.h>
    #include <netinet/in.h>
    #include <netinet/udp.h>
    #include <time.h>
    #include <unistd.h>
    #ifndef UDP_SEGMENT
    #define UDP_SEGMENT 103
    #endif
    #ifndef SOL_UDP
    #define SOL_UDP 17
    #endif
    typedef __int128 int128_t;
    """
    ctypedef long long int128_t
    int errno
    int EAGAIN, EINTR, ENOBUFS, EWOULDBLOCK, ECONNREFUSED, EINVAL, EIO, EMSGSIZE, ENOMEM
    int AF_INET, AF_INET6, SOL_SOCKET, SOL_UDP, UDP_SEGMENT, SO_TIMESTAMPNS, SCM_TIMESTAMPNS
    int MSG_DONTWAIT, MSG_NOSIGNAL, MSG_TRUNC, EFD_NONBLOCK, EFD_CLOEXEC, POLLIN, POLLOUT
    int IPPROTO_IP, IPPROTO_IPV6, IP_PKTINFO, IPV6_PKTINFO
    int CLOCK_MONOTONIC, CLOCK_REALTIME

    ctypedef unsigned int socklen_t
    struct timespec:
        long tv_sec
        long tv_nsec
    int clock_gettime(int clock, timespec *at) noexcept nogil

    struct in_addr:
        uint32_t s_addr
    struct in6_addr:
        uint8_t s6_addr[16]
    struct sockaddr_in:
        unsigned short sin_family
        uint16_t sin_port
        in_addr sin_addr
    struct sockaddr_in6:
        unsigned short sin6_family
        uint16_t sin6_port
        in6_addr sin6_addr
    struct in_pktinfo:
        in_addr ipi_spec_dst
        in_addr ipi_addr
    struct in6_pktinfo:
        in6_addr ipi6_addr
    struct iovec:
        void *iov_base
        size_t iov_len
    struct msghdr:
        void *msg_name
        socklen_t msg_namelen
        iovec *msg_iov
        size_t msg_iovlen
        void *msg_control
        size_t msg_controllen
        int msg_flags
    struct mmsghdr:
        msghdr msg_hdr
        unsigned int msg_len
    struct cmsghdr:
        size_t cmsg_len
        int cmsg_level
        int cmsg_type
    cmsghdr *CMSG_FIRSTHDR(msghdr *message) noexcept nogil
    cmsghdr *CMSG_NXTHDR(msghdr *message, cmsghdr *cmsg) noexcept nogil
    uint8_t *CMSG_DATA(cmsghdr *cmsg) noexcept nogil
    size_t CMSG_LEN(size_t length) noexcept nogil
    size_t CMSG_SPACE(size_t length) noexcept nogil
    int recvmmsg(int fd, mmsghdr *messages, unsigned int count, int flags, timespec *timeout) noexcept nogil
    int sendmmsg(int fd, mmsghdr *messages, unsigned int count, int flags) noexcept nogil
    int setsockopt(int fd, int level, int name, const void *value, socklen_t length) noexcept nogil
    int getsockopt(int fd, int level, int name, void *value, socklen_t *length) noexcept nogil

    struct pollfd:
        int fd
        short events
        short revents
    int ppoll(pollfd *fds, unsigned long count, const timespec *timeout, const void *mask) noexcept nogil
    int eventfd(unsigned int value, int flags) noexcept nogil
    int close(int fd) noexcept nogil
    ssize_t read(int fd, void *buffer, size_t length) noexcept nogil
    ssize_t write(int fd, const void *buffer, size_t length) noexcept nogil

    ctypedef struct pthread_mutex_t:
        pass
    ctypedef unsigned long pthread_t
    ctypedef struct sigset_t:
        pass
    int PRIO_PROCESS
    int getpriority(int which, unsigned int who) noexcept nogil
    int setpriority(int which, unsigned int who, int nice) noexcept nogil

    int SIG_SETMASK
    int sigfillset(sigset_t *signals) noexcept nogil
    int pthread_sigmask(int how, const sigset_t *signals, sigset_t *before) noexcept nogil
    int pthread_setname_np(pthread_t thread, const char *name) noexcept nogil
    int pthread_mutex_init(pthread_mutex_t *mutex, void *attributes) noexcept nogil
    int pthread_mutex_lock(pthread_mutex_t *mutex) noexcept nogil
    int pthread_mutex_unlock(pthread_mutex_t *mutex) noexcept nogil
    int pthread_mutex_destroy(pthread_mutex_t *mutex) noexcept nogil
    int pthread_create(
        pthread_t *thread, void *attributes, void *(*run)(void *) noexcept nogil, void *argument
    ) noexcept nogil
    int pthread_join(pthread_t thread, void **result) noexcept nogil


cdef inline double monotonic() noexcept nogil:
    """Seconds, the clock of every `now`."""
    cdef timespec at
    clock_gettime(CLOCK_MONOTONIC, &at)
    return at.tv_sec + at.tv_nsec * 1e-9


cdef inline int64_t wall_ns() noexcept nogil:
    """Nanoseconds, the clock of the kernel's receive time-stamps."""
    cdef timespec at
    clock_gettime(CLOCK_REALTIME, &at)
    return <int64_t>at.tv_sec * 1000000000 + at.tv_nsec


cdef inline uint16_t read16(const uint8_t *at) noexcept nogil:
    return <uint16_t>(at[0] << 8 | at[1])


cdef inline uint32_t read32(const uint8_t *at) noexcept nogil:
    return <uint32_t>at[0] << 24 | <uint32_t>at[1] << 16 | <uint32_t>at[2] << 8 | at[3]


cdef inline uint64_t read64(const uint8_t *at) noexcept nogil:
    return <uint64_t>read32(at) << 32 | read32(at + 4)


cdef inline void write16(uint8_t *at, uint32_t value) noexcept nogil:
    at[0] = <uint8_t>(value >> 8)
    at[1] = <uint8_t>value


cdef inline void write32(uint8_t *at, uint32_t value) noexcept nogil:
    write16(at, value >> 16)
    write16(at + 2, value)


cdef inline uint32_t network_order(uint32_t value) noexcept nogil:
    cdef uint32_t ordered = 0
    write32(<uint8_t *>&ordered, value)
    return ordered


cdef inline int sequence_delta(uint16_t newer, uint16_t older) noexcept nogil:
    """How far `newer` is ahead, -32768..32767."""
    return <int>((newer - older + 0x8000) & 0xFFFF) - 0x8000


cdef inline int64_t timestamp_delta(uint32_t newer, uint32_t older) noexcept nogil:
    return <int64_t>((<uint64_t>newer - older + 0x80000000u) & 0xFFFFFFFFu) - <int64_t>0x80000000


cdef inline int64_t modulo(int64_t value, int64_t size) noexcept nogil:
    """Never negative."""
    cdef int64_t rest = value % size
    return rest + size if rest < 0 else rest
