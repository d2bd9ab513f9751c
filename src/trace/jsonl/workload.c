/* workload.c - trace.jsonl: requests as they were served, one for each line.
 *
 * A superset of vllm-vcr's format; docs/trace-format.md lists the fields. Fields that
 * are not listed there are skipped, so that captures may say more. */
#include "trace/formats/formats.h"
#include "trace/jsonl/jsonl.h"

enum { DEFAULT_BLOCK_SIZE = 16 };

/* By its first byte: a first line that is no JSON is a damaged trace. */
static bool recognise(const char *line, size_t len, const struct vt_node *first)
{
    size_t i = 0;

    (void)first;
    while (i < len && (line[i] == ' ' || line[i] == '\t'))
        i++;
    return i < len && line[i] == '{';
}

struct jsonl { /* the file being read */
    struct trace_build *b;
    uint32_t block_size; /* behind block_hashes */
    size_t n_meta;       /* lines that are no rows */
};

/* ---- the prompt's content --------------------------------------------- */

/* Segments, or vllm-vcr's hashes of full blocks; each covers its prefix, so equal ones
 * mean equal content. What they do not cover is the request's own. */
static int add_content(struct jsonl *f, const struct vt_record *q, struct vt_err *err)
{
    uint32_t blocks = q->prompt_tokens / f->block_size, n = q->n_block_hashes;
    int rc = VT_OK;

    for (uint32_t i = 0; q->run && i < q->n_segments && rc == VT_OK; i++)
        rc = trace_build_segment(f->b, q->run[i].content, q->run[i].offset,
                                 q->run[i].tokens, err);
    if (q->run)
        return rc;
    if (n > blocks)
        return vt_fail(
            err, VT_EINPUT,
            "line %u: field 'block_hashes' has %u hashes, but %u tokens fill %u "
            "blocks of %u",
            q->line, n, q->prompt_tokens, blocks, f->block_size);
    for (uint32_t i = 0; i < n && rc == VT_OK; i++)
        rc = trace_build_segment(f->b, trace_content_block(q->block_hash[i]), 0,
                                 f->block_size, err);
    return rc ? rc : trace_build_own(f->b, q->prompt_tokens - n * f->block_size, err);
}

/* ---- requests --------------------------------------------------------- */

/* One request without timings, and the file has none; but one that was aborted may
 * have said what it was to be, and not lived to its first token. */
static int add_timings(struct trace_build *b, const struct vt_record *q,
                       struct vt_err *err)
{
    int rc;

    if (q->ttft_ns < 0 && jsonl_is_abort(q->finish_reason) && !b->untimed) {
        b->n_given_up++;
        return trace_build_measured(b, -1, 0, err);
    }
    if (q->ttft_ns < 0 || (!q->gap && q->output_tokens > 1))
        b->untimed = true;
    if (b->untimed)
        return VT_OK;
    rc = trace_build_measured(b, q->ttft_ns, q->cached_tokens, err);
    if (rc == VT_OK)
        b->w->measured[b->w->n - 1].queue_ns = q->queue_ns;
    b->w->n_by_mean += q->by_mean && q->n_gaps > 1; /* the mean of one is itself */
    for (uint32_t i = 0; i < q->n_gaps && rc == VT_OK; i++)
        rc = vt_within(err,
                       trace_build_gap(b, vt_record_gap(q, i),
                                       q->gap_tokens ? q->gap_tokens[i] : 1, err),
                       "line %u", q->line);
    return rc;
}

/* A recording that stopped while the request ran has fewer gaps than output, even if
 * how it ended is known. What is replayed and compared is what was measured. No gap at
 * all may also mean that one chunk held everything; not to a recorder that says of
 * every gap what the engine did in it, for it would have said how large the chunks
 * were. */
static uint32_t measured_output(const struct vt_record *q)
{
    bool every_token = q->n_gaps > 0 || q->gap_running;
    bool cut = every_token && q->ttft_ns >= 0 && !q->gap_tokens && !q->by_mean &&
               q->n_gaps + 1 < q->output_tokens;

    return cut ? q->n_gaps + 1 : q->output_tokens;
}

static int add_request(struct jsonl *f, const struct vt_record *q, size_t row,
                       struct vt_err *err)
{
    uint32_t limit = q->max_tokens ? q->max_tokens : q->output_tokens;
    struct vt_work *w;
    int rc;

    rc = q->id ? trace_build_add(f->b, q->id, strlen(q->id), &w, err)
               : trace_build_add_numbered(f->b, row, &w, err);
    if (rc != VT_OK)
        return vt_within(err, rc, "line %u", q->line);
    w->arrival_ns = q->arrival_ns > 0 ? q->arrival_ns : 0;
    f->b->w->n_undated += q->arrival_ns < 0;
    w->prompt_tokens = q->prompt_tokens;
    w->output_tokens = measured_output(q);
    w->priority = q->priority;
    if (limit < q->output_tokens)
        return vt_fail(err, VT_EINPUT,
                       "line %u: field 'max_tokens' is %u, but output_tokens is %u",
                       q->line, q->max_tokens, q->output_tokens);
    w->max_tokens = limit;
    if (q->finish_reason && strcmp(q->finish_reason, "length") == 0)
        w->max_tokens = q->output_tokens;
    else if (q->finish_reason && limit == q->output_tokens)
        w->max_tokens = limit + 1; /* it ended by itself, and must here */
    if (q->session) {
        w->turn = q->turn;
        w->think_ns = q->think_ns;
        rc =
            trace_build_session(f->b, q->session, strlen(q->session), &w->session, err);
    }
    if (rc || (q->lora && (rc = trace_build_lora(f->b, q->lora, err))) ||
        (rc = add_content(f, q, err)))
        return rc;
    return add_timings(f->b, q, err);
}

/* The default way to make arrivals follows from how the recorded ones were made: those
 * that waited for answers must wait for the twin's. */
static int read_meta(struct jsonl *f, const struct vt_node *meta, struct vt_err *err)
{
    struct vt_workload *w = f->b->w;
    const struct vt_node *spec = vt_get(meta, "workload");
    int rc = jsonl_read_meta(&w->meta, &w->arena, meta, err);

    f->n_meta = 1;
    if (w->meta.block_size)
        f->block_size = w->meta.block_size;
    if (rc != VT_OK || !w->meta.workload_kind)
        return rc;
    if (strcmp(w->meta.workload_kind, "closed") == 0) {
        w->arrivals = VT_ARRIVALS_CLOSED;
        return vt_get_u32(spec, "concurrency", VT_REQUIRED, 1, INT32_MAX,
                          &w->concurrency, err);
    }
    if (strcmp(w->meta.workload_kind, "multiturn") == 0) {
        w->arrivals = VT_ARRIVALS_SESSION;
        return jsonl_get_u32(spec, "concurrency", 1, INT32_MAX, &w->concurrency, err);
    }
    return VT_OK;
}

static int read_row(void *user, struct trace_reader *r, const struct vt_node *row,
                    struct vt_err *err)
{
    struct jsonl *f = user;
    const struct vt_node *meta;
    struct vt_record q;
    int rc = jsonl_find_meta(row, r->n_rows == 0, &meta, err);

    if (rc != VT_OK || meta)
        return rc ? rc : read_meta(f, meta, err);
    if (jsonl_has_no_output(row)) {
        f->b->w->n_unanswered += jsonl_was_given_up(row);
        return VT_OK;
    }
    f->b->line = r->number;
    rc = jsonl_read_row(&q, &r->scratch, row, true, err);
    return rc ? rc : add_request(f, &q, r->n_rows - f->n_meta, err);
}

static int read_rows(struct trace_build *b, struct trace_reader *r, void *state,
                     struct vt_err *err)
{
    struct jsonl *f = state;

    f->b = b;
    if (f->block_size == 0)
        f->block_size = DEFAULT_BLOCK_SIZE;
    return trace_reader_rows(r, read_row, f, err);
}

const struct trace_format trace_format_jsonl = {
    .name = "trace.jsonl",
    .recognise = recognise,
    .read = read_rows,
    .state_size = sizeof(struct jsonl),
};
