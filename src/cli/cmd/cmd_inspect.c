/* cmd_inspect.c - vtwin inspect: looks at captures, converts and draws them. */
#include "cli/cmd/inspect.h"

/* ---- stats ------------------------------------------------------------ */

static int inspect_stats(const struct cli_args *a, struct vt_err *err)
{
    struct vt_records r = {0};
    struct vt_view v = {0};
    struct vt_buf b = {0};
    int rc = vt_records_load(&r, a->operand[1], err);

    if (rc == VT_OK)
        rc = vt_view_records(&v, &r, err);
    if (rc == VT_OK)
        rc = cli_has(a, "json") ? vt_load_json(&b, &v, r.source, err)
                                : vt_load_table(&b, &v, err);
    if (rc == VT_OK)
        rc = cli_print(&b, err);
    vt_buf_free(&b);
    vt_view_free(&v);
    vt_records_free(&r);
    return rc;
}

/* ---- convert ---------------------------------------------------------- */

static int inspect_convert(const struct cli_args *a, struct vt_err *err)
{
    struct vt_convert c = {.in = a->operand[1], .out = cli_str(a, "out")};
    struct vt_converted done;
    struct vt_buf b = {0};
    int word, rc;

    if (!c.out)
        return vt_fail(err, VT_EINPUT, "where to? -o FILE");
    if ((rc = cli_word(a, "from", &word, err)) || (rc = cli_word(a, "to", &word, err)))
        return rc;
    c.from = cli_str(a, "from");
    c.to = cli_str(a, "to");
    rc = vt_convert(&c, &done, err);
    if (rc != VT_OK)
        return rc;
    vt_buf_printf(&b, "%zu requests from %s to %s", done.requests, done.from, done.to);
    if (done.skipped > 0)
        vt_buf_printf(&b, "; %zu that failed or gave no token left out", done.skipped);
    vt_buf_char(&b, '\n');
    if (done.note[0])
        vt_buf_printf(&b, "note: %s\n", done.note);
    rc = cli_print(&b, err);
    vt_buf_free(&b);
    return rc;
}

/* ---- perfetto --------------------------------------------------------- */

static int inspect_perfetto(const struct cli_args *a, struct vt_err *err)
{
    const char *steps_path = cli_str(a, "steps"), *out = cli_str(a, "out");
    struct vt_records r = {0};
    struct vt_steps s = {0};
    struct vt_buf b = {0};
    size_t left_out = 0;
    int rc;

    if (!out)
        return vt_fail(err, VT_EINPUT, "where to? -o FILE");
    rc = vt_records_load(&r, a->operand[1], err);
    if (rc == VT_OK && steps_path)
        rc = vt_steps_load(&s, steps_path, err);
    if (rc == VT_OK)
        rc = vt_perfetto_write(&r, steps_path ? &s : NULL, out, &left_out, err);
    if (rc == VT_OK) {
        vt_buf_printf(&b, "%zu requests and %zu steps; open %s in ui.perfetto.dev\n",
                      r.n - left_out, s.n, out);
        if (left_out > 0)
            vt_buf_printf(&b, "%zu without arrival or measured times left out\n",
                          left_out);
        rc = cli_print(&b, err);
    }
    vt_buf_free(&b);
    vt_steps_free(&s);
    vt_records_free(&r);
    return rc;
}

/* ---- the table -------------------------------------------------------- */

/* To add a subcommand: write its function, add a row here and its name to the operands
 * below, and describe it in docs/inspect.md. */
static const struct sub {
    const char *name;
    const char *usage;
    const char *flags; /* of the command's, those it takes: " a b " */
    int (*run)(const struct cli_args *a, struct vt_err *err);
} subs[] = {
    {"stats", "TRACE [--json]", " json ", inspect_stats},
    {"validate", "FILE [--kind KIND] [--all]", " kind all ", inspect_validate},
    {"calibrate", "TRACE [--profile P | --model M] [--tolerance X] [--json]",
     " profile model tolerance json dump-samples seed ", inspect_calibrate},
    {"convert", "IN -o OUT [--from FORMAT] [--to FORMAT]", " out from to ",
     inspect_convert},
    {"plot", "TRACE -o DIR|FILE [--steps FILE] [--profile P] [--model M]",
     " out steps profile model format figure seed ", inspect_plot},
    {"perfetto", "TRACE -o OUT.json [--steps FILE]", " out steps ", inspect_perfetto},
};

static int check_flags(const struct sub *s, const struct cli_args *a,
                       struct vt_err *err)
{
    char word[64];

    for (size_t i = 0; i < a->n_given; i++) {
        snprintf(word, sizeof(word), " %s ", a->given[i].option->name);
        if (!strstr(s->flags, word))
            return vt_fail(err, VT_EINPUT,
                           "--%s is not for inspect %s; usage: vtwin "
                           "inspect %s %s",
                           a->given[i].option->name, s->name, s->name, s->usage);
    }
    return VT_OK;
}

static int run(const struct cli_args *a, struct vt_err *err)
{
    int rc;

    if (a->n_operands == 0)
        return vt_fail(err, VT_EINPUT, "usage: vtwin inspect %s", cmd_inspect.usage);
    for (size_t i = 0; i < VT_COUNT(subs); i++) {
        if (strcmp(subs[i].name, a->operand[0]) != 0)
            continue;
        if (a->n_operands != 2)
            return vt_fail(err, VT_EINPUT, "usage: vtwin inspect %s %s", subs[i].name,
                           subs[i].usage);
        rc = check_flags(&subs[i], a, err);
        return rc == VT_OK ? subs[i].run(a, err) : rc;
    }
    return cli_unknown_sub(&cmd_inspect, a->operand[0], err);
}

static const char *const kinds[] = {"trace", "steps", "workload", "profile", NULL};
static const struct cli_option options[] = {
    {"out", CLI_VALUE, "PATH", NULL, "where the result goes; -o is short for it", NULL},
    {"json", CLI_FLAG, NULL, NULL, "stats, calibrate: print JSON", NULL},
    {"kind", CLI_VALUE, "KIND", "by its content", "validate: what the file should be",
     kinds},
    {"all", CLI_FLAG, NULL, NULL, "validate: every bad line, not only the first", NULL},
    {"profile", CLI_VALUE, "NAME|FILE", "by the capture's model",
     "calibrate, plot: what to compare; plot takes several", NULL},
    {"model", CLI_VALUE, "SPEC", NULL, "the same, inline as KIND:key=value,...", NULL},
    {"tolerance", CLI_VALUE, "X", "0.10", "calibrate: largest error that passes", NULL},
    {"dump-samples", CLI_VALUE, "FILE", NULL,
     "calibrate: TTFTs and gaps as JSON, captured, modelled and of fitted knobs", NULL},
    {"from", CLI_VALUE, "FORMAT", "by its content", "convert: what the input is",
     vt_convert_readers},
    {"to", CLI_VALUE, "FORMAT", "by its name", "convert: what to write",
     vt_convert_writers},
    {"steps", CLI_VALUE, "FILE", NULL, "plot, perfetto: the capture's steps.jsonl",
     NULL},
    {"format", CLI_VALUE, "LIST", "pdf,svg,png,html",
     "plot: which kinds of file to put into the directory", NULL},
    {"figure", CLI_VALUE, "NAME", "all, or itl-survival for a single file",
     "plot: which figure", vt_figure_names},
    {"seed", CLI_VALUE, "N", "0", "calibrate, plot: seed of the simulation", NULL},
    {0},
};

static const char *const operands[] = {"stats", "validate", "calibrate", "convert",
                                       "plot",  "perfetto", NULL};
#define CAPTURE "tests/trace/data/closed-c2.trace.jsonl.gz"

static const char *const examples[] = {
    "./run inspect stats " CAPTURE,
    "./run inspect convert " CAPTURE " -o requests.csv",
    "./run inspect perfetto " CAPTURE " -o chrome.json",
    "./run inspect plot " CAPTURE " -o page.html",
    NULL,
};

const struct cli_command cmd_inspect = {
    .name = "inspect",
    .summary = "look at captures: statistics, checks, figures, other formats",
    .usage = "stats|validate|calibrate|convert|plot|perfetto FILE [FLAGS]",
    .about =
        "stats      what requests took, by how many were in flight\n"
        "validate   checks a trace, step log, workload or profile; names bad lines\n"
        "calibrate  captured against modelled TTFT, gaps and totals; exit 1 if too "
        "far\n"
        "convert    traces of vtwin, vllm-vcr and BLIS, request lists; reports of\n"
        "           guidellm, inference-perf and vllm bench to traces\n"
        "plot       figures of a capture beside models (needs gnuplot)\n"
        "perfetto   a Chrome trace of requests and steps, for ui.perfetto.dev",
    .options = options,
    .operands = operands,
    .examples = examples,
    .run = run,
};
