/* aiperf.c - AIPerf's profile_export.jsonl: one record for each request, measured at
 * the client. Metrics are {"value": ..., "unit": ...}. What was asked stands in
 * inputs.json beside it, what the load was in profile_export_aiperf.json. */
#include <stdlib.h>

#include "trace/convert/convert.h"

struct report {
    size_t unseen; /* records without a first token */
    struct vt_records *r;
    struct convert_prompts prompts;
    /* Conversations of inputs.json by name, for which a list is kept. */
    struct conversation {
        const char *id;
        const struct vt_node *payloads;
    } *conversation;
    size_t n_conversations;
};

/* ---- what was asked --------------------------------------------------- */

static int by_id(const void *pa, const void *pb)
{
    const struct conversation *a = pa, *b = pb;

    return strcmp(a->id, b->id);
}

static int list_conversations(struct report *in, const struct vt_node *inputs,
                              struct vt_err *err)
{
    const struct vt_node *list = vt_get(inputs, "data");

    if (!list || list->kind != VT_LIST)
        return VT_OK;
    in->conversation = malloc((list->n + 1) * sizeof(*in->conversation));
    if (!in->conversation)
        return vt_nomem(err);
    for (uint32_t i = 0; i < list->n; i++) {
        const struct vt_node *id = vt_get(&list->u.item[i], "session_id");
        const struct vt_node *payloads = vt_get(&list->u.item[i], "payloads");

        if (id && id->kind == VT_STR && payloads && payloads->kind == VT_LIST)
            in->conversation[in->n_conversations++] =
                (struct conversation){id->u.str, payloads};
    }
    qsort(in->conversation, in->n_conversations, sizeof(*in->conversation), by_id);
    return VT_OK;
}

static const struct vt_node *payload_of(const struct report *in, const char *id,
                                        uint32_t turn)
{
    struct conversation key = {.id = id};
    const struct conversation *c =
        id && in->n_conversations > 0
            ? bsearch(&key, in->conversation, in->n_conversations, sizeof(key), by_id)
            : NULL;

    return c && turn < c->payloads->n ? &c->payloads->u.item[turn] : NULL;
}

/* ---- records ---------------------------------------------------------- */

static const struct vt_node *metric(const struct vt_node *row, const char *name)
{
    return vt_get_non_null(vt_get(vt_get(row, "metrics"), name), "value");
}

/* The server's count where it told one, else the client's. */
static uint32_t count_of(const struct vt_node *row, const char *server,
                         const char *client)
{
    uint32_t n = 0;

    if (!jsonl_node_u32(metric(row, server), 0, &n))
        (void)jsonl_node_u32(metric(row, client), 0, &n);
    return n <= TRACE_MAX_TOKENS ? n : 0;
}

/* "inter_chunk_latency" has a gap for every chunk; without it there is the mean. */
static int add_gaps(struct vt_records *r, struct vt_record *q,
                    const struct vt_node *row, struct vt_err *err)
{
    const struct vt_node *list = metric(row, "inter_chunk_latency");
    vt_ns mean, *gap;

    if (!list || list->kind != VT_LIST) {
        if (q->output_tokens < 2)
            return VT_OK;
        list = metric(row, "inter_token_latency");
        if (!list || !jsonl_node_ms(list, &mean))
            return vt_fail(err, VT_EINPUT,
                           "a record has neither inter_chunk_latency nor "
                           "inter_token_latency");
        return convert_mean(r, q, mean, q->output_tokens - 1, err);
    }
    gap = vt_arena_alloc(&r->arena, list->n * sizeof(*gap));
    if (!gap)
        return vt_nomem(err);
    for (uint32_t i = 0; i < list->n; i++)
        if (!jsonl_node_ms(&list->u.item[i], &gap[i]))
            return vt_fail(err, VT_EINPUT,
                           "inter_chunk_latency must hold milliseconds from 0");
    return convert_gaps(r, q, gap, list->n, err);
}

static bool is_true(const struct vt_node *map, const char *key)
{
    const struct vt_node *n = vt_get(map, key);

    return n && n->kind == VT_BOOL && n->u.boolean;
}

static bool is_warmup(const struct vt_node *about)
{
    const struct vt_node *phase = vt_get(about, "benchmark_phase");

    return phase && phase->kind == VT_STR && strcmp(phase->u.str, "warmup") == 0;
}

static int add_record(struct report *in, const struct vt_node *row, struct vt_err *err)
{
    const struct vt_node *about = vt_get(row, "metadata");
    const struct vt_node *ttft = metric(row, "time_to_first_token");
    uint32_t input = count_of(row, "usage_prompt_tokens", "input_sequence_length");
    uint32_t output =
        count_of(row, "usage_completion_tokens", "output_sequence_length");
    const char *talk = NULL;
    struct vt_record *q;
    uint64_t start;
    int rc;

    if (!about || !vt_get(row, "metrics"))
        return vt_fail(err, VT_EINPUT, "needs 'metadata' and 'metrics'");
    if (vt_get_non_null(row, "error") || is_true(about, "was_cancelled") ||
        input == 0 || output == 0) {
        records_skip(in->r, 0);
        return VT_OK;
    }
    if (is_warmup(about))
        return VT_OK;
    if (!vt_node_u64(vt_get(about, "request_start_ns"), INT64_MAX, &start))
        return vt_fail(err, VT_EINPUT, "'request_start_ns' is no time");
    if (!ttft || convert_has_hole(metric(row, "inter_chunk_latency"))) {
        in->unseen += !ttft;
        records_skip(in->r, 0);
        return VT_OK;
    }
    if ((rc = records_add(in->r, &q, err)))
        return rc;
    if (!jsonl_node_ms(ttft, &q->ttft_ns))
        return vt_fail(err, VT_EINPUT, "'time_to_first_token' is no time");
    q->line = row->line;
    q->prompt_tokens = input;
    q->output_tokens = output;
    q->arrival_ns = (vt_ns)start;
    q->cached_tokens = count_of(row, "usage_prompt_cache_read_tokens", "");
    if (q->cached_tokens > input)
        q->cached_tokens = input;
    /* A conversation of the data may be held several times, each with a correlation. */
    if ((rc = jsonl_copy_str(&in->r->arena, about, "x_request_id", &q->id, err)) ||
        (rc = jsonl_copy_str(&in->r->arena, about, "x_correlation_id", &q->session,
                             err)) ||
        (rc = jsonl_get_str(about, "conversation_id", &talk, err)) ||
        (rc = jsonl_get_u32(about, "turn_index", 0, INT32_MAX, &q->turn, err)) ||
        (rc = convert_prompt_add(&in->prompts, payload_of(in, talk, q->turn),
                                 in->r->n - 1, err)))
        return rc;
    return add_gaps(in->r, q, row, err);
}

static int read_row(void *user, struct trace_reader *in, const struct vt_node *row,
                    struct vt_err *err)
{
    (void)in;
    return vt_within(err, add_record(user, row, err), "line %u", row->line);
}

int convert_aiperf_lines(struct vt_records *r, struct vt_lines *lines,
                         const struct vt_node *inputs,
                         const struct vt_tokenizer *tokenizer, struct vt_err *err)
{
    struct trace_reader in = {.lines = lines, .name = vt_lines_name(lines)};
    struct report report = {.r = r, .prompts.tokenizer = tokenizer};
    int rc;

    in.nulls = &r->n_nulls;
    if ((rc = records_init(r, in.name, err)) ||
        (rc = list_conversations(&report, inputs, err)) ||
        (rc = trace_reader_next(&in, err)) ||
        (rc = trace_reader_rows(&in, read_row, &report, err)) ||
        (rc = convert_need_times(r, report.unseen, "time_to_first_token", err)) ||
        (rc = convert_prompts_share(&report.prompts, r, err)) ||
        (rc = convert_sessions(r, err)) ||
        (rc = vt_within(err, convert_from_first(r, err), "%s", in.name)))
        vt_records_free(r);
    convert_prompts_free(&report.prompts);
    free(report.conversation);
    return rc;
}

/* ---- files ------------------------------------------------------------ */

/* A single phase that keeps so many requests in flight is a closed loop. */
static int read_load(struct vt_records *r, const struct vt_node *summary,
                     struct vt_err *err)
{
    const struct vt_node *config = vt_get(summary, "input_config");
    const struct vt_node *phases = vt_get(config, "phases");
    const struct vt_node *models = vt_get(vt_get(config, "models"), "items");
    const struct vt_node *load = NULL, *type;
    uint32_t concurrency = 0;
    int rc = VT_OK;

    if (models && models->kind == VT_LIST && models->n == 1)
        rc = jsonl_copy_str(&r->arena, models->u.item, "name", &r->meta.model, err);
    for (uint32_t i = 0; phases && phases->kind == VT_LIST && i < phases->n; i++) {
        const struct vt_node *kind = vt_get(&phases->u.item[i], "kind");

        if (!kind || kind->kind != VT_STR || strcmp(kind->u.str, "warmup") == 0)
            continue;
        if (load)
            return rc;
        load = &phases->u.item[i];
    }
    type = vt_get(load, "type");
    if (rc || !type || type->kind != VT_STR || strcmp(type->u.str, "concurrency") != 0)
        return rc;
    rc = jsonl_get_u32(load, "concurrency", 1, INT32_MAX, &concurrency, err);
    if (rc || concurrency == 0)
        return rc;
    if (r->n_parts > 0) { /* its conversations have made it one */
        r->part[0].concurrency = concurrency;
        if (r->part[0].arrivals == VT_ARRIVALS_RECORDED)
            r->part[0].arrivals = VT_ARRIVALS_CLOSED;
        return VT_OK;
    }
    return convert_part(r, NULL, concurrency, err);
}

int convert_read_aiperf(struct vt_records *r, const struct convert_from *from,
                        struct vt_err *err)
{
    const struct vt_node *inputs, *summary;
    struct vt_lines *lines = NULL;
    struct vt_arena a = {0};
    int rc;

    if (!(rc = convert_beside(&a, from->path, "inputs.json", &inputs, err)) &&
        !(rc = convert_beside(&a, from->path, "profile_export_aiperf.json", &summary,
                              err)) &&
        !(rc = vt_lines_open(&lines, from->path, err)))
        rc = convert_aiperf_lines(r, lines, inputs, from->tokenizer, err);
    if (rc == VT_OK) {
        r->meta.clock = VT_CLOCK_CLIENT;
        rc = vt_within(err, read_load(r, summary, err), "profile_export_aiperf.json");
        if (rc != VT_OK)
            vt_records_free(r);
    }
    vt_lines_close(lines);
    vt_arena_free(&a);
    return rc;
}
