/* recommend.c - a setting as the command line that serves it. */
#include "tune/tune.h"

void vt_recommend(struct vt_buf *b, const char *model, const struct vt_site *site,
                  const struct vt_setting *s)
{
    vt_buf_printf(b, "vllm serve %s --max-num-seqs %u --max-num-batched-tokens %u",
                  model, s->max_num_seqs, s->max_num_batched_tokens);
    vt_buf_str(b, " --gpu-memory-utilization ");
    vt_buf_f64(b, s->gpu_memory_utilization);
    vt_buf_printf(b, " --max-model-len %u", site->engine.max_model_len);
    if (s->tp > 1)
        vt_buf_printf(b, " --tensor-parallel-size %u", s->tp);
    if (site->kv.element_bytes > 0 && site->kv.element_bytes < 2)
        vt_buf_str(b, " --kv-cache-dtype fp8");
    if (!s->prefix_caching)
        vt_buf_str(b, " --no-enable-prefix-caching");
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
