/* spec.c - reading and checking workload.yaml; docs/workload.md describes it. */
#include "trace/workload/spec.h"

enum { MAX_STAGES = 10000, MAX_SHARED = 1000000, MAX_TURNS = 10000 };
#define MAX_RATE 1e9

static const struct trace_range tokens_range = {1, TRACE_MAX_TOKENS, true};
static const struct trace_range turns_range = {1, MAX_TURNS, true};
static const struct trace_range think_range = {0, 86400, false};
static const struct trace_range priority_range = {INT32_MIN, INT32_MAX, true};

struct reader {
    struct spec *s;
    struct vt_arena *arena;
    const struct vt_node *root;
    const struct trace_files *files;
};

static int fail_at(const struct vt_node *n, struct vt_err *err, const char *what)
{
    return vt_fail(err, VT_EINPUT, "line %u: %s", n->line, what);
}

static int get_map(const struct vt_node *map, const char *key,
                   const struct vt_node **out, struct vt_err *err)
{
    *out = vt_get(map, key);
    if (*out && (*out)->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "line %u: field '%s' is not a map", (*out)->line,
                       key);
    return VT_OK;
}

/* ---- arrivals --------------------------------------------------------- */

/* Sets either the stage's duration or its number of requests. */
static int get_extent(const struct vt_node *map, struct spec_stage *stage,
                      struct vt_err *err)
{
    const struct vt_node *requests = vt_get(map, "requests");
    const struct vt_node *duration = vt_get(map, "duration_s");
    uint32_t n = 0;
    int rc;

    if (requests && duration)
        return fail_at(requests, err, "give 'requests' or 'duration_s', not both");
    if (!requests && !duration)
        return fail_at(map, err, "'requests' or 'duration_s' is missing");
    if (duration)
        return trace_get_positive(map, "duration_s", VT_REQUIRED, SPEC_MAX_SECONDS,
                                  &stage->duration_s, err);
    rc = vt_get_u32(map, "requests", VT_REQUIRED, 1, TRACE_MAX_REQUESTS, &n, err);
    stage->requests = n;
    return rc;
}

static int read_stages(const struct reader *r, const struct vt_node *list,
                       struct vt_err *err)
{
    static const char *const keys[] = {"rate", "duration_s", "requests", NULL};
    struct spec *s = r->s;
    int rc;

    if (s->process->closed)
        return fail_at(list, err, "a closed loop has no stages");
    if (vt_get(r->root, "requests") || vt_get(r->root, "duration_s"))
        return fail_at(list, err, "'stages' replaces 'requests' and 'duration_s'");
    if (list->kind != VT_LIST || list->n < 1 || list->n > MAX_STAGES)
        return vt_fail(err, VT_EINPUT,
                       "line %u: field 'stages' must be a list of 1 to %d stages",
                       list->line, MAX_STAGES);
    s->n_stages = list->n;
    s->stage = vt_arena_alloc(r->arena, list->n * sizeof(*s->stage));
    if (!s->stage)
        return vt_nomem(err);
    for (uint32_t i = 0; i < list->n; i++) {
        const struct vt_node *map = &list->u.item[i];

        if (map->kind != VT_MAP)
            return fail_at(map, err,
                           "a stage is a map of 'rate' and 'duration_s' or 'requests'");
        if ((rc = vt_only_keys(map, keys, err)) ||
            (rc = trace_get_positive(map, "rate", VT_REQUIRED, MAX_RATE,
                                     &s->stage[i].rate, err)) ||
            (rc = get_extent(map, &s->stage[i], err)))
            return rc;
    }
    return VT_OK;
}

/* The rate is in `arrival` unless there are stages; bursts may state their distance
 * instead. */
static int read_rate(struct spec *s, const struct vt_node *arrival, bool staged,
                     struct vt_err *err)
{
    const struct vt_node *rate = vt_get(arrival, "rate");
    const struct vt_node *interval = vt_get(arrival, "interval_s");

    if (s->process->closed)
        return VT_OK;
    if (staged && (rate || interval))
        return fail_at(rate ? rate : interval, err, "the rate is in 'stages'");
    if (rate && interval)
        return fail_at(rate, err, "give 'rate' or 'interval_s', not both");
    if (interval)
        return trace_get_positive(arrival, "interval_s", VT_REQUIRED, SPEC_MAX_SECONDS,
                                  &s->interval_s, err);
    return staged ? VT_OK
                  : trace_get_positive(arrival, "rate", VT_REQUIRED, MAX_RATE,
                                       &s->stage->rate, err);
}

static int read_arrival(const struct reader *r, struct vt_err *err)
{
    const struct vt_node *arrival, *stages = vt_get(r->root, "stages");
    struct spec *s = r->s;
    const char *name = NULL;
    bool burst;
    int rc = get_map(r->root, "arrival", &arrival, err);

    if (rc != VT_OK)
        return rc;
    if (!arrival)
        return fail_at(r->root, err, "field 'arrival' is missing");
    if ((rc = vt_get_str(arrival, "process", VT_REQUIRED, &name, err)))
        return rc;
    if ((rc = trace_process_find(&s->process, name, err)))
        return vt_within(err, rc, "line %u", vt_get(arrival, "process")->line);
    burst = strcmp(s->process->name, "burst") == 0;
    s->burstiness = 1;
    s->burst_size = 1;
    /* vt_only_keys() refuses fields that are of other processes. */
    if ((rc = vt_only_keys(arrival, s->process->keys, err)) ||
        (rc = trace_get_positive(arrival, "burstiness", VT_OPTIONAL, 1e6,
                                 &s->burstiness, err)) ||
        (rc = vt_get_u32(arrival, "size", burst ? VT_REQUIRED : VT_OPTIONAL, 1,
                         TRACE_MAX_REQUESTS, &s->burst_size, err)) ||
        (rc = vt_get_u32(arrival, "concurrency",
                         s->process->closed ? VT_REQUIRED : VT_OPTIONAL, 1, INT32_MAX,
                         &s->concurrency, err)))
        return rc;
    if (stages) {
        rc = read_stages(r, stages, err);
    } else {
        s->n_stages = 1;
        s->stage = vt_arena_alloc(r->arena, sizeof(*s->stage));
        rc = s->stage ? get_extent(r->root, s->stage, err) : vt_nomem(err);
        if (rc == VT_OK && s->process->closed && s->stage->requests == 0)
            rc = fail_at(vt_get(r->root, "duration_s"), err,
                         "a closed loop takes 'requests', not 'duration_s'");
    }
    return rc ? rc : read_rate(s, arrival, stages != NULL, err);
}

/* ---- content ---------------------------------------------------------- */

/* What is not there leaves *out as it was, unless it is required. */
static int get_dist(const struct reader *r, const struct vt_node *map, const char *key,
                    enum vt_need need, struct trace_range range, struct trace_dist *out,
                    struct vt_err *err)
{
    return need == VT_OPTIONAL && !vt_get(map, key)
               ? VT_OK
               : trace_dist_read(out, r->arena, map, key, range, r->files, err);
}

static int read_pair(const struct vt_node *n, struct spec_pair *out, struct vt_err *err)
{
    uint64_t tokens[2];

    if (n->kind != VT_LIST || n->n != 2)
        return fail_at(n, err, "a pair of 'lengths' is [prompt, output]");
    for (int i = 0; i < 2; i++) {
        const struct vt_node *v = &n->u.item[i];

        if (!vt_node_u64(v, TRACE_MAX_TOKENS, &tokens[i]) || tokens[i] < 1)
            return vt_fail(err, VT_EINPUT,
                           "line %u: a length is not an integer in [1, %d]", v->line,
                           TRACE_MAX_TOKENS);
    }
    *out = (struct spec_pair){(uint32_t)tokens[0], (uint32_t)tokens[1]};
    return VT_OK;
}

/* Prompts and outputs that belong together, in place of two distributions. */
static int read_lengths(const struct reader *r, struct vt_err *err)
{
    const struct vt_node *list = vt_get(r->root, "lengths");
    struct spec_pair *pair;
    int rc = VT_OK;

    if (!list) {
        rc = get_dist(r, r->root, "prompt", VT_REQUIRED, tokens_range, &r->s->prompt,
                      err);
        return rc ? rc
                  : get_dist(r, r->root, "output", VT_REQUIRED, tokens_range,
                             &r->s->output, err);
    }
    if (vt_get(r->root, "prompt") || vt_get(r->root, "output"))
        return fail_at(list, err, "'lengths' replaces 'prompt' and 'output'");
    if (list->kind != VT_LIST || list->n < 1)
        return fail_at(list, err, "field 'lengths' is not a list of pairs");
    pair = vt_arena_alloc(r->arena, list->n * sizeof(*pair));
    if (!pair)
        return vt_nomem(err);
    for (uint32_t i = 0; i < list->n && rc == VT_OK; i++)
        rc = read_pair(&list->u.item[i], &pair[i], err);
    r->s->pair = pair;
    r->s->n_pairs = list->n;
    return rc;
}

static int read_prefix(const struct reader *r, struct vt_err *err)
{
    static const char *const keys[] = {"groups", "tokens", "share", NULL};
    struct spec *s = r->s;
    const struct vt_node *prefix;
    int rc = get_map(r->root, "prefix", &prefix, err);

    if (rc != VT_OK || !prefix)
        return rc;
    s->has_prefix = true;
    s->n_groups = 1;
    s->share = 1;
    if ((rc = vt_only_keys(prefix, keys, err)) ||
        (rc = vt_get_u32(prefix, "groups", VT_OPTIONAL, 1, MAX_SHARED, &s->n_groups,
                         err)) ||
        (rc = vt_get_f64(prefix, "share", VT_OPTIONAL, 0, 1, &s->share, err)))
        return rc;
    return get_dist(r, prefix, "tokens", VT_REQUIRED, tokens_range, &s->prefix_tokens,
                    err);
}

static int read_sessions(const struct reader *r, struct vt_err *err)
{
    static const char *const keys[] = {"turns", "starters", "starter", "think_time_s",
                                       NULL};
    struct spec *s = r->s;
    const struct vt_node *sessions;
    int rc = get_map(r->root, "sessions", &sessions, err);

    if (rc != VT_OK || !sessions)
        return rc;
    s->has_sessions = true;
    if (s->has_prefix)
        return fail_at(sessions, err, "'sessions' has a 'starter' instead of 'prefix'");
    if ((rc = vt_only_keys(sessions, keys, err)) ||
        (rc = get_dist(r, sessions, "turns", VT_REQUIRED, turns_range, &s->turns,
                       err)) ||
        (rc = get_dist(r, sessions, "think_time_s", VT_OPTIONAL, think_range,
                       &s->think_s, err)))
        return rc;
    s->has_starter = vt_get(sessions, "starter") != NULL;
    if (!s->has_starter && vt_get(sessions, "starters"))
        return fail_at(vt_get(sessions, "starters"), err,
                       "'starters' needs 'starter', their length");
    rc = get_dist(r, sessions, "starter", VT_OPTIONAL, tokens_range, &s->starter, err);
    return rc ? rc
              : vt_get_u32(sessions, "starters", VT_OPTIONAL, 1, MAX_SHARED,
                           &s->n_starters, err);
}

int spec_read(struct spec *s, struct vt_arena *a, const struct vt_node *root,
              const struct trace_files *files, struct vt_err *err)
{
    static const char *const keys[] = {
        "name",   "seed",   "requests", "duration_s", "stages",  "arrival", "prompt",
        "output", "prefix", "sessions", "priority",   "lengths", NULL};
    struct reader r = {s, a, root, files};
    int64_t seed = 1;
    int rc;

    *s = (struct spec){0};
    if (root->kind != VT_MAP)
        return fail_at(root, err, "a workload is a map of fields");
    if ((rc = vt_only_keys(root, keys, err)) ||
        (rc = vt_get_str(root, "name", VT_OPTIONAL, &s->name, err)) ||
        (rc = vt_get_i64(root, "seed", VT_OPTIONAL, 0, INT64_MAX, &seed, err)) ||
        (rc = read_arrival(&r, err)) || (rc = read_lengths(&r, err)) ||
        (rc = get_dist(&r, root, "priority", VT_OPTIONAL, priority_range, &s->priority,
                       err)) ||
        (rc = read_prefix(&r, err)))
        return rc;
    s->seed = (uint64_t)seed;
    return read_sessions(&r, err);
}
