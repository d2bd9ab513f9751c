/* cmd_profile.c - vtwin profile: which profiles are built in, what one says, and how
 * many KV blocks a model leaves room for. */
#include <inttypes.h>

#include "cli/cmd/profile.h"
#include "model/model.h"

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

/* A list of plain values, shortened: profiles hold long tables. */
static void plain_list(struct vt_buf *b, const struct vt_node *v)
{
    for (uint32_t i = 0; i < v->n && i < LIST_SHOWN; i++) {
        vt_buf_str(b, i ? ", " : "");
        scalar(b, &v->u.item[i]);
    }
    if (v->n > LIST_SHOWN)
        vt_buf_printf(b, ", ... (%u values)", v->n);
}

static void tree(struct vt_buf *b, const struct vt_node *v, int depth)
{
    for (uint32_t i = 0; i < v->n && depth < DEEPEST; i++) {
        const struct vt_node *child = &v->u.item[i];

        vt_buf_printf(b, "%*s%s", 2 * depth, "", child->key ? child->key : "-");
        if (child->kind == VT_LIST && (child->n == 0 || !is_tree(&child->u.item[0]))) {
            vt_buf_str(b, ": ");
            plain_list(b, child);
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
    vt_buf_str(b, "limits in force without other flags:\n");
    vt_buf_printf(b, "  --max-num-seqs %" PRIu32 "\n", c->max_num_seqs);
    vt_buf_printf(b, "  --max-num-batched-tokens %" PRIu32 "\n",
                  c->max_num_batched_tokens);
    vt_buf_printf(b, "  --max-model-len %" PRIu32 "\n", c->max_model_len);
    vt_buf_printf(b, "  --block-size %" PRIu32 "\n", c->block_size);
    vt_buf_printf(b, "  --num-gpu-blocks %" PRIu32 "\n", c->num_gpu_blocks);
    vt_buf_printf(b, "  prefix caching %s, chunked prefill %s, async scheduling %s\n",
                  on_off(c->enable_prefix_caching), on_off(c->enable_chunked_prefill),
                  on_off(c->async_scheduling));
}

static int show(struct vt_buf *b, const char *name, struct vt_err *err)
{
    struct vt_engine_config c;
    struct vt_profile p;
    int rc = vt_profile_open(&p, name, err);

    if (rc != VT_OK)
        return rc;
    vt_engine_config_init(&c);
    rc = vt_profile_limits(&p, &c, err);
    if (rc == VT_OK) {
        limits(b, &c);
        vt_buf_str(b, "\nthe profile says:\n");
        tree(b, p.root, 1);
    }
    vt_profile_close(&p);
    return rc;
}

/* The file itself, after it proved to be a profile. */
static int show_json(struct vt_buf *b, const char *name, struct vt_err *err)
{
    struct vt_profile p;
    bool builtin = false;
    int rc = vt_profile_open(&p, name, err);

    if (rc != VT_OK)
        return rc;
    vt_profile_close(&p);
    rc = vt_profile_text(name, b, &builtin, err);
    return rc == VT_OK && !builtin ? vt_read_file(name, (size_t)64 << 20, b, err) : rc;
}

static int run(const struct cli_args *a, struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc = cli_operands(a, &cmd_profile, 1, 2, err);

    if (rc != VT_OK)
        return rc;
    if (a->n_operands == 1 && strcmp(a->operand[0], "list") == 0)
        rc = profile_list(a, &b, err);
    else if (a->n_operands == 1 && strcmp(a->operand[0], "kv-capacity") == 0)
        rc = profile_kv_capacity(a, &b, err);
    else if (a->n_operands == 2 && strcmp(a->operand[0], "show") == 0)
        rc = cli_has(a, "json") ? show_json(&b, a->operand[1], err)
                                : show(&b, a->operand[1], err);
    else
        rc = vt_fail(err, VT_EINPUT, "usage: vtwin profile %s", cmd_profile.usage);
    if (rc == VT_OK)
        rc = cli_print(&b, err);
    vt_buf_free(&b);
    return rc;
}

/* In the order that profile_kv.c counts on: first those of one byte. */
static const char *const dtypes[] = {"auto",     "fp8",     "fp8_e4m3", "fp8_e5m2",
                                     "bfloat16", "float16", NULL};
static const char *const accountings[] = {"vllm", "blis", NULL};

static const struct cli_option options[] = {
    {"json", CLI_FLAG, NULL, NULL, "as JSON; show: the profile file itself", NULL},
    {"all", CLI_FLAG, NULL, NULL, "list: also each row of BLIS's table", NULL},
    {"hf-config", CLI_VALUE, "FILE", NULL,
     "kv-capacity: the model's config.json, or the name of a known model", NULL},
    {"gpu", CLI_VALUE, "NAME", NULL, "kv-capacity: such as H100, H200, A100-80, L40S",
     NULL},
    {"hw", CLI_VALUE, "FILE", NULL, "kv-capacity: more GPUs, as BLIS's hardware file",
     NULL},
    {"tp", CLI_VALUE, "N", "1", "the same as --tensor-parallel-size", NULL},
    {"tensor-parallel-size", CLI_VALUE, "N", "1", "kv-capacity: GPUs for one engine",
     NULL},
    {"data-parallel-size", CLI_VALUE, "N", "1",
     "kv-capacity: ranks, as BLIS counts them", NULL},
    {"gpu-memory-utilization", CLI_VALUE, "F", "0.9", "kv-capacity: vLLM's share",
     NULL},
    {"max-num-batched-tokens", CLI_VALUE, "N", "8192",
     "kv-capacity: tokens of the largest step", NULL},
    {"max-num-seqs", CLI_VALUE, "N", "256", "kv-capacity: requests of the largest step",
     NULL},
    {"block-size", CLI_VALUE, "N", "16", "kv-capacity: tokens in a block", NULL},
    {"kv-cache-dtype", CLI_VALUE, "TYPE", "auto", "kv-capacity: number format", dtypes},
    {"compat", CLI_VALUE, "WHO", "vllm", "kv-capacity: whose accounting", accountings},
    {0},
};
static const char *const operands[] = {"list", "show", "kv-capacity", NULL};
static const char *const examples[] = {
    "./run profile list",
    "./run profile show " VT_DEFAULT_PROFILE,
    "./run profile kv-capacity --hf-config qwen3-8b --gpu H200",
    NULL,
};

const struct cli_command cmd_profile = {
    .name = "profile",
    .summary = "list and explain profiles, size the KV cache",
    .usage = "list | show NAME|FILE | kv-capacity --hf-config FILE --gpu NAME",
    .about =
        "A profile holds the limits of an engine and a latency model with its numbers\n"
        "and where they come from. Some are built in; others are JSON files.\n"
        "\n"
        "kv-capacity says how many KV blocks vLLM would find room for, and how that\n"
        "adds up.",
    .options = options,
    .operands = operands,
    .examples = examples,
    .run = run,
};
