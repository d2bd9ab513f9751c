/* report.h - timings to summaries, summaries to tables and JSON.
 *
 * Predicted and measured requests go through the same door, so that a comparison
 * compares like with like. */
#ifndef VT_REPORT_H
#define VT_REPORT_H

#include "core/core.h"
#include "trace/trace.h"

/* Collects until summarised. Samples are counted: memory goes by distinct values, not
 * by requests or tokens. */
struct vt_timings; /* opaque */

int vt_timings_new(struct vt_timings **out, struct vt_err *err) VT_MUST_CHECK;
void vt_timings_free(struct vt_timings *t); /* NULL is fine */

/* One finished request. tpot is (e2e - ttft) / (tokens - 1), and no sample when it
 * produced fewer than two tokens. queue_ns < 0: unknown. */
struct vt_timing {
    vt_ns arrival_ns, ttft_ns, e2e_ns, queue_ns;
    uint32_t prompt_tokens, cached_tokens, output_tokens;
};
int vt_timings_add(struct vt_timings *t, const struct vt_timing *one,
                   struct vt_err *err) VT_MUST_CHECK;
/* `count` gaps between consecutive output chunks, all of `gap_ns`. */
int vt_timings_gap(struct vt_timings *t, vt_ns gap_ns, uint32_t count,
                   struct vt_err *err) VT_MUST_CHECK;

/* Values in milliseconds at percentiles, which ascend, of a row of vt_stat_rows;
 * *samples 0: there are none. */
int vt_timings_quantiles(struct vt_timings *t, size_t row, const double *percentile,
                         size_t n, double *out, uint64_t *samples,
                         struct vt_err *err) VT_MUST_CHECK;

/* Takes back one gap of that length that was added before. */
int vt_timings_ungap(struct vt_timings *t, vt_ns gap_ns,
                     struct vt_err *err) VT_MUST_CHECK;
/* Moves all that the other has collected here. */
int vt_timings_join(struct vt_timings *t, struct vt_timings *from,
                    struct vt_err *err) VT_MUST_CHECK;

struct vt_stat { /* milliseconds */
    double mean, p50, p90, p95, p99;
    uint64_t n;
};

struct vt_summary {
    uint64_t requests;
    double duration_s; /* first arrival to last token, or as the driver says */
    double req_per_s, output_tok_per_s, total_tok_per_s;
    uint64_t prompt_tokens, output_tokens, cached_tokens;
    struct vt_stat ttft, tpot, itl, e2e, queue;
    uint64_t preemptions;
    double prefix_hit_rate; /* cached prompt tokens over looked-up prompt tokens */
    double kv_usage_peak;
    bool offloads;        /* there is a second tier, in the host's memory: */
    double host_hit_rate; /* what of prefix_hit_rate it had */
    struct vt_offload_totals offload;
    uint64_t steps;
    struct vt_extent extent; /* the largest of what its steps held; 0: not known */
    uint32_t vllm;           /* whose release's scheduler: 26 is 0.26; 0: none's */
    char kv_groups[96];      /* of its engine, if there are several */
    /* Whose times these are, and behind what; NULL: the engine's. Borrowed. */
    const char *clock, *frontend;
    bool simulated;      /* of a trace's times: vtwin's own, not measured ones */
    bool in_sample;      /* what timed it was fitted on the very capture */
    const char *profile; /* what timed it; borrowed */
    const char *workload;
    uint64_t seed;
    const char *version;
};

/* Quantiles are exact (linear interpolation). duration_ns <= 0: taken from the
 * timings. Rates, counts and stats of *s are filled; the rest is the caller's. */
int vt_timings_summarise(struct vt_timings *t, vt_ns duration_ns, struct vt_summary *s,
                         struct vt_err *err) VT_MUST_CHECK;

/* Adds a run to the mean of several, of which it is `share`: counts are of all runs. */
void vt_summary_add(struct vt_summary *mean, const struct vt_summary *run,
                    double share);

/* All recorded timings of a measured workload. */
int vt_timings_add_measured(struct vt_timings *t, const struct vt_workload *w,
                            struct vt_err *err) VT_MUST_CHECK;
/* The summary of what a view holds. */
struct vt_view;
int vt_summary_view(struct vt_summary *s, const struct vt_view *v,
                    struct vt_err *err) VT_MUST_CHECK;
/* Their summary, as a run's would be. */
int vt_summary_measured(struct vt_summary *s, const struct vt_workload *w,
                        struct vt_err *err) VT_MUST_CHECK;

/* Which numbers a summary shows, in which order: all that list them walk these rows, so
 * none can forget a metric. */
enum {
    VT_N_STATS = 5,
    VT_N_MEASURED = 4, /* of them, the first ones are known of all measured requests */
    VT_N_PARTS = 5,
    VT_N_SCALARS = 5,
};

extern const struct vt_stat_row {
    const char *label; /* for people */
    const char *key;   /* in JSON */
    size_t offset;     /* of a struct vt_stat in struct vt_summary */
} vt_stat_rows[VT_N_STATS];

extern const struct vt_part {
    const char *key;
    size_t offset; /* of a double in struct vt_stat */
} vt_parts[VT_N_PARTS];

/* Single numbers that are compared. */
extern const struct vt_scalar {
    const char *label, *unit;
    const char *key;
    size_t offset; /* of a double in struct vt_summary */
    double scale;  /* from the summary's unit to the table's */
} vt_scalars[VT_N_SCALARS];

static inline const struct vt_stat *vt_stat_of(const struct vt_summary *s, size_t row)
{
    return (const void *)((const char *)s + vt_stat_rows[row].offset);
}

static inline double vt_part_of(const struct vt_stat *s, size_t part)
{
    const double *v = (const void *)((const char *)s + vt_parts[part].offset);

    return *v;
}

static inline double vt_scalar_of(const struct vt_summary *s, size_t scalar)
{
    const double *v = (const void *)((const char *)s + vt_scalars[scalar].offset);

    return *v;
}

/* How many rows are compared: queue times are not known of all that was measured. */
static inline size_t vt_stats_measured(const struct vt_summary *measured)
{
    return measured->queue.n > 0 ? VT_N_STATS : VT_N_MEASURED;
}

/* Of predicted against measured; NAN when that has no meaning. */
double vt_error_percent(double predicted, double measured);

/* Appends. The table is for people; JSON has stable keys in a fixed order, and ends
 * with a newline where it is whole. */
void vt_summary_table(struct vt_buf *b, const struct vt_summary *s);
/* The members of the summary's object, which the caller opens and closes. */
void vt_summary_members(struct vt_jw *j, const struct vt_summary *s);
/* The member "vllm_version": "0.26" for 26; nothing for 0. */
void vt_release_json(struct vt_jw *j, uint32_t vllm);
/* Predicted against measured with the error in percent, one row per metric. */
void vt_compare_table(struct vt_buf *b, const struct vt_summary *predicted,
                      const struct vt_summary *measured);
void vt_compare_json(struct vt_buf *b, const struct vt_summary *predicted,
                     const struct vt_summary *measured);

/* ---- beyond what a model was made from --------------------------------- */

/* A learned model is worth little far from what it has learned from. */
enum { VT_OUTSIDE = 3 };
struct vt_outside {
    const char *what, *key; /* for people, for programs */
    uint64_t reached, fitted;
};
/* The ways in which a run went more than half beyond; returns how many. */
size_t vt_outside(const struct vt_extent *run, const struct vt_extent *known,
                  struct vt_outside out[VT_OUTSIDE]);
/* Sentences on what an engine's times were not made from. */
struct vt_notes {
    const char (*text)[120];
    size_t n;
};
/* The member "outside", if there is one; notes may be NULL. */
void vt_outside_json(struct vt_jw *j, const struct vt_extent *run,
                     const struct vt_extent *known, const struct vt_notes *notes);

/* ---- requests side by side -------------------------------------------- */

/* What one source, a capture or a model, tells of each request of a workload, in the
 * workload's order, and of the engine's steps if it tells of them. */
struct vt_seen {
    vt_ns arrival_ns, ttft_ns;
    vt_ns decode_ns; /* first token to last */
    size_t first_gap;
    uint32_t n_gaps;
    uint32_t prompt_tokens, cached_tokens, output_tokens, concurrency;
};

struct vt_seen_step {
    vt_ns out_ns;
    vt_ns took_ns; /* since the result before it, or since it was scheduled if later */
    uint32_t decodes, prefills, prefill_tokens;
    uint32_t running, waiting;
    double kv_usage;
};

struct vt_view {
    const char *label; /* borrowed */
    struct vt_seen *req;
    size_t n, cap;
    vt_ns *gap;
    size_t n_gaps, cap_gaps;
    struct vt_seen_step *step;
    size_t n_steps, cap_steps;
    vt_ns last_out_ns;
    bool only_samples; /* of which request a gap is, and when it came, is not known */
};

void vt_view_free(struct vt_view *v); /* frees contents, not v */
/* Every measured record. VT_EINPUT if some are not. */
int vt_view_records(struct vt_view *v, const struct vt_records *r,
                    struct vt_err *err) VT_MUST_CHECK;
/* Makes room for n requests, which vt_view_served() fills in any order. */
int vt_view_reserve(struct vt_view *v, size_t n, struct vt_err *err) VT_MUST_CHECK;
int vt_view_served(struct vt_view *v, size_t index, const struct vt_served *s,
                   struct vt_err *err) VT_MUST_CHECK;
int vt_view_step(struct vt_view *v, const struct vt_step_line *s,
                 struct vt_err *err) VT_MUST_CHECK;
/* The gaps that a step log's results made, one for each request that decoded. When
 * requests came it does not say, so there are no first tokens. */
int vt_view_steps(struct vt_view *v, const struct vt_steps *s,
                  struct vt_err *err) VT_MUST_CHECK;

/* Samples in milliseconds, ascending; the caller frees *out. */
enum vt_metric { VT_TTFT, VT_ITL, VT_DECODE, VT_N_METRICS };
int vt_view_samples(const struct vt_view *v, enum vt_metric m, double **out, size_t *n,
                    struct vt_err *err) VT_MUST_CHECK;

/* ---- by load ---------------------------------------------------------- */

/* One row for each concurrency at arrival, and one for all. */
int vt_load_table(struct vt_buf *b, const struct vt_view *v,
                  struct vt_err *err) VT_MUST_CHECK;
int vt_load_json(struct vt_buf *b, const struct vt_view *v, const char *source,
                 struct vt_err *err) VT_MUST_CHECK;

/* ---- captured against modelled ---------------------------------------- */

/* Between which a second run of the same load would come out, in milliseconds: what its
 * requests let expect when they are drawn again, and what two machines differ by. */
struct vt_again {
    double lo[3], hi[3]; /* of p50, p90, p99; hi 0: there are no samples */
};
int vt_again(const struct vt_view *v, enum vt_metric m, struct vt_again *out,
             struct vt_err *err) VT_MUST_CHECK;

enum { VT_CALIBRATION_ROWS = 9 }; /* eight ranges of concurrency, and all of them */

struct vt_calibration_row {
    const char *load;                /* "2-4" */
    size_t n;                        /* samples captured */
    double captured[3], modelled[3]; /* p50, p90, p99 in milliseconds */
    double error;                    /* largest of |a - b| / max(a, b) over the three */
};

struct vt_calibration {
    const char *kind; /* of what is modelled: "captured", or "simulated" */
    const char *captured, *modelled; /* labels, borrowed */
    double tolerance;                /* below 0: as far as a second run would be */
    struct vt_calibration_row row[VT_N_METRICS][VT_CALIBRATION_ROWS];
    struct vt_again again[VT_N_METRICS]; /* of all requests together */
    bool beyond[VT_N_METRICS][3]; /* they are farther than that in p50, p90, p99 */
    bool pass; /* all requests together are within the tolerance in every metric */
};

/* Both views tell of the same requests; rows go by the captured concurrency. */
int vt_calibrate(struct vt_calibration *c, const struct vt_view *captured,
                 const struct vt_view *modelled, double tolerance,
                 struct vt_err *err) VT_MUST_CHECK;
void vt_calibration_table(struct vt_buf *b, const struct vt_calibration *c);
void vt_calibration_json(struct vt_buf *b, const struct vt_calibration *c);
/* {"name":{"ttft_ms":[...],"itl_ms":[...]},...}, as vllm-vcr's plots read it. */
int vt_samples_json(struct vt_buf *b, const struct vt_view *const *v,
                    const char *const *names, size_t n,
                    struct vt_err *err) VT_MUST_CHECK;
/* The same read back, a view for each name. On failure nothing is left to free. */
struct vt_samples {
    struct vt_arena arena; /* owns labels */
    struct vt_view *view;
    size_t n;
};
int vt_samples_load(struct vt_samples *s, const char *path,
                    struct vt_err *err) VT_MUST_CHECK;
int vt_samples_parse(struct vt_samples *s, const char *text, size_t len,
                     struct vt_err *err) VT_MUST_CHECK;
void vt_samples_free(struct vt_samples *s); /* frees contents, not s */

/* ---- the band of long gaps -------------------------------------------- */

/* Decoding requests wait while a step computes others' prompts: gaps of more than two
 * usual ones, on two shelves. What was captured says where they begin and part. */
enum { VT_BAND_ALL, VT_BAND_LOWER, VT_BAND_UPPER, VT_BAND_PARTS };
enum { VT_BAND_JUDGED = 4 }; /* mass, p10, p50, p90 */

struct vt_band_look {
    double mass;          /* share of all gaps */
    double p10, p50, p90; /* of those in it, milliseconds */
};
struct vt_band_part {
    const char *name;
    struct vt_band_look captured, modelled;
    double lo[VT_BAND_JUDGED], hi[VT_BAND_JUDGED]; /* a second run's */
    bool beyond[VT_BAND_JUDGED];                   /* the model's is not between them */
    bool pass;                                     /* none is beyond */
};
struct vt_band {
    const char *kind, *captured, *modelled; /* as struct vt_calibration */
    double edge_ms, cut_ms; /* where it begins, where its shelves part */
    struct vt_band_part part[VT_BAND_PARTS];
    bool pass; /* every part does */
};
/* VT_EINPUT: hardly any captured gap is so long. */
int vt_band(struct vt_band *b, const struct vt_view *captured,
            const struct vt_view *modelled, struct vt_err *err) VT_MUST_CHECK;
void vt_band_table(struct vt_buf *b, const struct vt_band *x);
void vt_band_json(struct vt_buf *b, const struct vt_band *x);

/* ---- several runs of one load ----------------------------------------- */

struct vt_seed {
    const struct vt_view *view; /* borrowed; its label names it */
    /* The rest is filled. p50, p90, p99 in milliseconds: */
    double spread[VT_N_METRICS][3];
    struct vt_again again[VT_N_METRICS];
    uint32_t
        disputes; /* others, odd ones not counted, that it can be no second run of */
    bool odd;     /* most others speak against it */
    const char *metric, *part; /* where it is farthest from them: "ITL", "p90" */
    double mine, lo, hi;       /* what it says there, and between what they do */
};
struct vt_seeds {
    struct vt_seed *seed; /* borrowed */
    size_t n, n_odd;
    bool agree; /* those that are not odd */
};
/* Two can disagree; it takes three to say who is odd. */
int vt_seeds_judge(struct vt_seeds *x, struct vt_err *err) VT_MUST_CHECK;
void vt_seeds_table(struct vt_buf *b, const struct vt_seeds *x);
void vt_seeds_json(struct vt_buf *b, const struct vt_seeds *x);

/* ---- Chrome trace ----------------------------------------------------- */

/* Requests on lanes, counters, and steps if there are any, for ui.perfetto.dev. Steps
 * may be NULL. *left_out: records without arrival or times. */
int vt_perfetto_write(const struct vt_records *r, const struct vt_steps *steps,
                      const char *path, size_t *left_out,
                      struct vt_err *err) VT_MUST_CHECK;

/* ---- a run as it goes, for pages -------------------------------------- */

/* Collects what a page shows of a run while that proceeds: distributions, and what
 * happened when, in buckets that grow wider as the run grows longer. Memory does not
 * grow with the run, but for distinct latencies. */
struct vt_run; /* opaque */
/* instances 0: one engine, or not known. */
int vt_run_new(struct vt_run **out, uint32_t instances,
               struct vt_err *err) VT_MUST_CHECK;
void vt_run_free(struct vt_run *r); /* NULL is fine */
int vt_run_request(struct vt_run *r, const struct vt_served *s,
                   struct vt_err *err) VT_MUST_CHECK;
int vt_run_step(struct vt_run *r, const struct vt_step_line *s,
                struct vt_err *err) VT_MUST_CHECK;
/* What is known of a measured workload. */
int vt_run_measured(struct vt_run *r, const struct vt_workload *w,
                    struct vt_err *err) VT_MUST_CHECK;
/* One request whose tokens came at these times since its arrival. */
struct vt_run_tokens {
    vt_ns arrival_ns;
    const vt_ns *at; /* ascending */
    uint32_t n;
    uint32_t output_tokens; /* in n chunks */
};
int vt_run_tokens(struct vt_run *r, const struct vt_run_tokens *t,
                  struct vt_err *err) VT_MUST_CHECK;

struct vt_shown_run {  /* borrowed */
    const char *label; /* "simulated", "measured", a file's name */
    bool dash;         /* measured lines are dashed beside simulated ones */
    struct vt_run *run;
};
struct vt_latency_limit {
    size_t row; /* of vt_stat_rows */
    double ms;
    const char *label; /* "limit of p99: 500 ms" */
};
/* All append to a page. Distributions of TTFT, TPOT, ITL and E2E, runs over each other.
 */
int vt_page_latencies(struct vt_buf *b, const struct vt_shown_run *r, size_t n,
                      const struct vt_latency_limit *limit, size_t n_limits,
                      struct vt_err *err) VT_MUST_CHECK;
/* What happened when; of several runs what they all have. */
int vt_page_timelines(struct vt_buf *b, const struct vt_shown_run *r, size_t n,
                      struct vt_err *err) VT_MUST_CHECK;
/* The same charts of one run as a list of what page.js draws. */
int vt_run_charts_json(struct vt_jw *w, const char *key, struct vt_run *r,
                       struct vt_err *err) VT_MUST_CHECK;
/* A row for each metric: of one run its parts side by side, of several the runs, with
 * the difference from the first in percent. */
int vt_page_summaries(struct vt_buf *b, const char *const *label,
                      const struct vt_summary *const *s, size_t n,
                      struct vt_err *err) VT_MUST_CHECK;

/* ---- figures ---------------------------------------------------------- */

struct vt_figures {                    /* what they show; all borrowed */
    const struct vt_view *const *view; /* captured first, then models */
    size_t n_views;
    const char *title;   /* of the capture, below each figure's own */
    const char *scratch; /* directory for temporary files */
    /* Another load, for the figure that shows several beside each other; NULL: none. */
    const struct vt_figures *next;
    const char *load; /* what this one is called there; NULL: nothing */
};

extern const char *const vt_figure_names[]; /* end with NULL */
/* Draws one by gnuplot into the file, whose name ends in .pdf, .svg or .png. VT_ECHECK:
 * there is nothing to show (no steps, no gaps). VT_EIO: gnuplot is missing or failed.
 */
int vt_figure_draw(const struct vt_figures *f, const char *name, const char *path,
                   struct vt_err *err) VT_MUST_CHECK;
/* One page that needs nothing else: all figures and a table of summaries. */
int vt_figures_page(const struct vt_figures *f, const struct vt_summary *summary,
                    const char *path, struct vt_err *err) VT_MUST_CHECK;

/* Latency against load: what a sweep measured at each of its points. */
struct vt_load_point {
    double load;                        /* requests per second, or requests at a time */
    double ttft[2], tpot[2], itl[2];    /* p50 and p99 in milliseconds; 0: none */
    double req_per_s, output_tok_per_s; /* the latter may be NAN: not known */
    bool saturated;                     /* the load asked for was not borne */
};
enum vt_load_axis { VT_LOAD_BY_RATE, VT_LOAD_BY_SESSION_RATE, VT_LOAD_BY_CONCURRENCY };
struct vt_load_curve {                 /* all borrowed */
    const struct vt_load_point *point; /* by load, ascending */
    size_t n;
    enum vt_load_axis axis;
    double limit[3];     /* of TTFT, TPOT and ITL in milliseconds; 0: none */
    double answer;       /* a load to mark; 0: none */
    const char *title;   /* of the sweep, below the figure's own */
    const char *scratch; /* directory for temporary files */
};
/* As vt_figure_draw(). */
int vt_load_curve_draw(const struct vt_load_curve *c, const char *path,
                       struct vt_err *err) VT_MUST_CHECK;

/* The same as charts of a page. */
int vt_load_curve_page(struct vt_buf *b, const struct vt_load_curve *c,
                       struct vt_err *err) VT_MUST_CHECK;

/* Curves or points over two axes, of whatever they are. */
enum vt_series_style { VT_SERIES_LINE, VT_SERIES_POINTS, VT_SERIES_MARK };
struct vt_series {    /* all borrowed */
    const char *name; /* in the key; NULL: not there */
    const double *x, *y;
    size_t n;
    enum vt_series_style style;
    bool grey;
    const char *const *label; /* NULL, or what each of its points is called; all are
                               * finite, neighbours follow each other */
};
struct vt_chart { /* all borrowed */
    const struct vt_series *series;
    size_t n;
    double limit; /* a dashed line across at this y; 0: none */
    const char *heading, *title, *x_label, *y_label;
    const char *scratch; /* directory for temporary files */
};
/* As vt_figure_draw(). */
int vt_chart_draw(const struct vt_chart *c, const char *path,
                  struct vt_err *err) VT_MUST_CHECK;

/* The same in a page; note: what to conclude. */
int vt_chart_page(struct vt_buf *b, const struct vt_chart *c, const char *id,
                  const char *note, struct vt_err *err) VT_MUST_CHECK;

/* A picture of the caller's own: everything but terminal and output, data included, in
 * gnuplot's language. */
struct vt_script {    /* all borrowed */
    const char *name; /* letters, digits, _ and -: begins an SVG's identifiers */
    const char *text;
    double aspect; /* for the screen: height over width, fonts without serifs; or 0: */
    double width_in, height_in; /* for print, fonts with serifs; 300 pixels an inch */
    const char *scratch;        /* directory for temporary files */
};
/* Appends the picture; format: pdf, png or svg. VT_EIO: gnuplot is missing or failed.
 */
int vt_script_draw(const struct vt_script *s, const char *format, struct vt_buf *out,
                   struct vt_err *err) VT_MUST_CHECK;
void vt_gnuplot_string(struct vt_buf *b, const char *text); /* with its quotes */

#endif
