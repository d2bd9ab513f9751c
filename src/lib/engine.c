/* engine.c - one engine that is told the time. */
#include <stdlib.h>

#include "lib/lib.h"

struct vtwin_engine {
    struct vt_engine_config config;
    struct vt_engine *engine;
    struct vtwin_output *output; /* of the last step */
    size_t n_outputs, cap_outputs;
};

/* ---- options -------------------------------------------------------------- */

void lib_engine_options(struct vtwin_engine_options *o,
                        const struct vt_engine_config *c)
{
    *o = (struct vtwin_engine_options){
        VTWIN_INIT(*o),
        .max_num_seqs = c->max_num_seqs,
        .max_num_batched_tokens = c->max_num_batched_tokens,
        .max_model_len = c->max_model_len,
        .block_size = c->block_size,
        .num_gpu_blocks = c->num_gpu_blocks,
        .long_prefill_token_threshold = c->long_prefill_token_threshold,
        .num_speculative_tokens = c->num_spec_tokens,
        .speculative_acceptance = c->spec_acceptance,
        .draft_us = c->spec_draft_us,
        .enable_prefix_caching = c->enable_prefix_caching,
        .enable_chunked_prefill = c->enable_chunked_prefill,
        .async_scheduling = c->async_scheduling,
        .by_priority = c->policy == VT_PRIORITY,
        .seed = c->seed,
        .vllm = c->vllm,
    };
}

static void apply_options(struct vt_engine_config *c,
                          const struct vtwin_engine_options *o)
{
    c->max_num_seqs = o->max_num_seqs;
    c->max_num_batched_tokens = o->max_num_batched_tokens;
    c->max_model_len = o->max_model_len;
    c->block_size = o->block_size;
    c->num_gpu_blocks = o->num_gpu_blocks;
    c->long_prefill_token_threshold = o->long_prefill_token_threshold;
    c->num_spec_tokens = o->num_speculative_tokens;
    c->spec_acceptance = o->speculative_acceptance;
    c->spec_draft_us = o->draft_us;
    c->enable_prefix_caching = o->enable_prefix_caching;
    c->enable_chunked_prefill = o->enable_chunked_prefill;
    c->async_scheduling = o->async_scheduling;
    c->policy = o->by_priority ? VT_PRIORITY : VT_FCFS;
    c->seed = o->seed;
    c->vllm = o->vllm;
}

int lib_engine_config(struct vt_engine_config *c, const struct vtwin_model *m,
                      const struct vtwin_engine_options *o, struct vt_err *err)
{
    struct vtwin_engine_options own;
    int rc;

    vt_engine_config_init(c);
    if (m && m->profile.root && (rc = vt_profile_limits(&m->profile, c, err)) != VT_OK)
        return rc;
    if (!o)
        return VT_OK;
    lib_engine_options(&own, c);
    rc = lib_struct_in(&own, sizeof(own), o, "vtwin_engine_options", err);
    if (rc != VT_OK)
        return rc;
    apply_options(c, &own);
    return vt_engine_config_check(c, err);
}

int vtwin_engine_options_init(struct vtwin_engine_options *o,
                              const struct vtwin_model *m, struct vtwin_error *err)
{
    struct vt_engine_config c;
    struct vt_err why = {0};
    int rc = lib_engine_config(&c, m, NULL, &why);

    lib_engine_options(o, &c);
    return lib_end(err, rc, &why);
}

/* ---- life ------------------------------------------------------------------- */

int vtwin_engine_new(struct vtwin_engine **out, const struct vtwin_model *m,
                     const struct vtwin_engine_options *o, struct vtwin_error *err)
{
    struct vt_err why = {0};
    struct vtwin_engine *e = calloc(1, sizeof(*e));
    int rc = e ? lib_engine_config(&e->config, m, o, &why) : vt_nomem(&why);

    if (rc == VT_OK)
        rc = vt_engine_new(&e->engine, &e->config, m->latency, &why);
    if (rc != VT_OK) {
        free(e);
        e = NULL;
    }
    *out = e;
    return lib_end(err, rc, &why);
}

void vtwin_engine_free(struct vtwin_engine *e)
{
    if (!e)
        return;
    vt_engine_free(e->engine);
    free(e->output);
    free(e);
}

/* ---- requests ----------------------------------------------------------------- */

static int add_request(struct vtwin_engine *e, vt_ns now, const struct vtwin_request *r,
                       struct vt_err *err)
{
    struct vtwin_request own = {0};
    struct vt_request request;
    int rc = lib_struct_in(&own, sizeof(own), r, "vtwin_request", err);
    uint32_t shared;

    if (rc != VT_OK)
        return rc;
    shared =
        own.prefix_tokens < own.prompt_tokens ? own.prefix_tokens : own.prompt_tokens;
    /* Contents of one kind never meet those of another: the kind is hashed in. */
    struct vt_segment segment[] = {
        {vt_hash2(own.prefix_id, 1), 0, shared},
        {vt_hash2(own.id, 2), 0, own.prompt_tokens - shared},
    };
    request = (struct vt_request){
        .tag = own.id,
        .prompt_tokens = own.prompt_tokens,
        .max_tokens = own.output_tokens,
        .eos_at = VT_NO_STOP,
        .stop_at = VT_NO_STOP,
        .priority = own.priority,
        .arrival = now,
        .segment = shared > 0 ? segment : segment + 1,
        .n_segments = shared > 0 && shared < own.prompt_tokens ? 2 : 1,
        .output_content = vt_hash2(own.id, 3),
    };
    rc = vt_request_check(&e->config, &request, err);
    if (rc == VT_OK)
        rc = vt_engine_add(e->engine, now, &request, err);
    return vt_within(err, rc, "request %llu", (unsigned long long)own.id);
}

int vtwin_engine_add(struct vtwin_engine *e, int64_t now_ns,
                     const struct vtwin_request *r, struct vtwin_error *err)
{
    struct vt_err why = {0};

    return lib_end(err, add_request(e, now_ns, r, &why), &why);
}

bool vtwin_engine_abort(struct vtwin_engine *e, int64_t now_ns, uint64_t id)
{
    return vt_engine_abort(e->engine, now_ns, id) == VT_OK;
}

/* ---- steps ---------------------------------------------------------------------- */

int64_t vtwin_engine_due(const struct vtwin_engine *e)
{
    return vt_engine_due(e->engine);
}

static int keep_outputs(struct vtwin_engine *e, const struct vt_step *done,
                        struct vt_err *err)
{
    static const int finish[] = {
        [VT_RUNNING_ON] = VTWIN_NOT_FINISHED, [VT_STOPPED_EOS] = VTWIN_STOPPED,
        [VT_STOPPED_TOKEN] = VTWIN_STOPPED,   [VT_LENGTH] = VTWIN_LENGTH,
        [VT_ABORTED] = VTWIN_ABORTED,         [VT_FAILED] = VTWIN_ABORTED,
    };

    if (done->n_rows > e->cap_outputs) {
        struct vtwin_output *more =
            realloc(e->output, done->n_rows * sizeof(*e->output));

        if (!more)
            return vt_nomem(err);
        e->output = more;
        e->cap_outputs = done->n_rows;
    }
    for (uint32_t i = 0; i < done->n_rows; i++) {
        const struct vt_row *r = &done->row[i];

        e->output[i] = (struct vtwin_output){
            VTWIN_INIT(e->output[i]),
            .id = r->tag,
            .at_ns = r->at,
            .first_index = r->first_index,
            .new_tokens = r->new_tokens,
            .finish = finish[r->finish],
        };
    }
    e->n_outputs = done->n_rows;
    return VT_OK;
}

int vtwin_engine_step(struct vtwin_engine *e, int64_t now_ns,
                      void (*output)(void *user, const struct vtwin_output *o),
                      void *user, struct vtwin_error *err)
{
    const struct vt_step *done = NULL;
    struct vt_err why = {0};
    int rc = vt_engine_step(e->engine, now_ns, &done, &why);

    e->n_outputs = 0;
    if (rc == VT_OK && done)
        rc = keep_outputs(e, done, &why);
    for (size_t i = 0; output && i < e->n_outputs; i++)
        output(user, &e->output[i]);
    return lib_end(err, rc, &why);
}

const struct vtwin_output *vtwin_engine_outputs(const struct vtwin_engine *e, size_t *n)
{
    *n = e->n_outputs;
    return e->output;
}

void vtwin_engine_state(const struct vtwin_engine *e, int64_t now_ns,
                        struct vtwin_engine_state *s)
{
    struct vt_engine_totals t = vt_engine_totals(e->engine);
    struct vt_engine_state now = vt_engine_state(e->engine, now_ns);
    struct vtwin_engine_state own = {
        .waiting = now.waiting,
        .running = now.running,
        .kv_usage = now.kv_usage,
        .kv_usage_peak = t.kv_usage_peak,
        .steps = t.steps,
        .preemptions = t.preemptions,
        .cache_queries = t.cache_queries,
        .cache_hits = t.cache_hits,
        .most_step_tokens = t.extent.step_tokens,
        .most_running = t.extent.running,
        .most_context_tokens = t.extent.context,
    };

    lib_struct_out(s, &own, sizeof(own));
}
