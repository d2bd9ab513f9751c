/* tune.h - answers for operators: the highest load within latency limits, and the
 * engine settings that give it.
 *
 * Both run simulations by the hundred: trials are independent, go to worker processes,
 * on other machines too, and come back in a fixed order, so that results do not depend
 * on how many there are. */
#ifndef VT_TUNE_H
#define VT_TUNE_H

#include "model/model.h"
#include "report/report.h"
#include "sim/sim.h"

/* ---- limits --------------------------------------------------------------- */

struct vt_slo { /* milliseconds; 0: no limit */
    double ttft_p99, tpot_p99, itl_p99, e2e_p99;
};
enum { VT_SLO_TTFT, VT_SLO_TPOT, VT_SLO_ITL, VT_SLO_E2E, VT_SLO_LIMITS };
extern const struct vt_slo_row {
    const char *name; /* "TTFT p99" */
    const char *key;  /* "ttft_p99" */
    size_t limit;     /* in vt_slo: a double */
    size_t stat;      /* in vt_summary: a vt_stat */
} vt_slo_rows[VT_SLO_LIMITS];
double *vt_slo_limit(struct vt_slo *slo, size_t row);
double vt_slo_at(const struct vt_slo *slo, size_t row);      /* 0: none, or no row */
double vt_slo_value(const struct vt_summary *s, size_t row); /* what it is about */
size_t vt_slo_find(const char *name); /* or NULL; VT_SLO_LIMITS: there is no such row */
/* The limit that a summary comes nearest to, or breaks by most: "TPOT p99"; NULL: there
 * are no limits. *by: its value as a share of the limit (1.2: a fifth above it). */
const char *vt_slo_nearest(const struct vt_slo *slo, const struct vt_summary *s,
                           double *by);
/* The same where it is broken; NULL, and *by 1: none is. by may be NULL. */
const char *vt_slo_broken(const struct vt_slo *slo, const struct vt_summary *s,
                          double *by);
/* Whether one request keeps all of them by itself: its first token, its mean gap, all
 * but one in a hundred of its gaps, its whole. */
bool vt_slo_keeps(const struct vt_slo *slo, const struct vt_served *s);
/* All that are broken: "TTFT p99, E2E p99"; "" if none is. */
void vt_slo_all_broken(char *out, size_t size, const struct vt_slo *slo,
                       const struct vt_summary *s);

/* ---- one trial ------------------------------------------------------------- */

/* Workloads that trials have loaded, kept for the next ones. Not thread-safe. */
struct vt_trials; /* opaque */
int vt_trials_new(struct vt_trials **out, struct vt_err *err) VT_MUST_CHECK;
void vt_trials_free(struct vt_trials *t); /* NULL is fine */

/* What is to be simulated, or measured at a server, at a given load. Everything is
 * borrowed. */
struct vt_trial {
    struct vt_engine_config engine;
    const struct vt_latency *model;
    const struct vt_fleet *fleet; /* NULL: one engine */
    const char *workload; /* workload file, trace or request CSV, or a built-in name:
                           * "multiturn-starters" */
    const struct vt_input *input; /* what it names, whatever its seed; NULL: to be found
                                   * by the name */
    double rate;       /* requests per second, above 0; scales the workload's own */
    uint32_t requests; /* the first so many; 0: all that the workload has */
    /* 0, or: the client sends at most so many at once and keeps the rest. Latencies
     * begin when a request is sent; what is borne counts from when it was due. */
    uint32_t concurrency;
    /* 0, or how many are offered: what the lines above say goes on for so long. A
     * generator goes on drawing, recorded requests come again with other content. The
     * first eighth of the time fills the engine and the last sixteenth empties it: who
     * arrives then is not judged. */
    uint32_t go_on;
    /* NULL, or: a run that has broken one of these for certain ends there, and is
     * judged by what it has served until then. */
    const struct vt_slo *give_up;
    uint64_t seed;          /* of a generated workload and of the engine */
    struct vt_trials *kept; /* NULL: loads its workload anew */
    /* Measures it at a live server in place of a simulation; NULL: simulated. Trials of
     * one server go one after the other: workers is to be 1. */
    int (*measure)(void *user, const struct vt_trial *t, struct vt_summary *out,
                   double *achieved, struct vt_err *err); /* achieved: may be NULL */
    void *measure_user;
};
/* Runs it in this process. Requests are due in an open loop at exactly `rate`, turns of
 * sessions too: docs/capacity.md says how. */
int vt_trial_run(const struct vt_trial *t, struct vt_summary *out,
                 struct vt_err *err) VT_MUST_CHECK;
/* The workload as vt_trial_run() offers it. It borrows from t->kept, which must not be
 * NULL; end it with vt_trial_workload_free(). */
int vt_trial_workload(const struct vt_trial *t, struct vt_workload *out,
                      struct vt_err *err) VT_MUST_CHECK;
void vt_trial_workload_free(struct vt_workload *w);
/* The same, and the rate that was borne: where ever more requests are under way to the
 * end of the run, *achieved is below t->rate. Costs about a tenth more. */
int vt_trial_measure(const struct vt_trial *t, struct vt_summary *out, double *achieved,
                     struct vt_err *err) VT_MUST_CHECK;

/* ---- many trials ------------------------------------------------------------ */

/* Runs n jobs wherever there are workers; result i is of job i. run() is called in a
 * worker, which has all that this process has: it is told the number of a job and
 * writes the bytes of its result. A job whose worker dies is run again, twice at most.
 * If some fail, the error is that of the first by number. */
struct vt_jobs {
    size_t n;
    int (*run)(void *user, size_t i, struct vt_buf *result, struct vt_err *err);
    int (*done)(void *user, size_t i, const char *result, size_t len,
                struct vt_err *err); /* in this process, in any order */
    void *user;
    uint32_t
        workers; /* processes; 0: as many as there are cores; 1: none beside this */
};
/* When it is stopped (vt_stopped()) what was done was done() all the same. */
int vt_jobs_run(const struct vt_jobs *j, struct vt_err *err) VT_MUST_CHECK;

/* Somebody else who runs jobs, for this whole process: asked at every call of
 * vt_jobs_run() but those inside of jobs. batch counts the calls, which are the same in
 * every process that has the same command and the same results of batches before.
 * Borrowed; NULL: nobody. */
struct vt_jobs_elsewhere {
    int (*run)(void *user, const struct vt_jobs *j, uint32_t batch, struct vt_err *err);
    void *user;
};
void vt_jobs_elsewhere(const struct vt_jobs_elsewhere *who);

/* A driver: a process at the other end of a socket that has jobs run wherever it wants,
 * each by a worker (below), and loses none. */
struct vt_jobs_driver {
    int fd;
    uint32_t most;                /* jobs that it has at a time; 0: all of a batch */
    const struct vt_buf *command; /* the command's words, each with a NUL behind it */
    const struct vt_buf *inputs;  /* files that it has read, in the same way */
    /* A job took so long, there. NULL: nobody asks. */
    void (*cost)(void *user, const char *where, vt_ns took);
    void *user;
};
/* Waits until it is ready; what it says of itself goes to `hello`. */
int vt_jobs_driver_meet(const struct vt_jobs_driver *d, struct vt_buf *hello,
                        struct vt_err *err) VT_MUST_CHECK;
/* All jobs of a batch, as vt_jobs_elsewhere.run does it. */
int vt_jobs_driver_run(const struct vt_jobs_driver *d, const struct vt_jobs *j,
                       uint32_t batch, struct vt_err *err) VT_MUST_CHECK;

/* A worker: this process runs a command for the sake of its jobs, those that it is
 * given. It gets the results of batches that are over; when nothing more comes,
 * vt_jobs_run() fails and `over` is set. */
struct vt_jobs_worker {
    int in, out;
    bool over;

    struct vt_jobs_elsewhere self;
};
/* The command's words, as a driver's. */
int vt_jobs_worker_command(const struct vt_jobs_worker *w, struct vt_buf *words,
                           struct vt_err *err) VT_MUST_CHECK;
void vt_jobs_as_worker(struct vt_jobs_worker *w);

/* A share of a command's first batch: jobs index, index + of, ... Then vt_jobs_run()
 * fails and `over` is set; `file` is what is to be kept. Or, merging, those answers
 * instead of jobs: later batches run here. */
struct vt_jobs_shard {
    uint32_t index, of;
    const struct vt_buf *command, *inputs; /* as a driver's */
    struct vt_buf file;                    /* the caller frees it */
    bool over;
    const char *const *path; /* merging: files of all shares, ends with NULL */

    struct vt_jobs_elsewhere self;
};
void vt_jobs_as_shard(struct vt_jobs_shard *s);
/* The command that a share is of, from its file. */
int vt_jobs_shard_command(const char *path, struct vt_buf *words,
                          struct vt_err *err) VT_MUST_CHECK;
void vt_jobs_merge(struct vt_jobs_shard *s);

/* ---- capacity ---------------------------------------------------------------- */

struct vt_capacity_spec {
    struct vt_trial trial; /* its rate is ignored; its seed is the first one's */
    struct vt_slo slo;
    double low, high;   /* where to look first; 0: found by doubling and halving */
    const double *rate; /* NULL, or n_rates to try, ascending, instead of searching */
    size_t n_rates;
    double tolerance; /* relative width of the answer; 0: 0.02 */
    uint32_t seeds;   /* runs of each rate; 0: 3 */
    uint32_t workers; /* as vt_jobs' */
    /* A capacity is a statement about the long run: trials go on for as long as that
     * takes, however many requests the workload has. */
    enum vt_capacity_how {
        VT_CAPACITY_SURE,   /* found by short runs, confirmed by long ones */
        VT_CAPACITY_ROUGH,  /* only the short ones, of one seed: to compare settings */
        VT_CAPACITY_SKETCH, /* a few hundred requests a run: a curve to look at, and
                             * about where it bends */
        VT_CAPACITY_ONCE, /* the workload as it is, which says nothing of the long run;
                           * live servers are always asked so */
    } how;
    /* NULL, or told before trials of a rate; requests: of each, 0: all there are. */
    void (*progress)(void *user, double rate, uint32_t runs, uint32_t requests);
    void *user;
};
struct vt_capacity_point { /* one rate */
    double rate;
    uint32_t runs, passed;
    struct vt_summary mean; /* of the runs */
    double achieved;        /* mean of the runs */
    const char *broken;     /* limit that most runs broke, or "rate"; NULL: none */
    bool saturated;         /* most runs did not bear the rate */
};
struct vt_capacity {
    double rate;         /* the highest that most runs keep; 0: none does */
    double failed;       /* the lowest above it that they do not; 0: none was found */
    double low, high;    /* 95 % confidence, from the seeds; both 0: one seed */
    const char *binding; /* limit that is broken at `failed` */
    uint32_t requests;   /* that each run offered, at `rate` or the lowest tried */
    double span_s;       /* in which they arrived */
    double borne;        /* share of a rate that is to be borne */
    struct vt_capacity_point *point; /* heap; ascending by rate */
    size_t n, cap;
    size_t trials;           /* simulations that were run */
    struct vt_extent extent; /* at `rate`, or at the lowest one that was tried */
};
/* Stopped, *out has the points that were done, and the answer that they allow. */
int vt_capacity_find(struct vt_capacity *out, const struct vt_capacity_spec *spec,
                     struct vt_err *err) VT_MUST_CHECK;
void vt_capacity_free(struct vt_capacity *c); /* frees contents, not c */

/* ---- settings ------------------------------------------------------------------ */

struct vt_setting { /* what is searched over; names as vLLM's flags */
    uint32_t max_num_seqs, max_num_batched_tokens;
    double gpu_memory_utilization;
    uint32_t tp, dp;     /* GPUs of an engine; engines behind a router, or ranks */
    const char *routing; /* borrowed; used where dp > 1 */
    uint32_t spec_tokens;
    bool prefix_caching;
    double kv_bytes; /* of an element of the KV cache; 0: as the site says */
};
/* What vLLM's --kv-cache-dtype calls it: "auto", "fp8", "bfloat16". */
const char *vt_setting_kv_dtype(const struct vt_setting *s);

/* What settings are applied to. Everything is borrowed. */
struct vt_site {
    const struct vt_profile *profile; /* NULL: the model is given, and it is fixed */
    const struct vt_latency *model;   /* NULL: the profile's */
    uint32_t model_tp;                /* GPUs that `model` is of; 0: as the profile */
    struct vt_engine_config engine;   /* what a setting leaves alone */
    /* kv.arch NULL: what the layers keep is not known, they all keep every token;
     * kv.element_bytes 0: as the profile was measured. */
    struct vt_kv_wish kv;
    const struct vt_gpu *gpu; /* NULL: engine.num_gpu_blocks holds for all */
    /* An element's in the profile's captures, by which reading others of them scales;
     * 0: the law says what that takes. */
    double measured_kv_bytes;
    double sampler_bytes; /* as vt_kv_query's */
    double draft_gib;     /* weights of a draft model, taken from the KV cache */
    bool law_drafts;      /* engine.spec_draft_us is not stated: an EAGLE-3 head's */
    vt_ns staleness_ns;   /* as vt_fleet's */
    /* What is asked of an estimate, but for each setting's GPUs; NULL: what is above
     * says it all. Without model and profile that is what times it; a profile is
     * carried over from what it was measured on. */
    const struct vt_estimate_query *estimate;
    bool may_estimate; /* the law alone, where that was found to be off by less */
    bool lockstep;     /* data-parallel engines are ranks of a mixture of experts */
    bool shrink; /* max_model_len is the model's: where the pool holds less, that */
};

/* What a setting's steps are timed by: the site's model or profile as it is, or *e. */
int vt_site_timing(const struct vt_site *site, const struct vt_setting *s,
                   bool *as_it_is, struct vt_estimate *e,
                   struct vt_err *err) VT_MUST_CHECK;

/* A setting made ready to run. */
struct vt_deployment {
    struct vt_engine_config engine;
    struct vt_fleet fleet;
    const struct vt_latency *model;
    struct vt_latency *scaled;    /* owned; NULL: the profile's is right as it is */
    struct vt_step_params params; /* of `scaled` */
    double kv_gib;                /* of one engine's GPU; 0: not known */
    bool many;                    /* the fleet counts */
};
/* VT_EINPUT: it does not fit, or nothing is known of such an engine. End *d with
 * vt_undeploy() whatever happens. */
int vt_deploy(struct vt_deployment *d, const struct vt_site *site,
              const struct vt_setting *s, struct vt_err *err) VT_MUST_CHECK;
void vt_undeploy(struct vt_deployment *d);

/* ---- tuning ---------------------------------------------------------------------- */

enum vt_tune_goal {
    VT_TUNE_THROUGHPUT, /* as vLLM's auto_tune: all at once, then slower until it fits
                         */
    VT_TUNE_CAPACITY,   /* the highest rate within the limits */
};
enum vt_tune_search { VT_TUNE_GRID, VT_TUNE_SMART };

enum { VT_TUNE_VALUES = 64, VT_TUNE_MOST = 1000000 };
enum vt_tune_axis { /* in the order of vt_setting */
                    VT_AXIS_SEQS,
                    VT_AXIS_BATCHED_TOKENS,
                    VT_AXIS_MEMORY,
                    VT_AXIS_TP,
                    VT_AXIS_DP,
                    VT_AXIS_ROUTING,
                    VT_AXIS_DRAFTS,
                    VT_AXIS_CACHING,
                    VT_AXIS_KV,
                    VT_TUNE_AXES
};
/* The values of each member of a setting; each list at least 1. The last axis runs
 * fastest. Routings are indices into `routing`. */
struct vt_tune_space {
    double value[VT_TUNE_AXES][VT_TUNE_VALUES];
    uint32_t n[VT_TUNE_AXES];
    const char *routing[VT_TUNE_VALUES];
};
size_t vt_tune_space_size(const struct vt_tune_space *s); /* SIZE_MAX: too many */
struct vt_setting vt_tune_space_at(const struct vt_tune_space *s, size_t i);

struct vt_target; /* below */

struct vt_tune_spec { /* everything is borrowed */
    struct vt_site site;
    const struct vt_basis *trust; /* how far its times are to be trusted; or NULL */
    struct vt_tune_space space;
    enum vt_tune_goal goal;
    enum vt_tune_search search;
    struct vt_slo slo;
    const char *workload; /* as vt_trial's */
    const struct vt_input *input;
    uint32_t requests;    /* 0: as the workload says */
    uint32_t concurrency; /* as vt_trial's */
    const double *rate;   /* NULL, or n_rates to try instead of searching; ascending */
    size_t n_rates;
    uint32_t seeds; /* of capacity */
    bool once;      /* capacity of the workload as it is: VT_CAPACITY_ONCE */
    uint64_t seed;
    uint32_t workers;
    struct vt_target *target; /* NULL: simulated; else workers is 1, and these are: */
    /* vt_target_set() and vt_target_measure(), by address: who only simulates links no
     * HTTP client. */
    int (*set)(struct vt_target *x, const struct vt_setting *s, struct vt_err *err);
    int (*measure)(void *target, const struct vt_trial *t, struct vt_summary *out,
                   double *achieved, struct vt_err *err);
    void (*progress)(void *user, size_t tried); /* configurations; NULL: nobody asks */
    void *user;
};

enum { VT_TUNE_ITERATIONS = 32 };
struct vt_iteration { /* one run of a setting */
    double rate;      /* INFINITY: all at once */
    double req_per_s, goodput;
    double ttft_p99, tpot_p99, itl_p99, e2e_p99; /* ms */
    char broken[16];                             /* the limit; "": all kept */
    bool cut; /* it was clear that it breaks one: the numbers are of a part */
};

struct vt_tuned { /* what came of one setting; plain bytes */
    bool tried;
    bool meets;           /* within the limits at some rate */
    double rate;          /* the one kept, INFINITY: all at once; 0: none */
    double failed_rate;   /* the lowest above that broke a limit; 0: none */
    char binding[16];     /* the limit */
    struct vt_summary at; /* at `rate`, or of the last try */
    double goodput;       /* requests within the limits, per second */
    /* Of capacities: whether long runs confirmed it, and how long each was. */
    bool sure;
    uint32_t run_requests;
    double run_s;
    double kv_gib;
    uint32_t num_gpu_blocks;
    uint32_t runs;                                     /* simulations */
    struct vt_iteration iteration[VT_TUNE_ITERATIONS]; /* the first `runs` of them */
    struct vt_extent
        known;         /* what the model was made from; at.extent: how far it went */
    char problem[160]; /* why it can't run at all; "" if it can */
};

struct vt_tune_result {
    struct vt_tuned *tuned; /* heap; one for each setting of the space, in its order */
    size_t n, best;         /* best: n if nothing meets the limits */
    size_t trials, runs;
};
/* Stopped, *r has what was tried until then, for the caller to free as ever. */
int vt_tune(struct vt_tune_result *r, const struct vt_tune_spec *spec,
            struct vt_err *err) VT_MUST_CHECK;
void vt_tune_result_free(struct vt_tune_result *r); /* frees contents, not r */

/* Is setting a better than b? By throughput for each GPU, or by rate for each GPU and
 * then the wider margin to the limits; of equals the first in the space. */
bool vt_tune_better(const struct vt_tune_spec *spec, const struct vt_tune_result *r,
                    size_t a, size_t b);
/* The latency that a search is drawn by: the one whose limit stops the best, else the
 * first that has a limit, else E2E p99. *limit: its own in ms; 0: none. */
const char *vt_tune_latency(const struct vt_tune_spec *spec,
                            const struct vt_tune_result *r, double *limit);
/* Those that no other beats in both throughput and that latency; out has room for all.
 */
size_t vt_tune_pareto(const struct vt_tune_spec *spec, const struct vt_tune_result *r,
                      size_t *out);

/* Append. result.txt is as vLLM's auto_tune writes it. */
void vt_tune_result_txt(struct vt_buf *b, const struct vt_tune_spec *spec,
                        const struct vt_tune_result *r, const char *hash,
                        const char *saved_in);
void vt_tune_csv(struct vt_buf *b, const struct vt_tune_spec *spec,
                 const struct vt_tune_result *r);
/* more: adds members behind the first; NULL: none. */
void vt_tune_json(struct vt_buf *b, const struct vt_tune_spec *spec,
                  const struct vt_tune_result *r, const char *profile,
                  void (*more)(void *user, struct vt_jw *w), void *user);
/* Why a setting keeps the limits at no rate: by how much the lowest that was tried
 * breaks which. Returns out. */
const char *vt_tune_why(char *out, size_t size, const struct vt_slo *slo,
                        const struct vt_tuned *t);
void vt_tune_table(struct vt_buf *b, const struct vt_tune_spec *spec,
                   const struct vt_tune_result *r, size_t most);
/* "vllm serve MODEL --max-num-seqs ...", without a newline: all that the setting and
 * the engine assume. engine: as deployed. */
struct vt_served_model {              /* borrowed */
    const char *name;                 /* "NAME (fp8)": quantised so; NULL: not known */
    const char *quantization, *dtype; /* NULL: as its config.json says */
    const struct vt_graphs *graphs;   /* NULL: as vLLM decides */
};
void vt_recommend(struct vt_buf *b, const struct vt_served_model *model,
                  const struct vt_site *site, const struct vt_engine_config *engine,
                  const struct vt_setting *s);
/* Throughput against latency, by gnuplot; as vt_figure_draw(). */
int vt_tune_plot(const struct vt_tune_spec *spec, const struct vt_tune_result *r,
                 const char *title, const char *scratch, const char *path,
                 struct vt_err *err) VT_MUST_CHECK;

/* The same as a chart, and the best so many as a table, for a page. */
int vt_tune_page(struct vt_buf *b, const struct vt_tune_spec *spec,
                 const struct vt_tune_result *r, size_t most,
                 struct vt_err *err) VT_MUST_CHECK;

/* ---- plans ---------------------------------------------------------- */

/* A tuning plan: named rows of settings, each tried at every rate, and what was
 * measured of them; docs/tune.md describes the file. */
enum { VT_TUNING_ROWS = 64, VT_TUNING_RATES = 64 };
struct vt_tuning_measured { /* 0: not measured */
    double kv_gib, rate;
    double rate_low, rate_high; /* when measured again */
    double at;                  /* the rate that the next ones are of */
    double ttft_p99, tpot_p99, itl_p99;
};
struct vt_tuning_row {
    char name[64];
    uint32_t phase;
    size_t over; /* the row whose gain it states; its own: the first with as many
                    engines */
    struct vt_setting setting;
    const char *workload; /* NULL: the plan's */
    struct vt_tuning_measured measured;
};
struct vt_tuning_plan {
    struct vt_arena arena; /* owns all that is pointed to */
    const char *name, *profile, *hf_config, *gpu, *workload;
    uint32_t max_model_len, requests, seeds;
    struct vt_site
        site; /* what the file says of it; profile and model are the caller's */
    struct vt_slo slo;
    double rate[VT_TUNING_RATES];
    size_t n_rates;
    struct vt_tuning_row row[VT_TUNING_ROWS]; /* the first is the baseline */
    size_t n;
};
/* A file, or the name of a built-in one. */
int vt_tuning_plan_load(struct vt_tuning_plan *p, const char *path,
                        struct vt_err *err) VT_MUST_CHECK;
int vt_tuning_plan_parse(struct vt_tuning_plan *p, const char *name, const char *text,
                         size_t len, struct vt_err *err) VT_MUST_CHECK;
void vt_tuning_plan_free(struct vt_tuning_plan *p);

struct vt_tuning_cell { /* one row at one rate; plain bytes */
    struct vt_summary mean;
    uint32_t runs, passed;
    struct vt_extent known; /* what the row's model was made from */
    char broken[48];        /* all limits that the mean is above; "" if none */
};
struct vt_tuning_result {
    struct vt_tuning_cell *at; /* heap; row by row, each at all rates */
    double *kv_gib;            /* heap; of each row */
    size_t *best;              /* heap; index of the highest rate kept; n_rates: none */
};
int vt_tuning_plan_run(struct vt_tuning_result *r, const struct vt_tuning_plan *p,
                       uint64_t seed, uint32_t workers,
                       struct vt_err *err) VT_MUST_CHECK;
void vt_tuning_result_free(struct vt_tuning_result *r);
void vt_tuning_table(struct vt_buf *b, const struct vt_tuning_plan *p,
                     const struct vt_tuning_result *r);
void vt_tuning_json(struct vt_buf *b, const struct vt_tuning_plan *p,
                    const struct vt_tuning_result *r);
void vt_tuning_csv(struct vt_buf *b, const struct vt_tuning_plan *p,
                   const struct vt_tuning_result *r);
int vt_tuning_plot(const struct vt_tuning_plan *p, const struct vt_tuning_result *r,
                   const char *scratch, const char *path,
                   struct vt_err *err) VT_MUST_CHECK;

/* ---- a live server --------------------------------------------------------------- */

struct vt_load_config; /* load/load.h */

/* Where trials are measured in place of simulated. Everything is borrowed. */
struct vt_target {
    const struct vt_load_config *load; /* its plan is the trial's; stopped() counts */
    struct vt_slo slo;                 /* a run that has broken them ends early */
    uint32_t warmups;                  /* requests before a server's first trial */
    /* Shell command that starts the server with other settings: {max_num_seqs},
     * {max_num_batched_tokens}, {gpu_memory_utilization}, {tensor_parallel_size},
     * {data_parallel_size}, {kv_cache_dtype} and {num_speculative_tokens} are replaced.
     * It may stay and be the server, or end and leave one behind. NULL: the server is
     * what it is. */
    const char *restart;
    vt_ns ready_timeout_ns;
    void (*tell)(void *user, const char *text); /* a line; NULL: nobody asks */
    void *user;
    /* Its own; zero to start. */
    bool is_warm, cannot_reset;
    char model[256];       /* the server's first, if load->model is NULL */
    struct vt_proc server; /* the command */
    uint64_t good;         /* requests of the last trial that kept all limits */
};
/* vt_trial's measure(); target: the struct above. */
int vt_target_measure(void *target, const struct vt_trial *t, struct vt_summary *out,
                      double *achieved, struct vt_err *err) VT_MUST_CHECK;
/* VT_EINPUT: it does not start with these settings. */
int vt_target_set(struct vt_target *x, const struct vt_setting *s,
                  struct vt_err *err) VT_MUST_CHECK;
void vt_target_close(struct vt_target *x); /* ends the server it has started */

#endif
