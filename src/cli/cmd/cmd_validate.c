/* cmd_validate.c - vtwin validate: simulators against measurements of real servers. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/cmd/engine.h"
#include "cli/cmd/pages.h"
#include "cli/progress.h"
#include "cli/workers.h"
#include "validate/validate.h"

extern char **environ;

enum { MAX_PATH = 4096, MAX_EXCLUDED = 32 };

static const char *const workloads[] = {"adapter", "profile", "trace", NULL};

struct validate_options {
    const char *data_dir, *output_dir, *metadata, *model_configs, *report;
    const char *blis_binary, *vidur_dir, *llmservingsim_dir, *python, *results_dir,
        *workers;
    struct opt_list adapters, profiles, commands, exclude;
    uint32_t max_requests, jobs;
    enum vt_harness_workload workload;
    int clock;
    bool no_dp, unsafe, aiconfigurator, paper, list, json, quiet, progress;
    struct engine_options engine;
};

#define OPT_T struct validate_options
static const struct opt_row rows[] = {
    OPT_TEXT(data_dir, "data-dir", "DIR", "vllm_data/ground_truth",
             "where the experiments are"),
    OPT_TEXT(output_dir, "output-dir", "DIR", NULL,
             "for error_records.csv and runtime.csv", .shown = "results"),
    PAGES_ROW(report, .shown = "in the output directory"),
    OPT_LIST(adapters, "adapters", "NAME ...", "simulators to judge; --list names them",
             .shown = "all that can be found"),
    OPT_FLAG(no_dp, "no-dp-scaling",
             "leave out experiments with more than one replica"),
    OPT_TEXT(metadata, "metadata", "FILE", NULL,
             "CSV: experiment_folder and hardware, dp, precision, ..."),
    OPT_U32(max_requests, "max-requests", "N", 1, UINT32_MAX, NULL,
            "of each experiment, predicted and measured alike", .shown = "all"),
    OPT_FLAG(unsafe, "unsafe", "also experiments that are not marked safe"),
    OPT_LIST(profiles, "profile", "NAME|FILE ...",
             "profiles for vtwin-step, vtwin-trace, vtwin-knob",
             .shown = "the built-in ones"),
    OPT_TEXT(model_configs, "model-configs", "DIR", NULL,
             "config.json of models: DIR/MODEL/config.json or DIR/MODEL.json"),
    OPT_WORD(workload, "replay", "WHICH", workloads, "adapter",
             "what simulators in this program replay"),
    OPT_WORD(workload, "workload", "WHICH", workloads, "adapter", "", .now = "replay"),
    OPT_WORD(clock, "clock", "WHOSE", vt_clock_names, "engine",
             "whose times a profile's model predicts: clients were measured"),
    OPT_TEXT(blis_binary, "blis-binary", "FILE", NULL, "the BLIS program",
             .shown = "$BLIS_BINARY"),
    OPT_TEXT(vidur_dir, "vidur-dir", "DIR", NULL, "a checkout of Vidur",
             .shown = "$VIDUR_DIR"),
    OPT_TEXT(llmservingsim_dir, "llmservingsim-dir", "DIR", NULL,
             "a checkout of LLMServingSim", .shown = "$LLMSERVINGSIM_DIR"),
    OPT_TEXT(python, "python", "FILE", NULL,
             "runs Vidur, AIConfigurator and LLMServingSim",
             .shown = "python3 on the PATH"),
    OPT_FLAG(aiconfigurator, "aiconfigurator",
             "that Python has AIConfigurator: use it"),
    OPT_LIST(commands, "adapter-command", "NAME=CMD",
             "one more simulator: CMD ... {requests.csv} ... {out.csv}"),
    OPT_U32(jobs, "jobs", "N", 1, 4096, NULL, "simulations at a time",
            .shown = "as many as cores"),
    WORKERS_ROW(workers),
    OPT_TEXT(results_dir, "results-dir", "DIR", "results",
             "figures: where the CSV files are"),
    OPT_LIST(exclude, "exclude-simulators", "NAME ...",
             "figures: leave these out of figures 1 to 4"),
    OPT_FLAG(paper, "paper", "figures: as the paper has them"),
    OPT_FLAG(list, "list", "print the adapters, and run nothing"),
    OPT_FLAG(json, "json", "print JSON instead of tables"),
    PROGRESS_ROW(progress),
    OPT_FLAG(quiet, "quiet", "nothing on stderr but errors"),
    {0},
};
static const struct opt_block blocks[] = {
    OPT_ROWS(rows),
    OPT_BLOCK(engine_rows, struct validate_options, engine),
    OPT_BLOCK(cli_files_rows, struct validate_options, engine.files),
    {0},
};

/* ---- what the user says ------------------------------------------------------------
 */

struct validate_job {
    struct vt_truth_options truth;
    struct vt_harness_config config;
    char python[MAX_PATH], blis[MAX_PATH], vidur[MAX_PATH], servingsim[MAX_PATH];
    const struct opt_args *args;
    const char *directory; /* where results go */
    double saved_s;        /* what simulators took for what is in the files */
};

/* The files of what is over so far. */
static int save_records(const struct vt_harness *h, const char *directory,
                        struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc;

    if (h->n_errors == 0)
        return VT_OK;
    if ((rc = vt_make_dirs(directory, NULL, err)))
        return rc;
    vt_harness_errors_csv(&b, h);
    if ((rc = cli_save(directory, "error_records.csv", &b, err)))
        return rc;
    vt_harness_runtime_csv(&b, h);
    return cli_save(directory, "runtime.csv", &b, err);
}

/* What others' simulators took hours for is not lost when a later one is stopped: not
 * in the files is never more than what took a second. Files that cannot be written are
 * told of at the end. */
static void take_so_far(void *user, const struct vt_harness *so_far, size_t n)
{
    struct validate_job *j = user;
    struct vt_err ignored;
    double took = 0;

    cli_progress_count("predicted", so_far->n_runs, n);
    for (size_t i = 0; i < so_far->n_runs; i++)
        took += so_far->run[i].seconds;
    if (took - j->saved_s < 1 || so_far->n_runs == n)
        return;
    (void)save_records(so_far, j->directory, &ignored);
    j->saved_s = took;
}

/* Programs run in directories of their own, so that paths must not depend on ours. */
static const char *absolute_path(char out[MAX_PATH], const char *path)
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

static const char *flag_or_env(const char *flag, const char *name)
{
    return flag ? flag : getenv(name);
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

/* Engine flags take the place of what an experiment states. */
static void change_engine(void *user, struct vt_engine_config *engine,
                          uint32_t *instances)
{
    const struct validate_job *j = user;
    const struct validate_options *o = j->args->options;

    engine_apply(engine, j->args, &o->engine);
    engine_set_link(&engine->offload, j->args, &o->engine);
    if (opt_given(j->args, &o->engine.dp))
        *instances = o->engine.dp;
}

static int open_job(struct validate_job *j, const struct opt_args *a,
                    struct vt_err *err)
{
    const struct validate_options *o = a->options;
    const void *const fixed[] = {&o->engine.tp,
                                 &o->engine.kv_dtype,
                                 &o->engine.gpu_memory_utilization,
                                 &o->engine.disable_hybrid,
                                 &o->engine.retention,
                                 &o->engine.mamba_mode,
                                 &o->engine.pp,
                                 &o->engine.ep,
                                 &o->engine.quantization,
                                 &o->engine.dtype,
                                 &o->engine.enforce_eager,
                                 &o->engine.graphs,
                                 &o->engine.graph_sizes,
                                 &o->engine.largest_graph,
                                 &o->engine.offload,
                                 &o->engine.offload.size_gib,
                                 &o->engine.offload.backend};
    struct vt_harness_config *c = &j->config;
    int rc = VT_OK;

    *j = (struct validate_job){
        .truth = {.metadata = o->metadata,
                  .unsafe_too = o->unsafe,
                  .dp_too = !o->no_dp,
                  .max_requests = o->max_requests,
                  .tell = o->quiet ? NULL : cli_tell,
                  .user = j},
        .config = {.adapters = o->adapters.value,
                   .profiles = o->profiles.value,
                   .commands = o->commands.value,
                   .model_configs = o->model_configs,
                   .workload = o->workload,
                   .clock = (enum vt_clock)(VT_CLOCK_ENGINE + o->clock),
                   .workers = o->jobs,
                   .aiconfigurator = o->aiconfigurator,
                   .environment = environ,
                   .scratch = cli_scratch(),
                   .tell = o->quiet ? NULL : cli_tell,
                   .progress = take_so_far,
                   .change = change_engine,
                   .user = j},
        .args = a,
        .directory = o->output_dir ? o->output_dir : "results",
    };
    c->blis_binary = absolute_path(j->blis, flag_or_env(o->blis_binary, "BLIS_BINARY"));
    c->vidur_dir = absolute_path(j->vidur, flag_or_env(o->vidur_dir, "VIDUR_DIR"));
    c->llmservingsim_dir = absolute_path(
        j->servingsim, flag_or_env(o->llmservingsim_dir, "LLMSERVINGSIM_DIR"));
    c->python = o->python ? absolute_path(j->python, o->python)
                          : find_program(j->python, "python3");
    for (size_t i = 0; i < VT_COUNT(fixed) && rc == VT_OK; i++)
        rc = opt_refuse(a, fixed[i],
                        ": an experiment states its GPUs and the KV cache they had",
                        err);
    if (rc == VT_OK) /* profiles differ in their releases; no newer one has these */
        rc = engine_check_prefills(
            a, &o->engine,
            o->engine.release.text ? o->engine.release.vllm : VT_VLLM_OLDEST, err);
    for (size_t i = 0; i < o->profiles.n; i++)
        engine_warn_profile(o->profiles.value[i]);
    for (size_t i = 0; i < o->adapters.n && rc == VT_OK; i++)
        rc = vt_within(err, vt_adapter_check(&j->config, o->adapters.value[i], err),
                       "--adapters");
    return rc;
}

/* ---- what comes out -------------------------------------------------- */

/* "  OK: adapter x model (workload) [0.12s] - 300/300 requests (100.0% complete)":
 * predicted, of those that were sent; ", 12 failed, in no latency" if some did, there
 * or here; and the basis where one is known: ", estimated"; ", in-sample": the profile
 * was fitted on what it is held against. */
static void put_ok(struct vt_buf *b, const struct vt_adapter_run *r)
{
    const struct vt_experiment *e = r->experiment;
    uint64_t all = e->summary.sent, n = r->requests + r->failed;

    vt_buf_printf(b,
                  "  OK: %s \303\227 %s (%s) [%.2fs] - %llu/%llu requests "
                  "(%.1f%% complete)",
                  r->simulator, e->model, e->workload, r->seconds,
                  (unsigned long long)n, (unsigned long long)all,
                  all > 0 ? 100.0 * (double)n / (double)all : 0.0);
    if (r->failed > 0)
        vt_buf_printf(b, ", %llu failed, in no latency", (unsigned long long)r->failed);
    vt_buf_printf(b, "%s%s%s\n", r->basis.kind ? ", " : "",
                  r->basis.kind ? vt_basis_names[r->basis.kind] : "",
                  r->basis.in_sample ? ", in-sample" : "");
}

static void put_runs(struct vt_buf *b, const struct vt_harness *h)
{
    for (size_t i = 0; i < h->n_runs; i++) {
        const struct vt_adapter_run *r = &h->run[i];

        if (r->outcome == VT_ADAPTER_OK)
            put_ok(b, r);
        else
            vt_buf_printf(b, "  %s: %s \303\227 %s (%s) - %s\n",
                          r->outcome == VT_ADAPTER_FAILED ? "FAIL" : "SKIP",
                          r->simulator, r->experiment->model, r->experiment->workload,
                          r->why);
    }
    vt_buf_printf(b, "%zu ran, %zu skipped, %zu failed\n", h->n_ok, h->n_skipped,
                  h->n_failed);
}

/* In the directory of the records, and where --report says. */
static int write_page(const char *directory, const char *report, struct vt_err *err)
{
    struct vt_buf path = {0};
    int rc;

    vt_buf_printf(&path, "%s/report.html", directory);
    rc = path.failed ? vt_nomem(err) : vt_validate_page(directory, path.data, err);
    if (rc == VT_OK && report)
        rc = vt_validate_page(directory, report, err);
    vt_buf_free(&path);
    return rc;
}

static int report_harness(const struct vt_harness *h, const struct vt_experiments *x,
                          const struct validate_job *j,
                          const struct validate_options *o, struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc = save_records(h, j->directory, err);

    if (rc == VT_OK && h->n_errors > 0) /* else nobody could predict anything */
        rc = write_page(j->directory, o->report, err);
    if (rc != VT_OK)
        return rc;
    if (o->json) {
        rc = vt_harness_json(&b, h, err);
    } else {
        vt_buf_printf(&b,
                      "Found %zu experiments\nParsed %zu experiments successfully\n",
                      x->found, x->n);
        put_runs(&b, h);
        rc = vt_harness_table(&b, h, j->directory, err);
    }
    return cli_print_end(&b, rc, err);
}

/* Load generators measure what clients see; a step model that was fitted on an engine's
 * log knows the engine's times. */
static void warn_clock(const struct vt_harness *h, enum vt_clock c, bool quiet)
{
    for (size_t i = 0; i < h->n_runs && !quiet && c != VT_CLOCK_CLIENT; i++)
        if (h->run[i].outcome == VT_ADAPTER_OK && h->run[i].known.step_tokens > 0 &&
            !h->run[i].experiment->simulated) {
            fprintf(stderr,
                    "vtwin: what was measured is by clients' clocks, what %s predicts "
                    "by the %s's (--clock)\n",
                    h->run[i].simulator, vt_clock_name(c));
            return;
        }
}

static int judge_adapters(struct validate_job *j, const struct validate_options *o,
                          struct vt_err *err)
{
    struct vt_experiments x;
    struct vt_harness h;
    int rc;

    cli_progress_begin(o->progress, o->quiet);
    if ((rc = vt_experiments_load(&x, o->data_dir, &j->truth, err)))
        return rc;
    if (x.found == 0 && !o->json) {
        printf("No experiments found in %s\n", o->data_dir);
        vt_experiments_free(&x);
        return VT_OK;
    }
    if (x.n == 0 && !o->quiet)
        cli_tell(NULL, "no experiment could be parsed");
    rc = vt_harness_run(&h, &x, &j->config, err);
    cli_progress_end();
    if (rc == VT_OK) {
        warn_clock(&h, j->config.clock, o->quiet);
        for (size_t i = 0; i < h.n_runs && !o->quiet; i++) {
            const struct vt_adapter_run *r = &h.run[i];
            char whose[256];

            snprintf(whose, sizeof(whose), "%s on %.200s: ", r->simulator,
                     r->experiment->folder);
            if (r->outcome == VT_ADAPTER_OK)
                engine_warn_extent(&r->extent, &r->known, whose);
        }
        rc = report_harness(&h, &x, j, o, err);
        vt_harness_free(&h);
    }
    vt_experiments_free(&x);
    return rc;
}

static int validate(const struct opt_args *a, struct vt_err *err)
{
    const struct validate_options *o = a->options;
    struct validate_job j;
    struct vt_buf b = {0};
    int rc;

    if (o->list) {
        vt_adapters_list(&b);
        return cli_print(&b, err);
    }
    rc = cli_workers_open(a, o->workers, o->jobs, err);
    if (rc == VT_OK)
        rc = open_job(&j, a, err);
    if (rc == VT_OK)
        rc = judge_adapters(&j, o, err);
    cli_workers_close();
    return rc;
}

/* ---- figures: pictures, a table and a page of what was found ------------ */

static void put_drawn(void *user, const char *name, enum vt_drawn result,
                      const char *why)
{
    static const char *const words[] = {"OK", "SKIP", "FAIL"}; /* enum vt_drawn */

    vt_buf_printf(user, *why ? "%s: %s (%s)\n" : "%s: %s%s\n", words[result], name,
                  why);
}

/* "a,b" and "a b". */
static int split_excluded(const struct opt_list *list, struct vt_arena *a,
                          const char **name, size_t *n, struct vt_err *err)
{
    for (size_t i = 0; i < list->n; i++)
        for (const char *p = list->value[i]; *p;) {
            size_t len = strcspn(p, ", ");

            if (len > 0 && *n == MAX_EXCLUDED)
                return vt_fail(err, VT_EINPUT, "--exclude-simulators: more than %d",
                               MAX_EXCLUDED);
            if (len > 0 && !(name[(*n)++] = vt_arena_copy(a, p, len)))
                return vt_nomem(err);
            p += len + (p[len] != '\0');
        }
    return VT_OK;
}

static int validate_figures(const struct opt_args *a, struct vt_err *err)
{
    const struct validate_options *o = a->options;
    const char *excluded[MAX_EXCLUDED];
    struct vt_buf told = {0}, output = {0};
    struct vt_validate_figures job = {
        .results_dir = o->results_dir,
        .metadata = o->metadata,
        .data_dir = opt_given(a, &o->data_dir) ? o->data_dir : NULL,
        .exclude = excluded,
        .paper = o->paper,
        .report = o->report,
        .scratch = cli_scratch(),
        .made = put_drawn,
        .user = &told,
    };
    struct vt_arena names = {0};
    size_t n_failed = 0;
    int rc = split_excluded(&o->exclude, &names, excluded, &job.n_exclude, err);

    vt_buf_printf(&output, "%s/figures", o->results_dir);
    job.output_dir = o->output_dir ? o->output_dir : output.data;
    if (rc == VT_OK)
        rc = output.failed ? vt_nomem(err) : vt_validate_figures(&job, &n_failed, err);
    rc = cli_print_end(&told, rc, err);
    vt_buf_free(&output);
    vt_arena_free(&names);
    if (rc == VT_OK && n_failed > 0)
        return vt_fail(err, VT_EIO, "%zu could not be made", n_failed);
    return rc;
}

/* ---- the table -------------------------------------------------------- */

static const struct opt_sub subs[] = {{"figures", "[FLAGS]", 0, 0, validate_figures},
                                      {0}};
static const char *const operands[] = {"figures", NULL};

static const char *const examples[] = {
    "./run validate --list",
    "./run validate --data-dir tests/cases/validate/truth --output-dir results",
    "./run validate figures --results-dir tests/cases/figures/results --output-dir "
    "figures",
    NULL,
};

const struct opt_command cmd_validate = {
    .name = "validate",
    .summary = "judge simulators by measurements of real servers",
    .usage = "[figures] [--data-dir DIR] [--output-dir DIR] [--adapters NAME ...]",
    .about =
        "Reads experiments (an engine's settings and log, a load profile, what\n"
        "inference-perf measured), has each simulator predict them, and compares nine\n"
        "metrics: mean, p90 and p99 of E2E, TTFT and ITL, by stage and in all. Those\n"
        "that cannot predict an experiment are skipped, those that fail are told; the\n"
        "others go on. DIR may be a folder of `simulate --out`, too: the truth is then "
        "a\n"
        "simulation, and called so. Engine flags take the place of what experiments "
        "state, for the\n"
        "simulators in this program. `validate figures` draws what came out.",
    .blocks = blocks,
    .size = sizeof(struct validate_options),
    .operands = operands,
    .subs = subs,
    .examples = examples,
    .run = validate,
};
