/* trial_load.c - workloads of trials, each read or generated once, and gone on with for
 * as long as a trial asks. */
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "tune/trial.h"

struct kept {
    const char *name;
    const struct vt_input *input;
    uint64_t seed;
    uint32_t requests; /* of one that goes on: what it goes on from */
    size_t go_on;      /* 0: it is as it is */
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

/* ---- recorded requests, again and again ---------------------------------------- */

static uint64_t fresh(uint64_t content, size_t round)
{
    return content != 0 ? vt_hash2(content, round) : 0;
}

static uint32_t count_sessions(const struct vt_workload *w)
{
    uint32_t n = 0;

    for (size_t i = 0; i < w->n; i++)
        if (w->req[i].session != VT_NO_TURN && w->req[i].session >= n)
            n = w->req[i].session + 1;
    return n;
}

static struct vt_work again(const struct vt_work *q, size_t round, vt_ns later,
                            size_t segments, uint32_t sessions)
{
    struct vt_work one = *q;

    one.arrival_ns += later;
    one.first_segment += (uint32_t)(round * segments);
    one.output_content = fresh(q->output_content, round);
    if (q->session != VT_NO_TURN)
        one.session += (uint32_t)round * sessions;
    one.next_turn = VT_NO_TURN; /* trials lay turns out themselves */
    return one;
}

/* So many requests, from as many rounds of all that there are. What came once is of new
 * content each time: nobody asks a whole hour again, and a prefix cache would know it
 * by heart. Times that were measured are of the first round only, and go. */
static int repeat_requests(struct vt_workload *w, size_t n, struct vt_err *err)
{
    size_t base = w->n, segments = w->n_segments, rounds = (n + base - 1) / base;
    uint32_t sessions = count_sessions(w);
    vt_ns span = w->req[base - 1].arrival_ns - w->req[0].arrival_ns;
    vt_ns round_ns = base > 1 ? span + span / (vt_ns)(base - 1) : VT_SEC;
    int rc;

    if (rounds * segments > UINT32_MAX || rounds * (size_t)sessions >= VT_NO_TURN)
        return vt_fail(err, VT_EINPUT, "%s: too long to be gone on with", w->source);
    free(w->measured);
    w->measured = NULL;
    if ((rc = vt_grow(&w->req, &w->cap, n, sizeof(*w->req), err)) ||
        (rc = vt_grow(&w->segment, &w->cap_segments, rounds * segments,
                      sizeof(*w->segment), err)))
        return rc;
    for (size_t i = segments; i < rounds * segments; i++) {
        w->segment[i] = w->segment[i % segments];
        w->segment[i].content = fresh(w->segment[i].content, i / segments);
    }
    w->n_segments = rounds * segments;
    for (w->n = base; w->n < n; w->n++)
        w->req[w->n] = again(&w->req[w->n % base], w->n / base,
                             (vt_ns)(w->n / base) * round_ns, segments, sessions);
    return VT_OK;
}

/* ---- loading -------------------------------------------------------------------- */

static bool is_asked(const struct kept *k, const struct vt_trial *t)
{
    bool long_enough = t->go_on > 0 ? k->go_on >= t->go_on && k->requests == t->requests
                                    : k->go_on == 0;

    return long_enough && k->seed == t->seed && k->input == t->input &&
           strcmp(k->name, t->workload) == 0;
}

/* Sessions that have begun are not all over when a trial is: there must be more than it
 * takes. And a little more asked the next time is no reason to load it again. */
static size_t with_some_to_spare(size_t n)
{
    size_t enough = 1024;

    while (enough < n + n / 2)
        enough *= 2;
    return enough;
}

static int read_workload(struct vt_workload *w, const struct vt_trial *t, size_t go_on,
                         struct vt_err *err)
{
    struct vt_input in = {0};
    int rc = VT_OK;

    if (t->input)
        in = *t->input;
    else
        rc = vt_input_find(&in, t->workload, err);
    in.seed = (int64_t)(t->seed & INT64_MAX); /* below 0 is the file's own */
    in.go_on = go_on;
    return rc == VT_OK ? vt_workload_read(w, &in, VT_WHOLE, err) : rc;
}

static int load_kept(struct kept *k, const struct vt_trial *t, struct vt_err *err)
{
    struct vt_workload *w = &k->workload;
    int rc = read_workload(w, t, k->go_on, err);

    if (rc != VT_OK)
        return rc;
    if (w->n == 0)
        return vt_fail(err, VT_EINPUT, "%s: no requests", t->workload);
    if (k->go_on == 0 || w->req[0].line == 0)
        return VT_OK;
    if (t->requests > w->n)
        return vt_fail(err, VT_EINPUT, "%s: has %zu requests, not %u", w->source, w->n,
                       t->requests);
    w->n = t->requests > 0 ? t->requests : w->n;
    return w->n < k->go_on ? repeat_requests(w, k->go_on, err) : VT_OK;
}

int trial_load(const struct vt_trial *t, const struct vt_workload **out,
               struct vt_err *err)
{
    struct vt_trials *all = t->kept;
    struct kept *k = all->first;
    int rc;

    while (k && !is_asked(k, t))
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
    k->requests = t->requests;
    k->go_on = t->go_on > 0 ? with_some_to_spare(t->go_on) : 0;
    k->name = vt_arena_copy(&all->arena, t->workload, strlen(t->workload));
    rc = k->name ? load_kept(k, t, err) : vt_nomem(err);
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
