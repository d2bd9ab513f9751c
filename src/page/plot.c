/* plot.c - charts as data: the object that page.js draws. */
#include "page/page.h"

#include <math.h>

static const char *const kinds[] = {"lines", "steps", "points",
                                    "bars",  "lanes", "area"};

/* Six digits are more than any screen shows; all seventeen would double the page. */
static void put_numbers(struct vt_jw *w, const char *key, const double *v, size_t n)
{
    if (!v)
        return;
    vt_jw_row_list(w, key);
    for (size_t i = 0; i < n; i++)
        if (isfinite(v[i]))
            vt_jw_printf(w, NULL, "%.6g", v[i]);
        else
            vt_jw_null(w, NULL);
    vt_jw_end(w);
}

static void put_texts(struct vt_jw *w, const char *key, const char *const *text,
                      size_t n)
{
    if (!text)
        return;
    vt_jw_row_list(w, key);
    for (size_t i = 0; i < n; i++)
        vt_jw_str(w, NULL, text[i]);
    vt_jw_end(w);
}

static void put_axis(struct vt_jw *w, const char *key, const struct vt_plot_axis *a)
{
    vt_jw_map(w, key);
    if (a->label)
        vt_jw_str(w, "label", a->label);
    if (a->unit)
        vt_jw_str(w, "unit", a->unit);
    if (a->log)
        vt_jw_bool(w, "log", true);
    if (a->has_min)
        vt_jw_printf(w, "min", "%.6g", a->min);
    if (a->has_max)
        vt_jw_printf(w, "max", "%.6g", a->max);
    put_texts(w, "categories", a->category, a->n_categories);
    vt_jw_end(w);
}

static void put_series(struct vt_jw *w, const struct vt_plot_series *s)
{
    vt_jw_map(w, NULL);
    if (s->name)
        vt_jw_str(w, "name", s->name);
    if (s->styled)
        vt_jw_str(w, "kind", kinds[s->kind]);
    if (s->colour > 0)
        vt_jw_u64(w, "colour", s->colour - 1);
    put_numbers(w, "x", s->x, s->n);
    put_numbers(w, "y", s->y, s->n);
    put_numbers(w, "lo", s->lo, s->n);
    put_numbers(w, "hi", s->hi, s->n);
    put_texts(w, "text", s->text, s->n);
    if (s->labels)
        vt_jw_bool(w, "labels", true);
    if (s->dash)
        vt_jw_bool(w, "dash", true);
    if (s->hidden)
        vt_jw_bool(w, "hidden", true);
    vt_jw_end(w);
}

void vt_plot_json(struct vt_jw *w, const char *key, const struct vt_plot *p)
{
    vt_jw_map(w, key);
    vt_jw_str(w, "kind", kinds[p->kind]);
    vt_jw_str(w, "title", p->title);
    if (p->note)
        vt_jw_str(w, "note", p->note);
    put_axis(w, "x", &p->x);
    put_axis(w, "y", &p->y);
    vt_jw_list(w, "series");
    for (size_t i = 0; i < p->n; i++)
        put_series(w, &p->series[i]);
    vt_jw_end(w);
    if (p->n_marks > 0) {
        vt_jw_list(w, "marks");
        for (size_t i = 0; i < p->n_marks; i++) {
            const char axis[] = {p->mark[i].axis, '\0'};

            vt_jw_map(w, NULL);
            vt_jw_str(w, "axis", axis);
            vt_jw_printf(w, "at", "%.6g", p->mark[i].at);
            vt_jw_str(w, "label", p->mark[i].label);
            vt_jw_end(w);
        }
        vt_jw_end(w);
    }
    if (p->sync)
        vt_jw_str(w, "sync", p->sync);
    vt_jw_end(w);
}

void vt_page_plot(struct vt_buf *b, const struct vt_plot *p)
{
    struct vt_buf json = {0};
    struct vt_jw w;

    vt_jw_init(&w, &json, NULL);
    vt_plot_json(&w, NULL, p);
    b->failed |= json.failed;
    vt_buf_str(b, "<div class=\"chart\"");
    if (p->id) {
        vt_buf_str(b, " id=\"");
        vt_page_text(b, p->id);
        vt_buf_str(b, "\"");
    }
    vt_buf_str(b, "><script type=\"application/json\">");
    for (size_t i = 0; i < json.len; i++) /* "</script>" in a name must not end it */
        if (json.data[i] == '<')
            vt_buf_str(b, "\\u003c");
        else
            vt_buf_char(b, json.data[i]);
    vt_buf_str(b, "</script></div>\n");
    vt_buf_free(&json);
}

void vt_page_plots_begin(struct vt_buf *b)
{
    vt_buf_str(b, "<div class=\"charts\">\n");
}

void vt_page_plots_end(struct vt_buf *b)
{
    vt_buf_str(b, "</div>\n");
}

size_t vt_cdf_percentiles(double p[VT_CDF_POINTS])
{
    const double whole = VT_CDF_POINTS - 1;

    /* Both ends are flat on the sine's way up, so points lie closer there: where the
     * tail is, which is what one looks for. */
    for (size_t i = 0; i < VT_CDF_POINTS; i++)
        p[i] = 50 - 50 * cos((double)i / whole * 3.14159265358979323846);
    p[VT_CDF_POINTS - 1] = 100;
    return VT_CDF_POINTS;
}
