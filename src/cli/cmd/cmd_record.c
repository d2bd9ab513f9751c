/* cmd_record.c - vtwin record: a recorder between a vLLM frontend and its engines. */
#include "cli/cli.h"
#include "cli/signals.h"
#include "wire/wire.h"

#define ANY_PORT "tcp://127.0.0.1:*"

struct record_options {
    struct vt_tap_config c;
};

#define OPT_T struct record_options
static const struct opt_row rows[] = {
    OPT_TEXT(c.trace_out, "trace-out", "FILE", NULL,
             "the trace: one line for each request; gzip if it ends in .gz"),
    OPT_TEXT(c.wire_out, "wire-out", "FILE", NULL,
             "every message, bytes and meaning; gzip if it ends in .gz"),
    OPT_TEXT(c.step_stats_out, "step-stats-out", "FILE", NULL,
             "the scheduler's statistics, one line for each report"),
    OPT_FLAG(c.record_tokens, "record-tokens",
             "keep the ids of output tokens in the trace"),
    OPT_FLAG(c.durable, "durable",
             "a request's last message leaves when its line is in the file"),
    OPT_FLAG(c.append, "append",
             "go on with files that are there, of an engine that is set alike"),
    OPT_FLAG(c.overwrite, "overwrite", "replace files that are there"),
    OPT_TEXT(c.frontend, "frontend-handshake", "ADDRESS", "tcp://127.0.0.1:5570",
             "where the frontend waits for engines"),
    OPT_TEXT(c.engines, "engine-handshake", "ADDRESS", "tcp://127.0.0.1:5580",
             "where to wait for engines in its place"),
    OPT_TEXT(c.input, "input-address", "ADDRESS", ANY_PORT,
             "where engines take requests from; client i has the port + i"),
    OPT_TEXT(c.output, "output-address", "ADDRESS", ANY_PORT,
             "where engines put outputs"),
    OPT_TEXT(c.model, "model", "NAME", NULL, "the meta line's model"),
    OPT_TEXT(c.gpu, "gpu", "NAME", NULL, "the meta line's GPU"),
    OPT_U32(c.tp, "tp", "N", 1, INT32_MAX, NULL, "the meta line's tensor-parallel size",
            .shown = "as registered"),
    OPT_U32(c.max_num_seqs, "max-num-seqs", "N", 1, INT32_MAX, NULL,
            "the meta line's limit of running requests", .shown = "as registered"),
    OPT_U32(c.block_size, "block-size", "N", 1, INT32_MAX, NULL,
            "tokens behind each of a prompt's block_hashes", .shown = "as registered"),
    OPT_TEXT(c.engine_config, "engine-config", "TEXT", NULL,
             "the engine's settings, for the config_hash"),
    OPT_TEXT(c.config_hash, "config-hash", "HEX", NULL, "the config_hash itself"),
    OPT_TEXT(c.vllm_version, "vllm-version", "TAG", NULL,
             "end with exit 2 if the engine is of another line"),
    {0},
};
static const struct opt_block blocks[] = {OPT_ROWS(rows), {0}};

/* ---- the end ---------------------------------------------------------- */

static void put_count(struct vt_buf *b, uint64_t n, const char *what)
{
    if (n > 0)
        vt_buf_printf(b, "; %llu %s", (unsigned long long)n, what);
}

static int record(const struct opt_args *a, struct vt_err *err)
{
    const struct record_options *o = a->options;
    struct vt_tap_config c = o->c;
    struct vt_tap_summary s;
    struct vt_buf b = {0};
    int rc;

    if ((rc = opt_exclude(a, &o->c.append, &o->c.overwrite, err)))
        return rc;
    if (!c.trace_out && !c.wire_out)
        return vt_fail(err, VT_EINPUT,
                       "where to? --trace-out FILE, --wire-out FILE or both");
    if (!c.trace_out && (rc = opt_refuse(a, &o->c.durable, " needs --trace-out", err)))
        return rc;
    c.log = cli_tell_named;
    c.stopped = cli_stopped;
    cli_signals_catch();
    rc = vt_tap(&c, &s, err);
    cli_signal_answered(); /* which is how a recording ends well */
    if (rc == VT_EINPUT)
        return rc;
    vt_buf_printf(&b, "%llu messages", (unsigned long long)s.messages);
    if (c.trace_out)
        vt_buf_printf(&b, ", %llu requests written (%llu aborted)",
                      (unsigned long long)s.requests, (unsigned long long)s.aborted);
    put_count(&b, s.undecodable, "messages could not be decoded");
    put_count(&b, s.not_decoded, "messages were not decoded in time");
    put_count(&b, s.incomplete, "requests left out because of that");
    put_count(&b, s.unroutable, "messages had nowhere to go");
    if (!b.failed)
        cli_tell_named(NULL, b.data);
    vt_buf_free(&b);
    return rc;
}

static const char *const examples[] = {
    "timeout --preserve-status 1 ./run record --trace-out capture.jsonl.gz "
    "--engine-handshake 'tcp://127.0.0.1:*'",
    NULL,
};

const struct opt_command cmd_record = {
    .name = "record",
    .summary = "record what passes between a vLLM frontend and its engines",
    .usage = "--trace-out FILE [--wire-out FILE] [FLAGS]",
    .about =
        "Stands between frontend and engines: start the frontend with its handshake "
        "at\n"
        "--frontend-handshake, engines with theirs at --engine-handshake. Messages "
        "are\n"
        "forwarded first and decoded afterwards; with --durable all requests that a\n"
        "client has seen end are in the file, whenever it is killed. SIGINT or "
        "SIGTERM\n"
        "ends a recording.",
    .blocks = blocks,
    .size = sizeof(struct record_options),
    .examples = examples,
    .run = record,
};
