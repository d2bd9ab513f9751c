/* state.c - how large the states of Mamba-like layers are, by the fields of each kind;
 * the shapes are vLLM's (MambaStateShapeCalculator). */
#include "model/hf/arch.h"

enum { MOST = 1 << 12 }; /* rows, groups of heads */

/* The first of two names that is there. */
static double either(const struct arch_source *s, const char *one, const char *other)
{
    return arch_field(s, one) ? arch_number(s, one, 0) : arch_number(s, other, 0);
}

/* Mamba 2: heads of P x N, in groups that share what is convolved with them. */
static bool read_mamba2(struct vt_arch_state *x, const struct vt_arch *a,
                        const struct arch_source *s)
{
    double heads = either(s, "mamba_num_heads", "mamba_n_heads");
    double dim = either(s, "mamba_head_dim", "mamba_d_head");
    double n = either(s, "ssm_state_size", "mamba_d_state");
    double kernel = either(s, "conv_kernel", "mamba_d_conv");
    double inner = arch_number(s, "mamba_d_ssm", 0), both;

    x->groups = (uint32_t)either(s, "n_groups", "mamba_n_groups");
    if (inner == 0 && arch_field(s, "mamba_num_heads"))
        inner = heads * dim;
    if (inner == 0)
        inner = arch_number(s, "mamba_expand", 2) * (double)a->hidden;
    if (heads < 1 || dim < 1 || n < 1 || kernel < 2 || x->groups < 1)
        return false;
    x->rows = (uint32_t)kernel - 1;
    x->width = inner;
    x->group_width = 2 * n;
    x->elements = heads * dim * n;
    both = inner + x->groups * x->group_width;
    x->params = a->hidden * (inner + both + heads) + kernel * both + inner * a->hidden;
    x->saves_inside = true;
    x->checkpoints_all = true;
    return true;
}

static bool read_mamba1(struct vt_arch_state *x, const struct vt_arch *a,
                        const struct arch_source *s)
{
    double inner = arch_number(s, "mamba_expand", 2) * (double)a->hidden;
    double n = arch_number(s, "mamba_d_state", 0);
    double kernel = arch_number(s, "mamba_d_conv", 0);
    double rank = arch_number(s, "mamba_dt_rank", (a->hidden + 15) / 16);

    if (n < 1 || kernel < 2)
        return false;
    x->rows = (uint32_t)kernel - 1;
    x->width = inner;
    x->elements = inner * n;
    x->params =
        inner * (3.0 * a->hidden + rank + 2 * n) + rank * inner + inner * (kernel + n);
    x->checkpoints_all = true;
    return true;
}

/* Gated delta nets. */
static bool read_delta(struct vt_arch_state *x, const struct vt_arch *a,
                       const struct arch_source *s)
{
    double keys = (double)arch_number(s, "linear_num_key_heads", 0) *
                  arch_number(s, "linear_key_head_dim", 0);
    double values = (double)arch_number(s, "linear_num_value_heads", 0) *
                    arch_number(s, "linear_value_head_dim", 0);
    double kernel = arch_number(s, "linear_conv_kernel_dim", 0);

    if (keys < 1 || values < 1 || kernel < 2)
        return false;
    x->rows = (uint32_t)kernel - 1;
    x->width = 2 * keys + values;
    x->elements = values * arch_number(s, "linear_key_head_dim", 0);
    x->params = a->hidden * (2 * keys + 2 * values +
                             2.0 * arch_number(s, "linear_num_value_heads", 0)) +
                kernel * x->width + values * a->hidden;
    return true;
}

/* Kimi's delta attention. */
static bool read_kimi(struct vt_arch_state *x, const struct vt_arch *a,
                      const struct arch_source *s)
{
    const struct arch_source in = {.top = arch_field(s, "linear_attn_config")};
    double heads = arch_number(&in, "num_heads", 0),
           d = arch_number(&in, "head_dim", 0);
    double kernel = arch_number(&in, "short_conv_kernel_size", 0);

    if (heads < 1 || d < 1 || kernel < 2)
        return false;
    x->rows = (uint32_t)kernel - 1;
    x->width = 3 * heads * d;
    x->elements = heads * d * d;
    x->bytes = 4;
    x->params = a->hidden * (4 * heads * d + 2 * d + heads) + 2 * d * heads * d +
                kernel * x->width;
    return true;
}

/* Convolutions and nothing else. */
static bool read_convolution(struct vt_arch_state *x, const struct vt_arch *a,
                             const struct arch_source *s)
{
    double kernel = arch_number(s, "conv_L_cache", 0);
    double width = arch_number(s, "conv_dim", a->hidden);

    if (kernel < 2 || width < 1)
        return false;
    x->rows = (uint32_t)kernel - 1;
    x->width = width;
    x->params = (4.0 * a->hidden + kernel) * width;
    return true;
}

/* MiniMax's lightning attention. */
static bool read_lightning(struct vt_arch_state *x, const struct vt_arch *a)
{
    double d = a->head_dim;

    x->elements = a->heads * d * d;
    x->params = 5.0 * a->hidden * a->heads * d;
    return true;
}

/* What the file asks for, where its family does as it says. */
static double matrix_bytes(const struct vt_arch *a, const struct arch_source *s)
{
    bool nemotron = strncmp(a->type, "nemotron_h", 10) == 0;
    const char *key = nemotron ? "mamba_ssm_cache_dtype" : "mamba_ssm_dtype";
    const char *name = "";

    if (!nemotron && strncmp(a->type, "qwen3_5", 7) != 0)
        return 0;
    if (vt_get_str(arch_map_with(s, key), key, VT_OPTIONAL, &name, NULL))
        return 0;
    return *name != '\0' ? arch_dtype_bytes(name) : nemotron ? 4 : 0;
}

bool arch_read_state(struct vt_arch *a, const struct arch_source *s)
{
    struct vt_arch_state x = {.row_bytes = vt_arch_plain_bytes(a)};
    bool found = strncmp(a->type, "kimi_linear", 11) == 0  ? read_kimi(&x, a, s)
                 : strncmp(a->type, "minimax", 7) == 0     ? read_lightning(&x, a)
                 : arch_field(s, "linear_num_value_heads") ? read_delta(&x, a, s)
                 : arch_field(s, "conv_L_cache")           ? read_convolution(&x, a, s)
                 : strncmp(a->type, "jamba", 5) == 0       ? read_mamba1(&x, a, s)
                                                           : read_mamba2(&x, a, s);

    if (x.bytes == 0)
        x.bytes = matrix_bytes(a, s);
    if (x.bytes == 0)
        x.bytes = x.row_bytes;
    if (!found || x.rows > MOST || x.groups > MOST || x.width > 1e9 ||
        x.group_width > 1e9 || x.elements > 1e12)
        return false;
    a->state = x;
    return true;
}
