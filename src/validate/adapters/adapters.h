/* adapters.h - how simulators are asked; for the harness.
 *
 * To add one that is built in: write its can_run() and run(), add a row to the table in
 * adapters.c, describe it in docs/validate.md and add a case to
 * tests/validate/test_adapters.c. */
#ifndef VT_VALIDATE_ADAPTERS_H
#define VT_VALIDATE_ADAPTERS_H

#include "validate/gather.h"
#include "validate/validate.h"

struct adapter;
struct adapter_job { /* all borrowed */
    const struct adapter *a;
    const struct vt_experiment *e;
    const struct vt_experiments *all; /* the others may be learned from */
    const struct vt_harness_config *c;
};

/* VT_OK, or err says why it cannot predict this experiment. */
typedef int adapter_check(const struct adapter_job *j, struct vt_err *err);
/* Fills stage and summary of *g, which is open. */
typedef int adapter_run(const struct adapter_job *j, struct gather *g,
                        struct vt_err *err);
/* The same for a program of others, in a new directory for its files. */
typedef int adapter_run_in(const struct adapter_job *j, const char *place,
                           struct gather *g, struct vt_err *err);

/* When the requests of a profile come. */
enum adapter_arrivals {
    ARRIVALS_OPEN,  /* at exponential gaps, whatever becomes of them */
    ARRIVALS_BLIS,  /* as BLIS sends them: chats in a closed loop */
    ARRIVALS_EARLY, /* as BLIS of March 2026 did */
};

struct adapter {
    const char *name, *help; /* help: one line */
    const char *kind;        /* of its latency model, or the command of a generic one */
    enum adapter_arrivals arrivals;
    bool named; /* runs only where its name was given */
    adapter_check *can_run;
    adapter_run *run;
    adapter_run_in *run_in; /* of others' programs: run() calls it */
};

/* The adapters that are wanted, in the order of the table; generic ones come last.
 * Array and names are on the arena. */
int adapters_choose(struct vt_arena *arena, const struct vt_harness_config *c,
                    const struct adapter **out, size_t *n,
                    struct vt_err *err) VT_MUST_CHECK;

#endif
