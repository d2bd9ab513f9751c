/* compare_page.c - results side by side as a page. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd/compare.h"
#include "cli/cmd/pages.h"
#include "sim/sim.h"

enum { MOST_SIDES = 8 };

/* ---- runs over each other ---------------------------------------------- */

struct folder { /* the first below it that holds a run */
    struct vt_buf path;
    bool found;
};

static int find_run(void *user, const char *dir, struct vt_err *err)
{
    struct folder *f = user;

    if (f->found)
        return VT_OK;
    vt_buf_clear(&f->path);
    vt_buf_printf(&f->path, "%s/requests.jsonl", dir);
    f->found = !f->path.failed && access(f->path.data, R_OK) == 0;
    return f->path.failed ? vt_nomem(err) : VT_OK;
}

/* Steps that were written do not say of which engine of a fleet they are. */
static bool is_fleet(const char *path)
{
    const struct vt_node *root = NULL;
    struct vt_arena arena = {0};
    struct vt_err err;
    bool fleet = vt_tree_load(&arena, path, &root, &err) == VT_OK &&
                 vt_get(root, "instances") != NULL;

    vt_arena_free(&arena);
    return fleet;
}

/* Without steps less is drawn. */
static int add_steps(struct vt_run *run, const char *path, struct vt_err *err)
{
    struct vt_steps steps;
    int rc;

    if (access(path, R_OK) != 0)
        return VT_OK;
    rc = vt_steps_load(&steps, path, err);
    if (rc != VT_OK)
        return rc;
    for (size_t i = 0; rc == VT_OK && i < steps.n; i++)
        rc = vt_run_step(run, &steps.step[i], err);
    vt_steps_free(&steps);
    return rc;
}

/* The run of a folder of simulate --out, or the first of several below it; *out NULL:
 * there is none. */
static int load_run(struct vt_run **out, const char *dir, struct vt_err *err)
{
    struct vt_workload w = {0};
    struct folder f = {0};
    int rc;

    *out = NULL;
    if (!vt_is_directory(dir))
        return VT_OK;
    rc = find_run(&f, dir, err);
    if (rc == VT_OK && !f.found)
        rc = vt_each_entry(dir, find_run, &f, err);
    if (rc == VT_OK && f.found &&
        (rc = vt_workload_open(&w, f.path.data, 0, VT_WHOLE, err)) == VT_OK &&
        (rc = vt_run_new(out, 0, err)) == VT_OK &&
        (rc = vt_run_measured(*out, &w, err)) == VT_OK) {
        f.path.len -= strlen("requests.jsonl");
        vt_buf_str(&f.path, "summary.json");
        if (!f.path.failed && !is_fleet(f.path.data)) {
            f.path.len -= strlen("summary.json");
            vt_buf_str(&f.path, "steps.jsonl");
            rc = f.path.failed ? vt_nomem(err) : add_steps(*out, f.path.data, err);
        }
    }
    vt_workload_free(&w);
    vt_buf_free(&f.path);
    return rc;
}

static int put_runs(struct vt_buf *b, const char *const *operand, size_t n,
                    struct vt_err *err)
{
    struct vt_shown_run shown[MOST_SIDES] = {0};
    size_t k = 0;
    int rc = VT_OK;

    for (size_t i = 0; i < n && k < MOST_SIDES && rc == VT_OK; i++) {
        rc = load_run(&shown[k].run, operand[i], err);
        shown[k].label = operand[i];
        k += shown[k].run != NULL;
    }
    if (rc == VT_OK && k > 0) {
        vt_page_section(b, "latencies", "How long requests took",
                        "From each folder's requests.jsonl; of several runs in a "
                        "folder the first.");
        rc = vt_page_latencies(b, shown, k, NULL, 0, err);
        vt_page_section(
            b, "time", "What happened when",
            "Drag over a chart to zoom all of them; double click to return.");
        if (rc == VT_OK)
            rc = vt_page_timelines(b, shown, k, err);
    }
    for (size_t i = 0; i < VT_COUNT(shown); i++)
        vt_run_free(shown[i].run);
    return rc;
}

/* ---- numbers ----------------------------------------------------------- */

static const char *text_at(const struct vt_node *map, const char *key)
{
    const struct vt_node *v = vt_get(map, key);

    return v && v->kind == VT_STR ? v->u.str : "";
}

static bool judged(const struct vt_node *m)
{
    const struct vt_node *v = vt_get(m, "judged");

    return v && v->kind == VT_BOOL && v->u.boolean;
}

/* Judged metrics, in percent of the first. */
static void put_bars(struct vt_buf *b, const struct vt_node *metrics,
                     const struct vt_node *results)
{
    enum { MOST = 24, CUT = 300 };
    bool cut = false;
    double at[MOST], by[MOST_SIDES][MOST];
    struct vt_plot_series series[MOST_SIDES];
    const char *name[MOST];
    size_t n = 0, sides = results->n > MOST_SIDES ? MOST_SIDES : results->n;

    for (uint32_t i = 0; i < metrics->n && n < MOST; i++) {
        const struct vt_node *m = &metrics->u.item[i], *others = vt_get(m, "others");
        bool any = false;

        for (uint32_t k = 0; judged(m) && k < others->n && k + 1 < sides; k++) {
            if (!vt_node_f64(vt_get(&others->u.item[k], "percent"), &by[k][n]))
                by[k][n] = NAN;
            any |= isfinite(by[k][n]);
            cut |= by[k][n] > CUT;
        }
        at[n] = (double)n;
        name[n] = text_at(m, "name");
        n += any;
    }
    for (size_t k = 0; k + 1 < sides; k++)
        series[k] =
            (struct vt_plot_series){.name = text_at(&results->u.item[k + 1], "name"),
                                    .x = by[k],
                                    .y = at,
                                    .n = n,
                                    .colour = (uint32_t)k + 2};
    if (n > 0 && sides > 1)
        vt_page_plot(
            b,
            &(struct vt_plot){
                .id = "differences",
                .kind = VT_PLOT_BARS,
                .title = "Difference from the first, in percent",
                .note = cut ? "Of latencies less is better, of throughput "
                              "more. Bars end at 300 %."
                            : "Of latencies less is better, of throughput "
                              "more.",
                .x = {.label = "difference", .unit = "%", .has_max = cut, .max = CUT},
                .y = {.category = name, .n_categories = n},
                .series = series,
                .n = sides - 1,
            });
}

static void put_number(struct vt_page_table *t, const struct vt_node *v)
{
    double x;

    if (vt_node_f64(v, &x))
        vt_page_cell(t, "%.6g", x);
    else
        vt_page_cell(t, "%s", "");
}

static int put_metrics(struct vt_buf *b, const struct vt_node *metrics,
                       const struct vt_node *results, struct vt_err *err)
{
    size_t columns = 2 + 3 * (size_t)(results->n - 1), n = 0;
    const char **head = calloc(columns + 1, sizeof(*head));
    struct vt_page_table t;

    if (!head)
        return vt_nomem(err);
    head[n++] = "<";
    head[n++] = text_at(&results->u.item[0], "name");
    for (uint32_t i = 1; i < results->n; i++) {
        head[n++] = text_at(&results->u.item[i], "name");
        head[n++] = "percent";
        head[n++] = "<";
    }
    vt_page_table_begin(&t, b, head, n);
    for (uint32_t i = 0; i < metrics->n; i++) {
        const struct vt_node *m = &metrics->u.item[i], *others = vt_get(m, "others");

        vt_page_row(&t, judged(m) ? NULL : "odd");
        vt_page_cell(&t, "%s", text_at(m, "name"));
        put_number(&t, vt_get(m, "first"));
        for (uint32_t k = 0; k < others->n; k++) {
            double percent;

            put_number(&t, vt_get(&others->u.item[k], "value"));
            if (vt_node_f64(vt_get(&others->u.item[k], "percent"), &percent))
                vt_page_cell(&t, "%+.1f", percent);
            else
                vt_page_cell(&t, "%s", "");
            vt_page_cell(&t, "%s", text_at(&others->u.item[k], "verdict"));
        }
    }
    vt_page_table_end(&t);
    free(head);
    return VT_OK;
}

static int put_settings(struct vt_buf *b, const struct vt_node *settings,
                        const struct vt_node *results, struct vt_err *err)
{
    const char **head = calloc((size_t)results->n + 1, sizeof(*head));
    struct vt_page_table t;

    if (!head)
        return vt_nomem(err);
    vt_page_section(b, "settings", "Settings that differ",
                    settings->n > 0 ? NULL : "None that is stated.");
    head[0] = "<";
    for (uint32_t i = 0; i < results->n; i++)
        head[i + 1] = text_at(&results->u.item[i], "name");
    if (settings->n > 0) {
        vt_page_table_begin(&t, b, head, (size_t)results->n + 1);
        for (uint32_t i = 0; i < settings->n; i++) {
            const struct vt_node *values = vt_get(&settings->u.item[i], "values");

            vt_page_row(&t, NULL);
            vt_page_cell(&t, "%s", text_at(&settings->u.item[i], "name"));
            for (uint32_t k = 0; k < values->n; k++)
                vt_page_cell(&t, "%s", values->u.item[k].u.str);
        }
        vt_page_table_end(&t);
    }
    free(head);
    return VT_OK;
}

/* How many judged metrics of the last side are better and worse. */
static void put_answer(struct vt_buf *b, const struct vt_node *metrics,
                       const struct vt_node *results)
{
    const struct vt_node *last = &results->u.item[results->n - 1];
    size_t better = 0, worse = 0, n = 0;

    for (uint32_t i = 0; i < metrics->n; i++) {
        const struct vt_node *m = &metrics->u.item[i], *others = vt_get(m, "others");
        const char *verdict =
            others->n > 0 ? text_at(&others->u.item[others->n - 1], "verdict") : "";

        if (!judged(m))
            continue;
        n++;
        better += strcmp(verdict, "better") == 0;
        worse += strcmp(verdict, "worse") == 0;
    }
    pages_answer(b, &(struct pages_trust){.basis = "compared"},
                 "Of %zu metrics that count, %s is better than %s in %zu and worse in "
                 "%zu.",
                 n, text_at(last, "name"), text_at(&results->u.item[0], "name"), better,
                 worse);
}

int compare_page(const struct opt_args *a, const char *const *operand, size_t n,
                 const struct vt_buf *json, const char *path, struct vt_err *err)
{
    const struct vt_node *root, *metrics, *results;
    struct vt_arena arena = {0};
    struct vt_buf b = {0};
    int rc = vt_json_parse(&arena, json->data, json->len, 1, &root, err);

    if (rc != VT_OK) {
        vt_arena_free(&arena);
        return rc;
    }
    metrics = vt_get(root, "metrics");
    results = vt_get(root, "results");
    pages_begin(&b, a, "Results side by side");
    put_answer(&b, metrics, results);
    put_bars(&b, metrics, results);
    rc = put_settings(&b, vt_get(root, "settings"), results, err);
    if (rc == VT_OK)
        rc = put_runs(&b, operand, n, err);
    vt_page_section(&b, "metrics", "All metrics", "Grey ones are not judged.");
    if (rc == VT_OK)
        rc = put_metrics(&b, metrics, results, err);
    vt_arena_free(&arena);
    return vt_page_write(&b, rc, path, err);
}
