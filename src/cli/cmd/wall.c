/* wall.c - what play and serve share. */
#include "cli/cmd/wall.h"

#include <unistd.h>

#include "live/live.h"

#define OPT_T struct wall_options
const struct opt_row wall_rows[] = {
    OPT_F64(time_scale, "time-scale", "X", 1e-6, 1e6, "1", "so many times as fast"),
    OPT_F64(failure_rate, "failure-injection-rate", "P", 0, 1, "0",
            "share of requests that fail"),
    OPT_U32(fail_first, "fail-first", "N", 0, INT32_MAX, "0",
            "the first N requests fail, then none"),
    OPT_FLAG(kv.on, "enable-kv-cache-events", "publish block events"),
    OPT_TEXT(kv.endpoint, "kv-events-endpoint", "ADDR", NULL, "where",
             .shown = "tcp://*:5557"),
    OPT_TEXT(kv.replay_endpoint, "kv-events-replay-endpoint", "ADDR", NULL,
             "where old ones can be asked for"),
    OPT_TEXT(kv.topic, "kv-events-topic", "T", NULL, "under which topic",
             .shown = "empty"),
    OPT_TEXT(kv.hash_seed, "block-hash-seed", "S", NULL, "PYTHONHASHSEED of the engine",
             .shown = "not set: vllm-none-hash, before 0.29 a secret"),
    OPT_I64(seed, "seed", "N", 0, INT64_MAX, "0", "of answers, times and failures"),
    OPT_FLAG(log_requests, "log-requests", "a line for each request"),
    OPT_FLAG(json, "json", "at the end, print what was done as JSON"),
    OPT_FLAG(quiet, "quiet", "no lines about what happens"),
    OPT_FLAG(verbose, "verbose",
             "tell of vLLM's flags that were taken for nothing; -v"),
    OPT_TEXT(otlp.endpoint, "otlp-traces-endpoint", "URL", NULL,
             "spans to http://HOST:4317, http://HOST:4318/v1/traces or file:PATH"),
    OPT_WORD(otlp.protocol, "otlp-protocol", "P", export_protocols, "by-port",
             "how they get there; by-port: port 4317 is gRPC"),
    OPT_TEXT(otlp.headers, "otlp-headers", "LIST", NULL, "K=V,K=V for the collector"),
    OPT_SWITCH(otlp.journey, "enable-journey-tracing", "on",
               "spans tell each request's stages"),
    OPT_SWITCH(otlp.journey, "otlp-journey-events", "on", "",
               .now = "enable-journey-tracing"),
    OPT_F64(otlp.journey_rate, "journey-tracing-sample-rate", "X", 0, 1, "1",
            "share of requests that are told of"),
    OPT_SWITCH(otlp.steps, "step-tracing-enabled", "on", "steps are exported too"),
    OPT_SWITCH(otlp.steps, "otlp-step-events", "on", "", .now = "step-tracing-enabled"),
    OPT_F64(otlp.step_rate, "step-tracing-sample-rate", "X", 0, 1, "1",
            "share of steps that are told of"),
    OPT_F64(otlp.rich_rate, "step-tracing-rich-subsample-rate", "X", 0, 1, "1",
            "share of these with a snapshot of each request"),
    {0},
};

/* Of the model in the directory. Where they are not understood, the answers are of the
 * profile's model, as the times are. */
static int take_layers(struct wall_job *j, const struct opt_args *a,
                       const struct wall_options *o, uint32_t tp, struct vt_err *err)
{
    int rc = engine_take_layers(&j->engine, a, &o->engine, &j->dir.arch, tp, err);

    if (rc == VT_EINPUT && !o->quiet)
        fprintf(stderr, "vtwin: warning: KV groups: %s/config.json: %s\n",
                a->operand[0], err->msg);
    return rc == VT_EINPUT ? VT_OK : rc;
}

/* By vLLM's variables. An id that nobody states is made up, as vLLM's is. */
static int find_side(struct wall_job *j, const struct wall_options *o,
                     struct vt_err *err)
{
    const char *host = getenv("VLLM_NIXL_SIDE_CHANNEL_HOST");
    const char *port = getenv("VLLM_NIXL_SIDE_CHANNEL_PORT");
    uint64_t number = 5600;
    uint64_t a = vt_mix64((uint64_t)vt_unix_ns()), b = vt_mix64(a ^ (uint64_t)getpid());

    if (port && *port &&
        (!vt_parse_u64(port, strlen(port), &number) || number < 1 || number > 65535))
        return vt_fail(err, VT_EINPUT, "VLLM_NIXL_SIDE_CHANNEL_PORT '%s' is no port",
                       port);
    (void)snprintf(j->engine_id, sizeof(j->engine_id), "%08x-%04x-4%03x-8%03x-%012llx",
                   (unsigned)(a >> 32), (unsigned)(a & 0xffff),
                   (unsigned)(a >> 16 & 0xfff), (unsigned)(b >> 52),
                   (unsigned long long)(b & 0xffffffffffff));
    if (*o->engine.offload.engine_id)
        (void)snprintf(j->engine_id, sizeof(j->engine_id), "%s",
                       o->engine.offload.engine_id);
    j->side = (struct vt_side){.engine_id = j->engine_id,
                               .host = host && *host ? host : "localhost",
                               .port = (uint32_t)number,
                               .tp = o->engine.tp > 0 ? o->engine.tp : 1,
                               .lease_s = j->engine.config.remote.lease_s};
    return VT_OK;
}

int wall_open(struct wall_job *j, const struct opt_args *a,
              const struct wall_options *o, uint32_t tp, struct vt_err *err)
{
    bool asked = opt_given(a, &o->engine.config.max_model_len);
    struct vt_engine_config *c = &j->engine.config;
    const char *model = a->n_operands > 0 ? a->operand[0] : NULL;
    /* Of a model that is known by name there are sizes, but no tokenizer. */
    int rc =
        model && vt_is_directory(model) ? model_dir_open(&j->dir, model, err) : VT_OK;

    if (!o->quiet)
        opt_tell_foreign(a, o->verbose, cli_tell, NULL);
    if (rc || (rc = engine_open(&j->engine, a, &o->engine, NULL, NULL, tp, err)) ||
        (j->dir.has_arch && !j->engine.described &&
         (rc = take_layers(j, a, o, tp, err))))
        return rc;
    if (j->dir.has_arch && j->engine.described && !o->engine.gpu && !o->quiet)
        fprintf(
            stderr,
            "vtwin: note: no --gpu or --profile: the model of %s is taken to run on "
            "an %s\n",
            model, j->engine.gpu.name);
    c->seed = (uint64_t)o->seed;
    if (j->engine.has_arch && vt_arch_ranks(&j->engine.arch, o->engine.dp) > 1)
        engine_note(&j->engine, "ranks of a mixture go in lockstep; these do not");
    if (!o->quiet)
        engine_warn_interval(&o->engine, "ranks do not go in lockstep here");
    if (!asked && j->dir.arch.max_len > 0)
        vt_set_max_model_len(c, j->dir.arch.max_len);
    if (c->remote.on && (rc = find_side(j, o, err)))
        return rc;
    return engine_fit_pool(c, asked, err);
}

void wall_close(struct wall_job *j)
{
    engine_close(&j->engine);
    model_dir_close(&j->dir);
}

int wall_report(const struct wall_options *o, const struct vt_latency *model,
                const struct wall_end *e, struct vt_err *err)
{
    struct vt_buf b = {0};
    struct vt_jw j;

    if (!o->quiet) {
        fprintf(stderr, "vtwin %s; late by %.0f us (p50), %.0f us (p99)\n", e->said,
                e->late_p50_us, e->late_p99_us);
        engine_warn_extent(&e->extent, &model->known, "");
    }
    if (!o->json)
        return VT_OK;
    vt_jw_init(&j, &b, &vt_json_tight);
    vt_jw_map(&j, NULL);
    for (size_t i = 0; i < e->n; i++)
        vt_jw_u64(&j, e->count[i].name, e->count[i].v);
    vt_jw_map(&j, "late_us");
    vt_jw_f64(&j, "p50", e->late_p50_us);
    vt_jw_f64(&j, "p99", e->late_p99_us);
    vt_jw_f64(&j, "max", e->late_max_us);
    vt_jw_end(&j);
    vt_outside_json(&j, &e->extent, &model->known, NULL);
    vt_jw_end(&j);
    vt_buf_char(&b, '\n');
    return cli_print(&b, err);
}
