/* tell.c - what was learned: a table, JSON, the profile. */
#include "learn/learn.h"

#include <string.h>

static const char *const parts[] = {[VT_LEARN_CHECK] = "check",
                                    [VT_LEARN_FITTED] = "fitted",
                                    [VT_LEARN_UNSEEN] = "unseen"};

/* ---- for people --------------------------------------------------------- */

static void put_limit(struct vt_buf *b, const char *name, uint32_t v, bool told)
{
    if (v == 0)
        vt_buf_printf(b, ", %s not known", name);
    else
        vt_buf_printf(b, ", %s %u%s", name, (unsigned)v, told ? "" : " (found)");
}

enum { NAMES = 20 }; /* columns */

static void put_rows(struct vt_buf *b, const struct vt_learn *l,
                     enum vt_learn_part part, const char *heading)
{
    vt_buf_printf(b, "\n%s\n", heading);
    vt_crossval_head(b, NAMES);
    for (size_t i = 0; i < l->n; i++)
        if (l->load[i].part == part)
            vt_crossval_put(b, NAMES, &l->load[i].error,
                            l->load[i].odd ? "  odd, left out" : "");
}

void vt_learn_table(struct vt_buf *b, const struct vt_learn *l)
{
    const struct vt_meta *m = &l->engine;
    size_t requests = 0;

    for (size_t i = 0; i < l->n; i++)
        requests += l->load[i].measured.n;
    vt_buf_printf(b, "server    %s, vLLM %s\n", m->model ? m->model : "a model",
                  m->vllm_version ? m->vllm_version : "not told");
    vt_buf_printf(b, "limits    %u KV blocks of %u tokens, %u tokens a request",
                  (unsigned)m->num_gpu_blocks, (unsigned)m->block_size,
                  (unsigned)m->max_model_len);
    put_limit(b, "max_num_seqs", m->max_num_seqs, l->seqs_told);
    put_limit(b, "max_num_batched_tokens", m->max_num_batched_tokens, l->budget_told);
    vt_buf_printf(b, "\nloads     %zu with %zu requests in %.0f s\n", l->n, requests,
                  l->seconds);
    if (vt_learn_speed_change(l) > VT_LEARN_STEADY)
        vt_buf_printf(
            b,
            "speed     changed: one stream had a token every %.3g to %.3g ms, "
            "%.0f %% apart\n",
            l->fastest_ms, l->slowest_ms, vt_learn_speed_change(l));
    vt_buf_printf(b, "model     %s\n", l->fit.kind);
    vt_buf_printf(b,
                  "clock     %s: times hold what the frontend and the way to it add\n",
                  vt_clock_name(l->fit.clock));
    if (l->fit.read_us > 0)
        vt_buf_printf(b,
                      "frontend  reads what comes together before the first goes on, "
                      "%.0f us each\n",
                      l->fit.read_us + l->fit.pass_us);
    put_rows(b, l, VT_LEARN_FITTED, "what it was made from: error of the model, %");
    vt_crossval_put(b, NAMES, &l->fit.in, "");
    put_rows(b, l, VT_LEARN_UNSEEN,
             "predicted before they were measured: error of the prediction, %");
    vt_crossval_put(b, NAMES, &l->median, "");
    vt_crossval_put(b, NAMES, &l->worst, "");
}

/* ---- for programs ------------------------------------------------------- */

static void put_errors(struct vt_jw *j, const char *key,
                       const struct vt_crossval_row *r)
{
    const struct {
        const char *key;
        double v;
    } field[] = {{"e2e", r->e2e},           {"ttft", r->ttft},
                 {"ttft_p99", r->ttft_p99}, {"itl", r->itl},
                 {"itl_p99", r->itl_p99},   {"req_per_s", r->throughput}};

    vt_jw_map(j, key);
    for (size_t i = 0; i < VT_COUNT(field); i++)
        vt_jw_printf(j, field[i].key, "%.2f", field[i].v);
    vt_jw_end(j);
}

static void put_load(struct vt_jw *j, const struct vt_learn_load *q)
{
    vt_jw_map(j, NULL);
    vt_jw_str(j, "name", q->name);
    vt_jw_str(j, "part", parts[q->part]);
    vt_jw_u64(j, "requests", q->measured.n);
    vt_jw_printf(j, "seconds", "%.3f", q->real.duration_s);
    vt_jw_printf(j, "ttft_ms", "%.3f", q->real.ttft.mean);
    vt_jw_printf(j, "itl_ms", "%.4f", q->real.itl.mean);
    vt_jw_printf(j, "e2e_ms", "%.3f", q->real.e2e.mean);
    vt_jw_u64(j, "preemptions", q->done.preemptions);
    if (q->part != VT_LEARN_CHECK)
        put_errors(j, "error_percent", &q->error);
    if (q->odd)
        vt_jw_bool(j, "odd", true);
    vt_jw_end(j);
}

/* Members of an object that the caller opens and closes. */
static void put_learned(struct vt_jw *j, const struct vt_learn *l)
{
    vt_jw_printf(j, "seconds", "%.1f", l->seconds);
    vt_jw_printf(j, "speed_change_percent", "%.1f", vt_learn_speed_change(l));
    put_errors(j, "in_sample_error_percent", &l->fit.in);
    put_errors(j, "unseen_error_percent", &l->median);
    put_errors(j, "unseen_largest_error_percent", &l->worst);
    vt_jw_list(j, "loads");
    for (size_t i = 0; i < l->n; i++)
        if (l->load[i].part != VT_LEARN_CHECK)
            put_load(j, &l->load[i]);
    vt_jw_end(j);
}

void vt_learn_json(struct vt_buf *b, const struct vt_learn *l)
{
    const struct vt_meta *m = &l->engine;
    struct vt_jw j;

    vt_jw_init(&j, b, &vt_json_pretty);
    vt_jw_map(&j, NULL);
    vt_jw_map(&j, "server");
    if (m->model)
        vt_jw_str(&j, "model", m->model);
    if (m->vllm_version)
        vt_jw_str(&j, "vllm_version", m->vllm_version);
    vt_jw_u64(&j, "num_gpu_blocks", m->num_gpu_blocks);
    vt_jw_u64(&j, "block_size", m->block_size);
    vt_jw_u64(&j, "max_model_len", m->max_model_len);
    vt_jw_u64(&j, "max_num_seqs", m->max_num_seqs);
    vt_jw_u64(&j, "max_num_batched_tokens", m->max_num_batched_tokens);
    vt_jw_end(&j);
    vt_jw_str(&j, "model_kind", l->fit.kind);
    vt_jw_str(&j, "clock", vt_clock_name(l->fit.clock));
    vt_jw_printf(&j, "client_pause_us", "%.1f", l->fit.pause_us);
    vt_jw_printf(&j, "frontend_read_us", "%.1f", l->fit.read_us + l->fit.pass_us);
    put_learned(&j, l);
    if (l->refusal[0])
        vt_jw_str(&j, "refused", l->refusal);
    vt_jw_end(&j);
    vt_buf_char(b, '\n');
}

int vt_learn_profile(struct vt_buf *b, const struct vt_learn *l, const char *name,
                     const char *description, struct vt_err *err)
{
    const struct vt_fit_shape nothing = {0};
    struct vt_fit_about about = {.name = name,
                                 .description = description,
                                 .in_sample = &l->fit.in,
                                 .out_of_sample = &l->median,
                                 .expected = &l->expected,
                                 .forced = l->refusal[0] ? l->refusal : NULL,
                                 .made_by = "vtwin learn " VT_VERSION,
                                 .clock = l->fit.clock,
                                 .pause_us = l->fit.pause_us,
                                 .read_us = l->fit.read_us,
                                 .pass_us = l->fit.pass_us};
    struct vt_fit *f = NULL;
    struct vt_buf learned = {0};
    struct vt_jw j;
    int rc = vt_fit_new(&f, &nothing, err);

    for (size_t i = 0; i < l->n && rc == VT_OK; i++)
        if (l->load[i].part == VT_LEARN_FITTED && !l->load[i].odd)
            rc = vt_fit_add(f, l->load[i].name, NULL, &l->load[i].measured, err);
    vt_jw_init(&j, &learned, &vt_json_tight);
    vt_jw_map(&j, NULL);
    put_learned(&j, l);
    vt_jw_end(&j);
    if (rc == VT_OK && learned.failed)
        rc = vt_nomem(err);
    about.learned = learned.data;
    if (rc == VT_OK)
        vt_fit_profile(b, f, l->fit.model.data, NULL, &about);
    if (rc == VT_OK && b->failed)
        rc = vt_nomem(err);
    vt_buf_free(&learned);
    vt_fit_free(f);
    return rc;
}
