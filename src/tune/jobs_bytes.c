/* jobs_bytes.c - all of so many bytes through a socket. */
#include "tune/jobs.h"

#include <errno.h>
#include <sys/socket.h>

bool jobs_send_all(int fd, const void *bytes, size_t len)
{
    const char *p = bytes;

    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL); /* a dead peer is no signal */

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

bool jobs_recv_all(int fd, void *bytes, size_t len)
{
    char *p = bytes;

    while (len > 0) {
        ssize_t n = recv(fd, p, len, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}
