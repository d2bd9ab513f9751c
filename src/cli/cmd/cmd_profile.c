/* cmd_profile.c - vtwin profile: which profiles are built in, what one says, and how
 * many KV blocks a model leaves room for. */
#include <inttypes.h>

#include "cli/cmd/profile.h"
#include "model/model.h"

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

static void scalar(struct vt_buf *b, const struct vt_node *v)
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

static void tree(struct vt_buf *b, const struct vt_node *v, int depth)
{
    for (uint32_t i = 0; i < v->n && depth < DEEPEST; i++) {
        const struct vt_node *child = &v->u.item[i];

        vt_buf_printf(b, "%*s%s", 2 * depth, "", child->key ? child->key : "-");
        if (child->kind == VT_LIST && (child->n == 0 || !is_tree(&child->u.item[0]))) {
            vt_buf_str(b, ": ");
            /* Shortened: profiles hold long tables. */
            for (uint32_t k = 0; k < child->n && k < LIST_SHOWN; k++) {
                vt_buf_str(b, k ? ", " : "");
                scalar(b, &child->u.item[k]);
            }
            if (child->n > LIST_SHOWN)
                vt_buf_printf(b, ", ... (%u values)", child->n);
            vt_buf_char(b, '\n');
        } else if (is_tree(child)) {
            vt_buf_str(b, ":\n");
            tree(b, child, depth + 1);
        } else {
            vt_buf_str(b, child->key ? ": " : " ");
            scalar(b, child);
            vt_buf_char(b, '\n');
        }
    }
}

static const char *on_off(bool on)
{
    return on ? "on" : "off";
}

static void limits(struct vt_buf *b, const struct vt_engine_config *c)
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
        limits(&b, &c);
        vt_buf_str(&b, "\nthe profile says:\n");
        tree(&b, p.root, 1);
    }
    vt_profile_close(&p);
    if (rc == VT_OK)
        return cli_print(&b, err);
    vt_buf_free(&b);
    return rc;
}

static const char *const accountings[] = {"vllm", "blis", NULL};

#define OPT_T struct profile_options
static const struct opt_row rows[] = {
    OPT_FLAG(json, "json", "as JSON; show: the profile file itself"),
    OPT_FLAG(all, "all", "list: also each row of BLIS's table"),
    OPT_TEXT(hf_config, "hf-config", "FILE", NULL,
             "kv-capacity: the model's config.json, or the name of a known model"),
    OPT_TEXT(gpu, "gpu", "NAME", NULL,
             "kv-capacity: such as H100, H200, A100-80, L40S"),
    OPT_TEXT(hw, "hw", "FILE", NULL, "kv-capacity: more GPUs, as BLIS's hardware file"),
    OPT_U32(q.tp, "tp", "N", 1, 1024, "1", "the same as --tensor-parallel-size"),
    OPT_U32(q.tp, "tensor-parallel-size", "N", 1, 1024, "1",
            "kv-capacity: GPUs for one engine"),
    OPT_U32(q.dp, "data-parallel-size", "N", 1, 1024, "1",
            "kv-capacity: ranks, as BLIS counts them"),
    OPT_F64(q.gpu_memory_utilization, "gpu-memory-utilization", "F", 0.01, 1, "0.9",
            "kv-capacity: vLLM's share"),
    OPT_U32(q.max_num_batched_tokens, "max-num-batched-tokens", "N", 1, 1 << 30, "8192",
            "kv-capacity: tokens of the largest step"),
    OPT_U32(q.max_num_seqs, "max-num-seqs", "N", 1, 1 << 20, "256",
            "kv-capacity: requests of the largest step"),
    OPT_U32(q.block_size, "block-size", "N", 1, 1 << 16, "16",
            "kv-capacity: tokens in a block"),
    OPT_WORD(kv_dtype, "kv-cache-dtype", "TYPE", engine_kv_dtypes, "auto",
             "kv-capacity: number format"),
    OPT_WORD(q.compat, "compat", "WHO", accountings, "vllm",
             "kv-capacity: whose accounting"),
    {0},
};
static const struct opt_block blocks[] = {OPT_ROWS(rows), {0}};
static const struct opt_sub subs[] = {
    {"list", "[--all] [--json]", 0, 0, profile_list},
    {"show", "NAME|FILE [--json]", 1, 1, show_profile},
    {"kv-capacity", "--hf-config FILE --gpu NAME [FLAGS]", 0, 0, profile_kv_capacity},
    {0},
};
static const char *const operands[] = {"list", "show", "kv-capacity", NULL};
static const char *const examples[] = {
    "./run profile list",
    "./run profile show " VT_DEFAULT_PROFILE,
    "./run profile kv-capacity --hf-config qwen3-8b --gpu H200",
    NULL,
};

const struct opt_command cmd_profile = {
    .name = "profile",
    .summary = "list and explain profiles, size the KV cache",
    .usage = "list | show NAME|FILE | kv-capacity --hf-config FILE --gpu NAME",
    .about =
        "A profile holds the limits of an engine and a latency model with its numbers\n"
        "and where they come from. Some are built in; others are JSON files.\n"
        "\n"
        "kv-capacity says how many KV blocks vLLM would find room for, and how that\n"
        "adds up.",
    .blocks = blocks,
    .size = sizeof(struct profile_options),
    .operands = operands,
    .subs = subs,
    .examples = examples,
};
