/* groups.c - which error records become which bars: figures 1, 2, 3 and 6. */
#include <math.h>

#include "validate/figures/figures.h"

void fig_bars_clear(struct fig_bars *b)
{
    const struct fig_simulators *sims = b->sims;

    *b = (struct fig_bars){.sims = sims, .height_in = 3.2};
    b->n_panels = FIG_MAX_PANELS;
    b->metric[0] = FIG_E2E_MEAN;
    b->metric[1] = FIG_TTFT_MEAN;
    b->metric[2] = FIG_ITL_MEAN;
    for (size_t p = 0; p < FIG_MAX_PANELS; p++)
        for (size_t i = 0; i < FIG_MAX_PLACES; i++)
            for (size_t k = 0; k < FIG_MAX_SIMS; k++)
                b->value[p][i][k] = (double)NAN;
}

size_t fig_bars_count(const struct fig_bars *b, size_t panel)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n_places; i++)
        for (size_t k = 0; k < b->sims->n; k++)
            n += isfinite(b->value[panel][i][k]) ? 1 : 0;
    return n;
}

/* ---- selecting ---------------------------------------------------------- */

/* What a figure takes: under which text a row's bar stands (NULL: nowhere), in which
 * order texts stand, and whose models are left out, which it then says. */
struct taken {
    const char *(*place)(const struct fig_set *s, const struct fig_where *w);
    size_t (*rank)(const char *text);
    bool (*has_model)(const struct fig_set *s, const char *model);
    enum { PICK_FIRST, PICK_MEDIAN } pick;
};

static const char *place_of(const struct taken *t, const struct fig_set *s,
                            const struct fig_error *e)
{
    return e->stage == FIG_SUMMARY ? t->place(s, &e->at) : NULL;
}

static size_t rank_among(const char *text, const char *const *known, size_t n)
{
    size_t i = 0;

    while (i < n && strcmp(text, known[i]) != 0)
        i++;
    return i;
}

static bool is_usual_hardware(const struct fig_set *s, const struct fig_where *w)
{
    if (!w->hardware || !s->hardware)
        return !w->hardware && !s->hardware;
    return strcmp(w->hardware, s->hardware) == 0;
}

static bool is_usual_workload(const struct fig_set *s, const struct fig_where *w)
{
    return strcmp(fig_workload_family(w->workload), s->workload) == 0;
}

static bool is_default(const struct fig_where *w)
{
    return strcmp(w->tag, "default") == 0;
}

static bool has_known(const struct fig_set *s, const char *model)
{
    return !s->paper || fig_model_find(model);
}

static bool has_any(const struct fig_set *s, const char *model)
{
    (void)s;
    (void)model;
    return true;
}

/* Of the models it knows, the paper compares workloads of these only. */
static bool has_workloads(const struct fig_set *s, const char *model)
{
    const struct fig_model *m = fig_model_find(model);

    return m ? m->in_workloads : !s->paper;
}

static const char *by_model(const struct fig_set *s, const struct fig_where *w)
{
    return is_usual_hardware(s, w) && is_usual_workload(s, w) && is_default(w)
               ? w->model
               : NULL;
}

static const char *by_hardware(const struct fig_set *s, const struct fig_where *w)
{
    return w->hardware && is_usual_workload(s, w) && is_default(w) && w->dp <= 1
               ? fig_hardware_label(w->hardware)
               : NULL;
}

static const char *const paper_workloads[] = {"general", "codegen", "roleplay",
                                              "reasoning"};

/* Here general-lite is not general: its requests are shorter, which is the subject. */
static const char *by_workload(const struct fig_set *s, const struct fig_where *w)
{
    bool of_paper = rank_among(w->workload, paper_workloads,
                               VT_COUNT(paper_workloads)) < VT_COUNT(paper_workloads);

    return is_usual_hardware(s, w) && is_default(w) && w->dp <= 1 &&
                   (of_paper || !s->paper)
               ? w->workload
               : NULL;
}

static const char *by_any_model(const struct fig_set *s, const struct fig_where *w)
{
    (void)s;
    return w->model;
}

/* ---- placing ------------------------------------------------------------ */

struct places { /* distinct texts; they belong to the set */
    const char *of[FIG_MAX_PLACES];
    size_t n;
};

static bool places_have(const struct places *p, const char *text)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->of[i], text) == 0)
            return true;
    return false;
}

/* Known texts in their order, then others by name. */
static void places_add(struct places *p, const char *text, const struct taken *t)
{
    size_t k = p->n++;

    for (; k > 0; k--) {
        size_t mine = t->rank(text), other = t->rank(p->of[k - 1]);

        if (mine > other || (mine == other && strcmp(text, p->of[k - 1]) > 0))
            break;
        p->of[k] = p->of[k - 1];
    }
    p->of[k] = text;
}

bool fig_bars_has(const struct fig_bars *b, const struct fig_where *w)
{
    for (size_t k = 0; k < b->sims->n; k++)
        if (strcmp(b->sims->of[k].name, w->simulator) == 0)
            return true;
    return false;
}

/* What the figure shows, and what of it there is no room or no wish for. */
static void find_places(struct places *p, struct places *left, const struct fig_bars *b,
                        const struct fig_set *s, const struct taken *t)
{
    *p = *left = (struct places){0};
    for (size_t i = 0; i < s->n_errors; i++) {
        const struct fig_error *e = &s->error[i];
        const char *text = place_of(t, s, e);
        bool shown;

        if (!text || !fig_bars_has(b, &e->at) || places_have(p, text))
            continue;
        shown = t->has_model(s, e->at.model);
        if (shown && p->n < FIG_MAX_PLACES) {
            places_add(p, text, t);
            continue;
        }
        text = shown ? text : e->at.model;
        if (left->n < FIG_MAX_PLACES && !places_have(left, text))
            places_add(left, text, t);
    }
}

static void name_left_out(struct fig_bars *b, const struct places *left)
{
    struct vt_buf text = {.max = sizeof(b->left_out) - 16};
    size_t n = 0;

    for (; n < left->n; n++) {
        size_t before = text.len;

        vt_buf_printf(&text, "%s%s", n > 0 ? ", " : "left out: ", left->of[n]);
        if (text.failed) {
            text.len = before;
            break;
        }
    }
    if (left->n > 0)
        snprintf(b->left_out, sizeof(b->left_out), "%.*s", (int)text.len,
                 text.data ? text.data : "");
    if (n < left->n)
        snprintf(b->left_out + text.len, sizeof(b->left_out) - text.len,
                 " and %zu more", left->n - n);
    vt_buf_free(&text);
}

static int one_value(double *out, const struct fig_set *s, const struct taken *t,
                     const char *text, const char *simulator, int metric,
                     struct vt_err *err)
{
    struct values x = {0};
    int rc = VT_OK;

    for (size_t i = 0; i < s->n_errors && rc == VT_OK; i++) {
        const struct fig_error *e = &s->error[i];
        const char *here;

        if (e->metric != metric || strcmp(e->at.simulator, simulator) != 0)
            continue;
        here = place_of(t, s, e);
        if (!here || strcmp(here, text) != 0 || !t->has_model(s, e->at.model))
            continue;
        rc = values_add(&x, e->mape, err);
        if (t->pick == PICK_FIRST)
            break;
    }
    *out = values_quantile(&x, 50);
    free(x.v);
    return rc;
}

static int fill_bars(struct fig_bars *b, const struct places *at,
                     const struct fig_set *s, const struct taken *t, struct vt_err *err)
{
    int rc = VT_OK;

    b->n_places = at->n;
    for (size_t i = 0; i < at->n; i++)
        b->at[i] = (double)i;
    for (size_t p = 0; p < b->n_panels; p++)
        for (size_t i = 0; i < at->n; i++)
            for (size_t k = 0; k < b->sims->n && rc == VT_OK; k++)
                rc = one_value(&b->value[p][i][k], s, t, at->of[i], b->sims->of[k].name,
                               b->metric[p], err);
    if (rc == VT_OK && fig_bars_count(b, 0) + fig_bars_count(b, 1) == 0)
        rc = vt_fail(err, VT_ECHECK, "insufficient data");
    return rc;
}

/* ---- the figures -------------------------------------------------------- */

static size_t hardware_rank(const char *text)
{
    static const char *const known[] = {"H100", "A100", "L40S"};

    return rank_among(text, known, VT_COUNT(known));
}

/* A lite one stands behind what it is a lite one of. */
static size_t workload_rank(const char *text)
{
    const char *family = fig_workload_family(text);

    return 2 * rank_among(family, paper_workloads, VT_COUNT(paper_workloads)) +
           (strcmp(family, text) != 0);
}

static int make_bars(struct fig_bars *b, const struct fig_set *s, const struct taken *t,
                     struct vt_err *err)
{
    struct places at, left;

    fig_bars_clear(b);
    find_places(&at, &left, b, s, t);
    name_left_out(b, &left);
    for (size_t i = 0; i < at.n; i++)
        if (t->rank == fig_model_rank)
            fig_model_label(b->label[i], sizeof(b->label[i]), at.of[i]);
        else
            snprintf(b->label[i], sizeof(b->label[i]), "%s", at.of[i]);
    if (t->rank == fig_model_rank)
        fig_labels_apart(b->label, at.of, at.n);
    return fill_bars(b, &at, s, t, err);
}

int fig1_bars(struct fig_bars *b, const struct fig_set *s, struct vt_err *err)
{
    static const struct taken models = {by_model, fig_model_rank, has_known,
                                        PICK_FIRST};
    int rc = make_bars(b, s, &models, err);

    b->noted = true;
    return rc;
}

int fig2_bars(struct fig_bars *b, const struct fig_set *s, struct vt_err *err)
{
    static const struct taken gpus = {by_hardware, hardware_rank, has_any, PICK_MEDIAN};

    return make_bars(b, s, &gpus, err);
}

int fig3_bars(struct fig_bars *b, const struct fig_set *s, struct vt_err *err)
{
    static const struct taken workloads = {by_workload, workload_rank, has_workloads,
                                           PICK_MEDIAN};
    int rc = make_bars(b, s, &workloads, err);

    b->height_in = 4;
    return rc;
}

int fig6_bars(struct fig_bars *b, const struct fig_set *s, struct vt_err *err)
{
    static const struct taken models = {by_any_model, fig_model_rank, has_known,
                                        PICK_MEDIAN};

    return make_bars(b, s, &models, err);
}
