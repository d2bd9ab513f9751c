/* table_tex.c - table 1: what simulators take, for LaTeX with booktabs. */
#include "validate/figures/figures.h"

static void put_tex(struct vt_buf *b, const char *text)
{
    for (; *text; text++) {
        if (strchr("&%$#_{}", *text))
            vt_buf_char(b, '\\');
        if (*text == '\\' || *text == '~' || *text == '^')
            vt_buf_char(b, '-');
        else
            vt_buf_char(b, *text);
    }
}

static int put_row(struct vt_buf *b, const struct fig_set *s,
                   const struct fig_simulator *sim, struct vt_err *err)
{
    double took[3], real = 0, speedup;
    bool any = false;
    int rc = fig_runtime_quartiles(took, &any, s, sim->name, false, err);

    if (rc == VT_OK)
        rc = fig_real_seconds(&real, s, sim->name, err);
    if (rc != VT_OK || !any)
        return rc;
    put_tex(b, sim->display);
    speedup = took[1] > 0 ? real / took[1] : 0;
    if (took[1] > 0)
        vt_buf_printf(b, " & %.1f & %.*f$\\times$ \\\\\n", took[1], speedup < 10,
                      speedup);
    else
        vt_buf_printf(b, " & %.1f & -- \\\\\n", took[1]);
    return VT_OK;
}

int fig_runtime_table(struct vt_buf *b, const struct fig_set *s,
                      const struct fig_simulators *sims, struct vt_err *err)
{
    int rc = VT_OK;

    if (s->n_runtimes == 0)
        return vt_fail(err, VT_ECHECK, "insufficient data");
    vt_buf_str(b, "\\begin{tabular}{lrr}\n\\toprule\n"
                  "Simulator & Median Runtime (s) & Speedup vs. Real \\\\\n"
                  "\\midrule\n");
    for (size_t k = 0; k < sims->n && rc == VT_OK; k++)
        rc = put_row(b, s, &sims->of[k], err);
    vt_buf_str(b, "\\bottomrule\n\\end{tabular}\n");
    return rc == VT_OK && b->failed ? vt_nomem(err) : rc;
}
