/* quant.c - how many bytes a quantised weight takes, by its quantization_config. */
#include "model/hf/arch.h"

/* Methods that say all by their name. Others state bits and a group size. */
static const struct {
    const char *name;
    double bytes, scale;
    bool experts_only;
} methods[] = {
    {"fp8", 1, 0, false},           {"fbgemm_fp8", 1, 0, false},
    {"ptpc_fp8", 1, 0, false},      {"experts_int8", 1, 0, true},
    {"mxfp4", 0.5, 1.0 / 32, true}, /* one byte of scale for 32 elements */
};

static const struct {
    const char *name;
    double bytes, scale;
} algos[] = {
    /* ModelOpt's */
    {"FP8", 1, 0},
    {"FP8_PER_CHANNEL_PER_TOKEN", 1, 0},
    {"FP8_PB_WO", 1, 0},
    {"NVFP4", 0.5, 1.0 / 16},
    {"W4A8_AWQ", 0.5, 2.0 / 128},
    {"INT8_SQ", 1, 0},
};

static int get_text(const struct vt_node *q, const char *key, const char **out,
                    struct vt_err *err)
{
    *out = "";
    if (arch_get(q, key) == NULL)
        return VT_OK;
    return vt_get_str(q, key, VT_REQUIRED, out, err);
}

static int get_number(const struct vt_node *q, const char *key, double lo, double hi,
                      double *out, struct vt_err *err)
{
    if (arch_get(q, key) == NULL)
        return VT_OK;
    return vt_get_f64(q, key, VT_REQUIRED, lo, hi, out, err);
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
    const struct vt_node *groups = arch_get(q, "config_groups");

    if (groups == NULL || groups->kind != VT_MAP)
        return VT_OK;
    for (uint32_t i = 0; i < groups->n && !*done; i++) {
        const struct vt_node *w = arch_get(&groups->u.item[i], "weights");
        int rc = w != NULL && w->kind == VT_MAP
                     ? read_bits(a, w, "num_bits", 0, done, err)
                     : VT_OK;

        if (rc != VT_OK)
            return rc;
    }
    return VT_OK;
}

static int read_named(struct vt_arch *a, const struct vt_node *q, const char *method,
                      bool *done, struct vt_err *err)
{
    const char *algo = "";
    int rc = get_text(q, "quant_algo", &algo, err);

    for (size_t i = 0; i < VT_COUNT(methods) && rc == VT_OK && !*done; i++)
        if (strcmp(method, methods[i].name) == 0) {
            a->weight_bytes = methods[i].bytes;
            a->scale_bytes = methods[i].scale;
            a->quant_experts_only = methods[i].experts_only;
            *done = true;
        }
    for (size_t i = 0; i < VT_COUNT(algos) && rc == VT_OK && !*done; i++)
        if (strcmp(algo, algos[i].name) == 0) {
            a->weight_bytes = algos[i].bytes;
            a->scale_bytes = algos[i].scale;
            *done = true;
        }
    return rc;
}

static bool is_true(const struct vt_node *q, const char *key)
{
    const struct vt_node *n = vt_get(q, key);

    return n != NULL && n->kind == VT_BOOL && n->u.boolean;
}

static int read_bitsandbytes(struct vt_arch *a, const struct vt_node *q, bool *done)
{
    if (is_true(q, "load_in_4bit")) {
        a->weight_bytes = 0.5;
        a->scale_bytes = 4.0 / 64;
        *done = true;
    } else if (is_true(q, "load_in_8bit")) {
        a->weight_bytes = 1;
        *done = true;
    }
    return VT_OK;
}

/* An 8-bit KV cache that the checkpoint was calibrated for is what vLLM then takes. */
static int read_kv(struct vt_arch *a, const struct vt_node *q, struct vt_err *err)
{
    const struct vt_node *scheme = arch_get(q, "kv_cache_scheme");
    const char *algo = "";
    double bits = 8 * a->kv_bytes;
    int rc = get_text(q, "kv_cache_quant_algo", &algo, err);

    if (rc == VT_OK && strcmp(algo, "FP8") == 0)
        bits = 8;
    if (rc == VT_OK && scheme != NULL && scheme->kind == VT_MAP)
        rc = get_number(scheme, "num_bits", 1, 32, &bits, err);
    a->kv_bytes = bits / 8;
    return rc;
}

int arch_read_quant(struct vt_arch *a, const struct vt_node *quant, struct vt_err *err)
{
    const char *method = "";
    bool done = false;
    int rc;

    if (quant->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "field 'quantization_config' is no object");
    rc = get_text(quant, "quant_method", &method, err);
    if (rc == VT_OK)
        rc = read_bits(a, quant, "bits", 1, &done, err);
    if (rc == VT_OK && !done)
        rc = read_bits(a, quant, "w_bit", 1, &done, err);
    if (rc == VT_OK && !done)
        rc = read_groups(a, quant, &done, err);
    if (rc == VT_OK && !done)
        rc = read_named(a, quant, method, &done, err);
    if (rc == VT_OK && !done)
        rc = read_bitsandbytes(a, quant, &done);
    if (rc == VT_OK && !done && *method != '\0')
        rc =
            vt_fail(err, VT_EINPUT,
                    "field 'quantization_config': unknown quant_method '%.40s' without "
                    "bits",
                    method);
    return rc == VT_OK ? read_kv(a, quant, err) : rc;
}
