/* figures.h - error records as figures and tables; private to validate.
 *
 * A figure selects summary rows, groups them into bars and hands over a gnuplot script.
 * Everything that decides how a bar is drawn is computed here, in inches, so that the
 * pictures are the same in every format. */
#ifndef VT_VALIDATE_FIGURES_H
#define VT_VALIDATE_FIGURES_H

#include "base/base.h"
#include "report/report.h"
#include "validate/validate.h"
#include "validate/values.h"

/* ---- records ------------------------------------------------------------ */

enum { FIG_SUMMARY = -1, FIG_MAX_SIMS = 24, FIG_MAX_PLACES = 24, FIG_LABEL = 24 };
enum { FIG_E2E_MEAN = 0, FIG_TTFT_MEAN = 3, FIG_ITL_MEAN = 6 };

struct fig_where { /* which simulator on which experiment; 0, NULL: not stated */
    const char *simulator, *folder, *model, *workload;
    const char *hardware, *precision;
    int64_t exp_id; /* negative: not stated */
    uint32_t dp, tp, mbt;
    double gpu_mem;
    bool cpu_offload;
    const char *tag; /* in what the configuration differs: "default", "tp=2", ... */
};

struct fig_error { /* one row of error_records.csv */
    struct fig_where at;
    int64_t stage; /* FIG_SUMMARY: the whole run */
    int metric;    /* index into vt_error_metric_names */
    double predicted, actual, mape, mpe, absolute; /* percent and ms; may be inf */
};

struct fig_runtime { /* one row of runtime.csv */
    struct fig_where at;
    double seconds;
};

struct fig_truth { /* what one experiment took in reality */
    const char *folder;
    double seconds, requests;
};

/* Strings live in the arena. Begin with a zeroed one; end it whatever happened. */
struct fig_set {
    struct vt_arena arena;
    struct fig_error *error;
    size_t n_errors, cap_errors;
    struct fig_runtime *runtime;
    size_t n_runtimes, cap_runtimes;
    struct fig_where *metadata;
    size_t n_metadata, cap_metadata;
    struct fig_truth *truth; /* of those experiments whose directory is there */
    size_t n_truths, cap_truths;
    bool has_mbt; /* error_records.csv or the metadata have the column */
    /* What counts as usual; the paper's, or the commonest if that does not occur. */
    const char *hardware, *workload;
    uint32_t mbt;
    double gpu_mem;
    bool cpu_offload;
    bool paper; /* figures show only models and workloads that the paper has */
};
void fig_set_free(struct fig_set *s);

/* Each appends the rows of a CSV. Messages start with its name and line. */
typedef int fig_reader(struct fig_set *s, struct vt_lines *l, struct vt_err *err);
fig_reader fig_read_errors, fig_read_runtimes, fig_read_metadata;

/* Reads the results directory and applies the rules of loading: rows of
 * LLMServingSim's own files replace others of it, metadata fill what the rows leave
 * open, every row gets its tag. */
int fig_load(struct fig_set *s, const struct vt_validate_figures *job,
             struct vt_err *err) VT_MUST_CHECK;
/* The same for rows that are there already. */
int fig_prepare(struct fig_set *s, bool paper, struct vt_err *err) VT_MUST_CHECK;

/* LLMServingSim simulates so many requests of an experiment. */
enum { FIG_SAMPLED_REQUESTS = 300 };
#define FIG_SAMPLED "llmservingsim"
const struct fig_truth *fig_truth_of(const struct fig_set *s, const char *folder);

/* ---- names and looks ---------------------------------------------------- */

enum fig_hatch {
    FIG_PLAIN = 0,
    FIG_RISING = 1,  /* // */
    FIG_FALLING = 2, /* \\ */
    FIG_UPRIGHT = 4, /* || */
    FIG_LEVEL = 8,   /* -- */
    FIG_DOTTED = 16, /* .. */
};

struct fig_simulator {
    const char *name;    /* in the CSVs */
    const char *display; /* in figures */
    const char *colour;
    unsigned hatch; /* of enum fig_hatch, several at once */
    int marker;     /* gnuplot's point type */
    bool noted;     /* a bar too low to see gets its number */
    bool listed;    /* the paper leaves it out */
};

/* Those that occur, in the order of figures; foreign ones last by name. At most
 * FIG_MAX_SIMS. */
struct fig_simulators {
    struct fig_simulator of[FIG_MAX_SIMS];
    size_t n;
};
int fig_simulators(struct fig_simulators *out, const struct fig_set *s,
                   struct vt_err *err) VT_MUST_CHECK;

struct fig_model {    /* one of those that the paper knows */
    const char *part; /* of the model's name, whatever the case */
    const char *label;
    bool moe;
    bool in_workloads; /* of figure 3 */
};
const struct fig_model *fig_model_find(const char *model); /* NULL: another */
size_t fig_model_rank(const char *model);                  /* others: VT_COUNT */
/* "Ll-3.1-8B"; of others what follows the last slash, its middle cut to fit. */
void fig_model_label(char *out, size_t size, const char *model);
/* Where models share a label each gets more of its name, at last a number. */
void fig_labels_apart(char (*label)[FIG_LABEL], const char *const *model, size_t n);
bool fig_model_is_moe(const char *model);
uint32_t fig_default_tp(const char *model); /* 0: not known */
/* general-lite is general. Returns a static string or its argument. */
const char *fig_workload_family(const char *workload);
const char *fig_hardware_label(const char *hardware); /* A100-80GB is A100 */

/* ---- bars --------------------------------------------------------------- */

enum { FIG_MAX_PANELS = 3, FIG_MAX_TEAMS = 5 };

struct fig_bars { /* grouped bars in panels side by side */
    size_t n_panels, n_places, n_teams;
    const struct fig_simulators *sims;
    int metric[FIG_MAX_PANELS];
    char label[FIG_MAX_PLACES][FIG_LABEL]; /* under a group of bars */
    double at[FIG_MAX_PLACES];             /* its middle */
    struct { /* places that belong together, named below them */
        const char *title;
        size_t first, n;
    } team[FIG_MAX_TEAMS];
    /* NAN: no bar */
    double value[FIG_MAX_PANELS][FIG_MAX_PLACES][FIG_MAX_SIMS];
    char left_out[160]; /* models that are not shown, as a sentence ends; "": none */
    bool noted;         /* bars below 2 % of some simulators get their number */
    char title[64];     /* above the panels; "": as the metric is called */
    double height_in;   /* as the paper has it */
};
void fig_bars_clear(struct fig_bars *b);
size_t fig_bars_count(const struct fig_bars *b, size_t panel);
bool fig_bars_has(const struct fig_bars *b,
                  const struct fig_where *w); /* its simulator */

struct fig_axis {
    enum { FIG_LINEAR, FIG_LOG, FIG_SYMLOG } kind;
    double lo, hi;
    bool crowded; /* its lower end stands on another axis */
};
double fig_axis_map(const struct fig_axis *a, double v); /* to what gnuplot draws */

struct fig_break { /* how a panel's axis goes */
    bool broken;
    struct fig_axis bottom, top; /* top only if broken */
};
struct fig_break fig_break_of(const struct fig_bars *b, size_t panel);

/* ---- pictures ----------------------------------------------------------- */

struct fig_picture { /* a figure's script; the caller frees it */
    struct vt_buf script;
    double width_in, height_in;
    char note[200]; /* what is not in it; "": nothing */
};

/* Which values become the bars; b->sims says of whom. VT_ECHECK: there are none. */
typedef int fig_bars_maker(struct fig_bars *b, const struct fig_set *s,
                           struct vt_err *err);
fig_bars_maker fig1_bars, fig2_bars, fig3_bars, fig6_bars;
/* *model: the one that was chosen, which belongs to the set. */
int fig4_bars(struct fig_bars *b, const struct fig_set *s, bool moe, const char **model,
              struct vt_err *err) VT_MUST_CHECK;

struct fig_point { /* a simulator in figure 5: quartiles */
    const struct fig_simulator *sim;
    double seconds[3], mape[3];
};
/* *n of at most FIG_MAX_SIMS, in the order of the simulators. */
int fig5_points(struct fig_point *p, size_t *n, const struct fig_simulators *sims,
                const struct fig_set *s, struct vt_err *err) VT_MUST_CHECK;

/* The scripts. */
int fig_bars_script(struct fig_picture *p, const struct fig_bars *b,
                    struct vt_err *err) VT_MUST_CHECK;
int fig_points_script(struct fig_picture *p, const struct fig_point *point, size_t n,
                      struct vt_err *err) VT_MUST_CHECK;

/* ---- parts of a script -------------------------------------------------- */

struct fig_box { /* inches from the picture's lower left corner */
    double left, bottom, right, top;
};
/* Calls back with the lines (or, where both ends are the same, dots) that hatch a box.
 */
typedef void fig_stroke(void *user, double x0, double y0, double x1, double y1);
void fig_hatch_box(unsigned hatch, const struct fig_box *box, fig_stroke *stroke,
                   void *user);
/* Lines of a legend of so many entries in a picture of that width. */
size_t fig_legend_rows(const struct fig_simulators *sims, double width_in);
/* Draws it upwards from the lower edge. `boxes` or markers. */
void fig_legend(struct fig_picture *p, const struct fig_simulators *sims, bool boxes);
void fig_axis_tics(struct vt_buf *b, char which, const struct fig_axis *a, int most);

/* ---- tables ------------------------------------------------------------- */

int fig_runtime_table(struct vt_buf *b, const struct fig_set *s,
                      const struct fig_simulators *sims,
                      struct vt_err *err) VT_MUST_CHECK;
/* What an experiment took in reality, median; 1200 s if nothing tells. For a simulator
 * that takes samples, of its sample only. */
int fig_real_seconds(double *out, const struct fig_set *s, const char *simulator,
                     struct vt_err *err) VT_MUST_CHECK;
/* Of one simulator, quartiles. scaled: as if samples were whole experiments. False:
 * it has no runtimes. */
int fig_runtime_quartiles(double out[3], bool *any, const struct fig_set *s,
                          const char *simulator, bool scaled,
                          struct vt_err *err) VT_MUST_CHECK;

/* ---- the page ----------------------------------------------------------- */

struct fig_drawn {            /* one figure as it turned out */
    const char *name, *title; /* name: of its files */
    enum vt_drawn result;
    char why[256];     /* not made, or of what was made: what is missing in it */
    struct vt_buf svg; /* empty unless drawn */
};
int fig_page(struct vt_buf *b, const struct fig_set *s,
             const struct fig_simulators *sims, const struct fig_drawn *drawn, size_t n,
             struct vt_err *err) VT_MUST_CHECK;

#endif
