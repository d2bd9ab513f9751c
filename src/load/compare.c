/* compare.c - results side by side, for people and as JSON: in which settings they
 * differ, which metrics they have, which way is better, and what of a difference is
 * more than other seeds would make. */
#include <math.h>
#include <stdlib.h>

#include "load/load.h"

enum { NAME_WIDTH = 34, MAX_DEPTH = 3, MAX_METRICS = 4096 };

enum better { BETTER_NEITHER, BETTER_LOWER, BETTER_HIGHER };

struct metric {
    const char *name; /* "steady_state.mean_ttft_ms"; in the metrics' arena */
    enum better better;
    bool judged;
};
struct metrics { /* every number that one of the results has, in their order */
    struct vt_arena arena;
    struct metric *metric; /* heap */
    size_t n, cap;
};

struct difference {
    bool has_first, has_other;
    double first, other; /* means of the side's runs */
    double by;           /* other - first */
    double noise;        /* as much as that may be by chance; below 0: not known */
    double percent;      /* of first; infinite where that is 0 */
    double worse;        /* percent, 0 where it is not */
};

/* ---- names ----------------------------------------------------------- */

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
static const char *const settings[] = {"settings",
                                       "expected_error_pct",
                                       "slo_ms",
                                       "limits_ms",
                                       "confidence_95",
                                       "outside",
                                       "num_prompts",
                                       "request_rate",
                                       "burstiness",
                                       "max_concurrency",
                                       "ramp_up_start_rps",
                                       "ramp_up_end_rps",
                                       "seed",
                                       "target_concurrency",
                                       "threshold",
                                       "threshold_abs",
                                       "start_unix_s",
                                       NULL};

static enum better better_of(const char *name)
{
    static const char *const higher[] = {"throughput", "goodput",        "tokens_per_s",
                                         "acceptance", "_per_s",         "attainment",
                                         "capacity",   "prefix_hit_rate"};
    const char *key = last_part(name);

    if (vt_ends_with(key, "_ms") || strstr(name, "_ms.") ||
        strcmp(key, "failed") == 0 || vt_ends_with(key, "_failed") ||
        strcmp(key, "preemptions") == 0)
        return BETTER_LOWER;
    for (size_t i = 0; i < VT_COUNT(higher); i++)
        if (strstr(key, higher[i]))
            return BETTER_HIGHER;
    return BETTER_NEITHER; /* how many and how long follow from what was asked for */
}

/* Of a list, "ttft" stands for all of *_ttft_ms. Without one, what people agree on: no
 * spreads, no peaks, nothing of ours. */
static bool is_judged(const char *name, const struct vt_result_judgement *j)
{
    static const char *const latency[] = {"mean_", "median_", "p99_"};
    static const char *const summary_parts[] = {"mean", "p50", "p99", NULL};
    const char *word = j->metrics;
    size_t n = strlen(name);
    bool is_time = vt_ends_with(name, "_ms");

    while (word && *word) {
        size_t len = strcspn(word, ",");

        if (len > 0 && n == len && memcmp(name, word, len) == 0)
            return true;
        if (len > 0 && n > len + 4 && is_time && name[n - 4 - len] == '_' &&
            memcmp(name + n - 3 - len, word, len) == 0)
            return true;
        word += len + (word[len] == ',');
    }
    if (!word && strstr(name, "_ms."))
        return vt_is_one_of(last_part(name), summary_parts);
    if (word || last_part(name) != name)
        return false;
    if (strcmp(name, "failed") == 0 || vt_ends_with(name, "_throughput") ||
        vt_ends_with(name, "_goodput") || vt_ends_with(name, "tok_per_s") ||
        strcmp(name, "req_per_s") == 0 || strcmp(name, "capacity") == 0)
        return true;
    for (size_t i = 0; i < VT_COUNT(latency); i++)
        if (strncmp(name, latency[i], strlen(latency[i])) == 0)
            return is_time;
    return false;
}

/* ---- list ------------------------------------------------------------ */

static int add_metric(struct metrics *m, const char *name,
                      const struct vt_result_judgement *j, struct vt_err *err)
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

static int list_numbers(struct metrics *m, const struct vt_node *map,
                        struct vt_buf *path, int depth,
                        const struct vt_result_judgement *j, struct vt_err *err)
{
    size_t len = path->len;
    int rc = VT_OK;

    for (uint32_t i = 0; i < map->n && rc == VT_OK; i++) {
        const struct vt_node *v = &map->u.item[i];

        path->len = len;
        if (vt_is_one_of(v->key, settings))
            continue;
        vt_buf_str(path, v->key);
        if (path->failed)
            return vt_nomem(err);
        if (v->kind == VT_INT || v->kind == VT_REAL) {
            rc = add_metric(m, path->data, j, err);
        } else if (v->kind == VT_MAP && depth < MAX_DEPTH) {
            vt_buf_char(path, '.');
            rc = list_numbers(m, v, path, depth + 1, j, err);
        }
    }
    path->len = len;
    return rc;
}

/* ---- differences ----------------------------------------------------- */

/* Of the runs of a side. */
struct spread {
    size_t n;
    double mean, variance; /* of the mean */
};

static struct spread spread_of(const struct vt_results *r, size_t side,
                               const char *name)
{
    struct spread s = {0};
    double v, square = 0;

    for (size_t i = 0; i < r->n; i++)
        if (r->result[i].side == side && vt_result_get(&r->result[i], name, &v)) {
            s.n++;
            s.mean += v;
        }
    s.mean = s.n > 0 ? s.mean / (double)s.n : 0;
    for (size_t i = 0; i < r->n && s.n > 1; i++)
        if (r->result[i].side == side && vt_result_get(&r->result[i], name, &v))
            square += (v - s.mean) * (v - s.mean);
    if (s.n > 1)
        s.variance = square / (double)(s.n - 1) / (double)s.n;
    return s;
}

/* Student's t: 19 of 20 lie within so many standard deviations. */
static double student(size_t freedom)
{
    static const double t[] = {12.71, 4.30, 3.18, 2.78, 2.57,
                               2.45,  2.36, 2.31, 2.26, 2.23};

    return freedom <= VT_COUNT(t) ? t[freedom - 1] : 2;
}

/* Half of what 19 of 20 differences of equals lie within. */
static double noise_of(const struct spread *a, const struct spread *b)
{
    if (a->n < 2 || b->n < 2)
        return -1;
    return student(a->n + b->n - 2) * sqrt(a->variance + b->variance);
}

/* The run of a side with that seed and metric; NULL: there is none. */
static const struct vt_result *run_with(const struct vt_results *r, size_t side,
                                        double seed, const char *name, double *v)
{
    double own;

    for (size_t i = 0; i < r->n; i++)
        if (r->result[i].side == side && vt_result_get(&r->result[i], "seed", &own) &&
            !(own < seed || own > seed) && vt_result_get(&r->result[i], name, v))
            return &r->result[i];
    return NULL;
}

/* Where both sides have the same seeds, the same requests came to both: what seeds make
 * is what the differences run by run differ by. Below 0: they have not. */
static double noise_of_pairs(const struct vt_results *r, size_t other,
                             const struct spread *a, const struct spread *b,
                             const char *name)
{
    double mean = b->mean - a->mean, square = 0, seed, x, y;
    size_t n = 0;

    for (size_t i = 0; i < r->n && a->n == b->n && a->n > 1; i++) {
        const struct vt_result *one = &r->result[i];

        if (one->side != 0 || !vt_result_get(one, name, &x))
            continue;
        if (!vt_result_get(one, "seed", &seed) || !run_with(r, other, seed, name, &y) ||
            run_with(r, 0, seed, name, &x) != one)
            return -1;
        square += (y - x - mean) * (y - x - mean);
        n++;
    }
    return n < 2 ? -1 : student(n - 1) * sqrt(square / (double)(n - 1) / (double)n);
}

static bool is_noise(const struct difference *d)
{
    return d->noise >= 0 && fabs(d->by) <= d->noise;
}

/* One metric of one side against the first one's. */
static struct difference metric_difference(const struct metric *m,
                                           const struct vt_results *r, size_t other)
{
    struct spread a = spread_of(r, 0, m->name), b = spread_of(r, other, m->name);
    struct difference d = {.has_first = a.n > 0,
                           .has_other = b.n > 0,
                           .first = a.mean,
                           .other = b.mean,
                           .noise = noise_of(&a, &b)};
    double paired = noise_of_pairs(r, other, &a, &b, m->name);

    /* Pairs say more where seeds do the same to both, but there are fewer of them than
     * runs: the sharper of two fair judgements counts. */
    if (paired >= 0 && paired < d.noise)
        d.noise = paired;
    if (!d.has_first || !d.has_other)
        return d;
    d.by = d.other - d.first;
    if (d.by < 0 || d.by > 0)
        d.percent = d.first < 0 || d.first > 0 ? 100 * d.by / fabs(d.first)
                                               : copysign(INFINITY, d.by);
    if (!is_noise(&d) && ((m->better == BETTER_LOWER && d.by > 0) ||
                          (m->better == BETTER_HIGHER && d.by < 0)))
        d.worse = fabs(d.percent);
    return d;
}

/* What is within the tolerance is neither. */
static const char *metric_verdict(const struct metric *m, const struct difference *d,
                                  const struct vt_result_judgement *j)
{
    double tolerance = j->tolerance > 0 ? j->tolerance : 0;

    if (m->better != BETTER_NEITHER && (d->by < 0 || d->by > 0) && is_noise(d))
        return "noise";
    if (m->better == BETTER_NEITHER || !(fabs(d->percent) > tolerance))
        return "";
    return d->worse > 0 ? "worse" : "better";
}

static const char *text_of(const struct vt_result *r, const char *key)
{
    const struct vt_node *v = vt_get(r->root, key);

    return v && v->kind == VT_STR ? v->u.str : NULL;
}

static char letter(size_t i)
{
    return i < 26 ? (char)('A' + i) : '+';
}

static int list_metrics(struct metrics *m, const struct vt_results *r,
                        const struct vt_result_judgement *j, size_t *worse,
                        struct vt_err *err)
{
    struct vt_buf path = {.max = 4096};
    int rc = VT_OK;

    if (r->n_sides < 2)
        return vt_fail(err, VT_EINPUT,
                       "there is only one result; comparing takes two or more");
    for (size_t i = 0; i < r->n && rc == VT_OK; i++)
        rc = list_numbers(m, r->result[i].root, &path, 0, j, err);
    vt_buf_free(&path);
    if (rc != VT_OK)
        return rc;
    *worse = 0;
    for (size_t i = 0; i < m->n && j->tolerance >= 0; i++)
        for (size_t k = 1; k < r->n_sides && m->metric[i].judged; k++)
            *worse += metric_difference(&m->metric[i], r, k).worse > j->tolerance;
    return VT_OK;
}

static void metrics_free(struct metrics *m)
{
    vt_arena_free(&m->arena);
    free(m->metric);
}

/* ---- table ----------------------------------------------------------- */

static void end_row(struct vt_buf *b)
{
    while (b->len > 0 && b->data[b->len - 1] == ' ')
        b->len--;
    vt_buf_char(b, '\n');
}

static const struct vt_result *first_of(const struct vt_results *r, size_t side,
                                        size_t *runs)
{
    const struct vt_result *first = NULL;

    *runs = 0;
    for (size_t i = 0; i < r->n; i++)
        if (r->result[i].side == side) {
            first = first ? first : &r->result[i];
            ++*runs;
        }
    return first;
}

static void put_heads(struct vt_buf *b, const struct vt_results *r)
{
    for (size_t i = 0; i < r->n_sides; i++) {
        size_t runs;
        const struct vt_result *q = first_of(r, i, &runs);
        const char *model = text_of(q, "model_id"), *date = text_of(q, "date");
        const char *rate = text_of(q, "request_rate");
        double v;

        vt_buf_printf(b, "%c: %s", letter(i), q->name);
        if (runs > 1)
            vt_buf_printf(b, " and %zu more runs", runs - 1);
        if (model)
            vt_buf_printf(b, ", %s", model);
        if (date)
            vt_buf_printf(b, ", %s", date);
        if (rate)
            vt_buf_printf(b, ", %s requests/s", rate);
        else if (vt_result_get(q, "request_rate", &v))
            vt_buf_printf(b, ", %g requests/s", v);
        if (vt_result_get(q, "max_concurrency", &v))
            vt_buf_printf(b, ", at most %g at a time", v);
        vt_buf_char(b, '\n');
    }
}

/* ---- settings ---------------------------------------------------------- */

/* What of a result says how it was made; NULL: it does not have it. */
static const struct vt_node *setting_of(const struct vt_results *r, size_t side,
                                        const char *key)
{
    size_t runs;
    const struct vt_node *root = first_of(r, side, &runs)->root;
    const struct vt_node *v = vt_get(vt_get(root, "settings"), key);

    return v ? v : vt_get(root, key);
}

/* As people write it; "-": not stated. */
static void put_setting(struct vt_buf *b, const struct vt_node *v)
{
    double x;

    if (!v || v->kind == VT_NULL)
        vt_buf_char(b, '-');
    else if (v->kind == VT_STR)
        vt_buf_str(b, v->u.str);
    else if (v->kind == VT_BOOL)
        vt_buf_str(b, v->u.boolean ? "true" : "false");
    else if (vt_node_f64(v, &x))
        vt_buf_printf(b, "%.10g", x);
    else
        vt_buf_str(b, "...");
}

static bool setting_differs(const struct vt_results *r, const char *key)
{
    struct vt_buf first = {0}, other = {0};
    bool differs = false;

    put_setting(&first, setting_of(r, 0, key));
    for (size_t i = 1; i < r->n_sides && !differs; i++) {
        vt_buf_clear(&other);
        put_setting(&other, setting_of(r, i, key));
        differs = first.failed || other.failed || first.len != other.len ||
                  memcmp(first.data, other.data, first.len) != 0;
    }
    vt_buf_free(&first);
    vt_buf_free(&other);
    return differs;
}

/* Names of settings that differ, one after the other: of all sides' "settings", then
 * those that benchmarks state beside their outcome. Start with *side and *at 0. */
static const char *next_different(const struct vt_results *r, size_t *side, size_t *at)
{
    static const char *const beside[] = {
        "model_id", "tokenizer_id", "workload",   "profile",         "num_prompts",
        "backend",  "request_rate", "burstiness", "max_concurrency", "vllm_version"};
    size_t runs;

    for (; *side < r->n_sides; ++*side, *at = 0) {
        const struct vt_node *map = vt_get(first_of(r, *side, &runs)->root, "settings");

        while (map && map->kind == VT_MAP && *at < map->n) {
            const char *key = map->u.item[(*at)++].key;
            bool told = false;

            for (size_t i = 0; i < *side && !told; i++)
                told = vt_get(vt_get(first_of(r, i, &runs)->root, "settings"), key);
            if (!told && setting_differs(r, key))
                return key;
        }
    }
    while (*at < VT_COUNT(beside)) {
        const char *key = beside[(*at)++];
        bool told = false;

        for (size_t i = 0; i < r->n_sides && !told; i++)
            told = vt_get(vt_get(first_of(r, i, &runs)->root, "settings"), key);
        if (!told && setting_differs(r, key))
            return key;
    }
    return NULL;
}

static void put_settings(struct vt_buf *b, const struct vt_results *r)
{
    size_t side = 0, at = 0, n = 0;
    const char *key;

    while ((key = next_different(r, &side, &at))) {
        if (n++ == 0)
            vt_buf_str(b, "\nsettings that differ\n");
        vt_buf_printf(b, "%-*s", NAME_WIDTH, key);
        for (size_t i = 0; i < r->n_sides; i++) {
            struct vt_buf value = {0};

            put_setting(&value, setting_of(r, i, key));
            vt_buf_printf(b, " %13s", value.failed ? "?" : value.data);
            vt_buf_free(&value);
        }
        vt_buf_char(b, '\n');
    }
    if (n == 0)
        vt_buf_str(b, "\nno setting that is stated differs\n");
}

static void put_columns(struct vt_buf *b, const struct vt_results *r)
{
    vt_buf_printf(b, "\n%-*s %13s", NAME_WIDTH, "", "A");
    for (size_t i = 1; i < r->n_sides; i++)
        vt_buf_printf(b, " %13c %12s %9s %-6s", letter(i), "difference", "percent", "");
    end_row(b);
}

/* Four digits that count, and no more behind the point than people read. */
static void put_number(struct vt_buf *b, bool has, double v, int width, bool sign)
{
    double size = fabs(v);
    int digits = size >= 10 ? 2 : size >= 0.1 ? 3 : 5;

    if (!has) {
        vt_buf_printf(b, " %*s", width, "-");
        return;
    }
    if (size < 1e15 && v >= floor(v) && v <= floor(v))
        digits = 0;
    vt_buf_printf(b, sign ? " %+*.*f" : " %*.*f", width, digits, v);
}

static void put_row(struct vt_buf *b, const struct vt_results *r,
                    const struct metric *m, const struct vt_result_judgement *j)
{
    struct spread first = spread_of(r, 0, m->name);

    vt_buf_printf(b, "%-*s", NAME_WIDTH, m->name);
    put_number(b, first.n > 0, first.mean, 13, false);
    for (size_t i = 1; i < r->n_sides; i++) {
        struct difference d = metric_difference(m, r, i);

        put_number(b, d.has_other, d.other, 13, false);
        if (!d.has_first || !d.has_other) {
            vt_buf_printf(b, " %12s %9s %-6s", "-", "-", "");
            continue;
        }
        put_number(b, true, d.by, 12, true);
        if (isinf(d.percent))
            vt_buf_printf(b, " %9s", d.percent > 0 ? "+inf" : "-inf");
        else
            vt_buf_printf(b, " %+9.1f", d.percent);
        vt_buf_printf(b, " %-6s", metric_verdict(m, &d, j));
    }
    end_row(b);
}

/* Metrics that one of them does not have, and chosen ones that none has. */
static void put_missing(struct vt_buf *b, const struct vt_results *r,
                        const struct metrics *m)
{
    for (size_t i = 0; i < r->n_sides; i++) {
        size_t n = 0;

        for (size_t k = 0; k < m->n; k++) {
            if (spread_of(r, i, m->metric[k].name).n > 0)
                continue;
            if (n++ == 0)
                vt_buf_printf(b, "\nnot in %c:", letter(i));
            vt_buf_printf(b, "%s %s", n > 1 ? "," : "", m->metric[k].name);
        }
        if (n > 0)
            vt_buf_char(b, '\n');
    }
}

/* How sure the differences are. */
static void put_certainty(struct vt_buf *b, const struct vt_results *r)
{
    size_t runs, least = SIZE_MAX;

    for (size_t i = 0; i < r->n_sides; i++) {
        (void)first_of(r, i, &runs);
        least = runs < least ? runs : least;
    }
    if (least > 1)
        vt_buf_str(b, "\nnoise: no more than other seeds make, at 95 %\n");
    else
        vt_buf_str(b, "\none run of a side: what seeds alone make is not known (give "
                      "folders of runs)\n");
}

static void put_outcome(struct vt_buf *b, const struct vt_results *r,
                        const struct metrics *m, const struct vt_result_judgement *j)
{
    size_t judged = 0;

    for (size_t i = 0; i < m->n; i++)
        judged += m->metric[i].judged ? 1 : 0;
    vt_buf_printf(b, "\n%zu metrics are judged, tolerance %g %%\n", judged,
                  j->tolerance);
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 1; k < r->n_sides && m->metric[i].judged; k++) {
            struct difference d = metric_difference(&m->metric[i], r, k);

            if (d.worse > j->tolerance)
                vt_buf_printf(b, "%s: %c is worse by %.1f %%\n", m->metric[i].name,
                              letter(k), d.worse);
        }
}

int vt_results_table(struct vt_buf *b, const struct vt_results *r,
                     const struct vt_result_judgement *j, size_t *worse,
                     struct vt_err *err)
{
    struct metrics m = {0};
    int rc = list_metrics(&m, r, j, worse, err);

    if (rc == VT_OK) {
        put_heads(b, r);
        put_settings(b, r);
        put_columns(b, r);
        for (size_t i = 0; i < m.n; i++)
            put_row(b, r, &m.metric[i], j);
        put_missing(b, r, &m);
        put_certainty(b, r);
        if (j->tolerance >= 0)
            put_outcome(b, r, &m, j);
    }
    metrics_free(&m);
    return rc;
}

/* ---- JSON ------------------------------------------------------------ */

static void json_number(struct vt_jw *w, const char *key, bool has, double v)
{
    if (has)
        vt_jw_f64(w, key, v); /* null if it is not finite */
    else
        vt_jw_null(w, key);
}

static void json_metric(struct vt_jw *w, const struct vt_results *r,
                        const struct metric *m, const struct vt_result_judgement *j)
{
    static const char *const better[] = {NULL, "lower", "higher"};
    struct spread first = spread_of(r, 0, m->name);

    vt_jw_row(w, NULL);
    vt_jw_str(w, "name", m->name);
    vt_jw_str(w, "better", better[m->better]);
    vt_jw_bool(w, "judged", m->judged);
    json_number(w, "first", first.n > 0, first.mean);
    vt_jw_list(w, "others");
    for (size_t i = 1; i < r->n_sides; i++) {
        struct difference d = metric_difference(m, r, i);
        bool both = d.has_first && d.has_other;

        vt_jw_map(w, NULL);
        json_number(w, "value", d.has_other, d.other);
        json_number(w, "difference", both, d.by);
        json_number(w, "percent", both, d.percent);
        json_number(w, "noise", both && d.noise >= 0, d.noise);
        vt_jw_str(w, "verdict", metric_verdict(m, &d, j));
        vt_jw_end(w);
    }
    vt_jw_end(w);
    vt_jw_end(w);
}

static void json_settings(struct vt_jw *w, const struct vt_results *r)
{
    size_t side = 0, at = 0;
    const char *key;

    vt_jw_list(w, "settings");
    while ((key = next_different(r, &side, &at))) {
        vt_jw_row(w, NULL);
        vt_jw_str(w, "name", key);
        vt_jw_row_list(w, "values");
        for (size_t i = 0; i < r->n_sides; i++) {
            struct vt_buf value = {0};

            put_setting(&value, setting_of(r, i, key));
            vt_jw_str(w, NULL, value.failed ? NULL : value.data);
            vt_buf_free(&value);
        }
        vt_jw_end(w);
        vt_jw_end(w);
    }
    vt_jw_end(w);
}

int vt_results_json(struct vt_buf *b, const struct vt_results *r,
                    const struct vt_result_judgement *j, size_t *worse,
                    struct vt_err *err)
{
    static const char *const keys[] = {"model_id", "date", "backend"};
    struct metrics m = {0};
    struct vt_jw w;
    int rc = list_metrics(&m, r, j, worse, err);

    if (rc == VT_OK) {
        vt_jw_init(&w, b, &vt_json_pretty);
        vt_jw_map(&w, NULL);
        vt_jw_list(&w, "results");
        for (size_t i = 0; i < r->n_sides; i++) {
            size_t runs;
            const struct vt_result *q = first_of(r, i, &runs);

            vt_jw_row(&w, NULL);
            vt_jw_str(&w, "name", q->name);
            vt_jw_u64(&w, "runs", runs);
            for (size_t k = 0; k < VT_COUNT(keys); k++) {
                const char *text = text_of(q, keys[k]);

                if (text)
                    vt_jw_str(&w, keys[k], text);
            }
            vt_jw_end(&w);
        }
        vt_jw_end(&w);
        json_settings(&w, r);
        vt_jw_list(&w, "metrics");
        for (size_t i = 0; i < m.n; i++)
            json_metric(&w, r, &m.metric[i], j);
        vt_jw_end(&w);
        json_number(&w, "tolerance_percent", j->tolerance >= 0, j->tolerance);
        vt_jw_u64(&w, "worse", *worse);
        vt_jw_end(&w);
        vt_buf_char(b, '\n');
    }
    metrics_free(&m);
    return rc;
}
