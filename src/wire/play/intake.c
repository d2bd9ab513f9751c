/* intake.c - the intake thread: listens, and passes on. It also publishes what the
 * engine thread has no time for. */
#include "wire/play/intake.h"

#include <string.h>

enum {
    TICK_MS = 100,   /* how often a stop is asked for */
    BURST = 256,     /* messages of one client before others are looked at */
    FLUSH = 1 << 16, /* bytes of statistics before they are written */
};

/* ---- statistics ------------------------------------------------------- */

static int write_stats(struct play_intake *t, struct vt_err *err)
{
    int rc = VT_OK;

    if (t->stats.len > 0)
        rc = vt_append_put(t->stats_file, &t->stats, err);
    vt_buf_clear(&t->stats);
    return rc;
}

static int add_stats(struct play_intake *t, const struct note *n, struct vt_err *err)
{
    struct mp_in in;
    struct vt_jw w;

    mp_in_init(&in, n->bytes, n->n_bytes);
    (void)mp_array(&in);
    mp_skip(&in);
    mp_skip(&in);
    vt_jw_init(&w, &t->stats, NULL);
    vt_jw_map(&w, NULL);
    vt_jw_ms(&w, "ts_ms", vt_axis_wall(&t->p->axis, n->at_ns) - t->p->axis.zero_ns);
    vt_jw_u64(&w, "engine", n->engine);
    vt_jw_key(&w, "scheduler");
    (void)mp_json(&t->stats, mp_raw(&in));
    vt_jw_end(&w);
    vt_buf_char(&t->stats, '\n');
    if (t->stats.failed)
        return vt_nomem(err);
    return t->stats.len >= FLUSH ? write_stats(t, err) : VT_OK;
}

/* ---- notes from the engine thread ------------------------------------- */

static int take_notes(struct play_intake *t, struct vt_err *err)
{
    struct vt_inbox_item *at, *next;
    int rc = VT_OK;

    vt_inbox_calm(&t->p->to_intake);
    for (at = vt_inbox_take(&t->p->to_intake); at; at = next) {
        struct note *n = (struct note *)at;

        next = at->next;
        if (n->kind == NOTE_KV && rc == VT_OK) {
            struct vt_kv_batch *b = vt_kv_publisher_batch(t->kv[n->engine]);

            vt_buf_add(&b->events, n->bytes, n->n_bytes);
            b->n_events += n->n_events;
            rc = vt_kv_publisher_flush(t->kv[n->engine], n->unix_s, err);
        } else if (n->kind == NOTE_STATS && rc == VT_OK) {
            rc = add_stats(t, n, err);
        } else if (n->kind == NOTE_OVER) {
            t->over = true;
        }
        note_free(n);
    }
    return rc;
}

/* ---- life ------------------------------------------------------------- */

int play_intake_open(struct play *p, struct vt_err *err)
{
    const struct vt_play_config *c = p->c;
    struct play_intake *t = calloc(1, sizeof(*t));
    uint32_t n = c->n_engines;
    int rc = VT_OK;

    if (!t)
        return vt_nomem(err);
    p->intake = t;
    t->p = p;
    t->link = calloc(n, sizeof(*t->link));
    t->kv = calloc(n, sizeof(struct vt_kv_publisher *));
    if (!t->link || !t->kv)
        return vt_nomem(err);
    if (c->step_stats_out)
        rc = vt_append_open(&t->stats_file, c->step_stats_out, 1, false, err);
    for (uint32_t i = 0; i < n && rc == VT_OK; i++) {
        struct vt_kv_config k = {
            .wanted = c->kv,
            .dp_rank = c->first_rank + i,
            .vllm = p->engine.vllm,
        };

        if (c->kv.on)
            rc = vt_kv_publisher_open(&t->kv[i], p->ctx, &k, err);
        if (rc == VT_OK)
            rc = link_open(&t->link[i], p, i, t->kv[i], err);
    }
    return rc;
}

void play_intake_close(struct play *p)
{
    struct play_intake *t = p->intake;

    if (!t)
        return;
    for (uint32_t i = 0; i < p->c->n_engines; i++) {
        if (t->link)
            link_close(&t->link[i]);
        if (t->kv)
            vt_kv_publisher_close(t->kv[i]);
    }
    (void)vt_append_close(t->stats_file, NULL);
    vt_buf_free(&t->stats);
    vt_arena_free(&t->arena);
    free(t->item);
    free(t->kv);
    free(t->link);
    free(t);
    p->intake = NULL;
}

/* ---- running ---------------------------------------------------------- */

static int count_items(struct play_intake *t, size_t *n, struct vt_err *err)
{
    size_t most = 1;
    int rc;

    for (uint32_t i = 0; i < t->p->c->n_engines; i++)
        most += LINK_ITEMS + 2 * (size_t)t->link[i].n_clients + 1;
    rc = vt_grow(&t->item, &t->cap_items, most, sizeof(*t->item), err);
    if (rc != VT_OK)
        return rc;
    *n = 1;
    t->item[0] = (zmq_pollitem_t){.fd = t->p->to_intake.fd, .events = ZMQ_POLLIN};
    for (uint32_t i = 0; i < t->p->c->n_engines; i++) {
        void *replay = t->kv[i] ? vt_kv_publisher_replay_socket(t->kv[i]) : NULL;

        *n += link_items(&t->link[i], t->item + *n);
        if (replay)
            t->item[(*n)++] = (zmq_pollitem_t){.socket = replay, .events = ZMQ_POLLIN};
    }
    return VT_OK;
}

static int listen_to(struct play_intake *t, struct link *l, struct vt_err *err)
{
    for (uint32_t i = 0; i < l->n_clients; i++)
        for (int k = 0; k < BURST; k++) {
            int rc = sock_recv(l->client[i].input, &l->msg, err);

            if (rc != VT_OK)
                return rc;
            if (l->msg.n == 0)
                break;
            l->from = i;
            intake_message(l, &t->arena, &t->complaints);
        }
    return VT_OK;
}

int play_intake_run(struct play *p, struct vt_err *err)
{
    struct play_intake *t = p->intake;
    int rc = VT_OK;

    play_log(
        p, "scheduler of vLLM 0.%u%s; waiting for a frontend at %s", p->engine.vllm,
        p->c->follow_line ? ", until requests tell of another" : "", p->c->handshake);
    while (rc == VT_OK && !t->over) {
        bool busy = false;
        size_t n;

        rc = take_notes(t, err);
        for (uint32_t i = 0; i < p->c->n_engines && rc == VT_OK; i++) {
            if (!(rc = link_attend(&t->link[i], err)))
                rc = listen_to(t, &t->link[i], err);
            if (t->kv[i])
                busy |= vt_kv_publisher_replay(t->kv[i]);
        }
        if (rc == VT_OK && atomic_load(&p->failed))
            rc = vt_nomem(err);
        if (!t->told_stop && p->c->stopped && p->c->stopped(p->c->user)) {
            t->told_stop = true;
            for (uint32_t i = 0; i < p->c->n_engines; i++)
                link_stopping(&t->link[i]);
            play_send_note(p, &p->to_engines, note_new(NOTE_STOP, 0));
        }
        if (rc == VT_OK)
            rc = count_items(t, &n, err);
        if (rc != VT_OK || t->over)
            break;
        if (zmq_poll(t->item, (int)n, busy ? 0 : TICK_MS) == 0 && t->stats_file)
            rc = write_stats(t, err);
    }
    if (rc == VT_OK && t->stats_file)
        rc = write_stats(t, err);
    return rc;
}
