/* serve_peer.c - a client for bench/serve and bench/soak: many connections to one
 * OpenAI-compatible server, from one thread.
 *
 *   serve_peer HOST PORT complete CONNECTIONS SECONDS
 *   serve_peer HOST PORT stream STREAMS TOKENS GAP_US REQUESTS [PROMPT_WORDS]
 *
 * complete: completions of one token, one after the other on each connection.
 * stream: streamed completions of TOKENS tokens, STREAMS at a time, REQUESTS in all;
 * gaps between events, as the kernel received them, are held against GAP_US. Every
 * stream must have exactly TOKENS events with a choice, one that finishes it, and
 * [DONE].
 *
 * The model is called m. It knows no more of HTTP and JSON than that: it must cost far
 * less than who it measures. Prints one JSON object. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 1 << 16, TAIL = 4096 };

struct conn {
    int fd;
    uint32_t events, stops; /* of the stream under way */
    int64_t asked, last;
    uint32_t n_tail;
    char tail[TAIL]; /* what a read ended within */
};

static struct sockaddr_in address;
static char ask[1 << 20];
static size_t ask_len;
static int epoll_fd;
static int64_t realtime_offset; /* of CLOCK_REALTIME from CLOCK_MONOTONIC */

/* What is measured. */
static double *gap_us, *ttft_us;
static size_t n_gaps, cap_gaps, n_ttft, cap_ttft;
static uint64_t done, wrong, chunks, want_tokens;

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "serve_peer: %s: %s\n", what, strerror(errno));
    exit(3);
}

static void keep(double **array, size_t *n, size_t *cap, double value)
{
    if (*n == *cap) {
        *cap = *cap > 0 ? 2 * *cap : 4096;
        *array = realloc(*array, *cap * sizeof(double));
        if (*array == NULL)
            die("memory");
    }
    (*array)[(*n)++] = value;
}

static void open_conn(struct conn *c)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    int one = 1;

    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        die("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(c->fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one));
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &e) != 0)
        die("epoll_ctl");
}

static void send_ask(struct conn *c)
{
    c->events = c->stops = c->n_tail = 0;
    c->asked = now_ns();
    c->last = 0;
    if (send(c->fd, ask, ask_len, MSG_NOSIGNAL) != (ssize_t)ask_len)
        die("send");
}

static void make_ask(const char *host, int tokens, int stream, int words)
{
    static char body[1 << 20];
    int n = snprintf(body, sizeof(body), "{\"model\":\"m\",\"prompt\":\"Hello");

    for (int i = 1; i < words && n < (int)sizeof(body) - 256; i++)
        n += snprintf(body + n, sizeof(body) - (size_t)n, " world");
    n += snprintf(body + n, sizeof(body) - (size_t)n,
                  "\",\"max_tokens\":%d,\"ignore_eos\":true,\"stream\":%s}", tokens,
                  stream ? "true" : "false");
    ask_len = (size_t)snprintf(ask, sizeof(ask),
                               "POST /v1/completions HTTP/1.1\r\nHost: %s\r\n"
                               "Content-Type: application/json\r\n"
                               "Content-Length: %d\r\n\r\n%s",
                               host, n, body);
}

/* ---- one completion after the other ---------------------------------- */

/* A whole answer has come when its body is as long as its head says. */
static int whole_answer(struct conn *c, const char *bytes, size_t len)
{
    const char *head, *length;

    if (c->n_tail + len >= TAIL)
        return -1;
    memcpy(c->tail + c->n_tail, bytes, len);
    c->n_tail += (uint32_t)len;
    c->tail[c->n_tail] = '\0';
    head = strstr(c->tail, "\r\n\r\n");
    length = strcasestr(c->tail, "content-length:");
    if (head == NULL || length == NULL)
        return 0;
    if (strncmp(c->tail, "HTTP/1.1 200", 12) != 0)
        return -1;
    return c->n_tail >= (size_t)(head + 4 - c->tail) + strtoul(length + 15, NULL, 10);
}

static void complete(struct conn *conn, int n, double seconds)
{
    static char buffer[BUFFER];
    struct epoll_event e[256];
    int64_t end;

    for (int i = 0; i < n; i++)
        open_conn(&conn[i]);
    end = now_ns() + (int64_t)(seconds * 1e9);
    for (int i = 0; i < n; i++)
        send_ask(&conn[i]);
    while (now_ns() < end) {
        int ready = epoll_wait(epoll_fd, e, 256, 100);

        for (int i = 0; i < ready; i++) {
            struct conn *c = e[i].data.ptr;
            ssize_t got = recv(c->fd, buffer, sizeof(buffer), 0);
            int is = got > 0 ? whole_answer(c, buffer, (size_t)got) : -1;

            if (is == 0)
                continue;
            if (is < 0) {
                fprintf(stderr, "serve_peer: %.200s\n", c->tail);
                wrong++;
                return;
            }
            keep(&ttft_us, &n_ttft, &cap_ttft, (double)(now_ns() - c->asked) / 1e3);
            done++;
            send_ask(c);
        }
    }
}

/* ---- streams --------------------------------------------------------- */

/* Events with a choice, up to the last whole one; the rest waits in the tail. Returns
 * 1 at [DONE], -1 if it is no stream. */
static int take_events(struct conn *c, char *bytes, size_t len, int64_t at)
{
    char *from = bytes, *end = bytes + len, *stop;
    int over = 0;

    while ((stop = memmem(from, (size_t)(end - from), "\n\n", 2)) != NULL) {
        size_t n = (size_t)(stop - from);

        if (memmem(from, n, "[DONE]", 6) != NULL) {
            over = 1;
        } else if (memmem(from, n, "\"choices\":[{", 12) != NULL) {
            c->events++;
            chunks++;
            c->stops += memmem(from, n, "\"finish_reason\":\"length\"", 24) != NULL;
            if (c->last > 0)
                keep(&gap_us, &n_gaps, &cap_gaps, (double)(at - c->last) / 1e3);
            else
                keep(&ttft_us, &n_ttft, &cap_ttft, (double)(at - c->asked) / 1e3);
            c->last = at;
        } else {
            return -1;
        }
        from = stop + 2;
    }
    if ((size_t)(end - from) >= TAIL)
        return -1;
    c->n_tail = (uint32_t)(end - from);
    memcpy(c->tail, from, c->n_tail);
    return over;
}

/* When the kernel had received what was read: how long this client took to come and
 * read it is not the server's doing. */
static int64_t received_at(struct msghdr *m)
{
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h != NULL; h = CMSG_NXTHDR(m, h))
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec t;

            memcpy(&t, CMSG_DATA(h), sizeof(t));
            return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - realtime_offset;
        }
    return now_ns();
}

static int take(struct conn *c)
{
    static char buffer[TAIL + BUFFER];
    char control[256];
    struct iovec v = {buffer + c->n_tail, BUFFER};
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof(control)};
    ssize_t got = recvmsg(c->fd, &m, 0);
    int64_t at = received_at(&m);

    if (got <= 0)
        return -1;
    memcpy(buffer, c->tail, c->n_tail);
    return take_events(c, buffer, c->n_tail + (size_t)got, at);
}

static void stream(struct conn *conn, int n, uint64_t requests)
{
    struct epoll_event e[256];
    uint64_t sent = 0;

    for (int i = 0; i < n; i++)
        open_conn(&conn[i]);
    for (int i = 0; i < n && sent < requests; i++, sent++)
        send_ask(&conn[i]);
    while (done < requests && wrong == 0) {
        int ready = epoll_wait(epoll_fd, e, 256, 60000);

        if (ready == 0)
            wrong++;
        for (int i = 0; i < ready; i++) {
            struct conn *c = e[i].data.ptr;
            int is = take(c);

            if (is == 0)
                continue;
            done++;
            if (is < 0 || c->events != want_tokens || c->stops != 1) {
                fprintf(stderr, "serve_peer: a stream ended with %u events, %u ends\n",
                        c->events, c->stops);
                wrong++;
            }
            if (sent < requests) {
                send_ask(c);
                sent++;
            }
        }
    }
}

/* ---- the report ------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void put_quantiles(const char *name, double *v, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += v[i];
    qsort(v, n, sizeof(*v), by_value);
    printf(",\"%s\":{\"n\":%zu,\"mean\":%.3f,\"p50\":%.1f,\"p99\":%.1f,\"max\":%.1f}",
           name, n, n > 0 ? sum / (double)n : 0, n > 0 ? v[n / 2] : 0,
           n > 0 ? v[(size_t)((double)(n - 1) * 0.99)] : 0, n > 0 ? v[n - 1] : 0);
}

int main(int argc, char **argv)
{
    int is_stream = argc > 3 && strcmp(argv[3], "stream") == 0;
    int n = argc > 5 ? (int)strtol(argv[4], NULL, 10) : 0;
    struct rlimit files = {.rlim_cur = 60000, .rlim_max = 60000};
    double gap = 0, wall;
    struct conn *conn;
    struct timespec real;
    struct rusage use;
    int64_t start;

    if (n <= 0 || (is_stream && argc < 8)) {
        fprintf(stderr, "usage: serve_peer HOST PORT complete CONNECTIONS SECONDS\n"
                        "       serve_peer HOST PORT stream STREAMS TOKENS GAP_US "
                        "REQUESTS [PROMPT_WORDS]\n");
        return 2;
    }
    (void)setrlimit(RLIMIT_NOFILE, &files);
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)strtol(argv[2], NULL, 10));
    if (inet_pton(AF_INET, argv[1], &address.sin_addr) != 1)
        die("address");
    conn = calloc((size_t)n, sizeof(*conn));
    epoll_fd = epoll_create1(0);
    if (conn == NULL || epoll_fd < 0)
        die("start");
    clock_gettime(CLOCK_REALTIME, &real);
    start = now_ns();
    realtime_offset = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec - start;
    if (is_stream) {
        want_tokens = strtoul(argv[5], NULL, 10);
        gap = strtod(argv[6], NULL);
        make_ask(argv[1], (int)want_tokens, 1,
                 argc > 8 ? (int)strtol(argv[8], NULL, 10) : 2);
        stream(conn, n, strtoul(argv[7], NULL, 10));
    } else {
        make_ask(argv[1], 1, 0, 2);
        complete(conn, n, strtod(argv[5], NULL));
    }
    wall = (double)(now_ns() - start) / 1e9;
    getrusage(RUSAGE_SELF, &use);
    printf("{\"wall_s\":%.4f,\"requests\":%llu,\"wrong\":%llu,\"chunks\":%llu,"
           "\"peer_cpu_s\":%.3f",
           wall, (unsigned long long)done, (unsigned long long)wrong,
           (unsigned long long)chunks,
           (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
               (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6);
    put_quantiles("ttft_us", ttft_us, n_ttft);
    put_quantiles("gap_us", gap_us, n_gaps);
    for (size_t i = 0; i < n_gaps; i++)
        gap_us[i] = fabs(gap_us[i] - gap);
    put_quantiles("deviation_us", gap_us, n_gaps);
    printf("}\n");
    return wrong > 0;
}
