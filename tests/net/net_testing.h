/* net_testing.h - a server and its clients in one thread: a client says something, the
 * server has turns until the client has heard what it waits for. A test gets a stage
 * from stage_setup(), changes its config, and opens it; stage_teardown() ends all. */
#ifndef VT_TESTS_NET_TESTING_H
#define VT_TESTS_NET_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "live/live.h"
#include "net/net.h"

enum { N_DUE = 64, N_CLIENTS = 64 };

struct stage {
    struct net_config c;
    struct net *n;
    struct net_conn *due[N_DUE]; /* asked for /later, in order */
    size_t n_due, n_gone, n_requests, n_refused;
    int refused; /* the last status */
    int client[N_CLIENTS];
    size_t n_clients;
    struct vt_buf log; /* "METHOD path(body) " of each request */
    char *taken;       /* a body */
};

/* ---- the server's side ----------------------------------------------- */

static inline void reply_text(struct net_conn *c, int status, const char *text,
                              size_t len)
{
    struct net_reply r = {
        .status = status, .type = "application/json", .body = text, .len = len};

    net_answer(c, &r);
}

static void on_request(void *user, struct net_conn *c, const struct net_request *r)
{
    struct stage *s = user;

    s->n_requests++;
    if (r->body_len < 100)
        vt_buf_printf(&s->log, "%s %s(%s) ", r->method, r->path, r->body);
    assert_null(net_data(c));
    net_set_data(c, s);
    if (strncmp(r->path, "/later", 6) == 0) {
        assert_true(s->n_due < N_DUE);
        s->due[s->n_due++] = c;
    } else if (strcmp(r->path, "/take") == 0) {
        free(s->taken);
        s->taken = net_take_body(c);
        reply_text(c, 200, s->taken, strlen(s->taken));
    } else if (strcmp(r->path, "/large") == 0) {
        size_t len = 4 << 20;
        char *body = malloc(len);

        assert_non_null(body);
        memset(body, 'x', len);
        reply_text(c, 200, body, len);
        free(body);
    } else {
        reply_text(c, 200, r->body, r->body_len);
    }
}

static void on_gone(void *user, struct net_conn *c)
{
    struct stage *s = user;
    size_t i = 0;

    assert_ptr_equal(net_data(c), s);
    while (i < s->n_due && s->due[i] != c)
        i++;
    assert_true(i < s->n_due); /* only of who is owed something, and once */
    s->due[i] = s->due[--s->n_due];
    s->n_gone++;
    net_put(c, "x", 1); /* harmless */
    net_end(c);
}

static void on_refused(void *user, int status)
{
    struct stage *s = user;

    s->n_refused++;
    s->refused = status;
}

static inline void stage_open(struct stage *s)
{
    struct net_handler h = {s, on_request, on_gone, on_refused};
    struct vt_err err = {0};

    if (net_open(&s->n, &s->c, &h, &err) != VT_OK)
        fail_msg("%s", err.msg);
}

static inline int stage_setup(void **state)
{
    struct stage *s = calloc(1, sizeof(*s));

    if (!s)
        return -1;
    s->c = (struct net_config){
        .host = "127.0.0.1",
        .max_body_bytes = 1 << 20,
        .max_header_bytes = 16384,
        .max_unsent_bytes = 1 << 20,
        .max_connections = 10000,
        .header_timeout_ns = 60 * VT_SEC,
        .body_timeout_ns = 60 * VT_SEC,
        .idle_timeout_ns = 60 * VT_SEC,
    };
    *state = s;
    return 0;
}

static inline int stage_teardown(void **state)
{
    struct stage *s = *state;

    for (size_t i = 0; i < s->n_clients; i++)
        close(s->client[i]);
    net_close(s->n);
    vt_buf_free(&s->log);
    free(s->taken);
    free(s);
    return 0;
}

static inline void turn(struct stage *s)
{
    struct vt_err err;

    assert_int_equal(net_wait(s->n, vt_wall_ns() + VT_MS, false, &err), VT_OK);
    net_flush(s->n);
}

/* Turns until `condition`; a hang ends by the deadline. */
#define TURN_UNTIL(s, condition)                        \
    do {                                                \
        vt_ns deadline_ = vt_wall_ns() + 20 * VT_SEC;   \
        while (!(condition)) {                          \
            if (vt_wall_ns() > deadline_)               \
                fail_msg("never came: %s", #condition); \
            turn(s);                                    \
        }                                               \
    } while (0)

/* ---- the clients' side ----------------------------------------------- */

static inline int client_open(struct stage *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(net_port(s->n))};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0 && s->n_clients < N_CLIENTS);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    s->client[s->n_clients++] = fd;
    return fd;
}

static inline void client_close(struct stage *s, int fd)
{
    for (size_t i = 0; i < s->n_clients; i++)
        if (s->client[i] == fd)
            s->client[i] = s->client[--s->n_clients];
    close(fd);
}

static inline void say_bytes(struct stage *s, int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno != EAGAIN)
            return; /* the server has had enough */
        if (n < 0) {
            turn(s);
            continue;
        }
        bytes += n;
        len -= (size_t)n;
    }
}

static inline void say(struct stage *s, int fd, const char *text)
{
    say_bytes(s, fd, text, strlen(text));
}

/* Receives what there is into the buffer; false at the end of the stream. */
static inline bool hear_some(int fd, struct vt_buf *b)
{
    char bytes[65536];
    ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (n > 0)
        vt_buf_add(b, bytes, (size_t)n);
    return n > 0 || (n < 0 && errno == EAGAIN);
}

static inline size_t count(const struct vt_buf *b, const char *what)
{
    size_t n = 0;

    for (const char *p = b->data; p && (p = strstr(p, what)); p += strlen(what))
        n++;
    return n;
}

/* Turns until `what` was heard n times; what was heard is the caller's to free. */
static inline struct vt_buf hear(struct stage *s, int fd, const char *what, size_t n)
{
    struct vt_buf b = {0};
    vt_ns deadline = vt_wall_ns() + 20 * VT_SEC;

    while (count(&b, what) < n) {
        turn(s);
        if ((!hear_some(fd, &b) && count(&b, what) < n) || vt_wall_ns() > deadline)
            fail_msg("waited for %zu of \"%s\", heard: %s", n, what,
                     b.data ? b.data : "nothing");
    }
    return b;
}

/* All that is said until the server closes. */
static inline struct vt_buf hear_out(struct stage *s, int fd)
{
    struct vt_buf b = {0};
    vt_ns deadline = vt_wall_ns() + 20 * VT_SEC;

    vt_buf_str(&b, "");
    while (hear_some(fd, &b)) {
        if (vt_wall_ns() > deadline)
            fail_msg("not closed; heard: %s", b.data);
        turn(s);
    }
    return b;
}

/* Replaces what is different each time: the date. */
static inline void forget_date(struct vt_buf *b)
{
    for (char *p = b->data; p && (p = strstr(p, "date: ")); p += 6)
        if (strlen(p) > 37 && memcmp(p + 31, " GMT", 4) == 0)
            memset(p + 6, '#', 25);
}

#endif
