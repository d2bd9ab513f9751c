/* trial_load.c - workloads of trials, each read or generated once. */
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "tune/trial.h"

struct kept {
    const char *name;
    const struct vt_input *input;
    uint64_t seed;
    struct vt_workload workload;
    struct kept *next;
};

struct vt_trials {
    struct vt_arena arena; /* of what is kept, whose addresses stay */
    struct kept *first;
};

int vt_trials_new(struct vt_trials **out, struct vt_err *err)
{
    *out = calloc(1, sizeof(**out));
    return *out ? VT_OK : vt_nomem(err);
}

void vt_trials_free(struct vt_trials *t)
{
    if (!t)
        return;
    for (struct kept *k = t->first; k; k = k->next)
        vt_workload_free(&k->workload);
    vt_arena_free(&t->arena);
    free(t);
}

static int read_workload(struct vt_workload *w, const struct vt_trial *t,
                         struct vt_err *err)
{
    struct vt_input in;

    if (!t->input)
        return vt_workload_open(w, t->workload, t->seed, VT_WHOLE, err);
    in = *t->input;
    in.seed = (int64_t)(t->seed & INT64_MAX);
    return vt_workload_read(w, &in, VT_WHOLE, err);
}

int trial_load(const struct vt_trial *t, const struct vt_workload **out,
               struct vt_err *err)
{
    struct vt_trials *all = t->kept;
    struct kept *k = all->first;
    int rc;

    while (k && (k->seed != t->seed || k->input != t->input ||
                 strcmp(k->name, t->workload) != 0))
        k = k->next;
    if (k) {
        *out = &k->workload;
        return VT_OK;
    }
    k = vt_arena_alloc(&all->arena, sizeof(*k));
    if (!k)
        return vt_nomem(err);
    k->seed = t->seed;
    k->input = t->input;
    k->name = vt_arena_copy(&all->arena, t->workload, strlen(t->workload));
    rc = k->name ? read_workload(&k->workload, t, err) : vt_nomem(err);
    if (rc == VT_OK && k->workload.n == 0)
        rc = vt_fail(err, VT_EINPUT, "%s: no requests", t->workload);
    if (rc != VT_OK) {
        vt_workload_free(&k->workload);
        return rc;
    }
    k->next = all->first;
    all->first = k;
    *out = &k->workload;
    return VT_OK;
}

int trial_preload(const struct vt_trial *t, uint32_t seeds, struct vt_err *err)
{
    struct vt_trial one = *t;
    int rc = VT_OK;

    one.rate = 1;
    for (uint32_t i = 0; i < seeds && rc == VT_OK; i++) {
        struct vt_workload w;

        one.seed = t->seed + i;
        rc = vt_trial_workload(&one, &w, err);
        vt_trial_workload_free(&w);
    }
    return rc;
}
