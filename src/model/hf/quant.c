/* quant.c - how many bytes a quantised weight takes, by its quantization_config. */
#include "model/hf/arch.h"

/* Methods that say all by their name. Others state bits and a group size. */
struct named {
    const char *name;
    double bytes, scale;
    bool experts_only;
};

static const struct named methods[] = {
    {"fp8", 1, 0, false},           {"fbgemm_fp8", 1, 0, false},
    {"ptpc_fp8", 1, 0, false},      {"experts_int8", 1, 0, true},
    {"mxfp4", 0.5, 1.0 / 32, true}, /* one byte of scale for 32 elements */
};

static const struct named algos[] = {
    /* ModelOpt's */
    {"FP8", 1, 0, false},
    {"FP8_PER_CHANNEL_PER_TOKEN", 1, 0, false},
    {"FP8_PB_WO", 1, 0, false},
    {"NVFP4", 0.5, 1.0 / 16, false},
    {"W4A8_AWQ", 0.5, 2.0 / 128, false},
    {"INT8_SQ", 1, 0, false},
};

static int get_text(const struct vt_node *q, const char *key, const char **out,
                    struct vt_err *err)
{
    *out = "";
    return vt_get_non_null(q, key) ? vt_get_str(q, key, VT_REQUIRED, out, err) : VT_OK;
}

static int get_number(const struct vt_node *q, const char *key, double lo, double hi,
                      double *out, struct vt_err *err)
{
    return vt_get_non_null(q, key) ? vt_get_f64(q, key, VT_REQUIRED, lo, hi, out, err)
                                   : VT_OK;
}

static bool is_true(const struct vt_node *q, const char *key)
{
    const struct vt_node *n = vt_get(q, key);

    return n && n->kind == VT_BOOL && n->u.boolean;
}

/* bits and group_size, as GPTQ and AWQ state them; a group has a scale of 16 bits and,
 * unless it is symmetric, a zero as wide as an element. */
static int read_bits(struct vt_arch *a, const struct vt_node *q, const char *bits_key,
                     double zero_share, bool *done, struct vt_err *err)
{
    double bits = 0, group = 0;
    int rc = get_number(q, bits_key, 1, 32, &bits, err);

    if (rc == VT_OK)
        rc = get_number(q, "group_size", -1, 1e6, &group, err);
    if (rc == VT_OK && group == 0)
        rc = get_number(q, "q_group_size", -1, 1e6, &group, err);
    if (rc != VT_OK || bits == 0)
        return rc;
    a->weight_bytes = bits / 8;
    a->scale_bytes = group >= 1 ? (2 + zero_share * bits / 8) / group : 0;
    *done = true;
    return VT_OK;
}

/* compressed-tensors: the first group that quantises weights speaks for all. */
static int read_groups(struct vt_arch *a, const struct vt_node *q, bool *done,
                       struct vt_err *err)
{
    const struct vt_node *groups = vt_get_non_null(q, "config_groups");

    if (!groups || groups->kind != VT_MAP)
        return VT_OK;
    for (uint32_t i = 0; i < groups->n && !*done; i++) {
        const struct vt_node *w = vt_get_non_null(&groups->u.item[i], "weights");
        int rc =
            w && w->kind == VT_MAP ? read_bits(a, w, "num_bits", 0, done, err) : VT_OK;

        if (rc != VT_OK)
            return rc;
    }
    return VT_OK;
}

static bool set_by_name(struct vt_arch *a, const struct named *table, size_t n,
                        const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, table[i].name) == 0) {
            a->weight_bytes = table[i].bytes;
            a->scale_bytes = table[i].scale;
            a->quant_experts_only = table[i].experts_only;
            return true;
        }
    return false;
}

/* A scale of 32 bits for each block of an 8-bit matrix. */
static void read_blocks(struct vt_arch *a, const struct vt_node *q)
{
    const struct vt_node *size = vt_get_non_null(q, "weight_block_size");
    double elements = 1;

    if (!size || size->kind != VT_LIST || size->n != 2 || a->weight_bytes < 1)
        return;
    for (uint32_t i = 0; i < size->n; i++)
        elements *= size->u.item[i].kind == VT_INT && size->u.item[i].u.integer > 0
                        ? (double)size->u.item[i].u.integer
                        : 1;
    a->scale_bytes = 4 / elements;
    a->block_scales = true;
}

static int read_weights(struct vt_arch *a, const struct vt_node *q, struct vt_err *err)
{
    const char *method = "", *algo = "";
    bool done = false;
    int rc;

    if ((rc = get_text(q, "quant_method", &method, err)) ||
        (rc = read_bits(a, q, "bits", 1, &done, err)) || done ||
        (rc = read_bits(a, q, "w_bit", 1, &done, err)) || done ||
        (rc = read_groups(a, q, &done, err)) || done ||
        (rc = get_text(q, "quant_algo", &algo, err)) ||
        set_by_name(a, methods, VT_COUNT(methods), method) ||
        set_by_name(a, algos, VT_COUNT(algos), algo)) {
        read_blocks(a, q);
        return rc;
    }
    if (is_true(q, "load_in_4bit")) { /* bitsandbytes */
        a->weight_bytes = 0.5;
        a->scale_bytes = 4.0 / 64;
    } else if (is_true(q, "load_in_8bit")) {
        a->weight_bytes = 1;
    } else if (*method != '\0') {
        return vt_fail(err, VT_EINPUT,
                       "field 'quantization_config': unknown quant_method '%.40s' "
                       "without bits",
                       method);
    }
    return VT_OK;
}

/* Whether all attention keeps its 16 bits, as in mixtures whose experts alone were
 * quantised: the lists hold patterns such as "re:.*self_attn.*". */
static bool spares_attention(const struct vt_node *q)
{
    static const char *const lists[] = {"ignore", "exclude_modules",
                                        "modules_to_not_convert"};

    for (size_t i = 0; i < VT_COUNT(lists); i++) {
        const struct vt_node *list = vt_get_non_null(q, lists[i]);

        for (uint32_t k = 0; list && list->kind == VT_LIST && k < list->n; k++) {
            const struct vt_node *n = &list->u.item[k];
            const char *at = n->kind == VT_STR ? strstr(n->u.str, "self_attn") : NULL;

            if (at && (strcmp(at, "self_attn*") == 0 || strcmp(at, "self_attn.*") == 0))
                return true;
        }
    }
    return false;
}

int arch_read_quant(struct vt_arch *a, const struct vt_node *quant, struct vt_err *err)
{
    const struct vt_node *scheme = vt_get_non_null(quant, "kv_cache_scheme");
    const char *algo = "", *method = "";
    double bits = 8 * a->kv_bytes;
    int rc;

    if (quant->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "field 'quantization_config' is no object");
    if ((rc = read_weights(a, quant, err)) ||
        (rc = get_text(quant, "kv_cache_quant_algo", &algo, err)))
        return rc;
    (void)get_text(quant, "quant_method", &method, NULL);
    (void)snprintf(a->quant, sizeof(a->quant), "%s", *method ? method : "modelopt");
    if (a->experts > 0 && spares_attention(quant))
        a->quant_experts_only = true;
    /* An 8-bit KV cache that the checkpoint was calibrated for is what vLLM takes. */
    if (strcmp(algo, "FP8") == 0)
        bits = 8;
    if (scheme && scheme->kind == VT_MAP)
        rc = get_number(scheme, "num_bits", 1, 32, &bits, err);
    a->kv_bytes = bits / 8;
    return rc;
}

/* ---- what flags change ---------------------------------------------------- */

/* vLLM knows some methods by several names, one for each kernel. */
static bool same_method(const char *asked, const char *stated)
{
    static const char *const kin[][2] = {
        {"awq_marlin", "awq"},
        {"gptq_marlin", "gptq"},
        {"modelopt_fp4", "modelopt"},
        {"modelopt_fp8", "modelopt"},
    };

    for (size_t i = 0; i < VT_COUNT(kin); i++)
        if (strcmp(asked, kin[i][0]) == 0 && strcmp(stated, kin[i][1]) == 0)
            return true;
    return strcmp(asked, stated) == 0;
}

int vt_arch_quantize(struct vt_arch *a, const char *method, struct vt_err *err)
{
    static const struct named online[] = {
        {"fp8", 1, 0, false},
        {"ptpc_fp8", 1, 0, false},
        {"experts_int8", 1, 0, true},
        {"bitsandbytes", 0.5, 4.0 / 64, false},
    };

    if (!method || strcmp(method, "auto") == 0)
        return VT_OK;
    if (a->quant[0] != '\0')
        return same_method(method, a->quant)
                   ? VT_OK
                   : vt_fail(err, VT_EINPUT,
                             "quantization '%.40s': the model's config.json says '%s'",
                             method, a->quant);
    if (!set_by_name(a, online, VT_COUNT(online), method))
        return vt_fail(err, VT_EINPUT,
                       "quantization '%.40s' needs a model that was quantised so; fp8, "
                       "ptpc_fp8, experts_int8 and bitsandbytes quantise while loading",
                       method);
    (void)snprintf(a->quant, sizeof(a->quant), "%s", method);
    return VT_OK;
}

int vt_arch_set_dtype(struct vt_arch *a, const char *dtype, struct vt_err *err)
{
    double bytes;

    if (!dtype || strcmp(dtype, "auto") == 0)
        return VT_OK;
    bytes = arch_dtype_bytes(dtype);
    if (bytes < 2 || bytes > 2)
        return vt_fail(err, VT_EINPUT,
                       "dtype '%.40s': known are auto, half, float16 and bfloat16",
                       dtype);
    if (a->quant[0] == '\0')
        a->weight_bytes = bytes;
    if (a->kv_bytes > 1)
        a->kv_bytes = bytes;
    a->dtype_bytes = bytes;
    return VT_OK;
}
