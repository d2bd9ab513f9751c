/* capacity.c - the highest load within limits, and the settings that bear most. */
#include <stdlib.h>
#include <string.h>

#include "lib/lib.h"

/* ---- capacity ---------------------------------------------------------------------
 */

/* A question about capacity in the rooms' own terms. */
struct question {
    struct lib_site site;
    struct vt_capacity_spec spec;
};

static int open_question(struct question *c, const struct vtwin_model *m,
                         const struct vtwin_capacity_options *o, struct vt_err *err)
{
    struct vtwin_capacity_options own = {0};
    struct lib_site *s = &c->site;
    int rc = lib_struct_in(&own, sizeof(own), o, "vtwin_capacity_options", err);

    if (rc == VT_OK)
        rc = lib_site_open(s, m, own.sim, err);
    if (rc != VT_OK)
        return rc;
    c->spec = (struct vt_capacity_spec){
        .trial =
            {
                .engine = s->engine,
                .model = m->latency,
                .fleet = s->fleet.instances > 0 ? &s->fleet : NULL,
                .workload = s->o.workload,
                .requests = s->o.requests,
                .seed = s->o.seed,
            },
        .slo = {own.ttft_p99_ms, own.tpot_p99_ms, own.itl_p99_ms, own.e2e_p99_ms},
        .low = own.low,
        .high = own.high,
        .tolerance = own.tolerance,
        .seeds = own.seeds,
        .workers = own.workers,
        .how = own.once ? VT_CAPACITY_ONCE : VT_CAPACITY_SURE,
    };
    return VT_OK;
}

static void hand_out_capacity(struct vtwin_capacity *out,
                              const struct vt_capacity *found,
                              const struct vtwin_model *m)
{
    struct vtwin_capacity own = {
        .rate = found->rate,
        .failed = found->failed,
        .low = found->low,
        .high = found->high,
        .trials = found->trials,
    };

    /* What the caller asked for by a pointer stays in its struct. */
    if (out->size >= offsetof(struct vtwin_capacity, at) + sizeof(out->at))
        own.at = out->at;
    if (found->binding)
        snprintf(own.binding, sizeof(own.binding), "%s", found->binding);
    for (size_t i = 0; own.at && i < found->n; i++)
        if (found->point[i].rate == found->rate)
            lib_summary_out(own.at, &found->point[i].mean, m);
    lib_struct_out(out, &own, sizeof(own));
}

int vtwin_capacity_find(const struct vtwin_model *m,
                        const struct vtwin_capacity_options *o,
                        struct vtwin_capacity *out, struct vtwin_error *err)
{
    struct vt_capacity found = {0};
    struct vt_err why = {0};
    struct question c;
    int rc = open_question(&c, m, o, &why);

    if (rc == VT_OK)
        rc = vt_capacity_find(&found, &c.spec, &why);
    if (rc == VT_OK)
        hand_out_capacity(out, &found, m);
    vt_capacity_free(&found);
    return lib_end(err, rc, &why);
}

/* ---- settings -----------------------------------------------------------------------
 */

static int add_axis(struct vt_tune_space *space, const struct vtwin_axis *theirs,
                    struct vt_err *err)
{
    static const struct {
        const char *flag;
        int axis;
    } known[] = {
        {"max-num-seqs", VT_AXIS_SEQS},
        {"max-num-batched-tokens", VT_AXIS_BATCHED_TOKENS},
        {"data-parallel-size", VT_AXIS_DP},
        {"enable-prefix-caching", VT_AXIS_CACHING},
    };
    struct vtwin_axis own = {0};
    int rc = lib_struct_in(&own, sizeof(own), theirs, "vtwin_axis", err);

    if (rc != VT_OK)
        return rc;
    for (size_t i = 0; i < VT_COUNT(known); i++) {
        if (strcmp(own.flag, known[i].flag) != 0)
            continue;
        if (own.n < 1 || own.n > VT_TUNE_VALUES)
            return vt_fail(err, VT_EINPUT, "%s: 1 to %d values", own.flag,
                           VT_TUNE_VALUES);
        memcpy(space->value[known[i].axis], own.value, own.n * sizeof(*own.value));
        space->n[known[i].axis] = (uint32_t)own.n;
        return VT_OK;
    }
    return vt_fail(err, VT_EINPUT, "no axis '%s'", own.flag);
}

/* One value on each axis: what the caller's options say. */
static void fill_space(struct vt_tune_space *space, const struct lib_site *s)
{
    *space = (struct vt_tune_space){.routing = {s->o.routing}};
    space->value[VT_AXIS_SEQS][0] = s->engine.max_num_seqs;
    space->value[VT_AXIS_BATCHED_TOKENS][0] = s->engine.max_num_batched_tokens;
    space->value[VT_AXIS_MEMORY][0] = 0.9;
    space->value[VT_AXIS_TP][0] = 1;
    space->value[VT_AXIS_DP][0] = s->o.instances > 1 ? s->o.instances : 1;
    space->value[VT_AXIS_DRAFTS][0] = s->engine.num_spec_tokens;
    space->value[VT_AXIS_CACHING][0] = s->engine.enable_prefix_caching;
    for (size_t i = 0; i < VT_TUNE_AXES; i++)
        space->n[i] = 1;
}

static int search_settings(const struct vtwin_model *m,
                           const struct vtwin_tune_options *o, struct vtwin_tuned *out,
                           struct vt_tune_result *found, struct vt_err *err)
{
    struct vtwin_tuned own = {0};
    struct vt_tune_spec spec;
    struct question c;
    const char *axis = (const char *)o->axis;
    int rc = open_question(&c, m, o->capacity, err);

    if (rc != VT_OK)
        return rc;
    spec = (struct vt_tune_spec){
        .site = {.model = m->latency, .engine = c.site.engine},
        .goal = VT_TUNE_CAPACITY,
        .search = o->all ? VT_TUNE_GRID : VT_TUNE_SMART,
        .slo = c.spec.slo,
        .workload = c.site.o.workload,
        .requests = c.site.o.requests,
        .seeds = c.spec.seeds,
        .once = c.spec.how == VT_CAPACITY_ONCE,
        .seed = c.site.o.seed,
        .workers = c.spec.workers,
    };
    fill_space(&spec.space, &c.site);
    for (size_t i = 0; i < o->n_axes && rc == VT_OK; i++, axis += o->axis->size)
        rc = add_axis(&spec.space, (const struct vtwin_axis *)(const void *)axis, err);
    if (rc == VT_OK)
        rc = vt_tune(found, &spec, err);
    if (rc != VT_OK)
        return rc;
    own.trials = found->trials;
    if (out->size >= offsetof(struct vtwin_tuned, engine) + sizeof(out->engine))
        own.engine = out->engine;
    if (found->best < found->n) {
        struct vt_setting best = vt_tune_space_at(&spec.space, found->best);

        own.rate = found->tuned[found->best].rate;
        own.instances = best.dp;
        c.site.engine.max_num_seqs = best.max_num_seqs;
        c.site.engine.max_num_batched_tokens = best.max_num_batched_tokens;
        c.site.engine.enable_prefix_caching = best.prefix_caching;
        if (own.engine) {
            struct vtwin_engine_options engine;

            lib_engine_options(&engine, &c.site.engine);
            lib_struct_out(own.engine, &engine, sizeof(engine));
        }
    }
    lib_struct_out(out, &own, sizeof(own));
    return VT_OK;
}

int vtwin_tune(const struct vtwin_model *m, const struct vtwin_tune_options *o,
               struct vtwin_tuned *out, struct vtwin_error *err)
{
    struct vtwin_tune_options own = {0};
    struct vt_tune_result found = {0};
    struct vt_err why = {0};
    int rc = lib_struct_in(&own, sizeof(own), o, "vtwin_tune_options", &why);

    if (rc == VT_OK)
        rc = search_settings(m, &own, out, &found, &why);
    vt_tune_result_free(&found);
    return lib_end(err, rc, &why);
}
