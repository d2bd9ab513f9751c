/* put.c - what a regression found: tables, JSON, and a model that simulates with it. */
#include "fit/regress/regress.h"

#include <math.h>

/* "us/token", "us/(request*block)". */
static void unit_of(char *out, size_t cap, const struct vt_term *t)
{
    size_t used = 0, named = 0;
    char under[96] = "";

    for (uint8_t i = 0; i < t->n; i++) {
        const char *unit = vt_features[t->factor[i].feature].unit;

        for (uint8_t k = 0; k < t->factor[i].power; k++)
            if (strcmp(unit, "1") != 0 && used < sizeof(under)) {
                int n = snprintf(under + used, sizeof(under) - used, "%s%s",
                                 named++ ? "*" : "", unit);

                used += n > 0 ? (size_t)n : 0;
            }
    }
    (void)snprintf(out, cap,
                   named == 0   ? "us%s"
                   : named == 1 ? "us/%s"
                                : "us/(%s)",
                   under);
}

static const char *remark(const struct vt_regress *r, size_t i)
{
    static const char *const remarks[] = {
        [VT_TERM_USED] = "",
        [VT_TERM_CONSTANT] = "  the same in all rows: left out",
        [VT_TERM_EXPLAINED] = "  explained by terms above: left out",
        [VT_TERM_ZERO] = "  not needed",
    };

    return remarks[r->state[i]];
}

static void put_score(struct vt_buf *b, const char *kind, const char *name,
                      const struct vt_score *s)
{
    vt_buf_printf(b, "  %-13s %-28.28s %8zu", kind, name, s->n);
    if (isfinite(s->r2))
        vt_buf_printf(b, " %8.4f", s->r2);
    else
        vt_buf_printf(b, " %8s", "-");
    vt_buf_printf(b, " %11.3f us", s->mae_us);
    if (isfinite(s->mape))
        vt_buf_printf(b, " %9.2f %%\n", s->mape);
    else
        vt_buf_printf(b, " %11s\n", "-");
}

static void put_head(struct vt_buf *b, const struct vt_regress *r)
{
    vt_buf_printf(b, "%s: %s", vt_regress_names[r->target],
                  vt_learner_names[r->learner]);
    if (r->learner == VT_LEARN_RIDGE || r->learner == VT_LEARN_LASSO)
        vt_buf_printf(b, ", lambda %.3g", r->lambda);
    vt_buf_printf(b, ", %zu rows", r->left_out[VT_ROW_KEPT]);
    for (int i = VT_ROW_KEPT + 1; i < VT_ROW_RULES; i++)
        if (r->left_out[i] > 0)
            vt_buf_printf(b, ", %zu left out (%s)", r->left_out[i], vt_rule_names[i]);
    vt_buf_char(b, '\n');
}

void vt_regress_put(struct vt_buf *b, const struct vt_regress *r)
{
    put_head(b, r);
    vt_buf_printf(b, "  %-34s %14s  %-20s %12s\n", "term", "coefficient", "unit",
                  "standardised");
    vt_buf_printf(b, "  %-34s %14.6g  us\n", "intercept", r->terms.intercept);
    for (size_t i = 0; i < r->terms.n; i++) {
        char name[VT_TERM_NAME], unit[112];

        vt_term_name(name, &r->terms.term[i]);
        unit_of(unit, sizeof(unit), &r->terms.term[i]);
        vt_buf_printf(b, "  %-34s %14.6g  %-20s %12.4f%s\n", name,
                      r->terms.coefficient[i], unit, r->standard[i], remark(r, i));
    }
    vt_buf_printf(b, "  %-13s %-28s %8s %8s %14s %11s\n", "judged on", "", "rows", "R2",
                  "MAE", "MAPE");
    put_score(b, "all rows", "", &r->in_sample);
    if (r->held_out.n > 0)
        put_score(b, "held out", "the last rows in time", &r->held_out);
    for (size_t i = 0; i < r->n_groups; i++)
        put_score(b, r->group[i].kind, r->group[i].name, &r->group[i].score);
}

/* ---- JSON --------------------------------------------------------------------- */

static void json_number(struct vt_jw *w, const char *key, double v)
{
    if (isfinite(v))
        vt_jw_f64(w, key, v);
    else
        vt_jw_null(w, key);
}

static void json_score(struct vt_jw *w, const char *key, const struct vt_score *s)
{
    vt_jw_map(w, key);
    vt_jw_u64(w, "rows", s->n);
    json_number(w, "r2", s->r2);
    json_number(w, "mae_us", s->mae_us);
    json_number(w, "mape_percent", s->mape);
    vt_jw_end(w);
}

static void json_terms(struct vt_jw *w, const struct vt_terms *s)
{
    vt_jw_f64(w, "intercept", s->intercept);
    for (size_t i = 0; i < s->n; i++) {
        char name[VT_TERM_NAME];

        vt_term_name(name, &s->term[i]);
        if (s->coefficient[i] < 0 || s->coefficient[i] > 0)
            vt_jw_f64(w, name, s->coefficient[i]);
    }
}

void vt_regress_json(struct vt_jw *w, const char *key, const struct vt_regress *r)
{
    vt_jw_map(w, key);
    vt_jw_str(w, "learner", vt_learner_names[r->learner]);
    if (r->learner == VT_LEARN_RIDGE || r->learner == VT_LEARN_LASSO)
        vt_jw_f64(w, "lambda", r->lambda);
    vt_jw_u64(w, "rows", r->left_out[VT_ROW_KEPT]);
    vt_jw_map(w, "coefficients_us");
    json_terms(w, &r->terms);
    vt_jw_end(w);
    json_score(w, "in_sample", &r->in_sample);
    if (r->held_out.n > 0)
        json_score(w, "held_out_by_time", &r->held_out);
    vt_jw_list(w, "left_out_and_predicted");
    for (size_t i = 0; i < r->n_groups; i++) {
        vt_jw_map(w, NULL);
        vt_jw_str(w, r->group[i].kind, r->group[i].name);
        json_score(w, "score", &r->group[i].score);
        vt_jw_end(w);
    }
    vt_jw_end(w);
    vt_jw_end(w);
}

/* ---- a model ------------------------------------------------------------------- */

static bool uses(const struct vt_terms *s, int feature)
{
    for (size_t i = 0; i < s->n; i++)
        for (uint8_t k = 0; k < s->term[i].n; k++)
            if (s->term[i].factor[k].feature == feature &&
                (s->coefficient[i] < 0 || s->coefficient[i] > 0))
                return true;
    return false;
}

/* Whether a request has all that the terms want before it is queued. */
static bool of_prompts_only(const struct vt_terms *s)
{
    for (int f = 0; f < VT_F_MODEL_SIZE; f++)
        if (f != VT_F_PROMPT_TOKENS && uses(s, f))
            return false;
    return true;
}

void vt_regress_model(struct vt_buf *model, const struct vt_regress_data *d,
                      const struct vt_regress *step, const struct vt_regress *arrive)
{
    const double *engine = d->capture[0].engine;
    struct vt_jw w;

    vt_jw_init(&w, model, NULL);
    vt_jw_map(&w, NULL);
    vt_jw_str(&w, "kind", "regression");
    vt_jw_map(&w, "params");
    json_terms(&w, &step->terms);
    vt_jw_f64(&w, "least", step->least_us);
    vt_jw_map(&w, "engine");
    for (int f = VT_F_MODEL_SIZE; f < VT_FEATURES; f++)
        if (uses(&step->terms, f) || (arrive && uses(&arrive->terms, f)))
            vt_jw_f64(&w, vt_features[f].name, engine[f]);
    vt_jw_end(&w);
    if (arrive && of_prompts_only(&arrive->terms)) {
        vt_jw_map(&w, "arrive");
        json_terms(&w, &arrive->terms);
        vt_jw_end(&w);
    }
    vt_jw_u64(&w, "seen_step_tokens", step->seen.step_tokens);
    vt_jw_u64(&w, "seen_running", step->seen.running);
    vt_jw_u64(&w, "seen_context", step->seen.context);
    vt_jw_end(&w);
    vt_jw_end(&w);
}
