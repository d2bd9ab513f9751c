/* traffic.c - flags of vllm bench to requests: bench's datasets, and workloads made of
 * them. */
#include "cli/cmd/traffic.h"

#include <math.h>

#include "model/model.h"
#include "sim/sim.h"

/* ---- readers of single flags -------------------------------------------- */

/* Python's inf is a number too. */
int traffic_read_positive(const struct opt_row *row, const char *text, void *field,
                          struct vt_err *err)
{
    if (strcmp(text, "inf") != 0)
        return opt_read_real(row, text, field, err);
    *(double *)field = INFINITY;
    return VT_OK;
}

static int read_ratio(const struct opt_row *row, const char *text, void *field,
                      struct vt_err *err)
{
    const struct vt_node *root = NULL;
    struct vt_load_lens *l = field;
    struct vt_arena arena = {0};
    int rc;

    if (text[strspn(text, " ")] != '{') {
        rc = opt_read_real(row, text, &l->input_ratio, err);
        l->output_ratio = l->input_ratio;
        return rc;
    }
    rc = vt_json_parse(&arena, text, strlen(text), 1, &root, err);
    if (rc == VT_OK)
        rc = vt_get_f64(root, "input", VT_OPTIONAL, 0, row->hi, &l->input_ratio, err);
    if (rc == VT_OK)
        rc = vt_get_f64(root, "output", VT_OPTIONAL, 0, row->hi, &l->output_ratio, err);
    vt_arena_free(&arena);
    return vt_within(err, rc, "--%s", row->name);
}

static int read_range(const struct opt_row *row, const char *text, void *field,
                      struct vt_err *err)
{
    return vt_within(err, vt_load_range_parse(text, field, err), "--%s", row->name);
}

static int read_think(const struct opt_row *row, const char *text, void *field,
                      struct vt_err *err)
{
    return vt_within(err, vt_load_think_parse(text, field, err), "--%s", row->name);
}

/* ---- flags ------------------------------------------------------------------ */

#define LEN(f, n, d, ...) OPT_U32(f, n, "N", 0, INT32_MAX, d, __VA_ARGS__)
#define OPT_T             struct dataset_options
const struct opt_row dataset_rows[] = {
    OPT_TEXT(data.path, "dataset-path", "FILE", NULL, "where they are"),
    OPT_TEXT(tokenizer, "tokenizer", "DIR", NULL,
             "tokenizer.json that counts prompts' tokens",
             .shown = "bench: the model's"),
    LEN(input_len, "input-len", NULL, "prompt tokens, whatever the dataset"),
    OPT_I64(output_len, "output-len", "N", 1, INT32_MAX, NULL,
            "output tokens, whatever the dataset"),
    LEN(data.random.input, "random-input-len", "1024", "random: prompt tokens"),
    LEN(data.random.output, "random-output-len", "128", "random: output tokens"),
    OPT_READ(data.random, "random-range-ratio", "R", read_ratio, "0.0",
             "random: lengths from L(1-R) to L(1+R); or {\"input\": R, \"output\": R}",
             .hi = 0.999999999),
    LEN(data.random.prefix, "random-prefix-len", "0",
        "random: tokens that all prompts begin with"),
    OPT_I64(sharegpt_output_len, "sharegpt-output-len", "N", 1, INT32_MAX, NULL,
            "sharegpt: output tokens", .shown = "as in the file"),
    LEN(data.prefix_len, "prefix-repetition-prefix-len", "256", "tokens of a prefix"),
    LEN(data.suffix_len, "prefix-repetition-suffix-len", "256", "tokens after it"),
    LEN(data.prefixes, "prefix-repetition-num-prefixes", "10", "different prefixes"),
    LEN(data.repetition_output_len, "prefix-repetition-output-len", "128",
        "output tokens"),
    OPT_I64(custom_output_len, "custom-output-len", "N", -1, INT32_MAX, "256",
            "custom: output tokens; -1: as in the file"),
    OPT_FLAG(data.no_oversample, "no-oversample",
             "do not repeat requests of a file that has too few"),
    OPT_FLAG(data.no_shuffle, "disable-shuffle", "keep the order of the file"),
    LEN(turns.conversations, "num-conversations", NULL,
        "multi-turn: conversations; of a file: at most", .shown = "20"),
    LEN(turns.turns, "num-turns", NULL,
        "multi-turn: questions in each; of a file: at most", .shown = "5"),
    LEN(turns.starters, "num-starters", NULL,
        "multi-turn: system prompts that they share", .shown = "10"),
    OPT_READ(turns.starter_tokens, "starter-tokens", "LO:HI", read_range, NULL,
             "multi-turn: length of those", .shown = "3500:4000"),
    OPT_READ(turns.user_tokens, "user-tokens", "LO:HI", read_range, NULL,
             "multi-turn: length of a question", .shown = "20:200"),
    OPT_READ(turns.output_tokens, "turn-output-tokens", "LO:HI", read_range, NULL,
             "multi-turn: length of a reply", .shown = "700:960"),
    OPT_READ(turns, "think-time", "SEC|KIND:SEC", read_think, NULL,
             "multi-turn: mean pause after a reply; KIND: exponential, constant",
             .shown = "0"),
    {0},
};
#undef OPT_T

/* Those that a simulation can be made of; in the order of the words. */
static const char *const datasets[] = {"random", "sharegpt",   "prefix_repetition",
                                       "custom", "multi-turn", NULL};
enum { RANDOM, SHAREGPT, REPETITION, CUSTOM, MULTI_TURN };

#define OPT_T struct traffic_options
const struct opt_row traffic_rows[] = {
    OPT_TEXT(workload, "workload", "NAME|FILE", NULL,
             "requests as this says; vtwin workload list",
             .shown = VT_DEFAULT_WORKLOAD),
    OPT_TEXT(trace, "trace", "FILE", NULL,
             "those of trace.jsonl, Azure, Mooncake or CSV; .gz is fine"),
    OPT_WORD(dataset, "dataset-name", "NAME", datasets, NULL,
             "requests as `vllm bench serve` makes them"),
    OPT_U32(num_prompts, "num-prompts", "N", 1, 100000000, NULL, "how many",
            .shown = "the workload's; of a dataset 1000"),
    OPT_READ(rate, "request-rate", "R", traffic_read_positive, NULL,
             "requests a second; inf: all at once",
             .shown = "the workload's; of a dataset inf", .lo = 1e-9, .hi = 1e9),
    OPT_READ(burstiness, "burstiness", "X", traffic_read_positive, NULL,
             "gamma's shape; 1: Poisson; inf: even", .shown = "as the workload says",
             .lo = 1e-9, .hi = 1e6),
    OPT_U32(max_concurrency, "max-concurrency", "N", 1, 1 << 20, NULL,
            "requests in flight; others wait with the client", .shown = "no limit"),
    OPT_F64(bytes_per_token, "bytes-per-token", "X", 0.1, 1000, "4",
            "how texts of a dataset are counted without --tokenizer"),
    {0},
};

struct vt_load_data dataset_data(const struct opt_args *a,
                                 const struct dataset_options *o, const char *name)
{
    struct vt_load_data d = o->data;

    d.name = name;
    if (opt_given(a, &o->input_len))
        d.random.input = o->input_len;
    if (o->output_len > 0)
        d.random.output = d.repetition_output_len = (uint32_t)o->output_len;
    d.output_len = o->output_len > 0               ? o->output_len
                   : strcmp(name, "sharegpt") == 0 ? o->sharegpt_output_len
                                                   : o->custom_output_len;
    return d;
}

/* ---- a workload of them ------------------------------------------------- */

static bool any_dataset_flag(const struct opt_args *a)
{
    for (const struct opt_row *r = dataset_rows; r->name; r++)
        if (opt_row_given(a, r))
            return true;
    return false;
}

/* Which dataset is meant, by its name or by flags that only one of them has; -1: none.
 */
static int choose_dataset(const struct opt_args *a, const struct traffic_options *o)
{
    const char *path = o->what.data.path;

    if (o->dataset >= 0)
        return o->dataset;
    if (path)
        return vt_is_named(path, ".jsonl") || vt_is_named(path, ".jsonl.gz") ? CUSTOM
                                                                             : SHAREGPT;
    return !o->workload && !o->trace && any_dataset_flag(a) ? RANDOM : -1;
}

/* A file's texts are counted by a tokenizer, or by their bytes, which is told. */
static int make_file_spec(struct traffic *t, const struct traffic_options *o,
                          struct vt_load_data *d, struct vt_err *err)
{
    struct vt_tokenizer *tokenizer = NULL;
    int rc = VT_OK;

    if (o->what.tokenizer)
        rc = vt_within(err, vt_tokenizer_open(&tokenizer, o->what.tokenizer, err),
                       "--tokenizer");
    else
        cli_say("vtwin: note: %s: %g bytes are taken for a token; --tokenizer DIR "
                "counts them\n",
                d->path, o->bytes_per_token);
    d->tokenizer = tokenizer;
    d->bytes_per_token = o->bytes_per_token;
    d->as_chat = true;
    if (rc == VT_OK)
        rc = vt_load_data_spec(&t->text, d, err);
    vt_tokenizer_close(tokenizer);
    return rc;
}

static int make_spec(struct traffic *t, const struct opt_args *a,
                     const struct traffic_options *o, int dataset, struct vt_err *err)
{
    struct vt_load_data d = dataset_data(a, &o->what, datasets[dataset]);
    struct vt_load_multiturn m = o->what.turns;

    d.n = o->num_prompts > 0 ? o->num_prompts : 1000;
    if (dataset == MULTI_TURN && d.path)
        return vt_fail(err, VT_EINPUT,
                       "--dataset-path: conversations of a file are for bench; what "
                       "it records (--trace-out) can be simulated");
    if (dataset == MULTI_TURN)
        return vt_load_multiturn_spec(&t->text, &m, err);
    if (dataset == CUSTOM && !d.path)
        return vt_fail(err, VT_EINPUT, "--dataset-name custom needs --dataset-path");
    if ((dataset == RANDOM || dataset == REPETITION) && d.path)
        return vt_fail(err, VT_EINPUT,
                       "--dataset-path: dataset '%s' is made up, it has no file",
                       d.name);
    return d.path ? make_file_spec(t, o, &d, err)
                  : vt_load_data_spec(&t->text, &d, err);
}

/* A trace has its own lengths, and gaps that keep their shape at any rate. */
static int open_trace(struct traffic *t, const char *name, const struct opt_args *a,
                      const struct traffic_options *o, enum traffic_pace pace,
                      struct vt_err *err)
{
    static const char own[] = ": a trace has its own";
    struct vt_traffic *over = &t->input.over;
    bool is_table =
        name == o->csv || vt_is_named(name, ".csv") || vt_is_named(name, ".csv.gz");
    enum vt_file kind = VT_FILE_OTHER;
    int rc;

    t->input.name = cli_report_trace(name, &t->report);
    t->input.kind = VT_INPUT_TRACE;
    if (is_table && name != o->csv && (rc = vt_file_kind(name, &kind, err)))
        return rc;
    if (is_table && kind == VT_FILE_OTHER)
        t->input.kind = VT_INPUT_REQUESTS;
    if ((rc = opt_refuse(a, &o->what.input_len, own, err)) ||
        (rc = opt_refuse(a, &o->what.output_len, own, err)) ||
        (rc = opt_refuse(a, &o->burstiness, own, err)))
        return rc;
    if (pace == TRAFFIC_SEARCHED) {
        t->first = o->num_prompts;
        return VT_OK;
    }
    over->rate = o->rate;
    over->requests = o->num_prompts;
    over->concurrency = o->max_concurrency;
    return VT_OK;
}

/* One thing says what requests hold. */
static int check_sources(const struct opt_args *a, const struct traffic_options *o,
                         struct vt_err *err)
{
    int rc = opt_exclude(a, &o->workload, &o->trace, err);

    if (rc || (rc = opt_exclude(a, &o->workload, &o->dataset, err)) ||
        (rc = opt_exclude(a, &o->trace, &o->dataset, err)) ||
        (rc = opt_exclude(a, &o->workload, &o->csv, err)) ||
        (rc = opt_exclude(a, &o->trace, &o->csv, err)) ||
        (rc = opt_exclude(a, &o->workload, &o->what.data.path, err)))
        return rc;
    return opt_exclude(a, &o->trace, &o->what.data.path, err);
}

int traffic_open(struct traffic *t, const struct opt_args *a,
                 const struct traffic_options *o, enum traffic_pace pace,
                 struct vt_err *err)
{
    int dataset = choose_dataset(a, o), rc;
    /* As vLLM: ShareGPT without the file is what is known of its lengths. */
    bool made = dataset >= 0 && !(dataset == SHAREGPT && !o->what.data.path);
    struct vt_traffic *over;

    *t = (struct traffic){.input = {.seed = -1}};
    if ((rc = check_sources(a, o, err)))
        return rc;
    if (pace == TRAFFIC_SEARCHED)
        t->concurrency = o->max_concurrency;
    if (o->trace || o->csv)
        return open_trace(t, o->trace ? o->trace : o->csv, a, o, pace, err);
    if (made) {
        t->input.kind = VT_INPUT_SPEC;
        rc = make_spec(t, a, o, dataset, err);
        t->input.name = datasets[dataset];
        t->input.text = t->text.data;
        t->input.len = t->text.len;
    } else {
        rc = vt_input_find(&t->input,
                           dataset >= 0  ? "sharegpt"
                           : o->workload ? o->workload
                                         : VT_DEFAULT_WORKLOAD,
                           err);
    }
    if (rc != VT_OK)
        return rc;
    if (t->input.kind != VT_INPUT_SPEC)
        return open_trace(t, o->workload, a, o, pace, err);
    over = &t->input.over;
    over->requests = o->num_prompts;
    over->burstiness = o->burstiness;
    if (!made) {
        over->prompt_tokens = o->what.input_len;
        over->output_tokens = (uint32_t)o->what.output_len;
    }
    if (pace == TRAFFIC_SEARCHED)
        return VT_OK;
    over->rate = o->rate;
    over->concurrency = o->max_concurrency;
    if (dataset >= 0 && !opt_given(a, &o->rate))
        over->rate = INFINITY;
    return VT_OK;
}

void traffic_close(struct traffic *t)
{
    vt_buf_free(&t->text);
}
