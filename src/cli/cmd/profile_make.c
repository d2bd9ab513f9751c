/* profile_make.c - vtwin profile make: what other commands would use for a model and
 * GPU, as a profile of its own. */
#include "cli/cmd/profile.h"

static void put_engine(struct vt_jw *w, const struct engine_job *j, uint32_t tp)
{
    const struct vt_engine_config *c = &j->config;

    vt_jw_map(w, "engine");
    vt_jw_str(w, "model", j->asked ? j->asked : j->model_name);
    vt_jw_str(w, "gpu", j->gpu.name);
    vt_jw_str(w, "vllm_version", j->vllm_version);
    vt_jw_u64(w, "tensor_parallel_size", tp);
    vt_jw_u64(w, "max_num_seqs", c->max_num_seqs);
    vt_jw_u64(w, "max_num_batched_tokens", c->max_num_batched_tokens);
    vt_jw_u64(w, "max_model_len", c->max_model_len);
    vt_jw_u64(w, "block_size", c->block_size);
    vt_jw_u64(w, "num_gpu_blocks", c->num_gpu_blocks);
    vt_jw_bool(w, "enable_prefix_caching", c->enable_prefix_caching);
    vt_jw_bool(w, "async_scheduling", c->async_scheduling);
    vt_jw_end(w);
}

/* The step model that was scaled or estimated, or the profile's own. */
static int put_model(struct vt_jw *w, const struct engine_job *j, struct vt_err *err)
{
    const struct vt_node *own = vt_get(j->profile.root, "model");
    struct vt_buf text = {0};
    int rc;

    if (!j->deployed.scaled) {
        if (own)
            vt_jw_node(w, "model", own);
        return VT_OK;
    }
    vt_buf_str(&text, "{\n");
    vt_step_params_write(&text, &j->deployed.params, "      ", VT_STEP_EXACT);
    vt_buf_str(&text, "    }");
    rc = text.failed ? vt_nomem(err) : VT_OK;
    vt_jw_map(w, "model");
    vt_jw_str(w, "kind", "step");
    if (rc == VT_OK)
        vt_jw_raw(w, "params", text.data, text.len);
    vt_jw_end(w);
    vt_buf_free(&text);
    return rc;
}

static int put_profile(struct vt_buf *b, const struct engine_job *j, uint32_t tp,
                       struct vt_err *err)
{
    const struct vt_basis *t = &j->trust;
    struct vt_jw w;
    int rc;

    vt_jw_init(&w, b, &vt_json_pretty);
    vt_jw_map(&w, NULL);
    vt_jw_str(&w, "name", j->label);
    put_engine(&w, j, tp);
    rc = put_model(&w, j, err);
    vt_basis_members(&w, t);
    if (t->n_outside > 0) {
        vt_jw_list(&w, "outside");
        for (size_t i = 0; i < t->n_outside; i++)
            vt_jw_str(&w, NULL, t->outside[i]);
        vt_jw_end(&w);
    }
    vt_jw_map(&w, "provenance");
    vt_jw_str(&w, "made_by", "vtwin profile make " VT_VERSION);
    if (j->has_profile)
        vt_jw_str(&w, "from", j->profile.name);
    vt_jw_end(&w);
    vt_jw_end(&w);
    vt_buf_char(b, '\n');
    return rc;
}

int profile_make(const struct opt_args *a, struct vt_err *err)
{
    const struct profile_options *o = a->options;
    const struct engine_options *e = &o->engine;
    struct vt_buf b = {0};
    struct engine_job j;
    uint32_t tp = 1;
    int rc;

    if (!engine_asked_model(a, e) || e->profile || engine_inline_model(e))
        return vt_fail(err, VT_EINPUT,
                       "make needs a MODEL, and neither --profile nor --latency");
    if ((rc = engine_open(&j, a, e, NULL, NULL, e->tp, err)) ||
        (rc = engine_profile_tp(&j, &tp, err)) ||
        (rc = put_profile(&b, &j, e->tp > 0 ? e->tp : tp, err)))
        goto out;
    rc = o->out ? vt_write_file(o->out, &b, err) : cli_print(&b, err);
out:
    vt_buf_free(&b);
    engine_close(&j);
    return rc;
}
