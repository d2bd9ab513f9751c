/* lifecycle.c - inference-perf's per_request_lifecycle_metrics.json, measured at the
 * client. Until 0.6 counts and times stood in `info`; since 0.7 they are in
 * info.request_metrics and info.response_metrics. */
#include <stdlib.h>

#include "trace/convert/convert.h"

/* ---- what else the run left ------------------------------------------- */

struct stage {
    uint32_t requests, concurrency;
};

struct report {
    struct vt_records *r;
    bool all;
    struct convert_prompts prompts;
    double *start; /* when requests were sent, ascending; failed ones too */
    size_t n;
    struct stage *stage; /* of a run with `load.type: concurrent`; else none */
    size_t n_stages;
};

/* The run's configuration beside its results says what load it was. Requests do not
 * name their stage, but each stage sends as many as it says before the next begins. */
static int read_stages(struct report *in, const char *path, struct vt_err *err)
{
    const struct vt_node *root, *load, *type, *list;
    struct vt_arena a = {0};
    int rc = path ? convert_beside(&a, path, "config.yaml", &root, err) : VT_OK;

    if (rc != VT_OK || !path)
        goto out;
    load = vt_get(root, "load");
    type = vt_get(load, "type");
    list = vt_get(load, "stages");
    if (!type || type->kind != VT_STR || strcmp(type->u.str, "concurrent") != 0 ||
        !list || list->kind != VT_LIST || list->n == 0)
        goto out;
    in->stage = calloc(list->n, sizeof(*in->stage));
    if (!in->stage) {
        rc = vt_nomem(err);
        goto out;
    }
    for (uint32_t i = 0; i < list->n && rc == VT_OK; i++) {
        const struct vt_node *s = &list->u.item[i];
        struct stage *to = &in->stage[in->n_stages++];
        char name[32];

        rc = vt_get_u32(s, "num_requests", VT_REQUIRED, 1, INT32_MAX, &to->requests,
                        err);
        if (rc == VT_OK)
            rc = vt_get_u32(s, "concurrency_level", VT_REQUIRED, 1, INT32_MAX,
                            &to->concurrency, err);
        snprintf(name, sizeof(name), "concurrent-%u", to->concurrency);
        if (rc == VT_OK)
            rc = convert_part(in->r, list->n > 1 ? name : NULL, to->concurrency, err);
        rc = vt_within(err, rc, "config.yaml");
    }
out:
    vt_arena_free(&a);
    return rc;
}

static int list_starts(struct report *in, const struct vt_node *root,
                       struct vt_err *err)
{
    in->start = malloc((root->n + 1) * sizeof(*in->start));
    if (!in->start)
        return vt_nomem(err);
    for (uint32_t i = 0; i < root->n; i++)
        if (convert_number(vt_get(&root->u.item[i], "start_time"), &in->start[in->n]))
            in->n++;
    vt_sort_f64(in->start, in->n);
    return VT_OK;
}

static uint32_t stage_of(const struct report *in, const struct vt_node *row)
{
    size_t before = 0, lo = 0, hi = in->n;
    double at = 0;

    (void)convert_number(vt_get(row, "start_time"), &at);
    while (lo < hi) { /* how many were sent sooner */
        size_t mid = (lo + hi) / 2;

        if (in->start[mid] < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (size_t i = 0; i + 1 < in->n_stages; i++) {
        before += in->stage[i].requests;
        if (lo < before)
            return (uint32_t)i;
    }
    return in->n_stages > 0 ? (uint32_t)in->n_stages - 1 : 0;
}

/* ---- requests --------------------------------------------------------- */

/* What a row says, wherever its release puts it. */
struct row {
    const struct vt_node *node, *info;
    const struct vt_node *body; /* what was asked: a map, or NULL */
    uint32_t input, output, cached;
    uint32_t asked; /* output tokens; 0: not stated */
    bool ignore_eos, counted;
    const struct vt_node *times, *usage;
};

/* The request as it was sent is JSON within a string. What a server would not take
 * tells nothing. */
static void read_body(struct row *w, struct vt_arena *scratch)
{
    static const char *const limit[] = {"max_tokens", "max_completion_tokens"};
    const struct vt_node *request = vt_get_non_null(w->node, "request"), *eos;
    struct vt_err ignored;

    w->body = request;
    if (request && request->kind == VT_STR &&
        vt_json_parse(scratch, request->u.str, request->n, 1, &w->body, &ignored) !=
            VT_OK)
        w->body = NULL;
    if (!w->body || w->body->kind != VT_MAP) {
        w->body = NULL;
        return;
    }
    eos = vt_get(w->body, "ignore_eos");
    w->ignore_eos = eos && eos->kind == VT_BOOL && eos->u.boolean;
    for (size_t i = 0; i < VT_COUNT(limit); i++) {
        const struct vt_node *n = vt_get_non_null(w->body, limit[i]);
        uint32_t tokens;

        if (n && jsonl_node_u32(n, 1, &tokens) && tokens <= TRACE_MAX_TOKENS)
            w->asked = tokens;
    }
}

static int read_counts(struct row *w, struct vt_err *err)
{
    const struct vt_node *info = w->info;
    const struct vt_node *asked = vt_get(vt_get(info, "request_metrics"), "text");
    const struct vt_node *answer = vt_get_non_null(info, "response_metrics");
    const struct vt_node *details;
    int rc;

    w->usage = vt_get_non_null(answer, "server_usage");
    details = vt_get_non_null(w->usage, "prompt_tokens_details");
    w->times = vt_get_non_null(answer, "output_token_times");
    if (!w->times)
        w->times = vt_get_non_null(info, "output_token_times");
    /* Later ones count more: the server's own are exact. */
    const struct {
        const struct vt_node *map;
        const char *key;
        uint32_t *out;
    } count[] = {{info, "input_tokens", &w->input},
                 {asked, "input_tokens", &w->input},
                 {w->usage, "prompt_tokens", &w->input},
                 {info, "output_tokens", &w->output},
                 {answer, "output_tokens", &w->output},
                 {w->usage, "completion_tokens", &w->output},
                 {details, "cached_tokens", &w->cached}};

    for (size_t i = 0; i < VT_COUNT(count); i++)
        if ((rc = jsonl_get_u32(count[i].map, count[i].key, 0, TRACE_MAX_TOKENS,
                                count[i].out, err)))
            return rc;
    /* An engine that may not stop makes as many as were asked for. Clients count what
     * their tokenizer makes of the text, which is something else. */
    if (w->ignore_eos && w->asked > 0 && w->output > 0 && !w->usage)
        w->output = w->asked;
    w->counted = w->usage || (w->ignore_eos && w->asked > 0);
    return VT_OK;
}

static bool has_text(const struct vt_node *n, const char *text)
{
    return n && n->kind == VT_STR && strstr(n->u.str, text);
}

/* inference-perf calls a stream complete that tells of an error in its midst. It shows
 * in the stream, or in that the usage is missing which the request had asked for;
 * before 0.7 it was not kept. */
static bool was_broken_off(const struct row *w)
{
    if (has_text(vt_get(w->node, "response"), "data: {\"error\""))
        return true;
    return !w->usage && w->times && vt_get_non_null(w->info, "response_metrics") &&
           has_text(vt_get(w->node, "request"), "\"include_usage\": true");
}

/* Why a request is none that was served; NULL: it was. */
static const char *failure_of(const struct row *w)
{
    const struct vt_node *error = vt_get_non_null(w->node, "error");
    const struct vt_node *type = vt_get_non_null(error, "error_type");

    if (error)
        return type && type->kind == VT_STR ? type->u.str : "an error";
    if (w->input == 0 || w->output == 0)
        return "no token";
    return was_broken_off(w) || convert_has_hole(w->times) ? "broken off" : NULL;
}

static int add_times(struct vt_records *r, struct vt_record *q,
                     const struct vt_node *times, struct vt_err *err)
{
    vt_ns *gap = vt_arena_alloc(&r->arena, times->n * sizeof(*gap));
    vt_ns last = q->arrival_ns;

    if (!gap)
        return vt_nomem(err);
    for (uint32_t i = 0; i < times->n; i++) {
        vt_ns at;

        if (!convert_seconds(&times->u.item[i], &at) || at < last)
            return vt_fail(err, VT_EINPUT, "output_token_times are not ascending");
        if (i == 0)
            q->ttft_ns = at - last;
        else
            gap[i - 1] = at - last;
        last = at;
    }
    return convert_gaps(r, q, gap, times->n - 1, err);
}

/* ---- what a prompt shares, where its text is not kept ------------------- */

static int name_segment(struct vt_records *r, struct vt_record_segment *to,
                        const char *what, const char *which, uint32_t tokens,
                        struct vt_err *err)
{
    struct vt_buf name = {0};
    int rc;

    vt_buf_printf(&name, "%s%s", what, which);
    rc = name.failed ? vt_nomem(err)
                     : vt_arena_text(&r->arena, name.data, &to->name, err);
    to->tokens = tokens;
    vt_buf_free(&name);
    return rc;
}

/* info.segments, [[name, tokens], ...], where a recorder knew the prompt's content; the
 * rest is the request's own. */
static int known_segments(struct vt_records *r, struct vt_record *q,
                          const struct vt_node *list, struct vt_err *err)
{
    struct vt_record_segment *to =
        vt_arena_alloc(&r->arena, ((size_t)list->n + 1) * sizeof(*to));
    uint32_t left = q->prompt_tokens, n = 0;
    char own[32];
    int rc = to ? VT_OK : vt_nomem(err);

    for (uint32_t i = 0; i < list->n && rc == VT_OK && left > 0; i++) {
        const struct vt_node *s = &list->u.item[i];
        uint32_t tokens;

        if (s->kind != VT_LIST || s->n != 2 || s->u.item[0].kind != VT_STR ||
            !jsonl_node_u32(&s->u.item[1], 0, &tokens))
            return vt_fail(err, VT_EINPUT, "line %u: a segment is not [name, tokens]",
                           s->line);
        tokens = tokens < left ? tokens : left;
        if (tokens == 0)
            continue;
        to[n] = (struct vt_record_segment){0};
        rc = name_segment(r, &to[n++], "", s->u.item[0].u.str, tokens, err);
        left -= tokens;
    }
    snprintf(own, sizeof(own), "%zu", r->n - 1);
    if (rc == VT_OK && left > 0) {
        to[n] = (struct vt_record_segment){0};
        rc = name_segment(r, &to[n++], "own-", own, left, err);
    }
    q->segment = to;
    q->n_segments = n;
    return rc;
}

static const struct vt_node *hash_of(const struct row *w)
{
    const struct vt_node *const place[] = {w->node, w->info, w->body};

    for (size_t i = 0; i < VT_COUNT(place); i++) {
        const struct vt_node *hash = vt_get_non_null(place[i], "prompt_hash");

        if (hash && hash->kind == VT_STR)
            return hash;
    }
    return NULL;
}

static int add_content(struct report *in, struct vt_record *q, const struct row *w,
                       struct vt_err *err)
{
    const struct vt_node *segments = vt_get_non_null(w->info, "segments");
    const struct vt_node *hash = hash_of(w);
    struct vt_record_segment *whole;

    if (segments && segments->kind == VT_LIST)
        return known_segments(in->r, q, segments, err);
    if (!hash)
        return convert_prompt_add(
            &in->prompts, w->body ? w->body : vt_get_non_null(w->node, "request"),
            in->r->n - 1, err);
    if (q->prompt_tokens == 0)
        return VT_OK;
    whole = vt_arena_alloc(&in->r->arena, sizeof(*whole));
    if (!whole)
        return vt_nomem(err);
    *whole = (struct vt_record_segment){0};
    q->segment = whole;
    q->n_segments = 1;
    return name_segment(in->r, whole, "hash-", hash->u.str, q->prompt_tokens, err);
}

/* ---- a row -------------------------------------------------------------- */

static int add_served(struct vt_records *r, struct vt_record *q, const struct row *w,
                      bool all, struct vt_err *err)
{
    if (w->times && w->times->kind == VT_LIST && w->times->n > 0)
        return add_times(r, q, w->times, err);
    return all ? VT_OK
               : vt_fail(err, VT_EINPUT,
                         "no output_token_times: the run did not stream, so first "
                         "tokens were not seen");
}

static int add_end(struct vt_record *q, const struct row *w, struct vt_err *err)
{
    vt_ns end;

    if (!convert_seconds(vt_get(w->node, "end_time"), &end) || end < q->arrival_ns)
        return vt_fail(err, VT_EINPUT, "needs an 'end_time' after its 'start_time'");
    q->e2e_ns = end - q->arrival_ns;
    return jsonl_get_u32(w->node, "stage_id", 0, INT32_MAX, &q->stage, err);
}

static int add_row(struct report *in, const struct row *w, vt_ns start,
                   struct vt_err *err)
{
    const char *failure = failure_of(w);
    struct vt_records *r = in->r;
    struct vt_record *q;
    int rc;

    if (failure && !in->all) {
        records_skip(r, stage_of(in, w->node));
        return VT_OK;
    }
    if ((rc = records_add(r, &q, err)))
        return rc;
    q->prompt_tokens = w->input;
    q->output_tokens = failure ? w->asked : w->output;
    q->cached_tokens = w->cached < w->input ? w->cached : w->input;
    q->counted = w->counted;
    q->arrival_ns = start;
    q->part = stage_of(in, w->node);
    if ((rc = vt_arena_text(&r->arena, failure, &q->failure, err)) ||
        (in->all && (rc = add_end(q, w, err))) ||
        (rc = jsonl_copy_str(&r->arena, w->info, "lora_adapter", &q->lora, err)) ||
        (rc = add_content(in, q, w, err)))
        return rc;
    return failure ? VT_OK : add_served(r, q, w, in->all, err);
}

static int add_request(struct report *in, const struct vt_node *node,
                       struct vt_err *err)
{
    struct row w = {.node = node, .info = vt_get_non_null(node, "info")};
    struct vt_arena scratch = {0};
    vt_ns start;
    int rc;

    if (!convert_seconds(vt_get(node, "start_time"), &start) || !w.info)
        return vt_fail(err, VT_EINPUT, "needs 'start_time' and 'info'");
    read_body(&w, &scratch);
    if (!(rc = read_counts(&w, err)))
        rc = add_row(in, &w, start, err);
    vt_arena_free(&scratch);
    return rc;
}

int convert_lifecycle_tree(struct vt_records *r, const struct vt_node *root,
                           const struct convert_from *from, struct vt_err *err)
{
    struct report in = {.r = r,
                        .all = from && from->all,
                        .prompts.tokenizer = from ? from->tokenizer : NULL};
    int rc;

    if (root->kind != VT_LIST)
        return vt_fail(err, VT_EINPUT,
                       "not a list of requests (summaries and stages hold none; "
                       "per_request_lifecycle_metrics.json does)");
    if (in.all && root->n == 0)
        return VT_OK;
    if (!(rc = read_stages(&in, from ? from->path : NULL, err)))
        rc = list_starts(&in, root, err);
    for (uint32_t i = 0; i < root->n && rc == VT_OK; i++)
        rc = vt_within(err, add_request(&in, &root->u.item[i], err), "request %u", i);
    if (rc == VT_OK)
        rc = convert_prompts_share(&in.prompts, r, err);
    convert_prompts_free(&in.prompts);
    free(in.start);
    free(in.stage);
    return rc ? rc : convert_from_first(r, err);
}

int vt_lifecycle_load(struct vt_records *r, const char *path, struct vt_err *err)
{
    const struct convert_from from = {.path = path, .all = true};
    const struct vt_node *root;
    struct vt_arena a = {0};
    size_t nulls = 0;
    int rc = records_init(r, path, err);

    if (rc == VT_OK)
        rc = vt_report_tree_load(&a, path, &nulls, &root, err);
    if (rc == VT_OK) {
        r->n_nulls = nulls;
        r->meta.clock = VT_CLOCK_CLIENT;
        rc = vt_within(err, convert_lifecycle_tree(r, root, &from, err), "%s", path);
    }
    vt_arena_free(&a);
    if (rc != VT_OK)
        vt_records_free(r);
    return rc;
}
