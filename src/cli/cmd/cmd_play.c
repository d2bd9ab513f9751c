/* cmd_play.c - vtwin play: an engine behind a real vLLM frontend. */
#include <stdio.h>
#include <string.h>

#include "cli/cmd/engine_job.h"
#include "cli/cmd/play.h"
#include "cli/signals.h"

static const char *const matches[] = {"index", "prefix", "id", NULL};
static const char *const lines[] = {"0.25", "0.26", "0.27", "0.28", "0.32", NULL};
static const char *const dtypes[] = {"bfloat16", "float16", "float32", NULL};

static const struct cli_option options[] = {
    {"handshake-address", CLI_VALUE, "ADDR", "tcp://127.0.0.1:29550",
     "where the frontend waits for engines", NULL},
    {"engine-count", CLI_VALUE, "N", "1", "data-parallel ranks to play", NULL},
    {"engine-start-index", CLI_VALUE, "N", "0", "the first of them", NULL},
    {"vllm-line", CLI_VALUE, "LINE", "by the first request",
     "the frontend's version of vLLM", lines},
    {"vllm-version", CLI_VALUE, "V", "the line's", "what the engine says it is", NULL},
    CLI_MODEL_OPTIONS,
    {"latency-trace", CLI_VALUE, "FILE", NULL,
     "time as this trace: model trace:file=FILE, and its output lengths", NULL},
    {"time-scale", CLI_VALUE, "X", "1", "so many times as fast", NULL},
    CLI_ENGINE_OPTIONS,
    {"dtype", CLI_VALUE, "T", "bfloat16", "what the engine says it computes in",
     dtypes},
    {"tensor-parallel-size", CLI_VALUE, "N", "1", "workers the engine says it has",
     NULL},
    {"max-loras", CLI_VALUE, "N", "0: no LoRA", "adapters it says it takes", NULL},
    {"instance-id", CLI_VALUE, "ID", "vtwin", "what the engine calls itself", NULL},
    {"headless", CLI_SWITCH, NULL, "on", "HELLO says that it is headless", NULL},
    {"parallel-config-hash", CLI_VALUE, "H", NULL, "what READY says of it", NULL},
    {"wave-coordination", CLI_SWITCH, NULL, "for mixtures of experts",
     "ranks start and stop together", NULL},
    {"log-stats", CLI_SWITCH, NULL, "on", "tell frontends statistics and events", NULL},
    {"enable-logging-iteration-details", CLI_FLAG, NULL, NULL,
     "statistics tell what each step computed", NULL},
    {"vocab-size", CLI_VALUE, "N", "MODEL_DIR's, or 32000", "ids of random tokens",
     NULL},
    {"replay-tokens", CLI_VALUE, "FILE", NULL,
     "answer with the tokens of a trace or dataset", NULL},
    {"replay-steps", CLI_VALUE, "FILE", NULL,
     "answer at the times and in the chunks of a trace", NULL},
    {"replay-match", CLI_VALUE, "HOW", "index", "which record answers a request",
     matches},
    {"output-lengths", CLI_VALUE, "FILE", "--latency-trace's",
     "draw when a request ends by itself from this trace", NULL},
    {"failure-injection-rate", CLI_VALUE, "P", "0", "share of requests that fail",
     NULL},
    {"failure-types", CLI_VALUE, "LIST", "error",
     "how: error, length, repetition, abort", NULL},
    {"fail-first", CLI_VALUE, "N", "0", "the first N requests fail, then none", NULL},
    {"fail-first-by-id", CLI_FLAG, NULL, NULL,
     "the first N with the same id: a retry succeeds", NULL},
    {"die-after", CLI_VALUE, "N", NULL, "die like a crashed engine at request N", NULL},
    CLI_KV_EVENT_OPTIONS,
    {"step-stats-out", CLI_VALUE, "FILE", NULL, "write statistics of every step", NULL},
    {"session-file", CLI_VALUE, "FILE", NULL,
     "go on with the same frontend when started again", NULL},
    {"shutdown-timeout", CLI_VALUE, "S", "0", "seconds that requests may go on", NULL},
    {"seed", CLI_VALUE, "N", "0", "of random tokens, times and failures", NULL},
    {"log-requests", CLI_FLAG, NULL, NULL, "a line for each request", NULL},
    {"json", CLI_FLAG, NULL, NULL, "at the end, print what was played as JSON", NULL},
    {"quiet", CLI_FLAG, NULL, NULL, "no lines about what happens", NULL},
    {0},
};

/* ---- what is said while it runs --------------------------------------- */

static void tell(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "vtwin play: %s\n", line);
}

static bool stopped(void *user)
{
    (void)user;
    return cli_signal_caught() != 0;
}

/* ---- flags ------------------------------------------------------------ */

struct job {
    struct engine_job engine;
    struct play_model model;
    struct vt_latency *from_trace; /* of --latency-trace */
    struct vt_play_config c;
    char version[32];
};

static int take_engine(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    struct vt_play_config *c = &j->c;
    const char *trace = cli_str(a, "latency-trace");
    struct vt_buf spec = {0};
    int rc = VT_OK;

    if (trace != NULL && (cli_has(a, "model") || cli_has(a, "profile")))
        return vt_fail(err, VT_EINPUT,
                       "--latency-trace stands in place of --model and --profile");
    if (trace != NULL) {
        vt_buf_printf(&spec, "trace:file=%s", trace);
        rc = spec.failed ? vt_nomem(err)
                         : vt_model_open_inline(&j->from_trace, spec.data, err);
        vt_buf_free(&spec);
    }
    if (rc == VT_OK)
        rc = engine_job_open(&j->engine, a, NULL, err);
    if (rc != VT_OK)
        return rc;
    c->engine = j->engine.config;
    c->model = j->from_trace != NULL ? j->from_trace : j->engine.model;
    if (!cli_has(a, "max-model-len") && j->model.max_len > 0)
        c->engine.max_model_len = j->model.max_len;
    rc = engine_fit_pool(&c->engine, cli_has(a, "max-model-len"), err);
    if (rc == VT_OK)
        rc = cli_f64(a, "time-scale", 1e-6, 1e6, &c->time_scale, err);
    return rc;
}

static int take_tokens(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    struct vt_play_config *c = &j->c;
    int match = VT_MATCH_INDEX, rc;

    c->vocab_size = j->model.vocab_size > 0 ? j->model.vocab_size : 32000;
    rc = cli_u32(a, "vocab-size", 1, INT32_MAX, &c->vocab_size, err);
    if (rc == VT_OK)
        rc = cli_word(a, "replay-match", &match, err);
    c->match = (enum vt_replay_match)match;
    c->skip_token = j->model.skip.id;
    c->n_skip_tokens = (uint32_t)j->model.skip.n;
    c->replay_tokens = cli_str(a, "replay-tokens");
    c->replay_steps = cli_str(a, "replay-steps");
    c->lengths_from = cli_has(a, "output-lengths") ? cli_str(a, "output-lengths")
                                                   : cli_str(a, "latency-trace");
    if (j->model.tokenizer != NULL) {
        c->encode = play_model_encode;
        c->encode_user = &j->model;
    }
    return rc;
}

static int take_faults(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    struct vt_play_config *c = &j->c;
    int64_t die_after = 0;
    int rc = cli_f64(a, "failure-injection-rate", 0, 1, &c->failure_rate, err);

    if (rc == VT_OK)
        rc = cli_u32(a, "fail-first", 0, INT32_MAX, &c->fail_first, err);
    if (rc == VT_OK)
        rc = cli_i64(a, "die-after", 1, INT64_MAX, &die_after, err);
    c->die_after = (uint64_t)die_after;
    c->failure_types = cli_str(a, "failure-types");
    c->fail_first_by_id = cli_has(a, "fail-first-by-id");
    return rc;
}

static int take_identity(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    struct vt_play_config *c = &j->c;
    int line = -1, dtype = 0, rc;

    rc = cli_word(a, "vllm-line", &line, err);
    if (rc == VT_OK)
        rc = cli_word(a, "dtype", &dtype, err);
    if (rc == VT_OK)
        rc = cli_u32(a, "engine-count", 1, 1024, &c->n_engines, err);
    if (rc == VT_OK)
        rc = cli_u32(a, "engine-start-index", 0, 65535, &c->first_rank, err);
    if (rc == VT_OK)
        rc = cli_u32(a, "tensor-parallel-size", 1, 1024, &c->tensor_parallel_size, err);
    if (rc == VT_OK)
        rc = cli_u32(a, "max-loras", 0, 1024, &c->max_loras, err);
    if (rc != VT_OK)
        return rc;
    c->line = line >= 0 ? vt_wire_line_find(lines[line]) : NULL;
    (void)snprintf(j->version, sizeof(j->version), "%s.0",
                   line >= 0 ? lines[line] : "0.26");
    c->vllm_version = cli_str_or(a, "vllm-version", j->version);
    c->dtype = dtypes[dtype];
    c->instance_id = cli_str_or(a, "instance-id", "vtwin");
    c->parallel_config_hash = cli_str(a, "parallel-config-hash");
    c->waves = j->model.experts && c->n_engines > 1;
    cli_switch(a, "headless", &c->headless);
    cli_switch(a, "wave-coordination", &c->waves);
    cli_switch(a, "log-stats", &c->log_stats);
    return VT_OK;
}

static int take_rest(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    struct vt_play_config *c = &j->c;
    int64_t seed = 0;
    int rc = cli_i64(a, "seed", 0, INT64_MAX, &seed, err);

    if (rc == VT_OK)
        rc = cli_f64(a, "shutdown-timeout", 0, 1e6, &c->shutdown_timeout_s, err);
    c->seed = c->engine.seed = (uint64_t)seed;
    c->handshake = cli_str_or(a, "handshake-address", "tcp://127.0.0.1:29550");
    c->iteration_details = cli_has(a, "enable-logging-iteration-details");
    c->kv_events = cli_has(a, "enable-kv-cache-events");
    c->kv_endpoint = cli_str(a, "kv-events-endpoint");
    c->kv_replay_endpoint = cli_str(a, "kv-events-replay-endpoint");
    c->kv_topic = cli_str(a, "kv-events-topic");
    c->hash_seed = cli_str(a, "block-hash-seed");
    c->step_stats_out = cli_str(a, "step-stats-out");
    c->session_file = cli_str(a, "session-file");
    c->log_requests = cli_has(a, "log-requests");
    c->log = cli_has(a, "quiet") ? NULL : tell;
    c->stopped = stopped;
    return rc;
}

static int open_job(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    int rc = engine_job_check(a, err);

    *j = (struct job){.c = {.n_engines = 1,
                            .tensor_parallel_size = 1,
                            .time_scale = 1,
                            .headless = true,
                            .log_stats = true}};
    if (rc == VT_OK && a->n_operands > 0)
        rc = play_model_open(&j->model, a->operand[0], err);
    if (rc == VT_OK)
        rc = take_engine(j, a, err);
    if (rc == VT_OK)
        rc = take_tokens(j, a, err);
    if (rc == VT_OK)
        rc = take_faults(j, a, err);
    if (rc == VT_OK)
        rc = take_identity(j, a, err);
    return rc == VT_OK ? take_rest(j, a, err) : rc;
}

static void close_job(struct job *j)
{
    vt_latency_close(j->from_trace);
    engine_job_close(&j->engine);
    play_model_close(&j->model);
}

/* ---- the end ---------------------------------------------------------- */

static void put_json(struct vt_buf *b, const struct vt_play_summary *s)
{
    const struct cli_count counts[] = {
        {"requests", s->requests}, {"finished", s->finished}, {"aborted", s->aborted},
        {"failed", s->failed},     {"matched", s->matched},   {"tokens", s->tokens},
        {"steps", s->steps},       {"messages", s->messages},
    };

    cli_put_counts(b, counts, VT_COUNT(counts),
                   (struct cli_late){s->late_p50_us, s->late_p99_us, s->late_max_us});
}

static int show(const struct cli_args *a, const struct vt_play_summary *s,
                struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc = VT_OK;

    if (!cli_has(a, "quiet"))
        fprintf(stderr,
                "vtwin play: %llu requests (%llu finished, %llu aborted, %llu failed), "
                "%llu tokens in %llu messages; late by %.0f us (p50), %.0f us (p99)\n",
                (unsigned long long)s->requests, (unsigned long long)s->finished,
                (unsigned long long)s->aborted, (unsigned long long)s->failed,
                (unsigned long long)s->tokens, (unsigned long long)s->messages,
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
    struct vt_play_summary s = {0};
    struct job j;
    int rc = cli_operands(a, &cmd_play, 0, 1, err);

    if (rc != VT_OK)
        return rc;
    rc = open_job(&j, a, err);
    if (rc == VT_OK) {
        cli_signals_catch();
        rc = vt_play(&j.c, &s, err);
        cli_signal_answered();
        if (rc == VT_OK)
            rc = show(a, &s, err);
    }
    close_job(&j);
    return rc;
}

static const char *const operands[] = {NULL};
static const char *const examples[] = {
    "timeout --preserve-status 1 ./run play --profile qwen3-8b-h200",
    "timeout --preserve-status 1 ./run play --model null: --engine-count 2",
    NULL,
};

const struct cli_command cmd_play = {
    .name = "play",
    .summary = "stand in for an engine behind a real vLLM frontend",
    .usage = "[MODEL_DIR] [FLAGS]",
    .about =
        "Registers with a vLLM frontend over ZeroMQ as an engine would, schedules as\n"
        "vLLM does, and answers at the times of a profile, a model or a recording.\n"
        "Start the frontend with --data-parallel-size-local 0; either may come first.\n"
        "Tokens are random unless they are replayed: give MODEL_DIR (with its\n"
        "tokenizer.json) so that they are within the model's vocabulary.",
    .options = options,
    .operands = operands,
    .examples = examples,
    .run = run,
};
