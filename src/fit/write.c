/* write.c - a fitted profile as JSON. */
#include "fit/internal.h"

static void put_string(struct vt_buf *b, const char *indent, const char *key,
                       const char *v)
{
    if (!v)
        return;
    vt_buf_printf(b, "%s\"%s\": ", indent, key);
    vt_buf_json_str(b, v, strlen(v));
    vt_buf_str(b, ",\n");
}

static void put_limit(struct vt_buf *b, const char *key, uint32_t v)
{
    if (v > 0)
        vt_buf_printf(b, "    \"%s\": %u,\n", key, v);
}

static void put_engine(struct vt_buf *b, const struct vt_meta *m,
                       const struct vt_fit_about *about)
{
    vt_buf_str(b, "  \"engine\": {\n");
    put_string(b, "    ", "model", about->model ? about->model : m->model);
    put_string(b, "    ", "gpu", about->gpu ? about->gpu : m->gpu);
    put_string(b, "    ", "vllm_version", m->vllm_version);
    put_limit(b, "tensor_parallel_size", m->tp);
    put_limit(b, "max_num_seqs", m->max_num_seqs);
    put_limit(b, "max_num_batched_tokens", m->max_num_batched_tokens);
    put_limit(b, "max_model_len", m->max_model_len);
    put_limit(b, "block_size", m->block_size);
    put_limit(b, "num_gpu_blocks",
              about->num_gpu_blocks > 0 ? about->num_gpu_blocks : m->num_gpu_blocks);
    if (m->enable_prefix_caching >= 0)
        vt_buf_printf(b, "    \"enable_prefix_caching\": %s,\n",
                      m->enable_prefix_caching ? "true" : "false");
    vt_buf_printf(b, "    \"async_scheduling\": %s\n  },\n",
                  m->async_scheduling != 0 ? "true" : "false");
}

static void put_provenance(struct vt_buf *b, const struct vt_fit *f,
                           const struct vt_fit_quality *q)
{
    vt_buf_str(b,
               "  \"provenance\": {\n    \"made_by\": \"vtwin fit " VT_VERSION "\",\n");
    vt_buf_str(b, "    \"captures\": [");
    for (size_t i = 0; i < f->n; i++) {
        vt_buf_str(b, i > 0 ? ", " : "");
        vt_buf_json_str(b, f->capture[i].name, strlen(f->capture[i].name));
    }
    vt_buf_str(b, "]");
    if (q)
        vt_buf_printf(b,
                      ",\n    \"steps\": %llu,\n    \"windows\": %zu,\n"
                      "    \"median_window_error\": %.4f,\n    \"bias\": %.4f",
                      (unsigned long long)q->steps, q->windows, q->median_error,
                      q->bias);
    vt_buf_str(b, "\n  }\n");
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
    vt_buf_str(b, "{\n");
    put_string(b, "  ", "name", about->name);
    put_string(b, "  ", "description", about->description);
    put_engine(b, &f->capture[0].meta, about);
    vt_buf_printf(b, "  \"model\": %s,\n", model);
    put_provenance(b, f, q);
    vt_buf_str(b, "}\n");
}
