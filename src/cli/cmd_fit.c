/* cmd_fit.c - vtwin fit: captures in, a profile out. */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "sim/sim.h"

/* ---- which files ------------------------------------------------------ */

struct input { /* what belongs together: NAME.steps.jsonl and NAME.trace.jsonl */
    char *base;
    char *steps, *trace;
    struct vt_workload workload; /* kept for the cross-validation */
    bool loaded;
};

struct job {
    struct input *in;
    size_t n, cap;
    struct vt_fit *fit;
    struct vt_fit_shape shape;
    struct vt_step_params params;
    struct vt_fit_quality quality;
    struct vt_crossval_row *row;
    size_t n_rows;
};

static bool ends_with(const char *path, const char *end)
{
    size_t a = strlen(path), b = strlen(end);

    return a >= b && strcmp(path + a - b, end) == 0;
}

/* Length of the path without ".steps.jsonl" and the like; 0: another kind of file. */
static size_t stem(const char *path, bool *steps)
{
    static const struct {
        const char *end;
        bool steps;
    } kinds[] = {{".steps.jsonl.gz", true},
                 {".steps.jsonl", true},
                 {".trace.jsonl.gz", false},
                 {".trace.jsonl", false}};

    for (size_t i = 0; i < VT_COUNT(kinds); i++)
        if (ends_with(path, kinds[i].end)) {
            *steps = kinds[i].steps;
            return strlen(path) - strlen(kinds[i].end);
        }
    return 0;
}

static struct input *input_of(struct job *j, const char *path, size_t len,
                              struct vt_err *err)
{
    for (size_t i = 0; i < j->n; i++)
        if (strlen(j->in[i].base) == len && memcmp(j->in[i].base, path, len) == 0)
            return &j->in[i];
    if (vt_grow(&j->in, &j->cap, j->n + 1, sizeof(*j->in), err) != VT_OK)
        return NULL;
    j->in[j->n] = (struct input){.base = strndup(path, len)};
    if (j->in[j->n].base == NULL) {
        (void)vt_nomem(err);
        return NULL;
    }
    return &j->in[j->n++];
}

/* `must`: the user named this very file. */
static int add_file(struct job *j, const char *path, bool must, struct vt_err *err)
{
    bool steps = false;
    size_t len = stem(path, &steps);
    struct input *in;
    char **slot;

    if (len == 0)
        return must
                   ? vt_fail(err, VT_EINPUT,
                             "%s: not a NAME.steps.jsonl[.gz] or NAME.trace.jsonl[.gz]",
                             path)
                   : VT_OK;
    in = input_of(j, path, len, err);
    if (in == NULL)
        return VT_ENOMEM;
    slot = steps ? &in->steps : &in->trace;
    if (*slot != NULL)
        return VT_OK;
    *slot = strdup(path);
    return *slot != NULL ? VT_OK : vt_nomem(err);
}

static int add_dir(struct job *j, const char *path, struct vt_err *err)
{
    struct dirent **entry;
    int n = scandir(path, &entry, NULL, alphasort), rc = VT_OK;

    if (n < 0)
        return vt_fail(err, VT_EINPUT, "%s: %s", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        char file[4096];

        if (rc == VT_OK && (size_t)snprintf(file, sizeof(file), "%s/%s", path,
                                            entry[i]->d_name) < sizeof(file))
            rc = add_file(j, file, false, err);
        free(entry[i]);
    }
    free(entry);
    return rc;
}

static int add_operands(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < a->n_operands && rc == VT_OK; i++) {
        struct stat st;

        if (stat(a->operand[i], &st) != 0)
            return vt_fail(err, VT_EINPUT, "%s: %s", a->operand[i], strerror(errno));
        rc = S_ISDIR(st.st_mode) ? add_dir(j, a->operand[i], err)
                                 : add_file(j, a->operand[i], true, err);
    }
    if (rc == VT_OK && j->n == 0)
        return vt_fail(err, VT_EINPUT,
                       "%s: no NAME.steps.jsonl or NAME.trace.jsonl in it",
                       a->operand[0]);
    return rc;
}

/* ---- loading ---------------------------------------------------------- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static int load_one(struct job *j, struct input *in, struct vt_err *err)
{
    struct vt_steps steps = {0};
    int rc = VT_OK;

    if (in->trace != NULL) {
        rc = vt_trace_load(&in->workload, in->trace, err);
        in->loaded = rc == VT_OK;
    }
    if (rc == VT_OK && in->steps != NULL)
        rc = vt_steps_load(&steps, in->steps, err);
    if (rc == VT_OK)
        rc = vt_fit_add(j->fit, last_part(in->base), in->steps != NULL ? &steps : NULL,
                        in->loaded ? &in->workload : NULL, err);
    vt_steps_free(&steps);
    return rc;
}

/* What memory bandwidth allows at best, as the fit's starting point. */
static int read_shape(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    const char *config = cli_str(a, "hf-config"), *name = cli_str(a, "gpu");
    struct vt_arch arch;
    struct vt_gpu gpu;
    uint32_t tp = 1;
    int rc = cli_u32(a, "tensor-parallel-size", 1, 1024, &tp, err);

    if (rc != VT_OK || config == NULL)
        return rc;
    rc = vt_arch_load(&arch, config, err);
    if (rc != VT_OK)
        return rc;
    j->shape.experts = arch.experts;
    j->shape.experts_per_token = arch.experts > 0 ? arch.experts_per_token : 0;
    if (name == NULL)
        return VT_OK;
    rc = vt_gpu_find(&gpu, name, NULL, err);
    if (rc != VT_OK)
        return rc;
    j->shape.context_us =
        1e3 * vt_arch_kv_bytes(&arch, tp, arch.kv_bytes) / (gpu.bandwidth_tbs * 1e6);
    if (arch.experts > 0)
        j->shape.expert_us = (double)arch.moe_layers * arch.experts *
                             (arch.gated ? 3.0 : 2.0) * arch.hidden * arch.expert_ffn *
                             arch.weight_bytes / tp / (gpu.bandwidth_tbs * 1e6);
    return VT_OK;
}

static void progress(const struct cli_args *a, const char *what, size_t i, size_t n)
{
    if (isatty(2) && !cli_has(a, "quiet"))
        (void)fprintf(stderr, i < n ? "\r%s %zu/%zu" : "\r\033[K", what, i + 1, n);
}

static int load_all(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    int rc = vt_fit_new(&j->fit, &j->shape, err);

    for (size_t i = 0; i < j->n && rc == VT_OK; i++) {
        progress(a, "reading", i, j->n);
        rc = load_one(j, &j->in[i], err);
    }
    progress(a, "", 1, 0);
    return rc;
}

/* ---- cross-validation ------------------------------------------------- */

static int cross_validate(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    int rc = VT_OK;

    if (cli_has(a, "no-cv") || j->n < 2)
        return VT_OK;
    j->row = calloc(j->n, sizeof(*j->row));
    if (j->row == NULL)
        return vt_nomem(err);
    for (size_t i = 0; i < j->n && rc == VT_OK; i++) {
        progress(a, "cross-validating", i, j->n);
        if (j->in[i].loaded && j->in[i].workload.measured != NULL)
            rc = vt_crossval_one(j->fit, i, &j->in[i].workload, &j->row[j->n_rows++],
                                 err);
    }
    progress(a, "", 1, 0);
    return rc;
}

/* ---- what was learned ------------------------------------------------- */

static void put_row(struct vt_buf *b, const struct vt_crossval_row *r)
{
    vt_buf_printf(b, "%-20s %+8.1f %+8.1f %+8.1f %+8.1f %+8.1f %+8.1f\n", r->name,
                  r->e2e, r->ttft, r->ttft_p99, r->itl, r->itl_p99, r->throughput);
}

static void put_table(struct vt_buf *b, const struct job *j)
{
    struct vt_crossval_row median, mean;

    if (j->n_rows == 0)
        return;
    vt_crossval_sum(j->row, j->n_rows, &median, &mean);
    vt_buf_str(b, "\nleave one out: error of the prediction, %\n");
    vt_buf_printf(b, "%-20s %8s %8s %8s %8s %8s %8s\n", "", "E2E", "TTFT", "TTFT p99",
                  "ITL", "ITL p99", "req/s");
    for (size_t i = 0; i < j->n_rows; i++)
        put_row(b, &j->row[i]);
    put_row(b, &median);
    put_row(b, &mean);
}

static void put_learned(struct vt_buf *b, const struct job *j)
{
    const struct vt_step_params *p = &j->params;

    vt_buf_printf(b, "captures  %zu, %llu steps, %zu windows\n", j->n,
                  (unsigned long long)j->quality.steps, j->quality.windows);
    vt_buf_printf(b, "window    median error %.2f %%, bias %+.2f %%\n",
                  100 * j->quality.median_error, 100 * j->quality.bias);
    vt_buf_printf(b,
                  "decode    %.0f us + %.2f us a token + %.2f us per 1,000 tokens of "
                  "context\n",
                  p->base, p->graph_token, p->context_ktoken);
    if (p->experts > 0)
        vt_buf_printf(b, "experts   %.0f us when all %.0f are touched\n", p->expert,
                      p->experts);
    vt_buf_printf(b, "prompts   %.2f us a token within the graphs, %.2f beyond\n",
                  p->mixed_token, p->eager_token);
    vt_buf_printf(b, "launch    %.1f ms piece by piece, %.1f ms kernel by kernel\n",
                  1e-3 * p->host_launch_mixed, 1e-3 * p->host_launch_eager);
    vt_buf_printf(b,
                  "host      %.2f ms to schedulable, %.2f ms to schedule, %.2f ms to "
                  "hand out\n",
                  1e-3 * p->host_arrive, 1e-3 * p->host_sched, 1e-3 * p->host_done);
}

static int write_profile(const struct job *j, const struct cli_args *a,
                         const char *path, struct vt_err *err)
{
    char name[128];
    struct vt_fit_about about = {.name = cli_str(a, "name"),
                                 .description = cli_str(a, "description"),
                                 .gpu = cli_str(a, "gpu")};
    struct vt_buf b = {0};
    struct vt_out *out;
    int rc;

    (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(last_part(path), "."),
                   last_part(path));
    if (about.name == NULL)
        about.name = name;
    vt_fit_profile(&b, j->fit, &j->params, &j->quality, &about);
    rc = b.failed ? vt_nomem(err) : vt_out_open(&out, path, err);
    if (rc == VT_OK) {
        rc = vt_out_write(out, b.data, b.len, err);
        if (rc == VT_OK)
            rc = vt_out_commit(out, err);
        else
            vt_out_abandon(out);
    }
    vt_buf_free(&b);
    return rc;
}

static void job_free(struct job *j)
{
    for (size_t i = 0; i < j->n; i++) {
        free(j->in[i].base);
        free(j->in[i].steps);
        free(j->in[i].trace);
        vt_workload_free(&j->in[i].workload);
    }
    free(j->in);
    free(j->row);
    vt_fit_free(j->fit);
}

static int fit(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    const char *path = cli_str(a, "out");
    struct vt_buf b = {0};
    int rc = read_shape(j, a, err);

    if (rc == VT_OK)
        rc = add_operands(j, a, err);
    if (rc == VT_OK)
        rc = load_all(j, a, err);
    if (rc == VT_OK)
        rc = vt_fit_solve(j->fit, VT_FIT_ALL, &j->params, &j->quality, err);
    if (rc == VT_OK)
        rc = cross_validate(j, a, err);
    if (rc == VT_OK && path != NULL)
        rc = write_profile(j, a, path, err);
    if (rc != VT_OK)
        return rc;
    put_learned(&b, j);
    put_table(&b, j);
    if (path != NULL)
        vt_buf_printf(&b, "\nprofile: %s\n", path);
    rc = cli_print(&b, err);
    vt_buf_free(&b);
    return rc;
}

static int run(const struct cli_args *a, struct vt_err *err)
{
    struct job j = {0};
    int rc = cli_operands(a, &cmd_fit, 1, SIZE_MAX, err);

    if (rc == VT_OK)
        rc = fit(&j, a, err);
    job_free(&j);
    return rc;
}

static const struct cli_option options[] = {
    {.name = "out", .value = "FILE", .help = "the profile to write (also -o)"},
    {.name = "hf-config",
     .value = "FILE",
     .help = "the model's config.json, or a name"},
    {.name = "gpu", .value = "NAME", .help = "the GPU it ran on"},
    {.name = "tensor-parallel-size", .value = "N", .fallback = "1", .help = "GPUs"},
    {.name = "name", .value = "TEXT", .help = "of the profile; else the file's"},
    {.name = "description", .value = "TEXT", .help = "one line about it"},
    {.name = "no-cv", .kind = CLI_FLAG, .help = "skip the cross-validation"},
    {.name = "quiet", .kind = CLI_FLAG, .help = "no progress line"},
    {0},
};
static const char *const operands[] = {NULL};
static const char *const examples[] = {
    "./run fit tests/sim/data --hf-config qwen3-8b --gpu H200 -o my-profile.json",
    NULL};

const struct cli_command cmd_fit = {
    .name = "fit",
    .summary = "learn a profile from captures",
    .usage = "DIR|FILE... -o PROFILE.json",
    .about =
        "Takes every NAME.steps.jsonl[.gz] and NAME.trace.jsonl[.gz] it finds, learns\n"
        "the step model from them and says how well it predicts each capture when\n"
        "fitted without it. Without a step log the steps are rebuilt from the trace.",
    .options = options,
    .operands = operands,
    .examples = examples,
    .run = run,
};
