/* simulate_fleet.c - from flags to many engines, and what each of them did. */
#include <inttypes.h>

#include "cli/cmd/simulate.h"

enum { MOST = 65536 };

/* ---- flags ------------------------------------------------------------ */

static bool asked_for(const struct cli_args *a)
{
    static const char *const names[] = {"instances", "routing", "replica",
                                        "prefill-instances", "autoscale"};

    for (size_t i = 0; i < VT_COUNT(names); i++)
        if (cli_has(a, names[i]))
            return true;
    return false;
}

/* "MIN:MAX" */
static int read_range(const char *text, struct vt_autoscale *s, struct vt_err *err)
{
    const char *colon = text ? strchr(text, ':') : NULL;
    uint64_t lo = 0, hi = 0;

    if (!text)
        return VT_OK;
    if (!colon || !vt_parse_u64(text, (size_t)(colon - text), &lo) ||
        !vt_parse_u64(colon + 1, strlen(colon + 1), &hi) || lo < 1 || hi < lo ||
        hi > MOST)
        return vt_fail(err, VT_EINPUT,
                       "--autoscale '%s': must be MIN:MAX, two numbers from 1 to %d",
                       text, MOST);
    s->least = (uint32_t)lo;
    s->most = (uint32_t)hi;
    return VT_OK;
}

static int read_seconds(const struct cli_args *a, const char *name, double lo,
                        vt_ns *to, struct vt_err *err)
{
    double s = (double)*to / 1e9;
    int rc = cli_f64(a, name, lo, 1e6, &s, err);

    *to = vt_ns_from_ms(s * 1e3);
    return rc;
}

static int read_autoscale(const struct cli_args *a, struct vt_fleet *f,
                          struct vt_err *err)
{
    struct vt_autoscale *s = &f->autoscale;
    int rc = read_range(cli_str(a, "autoscale"), s, err);

    *s = (struct vt_autoscale){.least = s->least,
                               .most = s->most,
                               .interval_ns = 10 * VT_SEC,
                               .startup_ns = 60 * VT_SEC,
                               .up = 0.8,
                               .down = 0.4};
    if (rc || (rc = read_seconds(a, "autoscale-startup-s", 0, &s->startup_ns, err)) ||
        (rc = read_seconds(a, "autoscale-interval-s", 1e-3, &s->interval_ns, err)) ||
        (rc = read_seconds(a, "autoscale-up-window-s", 0, &s->up_window_ns, err)) ||
        (rc = read_seconds(a, "autoscale-down-window-s", 0, &s->down_window_ns, err)) ||
        (rc = cli_f64(a, "autoscale-up", 0, 1, &s->up, err)) ||
        (rc = cli_f64(a, "autoscale-down", 0, 1, &s->down, err)))
        return rc;
    if (!cli_has(a, "autoscale"))
        *s = (struct vt_autoscale){0};
    else if (!cli_has(a, "instances"))
        f->instances = s->least;
    return VT_OK;
}

static int read_flags(const struct cli_args *a, struct vt_fleet *f, struct vt_err *err)
{
    double staleness_ms = 50;
    int rc;

    *f = (struct vt_fleet){.instances = 1,
                           .routing = cli_str_or(a, "routing", "round-robin"),
                           .transfer_gb_per_s = 25,
                           .transfer_base_us = 50,
                           .transfer_contention = cli_has(a, "kv-transfer-contention")};
    if ((rc = cli_u32(a, "instances", 1, MOST, &f->instances, err)) ||
        (rc = vt_within(err, vt_routing_check(f->routing, err), "--routing")) ||
        (rc = cli_f64(a, "routing-staleness-ms", 0, 1e9, &staleness_ms, err)) ||
        (rc = cli_u32(a, "prefill-instances", 0, MOST, &f->prefill_instances, err)) ||
        (rc = cli_f64(a, "kv-transfer-gb-per-s", 1e-6, 1e9, &f->transfer_gb_per_s,
                      err)) ||
        (rc = cli_f64(a, "kv-transfer-base-us", 0, 1e9, &f->transfer_base_us, err)) ||
        (rc = cli_f64(a, "kv-bytes-per-token", 0, 1e9, &f->kv_bytes_per_token, err)))
        return rc;
    f->staleness_ns = vt_ns_from_ms(staleness_ms);
    return read_autoscale(a, f, err);
}

int simulate_fleet_check(const struct cli_args *a, struct vt_err *err)
{
    struct vt_fleet scratch;
    int rc = read_flags(a, &scratch, err);

    if (rc == VT_OK && cli_has(a, "replica") && cli_has(a, "instances"))
        return vt_fail(err, VT_EINPUT, "--replica and --instances: give one of them");
    if (rc == VT_OK && cli_has(a, "replica") &&
        (cli_has(a, "model") || cli_has(a, "profile")))
        return vt_fail(err, VT_EINPUT, "--replica and --%s: give one of them",
                       cli_has(a, "model") ? "model" : "profile");
    return rc;
}

/* ---- replicas of different profiles ----------------------------------- */

/* "PROFILE[:N]": a number after the last colon is a count. */
static int split_replica(const char *text, char *profile, size_t max, uint32_t *count,
                         struct vt_err *err)
{
    const char *colon = strrchr(text, ':');
    uint64_t n = 1;

    if (colon && !vt_parse_u64(colon + 1, strlen(colon + 1), &n))
        colon = NULL;
    if (n < 1 || n > MOST)
        return vt_fail(err, VT_EINPUT, "--replica '%s': 1 to %d of them", text, MOST);
    *count = (uint32_t)n;
    if (snprintf(profile, max, "%.*s", colon ? (int)(colon - text) : (int)strlen(text),
                 text) >= (int)max)
        return vt_fail(err, VT_EINPUT, "--replica: the name is too long");
    return VT_OK;
}

static int add_kind(struct simulate_job *j, const struct cli_args *a, const char *text,
                    struct vt_err *err)
{
    struct simulate_fleet *f = &j->fleet;
    char profile[4096];
    uint32_t count = 0;
    int rc = split_replica(text, profile, sizeof(profile), &count, err);

    if (rc == VT_OK)
        rc = vt_grow(&f->kind, &f->cap_kinds, f->n_kinds + 1, sizeof(*f->kind), err);
    if (rc == VT_OK)
        rc = vt_grow(&f->count, &f->cap_counts, f->n_kinds + 1, sizeof(*f->count), err);
    if (rc != VT_OK)
        return rc;
    f->count[f->n_kinds] = count;
    rc = engine_job_open_as(&f->kind[f->n_kinds], a, profile, &j->workload.meta, err);
    f->n_kinds++;
    if (rc == VT_OK && f->fleet.instances + count > MOST)
        return vt_fail(err, VT_EINPUT, "--replica: more than %d engines", MOST);
    f->fleet.instances += count;
    return vt_within(err, rc, "--replica");
}

/* What is not the profile's is as for the one engine. */
static struct vt_replica replica_of(const struct simulate_job *j, size_t kind)
{
    const struct vt_engine_config *one = &j->spec.engine;
    struct vt_replica r = {j->fleet.kind[kind].config, j->fleet.kind[kind].model};

    r.engine.compat = one->compat;
    r.engine.seed = one->seed;
    if (one->compat == VT_COMPAT_BLIS)
        r.engine.async_scheduling = false;
    return r;
}

static int spread_kinds(struct simulate_job *j, struct vt_err *err)
{
    struct simulate_fleet *f = &j->fleet;
    struct vt_buf name = {0};
    uint32_t n = 0;

    f->replica = calloc(f->fleet.instances, sizeof(*f->replica));
    if (!f->replica)
        return vt_nomem(err);
    for (size_t k = 0; k < f->n_kinds; k++) {
        vt_buf_printf(&name, "%s%s:%u", k ? "," : "", f->kind[k].timed_by, f->count[k]);
        for (uint32_t i = 0; i < f->count[k]; i++)
            f->replica[n++] = replica_of(j, k);
    }
    f->name = name.data;
    if (name.failed)
        return vt_nomem(err);
    f->fleet.replica = f->replica;
    j->spec.engine = f->replica[0].engine;
    j->spec.model = f->replica[0].model;
    j->timed_by = f->name;
    return vt_engine_config_check(&j->spec.engine, err);
}

static int open_replicas(struct simulate_job *j, const struct cli_args *a,
                         struct vt_err *err)
{
    const char *text;
    size_t at = 0;
    int rc = VT_OK;

    if (!cli_has(a, "replica"))
        return VT_OK;
    j->fleet.fleet.instances = 0;
    while (rc == VT_OK && (text = cli_each(a, "replica", &at)) != NULL)
        rc = add_kind(j, a, text, err);
    return rc == VT_OK ? spread_kinds(j, err) : rc;
}

/* ---- the whole -------------------------------------------------------- */

/* The KV cache of a token on all GPUs of an engine, if the profile names its model. */
static int find_kv_bytes(struct simulate_job *j, const struct cli_args *a,
                         struct vt_err *err)
{
    const struct engine_job *e = j->fleet.n_kinds > 0 ? &j->fleet.kind[0] : &j->engine;
    const char *model = NULL;
    struct vt_arch arch;

    if (cli_has(a, "kv-bytes-per-token") || j->fleet.fleet.prefill_instances == 0)
        return VT_OK;
    if (!e->has_profile ||
        vt_get_str(e->profile.engine, "model", VT_REQUIRED, &model, NULL) != VT_OK ||
        vt_arch_load(&arch, model, NULL) != VT_OK)
        return vt_fail(err, VT_EINPUT,
                       "--prefill-instances needs --kv-bytes-per-token: the model's "
                       "shape is not known");
    j->fleet.fleet.kv_bytes_per_token = vt_arch_kv_bytes(&arch, 1, arch.kv_bytes);
    return VT_OK;
}

int simulate_fleet_open(struct simulate_job *j, const struct cli_args *a,
                        struct vt_err *err)
{
    struct simulate_fleet *f = &j->fleet;
    int rc;

    f->on = asked_for(a);
    if (!f->on)
        return VT_OK;
    rc = read_flags(a, &f->fleet, err);
    if (rc == VT_OK)
        rc = open_replicas(j, a, err);
    if (rc == VT_OK)
        rc = find_kv_bytes(j, a, err);
    if (rc != VT_OK)
        return rc;
    f->fleet.seed = j->seed;
    f->n = f->fleet.autoscale.interval_ns > 0 ? f->fleet.autoscale.most
                                              : f->fleet.instances;
    f->summary = calloc(f->n, sizeof(*f->summary));
    if (!f->summary)
        return vt_nomem(err);
    j->spec.fleet = &f->fleet;
    j->spec.replica = f->summary;
    return VT_OK;
}

void simulate_fleet_close(struct simulate_fleet *f)
{
    for (size_t i = 0; i < f->n_kinds; i++)
        engine_job_close(&f->kind[i]);
    free(f->kind);
    free(f->count);
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

static double share(double part, vt_ns whole)
{
    return whole > 0 ? part / ((double)whole / 1e9) : 0;
}

/* Those that autoscaling never started are left out. */
static bool was_there(const struct vt_replica_summary *r)
{
    return r->to_ns > r->from_ns || r->requests > 0;
}

void simulate_fleet_table(struct vt_buf *b, const struct simulate_fleet *f)
{
    if (!f->on)
        return;
    vt_buf_printf(b, "\n%8s %8s %9s %9s %8s %9s %9s %7s %11s %11s\n", "instance",
                  "role", "requests", "steps", "preempt", "hits %", "KV peak %",
                  "busy %", "from s", "to s");
    for (uint32_t i = 0; i < f->n; i++) {
        const struct vt_replica_summary *r = &f->summary[i];

        if (!was_there(r))
            continue;
        vt_buf_printf(b, "%8u %8s %9" PRIu64 " %9" PRIu64 " %8" PRIu64, i,
                      role_of(f, i), r->requests, r->steps, r->preemptions);
        vt_buf_printf(b, " %9.2f %9.2f %7.2f %11.3f %11.3f\n", 100 * r->prefix_hit_rate,
                      100 * r->kv_usage_peak,
                      100 * share(r->busy_s, r->to_ns - r->from_ns),
                      (double)r->from_ns / 1e9, (double)r->to_ns / 1e9);
    }
}

static void put_row(struct vt_buf *b, const struct simulate_fleet *f, uint32_t i)
{
    const struct vt_replica_summary *r = &f->summary[i];
    const struct {
        const char *key;
        double v;
    } real[] = {
        {"prefix_hit_rate", r->prefix_hit_rate},
        {"kv_usage_peak", r->kv_usage_peak},
        {"busy_s", r->busy_s},
        {"from_s", (double)r->from_ns / 1e9},
        {"to_s", (double)r->to_ns / 1e9},
    };

    vt_buf_printf(b,
                  "    {\"instance\": %u, \"role\": \"%s\", \"requests\": %" PRIu64
                  ", \"steps\": %" PRIu64 ", \"preemptions\": %" PRIu64,
                  i, role_of(f, i), r->requests, r->steps, r->preemptions);
    for (size_t k = 0; k < VT_COUNT(real); k++) {
        vt_buf_printf(b, ", \"%s\": ", real[k].key);
        vt_buf_f64(b, real[k].v);
    }
    vt_buf_char(b, '}');
}

void simulate_json(struct vt_buf *b, const struct vt_summary *s,
                   const struct simulate_fleet *f)
{
    static const char end[] = "\n}\n";
    const char *comma = "";

    vt_summary_json(b, s);
    if (!f->on || b->failed)
        return;
    b->len -= sizeof(end) - 1; /* one more key goes before it */
    vt_buf_str(b, ",\n  \"routing\": ");
    vt_buf_json_str(b, f->fleet.routing, strlen(f->fleet.routing));
    vt_buf_str(b, ",\n  \"instances\": [\n");
    for (uint32_t i = 0; i < f->n; i++) {
        if (!was_there(&f->summary[i]))
            continue;
        vt_buf_str(b, comma);
        put_row(b, f, i);
        comma = ",\n";
    }
    vt_buf_str(b, "\n  ]");
    vt_buf_str(b, end);
}
