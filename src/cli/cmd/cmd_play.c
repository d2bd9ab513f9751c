/* cmd_play.c - vtwin play: an engine behind a real vLLM frontend. */
#include <stdio.h>
#include <string.h>

#include "cli/cmd/wall.h"
#include "cli/signals.h"
#include "wire/wire.h"

static const char *const matches[] = {"index", "prefix", "id", NULL};
static const char *const dtypes[] = {"bfloat16", "float16", "float32", NULL};

struct play_options {
    struct vt_play_config c; /* fields that flags fill; must be first */
    int dtype;
    bool waves;
    int64_t die_after;
    const char *latency_trace;
    struct wall_options wall;
};

/* 0.25 can be spoken, too; it is scheduled as the oldest whose scheduler is known. */
static int read_version(const struct opt_row *row, const char *text, void *field,
                        struct vt_err *err)
{
    struct engine_release *r = field;

    if (!vt_wire_line_find(text))
        return engine_read_release(row, text, field, err);
    *r = (struct engine_release){text, vt_vllm_nearest(text)};
    return VT_OK;
}

#define OPT_T struct play_options
static const struct opt_row rows[] = {
    OPT_TEXT(c.handshake, "handshake-address", "ADDR", "tcp://127.0.0.1:29550",
             "where the frontend waits for engines"),
    OPT_U32(c.n_engines, "engine-count", "N", 1, 1024, "1",
            "data-parallel ranks to play"),
    OPT_U32(c.first_rank, "engine-start-index", "N", 0, 65535, "0",
            "the first of them"),
    OPT_READ(wall.engine.release, "vllm-version", "V", read_version, NULL,
             "the frontend's version of vLLM, and whose scheduler",
             .shown = "by the first request"),
    OPT_READ(wall.engine.release, "vllm-line", "V", read_version, NULL,
             "the same, as it was called before"),
    OPT_TEXT(latency_trace, "latency-trace", "FILE", NULL,
             "time as this trace: model trace:file=FILE, and its output lengths"),
    OPT_WORD(dtype, "dtype", "T", dtypes, "bfloat16",
             "what the engine says it computes in"),
    OPT_U32(wall.engine.config.max_loras, "max-loras", "N", 1, 1024, NULL,
            "adapters whose requests run together, and what it says",
            .shown = "1, but it says none"),
    OPT_TEXT(c.instance_id, "instance-id", "ID", "vtwin",
             "what the engine calls itself"),
    OPT_SWITCH(c.headless, "headless", "on", "HELLO says that it is headless"),
    OPT_TEXT(c.parallel_config_hash, "parallel-config-hash", "H", NULL,
             "what READY says of it"),
    OPT_SWITCH(waves, "wave-coordination", NULL, "ranks start and stop together",
               .shown = "for mixtures of experts"),
    OPT_SWITCH(c.log_stats, "log-stats", "on", "tell frontends statistics and events"),
    OPT_FLAG(c.iteration_details, "enable-logging-iteration-details",
             "statistics tell what each step computed"),
    OPT_U32(c.vocab_size, "vocab-size", "N", 1, INT32_MAX, NULL, "ids of random tokens",
            .shown = "MODEL_DIR's, or 32000"),
    OPT_TEXT(c.replay_tokens, "replay-tokens", "FILE", NULL,
             "answer with the tokens of a trace or dataset"),
    OPT_TEXT(c.replay_steps, "replay-steps", "FILE", NULL,
             "answer at the times and in the chunks of a trace"),
    OPT_WORD(c.match, "replay-match", "HOW", matches, "index",
             "which record answers a request"),
    OPT_TEXT(c.lengths_from, "output-lengths", "FILE", NULL,
             "draw when a request ends by itself from this trace",
             .shown = "--latency-trace's"),
    OPT_TEXT(c.failure_types, "failure-types", "LIST", NULL,
             "how: error, length, repetition, abort", .shown = "error"),
    OPT_FLAG(c.fail_first_by_id, "fail-first-by-id",
             "the first N with the same id: a retry succeeds"),
    OPT_I64(die_after, "die-after", "N", 1, INT64_MAX, NULL,
            "die like a crashed engine at request N"),
    OPT_TEXT(c.step_stats_out, "step-stats-out", "FILE", NULL,
             "write statistics of every step"),
    OPT_TEXT(c.session_file, "session-file", "FILE", NULL,
             "go on with the same frontend when started again"),
    OPT_F64(c.shutdown_timeout_s, "shutdown-timeout", "S", 0, 1e6, "0",
            "seconds that requests may go on", .unit = VT_SEC),
    {0},
};
static const struct opt_block blocks[] = {
    OPT_ROWS(rows),
    WALL_BLOCKS(struct play_options, wall),
    {0},
};

struct play_job {
    struct wall_job wall;
    struct vt_latency *from_trace; /* of --latency-trace */
    struct vt_play_config c;
};

/* ---- flags ------------------------------------------------------------ */

/* With --latency-trace, the model that it names in place of --latency and --profile. */
static int open_engine(struct play_job *j, const struct opt_args *a,
                       const struct play_options *o, struct vt_err *err)
{
    const struct engine_options *e = &o->wall.engine;
    struct vt_buf spec = {0};
    int rc = VT_OK;

    if (o->latency_trace && (engine_inline_model(e) || opt_given(a, &e->profile)))
        return vt_fail(err, VT_EINPUT,
                       "--latency-trace stands in place of --latency and --profile");
    if (o->latency_trace) {
        vt_buf_printf(&spec, "trace:file=%s", o->latency_trace);
        rc = spec.failed ? vt_nomem(err)
                         : vt_model_open_inline(&j->from_trace, spec.data, err);
        vt_buf_free(&spec);
    }
    /* Times that were not fitted on GPUs stay what they are: the registration tells the
     * frontend of more of them. */
    if (rc != VT_OK ||
        (rc = wall_open(&j->wall, a, &o->wall,
                        j->from_trace || engine_inline_model(e) ? 0 : e->tp, err)))
        return rc;
    return opt_exclude(a, &o->c.n_engines, &e->dp, err);
}

static void configure(struct play_job *j, const struct opt_args *a,
                      const struct play_options *o)
{
    const struct wall_options *w = &o->wall;
    const struct model_dir *dir = &j->wall.dir;
    struct vt_play_config *c = &j->c;

    *c = o->c;
    c->engine = j->wall.engine.config;
    c->side = j->wall.side;
    c->model = j->from_trace ? j->from_trace : j->wall.engine.model;
    c->time_scale = w->time_scale;
    c->seed = (uint64_t)w->seed;
    if (opt_given(a, &w->engine.dp))
        c->n_engines = w->engine.dp;
    c->tensor_parallel_size = w->engine.tp > 0 ? w->engine.tp : 1;
    c->line = w->engine.release.text ? vt_wire_line_find(w->engine.release.text) : NULL;
    c->follow_line = !w->engine.release.text;
    c->vllm_version = j->wall.engine.vllm_version;
    if (opt_given(a, &w->engine.config.max_loras))
        c->max_loras = c->engine.max_loras;
    c->dtype = dtypes[o->dtype];
    c->waves =
        opt_given(a, &o->waves) ? o->waves : dir->arch.experts > 0 && c->n_engines > 1;
    if (c->vocab_size == 0)
        c->vocab_size = dir->vocab_size > 0 ? dir->vocab_size : 32000;
    c->skip_token = dir->skip.id;
    c->n_skip_tokens = (uint32_t)dir->skip.n;
    if (!c->lengths_from)
        c->lengths_from = o->latency_trace;
    if (dir->tokenizer) {
        c->encode = model_dir_encode;
        c->encode_user = &j->wall.dir;
    }
    c->failure_rate = w->failure_rate;
    c->fail_first = w->fail_first;
    c->die_after = (uint64_t)o->die_after;
    c->kv = w->kv;
    c->otlp = w->otlp;
    c->log_requests = w->log_requests;
    c->log = w->quiet ? NULL : cli_tell_named;
    c->stopped = cli_stopped;
}

/* ---- the run ---------------------------------------------------------- */

static int play(const struct opt_args *a, struct vt_err *err)
{
    const struct play_options *o = a->options;
    struct vt_play_summary sums = {0}, *s = &sums;
    struct play_job j = {0};
    int rc = open_engine(&j, a, o, err);

    if (rc == VT_OK) {
        configure(&j, a, o);
        cli_signals_catch();
        rc = vt_play(&j.c, s, err);
        cli_signal_answered();
    }
    if (rc == VT_OK) {
        const struct wall_count counts[] = {
            {"requests", s->requests}, {"finished", s->finished},
            {"aborted", s->aborted},   {"failed", s->failed},
            {"matched", s->matched},   {"tokens", s->tokens},
            {"steps", s->steps},       {"messages", s->messages},
        };
        char said[256];

        snprintf(said, sizeof(said),
                 "play: %llu requests (%llu finished, %llu aborted, %llu failed), %llu "
                 "tokens in %llu messages",
                 (unsigned long long)s->requests, (unsigned long long)s->finished,
                 (unsigned long long)s->aborted, (unsigned long long)s->failed,
                 (unsigned long long)s->tokens, (unsigned long long)s->messages);
        rc = wall_report(&o->wall, j.c.model, WALL_END(s, said, counts), err);
    }
    vt_latency_close(j.from_trace);
    wall_close(&j.wall);
    return rc;
}

static const char *const examples[] = {
    "timeout --preserve-status 1 ./run play --profile qwen3-8b-h200",
    "timeout --preserve-status 1 ./run play --latency null: --engine-count 2",
    NULL,
};

const struct opt_command cmd_play = {
    .name = "play",
    .summary = "stand in for an engine behind a real vLLM frontend",
    .usage = "[MODEL | MODEL_DIR] [FLAGS]",
    .about =
        "Registers with a vLLM frontend over ZeroMQ as an engine would, schedules as\n"
        "vLLM does, and answers at the times of a profile, a model or a recording.\n"
        "Start the frontend with --data-parallel-size-local 0; either may come first.\n"
        "Tokens are random unless they are replayed: give MODEL_DIR (with its\n"
        "tokenizer.json) so that they are within the model's vocabulary.",
    .blocks = blocks,
    .size = sizeof(struct play_options),
    .most = 1,
    .examples = examples,
    .foreign = vllm_flags,
    .rewrite = vllm_rewrite,
    .run = play,
};
