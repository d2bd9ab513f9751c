/* cmd_serve.c - vtwin serve: an OpenAI-compatible server without a GPU. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "cli/cmd/wall.h"
#include "cli/signals.h"
#include "http/http.h"
#include "live/live.h"

static const char *const programs[] = {"vllm", "llm-d", NULL};
static const char *const modes[] = {"random", "echo", "dataset", NULL};

enum { MAX_NAMES = 64, MAX_ENGINES = 64 };

struct serve_options {
    struct vt_serve_config c; /* fields that flags fill; must be first */
    struct opt_list names, api_keys, loras;
    uint32_t port, body_mb, waiting_mb;
    int compat; /* vllm_rewrite() has seen to it */
    bool lora_updating;
    struct wall_options wall;
};

static int read_tokens(const struct opt_row *row, const char *text, void *field,
                       struct vt_err *err)
{
    double v;

    if (!opt_count(text, &v))
        return vt_fail(err, VT_EINPUT, "--%s: '%s' is not a number of tokens",
                       row->name, text);
    *(uint64_t *)field = (uint64_t)v;
    return VT_OK;
}

#define OPT_T struct serve_options
static const struct opt_row rows[] = {
    OPT_LIST(names, "served-model-name", "NAME",
             "what clients call the model; may be repeated",
             .shown = "MODEL_DIR, or the profile's"),
    OPT_TEXT(c.host, "host", "ADDR", "127.0.0.1",
             "where to listen; 0.0.0.0: everywhere"),
    OPT_U32(port, "port", "N", 0, 65535, "8000", "0: any free one"),
    OPT_WORD(compat, "compat", "PROGRAM", programs, "vllm",
             "whose flags these are: vllm serve's, or llm-d-inference-sim's"),
    OPT_WORD(c.answers, "mode", "M", modes, "random", "what answers say"),
    OPT_TEXT(c.dataset, "dataset-path", "FILE", NULL,
             "prompts and answers for --mode dataset: JSON, JSONL or CSV"),
    OPT_TEXT(c.lengths_from, "output-lengths", "FILE", NULL,
             "draw when an answer ends by itself from this trace",
             .shown = "about 200 tokens"),
    OPT_F64(c.tool_rate, "tool-call-rate", "P", 0, 1, "0.5",
            "chance that tool_choice auto calls a tool"),
    OPT_U32(c.embedding_dimensions, "embedding-dimensions", "N", 1, 65536, "384",
            "length of embeddings"),
    OPT_LIST(loras, "lora-modules", "NAME=PATH", "an adapter; may be repeated"),
    OPT_SWITCH(lora_updating, "runtime-lora-updating", "on",
               "adapters may be loaded and unloaded"),
    OPT_LIST(api_keys, "api-key", "KEY", "clients must give one; may be repeated"),
    OPT_TEXT(c.certfile, "ssl-certfile", "FILE", NULL,
             "serve HTTPS: certificates, PEM"),
    OPT_TEXT(c.keyfile, "ssl-keyfile", "FILE", NULL, "its key, PEM"),
    OPT_U32(body_mb, "max-request-body-mb", "N", 1, 1024, "64", "longer ones get 413"),
    OPT_U32(waiting_mb, "max-waiting-mb", "N", 1, 65536, "256",
            "of requests that wait to be read; more get 503"),
    OPT_U32(c.max_choices, "max-choices", "N", 1, 1000000, "4096",
            "prompts times n of a request; more gets 400"),
    OPT_U32(c.max_num_queued_reqs, "max-num-queued-reqs", "N", 0, INT32_MAX, NULL,
            "choices at once; more get 503; since 0.29", .shown = "any number"),
    OPT_READ(c.max_num_queued_tokens, "max-num-queued-tokens", "N", read_tokens, NULL,
             "the same by prompts that wait for a token: 5000, 5k, 5K",
             .shown = "any number"),
    OPT_U32(c.max_connections, "max-connections", "N", 1, 1000000, "16384",
            "more get 503"),
    OPT_SECONDS(c.idle_timeout_ns, "timeout-keep-alive", 0.1, 1e6, "60",
                "seconds that an idle peer may stay"),
    OPT_F64(c.shutdown_timeout_s, "shutdown-timeout", "S", 0, 1e6, "30",
            "seconds that requests may go on", .unit = VT_SEC),
    OPT_SWITCH(c.dev_mode, "dev-mode", "on",
               "routes of VLLM_SERVER_DEV_MODE: sleep, caches, pause"),
    OPT_FLAG(c.scale_out, "enable-scale-out", "0.32: prompts may be rendered"),
    OPT_FLAG(c.request_id_headers, "enable-request-id-headers",
             "answers bear X-Request-Id"),
    OPT_FLAG(c.force_usage, "enable-force-include-usage",
             "usage in every stream, asked for or not"),
    OPT_FLAG(c.prompt_details, "enable-prompt-tokens-details",
             "usage tells cached tokens"),
    OPT_TEXT(c.failure_kinds, "failure-types", "LIST", NULL,
             "how: rate_limit, server_error, broken_stream, ...",
             .shown = "all that answer an error"),
    {0},
};
static const struct opt_block blocks[] = {
    OPT_ROWS(rows),
    WALL_BLOCKS(struct serve_options, wall),
    {0},
};

struct serve_job {
    struct wall_job wall;
    struct vt_tokenizer *builtin;
    const char *own_name;
    struct vt_serve_lora lora[MAX_NAMES];
    struct vt_arena arena;
    struct vt_buf about; /* JSON: how far its times are to be trusted */
    struct vt_serve_config c;
    vt_ns began;
    bool quiet;
};

/* ---- what is said while it runs -------------------------------------- */

static void print_ready(void *user, const char *url)
{
    const struct serve_job *j = user;

    if (!j->quiet)
        fprintf(stderr,
                "vtwin serve: %s answers for '%s' as vLLM %s, timed by %s (up in %.0f "
                "ms)\n",
                url, j->c.name[0], j->c.vllm_version, j->c.timed_by,
                (double)(vt_wall_ns() - j->began) / 1e6);
}

/* ---- flags ----------------------------------------------------------- */

static int check_flags(const struct serve_options *o, struct vt_err *err)
{
    const struct vt_serve_config *c = &o->c;
    const struct {
        const char *name;
        size_t n;
    } list[] = {{"served-model-name", o->names.n},
                {"api-key", o->api_keys.n},
                {"lora-modules", o->loras.n}};

    for (size_t i = 0; i < VT_COUNT(list); i++)
        if (list[i].n > MAX_NAMES)
            return vt_fail(err, VT_EINPUT, "--%s is given more than %d times",
                           list[i].name, MAX_NAMES);
    if (o->wall.engine.dp > MAX_ENGINES)
        return vt_fail(err, VT_EINPUT,
                       "--data-parallel-size: '%u' is not a whole number from 1 to %d",
                       o->wall.engine.dp, MAX_ENGINES);
    if (!c->certfile != !c->keyfile)
        return vt_fail(err, VT_EINPUT,
                       "--ssl-certfile and --ssl-keyfile belong together");
    if ((c->dataset != NULL) != (c->answers == VT_ANSWER_DATASET))
        return vt_fail(err, VT_EINPUT,
                       "--dataset-path and --mode dataset belong together");
    return VT_OK;
}

/* Limits of the queue came with 0.29; the engine knows nothing of them. */
static int check_queue(const struct opt_args *a, const struct serve_options *o,
                       uint32_t vllm, struct vt_err *err)
{
    enum { SINCE = 29 };
    char why[64];
    int rc;

    if (vllm >= SINCE)
        return VT_OK;
    snprintf(why, sizeof(why), " came with vLLM 0.%d, but this is 0.%u", SINCE, vllm);
    rc = opt_refuse(a, &o->c.max_num_queued_reqs, why, err);
    return rc ? rc : opt_refuse(a, &o->c.max_num_queued_tokens, why, err);
}

static int split_loras(struct serve_job *j, const struct opt_list *list,
                       struct vt_err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *text = list->value[i], *equals = strchr(text, '=');
        char *name;

        if (!equals || equals == text || equals[1] == '\0')
            return vt_fail(err, VT_EINPUT, "--lora-modules '%s' is not NAME=PATH",
                           text);
        name = vt_arena_copy(&j->arena, text, (size_t)(equals - text));
        if (!name)
            return vt_nomem(err);
        j->lora[i] = (struct vt_serve_lora){name, equals + 1};
    }
    return VT_OK;
}

static int tell_about(struct serve_job *j, struct vt_err *err)
{
    const struct engine_job *e = &j->wall.engine;
    const struct vt_notes notes = engine_notes(e);
    const struct vt_extent none = {0};
    struct vt_jw w;

    vt_jw_init(&w, &j->about, &vt_json_tight);
    vt_jw_map(&w, NULL);
    vt_jw_str(&w, "profile", e->timed_by);
    vt_basis_members(&w, &e->trust);
    vt_outside_json(&w, &none, &none, &notes);
    vt_jw_end(&w);
    return j->about.failed ? vt_nomem(err) : VT_OK;
}

static void configure(struct serve_job *j, const struct opt_args *a,
                      const struct serve_options *o)
{
    const struct wall_options *w = &o->wall;
    const struct engine_job *e = &j->wall.engine;
    struct vt_serve_config *c = &j->c;

    *c = o->c;
    c->engine = e->config;
    c->side = j->wall.side;
    c->model = e->model;
    c->timed_by = e->timed_by;
    c->about = j->about.data;
    c->vllm_version = e->vllm_version;
    c->n_engines = w->engine.dp;
    c->gpu_memory_utilization = w->engine.gpu_memory_utilization;
    c->time_scale = w->time_scale;
    c->seed = (uint64_t)w->seed;
    c->tokenizer = j->wall.dir.tokenizer ? j->wall.dir.tokenizer : j->builtin;
    j->own_name = a->n_operands > 0 ? a->operand[0]
                  : e->has_profile  ? e->profile.name
                                    : "vtwin";
    c->name = o->names.n > 0 ? o->names.value : &j->own_name;
    c->n_names = o->names.n > 0 ? (uint32_t)o->names.n : 1;
    c->root = j->own_name;
    c->api_key = o->api_keys.value;
    c->n_api_keys = (uint32_t)o->api_keys.n;
    c->lora = j->lora;
    c->n_loras = (uint32_t)o->loras.n;
    if (c->n_loras > 0 || opt_given(a, &w->engine.config.max_loras))
        c->max_loras = e->config.max_loras;
    c->fixed_loras = !o->lora_updating;
    c->port = (uint16_t)o->port;
    c->max_body_bytes = (size_t)o->body_mb << 20;
    c->max_waiting_bytes = (size_t)o->waiting_mb << 20;
    c->limit_queued_reqs = opt_given(a, &o->c.max_num_queued_reqs);
    c->limit_queued_tokens = opt_given(a, &o->c.max_num_queued_tokens);
    c->failure_rate = w->failure_rate;
    c->fail_first = w->fail_first;
    c->kv = w->kv;
    c->otlp = w->otlp;
    c->log_requests = w->log_requests;
    c->log = w->quiet ? NULL : cli_tell_named;
    c->ready = print_ready;
    c->stopped = cli_stopped;
    c->user = j;
}

/* ---- the run --------------------------------------------------------- */

/* What the machine lends to one process. */
static void set_limits(void)
{
    struct rlimit r;

    /* Each connection is a descriptor. */
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
#ifdef __GLIBC__
    /* Large memory goes back when it is freed. By itself the library would keep more
     * and more of it, the larger the requests that have come. */
    (void)mallopt(M_MMAP_THRESHOLD, 256 << 10);
#endif
}

static int report_end(const struct serve_job *j, const struct serve_options *o,
                      const struct vt_serve_summary *s, struct vt_err *err)
{
    const struct wall_count counts[] = {
        {"connections", s->connections}, {"requests", s->requests},
        {"finished", s->finished},       {"aborted", s->aborted},
        {"refused", s->refused},         {"failed", s->failed},
        {"tokens", s->tokens},           {"steps", s->steps},
    };
    char said[256];

    snprintf(said, sizeof(said),
             "serve: %llu requests (%llu finished, %llu aborted, %llu refused, %llu "
             "failed), %llu tokens",
             (unsigned long long)s->requests, (unsigned long long)s->finished,
             (unsigned long long)s->aborted, (unsigned long long)s->refused,
             (unsigned long long)s->failed, (unsigned long long)s->tokens);
    return wall_report(&o->wall, j->c.model, WALL_END(s, said, counts), err);
}

static int serve(const struct opt_args *a, struct vt_err *err)
{
    const struct serve_options *o = a->options;
    struct serve_job j = {.began = vt_wall_ns(), .quiet = o->wall.quiet};
    struct vt_serve_summary s = {0};
    int rc = check_flags(o, err);

    if (rc || (rc = split_loras(&j, &o->loras, err)) ||
        (rc = wall_open(&j.wall, a, &o->wall, o->wall.engine.tp, err)) ||
        (rc = check_queue(a, o, j.wall.engine.config.vllm, err)))
        goto out;
    if (!j.wall.dir.tokenizer)
        rc = vt_tokenizer_builtin(&j.builtin, err);
    if (rc == VT_OK)
        rc = tell_about(&j, err);
    if (rc == VT_OK) {
        configure(&j, a, o);
        set_limits();
        cli_signals_catch();
        rc = vt_serve(&j.c, &s, err);
        cli_signal_answered();
        if (rc == VT_OK)
            rc = report_end(&j, o, &s, err);
    }
out:
    wall_close(&j.wall);
    vt_tokenizer_close(j.builtin);
    vt_buf_free(&j.about);
    vt_arena_free(&j.arena);
    return rc;
}

static const char *const examples[] = {
    "timeout --preserve-status 1 ./run serve --port 0",
    "timeout --preserve-status 1 ./run serve --profile llama-70b-fp8-h200 "
    "--served-model-name llama --port 0",
    NULL,
};

const struct opt_command cmd_serve = {
    .name = "serve",
    .summary = "an OpenAI-compatible server without a GPU",
    .usage = "[MODEL | MODEL_DIR] [FLAGS]",
    .about =
        "Answers the HTTP API of `vllm serve` and schedules as vLLM does, at the "
        "times\n"
        "of a profile or model. Answers are made up: random words, an echo, or a\n"
        "dataset's. Give MODEL_DIR (with its tokenizer.json) for the model's own\n"
        "tokens and chat template; without it a built-in tokenizer does. Ctrl-C or\n"
        "SIGTERM lets requests under way finish.",
    .blocks = blocks,
    .size = sizeof(struct serve_options),
    .most = 1,
    .examples = examples,
    .foreign = vllm_flags,
    .rewrite = vllm_rewrite,
    .run = serve,
};
