/* requests.c - figures of requests and of steps. */
#include <math.h>

#include "report/figures/figures.h"

/* So that a picture stays small however long the capture. */
enum { MOST_POINTS = 2500, MOST_BARS = 1200, MOST_GROUPS = 12, LEAST_OF_GROUP = 6 };

static size_t stride_of(size_t n, size_t most)
{
    return n / most + 1;
}

/* ---- TTFT against prompt length --------------------------------------- */

struct first {
    double tokens, ms;
};

static int by_tokens(const void *pa, const void *pb)
{
    const struct first *a = pa, *b = pb;

    if (a->tokens < b->tokens || a->tokens > b->tokens)
        return a->tokens < b->tokens ? -1 : 1;
    return a->ms < b->ms ? -1 : a->ms > b->ms;
}

static int by_ms(const void *pa, const void *pb)
{
    const struct first *a = pa, *b = pb;

    return a->ms < b->ms ? -1 : a->ms > b->ms;
}

/* First tokens by prompt length; the caller frees. */
static struct first *list_first(const struct vt_view *v, size_t *n)
{
    struct first *list = malloc((v->n + 1) * sizeof(*list));

    *n = 0;
    for (size_t i = 0; list && !v->only_samples && i < v->n; i++) {
        const struct vt_seen *q = &v->req[i];
        uint32_t tokens = q->prompt_tokens - q->cached_tokens;

        if (q->ttft_ns > 0)
            list[(*n)++] =
                (struct first){tokens > 0 ? tokens : 1, (double)q->ttft_ns / 1e6};
    }
    if (list)
        qsort(list, *n, sizeof(*list), by_tokens);
    return list;
}

static int put_first_tokens(struct figure *g, size_t view, struct span *x,
                            struct span *y, struct vt_err *err)
{
    const struct vt_view *v = g->f->view[view];
    char label[160];
    size_t n;
    struct first *list = list_first(v, &n);
    size_t groups = n / LEAST_OF_GROUP < MOST_GROUPS ? n / LEAST_OF_GROUP : MOST_GROUPS;

    if (!list)
        return vt_nomem(err);
    for (size_t i = 0; i < n; i++) {
        figure_span(x, list[i].tokens);
        figure_span(y, list[i].ms);
        if (view < 2 && i % stride_of(n, MOST_POINTS) == 0)
            figure_point(g, list[i].tokens, list[i].ms);
    }
    figure_curve(g,
                 view == 0 ? "using 1:2 with points pt 7 ps 0.6"
                           : "using 1:2 with points pt 6 ps 0.6 lw 1.1",
                 view == 0 ? FIGURE_GREY : figure_colour(view),
                 view == 0 ? v->label : NULL);
    /* The middle of each of up to a dozen groups of like length and equal size. */
    for (size_t k = 0; k < groups; k++) {
        size_t from = k * n / groups, to = (k + 1) * n / groups;
        double tokens = list[(from + to) / 2].tokens;

        qsort(&list[from], to - from, sizeof(*list), by_ms);
        figure_point(g, tokens, list[(from + to) / 2].ms);
    }
    snprintf(label, sizeof(label), "%s, median", v->label);
    figure_curve(
        g, view == 0 ? "using 1:2 with lines lw 3.2" : "using 1:2 with lines lw 2",
        figure_colour(view), label);
    free(list);
    return VT_OK;
}

int figure_ttft_prompt(struct figure *g, struct vt_err *err)
{
    struct span x = {0}, y = {0};
    int rc = VT_OK;

    for (size_t i = 0; i < g->f->n_views && rc == VT_OK; i++)
        rc = put_first_tokens(g, i, &x, &y, err);
    if (rc != VT_OK)
        return rc;
    if (g->n_blocks == 0)
        return vt_fail(err, VT_ECHECK, "there are no first tokens to show");
    figure_log_axis(g, 'x', x.lo, x.hi);
    figure_log_axis(g, 'y', y.lo, y.hi);
    vt_buf_str(&g->script, "set xlabel \"prompt tokens to compute (not cached)\\n \"\n"
                           "set ylabel 'time to first token (ms)'\n");
    g->aspect = 0.65;
    figure_plot(g);
    return VT_OK;
}

/* ---- step time against shape ------------------------------------------ */

static void put_steps(struct figure *g, size_t view, bool prompts, struct span *x,
                      struct span *y)
{
    static const char *const colour[2][2] = {{"#222222", "#b35900"},
                                             {"#0072b2", "#56b4e9"}};
    const struct vt_view *v = g->f->view[view];
    size_t stride = stride_of(v->n_steps, 2 * MOST_POINTS);
    char how[96], label[160];

    for (size_t i = 0; i < v->n_steps; i += stride) {
        const struct vt_seen_step *s = &v->step[i];
        double tokens = (double)s->decodes + s->prefill_tokens;
        double ms = (double)s->took_ns / 1e6;

        if ((s->prefills > 0) != prompts || tokens < 1 || ms <= 1e-5)
            continue;
        figure_point(g, tokens, ms);
        figure_span(x, tokens);
        figure_span(y, ms);
    }
    snprintf(how, sizeof(how), "using 1:2 with points pt %d ps %s lw 1.1",
             (prompts ? 8 : 6) + (view == 0), prompts ? "0.8" : "0.45");
    snprintf(label, sizeof(label), "%s, %s", v->label,
             prompts ? "with prompts" : "decode only");
    figure_curve(g, how, colour[view][prompts], label);
}

/* Captured steps if there are any, and the first model's. */
int figure_step_shape(struct figure *g, struct vt_err *err)
{
    struct span x = {0}, y = {0};

    for (size_t i = 0; i < g->f->n_views && i < 2; i++)
        for (int prompts = 0; prompts < 2; prompts++)
            put_steps(g, i, prompts != 0, &x, &y);
    if (g->n_blocks == 0)
        return vt_fail(err, VT_ECHECK, "there are no steps to show");
    figure_log_axis(g, 'x', x.lo, x.hi);
    figure_log_axis(g, 'y', y.lo, y.hi);
    vt_buf_str(&g->script, "set xlabel \"tokens in the step: one for each decoding "
                           "request, and those of prompts\\n \"\n"
                           "set ylabel 'result to result (ms)'\n");
    figure_plot(g);
    return VT_OK;
}

/* ---- timeline --------------------------------------------------------- */

struct change {
    double at_s;
    int by;
};

static int by_time(const void *pa, const void *pb)
{
    const struct change *a = pa, *b = pb;

    if (a->at_s < b->at_s || a->at_s > b->at_s)
        return a->at_s < b->at_s ? -1 : 1;
    return a->by - b->by;
}

static double seconds(vt_ns t)
{
    return (double)t / 1e9;
}

static double end_s(const struct vt_seen *q)
{
    return seconds(q->arrival_ns + q->ttft_ns + q->decode_ns);
}

static int put_in_flight(struct figure *g, const struct vt_view *v, struct vt_err *err)
{
    struct change *c = malloc((2 * v->n + 1) * sizeof(*c));
    size_t stride = stride_of(2 * v->n, 2 * MOST_POINTS);
    int now = 0;

    if (!c)
        return vt_nomem(err);
    for (size_t i = 0; i < v->n; i++) {
        c[2 * i] = (struct change){seconds(v->req[i].arrival_ns), 1};
        c[2 * i + 1] = (struct change){end_s(&v->req[i]), -1};
    }
    qsort(c, 2 * v->n, sizeof(*c), by_time);
    for (size_t i = 0; i < 2 * v->n; i++) {
        now += c[i].by;
        if (i % stride == 0 || i + 1 == 2 * v->n)
            figure_point(g, c[i].at_s, now);
    }
    free(c);
    return VT_OK;
}

int figure_timeline(struct figure *g, struct vt_err *err)
{
    const struct vt_view *v = g->f->view[0];
    size_t stride = stride_of(v->n, MOST_BARS);
    double last = 0;
    int rc = VT_OK;

    for (size_t k = 0; k < g->f->n_views; k++)
        for (size_t i = 0; i < g->f->view[k]->n; i++)
            last = fmax(last, end_s(&g->f->view[k]->req[i]));
    if (v->n == 0 || v->only_samples)
        return vt_fail(err, VT_ECHECK, "there are no requests to show");
    g->aspect = 0.75;
    vt_buf_printf(
        &g->script,
        "set multiplot\nset xrange [0:%.9g]\nset format x ''\n"
        "set bmargin at screen 0.46\nset yrange [-1:%zu]\n"
        "set ylabel 'request, by arrival (%s)'\n"
        "set key at graph 1, graph 1.13 right top horizontal Right noreverse\n",
        last * 1.01, v->n, v->label);
    /* One bar for each request: to its first token, and from there to its last. */
    for (size_t i = 0; i < v->n; i += stride)
        figure_point4(g, seconds(v->req[i].arrival_ns), (double)i,
                      seconds(v->req[i].ttft_ns), 0);
    figure_curve(g, "using 1:2:3:4 with vectors nohead lw 1.4", "#d55e00",
                 "arrival to first token");
    for (size_t i = 0; i < v->n; i += stride)
        figure_point4(g, seconds(v->req[i].arrival_ns + v->req[i].ttft_ns), (double)i,
                      seconds(v->req[i].decode_ns), 0);
    figure_curve(g, "using 1:2:3:4 with vectors nohead lw 1.4", "#7fb2d6",
                 "first token to last");
    figure_plot(g);
    vt_buf_str(&g->script, "unset label 1\nunset label 2\nset format x\n"
                           "set tmargin at screen 0.40\nset bmargin at screen 0.16\n"
                           "set yrange [0:*]\nset ylabel 'requests in flight'\n"
                           "set xlabel 'time (s)'\n"
                           "set key default\nset key at screen 0.5, screen 0.055 "
                           "center horizontal Left reverse samplen 2.2 width 1\n");
    for (size_t i = 0; i < g->f->n_views && rc == VT_OK; i++) {
        if (g->f->view[i]->only_samples)
            continue;
        rc = put_in_flight(g, g->f->view[i], err);
        figure_curve(
            g, i == 0 ? "using 1:2 with steps lw 2.4" : "using 1:2 with steps lw 1.3",
            figure_colour(i), g->f->view[i]->label);
    }
    figure_plot(g);
    vt_buf_str(&g->script, "unset multiplot\n");
    return rc;
}
