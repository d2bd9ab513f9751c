/* cmd_validate.c - vtwin validate: simulators against measurements of real servers. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/cmd/validate.h"
#include "validate/validate.h"

extern char **environ;

enum { MAX_PATH = 4096 };

static const char *const workloads[] = {"adapter", "profile", "trace", NULL};

static const struct cli_option options[] = {
    {"data-dir", CLI_VALUE, "DIR", "vllm_data/ground_truth",
     "where the experiments are", NULL},
    {"output-dir", CLI_VALUE, "DIR", "results", "for error_records.csv and runtime.csv",
     NULL},
    {"adapters", CLI_VALUE, "NAME ...", "all that can be found",
     "simulators to judge; --list names them", NULL},
    {"no-dp-scaling", CLI_FLAG, NULL, NULL,
     "leave out experiments with more than one replica", NULL},
    {"metadata", CLI_VALUE, "FILE", NULL,
     "CSV: experiment_folder and hardware, dp, precision, ...", NULL},
    {"max-requests", CLI_VALUE, "N", "all",
     "of each experiment, predicted and measured alike", NULL},
    {"unsafe", CLI_FLAG, NULL, NULL, "also experiments that are not marked safe", NULL},
    {"profile", CLI_VALUE, "NAME|FILE ...", "the built-in ones",
     "profiles for vtwin-step, vtwin-trace, vtwin-knob", NULL},
    {"model-configs", CLI_VALUE, "DIR", NULL,
     "config.json of models: DIR/MODEL/config.json or DIR/MODEL.json", NULL},
    {"workload", CLI_VALUE, "WHICH", "adapter",
     "what simulators in this program replay", workloads},
    {"blis-binary", CLI_VALUE, "FILE", "$BLIS_BINARY", "the BLIS program", NULL},
    {"vidur-dir", CLI_VALUE, "DIR", "$VIDUR_DIR", "a checkout of Vidur", NULL},
    {"llmservingsim-dir", CLI_VALUE, "DIR", "$LLMSERVINGSIM_DIR",
     "a checkout of LLMServingSim", NULL},
    {"python", CLI_VALUE, "FILE", "python3 on the PATH",
     "runs Vidur, AIConfigurator and LLMServingSim", NULL},
    {"aiconfigurator", CLI_FLAG, NULL, NULL, "that Python has AIConfigurator: use it",
     NULL},
    {"adapter-command", CLI_VALUE, "NAME=CMD", NULL,
     "one more simulator: CMD ... {requests.csv} ... {out.csv}", NULL},
    {"jobs", CLI_VALUE, "N", "as many as cores", "simulations at a time", NULL},
    {"results-dir", CLI_VALUE, "DIR", "results", "figures: where the CSV files are",
     NULL},
    {"exclude-simulators", CLI_VALUE, "NAME ...", NULL,
     "figures: leave these out of figures 1 to 4", NULL},
    {"paper", CLI_FLAG, NULL, NULL, "figures: as the paper has them", NULL},
    {"list", CLI_FLAG, NULL, NULL, "print the adapters, and run nothing", NULL},
    {"json", CLI_FLAG, NULL, NULL, "print JSON instead of tables", NULL},
    {"quiet", CLI_FLAG, NULL, NULL, "nothing on stderr but errors", NULL},
    {0},
};

/* ---- what the user says ------------------------------------------------------------
 */

struct job {
    struct vt_truth_options truth;
    struct vt_harness_config config;
    char python[MAX_PATH], blis[MAX_PATH], vidur[MAX_PATH], servingsim[MAX_PATH];
    const char **list[3]; /* heap */
    bool quiet;
};

static void tell(void *user, const char *line)
{
    const struct job *j = user;

    if (!j->quiet)
        fprintf(stderr, "vtwin: %s\n", line);
}

/* All values of a flag, ending with NULL; NULL: out of memory. */
static const char **all_of(const struct cli_args *a, const char *flag)
{
    const char **list = calloc(a->n_given + 1, sizeof(*list));
    const char *value;
    size_t at = 0, n = 0;

    while (list && (value = cli_each(a, flag, &at)) != NULL)
        list[n++] = value;
    return list;
}

/* Programs run in directories of their own, so that paths must not depend on ours. */
static const char *absolute(char out[MAX_PATH], const char *path)
{
    char here[MAX_PATH / 2];

    if (!path || !*path)
        return NULL;
    if (path[0] == '/' || !getcwd(here, sizeof(here)))
        snprintf(out, MAX_PATH, "%s", path);
    else
        snprintf(out, MAX_PATH, "%s/%s", here, path);
    return out;
}

static const char *flag_or_env(const struct cli_args *a, const char *flag,
                               const char *name)
{
    return cli_has(a, flag) ? cli_str(a, flag) : getenv(name);
}

/* The first of that name on the PATH. */
static const char *find_program(char out[MAX_PATH], const char *name)
{
    const char *path = getenv("PATH");

    while (path && *path) {
        size_t n = strcspn(path, ":");

        if (n > 0 &&
            (size_t)snprintf(out, MAX_PATH, "%.*s/%s", (int)n, path, name) < MAX_PATH &&
            access(out, X_OK) == 0)
            return out;
        path += n + (path[n] == ':');
    }
    return NULL;
}

static int take_lists(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    static const char *const flag[] = {"adapters", "profile", "adapter-command"};
    const char *const **to[] = {&j->config.adapters, &j->config.profiles,
                                &j->config.commands};

    for (size_t i = 0; i < VT_COUNT(flag); i++) {
        j->list[i] = all_of(a, flag[i]);
        if (!j->list[i])
            return vt_nomem(err);
        *to[i] = j->list[i][0] ? j->list[i] : NULL;
    }
    for (size_t i = 0; j->config.adapters && j->config.adapters[i]; i++) {
        int rc = vt_adapter_check(&j->config, j->config.adapters[i], err);

        if (rc != VT_OK)
            return vt_within(err, rc, "--adapters");
    }
    return VT_OK;
}

static void take_programs(struct job *j, const struct cli_args *a)
{
    struct vt_harness_config *c = &j->config;

    c->blis_binary = absolute(j->blis, flag_or_env(a, "blis-binary", "BLIS_BINARY"));
    c->vidur_dir = absolute(j->vidur, flag_or_env(a, "vidur-dir", "VIDUR_DIR"));
    c->llmservingsim_dir = absolute(
        j->servingsim, flag_or_env(a, "llmservingsim-dir", "LLMSERVINGSIM_DIR"));
    c->python = cli_has(a, "python") ? absolute(j->python, cli_str(a, "python"))
                                     : find_program(j->python, "python3");
    c->aiconfigurator = cli_has(a, "aiconfigurator");
    c->environment = environ;
    c->scratch = getenv("TMPDIR");
    c->scratch = c->scratch && *c->scratch ? c->scratch : "/tmp";
}

static int take_flags(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    int workload = VT_WORKLOAD_ADAPTER, rc;

    j->quiet = cli_has(a, "quiet");
    j->truth = (struct vt_truth_options){.metadata = cli_str(a, "metadata"),
                                         .unsafe_too = cli_has(a, "unsafe"),
                                         .dp_too = !cli_has(a, "no-dp-scaling"),
                                         .tell = tell,
                                         .user = j};
    j->config.tell = tell;
    j->config.user = j;
    j->config.model_configs = cli_str(a, "model-configs");
    take_programs(j, a);
    rc = cli_u32(a, "max-requests", 1, UINT32_MAX, &j->truth.max_requests, err);
    if (rc == VT_OK)
        rc = cli_u32(a, "jobs", 1, 4096, &j->config.workers, err);
    if (rc == VT_OK)
        rc = cli_word(a, "workload", &workload, err);
    j->config.workload = (enum vt_harness_workload)workload;
    return rc == VT_OK ? take_lists(j, a, err) : rc;
}

/* ---- what comes out -------------------------------------------------- */

static int write_csv(const char *directory, const char *name,
                     void (*put)(struct vt_buf *b, const struct vt_harness *h),
                     const struct vt_harness *h, struct vt_err *err)
{
    struct vt_buf text = {0};
    int rc;

    put(&text, h);
    rc = vt_write_file_in(directory, name, &text, err);
    vt_buf_free(&text);
    return rc;
}

static int write_files(const struct vt_harness *h, const char *directory,
                       struct vt_err *err)
{
    int rc = vt_make_dirs(directory, NULL, err);

    if (rc == VT_OK)
        rc = write_csv(directory, "error_records.csv", vt_harness_errors_csv, h, err);
    if (rc == VT_OK && h->n_ok > 0)
        rc = write_csv(directory, "runtime.csv", vt_harness_runtime_csv, h, err);
    return rc;
}

/* "  OK: adapter x model (workload) [0.12s] - 300/300 requests (100.0% complete)" */
static void put_runs(struct vt_buf *b, const struct vt_harness *h)
{
    for (size_t i = 0; i < h->n_runs; i++) {
        const struct vt_adapter_run *r = &h->run[i];
        uint64_t all = r->experiment->summary.requests;

        if (r->outcome == VT_ADAPTER_OK)
            vt_buf_printf(b,
                          "  OK: %s \303\227 %s (%s) [%.2fs] - %llu/%llu requests "
                          "(%.1f%% complete)\n",
                          r->simulator, r->experiment->model, r->experiment->workload,
                          r->seconds, (unsigned long long)r->requests,
                          (unsigned long long)all,
                          all > 0 ? 100.0 * (double)r->requests / (double)all : 0.0);
        else
            vt_buf_printf(b, "  %s: %s \303\227 %s (%s) - %s\n",
                          r->outcome == VT_ADAPTER_FAILED ? "FAIL" : "SKIP",
                          r->simulator, r->experiment->model, r->experiment->workload,
                          r->why);
    }
    vt_buf_printf(b, "%zu ran, %zu skipped, %zu failed\n", h->n_ok, h->n_skipped,
                  h->n_failed);
}

static int report(const struct vt_harness *h, const struct vt_experiments *x,
                  const struct cli_args *a, struct vt_err *err)
{
    const char *directory = cli_str_or(a, "output-dir", "results");
    struct vt_buf b = {0};
    int rc = h->n_errors > 0 ? write_files(h, directory, err) : VT_OK;

    if (rc == VT_OK && cli_has(a, "json")) {
        rc = vt_harness_json(&b, h, err);
    } else if (rc == VT_OK) {
        vt_buf_printf(&b,
                      "Found %zu experiments\nParsed %zu experiments successfully\n",
                      x->found, x->n);
        put_runs(&b, h);
        rc = vt_harness_table(&b, h, directory, err);
    }
    if (rc == VT_OK)
        rc = cli_print(&b, err);
    vt_buf_free(&b);
    return rc;
}

static int print_list(struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc;

    for (const struct vt_adapter_help *h = vt_adapter_list; h->name; h++)
        vt_buf_printf(&b, "%-28s %s\n", h->name, h->help);
    rc = cli_print(&b, err);
    vt_buf_free(&b);
    return rc;
}

static int judge(struct job *j, const struct cli_args *a, struct vt_err *err)
{
    const char *dir = cli_str_or(a, "data-dir", "vllm_data/ground_truth");
    struct vt_experiments x;
    struct vt_harness h;
    int rc = vt_experiments_load(&x, dir, &j->truth, err);

    if (rc != VT_OK)
        return rc;
    if (x.found == 0 && !cli_has(a, "json")) {
        printf("No experiments found in %s\n", dir);
        vt_experiments_free(&x);
        return VT_OK;
    }
    if (x.n == 0)
        tell(j, "no experiment could be parsed");
    rc = vt_harness_run(&h, &x, &j->config, err);
    if (rc == VT_OK) {
        rc = report(&h, &x, a, err);
        vt_harness_free(&h);
    }
    vt_experiments_free(&x);
    return rc;
}

static const char *const operands[] = {"figures", NULL};

static int run(const struct cli_args *a, struct vt_err *err)
{
    struct job j = {0};
    int rc = cli_operands(a, &cmd_validate, 0, 1, err);

    if (rc == VT_OK && a->n_operands == 1)
        return strcmp(a->operand[0], operands[0]) == 0
                   ? validate_figures(a, err)
                   : cli_unknown_sub(&cmd_validate, a->operand[0], err);
    if (rc == VT_OK && cli_has(a, "list"))
        return print_list(err);
    if (rc == VT_OK)
        rc = take_flags(&j, a, err);
    if (rc == VT_OK)
        rc = judge(&j, a, err);
    for (size_t i = 0; i < VT_COUNT(j.list); i++)
        free(j.list[i]);
    return rc;
}

static const char *const examples[] = {
    "./run validate --list",
    "./run validate --data-dir tests/cases/validate/truth --output-dir results",
    "./run validate figures --results-dir tests/cases/figures/results --output-dir "
    "figures",
    NULL,
};

const struct cli_command cmd_validate = {
    .name = "validate",
    .summary = "judge simulators by measurements of real servers",
    .usage = "[figures] [--data-dir DIR] [--output-dir DIR] [--adapters NAME ...]",
    .about =
        "Reads experiments (an engine's settings and log, a load profile, what\n"
        "inference-perf measured), has each simulator predict them, and compares nine\n"
        "metrics: mean, p90 and p99 of E2E, TTFT and ITL, by stage and in all. Those\n"
        "that cannot predict an experiment are skipped, those that fail are told; the\n"
        "others go on. `validate figures` draws what came out.",
    .options = options,
    .operands = operands,
    .examples = examples,
    .run = run,
};
