/* fit_load.c - which captures `vtwin fit` is to learn from, and reading them. */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cmd/fit.h"

/* ---- which files ------------------------------------------------------ */

/* Length of the path without ".steps.jsonl" and the like; 0: another kind of file. */
static size_t stem(const char *path, bool *steps)
{
    static const struct {
        const char *end;
        bool steps;
    } kinds[] = {{".steps.jsonl.gz", true},
                 {".steps.jsonl", true},
                 {".trace.jsonl.gz", false},
                 {".trace.jsonl", false}};

    for (size_t i = 0; i < VT_COUNT(kinds); i++)
        if (vt_ends_with(path, kinds[i].end)) {
            *steps = kinds[i].steps;
            return strlen(path) - strlen(kinds[i].end);
        }
    return 0;
}

/* `must`: the user named this very file. */
static int add_file(struct fit_job *j, const char *path, bool must, struct vt_err *err)
{
    bool steps = false;
    size_t len = stem(path, &steps), i = 0;
    const char **slot;

    if (len == 0 && must)
        return vt_fail(err, VT_EINPUT,
                       "%s: not a NAME.steps.jsonl[.gz] or NAME.trace.jsonl[.gz]",
                       path);
    if (len == 0)
        return VT_OK;
    while (i < j->n &&
           (strlen(j->in[i].base) != len || memcmp(j->in[i].base, path, len) != 0))
        i++;
    if (i == j->n) {
        if (vt_grow(&j->in, &j->cap, j->n + 1, sizeof(*j->in), err) != VT_OK)
            return VT_ENOMEM;
        j->in[i] = (struct fit_input){.base = vt_arena_copy(&j->arena, path, len)};
        if (!j->in[i].base)
            return vt_nomem(err);
        j->n++;
    }
    slot = steps ? &j->in[i].steps : &j->in[i].trace;
    if (*slot)
        return VT_OK;
    *slot = vt_arena_copy(&j->arena, path, strlen(path));
    return *slot ? VT_OK : vt_nomem(err);
}

/* Hands on every entry of a directory, sorted by name. */
static int each_entry(const char *path,
                      int (*take)(void *user, const char *file, struct vt_err *err),
                      void *user, struct vt_err *err)
{
    struct dirent **entry;
    int n = scandir(path, &entry, NULL, alphasort), rc = VT_OK;

    if (n < 0)
        return vt_fail(err, VT_EINPUT, "%s: %s", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        char file[4096];

        if (rc == VT_OK && (size_t)snprintf(file, sizeof(file), "%s/%s", path,
                                            entry[i]->d_name) < sizeof(file))
            rc = take(user, file, err);
        free(entry[i]);
    }
    free(entry);
    return rc;
}

static int add_capture_file(void *user, const char *file, struct vt_err *err)
{
    return add_file(user, file, false, err);
}

/* ---- loading ---------------------------------------------------------- */

static int add_capture(struct fit_job *j, const char *name,
                       const struct vt_steps *steps, const struct vt_workload *w,
                       struct vt_err *err)
{
    int rc = vt_grow(&j->seen, &j->cap_seen, j->n_seen + 1, sizeof(*j->seen), err);

    if (rc == VT_OK)
        rc = vt_fit_add(j->fit, name, steps, w, err);
    if (rc == VT_OK)
        j->seen[j->n_seen++] = w;
    return rc;
}

static int load_one(struct fit_job *j, struct fit_input *in, struct vt_err *err)
{
    const char *slash = strrchr(in->base, '/');
    struct vt_steps steps = {0};
    int rc = VT_OK;

    if (in->trace) {
        rc = vt_trace_load(&in->workload, in->trace, err);
        in->loaded = rc == VT_OK;
    }
    if (rc == VT_OK && in->steps)
        rc = vt_steps_load(&steps, in->steps, err);
    if (rc == VT_OK)
        rc = add_capture(j, slash ? slash + 1 : in->base, in->steps ? &steps : NULL,
                         in->loaded ? &in->workload : NULL, err);
    vt_steps_free(&steps);
    return rc;
}

/* ---- OpenTelemetry ---------------------------------------------------- */

struct otlp_dir {
    struct vt_otlp *otlp;
    size_t found;
};

static int add_otlp_file(void *user, const char *file, struct vt_err *err)
{
    struct otlp_dir *d = user;
    bool steps;

    /* Every .json, .jsonl or .jsonl.gz that is no step log or trace. */
    if (stem(file, &steps) != 0 ||
        (!vt_ends_with(file, ".jsonl") && !vt_ends_with(file, ".jsonl.gz") &&
         !vt_ends_with(file, ".json")))
        return VT_OK;
    d->found++;
    return vt_otlp_add_file(d->otlp, file, err);
}

static int load_otlp(struct fit_job *j, const struct fit_options *o, struct vt_err *err)
{
    struct vt_otlp_options options = {.step_time = o->step_time};
    int rc = o->otlp.n > 0 ? vt_otlp_new(&j->otlp, &options, err) : VT_OK;

    for (size_t i = 0; i < o->otlp.n && rc == VT_OK; i++) {
        const char *path = o->otlp.value[i];
        struct otlp_dir d = {.otlp = j->otlp};
        struct stat st;

        if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
            rc = vt_otlp_add_file(j->otlp, path, err);
            continue;
        }
        rc = each_entry(path, add_otlp_file, &d, err);
        if (rc == VT_OK && d.found == 0)
            rc = vt_fail(err, VT_EINPUT, "%s: no .jsonl or .json in it", path);
    }
    if (rc == VT_OK && j->otlp)
        rc = vt_otlp_finish(j->otlp, err);
    for (size_t i = 0; j->otlp && rc == VT_OK && i < vt_otlp_captures(j->otlp); i++) {
        const struct vt_otlp_capture *c = vt_otlp_capture(j->otlp, i);

        rc = add_capture(j, c->name, c->steps.n > 0 ? &c->steps : NULL,
                         c->work.n > 0 ? &c->work : NULL, err);
    }
    return rc;
}

/* ---- all of it -------------------------------------------------------- */

void fit_progress(const struct fit_options *o, const char *what, size_t i, size_t n)
{
    if (isatty(2) && !o->quiet)
        (void)fprintf(stderr, i < n ? "\r%s %zu/%zu" : "\r\033[K", what, i + 1, n);
}

int fit_load(struct fit_job *j, const struct opt_args *a, struct vt_err *err)
{
    const struct fit_options *o = a->options;
    int rc = VT_OK;

    for (size_t i = 0; i < a->n_operands && rc == VT_OK; i++) {
        struct stat st;

        if (stat(a->operand[i], &st) != 0)
            return vt_fail(err, VT_EINPUT, "%s: %s", a->operand[i], strerror(errno));
        rc = S_ISDIR(st.st_mode) ? each_entry(a->operand[i], add_capture_file, j, err)
                                 : add_file(j, a->operand[i], true, err);
    }
    if (rc == VT_OK && j->n == 0 && a->n_operands > 0)
        rc =
            vt_fail(err, VT_EINPUT, "%s: no NAME.steps.jsonl or NAME.trace.jsonl in it",
                    a->operand[0]);
    if (rc == VT_OK)
        rc = vt_fit_new(&j->fit, &j->shape, err);
    for (size_t i = 0; i < j->n && rc == VT_OK; i++) {
        fit_progress(o, "reading", i, j->n);
        rc = load_one(j, &j->in[i], err);
    }
    fit_progress(o, "", 1, 0);
    return rc == VT_OK ? load_otlp(j, o, err) : rc;
}

void fit_free(struct fit_job *j)
{
    for (size_t i = 0; i < j->n; i++)
        vt_workload_free(&j->in[i].workload);
    vt_arena_free(&j->arena);
    free(j->in);
    free(j->seen);
    free(j->left_out.row);
    free(j->left_out.calm);
    free(j->own.row);
    free(j->own.calm);
    vt_buf_free(&j->model);
    vt_buf_free(&j->notes);
    vt_fit_free(j->fit);
    vt_otlp_free(j->otlp);
}
