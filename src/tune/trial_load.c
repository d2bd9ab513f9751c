/* trial_load.c - workloads of trials, each read or generated once. */
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "tune/trial.h"

struct kept {
    char *name; /* heap */
    uint64_t seed;
    struct vt_workload *workload; /* heap: its address stays when the list grows */
};

struct vt_trials {
    struct kept *kept;
    size_t n, cap;
};

int vt_trials_new(struct vt_trials **out, struct vt_err *err)
{
    *out = calloc(1, sizeof(**out));
    return *out ? VT_OK : vt_nomem(err);
}

static void drop(struct kept *k)
{
    if (k->workload)
        vt_workload_free(k->workload);
    free(k->workload);
    free(k->name);
}

void vt_trials_free(struct vt_trials *t)
{
    for (size_t i = 0; t && i < t->n; i++)
        drop(&t->kept[i]);
    if (t)
        free(t->kept);
    free(t);
}

/* ---- and its keeping ------------------------------------------------------ */

static int load_kept(struct kept *k, const struct vt_trial *t, struct vt_err *err)
{
    int rc;

    *k = (struct kept){
        .name = strdup(t->workload),
        .seed = t->seed,
        .workload = calloc(1, sizeof(*k->workload)),
    };
    rc = k->name && k->workload ? VT_OK : vt_nomem(err);
    if (rc == VT_OK)
        rc = vt_workload_open(k->workload, t->workload, t->seed, err);
    if (rc == VT_OK && k->workload->n == 0)
        rc = vt_fail(err, VT_EINPUT, "%s: no requests", t->workload);
    return rc;
}

int trial_load(const struct vt_trial *t, const struct vt_workload **out,
               struct vt_err *err)
{
    struct vt_trials *all = t->kept;
    struct kept *fresh;
    int rc;

    for (size_t i = 0; i < all->n; i++) {
        *out = all->kept[i].workload;
        if (all->kept[i].seed == t->seed && strcmp(all->kept[i].name, t->workload) == 0)
            return VT_OK;
    }
    rc = vt_grow(&all->kept, &all->cap, all->n + 1, sizeof(*all->kept), err);
    if (rc != VT_OK)
        return rc;
    fresh = &all->kept[all->n];
    rc = load_kept(fresh, t, err);
    if (rc != VT_OK) {
        drop(fresh);
        return rc;
    }
    *out = fresh->workload;
    all->n++;
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
