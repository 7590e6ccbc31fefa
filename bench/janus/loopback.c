/* Preloaded into Janus: lo is an interface like others.
 *
 * Janus listens on no loopback interface, and libnice ties its sockets to the one it listens on (IP_UNICAST_IF), from
 * where the generator's addresses in 127.0.0.0/8 are not reached. Its own files stay as Debian ships them, and nothing
 * of this is called once a connection's candidates are known. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stddef.h>

int getifaddrs(struct ifaddrs **list)
{
    int (*next)(struct ifaddrs **) = (int (*)(struct ifaddrs **))dlsym(RTLD_NEXT, "getifaddrs");
    if (next == NULL) {
        errno = ENOSYS;
        return -1;
    }
    int status = next(list);
    for (struct ifaddrs *one = status == 0 ? *list : NULL; one != NULL; one = one->ifa_next)
        one->ifa_flags &= ~(unsigned int)IFF_LOOPBACK;
    return status;
}
