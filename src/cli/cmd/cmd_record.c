/* cmd_record.c - vtwin record: a recorder between a vLLM frontend and its engines. */
#include "cli/cli.h"
#include "cli/signals.h"
#include "wire/wire.h"

#define FRONTEND "tcp://127.0.0.1:5570"
#define ENGINES  "tcp://127.0.0.1:5580"
#define ANY_PORT "tcp://127.0.0.1:*"

/* ---- flags ------------------------------------------------------------ */

static void print_line(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "vtwin record: %s\n", line);
}

static bool stopped(void *user)
{
    (void)user;
    return cli_signal_caught() != 0;
}

static int take_flags(struct vt_tap_config *c, const struct cli_args *a,
                      struct vt_err *err)
{
    int rc;

    *c = (struct vt_tap_config){
        .frontend = cli_str_or(a, "frontend-handshake", FRONTEND),
        .engines = cli_str_or(a, "engine-handshake", ENGINES),
        .input = cli_str_or(a, "input-address", ANY_PORT),
        .output = cli_str_or(a, "output-address", ANY_PORT),
        .trace_out = cli_str(a, "trace-out"),
        .wire_out = cli_str(a, "wire-out"),
        .step_stats_out = cli_str(a, "step-stats-out"),
        .overwrite = cli_has(a, "overwrite"),
        .record_tokens = cli_has(a, "record-tokens"),
        .model = cli_str(a, "model"),
        .gpu = cli_str(a, "gpu"),
        .engine_config = cli_str(a, "engine-config"),
        .config_hash = cli_str(a, "config-hash"),
        .vllm_version = cli_str(a, "vllm-version"),
        .log = print_line,
        .stopped = stopped,
    };
    if (!c->trace_out && !c->wire_out)
        return vt_fail(err, VT_EINPUT,
                       "where to? --trace-out FILE, --wire-out FILE or both");
    if ((rc = cli_u32(a, "tp", 1, INT32_MAX, &c->tp, err)) ||
        (rc = cli_u32(a, "max-num-seqs", 1, INT32_MAX, &c->max_num_seqs, err)) ||
        (rc = cli_u32(a, "block-size", 1, INT32_MAX, &c->block_size, err)))
        return rc;
    return VT_OK;
}

/* ---- the end ---------------------------------------------------------- */

static void put_count(struct vt_buf *b, uint64_t n, const char *what)
{
    if (n > 0)
        vt_buf_printf(b, "; %llu %s", (unsigned long long)n, what);
}

static void tell_end(const struct vt_tap_config *c, const struct vt_tap_summary *s)
{
    struct vt_buf b = {0};

    vt_buf_printf(&b, "%llu messages", (unsigned long long)s->messages);
    if (c->trace_out)
        vt_buf_printf(&b, ", %llu requests written (%llu aborted)",
                      (unsigned long long)s->requests, (unsigned long long)s->aborted);
    put_count(&b, s->undecodable, "messages could not be decoded");
    put_count(&b, s->not_decoded, "messages were not decoded in time");
    put_count(&b, s->incomplete, "requests left out because of that");
    put_count(&b, s->unroutable, "messages had nowhere to go");
    if (!b.failed)
        print_line(NULL, b.data);
    vt_buf_free(&b);
}

static int run(const struct cli_args *a, struct vt_err *err)
{
    struct vt_tap_summary s;
    struct vt_tap_config c;
    int rc = cli_operands(a, &cmd_record, 0, 0, err);

    if (rc == VT_OK)
        rc = take_flags(&c, a, err);
    if (rc != VT_OK)
        return rc;
    cli_signals_catch();
    rc = vt_tap(&c, &s, err);
    cli_signal_answered(); /* which is how a recording ends well */
    if (rc != VT_EINPUT)
        tell_end(&c, &s);
    return rc;
}

/* ---- the table -------------------------------------------------------- */

static const struct cli_option options[] = {
    {.name = "trace-out",
     .value = "FILE",
     .help = "the trace: one line for each request; gzip if it ends in .gz"},
    {.name = "wire-out",
     .value = "FILE",
     .help = "every message, bytes and meaning; gzip if it ends in .gz"},
    {.name = "step-stats-out",
     .value = "FILE",
     .help = "the scheduler's statistics, one line for each report"},
    {.name = "record-tokens",
     .kind = CLI_FLAG,
     .help = "keep the ids of output tokens in the trace"},
    {.name = "overwrite", .kind = CLI_FLAG, .help = "replace files that are there"},
    {.name = "frontend-handshake",
     .value = "ADDRESS",
     .fallback = FRONTEND,
     .help = "where the frontend waits for engines"},
    {.name = "engine-handshake",
     .value = "ADDRESS",
     .fallback = ENGINES,
     .help = "where to wait for engines in its place"},
    {.name = "input-address",
     .value = "ADDRESS",
     .fallback = ANY_PORT,
     .help = "where engines take requests from; client i has the port + i"},
    {.name = "output-address",
     .value = "ADDRESS",
     .fallback = ANY_PORT,
     .help = "where engines put outputs"},
    {.name = "model", .value = "NAME", .help = "the meta line's model"},
    {.name = "gpu", .value = "NAME", .help = "the meta line's GPU"},
    {.name = "tp",
     .value = "N",
     .fallback = "as registered",
     .help = "the meta line's tensor-parallel size"},
    {.name = "max-num-seqs",
     .value = "N",
     .fallback = "as registered",
     .help = "the meta line's limit of running requests"},
    {.name = "block-size",
     .value = "N",
     .fallback = "as registered",
     .help = "tokens behind each of a prompt's block_hashes"},
    {.name = "engine-config",
     .value = "TEXT",
     .help = "the engine's settings, for the config_hash"},
    {.name = "config-hash", .value = "HEX", .help = "the config_hash itself"},
    {.name = "vllm-version",
     .value = "TAG",
     .help = "end with exit 2 if the engine is of another line"},
    {0},
};
static const char *const operands[] = {NULL};
static const char *const examples[] = {
    "timeout --preserve-status 1 ./run record --trace-out capture.jsonl.gz "
    "--engine-handshake 'tcp://127.0.0.1:*'",
    NULL,
};

const struct cli_command cmd_record = {
    .name = "record",
    .summary = "record what passes between a vLLM frontend and its engines",
    .usage = "--trace-out FILE [--wire-out FILE] [FLAGS]",
    .about =
        "Stands between frontend and engines: start the frontend with its handshake "
        "at\n"
        "--frontend-handshake, engines with theirs at --engine-handshake. Messages "
        "are\n"
        "forwarded first and decoded afterwards. Whenever it is killed, all requests\n"
        "that have finished are in the file. SIGINT or SIGTERM ends a recording.",
    .options = options,
    .operands = operands,
    .examples = examples,
    .run = run,
};
