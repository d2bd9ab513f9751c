/* tap_harness.h - a recorder in a thread, between a frontend and engines of our own. */
#ifndef VT_TESTS_WIRE_TAP_HARNESS_H
#define VT_TESTS_WIRE_TAP_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "engine.h"
#include "wire/frontend/frontend.h"
#include "wire/wire.h"

enum { WAIT_MS = 20000, MAX_LOG = 64 };

struct harness {
    char dir[64];
    char trace[96], wire[96], stats[96];
    struct vt_tap_config config;
    struct vt_tap_summary sum;
    struct vt_err err;
    int rc;
    pthread_t thread;
    bool running;
    atomic_bool stop;
    pthread_mutex_t lock; /* of what follows */
    char line[MAX_LOG][512];
    size_t n_lines;
};

static struct vt_err problem; /* of the last call that failed */

#define ok(call)                                    \
    do {                                            \
        if ((call) != VT_OK)                        \
            fail_msg("%s: %s", #call, problem.msg); \
    } while (0)

static inline void keep_line(void *user, const char *line)
{
    struct harness *h = user;

    pthread_mutex_lock(&h->lock);
    if (h->n_lines < MAX_LOG)
        snprintf(h->line[h->n_lines++], sizeof(h->line[0]), "%s", line);
    pthread_mutex_unlock(&h->lock);
}

static inline bool asked_to_stop(void *user)
{
    struct harness *h = user;

    return atomic_load(&h->stop);
}

static inline void *run_tap(void *arg)
{
    struct harness *h = arg;

    h->rc = vt_tap(&h->config, &h->sum, &h->err);
    return NULL;
}

/* Whether a line with this text was told; copies it to `out` if that is not NULL. */
static inline bool was_told(struct harness *h, const char *text, char out[512])
{
    bool found = false;

    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->n_lines && !found; i++) {
        found = strstr(h->line[i], text) != NULL;
        if (found && out)
            snprintf(out, 512, "%s", h->line[i]);
    }
    pthread_mutex_unlock(&h->lock);
    return found;
}

static inline void nap(void)
{
    const struct timespec t = {.tv_nsec = 5 * (long)VT_MS};

    nanosleep(&t, NULL);
}

static inline void wait_told(struct harness *h, const char *text, char out[512])
{
    for (int i = 0; i < WAIT_MS / 5; i++, nap())
        if (was_told(h, text, out))
            return;
    fail_msg("nobody said '%s'", text);
}

/* Files in a directory of the test's own. */
static inline void harness_init(struct harness *h)
{
    *h = (struct harness){.dir = "/tmp/vt_test_tap.XXXXXX"};
    assert_non_null(mkdtemp(h->dir));
    snprintf(h->trace, sizeof(h->trace), "%s/t.jsonl", h->dir);
    snprintf(h->wire, sizeof(h->wire), "%s/w.jsonl", h->dir);
    snprintf(h->stats, sizeof(h->stats), "%s/s.jsonl", h->dir);
    h->config = (struct vt_tap_config){
        .engines = "tcp://127.0.0.1:*",
        .input = "tcp://127.0.0.1:*",
        .output = "tcp://127.0.0.1:*",
        .trace_out = h->trace,
        .wire_out = h->wire,
        .step_stats_out = h->stats,
        .user = h,
        .log = keep_line,
        .stopped = asked_to_stop,
    };
    pthread_mutex_init(&h->lock, NULL);
}

/* Where engines find it. */
static inline void tap_start(struct harness *h, const char *frontend,
                             char address[SOCK_ADDRESS])
{
    char line[512], *at;

    h->config.frontend = frontend;
    assert_int_equal(pthread_create(&h->thread, NULL, run_tap, h), 0);
    h->running = true;
    wait_told(h, "waiting for engines on ", line);
    at = strstr(line, "tcp://");
    snprintf(address, SOCK_ADDRESS, "%.*s", (int)strcspn(at, ","), at);
}

static inline int tap_stop(struct harness *h)
{
    atomic_store(&h->stop, true);
    assert_int_equal(pthread_join(h->thread, NULL), 0);
    h->running = false;
    return h->rc;
}

static inline void harness_free(struct harness *h)
{
    if (h->running)
        tap_stop(h);
    unlink(h->trace);
    unlink(h->wire);
    unlink(h->stats);
    assert_int_equal(rmdir(h->dir), 0);
    pthread_mutex_destroy(&h->lock);
}

/* ---- both ends -------------------------------------------------------- */

static inline struct vt_bytes registration(struct vt_buf *b, const char *version,
                                           uint32_t rank)
{
    struct wire_ready r = {.max_model_len = 4096,
                           .num_gpu_blocks = 1000,
                           .block_size = 16,
                           .vllm_version = version,
                           .instance_id = "scripted",
                           .world_size = 1,
                           .tensor_parallel_size = 2,
                           .max_num_seqs = 64,
                           .max_num_batched_tokens = 2048,
                           .data_parallel_size = 2,
                           .data_parallel_rank = rank};

    vt_buf_clear(b);
    wire_ready_write(b, &r);
    return (struct vt_bytes){b->data, b->len};
}

struct engine_thread {
    struct scripted *e;
    uint32_t index;
    const char *address, *version, *hash;
    pthread_t thread;
    struct vt_err err;
    int rc;
};

/* Engines join while the frontend accepts. */
static inline void *join_frontend(void *arg)
{
    struct engine_thread *t = arg;
    struct vt_buf b = {0};

    t->rc = scripted_open(t->e, t->index, t->address, &t->err);
    if (t->rc == VT_OK)
        t->rc = scripted_join(t->e, WAIT_MS, registration(&b, t->version, t->index),
                              t->hash, &t->err);
    vt_buf_free(&b);
    return NULL;
}

/* n engines and the frontend, connected through whatever is at the address. */
static inline void connect_all(struct vt_frontend *f, struct scripted *e, uint32_t n,
                               const char *address)
{
    static const char *const hashes[] = {"hash-of-0", "hash-of-1"};
    struct engine_thread t[2];

    for (uint32_t i = 0; i < n; i++) {
        t[i] = (struct engine_thread){.e = &e[i],
                                      .index = i,
                                      .address = address,
                                      .version = "0.26.0",
                                      .hash = n > 1 ? hashes[i] : NULL};
        assert_int_equal(pthread_create(&t[i].thread, NULL, join_frontend, &t[i]), 0);
    }
    ok(vt_frontend_accept(f, WAIT_MS, &problem));
    for (uint32_t i = 0; i < n; i++) {
        pthread_join(t[i].thread, NULL);
        if (t[i].rc != VT_OK)
            fail_msg("engine %u: %s", i, t[i].err.msg);
    }
}

/* With a coordinator also comes a parallel_config. */
static inline void open_frontend(struct vt_frontend **f, const char *handshake,
                                 uint32_t clients, uint32_t engines, bool coordinator)
{
    static const uint8_t parallel[] = {0x81, 0xa4, 's', 'i', 'z', 'e', 0x02};
    struct vt_frontend_config c = {.handshake = handshake,
                                   .n_clients = clients,
                                   .n_engines = engines,
                                   .coordinator = coordinator,
                                   .line = vt_wire_line_find("0.26")};

    if (coordinator)
        c.parallel_config = (struct vt_bytes){parallel, sizeof(parallel)};
    ok(vt_frontend_open(f, &c, &problem));
}

static inline struct mp_span text(const char *s)
{
    return (struct mp_span){(const uint8_t *)s, strlen(s)};
}

/* Takes a request at the engine, whatever it is. */
static inline void take_one(struct scripted *s, uint32_t client)
{
    ok(scripted_take(s, client, WAIT_MS, &problem));
    assert_true(s->in.n > 0);
}

static inline const struct vt_frontend_message *next_message(struct vt_frontend *f)
{
    const struct vt_frontend_message *m = NULL;

    ok(vt_frontend_next(f, WAIT_MS, &m, &problem));
    assert_non_null(m);
    return m;
}

#endif
