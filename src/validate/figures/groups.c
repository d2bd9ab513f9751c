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

/* What a figure takes, and under which text: NULL leaves the row out. */
typedef const char *place_of(const struct fig_set *s, const struct fig_where *w);

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

/* With the paper's models at hand, others are left out. */
static bool is_shown(const struct fig_set *s, const struct fig_where *w)
{
    return !s->only_known || fig_model_find(w->model);
}

static const char *by_model(const struct fig_set *s, const struct fig_where *w)
{
    return is_usual_hardware(s, w) && is_usual_workload(s, w) && is_default(w) &&
                   is_shown(s, w)
               ? w->model
               : NULL;
}

static const char *by_hardware(const struct fig_set *s, const struct fig_where *w)
{
    return w->hardware && is_usual_workload(s, w) && is_default(w) && w->dp <= 1
               ? fig_hardware_label(w->hardware)
               : NULL;
}

static const char *by_workload(const struct fig_set *s, const struct fig_where *w)
{
    const struct fig_model *m = fig_model_find(w->model);

    if (!is_usual_hardware(s, w) || !is_default(w) || w->dp > 1)
        return NULL;
    return (m ? m->in_workloads : !s->only_known) ? fig_workload_family(w->workload)
                                                  : NULL;
}

static const char *by_any_model(const struct fig_set *s, const struct fig_where *w)
{
    return is_shown(s, w) ? w->model : NULL;
}

/* ---- placing ------------------------------------------------------------ */

struct places { /* distinct texts; they belong to the set */
    const char *of[FIG_MAX_PLACES];
    size_t n;
    size_t n_left; /* too many to show */
};

bool fig_bars_has(const struct fig_bars *b, const struct fig_where *w)
{
    for (size_t k = 0; k < b->sims->n; k++)
        if (strcmp(b->sims->of[k].name, w->simulator) == 0)
            return true;
    return false;
}

/* Known texts in their order, then others by name. */
typedef size_t rank_of(const char *text);

static void find_places(struct places *p, const struct fig_bars *b,
                        const struct fig_set *s, place_of *place, rank_of *rank)
{
    *p = (struct places){0};
    for (size_t i = 0; i < s->n_errors; i++) {
        const struct fig_error *e = &s->error[i];
        const char *text = e->stage == FIG_SUMMARY ? place(s, &e->at) : NULL;
        size_t k = 0;

        if (!text || !fig_bars_has(b, &e->at))
            continue;
        while (k < p->n && strcmp(p->of[k], text) != 0)
            k++;
        if (k < p->n || p->n == FIG_MAX_PLACES) {
            p->n_left += k == p->n;
            continue;
        }
        for (; k > 0; k--) {
            size_t mine = rank(text), other = rank(p->of[k - 1]);

            if (mine > other || (mine == other && strcmp(text, p->of[k - 1]) > 0))
                break;
            p->of[k] = p->of[k - 1];
        }
        p->of[k] = text;
        p->n++;
    }
}

enum pick { PICK_FIRST, PICK_MEDIAN };

static int one_value(double *out, const struct fig_set *s, place_of *place,
                     const char *text, const char *simulator, int metric,
                     enum pick pick, struct vt_err *err)
{
    struct values x = {0};
    int rc = VT_OK;

    for (size_t i = 0; i < s->n_errors && rc == VT_OK; i++) {
        const struct fig_error *e = &s->error[i];
        const char *here;

        if (e->metric != metric || e->stage != FIG_SUMMARY ||
            strcmp(e->at.simulator, simulator) != 0)
            continue;
        here = place(s, &e->at);
        if (!here || strcmp(here, text) != 0)
            continue;
        rc = values_add(&x, e->mape, err);
        if (pick == PICK_FIRST)
            break;
    }
    *out = values_quantile(&x, 50);
    free(x.v);
    return rc;
}

static int fill_bars(struct fig_bars *b, const struct places *at,
                     const struct fig_set *s, place_of *place, enum pick pick,
                     struct vt_err *err)
{
    int rc = VT_OK;

    b->n_places = at->n;
    for (size_t i = 0; i < at->n; i++)
        b->at[i] = (double)i;
    for (size_t p = 0; p < b->n_panels; p++)
        for (size_t i = 0; i < at->n; i++)
            for (size_t k = 0; k < b->sims->n && rc == VT_OK; k++)
                rc = one_value(&b->value[p][i][k], s, place, at->of[i],
                               b->sims->of[k].name, b->metric[p], pick, err);
    if (rc == VT_OK && fig_bars_count(b, 0) + fig_bars_count(b, 1) == 0)
        rc = vt_fail(err, VT_ECHECK, "insufficient data");
    return rc;
}

/* ---- the figures -------------------------------------------------------- */

static size_t rank_among(const char *text, const char *const *known, size_t n)
{
    size_t i = 0;

    while (i < n && strcmp(text, known[i]) != 0)
        i++;
    return i;
}

static size_t hardware_rank(const char *text)
{
    static const char *const known[] = {"H100", "A100", "L40S"};

    return rank_among(text, known, VT_COUNT(known));
}

static size_t workload_rank(const char *text)
{
    static const char *const known[] = {"general", "codegen", "roleplay", "reasoning"};

    return rank_among(text, known, VT_COUNT(known));
}

static int make_bars(struct fig_bars *b, const struct fig_set *s, place_of *place,
                     rank_of *rank, enum pick pick, struct vt_err *err)
{
    struct places at;

    fig_bars_clear(b);
    find_places(&at, b, s, place, rank);
    for (size_t i = 0; i < at.n; i++)
        if (rank == fig_model_rank)
            fig_model_label(b->label[i], sizeof(b->label[i]), at.of[i]);
        else
            snprintf(b->label[i], sizeof(b->label[i]), "%s", at.of[i]);
    return fill_bars(b, &at, s, place, pick, err);
}

int fig1_bars(struct fig_bars *b, const struct fig_set *s, struct vt_err *err)
{
    int rc = make_bars(b, s, by_model, fig_model_rank, PICK_FIRST, err);

    b->noted = true;
    return rc;
}

int fig2_bars(struct fig_bars *b, const struct fig_set *s, struct vt_err *err)
{
    return make_bars(b, s, by_hardware, hardware_rank, PICK_MEDIAN, err);
}

int fig3_bars(struct fig_bars *b, const struct fig_set *s, struct vt_err *err)
{
    int rc = make_bars(b, s, by_workload, workload_rank, PICK_MEDIAN, err);

    b->height_in = 4;
    return rc;
}

int fig6_bars(struct fig_bars *b, const struct fig_set *s, struct vt_err *err)
{
    return make_bars(b, s, by_any_model, fig_model_rank, PICK_MEDIAN, err);
}
