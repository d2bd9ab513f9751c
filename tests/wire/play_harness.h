/* play_harness.h - vt_play() in a thread of its own and a frontend of ours before it,
 * in one process. A test gets a stage from stage_setup(), sets what it wants otherwise,
 * and opens it; stage_teardown() ends all of it, also after a failed assertion. */
#ifndef VT_TESTS_WIRE_PLAY_HARNESS_H
#define VT_TESTS_WIRE_PLAY_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "play_heard.h"

enum {
    WAIT_MS = 10000, /* reached only where something hangs */
    VOCABULARY = 1000,
};

struct stage {
    struct vt_play_config c;
    struct vt_frontend_config fc;
    const char *model; /* inline spec */
    struct vt_frontend *f;
    struct heard h;      /* what the frontend heard */
    char dir[32];        /* for its files, which go with it */
    char handshake[256]; /* where the frontend is */

    pthread_t thread;
    bool playing;
    atomic_bool stop;
    int rc; /* of vt_play(), once it is over; as the next two */
    struct vt_err err;
    struct vt_play_summary sum;
    bool dies;     /* as it is told to */
    vt_ns stop_ns; /* how long it took to stop */
    struct vt_latency *latency;

    pthread_mutex_t lock; /* of what follows */
    char log[1 << 16];
    size_t log_len;
    uint32_t n_lines;
    const char *stall_at; /* a line that holds the thread that logs it, once, */
    int stall_ms;         /* for so long */
};

/* ---- time ------------------------------------------------------------- */

static inline vt_ns wall_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (vt_ns)t.tv_sec * VT_SEC + t.tv_nsec;
}

static inline void pause_ms(int ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

    while (nanosleep(&t, &t) != 0)
        ;
}

/* ---- what vt_play() says and asks ------------------------------------- */

static inline void stage_log(void *user, const char *line)
{
    struct stage *s = user;
    size_t len = strlen(line);
    int stall_ms = 0;

    pthread_mutex_lock(&s->lock);
    s->n_lines++;
    if (s->log_len + len + 2 < sizeof(s->log)) {
        memcpy(s->log + s->log_len, line, len);
        s->log_len += len;
        s->log[s->log_len++] = '\n';
        s->log[s->log_len] = '\0';
    }
    if (s->stall_at != NULL && strstr(line, s->stall_at) != NULL) {
        s->stall_at = NULL;
        stall_ms = s->stall_ms;
    }
    pthread_mutex_unlock(&s->lock);
    if (stall_ms > 0)
        pause_ms(stall_ms);
}

static inline bool stage_stopped(void *user)
{
    struct stage *s = user;

    return atomic_load(&s->stop);
}

static inline bool stage_logged(struct stage *s, const char *words)
{
    bool found;

    pthread_mutex_lock(&s->lock);
    found = strstr(s->log, words) != NULL;
    pthread_mutex_unlock(&s->lock);
    return found;
}

static inline uint32_t stage_lines(struct stage *s)
{
    uint32_t n;

    pthread_mutex_lock(&s->lock);
    n = s->n_lines;
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* The next line with these words holds who logs it for so long. */
static inline void stall_at(struct stage *s, const char *words, int ms)
{
    pthread_mutex_lock(&s->lock);
    s->stall_at = words;
    s->stall_ms = ms;
    pthread_mutex_unlock(&s->lock);
}

static inline void clear_log(struct stage *s)
{
    pthread_mutex_lock(&s->lock);
    s->log_len = s->n_lines = 0;
    s->log[0] = '\0';
    pthread_mutex_unlock(&s->lock);
}

static inline void wait_for_log(struct stage *s, const char *words)
{
    for (int i = 0; i < WAIT_MS / 5; i++) {
        if (stage_logged(s, words))
            return;
        pause_ms(5);
    }
    fail_msg("'%s' is not in the log:\n%s", words, s->log);
}

/* ---- life ------------------------------------------------------------- */

static inline void stage_defaults(struct vt_play_config *c, struct stage *s)
{
    *c = (struct vt_play_config){
        .n_engines = 1,
        .headless = true,
        .time_scale = 1,
        .dtype = "bfloat16",
        .vllm_version = "0.32.0",
        .instance_id = "twin",
        .tensor_parallel_size = 1,
        .log_stats = true,
        .vocab_size = VOCABULARY,
        .user = s,
        .log = stage_log,
        .stopped = stage_stopped,
    };
    vt_engine_config_init(&c->engine);
    c->engine.num_gpu_blocks = 1024;
    c->engine.max_model_len = 4096;
}

static inline int stage_setup(void **state)
{
    struct stage *s = calloc(1, sizeof(*s));

    if (s == NULL)
        return -1;
    stage_defaults(&s->c, s);
    s->model = "null:";
    /* Not TCP: an engine of somebody else's that looks for its frontend may find ours
     * at a port that was that one's. */
    s->fc.handshake = "ipc://*";
    s->fc.data = "ipc://*";
    (void)snprintf(s->dir, sizeof(s->dir), "/tmp/vt-play-XXXXXX");
    pthread_mutex_init(&s->lock, NULL);
    *state = s;
    return mkdtemp(s->dir) == NULL ? -1 : 0;
}

static inline void *stage_run(void *arg)
{
    struct stage *s = arg;

    s->rc = vt_play(&s->c, &s->sum, &s->err);
    return NULL;
}

/* The thread is over when this returns: s->rc says how. */
static inline void stage_join(struct stage *s)
{
    if (!s->playing)
        return;
    pthread_join(s->thread, NULL);
    s->playing = false;
}

/* An abort of nobody, so that it looks up at once. */
static inline void wake(struct stage *s)
{
    static const uint8_t type = WIRE_ABORT;
    struct vt_bytes frame[2] = {{&type, 1}, {"\x90", 1}};
    struct vt_err err;

    if (s->f != NULL && s->playing && !s->dies &&
        vt_frontend_send(s->f, 0, 0, frame, 2, &err) != VT_OK)
        print_message("  %s\n", err.msg);
}

static inline void stage_stop(struct stage *s)
{
    vt_ns from = wall_ns();

    atomic_store(&s->stop, true);
    wake(s);
    stage_join(s);
    s->stop_ns = wall_ns() - from;
}

static inline void remove_dir(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;
    char name[512];

    while (d != NULL && (e = readdir(d)) != NULL) {
        (void)snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
        (void)unlink(name);
    }
    if (d != NULL)
        closedir(d);
    (void)rmdir(path);
}

static inline int stage_teardown(void **state)
{
    struct stage *s = *state;

    stage_stop(s);
    vt_frontend_close(s->f);
    heard_free(&s->h);
    vt_latency_close(s->latency);
    remove_dir(s->dir);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return 0;
}

static inline void open_front(struct stage *s)
{
    struct vt_err err = {0};

    if (vt_frontend_open(&s->f, &s->fc, &err) != VT_OK)
        fail_msg("%s", err.msg);
    if (!s->playing) /* else it has the address */
        (void)snprintf(s->handshake, sizeof(s->handshake), "%s",
                       vt_frontend_address(s->f));
}

static inline void start_play(struct stage *s)
{
    struct vt_err err = {0};

    if (s->latency == NULL &&
        vt_model_open_inline(&s->latency, s->model, &err) != VT_OK)
        fail_msg("%s", err.msg);
    s->c.model = s->latency;
    s->c.handshake = s->handshake;
    atomic_store(&s->stop, false);
    assert_int_equal(pthread_create(&s->thread, NULL, stage_run, s), 0);
    s->playing = true;
}

static inline void accept_engines(struct stage *s)
{
    struct vt_err err = {0};

    if (vt_frontend_accept(s->f, WAIT_MS, &err) != VT_OK)
        fail_msg("%s; the engine says:\n%s", err.msg, s->log);
}

/* The engine ends, and the frontend with it; another pair may be opened. */
static inline void stage_end(struct stage *s)
{
    stage_stop(s);
    vt_frontend_close(s->f);
    s->f = NULL;
}

/* Frontend, engine, handshake. */
static inline void stage_open(struct stage *s)
{
    open_front(s);
    start_play(s);
    accept_engines(s);
}

/* ---- asking ----------------------------------------------------------- */

/* Tokens that are the same for the same seed; good until the next call. */
static inline const uint32_t *prompt_of(uint32_t seed, uint32_t n)
{
    static uint32_t token[1 << 16];

    assert_true(n <= VT_COUNT(token));
    for (uint32_t i = 0; i < n; i++)
        token[i] = (uint32_t)(vt_hash2(seed, i) % VOCABULARY);
    return token;
}

static inline void add(struct stage *s, uint32_t client, uint32_t engine,
                       const struct vt_frontend_request *r)
{
    struct vt_err err = {0};

    if (vt_frontend_add(s->f, client, engine, r, &err) != VT_OK)
        fail_msg("%s", err.msg);
}

static inline void ask(struct stage *s, const char *id, uint32_t n_prompt,
                       uint32_t max_tokens)
{
    struct vt_frontend_request r = {
        .id = id,
        .prompt = prompt_of(1, n_prompt),
        .n_prompt = n_prompt,
        .max_tokens = max_tokens,
    };

    add(s, 0, 0, &r);
}

/* The same with a sampling map of its own. */
static inline void ask_with(struct stage *s, const char *id, uint32_t n_prompt,
                            const struct vt_buf *sampling)
{
    struct vt_frontend_request r = {
        .id = id,
        .prompt = prompt_of(1, n_prompt),
        .n_prompt = n_prompt,
        .sampling = {sampling->data, sampling->len},
    };

    assert_false(sampling->failed);
    add(s, 0, 0, &r);
}

static inline void abort_one(struct stage *s, const char *id)
{
    struct vt_err err = {0};

    assert_int_equal(vt_frontend_abort(s->f, 0, 0, &id, 1, &err), VT_OK);
}

static inline void send_frames(struct stage *s, uint32_t client,
                               const struct vt_bytes *frame, size_t n)
{
    struct vt_err err = {0};

    if (vt_frontend_send(s->f, client, 0, frame, n, &err) != VT_OK)
        fail_msg("%s", err.msg);
}

/* One type byte and one payload. */
static inline void send_typed(struct stage *s, uint32_t client, int type,
                              const void *bytes, size_t len)
{
    uint8_t byte = (uint8_t)type;
    struct vt_bytes frame[2] = {{&byte, 1}, {bytes, len}};

    send_frames(s, client, frame, 2);
}

static inline void put_key_u64(struct vt_buf *b, const char *key, uint64_t v)
{
    mp_put_str(b, key);
    mp_put_u64(b, v);
}

static inline void put_key_ids(struct vt_buf *b, const char *key, const uint32_t *id,
                               uint32_t n)
{
    mp_put_str(b, key);
    mp_put_array(b, n);
    for (uint32_t i = 0; i < n; i++)
        mp_put_u64(b, id[i]);
}

/* ---- hearing --------------------------------------------------------- */

/* The next message, which is also heard; NULL: none came in time. */
static inline const struct vt_frontend_message *next_within(struct stage *s, int ms)
{
    const struct vt_frontend_message *m;
    struct vt_err err = {0};

    if (vt_frontend_next(s->f, ms, &m, &err) != VT_OK)
        fail_msg("%s", err.msg);
    if (m != NULL)
        hear(&s->h, m);
    return m;
}

static inline const struct vt_frontend_message *next(struct stage *s)
{
    const struct vt_frontend_message *m = next_within(s, WAIT_MS);

    if (m == NULL)
        fail_msg("nothing comes; %u requests have finished, the engine says:\n%s",
                 s->h.finished, s->log);
    if (m->dead && !s->dies)
        fail_msg("the engine has died; it says:\n%s", s->log);
    return m;
}

static inline void hear_finished(struct stage *s, uint32_t n)
{
    while (s->h.finished < n)
        (void)next(s);
}

static inline void hear_chunks(struct stage *s, const char *id, size_t n)
{
    while (told_of(&s->h, id) == NULL || told_of(&s->h, id)->n_chunks < n)
        (void)next(s);
}

/* Until nothing has come for so long. */
static inline void hear_rest(struct stage *s, int quiet_ms)
{
    while (next_within(s, quiet_ms) != NULL)
        ;
}

/* ---- calls ------------------------------------------------------------ */

/* Calls and waits for the answer; what else comes meanwhile is heard. */
static inline const struct vt_frontend_message *
call(struct stage *s, uint64_t id, const char *method, const struct vt_buf *args)
{
    struct vt_bytes bytes = {args != NULL ? args->data : NULL,
                             args != NULL ? args->len : 0};
    const struct vt_frontend_message *m;
    struct vt_err err = {0};

    assert_int_equal(vt_frontend_call(s->f, 0, 0, id, method, bytes, &err), VT_OK);
    do
        m = next(s);
    while (!m->has_utility);
    assert_true(m->call_id == id);
    return m;
}

/* The result as JSON, "failed" where it did. Good until the next call. */
static inline const char *call_json(struct stage *s, const char *method,
                                    const struct vt_buf *args)
{
    static struct vt_buf text;
    static uint64_t id;
    const struct vt_frontend_message *m = call(s, ++id, method, args);
    static char out[4096];

    vt_buf_clear(&text);
    if (m->failure != NULL)
        vt_buf_str(&text, "failed");
    else
        assert_true(mp_json(&text, (struct mp_span){m->result.at, m->result.len}));
    (void)snprintf(out, sizeof(out), "%s", text.data);
    vt_buf_free(&text);
    return out;
}

static inline void assert_call(struct stage *s, const char *method,
                               const struct vt_buf *args, const char *want)
{
    assert_string_equal(call_json(s, method, args), want);
}

/* pause_scheduler, sleep: a word and a flag or number. */
static inline void pause_args(struct vt_buf *b, const char *mode, bool clear)
{
    vt_buf_clear(b);
    mp_put_array(b, 2);
    mp_put_str(b, mode);
    mp_put_bool(b, clear);
}

/* Requests that are asked between these two start in one step. */
static inline void hold_all(struct stage *s)
{
    struct vt_buf args = {0};

    pause_args(&args, "keep", false);
    assert_call(s, "pause_scheduler", &args, "[null,null]");
    vt_buf_free(&args);
}

/* By the time the first call is answered, what was asked before it has arrived. */
static inline void let_go(struct stage *s)
{
    assert_call(s, "is_scheduler_paused", NULL, "[null,true]");
    assert_call(s, "resume_scheduler", NULL, "[null,null]");
}

/* ---- tests ------------------------------------------------------------ */

#define PLAY_TEST(f) cmocka_unit_test_setup_teardown(f, stage_setup, stage_teardown)

#endif
