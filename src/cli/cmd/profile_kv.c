/* profile_kv.c - vtwin profile kv-capacity: how many KV blocks fit, and why. */
#include <inttypes.h>

#include "cli/cmd/profile.h"
#include "model/model.h"

#define GIB 0x1p30

struct job {
    const char *config; /* as given */
    struct vt_arch arch;
    struct vt_gpu gpu;
    struct vt_kv_query q;
    struct vt_kv_capacity room;
};

/* ---- for people ------------------------------------------------------- */

static void line(struct vt_buf *b, const char *sign, const char *what, double gib)
{
    vt_buf_printf(b, "  %-1s %-40s %8.2f GiB\n", sign, what, gib);
}

static void parameters(struct vt_buf *b, const struct vt_arch *a)
{
    vt_buf_printf(b, "model        %.2f B parameters", vt_arch_params(a) * 1e-9);
    if (a->experts > 0)
        vt_buf_printf(b, ", %.2f B for each token", vt_arch_active_params(a) * 1e-9);
    vt_buf_printf(b, ", %g-bit weights%s\n", 8 * a->weight_bytes,
                  a->quant_experts_only ? " in experts" : "");
}

static void table(struct vt_buf *b, const struct job *j)
{
    const struct vt_kv_capacity *c = &j->room;
    const struct vt_kv_query *q = &j->q;
    bool blis = q->compat == VT_COMPAT_BLIS;
    char text[64];

    parameters(b, &j->arch);
    vt_buf_printf(b, "GPUs         %u x %s%s\n\n", q->tp, j->gpu.name,
                  q->tp == 1 ? ""
                  : blis     ? ", added up"
                             : ", the memory of one");
    line(b, "", "memory", c->total);
    snprintf(text, sizeof(text), "at gpu-memory-utilization %g",
             q->gpu_memory_utilization);
    line(b, "", text, c->budget);
    line(b, "-", "weights", c->weights);
    if (blis)
        snprintf(text, sizeof(text), "activations");
    else
        snprintf(text, sizeof(text), "activations of %" PRIu32 " tokens at their peak",
                 q->max_num_batched_tokens);
    line(b, "-", text, c->activations);
    line(b, "-", "CUDA context and libraries", c->context);
    if (c->graphs > 0)
        line(b, "-", "CUDA graphs", c->graphs);
    line(b, "=", "KV cache", c->cache);
    if (c->graphs_outside > 0)
        vt_buf_printf(b, "    (%.2f GiB of CUDA graphs lie outside the share)\n",
                      c->graphs_outside);
    vt_buf_printf(
        b,
        "\nblock        %" PRIu32 " tokens of %.0f bytes, %.3f MiB on each GPU\n"
        "num_gpu_blocks %" PRIu32 " (%" PRIu64 " tokens)\n",
        q->block_size, c->token_bytes, c->token_bytes * q->block_size / 0x1p20,
        c->num_gpu_blocks, c->tokens);
}

/* ---- for programs ----------------------------------------------------- */

static void json(struct vt_buf *b, const struct job *j)
{
    const struct vt_kv_capacity *c = &j->room;
    const struct {
        const char *key;
        double value;
    } row[] = {
        {"parameters", vt_arch_params(&j->arch)},
        {"active_parameters", vt_arch_active_params(&j->arch)},
        {"tensor_parallel_size", j->q.tp},
        {"gpu_memory_utilization", j->q.gpu_memory_utilization},
        {"max_num_batched_tokens", j->q.max_num_batched_tokens},
        {"max_num_seqs", j->q.max_num_seqs},
        {"block_size", j->q.block_size},
        {"memory_gib", c->total},
        {"budget_gib", c->budget},
        {"weights_gib", c->weights},
        {"activations_gib", c->activations},
        {"context_gib", c->context},
        {"cuda_graphs_gib", c->graphs},
        {"cuda_graphs_outside_gib", c->graphs_outside},
        {"kv_cache_gib", c->cache},
        {"kv_bytes_per_token", c->token_bytes},
        {"num_gpu_blocks", c->num_gpu_blocks},
        {"kv_cache_tokens", (double)c->tokens},
    };
    struct vt_jw w;

    vt_jw_init(&w, b, &vt_json_pretty);
    vt_jw_map(&w, NULL);
    vt_jw_str(&w, "hf_config", j->config);
    vt_jw_str(&w, "gpu", j->gpu.name);
    for (size_t i = 0; i < VT_COUNT(row); i++)
        vt_jw_f64(&w, row[i].key, row[i].value);
    vt_jw_end(&w);
    vt_buf_char(b, '\n');
}

int profile_kv_capacity(const struct opt_args *a, struct vt_err *err)
{
    const struct profile_options *o = a->options;
    struct vt_buf b = {0};
    struct job j = {0};
    int rc;

    if (!o->hf_config || !o->gpu)
        return vt_fail(err, VT_EINPUT, "kv-capacity needs --hf-config and --gpu");
    j.config = o->hf_config;
    j.q = o->q;
    j.q.kv_element_bytes = engine_kv_bytes(o->kv_dtype);
    j.q.arch = &j.arch;
    j.q.gpu = &j.gpu;
    if ((rc =
             vt_within(err, vt_arch_load(&j.arch, o->hf_config, err), "--hf-config")) ||
        (rc = vt_within(err, vt_gpu_find(&j.gpu, o->gpu, o->hw, err), "--gpu")) ||
        (rc = vt_kv_capacity(&j.q, &j.room, err)))
        return rc;
    if (o->json)
        json(&b, &j);
    else
        table(&b, &j);
    return cli_print(&b, err);
}
