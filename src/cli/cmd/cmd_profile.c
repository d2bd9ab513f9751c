/* cmd_profile.c - vtwin profile: which profiles are built in, what one says, and how
 * many KV blocks a model leaves room for. */
#include <inttypes.h>

#include "cli/cmd/profile.h"

/* ---- flags -------------------------------------------------------------- */

static const char *const accountings[] = {"vllm", "blis", NULL};

#define OPT_T struct profile_options
static const struct opt_row rows[] = {
    OPT_FLAG(json, "json", "as JSON; show: the profile file itself"),
    OPT_FLAG(all, "all", "list: also each row of BLIS's table"),
    OPT_TEXT(out, "o", "FILE", NULL, "make: where the profile goes", .shown = "stdout"),
    OPT_TEXT(out, "out", "FILE", NULL, "the same"),
    OPT_U32(engine.tp, "tp", "N", 1, 1024, NULL, "the same as --tensor-parallel-size"),
    OPT_TEXT(draft, "draft-hf-config", "FILE", NULL,
             "kv-capacity: config.json of an EAGLE head beside the model"),
    OPT_WORD(compat, "compat", "WHO", accountings, "vllm",
             "kv-capacity: whose accounting"),
    {0},
};

/* ---- list: BLIS's table of fits is one line unless all are wanted ------- */

static int profile_list(const struct opt_args *a, struct vt_err *err)
{
    const struct profile_options *o = a->options;
    struct vt_profile_entry *e;
    struct vt_arena arena = {0};
    struct vt_buf b = {0};
    struct vt_jw j;
    size_t n, hidden = 0;
    int rc = vt_profile_list(&arena, &e, &n, err);

    if (rc != VT_OK) {
        vt_arena_free(&arena);
        return rc;
    }
    vt_jw_init(&j, &b, &vt_json_pretty);
    if (o->json)
        vt_jw_list(&j, NULL);
    for (size_t i = 0; i < n; i++) {
        if (e[i].blackbox && !o->all) {
            hidden++;
        } else if (o->json) {
            vt_jw_row(&j, NULL);
            vt_jw_str(&j, "name", e[i].name);
            vt_jw_str(&j, "description", e[i].description);
            vt_jw_end(&j);
        } else {
            vt_buf_printf(&b, "%-20s %s\n", e[i].name, e[i].description);
        }
    }
    if (o->json) {
        vt_jw_end(&j);
        vt_buf_char(&b, '\n');
    } else if (hidden > 0) {
        vt_buf_printf(&b,
                      "\n  and %zu fits by BLIS, blackbox:MODEL:GPU:tpN"
                      " (`vtwin profile list --all`)\n",
                      hidden);
    }
    vt_arena_free(&arena);
    return cli_print(&b, err);
}

/* ---- show ------------------------------------------------------------- */

enum { LIST_SHOWN = 8, DEEPEST = 32 };

static void put_scalar(struct vt_buf *b, const struct vt_node *v)
{
    switch (v->kind) {
    case VT_BOOL:
        vt_buf_str(b, v->u.boolean ? "yes" : "no");
        break;
    case VT_INT:
        vt_buf_int_node(b, v);
        break;
    case VT_REAL:
        vt_buf_f64(b, v->u.real);
        break;
    case VT_STR:
        vt_buf_str(b, v->u.str);
        break;
    default:
        vt_buf_str(b, "-");
        break;
    }
}

static bool is_tree(const struct vt_node *v)
{
    return v->kind == VT_LIST || v->kind == VT_MAP;
}

static void put_tree(struct vt_buf *b, const struct vt_node *v, int depth)
{
    for (uint32_t i = 0; i < v->n && depth < DEEPEST; i++) {
        const struct vt_node *child = &v->u.item[i];

        vt_buf_printf(b, "%*s%s", 2 * depth, "", child->key ? child->key : "-");
        if (child->kind == VT_LIST && (child->n == 0 || !is_tree(&child->u.item[0]))) {
            vt_buf_str(b, ": ");
            /* Shortened: profiles hold long tables. */
            for (uint32_t k = 0; k < child->n && k < LIST_SHOWN; k++) {
                vt_buf_str(b, k ? ", " : "");
                put_scalar(b, &child->u.item[k]);
            }
            if (child->n > LIST_SHOWN)
                vt_buf_printf(b, ", ... (%u values)", child->n);
            vt_buf_char(b, '\n');
        } else if (is_tree(child)) {
            vt_buf_str(b, ":\n");
            put_tree(b, child, depth + 1);
        } else {
            vt_buf_str(b, child->key ? ": " : " ");
            put_scalar(b, child);
            vt_buf_char(b, '\n');
        }
    }
}

static const char *on_off(bool on)
{
    return on ? "on" : "off";
}

static void put_limits(struct vt_buf *b, const struct vt_engine_config *c)
{
    vt_buf_printf(b,
                  "limits in force without other flags:\n"
                  "  --max-num-seqs %" PRIu32 "\n"
                  "  --max-num-batched-tokens %" PRIu32 "\n"
                  "  --max-model-len %" PRIu32 "\n"
                  "  --block-size %" PRIu32 "\n"
                  "  --num-gpu-blocks %" PRIu32 "\n"
                  "  prefix caching %s, chunked prefill %s, async scheduling %s\n",
                  c->max_num_seqs, c->max_num_batched_tokens, c->max_model_len,
                  c->block_size, c->num_gpu_blocks, on_off(c->enable_prefix_caching),
                  on_off(c->enable_chunked_prefill), on_off(c->async_scheduling));
}

/* As JSON: the file itself, after it proved to be a profile. */
static int show_profile(const struct opt_args *a, struct vt_err *err)
{
    const struct profile_options *o = a->options;
    const char *name = a->operand[1];
    struct vt_engine_config c;
    struct vt_profile p;
    struct vt_buf b = {0};
    bool builtin = false;
    int rc = vt_profile_open(&p, name, err);

    if (rc != VT_OK)
        return rc;
    vt_engine_config_init(&c);
    if (o->json) {
        rc = vt_profile_text(name, &b, &builtin, err);
        if (rc == VT_OK && !builtin)
            rc = vt_read_file(name, (size_t)64 << 20, &b, err);
    } else if ((rc = vt_profile_limits(&p, &c, err)) == VT_OK) {
        put_limits(&b, &c);
        vt_buf_str(&b, "\nthe profile says:\n");
        put_tree(&b, p.root, 1);
    }
    vt_profile_close(&p);
    if (rc == VT_OK)
        return cli_print(&b, err);
    vt_buf_free(&b);
    return rc;
}

/* ---- kv-capacity: how many KV blocks fit, and why ---------------------- */

struct kv_job {
    const char *config; /* as given */
    struct vt_arch arch, draft;
    struct vt_gpu gpu;
    struct vt_kv_query q;
    struct vt_graphs graphs;
    struct vt_kv_capacity room;
};

static void put_line(struct vt_buf *b, const char *sign, const char *what, double gib)
{
    vt_buf_printf(b, "  %-1s %-40s %8.2f GiB\n", sign, what, gib);
}

static void put_parameters(struct vt_buf *b, const struct vt_arch *a)
{
    vt_buf_printf(b, "model        %.2f B parameters", vt_arch_params(a) * 1e-9);
    if (a->experts > 0)
        vt_buf_printf(b, ", %.2f B for each token", vt_arch_active_params(a) * 1e-9);
    vt_buf_printf(b, ", %g-bit weights%s\n", 8 * a->weight_bytes,
                  a->quant_experts_only ? " in experts" : "");
}

static void put_groups(struct vt_buf *b, const struct vt_kv_capacity *c)
{
    const struct vt_engine_config *e = &c->engine;

    vt_buf_printf(b, "\nblock        %.3f MiB on each GPU\n",
                  (double)c->block_bytes / 0x1p20);
    for (uint32_t i = 0, n; i < e->n_kv_groups; i += n) {
        const struct vt_kv_group *g = &e->kv_group[i];

        for (n = 1; i + n < e->n_kv_groups; n++)
            if (e->kv_group[i + n].type != g->type ||
                e->kv_group[i + n].layers != g->layers ||
                e->kv_group[i + n].window != g->window)
                break;
        vt_buf_printf(b, "  %2u group%s of %u layers, %s", n, n == 1 ? " " : "s",
                      g->layers, vt_attention_name((enum vt_attention)g->type));
        if (g->window > 0)
            vt_buf_printf(b, " of %u", g->window);
        vt_buf_printf(b, ": blocks of %u tokens\n", g->block_size);
    }
    vt_buf_printf(b, "a request of %u tokens takes %" PRIu64 " of them\n",
                  e->max_model_len, vt_blocks_of_request(e, e->max_model_len));
}

static void put_kv_table(struct vt_buf *b, const struct kv_job *j)
{
    const struct vt_kv_capacity *c = &j->room;
    const struct vt_kv_query *q = &j->q;
    bool blis = q->compat == VT_COMPAT_BLIS;
    char text[64];

    put_parameters(b, &j->arch);
    vt_buf_printf(b, "GPUs         %u x %s%s\n\n", q->kv.tp, j->gpu.name,
                  q->kv.tp == 1 ? ""
                  : blis        ? ", added up"
                                : ", the memory of one");
    put_line(b, "", "memory", c->total);
    snprintf(text, sizeof(text), "at gpu-memory-utilization %g",
             q->gpu_memory_utilization);
    put_line(b, "", text, c->budget);
    put_line(b, "-", "weights", c->weights);
    if (blis)
        snprintf(text, sizeof(text), "activations");
    else
        snprintf(text, sizeof(text), "activations of %" PRIu32 " tokens at their peak",
                 q->engine.max_num_batched_tokens);
    put_line(b, "-", text, c->activations);
    put_line(b, "-", "CUDA context and libraries", c->context);
    if (c->graphs > 0)
        put_line(b, "-", "CUDA graphs", c->graphs);
    put_line(b, "=", "KV cache", c->cache);
    if (c->graphs_outside > 0)
        vt_buf_printf(b, "    (%.2f GiB of CUDA graphs lie outside the share)\n",
                      c->graphs_outside);
    if (c->engine.n_kv_groups > 0)
        put_groups(b, c);
    else
        vt_buf_printf(
            b,
            "\nblock        %" PRIu32 " tokens of %.0f bytes, %.3f MiB on each GPU\n",
            c->engine.block_size, (double)c->block_bytes / c->engine.block_size,
            (double)c->block_bytes / 0x1p20);
    vt_buf_printf(b, "num_gpu_blocks %" PRIu32 " (%" PRIu64 " tokens)\n",
                  c->engine.num_gpu_blocks, c->tokens);
}

static void put_kv_json(struct vt_buf *b, const struct kv_job *j)
{
    const struct vt_kv_capacity *c = &j->room;
    const struct {
        const char *key;
        double value;
    } row[] = {
        {"parameters", vt_arch_params(&j->arch)},
        {"active_parameters", vt_arch_active_params(&j->arch)},
        {"tensor_parallel_size", j->q.kv.tp},
        {"gpu_memory_utilization", j->q.gpu_memory_utilization},
        {"max_num_batched_tokens", c->engine.max_num_batched_tokens},
        {"max_num_seqs", c->engine.max_num_seqs},
        {"max_model_len", c->engine.max_model_len},
        {"block_size", c->engine.block_size},
        {"memory_gib", c->total},
        {"budget_gib", c->budget},
        {"weights_gib", c->weights},
        {"activations_gib", c->activations},
        {"context_gib", c->context},
        {"cuda_graphs_gib", c->graphs},
        {"cuda_graphs_outside_gib", c->graphs_outside},
        {"kv_cache_gib", c->cache},
        {"kv_bytes_per_token", c->token_bytes},
        {"block_bytes", (double)c->block_bytes},
        {"num_gpu_blocks", c->engine.num_gpu_blocks},
        {"kv_cache_tokens", (double)c->tokens},
        {"max_concurrency", vt_kv_facts(&c->engine).max_concurrency},
    };
    struct vt_jw w;

    vt_jw_init(&w, b, &vt_json_pretty);
    vt_jw_map(&w, NULL);
    vt_jw_str(&w, "hf_config", j->config);
    vt_jw_str(&w, "gpu", j->gpu.name);
    for (size_t i = 0; i < VT_COUNT(row); i++)
        vt_jw_f64(&w, row[i].key, row[i].value);
    vt_jw_list(&w, "kv_groups");
    for (uint32_t i = 0; i < c->engine.n_kv_groups; i++) {
        const struct vt_kv_group *g = &c->engine.kv_group[i];

        vt_jw_row(&w, NULL);
        vt_jw_str(&w, "type", vt_attention_name((enum vt_attention)g->type));
        vt_jw_u64(&w, "layers", g->layers);
        vt_jw_u64(&w, "block_size", g->block_size);
        vt_jw_u64(&w, "window", g->window);
        vt_jw_end(&w);
    }
    vt_jw_end(&w);
    vt_jw_end(&w);
    vt_buf_char(b, '\n');
}

static void ask_capacity(struct vt_kv_query *q, const struct opt_args *a,
                         const struct profile_options *o)
{
    const struct engine_options *e = &o->engine;

    vt_kv_query_init(q);
    engine_apply(&q->engine, a, e);
    q->kv.tp = e->tp > 0 ? e->tp : 1;
    q->kv.pp = e->pp;
    q->kv.element_bytes = engine_kv_bytes(e->kv_dtype);
    q->kv.hybrid = e->disable_hybrid ? VT_HYBRID_OFF : VT_HYBRID_AUTO;
    q->kv.caching_stated = opt_given(a, &e->config.enable_prefix_caching);
    q->dp = e->dp;
    q->gpu_memory_utilization = e->gpu_memory_utilization;
    q->compat = o->compat;
}

static int kv_capacity(const struct opt_args *a, struct vt_err *err)
{
    const struct profile_options *o = a->options;
    const struct engine_options *e = &o->engine;
    struct vt_buf b = {0};
    struct kv_job j = {.config = engine_asked_model(a, e)};
    int rc;

    if (!j.config || !e->gpu)
        return vt_fail(err, VT_EINPUT, "kv-capacity needs --hf-config and --gpu");
    if ((rc = engine_find_graphs(&j.graphs, a, e, err)))
        return rc;
    ask_capacity(&j.q, a, o);
    j.q.graphs = &j.graphs;
    j.q.kv.arch = &j.arch;
    j.q.gpu = &j.gpu;
    if ((rc = vt_within(err, vt_arch_load(&j.arch, j.config, err), "--hf-config")) ||
        (rc = vt_within(err, vt_arch_quantize(&j.arch, e->quantization, err),
                        "--quantization")) ||
        (rc = vt_within(err, vt_arch_set_dtype(&j.arch, e->dtype, err), "--dtype")) ||
        (rc = vt_within(err, vt_gpu_find(&j.gpu, e->gpu, e->hw, err), "--gpu")) ||
        (o->draft && (rc = vt_within(err, vt_arch_load(&j.draft, o->draft, err),
                                     "--draft-hf-config"))))
        return rc;
    j.q.kv.draft = o->draft ? &j.draft : NULL;
    if ((rc = vt_kv_capacity(&j.q, &j.room, err)))
        return rc;
    if (o->json)
        put_kv_json(&b, &j);
    else
        put_kv_table(&b, &j);
    return cli_print(&b, err);
}

/* ---- the table -------------------------------------------------------- */

static const struct opt_block blocks[] = {
    OPT_ROWS(rows), ENGINE_BLOCKS(struct profile_options, engine), {0}};
static const struct opt_sub subs[] = {
    {"list", "[--all] [--json]", 0, 0, profile_list},
    {"show", "NAME|FILE [--json]", 1, 1, show_profile},
    {"kv-capacity", "MODEL --gpu NAME [FLAGS]", 0, 1, kv_capacity},
    {"make", "MODEL [--gpu NAME] [FLAGS] [-o FILE]", 0, 1, profile_make},
    {0},
};
static const char *const operands[] = {"list", "show", "kv-capacity", "make", NULL};
static const char *const examples[] = {
    "./run profile list",
    "./run profile show qwen3-8b-h200",
    "./run profile kv-capacity qwen3-8b --gpu H200",
    "./run profile make llama-3.1-8b --gpu A100-80 -o llama-a100.json",
    NULL,
};

const struct opt_command cmd_profile = {
    .name = "profile",
    .summary = "list and explain profiles, size the KV cache",
    .usage =
        "list | show NAME|FILE | kv-capacity MODEL --gpu NAME | make MODEL -o FILE",
    .about =
        "A profile holds the limits of an engine and a latency model with its numbers\n"
        "and where they come from. Some are built in; others are JSON files.\n"
        "\n"
        "kv-capacity says how many KV blocks vLLM would find room for, and how that\n"
        "adds up. make writes what other commands would use for a model and GPU.",
    .blocks = blocks,
    .size = sizeof(struct profile_options),
    .operands = operands,
    .subs = subs,
    .examples = examples,
};
