/* simulate_fleet.c - from flags to many engines, and what each of them did. */
#include <inttypes.h>

#include "cli/cmd/settings.h"
#include "cli/cmd/simulate.h"

enum { MOST = 65536 };

/* ---- flags ------------------------------------------------------------ */

/* "MIN:MAX" */
static int read_range(const struct opt_row *row, const char *text, void *field,
                      struct vt_err *err)
{
    const char *colon = strchr(text, ':');
    struct vt_autoscale *s = field;
    uint64_t lo = 0, hi = 0;

    if (!colon || !vt_parse_u64(text, (size_t)(colon - text), &lo) ||
        !vt_parse_u64(colon + 1, strlen(colon + 1), &hi) || lo < 1 || hi < lo ||
        hi > MOST)
        return vt_fail(err, VT_EINPUT,
                       "--%s '%s': must be MIN:MAX, two numbers from 1 to %d",
                       row->name, text, MOST);
    s->least = (uint32_t)lo;
    s->most = (uint32_t)hi;
    return VT_OK;
}

static int read_routing(const struct opt_row *row, const char *text, void *field,
                        struct vt_err *err)
{
    *(const char **)field = text;
    return vt_within(err, vt_routing_check(text, err), "--%s", row->name);
}

#define OPT_T struct fleet_options
const struct opt_row fleet_rows[] = {
    OPT_U32(fleet.instances, "instances", "N", 1, MOST, "1",
            "engines behind a router; with data parallelism each is so many"),
    OPT_READ(fleet.routing, "routing", "HOW", read_routing, "round-robin",
             "policy, or scorers: precise-prefix-cache:2,queue-depth:1"),
    OPT_MS(fleet.staleness_ns, "routing-staleness-ms", 0, 1e9, "50",
           "age of the router's view of queues and caches"),
    OPT_LIST(replica, "replica", "PROFILE[:N]",
             "N engines of that profile; repeatable"),
    OPT_U32(fleet.prefill_instances, "prefill-instances", "N", 0, MOST, "0",
            "of the instances, that only prefill; others decode"),
    OPT_READ(fleet.autoscale, "autoscale", "MIN:MAX", read_range, NULL,
             "add and remove engines by KV use and queue"),
    OPT_SECONDS(fleet.autoscale.startup_ns, "autoscale-startup-s", 0, 1e6, "60",
                "until a new one serves"),
    OPT_SECONDS(fleet.autoscale.interval_ns, "autoscale-interval-s", 1e-3, 1e6, "10",
                "between two looks"),
    OPT_F64(fleet.autoscale.up, "autoscale-up", "P", 0, 1, "0.8",
            "add above this KV use"),
    OPT_F64(fleet.autoscale.down, "autoscale-down", "P", 0, 1, "0.4",
            "remove below this KV use"),
    OPT_SECONDS(fleet.autoscale.up_window_ns, "autoscale-up-window-s", 0, 1e6, "0",
                "it must last so long"),
    OPT_SECONDS(fleet.autoscale.down_window_ns, "autoscale-down-window-s", 0, 1e6, "0",
                "it must last so long"),
    OPT_U32(fleet.threads, "threads", "N", 1, 256, NULL,
            "that run engines side by side; results are those of one",
            .shown = "processors"),
    {0},
};

int simulate_fleet_check(const struct opt_args *a, const struct engine_options *e,
                         const struct fleet_options *o, struct vt_err *err)
{
    const void *const others[] = {&o->fleet.instances, &e->dp, &e->model, &e->profile};
    int rc = VT_OK;

    for (size_t i = 0; i < VT_COUNT(others) && rc == VT_OK; i++)
        rc = opt_exclude(a, &o->replica, others[i], err);
    return rc ? rc : opt_exclude(a, &o->fleet.autoscale, &e->dp, err);
}

/* ---- replicas of different profiles ----------------------------------- */

static int add_kind(struct simulate_job *j, const struct opt_args *a,
                    const struct engine_options *e, const char *text,
                    struct vt_err *err)
{
    struct simulate_fleet *f = &j->fleet;
    const char *colon = strrchr(text, ':');
    struct simulate_kind *kind;
    char profile[4096];
    uint64_t n = 1;
    int rc;

    /* "PROFILE[:N]": a number after the last colon is a count. */
    if (colon && !vt_parse_u64(colon + 1, strlen(colon + 1), &n))
        colon = NULL;
    if (n < 1 || n > MOST)
        return vt_fail(err, VT_EINPUT, "--replica '%s': 1 to %d of them", text, MOST);
    if (snprintf(profile, sizeof(profile), "%.*s",
                 colon ? (int)(colon - text) : (int)strlen(text),
                 text) >= (int)sizeof(profile))
        return vt_fail(err, VT_EINPUT, "--replica: the name is too long");
    if ((rc = vt_grow(&f->kind, &f->cap_kinds, f->n_kinds + 1, sizeof(*kind), err)))
        return rc;
    kind = &f->kind[f->n_kinds++];
    kind->count = (uint32_t)n;
    rc = engine_open(&kind->engine, a, e, profile, &j->workload.meta, e->tp, err);
    f->fleet.instances += kind->count;
    if (rc == VT_OK && f->fleet.instances > MOST)
        return vt_fail(err, VT_EINPUT, "--replica: more than %d engines", MOST);
    return vt_within(err, rc, "--replica");
}

static int spread_kinds(struct simulate_job *j, struct vt_err *err)
{
    const struct vt_engine_config *one = &j->spec.engine;
    struct simulate_fleet *f = &j->fleet;
    struct vt_buf name = {0};
    uint32_t n = 0;

    f->replica = calloc(f->fleet.instances, sizeof(*f->replica));
    if (!f->replica)
        return vt_nomem(err);
    for (size_t k = 0; k < f->n_kinds; k++) {
        const struct engine_job *kind = &f->kind[k].engine;

        vt_buf_printf(&name, "%s%s:%u", k ? "," : "", kind->timed_by, f->kind[k].count);
        for (uint32_t i = 0; i < f->kind[k].count; i++) {
            struct vt_engine_config *e = &f->replica[n].engine;

            /* What is not the profile's is as for the one engine. */
            f->replica[n++] = (struct vt_replica){kind->config, kind->model};
            e->compat = one->compat;
            e->seed = one->seed;
            e->warmed_for = one->warmed_for;
            if (one->compat == VT_COMPAT_BLIS)
                e->async_scheduling = false;
        }
    }
    f->name = name.data;
    if (name.failed)
        return vt_nomem(err);
    f->fleet.replica = f->replica;
    j->spec.engine = f->replica[0].engine;
    j->spec.model = f->replica[0].model;
    j->engine.timed_by = f->name;
    return vt_engine_config_check(&j->spec.engine, err);
}

/* ---- data-parallel ranks ---------------------------------------------- */

/* Each instance becomes as many engines. */
static int spread_ranks(struct simulate_job *j, const struct opt_args *a,
                        const struct engine_options *e, struct vt_err *err)
{
    struct simulate_fleet *f = &j->fleet;
    bool lockstep;
    int rc = engine_lockstep(&j->engine, a, e, &lockstep, &f->why, err);

    f->dp = e->dp;
    if (rc != VT_OK || e->dp == 1)
        return rc;
    if (f->fleet.instances > MOST / e->dp)
        return vt_fail(err, VT_EINPUT, "--instances: more than %d engines", MOST);
    f->fleet.instances *= e->dp;
    f->fleet.prefill_instances *= e->dp;
    if (j->spec.engine.compat == VT_COMPAT_VLLM && lockstep)
        f->fleet.ranks = e->dp;
    return VT_OK;
}

/* ---- the whole -------------------------------------------------------- */

/* Engines that prefill or decode are connected, asked for or not. A transfer carries
 * what the model keeps of each token. */
static int connect(struct vt_engine_config *c, const struct engine_job *job,
                   const struct opt_args *a, const struct engine_options *e,
                   char about[96], struct vt_err *err)
{
    uint64_t block_bytes = job->config.remote.block_bytes;
    struct vt_arch arch;
    int rc = engine_link(&c->remote, job, a, e, about, err);

    if (rc != VT_OK)
        return rc;
    c->remote.pulls = true;
    if (block_bytes == 0 && !opt_given(a, &e->offload.token_bytes)) {
        if (!job->model_name || vt_arch_load(&arch, job->model_name, NULL) != VT_OK)
            return vt_fail(err, VT_EINPUT,
                           "--prefill-instances needs --kv-bytes-per-token: the "
                           "model's shape is not known");
        block_bytes =
            (uint64_t)(vt_arch_kv_bytes(&arch, e->tp > 0 ? e->tp : 1, arch.kv_bytes) *
                       c->block_size);
    }
    c->remote.block_bytes = block_bytes;
    return VT_OK;
}

static int connect_all(struct simulate_job *j, const struct opt_args *a,
                       const struct engine_options *e, const struct fleet_options *o,
                       struct vt_err *err)
{
    struct simulate_fleet *f = &j->fleet;
    uint32_t n = 0;
    int rc = VT_OK;

    if (o->fleet.prefill_instances == 0)
        return VT_OK;
    for (size_t k = 0; k < f->n_kinds; k++)
        for (uint32_t i = 0; i < f->kind[k].count && rc == VT_OK; i++)
            rc = connect(&f->replica[n++].engine, &f->kind[k].engine, a, e, f->link,
                         err);
    if (rc != VT_OK)
        return rc;
    rc = connect(&j->spec.engine, f->n_kinds > 0 ? &f->kind[0].engine : &j->engine, a,
                 e, f->link, err);
    f->link_gbs = j->spec.engine.remote.gbs;
    return rc;
}

int simulate_fleet_open(struct simulate_job *j, const struct opt_args *a,
                        const struct engine_options *e, const struct fleet_options *o,
                        struct vt_err *err)
{
    struct simulate_fleet *f = &j->fleet;
    int rc = VT_OK;

    f->on = opt_given(a, &o->fleet.instances) || opt_given(a, &o->fleet.routing) ||
            o->replica.n > 0 || opt_given(a, &o->fleet.prefill_instances) ||
            o->fleet.autoscale.most > 0 || e->dp > 1;
    if (!f->on)
        return VT_OK;
    f->fleet = o->fleet;
    if (f->fleet.autoscale.most == 0)
        f->fleet.autoscale = (struct vt_autoscale){0};
    if (f->fleet.autoscale.most > 0 && !opt_given(a, &o->fleet.instances))
        f->fleet.instances = f->fleet.autoscale.least;
    if (o->replica.n > 0)
        f->fleet.instances = 0;
    else
        rc = spread_ranks(j, a, e, err);
    for (size_t i = 0; i < o->replica.n && rc == VT_OK; i++)
        rc = add_kind(j, a, e, o->replica.value[i], err);
    if (rc == VT_OK && o->replica.n > 0)
        rc = spread_kinds(j, err);
    if (rc == VT_OK)
        rc = connect_all(j, a, e, o, err);
    if (rc != VT_OK)
        return rc;
    f->fleet.seed = j->seed;
    if (!opt_given(a, &o->fleet.threads))
        f->fleet.threads = vt_processors();
    f->n = f->fleet.autoscale.interval_ns > 0 ? f->fleet.autoscale.most
                                              : f->fleet.instances;
    f->summary = calloc(f->n, sizeof(*f->summary));
    if (!f->summary)
        return vt_nomem(err);
    j->spec.fleet = &f->fleet;
    j->spec.replica = f->summary;
    j->spec.lockstep = &f->lockstep;
    return VT_OK;
}

void simulate_fleet_close(struct simulate_fleet *f)
{
    for (size_t i = 0; i < f->n_kinds; i++)
        engine_close(&f->kind[i].engine);
    free(f->kind);
    free(f->replica);
    free(f->summary);
    free(f->name);
}

/* ---- what came of it -------------------------------------------------- */

static const char *role_of(const struct simulate_fleet *f, uint32_t i)
{
    uint32_t split = f->fleet.prefill_instances;

    return split == 0 ? "all" : i < split ? "prefill" : "decode";
}

/* Those that autoscaling never started are left out. */
static bool was_there(const struct vt_replica_summary *r)
{
    return r->to_ns > r->from_ns || r->requests > 0;
}

/* Of the ranks' time in waves. */
static double waited_share(const struct vt_ranks_totals *t)
{
    return t->rank_ns > 0 ? (double)t->waited_ns / (double)t->rank_ns : 0;
}

static void put_ranks(struct vt_buf *b, const struct simulate_fleet *f)
{
    const struct vt_ranks_totals *t = &f->lockstep;

    if (f->dp < 2)
        return;
    vt_buf_printf(b, "ranks        %u %s", f->dp,
                  f->fleet.ranks > 1 ? "in lockstep" : "independent of each other");
    vt_buf_printf(b, f->why ? ": %s\n" : "\n", f->why);
    if (f->fleet.ranks > 1)
        vt_buf_printf(b,
                      "waves        %" PRIu64 "; %" PRIu64 " passes, %" PRIu64
                      " dummy steps; %.2f %% of the time waited for other ranks\n",
                      t->waves, t->passes, t->dummies, 100 * waited_share(t));
}

static void put_ranks_json(struct vt_jw *w, const struct simulate_fleet *f)
{
    const struct vt_ranks_totals *t = &f->lockstep;

    if (f->dp < 2)
        return;
    vt_jw_map(w, "data_parallel");
    vt_jw_u64(w, "ranks", f->dp);
    vt_jw_bool(w, "lockstep", f->fleet.ranks > 1);
    if (f->fleet.ranks > 1) {
        vt_jw_u64(w, "waves", t->waves);
        vt_jw_u64(w, "passes", t->passes);
        vt_jw_u64(w, "dummy_steps", t->dummies);
        vt_jw_f64(w, "waited_share", waited_share(t));
    }
    vt_jw_end(w);
}

void simulate_fleet_table(struct vt_buf *b, const struct simulate_fleet *f)
{
    if (!f->on)
        return;
    put_ranks(b, f);
    if (*f->link)
        vt_buf_printf(b, "transfers    %.4g GB/s: %s\n", f->link_gbs, f->link);
    vt_buf_printf(b, "\n%8s %8s %9s %9s %8s %9s %9s %7s %11s %11s\n", "instance",
                  "role", "requests", "steps", "preempt", "hits %", "KV peak %",
                  "busy %", "from s", "to s");
    for (uint32_t i = 0; i < f->n; i++) {
        const struct vt_replica_summary *r = &f->summary[i];
        double there_s = (double)(r->to_ns - r->from_ns) / 1e9;

        if (!was_there(r))
            continue;
        vt_buf_printf(b, "%8u %8s %9" PRIu64 " %9" PRIu64 " %8" PRIu64, i,
                      role_of(f, i), r->requests, r->steps, r->preemptions);
        vt_buf_printf(b, " %9.2f %9.2f %7.2f %11.3f %11.3f\n", 100 * r->prefix_hit_rate,
                      100 * r->kv_usage_peak,
                      100 * (there_s > 0 ? r->busy_s / there_s : 0),
                      (double)r->from_ns / 1e9, (double)r->to_ns / 1e9);
    }
}

void simulate_json(struct vt_buf *b, const struct vt_summary *s,
                   const struct simulate_job *j)
{
    const struct vt_notes notes = engine_notes(&j->engine);
    const struct simulate_fleet *f = &j->fleet;
    struct vt_jw w;

    vt_jw_init(&w, b, &vt_json_pretty);
    vt_jw_map(&w, NULL);
    vt_summary_members(&w, s);
    vt_basis_members(&w, &j->engine.trust);
    settings_json(&w, &j->engine, &j->spec.engine, &j->engine.setting,
                  f->on ? &f->fleet : NULL, &j->traffic);
    if (j->limited)
        limits_json(&w, &j->slo,
                    &(struct limits_kept){s, s->requests, j->within, s->duration_s});
    if (f->on) {
        vt_jw_str(&w, "routing", f->fleet.routing);
        put_ranks_json(&w, f);
        if (*f->link) {
            vt_jw_row(&w, "kv_transfer_assumed");
            vt_jw_f64(&w, "gb_per_s", f->link_gbs);
            vt_jw_str(&w, "link", f->link);
            vt_jw_end(&w);
        }
        vt_jw_list(&w, "instances");
        for (uint32_t i = 0; i < f->n; i++) {
            const struct vt_replica_summary *r = &f->summary[i];

            if (!was_there(r))
                continue;
            vt_jw_row(&w, NULL);
            vt_jw_u64(&w, "instance", i);
            vt_jw_str(&w, "role", role_of(f, i));
            vt_jw_u64(&w, "requests", r->requests);
            vt_jw_u64(&w, "steps", r->steps);
            vt_jw_u64(&w, "preemptions", r->preemptions);
            vt_jw_f64(&w, "prefix_hit_rate", r->prefix_hit_rate);
            vt_jw_f64(&w, "kv_usage_peak", r->kv_usage_peak);
            vt_jw_f64(&w, "busy_s", r->busy_s);
            vt_jw_f64(&w, "from_s", (double)r->from_ns / 1e9);
            vt_jw_f64(&w, "to_s", (double)r->to_ns / 1e9);
            vt_jw_end(&w);
        }
        vt_jw_end(&w);
    }
    vt_outside_json(&w, &j->reached, &j->spec.model->known, &notes);
    if (j->charts.len > 0)
        vt_jw_raw(&w, "charts", j->charts.data, j->charts.len);
    vt_jw_end(&w);
    vt_buf_char(b, '\n');
}
