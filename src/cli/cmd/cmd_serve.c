/* cmd_serve.c - vtwin serve: an OpenAI-compatible server without a GPU. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/cmd/engine_job.h"
#include "cli/cmd/play.h"
#include "cli/signals.h"
#include "http/http.h"
#include "live/live.h"

static const char *const modes[] = {"random", "echo", "dataset", NULL};

static const struct cli_option options[] = {
    {"served-model-name", CLI_VALUE, "NAME", "MODEL_DIR, or the profile's",
     "what clients call the model; may be repeated", NULL},
    {"host", CLI_VALUE, "ADDR", "127.0.0.1", "where to listen; 0.0.0.0: everywhere",
     NULL},
    {"port", CLI_VALUE, "N", "8000", "0: any free one", NULL},
    CLI_MODEL_OPTIONS,
    {"time-scale", CLI_VALUE, "X", "1", "so many times as fast", NULL},
    CLI_ENGINE_OPTIONS,
    {"data-parallel-size", CLI_VALUE, "N", "1", "engines behind the one port", NULL},
    {"vllm-version", CLI_VALUE, "V", "0.26.0",
     "whose answers to give: 0.26.0, or 0.32.0", NULL},
    {"mode", CLI_VALUE, "M", "random", "what answers say", modes},
    {"dataset-path", CLI_VALUE, "FILE", NULL,
     "prompts and answers for --mode dataset: JSON, JSONL or CSV", NULL},
    {"output-lengths", CLI_VALUE, "FILE", "about 200 tokens",
     "draw when an answer ends by itself from this trace", NULL},
    {"tool-call-rate", CLI_VALUE, "P", "0.5",
     "chance that tool_choice auto calls a tool", NULL},
    {"embedding-dimensions", CLI_VALUE, "N", "384", "length of embeddings", NULL},
    {"lora-modules", CLI_VALUE, "NAME=PATH", NULL, "an adapter; may be repeated", NULL},
    {"max-loras", CLI_VALUE, "N", "1 with adapters", "of the LoRA gauge", NULL},
    {"runtime-lora-updating", CLI_SWITCH, NULL, "on",
     "adapters may be loaded and unloaded", NULL},
    {"api-key", CLI_VALUE, "KEY", NULL, "clients must give one; may be repeated", NULL},
    {"ssl-certfile", CLI_VALUE, "FILE", NULL, "serve HTTPS: certificates, PEM", NULL},
    {"ssl-keyfile", CLI_VALUE, "FILE", NULL, "its key, PEM", NULL},
    {"max-request-body-mb", CLI_VALUE, "N", "64", "longer ones get 413", NULL},
    {"max-connections", CLI_VALUE, "N", "16384", "more get 503", NULL},
    {"timeout-keep-alive", CLI_VALUE, "S", "60", "seconds that an idle peer may stay",
     NULL},
    {"shutdown-timeout", CLI_VALUE, "S", "30", "seconds that requests may go on", NULL},
    {"dev-mode", CLI_SWITCH, NULL, "on",
     "routes of VLLM_SERVER_DEV_MODE: sleep, caches, pause", NULL},
    {"enable-scale-out", CLI_FLAG, NULL, NULL, "0.32: prompts may be rendered", NULL},
    {"enable-request-id-headers", CLI_FLAG, NULL, NULL, "answers bear X-Request-Id",
     NULL},
    {"enable-force-include-usage", CLI_FLAG, NULL, NULL,
     "usage in every stream, asked for or not", NULL},
    {"enable-prompt-tokens-details", CLI_FLAG, NULL, NULL, "usage tells cached tokens",
     NULL},
    {"failure-injection-rate", CLI_VALUE, "P", "0", "share of requests that fail",
     NULL},
    {"failure-types", CLI_VALUE, "LIST", "all that answer an error",
     "how: rate_limit, server_error, broken_stream, ...", NULL},
    {"fail-first", CLI_VALUE, "N", "0", "the first N requests fail", NULL},
    CLI_KV_EVENT_OPTIONS,
    {"otlp-traces-endpoint", CLI_VALUE, "URL", NULL,
     "export spans: http://HOST:4318/v1/traces, or file:PATH", NULL},
    {"otlp-headers", CLI_VALUE, "LIST", NULL, "K=V,K=V for the collector", NULL},
    {"otlp-journey-events", CLI_SWITCH, NULL, "on", "spans tell each request's stages",
     NULL},
    {"otlp-step-events", CLI_SWITCH, NULL, "on", "steps are exported too", NULL},
    {"seed", CLI_VALUE, "N", "0", "of answers, times and failures", NULL},
    {"log-requests", CLI_FLAG, NULL, NULL, "a line for each request", NULL},
    {"json", CLI_FLAG, NULL, NULL, "at the end, print what was served as JSON", NULL},
    {"quiet", CLI_FLAG, NULL, NULL, "no lines about what happens", NULL},
    {0},
};

enum { MAX_NAMES = 64 };

struct job {
    struct engine_job engine;
    struct play_model model;
    struct vt_tokenizer *builtin;
    const char *name[MAX_NAMES], *key[MAX_NAMES];
    struct vt_serve_lora lora[MAX_NAMES];
    struct vt_arena arena;
    struct vt_serve_config c;
    vt_ns began;
    bool quiet;
};

/* ---- what is said while it runs -------------------------------------- */

static void tell(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "vtwin serve: %s\n", line);
}

static void tell_ready(void *user, const char *url)
{
    const struct job *j = user;

    if (!j->quiet)
        fprintf(stderr,
                "vtwin serve: %s answers for '%s', timed by %s (up in %.0f ms)\n", url,
                j->c.name[0], j->c.timed_by, (double)(vt_wall_ns() - j->began) / 1e6);
}

static bool stopped(void *user)
{
    (void)user;
    return cli_signal_caught() != 0;
}

/* Each connection is a descriptor. */
static void allow_many_files(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
}

/* ---- flags ----------------------------------------------------------- */

static int take_model(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    int rc;

    if (a->n_operands > 0)
        rc = play_model_open(&j->model, a->operand[0], err);
    else
        rc = vt_tokenizer_builtin(&j->builtin, err);
    j->c.tokenizer = a->n_operands > 0 ? j->model.tokenizer : j->builtin;
    return rc;
}

static int take_engine(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    struct vt_serve_config *c = &j->c;
    int64_t seed = 0;
    int rc = engine_job_open(&j->engine, a, NULL, err);

    if (rc != VT_OK)
        return rc;
    c->engine = j->engine.config;
    c->model = j->engine.model;
    c->timed_by = j->engine.timed_by;
    if (!cli_has(a, "max-model-len") && j->model.max_len > 0)
        c->engine.max_model_len = j->model.max_len;
    rc = engine_fit_pool(&c->engine, cli_has(a, "max-model-len"), err);
    if (rc == VT_OK)
        rc = cli_f64(a, "time-scale", 1e-6, 1e6, &c->time_scale, err);
    if (rc == VT_OK)
        rc = cli_u32(a, "data-parallel-size", 1, 64, &c->n_engines, err);
    if (rc == VT_OK)
        rc = cli_i64(a, "seed", 0, INT64_MAX, &seed, err);
    c->seed = c->engine.seed = (uint64_t)seed;
    return rc;
}

static int collect(const struct cli_args *a, const char *flag, const char **out,
                   uint32_t *n, struct vt_err *err)
{
    const char *value;
    size_t at = 0;

    for (*n = 0; (value = cli_each(a, flag, &at)) != NULL; (*n)++) {
        if (*n == MAX_NAMES)
            return vt_fail(err, VT_EINPUT, "--%s is given more than %d times", flag,
                           MAX_NAMES);
        out[*n] = value;
    }
    return VT_OK;
}

static int take_names(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    struct vt_serve_config *c = &j->c;
    const char *own = a->n_operands > 0       ? a->operand[0]
                      : j->engine.has_profile ? j->engine.profile.name
                                              : "vtwin";
    int rc = collect(a, "served-model-name", j->name, &c->n_names, err);

    if (rc == VT_OK && c->n_names == 0) {
        j->name[0] = own;
        c->n_names = 1;
    }
    c->name = j->name;
    c->root = own;
    if (rc == VT_OK)
        rc = collect(a, "api-key", j->key, &c->n_api_keys, err);
    c->api_key = j->key;
    return rc;
}

static int take_loras(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    struct vt_serve_config *c = &j->c;
    const char *text[MAX_NAMES];
    bool updating = true;
    int rc = collect(a, "lora-modules", text, &c->n_loras, err);

    for (uint32_t i = 0; i < c->n_loras && rc == VT_OK; i++) {
        const char *equals = strchr(text[i], '=');
        char *name;

        if (equals == NULL || equals == text[i] || equals[1] == '\0')
            return vt_fail(err, VT_EINPUT, "--lora-modules '%s' is not NAME=PATH",
                           text[i]);
        name = vt_arena_copy(&j->arena, text[i], (size_t)(equals - text[i]));
        if (name == NULL)
            return vt_nomem(err);
        j->lora[i] = (struct vt_serve_lora){name, equals + 1};
    }
    c->lora = j->lora;
    c->max_loras = c->n_loras > 0 ? 1 : 0;
    if (rc == VT_OK)
        rc = cli_u32(a, "max-loras", 0, 1024, &c->max_loras, err);
    cli_switch(a, "runtime-lora-updating", &updating);
    c->fixed_loras = !updating;
    return rc;
}

static int take_server(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    struct vt_serve_config *c = &j->c;
    uint32_t port = 8000, body_mb = 64;
    double idle_s = 60;
    int rc = cli_u32(a, "port", 0, 65535, &port, err);

    if (rc == VT_OK)
        rc = cli_u32(a, "max-request-body-mb", 1, 1024, &body_mb, err);
    if (rc == VT_OK)
        rc = cli_u32(a, "max-connections", 1, 1000000, &c->max_connections, err);
    if (rc == VT_OK)
        rc = cli_f64(a, "timeout-keep-alive", 0.1, 1e6, &idle_s, err);
    if (rc == VT_OK)
        rc = cli_f64(a, "shutdown-timeout", 0, 1e6, &c->shutdown_timeout_s, err);
    c->host = cli_str_or(a, "host", "127.0.0.1");
    c->port = (uint16_t)port;
    c->max_body_bytes = (size_t)body_mb << 20;
    c->idle_timeout_ns = vt_ns_from_ms(idle_s * 1e3);
    c->certfile = cli_str(a, "ssl-certfile");
    c->keyfile = cli_str(a, "ssl-keyfile");
    if (rc == VT_OK && (c->certfile == NULL) != (c->keyfile == NULL))
        rc =
            vt_fail(err, VT_EINPUT, "--ssl-certfile and --ssl-keyfile belong together");
    cli_switch(a, "dev-mode", &c->dev_mode);
    c->scale_out = cli_has(a, "enable-scale-out");
    c->request_id_headers = cli_has(a, "enable-request-id-headers");
    c->force_usage = cli_has(a, "enable-force-include-usage");
    c->prompt_details = cli_has(a, "enable-prompt-tokens-details");
    c->log_requests = cli_has(a, "log-requests");
    return rc;
}

static int take_answers(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    struct vt_serve_config *c = &j->c;
    int mode = VT_ANSWER_RANDOM;
    int rc = cli_word(a, "mode", &mode, err);

    c->answers = (enum vt_answers)mode;
    c->dataset = cli_str(a, "dataset-path");
    c->lengths_from = cli_str(a, "output-lengths");
    if (rc == VT_OK && (c->dataset != NULL) != (c->answers == VT_ANSWER_DATASET))
        rc = vt_fail(err, VT_EINPUT,
                     "--dataset-path and --mode dataset belong together");
    if (rc == VT_OK)
        rc = cli_f64(a, "tool-call-rate", 0, 1, &c->tool_rate, err);
    if (rc == VT_OK)
        rc =
            cli_u32(a, "embedding-dimensions", 1, 65536, &c->embedding_dimensions, err);
    if (rc == VT_OK)
        rc = cli_f64(a, "failure-injection-rate", 0, 1, &c->failure_rate, err);
    if (rc == VT_OK)
        rc = cli_u32(a, "fail-first", 0, INT32_MAX, &c->fail_first, err);
    c->failure_kinds = cli_str(a, "failure-types");
    return rc;
}

static void take_ears(struct job *j, const struct cli_args *a)
{
    struct vt_serve_config *c = &j->c;

    c->kv_events = cli_has(a, "enable-kv-cache-events");
    c->kv_endpoint = cli_str(a, "kv-events-endpoint");
    c->kv_replay_endpoint = cli_str(a, "kv-events-replay-endpoint");
    c->kv_topic = cli_str(a, "kv-events-topic");
    c->hash_seed = cli_str(a, "block-hash-seed");
    c->otlp_endpoint = cli_str(a, "otlp-traces-endpoint");
    c->otlp_headers = cli_str(a, "otlp-headers");
    cli_switch(a, "otlp-journey-events", &c->otlp_journey);
    cli_switch(a, "otlp-step-events", &c->otlp_steps);
    j->quiet = cli_has(a, "quiet");
    c->log = j->quiet ? NULL : tell;
    c->ready = tell_ready;
    c->stopped = stopped;
    c->user = j;
}

static int open_job(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    int rc = engine_job_check(a, err);

    *j = (struct job){.began = vt_wall_ns(),
                      .c = {.n_engines = 1,
                            .time_scale = 1,
                            .max_connections = 16384,
                            .shutdown_timeout_s = 30,
                            .tool_rate = 0.5,
                            .embedding_dimensions = 384,
                            .gpu_memory_utilization = 0.9,
                            .dev_mode = true,
                            .otlp_journey = true,
                            .otlp_steps = true}};
    j->c.vllm_version = cli_str_or(a, "vllm-version", "0.26.0");
    if (rc == VT_OK)
        rc = take_model(j, a, err);
    if (rc == VT_OK)
        rc = take_engine(j, a, err);
    if (rc == VT_OK)
        rc = take_names(j, a, err);
    if (rc == VT_OK)
        rc = take_loras(j, a, err);
    if (rc == VT_OK)
        rc = take_server(j, a, err);
    if (rc == VT_OK)
        rc = take_answers(j, a, err);
    take_ears(j, a);
    return rc;
}

static void close_job(struct job *j)
{
    engine_job_close(&j->engine);
    play_model_close(&j->model);
    vt_tokenizer_close(j->builtin);
    vt_arena_free(&j->arena);
}

/* ---- the end --------------------------------------------------------- */

static void put_json(struct vt_buf *b, const struct vt_serve_summary *s)
{
    const struct cli_count counts[] = {
        {"connections", s->connections}, {"requests", s->requests},
        {"finished", s->finished},       {"aborted", s->aborted},
        {"refused", s->refused},         {"failed", s->failed},
        {"tokens", s->tokens},           {"steps", s->steps},
    };

    cli_put_counts(b, counts, VT_COUNT(counts),
                   (struct cli_late){s->late_p50_us, s->late_p99_us, s->late_max_us});
}

static int show(const struct cli_args *a, const struct vt_serve_summary *s,
                struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc = VT_OK;

    if (!cli_has(a, "quiet"))
        fprintf(
            stderr,
            "vtwin serve: %llu requests (%llu finished, %llu aborted, %llu refused, "
            "%llu failed), %llu tokens; late by %.0f us (p50), %.0f us (p99)\n",
            (unsigned long long)s->requests, (unsigned long long)s->finished,
            (unsigned long long)s->aborted, (unsigned long long)s->refused,
            (unsigned long long)s->failed, (unsigned long long)s->tokens,
            s->late_p50_us, s->late_p99_us);
    if (cli_has(a, "json")) {
        put_json(&b, s);
        rc = cli_print(&b, err);
    }
    vt_buf_free(&b);
    return rc;
}

static int run(const struct cli_args *a, struct vt_err *err)
{
    struct vt_serve_summary s = {0};
    struct job j;
    int rc = cli_operands(a, &cmd_serve, 0, 1, err);

    if (rc != VT_OK)
        return rc;
    rc = open_job(&j, a, err);
    if (rc == VT_OK) {
        allow_many_files();
        cli_signals_catch();
        rc = vt_serve(&j.c, &s, err);
        cli_signal_answered();
        if (rc == VT_OK)
            rc = show(a, &s, err);
    }
    close_job(&j);
    return rc;
}

static const char *const operands[] = {NULL};
static const char *const examples[] = {
    "timeout --preserve-status 1 ./run serve --port 0",
    "timeout --preserve-status 1 ./run serve --profile llama-70b-fp8-h200 "
    "--served-model-name llama --port 0",
    NULL,
};

const struct cli_command cmd_serve = {
    .name = "serve",
    .summary = "an OpenAI-compatible server without a GPU",
    .usage = "[MODEL_DIR] [FLAGS]",
    .about =
        "Answers the HTTP API of `vllm serve` and schedules as vLLM does, at the "
        "times\n"
        "of a profile or model. Answers are made up: random words, an echo, or a\n"
        "dataset's. Give MODEL_DIR (with its tokenizer.json) for the model's own\n"
        "tokens and chat template; without it a built-in tokenizer does. Ctrl-C or\n"
        "SIGTERM lets requests under way finish.",
    .options = options,
    .operands = operands,
    .examples = examples,
    .run = run,
};
