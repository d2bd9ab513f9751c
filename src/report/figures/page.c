/* page.c - one HTML page with everything in it: a table of summaries and all figures.
 */
#include <math.h>

#include "report/figures/figures.h"

static const char style[] =
    "body{font:15px/1.5 system-ui,sans-serif;color:#222;max-width:1000px;"
    "margin:2em auto;padding:0 1em}\n"
    "h1{font-size:1.5em;margin-bottom:0}p.sub{color:#666;margin-top:.2em}\n"
    "table{border-collapse:collapse;margin:1.5em 0;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.25em .8em;text-align:right;border-bottom:1px solid #ddd}\n"
    "th:first-child,td:first-child{text-align:left}thead th{border-bottom:2px solid "
    "#777}\n"
    "td small{color:#888;margin-left:.5em}\n"
    "figure{margin:2em 0}figure svg{width:100%;height:auto}\n"
    "p.left{color:#888}\n";

/* ---- the table -------------------------------------------------------- */

static void put_value(struct vt_buf *b, double v, double captured, bool compare)
{
    double error = vt_error_percent(v, captured);

    vt_buf_printf(b, "<td>%.*f", v < 1000 ? 2 : 0, v);
    if (compare && isfinite(error))
        vt_buf_printf(b, "<small>%+.1f&nbsp;%%</small>", error);
    vt_buf_str(b, "</td>");
}

static void put_table(struct vt_buf *b, const struct vt_figures *f,
                      const struct vt_summary *s)
{
    vt_buf_str(b, "<table><thead><tr><th></th>");
    for (size_t i = 0; i < f->n_views; i++) {
        vt_buf_str(b, "<th>");
        vt_html_text(b, f->view[i]->label);
        vt_buf_str(b, "</th>");
    }
    vt_buf_str(b, "</tr></thead><tbody>\n<tr><td>requests</td>");
    for (size_t i = 0; i < f->n_views; i++)
        vt_buf_printf(b, "<td>%llu</td>", (unsigned long long)s[i].requests);
    vt_buf_str(b, "</tr>\n<tr><td>output tokens per second</td>");
    for (size_t i = 0; i < f->n_views; i++)
        put_value(b, s[i].output_tok_per_s, s[0].output_tok_per_s, i > 0);
    vt_buf_str(b, "</tr>\n");
    for (size_t row = 0; row < VT_N_MEASURED; row++)
        for (size_t part = 0; part < VT_N_PARTS; part++) {
            vt_buf_printf(b, "<tr><td>%s %s (ms)</td>", vt_stat_rows[row].label,
                          vt_parts[part].key);
            for (size_t i = 0; i < f->n_views; i++)
                put_value(b, vt_part_of(vt_stat_of(&s[i], row), part),
                          vt_part_of(vt_stat_of(&s[0], row), part), i > 0);
            vt_buf_str(b, "</tr>\n");
        }
    vt_buf_str(b, "</tbody></table>\n");
}

/* ---- figures ---------------------------------------------------------- */

static int put_figure(struct vt_buf *b, const struct vt_figures *f,
                      const struct figure_kind *k, struct vt_err *err)
{
    struct vt_buf svg = {0};
    struct figure g = {.f = f};
    char attributes[64];
    int rc = figure_draw(&g, k, "svg", &svg, err);

    if (rc == VT_ECHECK) {
        vt_buf_str(b, "<p class=left>");
        vt_html_text(b, k->title);
        vt_buf_str(b, ": ");
        vt_html_text(b, err->msg);
        vt_buf_str(b, ".</p>\n");
        rc = VT_OK;
    } else if (rc == VT_OK) {
        snprintf(attributes, sizeof(attributes), " id=\"%s\"", k->name);
        vt_html_figure(b, attributes, &svg);
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
    int rc = VT_OK;

    snprintf(about, sizeof(about),
             "%s and modelled, by vtwin " VT_VERSION
             "; percentages are errors against what is %s",
             f->view[0]->label, f->view[0]->label);
    vt_html_begin(&b, f->title, style, about);
    put_table(&b, f, summary);
    for (size_t i = 0; i < n && rc == VT_OK; i++)
        rc = put_figure(&b, f, &kinds[i], err);
    vt_html_end(&b);
    if (rc == VT_OK)
        rc = vt_write_file(path, &b, err);
    vt_buf_free(&b);
    return rc;
}
