/* plan_show.c - a plan's predictions beside what was measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/tune.h"

static const struct vt_tuning_cell *cell_at(const struct vt_tuning_plan *p,
                                            const struct vt_tuning_result *r,
                                            size_t row, size_t rate)
{
    return &r->at[row * p->n_rates + rate];
}

static double best_rate(const struct vt_tuning_plan *p,
                        const struct vt_tuning_result *r, size_t row)
{
    return r->best[row] < p->n_rates ? p->rate[r->best[row]] : 0;
}

/* The rate just above the best, where the limit breaks; NULL: there is none. */
static const struct vt_tuning_cell *
cell_above(const struct vt_tuning_plan *p, const struct vt_tuning_result *r, size_t row)
{
    size_t k = r->best[row] < p->n_rates ? r->best[row] + 1 : 0;

    return k < p->n_rates ? cell_at(p, r, row, k) : NULL;
}

/* ---- tables ---------------------------------------------------------- */

static void put_limits_row(struct vt_buf *b, const struct vt_tuning_plan *p,
                           const struct vt_tuning_result *r, size_t i)
{
    const struct vt_tuning_row *row = &p->row[i];
    const struct vt_tuning_cell *next = cell_above(p, r, i);
    const struct vt_tuning_measured *m = &row->measured;
    char kv[64] = "-", rate[40] = "-";

    if (m->kv_gib > 0)
        snprintf(kv, sizeof(kv), "%.2f (%+.1f %%)", m->kv_gib,
                 100 * (r->kv_gib[i] / m->kv_gib - 1));
    if (m->rate_low > 0 || m->rate_high > 0)
        snprintf(rate, sizeof(rate), "%.2f, %.2f", m->rate,
                 m->rate_low > 0 ? m->rate_low : m->rate_high);
    else if (m->rate > 0)
        snprintf(rate, sizeof(rate), "%.2f", m->rate);
    vt_buf_printf(b, "%5u  %-24s %7.2f  %-16s %5.2f  %-11s %-19s", row->phase,
                  row->name, r->kv_gib[i], kv, best_rate(p, r, i), rate,
                  next ? next->broken : "none");
    if (m->rate > 0 &&
        best_rate(p, r, i) >= (m->rate_low > 0 ? m->rate_low : m->rate) &&
        best_rate(p, r, i) <= (m->rate_high > 0 ? m->rate_high : m->rate))
        vt_buf_str(b, "  as measured");
    else if (m->rate > 0)
        vt_buf_printf(b, "  MISSED by %+.2f", best_rate(p, r, i) - m->rate);
    vt_buf_char(b, '\n');
}

static size_t rate_index(const struct vt_tuning_plan *p, double rate)
{
    size_t k = 0;

    while (k < p->n_rates && (p->rate[k] < rate || p->rate[k] > rate))
        k++;
    return k;
}

static void put_pair(struct vt_buf *b, double predicted, double measured)
{
    if (measured > 0)
        vt_buf_printf(b, " %8.0f %8.0f %+6.0f %%", predicted, measured,
                      100 * (predicted / measured - 1));
    else
        vt_buf_printf(b, " %8.0f %8s %8s", predicted, "-", "");
}

/* Rows whose latencies were measured, at the rate they were. */
static void put_latencies(struct vt_buf *b, const struct vt_tuning_plan *p,
                          const struct vt_tuning_result *r)
{
    bool first = true;

    for (size_t i = 0; i < p->n; i++) {
        const struct vt_tuning_measured *m = &p->row[i].measured;
        size_t k = rate_index(p, m->at);

        if (!(m->at > 0) || k == p->n_rates)
            continue;
        if (first)
            vt_buf_printf(b,
                          "\n%-24s %6s %26s %26s %26s\n%-24s %6s %8s %8s %8s %8s %8s "
                          "%8s %8s %8s %8s\n",
                          "", "", "TTFT p99 (ms)", "TPOT p99 (ms)", "ITL p99 (ms)",
                          "row", "rate", "twin", "measured", "", "twin", "measured", "",
                          "twin", "measured", "");
        first = false;
        vt_buf_printf(b, "%-24s %6.2f", p->row[i].name, m->at);
        put_pair(b, cell_at(p, r, i, k)->mean.ttft.p99, m->ttft_p99);
        put_pair(b, cell_at(p, r, i, k)->mean.tpot.p99, m->tpot_p99);
        put_pair(b, cell_at(p, r, i, k)->mean.itl.p99, m->itl_p99);
        vt_buf_char(b, '\n');
    }
}

/* Does a row differ from the baseline the way it did when measured? */
static void put_change(struct vt_buf *b, double row, double base, double row_measured,
                       double base_measured)
{
    double twin = row / base - 1, real = row_measured / base_measured - 1;

    if (!(row_measured > 0 && base_measured > 0 && base > 0))
        vt_buf_printf(b, " %26s", "-");
    else
        vt_buf_printf(b, " %+6.1f %% %+6.1f %% %8s", 100 * twin, 100 * real,
                      (twin < 0) == (real < 0) ? "ok" : "MISSED");
}

static void put_changes(struct vt_buf *b, const struct vt_tuning_plan *p,
                        const struct vt_tuning_result *r)
{
    const struct vt_tuning_measured *base = &p->row[0].measured;
    size_t k = rate_index(p, base->at);

    for (size_t i = 1; i < p->n && k < p->n_rates && base->at > 0; i++) {
        const struct vt_tuning_measured *m = &p->row[i].measured;
        const struct vt_summary *s = &cell_at(p, r, i, k)->mean;
        const struct vt_summary *t = &cell_at(p, r, 0, k)->mean;

        if (m->at < base->at || m->at > base->at)
            continue;
        vt_buf_printf(b, "%-24s %6s", "  against the baseline", "");
        put_change(b, s->ttft.p99, t->ttft.p99, m->ttft_p99, base->ttft_p99);
        put_change(b, s->tpot.p99, t->tpot.p99, m->tpot_p99, base->tpot_p99);
        put_change(b, s->itl.p99, t->itl.p99, m->itl_p99, base->itl_p99);
        vt_buf_char(b, '\n');
    }
}

/* ---- gains ----------------------------------------------------------- */

/* The best row of a phase: by rate, then by TPOT p99 at the baseline's best rate. */
static size_t best_of_phase(const struct vt_tuning_plan *p,
                            const struct vt_tuning_result *r, uint32_t phase)
{
    size_t best = p->n, k = r->best[0] < p->n_rates ? r->best[0] : 0;

    for (size_t i = 0; i < p->n; i++) {
        if (p->row[i].phase != phase)
            continue;
        if (best == p->n || best_rate(p, r, i) > best_rate(p, r, best) ||
            (!(best_rate(p, r, i) < best_rate(p, r, best)) &&
             cell_at(p, r, i, k)->mean.tpot.p99 <
                 cell_at(p, r, best, k)->mean.tpot.p99))
            best = i;
    }
    return best;
}

static void put_percent(struct vt_buf *b, double now, double base)
{
    if (base > 0)
        vt_buf_printf(b, " %+6.0f %%", 100 * (now / base - 1));
    else
        vt_buf_printf(b, " %8s", "-");
}

static void put_gain(struct vt_buf *b, const struct vt_tuning_plan *p,
                     const struct vt_tuning_result *r, size_t i, size_t k)
{
    const struct vt_summary *s = &cell_at(p, r, i, k)->mean, *t;
    size_t base = p->row[i].over < i ? p->row[i].over : 0;

    /* Held against the first row with as many engines; a row that is it itself against
     * the baseline. */
    while (p->row[i].over == i && base < i &&
           p->row[base].setting.dp != p->row[i].setting.dp)
        base++;
    base = base < i ? base : 0;
    t = &cell_at(p, r, base, k)->mean;
    vt_buf_printf(b, "%5u  %-24s %-24s", p->row[i].phase, p->row[i].name,
                  p->row[base].name);
    put_percent(b, best_rate(p, r, i), best_rate(p, r, base));
    put_percent(b, s->ttft.p99, t->ttft.p99);
    put_percent(b, s->tpot.p99, t->tpot.p99);
    put_percent(b, s->itl.p99, t->itl.p99);
    put_percent(b, s->tpot.p50, t->tpot.p50);
    vt_buf_char(b, '\n');
}

static void put_gains(struct vt_buf *b, const struct vt_tuning_plan *p,
                      const struct vt_tuning_result *r)
{
    size_t k = r->best[0] < p->n_rates ? r->best[0] : 0;

    vt_buf_printf(b, "\ngain of each phase (latencies at %.2f req/s an engine)\n",
                  p->rate[k]);
    vt_buf_printf(b, "%5s  %-24s %-24s %8s %8s %8s %8s %8s\n", "phase", "best row",
                  "over", "rate", "TTFT p99", "TPOT p99", "ITL p99", "TPOT p50");
    for (uint32_t phase = 1; phase <= 100; phase++) {
        size_t i = best_of_phase(p, r, phase);

        if (i < p->n)
            put_gain(b, p, r, i, k);
    }
}

void vt_tuning_table(struct vt_buf *b, const struct vt_tuning_plan *p,
                     const struct vt_tuning_result *r)
{
    vt_buf_printf(b,
                  "%s: %zu rows at %zu rates, %u requests an engine, %u seeds, "
                  "scheduler of vLLM 0.%u\n\n",
                  p->name, p->n, p->n_rates, p->requests, p->seeds, r->at[0].mean.vllm);
    vt_buf_printf(b, "%5s  %-24s %7s  %-16s %5s  %-11s %s\n", "phase", "row", "KV GiB",
                  "measured", "rate", "measured", "limit above");
    for (size_t i = 0; i < p->n; i++)
        put_limits_row(b, p, r, i);
    put_latencies(b, p, r);
    put_changes(b, p, r);
    put_gains(b, p, r);
}

/* ---- for programs ---------------------------------------------------- */

void vt_tuning_csv(struct vt_buf *b, const struct vt_tuning_plan *p,
                   const struct vt_tuning_result *r)
{
    vt_buf_str(b, "phase,row,kv_cache_gib,rate,runs,passed,broken,req_per_s,"
                  "ttft_p50_ms,ttft_p99_ms,tpot_p50_ms,tpot_p99_ms,itl_p99_ms,"
                  "e2e_p99_ms,prefix_hit_rate,preemptions\n");
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->n_rates; k++) {
            const struct vt_tuning_cell *c = cell_at(p, r, i, k);
            const struct vt_summary *s = &c->mean;

            vt_buf_printf(b, "%u,", p->row[i].phase);
            vt_buf_csv(b, p->row[i].name, true);
            vt_buf_printf(b, ",%.2f,%g,%u,%u,", r->kv_gib[i], p->rate[k], c->runs,
                          c->passed);
            vt_buf_csv(b, c->broken, true);
            vt_buf_printf(b, ",%.4f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.4f,%llu\n",
                          s->req_per_s, s->ttft.p50, s->ttft.p99, s->tpot.p50,
                          s->tpot.p99, s->itl.p99, s->e2e.p99, s->prefix_hit_rate,
                          (unsigned long long)s->preemptions);
        }
}

static void put_json_row(struct vt_jw *w, const struct vt_tuning_plan *p,
                         const struct vt_tuning_result *r, size_t i)
{
    const struct vt_tuning_measured *m = &p->row[i].measured;
    const struct vt_tuning_cell *next = cell_above(p, r, i);

    vt_jw_row(w, NULL);
    vt_jw_str(w, "name", p->row[i].name);
    vt_jw_u64(w, "phase", p->row[i].phase);
    vt_jw_printf(w, "kv_cache_gib", "%.4f", r->kv_gib[i]);
    vt_jw_printf(w, "measured_kv_cache_gib", "%g", m->kv_gib);
    vt_jw_printf(w, "rate", "%g", best_rate(p, r, i));
    vt_jw_printf(w, "measured_rate", "%g", m->rate);
    vt_jw_str(w, "limit_above", next ? next->broken : "");
    vt_jw_list(w, "at");
    for (size_t k = 0; k < p->n_rates; k++) {
        const struct vt_tuning_cell *c = cell_at(p, r, i, k);

        vt_jw_map(w, NULL);
        vt_jw_printf(w, "rate", "%g", p->rate[k]);
        vt_jw_u64(w, "passed", c->passed);
        vt_jw_printf(w, "ttft_p99_ms", "%.3f", c->mean.ttft.p99);
        vt_jw_printf(w, "tpot_p50_ms", "%.3f", c->mean.tpot.p50);
        vt_jw_printf(w, "tpot_p99_ms", "%.3f", c->mean.tpot.p99);
        vt_jw_printf(w, "itl_p99_ms", "%.3f", c->mean.itl.p99);
        vt_jw_printf(w, "req_per_s", "%.4f", c->mean.req_per_s);
        vt_jw_str(w, "broken", c->broken);
        vt_outside_json(w, &c->mean.extent, &c->known, NULL);
        vt_jw_end(w);
    }
    vt_jw_end(w);
    vt_jw_end(w);
}

void vt_tuning_json(struct vt_buf *b, const struct vt_tuning_plan *p,
                    const struct vt_tuning_result *r)
{
    struct vt_jw w;

    vt_jw_init(&w, b, &vt_json_pretty);
    vt_jw_map(&w, NULL);
    vt_jw_str(&w, "plan", p->name);
    vt_release_json(&w, r->at[0].mean.vllm);
    vt_jw_list(&w, "rows");
    for (size_t i = 0; i < p->n; i++)
        put_json_row(&w, p, r, i);
    vt_jw_end(&w);
    vt_jw_end(&w);
    vt_buf_char(b, '\n');
}
