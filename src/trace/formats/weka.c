/* weka.c - sessions of coding agents, as the traces of kv-cache-tester have them: one
 * JSON object for each session, one session for each line.
 *
 *     {"id": "a", "block_size": 64, "hash_id_scope": "local", "requests": [
 *       {"t": 0, "type": "n", "in": 900, "out": 40, "hash_ids": [1, 2],
 * "api_time": 3.1},
 *       {"t": 4, "type": "subagent", "duration_ms": 9000, "requests": [...]},
 *       {"t": 14, "type": "s", "in": 980, "out": 70, "hash_ids": [1, 2, 3],
 *        "think_time": 10.5}]}
 *
 * Times are in seconds. What a list holds happened one after the other, except for
 * calls, or sub-agents, that overlapped when they were recorded: those go together, and
 * what follows waits for all of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace/formats/formats.h"

enum { DEFAULT_BLOCK = 64, DEEPEST = 16 };
#define MAX_S (TRACE_MAX_MS / 1e3)

static bool recognise(const char *line, size_t len, const struct vt_node *first)
{
    const struct vt_node *list = first ? vt_get(first, "requests") : NULL;

    (void)line;
    (void)len;
    return list && list->kind == VT_LIST && vt_get(first, "id");
}

struct tree { /* the session in hand */
    struct trace_build *b;
    const char *id;
    size_t id_len;
    uint64_t scope; /* what its hash ids are hashed with; 0: they are everybody's */
    uint32_t block, session, turn;
    double think_s; /* of all of its requests */
};

struct calls { /* requests, by their places in the order of adding */
    uint32_t *at;
    size_t n, cap;
};

struct start { /* how what begins next is linked */
    const struct calls *after;
    uint32_t first, last; /* of those that begin, linked by `beside` */
    double delay_s;       /* after the end of all of `after` */
};

struct entry {
    const struct vt_node *node;
    bool agent;
    double begin, end; /* as recorded */
};

static struct vt_work *work(struct tree *t, uint32_t i)
{
    return &t->b->w->req[i];
}

/* ---- one call ------------------------------------------------------------------- */

static int read_prompt(struct tree *t, const struct vt_node *row, uint32_t tokens,
                       struct vt_err *err)
{
    const struct vt_node *ids = vt_get(row, "hash_ids");
    uint32_t left = tokens;
    int rc = VT_OK;

    if (!ids || ids->kind != VT_LIST)
        return vt_fail(err, VT_EINPUT, "line %u: field 'hash_ids' must be a list",
                       row->line);
    for (uint32_t i = 0; i < ids->n && rc == VT_OK; i++) {
        uint32_t n = left < t->block ? left : t->block;
        uint64_t id;

        if (!vt_node_u64(&ids->u.item[i], UINT64_MAX, &id))
            return vt_fail(err, VT_EINPUT,
                           "line %u: field 'hash_ids' must hold integers from 0",
                           row->line);
        if (n == 0)
            return vt_fail(
                err, VT_EINPUT,
                "line %u: field 'hash_ids' has %u ids, more than %u tokens have",
                row->line, ids->n, tokens);
        rc = trace_build_segment(
            t->b, t->scope ? vt_hash2(t->scope, id) : trace_content_block(id), 0, n,
            err);
        left -= n;
    }
    if (rc == VT_OK)
        rc = trace_build_own(t->b, left, err);
    return vt_within(err, rc, "line %u", row->line);
}

static int add_call(struct tree *t, const struct entry *e, struct start *s,
                    double base_s, struct vt_err *err)
{
    uint32_t index = (uint32_t)t->b->w->n;
    char id[300];
    struct vt_work *q;
    int rc;

    snprintf(id, sizeof(id), "%.*s:%u", (int)(t->id_len < 200 ? t->id_len : 200), t->id,
             t->turn);
    rc = vt_within(err, trace_build_add(t->b, id, strlen(id), &q, err), "line %u",
                   e->node->line);
    if (rc ||
        (rc = vt_get_u32(e->node, "in", VT_REQUIRED, 1, TRACE_MAX_TOKENS,
                         &q->prompt_tokens, err)) ||
        (rc = vt_get_u32(e->node, "out", VT_REQUIRED, 0, TRACE_MAX_TOKENS,
                         &q->output_tokens, err)))
        return rc;
    if (q->output_tokens == 0) /* an engine's answer has one at least */
        q->output_tokens = 1;
    q->max_tokens = q->output_tokens;
    q->arrival_ns = vt_ns_from_ms((base_s + e->begin) * 1e3);
    q->session = t->session;
    q->turn = t->turn++;
    q->n_before = (uint32_t)s->after->n;
    q->first_turn = s->after->n == 0;
    q->think_ns = q->first_turn ? 0 : vt_ns_from_ms(s->delay_s * 1e3);
    t->think_s += s->delay_s;
    if (t->think_s > MAX_S)
        return vt_fail(err, VT_EINPUT, "line %u: the session thinks too long",
                       e->node->line);
    if (s->first == VT_NO_TURN)
        s->first = index;
    else
        work(t, s->last)->beside = index;
    s->last = index;
    return read_prompt(t, e->node, q->prompt_tokens, err);
}

/* ---- a list of them ------------------------------------------------------------- */

static int seconds(const struct vt_node *row, const char *key, enum vt_need need,
                   double *out, struct vt_err *err)
{
    const struct vt_node *v = vt_get_non_null(row, key);

    if (!v && need == VT_OPTIONAL)
        return VT_OK;
    return vt_get_f64(row, key, need, 0, MAX_S, out, err);
}

/* How long an agent's own calls took, where the session does not say. */
static int inner_length(const struct vt_node *list, double *out, struct vt_err *err)
{
    double first = 0, last = 0, api = 0;
    int rc = VT_OK;

    if (list->n == 0 || list->u.item[0].kind != VT_MAP ||
        list->u.item[list->n - 1].kind != VT_MAP)
        return VT_OK; /* reading them tells */
    if ((rc = seconds(&list->u.item[0], "t", VT_REQUIRED, &first, err)) ||
        (rc = seconds(&list->u.item[list->n - 1], "t", VT_REQUIRED, &last, err)) ||
        (rc = seconds(&list->u.item[list->n - 1], "api_time", VT_OPTIONAL, &api, err)))
        return rc;
    *out = fmax(0, last + api - first);
    return VT_OK;
}

static int read_entry(struct entry *e, const struct vt_node *row, struct vt_err *err)
{
    const struct vt_node *type = vt_get(row, "type"), *list = vt_get(row, "requests");
    double ms = -1, length = 0;
    int rc = seconds(row, "t", VT_REQUIRED, &e->begin, err);

    if (rc != VT_OK)
        return rc;
    e->node = row;
    e->agent = type && type->kind == VT_STR && strcmp(type->u.str, "subagent") == 0;
    if (!e->agent) {
        rc = seconds(row, "api_time", VT_OPTIONAL, &length, err);
    } else if (!list || list->kind != VT_LIST) {
        rc =
            vt_fail(err, VT_EINPUT,
                    "line %u: a subagent's field 'requests' must be a list", row->line);
    } else if (vt_get_non_null(row, "duration_ms")) {
        rc = vt_get_f64(row, "duration_ms", VT_REQUIRED, 0, TRACE_MAX_MS, &ms, err);
        length = ms / 1e3;
    } else {
        rc = inner_length(list, &length, err);
    }
    e->end = e->begin + length;
    return rc;
}

/* Entries from `i` on that go together. A session has one beginning. */
static size_t stage_length(const struct entry *e, size_t i, size_t n, bool alone)
{
    double end = e[i].end;
    size_t k = i + 1;

    for (; k < n && !alone && e[k].agent == e[i].agent && e[k].begin < end; k++)
        end = fmin(end, e[k].end);
    return k - i;
}

/* From the end of the stage before to the beginning of this one. What a client thought
 * holds the time that its sub-agents took. */
static int stage_delay(const struct entry *e, const struct entry *last, double last_end,
                       double *out, struct vt_err *err)
{
    double think = -1;
    int rc =
        e->agent ? VT_OK : seconds(e->node, "think_time", VT_OPTIONAL, &think, err);

    if (think < 0)
        think = last ? e->begin - last_end : 0;
    else if (last && last->agent)
        think -= last_end - last->begin;
    *out = fmax(0, think);
    return rc;
}

static int read_list(struct tree *t, const struct vt_node *list, struct start *s,
                     double base_s, struct calls *ends, uint32_t depth,
                     struct vt_err *err);

static int read_agent(struct tree *t, const struct entry *e, struct start *s,
                      double base_s, struct calls *ends, uint32_t depth,
                      struct vt_err *err)
{
    const struct vt_node *list = vt_get(e->node, "requests");
    double first = 0;
    int rc = list->n > 0 && list->u.item[0].kind == VT_MAP
                 ? seconds(&list->u.item[0], "t", VT_REQUIRED, &first, err)
                 : VT_OK;

    if (rc != VT_OK)
        return rc;
    /* Its times count from its beginning, in some files from the session's. */
    return read_list(t, list, s, first >= e->begin ? base_s : base_s + e->begin, ends,
                     depth + 1, err);
}

/* Calls of one stage, or agents: *ends become those that what follows waits for. */
static int read_stage(struct tree *t, const struct entry *e, size_t n, struct start *s,
                      double base_s, struct calls *ends, uint32_t depth,
                      struct vt_err *err)
{
    double delay_s = s->delay_s;
    int rc = VT_OK;

    for (size_t i = 0; i < n && rc == VT_OK; i++) {
        s->delay_s = delay_s + fmax(0, e[i].begin - e[0].begin);
        if (e[i].agent) {
            rc = read_agent(t, &e[i], s, base_s, ends, depth, err);
            continue;
        }
        rc = add_call(t, &e[i], s, base_s, err);
        if (rc == VT_OK && (rc = vt_grow(&ends->at, &ends->cap, ends->n + 1,
                                         sizeof(*ends->at), err)) == VT_OK)
            ends->at[ends->n++] = s->last;
    }
    return rc;
}

static int read_entries(struct entry *e, const struct vt_node *list, struct vt_err *err)
{
    int rc = VT_OK;

    for (uint32_t i = 0; i < list->n && rc == VT_OK; i++)
        rc = list->u.item[i].kind == VT_MAP
                 ? read_entry(&e[i], &list->u.item[i], err)
                 : vt_fail(err, VT_EINPUT,
                           "line %u: field 'requests' must hold objects", list->line);
    return rc;
}

/* Who waited for `after` now waits for what began in their place. */
static void link_stage(struct tree *t, const struct calls *after, uint32_t first)
{
    for (size_t i = 0; i < after->n; i++)
        work(t, after->at[i])->next_turn = first;
}

/* The first stage is linked by the caller, through *s. */
static int read_stages(struct tree *t, const struct entry *e, size_t n, struct start *s,
                       double base_s, struct calls *ends, uint32_t depth,
                       struct vt_err *err)
{
    struct calls now = {0}, next = {0};
    const struct entry *last = NULL;
    double last_end = 0;
    int rc = VT_OK;

    for (size_t i = 0, k; i < n && rc == VT_OK; i += k) {
        struct start own = {&now, VT_NO_TURN, VT_NO_TURN, 0};
        bool begun = now.n > 0;
        struct start *use = begun ? &own : s;
        double delay_s = 0;

        k = stage_length(e, i, n, use->after->n == 0);
        rc = stage_delay(&e[i], last, last_end, &delay_s, err);
        use->delay_s = begun ? delay_s : s->delay_s + delay_s;
        if (rc == VT_OK)
            rc = read_stage(t, &e[i], k, use, base_s, &next, depth, err);
        last = &e[i];
        last_end = 0;
        for (size_t j = 0; j < k; j++)
            last_end = fmax(last_end, e[i + j].end);
        if (rc != VT_OK || next.n == 0) /* agents that asked nothing */
            continue;
        if (begun)
            link_stage(t, &now, own.first);
        free(now.at);
        now = next;
        next = (struct calls){0};
    }
    for (size_t i = 0; i < now.n && rc == VT_OK; i++)
        if ((rc = vt_grow(&ends->at, &ends->cap, ends->n + 1, sizeof(*ends->at),
                          err)) == VT_OK)
            ends->at[ends->n++] = now.at[i];
    free(now.at);
    free(next.at);
    return rc;
}

static int read_list(struct tree *t, const struct vt_node *list, struct start *s,
                     double base_s, struct calls *ends, uint32_t depth,
                     struct vt_err *err)
{
    struct entry *e;
    int rc;

    if (depth > DEEPEST)
        return vt_fail(err, VT_EINPUT, "line %u: agents within agents, %d deep",
                       list->line, DEEPEST);
    e = calloc((size_t)list->n + 1, sizeof(*e));
    if (!e)
        return vt_nomem(err);
    rc = read_entries(e, list, err);
    if (rc == VT_OK)
        rc = read_stages(t, e, list->n, s, base_s, ends, depth, err);
    free(e);
    return rc;
}

/* ---- a session ------------------------------------------------------------------ */

static int read_session(void *user, struct trace_reader *r, const struct vt_node *row,
                        struct vt_err *err)
{
    struct trace_build *b = user;
    const struct vt_node *id = vt_get(row, "id"), *list = vt_get(row, "requests"),
                         *scope = vt_get(row, "hash_id_scope");
    struct tree t = {.b = b, .block = DEFAULT_BLOCK};
    struct calls none = {0}, ends = {0};
    struct start s = {&none, VT_NO_TURN, VT_NO_TURN, 0};
    int rc;

    b->line = r->number;
    if (!id || id->kind != VT_STR || !list || list->kind != VT_LIST)
        return vt_fail(err, VT_EINPUT, "line %u: not a session: no 'id' and 'requests'",
                       row->line);
    t.id = id->u.str;
    t.id_len = id->n;
    if (!scope || scope->kind != VT_STR || strcmp(scope->u.str, "global") != 0)
        t.scope = vt_hash_bytes(t.id, t.id_len, 1) | 1;
    if ((rc = vt_get_u32(row, "block_size", VT_OPTIONAL, 1, 1 << 20, &t.block, err)) ||
        (rc = trace_build_session(b, t.id, t.id_len, &t.session, err)))
        return rc;
    rc = read_list(&t, list, &s, 0, &ends, 0, err);
    free(ends.at);
    return rc;
}

static int read_rows(struct trace_build *b, struct trace_reader *r, void *state,
                     struct vt_err *err)
{
    (void)state;
    b->w->arrivals = VT_ARRIVALS_SESSION;
    b->w->forked = true;
    return trace_reader_rows(r, read_session, b, err);
}

const struct trace_format trace_format_weka = {
    .name = "weka",
    .recognise = recognise,
    .read = read_rows,
};
