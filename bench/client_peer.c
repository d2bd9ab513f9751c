/* client_peer.c - measures vtwin's load generator.
 *
 * client_peer serve EVENTS [GAP_US]: a server that costs next to nothing. It prints its
 * port and answers every POST with the same prepared stream of events, as fast as the
 * socket takes it; with a gap, one by one at absolute times, each event holding the
 * time at which it was handed to the kernel.
 * client_peer ask PORT REQUESTS CONCURRENCY EVENTS: asks it, and prints what a chunk
 * cost and, if events hold times, how much later the generator has them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "live/live.h"
#include "load/load.h"

enum { MAX_CONNS = 20000, DIGITS = 16 };

/* ---- the server -------------------------------------------------------- */

struct peer {
    int fd;
    char head[16384];
    size_t n_head;
    size_t body_left;
    bool answering;
    size_t sent;    /* bytes of the answer */
    size_t events;  /* of it that may be sent by now */
    int64_t due_ns; /* of the next one */
    size_t marked;  /* events of which the time was written */
};

static char *answer;
static size_t answer_len, *event_end, *event_text;
static size_t n_events;
static int64_t gap_ns;
static struct peer *peers[MAX_CONNS];
static size_t n_peers;

static int64_t now_ns(void)
{
    return vt_wall_ns();
}

static void put(const char *bytes, size_t len)
{
    answer = realloc(answer, answer_len + len);
    if (!answer)
        exit(3);
    memcpy(answer + answer_len, bytes, len);
    answer_len += len;
}

static void put_event(const char *json)
{
    char head[32];
    size_t len = strlen(json) + 8;

    put(head, (size_t)snprintf(head, sizeof(head), "%zx\r\ndata: ", len));
    put(json, strlen(json));
    put("\n\n\r\n", 4);
}

static void prepare(size_t n)
{
    char json[512];

    event_end = calloc(n + 2, sizeof(*event_end));
    event_text = calloc(n + 2, sizeof(*event_text));
    if (!event_end || !event_text)
        exit(3);
    put("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
        "transfer-encoding: chunked\r\n\r\n",
        95);
    for (size_t i = 0; i < n; i++) {
        snprintf(json, sizeof(json),
                 "{\"id\":\"cmpl-0123456789abcdef0123456789abcdef\",\"object\":"
                 "\"text_completion\",\"created\":1794700000,\"model\":\"tiny\","
                 "\"choices\":[{\"index\":0,\"text\":\"%016zu\",\"logprobs\":null,"
                 "\"finish_reason\":%s,\"stop_reason\":null,\"token_ids\":null}],"
                 "\"usage\":null}",
                 i, i + 1 == n ? "\"length\"" : "null");
        event_text[i] = answer_len;
        put_event(json);
        event_end[i] = answer_len;
        while (memcmp(answer + event_text[i], "\"text\":\"", 8) != 0)
            event_text[i]++;
        event_text[i] += 8;
    }
    snprintf(json, sizeof(json),
             "{\"id\":\"cmpl-0\",\"choices\":[],\"usage\":{\"prompt_tokens\":10,"
             "\"total_tokens\":%zu,\"completion_tokens\":%zu}}",
             n + 10, n);
    put_event(json);
    put_event("[DONE]");
    put("0\r\n\r\n", 5);
    event_end[n - 1] = answer_len;
    n_events = n;
}

static void drop(struct peer *p)
{
    close(p->fd);
    p->fd = -1;
    p->answering = false;
}

/* All share one answer: what is written into it is sent before another's turn. */
static void mark(struct peer *p)
{
    char digits[DIGITS + 8];

    for (; gap_ns > 0 && p->marked < p->events; p->marked++) {
        snprintf(digits, sizeof(digits), "%0*lld", DIGITS,
                 (long long)(now_ns() % INT64_C(10000000000000000)));
        memcpy(answer + event_text[p->marked], digits, DIGITS);
    }
}

/* Sends what may be sent; true: the answer is whole. */
static bool send_some(struct peer *p)
{
    size_t upto = p->events > 0 ? event_end[p->events - 1] : 0;

    mark(p);
    while (p->sent < upto) {
        ssize_t n = send(p->fd, answer + p->sent, upto - p->sent, MSG_NOSIGNAL);

        if (n < 0) {
            if (errno != EAGAIN)
                drop(p);
            return false;
        }
        p->sent += (size_t)n;
    }
    if (p->sent == answer_len)
        p->answering = false;
    return !p->answering;
}

static void answer_now(struct peer *p)
{
    p->answering = true;
    p->sent = p->marked = 0;
    p->events = gap_ns > 0 ? 1 : n_events;
    p->due_ns = now_ns() + gap_ns;
    (void)send_some(p);
}

static void take_request(struct peer *p)
{
    for (;;) {
        char *end, *length;
        ssize_t n =
            recv(p->fd, p->head + p->n_head, sizeof(p->head) - 1 - p->n_head, 0);
        size_t head_len;

        if (n <= 0) {
            if (n == 0 || errno != EAGAIN)
                drop(p);
            return;
        }
        if (p->body_left > 0) {
            p->body_left -= (size_t)n < p->body_left ? (size_t)n : p->body_left;
            p->n_head = 0;
            if (p->body_left == 0)
                answer_now(p);
            continue;
        }
        p->n_head += (size_t)n;
        p->head[p->n_head] = '\0';
        end = strstr(p->head, "\r\n\r\n");
        if (!end)
            continue;
        head_len = (size_t)(end + 4 - p->head);
        length = strcasestr(p->head, "content-length:");
        p->body_left = length && length < end ? strtoul(length + 15, NULL, 10) : 0;
        if (strncmp(p->head, "POST", 4) != 0) {
            static const char none[] =
                "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";

            (void)!send(p->fd, none, sizeof(none) - 1, MSG_NOSIGNAL);
            p->n_head = p->body_left = 0;
            continue;
        }
        p->body_left -=
            p->n_head - head_len < p->body_left ? p->n_head - head_len : p->body_left;
        p->n_head = 0;
        if (p->body_left == 0)
            answer_now(p);
    }
}

static void take_peers(int listener, int epoll)
{
    int fd, on = 1;

    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        struct peer *p = n_peers < MAX_CONNS ? calloc(1, sizeof(*p)) : NULL;
        struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLET,
                                .data = {.ptr = p}};

        if (!p) {
            close(fd);
            continue;
        }
        p->fd = fd;
        peers[n_peers++] = p;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        (void)epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
    }
}

static int64_t send_due(void)
{
    int64_t now = now_ns(), next = INT64_MAX;

    for (size_t i = 0; i < n_peers; i++) {
        struct peer *p = peers[i];

        if (!p->answering || p->events == n_events)
            continue;
        while (p->due_ns <= now && p->events < n_events) {
            p->events++;
            p->due_ns += gap_ns;
        }
        (void)send_some(p);
        if (p->answering && p->events < n_events && p->due_ns < next)
            next = p->due_ns;
    }
    return next;
}

static int serve(size_t n, int64_t gap_us)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(a);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0),
        epoll = epoll_create1(0);
    struct epoll_event e = {.events = EPOLLIN}, event[256];

    gap_ns = gap_us * 1000;
    prepare(n > 0 ? n : 1);
    if (bind(listener, (struct sockaddr *)&a, sizeof(a)) != 0 ||
        listen(listener, 4096) != 0 ||
        getsockname(listener, (struct sockaddr *)&a, &len) != 0 ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &e) != 0)
        return 3;
    printf("%d\n", ntohs(a.sin_port));
    fflush(stdout);
    vt_wait_sharply();
    for (;;) {
        int64_t next = gap_ns > 0 ? send_due() : INT64_MAX, left = next - now_ns();
        struct timespec t = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
        int k;

        if (left < 0)
            t = (struct timespec){0};
        k = epoll_pwait2(epoll, event, 256, next == INT64_MAX ? NULL : &t, NULL);
        for (int i = 0; i < k; i++) {
            struct peer *p = event[i].data.ptr;

            if (!p)
                take_peers(listener, epoll);
            else if (p->fd >= 0 && (event[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
                take_request(p);
            if (p && p->fd >= 0 && p->answering)
                (void)send_some(p);
        }
    }
}

/* ---- the client -------------------------------------------------------- */

static double cpu_s(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* From the time in an event to the generator's own stamp of it. */
static void tell_late(const struct vt_load_records *r, vt_ns zero)
{
    static struct vt_late late;

    for (size_t i = 0; i < r->n; i++) {
        const struct vt_load_record *q = &r->record[i];

        for (uint32_t k = 0; q->ok && (k + 1) * (size_t)DIGITS <= q->text_len; k++) {
            int64_t then;

            if (!vt_parse_i64(q->text + k * (size_t)DIGITS, DIGITS, &then) ||
                then < zero)
                return; /* no times in it */
            vt_late_add(&late, zero + q->stamp[k] - then);
        }
    }
    printf("stamped after it was sent: p50 %.1f us, p90 %.1f us, p99 %.1f us, max %.1f "
           "us\n",
           (double)vt_late_at(&late, 0.5) / 1e3, (double)vt_late_at(&late, 0.9) / 1e3,
           (double)vt_late_at(&late, 0.99) / 1e3, (double)late.max / 1e3);
}

static int ask(const char *port, size_t requests, uint32_t concurrency, uint32_t events)
{
    struct vt_load_turn turn = {
        .text = "Hello", .text_len = 5, .output_tokens = events};
    struct vt_load_session session = {.turn = &turn, .n_turns = 1};
    char url[64];
    struct vt_load_config c = {.base_url = url,
                               .model = "tiny",
                               .logprobs = -1,
                               .max_concurrency = concurrency,
                               .keep_texts = true};
    struct vt_load_records r = {0};
    struct vt_load_plan p = {0};
    struct vt_err err = {0};
    uint64_t chunks = 0;
    double cpu, seconds;
    vt_ns zero;
    int rc = VT_OK;

    snprintf(url, sizeof(url), "http://127.0.0.1:%s", port);
    for (size_t i = 0; i < requests && rc == VT_OK; i++)
        rc = vt_load_plan_add(&p, &session, &err);
    cpu = cpu_s();
    if (rc == VT_OK)
        rc = vt_load_run(&r, &p, NULL, &c, &err);
    if (rc != VT_OK) {
        fprintf(stderr, "%s\n", err.msg);
        return 3;
    }
    cpu = cpu_s() - cpu;
    zero = vt_wall_ns() - (vt_ns)((vt_unix_s() - r.start_unix_s) * 1e9);
    seconds = (double)r.end / 1e9;
    for (size_t i = 0; i < r.n; i++)
        chunks += r.record[i].n_stamps;
    printf("%zu requests, %llu chunks in %.2f s: %.0f chunks/s, %.2f us of CPU each "
           "(%.0f chunks/s of a core), %u stalls\n",
           r.n, (unsigned long long)chunks, seconds, (double)chunks / seconds,
           cpu * 1e6 / (double)chunks, (double)chunks / cpu, (unsigned)r.stalls);
    tell_late(&r, zero);
    vt_load_records_free(&r);
    vt_load_plan_free(&p);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "serve") == 0)
        return serve(strtoul(argv[2], NULL, 10),
                     argc > 3 ? strtoll(argv[3], NULL, 10) : 0);
    if (argc == 6 && strcmp(argv[1], "ask") == 0)
        return ask(argv[2], strtoul(argv[3], NULL, 10),
                   (uint32_t)strtoul(argv[4], NULL, 10),
                   (uint32_t)strtoul(argv[5], NULL, 10));
    fputs("usage: client_peer serve EVENTS [GAP_US] | ask PORT REQUESTS CONCURRENCY "
          "EVENTS\n",
          stderr);
    return 2;
}
