/* recommend.c - a setting as the command line that serves it. */
#include <string.h>

#include "tune/tune.h"

static void put_graphs(struct vt_buf *b, const struct vt_graphs *g)
{
    if (g->none)
        vt_buf_str(b, " --enforce-eager");
    else if (g->n > 0)
        vt_buf_str(b, " --cudagraph-capture-sizes");
    else if (g->most > 0)
        vt_buf_printf(b, " --max-cudagraph-capture-size %u", g->most);
    for (uint32_t i = 0; i < g->n && !g->none; i++)
        vt_buf_printf(b, " %u", g->size[i]);
}

/* Profiles call a model that was quantised as it was loaded "NAME (METHOD)". */
static void put_model(struct vt_buf *b, const struct vt_served_model *m)
{
    const char *name = m->name ? m->name : "MODEL", *open = strstr(name, " (");
    const char *quantization = m->quantization;
    int own = open ? (int)strcspn(open + 2, ")") : 0;

    vt_buf_printf(b, "vllm serve %.*s", open ? (int)(open - name) : (int)strlen(name),
                  name);
    if (quantization)
        vt_buf_printf(b, " --quantization %s", quantization);
    else if (open)
        vt_buf_printf(b, " --quantization %.*s", own, open + 2);
    if (m->dtype)
        vt_buf_printf(b, " --dtype %s", m->dtype);
    if (m->graphs)
        put_graphs(b, m->graphs);
}

/* What an engine is set to otherwise than vLLM would set it. */
static void put_engine(struct vt_buf *b, const struct vt_engine_config *c)
{
    if (c->block_size != 16 && c->block_size > 0)
        vt_buf_printf(b, " --block-size %u", c->block_size);
    if (!c->enable_chunked_prefill)
        vt_buf_str(b, " --no-enable-chunked-prefill");
    if (!c->async_scheduling)
        vt_buf_str(b, " --no-async-scheduling");
    if (c->long_prefill_token_threshold > 0)
        vt_buf_printf(b, " --long-prefill-token-threshold %u",
                      c->long_prefill_token_threshold);
    if (c->policy == VT_PRIORITY)
        vt_buf_str(b, " --scheduling-policy priority");
}

void vt_recommend(struct vt_buf *b, const struct vt_served_model *model,
                  const struct vt_site *site, const struct vt_engine_config *engine,
                  const struct vt_setting *s)
{
    put_model(b, model);
    vt_buf_printf(b, " --max-num-seqs %u --max-num-batched-tokens %u", s->max_num_seqs,
                  s->max_num_batched_tokens);
    vt_buf_str(b, " --gpu-memory-utilization ");
    vt_buf_f64(b, s->gpu_memory_utilization);
    vt_buf_printf(b, " --max-model-len %u --tensor-parallel-size %u",
                  engine->max_model_len, s->tp);
    if (site->kv.pp > 1)
        vt_buf_printf(b, " --pipeline-parallel-size %u", site->kv.pp);
    if (s->kv_bytes > 0)
        vt_buf_printf(b, " --kv-cache-dtype %s", vt_setting_kv_dtype(s));
    else if (site->kv.element_bytes > 0 && site->kv.element_bytes < 2)
        vt_buf_str(b, " --kv-cache-dtype fp8");
    vt_buf_str(b, s->prefix_caching ? " --enable-prefix-caching"
                                    : " --no-enable-prefix-caching");
    put_engine(b, engine);
    if (s->spec_tokens > 0)
        vt_buf_printf(b,
                      " --speculative-config '{\"method\": \"eagle3\", \"model\": "
                      "\"DRAFT\", \"num_speculative_tokens\": %u}'",
                      s->spec_tokens);
    if (s->dp > 1 && site->lockstep)
        vt_buf_printf(b, " --data-parallel-size %u", s->dp);
    else if (s->dp > 1)
        vt_buf_printf(b, "  # %u of them, behind a router: %s", s->dp, s->routing);
}
