/* capacity_out.c - what vtwin capacity has found: table, JSON, CSV, figure. */
#include <stdlib.h>

#include "cli/cmd/capacity.h"

/* ---- for people ----------------------------------------------------------------- */

static void put_answer(struct vt_buf *b, const struct capacity_answer *a)
{
    const struct vt_slo *slo = &a->spec->slo;
    const struct {
        const char *name;
        double limit;
    } row[] = {
        {"TTFT p99", slo->ttft_p99},
        {"TPOT p99", slo->tpot_p99},
        {"ITL p99", slo->itl_p99},
        {"E2E p99", slo->e2e_p99},
    };
    const struct vt_capacity *c = a->found;
    double limit = 0;

    for (size_t i = 0; c->binding && i < VT_COUNT(row); i++)
        if (strcmp(row[i].name, c->binding) == 0)
            limit = row[i].limit;
    if (c->rate > 0)
        vt_buf_printf(b, "capacity %.4g req/s", c->rate);
    else
        vt_buf_str(b, "capacity 0: no rate that was tried keeps the limits");
    if (c->rate > 0 && c->high > 0)
        vt_buf_printf(b, " (95 %% confidence %.4g to %.4g)", c->low, c->high);
    vt_buf_str(b, c->rate > 0 ? ": " : "; ");
    if (!c->binding)
        vt_buf_str(b, "nothing breaks a limit up to there\n");
    else if (limit > 0)
        vt_buf_printf(b, "%s is above %g ms at %.4g\n", c->binding, limit, c->failed);
    else
        vt_buf_printf(b, "less than 95 %% is borne at %.4g\n", c->failed);
}

void capacity_table(struct vt_buf *b, const struct capacity_answer *a)
{
    vt_buf_printf(b, "%9s %9s %9s %9s %8s %8s %8s %8s  %s  %s\n", "req/s", "achieved",
                  "TTFT p50", "p99 ms", "TPOT p50", "p99", "ITL p50", "p99", "kept",
                  "broken");
    for (size_t i = 0; i < a->found->n; i++) {
        const struct vt_capacity_point *p = &a->found->point[i];
        const struct vt_summary *s = &p->mean;

        vt_buf_printf(b, "%9.4g %9.4g %9.1f %9.1f %8.2f %8.2f %8.2f %8.2f  %u/%u  %s\n",
                      p->rate, p->achieved, s->ttft.p50, s->ttft.p99, s->tpot.p50,
                      s->tpot.p99, s->itl.p50, s->itl.p99, p->passed, p->runs,
                      p->broken      ? p->broken
                      : p->saturated ? "rate"
                                     : "-");
    }
    vt_buf_char(b, '\n');
    put_answer(b, a);
}

/* ---- for programs --------------------------------------------------------------- */

static void put_point(struct vt_jw *j, const struct vt_capacity_point *p)
{
    vt_jw_row(j, NULL);
    vt_jw_f64(j, "rate", p->rate);
    vt_jw_f64(j, "achieved", p->achieved);
    vt_jw_u64(j, "runs", p->runs);
    vt_jw_u64(j, "passed", p->passed);
    vt_jw_bool(j, "saturated", p->saturated);
    vt_jw_str(j, "broken", p->broken);
    for (size_t row = 0; row < VT_N_MEASURED; row++) {
        vt_jw_row(j, vt_stat_rows[row].key);
        for (size_t part = 0; part < VT_N_PARTS; part++)
            vt_jw_f64(j, vt_parts[part].key,
                      vt_part_of(vt_stat_of(&p->mean, row), part));
        vt_jw_end(j);
    }
    vt_jw_f64(j, "output_tok_per_s", p->mean.output_tok_per_s);
    vt_jw_f64(j, "prefix_hit_rate", p->mean.prefix_hit_rate);
    vt_jw_f64(j, "kv_usage_peak", p->mean.kv_usage_peak);
    vt_jw_end(j);
}

void capacity_json(struct vt_buf *b, const struct capacity_answer *a)
{
    const struct vt_slo *slo = &a->spec->slo;
    const struct vt_capacity *c = a->found;
    struct vt_jw j;

    vt_jw_init(&j, b, &vt_json_pretty);
    vt_jw_map(&j, NULL);
    vt_jw_f64(&j, "capacity", c->rate);
    vt_jw_f64(&j, "failed_rate", c->failed);
    vt_jw_f64_list(&j, "confidence_95", (const double[]){c->low, c->high}, 2);
    vt_jw_str(&j, "binding", c->binding);
    vt_jw_row(&j, "slo_ms");
    vt_jw_f64(&j, "ttft_p99", slo->ttft_p99);
    vt_jw_f64(&j, "tpot_p99", slo->tpot_p99);
    vt_jw_f64(&j, "itl_p99", slo->itl_p99);
    vt_jw_f64(&j, "e2e_p99", slo->e2e_p99);
    vt_jw_end(&j);
    vt_jw_str(&j, "profile", a->timed_by);
    vt_jw_str(&j, "workload", a->spec->trial.workload);
    vt_jw_u64(&j, "seed", a->spec->trial.seed);
    vt_jw_u64(&j, "trials", c->trials);
    vt_jw_list(&j, "points");
    for (size_t i = 0; i < c->n; i++)
        put_point(&j, &c->point[i]);
    vt_jw_end(&j);
    vt_jw_str(&j, "version", VT_VERSION);
    if (a->known)
        vt_outside_json(&j, &c->extent, a->known);
    vt_jw_end(&j);
    vt_buf_char(b, '\n');
}

int capacity_csv(const struct capacity_answer *a, const char *path, struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc;

    vt_buf_str(&b, "rate,achieved,ttft_p50_ms,ttft_p99_ms,tpot_p50_ms,tpot_p99_ms,"
                   "itl_p50_ms,itl_p99_ms,e2e_p50_ms,e2e_p99_ms,output_tok_per_s,runs,"
                   "passed,saturated,broken\n");
    for (size_t i = 0; i < a->found->n; i++) {
        const struct vt_capacity_point *p = &a->found->point[i];
        const struct vt_summary *s = &p->mean;
        const double value[] = {p->rate,     p->achieved,        s->ttft.p50,
                                s->ttft.p99, s->tpot.p50,        s->tpot.p99,
                                s->itl.p50,  s->itl.p99,         s->e2e.p50,
                                s->e2e.p99,  s->output_tok_per_s};

        for (size_t k = 0; k < VT_COUNT(value); k++) {
            vt_buf_f64(&b, value[k]);
            vt_buf_char(&b, ',');
        }
        vt_buf_printf(&b, "%u,%u,%d,%s\n", p->runs, p->passed, p->saturated,
                      p->broken ? p->broken : "");
    }
    rc = vt_write_file(path, &b, err);
    vt_buf_free(&b);
    return rc;
}

/* ---- the figure ------------------------------------------------------ */

int capacity_plot(const struct capacity_answer *a, const char *path, struct vt_err *err)
{
    const struct vt_capacity *c = a->found;
    struct vt_load_point *point = calloc(c->n + 1, sizeof(*point));
    char title[256];
    struct vt_load_curve curve = {
        .point = point,
        .n = c->n,
        .axis = VT_LOAD_BY_RATE,
        .limit = {a->spec->slo.ttft_p99, a->spec->slo.tpot_p99, a->spec->slo.itl_p99},
        .answer = c->rate,
        .title = title,
        .scratch = cli_scratch(),
    };
    int rc;

    if (!point)
        return vt_nomem(err);
    (void)snprintf(title, sizeof(title), "%s, %s", a->spec->trial.workload,
                   a->timed_by);
    for (size_t i = 0; i < c->n; i++) {
        const struct vt_summary *s = &c->point[i].mean;

        point[i] = (struct vt_load_point){
            .load = c->point[i].rate,
            .ttft = {s->ttft.p50, s->ttft.p99},
            .tpot = {s->tpot.p50, s->tpot.p99},
            .itl = {s->itl.p50, s->itl.p99},
            .req_per_s = c->point[i].achieved,
            .output_tok_per_s = s->output_tok_per_s,
            .saturated = c->point[i].saturated,
        };
    }
    rc = vt_load_curve_draw(&curve, path, err);
    free(point);
    return rc;
}
