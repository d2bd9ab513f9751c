/* fuzz_figures.c - whatever the bytes, a CSV of errors, runtimes or metadata is read
 * and grouped or refused in one line. The first byte says which it is. */
#include "validate/figures/figures.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct fig_set *s)
{
    static struct fig_bars bars;
    struct fig_simulators sims;
    struct fig_point point[FIG_MAX_SIMS];
    struct vt_buf page = {0};
    const char *model;
    struct vt_err err;
    size_t n;

    if (fig_prepare(s, s->n_errors % 2 == 0, &err) != VT_OK ||
        fig_simulators(&sims, s, &err) != VT_OK)
        return;
    bars.sims = &sims;
    if (fig1_bars(&bars, s, &err) == VT_OK) {
        struct fig_picture p = {.width_in = 0};

        (void)!fig_bars_script(&p, &bars, &err);
        vt_buf_free(&p.script);
    }
    (void)!fig2_bars(&bars, s, &err);
    (void)!fig3_bars(&bars, s, &err);
    (void)!fig4_bars(&bars, s, false, &model, &err);
    (void)!fig5_points(point, &n, &sims, s, &err);
    (void)!fig_page(&page, s, &sims, NULL, 0, &err);
    vt_buf_free(&page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int (*const read[])(struct fig_set *, struct vt_lines *, struct vt_err *) = {
        fig_read_errors, fig_read_runtimes, fig_read_metadata};
    struct fig_set s = {0};
    struct vt_lines *l = NULL;
    struct vt_err err = {.msg = ""};
    int rc = VT_EINPUT;

    if (size > 0)
        rc = vt_lines_from(&l, "f", data + 1, size - 1, &err);
    if (rc == VT_OK)
        rc = read[data[0] % VT_COUNT(read)](&s, l, &err);
    if (rc == VT_OK)
        use(&s);
    else if (strchr(err.msg, '\n'))
        abort();
    vt_lines_close(l);
    fig_set_free(&s);
    return 0;
}
