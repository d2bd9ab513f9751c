/* page.c - one HTML page with everything in it: a table of summaries and all figures.
 */
#include <math.h>

#include "page/page.h"
#include "report/figures/figures.h"

/* ---- the table -------------------------------------------------------- */

static void put_value(struct vt_page_table *t, double v, double captured, bool compare)
{
    double error = vt_error_percent(v, captured);
    char text[32], small[32];

    snprintf(text, sizeof(text), "%.*f", v < 1000 ? 2 : 0, v);
    snprintf(small, sizeof(small), "%+.1f %%", error);
    if (compare && isfinite(error))
        vt_page_cell_small(t, text, small);
    else
        vt_page_cell(t, "%s", text);
}

static int put_table(struct vt_buf *b, const struct vt_figures *f,
                     const struct vt_summary *s, struct vt_err *err)
{
    const char **head = calloc(f->n_views + 1, sizeof(*head));
    struct vt_page_table t;

    if (!head)
        return vt_nomem(err);
    head[0] = "<";
    for (size_t i = 0; i < f->n_views; i++)
        head[i + 1] = f->view[i]->label;
    vt_page_table_begin(&t, b, head, f->n_views + 1);
    vt_page_row(&t, NULL);
    vt_page_cell(&t, "requests");
    for (size_t i = 0; i < f->n_views; i++)
        vt_page_cell(&t, "%llu", (unsigned long long)s[i].requests);
    vt_page_row(&t, NULL);
    vt_page_cell(&t, "output tokens per second");
    for (size_t i = 0; i < f->n_views; i++)
        put_value(&t, s[i].output_tok_per_s, s[0].output_tok_per_s, i > 0);
    for (size_t row = 0; row < VT_N_MEASURED; row++)
        for (size_t part = 0; part < VT_N_PARTS; part++) {
            vt_page_row(&t, part == 0 ? "new" : NULL);
            vt_page_cell(&t, "%s %s (ms)", vt_stat_rows[row].label, vt_parts[part].key);
            for (size_t i = 0; i < f->n_views; i++)
                put_value(&t, vt_part_of(vt_stat_of(&s[i], row), part),
                          vt_part_of(vt_stat_of(&s[0], row), part), i > 0);
        }
    vt_page_table_end(&t);
    free(head);
    return VT_OK;
}

/* ---- figures ---------------------------------------------------------- */

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
