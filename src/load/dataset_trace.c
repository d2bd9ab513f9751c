/* dataset_trace.c - requests as they once came: timed traces (Mooncake, Alibaba) and
 * all that the trace room reads.
 *
 * Neither holds text. Equal content becomes equal tokens, so that a prefix cache has
 * the hits it had. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "load/dataset.h"
#include "trace/trace.h"

static int add_tokens(struct load_maker *m, uint64_t seed, uint64_t content,
                      uint64_t offset, size_t n, struct vt_err *err)
{
    int rc = vt_grow(&m->ids.id, &m->ids.cap, m->ids.n + n, sizeof(*m->ids.id), err);

    for (size_t i = 0; rc == VT_OK && i < n; i++) {
        uint64_t h = vt_hash2(vt_hash2(seed, content), offset + i);

        m->ids.id[m->ids.n++] = m->allowed[h % m->n_allowed];
    }
    return rc;
}

/* ---- timed traces ----------------------------------------------------- */

/* Each hash id stands for a chunk of tokens; a shorter one, at the end, for others. */
static int expand_hashes(struct load_maker *m, const struct vt_load_data *d,
                         const struct vt_node *hashes, uint64_t left,
                         struct vt_err *err)
{
    int rc = VT_OK;

    m->ids.n = 0;
    for (uint32_t i = 0; hashes && i < hashes->n && left > 0 && rc == VT_OK; i++) {
        const struct vt_node *h = &hashes->u.item[i];
        uint64_t name = h->kind == VT_INT   ? (uint64_t)h->u.integer
                        : h->kind == VT_STR ? vt_hash_bytes(h->u.str, h->n, 1)
                                            : 0;
        uint64_t n = left < d->chunk_tokens ? left : d->chunk_tokens;

        rc = add_tokens(m, d->seed, vt_hash2(name, n), 0, (size_t)n, err);
        left -= n;
    }
    return rc;
}

static int add_entry(struct load_maker *m, struct vt_load_plan *p,
                     const struct vt_load_data *d, const struct vt_node *root,
                     struct vt_err *err)
{
    const struct vt_node *hashes = vt_get(root, d->label_hashes);
    struct vt_load_turn turn = {0};
    struct vt_load_session s = {.turn = &turn, .n_turns = 1};
    uint32_t input = 0;
    double at = 0;
    int rc;

    if ((rc =
             vt_get_u32(root, d->label_input, VT_REQUIRED, 0, 1U << 26, &input, err)) ||
        (rc = vt_get_u32(root, d->label_output, VT_REQUIRED, 0, UINT32_MAX,
                         &turn.output_tokens, err)) ||
        (rc = vt_get_f64(root, d->label_timestamp, VT_REQUIRED, 0, 1e15, &at, err)))
        return rc;
    if (hashes && hashes->kind != VT_LIST)
        return vt_fail(err, VT_EINPUT, "field '%s' is no list", d->label_hashes);
    if (at * d->sec_multiplier > 1e9)
        return vt_fail(err, VT_EINPUT, "field '%s' is too late", d->label_timestamp);
    s.at = vt_ns_from_ms(at * d->sec_multiplier * 1e3);
    rc = expand_hashes(m, d, hashes, input, err);
    if (rc == VT_OK)
        rc = load_turn_ids(m, p, d, &turn, err);
    return rc == VT_OK ? vt_load_plan_add(p, &s, err) : rc;
}

int load_make_timed_trace(struct vt_load_plan *p, const struct vt_load_data *d,
                          struct vt_err *err)
{
    struct load_maker m = {0};
    int rc;

    if (d->chunk_tokens == 0)
        return vt_fail(err, VT_EINPUT, "a chunk of no token");
    rc = load_maker_open(&m, d, "timed_trace", err);
    if (rc == VT_OK)
        rc = load_read_lines(&m, p, d, d->n, add_entry, err);
    p->timed = p->ignore_eos = true;
    load_maker_close(&m);
    return rc;
}

/* ---- traces ----------------------------------------------------------- */

static int make_turn(struct load_maker *m, struct vt_load_plan *p,
                     const struct vt_load_data *d, const struct vt_workload *w,
                     const struct vt_work *q, struct vt_load_turn *t,
                     struct vt_err *err)
{
    int rc = VT_OK;

    *t = (struct vt_load_turn){.output_tokens = q->output_tokens,
                               .think_ns = q->think_ns};
    m->ids.n = 0;
    for (uint32_t i = 0; rc == VT_OK && i < q->n_segments; i++) {
        const struct vt_segment *g = &w->segment[q->first_segment + i];

        rc = add_tokens(m, d->seed, g->content, g->offset, g->tokens, err);
    }
    return rc == VT_OK ? load_turn_ids(m, p, d, t, err) : rc;
}

/* In a trace with sessions, turns follow each other; otherwise every request comes at
 * its own time, whatever became of the one before. */
static int add_work(struct load_maker *m, struct vt_load_plan *p,
                    const struct vt_load_data *d, const struct vt_workload *w, size_t i,
                    struct vt_err *err)
{
    bool chained = w->arrivals == VT_ARRIVALS_SESSION;
    const struct vt_work *q = &w->req[i];
    struct vt_load_session s = {
        .at = d->speed > 0 ? (vt_ns)llround((double)q->arrival_ns / d->speed)
                           : q->arrival_ns};
    struct vt_load_turn *turn = NULL;
    size_t cap = 0;
    int rc = VT_OK;

    if (chained && !q->first_turn)
        return VT_OK;
    for (;;) {
        rc = vt_grow(&turn, &cap, s.n_turns + 1, sizeof(*turn), err);
        if (rc == VT_OK)
            rc = make_turn(m, p, d, w, q, &turn[s.n_turns], err);
        if (rc != VT_OK)
            break;
        s.n_turns++;
        if (!chained || q->next_turn == VT_NO_TURN)
            break;
        q = &w->req[q->next_turn];
    }
    s.turn = turn;
    if (rc == VT_OK)
        rc = vt_load_plan_add(p, &s, err);
    free(turn);
    return rc;
}

/* ---- trees ------------------------------------------------------------ */

/* Whole trees, until there are as many requests as were asked for. place[i]: 0, or the
 * number that request i has in the plan; beginnings come first. */
static uint32_t place_trees(const struct vt_workload *w, size_t most, uint32_t *place,
                            uint32_t *size, uint32_t *root)
{
    uint32_t n = 0;
    size_t taken = 0;

    for (size_t i = 0; i < w->n; i++)
        size[w->req[i].session]++;
    for (size_t i = 0; i < w->n && (most == 0 || taken < most); i++)
        if (w->req[i].first_turn) {
            place[i] = root[w->req[i].session] = ++n;
            taken += size[w->req[i].session];
        }
    for (size_t i = 0; i < w->n; i++)
        if (!w->req[i].first_turn && root[w->req[i].session] > 0)
            place[i] = ++n;
    return n;
}

static uint32_t number(const uint32_t *place, uint32_t i)
{
    return i == VT_NO_TURN ? 0 : place[i];
}

/* Each request is a session of its own, since what it waits for may be several. */
static int add_node(struct load_maker *m, struct vt_load_plan *p,
                    const struct vt_load_data *d, const struct vt_workload *w, size_t i,
                    const uint32_t *place, uint32_t root, struct vt_err *err)
{
    const struct vt_work *q = &w->req[i];
    struct vt_load_turn turn;
    struct vt_load_session s = {
        .at = d->speed > 0 ? (vt_ns)llround((double)q->arrival_ns / d->speed)
                           : q->arrival_ns,
        .turn = &turn,
        .n_turns = 1,
        .next = number(place, q->next_turn),
        .beside = number(place, q->beside),
        .root = root,
        .n_before = q->n_before,
    };
    int rc = make_turn(m, p, d, w, q, &turn, err);

    return rc == VT_OK ? vt_load_plan_add(p, &s, err) : rc;
}

static int add_trees(struct load_maker *m, struct vt_load_plan *p,
                     const struct vt_load_data *d, const struct vt_workload *w,
                     struct vt_err *err)
{
    uint32_t *place = calloc(w->n * 4, sizeof(*place)), *size, *root, *at, n;
    int rc = VT_OK;

    if (!place)
        return vt_nomem(err);
    size = place + w->n; /* by session, of which there are not more than requests */
    root = size + w->n;
    at = root + w->n;
    n = place_trees(w, d->n, place, size, root);
    for (size_t i = 0; i < w->n; i++)
        if (place[i] > 0)
            at[place[i] - 1] = (uint32_t)i;
    for (uint32_t k = 0; k < n && rc == VT_OK; k++)
        rc = add_node(m, p, d, w, at[k], place, root[w->req[at[k]].session], err);
    free(place);
    return rc;
}

static int add_all(struct vt_load_plan *p, const struct vt_load_data *d,
                   const struct vt_workload *w, struct vt_err *err)
{
    struct load_maker m = {0};
    int rc = load_maker_open(&m, d, "trace", err);

    if (rc == VT_OK && w->forked && w->arrivals == VT_ARRIVALS_SESSION)
        rc = add_trees(&m, p, d, w, err);
    else
        for (size_t i = 0; rc == VT_OK && i < w->n && (d->n == 0 || p->n_turns < d->n);
             i++)
            rc = add_work(&m, p, d, w, i, err);
    p->timed = w->arrivals != VT_ARRIVALS_CLOSED;
    p->ignore_eos = true;
    load_maker_close(&m);
    return rc;
}

int vt_load_plan_of(struct vt_load_plan *out, const struct vt_load_data *d,
                    const struct vt_workload *w, struct vt_err *err)
{
    int rc = add_all(out, d, w, err);

    if (rc != VT_OK)
        vt_load_plan_free(out);
    return rc;
}

int load_make_trace(struct vt_load_plan *p, const struct vt_load_data *d,
                    struct vt_err *err)
{
    const char *dot = strrchr(d->path, '.');
    bool is_recipe =
        dot && dot > d->path && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
    struct vt_workload w = {0};
    int rc = is_recipe ? vt_workload_generate(&w, d->path,
                                              (int64_t)(d->seed & INT64_MAX), err)
                       : vt_trace_load(&w, d->path, err);

    if (rc != VT_OK)
        return rc;
    rc = add_all(p, d, &w, err);
    vt_workload_free(&w);
    return rc;
}
