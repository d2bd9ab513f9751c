/* page.c - one HTML page with everything in it: a table of summaries and all figures.
 */
#include <stdlib.h>

#include "page/page.h"
#include "report/figures/figures.h"

static int put_table(struct vt_buf *b, const struct vt_figures *f,
                     const struct vt_summary *s, struct vt_err *err)
{
    const char **label = calloc(f->n_views + 1, sizeof(*label));
    const struct vt_summary **each = calloc(f->n_views + 1, sizeof(*each));
    int rc = label && each ? VT_OK : vt_nomem(err);

    for (size_t i = 0; i < f->n_views && rc == VT_OK; i++) {
        label[i] = f->view[i]->label;
        each[i] = &s[i];
    }
    if (rc == VT_OK)
        rc = vt_page_summaries(b, label, each, f->n_views, err);
    free(label);
    free(each);
    return rc;
}

static int put_figure(struct vt_buf *b, const struct vt_figures *f,
                      const struct figure_kind *k, struct vt_err *err)
{
    struct vt_buf svg = {0};
    struct figure g = {.f = f};
    int rc = figure_draw(&g, k, "svg", &svg, err);

    if (rc == VT_ECHECK) {
        vt_page_para(b, VT_PAGE_QUIET, "%s: %s.", k->title, err->msg);
        rc = VT_OK;
    } else if (rc == VT_OK) {
        vt_page_svg(b, k->name, false, &svg, "");
        vt_page_para(b, VT_PAGE_QUIET, "%s", k->conclude);
    }
    vt_buf_free(&svg);
    return rc;
}

int vt_figures_page(const struct vt_figures *f, const struct vt_summary *summary,
                    const char *path, struct vt_err *err)
{
    struct vt_buf b = {0};
    char about[160];
    size_t n;
    const struct figure_kind *kinds = figure_kinds(&n);
    int rc;

    snprintf(about, sizeof(about),
             "The first column is %s; the others are simulated by vtwin " VT_VERSION
             ", and percentages are their errors against it.",
             f->view[0]->label);
    vt_page_begin(&b, "vtwin inspect plot", f->title, about);
    rc = put_table(&b, f, summary, err);
    for (size_t i = 0; i < n && rc == VT_OK; i++)
        rc = put_figure(&b, f, &kinds[i], err);
    return vt_page_write(&b, rc, path, err);
}
