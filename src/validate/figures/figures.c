/* figures.c - the table of figures, and everything that is made of a results
 * directory. */
#include "validate/figures/figures.h"

/* ---- the figures -------------------------------------------------------- */

static int config_bars(struct fig_bars *b, const struct fig_set *s, bool moe,
                       struct vt_err *err)
{
    const char *model = NULL;
    char label[24];
    int rc = fig4_bars(b, s, moe, &model, err);

    if (rc != VT_OK)
        return rc;
    fig_model_label(label, sizeof(label), model);
    snprintf(b->title, sizeof(b->title), "E2E mean, %s", label);
    return VT_OK;
}

static int dense_bars(struct fig_bars *b, const struct fig_set *s, struct vt_err *err)
{
    return config_bars(b, s, false, err);
}

static int moe_bars(struct fig_bars *b, const struct fig_set *s, struct vt_err *err)
{
    return config_bars(b, s, true, err);
}

enum shown { SHOWN, ALL_OF_THEM, ONLY_BLIS };

/* To add a figure: write the function that makes its bars, add a row and a line to
 * docs/validate.md. Order here is the order in the report. */
struct fig_kind {
    const char *name, *title;
    fig_bars_maker *bars; /* NULL: points */
    enum shown shown;
};
static const struct fig_kind kinds[] = {
    {"fig1_model_sensitivity", "Model sensitivity", fig1_bars, SHOWN},
    {"fig2_hardware_portability", "Hardware portability", fig2_bars, SHOWN},
    {"fig3_workload_sensitivity", "Workload sensitivity", fig3_bars, SHOWN},
    {"fig4a_config_dense", "Configurations of a dense model", dense_bars, SHOWN},
    {"fig4b_config_moe", "Configurations of a mixture of experts", moe_bars, SHOWN},
    {"fig5_pareto", "Error against runtime", NULL, ALL_OF_THEM},
    {"fig6_blis_roofline_vs_trained", "BLIS: roofline against trained", fig6_bars,
     ONLY_BLIS},
};

static bool is_left_out(const struct fig_simulator *sim, enum shown shown,
                        const struct vt_validate_figures *job)
{
    if (shown == ONLY_BLIS)
        return strcmp(sim->name, "blis-roofline") != 0 &&
               strcmp(sim->name, "blis-trained-physics") != 0;
    if (job->paper && sim->listed)
        return true;
    for (size_t i = 0; i < job->n_exclude && shown == SHOWN; i++)
        if (strcmp(sim->name, job->exclude[i]) == 0)
            return true;
    return false;
}

static int choose_simulators(struct fig_simulators *out, const struct fig_set *s,
                             enum shown shown, const struct vt_validate_figures *job,
                             struct vt_err *err)
{
    struct fig_simulators all;
    int rc = fig_simulators(&all, s, err);

    out->n = 0;
    for (size_t i = 0; rc == VT_OK && i < all.n; i++)
        if (!is_left_out(&all.of[i], shown, job))
            out->of[out->n++] = all.of[i];
    if (rc == VT_OK && shown == ONLY_BLIS) {
        if (out->n < 2)
            return vt_fail(err, VT_ECHECK, "insufficient data");
        all.of[0] = out->of[0]; /* what was trained stands behind what was not */
        out->of[0] = out->of[1];
        out->of[1] = all.of[0];
    }
    return rc;
}

static int make_picture(struct fig_picture *p, const struct fig_kind *kind,
                        const struct fig_set *s, const struct vt_validate_figures *job,
                        struct vt_err *err)
{
    struct fig_point point[FIG_MAX_SIMS];
    struct fig_simulators sims;
    struct fig_bars *b;
    size_t n = 0;
    int rc = choose_simulators(&sims, s, kind->shown, job, err);

    if (rc != VT_OK)
        return rc;
    if (!kind->bars) {
        rc = fig5_points(point, &n, &sims, s, err);
        return rc == VT_OK ? fig_points_script(p, point, n, err) : rc;
    }
    b = calloc(1, sizeof(*b));
    if (!b)
        return vt_nomem(err);
    b->sims = &sims;
    rc = kind->bars(b, s, err);
    if (rc == VT_OK)
        rc = fig_bars_script(p, b, err);
    snprintf(p->note, sizeof(p->note), "%s", b->left_out);
    free(b);
    return rc;
}

/* ---- files -------------------------------------------------------------- */

static int write_file(const struct vt_validate_figures *job, const char *name,
                      const char *ending, const struct vt_buf *b, struct vt_err *err)
{
    char file[64];

    snprintf(file, sizeof(file), "%s.%s", name, ending);
    return vt_write_file_in(job->output_dir, file, b, err);
}

/* What became of a file does not stop others. */
static enum vt_drawn tell_result(const struct vt_validate_figures *job,
                                 const char *name, int rc, const char *note,
                                 const struct vt_err *err)
{
    enum vt_drawn result = rc == VT_OK       ? VT_DRAWN_OK
                           : rc == VT_ECHECK ? VT_DRAWN_SKIPPED
                                             : VT_DRAWN_FAILED;

    if (job->made)
        job->made(job->user, name, result, rc == VT_OK ? note : err->msg);
    return result;
}

static void draw_one(struct fig_drawn *d, const struct fig_kind *kind,
                     const struct fig_set *s, const struct vt_validate_figures *job)
{
    static const char *const format[] = {"pdf", "png"};
    struct fig_picture p = {.width_in = 0};
    struct vt_err err = {.msg = ""};
    int rc = make_picture(&p, kind, s, job, &err);
    const struct vt_script script = {.name = kind->name,
                                     .text = p.script.data,
                                     .width_in = p.width_in,
                                     .height_in = p.height_in,
                                     .scratch = job->scratch};

    for (size_t i = 0; i < VT_COUNT(format) && rc == VT_OK; i++) {
        struct vt_buf bytes = {0};

        rc = vt_script_draw(&script, format[i], &bytes, &err);
        if (rc == VT_OK)
            rc = write_file(job, kind->name, format[i], &bytes, &err);
        vt_buf_free(&bytes);
    }
    if (rc == VT_OK)
        rc = vt_script_draw(&script, "svg", &d->svg, &err);
    vt_buf_free(&p.script);
    d->result = tell_result(job, d->name, rc, p.note, &err);
    snprintf(d->why, sizeof(d->why), "%.*s", (int)sizeof(d->why) - 1,
             rc == VT_OK ? p.note : err.msg);
}

/* The table or the page, which rc says is in b. */
static bool finish_text(const struct vt_validate_figures *job, const char *name,
                        const char *ending, const struct vt_buf *b, int rc,
                        struct vt_err *err)
{
    if (rc == VT_OK)
        rc = write_file(job, name, ending, b, err);
    return tell_result(job, name, rc, "", err) != VT_DRAWN_FAILED;
}

int vt_validate_figures(const struct vt_validate_figures *job, size_t *n_failed,
                        struct vt_err *err)
{
    struct fig_drawn drawn[VT_COUNT(kinds)] = {0};
    struct vt_buf table = {0}, page = {0};
    struct vt_err why = {.msg = ""};
    struct fig_simulators sims;
    struct fig_set s = {0};
    int rc = fig_load(&s, job, err), made;

    *n_failed = 0;
    if (rc == VT_OK && s.n_errors == 0)
        rc = vt_fail(err, VT_EINPUT, "%s/error_records.csv has no rows",
                     job->results_dir);
    if (rc || (rc = vt_make_dirs(job->output_dir, NULL, err)) ||
        (rc = choose_simulators(&sims, &s, ALL_OF_THEM, job, err)))
        goto out;
    for (size_t i = 0; i < VT_COUNT(kinds); i++) {
        drawn[i] = (struct fig_drawn){.name = kinds[i].name, .title = kinds[i].title};
        draw_one(&drawn[i], &kinds[i], &s, job);
        *n_failed += drawn[i].result == VT_DRAWN_FAILED;
    }
    made = fig_runtime_table(&table, &s, &sims, &why);
    *n_failed += !finish_text(job, "table1_runtime", "tex", &table, made, &why);
    made = fig_page(&page, &s, &sims, drawn, VT_COUNT(drawn), &why);
    *n_failed += !finish_text(job, "report", "html", &page, made, &why);
    if (made == VT_OK && job->report)
        rc = vt_write_file(job->report, &page, err);
    for (size_t i = 0; i < VT_COUNT(kinds); i++)
        vt_buf_free(&drawn[i].svg);
    vt_buf_free(&table);
    vt_buf_free(&page);
out:
    fig_set_free(&s);
    return rc;
}

int vt_validate_page(const char *results_dir, const char *path, struct vt_err *err)
{
    const struct vt_validate_figures job = {.results_dir = results_dir};
    struct fig_simulators sims;
    struct vt_buf page = {0};
    struct fig_set s = {0};
    int rc = fig_load(&s, &job, err);

    if (rc == VT_OK && s.n_errors > 0 &&
        (rc = choose_simulators(&sims, &s, ALL_OF_THEM, &job, err)) == VT_OK &&
        (rc = fig_page(&page, &s, &sims, NULL, 0, err)) == VT_OK)
        rc = vt_write_file(path, &page, err);
    vt_buf_free(&page);
    fig_set_free(&s);
    return rc;
}
