/* site.h - a server that is a twin in virtual time, with a client's jitter on its
 * tokens and what may befall servers. */
#ifndef VT_TEST_LEARN_SITE_H
#define VT_TEST_LEARN_SITE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learn/learn.h"
#include "model/model.h"
#include "sim/sim.h"

struct site {
    /* what it is */
    const char *model;   /* as --model takes it, or NULL: */
    const char *profile; /* a built-in one */
    uint32_t blocks, seqs, budget;
    bool tells; /* its scheduler's limits */
    double jitter_ms;
    uint64_t noise_seed; /* of what its model draws */
    /* Of a thread that reads prompts and hands out tokens: those that are there while
     * it reads come when it has read. Only where arrivals are planned. */
    double read_us, read_ktoken_us;
    const char *frontend; /* a known one stands before it; NULL: none does */
    /* what befalls it, from or at the n-th load on; 0: never */
    uint32_t fails_at, others_at, slower_from, slower_at, stall_at, drafts_at;
    double slower;   /* times as slow */
    double stall_ms; /* 0: a second */
    bool wanders;    /* every other load is so much slower; one stream alone is not */
    /* the rest is its own */
    struct vt_latency *latency;
    struct vt_profile opened;
    double clock_s;
    uint32_t loads;
};

struct site_run { /* one load */
    const struct site *s;
    const struct vt_workload *load;
    double scale;
    vt_ns stall_ns, stall_from;
    struct vt_buf b;
    vt_ns *gap; /* heap */
    size_t cap;
    struct vt_learn_done *done;
    vt_ns last;
};

/* Virtual time as the client's clock has it. */
static inline vt_ns site_time(const struct site_run *r, vt_ns t)
{
    t = (vt_ns)llround((double)t * r->scale);
    return r->stall_ns > 0 && t > r->stall_from ? t + r->stall_ns : t;
}

/* When a client has a token in hand: a little later than it left, and each time anew.
 */
static inline vt_ns site_late(const struct site_run *r, size_t request, uint32_t token)
{
    uint64_t h = vt_hash2(vt_hash2(77, request), token);

    return (vt_ns)(r->s->jitter_ms * 1e6 * (double)(h >> 11) / (double)(1ULL << 53));
}

static inline vt_ns site_read(const struct site_run *r, vt_ns t)
{
    for (size_t i = 0; r->load->arrivals == VT_ARRIVALS_RECORDED && i < r->load->n;
         i++) {
        const struct vt_work *q = &r->load->req[i];
        vt_ns read =
            q->arrival_ns + vt_ns_from_us(r->s->read_us + 1e-3 * r->s->read_ktoken_us *
                                                              q->prompt_tokens);

        t = t > q->arrival_ns && t < read ? read : t;
    }
    return t;
}

static inline int site_request(void *user, const struct vt_served *q,
                               struct vt_err *err)
{
    struct site_run *r = user;
    struct vt_served out = *q;
    vt_ns at = q->arrival_ns + q->ttft_ns, before;
    int rc = vt_grow(&r->gap, &r->cap, q->n_gaps + 1, sizeof(*r->gap), err);

    if (rc != VT_OK)
        return rc;
    out.arrival_ns = site_time(r, q->arrival_ns);
    before = site_read(r, site_time(r, at)) + site_late(r, q->index, 0);
    out.ttft_ns = before - out.arrival_ns;
    for (uint32_t i = 0; i < q->n_gaps; i++) {
        vt_ns now;

        at += q->gap[i];
        now = site_read(r, site_time(r, at)) + site_late(r, q->index, i + 1);
        r->gap[i] = now > before ? now - before : 0;
        before += r->gap[i];
    }
    out.gap = r->gap;
    r->last = before > r->last ? before : r->last;
    vt_trace_write(&r->b, &out);
    return VT_OK;
}

static inline int site_step(void *user, const struct vt_step_line *s,
                            struct vt_err *err)
{
    struct site_run *r = user;

    (void)err;
    if (s->running > r->done->running)
        r->done->running = s->running;
    if (s->waiting > r->done->waiting)
        r->done->waiting = s->waiting;
    return VT_OK;
}

static inline int site_ask(void *user, struct vt_arena *arena, struct vt_meta *m,
                           struct vt_err *err)
{
    const struct site *s = user;

    (void)arena;
    (void)err;
    m->model = "twin";
    m->vllm_version = "0.32.0";
    m->num_gpu_blocks = s->blocks;
    m->block_size = 16;
    m->max_model_len = 32768;
    m->enable_prefix_caching = 1;
    m->max_num_seqs = s->tells ? s->seqs : 0;
    m->max_num_batched_tokens = s->tells ? s->budget : 0;
    return VT_OK;
}

static inline int site_measure(void *user, const struct vt_learn_ask *ask,
                               struct vt_learn_done *done, struct vt_err *err)
{
    struct site *s = user;
    struct site_run r = {.s = s, .load = ask->load, .scale = 1, .done = done};
    struct vt_sim_sink sink = {&r, site_request, site_step, NULL};
    struct vt_sim_spec spec = {.workload = ask->load,
                               .model = s->latency,
                               .arrivals = ask->load->arrivals,
                               .concurrency = ask->load->concurrency,
                               .sink = &sink};
    struct vt_meta meta = *ask->engine;
    struct vt_summary out;
    struct vt_out *file = NULL;
    int rc;

    s->loads++;
    if ((s->slower_from > 0 && s->loads >= s->slower_from) || s->loads == s->slower_at)
        r.scale = s->slower;
    if (s->wanders && s->loads % 2 == 0 && ask->load->n > 4)
        r.scale = s->slower;
    if (s->loads == s->stall_at) {
        r.stall_ns = s->stall_ms > 0 ? (vt_ns)(s->stall_ms * 1e6) : VT_SEC;
        r.stall_from = 300 * VT_MS;
    }
    vt_engine_config_init(&spec.engine);
    spec.engine.seed = s->noise_seed;
    if (s->frontend) {
        spec.clock = VT_CLOCK_CLIENT;
        spec.frontend = vt_front_find(s->frontend);
    }
    spec.engine.num_gpu_blocks = s->blocks;
    spec.engine.max_num_seqs = s->seqs;
    spec.engine.max_num_batched_tokens = s->budget;
    meta.clock = VT_CLOCK_CLIENT;
    vt_trace_write_meta(&r.b, ask->load, &meta, "bench");
    rc = vt_sim_run(&spec, &out, err);
    if (rc == VT_OK)
        rc = vt_out_open(&file, ask->path, err);
    if (rc == VT_OK)
        rc = vt_out_end(file, vt_out_flush(file, &r.b, true, err), err);
    done->sent = ask->load->n;
    done->told = true;
    done->preemptions = out.preemptions;
    done->failed = s->fails_at > 0 && s->loads >= s->fails_at ? 1 : 0;
    snprintf(done->error, sizeof(done->error), "status: 503");
    done->others = s->others_at > 0 && s->loads >= s->others_at ? 2 : 0;
    done->drafts = s->drafts_at > 0 && s->loads >= s->drafts_at;
    s->clock_s += (double)r.last / 1e9;
    vt_buf_free(&r.b);
    free(r.gap);
    return rc;
}

static inline double site_seconds(void *user)
{
    return ((struct site *)user)->clock_s;
}

static inline struct vt_learn_site site_open(struct site *s)
{
    struct vt_err err = {0};
    int rc = s->profile ? vt_profile_open(&s->opened, s->profile, &err)
                        : vt_model_open_inline(&s->latency, s->model, &err);

    if (rc != VT_OK)
        fail_msg("%s", err.msg);
    /* A client's next request takes its time. */
    if (s->profile)
        s->latency = s->opened.model;
    s->latency->turnaround_us = 250;
    s->latency->turnaround_request_us = 0;
    s->latency->turnaround_next_us = 0;
    s->latency->turnaround_noise = 0;
    return (struct vt_learn_site){s, site_ask, site_measure, site_seconds};
}

static inline void site_close(struct site *s)
{
    if (s->profile)
        vt_profile_close(&s->opened);
    else
        vt_latency_close(s->latency);
}

#endif
