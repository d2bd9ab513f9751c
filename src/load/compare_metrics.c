/* compare_metrics.c - which metrics results have, and which way is better. */
#include <math.h>
#include <stdlib.h>

#include "load/compare.h"

enum { MAX_DEPTH = 3, MAX_METRICS = 4096 };

/* ---- names ----------------------------------------------------------- */

static bool ends_with(const char *text, const char *tail)
{
    size_t n = strlen(text), k = strlen(tail);

    return n >= k && strcmp(text + n - k, tail) == 0;
}

static const char *last_part(const char *name)
{
    const char *slash = NULL;

    /* "a.b.p99.9_ttft_ms": only what stands before a letter is a part. */
    for (const char *c = name; *c; c++)
        if (*c == '.' && (c[1] < '0' || c[1] > '9'))
            slash = c;
    return slash ? slash + 1 : name;
}

/* What was asked for is no outcome. */
static bool is_setting(const char *key)
{
    static const char *const known[] = {
        "num_prompts",       "request_rate",    "burstiness",  "max_concurrency",
        "ramp_up_start_rps", "ramp_up_end_rps", "seed",        "target_concurrency",
        "threshold",         "threshold_abs",   "start_unix_s"};

    for (size_t i = 0; i < VT_COUNT(known); i++)
        if (strcmp(known[i], key) == 0)
            return true;
    return false;
}

static enum better better_of(const char *name)
{
    static const char *const higher[] = {"throughput", "goodput", "tokens_per_s",
                                         "acceptance"};
    const char *key = last_part(name);

    if (ends_with(key, "_ms") || strstr(name, "_ms.") || strcmp(key, "failed") == 0 ||
        ends_with(key, "_failed"))
        return BETTER_LOWER;
    for (size_t i = 0; i < VT_COUNT(higher); i++)
        if (strstr(key, higher[i]))
            return BETTER_HIGHER;
    return BETTER_NEITHER; /* how many and how long follow from what was asked for */
}

/* Unless told, what people agree on: no spreads, no peaks, nothing of ours. */
static bool judged_by_default(const char *name)
{
    static const char *const latency[] = {"mean_", "median_", "p99_"};

    if (last_part(name) != name)
        return false;
    if (strcmp(name, "failed") == 0 || ends_with(name, "_throughput") ||
        ends_with(name, "_goodput"))
        return true;
    for (size_t i = 0; i < VT_COUNT(latency); i++)
        if (strncmp(name, latency[i], strlen(latency[i])) == 0)
            return ends_with(name, "_ms");
    return false;
}

/* "ttft" stands for all of *_ttft_ms. */
static bool is_chosen(const char *name, const char *word, size_t len)
{
    size_t n = strlen(name);

    if (n == len && memcmp(name, word, len) == 0)
        return true;
    return n > len + 4 && ends_with(name, "_ms") && name[n - 4 - len] == '_' &&
           memcmp(name + n - 3 - len, word, len) == 0;
}

static bool is_judged(const char *name, const struct vt_result_judgement *j)
{
    const char *list = j->metrics;

    if (!list)
        return judged_by_default(name);
    while (*list) {
        size_t len = strcspn(list, ",");

        if (len > 0 && is_chosen(name, list, len))
            return true;
        list += len + (list[len] == ',');
    }
    return false;
}

/* ---- list ------------------------------------------------------------ */

static int add(struct metrics *m, const char *name, const struct vt_result_judgement *j,
               struct vt_err *err)
{
    int rc;

    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->metric[i].name, name) == 0)
            return VT_OK;
    if (m->n >= MAX_METRICS)
        return VT_OK;
    rc = vt_grow(&m->metric, &m->cap, m->n + 1, sizeof(*m->metric), err);
    name = vt_arena_copy(&m->arena, name, strlen(name));
    if (rc != VT_OK || !name)
        return vt_nomem(err);
    m->metric[m->n++] = (struct metric){
        .name = name, .better = better_of(name), .judged = is_judged(name, j)};
    return VT_OK;
}

static int walk(struct metrics *m, const struct vt_node *map, struct vt_buf *path,
                int depth, const struct vt_result_judgement *j, struct vt_err *err)
{
    size_t len = path->len;
    int rc = VT_OK;

    for (uint32_t i = 0; i < map->n && rc == VT_OK; i++) {
        const struct vt_node *v = &map->u.item[i];

        path->len = len;
        if (is_setting(v->key))
            continue;
        vt_buf_str(path, v->key);
        if (path->failed)
            return vt_nomem(err);
        if (v->kind == VT_INT || v->kind == VT_REAL) {
            rc = add(m, path->data, j, err);
        } else if (v->kind == VT_MAP && depth < MAX_DEPTH) {
            vt_buf_char(path, '.');
            rc = walk(m, v, path, depth + 1, j, err);
        }
    }
    path->len = len;
    return rc;
}

int metrics_list(struct metrics *m, const struct vt_results *r,
                 const struct vt_result_judgement *j, struct vt_err *err)
{
    struct vt_buf path = {.max = 4096};
    int rc = VT_OK;

    for (size_t i = 0; i < r->n && rc == VT_OK; i++)
        rc = walk(m, r->result[i].root, &path, 0, j, err);
    vt_buf_free(&path);
    return rc;
}

void metrics_free(struct metrics *m)
{
    vt_arena_free(&m->arena);
    free(m->metric);
}

/* ---- differences ----------------------------------------------------- */

struct difference metric_difference(const struct metric *m, const struct vt_result *a,
                                    const struct vt_result *b)
{
    struct difference d = {0};

    d.has_first = vt_result_get(a, m->name, &d.first);
    d.has_other = vt_result_get(b, m->name, &d.other);
    if (!d.has_first || !d.has_other)
        return d;
    d.by = d.other - d.first;
    if (d.by < 0 || d.by > 0)
        d.percent = d.first < 0 || d.first > 0 ? 100 * d.by / fabs(d.first)
                                               : copysign(INFINITY, d.by);
    if ((m->better == BETTER_LOWER && d.by > 0) ||
        (m->better == BETTER_HIGHER && d.by < 0))
        d.worse = fabs(d.percent);
    return d;
}

const char *metric_verdict(const struct metric *m, const struct difference *d,
                           const struct vt_result_judgement *j)
{
    double tolerance = j->tolerance > 0 ? j->tolerance : 0;

    if (m->better == BETTER_NEITHER || !(fabs(d->percent) > tolerance))
        return "";
    return d->worse > 0 ? "worse" : "better";
}

size_t metrics_worse(const struct metrics *m, const struct vt_results *r,
                     const struct vt_result_judgement *j)
{
    size_t worse = 0;

    for (size_t i = 0; i < m->n && j->tolerance >= 0; i++)
        for (size_t k = 1; k < r->n && m->metric[i].judged; k++)
            worse +=
                metric_difference(&m->metric[i], &r->result[0], &r->result[k]).worse >
                        j->tolerance
                    ? 1
                    : 0;
    return worse;
}
