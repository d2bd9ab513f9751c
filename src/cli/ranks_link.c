/* ranks_link.c - sockets between rank 0 and the others. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli/ranks.h"
#include "live/live.h"

enum { WELCOME_S = 30, CONNECT_MS = 3000, GREETING_S = 5 };

struct greeting {
    unsigned char secret[16];
    uint32_t rank;
};

/* ---- a link ------------------------------------------------------------------ */

/* A machine that vanished without a word is noticed in half a minute. */
static void set_link_options(int fd)
{
    const struct {
        int level, name, value;
    } option[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},   {IPPROTO_TCP, TCP_KEEPIDLE, 10},
        {IPPROTO_TCP, TCP_KEEPINTVL, 5}, {IPPROTO_TCP, TCP_KEEPCNT, 4},
        {IPPROTO_TCP, TCP_NODELAY, 1},
    };

    for (size_t i = 0; i < VT_COUNT(option); i++)
        (void)setsockopt(fd, option[i].level, option[i].name, &option[i].value,
                         sizeof(option[i].value));
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* 0 seconds: none. */
static void set_io_timeout(int fd, int seconds)
{
    const struct timeval t = {.tv_sec = seconds};

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

/* Both sides know the secret: no stranger gets a trial to run, or to answer. */
static bool hear_greeting(int fd, const struct ranks_contact *c, uint32_t *rank)
{
    struct greeting g;

    if (recv(fd, &g, sizeof(g), MSG_WAITALL) != (ssize_t)sizeof(g))
        return false;
    *rank = g.rank;
    return memcmp(g.secret, c->secret, sizeof(g.secret)) == 0;
}

static bool send_greeting(int fd, const struct ranks_contact *c, uint32_t rank)
{
    struct greeting g = {.rank = rank};

    memcpy(g.secret, c->secret, sizeof(g.secret));
    return send(fd, &g, sizeof(g), MSG_NOSIGNAL) == (ssize_t)sizeof(g);
}

/* ---- rank 0 -------------------------------------------------------------------- */

int ranks_listen(struct ranks_contact *c, int *fd, struct vt_err *err)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    struct sockaddr *a = (struct sockaddr *)&any;
    socklen_t len = sizeof(any);
    struct ifaddrs *list = NULL;
    int rc;

    if (getifaddrs(&list) != 0)
        return vt_fail(err, VT_EIO, "no network addresses: %s", strerror(errno));
    /* The loopback's comes last: on another machine it leads elsewhere. */
    for (int own = 0; own <= 1; own++)
        for (const struct ifaddrs *i = list; i; i = i->ifa_next)
            if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET &&
                c->n_addresses < VT_COUNT(c->address)) {
                struct sockaddr_in in;

                memcpy(&in, i->ifa_addr, sizeof(in));
                if ((ntohl(in.sin_addr.s_addr) >> 24 == 127) == (own == 1))
                    c->address[c->n_addresses++] = in.sin_addr.s_addr;
            }
    freeifaddrs(list);
    if (getrandom(c->secret, sizeof(c->secret), 0) != (ssize_t)sizeof(c->secret))
        return vt_fail(err, VT_EIO, "no random numbers: %s", strerror(errno));
    *fd = socket(AF_INET, SOCK_STREAM, 0);
    if (*fd < 0 || bind(*fd, a, len) != 0 || listen(*fd, 128) != 0 ||
        getsockname(*fd, a, &len) != 0) {
        rc = vt_fail(err, VT_EIO, "no socket for other ranks: %s", strerror(errno));
        if (*fd >= 0)
            close(*fd);
        *fd = -1;
        return rc;
    }
    (void)fcntl(*fd, F_SETFD, FD_CLOEXEC);
    c->port = any.sin_port;
    return VT_OK;
}

/* Whether another rank has come. */
static bool admit_rank(const struct ranks_contact *c, int listening, int *to,
                       uint32_t n)
{
    int fd = accept(listening, NULL, NULL);
    uint32_t rank = 0;

    if (fd < 0)
        return false;
    set_link_options(fd);
    set_io_timeout(fd, GREETING_S);
    if (!hear_greeting(fd, c, &rank) || rank == 0 || rank >= n || to[rank] >= 0 ||
        !send_greeting(fd, c, 0)) {
        close(fd);
        return false;
    }
    set_io_timeout(fd, 0);
    to[rank] = fd;
    return true;
}

void ranks_welcome(const struct ranks_contact *c, int listening, int *to, uint32_t n)
{
    vt_ns until = vt_wall_ns() + WELCOME_S * VT_SEC;

    for (uint32_t come = 1; come < n;) {
        struct pollfd p = {.fd = listening, .events = POLLIN};
        vt_ns left = until - vt_wall_ns();

        if (left <= 0)
            break;
        if (poll(&p, 1, (int)(left / VT_MS) + 1) > 0 && admit_rank(c, listening, to, n))
            come++;
    }
    close(listening);
}

/* ---- others ---------------------------------------------------------- */

static int connect_to(uint32_t address, uint16_t port)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = port, .sin_addr = {.s_addr = address}};
    struct pollfd p = {.events = POLLOUT};
    int error = 0, flags;
    socklen_t len = sizeof(error);

    p.fd = socket(AF_INET, SOCK_STREAM, 0);
    if (p.fd < 0)
        return -1;
    flags = fcntl(p.fd, F_GETFL);
    (void)fcntl(p.fd, F_SETFL, flags | O_NONBLOCK);
    if ((connect(p.fd, (const struct sockaddr *)&to, sizeof(to)) != 0 &&
         errno != EINPROGRESS) ||
        poll(&p, 1, CONNECT_MS) <= 0 ||
        getsockopt(p.fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0) {
        close(p.fd);
        return -1;
    }
    (void)fcntl(p.fd, F_SETFL, flags);
    set_link_options(p.fd);
    return p.fd;
}

int ranks_connect(const struct ranks_contact *c, uint32_t rank, int *fd,
                  struct vt_err *err)
{
    uint32_t who = 1;

    for (uint32_t i = 0; i < c->n_addresses; i++) {
        *fd = connect_to(c->address[i], c->port);
        if (*fd < 0)
            continue;
        set_io_timeout(*fd, WELCOME_S);
        if (send_greeting(*fd, c, rank) && hear_greeting(*fd, c, &who) && who == 0) {
            set_io_timeout(*fd, 0);
            return VT_OK;
        }
        close(*fd);
        *fd = -1;
    }
    return vt_fail(err, VT_EIO, "rank %u finds no way to rank 0", (unsigned)rank);
}
