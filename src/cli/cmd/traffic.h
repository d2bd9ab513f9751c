/* traffic.h - the traffic that a command line describes, in the words of `vllm bench`:
 * what requests hold, how many come and when; private to cmd.
 *
 * bench sends it, simulate, capacity and tune make a workload of it. One name of a flag
 * means one thing, so each stands in one table. */
#ifndef VT_CLI_TRAFFIC_H
#define VT_CLI_TRAFFIC_H

#include "cli/cli.h"
#include "load/load.h"

/* ---- what requests hold ------------------------------------------------- */

struct dataset_options {
    struct vt_load_data data;
    struct vt_load_multiturn turns;
    uint32_t input_len; /* 0: as the dataset says */
    int64_t output_len, sharegpt_output_len, custom_output_len;
    const char *tokenizer;
};
extern const struct opt_row dataset_rows[];
/* What the flags say of the dataset of that name; requests, seed and tokenizer are the
 * caller's to fill in. */
struct vt_load_data dataset_data(const struct opt_args *a,
                                 const struct dataset_options *o, const char *name);
opt_reader traffic_read_positive; /* a double, or inf */

/* ---- for simulations ------------------------------------------------------ */

struct traffic_options {
    const char *workload, *trace;
    const char *csv; /* a list of requests, whatever its name; simulate's old flag */
    int dataset;     /* of vt_load_data_names; -1: not given */
    uint32_t num_prompts;     /* 0, as all below: the workload's */
    double rate, burstiness;  /* rate: INFINITY is all at once */
    uint32_t max_concurrency; /* 0: no limit */
    double bytes_per_token;
    struct dataset_options what;
};
extern const struct opt_row traffic_rows[];
#define TRAFFIC_BLOCKS(type, member) \
    OPT_BLOCK(traffic_rows, type, member), OPT_BLOCK(dataset_rows, type, member.what)

enum traffic_pace {
    TRAFFIC_PACED,    /* arrivals are the traffic's */
    TRAFFIC_SEARCHED, /* the command tries rates of its own */
};

struct traffic {
    struct vt_input input; /* what to read; its seed is the caller's */
    /* Where the command tries rates of its own: so many of a trace, 0: all; and so many
     * in flight, 0: no limit. */
    uint32_t first, concurrency;
    struct vt_buf text; /* of a spec that flags made */
    struct cli_report report;
};
/* End *t with traffic_close() whatever happens; it must not move while it is read. */
int traffic_open(struct traffic *t, const struct opt_args *a,
                 const struct traffic_options *o, enum traffic_pace pace,
                 struct vt_err *err) VT_MUST_CHECK;
void traffic_close(struct traffic *t);

#endif
