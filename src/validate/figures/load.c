/* load.c - a results directory: its files, and what follows from all rows
 * together. */
#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "validate/figures/figures.h"

/* ---- files -------------------------------------------------------------- */

static int read_csv(struct fig_set *s, const char *path, fig_reader *read,
                    struct vt_err *err)
{
    struct vt_lines *l = NULL;
    int rc = vt_lines_open(&l, path, err);

    if (rc == VT_OK)
        rc = read(s, l, err);
    vt_lines_close(l);
    return rc;
}

static int read_in(struct fig_set *s, const char *dir, const char *name,
                   fig_reader *read, struct vt_err *err)
{
    const char *path = path_in(&s->arena, dir, name);

    return path ? read_csv(s, path, read, err) : vt_nomem(err);
}

static bool is_there(struct fig_set *s, const char *dir, const char *name)
{
    const char *path = path_in(&s->arena, dir, name);

    return path && access(path, R_OK) == 0;
}

/* Its errors against the same first requests, which its own files have. */
static int replace_sampled(struct fig_set *s, const char *dir, struct vt_err *err)
{
    static const char errors[] = "llmservingsim_error_records_matched.csv";
    static const char runtimes[] = "llmservingsim_runtime.csv";
    size_t n_errors = 0, n_runtimes = 0;
    int rc;

    if (!is_there(s, dir, errors) || !is_there(s, dir, runtimes))
        return VT_OK;
    for (size_t i = 0; i < s->n_errors; i++)
        if (strcmp(s->error[i].at.simulator, FIG_SAMPLED) != 0)
            s->error[n_errors++] = s->error[i];
    for (size_t i = 0; i < s->n_runtimes; i++)
        if (strcmp(s->runtime[i].at.simulator, FIG_SAMPLED) != 0)
            s->runtime[n_runtimes++] = s->runtime[i];
    s->n_errors = n_errors;
    s->n_runtimes = n_runtimes;
    rc = read_in(s, dir, errors, fig_read_errors, err);
    return rc == VT_OK ? read_in(s, dir, runtimes, fig_read_runtimes, err) : rc;
}

/* ---- what experiments took ---------------------------------------------- */

/* False: no such file, or not one that tells. Its absence is no error: results travel
 * without their ground truth. */
static bool read_truth(const char *folder, const char *name, struct fig_truth *t)
{
    struct vt_arena arena = {0};
    const char *path = path_in(&arena, folder, name);
    const struct vt_node *root = NULL, *good;
    struct vt_err ignored;
    double rate = 0;
    bool ok;

    ok = path && vt_tree_load(&arena, path, &root, &ignored) == VT_OK;
    good = ok ? vt_get(root, "successes") : NULL;
    ok = good &&
         vt_get_f64(good, "count", VT_REQUIRED, 1, 1e12, &t->requests, &ignored) ==
             VT_OK &&
         vt_get_f64(vt_get(good, "throughput"), "requests_per_sec", VT_REQUIRED, 1e-9,
                    1e12, &rate, &ignored) == VT_OK;
    if (ok)
        t->seconds = t->requests / rate;
    vt_arena_free(&arena);
    return ok;
}

const struct fig_truth *fig_truth_of(const struct fig_set *s, const char *folder)
{
    for (size_t i = 0; i < s->n_truths; i++)
        if (strcmp(s->truth[i].folder, folder) == 0)
            return &s->truth[i];
    return NULL;
}

static bool find_truth(const char *folder, struct fig_truth *t)
{
    return read_truth(folder, "results/summary_lifecycle_metrics.json", t) ||
           read_truth(folder, "inference-perf-data/summary_lifecycle_metrics.json", t);
}

/* Records name a directory as it was called where they were made: what is there, or the
 * one of that name below `data_dir`. */
static int load_truths(struct fig_set *s, const char *data_dir, struct vt_err *err)
{
    const char *last = NULL;
    int rc = VT_OK;

    for (size_t i = 0; i < s->n_errors && rc == VT_OK; i++) {
        struct fig_truth t = {.folder = s->error[i].at.folder};
        const char *moved;

        if (last == t.folder || fig_truth_of(s, t.folder))
            continue;
        last = t.folder;
        moved = strrchr(t.folder, '/');
        moved = moved ? moved + 1 : t.folder;
        moved = data_dir ? path_in(&s->arena, data_dir, moved) : NULL;
        if (data_dir && !moved)
            return vt_nomem(err);
        if (!(moved && find_truth(moved, &t)) && !find_truth(t.folder, &t))
            continue;
        rc = vt_grow(&s->truth, &s->cap_truths, s->n_truths + 1, sizeof(t), err);
        if (rc == VT_OK)
            s->truth[s->n_truths++] = t;
    }
    return rc;
}

/* ---- metadata ----------------------------------------------------------- */

static void join_metadata(struct fig_where *w, const struct fig_set *s)
{
    for (size_t i = 0; i < s->n_metadata; i++) {
        const struct fig_where *m = &s->metadata[i];

        if (strcmp(m->folder, w->folder) != 0)
            continue;
        w->hardware = w->hardware ? w->hardware : m->hardware;
        w->precision = w->precision ? w->precision : m->precision;
        w->exp_id = w->exp_id >= 0 ? w->exp_id : m->exp_id;
        w->dp = w->dp ? w->dp : m->dp;
        w->tp = w->tp ? w->tp : m->tp;
        w->mbt = w->mbt ? w->mbt : m->mbt;
        w->gpu_mem = w->gpu_mem > 0 ? w->gpu_mem : m->gpu_mem;
        w->cpu_offload = w->cpu_offload || m->cpu_offload;
        return;
    }
}

/* ---- what is usual ------------------------------------------------------ */

enum { MAX_KINDS = 64 }; /* of hardware, say: those that come later do not count */

/* Which value occurs in most rows; the first of equals. */
static size_t commonest_row(const struct fig_set *s,
                            bool (*same)(const struct fig_where *,
                                         const struct fig_where *))
{
    size_t row[MAX_KINDS], count[MAX_KINDS] = {0}, n = 0, best = 0;

    for (size_t i = 0; i < s->n_errors; i++) {
        size_t k = 0;

        while (k < n && !same(&s->error[row[k]].at, &s->error[i].at))
            k++;
        if (k == MAX_KINDS)
            continue;
        row[k] = k == n ? i : row[k];
        n += k == n;
        count[k]++;
    }
    for (size_t k = 1; k < n; k++)
        best = count[k] > count[best] ? k : best;
    return n > 0 ? row[best] : 0;
}

static bool same_hardware(const struct fig_where *a, const struct fig_where *b)
{
    return a->hardware && b->hardware ? strcmp(a->hardware, b->hardware) == 0
                                      : a->hardware == b->hardware;
}

static bool same_workload(const struct fig_where *a, const struct fig_where *b)
{
    return strcmp(fig_workload_family(a->workload), fig_workload_family(b->workload)) ==
           0;
}

static bool same_mbt(const struct fig_where *a, const struct fig_where *b)
{
    return a->mbt == b->mbt;
}

static bool same_offload(const struct fig_where *a, const struct fig_where *b)
{
    return a->cpu_offload == b->cpu_offload;
}

static bool same_gpu_mem(const struct fig_where *a, const struct fig_where *b)
{
    return fabs(a->gpu_mem - b->gpu_mem) < 1e-9;
}

/* The paper's subject is an H100 and general questions. Results that have neither are
 * shown by what they have most of. */
static const struct fig_where *usual_row(const struct fig_set *s, bool paper,
                                         bool (*same)(const struct fig_where *,
                                                      const struct fig_where *))
{
    static const struct fig_where of_paper = {
        .hardware = "H100", .workload = "general", .mbt = 2048, .gpu_mem = 0.9};

    for (size_t i = 0; i < s->n_errors && !paper; i++)
        if (same(&s->error[i].at, &of_paper))
            return &of_paper;
    return paper || s->n_errors == 0 ? &of_paper : &s->error[commonest_row(s, same)].at;
}

/* ---- tags --------------------------------------------------------------- */

/* Models that the paper does not know have the tp of their first row. */
static uint32_t usual_tp(const struct fig_set *s, const struct fig_where *w, bool paper)
{
    uint32_t tp = fig_default_tp(w->model);

    if (paper || fig_model_find(w->model))
        return tp;
    for (size_t i = 0; i < s->n_errors; i++)
        if (strcmp(s->error[i].at.model, w->model) == 0)
            return s->error[i].at.tp;
    return tp;
}

static void tag_text(char *out, size_t size, const struct fig_set *s,
                     const struct fig_where *w, bool paper)
{
    uint32_t tp = usual_tp(s, w, paper);

    if (!s->has_mbt)
        snprintf(out, size, "default");
    else if (w->mbt != 0 && w->mbt != s->mbt)
        snprintf(out, size, "mbt=%u", w->mbt);
    else if (w->cpu_offload != s->cpu_offload)
        snprintf(out, size, w->cpu_offload ? "cpu-offload" : "no-offload");
    else if (w->gpu_mem > 0 && fabs(w->gpu_mem - s->gpu_mem) > 1e-9)
        snprintf(out, size, "gpu-%g", w->gpu_mem);
    else if (w->dp > 1 && fig_model_is_moe(w->model))
        snprintf(out, size, "ep=%llu",
                 (unsigned long long)w->dp * (w->tp > 0 ? w->tp : 1));
    else if (w->dp > 1)
        snprintf(out, size, "dp=%u", w->dp);
    else if (w->tp != 0 && tp != 0 && w->tp != tp)
        snprintf(out, size, "tp=%u", w->tp);
    else
        snprintf(out, size, "default");
}

/* ---- all together ------------------------------------------------------- */

int fig_prepare(struct fig_set *s, bool paper, struct vt_err *err)
{
    char tag[64];

    for (size_t i = 0; i < s->n_errors; i++)
        join_metadata(&s->error[i].at, s);
    for (size_t i = 0; i < s->n_runtimes; i++)
        join_metadata(&s->runtime[i].at, s);
    s->hardware = usual_row(s, paper, same_hardware)->hardware;
    s->workload = fig_workload_family(usual_row(s, paper, same_workload)->workload);
    s->mbt = usual_row(s, paper, same_mbt)->mbt;
    s->gpu_mem = usual_row(s, paper, same_gpu_mem)->gpu_mem;
    s->cpu_offload = usual_row(s, paper, same_offload)->cpu_offload;
    s->paper = paper;
    for (size_t i = 0; i < s->n_errors; i++) {
        struct fig_where *w = &s->error[i].at;

        tag_text(tag, sizeof(tag), s, w, paper);
        if (i > 0 && strcmp(s->error[i - 1].at.tag, tag) == 0)
            w->tag = s->error[i - 1].at.tag;
        else
            w->tag = vt_arena_copy(&s->arena, tag, strlen(tag));
        if (!w->tag)
            return vt_nomem(err);
    }
    return VT_OK;
}

int fig_load(struct fig_set *s, const struct vt_validate_figures *job,
             struct vt_err *err)
{
    const char *dir = job->results_dir;
    int rc;

    if ((rc = read_in(s, dir, "error_records.csv", fig_read_errors, err)) ||
        (rc = read_in(s, dir, "runtime.csv", fig_read_runtimes, err)) ||
        (rc = replace_sampled(s, dir, err)) ||
        (job->metadata && (rc = read_csv(s, job->metadata, fig_read_metadata, err))) ||
        (rc = load_truths(s, job->data_dir, err)))
        return rc;
    return fig_prepare(s, job->paper, err);
}
