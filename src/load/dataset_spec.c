/* dataset_spec.c - a dataset as a workload.yaml: requests of the same lengths with the
 * same in common, for simulations, which need no text. JSON, which YAML includes. */
#include <string.h>

#include "load/dataset.h"
#include "load/multiturn.h"

static void put_head(struct vt_jw *w, const char *name, size_t requests)
{
    vt_jw_map(w, NULL);
    vt_jw_str(w, "name", name);
    vt_jw_u64(w, "requests", requests);
    vt_jw_map(w, "arrival");
    vt_jw_str(w, "process", "poisson");
    vt_jw_u64(w, "rate", 1);
    vt_jw_end(w);
}

static void put_range(struct vt_jw *w, const char *key, uint64_t lo, uint64_t hi)
{
    vt_jw_map(w, key);
    vt_jw_str(w, "dist", "uniform");
    vt_jw_u64(w, "min", lo);
    vt_jw_u64(w, "max", hi);
    vt_jw_end(w);
}

static void put_prefix(struct vt_jw *w, uint32_t groups, uint32_t tokens)
{
    if (tokens == 0)
        return;
    vt_jw_map(w, "prefix");
    vt_jw_u64(w, "groups", groups);
    vt_jw_u64(w, "tokens", tokens);
    vt_jw_end(w);
}

/* A prompt of nothing but its prefix has one token more here. */
static void put_random(struct vt_jw *w, const struct vt_load_data *d)
{
    const struct vt_load_lens *l = &d->random;
    struct load_range in = load_range_of(l->input, l->input_ratio, 1),
                      out = load_range_of(l->output, l->output_ratio, 1);

    put_head(w, d->name, d->n);
    put_range(w, "prompt", in.lo, in.hi);
    put_range(w, "output", out.lo, out.hi);
    put_prefix(w, 1, l->prefix);
    vt_jw_end(w);
}

static void put_repetition(struct vt_jw *w, const struct vt_load_data *d)
{
    put_head(w, d->name, d->n);
    vt_jw_u64(w, "prompt", d->suffix_len > 0 ? d->suffix_len : 1);
    vt_jw_u64(w, "output", d->repetition_output_len > 0 ? d->repetition_output_len : 1);
    put_prefix(w, d->prefixes > 0 ? d->prefixes : 1, d->prefix_len);
    vt_jw_end(w);
}

/* What a file holds, as pairs. */
static int put_file(struct vt_jw *w, const struct vt_load_data *d, struct vt_err *err)
{
    struct vt_load_plan plan = {0};
    int rc = vt_load_data_make(&plan, d, err);

    if (rc != VT_OK)
        return rc;
    put_head(w, d->name, plan.n);
    vt_jw_list(w, "lengths");
    for (size_t i = 0; i < plan.n; i++) {
        const struct vt_load_turn *t = plan.session[i].turn;

        vt_jw_u32_list(w, NULL, (const uint32_t[]){t->prompt_tokens, t->output_tokens},
                       2);
    }
    vt_jw_end(w);
    vt_jw_end(w);
    vt_load_plan_free(&plan);
    return VT_OK;
}

int vt_load_data_spec(struct vt_buf *b, const struct vt_load_data *d,
                      struct vt_err *err)
{
    struct vt_jw w;
    int rc = VT_OK;

    vt_jw_init(&w, b, &vt_json_spaced);
    if (!d->path && strcmp(d->name, "random") == 0)
        put_random(&w, d);
    else if (!d->path && strcmp(d->name, "prefix_repetition") == 0)
        put_repetition(&w, d);
    else
        rc = put_file(&w, d, err);
    return rc == VT_OK && b->failed ? vt_nomem(err) : rc;
}

int vt_load_multiturn_spec(struct vt_buf *b, const struct vt_load_multiturn *given,
                           struct vt_err *err)
{
    struct vt_load_multiturn m = *given;
    int rc = multiturn_defaults(&m, err);
    struct vt_jw w;

    if (rc != VT_OK)
        return rc;
    vt_jw_init(&w, b, &vt_json_spaced);
    put_head(&w, "multi-turn", (size_t)m.conversations * m.turns);
    put_range(&w, "prompt", m.user_tokens.lo, m.user_tokens.hi);
    put_range(&w, "output", m.output_tokens.lo, m.output_tokens.hi);
    vt_jw_map(&w, "sessions");
    vt_jw_u64(&w, "turns", m.turns);
    vt_jw_u64(&w, "starters", m.starters);
    put_range(&w, "starter", m.starter_tokens.lo, m.starter_tokens.hi);
    if (m.think_s > 0) {
        vt_jw_map(&w, "think_time_s");
        vt_jw_str(&w, "dist",
                  m.think == VT_THINK_CONSTANT ? "constant" : "exponential");
        vt_jw_f64(&w, m.think == VT_THINK_CONSTANT ? "value" : "mean", m.think_s);
        vt_jw_end(&w);
    }
    vt_jw_end(&w);
    vt_jw_end(&w);
    return b->failed ? vt_nomem(err) : VT_OK;
}
