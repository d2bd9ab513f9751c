/* figures.c - the table of figures, the script around each, and where it goes. */
#include <errno.h>
#include <unistd.h>

#include "report/figures/figures.h"

static const struct figure_kind kinds[] = {
    {"itl-survival", "Gaps between tokens: how many are longer", figure_itl_survival},
    {"itl-qq", "Gaps between tokens: quantile against quantile", figure_itl_qq},
    {"itl-means", "Gaps between tokens against means of requests", figure_itl_means},
    {"ttft-prompt", "Time to first token against prompt length", figure_ttft_prompt},
    {"step-shape", "Time of a step against the tokens in it", figure_step_shape},
    {"timeline", "Requests over time", figure_timeline},
};

const struct figure_kind *figure_kinds(size_t *n)
{
    *n = VT_COUNT(kinds);
    return kinds;
}

const char *const vt_figure_names[] = {
    "itl-survival", "itl-qq",   "itl-means", "ttft-prompt",
    "step-shape",   "timeline", NULL};

/* ---- script ----------------------------------------------------------- */

/* Identifiers in an SVG begin with its name, so that several fit into one page. */
static void put_svg_name(struct vt_buf *b, const char *name)
{
    vt_buf_str(b, " name '");
    for (; *name; name++)
        vt_buf_char(b, *name == '-' ? '_' : *name);
    vt_buf_str(b, "'");
}

static void put_terminal(struct vt_buf *b, const char *name, const char *format,
                         double aspect)
{
    double high = aspect > 0 ? aspect : 0.6;

    if (strcmp(format, "pdf") == 0) {
        vt_buf_printf(b,
                      "set terminal pdfcairo noenhanced size 20cm,%.2fcm "
                      "font 'sans,11' linewidth 1.0\n",
                      20 * high);
    } else if (strcmp(format, "png") == 0) {
        vt_buf_printf(b,
                      "set terminal pngcairo noenhanced size 1280,%.0f "
                      "font 'sans,14' linewidth 1.6\n",
                      1280 * high);
    } else {
        vt_buf_printf(b,
                      "set terminal svg noenhanced size 960,%.0f dynamic "
                      "font 'sans-serif,13' linewidth 1.2 background '#ffffff'",
                      960 * high);
        put_svg_name(b, name);
        vt_buf_char(b, '\n');
    }
}

static void put_preamble(struct vt_buf *b, const struct figure_kind *k,
                         const char *subtitle)
{
    vt_buf_str(b,
               "set encoding utf8\n"
               "set border 3 lc rgb '#777777' lw 0.8\n"
               "set tics nomirror out scale 0.6 tc rgb '#333333'\n"
               "set grid lc rgb '#e2e2e2' lt 1 lw 0.5 back\n"
               "set key below center horizontal Left reverse spacing 1.25 samplen 2.2 "
               "width 1 tc rgb '#222222'\n"
               "set lmargin 11\nset rmargin 3\nset tmargin 4.6\n"
               "set label 1 ");
    vt_gnuplot_string(b, k->title);
    vt_buf_str(b,
               " at graph 0, graph 1 offset 0, char 2.9 font ',17' tc rgb '#111111'\n"
               "set label 2 ");
    vt_gnuplot_string(b, subtitle);
    vt_buf_str(b,
               " at graph 0, graph 1 offset 0, char 1.4 font ',12' tc rgb '#666666'\n");
}

/* ---- files ------------------------------------------------------------ */

enum { DATA, SCRIPT, LOG, PICTURE, N_FILES };

struct place { /* a directory of its own for one figure's files */
    char dir[512];
    char path[N_FILES][600];
};

static int place_open(struct place *p, const char *scratch, struct vt_err *err)
{
    static const char *const name[N_FILES] = {"data", "script", "log", "picture"};
    char dir[sizeof(p->dir)];

    if (snprintf(dir, sizeof(dir), "%s/vtwin-figure-XXXXXX", scratch) >=
        (int)sizeof(dir))
        return vt_fail(err, VT_EINPUT,
                       "the path of the temporary directory is too long");
    if (!mkdtemp(dir))
        return vt_fail(err, VT_EIO, "%s: %s", dir, strerror(errno));
    memcpy(p->dir, dir, sizeof(dir));
    for (int i = 0; i < N_FILES; i++)
        snprintf(p->path[i], sizeof(p->path[i]), "%s/%s", dir, name[i]);
    return VT_OK;
}

static void place_close(struct place *p)
{
    for (int i = 0; i < N_FILES; i++)
        unlink(p->path[i]);
    rmdir(p->dir);
}

/* ---- drawing ---------------------------------------------------------- */

struct subject { /* what is drawn */
    const struct vt_figures *f;
    const struct vt_load_curve *load; /* NULL: none */
    const struct vt_chart *chart;     /* NULL: none */
};

/* Draws into the place's picture. */
static int draw(const struct subject *s, const struct figure_kind *k,
                const char *format, struct place *p, struct vt_err *err)
{
    struct figure g = {
        .f = s->f, .load = s->load, .chart = s->chart, .data_path = p->path[DATA]};
    struct vt_buf script = {0};
    int rc = k->make(&g, err);

    if (rc == VT_OK)
        rc = vt_write_file(p->path[DATA], &g.data, err);
    if (rc == VT_OK) {
        put_terminal(&script, k->name, format, g.aspect);
        vt_buf_str(&script, "set output ");
        vt_gnuplot_string(&script, p->path[PICTURE]);
        vt_buf_char(&script, '\n');
        put_preamble(&script, k, s->f->title);
        vt_buf_add(&script, g.script.data, g.script.len);
        rc = g.script.failed ? vt_nomem(err)
                             : vt_write_file(p->path[SCRIPT], &script, err);
    }
    if (rc == VT_OK)
        rc = gnuplot_run(p->path[SCRIPT], p->path[LOG], err);
    vt_buf_free(&g.data);
    vt_buf_free(&g.script);
    vt_buf_free(&g.plot);
    vt_buf_free(&script);
    return rc;
}

/* A PDF tells when it was made; the same input is to give the same bytes. */
static void forget_date(struct vt_buf *pdf)
{
    static const char mark[] = "/CreationDate (D:", date[] = "20000101000000";
    size_t n = sizeof(mark) - 1, digits = sizeof(date) - 1;

    for (size_t i = 0; i + n + digits <= pdf->len; i++)
        if (memcmp(pdf->data + i, mark, n) == 0)
            memcpy(pdf->data + i + n, date, digits);
}

static int read_picture(const struct place *p, struct vt_buf *out, struct vt_err *err)
{
    int rc = vt_read_file(p->path[PICTURE], (size_t)256 << 20, out, err);

    if (rc == VT_OK)
        forget_date(out);
    return rc;
}

static int draw_to(const struct subject *s, const struct figure_kind *k,
                   const char *format, struct vt_buf *out, struct vt_err *err)
{
    struct place p;
    int rc = place_open(&p, s->f->scratch, err);

    if (rc != VT_OK)
        return rc;
    rc = draw(s, k, format, &p, err);
    if (rc == VT_OK)
        rc = read_picture(&p, out, err);
    place_close(&p);
    return rc;
}

int figure_svg(const struct vt_figures *f, const struct figure_kind *k,
               struct vt_buf *out, struct vt_err *err)
{
    struct subject s = {.f = f};

    return draw_to(&s, k, "svg", out, err);
}

static int draw_file(const struct subject *s, const struct figure_kind *k,
                     const char *path, struct vt_err *err)
{
    const char *format = strrchr(path, '.');
    struct vt_buf picture = {0};
    int rc;

    if (!format || (strcmp(format, ".pdf") != 0 && strcmp(format, ".svg") != 0 &&
                    strcmp(format, ".png") != 0))
        return vt_fail(err, VT_EINPUT, "%s: a figure is a .pdf, .svg or .png", path);
    rc = draw_to(s, k, format + 1, &picture, err);
    if (rc == VT_OK)
        rc = vt_write_file(path, &picture, err);
    vt_buf_free(&picture);
    return rc;
}

int vt_figure_draw(const struct vt_figures *f, const char *name, const char *path,
                   struct vt_err *err)
{
    struct subject s = {.f = f};

    for (size_t i = 0; i < VT_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return draw_file(&s, &kinds[i], path, err);
    return vt_fail(err, VT_EINPUT, "no figure '%s'", name);
}

int vt_load_curve_draw(const struct vt_load_curve *c, const char *path,
                       struct vt_err *err)
{
    static const struct figure_kind kind = {"load", "Latency against load",
                                            figure_load};
    struct vt_figures f = {.title = c->title, .scratch = c->scratch};
    struct subject s = {.f = &f, .load = c};

    return draw_file(&s, &kind, path, err);
}

int vt_chart_draw(const struct vt_chart *c, const char *path, struct vt_err *err)
{
    struct figure_kind kind = {"chart", c->heading, figure_chart};
    struct vt_figures f = {.title = c->title, .scratch = c->scratch};
    struct subject s = {.f = &f, .chart = c};

    return draw_file(&s, &kind, path, err);
}

/* ---- scripts of others -------------------------------------------------- */

/* Fonts and lines are as thick as in print, whatever the format: gnuplot counts 96
 * pixels to the inch where text is concerned. */
static void put_script_terminal(struct vt_buf *b, const struct vt_script *s,
                                const char *format)
{
    const double dpi = 300, font = dpi / 96, unit = dpi / 72;

    if (strcmp(format, "pdf") == 0) {
        vt_buf_printf(b,
                      "set terminal pdfcairo noenhanced size %.3fin,%.3fin "
                      "font 'serif,9' fontscale 0.75\n",
                      s->width_in, s->height_in);
    } else if (strcmp(format, "png") == 0) {
        vt_buf_printf(b,
                      "set terminal pngcairo noenhanced size %.0f,%.0f font 'serif,9' "
                      "fontscale %.4f linewidth %.4f pointscale %.4f\n",
                      s->width_in * dpi, s->height_in * dpi, font, unit, unit);
    } else {
        vt_buf_printf(b,
                      "set terminal svg noenhanced size %.0f,%.0f dynamic "
                      "font 'serif,9' fontscale 1.3333 background '#ffffff'",
                      s->width_in * 96, s->height_in * 96);
        put_svg_name(b, s->name);
        vt_buf_char(b, '\n');
    }
}

/* gnuplot's "serif:Bold" is no font of SVG's. */
static void settle_fonts(struct vt_buf *out, const char *svg)
{
    static const struct {
        const char *from, *to;
    } face[] = {{":Bold\"", "\" font-weight=\"bold\""},
                {":Italic\"", "\" font-style=\"italic\""}};

    while (*svg) {
        size_t i = 0, len = strcspn(svg, ":");

        vt_buf_add(out, svg, len);
        svg += len;
        while (i < VT_COUNT(face) &&
               strncmp(svg, face[i].from, strlen(face[i].from)) != 0)
            i++;
        if (i < VT_COUNT(face)) {
            vt_buf_str(out, face[i].to);
            svg += strlen(face[i].from);
        } else if (*svg) {
            vt_buf_char(out, *svg++);
        }
    }
}

static int read_script_picture(const struct place *p, const char *format,
                               struct vt_buf *out, struct vt_err *err)
{
    struct vt_buf bytes = {0};
    int rc = read_picture(p, &bytes, err);

    if (rc == VT_OK && strcmp(format, "svg") == 0)
        settle_fonts(out, bytes.len > 0 ? bytes.data : "");
    else if (rc == VT_OK)
        vt_buf_add(out, bytes.data, bytes.len);
    vt_buf_free(&bytes);
    return rc == VT_OK && out->failed ? vt_nomem(err) : rc;
}

int vt_script_draw(const struct vt_script *s, const char *format, struct vt_buf *out,
                   struct vt_err *err)
{
    struct vt_buf script = {0};
    struct place p;
    int rc = place_open(&p, s->scratch, err);

    if (rc != VT_OK)
        return rc;
    put_script_terminal(&script, s, format);
    vt_buf_str(&script, "set output ");
    vt_gnuplot_string(&script, p.path[PICTURE]);
    vt_buf_char(&script, '\n');
    vt_buf_str(&script, s->text);
    rc = vt_write_file(p.path[SCRIPT], &script, err);
    if (rc == VT_OK)
        rc = gnuplot_run(p.path[SCRIPT], p.path[LOG], err);
    if (rc == VT_OK)
        rc = read_script_picture(&p, format, out, err);
    place_close(&p);
    vt_buf_free(&script);
    return rc;
}
