/* hardware.c - GPUs: what the data sheets say, and what a user's file adds.
 *
 * Peaks are dense, with sums in 32 bits. usable_gib is what torch.cuda.mem_get_info()
 * gives as total on an empty device (H200: read off vLLM's log, the others as commonly
 * reported; drivers differ by a few hundred MiB). Cards with NVLink bridges are joined
 * in pairs. MFU values are BLIS's for H100, A100-80, L40S and H200; a GPU that BLIS
 * does not know has those of its nearest kin. */
#include "model/model.h"

#include <ctype.h>

static const struct vt_gpu gpus[] = {
    /* name, GB, usable GiB, BLIS's GiB, TB/s, fp16, fp8, link GB/s, two MFU values,
     * int8, fp4, PCIe GB/s, joined by the link, compute capability */
    {"H100", 80, 79.11, 80, 3.35, 989.5, 1979, 900, 0.45, 0.30, 1979, 0, 128, 8, 90},
    {"H100-PCIe", 80, 79.11, 80, 2.0, 756, 1513, 600, 0.45, 0.30, 1513, 0, 128, 2, 90},
    {"H100-NVL", 94, 93.12, 94, 3.9, 835.5, 1671, 600, 0.45, 0.30, 1671, 0, 128, 2, 90},
    {"H200", 141, 139.8, 141, 4.8, 989.5, 1979, 900, 0.45, 0.30, 1979, 0, 128, 8, 90},
    {"A100-40", 40, 39.39, 40, 1.555, 312, 0, 600, 0.38, 0.18, 624, 0, 64, 8, 80},
    {"A100-80", 80, 79.15, 80, 2.039, 312, 0, 600, 0.38, 0.18, 624, 0, 64, 8, 80},
    {"A100-40-PCIe", 40, 39.39, 40, 1.555, 312, 0, 600, 0.38, 0.18, 624, 0, 64, 2, 80},
    {"A100-80-PCIe", 80, 79.15, 80, 1.935, 312, 0, 600, 0.38, 0.18, 624, 0, 64, 2, 80},
    {"L40S", 48, 44.4, 48, 0.864, 362.05, 733, 0, 0.32, 0.08, 733, 0, 64, 0, 89},
    {"L4", 24, 22.03, 24, 0.3, 121, 242, 0, 0.32, 0.08, 242, 0, 64, 0, 89},
    {"A10", 24, 22.06, 24, 0.6, 125, 0, 0, 0.32, 0.08, 250, 0, 64, 0, 86},
    {"A10G", 24, 22.06, 24, 0.6, 70, 0, 0, 0.32, 0.08, 140, 0, 64, 0, 86},
    {"RTX-4090", 24, 23.64, 24, 1.008, 165.2, 330.3, 0, 0.32, 0.08, 660.6, 0, 64, 0,
     89},
    {"RTX-PRO-6000", 96, 94.97, 96, 1.792, 503.8, 1007.6, 0, 0.32, 0.08, 1007.6, 2015.2,
     128, 0, 120},
    {"B200", 180, 178.35, 180, 8.0, 2250, 4500, 1800, 0.45, 0.30, 4500, 9000, 128, 8,
     100},
    {"GB200", 186, 184.3, 186, 8.0, 2500, 5000, 1800, 0.45, 0.30, 5000, 10000, 128, 72,
     100},
    {"B300", 288, 267.6, 288, 8.0, 2250, 4500, 1800, 0.45, 0.30, 153.5, 14000, 128, 8,
     103},
    {"GB300", 288, 276.6, 288, 8.0, 2500, 5000, 1800, 0.45, 0.30, 165, 15000, 128, 72,
     103},
    {"MI300X", 192, 191.69, 192, 5.3, 1307.4, 2614.9, 896, 0.45, 0.30, 2614.9, 0, 128,
     8, 0},
};

/* Spelt without case, spaces, dashes and underscores, and without the maker's name. */
static const struct {
    const char *alias, *name;
} aliases[] = {
    {"h100sxm", "H100"},
    {"h100sxm5", "H100"},
    {"h10080", "H100"},
    {"h10080gb", "H100"},
    {"h100sxm80gb", "H100"},
    {"h100sxm580gb", "H100"},
    {"h10080gbhbm3", "H100"},
    {"h100pcie80gb", "H100-PCIe"},
    {"h10080gbpcie", "H100-PCIe"},
    {"h100nvl94gb", "H100-NVL"},
    {"h10094gb", "H100-NVL"},
    {"h200sxm", "H200"},
    {"h200sxm5", "H200"},
    {"h200141gb", "H200"},
    {"a10040gb", "A100-40"},
    {"a100sxm40gb", "A100-40"},
    {"a100sxm440gb", "A100-40"},
    {"a100sxm440", "A100-40"},
    {"a100", "A100-80"},
    {"a100sxm", "A100-80"},
    {"a100sxm4", "A100-80"},
    {"a10080gb", "A100-80"},
    {"a100sxm80gb", "A100-80"},
    {"a100sxm480gb", "A100-80"},
    {"a100sxm480", "A100-80"},
    {"a100pcie40gb", "A100-40-PCIe"},
    {"a100pcie40", "A100-40-PCIe"},
    {"a10040gbpcie", "A100-40-PCIe"},
    {"a100pcie", "A100-80-PCIe"},
    {"a100pcie80gb", "A100-80-PCIe"},
    {"a100pcie80", "A100-80-PCIe"},
    {"a10080gbpcie", "A100-80-PCIe"},
    {"l40s48gb", "L40S"},
    {"l424gb", "L4"},
    {"a1024gb", "A10"},
    {"a10g24gb", "A10G"},
    {"4090", "RTX-4090"},
    {"rtx409024gb", "RTX-4090"},
    {"geforcertx4090", "RTX-4090"},
    {"rtx6000pro", "RTX-PRO-6000"},
    {"rtxpro600096gb", "RTX-PRO-6000"},
    {"rtxpro6000server", "RTX-PRO-6000"},
    {"rtxpro6000blackwell", "RTX-PRO-6000"},
    {"rtxpro6000blackwellserveredition", "RTX-PRO-6000"},
    {"rtxpro6000blackwellworkstationedition", "RTX-PRO-6000"},
    {"b200sxm", "B200"},
    {"b200180gb", "B200"},
    {"b200192gb", "B200"},
    {"b300sxm", "B300"},
    {"b300288gb", "B300"},
    {"gb200nvl72", "GB200"},
    {"gb300nvl72", "GB300"},
    {"instinctmi300x", "MI300X"},
    {"instinctmi300xoam", "MI300X"},
    {"mi300", "MI300X"},
};

bool vt_gpu_dominates(const struct vt_gpu *g, const struct vt_gpu *other)
{
    return g->bandwidth_tbs >= other->bandwidth_tbs &&
           g->fp16_tflops >= other->fp16_tflops && g->fp8_tflops >= other->fp8_tflops &&
           g->fp4_tflops >= other->fp4_tflops && g->memory_gb >= other->memory_gb &&
           g->link_gbs >= other->link_gbs && g->link_gpus >= other->link_gpus &&
           g->pcie_gbs >= other->pcie_gbs;
}

bool vt_gpu_next(size_t *at, struct vt_gpu *out)
{
    if (*at == VT_COUNT(gpus))
        return false;
    *out = gpus[(*at)++];
    return true;
}

/* Letters and digits only, in lower case. */
static void squeeze(const char *text, char *out, size_t cap)
{
    size_t n = 0;

    for (; *text != '\0' && n + 1 < cap; text++)
        if (isalnum((unsigned char)*text))
            out[n++] = (char)tolower((unsigned char)*text);
    out[n] = '\0';
}

static const char *without_maker(const char *name)
{
    static const char *const makers[] = {"nvidia", "amd"};

    for (size_t i = 0; i < VT_COUNT(makers); i++)
        if (strncmp(name, makers[i], strlen(makers[i])) == 0)
            return name + strlen(makers[i]);
    return name;
}

static bool same_gpu(const char *a, const char *b)
{
    char x[64], y[64];

    squeeze(a, x, sizeof(x));
    squeeze(b, y, sizeof(y));
    return strcmp(without_maker(x), without_maker(y)) == 0;
}

static const struct vt_gpu *find_builtin(const char *name)
{
    for (size_t i = 0; i < VT_COUNT(aliases); i++)
        if (same_gpu(name, aliases[i].alias)) {
            name = aliases[i].name;
            break;
        }
    for (size_t i = 0; i < VT_COUNT(gpus); i++)
        if (same_gpu(name, gpus[i].name))
            return &gpus[i];
    return NULL;
}

/* ---- a user's file ---------------------------------------------------- */

static const struct {
    const char *key;
    size_t offset;
    double lo, hi;
    bool required; /* of a GPU that is not built in */
} fields[] = {
    {"TFlopsPeak", offsetof(struct vt_gpu, fp16_tflops), 1e-3, 1e6, true},
    {"TFlopsFP8", offsetof(struct vt_gpu, fp8_tflops), 0, 1e6, false},
    {"BwPeakTBs", offsetof(struct vt_gpu, bandwidth_tbs), 1e-6, 1e4, true},
    {"mfuPrefill", offsetof(struct vt_gpu, mfu_prefill), 1e-6, 1, false},
    {"mfuDecode", offsetof(struct vt_gpu, mfu_decode), 1e-6, 1, false},
    {"MemoryGiB", offsetof(struct vt_gpu, blis_gib), 1e-3, 1e6, true},
    {"UsableGiB", offsetof(struct vt_gpu, usable_gib), 1e-3, 1e6, false},
    {"LinkGBs", offsetof(struct vt_gpu, link_gbs), 0, 1e6, false},
    {"TFlopsInt8", offsetof(struct vt_gpu, int8_tflops), 0, 1e6, false},
    {"TFlopsFP4", offsetof(struct vt_gpu, fp4_tflops), 0, 1e6, false},
    {"PcieGBs", offsetof(struct vt_gpu, pcie_gbs), 0, 1e6, false},
};

/* The same as data sheets write them, in other units. */
static const struct {
    const char *key;
    size_t offset;
    double scale; /* to ours */
} sheet[] = {
    {"compute_tflops_fp16", offsetof(struct vt_gpu, fp16_tflops), 1},
    {"compute_tflops_fp8", offsetof(struct vt_gpu, fp8_tflops), 1},
    {"memory_bandwidth_gb_s", offsetof(struct vt_gpu, bandwidth_tbs), 1e-3},
    {"memory_gb", offsetof(struct vt_gpu, blis_gib), 1},
};

/* Whether the map is a data sheet, and then what it says. */
static int read_sheet(struct vt_gpu *g, const struct vt_node *map, bool builtin,
                      bool *is_sheet, struct vt_err *err)
{
    const char *known[VT_COUNT(sheet) + 2] = {"sm_count"}; /* nothing hangs on it */
    int rc = VT_OK;

    *is_sheet = false;
    for (size_t i = 0; i < VT_COUNT(sheet); i++) {
        known[i + 1] = sheet[i].key;
        *is_sheet |= vt_get(map, sheet[i].key) != NULL;
    }
    if (*is_sheet)
        rc = vt_only_keys(map, known, err);
    for (size_t i = 0; *is_sheet && i < VT_COUNT(sheet) && rc == VT_OK; i++) {
        double *to = (double *)(void *)((char *)g + sheet[i].offset), v = 0;
        bool optional =
            builtin || sheet[i].offset == offsetof(struct vt_gpu, fp8_tflops);

        rc = vt_get_f64(map, sheet[i].key, optional ? VT_OPTIONAL : VT_REQUIRED, 1e-3,
                        1e9, &v, err);
        if (v > 0)
            *to = v * sheet[i].scale;
    }
    return rc;
}

static int read_gpu(struct vt_gpu *g, const struct vt_node *map, struct vt_err *err)
{
    const struct vt_gpu *builtin = find_builtin(map->key);
    struct vt_gpu base = {.mfu_prefill = 0.45, .mfu_decode = 0.30, .pcie_gbs = 64};
    const char *known[VT_COUNT(fields) + 1] = {NULL};
    bool is_sheet;
    int rc;

    if (map->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "a GPU is an object");
    if (builtin)
        base = *builtin;
    *g = base;
    (void)snprintf(g->name, sizeof(g->name), "%s", map->key);
    for (size_t i = 0; i < VT_COUNT(fields); i++)
        known[i] = fields[i].key;
    rc = read_sheet(g, map, builtin != NULL, &is_sheet, err);
    if (rc == VT_OK && !is_sheet)
        rc = vt_only_keys(map, known, err);
    for (size_t i = 0; !is_sheet && i < VT_COUNT(fields) && rc == VT_OK; i++)
        rc = vt_get_f64(map, fields[i].key,
                        fields[i].required && !builtin ? VT_REQUIRED : VT_OPTIONAL,
                        fields[i].lo, fields[i].hi,
                        (double *)(void *)((char *)g + fields[i].offset), err);
    if (!builtin && g->link_gbs > 0)
        g->link_gpus = 8;
    if (g->blis_gib > base.blis_gib || g->blis_gib < base.blis_gib) {
        g->memory_gb = g->blis_gib;
        if (!vt_get(map, "UsableGiB"))
            g->usable_gib = 0.989 * g->blis_gib; /* as an H100's */
    }
    return rc;
}

/* The very name goes before another one of the same GPU. */
static const struct vt_node *find_key(const struct vt_node *root, const char *name)
{
    const struct vt_gpu *meant = find_builtin(name);

    for (uint32_t i = 0; i < root->n; i++)
        if (same_gpu(root->u.item[i].key, name))
            return &root->u.item[i];
    for (uint32_t i = 0; meant && i < root->n; i++)
        if (find_builtin(root->u.item[i].key) == meant)
            return &root->u.item[i];
    return NULL;
}

static int find_in_file(struct vt_gpu *g, const char *name, const char *path,
                        bool *found, struct vt_err *err)
{
    struct vt_arena arena = {0};
    const struct vt_node *root, *gpu;
    int rc = vt_tree_load(&arena, path, &root, err);

    *found = false;
    if (rc == VT_OK && root->kind != VT_MAP)
        rc = vt_fail(err, VT_EINPUT, "%s: a hardware file is an object of GPUs", path);
    if (rc == VT_OK && (gpu = find_key(root, name)) != NULL) {
        *found = true;
        rc = vt_within(err, read_gpu(g, gpu, err), "%s: GPU '%.40s'", path, gpu->key);
    }
    vt_arena_free(&arena);
    return rc;
}

int vt_gpu_find(struct vt_gpu *g, const char *name, const char *hw_file,
                struct vt_err *err)
{
    const struct vt_gpu *base = find_builtin(name);
    bool found = false;
    int rc = hw_file ? find_in_file(g, name, hw_file, &found, err) : VT_OK;
    char known[384];
    size_t n = 0;

    if (rc != VT_OK || found)
        return rc;
    if (base) {
        *g = *base;
        return VT_OK;
    }
    for (size_t i = 0; i < VT_COUNT(gpus); i++) {
        int len = snprintf(known + n, sizeof(known) - n, "%s%s", i > 0 ? ", " : "",
                           gpus[i].name);

        n += len > 0 && (size_t)len < sizeof(known) - n ? (size_t)len : 0;
    }
    return vt_fail(err, VT_EINPUT, "unknown GPU '%.40s'; %s%sknown are %s", name,
                   hw_file ? hw_file : "", hw_file ? " does not have it; " : "", known);
}

/* ---- limits ------------------------------------------------------------- */

double vt_gpu_graph_limit(const struct vt_gpu *g, uint32_t vllm)
{
    enum { LARGE_GRAPHS = 28 };

    return g->capability / 10 == 10 && vllm >= LARGE_GRAPHS ? 2 * VT_STEP_GRAPH_LIMIT
                                                            : VT_STEP_GRAPH_LIMIT;
}

/* From 0.28 on larger GPUs have a larger budget. vLLM knows A100s by their name. */
void vt_gpu_limits(const struct vt_gpu *g, struct vt_engine_config *c)
{
    enum { LARGE_BUDGETS = 28 };
    bool a100 = strncmp(g->name, "A100", 4) == 0;

    if (g->usable_gib >= 160 && c->vllm >= LARGE_BUDGETS) {
        c->max_num_seqs = 1024;
        c->max_num_batched_tokens = 16384;
    } else if (g->usable_gib >= 70 && !a100) {
        c->max_num_seqs = 1024;
        c->max_num_batched_tokens = 8192;
    } else {
        c->max_num_seqs = 256;
        c->max_num_batched_tokens = 2048;
    }
}
