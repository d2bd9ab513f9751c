/* basis.c - how far the times of an engine's steps are to be trusted. */
#include <math.h>

#include "model/params.h"

const char *const vt_basis_names[] = {"auto", "measured", "transferred", "estimated",
                                      NULL};

static int read_expected(struct vt_basis *b, const struct vt_node *map,
                         struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < VT_TRUSTS && rc == VT_OK; i++) {
        b->expected[i] = NAN;
        rc = vt_get_f64(map, vt_trust_names[i], VT_OPTIONAL, 0, 1e6, &b->expected[i],
                        err);
    }
    b->has_expected = map != NULL;
    return vt_within(err, rc, "expected_error_pct");
}

static int read_outside(struct vt_basis *b, const struct vt_node *list,
                        struct vt_err *err)
{
    if (!list)
        return VT_OK;
    if (list->kind != VT_LIST || list->n > VT_MOST_OUTSIDE)
        return vt_fail(err, VT_EINPUT, "field 'outside' is no list of up to %d texts",
                       VT_MOST_OUTSIDE);
    for (uint32_t i = 0; i < list->n; i++) {
        if (list->u.item[i].kind != VT_STR)
            return vt_fail(err, VT_EINPUT, "field 'outside': %u is no text", i);
        (void)snprintf(b->outside[b->n_outside++], sizeof(b->outside[0]), "%s",
                       list->u.item[i].u.str);
    }
    return VT_OK;
}

static int read_kind(struct vt_basis *b, const struct vt_node *root, struct vt_err *err)
{
    const char *name = NULL, *kind = "";
    int rc = vt_get_str(root, "basis", VT_OPTIONAL, &name, err);

    if (rc == VT_OK)
        rc = vt_get_str(vt_get(root, "model"), "kind", VT_OPTIONAL, &kind, err);
    if (rc == VT_OK && !name && strcmp(kind, "step") == 0)
        b->kind = VT_MEASURED; /* a fit */
    if (rc != VT_OK || !name)
        return rc;
    for (int i = VT_MEASURED; vt_basis_names[i]; i++)
        if (strcmp(name, vt_basis_names[i]) == 0)
            b->kind = (enum vt_basis_kind)i;
    return b->kind != VT_BASIS_UNKNOWN
               ? VT_OK
               : vt_fail(err, VT_EINPUT,
                         "field 'basis': '%.40s' is none of measured, transferred, "
                         "estimated",
                         name);
}

static int read_from(struct vt_basis *b, const struct vt_node *root, struct vt_err *err)
{
    const char *from = "";
    int rc = vt_get_str(root, "basis_from", VT_OPTIONAL, &from, err);

    (void)snprintf(b->from, sizeof(b->from), "%s", from);
    return rc;
}

int vt_basis_of_profile(struct vt_basis *b, const struct vt_profile *p,
                        struct vt_err *err)
{
    int rc;

    *b = (struct vt_basis){0};
    if ((rc = read_kind(b, p->root, err)) || (rc = read_from(b, p->root, err)) ||
        (rc = read_outside(b, vt_get(p->root, "outside"), err)))
        return rc;
    return read_expected(b, vt_get(p->root, "expected_error_pct"), err);
}

void vt_basis_of_estimate(struct vt_basis *b, const struct vt_estimate *e)
{
    *b = (struct vt_basis){.kind = e->from[0] ? VT_TRANSFERRED : VT_ESTIMATED,
                           .has_expected = e->class != NULL,
                           .n_outside = e->n_outside};
    memcpy(b->from, e->from, sizeof(b->from));
    memcpy(b->expected, e->expected, sizeof(b->expected));
    memcpy(b->outside, e->outside, sizeof(b->outside));
}

void vt_basis_members(struct vt_jw *w, const struct vt_basis *b)
{
    if (b->kind == VT_BASIS_UNKNOWN)
        return;
    vt_jw_str(w, "basis", vt_basis_names[b->kind]);
    if (b->from[0])
        vt_jw_str(w, "basis_from", b->from);
    if (b->in_sample)
        vt_jw_bool(w, "in_sample", true);
    if (!b->has_expected)
        return;
    vt_jw_row(w, "expected_error_pct");
    for (size_t i = 0; i < VT_TRUSTS; i++)
        if (!isnan(b->expected[i]))
            vt_jw_printf(w, vt_trust_names[i], "%.1f", b->expected[i]);
    vt_jw_end(w);
}

void vt_basis_about(struct vt_buf *text, const struct vt_basis *b)
{
    static const char *const label[VT_TRUSTS] = {"E2E", "TTFT",    "TTFT p99",
                                                 "ITL", "ITL p99", "tok/s"};
    const char *between = "; within ";

    vt_buf_str(text, vt_basis_names[b->kind]);
    if (b->from[0])
        vt_buf_printf(text, " from %s", b->from);
    for (size_t i = 0; b->has_expected && i < VT_TRUSTS; i++) {
        if (isnan(b->expected[i]))
            continue;
        vt_buf_printf(text, "%s%s %.0f %%", between, label[i], b->expected[i]);
        between = ", ";
    }
    if (!b->has_expected)
        vt_buf_str(text, "; how far it may be off is not known");
}

void vt_basis_table(struct vt_buf *text, const struct vt_basis *b)
{
    if (b->kind == VT_BASIS_UNKNOWN)
        return;
    vt_buf_str(text, "basis        ");
    vt_basis_about(text, b);
    vt_buf_char(text, '\n');
    for (size_t i = 0; i < b->n_outside; i++)
        vt_buf_printf(text, "outside      %s\n", b->outside[i]);
}
