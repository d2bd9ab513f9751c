/* tune_report.c - what a search or a plan leaves: files in a directory, a table. */
#include <stdlib.h>
#include <string.h>

#include "cli/cmd/tune.h"

enum { MOST_ROWS = 20 };

static const char *scratch(void)
{
    const char *dir = getenv("TMPDIR");

    return dir != NULL && dir[0] != '\0' ? dir : "/tmp";
}

/* ---- a search -------------------------------------------------------- */

static int write_files(const struct tune_job *j, const struct vt_tune_result *r,
                       const char *dir, struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc;

    vt_tune_result_txt(&b, &j->spec, r, "vtwin-" VT_VERSION, dir);
    rc = vt_write_file_in(dir, "result.txt", &b, err);
    vt_buf_clear(&b);
    vt_tune_json(&b, &j->spec, r, j->timed_by);
    if (rc == VT_OK)
        rc = vt_write_file_in(dir, "result.json", &b, err);
    vt_buf_clear(&b);
    vt_tune_csv(&b, &j->spec, r);
    if (rc == VT_OK)
        rc = vt_write_file_in(dir, "trials.csv", &b, err);
    vt_buf_free(&b);
    return rc;
}

/* A missing gnuplot does not take the numbers with it. */
static int draw(const struct tune_job *j, const struct vt_tune_result *r,
                const char *dir, struct vt_err *err)
{
    char path[4096], title[256];
    int rc;

    snprintf(path, sizeof(path), "%.4000s/pareto.png", dir);
    snprintf(title, sizeof(title), "%.100s, %.100s", j->timed_by, j->spec.workload);
    rc = vt_tune_plot(&j->spec, r, title, scratch(), path, err);
    if (rc != VT_EIO && rc != VT_ECHECK)
        return rc;
    fprintf(stderr, "vtwin: warning: no pareto.png: %s\n", err->msg);
    return VT_OK;
}

static void put_answer(struct vt_buf *b, const struct tune_job *j,
                       const struct vt_tune_result *r)
{
    struct vt_setting s;

    vt_tune_table(b, &j->spec, r, MOST_ROWS);
    vt_buf_printf(b, "\n%zu of %zu configurations tried, %zu simulations\n", r->trials,
                  r->n, r->runs);
    if (r->best == r->n) {
        vt_buf_str(b, "none keeps the limits\n");
        return;
    }
    s = vt_tune_space_at(&j->spec.space, r->best);
    vt_buf_str(b, "recommended:\n  ");
    vt_recommend(b, j->model_name != NULL ? j->model_name : "MODEL", &j->spec.site, &s);
    vt_buf_char(b, '\n');
}

int tune_report(const struct tune_job *j, const struct vt_tune_result *r,
                const struct cli_args *a, struct vt_err *err)
{
    const char *dir = cli_str(a, "out");
    struct vt_buf b = {0};
    int rc = VT_OK;

    if (dir != NULL) {
        rc = vt_make_dirs(dir, NULL, err);
        if (rc == VT_OK)
            rc = write_files(j, r, dir, err);
        if (rc == VT_OK)
            rc = draw(j, r, dir, err);
    }
    if (rc != VT_OK)
        return rc;
    if (cli_has(a, "json"))
        vt_tune_json(&b, &j->spec, r, j->timed_by);
    else
        put_answer(&b, j, r);
    rc = cli_print(&b, err);
    vt_buf_free(&b);
    return rc;
}

/* ---- a plan ---------------------------------------------------------- */

static int write_plan(const struct vt_tuning_plan *p, const struct vt_plan_result *r,
                      const char *dir, struct vt_err *err)
{
    struct vt_buf b = {0};
    char path[4096];
    int rc = vt_make_dirs(dir, NULL, err);

    vt_plan_table(&b, p, r);
    if (rc == VT_OK)
        rc = vt_write_file_in(dir, "plan.txt", &b, err);
    vt_buf_clear(&b);
    vt_plan_json(&b, p, r);
    if (rc == VT_OK)
        rc = vt_write_file_in(dir, "plan.json", &b, err);
    vt_buf_clear(&b);
    vt_plan_csv(&b, p, r);
    if (rc == VT_OK)
        rc = vt_write_file_in(dir, "plan.csv", &b, err);
    vt_buf_free(&b);
    if (rc != VT_OK)
        return rc;
    snprintf(path, sizeof(path), "%.4000s/plan.png", dir);
    rc = vt_plan_plot(p, r, scratch(), path, err);
    if (rc != VT_EIO && rc != VT_ECHECK)
        return rc;
    fprintf(stderr, "vtwin: warning: no plan.png: %s\n", err->msg);
    return VT_OK;
}

static int show_plan(const struct vt_tuning_plan *p, const struct vt_plan_result *r,
                     const struct cli_args *a, struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc = cli_has(a, "out") ? write_plan(p, r, cli_str(a, "out"), err) : VT_OK;

    if (rc != VT_OK)
        return rc;
    if (cli_has(a, "json"))
        vt_plan_json(&b, p, r);
    else
        vt_plan_table(&b, p, r);
    rc = cli_print(&b, err);
    vt_buf_free(&b);
    return rc;
}

/* Flags beat the file where they make it shorter or longer. */
static int read_plan_flags(struct vt_tuning_plan *p, const struct cli_args *a,
                           int64_t *seed, uint32_t *workers, struct vt_err *err)
{
    int rc = cli_i64(a, "seed", 0, INT64_MAX - 1000, seed, err);
    uint32_t n = (uint32_t)p->n_rates;

    if (rc == VT_OK)
        rc = cli_u32(a, "jobs", 1, 4096, workers, err);
    if (rc == VT_OK)
        rc = cli_u32(a, "seeds", 1, 1000, &p->seeds, err);
    if (rc == VT_OK)
        rc = cli_u32(a, "requests", 2, 1000000, &p->requests, err);
    if (rc == VT_OK)
        rc = tune_list(a, "rates", 1e-6, 1e6, p->rate, VT_PLAN_RATES, &n, err);
    p->n_rates = n;
    return rc;
}

int tune_plan(const struct cli_args *a, struct vt_err *err)
{
    struct vt_tuning_plan *p = malloc(sizeof(*p));
    struct vt_plan_result r = {0};
    uint32_t workers = 0;
    int64_t seed = 1;
    int rc =
        p != NULL ? vt_tuning_plan_load(p, cli_str(a, "plan"), err) : vt_nomem(err);

    if (rc != VT_OK) {
        free(p);
        return rc;
    }
    rc = read_plan_flags(p, a, &seed, &workers, err);
    if (rc == VT_OK)
        rc = vt_tuning_plan_run(&r, p, (uint64_t)seed, workers, err);
    if (rc == VT_OK)
        rc = show_plan(p, &r, a, err);
    vt_plan_result_free(&r);
    vt_tuning_plan_free(p);
    free(p);
    return rc;
}
