/* page.c - what was learned as one HTML page. */
#include "learn/learn.h"

#include <math.h>
#include <string.h>

static const char style[] =
    "body{font:15px/1.5 system-ui,sans-serif;color:#222;max-width:1120px;"
    "margin:2em auto;padding:0 1em}\n"
    "h1{font-size:1.5em;margin-bottom:0}h2{font-size:1.15em;margin-top:2em}\n"
    "p.sub{color:#666;margin-top:.2em}p.bad{color:#a00;font-weight:600}\n"
    "table{border-collapse:collapse;margin:1em 0;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.25em .6em;text-align:right;white-space:nowrap;border-bottom:1px "
    "solid #ddd}\n"
    "th:first-child,td:first-child,td.about{text-align:left}\n"
    "thead th{border-bottom:2px solid #777}tr.sum td{font-weight:600}\n"
    "tr.odd td{color:#999}figure{margin:1em 0}figure svg{width:85%;height:auto}\n";

/* ---- tables ------------------------------------------------------------- */

static void put_fact(struct vt_buf *b, const char *what, int digits, double v)
{
    vt_buf_printf(b, "<tr><td>%s</td><td>", what);
    if (v > 0)
        vt_buf_printf(b, "%.*f", digits, v);
    else
        vt_buf_str(b, "not known");
    vt_buf_str(b, "</td></tr>\n");
}

static void put_server(struct vt_buf *b, const struct vt_learn *l)
{
    const struct vt_meta *m = &l->engine;

    vt_buf_str(b, "<h2>Server</h2>\n<table><tbody>\n<tr><td>model</td><td>");
    vt_html_text(b, m->model ? m->model : "not told");
    vt_buf_str(b, "</td></tr>\n<tr><td>vLLM</td><td>");
    vt_html_text(b, m->vllm_version ? m->vllm_version : "not told");
    vt_buf_str(b, "</td></tr>\n");
    put_fact(b, "KV blocks", 0, m->num_gpu_blocks);
    put_fact(b, "tokens in a block", 0, m->block_size);
    put_fact(b, "max_model_len", 0, m->max_model_len);
    put_fact(b, "max_num_seqs", 0, m->max_num_seqs);
    put_fact(b, "max_num_batched_tokens", 0, m->max_num_batched_tokens);
    vt_buf_printf(b, "<tr><td>clock</td><td>%s</td></tr>\n",
                  vt_clock_name(l->fit.clock));
    put_fact(b, "ms a token of one stream, at first", 3, l->pace_ms[0]);
    put_fact(b, "ms a token of one stream, at last", 3, l->pace_ms[2]);
    vt_buf_str(b, "</tbody></table>\n");
}

static void put_errors(struct vt_buf *b, const struct vt_crossval_row *r,
                       const char *sign)
{
    const double v[] = {r->e2e, r->ttft,    r->ttft_p99,
                        r->itl, r->itl_p99, r->throughput};

    for (size_t i = 0; i < VT_COUNT(v); i++)
        vt_buf_printf(b, *sign ? "<td>%+.1f</td>" : "<td>%.1f</td>", v[i]);
}

static void put_sum(struct vt_buf *b, const char *name, const struct vt_crossval_row *r)
{
    vt_buf_printf(b,
                  "<tr class=sum><td>%s</td><td></td><td></td><td></td><td></td>"
                  "<td></td>",
                  name);
    put_errors(b, r, "");
    vt_buf_str(b, "</tr>\n");
}

static void put_loads(struct vt_buf *b, const struct vt_learn *l,
                      enum vt_learn_part part)
{
    vt_buf_str(b, "<table><thead><tr><th>load</th><th></th><th>requests</th>"
                  "<th>TTFT ms</th><th>ITL ms</th><th>E2E ms</th><th>E2E %</th>"
                  "<th>TTFT %</th><th>p99 %</th><th>ITL %</th><th>p99 %</th>"
                  "<th>req/s %</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < l->n; i++) {
        const struct vt_learn_load *q = &l->load[i];

        if (q->part != part)
            continue;
        vt_buf_printf(b,
                      "<tr%s><td>%s</td><td class=about>%s%s</td><td>%zu</td>"
                      "<td>%.1f</td><td>%.2f</td><td>%.0f</td>",
                      q->odd ? " class=odd" : "", q->name, q->about,
                      q->odd ? " (odd, left out)" : "", q->measured.n,
                      q->real.ttft.mean, q->real.itl.mean, q->real.e2e.mean);
        put_errors(b, &q->error, "+");
        vt_buf_str(b, "</tr>\n");
    }
}

/* ---- the figure --------------------------------------------------------- */

static void put_points(struct vt_buf *b, const struct vt_learn *l,
                       enum vt_learn_part part, size_t stat)
{
    /* mean and p99 */
    static const size_t of[] = {0, VT_N_PARTS - 1};

    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < VT_COUNT(of) && l->load[i].part == part; k++) {
            double x = vt_part_of(vt_stat_of(&l->load[i].real, stat), of[k]);
            double y = vt_part_of(vt_stat_of(&l->load[i].predicted, stat), of[k]);

            if (x > 0 && y > 0)
                vt_buf_printf(b, "%.6g %.6g\n", x, y);
        }
    vt_buf_str(b, "e\n");
}

/* Predicted over measured, each load's mean and p99. */
static void put_script(struct vt_buf *b, const struct vt_learn *l)
{
    static const size_t of[] = {0, 2, 3}; /* TTFT, ITL, E2E in vt_stat_rows */
    static const char *const colour[] = {"#c1272d", "#0072b2", "#1b7837"};

    vt_buf_str(b, "set logscale xy\nset key left top\nset grid lc rgb '#dddddd'\n"
                  "set xlabel 'measured, ms'\nset ylabel 'predicted, ms'\n"
                  "plot x with lines lc rgb '#888888' title 'as measured'");
    for (size_t i = 0; i < VT_COUNT(of); i++)
        vt_buf_printf(b,
                      ", '-' using 1:2 with points pt 6 ps 0.7 lc rgb '%s' notitle"
                      ", '-' using 1:2 with points pt 7 ps 0.9 lc rgb '%s' title "
                      "'%s, mean and p99'",
                      colour[i], colour[i], vt_stat_rows[of[i]].label);
    vt_buf_str(b, "\n");
    for (size_t i = 0; i < VT_COUNT(of); i++) {
        put_points(b, l, VT_LEARN_FITTED, of[i]);
        put_points(b, l, VT_LEARN_UNSEEN, of[i]);
    }
}

static int put_figure(struct vt_buf *b, const struct vt_learn *l, const char *scratch,
                      struct vt_err *err)
{
    struct vt_buf text = {0}, svg = {0};
    struct vt_script script = {.name = "learned", .aspect = 0.62, .scratch = scratch};
    int rc;

    put_script(&text, l);
    script.text = text.data;
    rc = text.failed ? vt_nomem(err) : vt_script_draw(&script, "svg", &svg, err);
    if (rc == VT_OK)
        vt_html_figure(b, "", &svg);
    if (rc == VT_EIO) { /* the page is worth something without gnuplot */
        vt_buf_str(b, "<p class=sub>Not drawn: ");
        vt_html_text(b, err->msg);
        vt_buf_str(b, "</p>\n");
        rc = VT_OK;
    }
    vt_buf_free(&text);
    vt_buf_free(&svg);
    return rc;
}

/* ---- the page ----------------------------------------------------------- */

int vt_learn_page(const struct vt_learn *l, const char *title, const char *scratch,
                  const char *path, struct vt_err *err)
{
    struct vt_buf b = {0};
    char subtitle[160];
    int rc;

    (void)snprintf(subtitle, sizeof(subtitle),
                   "by vtwin learn " VT_VERSION ": a %s model from %.0f s of load",
                   l->fit.kind, l->seconds);
    vt_html_begin(&b, title, style, subtitle);
    if (l->refusal[0]) {
        vt_buf_str(&b, "<p class=bad>Not to be trusted: ");
        vt_html_text(&b, l->refusal);
        vt_buf_str(&b, ".</p>\n");
    }
    put_server(&b, l);
    vt_buf_str(&b, "<h2>Loads that it has not seen</h2>\n<p class=sub>Predicted before "
                   "they were measured; errors of the prediction.</p>\n");
    put_loads(&b, l, VT_LEARN_UNSEEN);
    put_sum(&b, "median size", &l->median);
    put_sum(&b, "largest", &l->worst);
    vt_buf_str(&b, "</tbody></table>\n<h2>Loads that it was made from</h2>\n");
    put_loads(&b, l, VT_LEARN_FITTED);
    put_sum(&b, "median size", &l->fit.in);
    vt_buf_str(&b, "</tbody></table>\n<h2>Predicted and measured</h2>\n<p class=sub>"
                   "Full: loads that it has not seen; empty: those it was made "
                   "from.</p>\n");
    rc = put_figure(&b, l, scratch, err);
    vt_html_end(&b);
    if (rc == VT_OK)
        rc = vt_write_file(path, &b, err);
    vt_buf_free(&b);
    return rc;
}
