/* trace_out.c - records as trace.jsonl, so that what was measured here can be fitted,
 * inspected and run again. */
#include <math.h>
#include <stdlib.h>

#include "load/stamps.h"
#include "load/trace_out.h"
#include "trace/trace.h"

struct writer {
    const struct vt_load_records *r;
    const struct vt_load_origin *o;
    struct vt_arena scratch; /* of one request */
    struct vt_buf line;
    bool talks;              /* there are sessions of several turns */
    struct session *session; /* heap; one for each */
    size_t n_sessions;
    struct contents contents;
    size_t left_out;
};

/* ---- times ----------------------------------------------------------- */

static int set_gaps(struct writer *w, const struct vt_load_record *q,
                    struct vt_record *out, struct vt_err *err)
{
    struct stamps s = stamps_of(q, w->o->backend);
    vt_ns *gap = vt_arena_alloc(&w->scratch, ((size_t)s.n + 1) * sizeof(*gap));
    uint32_t *tokens = vt_arena_alloc(&w->scratch, ((size_t)s.n + 1) * sizeof(*tokens));

    if (!gap || !tokens)
        return vt_nomem(err);
    out->ttft_ns = s.at[0] - q->sent;
    out->gap = gap;
    if (!stamps_are_tokens(&s, q)) {
        out->n_gaps = q->output_tokens - 1;
        out->by_mean = out->n_gaps > 0;
        gap[0] = out->n_gaps > 0 ? (s.at[s.n - 1] - s.at[0]) / out->n_gaps : 0;
        return VT_OK;
    }
    out->n_gaps = s.n - 1;
    for (uint32_t i = 0; i + 1 < s.n; i++) {
        gap[i] = s.at[i + 1] - s.at[i];
        tokens[i] = stamps_tokens(&s, q, i + 1);
    }
    if (s.n < q->output_tokens)
        out->gap_tokens = tokens;
    return VT_OK;
}

/* ---- requests -------------------------------------------------------- */

static const char *copy(struct writer *w, const char *text)
{
    return vt_arena_copy(&w->scratch, text, strlen(text));
}

static int set_id(struct writer *w, size_t i, struct vt_record *out, struct vt_err *err)
{
    const struct vt_load_record *q = &w->r->record[i];
    char id[32];

    snprintf(id, sizeof(id), "request-%zu", i);
    out->id = q->request_id ? q->request_id : copy(w, id);
    return out->id ? VT_OK : vt_nomem(err);
}

/* Turns are counted as they are written: a trace has no holes. */
static int set_session(struct writer *w, const struct vt_load_record *q,
                       struct vt_record *out, struct vt_err *err)
{
    const struct vt_load_plan *plan = w->o->plan;
    const char *id = plan && q->session < plan->n ? plan->session[q->session].id : NULL;
    struct session *s = &w->session[q->session];
    char number[16];

    snprintf(number, sizeof(number), "%u", q->session);
    out->session = id ? id : copy(w, number);
    out->turn = s->turns;
    if (s->turns > 0 && q->planned > s->ended)
        out->think_ns = q->planned - s->ended;
    return out->session ? VT_OK : vt_nomem(err);
}

static bool has_tokens(const struct vt_load_record *q)
{
    return q->ok && q->n_stamps > 0 && q->output_tokens > 0 && q->prompt_tokens > 0 &&
           q->sent >= 0 && q->stamp[0] >= q->sent;
}

static int write_request(struct writer *w, size_t i, struct vt_err *err)
{
    const struct vt_load_record *q = &w->r->record[i];
    struct vt_record out = {
        .arrival_ns = q->sent,
        .prompt_tokens = q->prompt_tokens,
        .cached_tokens =
            q->cached_tokens < q->prompt_tokens ? q->cached_tokens : q->prompt_tokens,
        .output_tokens = q->output_tokens,
        .max_tokens = q->asked_tokens,
        .finish_reason = q->finish,
    };
    int rc = set_id(w, i, &out, err);

    if (rc == VT_OK)
        rc = set_gaps(w, q, &out, err);
    if (rc == VT_OK && w->talks)
        rc = set_session(w, q, &out, err);
    if (rc == VT_OK)
        rc = contents_set(&w->contents, &w->session[q->session], q, &out, &w->scratch,
                          err);
    if (rc != VT_OK)
        return rc;
    vt_record_write(&w->line, &out, NULL);
    w->session[q->session].turns++;
    w->session[q->session].ended = q->ended;
    vt_arena_reset(&w->scratch);
    return VT_OK;
}

/* ---- the file -------------------------------------------------------- */

static void write_meta(struct writer *w)
{
    const struct vt_load_origin *o = w->o;
    struct vt_workload like = {.arrivals = VT_ARRIVALS_RECORDED, .seed = o->seed};
    struct vt_meta meta = {.model = o->model,
                           .workload_name = o->name,
                           .async_scheduling = -1,
                           .enable_prefix_caching = -1};

    if (isinf(o->rate) && o->max_concurrency > 0) {
        like.arrivals = VT_ARRIVALS_CLOSED;
        like.concurrency = o->max_concurrency;
    }
    if (w->talks)
        like.arrivals = VT_ARRIVALS_SESSION;
    if (w->contents.by_blocks)
        meta.block_size = CONTENTS_BLOCK;
    vt_trace_write_meta(&w->line, &like, &meta, "bench");
}

static int write_all(struct writer *w, struct vt_out *out, struct vt_err *err)
{
    int rc = VT_OK;

    write_meta(w);
    for (size_t i = 0; i < w->r->n && rc == VT_OK; i++) {
        if (!has_tokens(&w->r->record[i])) {
            w->left_out++;
            continue;
        }
        rc = write_request(w, i, err);
        if (rc == VT_OK)
            rc = vt_out_flush(out, &w->line, false, err);
    }
    return rc == VT_OK ? vt_out_flush(out, &w->line, true, err) : rc;
}

static int writer_open(struct writer *w, struct vt_err *err)
{
    for (size_t i = 0; i < w->r->n; i++) {
        const struct vt_load_record *q = &w->r->record[i];

        w->talks = w->talks || q->turn > 0;
        if (q->session >= w->n_sessions)
            w->n_sessions = (size_t)q->session + 1;
    }
    w->session = calloc(w->n_sessions + 1, sizeof(*w->session));
    contents_open(&w->contents, w->o, w->talks);
    return w->session ? VT_OK : vt_nomem(err);
}

static void writer_close(struct writer *w)
{
    vt_arena_free(&w->scratch);
    vt_buf_free(&w->line);
    contents_close(&w->contents);
    free(w->session);
}

int vt_load_write_trace(const struct vt_load_records *r, const struct vt_load_origin *o,
                        const char *path, size_t *left_out, struct vt_err *err)
{
    struct writer w = {.r = r, .o = o};
    struct vt_out *out = NULL;
    int rc = writer_open(&w, err);

    if (rc == VT_OK)
        rc = vt_out_open(&out, path, err);
    if (rc == VT_OK)
        rc = vt_out_end(out, write_all(&w, out, err), err);
    *left_out = w.left_out;
    writer_close(&w);
    return rc;
}
