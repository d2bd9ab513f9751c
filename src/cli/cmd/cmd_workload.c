/* cmd_workload.c - vtwin workload: the traffic that is built in. */
#include "cli/cmd/traffic.h"
#include "sim/sim.h"

struct workload_options {
    bool json;
    int64_t seed; /* -1: the workload's */
    struct traffic_options traffic;
};

#define OPT_T struct workload_options
static const struct opt_row rows[] = {
    OPT_FLAG(json, "json", "list: as JSON"),
    OPT_I64(seed, "seed", "N", 0, INT64_MAX, "-1", "show: with this seed",
            .shown = "the workload's"),
    {0},
};
enum { LIST = 1 << 0, SHOW = 1 << 1 };
static const struct opt_block blocks[] = {
    OPT_ROWS(rows),
    {.row = traffic_rows, .base = offsetof(struct workload_options, traffic), SHOW},
    {.row = dataset_rows,
     .base = offsetof(struct workload_options, traffic.what),
     SHOW},
    {0},
};

struct means { /* of what a workload holds */
    double prompt, output;
    size_t requests;
};

static int measure(struct means *m, const struct vt_input *in, struct vt_err *err)
{
    struct vt_workload w = {0};
    int rc = vt_workload_read(&w, in, VT_WHOLE, err);

    if (rc != VT_OK)
        return rc;
    *m = (struct means){.requests = w.n};
    for (size_t i = 0; i < w.n; i++) {
        m->prompt += w.req[i].prompt_tokens / (double)w.n;
        m->output += w.req[i].output_tokens / (double)w.n;
    }
    vt_workload_free(&w);
    return VT_OK;
}

/* ---- list --------------------------------------------------------------------- */

static void put_row(struct vt_jw *w, const struct vt_builtin_workload *b,
                    const struct means *m)
{
    vt_jw_row(w, NULL);
    vt_jw_str(w, "name", b->name);
    vt_jw_str(w, "about", b->about);
    vt_jw_u64(w, "requests", m->requests);
    vt_jw_f64(w, "mean_prompt_tokens", m->prompt);
    vt_jw_f64(w, "mean_output_tokens", m->output);
    vt_jw_end(w);
}

static int list_workloads(const struct opt_args *a, struct vt_err *err)
{
    const struct workload_options *o = a->options;
    struct vt_builtin_workload f;
    struct vt_buf b = {0};
    struct vt_jw w;
    int rc = VT_OK;

    vt_jw_init(&w, &b, &vt_json_pretty);
    if (o->json)
        vt_jw_list(&w, NULL);
    else
        vt_buf_printf(&b, "%-25s %8s %8s  (mean tokens)\n", "", "prompt", "output");
    for (size_t at = 0; rc == VT_OK && vt_builtin_workload_next(&at, &f);) {
        struct vt_input in = {VT_INPUT_SPEC, f.name, f.text, f.len, -1, {0}};
        struct means m;

        if ((rc = measure(&m, &in, err)))
            break;
        if (o->json)
            put_row(&w, &f, &m);
        else
            vt_buf_printf(&b, "%-25s %8.0f %8.0f  %s\n", f.name, m.prompt, m.output,
                          f.about);
    }
    if (o->json) {
        vt_jw_end(&w);
        vt_buf_char(&b, '\n');
    }
    return cli_print_end(&b, rc, err);
}

/* ---- show ---------------------------------------------------------------------- */

/* A built-in one as it is, with its comments. */
static int show_builtin(const char *name, struct vt_err *err)
{
    struct vt_input in = {0};
    struct vt_buf b = {0};
    int rc = vt_input_find(&in, name, err);

    if (rc == VT_OK && !in.text)
        rc = vt_fail(err, VT_EINPUT, "%s: a file; inspect stats tells of traces",
                     in.name);
    if (rc == VT_OK)
        vt_buf_add(&b, in.text, in.len);
    return cli_print_end(&b, rc, err);
}

/* What flags make of it, as a file of its own. */
static int show_workload(const struct opt_args *a, struct vt_err *err)
{
    const struct workload_options *o = a->options;
    struct vt_buf b = {0};
    struct traffic t;
    int rc;

    if (a->n_operands > 1 && a->n_mentions > 0)
        return vt_fail(err, VT_EINPUT, "%s: with flags it is --workload %s",
                       a->operand[1], a->operand[1]);
    if (a->n_operands > 1)
        return show_builtin(a->operand[1], err);
    rc = traffic_open(&t, a, &o->traffic, TRAFFIC_PACED, err);
    if (rc == VT_OK && t.input.kind != VT_INPUT_SPEC)
        rc = vt_fail(err, VT_EINPUT, "%s: a trace is a file already", t.input.name);
    if (rc == VT_OK)
        t.input.seed = o->seed;
    if (rc == VT_OK)
        rc = vt_workload_spec_write(&b, &t.input, err);
    traffic_close(&t);
    return cli_print_end(&b, rc, err);
}

static const struct opt_sub subs[] = {
    {"list", "[--json]", 0, 0, list_workloads},
    {"show", "NAME | [--workload NAME] [FLAGS]", 0, 1, show_workload},
    {0},
};
static const char *const operands[] = {"list", "show", NULL};
static const char *const examples[] = {"./run workload list",
                                       "./run workload show sharegpt",
                                       "./run workload show --workload sharegpt "
                                       "--request-rate 12 --num-prompts 3000",
                                       NULL};

const struct opt_command cmd_workload = {
    .name = "workload",
    .summary = "list and show the traffic that is built in",
    .usage = "list | show NAME | show [--workload NAME] [FLAGS]",
    .about =
        "Workloads that --workload takes by name, each made from lengths that were\n"
        "published; docs/workload.md says by whom. With flags of traffic show prints "
        "a\n"
        "workload.yaml that makes the same requests by itself.",
    .blocks = blocks,
    .size = sizeof(struct workload_options),
    .operands = operands,
    .subs = subs,
    .examples = examples,
};
