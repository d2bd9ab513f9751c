/* result_show.c - what a search found: for people, for programs, as a picture. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "page/page.h"
#include "tune/tune_search.h"

/* ---- JSON ------------------------------------------------------------ */

static void put_tuned(struct vt_jw *w, const char *key, const struct vt_tune_spec *spec,
                      const struct vt_tune_result *r, size_t i)
{
    struct vt_setting s = vt_tune_space_at(&spec->space, i);
    const struct vt_tuned *t = &r->tuned[i];
    const struct {
        const char *key;
        double v;
    } row[] = {
        {"kv_cache_gib", t->kv_gib},
        {"num_gpu_blocks", t->num_gpu_blocks},
        {"request_rate", t->rate},
        {"failed_rate", t->failed_rate},
        {"req_per_s", t->at.req_per_s},
        {"output_tok_per_s", t->at.output_tok_per_s},
        {"goodput", t->goodput},
        {"ttft_p99_ms", t->at.ttft.p99},
        {"tpot_p99_ms", t->at.tpot.p99},
        {"itl_p99_ms", t->at.itl.p99},
        {"e2e_p99_ms", t->at.e2e.p99},
        {"prefix_hit_rate", t->at.prefix_hit_rate},
        {"runs", t->runs},
    };

    vt_jw_row(w, key);
    vt_jw_u64(w, "max_num_seqs", s.max_num_seqs);
    vt_jw_u64(w, "max_num_batched_tokens", s.max_num_batched_tokens);
    vt_jw_f64(w, "gpu_memory_utilization", s.gpu_memory_utilization);
    vt_jw_u64(w, "tensor_parallel_size", s.tp);
    vt_jw_u64(w, "data_parallel_size", s.dp);
    if (s.dp > 1)
        vt_jw_str(w, "routing", s.routing);
    vt_jw_u64(w, "num_speculative_tokens", s.spec_tokens);
    vt_jw_bool(w, "prefix_caching", s.prefix_caching);
    vt_jw_str(w, "kv_cache_dtype", vt_setting_kv_dtype(&s));
    vt_jw_bool(w, "meets", t->meets);
    for (size_t k = 0; k < VT_COUNT(row); k++)
        if (isinf(row[k].v))
            vt_jw_str(w, row[k].key, "inf");
        else
            vt_jw_f64(w, row[k].key, row[k].v);
    vt_jw_str(w, "binding", t->binding);
    vt_jw_str(w, "problem", t->problem);
    if (!spec->target)
        vt_outside_json(w, &t->at.extent, &t->known, NULL);
    vt_jw_end(w);
}

void vt_tune_json(struct vt_buf *b, const struct vt_tune_spec *spec,
                  const struct vt_tune_result *r, const char *profile,
                  void (*more)(void *user, struct vt_jw *w), void *user)
{
    size_t *front = calloc(r->n + 1, sizeof(*front));
    size_t n = front ? vt_tune_pareto(spec, r, front) : 0;
    struct vt_jw w;

    vt_jw_init(&w, b, &vt_json_pretty);
    vt_jw_map(&w, NULL);
    vt_jw_str(&w, "profile", profile);
    vt_jw_str(&w, "workload", spec->workload);
    vt_jw_str(&w, "objective",
              spec->goal == VT_TUNE_CAPACITY ? "capacity" : "throughput");
    vt_jw_u64(&w, "seed", spec->seed);
    vt_jw_u64(&w, "configurations", r->n);
    vt_jw_u64(&w, "trials", r->trials);
    vt_jw_u64(&w, "runs", r->runs);
    vt_release_json(&w, spec->target ? 0 : spec->site.engine.vllm);
    if (spec->trust && !spec->target) {
        const struct vt_notes notes = {spec->trust->outside, spec->trust->n_outside};
        const struct vt_extent none = {0};

        vt_basis_members(&w, spec->trust);
        vt_outside_json(&w, &none, &none, &notes);
    }
    if (more)
        more(user, &w);
    if (r->best < r->n)
        put_tuned(&w, "best", spec, r, r->best);
    else
        vt_jw_null(&w, "best");
    vt_jw_list(&w, "pareto");
    for (size_t i = 0; i < n; i++)
        put_tuned(&w, NULL, spec, r, front[i]);
    vt_jw_end(&w);
    vt_jw_list(&w, "tried");
    for (size_t i = 0; i < r->n; i++)
        if (r->tuned[i].tried)
            put_tuned(&w, NULL, spec, r, i);
    vt_jw_end(&w);
    vt_jw_end(&w);
    vt_buf_char(b, '\n');
    free(front);
}

/* ---- the table ------------------------------------------------------- */

struct order { /* for qsort(), which hands on no context */
    const struct vt_tune_spec *spec;
    const struct vt_tune_result *r;
    size_t i;
};

static int by_worth(const void *x, const void *y)
{
    const struct order *a = x, *b = y;

    return vt_tune_better(a->spec, a->r, a->i, b->i) ? -1 : 1;
}

const char *vt_tune_why(char *out, size_t size, const struct vt_slo *slo,
                        const struct vt_tuned *t)
{
    double share = 0;
    const char *name = vt_slo_nearest(slo, &t->at, &share);

    if (name && share > 1)
        snprintf(out, size, "%s is %.4g ms at %.4g req/s, %.2g times its limit", name,
                 share * vt_slo_at(slo, vt_slo_find(name)), t->failed_rate, share);
    else
        snprintf(out, size, "above %s at every rate", t->binding);
    return out;
}

static bool is_outside(const struct vt_tuned *t)
{
    struct vt_outside way[VT_OUTSIDE];

    return vt_outside(&t->at.extent, &t->known, way) > 0;
}

/* What the columns have no room for: where a request goes, and the KV cache's format
 * where there are several. */
static void put_rest(struct vt_buf *b, const struct vt_tune_spec *spec,
                     const struct vt_setting *s)
{
    if (s->dp > 1)
        vt_buf_printf(b, "  %s", s->routing);
    if (spec->space.n[VT_AXIS_KV] > 1)
        vt_buf_printf(b, "  KV %s", vt_setting_kv_dtype(s));
}

static void put_row(struct vt_buf *b, const struct vt_tune_spec *spec,
                    const struct vt_setting *s, const struct vt_tuned *t)
{
    char rate[32], why[96];

    snprintf(rate, sizeof(rate), isinf(t->rate) ? "inf" : "%.2f", t->rate);
    vt_buf_printf(b, "%5u %7u %5.2f %3u %3u %4u %5s %8.2f %6s", s->max_num_seqs,
                  s->max_num_batched_tokens, s->gpu_memory_utilization, s->tp, s->dp,
                  s->spec_tokens, s->prefix_caching ? "on" : "off", t->kv_gib,
                  t->meets ? rate : "-");
    if (t->problem[0] != '\0')
        vt_buf_printf(b, "  %s", t->problem);
    else if (!t->meets)
        vt_buf_printf(b, "  %s", vt_tune_why(why, sizeof(why), &spec->slo, t));
    else
        vt_buf_printf(b, " %8.2f %9.0f %9.1f %9.0f  %s", t->at.req_per_s,
                      t->at.ttft.p99, t->at.tpot.p99, t->at.e2e.p99, t->binding);
    put_rest(b, spec, s);
    vt_buf_str(b, t->meets && is_outside(t) ? "  *\n" : "\n");
}

void vt_tune_table(struct vt_buf *b, const struct vt_tune_spec *spec,
                   const struct vt_tune_result *r, size_t most)
{
    struct order *o = calloc(r->n + 1, sizeof(*o));
    size_t n = 0;

    for (size_t i = 0; o && i < r->n; i++)
        if (r->tuned[i].tried)
            o[n++] = (struct order){spec, r, i};
    if (n > 1)
        qsort(o, n, sizeof(*o), by_worth);
    vt_buf_printf(b, "%5s %7s %5s %3s %3s %4s %5s %8s %6s %8s %9s %9s %9s  %s\n",
                  "seqs", "batched", "mem", "TP", "DP", "spec", "cache", "KV GiB",
                  "rate", "req/s", "TTFT p99", "TPOT p99", "E2E p99", "limit above");
    for (size_t i = 0; i < n && i < most; i++) {
        struct vt_setting s = vt_tune_space_at(&spec->space, o[i].i);

        put_row(b, spec, &s, &r->tuned[o[i].i]);
    }
    if (n > most)
        vt_buf_printf(b, "... and %zu more\n", n - most);
    for (size_t i = 0; i < n && i < most && !spec->target; i++) {
        const struct vt_tuned *t = &r->tuned[o[i].i];

        if (t->meets && is_outside(t)) {
            vt_buf_str(b,
                       "* beyond what the times were fitted on: less is known of it\n");
            break;
        }
    }
    free(o);
}

/* ---- the picture ----------------------------------------------------- */

static void add_point(struct vt_series *s, double *x, double *y,
                      const struct vt_tune_spec *spec, const struct vt_tuned *t,
                      const char *latency)
{
    x[s->n] = result_throughput(spec, t);
    y[s->n++] = result_latency(t, latency);
}

/* What a point is called: the values of the axes that are searched over, in the order
 * of the flags; the caption says which they are. */
static void name_setting(char *out, size_t size, const struct vt_tune_space *space,
                         size_t at)
{
    struct vt_setting s = vt_tune_space_at(space, at);
    const double value[VT_TUNE_AXES] = {
        s.max_num_seqs,
        s.max_num_batched_tokens,
        s.gpu_memory_utilization,
        s.tp,
        s.dp,
        0,
        s.spec_tokens,
        s.prefix_caching,
        s.kv_bytes,
    };
    size_t len = 0;

    *out = '\0';
    for (int i = 0; i < VT_TUNE_AXES && len < size; i++) {
        bool both = i <= VT_AXIS_BATCHED_TOKENS; /* always: who looks knows them */

        if (i == VT_AXIS_ROUTING || (space->n[i] < 2 && !both))
            continue;
        if (i == VT_AXIS_KV)
            len += (size_t)snprintf(out + len, size - len, " / %s",
                                    vt_setting_kv_dtype(&s));
        else
            len += (size_t)snprintf(out + len, size - len, "%s%g", len > 0 ? " / " : "",
                                    value[i]);
    }
}

static void name_axes(char *out, size_t size, const struct vt_tune_space *space)
{
    static const char *const name[VT_TUNE_AXES] = {
        "max-num-seqs", "max-num-batched-tokens", "memory",  "TP", "DP", NULL,
        "drafts",       "prefix caching",         "KV cache"};
    size_t len = (size_t)snprintf(out, size, "no other is better in both (");

    for (int i = 0, n = 0; i < VT_TUNE_AXES && len < size; i++)
        if (name[i] && (space->n[i] > 1 || i <= VT_AXIS_BATCHED_TOKENS))
            len += (size_t)snprintf(out + len, size - len, "%s%s", n++ > 0 ? " / " : "",
                                    name[i]);
    if (len < size)
        (void)snprintf(out + len, size - len, ")");
}

/* By gnuplot to the file, or as a chart of a page. */
static int show_search(const struct vt_tune_spec *spec, const struct vt_tune_result *r,
                       const char *title, const char *scratch, const char *path,
                       struct vt_buf *page, struct vt_err *err)
{
    enum { MEETS, FRONT, BEST, N_SERIES, NAME = 64 };
    bool capacity = spec->goal == VT_TUNE_CAPACITY;
    double limit;
    const char *latency = vt_tune_latency(spec, r, &limit);
    char y_label[32], front_name[160];
    struct vt_series s[N_SERIES] = {
        {.name = "within the limits", .style = VT_SERIES_POINTS, .grey = true},
        {.name = front_name, .style = VT_SERIES_LINE},
        {.name = "recommended", .style = VT_SERIES_MARK},
    };
    struct vt_chart c = {
        .series = s,
        .n = N_SERIES,
        .limit = limit,
        .heading = "Throughput against latency",
        .title = title,
        .x_label =
            capacity ? "highest request rate within the limits" : "requests per second",
        .y_label = y_label,
        .scratch = scratch,
    };
    size_t room = r->n + 1, *front = calloc(room, sizeof(*front)), n;
    double *x = calloc(room, N_SERIES * sizeof(*x));
    double *y = calloc(room, N_SERIES * sizeof(*y));
    char (*name)[NAME] = calloc(room, sizeof(*name));
    const char **label = calloc(room, sizeof(*label));
    int rc;

    snprintf(y_label, sizeof(y_label), "%s (ms)", latency);
    name_axes(front_name, sizeof(front_name), &spec->space);
    if (!front || !x || !y || !name || !label) {
        rc = vt_nomem(err);
        goto out;
    }
    for (size_t i = 0; i < N_SERIES; i++) {
        s[i].x = x + i * room;
        s[i].y = y + i * room;
    }
    for (size_t i = 0; i < r->n; i++)
        if (r->tuned[i].meets)
            add_point(&s[MEETS], x, y, spec, &r->tuned[i], latency);
    n = vt_tune_pareto(spec, r, front);
    for (size_t i = 0; i < n; i++) {
        add_point(&s[FRONT], x + room, y + room, spec, &r->tuned[front[i]], latency);
        name_setting(name[i], NAME, &spec->space, front[i]);
        label[i] = name[i];
    }
    s[FRONT].label = label;
    if (r->best < r->n)
        add_point(&s[BEST], x + BEST * room, y + BEST * room, spec, &r->tuned[r->best],
                  latency);
    rc = page ? vt_chart_page(page, &c, "pareto",
                              "Down and to the right is better; on the line no other "
                              "setting is better in both.",
                              err)
              : vt_chart_draw(&c, path, err);
out:
    free(front);
    free(x);
    free(y);
    free(name);
    free(label);
    return rc;
}

int vt_tune_plot(const struct vt_tune_spec *spec, const struct vt_tune_result *r,
                 const char *title, const char *scratch, const char *path,
                 struct vt_err *err)
{
    return show_search(spec, r, title, scratch, path, NULL, err);
}

/* ---- the page -------------------------------------------------------- */

static void put_page_row(struct vt_page_table *t, const struct vt_tune_spec *spec,
                         const struct vt_tune_result *r, size_t i)
{
    const struct vt_tuned *q = &r->tuned[i];
    struct vt_setting s = vt_tune_space_at(&spec->space, i);
    char why[160] = "";

    if (q->problem[0] != '\0')
        snprintf(why, sizeof(why), "%s", q->problem);
    else if (!q->meets)
        (void)vt_tune_why(why, sizeof(why), &spec->slo, q);
    else
        snprintf(why, sizeof(why), "%s%s", q->binding,
                 !spec->target && is_outside(q) ? " (beyond what was fitted)" : "");
    vt_page_row(t, i == r->best ? "best" : q->meets ? NULL : "odd");
    vt_page_cell(t, "%u", s.max_num_seqs);
    vt_page_cell(t, "%u", s.max_num_batched_tokens);
    vt_page_cell(t, "%.2f", s.gpu_memory_utilization);
    vt_page_cell(t, "%u", s.tp);
    vt_page_cell(t, "%u", s.dp);
    vt_page_cell(t, "%u", s.spec_tokens);
    vt_page_cell(t, "%s", s.prefix_caching ? "on" : "off");
    vt_page_cell(t, "%.2f", q->kv_gib);
    if (q->meets && !isinf(q->rate))
        vt_page_cell(t, "%.2f", q->rate);
    else
        vt_page_cell(t, "%s", q->meets ? "all at once" : "none");
    vt_page_cell(t, "%.2f", q->at.req_per_s);
    vt_page_cell(t, "%.0f", q->at.ttft.p99);
    vt_page_cell(t, "%.1f", q->at.tpot.p99);
    vt_page_cell(t, "%.0f", q->at.e2e.p99);
    vt_page_cell(t, "%s", why);
}

int vt_tune_page(struct vt_buf *b, const struct vt_tune_spec *spec,
                 const struct vt_tune_result *r, size_t most, struct vt_err *err)
{
    static const char *const head[] = {
        "max-num-seqs", "batched tokens", "memory", "TP",    "DP",       "drafts",
        "prefix cache", "KV GiB",         "rate",   "req/s", "TTFT p99", "TPOT p99",
        "E2E p99",      "<what stops it"};
    struct order *o = calloc(r->n + 1, sizeof(*o));
    struct vt_page_table t;
    size_t n = 0;
    int rc;

    if (!o)
        return vt_nomem(err);
    rc = show_search(spec, r, "", NULL, NULL, b, err);
    for (size_t i = 0; i < r->n; i++)
        if (r->tuned[i].tried)
            o[n++] = (struct order){spec, r, i};
    if (n > 1)
        qsort(o, n, sizeof(*o), by_worth);
    vt_page_section(b, "tried", "Settings tried",
                    "The best first; latencies in milliseconds. Grey: keeps the limits "
                    "at no rate.");
    vt_page_table_begin(&t, b, head, VT_COUNT(head));
    for (size_t i = 0; i < n && i < most; i++)
        put_page_row(&t, spec, r, o[i].i);
    vt_page_table_end(&t);
    if (n > most)
        vt_page_para(b, VT_PAGE_QUIET, "And %zu more, in trials.csv.", n - most);
    free(o);
    return rc;
}
