/* cmd_inspect.c - vtwin inspect: looks at captures, converts and draws them. */
#include "cli/cmd/inspect.h"
#include "text/text.h"

/* ---- stats ------------------------------------------------------------ */

const char *inspect_trace(const struct opt_args *a, struct cli_report *r)
{
    return cli_report_trace(a->operand[1], r);
}

const char *inspect_steps(const struct inspect_options *o, const struct cli_report *r,
                          const char *trace)
{
    return o->steps                   ? o->steps
           : r->steps[0]              ? r->steps
           : inspect_has_steps(trace) ? trace
                                      : NULL;
}

static int put_stats(struct vt_buf *b, const struct inspect_options *o,
                     const struct vt_records *r, struct vt_err *err)
{
    struct vt_view v = {0};
    int rc = vt_view_records(&v, r, err);

    if (rc == VT_OK)
        rc = o->json ? vt_load_json(b, &v, r->source, err) : vt_load_table(b, &v, err);
    if (rc == VT_OK && !o->json && inspect_is_spans(r->source))
        rc = inspect_spans_kv(r->source, b, err);
    vt_view_free(&v);
    return rc;
}

static int inspect_stats(const struct opt_args *a, struct vt_err *err)
{
    const struct inspect_options *o = a->options;
    struct cli_report report;
    const char *trace = inspect_trace(a, &report);
    struct vt_records r = {0};
    struct vt_buf b = {0};
    int rc = vt_records_load(&r, trace, err);

    if (rc == VT_OK)
        rc = put_stats(&b, o, &r, err);
    else if (!o->json && inspect_tells_kv_alone(trace))
        rc = inspect_spans_check(trace, false, &b, err);
    rc = cli_print_end(&b, rc, err);
    vt_records_free(&r);
    return rc;
}

/* ---- convert ---------------------------------------------------------- */

static int inspect_convert(const struct opt_args *a, struct vt_err *err)
{
    const struct inspect_options *o = a->options;
    struct cli_report report;
    struct vt_convert c = {.in = inspect_trace(a, &report),
                           .out = o->out,
                           .from = opt_word(vt_convert_readers, o->from),
                           .to = opt_word(vt_convert_writers, o->to)};
    struct vt_tokenizer *tokenizer = NULL;
    struct vt_converted done;
    struct vt_buf b = {0};
    int rc = VT_OK;

    if (!c.out)
        return vt_fail(err, VT_EINPUT, "where to? -o FILE");
    if (o->tokenizer)
        rc = vt_within(err, vt_tokenizer_open(&tokenizer, o->tokenizer, err),
                       "--tokenizer");
    c.tokenizer = tokenizer;
    if (rc == VT_OK)
        rc = vt_convert(&c, &done, err);
    vt_tokenizer_close(tokenizer);
    if (rc != VT_OK)
        return rc;
    vt_buf_printf(&b, "%zu requests from %s to %s", done.requests, done.from, done.to);
    if (done.skipped > 0)
        vt_buf_printf(&b, "; %zu that failed, were aborted or gave no token left out",
                      done.skipped);
    vt_buf_char(&b, '\n');
    if (done.nulls > 0)
        vt_buf_printf(&b, "note: %zu numbers are NaN or infinite and read as missing\n",
                      done.nulls);
    if (done.note[0])
        vt_buf_printf(&b, "note: %s\n", done.note);
    return cli_print(&b, err);
}

/* ---- perfetto --------------------------------------------------------- */

static int inspect_perfetto(const struct opt_args *a, struct vt_err *err)
{
    const struct inspect_options *o = a->options;
    struct cli_report report;
    const char *trace = inspect_trace(a, &report),
               *steps = inspect_steps(o, &report, trace);
    struct vt_records r = {0};
    struct vt_steps s = {0};
    struct vt_buf b = {0};
    size_t left_out = 0;
    int rc;

    if (!o->out)
        return vt_fail(err, VT_EINPUT, "where to? -o FILE");
    rc = vt_records_load(&r, trace, err);
    if (rc == VT_OK && steps)
        rc = vt_steps_load(&s, steps, err);
    if (rc == VT_OK)
        rc = vt_perfetto_write(&r, steps ? &s : NULL, o->out, &left_out, err);
    vt_buf_printf(&b, "%zu requests and %zu steps; open %s in ui.perfetto.dev\n",
                  r.n - left_out, s.n, o->out);
    if (left_out > 0)
        vt_buf_printf(&b, "%zu without arrival or measured times left out\n", left_out);
    rc = cli_print_end(&b, rc, err);
    vt_steps_free(&s);
    vt_records_free(&r);
    return rc;
}

/* ---- the table -------------------------------------------------------- */

/* To add a subcommand: write its function, add a row here and its name to the operands
 * below, and describe it in docs/inspect.md. */
static const struct opt_sub subs[] = {
    {"stats", "TRACE [--json]", 1, 1, inspect_stats},
    {"validate", "FILE [--kind KIND] [--all]", 1, 1, inspect_validate},
    {"calibrate", "TRACE [--profile P | --latency M] [--tolerance X] [--json]", 1, 1,
     inspect_calibrate},
    {"convert", "IN -o OUT [--from FORMAT] [--to FORMAT]", 1, 1, inspect_convert},
    {"plot", "[LOAD:][NAME=]FILE... -o DIR|FILE [--profile P] [--latency M]", 1,
     UINT32_MAX, inspect_plot},
    {"perfetto", "TRACE -o OUT.json [--steps FILE]", 1, 1, inspect_perfetto},
    {"seeds", "TRACE TRACE... [--json]", 2, UINT32_MAX, inspect_seeds},
    {0},
};
enum {
    STATS = 1,
    VALIDATE = 2,
    CALIBRATE = 4,
    CONVERT = 8,
    PLOT = 16,
    PERFETTO = 32,
    SEEDS = 64
};

static const char *const kinds[] = {"trace",   "steps", "workload",
                                    "profile", "otlp",  NULL};

#define OPT_T struct inspect_options
static const struct opt_row rows[] = {
    OPT_TEXT(out, "out", "PATH", NULL, "where the result goes; -o is short for it",
             .subs = CONVERT | PLOT | PERFETTO),
    OPT_FLAG(json, "json", "stats, calibrate, seeds: print JSON",
             .subs = STATS | CALIBRATE | SEEDS),
    OPT_WORD(kind, "kind", "KIND", kinds, NULL, "validate: what the file should be",
             .shown = "by its content", .subs = VALIDATE),
    OPT_FLAG(all, "all", "validate: every bad line, not only the first",
             .subs = VALIDATE),
    OPT_LIST(profiles, "profile", "NAME|FILE",
             "calibrate, plot: what to compare; plot takes several",
             .shown = "by the capture's model", .subs = CALIBRATE | PLOT),
    OPT_LIST(models, "latency", "SPEC", "the same, inline as KIND:key=value,...",
             .subs = CALIBRATE | PLOT),
    OPT_LIST(old_models, "model", "SPEC", "", .subs = CALIBRATE | PLOT,
             .now = "latency"),
    OPT_F64(tolerance, "tolerance", "X", 0, 1, NULL,
            "calibrate: largest error that passes",
            .shown = "what a second run would be off by", .subs = CALIBRATE),
    OPT_FLAG(band, "band", "calibrate: the band of long gaps, and a verdict by it",
             .subs = CALIBRATE),
    OPT_TEXT(
        dump_samples, "dump-samples", "FILE", NULL,
        "calibrate: TTFTs and gaps as JSON, captured, modelled and of fitted knobs",
        .subs = CALIBRATE),
    OPT_WORD(from, "from", "FORMAT", vt_convert_readers, NULL,
             "convert: what the input is", .shown = "by its content", .subs = CONVERT),
    OPT_WORD(to, "to", "FORMAT", vt_convert_writers, NULL, "convert: what to write",
             .shown = "by its name", .subs = CONVERT),
    OPT_TEXT(tokenizer, "tokenizer", "DIR", NULL,
             "convert: the model's, for what prompts share", .shown = "a guess",
             .subs = CONVERT),
    OPT_TEXT(steps, "steps", "FILE", NULL, "plot, perfetto: the capture's steps.jsonl",
             .subs = PLOT | PERFETTO),
    OPT_TEXT(format, "format", "LIST", "pdf,svg,png,html",
             "plot: which kinds of file to put into the directory", .subs = PLOT),
    OPT_TEXT(fits, "fits", "LIST", NULL,
             "plot: fitted to the capture: trace, knob, none",
             .shown = "trace,knob; of several none", .subs = PLOT),
    OPT_WORD(figure, "figure", "NAME", vt_figure_names, NULL, "plot: which figure",
             .shown = "all, or itl-survival for a single file", .subs = PLOT),
    OPT_I64(seed, "seed", "N", 0, INT64_MAX, "0",
            "calibrate, plot: seed of the simulation", .subs = CALIBRATE | PLOT),
    {0},
};
static const struct opt_block blocks[] = {
    OPT_ROWS(rows),
    {model_rows, offsetof(struct inspect_options, engine), CALIBRATE | PLOT},
    {engine_rows, offsetof(struct inspect_options, engine), CALIBRATE | PLOT},
    OPT_BLOCK(cli_files_rows, struct inspect_options, files),
    {0},
};

static const char *const operands[] = {"stats", "validate", "calibrate", "convert",
                                       "plot",  "perfetto", "seeds",     NULL};
#define CAPTURE "tests/trace/data/closed-c2.trace.jsonl.gz"

static const char *const examples[] = {
    "./run inspect stats " CAPTURE,
    "./run inspect convert " CAPTURE " -o requests.csv",
    "./run inspect perfetto " CAPTURE " -o chrome.json",
    "./run inspect plot " CAPTURE " -o page.html",
    NULL,
};

const struct opt_command cmd_inspect = {
    .name = "inspect",
    .summary = "look at captures: statistics, checks, figures, other formats",
    .usage = "stats|validate|calibrate|convert|plot|perfetto|seeds FILE [FLAGS]",
    .about =
        "stats      what requests took, by how many were in flight\n"
        "validate   checks a trace, step log, workload or profile; names bad lines\n"
        "calibrate  captured against modelled TTFT, gaps and totals; exit 1 if too "
        "far\n"
        "convert    traces of vtwin, vllm-vcr and BLIS, request lists, spans; reports "
        "of\n"
        "           guidellm, inference-perf, AIPerf and vllm bench to traces\n"
        "plot       figures of a capture beside models (needs gnuplot)\n"
        "perfetto   a Chrome trace of requests and steps, for ui.perfetto.dev\n"
        "seeds      whether captures of one load agree; names an odd one, exit 1",
    .blocks = blocks,
    .size = sizeof(struct inspect_options),
    .operands = operands,
    .subs = subs,
    .examples = examples,
};
