/* config.c - figure 4: one model under different configurations. */
#include <math.h>

#include "validate/figures/figures.h"

enum { TP, CHUNK, MEMORY, OFFLOAD, DP, N_KNOBS, MAX_VALUES = 8, MAX_MODELS = 64 };

static const char *const knob_titles[N_KNOBS] = {"TP", "Chunk Size", "GPU Mem (%)",
                                                 "KV Cache Offloading", "DP"};

struct knobs {
    double v[N_KNOBS];
};

static struct knobs knobs_of(const struct fig_where *w)
{
    return (struct knobs){{
        [TP] = w->tp > 0 ? w->tp : 1,
        [CHUNK] = w->mbt,
        [MEMORY] = round(w->gpu_mem * 1000) / 10,
        [OFFLOAD] = w->cpu_offload,
        [DP] = w->dp > 0 ? w->dp : 1,
    }};
}

/* ---- which rows --------------------------------------------------------- */

static bool is_candidate(const struct fig_set *s, const struct fig_error *e)
{
    return e->stage == FIG_SUMMARY && e->metric == FIG_E2E_MEAN && e->at.hardware &&
           s->hardware && strcmp(e->at.hardware, s->hardware) == 0 &&
           strcmp(fig_workload_family(e->at.workload), s->workload) == 0;
}

static bool is_of(const struct fig_set *s, const struct fig_error *e, const char *model)
{
    return is_candidate(s, e) && strcmp(e->at.model, model) == 0;
}

/* Whether an earlier row has the same tag. */
static bool is_repeated(const struct fig_set *s, size_t row)
{
    for (size_t i = row; i-- > 0;)
        if (is_of(s, &s->error[i], s->error[row].at.model) &&
            strcmp(s->error[i].at.tag, s->error[row].at.tag) == 0)
            return true;
    return false;
}

/* The model with most configurations; of equals the paper's fallback, then the first.
 */
static const char *choose_model(const struct fig_set *s, bool moe)
{
    const char *fallback = moe ? "Mixtral-8x7B" : "Llama-3.1-8B";
    const char *model[MAX_MODELS];
    size_t tags[MAX_MODELS] = {0}, n = 0, best = 0, k;

    for (size_t i = 0; i < s->n_errors; i++) {
        const char *name = s->error[i].at.model;

        if (!is_candidate(s, &s->error[i]) || fig_model_is_moe(name) != moe ||
            is_repeated(s, i))
            continue;
        for (k = 0; k < n && strcmp(model[k], name) != 0;)
            k++;
        if (k == MAX_MODELS)
            continue;
        n += k == n;
        model[k] = name;
        tags[k]++;
    }
    for (k = 1; k < n; k++)
        if (tags[k] > tags[best] ||
            (tags[k] == tags[best] && strstr(model[k], fallback)))
            best = k;
    return n > 0 ? model[best] : NULL;
}

/* ---- which values ------------------------------------------------------- */

struct tally { /* of one knob's values, ascending */
    double v[MAX_VALUES];
    size_t count[MAX_VALUES], n;
};

static void tally_add(struct tally *t, double v)
{
    size_t k = 0;

    while (k < t->n && t->v[k] < v)
        k++;
    if (k < t->n && fabs(t->v[k] - v) < 1e-9) {
        t->count[k]++;
        return;
    }
    if (t->n == MAX_VALUES)
        return;
    memmove(&t->v[k + 1], &t->v[k], (t->n - k) * sizeof(t->v[0]));
    memmove(&t->count[k + 1], &t->count[k], (t->n - k) * sizeof(t->count[0]));
    t->v[k] = v;
    t->count[k] = 1;
    t->n++;
}

static bool is_pinned(const struct knobs *k, const struct knobs *mode, int but)
{
    for (int i = 0; i < N_KNOBS; i++)
        if (i != but && fabs(k->v[i] - mode->v[i]) > 1e-9)
            return false;
    return true;
}

/* Values of a knob; with `mode` only where all others have theirs. */
static struct tally tally_of(const struct fig_bars *b, const struct fig_set *s,
                             const char *model, int knob, const struct knobs *mode)
{
    struct tally t = {.n = 0};

    for (size_t i = 0; i < s->n_errors; i++) {
        struct knobs k = knobs_of(&s->error[i].at);

        if (is_of(s, &s->error[i], model) && fig_bars_has(b, &s->error[i].at) &&
            (!mode || is_pinned(&k, mode, knob)))
            tally_add(&t, k.v[knob]);
    }
    return t;
}

/* ---- bars --------------------------------------------------------------- */

static int fill_place(struct fig_bars *b, size_t place, const struct fig_set *s,
                      const char *model, int knob, const struct knobs *want,
                      struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t m = 0; m < b->sims->n && rc == VT_OK; m++) {
        struct values x = {0};

        for (size_t i = 0; i < s->n_errors && rc == VT_OK; i++) {
            struct knobs k = knobs_of(&s->error[i].at);

            if (is_of(s, &s->error[i], model) && is_pinned(&k, want, -1) &&
                strcmp(s->error[i].at.simulator, b->sims->of[m].name) == 0)
                rc = values_add(&x, s->error[i].mape, err);
        }
        b->value[0][place][m] = values_quantile(&x, 50);
        free(x.v);
    }
    if (knob == OFFLOAD)
        snprintf(b->label[place], sizeof(b->label[place]), "%s",
                 want->v[knob] > 0 ? "on" : "off");
    else
        snprintf(b->label[place], sizeof(b->label[place]), "%g", want->v[knob]);
    return rc;
}

static int add_team(struct fig_bars *b, const struct fig_set *s, const char *model,
                    int knob, const struct knobs *mode, struct vt_err *err)
{
    struct tally t = tally_of(b, s, model, knob, mode);
    struct knobs want = *mode;
    int rc = VT_OK;

    if (t.n < 2 || b->n_places + t.n > FIG_MAX_PLACES)
        return VT_OK;
    b->team[b->n_teams].title = knob_titles[knob];
    b->team[b->n_teams].first = b->n_places;
    b->team[b->n_teams].n = t.n;
    for (size_t k = 0; k < t.n && rc == VT_OK; k++) {
        size_t place = b->n_places++;

        want.v[knob] = t.v[k];
        b->at[place] = (double)place + 0.6 * (double)b->n_teams;
        rc = fill_place(b, place, s, model, knob, &want, err);
    }
    b->n_teams++;
    return rc;
}

int fig4_bars(struct fig_bars *b, const struct fig_set *s, bool moe, const char **model,
              struct vt_err *err)
{
    struct knobs mode;
    int rc = VT_OK;

    fig_bars_clear(b);
    b->n_panels = 1;
    *model = choose_model(s, moe);
    if (!*model)
        return vt_fail(err, VT_ECHECK, "insufficient data");
    for (int k = 0; k < N_KNOBS; k++) {
        struct tally t = tally_of(b, s, *model, k, NULL);
        size_t best = 0;

        for (size_t i = 1; i < t.n; i++)
            best = t.count[i] > t.count[best] ? i : best;
        mode.v[k] = t.n > 0 ? t.v[best] : 0;
    }
    for (int k = 0; k < N_KNOBS && rc == VT_OK; k++)
        rc = add_team(b, s, *model, k, &mode, err);
    if (rc == VT_OK && fig_bars_count(b, 0) == 0)
        rc = vt_fail(err, VT_ECHECK, "insufficient data");
    return rc;
}
