/* cmd_inspect_plot.c - vtwin inspect plot: captures beside models and other sources. */
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cmd/inspect.h"

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

/* ---- what is drawn ---------------------------------------------------- */

struct drawing {
    struct vt_figures f;
    const struct vt_view **view;
    struct vt_summary *summary;
    char title[256];
};

static void drawing_title(struct drawing *d, const struct inspect_case *c, bool alone)
{
    const struct vt_meta *m = &c->records.meta;
    const char *slash = strrchr(c->path, '/');
    const char *name = m->workload_name ? m->workload_name
                       : slash          ? slash + 1
                                        : c->path;

    if (!alone && m->model)
        snprintf(d->title, sizeof(d->title), "%s%s%s", m->model, m->gpu ? " on " : "",
                 m->gpu ? m->gpu : "");
    else
        snprintf(d->title, sizeof(d->title), "%s%s%s%s%s, %zu requests", name,
                 m->model ? ", " : "", m->model ? m->model : "", m->gpu ? " on " : "",
                 m->gpu ? m->gpu : "", c->captured.n);
}

/* The capture, other files' sources, models. */
static int drawing_open(struct drawing *d, const struct inspect_load *load,
                        struct vt_err *err)
{
    const struct inspect_case *c = &load->c;
    size_t n = 1 + load->n_sources + c->n, at = 1;
    int rc;

    d->view = calloc(n, sizeof(*d->view));
    d->summary = calloc(n, sizeof(*d->summary));
    if (!d->view || !d->summary)
        return vt_nomem(err);
    d->view[0] = &c->captured;
    rc = vt_summary_view(&d->summary[0], &c->captured, err);
    for (size_t i = 0; i < load->n_sources && rc == VT_OK; i++, at++) {
        d->view[at] = &load->source[i].view;
        rc = vt_summary_view(&d->summary[at], d->view[at], err);
    }
    for (size_t i = 0; i < c->n; i++, at++) {
        d->view[at] = &c->model[i].view;
        d->summary[at] = c->model[i].summary;
    }
    drawing_title(d, c, load->name[0] == '\0');
    d->f = (struct vt_figures){
        .view = d->view,
        .n_views = n,
        .title = d->title,
        .scratch = cli_scratch(),
        .load = load->name[0] ? load->name : NULL,
    };
    return rc;
}

static void drawings_close(struct drawing *d, size_t n)
{
    for (size_t i = 0; d && i < n; i++) {
        free(d[i].view);
        free(d[i].summary);
    }
    free(d);
}

/* ---- drawing ---------------------------------------------------------- */

static int draw_page(const struct drawing *d, const char *path, struct vt_buf *told,
                     struct vt_err *err)
{
    int rc = vt_figures_page(&d->f, d->summary, path, err);

    if (rc == VT_OK)
        vt_buf_printf(told, "%s\n", path);
    return rc;
}

#define SEVERAL "comparison"

/* Several loads have one figure. */
static int figure_of(const struct drawing *d, const struct inspect_options *o)
{
    int i = 0;

    if (!d->f.next)
        return o->figure;
    while (strcmp(vt_figure_names[i], SEVERAL) != 0)
        i++;
    return i;
}

/* A figure that has nothing to show is told and left out. */
static int draw_format(const struct drawing *d, int figure, const char *dir,
                       const char *format, struct vt_buf *told, struct vt_err *err)
{
    struct vt_buf path = {0};
    int rc = VT_OK;

    if (strcmp(format, "html") == 0 && d->f.next)
        return VT_OK; /* a page is of one load */
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
            rc = draw_format(d, figure_of(d, o), dir, format, told, err);
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
        return d->f.next ? vt_fail(err, VT_EINPUT,
                                   "a page is of one load; %s has several: -o takes a "
                                   "directory, .pdf, .svg or .png",
                                   SEVERAL)
                         : draw_page(d, out, told, err);
    if (vt_ends_with(out, ".pdf") || vt_ends_with(out, ".svg") ||
        vt_ends_with(out, ".png")) {
        int figure = figure_of(d, o);

        rc = vt_figure_draw(
            &d->f, figure >= 0 ? vt_figure_names[figure] : "itl-survival", out, err);
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

/* A lone capture is set beside what calibrate would take and what is fitted to it. */
static int add_models(struct inspect_load *load, const struct inspect_options *o,
                      bool alone, struct vt_err *err)
{
    bool asked = o->profiles.n + o->models.n + o->old_models.n > 0;
    const char *fits = o->fits ? o->fits : alone ? "trace,knob" : "none";
    int rc = asked || alone ? inspect_add_given(&load->c, o, err) : VT_OK;

    while (*fits && rc == VT_OK) {
        size_t len = strcspn(fits, ",");

        if (len == strlen("trace") && strncmp(fits, "trace", len) == 0)
            rc = inspect_add_trace_fit(&load->c, err);
        else if (len == strlen("knob") && strncmp(fits, "knob", len) == 0)
            rc = inspect_add_knob_fit(&load->c, err);
        else if (len != strlen("none") || strncmp(fits, "none", len) != 0)
            rc = vt_fail(err, VT_EINPUT, "--fits: '%.*s' is none of trace, knob, none",
                         (int)len, fits);
        fits += len + (fits[len] == ',');
    }
    return rc;
}

static int check_plot(const struct inspect_options *o, size_t n_loads,
                      struct vt_err *err)
{
    if (n_loads > 1 && o->figure >= 0 &&
        strcmp(vt_figure_names[o->figure], SEVERAL) != 0)
        return vt_fail(err, VT_EINPUT, "--figure %s shows one load, not %zu",
                       vt_figure_names[o->figure], n_loads);
    return each_format(NULL, o, NULL, NULL, err);
}

int inspect_plot(const struct opt_args *a, struct vt_err *err)
{
    const struct inspect_options *o = a->options;
    struct inspect_loads l = {0};
    struct drawing *d = NULL;
    struct vt_buf told = {0};
    int rc;

    if (!o->out)
        return vt_fail(
            err, VT_EINPUT,
            "where to? -o takes a directory, or a .html, .pdf, .svg or .png");
    if ((rc = inspect_loads_open(&l, a, err)) || (rc = check_plot(o, l.n, err)) ||
        (rc = load_steps(&l.load[0].c,
                         inspect_steps(o, &l.load[0].report, l.load[0].c.path), err)))
        goto out;
    d = calloc(l.n, sizeof(*d));
    if (!d)
        rc = vt_nomem(err);
    for (size_t i = 0; i < l.n && rc == VT_OK; i++) {
        if ((rc = add_models(&l.load[i], o, a->n_operands == 2, err)) ||
            (rc = drawing_open(&d[i], &l.load[i], err)))
            break;
        if (i > 0)
            d[i - 1].f.next = &d[i].f;
    }
    if (rc == VT_OK)
        rc = draw_all(d, o, &told, err);
    if (rc == VT_OK)
        rc = cli_print(&told, err);
out:
    drawings_close(d, l.n);
    vt_buf_free(&told);
    inspect_loads_close(&l);
    return rc;
}
