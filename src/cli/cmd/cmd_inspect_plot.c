/* cmd_inspect_plot.c - vtwin inspect calibrate and plot: a capture beside models. */
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cmd/inspect.h"

/* ---- calibrate -------------------------------------------------------- */

static int dump_samples(struct inspect_case *c, const char *path, struct vt_err *err)
{
    static const char *const names[] = {"source", "replay", "knobfit"};
    const struct vt_view *v[3];
    struct vt_buf b = {0};
    int rc = inspect_add_knob_fit(c, err);

    if (rc == VT_OK) {
        v[0] = &c->captured;
        v[1] = &c->model[0].view;
        v[2] = &c->model[c->n - 1].view;
        rc = vt_samples_json(&b, v, names, VT_COUNT(v), err);
    }
    if (rc == VT_OK)
        rc = vt_write_file(path, &b, err);
    vt_buf_free(&b);
    return rc;
}

static int check_band(const struct inspect_case *c, bool json, struct vt_err *err)
{
    struct vt_buf b = {0};
    struct vt_band x;
    int rc = vt_within(err, vt_band(&x, &c->captured, &c->model[0].view, err), "%s",
                       c->path);

    if (rc != VT_OK)
        return rc;
    x.captured = c->path;
    if (json)
        vt_band_json(&b, &x);
    else
        vt_band_table(&b, &x);
    rc = cli_print(&b, err);
    if (rc == VT_OK && !x.pass)
        rc = vt_fail(err, VT_ECHECK,
                     "the model's band is farther from the capture's than a second "
                     "run's would be");
    return rc;
}

/* tolerance: below 0: as far as a second run would be. */
static int check_all(const struct inspect_case *c, double tolerance, bool json,
                     struct vt_err *err)
{
    struct vt_calibration k;
    struct vt_buf b = {0};
    int rc = vt_calibrate(&k, &c->captured, &c->model[0].view, tolerance, err);

    if (rc != VT_OK)
        return rc;
    k.captured = c->path;
    if (json)
        vt_calibration_json(&b, &k);
    else
        vt_calibration_table(&b, &k);
    rc = cli_print(&b, err);
    if (rc != VT_OK || k.pass)
        return rc;
    if (tolerance < 0)
        return vt_fail(
            err, VT_ECHECK,
            "the model is farther from the capture than a second run would be");
    return vt_fail(err, VT_ECHECK, "the model is farther from the capture than %g %%",
                   100 * tolerance);
}

int inspect_calibrate(const struct opt_args *a, struct vt_err *err)
{
    const struct inspect_options *o = a->options;
    double tolerance = opt_given(a, &o->tolerance) ? o->tolerance : -1;
    struct cli_report report;
    struct inspect_case c;
    int rc;

    if ((rc = opt_exclude(a, &o->band, &o->tolerance, err)))
        return rc;
    if ((rc = inspect_case_open(&c, inspect_trace(a, &report), a, err)) ||
        (rc = inspect_add_given(&c, o, err)))
        goto out;
    if (c.n > 1) {
        rc = vt_fail(err, VT_EINPUT, "calibrate takes one --profile or --latency");
        goto out;
    }
    if (o->dump_samples && (rc = dump_samples(&c, o->dump_samples, err)))
        goto out;
    rc =
        o->band ? check_band(&c, o->json, err) : check_all(&c, tolerance, o->json, err);
out:
    inspect_case_close(&c);
    return rc;
}

/* ---- plot ------------------------------------------------------------- */

static int load_steps(struct inspect_case *c, const char *path, struct vt_err *err)
{
    struct vt_steps s;
    int rc = path ? vt_steps_load(&s, path, err) : VT_OK;

    if (!path || rc != VT_OK)
        return rc;
    for (size_t i = 0; i < s.n && rc == VT_OK; i++)
        rc = vt_view_step(&c->captured, &s.step[i], err);
    vt_steps_free(&s);
    return rc;
}

struct drawing {
    struct vt_figures f;
    const struct vt_view **view;
    struct vt_summary *summary;
    char title[256];
};

static int drawing_open(struct drawing *d, const struct inspect_case *c,
                        struct vt_err *err)
{
    const struct vt_meta *m = &c->records.meta;
    const char *slash = strrchr(c->path, '/');
    const char *name = m->workload_name ? m->workload_name
                       : slash          ? slash + 1
                                        : c->path;

    d->view = calloc(c->n + 1, sizeof(*d->view));
    d->summary = calloc(c->n + 1, sizeof(*d->summary));
    if (!d->view || !d->summary)
        return vt_nomem(err);
    d->view[0] = &c->captured;
    d->summary[0] = c->model[0].measured;
    for (size_t i = 0; i < c->n; i++) {
        d->view[i + 1] = &c->model[i].view;
        d->summary[i + 1] = c->model[i].summary;
    }
    snprintf(d->title, sizeof(d->title), "%s%s%s%s%s, %zu requests", name,
             m->model ? ", " : "", m->model ? m->model : "", m->gpu ? " on " : "",
             m->gpu ? m->gpu : "", c->captured.n);
    d->f = (struct vt_figures){
        .view = d->view,
        .n_views = c->n + 1,
        .title = d->title,
        .scratch = cli_scratch(),
    };
    return VT_OK;
}

static int draw_page(const struct drawing *d, const char *path, struct vt_buf *told,
                     struct vt_err *err)
{
    int rc = vt_figures_page(&d->f, d->summary, path, err);

    if (rc == VT_OK)
        vt_buf_printf(told, "%s\n", path);
    return rc;
}

/* A figure that has nothing to show is told and left out. */
static int draw_format(const struct drawing *d, int figure, const char *dir,
                       const char *format, struct vt_buf *told, struct vt_err *err)
{
    struct vt_buf path = {0};
    int rc = VT_OK;

    if (strcmp(format, "html") == 0) {
        vt_buf_printf(&path, "%s/index.html", dir);
        rc = path.failed ? vt_nomem(err) : draw_page(d, path.data, told, err);
        vt_buf_free(&path);
        return rc;
    }
    for (int i = 0; vt_figure_names[i] && rc == VT_OK; i++) {
        const char *name = vt_figure_names[i];

        if (figure >= 0 && figure != i)
            continue;
        vt_buf_clear(&path);
        vt_buf_printf(&path, "%s/%s.%s", dir, name, format);
        rc = path.failed ? vt_nomem(err) : vt_figure_draw(&d->f, name, path.data, err);
        if (rc == VT_OK)
            vt_buf_printf(told, "%s\n", path.data);
        if (rc == VT_ECHECK) {
            fprintf(stderr, "vtwin: %s is left out: %s\n", name, err->msg);
            rc = VT_OK;
        }
    }
    vt_buf_free(&path);
    return rc;
}

/* Calls back for each of "pdf,svg,..."; with d NULL only checks them. */
static int each_format(const struct drawing *d, const struct inspect_options *o,
                       const char *dir, struct vt_buf *told, struct vt_err *err)
{
    static const char *const known[] = {"pdf", "svg", "png", "html", NULL};
    const char *list = o->format;
    int rc = VT_OK;

    while (*list && rc == VT_OK) {
        size_t len = strcspn(list, ",");
        const char *format = NULL;

        for (size_t i = 0; known[i]; i++)
            if (strlen(known[i]) == len && strncmp(known[i], list, len) == 0)
                format = known[i];
        if (!format)
            return vt_fail(err, VT_EINPUT,
                           "--format: '%.*s' is none of pdf, svg, png, html", (int)len,
                           list);
        if (d)
            rc = draw_format(d, o->figure, dir, format, told, err);
        list += len + (list[len] == ',');
    }
    return rc;
}

static int draw_all(const struct drawing *d, const struct inspect_options *o,
                    struct vt_buf *told, struct vt_err *err)
{
    const char *out = o->out;
    char *made = NULL;
    int rc;

    if (vt_ends_with(out, ".html"))
        return draw_page(d, out, told, err);
    if (vt_ends_with(out, ".pdf") || vt_ends_with(out, ".svg") ||
        vt_ends_with(out, ".png")) {
        rc = vt_figure_draw(
            &d->f, o->figure >= 0 ? vt_figure_names[o->figure] : "itl-survival", out,
            err);
        if (rc == VT_OK)
            vt_buf_printf(told, "%s\n", out);
        return rc == VT_ECHECK ? vt_fail(err, VT_EINPUT, "%s", err->msg) : rc;
    }
    rc = vt_make_dirs(out, &made, err);
    if (rc == VT_OK)
        rc = each_format(d, o, out, told, err);
    if (rc != VT_OK && made)
        rmdir(out); /* if it is still empty */
    free(made);
    return rc;
}

int inspect_plot(const struct opt_args *a, struct vt_err *err)
{
    const struct inspect_options *o = a->options;
    struct cli_report report;
    struct inspect_case c = {0};
    struct drawing d = {0};
    struct vt_buf told = {0};
    int rc;

    if (!o->out)
        return vt_fail(
            err, VT_EINPUT,
            "where to? -o takes a directory, or a .html, .pdf, .svg or .png");
    if ((rc = each_format(NULL, o, NULL, NULL, err)) ||
        (rc = inspect_case_open(&c, inspect_trace(a, &report), a, err)) ||
        (rc = load_steps(&c, inspect_steps(o, &report), err)) ||
        (rc = inspect_add_given(&c, o, err)) || (rc = inspect_add_trace_fit(&c, err)) ||
        (rc = inspect_add_knob_fit(&c, err)) || (rc = drawing_open(&d, &c, err)) ||
        (rc = draw_all(&d, o, &told, err)))
        goto out;
    rc = cli_print(&told, err);
out:
    free(d.view);
    free(d.summary);
    vt_buf_free(&told);
    inspect_case_close(&c);
    return rc;
}
