/* export.c - noting what is to be told: on the serving thread, so no JSON and no
 * waiting here. */
#include "export/export.h"

#include <assert.h>
#include <math.h>
#include <unistd.h>

#include "export/impl.h"
#include "live/live.h"

/* ---- opening and closing ------------------------------------------------ */

static void make_names(struct export_names *n, const struct export_config *c)
{
    double now = vt_unix_s();
    uint64_t run = vt_hash2((uint64_t)vt_wall_ns(), (uint64_t)getpid());

    n->model = c->model ? c->model : "";
    snprintf(n->instance, sizeof(n->instance), "%016llx", (unsigned long long)run);
    n->journey = c->journey;
    n->core_only = c->core_only;
    n->in_flight = c->engine && c->engine->async_scheduling ? 2 : 1;
    /* Seconds that a double holds to the nanosecond; a little more than ever needed. */
    n->base_ns = (int64_t)(now > 1000 ? now - 1000 : 0) * VT_SEC;
}

static int start_thread(struct export *x, struct vt_err *err)
{
    pthread_condattr_t attr;
    int rc;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&x->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&x->lock, NULL);
    rc = vt_thread_start(&x->thread, export_thread, x, err);
    x->has_thread = rc == VT_OK;
    if (x->has_thread)
        return VT_OK;
    pthread_cond_destroy(&x->wake);
    pthread_mutex_destroy(&x->lock);
    return rc;
}

int export_open(struct export **out, const struct export_config *c, struct vt_err *err)
{
    struct export *x = calloc(1, sizeof(*x));
    int rc;

    *out = NULL;
    if (!x)
        return vt_nomem(err);
    *x = (struct export){.c = *c, .queue.max = EXPORT_QUEUE_BYTES};
    x->c.time_scale = c->time_scale > 0 ? c->time_scale : 1;
    x->c.batch = c->batch > 0 ? c->batch : 512;
    x->c.period_ms = c->period_ms > 0 ? c->period_ms : 1000;
    make_names(&x->names, c);
    rc = export_sink_open(&x->sink, c, err);
    if (rc == VT_OK)
        rc = start_thread(x, err);
    if (rc != VT_OK) {
        export_close(x, 0);
        return rc;
    }
    *out = x;
    return VT_OK;
}

void export_close(struct export *x, uint32_t timeout_ms)
{
    if (!x)
        return;
    if (x->has_thread) {
        pthread_mutex_lock(&x->lock);
        atomic_store(&x->deadline_ns, vt_wall_ns() + timeout_ms * VT_MS + 1);
        pthread_cond_signal(&x->wake);
        pthread_mutex_unlock(&x->lock);
        pthread_join(x->thread, NULL);
        pthread_cond_destroy(&x->wake);
        pthread_mutex_destroy(&x->lock);
    }
    export_sink_close(&x->sink);
    vt_map_free(&x->lives);
    vt_buf_free(&x->queue);
    free(x);
}

struct export_stats export_stats(const struct export *x)
{
    return (struct export_stats){.sent = atomic_load(&x->sent),
                                 .dropped = atomic_load(&x->dropped),
                                 .failed = atomic_load(&x->failed)};
}

/* ---- the queue ---------------------------------------------------------- */

/* Room for a record, or NULL: the queue is full. Locked until queue_done(). */
static void *queue_room(struct export *x, size_t size)
{
    char *at;

    pthread_mutex_lock(&x->lock);
    at = x->queue.len + size < EXPORT_QUEUE_BYTES ? vt_buf_room(&x->queue, size) : NULL;
    if (!at) {
        pthread_mutex_unlock(&x->lock);
        atomic_fetch_add(&x->dropped, 1);
    }
    return at;
}

static void queue_done(struct export *x, const char *end)
{
    vt_buf_upto(&x->queue, end);
    assert(x->queue.len % 8 == 0); /* so that records stay aligned */
    if (++x->n_queued == x->c.batch)
        pthread_cond_signal(&x->wake);
    pthread_mutex_unlock(&x->lock);
}

/* ---- requests ----------------------------------------------------------- */

static bool hex_word(const char *text, size_t digits, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < digits; i++) {
        char c = text[i];

        if (c >= '0' && c <= '9')
            *out = *out << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            *out = *out << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    return true;
}

/* W3C's "00-trace-span-flags". A wrong one is as good as none. */
static bool read_parent(const char *text, struct export_note *n, bool *sampled)
{
    uint64_t version, trace[2], span, flags;

    if (!text || strlen(text) < 55 || text[2] != '-' || text[35] != '-' ||
        text[52] != '-' || !hex_word(text, 2, &version) || version == 0xff ||
        !hex_word(text + 3, 16, &trace[0]) || !hex_word(text + 19, 16, &trace[1]) ||
        !hex_word(text + 36, 16, &span) || !hex_word(text + 53, 2, &flags) ||
        (trace[0] | trace[1]) == 0 || span == 0)
        return false;
    n->trace[0] = trace[0];
    n->trace[1] = trace[1];
    n->parent = span;
    *sampled = flags & 1;
    return true;
}

static bool is_told(double rate, uint64_t hash)
{
    return rate >= 1 || (double)(vt_mix64(hash) >> 11) / 9007199254740992.0 < rate;
}

void export_request(struct export *x, const struct export_request *r)
{
    struct export_note n = {.r = *r};
    const char *finish = r->finish ? r->finish : "";
    size_t events = r->n_events * sizeof(*r->event), id_len = strlen(r->id);
    bool sampled = true;
    char *at, *p;

    read_parent(r->traceparent, &n, &sampled);
    if (!sampled || (x->c.journey &&
                     !is_told(x->c.journey_rate, vt_hash_bytes(r->id, id_len, r->tag))))
        return;
    n.id_bytes = (uint32_t)id_len + 1;
    n.finish_bytes = (uint32_t)strlen(finish) + 1;
    n.head.kind = EXPORT_A_REQUEST;
    n.head.size = /* a multiple of 8, so that records stay aligned */
        (uint32_t)((sizeof(n) + events + n.id_bytes + n.finish_bytes + 7) & ~(size_t)7);
    at = p = queue_room(x, n.head.size);
    if (!at)
        return;
    memcpy(p, &n, sizeof(n));
    p += sizeof(n);
    if (events > 0)
        memcpy(p, r->event, events);
    p += events;
    memcpy(p, r->id, n.id_bytes);
    memcpy(p + n.id_bytes, finish, n.finish_bytes);
    queue_done(x, at + n.head.size);
}

/* ---- steps -------------------------------------------------------------- */

/* What a snapshot says of a request's past, two numbers in one. Kept whether or not the
 * step is told, since a later one may be. */
static void follow(struct export *x, uint32_t engine, const struct vt_step_plan *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        const struct vt_item *it = &p->item[i];
        uint64_t *life;

        if (it->origin == VT_WAS_RUNNING)
            continue;
        life = vt_map_put(&x->lives, vt_hash2(engine, it->tag));
        if (!life)
            continue;
        if (it->origin == VT_NEW)
            *life = x->c.engine ? it->computed / x->c.engine->block_size : 0;
        else
            *life += (uint64_t)1 << 32;
    }
    for (uint32_t i = 0; i < p->n_finished; i++) {
        uint64_t *life = vt_map_get(&x->lives, vt_hash2(engine, p->finished[i]));

        if (life)
            vt_map_drop(&x->lives, life);
    }
}

static struct export_item item_of(const struct export *x, uint32_t engine,
                                  const struct vt_item *it)
{
    const uint64_t *life = vt_map_get(&x->lives, vt_hash2(engine, it->tag));
    uint32_t end = it->computed + it->tokens;
    struct export_item out = {.tag = it->tag,
                              .prompt = it->prompt_tokens,
                              .computed = it->computed,
                              .tokens = it->tokens,
                              .blocks = UINT32_MAX,
                              .effective = UINT32_MAX,
                              .cached_blocks = life ? (uint32_t)*life : 0,
                              .preemptions = life ? (uint32_t)(*life >> 32) : 0,
                              .decodes = !it->prefill};

    /* A decode computes the newest token, which may not be back yet. */
    if (!it->prefill)
        out.output = it->computed + 1 - it->prompt_tokens;
    else if (it->known > it->prompt_tokens)
        out.output = it->known - it->prompt_tokens;
    if (x->c.engine)
        out.blocks = (uint32_t)vt_blocks_of_request(x->c.engine, end);
    if (it->origin == VT_NEW)
        out.effective = it->prompt_tokens - it->computed;
    return out;
}

static int64_t step_ns(const struct export *x, double zero_unix_s, vt_ns at)
{
    /* As doubles, as events' times are: what was equal stays so. */
    return export_unix_ns(zero_unix_s + (double)at / x->c.time_scale / 1e9);
}

void export_step(struct export *x, uint32_t engine, const struct vt_step *s,
                 double zero_unix_s, const struct vt_sched *sched)
{
    const struct vt_step_plan *p = s->plan;
    struct export_step_note n = {
        .head.kind = EXPORT_A_STEP,
        .id = s->number + 1,
        .start_ns = step_ns(x, zero_unix_s, s->sched_ns),
        .end_ns = step_ns(x, zero_unix_s, s->sched_end_ns),
        .engine = engine,
        .n_items = p->n,
        .n_moves = s->offload ? s->offload->n_moved : 0,
        .running = p->running,
        .waiting = p->waiting + p->n_preempted,
        .prefills = p->n_prefills,
        .decodes = p->n_decodes,
        .prefill_tokens = p->prefill_tokens,
        .decode_tokens = p->decode_tokens,
        .finished = p->n_finished,
        .preempted = p->n_preempted,
        .blocks = x->c.engine ? x->c.engine->num_gpu_blocks - 1 : 0,
        .kv_usage = p->kv_usage,
    };
    uint32_t admitted = 0;
    char *at;

    if (!x->c.steps || engine >= EXPORT_MAX_ENGINES)
        return;
    follow(x, engine, p);
    if (!is_told(x->c.step_rate, vt_hash2(s->number, engine)))
        return;
    if (!is_told(x->c.rich_rate, vt_hash2(s->number, engine + EXPORT_MAX_ENGINES)))
        n.n_items = 0;
    for (uint32_t i = 0; i < p->n; i++)
        admitted += p->item[i].origin != VT_WAS_RUNNING;
    n.waiting -= admitted < n.waiting ? admitted : n.waiting;
    n.free_blocks = sched ? vt_sched_free_blocks(sched) : 0;
    n.head.size = (uint32_t)(sizeof(n) + n.n_items * sizeof(struct export_item) +
                             n.n_moves * sizeof(struct export_move));
    at = queue_room(x, n.head.size);
    if (!at)
        return;
    memcpy(at, &n, sizeof(n));
    for (uint32_t i = 0; i < n.n_items; i++) {
        struct export_item item = item_of(x, engine, &p->item[i]);

        memcpy(at + sizeof(n) + i * sizeof(item), &item, sizeof(item));
    }
    for (uint32_t i = 0; i < n.n_moves; i++) {
        const struct vt_kv_moved *k = &s->offload->moved[i];
        struct export_move move = {.id = k->id,
                                   .tag = k->tag,
                                   .given_ns = step_ns(x, zero_unix_s, k->given_ns),
                                   .ended_ns = step_ns(x, zero_unix_s, k->ended_ns),
                                   .blocks = k->chunks,
                                   .store = k->store};

        memcpy(at + sizeof(n) + n.n_items * sizeof(struct export_item) +
                   i * sizeof(move),
               &move, sizeof(move));
    }
    queue_done(x, at + n.head.size);
}
