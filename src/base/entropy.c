/* entropy.c - random numbers that are never the same. */
#define _GNU_SOURCE /* syscall */
#include "base/base.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

bool vt_entropy(void *out, size_t n)
{
    /* By its number: glibc has had a name for it since 2.25 only. */
    ssize_t got = syscall(SYS_getrandom, out, n, 0);
    int fd;

    if (got >= 0)
        return (size_t)got == n;
    fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC); /* Linux before 3.17 */
    if (fd < 0)
        return false;
    got = read(fd, out, n);
    close(fd);
    return got >= 0 && (size_t)got == n;
}
