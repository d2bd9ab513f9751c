/* turns.c - what the turns of conversations took, by their number. */
#include <stdlib.h>

#include "load/summary.h"

struct turn {
    size_t completed, failed;
    uint64_t input, cached, output;
    struct vt_load_dist ttft, tpot, itl, e2el;
};

static int make_turns(const struct vt_load_records *r, const struct vt_load_asks *a,
                      struct turn **out, uint32_t *n, struct vt_err *err)
{
    double *v = load_room(r);

    *n = 0;
    for (size_t i = 0; i < r->n; i++)
        *n = r->record[i].turn >= *n ? r->record[i].turn + 1 : *n;
    *out = calloc((size_t)*n + 1, sizeof(**out));
    for (size_t i = 0; i < r->n && *out; i++) {
        const struct vt_load_record *q = &r->record[i];
        struct turn *t = &(*out)[q->turn];

        t->completed += q->ok;
        t->failed += !q->ok && q->failure != VT_LOAD_STOPPED;
        if (!q->ok)
            continue;
        t->input += q->prompt_tokens;
        t->cached += q->cached_tokens;
        t->output += q->output_tokens;
    }
    for (uint32_t i = 0; i < *n && *out && v; i++) {
        struct load_slice slice = {.turn = i, .from = INT64_MIN, .to = INT64_MAX};
        struct turn *t = &(*out)[i];

        load_spread(&t->ttft, r, &slice, a, LOAD_TTFT, v);
        load_spread(&t->tpot, r, &slice, a, LOAD_TPOT, v);
        load_spread(&t->itl, r, &slice, a, LOAD_ITL, v);
        load_spread(&t->e2el, r, &slice, a, LOAD_E2EL, v);
    }
    free(v);
    return *out && v ? VT_OK : vt_nomem(err);
}

/* ---- text ------------------------------------------------------------ */

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
    }
    for (uint32_t i = 0; rc == VT_OK && n > 1 && i < n; i++) {
        const struct turn *t = &turn[i];
        double some = t->completed > 0 ? (double)t->completed : 1;

        vt_buf_printf(b, "%4u %8zu %6zu %9.1f %9.1f %9.1f", i + 1, t->completed,
                      t->failed, (double)t->input / some, (double)t->cached / some,
                      (double)t->output / some);
        vt_buf_printf(b, " %9.2f %9.2f %9.2f", t->ttft.mean, t->ttft.median,
                      t->ttft.p99);
        vt_buf_printf(b, " %8.2f %8.2f %8.2f %8.2f %10.2f\n", t->tpot.mean, t->tpot.p99,
                      t->itl.median, t->itl.p99, t->e2el.mean);
    }
    free(turn);
    return rc;
}

/* ---- JSON ------------------------------------------------------------ */

int vt_load_turns_json(struct vt_buf *b, const struct vt_load_records *r,
                       const struct vt_load_asks *a, struct vt_err *err)
{
    double s = r->end > 0 ? (double)r->end / 1e9 : 1;
    struct turn *turn;
    struct vt_jw w;
    uint32_t n;
    int rc = make_turns(r, a, &turn, &n, err);

    vt_jw_init(&w, b, &vt_json_spaced);
    if (rc == VT_OK && n < 2) {
        vt_jw_null(&w, NULL);
    } else if (rc == VT_OK) {
        vt_jw_list(&w, NULL);
        for (uint32_t i = 0; i < n; i++) {
            const struct turn *t = &turn[i];

            vt_jw_map(&w, NULL);
            vt_jw_u64(&w, "turn_index", i);
            vt_jw_u64(&w, "num_samples", t->completed + t->failed);
            vt_jw_u64(&w, "completed", t->completed);
            vt_jw_u64(&w, "failed", t->failed);
            vt_jw_u64(&w, "total_input_tokens", t->input);
            vt_jw_u64(&w, "total_output_tokens", t->output);
            vt_jw_u64(&w, "total_cached_tokens", t->cached);
            vt_jw_f64(&w, "request_throughput", (double)t->completed / s);
            vt_jw_f64(&w, "input_throughput", (double)t->input / s);
            vt_jw_f64(&w, "output_throughput", (double)t->output / s);
            vt_jw_f64(&w, "total_token_throughput", (double)(t->input + t->output) / s);
            load_dist_json(&w, "ttft", &t->ttft, a);
            load_dist_json(&w, "tpot", &t->tpot, a);
            load_dist_json(&w, "itl", &t->itl, a);
            load_dist_json(&w, "e2el", &t->e2el, a);
            vt_jw_end(&w);
        }
        vt_jw_end(&w);
    }
    free(turn);
    return rc;
}
