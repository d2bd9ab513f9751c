/* figures.c - the table of figures, the script around each, and where it goes. */
#include "report/figures/figures.h"

/* To add a figure: write its make function, add a row here and a line to
 * docs/inspect.md. */
#define FIGURES(_)                                                                     \
    _("itl-survival", "Gaps between tokens: how many are longer", figure_itl_survival, \
      "A model whose curve falls away earlier promises tails that users will not "     \
      "get; "                                                                          \
      "one that lies on the captured curve down to the right has its stalls, too.")    \
    _("itl-qq", "Gaps between tokens: quantile against quantile", figure_itl_qq,       \
      "On the line gaps are as captured; below it on the right the longest gaps are "  \
      "predicted too short, off it by a factor everywhere every step is.")             \
    _("itl-means", "Gaps between tokens against means of requests", figure_itl_means,  \
      "A report of means only hides all that lies between the two curves: from such "  \
      "a report no tail of gaps can be learned.")                                      \
    _("ttft-prompt", "Time to first token against prompt length", figure_ttft_prompt,  \
      "The lower edge is what prompts cost, the height above it what they waited: a "  \
      "model that misses the edge has prefill wrong, one that misses the rest the "    \
      "load.")                                                                         \
    _("step-shape", "Time of a step against the tokens in it", figure_step_shape,      \
      "Where the model runs through the captured cloud steps are priced right; apart " \
      "from it at one end only, the data had few steps of that size.")                 \
    _("timeline", "Requests over time", figure_timeline,                               \
      "Requests that begin alike and drift apart towards the end say that the model "  \
      "serves at another speed; apart from the start, that arrivals differ.")          \
    _("comparison", "First tokens and gaps, side by side", figure_comparison,          \
      "A source that is right at one load and not at another has its queue wrong; a "  \
      "curve that ends early, its tail cut off.")

#define KIND(name, title, make, conclude) {name, title, make, conclude},
#define NAME(name, title, make, conclude) name,

static const struct figure_kind kinds[] = {FIGURES(KIND)};
const char *const vt_figure_names[] = {FIGURES(NAME) NULL};

const struct figure_kind *figure_kinds(size_t *n)
{
    *n = VT_COUNT(kinds);
    return kinds;
}

/* ---- script ----------------------------------------------------------- */

static void put_preamble(struct vt_buf *b, const char *title, const char *subtitle)
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
    vt_gnuplot_string(b, title);
    vt_buf_str(b,
               " at graph 0, graph 1 offset 0, char 2.9 font ',17' tc rgb '#111111'\n"
               "set label 2 ");
    vt_gnuplot_string(b, subtitle);
    vt_buf_str(b,
               " at graph 0, graph 1 offset 0, char 1.4 font ',12' tc rgb '#666666'\n");
}

int figure_draw(struct figure *g, const struct figure_kind *k, const char *format,
                struct vt_buf *out, struct vt_err *err)
{
    struct vt_script s = {.name = k->name, .scratch = g->f->scratch};
    struct vt_buf text = {0};
    int rc = k->make(g, err);

    if (rc == VT_OK) {
        vt_buf_str(&text, FIGURE_DATA " << END\n");
        vt_buf_add(&text, g->data.data, g->data.len);
        vt_buf_str(&text, "END\n");
        put_preamble(&text, k->title, g->f->title);
        vt_buf_add(&text, g->script.data, g->script.len);
        text.failed |= g->data.failed || g->script.failed;
        s.text = text.data;
        s.aspect = g->aspect > 0 ? g->aspect : 0.6;
        rc = text.failed ? vt_nomem(err) : vt_script_draw(&s, format, out, err);
    }
    vt_buf_free(&g->data);
    vt_buf_free(&g->script);
    vt_buf_free(&g->plot);
    vt_buf_free(&text);
    return rc;
}

static int draw_file(struct figure *g, const struct figure_kind *k, const char *path,
                     struct vt_err *err)
{
    const char *format = strrchr(path, '.');
    struct vt_buf picture = {0};
    int rc;

    if (!format || (strcmp(format, ".pdf") != 0 && strcmp(format, ".svg") != 0 &&
                    strcmp(format, ".png") != 0))
        return vt_fail(err, VT_EINPUT, "%s: a figure is a .pdf, .svg or .png", path);
    rc = figure_draw(g, k, format + 1, &picture, err);
    if (rc == VT_OK)
        rc = vt_write_file(path, &picture, err);
    vt_buf_free(&picture);
    return rc;
}

int vt_figure_draw(const struct vt_figures *f, const char *name, const char *path,
                   struct vt_err *err)
{
    struct figure g = {.f = f};

    for (size_t i = 0; i < VT_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return draw_file(&g, &kinds[i], path, err);
    return vt_fail(err, VT_EINPUT, "no figure '%s'", name);
}

int vt_load_curve_draw(const struct vt_load_curve *c, const char *path,
                       struct vt_err *err)
{
    static const struct figure_kind kind = {"load", "Latency against load", figure_load,
                                            NULL};
    struct vt_figures f = {.title = c->title, .scratch = c->scratch};
    struct figure g = {.f = &f, .load = c};

    return draw_file(&g, &kind, path, err);
}

int vt_chart_draw(const struct vt_chart *c, const char *path, struct vt_err *err)
{
    struct figure_kind kind = {"chart", c->heading, figure_chart, NULL};
    struct vt_figures f = {.title = c->title, .scratch = c->scratch};
    struct figure g = {.f = &f, .chart = c};

    return draw_file(&g, &kind, path, err);
}
