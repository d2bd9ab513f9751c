/* errors.c - how far each kind of latency model was found to be off: of fits by what
 * their profiles say of captures left out, of the others by errors.json, which
 * `bench/accuracy --zero-shot` writes. */
#include "model/params.h"

#define ERRORS "errors.json"
#define LAW    "estimate.json"

enum { MOST_PROFILES = 64 };

static int read_medians(const struct vt_node *map, double out[VT_TRUSTS],
                        struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < VT_TRUSTS && rc == VT_OK; i++)
        rc = vt_get_f64(map, vt_trust_names[i], VT_REQUIRED, 0, 1e6, &out[i], err);
    return rc;
}

/* ---- fits ------------------------------------------------------------------ */

/* Adds what a profile's own captures were missed by, each left out of its fit. */
static int add_profile(const char *name, double (*of)[MOST_PROFILES], size_t *n,
                       struct vt_err *err)
{
    struct vt_profile p;
    const struct vt_node *left_out;
    double median[VT_TRUSTS];
    int rc = vt_profile_open(&p, name, err);

    if (rc != VT_OK)
        return rc;
    left_out = profile_left_out(&p);
    if (left_out && *n < MOST_PROFILES &&
        (rc = vt_within(err, read_medians(left_out, median, err), "%s", name)) ==
            VT_OK) {
        for (size_t i = 0; i < VT_TRUSTS; i++)
            of[i][*n] = median[i];
        (*n)++;
    }
    vt_profile_close(&p);
    return rc;
}

static int add_fits(struct vt_kind_error *row, size_t *n_rows, struct vt_err *err)
{
    double of[VT_TRUSTS][MOST_PROFILES];
    struct vt_arena scratch = {0};
    struct vt_profile_entry *e = NULL;
    size_t n_entries = 0, n = 0;
    int rc = vt_profile_list(&scratch, &e, &n_entries, err);

    for (size_t i = 0; i < n_entries && rc == VT_OK; i++)
        if (!e[i].blackbox)
            rc = add_profile(e[i].name, of, &n, err);
    vt_arena_free(&scratch);
    if (rc != VT_OK || n == 0)
        return rc;
    row[*n_rows] = (struct vt_kind_error){.kind = "step", .what = "measured"};
    for (size_t i = 0; i < VT_TRUSTS; i++) {
        vt_sort_f64(of[i], n);
        row[*n_rows].median[i] = vt_quantile(of[i], n, 50);
    }
    (*n_rows)++;
    return VT_OK;
}

/* ---- all others ------------------------------------------------------------ */

static const struct {
    const char *kind, *key, *class, *what;
} judged[] = {
    {"step", "estimate", "dense", "estimated, dense"},
    {"step", "estimate", "mixture", "estimated, mixture"},
    {"roofline", "roofline", "dense", "dense"},
    {"roofline", "roofline", "mixture", "mixture"},
    {"crossmodel", "crossmodel", "dense", "dense"},
    {"crossmodel", "crossmodel", "mixture", "mixture"},
    {"trained-roofline", "trained-roofline", "dense", "dense"},
    {"trained-roofline", "trained-roofline", "mixture", "mixture"},
    {"trained-physics", "trained-physics", "dense", "dense"},
    {"trained-physics", "trained-physics", "mixture", "mixture"},
};

static int add_judged(struct vt_kind_error *row, size_t *n, struct vt_err *err)
{
    const struct vt_node *root = NULL, *medians;
    struct vt_arena scratch = {0};
    int rc = vt_builtin_tree(&scratch, ERRORS, &root, err);

    if (rc != VT_OK)
        return rc;
    medians = vt_get(root, "median_error_pct");
    for (size_t i = 0; i < VT_COUNT(judged) && rc == VT_OK; i++) {
        const struct vt_node *of =
            vt_get(vt_get(medians, judged[i].key), judged[i].class);

        if (!of)
            continue;
        row[*n] =
            (struct vt_kind_error){.kind = judged[i].kind, .what = judged[i].what};
        rc = read_medians(of, row[(*n)++].median, err);
    }
    vt_arena_free(&scratch);
    return vt_within(err, rc, "%s", ERRORS);
}

int vt_kind_errors(struct vt_kind_error row[VT_MOST_KIND_ERRORS], size_t *n,
                   struct vt_err *err)
{
    int rc;

    _Static_assert(VT_COUNT(judged) < VT_MOST_KIND_ERRORS, "room for fits and all");
    *n = 0;
    rc = add_fits(row, n, err);
    return rc == VT_OK ? add_judged(row, n, err) : rc;
}

/* ---- the worst of them -------------------------------------------------------- */

int vt_worst_estimate(struct vt_worst_model *out, const char *class,
                      enum vt_trust metric, struct vt_err *err)
{
    const struct vt_node *root = NULL, *models;
    struct vt_arena scratch = {0};
    int rc = vt_builtin_tree(&scratch, LAW, &root, err);

    *out = (struct vt_worst_model){.median = -1};
    models = rc == VT_OK ? vt_get(root, "models") : NULL;
    for (uint32_t i = 0; models && models->kind == VT_LIST && i < models->n && !rc;
         i++) {
        const struct vt_node *m = &models->u.item[i];
        const char *name = "", *own = "";
        double median[VT_TRUSTS];

        if ((rc = vt_get_str(m, "name", VT_REQUIRED, &name, err)) ||
            (rc = vt_get_str(m, "class", VT_REQUIRED, &own, err)) ||
            (rc = read_medians(vt_get(m, "median_error_pct"), median, err)))
            break;
        if (strcmp(own, class) != 0 || !(median[metric] > out->median))
            continue;
        out->median = median[metric];
        (void)snprintf(out->name, sizeof(out->name), "%s", name);
    }
    vt_arena_free(&scratch);
    return vt_within(err, rc, "%s", LAW);
}
