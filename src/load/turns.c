/* turns.c - what the turns of conversations took, by their number. */
#include <math.h>
#include <stdlib.h>

#include "load/load.h"

struct turn {
    size_t completed, failed, stopped;
    uint64_t input, cached, output;
    struct vt_load_dist ttft, tpot, itl, e2el;
};

static uint32_t count_turns(const struct vt_load_records *r)
{
    uint32_t n = 0;

    for (size_t i = 0; i < r->n; i++)
        n = r->record[i].turn >= n ? r->record[i].turn + 1 : n;
    return n;
}

static size_t count_stamps(const struct vt_load_records *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++)
        n += r->record[i].n_stamps;
    return n;
}

/* ---- samples --------------------------------------------------------- */

static double ttft_s(const struct vt_load_record *q, enum vt_load_backend b)
{
    (void)b;
    return vt_load_ttft_s(q);
}

static double e2el_s(const struct vt_load_record *q, enum vt_load_backend b)
{
    return vt_load_e2el_s(q, b);
}

static double tpot_s(const struct vt_load_record *q, enum vt_load_backend b)
{
    if (q->output_tokens < 2)
        return NAN;
    return (e2el_s(q, b) - ttft_s(q, b)) / (q->output_tokens - 1);
}

/* One value of each request of the turn, in seconds. */
static void spread(const struct vt_load_records *r, uint32_t turn,
                   const struct vt_load_asks *a,
                   double (*value)(const struct vt_load_record *, enum vt_load_backend),
                   double *scratch, struct vt_load_dist *out)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++)
        if (r->record[i].ok && r->record[i].turn == turn) {
            scratch[n] = value(&r->record[i], a->backend);
            n += isnan(scratch[n]) ? 0 : 1;
        }
    vt_load_dist_of(out, scratch, n, a);
}

static void spread_gaps(const struct vt_load_records *r, uint32_t turn,
                        const struct vt_load_asks *a, double *scratch,
                        struct vt_load_dist *out)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++)
        if (r->record[i].ok && r->record[i].turn == turn)
            for (uint32_t k = 1; k < r->record[i].n_stamps; k++)
                scratch[n++] =
                    (double)(r->record[i].stamp[k] - r->record[i].stamp[k - 1]) / 1e9;
    vt_load_dist_of(out, scratch, n, a);
}

static void add_up(const struct vt_load_records *r, uint32_t turn, struct turn *out)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct vt_load_record *q = &r->record[i];

        if (q->turn != turn)
            continue;
        out->completed += q->ok;
        out->failed += !q->ok && q->failure != VT_LOAD_STOPPED;
        out->stopped += q->failure == VT_LOAD_STOPPED;
        if (!q->ok)
            continue;
        out->input += q->prompt_tokens;
        out->cached += q->cached_tokens;
        out->output += q->output_tokens;
    }
}

static int make_turns(const struct vt_load_records *r, const struct vt_load_asks *a,
                      struct turn **out, uint32_t *n, struct vt_err *err)
{
    double *scratch = malloc((r->n + count_stamps(r) + 1) * sizeof(*scratch));

    *n = count_turns(r);
    *out = calloc((size_t)*n + 1, sizeof(**out));
    for (uint32_t i = 0; i < *n && *out && scratch; i++) {
        struct turn *t = &(*out)[i];

        add_up(r, i, t);
        spread(r, i, a, ttft_s, scratch, &t->ttft);
        spread(r, i, a, tpot_s, scratch, &t->tpot);
        spread(r, i, a, e2el_s, scratch, &t->e2el);
        spread_gaps(r, i, a, scratch, &t->itl);
    }
    free(scratch);
    return *out && scratch ? VT_OK : vt_nomem(err);
}

/* ---- text ------------------------------------------------------------ */

static void put_row(struct vt_buf *b, uint32_t i, const struct turn *t)
{
    double n = t->completed > 0 ? (double)t->completed : 1;

    vt_buf_printf(b, "%4u %8zu %6zu %9.1f %9.1f %9.1f", i + 1, t->completed, t->failed,
                  (double)t->input / n, (double)t->cached / n, (double)t->output / n);
    vt_buf_printf(b, " %9.2f %9.2f %9.2f", t->ttft.mean, t->ttft.median, t->ttft.p99);
    vt_buf_printf(b, " %8.2f %8.2f %8.2f %8.2f %10.2f\n", t->tpot.mean, t->tpot.p99,
                  t->itl.median, t->itl.p99, t->e2el.mean);
}

int vt_load_turns_table(struct vt_buf *b, const struct vt_load_records *r,
                        const struct vt_load_asks *a, struct vt_err *err)
{
    struct turn *turn;
    uint32_t n;
    int rc = make_turns(r, a, &turn, &n, err);

    if (rc == VT_OK && n > 1) {
        vt_buf_printf(b, "%4s %8s %6s %9s %9s %9s %29s %17s %17s %10s\n", "turn",
                      "requests", "failed", "input", "cached", "output",
                      "TTFT mean, p50, p99 (ms)", "TPOT mean, p99", "ITL p50, p99",
                      "E2EL mean");
        for (uint32_t i = 0; i < n; i++)
            put_row(b, i, &turn[i]);
    }
    free(turn);
    return rc;
}

/* ---- JSON ------------------------------------------------------------ */

static void json_f64(struct vt_buf *b, const char *key, double v)
{
    vt_buf_printf(b, ", \"%s\": ", key);
    vt_buf_f64(b, v);
}

static void json_dist(struct vt_buf *b, const char *name, const struct vt_load_dist *d,
                      const struct vt_load_asks *a)
{
    char key[48];
    const struct {
        const char *stat;
        double v;
    } each[] = {{"mean", d->mean}, {"median", d->median}, {"std", d->std}};

    for (size_t i = 0; i < VT_COUNT(each); i++) {
        snprintf(key, sizeof(key), "%s_%s_ms", each[i].stat, name);
        json_f64(b, key, each[i].v);
    }
    for (size_t i = 0; i < a->n_percentiles; i++) {
        snprintf(key, sizeof(key), "p%g_%s_ms", a->percentile[i], name);
        json_f64(b, key, d->p[i]);
    }
}

static void json_turn(struct vt_buf *b, uint32_t i, const struct turn *t,
                      double duration_s, const struct vt_load_asks *a)
{
    double s = duration_s > 0 ? duration_s : 1;

    vt_buf_printf(b, "{\"turn_index\": %u, \"num_samples\": %zu, \"completed\": %zu", i,
                  t->completed + t->failed, t->completed);
    vt_buf_printf(b, ", \"failed\": %zu, \"total_input_tokens\": ", t->failed);
    vt_buf_u64(b, t->input);
    vt_buf_str(b, ", \"total_output_tokens\": ");
    vt_buf_u64(b, t->output);
    vt_buf_str(b, ", \"total_cached_tokens\": ");
    vt_buf_u64(b, t->cached);
    json_f64(b, "request_throughput", (double)t->completed / s);
    json_f64(b, "input_throughput", (double)t->input / s);
    json_f64(b, "output_throughput", (double)t->output / s);
    json_f64(b, "total_token_throughput", (double)(t->input + t->output) / s);
    json_dist(b, "ttft", &t->ttft, a);
    json_dist(b, "tpot", &t->tpot, a);
    json_dist(b, "itl", &t->itl, a);
    json_dist(b, "e2el", &t->e2el, a);
    vt_buf_char(b, '}');
}

int vt_load_turns_json(struct vt_buf *b, const struct vt_load_records *r,
                       const struct vt_load_asks *a, struct vt_err *err)
{
    struct turn *turn;
    uint32_t n;
    int rc = make_turns(r, a, &turn, &n, err);

    if (rc == VT_OK && n < 2)
        vt_buf_str(b, "null");
    for (uint32_t i = 0; rc == VT_OK && n > 1 && i < n; i++) {
        vt_buf_str(b, i > 0 ? ", " : "[");
        json_turn(b, i, &turn[i], (double)r->end / 1e9, a);
    }
    if (rc == VT_OK && n > 1)
        vt_buf_char(b, ']');
    free(turn);
    return rc;
}
