/* trace_out.c - records as trace.jsonl, so that what was measured here can be fitted,
 * inspected and run again.
 *
 * What prompts have in common is told, so that a prefix cache finds in the trace what
 * it found in the run. A conversation's prompt is the one before, its answer, and
 * something new. Prompts of single requests are in the plan: equal blocks of them have
 * equal hashes. Where the plan was made of a workload, that says what they are of. */
#include <math.h>
#include <stdlib.h>

#include "load/summary.h"
#include "trace/trace.h"

enum { CONTENTS_BLOCK = 16 };

struct session { /* of the run, as far as it is written */
    uint32_t turns;
    vt_ns ended;                       /* of the turn before */
    struct vt_record_segment *segment; /* in the writer's arena */
    uint32_t n, cap;
    uint32_t prompt, output; /* tokens of the turn before */
};

struct writer {
    const struct vt_load_records *r;
    const struct vt_load_origin *o;
    struct vt_arena scratch; /* of one request */
    struct vt_buf line;
    bool talks; /* there are sessions of several turns: prompts repeat what was said */
    struct session *session; /* heap; one for each */
    size_t n_sessions;
    struct vt_arena arena; /* of segments and their names */
    struct vt_ids ids;     /* kept for its memory */
    bool by_blocks;        /* prompts are in the plan: hashes of their blocks */
    size_t left_out;
};

/* ---- conversations --------------------------------------------------- */

static int add_segment(struct writer *w, struct session *s, uint32_t tokens,
                       const char *name, struct vt_err *err)
{
    struct vt_record_segment *g;

    if (tokens == 0)
        return VT_OK;
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 8;
        g = vt_arena_alloc(&w->arena, s->cap * sizeof(*g));
        if (!g)
            return vt_nomem(err);
        if (s->n > 0)
            memcpy(g, s->segment, s->n * sizeof(*g));
        s->segment = g;
    }
    g = &s->segment[s->n++];
    *g = (struct vt_record_segment){
        .name = vt_arena_copy(&w->arena, name, strlen(name)), .tokens = tokens};
    return g->name ? VT_OK : vt_nomem(err);
}

/* Sessions that begin with the same system prompt share its tokens. */
static int add_system(struct writer *w, struct session *s,
                      const struct vt_load_record *q, uint32_t *left,
                      struct vt_err *err)
{
    const struct vt_load_session *planned = load_session_of(w->o->plan, q);
    const char *text = planned ? planned->system : NULL;
    char name[32];
    int rc;

    if (!text || !w->o->tokenizer)
        return VT_OK;
    w->ids.n = 0;
    rc = vt_tokenizer_encode(w->o->tokenizer, text, strlen(text), VT_ENCODE_PLAIN,
                             &w->ids, err);
    if (rc != VT_OK || w->ids.n >= *left)
        return rc;
    snprintf(name, sizeof(name), "system-%016llx",
             (unsigned long long)vt_hash_bytes(text, strlen(text), 0));
    *left -= (uint32_t)w->ids.n;
    return add_segment(w, s, (uint32_t)w->ids.n, name, err);
}

/* The prompt before, its answer and what is new; then this answer, for the next one. */
static int set_talk(struct writer *w, struct session *s, const struct vt_load_record *q,
                    struct vt_record *out, struct vt_err *err)
{
    uint32_t left = q->prompt_tokens, known = s->prompt + s->output;
    struct vt_record_segment *list = NULL;
    struct vt_buf name = {0};
    int rc = VT_OK;

    if (s->turns == 0)
        rc = add_system(w, s, q, &left, err);
    else if (left >= known)
        left -= known;
    else
        s->n = 0; /* not what was said before: a template that cuts it */
    vt_buf_printf(&name, "%s.%u", out->session, out->turn);
    if (rc == VT_OK)
        rc = name.failed ? vt_nomem(err) : add_segment(w, s, left, name.data, err);
    if (rc != VT_OK)
        goto out;
    list = vt_arena_alloc(&w->scratch, s->n * sizeof(*list));
    if (!list) {
        rc = vt_nomem(err);
        goto out;
    }
    memcpy(list, s->segment, s->n * sizeof(*list));
    out->segment = list;
    out->n_segments = s->n;
    vt_buf_clear(&name);
    vt_buf_printf(&name, "out:%s", out->id);
    rc = name.failed ? vt_nomem(err)
                     : add_segment(w, s, q->output_tokens, name.data, err);
    s->prompt = q->prompt_tokens;
    s->output = q->output_tokens;
out:
    vt_buf_free(&name);
    return rc;
}

/* ---- single requests ------------------------------------------------- */

/* Each hash stands for its block and all before it. */
static int set_blocks(struct writer *w, const struct vt_load_record *q,
                      struct vt_record *out, struct vt_err *err)
{
    const struct vt_load_session *s = &w->o->plan->session[q->session];
    const struct vt_load_turn *t = &s->turn[q->turn];
    const uint32_t *id = t->id;
    size_t n = t->n_ids;
    uint64_t *hash, h = 0;

    if (t->text) {
        int rc;

        w->ids.n = 0;
        rc = vt_tokenizer_encode(w->o->tokenizer, t->text, t->text_len, VT_ENCODE_PLAIN,
                                 &w->ids, err);
        if (rc != VT_OK)
            return rc;
        id = w->ids.id;
        n = w->ids.n;
    }
    n = (n < q->prompt_tokens ? n : q->prompt_tokens) / CONTENTS_BLOCK;
    hash = vt_arena_alloc(&w->scratch, (n + 1) * sizeof(*hash));
    if (!hash)
        return vt_nomem(err);
    for (size_t i = 0; i < n; i++)
        hash[i] = h =
            vt_hash_bytes(id + i * CONTENTS_BLOCK, CONTENTS_BLOCK * sizeof(*id), h + 1);
    out->block_hash = hash;
    out->n_block_hashes = (uint32_t)n;
    return VT_OK;
}

static void set_contents(const struct vt_workload *w, const struct vt_load_record *q,
                         struct vt_record *out)
{
    const struct vt_work *asked = &w->req[q->session];

    if (q->prompt_tokens != asked->prompt_tokens)
        return; /* the server put something around it */
    out->run = &w->segment[asked->first_segment];
    out->n_segments = asked->n_segments;
}

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

static const char *copy_text(struct writer *w, const char *text)
{
    return vt_arena_copy(&w->scratch, text, strlen(text));
}

/* Turns are counted as they are written: a trace has no holes. */
static int set_session(struct writer *w, const struct vt_load_record *q,
                       struct vt_record *out, struct vt_err *err)
{
    const struct vt_load_session *planned = load_session_of(w->o->plan, q);
    struct session *s = &w->session[q->session];
    char number[16];

    snprintf(number, sizeof(number), "%u", q->session);
    out->session = planned && planned->id ? planned->id : copy_text(w, number);
    out->turn = s->turns;
    if (s->turns > 0 && q->planned > s->ended)
        out->think_ns = q->planned - s->ended;
    return out->session ? VT_OK : vt_nomem(err);
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
    char id[32];
    int rc;

    snprintf(id, sizeof(id), "request-%zu", i);
    out.id = q->request_id ? q->request_id : copy_text(w, id);
    rc = out.id ? set_gaps(w, q, &out, err) : vt_nomem(err);
    if (rc == VT_OK && w->talks)
        rc = set_session(w, q, &out, err);
    if (rc == VT_OK && w->talks)
        rc = set_talk(w, &w->session[q->session], q, &out, err);
    else if (rc == VT_OK && w->o->workload)
        set_contents(w->o->workload, q, &out);
    else if (rc == VT_OK && w->by_blocks && q->session < w->o->plan->n)
        rc = set_blocks(w, q, &out, err);
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
    struct vt_meta meta = {.async_scheduling = -1, .enable_prefix_caching = -1};

    if (o->engine)
        meta = *o->engine;
    meta.model = o->model;
    meta.workload_name = o->name;
    meta.clock = VT_CLOCK_CLIENT;
    if (isinf(o->rate) && o->max_concurrency > 0) {
        like.arrivals = VT_ARRIVALS_CLOSED;
        like.concurrency = o->max_concurrency;
    }
    if (w->talks)
        like.arrivals = VT_ARRIVALS_SESSION;
    if (w->by_blocks)
        meta.block_size = CONTENTS_BLOCK;
    vt_trace_write_meta(&w->line, &like, &meta, "bench");
}

static int write_all(struct writer *w, struct vt_out *out, struct vt_err *err)
{
    int rc = VT_OK;

    write_meta(w);
    for (size_t i = 0; i < w->r->n && rc == VT_OK; i++) {
        const struct vt_load_record *q = &w->r->record[i];

        if (!q->ok || q->n_stamps == 0 || q->output_tokens == 0 ||
            q->prompt_tokens == 0 || q->sent < 0 || q->stamp[0] < q->sent) {
            w->left_out++;
            continue;
        }
        rc = write_request(w, i, err);
        if (rc == VT_OK)
            rc = vt_out_flush(out, &w->line, false, err);
    }
    return rc == VT_OK ? vt_out_flush(out, &w->line, true, err) : rc;
}

int vt_load_write_trace(const struct vt_load_records *r, const struct vt_load_origin *o,
                        const char *path, size_t *left_out, struct vt_err *err)
{
    struct writer w = {.r = r, .o = o};
    struct vt_out *out = NULL;
    int rc;

    for (size_t i = 0; i < r->n; i++) {
        w.talks = w.talks || r->record[i].turn > 0;
        if (r->record[i].session >= w.n_sessions)
            w.n_sessions = (size_t)r->record[i].session + 1;
    }
    w.by_blocks = !w.talks && !o->workload && o->plan && o->tokenizer;
    w.session = calloc(w.n_sessions + 1, sizeof(*w.session));
    rc = w.session ? VT_OK : vt_nomem(err);
    if (rc == VT_OK)
        rc = vt_out_open(&out, path, err);
    if (rc == VT_OK)
        rc = vt_out_end(out, write_all(&w, out, err), err);
    *left_out = w.left_out;
    vt_arena_free(&w.scratch);
    vt_buf_free(&w.line);
    vt_arena_free(&w.arena);
    vt_ids_free(&w.ids);
    free(w.session);
    return rc;
}
