/* play.c - vt_play(): the two threads and what they share. */
#include "wire/play/play.h"

#include <pthread.h>
#include <string.h>

enum { MAX_SOCKETS = 1 << 15 };

double play_timestamp(const struct play *p, vt_ns at)
{
    return (double)vt_axis_wall(&p->axis, at) / 1e9;
}

/* ---- notes ------------------------------------------------------------ */

struct note *note_new(enum note_kind kind, uint32_t engine)
{
    struct note *n = calloc(1, sizeof(*n));

    if (n) {
        n->kind = kind;
        n->engine = engine;
    }
    return n;
}

struct note *note_with(enum note_kind kind, uint32_t engine, const void *bytes,
                       size_t len)
{
    struct note *n = note_new(kind, engine);

    if (!n)
        return NULL;
    n->bytes = malloc(len + 1);
    if (!n->bytes) {
        free(n);
        return NULL;
    }
    memcpy(n->bytes, bytes, len);
    n->bytes[len] = '\0';
    n->n_bytes = len;
    return n;
}

void note_free(struct note *n)
{
    if (!n)
        return;
    play_request_free(n->request);
    for (uint32_t i = 0; i < n->n_push; i++)
        sock_close(n->push[i]);
    sock_close(n->coordinator);
    free(n->bytes);
    free(n->id);
    free(n->push);
    free(n);
}

void play_send_note(struct play *p, struct vt_inbox *to, struct note *n)
{
    if (!n)
        atomic_store(&p->failed, true);
    else
        vt_inbox_put(to, &n->item);
}

void play_log(const struct play *p, const char *fmt, ...)
{
    char line[512];
    va_list args;

    if (!p->c->log)
        return;
    va_start(args, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    for (char *c = line; *c != '\0'; c++) /* names come from anywhere */
        if ((unsigned char)*c < ' ' || *c == '\x7f')
            *c = '?';
    p->c->log(p->c->user, line);
}

void play_complain(const struct play *p, struct complaints *c, const char *fmt, ...)
{
    enum { ALL = 8 };
    char what[400];
    va_list args;
    unsigned long long n = ++c->n;

    if (n > ALL && (n & (n - 1)) != 0)
        return;
    va_start(args, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    if (n <= ALL)
        play_log(p, "%s", what);
    else
        play_log(p, "%s (%llu messages like this so far)", what, n);
}

/* ---- opening and closing ---------------------------------------------- */

static int check_config(const struct vt_play_config *c, struct vt_err *err)
{
    int rc = vt_engine_config_check(&c->engine, err);

    if (rc != VT_OK)
        return rc;
    if (c->engine.compat != VT_COMPAT_VLLM)
        return vt_fail(err, VT_EINPUT, "only vLLM's own rules can be played");
    if ((rc = vt_blocks_check(&c->engine, err)))
        return rc;
    if (c->n_engines == 0 || c->first_rank + c->n_engines > 65536)
        return vt_fail(err, VT_EINPUT, "engine ranks must be 0 to 65535");
    if (!(c->time_scale > 0))
        return vt_fail(err, VT_EINPUT, "time-scale must be above 0");
    return VT_OK;
}

static int open_play(struct play *p, struct vt_err *err)
{
    int rc;

    if ((rc = vt_inbox_open(&p->to_engines, err)) ||
        (rc = vt_inbox_open(&p->to_intake, err)) || (rc = sock_ctx(&p->ctx, err)))
        return rc;
    /* Ranks and clients take a few each. */
    (void)zmq_ctx_set(p->ctx, ZMQ_MAX_SOCKETS, MAX_SOCKETS);
    if ((rc = script_source_open(&p->scripts, p->c, err)) ||
        (rc = failure_open(&p->failures, p->c, err)) ||
        (rc = play_spans_open(p, err)) || (rc = play_engines_open(p, err)))
        return rc;
    return play_intake_open(p, err);
}

static void drop_notes(struct vt_inbox *b)
{
    struct vt_inbox_item *at = vt_inbox_take(b), *next;

    for (; at; at = next) {
        next = at->next;
        note_free((struct note *)at);
    }
}

/* ---- running ---------------------------------------------------------- */

static void *run_engines(void *arg)
{
    struct play *p = arg;

    p->engines_rc = play_engines_run(p, &p->engines_err);
    play_send_note(p, &p->to_intake, note_new(NOTE_OVER, 0));
    return NULL;
}

static int run_threads(struct play *p, struct vt_err *err)
{
    pthread_t thread;
    int rc = vt_thread_start(&thread, run_engines, p, err);

    if (rc != VT_OK)
        return rc;
    rc = play_intake_run(p, err);
    play_send_note(p, &p->to_engines,
                   note_new(NOTE_STOP, 0)); /* a second one does no harm */
    pthread_join(thread, NULL);
    if (p->engines_rc == VT_OK)
        return rc;
    if (err)
        *err = p->engines_err;
    return p->engines_rc;
}

int vt_play(const struct vt_play_config *c, struct vt_play_summary *out,
            struct vt_err *err)
{
    struct play p = {.c = c,
                     .engine = c->engine,
                     .axis = {.zero_ns = vt_wall_ns(), .scale = c->time_scale}};
    int rc;

    *out = (struct vt_play_summary){0};
    p.to_engines.fd = p.to_intake.fd = -1;
    p.engine.kv_events = c->kv.on;
    for (uint32_t i = 0; i < VT_COUNT(p.none_hash); i++)
        vt_none_hash(VT_VLLM_OLDEST + i, c->kv.hash_seed, p.none_hash[i]);
    if (!(rc = check_config(c, err)) && !(rc = open_play(&p, err)))
        rc = run_threads(&p, err);
    if (p.engines)
        play_engines_sums(&p, out);
    if (p.scripts)
        out->matched = script_source_stats(p.scripts).matched;
    play_intake_close(&p);
    play_engines_close(&p);
    export_close(p.spans, 2000);
    drop_notes(&p.to_engines);
    drop_notes(&p.to_intake);
    failure_close(p.failures);
    script_source_close(p.scripts);
    if (p.ctx)
        zmq_ctx_term(p.ctx); /* lets what was sent leave, as long as it may linger */
    vt_inbox_close(&p.to_intake);
    vt_inbox_close(&p.to_engines);
    return rc;
}
