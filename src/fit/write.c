/* write.c - a fitted profile as JSON. */
#include "fit/internal.h"

static void put_text(struct vt_jw *j, const char *key, const char *v)
{
    if (v)
        vt_jw_str(j, key, v);
}

static void put_limit(struct vt_jw *j, const char *key, uint32_t v)
{
    if (v > 0)
        vt_jw_u64(j, key, v);
}

static void put_engine(struct vt_jw *j, const struct vt_meta *m,
                       const struct vt_fit_about *about)
{
    vt_jw_map(j, "engine");
    put_text(j, "model", about->model ? about->model : m->model);
    put_text(j, "gpu", about->gpu ? about->gpu : m->gpu);
    put_text(j, "vllm_version", m->vllm_version);
    put_limit(j, "tensor_parallel_size", m->tp);
    put_limit(j, "max_num_seqs", m->max_num_seqs);
    put_limit(j, "max_num_batched_tokens", m->max_num_batched_tokens);
    put_limit(j, "max_model_len", m->max_model_len);
    put_limit(j, "block_size", m->block_size);
    put_limit(j, "num_gpu_blocks",
              about->num_gpu_blocks > 0 ? about->num_gpu_blocks : m->num_gpu_blocks);
    if (m->enable_prefix_caching >= 0)
        vt_jw_bool(j, "enable_prefix_caching", m->enable_prefix_caching > 0);
    vt_jw_bool(j, "async_scheduling", m->async_scheduling != 0);
    vt_jw_end(j);
}

static void put_provenance(struct vt_jw *j, const struct vt_fit *f,
                           const struct vt_fit_quality *q)
{
    vt_jw_map(j, "provenance");
    vt_jw_str(j, "made_by", "vtwin fit " VT_VERSION);
    vt_jw_row_list(j, "captures");
    for (size_t i = 0; i < f->n; i++)
        vt_jw_str(j, NULL, f->capture[i].name);
    vt_jw_end(j);
    if (q) {
        vt_jw_u64(j, "steps", q->steps);
        vt_jw_u64(j, "windows", q->windows);
        vt_jw_printf(j, "median_window_error", "%.4f", q->median_error);
        vt_jw_printf(j, "bias", "%.4f", q->bias);
    }
    vt_jw_end(j);
}

void vt_fit_step_model(struct vt_buf *model, const struct vt_step_params *p)
{
    vt_buf_str(model, "{\n    \"kind\": \"step\",\n    \"params\": {\n");
    vt_step_params_write(model, p, "      ");
    vt_buf_str(model, "    }\n  }");
}

void vt_fit_profile(struct vt_buf *b, const struct vt_fit *f, const char *model,
                    const struct vt_fit_quality *q, const struct vt_fit_about *about)
{
    struct vt_jw j;

    vt_jw_init(&j, b, &vt_json_pretty);
    vt_jw_map(&j, NULL);
    put_text(&j, "name", about->name);
    put_text(&j, "description", about->description);
    put_engine(&j, &f->capture[0].meta, about);
    vt_jw_raw(&j, "model", model, strlen(model));
    put_provenance(&j, f, q);
    vt_jw_end(&j);
    vt_buf_char(b, '\n');
}
