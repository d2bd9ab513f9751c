/* truth.c - one experiment's directory: which files, and how they fit together. */
#include "validate/truth/truth.h"
#include "validate/gather.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

void truth_tell(const struct vt_truth_options *o, const char *folder, const char *fmt,
                ...)
{
    struct vt_buf b = {.max = 4096};
    char text[1024];
    va_list args;

    if (!o->tell)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    vt_buf_printf(&b, "%s: %s", folder, text);
    if (!b.failed)
        o->tell(o->user, b.data);
    vt_buf_free(&b);
}

const char *truth_text(struct vt_arena *a, const char *text)
{
    return vt_arena_copy(a, text, strlen(text));
}

/* ---- trees and texts ------------------------------------------------------------ */

static int with_tree(struct vt_experiment *e, const char *directory, const char *name,
                     truth_tree_reader *read, struct vt_err *err)
{
    struct vt_arena scratch = {0};
    const struct vt_node *root;
    const char *path = path_in(&scratch, directory, name);
    int rc = path ? vt_tree_load(&scratch, path, &root, err) : vt_nomem(err);

    if (rc == VT_OK)
        rc = vt_within(err, read(e, root, err), "%s", path);
    vt_arena_free(&scratch);
    return rc;
}

static int with_lines(struct vt_experiment *e, const char *name,
                      truth_lines_reader *read, struct vt_err *err)
{
    const char *path = path_in(&e->arena, e->folder, name);
    struct vt_lines *lines = NULL;
    int rc = path ? vt_lines_open(&lines, path, err) : vt_nomem(err);

    if (rc == VT_OK)
        rc = vt_within(err, read(e, lines, err), "%s", path);
    vt_lines_close(lines);
    return rc;
}

static bool has_file(struct vt_experiment *e, const char *directory, const char *name)
{
    const char *path = path_in(&e->arena, directory, name);
    struct stat s;

    return path && stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

/* ---- stages --------------------------------------------------------- */

static int read_summary(struct vt_experiment *e, const struct vt_node *root,
                        struct vt_err *err)
{
    e->summary = (struct vt_stage_metrics){.index = -1};
    return truth_read_metrics(&e->summary, root, err);
}

static int read_stage(struct vt_experiment *e, const struct vt_node *root,
                      struct vt_err *err)
{
    struct vt_stage_metrics *m = &e->stage[e->n_stages];
    size_t i = e->n_stages;
    int rc;

    *m = (struct vt_stage_metrics){.index = (int32_t)i};
    rc = truth_read_metrics(m, root, err);
    if (i < e->n_plan) {
        m->rate = e->plan[i].rate;
        m->duration_s = e->plan[i].duration_s;
    }
    e->n_stages++;
    return rc;
}

/* The numbers of all stage files, ascending as numbers: 2 before 10. */
static int list_stages(const char *perf, struct values *out, struct vt_err *err)
{
    static const char head[] = "stage_", tail[] = "_lifecycle_metrics.json";
    DIR *d = opendir(perf);
    struct dirent *entry;
    size_t len;
    uint64_t number;
    int rc = VT_OK;

    if (!d)
        return vt_fail(err, VT_EINPUT, "%s: %s", perf, strerror(errno));
    while (rc == VT_OK && (entry = readdir(d)) != NULL) {
        const char *digits = entry->d_name + strlen(head);

        if (strncmp(entry->d_name, head, strlen(head)) != 0)
            continue;
        len = strspn(digits, "0123456789");
        if (strcmp(digits + len, tail) != 0 || !vt_parse_u64(digits, len, &number) ||
            number >= TRUTH_MAX_STAGES)
            continue;
        rc = values_add(out, (double)number, err);
    }
    closedir(d);
    vt_sort_f64(out->v, out->n);
    return rc;
}

static int read_stages(struct vt_experiment *e, const char *perf,
                       const struct vt_truth_options *o, struct vt_err *err)
{
    struct values number = {0};
    int rc = list_stages(perf, &number, err);

    if (rc == VT_OK && number.n != e->n_plan)
        truth_tell(o, e->folder, "%zu stage files, but %zu stages in profile.yaml",
                   number.n, e->n_plan);
    for (size_t i = 0; i < number.n && rc == VT_OK; i++) {
        char name[64];

        snprintf(name, sizeof(name), "stage_%.0f_lifecycle_metrics.json", number.v[i]);
        rc =
            vt_grow(&e->stage, &e->cap_stages, e->n_stages + 1, sizeof(*e->stage), err);
        if (rc == VT_OK)
            rc = with_tree(e, perf, name, read_stage, err);
    }
    free(number.v);
    return rc;
}

/* ---- requests ------------------------------------------------------- */

static void tell_failures(const struct vt_experiment *e,
                          const struct vt_truth_options *o)
{
    if (e->n_failed > 0)
        truth_tell(o, e->folder,
                   "%zu requests failed (%s): they are simulated until then, and in no "
                   "latency",
                   e->n_failed, e->failure);
    if (e->n_unknown > 0)
        truth_tell(o, e->folder,
                   "of %zu requests lengths are not known: they are left out",
                   e->n_unknown);
}

static int read_requests(struct vt_experiment *e, const char *perf,
                         const struct vt_truth_options *o, struct vt_err *err)
{
    static const char name[] = "per_request_lifecycle_metrics.json";
    const char *path = path_in(&e->arena, perf, name);
    bool cut;
    int rc = path ? VT_OK : vt_nomem(err);

    if (rc == VT_OK && has_file(e, perf, name))
        rc = truth_read_requests(e, path, err);
    if (rc != VT_OK)
        return rc;
    tell_failures(e, o);
    cut = o->max_requests > 0 &&
          (gather_planned(e) > o->max_requests || e->n_requests > o->max_requests);
    if (cut && e->n_requests == 0)
        return vt_fail(err, VT_EINPUT,
                       "%s/%s is needed to cut the measurements to %u requests", perf,
                       name, o->max_requests);
    if (cut)
        truth_cut(e, o->max_requests);
    return truth_refine(e, cut, err);
}

/* ---- the whole ------------------------------------------------------ */

/* ...-tp2-general: what legacy folders are named after. */
static const char *suffix_of(const char *folder)
{
    const char *dash = strrchr(folder, '-');

    return dash && !strchr(dash, '/') ? dash + 1 : "unknown";
}

int vt_experiment_load(struct vt_experiment *e, const char *folder,
                       const struct vt_node *entry, const struct vt_truth_options *o,
                       struct vt_err *err)
{
    const char *perf;
    int rc = VT_OK;

    *e = (struct vt_experiment){
        .hardware = "H100", .precision = "FP16", .gpu_mem_util = 0.9, .tp = 1};
    e->folder = truth_text(&e->arena, folder);
    e->workload = truth_text(&e->arena, suffix_of(folder));
    if (!e->folder || !e->workload)
        rc = vt_nomem(err);
    if (rc == VT_OK && truth_is_report(folder)) {
        rc = truth_load_report(e, folder, o, err);
        goto out;
    }
    if (rc || (entry && (rc = truth_read_entry(e, entry, err))))
        goto out;
    perf = path_in(&e->arena, folder, "results");
    if (perf && !vt_is_directory(perf))
        perf = path_in(&e->arena, folder, "inference-perf-data");
    if (!perf) {
        rc = vt_nomem(err);
        goto out;
    }
    if ((rc = with_tree(e, e->folder, "exp-config.yaml", truth_read_config, err)) ||
        (rc = with_tree(e, e->folder, "profile.yaml", truth_read_profile, err)) ||
        (has_file(e, perf, "config.yaml") &&
         (rc = with_tree(e, perf, "config.yaml", truth_read_groups, err))) ||
        (rc = with_lines(e, "vllm.log", truth_read_log, err)) ||
        (has_file(e, e->folder, "kv_events.jsonl") &&
         (rc = with_lines(e, "kv_events.jsonl", truth_read_kv_events, err))) ||
        (rc =
             with_tree(e, perf, "summary_lifecycle_metrics.json", read_summary, err)) ||
        (rc = read_stages(e, perf, o, err)))
        goto out;
    rc = read_requests(e, perf, o, err);
out:
    if (rc != VT_OK)
        vt_experiment_free(e);
    return rc;
}

void vt_experiment_free(struct vt_experiment *e)
{
    free(e->plan);
    free(e->stage);
    free(e->request);
    free(e->segment);
    free(e->gap);
    vt_arena_free(&e->arena);
    *e = (struct vt_experiment){0};
}
