/* inspect.h - the parts of `vtwin inspect`; private to cli. */
#ifndef VT_CLI_INSPECT_H
#define VT_CLI_INSPECT_H

#include "cli/cmd/engine.h"
#include "model/model.h"
#include "report/report.h"
#include "sim/sim.h"

struct inspect_options {
    const char *out, *dump_samples, *steps, *format, *tokenizer, *fits;
    bool json, all, band;
    int kind, from, to, figure;                   /* -1: not given */
    struct opt_list profiles, models, old_models; /* both of models hold */
    double tolerance;
    int64_t seed;
    struct engine_options engine; /* with what was captured */
    struct cli_files files;
};

/* The capture that is asked for, and its steps if they are: of a report of simulate,
 * and of spans, both are there. Good until *r goes. */
const char *inspect_trace(const struct opt_args *a, struct cli_report *r);
const char *inspect_steps(const struct inspect_options *o, const struct cli_report *r,
                          const char *trace);

/* ---- running models over a capture (cmd_inspect_run.c) ---------------- */

/* A capture and what models make of it. */
struct inspect_case {
    const char *path;
    char label[96]; /* of what was captured, where it has a name of its own */
    struct vt_records records;
    struct vt_view captured;
    struct inspect_model *model;
    size_t n, cap;
    const struct opt_args *args; /* of inspect; borrowed */
};

struct inspect_model {
    char label[96];
    struct vt_view view;
    struct vt_summary summary, measured; /* measured: the capture's */
};

/* End *c with inspect_case_close() whatever happens. */
int inspect_case_open(struct inspect_case *c, const char *path,
                      const struct opt_args *a, struct vt_err *err) VT_MUST_CHECK;
void inspect_case_close(struct inspect_case *c);

/* Each simulates the capture's requests and appends the outcome. This one does so with
 * every --profile and --model; without either with the profile made for the capture's
 * model, or the default one. */
int inspect_add_given(struct inspect_case *c, const struct inspect_options *o,
                      struct vt_err *err) VT_MUST_CHECK;
/* With models that are fitted to the capture. */
int inspect_add_trace_fit(struct inspect_case *c, struct vt_err *err) VT_MUST_CHECK;
int inspect_add_knob_fit(struct inspect_case *c, struct vt_err *err) VT_MUST_CHECK;

/* ---- several files (cmd_inspect_sources.c) ---------------------------- */

/* What plot shows of one load: a capture, and others that tell of the same traffic:
 * another clock's trace, a simulation, a step log, samples. */
struct inspect_load {
    char name[64]; /* "": it is the only one */
    struct cli_report report;
    struct inspect_case c;
    struct inspect_source {
        char label[96];
        struct vt_view view;
    } *source;
    size_t n_sources, cap_sources;
};
struct inspect_loads {
    struct inspect_load *load;
    size_t n;
};
/* From operands [LOAD:][NAME=]FILE. End *l with inspect_loads_close() whatever happens.
 */
int inspect_loads_open(struct inspect_loads *l, const struct opt_args *a,
                       struct vt_err *err) VT_MUST_CHECK;
void inspect_loads_close(struct inspect_loads *l);

/* ---- spans (cmd_inspect_spans.c) -------------------------------------- */

/* Whether the file holds OpenTelemetry spans. */
bool inspect_is_spans(const char *path);
bool inspect_has_steps(const char *path); /* and steps among them */
/* Whether it holds KV-cache events, and nothing of who caused them. */
bool inspect_tells_kv_alone(const char *path);
/* What they tell and lack: spans, requests, steps, malformed ones. */
int inspect_spans_check(const char *path, bool all, struct vt_buf *b,
                        struct vt_err *err);
/* KV-cache events by step, if there are any. */
int inspect_spans_kv(const char *path, struct vt_buf *b, struct vt_err *err);

/* ---- subcommands ------------------------------------------------------ */

opt_run inspect_calibrate, inspect_plot, inspect_seeds, inspect_validate;

#endif
