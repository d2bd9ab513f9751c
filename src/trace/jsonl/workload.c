/* workload.c - trace.jsonl: requests as they were served, one for each line.
 *
 * A superset of vllm-vcr's format; docs/trace-format.md lists the fields. Fields that
 * are not listed there are skipped, so that captures may say more. */
#include <inttypes.h>

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

/* ---- meta ------------------------------------------------------------- */

static int copy_str(struct trace_build *b, const struct vt_node *map, const char *key,
                    const char **out, struct vt_err *err)
{
    const char *text = NULL;
    int rc = jsonl_get_str(map, key, &text, err);

    if (rc != VT_OK || !text)
        return rc;
    *out = vt_arena_copy(&b->w->arena, text, strlen(text));
    return *out ? VT_OK : vt_nomem(err);
}

static int get_tristate(const struct vt_node *map, const char *key, int *out,
                        struct vt_err *err)
{
    bool v = false;
    int rc;

    if (!jsonl_field(map, key))
        return VT_OK;
    rc = vt_get_bool(map, key, VT_REQUIRED, &v, err);
    if (rc == VT_OK)
        *out = v;
    return rc;
}

/* The default way to make arrivals follows from how the recorded ones were made:
 * those that waited for answers must wait for the twin's. */
static int read_workload(struct trace_build *b, const struct vt_node *spec,
                         struct vt_err *err)
{
    struct vt_workload *w = b->w;
    const char *kind;
    int rc = copy_str(b, spec, "name", &w->meta.workload_name, err);

    if (rc == VT_OK)
        rc = copy_str(b, spec, "kind", &w->meta.workload_kind, err);
    if (rc != VT_OK)
        return rc;
    kind = w->meta.workload_kind ? w->meta.workload_kind : "";
    if (strcmp(kind, "closed") == 0) {
        w->arrivals = VT_ARRIVALS_CLOSED;
        return vt_get_u32(spec, "concurrency", VT_REQUIRED, 1, INT32_MAX,
                          &w->concurrency, err);
    }
    if (strcmp(kind, "multiturn") == 0) {
        w->arrivals = VT_ARRIVALS_SESSION;
        return jsonl_get_u32(spec, "concurrency", 1, INT32_MAX, &w->concurrency, err);
    }
    return VT_OK;
}

static int read_limits(struct vt_meta *m, const struct vt_node *meta,
                       struct vt_err *err)
{
    int rc = jsonl_get_limits(meta, m, err);

    if (rc == VT_OK)
        rc = get_tristate(meta, "async_scheduling", &m->async_scheduling, err);
    if (rc == VT_OK)
        rc =
            get_tristate(meta, "enable_prefix_caching", &m->enable_prefix_caching, err);
    return rc;
}

static int read_meta(struct jsonl *f, const struct vt_node *meta, struct vt_err *err)
{
    struct vt_meta *m = &f->b->w->meta;
    const struct vt_node *workload = vt_get(meta, "workload");
    int rc;

    if (meta->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "line %u: field 'meta' is not an object",
                       meta->line);
    rc = copy_str(f->b, meta, "model", &m->model, err);
    if (rc == VT_OK)
        rc = copy_str(f->b, meta, "gpu", &m->gpu, err);
    if (rc == VT_OK)
        rc = copy_str(f->b, meta, "vllm_version", &m->vllm_version, err);
    if (rc == VT_OK)
        rc = read_limits(m, meta, err);
    if (rc == VT_OK && workload && workload->kind == VT_MAP)
        rc = read_workload(f->b, workload, err);
    if (rc == VT_OK && m->block_size)
        f->block_size = m->block_size;
    return rc;
}

/* ---- the prompt's content --------------------------------------------- */

/* One [name, tokens] or [name, tokens, offset]. */
static bool node_segment(const struct vt_node *n, struct vt_segment *out)
{
    *out = (struct vt_segment){0};
    if (n->kind != VT_LIST || n->n < 2 || n->n > 3 || n->u.item[0].kind != VT_STR)
        return false;
    out->content = vt_content_named(n->u.item[0].u.str, n->u.item[0].n);
    return jsonl_node_u32(&n->u.item[1], 0, &out->tokens) &&
           (n->n == 2 || jsonl_node_u32(&n->u.item[2], 0, &out->offset)) &&
           out->offset <= UINT32_MAX - out->tokens;
}

static int read_segments(struct jsonl *f, const struct vt_node *row,
                         const struct vt_node *list, uint32_t prompt_tokens,
                         struct vt_err *err)
{
    uint64_t sum = 0;
    int rc = VT_OK;

    for (uint32_t i = 0; i < list->n && rc == VT_OK; i++) {
        struct vt_segment s;

        if (!node_segment(&list->u.item[i], &s))
            return jsonl_bad_field(row, "segments",
                                   "must hold [name, tokens] or [name, tokens, offset]",
                                   err);
        sum += s.tokens;
        rc = trace_build_segment(f->b, s, err);
    }
    if (rc == VT_OK && sum != prompt_tokens)
        return vt_fail(err, VT_EINPUT,
                       "line %u: field 'segments' sums to %" PRIu64
                       " tokens, but prompt_tokens is %u",
                       row->line, sum, prompt_tokens);
    return rc;
}

/* vllm-vcr's hashes of full blocks; each covers its prefix, so equal ones mean equal
 * content. */
static int read_block_hashes(struct jsonl *f, const struct vt_node *row,
                             const struct vt_node *list, uint32_t prompt_tokens,
                             uint32_t *covered, struct vt_err *err)
{
    int rc = VT_OK;

    if (list->n > prompt_tokens / f->block_size)
        return vt_fail(
            err, VT_EINPUT,
            "line %u: field 'block_hashes' has %u hashes, but %u tokens fill %u "
            "blocks of %u",
            row->line, list->n, prompt_tokens, prompt_tokens / f->block_size,
            f->block_size);
    for (uint32_t i = 0; i < list->n && rc == VT_OK; i++) {
        const struct vt_node *hash = &list->u.item[i];

        if (hash->kind != VT_INT || (hash->u.integer < 0 && !hash->is_u64))
            return jsonl_bad_field(row, "block_hashes",
                                   "must hold unsigned 64-bit integers", err);
        rc = trace_build_segment(f->b,
                                 (struct vt_segment){.content = trace_content_block(
                                                         (uint64_t)hash->u.integer),
                                                     .tokens = f->block_size},
                                 err);
    }
    *covered = list->n * f->block_size;
    return rc;
}

static int read_content(struct jsonl *f, const struct vt_node *row, struct vt_err *err)
{
    const struct vt_work *q = &f->b->w->req[f->b->w->n - 1];
    const struct vt_node *segments, *hashes;
    uint32_t covered = 0;
    int rc = jsonl_get_list(row, "segments", &segments, err);

    if (rc == VT_OK)
        rc = jsonl_get_list(row, "block_hashes", &hashes, err);
    if (rc != VT_OK)
        return rc;
    if (segments)
        return read_segments(f, row, segments, q->prompt_tokens, err);
    if (hashes)
        rc = read_block_hashes(f, row, hashes, q->prompt_tokens, &covered, err);
    if (rc != VT_OK)
        return rc;
    return trace_build_segment(
        f->b,
        (struct vt_segment){.content = trace_content_prompt(q->id, strlen(q->id)),
                            .tokens = q->prompt_tokens - covered},
        err);
}

/* ---- requests --------------------------------------------------------- */

static int read_session(struct jsonl *f, const struct vt_node *row, struct vt_work *q,
                        struct vt_err *err)
{
    const struct vt_node *session = jsonl_field(row, "session");
    char number[24];
    int len, rc;

    if (!session)
        return VT_OK;
    if (session->kind == VT_STR) {
        rc = trace_build_session(f->b, session->u.str, session->n, &q->session, err);
    } else if (session->kind == VT_INT) {
        len = snprintf(number, sizeof(number), "%" PRId64, session->u.integer);
        rc = trace_build_session(f->b, number, (size_t)len, &q->session, err);
    } else {
        return jsonl_bad_field(row, "session", "must be a string or an integer", err);
    }
    if (rc != VT_OK)
        return vt_within(err, rc, "line %u", row->line);
    rc = vt_get_u32(row, "turn", VT_REQUIRED, 0, INT32_MAX, &q->turn, err);
    if (rc == VT_OK)
        rc = jsonl_get_ms(row, "think_ms", &q->think_ns, err);
    return rc;
}

/* A request that ended by itself must not be ended by its length here. */
static int read_max_tokens(const struct vt_node *row, const char *finish,
                           struct vt_work *q, struct vt_err *err)
{
    uint32_t given = 0;
    int rc = jsonl_get_u32(row, "max_tokens", 1, UINT32_MAX, &given, err);

    if (rc != VT_OK)
        return rc;
    if (given && given < q->output_tokens)
        return vt_fail(err, VT_EINPUT,
                       "line %u: field 'max_tokens' is %u, but output_tokens is %u",
                       row->line, given, q->output_tokens);
    if (!finish)
        q->max_tokens = given ? given : q->output_tokens;
    else if (strcmp(finish, "length") == 0)
        q->max_tokens = q->output_tokens;
    else
        q->max_tokens = given > q->output_tokens ? given : q->output_tokens + 1;
    return VT_OK;
}

static int add_row(struct jsonl *f, const struct vt_node *row, struct vt_err *err)
{
    const struct vt_node *id = jsonl_field(row, "id");
    struct vt_work *q;
    int rc;

    if (id && id->kind != VT_STR)
        return jsonl_bad_field(row, "id", "is not a string", err);
    rc = id ? trace_build_add(f->b, id->u.str, id->n, &q, err)
            : trace_build_add_numbered(f->b, f->row, &q, err);
    return vt_within(err, rc, "line %u", row->line);
}

static int read_priority(const struct vt_node *row, struct vt_work *q,
                         struct vt_err *err)
{
    int64_t priority = 0;
    int rc = VT_OK;

    if (jsonl_field(row, "priority"))
        rc = vt_get_i64(row, "priority", VT_REQUIRED, INT32_MIN, INT32_MAX, &priority,
                        err);
    q->priority = (int32_t)priority;
    return rc;
}

static int read_request(struct jsonl *f, const struct vt_node *row, const char *finish,
                        struct vt_err *err)
{
    struct vt_work *q;
    uint32_t cached_tokens = 0, concurrency = 0;
    int rc = add_row(f, row, err);

    if (rc != VT_OK)
        return rc;
    q = &f->b->w->req[f->b->w->n - 1];
    rc = jsonl_get_ms(row, "arrival_ms", &q->arrival_ns, err);
    if (rc == VT_OK)
        rc = vt_get_u32(row, "prompt_tokens", VT_REQUIRED, 1, TRACE_MAX_TOKENS,
                        &q->prompt_tokens, err);
    if (rc == VT_OK)
        rc = jsonl_get_u32(row, "cached_tokens", 0, q->prompt_tokens, &cached_tokens,
                           err);
    if (rc == VT_OK)
        rc = vt_get_u32(row, "output_tokens", VT_REQUIRED, 1, TRACE_MAX_TOKENS,
                        &q->output_tokens, err);
    if (rc == VT_OK)
        rc = jsonl_get_u32(row, "concurrency", 0, INT32_MAX, &concurrency, err);
    if (rc == VT_OK)
        rc = read_max_tokens(row, finish, q, err);
    if (rc == VT_OK)
        rc = read_priority(row, q, err);
    if (rc == VT_OK)
        rc = read_session(f, row, q, err);
    if (rc == VT_OK)
        rc = read_content(f, row, err);
    if (rc == VT_OK)
        rc = jsonl_read_timings(f, row, cached_tokens, err);
    return rc;
}

/* A request that ended without a token leaves nothing to repeat. */
static bool is_skipped(const struct vt_node *row, const char *finish)
{
    const struct vt_node *output = vt_get(row, "output_tokens");

    return finish && output && output->kind == VT_INT && output->u.integer == 0;
}

static int read_line(struct jsonl *f, const struct vt_node *row, bool first,
                     struct vt_err *err)
{
    const struct vt_node *meta = vt_get(row, "meta");
    const char *finish = NULL;
    int rc;

    if (meta && first)
        return read_meta(f, meta, err);
    if (meta)
        return vt_fail(
            err, VT_EINPUT,
            "line %u: 'meta' may only be on the first line (two traces in one "
            "file?)",
            row->line);
    rc = jsonl_get_str(row, "finish_reason", &finish, err);
    if (rc == VT_OK && !is_skipped(row, finish))
        rc = read_request(f, row, finish, err);
    f->row++;
    return rc;
}

static int read_rows(struct trace_build *b, struct trace_reader *r, struct vt_err *err)
{
    struct jsonl f = {.b = b, .block_size = DEFAULT_BLOCK_SIZE};
    struct vt_arena scratch = {0};
    bool first = true;
    int rc = VT_OK;

    while (rc == VT_OK && r->line) {
        const struct vt_node *row;

        b->line = r->number;
        rc = trace_reader_json(r, &scratch, &row, err);
        if (rc == VT_OK)
            rc = read_line(&f, row, first, err);
        if (rc != VT_OK)
            rc = vt_within(err, rc, "%s", r->name);
        else
            rc = trace_reader_next(r, err);
        first = false;
    }
    vt_arena_free(&scratch);
    return rc;
}

const struct trace_format trace_format_jsonl = {
    .name = "trace.jsonl",
    .recognise = recognise,
    .read = read_rows,
};
