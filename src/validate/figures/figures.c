/* figures.c - the table of figures, and everything that is made of a results
 * directory. */
#include "validate/figures/figures.h"

/* ---- who is shown ------------------------------------------------------- */

/* All that occur; with --paper without those that the paper leaves out. */
static int all_simulators(struct fig_simulators *out, const struct fig_set *s,
                          const struct vt_validate_figures *job, struct vt_err *err)
{
    int rc = fig_simulators(out, s, err);

    for (size_t k = out->n; rc == VT_OK && job->paper && k-- > 0;)
        if (out->of[k].listed)
            fig_simulators_drop(out, out->of[k].name);
    return rc;
}

static int shown_simulators(struct fig_simulators *out, const struct fig_set *s,
                            const struct vt_validate_figures *job, struct vt_err *err)
{
    int rc = all_simulators(out, s, job, err);

    for (size_t i = 0; i < job->n_exclude; i++)
        fig_simulators_drop(out, job->exclude[i]);
    return rc;
}

/* ---- the figures -------------------------------------------------------- */

typedef int bars_maker(struct fig_bars *b, const struct fig_set *s, struct vt_err *err);

static int make_bars(struct fig_picture *p, const struct fig_set *s,
                     const struct vt_validate_figures *job, bars_maker *make,
                     struct vt_err *err)
{
    struct fig_simulators sims;
    struct fig_bars *b = calloc(1, sizeof(*b));
    int rc = b ? shown_simulators(&sims, s, job, err) : vt_nomem(err);

    if (rc == VT_OK) {
        b->sims = &sims;
        rc = make(b, s, err);
    }
    if (rc == VT_OK)
        rc = fig_bars_script(p, b, err);
    free(b);
    return rc;
}

static int make_1(struct fig_picture *p, const struct fig_set *s,
                  const struct vt_validate_figures *job, struct vt_err *err)
{
    return make_bars(p, s, job, fig1_bars, err);
}

static int make_2(struct fig_picture *p, const struct fig_set *s,
                  const struct vt_validate_figures *job, struct vt_err *err)
{
    return make_bars(p, s, job, fig2_bars, err);
}

static int make_3(struct fig_picture *p, const struct fig_set *s,
                  const struct vt_validate_figures *job, struct vt_err *err)
{
    return make_bars(p, s, job, fig3_bars, err);
}

static int make_4(struct fig_picture *p, const struct fig_set *s,
                  const struct vt_validate_figures *job, bool moe, struct vt_err *err)
{
    struct fig_simulators sims;
    struct fig_bars *b = calloc(1, sizeof(*b));
    const char *model = NULL;
    char label[24], title[64];
    int rc = b ? shown_simulators(&sims, s, job, err) : vt_nomem(err);

    if (rc == VT_OK) {
        b->sims = &sims;
        rc = fig4_bars(b, s, moe, &model, err);
    }
    if (rc == VT_OK) {
        fig_model_label(label, sizeof(label), model);
        snprintf(title, sizeof(title), "E2E mean, %s", label);
        b->title = title;
        rc = fig_bars_script(p, b, err);
    }
    free(b);
    return rc;
}

static int make_4a(struct fig_picture *p, const struct fig_set *s,
                   const struct vt_validate_figures *job, struct vt_err *err)
{
    return make_4(p, s, job, false, err);
}

static int make_4b(struct fig_picture *p, const struct fig_set *s,
                   const struct vt_validate_figures *job, struct vt_err *err)
{
    return make_4(p, s, job, true, err);
}

static int make_5(struct fig_picture *p, const struct fig_set *s,
                  const struct vt_validate_figures *job, struct vt_err *err)
{
    struct fig_point point[FIG_MAX_SIMS];
    struct fig_simulators sims;
    size_t n = 0;
    int rc = all_simulators(&sims, s, job, err);

    if (rc == VT_OK)
        rc = fig5_points(point, &n, &sims, s, err);
    return rc == VT_OK ? fig_points_script(p, point, n, err) : rc;
}

/* Of two simulators, whatever else is left out. */
static int make_6(struct fig_picture *p, const struct fig_set *s,
                  const struct vt_validate_figures *job, struct vt_err *err)
{
    static const char *const two[] = {"blis-roofline", "blis-trained-physics"};
    struct fig_simulators all, sims = {.n = 0};
    struct fig_bars *b = calloc(1, sizeof(*b));
    int rc = b ? fig_simulators(&all, s, err) : vt_nomem(err);

    (void)job;
    for (size_t i = 0; rc == VT_OK && i < VT_COUNT(two); i++)
        for (size_t k = 0; k < all.n; k++)
            if (strcmp(all.of[k].name, two[i]) == 0)
                sims.of[sims.n++] = all.of[k];
    if (rc == VT_OK && sims.n < VT_COUNT(two))
        rc = vt_fail(err, VT_ECHECK, "insufficient data");
    if (rc == VT_OK) {
        b->sims = &sims;
        rc = fig6_bars(b, s, err);
    }
    if (rc == VT_OK)
        rc = fig_bars_script(p, b, err);
    free(b);
    return rc;
}

/* To add a figure: write its make function, add a row and a line to docs/validate.md.
 * Order here is the order in the report. */
static const struct fig_kind kinds[] = {
    {"fig1_model_sensitivity", "Model sensitivity", make_1},
    {"fig2_hardware_portability", "Hardware portability", make_2},
    {"fig3_workload_sensitivity", "Workload sensitivity", make_3},
    {"fig4a_config_dense", "Configurations of a dense model", make_4a},
    {"fig4b_config_moe", "Configurations of a mixture of experts", make_4b},
    {"fig5_pareto", "Error against runtime", make_5},
    {"fig6_blis_roofline_vs_trained", "BLIS: roofline against trained", make_6},
};

/* ---- files -------------------------------------------------------------- */

static int write_file(const struct vt_validate_figures *job, const char *name,
                      const char *ending, const struct vt_buf *b, struct vt_err *err)
{
    struct vt_buf path = {0};
    int rc;

    vt_buf_printf(&path, "%s/%s.%s", job->output_dir, name, ending);
    rc = path.failed ? vt_nomem(err) : vt_write_file(path.data, b, err);
    vt_buf_free(&path);
    return rc;
}

static int draw_files(const struct vt_validate_figures *job, const struct fig_kind *k,
                      const struct vt_script *script, struct vt_buf *svg,
                      struct vt_err *err)
{
    static const char *const format[] = {"pdf", "png"};
    int rc = VT_OK;

    for (size_t i = 0; i < VT_COUNT(format) && rc == VT_OK; i++) {
        struct vt_buf bytes = {0};

        rc = vt_script_draw(script, format[i], &bytes, err);
        if (rc == VT_OK)
            rc = write_file(job, k->name, format[i], &bytes, err);
        vt_buf_free(&bytes);
    }
    return rc == VT_OK ? vt_script_draw(script, "svg", svg, err) : rc;
}

/* One figure; what becomes of it is noted and told, and does not stop others. */
static void draw_one(struct fig_drawn *d, const struct fig_set *s,
                     const struct vt_validate_figures *job)
{
    struct fig_picture p = {.width_in = 0};
    struct vt_err err = {.msg = ""};
    int rc = d->kind->make(&p, s, job, &err);

    if (rc == VT_OK) {
        struct vt_script script = {.name = d->kind->name,
                                   .text = p.script.data,
                                   .width_in = p.width_in,
                                   .height_in = p.height_in,
                                   .scratch = job->scratch};

        rc = draw_files(job, d->kind, &script, &d->svg, &err);
    }
    vt_buf_free(&p.script);
    d->result = rc == VT_OK       ? VT_DRAWN_OK
                : rc == VT_ECHECK ? VT_DRAWN_SKIPPED
                                  : VT_DRAWN_FAILED;
    snprintf(d->why, sizeof(d->why), "%.*s", (int)sizeof(d->why) - 1,
             rc == VT_OK ? "" : err.msg);
    if (job->made)
        job->made(job->user, d->kind->name, d->result, d->why);
}

/* The table or the page, which rc says is in b. */
static void finish_text(const struct vt_validate_figures *job, const char *name,
                        const char *ending, const struct vt_buf *b, int rc,
                        size_t *n_failed, struct vt_err *err)
{
    if (rc == VT_OK)
        rc = write_file(job, name, ending, b, err);
    *n_failed += rc != VT_OK && rc != VT_ECHECK;
    if (job->made)
        job->made(job->user, name,
                  rc == VT_OK       ? VT_DRAWN_OK
                  : rc == VT_ECHECK ? VT_DRAWN_SKIPPED
                                    : VT_DRAWN_FAILED,
                  rc == VT_OK ? "" : err->msg);
}

static int make_all(const struct fig_set *s, const struct vt_validate_figures *job,
                    size_t *n_failed, struct vt_err *err)
{
    struct fig_drawn drawn[VT_COUNT(kinds)] = {0};
    struct fig_simulators sims;
    struct vt_buf table = {0}, page = {0};
    struct vt_err why = {.msg = ""};
    int rc = all_simulators(&sims, s, job, err);

    if (rc != VT_OK)
        return rc;
    for (size_t i = 0; i < VT_COUNT(kinds); i++) {
        drawn[i].kind = &kinds[i];
        draw_one(&drawn[i], s, job);
        *n_failed += drawn[i].result == VT_DRAWN_FAILED;
    }
    rc = fig_runtime_table(&table, s, &sims, &why);
    finish_text(job, "table1_runtime", "tex", &table, rc, n_failed, &why);
    rc = fig_page(&page, s, &sims, drawn, VT_COUNT(drawn), &why);
    finish_text(job, "report", "html", &page, rc, n_failed, &why);
    for (size_t i = 0; i < VT_COUNT(kinds); i++)
        vt_buf_free(&drawn[i].svg);
    vt_buf_free(&table);
    vt_buf_free(&page);
    return VT_OK;
}

int vt_validate_figures(const struct vt_validate_figures *job, size_t *n_failed,
                        struct vt_err *err)
{
    struct fig_set s = {0};
    int rc = fig_load(&s, job, err);

    *n_failed = 0;
    if (rc == VT_OK && s.n_errors == 0)
        rc = vt_fail(err, VT_EINPUT, "%s/error_records.csv has no rows",
                     job->results_dir);
    if (rc == VT_OK)
        rc = vt_make_dirs(job->output_dir, NULL, err);
    if (rc == VT_OK)
        rc = make_all(&s, job, n_failed, err);
    fig_set_free(&s);
    return rc;
}
