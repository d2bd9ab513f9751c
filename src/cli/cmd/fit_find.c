/* fit_find.c - which files `vtwin fit` can learn from, and what belongs together.
 *
 * A file is what its content says, whatever its name. Names only help to put step logs
 * to their traces, and where they don't, ids and times do. */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "cli/cmd/fit.h"

/* Directories within directories are looked into that deep: results of a sweep, of an
 * experiment. */
enum { MAX_DEPTH = 3 };

/* ---- names ------------------------------------------------------------ */

static size_t without_end(const char *text, size_t len, const char *end)
{
    size_t n = strlen(end);

    return len >= n && memcmp(text + len - n, end, n) == 0 ? len - n : len;
}

/* The file's name without directory, extensions, and the word that tells its kind:
 * "runs/c16.steps.jsonl.gz" and "runs/c16.trace.jsonl" are both "c16", "steps.jsonl"
 * and "requests.jsonl" both "". */
static const char *bare_name(const char *path, size_t *len)
{
    static const char *const kinds[] = {"steps",   "trace",      "requests",
                                        "capture", "step-stats", "stats"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    *len = without_end(name, strlen(name), ".gz");
    *len = without_end(name, *len, ".jsonl");
    *len = without_end(name, *len, ".json");
    for (size_t i = 0; i < VT_COUNT(kinds); i++) {
        size_t left = without_end(name, *len, kinds[i]);

        if (left == *len || (left > 0 && !strchr(".-_", name[left - 1])))
            continue;
        *len = left > 0 ? left - 1 : 0;
        break;
    }
    return name;
}

/* What a capture is called: its bare name; the directory's where that says nothing. */
static const char *capture_name(struct fit_inputs *f, const char *path,
                                const char *load)
{
    size_t len, dir_len = 0;
    const char *name = bare_name(path, &len), *dir = name;
    struct vt_buf b = {0};
    const char *copy = NULL;

    if (len == 0 && name > path) {
        for (dir = name - 1; dir > path && dir[-1] != '/'; dir--)
            ;
        dir_len = (size_t)(name - 1 - dir);
    }
    if (len > 0)
        vt_buf_add(&b, name, len);
    else if (dir_len > 0 && dir[0] != '.')
        vt_buf_add(&b, dir, dir_len);
    else
        vt_buf_add(&b, name, strcspn(name, "."));
    if (load)
        vt_buf_printf(&b, ":%s", load);
    if (!b.failed)
        copy = vt_arena_copy(&f->arena, b.data, b.len);
    vt_buf_free(&b);
    return copy;
}

static size_t dir_len(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) : 0;
}

static bool same_dir(const struct fit_input *a, const struct fit_input *b)
{
    size_t len = dir_len(a->path);

    return len == dir_len(b->path) && memcmp(a->path, b->path, len) == 0;
}

static bool same_name(const struct fit_input *a, const struct fit_input *b)
{
    size_t na, nb;
    const char *x = bare_name(a->path, &na), *y = bare_name(b->path, &nb);

    return na == nb && memcmp(x, y, na) == 0;
}

/* ---- reading files ---------------------------------------------------- */

static int new_input(struct fit_inputs *f, const char *path, enum fit_kind kind,
                     bool asked, struct fit_input **out, struct vt_err *err)
{
    int rc = vt_grow(&f->in, &f->cap, f->n + 1, sizeof(*f->in), err);

    if (rc != VT_OK)
        return rc;
    *out = &f->in[f->n];
    **out = (struct fit_input){
        .path = vt_arena_copy(&f->arena, path, strlen(path)),
        .name = capture_name(f, path, NULL),
        .kind = kind,
        .asked = asked,
    };
    if (!(*out)->path || !(*out)->name)
        return vt_nomem(err);
    f->n++;
    return VT_OK;
}

static void note_skipped(struct fit_inputs *f, const char *path, size_t n)
{
    if (n > 0)
        vt_buf_printf(&f->notes,
                      "%s: %zu requests that failed, were aborted or gave no token are "
                      "left out\n",
                      path, n);
}

static int add_trace(struct fit_inputs *f, const char *path, bool asked,
                     struct vt_err *err)
{
    struct fit_input *in;
    int rc = new_input(f, path, FIT_TRACE, asked, &in, err);

    if (rc || (rc = vt_trace_load(&in->work, path, err)))
        return rc;
    note_skipped(f, path, in->work.n_unanswered);
    return VT_OK;
}

static int add_steps(struct fit_inputs *f, const char *path, bool asked,
                     struct vt_err *err)
{
    struct fit_input *in;
    int rc = new_input(f, path, FIT_STEPS, asked, &in, err);

    return rc ? rc : vt_steps_load(&in->steps, path, err);
}

/* They are read when their trace is known. */
static int add_stats(struct fit_inputs *f, const char *path, bool asked,
                     struct vt_err *err)
{
    struct fit_input *in;

    return new_input(f, path, FIT_STATS, asked, &in, err);
}

static int add_spans(struct fit_inputs *f, const char *path, struct vt_err *err)
{
    int rc = vt_grow(&f->spans, &f->cap_spans, f->n_spans + 1, sizeof(*f->spans), err);

    if (rc != VT_OK)
        return rc;
    f->spans[f->n_spans] = vt_arena_copy(&f->arena, path, strlen(path));
    return f->spans[f->n_spans++] ? VT_OK : vt_nomem(err);
}

/* Every load of a report is a capture. */
static int add_report(struct fit_inputs *f, const char *path, bool asked,
                      struct vt_err *err)
{
    struct vt_report r;
    int rc = vt_report_load(&r, path, err);

    if (rc != VT_OK)
        return rc;
    note_skipped(f, path, r.skipped);
    if (r.nulls > 0)
        vt_buf_printf(&f->notes,
                      "%s: %zu numbers are NaN or infinite and read as missing\n", path,
                      r.nulls);
    for (size_t i = 0; i < r.n && rc == VT_OK; i++) {
        struct fit_input *in;

        rc = new_input(f, path, FIT_REPORT, asked, &in, err);
        if (rc == VT_OK && r.load[i].name) {
            in->name = capture_name(f, path, r.load[i].name);
            rc = in->name ? VT_OK : vt_nomem(err);
        }
        if (rc == VT_OK) { /* it is ours now */
            in->work = r.load[i].work;
            r.load[i].work = (struct vt_workload){0};
        }
    }
    vt_report_free(&r);
    return rc;
}

/* ---- which files ------------------------------------------------------ */

/* A file of no use: an error if it was named, otherwise only worth to be told if
 * nothing else was found. */
static int pass_over(struct fit_inputs *f, const char *path, bool asked,
                     const char *why, struct vt_err *err)
{
    struct vt_buf b = {0};

    if (asked)
        return vt_fail(err, VT_EINPUT, "%s: %s", path, why);
    if (!f->useless) {
        const char *slash = strrchr(path, '/');

        vt_buf_printf(&b, "%s is %s", slash ? slash + 1 : path, why);
        if (!b.failed)
            f->useless = vt_arena_copy(&f->arena, b.data, b.len);
        vt_buf_free(&b);
    }
    return VT_OK;
}

/* Reports, and all that is of no use. */
static int add_other(struct fit_inputs *f, const char *path, bool asked,
                     struct vt_err *err)
{
    static const char *const measured[] = {"guidellm", "inference-perf", "vllm-bench",
                                           "aiperf",   "tracev2",        NULL};
    const char *format, *why;
    int rc = vt_convert_recognise(path, &format, &why, err);

    if (rc != VT_OK)
        return asked ? rc : VT_OK; /* not even text */
    if (!format || !vt_is_one_of(format, measured)) {
        if (!asked && !why) /* it need not even be data */
            return VT_OK;
        return pass_over(f, path, asked,
                         why      ? why
                         : format ? "it has no measured times"
                                  : "no trace, step log, report or spans; docs/fit.md "
                                    "lists what can be read",
                         err);
    }
    rc = add_report(f, path, asked, err);
    if (rc == VT_EINPUT && !asked) { /* a result that kept summaries only, say */
        const char *text = err->msg;
        size_t len = strlen(path);

        if (strncmp(text, path, len) == 0 && text[len] == ':')
            text += len + 1 + strspn(text + len + 1, " ");
        return pass_over(f, path, false, text, err);
    }
    return rc;
}

static int add_file(struct fit_inputs *f, const char *path, bool asked,
                    struct vt_err *err)
{
    enum vt_file kind = VT_FILE_OTHER;
    int rc = vt_file_kind(path, &kind, err);

    if (rc != VT_OK)
        return asked ? rc : VT_OK;
    switch (kind) {
    case VT_FILE_TRACE:
        return add_trace(f, path, asked, err);
    case VT_FILE_STEPS:
        return add_steps(f, path, asked, err);
    case VT_FILE_SPANS:
        return add_spans(f, path, err);
    case VT_FILE_STATS:
        return add_stats(f, path, asked, err);
    case VT_FILE_FOREIGN:
    case VT_FILE_OTHER:
        break;
    }
    /* A damaged one is better told by what it was to be. */
    if (vt_is_named(path, ".steps.jsonl"))
        return add_steps(f, path, asked, err);
    if (vt_is_named(path, ".trace.jsonl"))
        return add_trace(f, path, asked, err);
    return add_other(f, path, asked, err);
}

static int add_path(struct fit_inputs *f, const char *path, int depth,
                    struct vt_err *err);

struct found_in { /* a directory */
    struct fit_inputs *f;
    int depth;
};

static int add_entry(void *user, const char *file, struct vt_err *err)
{
    const struct found_in *d = user;

    if (strrchr(file, '/')[1] == '.')
        return VT_OK; /* hidden, or the directory itself */
    return add_path(d->f, file, d->depth + 1, err);
}

/* depth 0: the user named it. */
static int add_path(struct fit_inputs *f, const char *path, int depth,
                    struct vt_err *err)
{
    size_t before = f->n + f->n_spans;
    struct stat st;
    int rc;

    if (stat(path, &st) != 0)
        return depth > 0 ? VT_OK
                         : vt_fail(err, VT_EINPUT, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return depth == 0 || S_ISREG(st.st_mode) ? add_file(f, path, depth == 0, err)
                                                 : VT_OK;
    rc = depth <= MAX_DEPTH
             ? vt_each_entry(path, add_entry, &(struct found_in){f, depth}, err)
             : VT_OK;
    if (rc != VT_OK || depth > 0 || f->n + f->n_spans > before)
        return rc;
    return vt_fail(err, VT_EINPUT, "%s: no trace, step log, report or spans in it%s%s",
                   path, f->useless ? ": " : "", f->useless ? f->useless : "");
}

/* ---- step logs and their traces --------------------------------------- */

struct span {
    vt_ns from, to;
};

static struct span span_of_steps(const struct vt_steps *s)
{
    return (struct span){s->step[0].sched_ns, s->step[s->n - 1].out_ns};
}

static struct span span_of_work(const struct vt_workload *w)
{
    struct span t = {w->req[0].arrival_ns, w->req[w->n - 1].arrival_ns};

    for (size_t i = 0; w->measured && i < w->n; i++)
        if (w->req[i].arrival_ns + w->measured[i].e2e_ns > t.to)
            t.to = w->req[i].arrival_ns + w->measured[i].e2e_ns;
    return t;
}

/* Whether at least half of the shorter one lies in the other. */
static bool overlap(struct span a, struct span b)
{
    vt_ns from = a.from > b.from ? a.from : b.from, to = a.to < b.to ? a.to : b.to;
    vt_ns la = a.to - a.from, lb = b.to - b.from;

    return to > from && to - from >= (la < lb ? la : lb) / 2;
}

static uint64_t hash_id(const char *id, size_t len)
{
    return vt_hash_bytes(id, len, 0);
}

/* Frontends put something random behind the id that the engine's log has. */
static size_t without_suffix(const char *id)
{
    const char *dash = strrchr(id, '-');

    return dash && dash > id ? (size_t)(dash - id) : strlen(id);
}

static bool put_id(struct vt_map *ids, const char *id, size_t len)
{
    return vt_map_put(ids, hash_id(id, len)) != NULL;
}

static bool has_id(const struct vt_map *ids, const char *id, size_t len)
{
    return vt_map_get(ids, hash_id(id, len)) != NULL;
}

/* Whether most prompts of the log are requests of the trace, and the other way round: a
 * recording of all day has the ids of many logs. */
static bool ids_agree(const struct vt_steps *s, const struct vt_workload *w)
{
    struct vt_map of_trace = {0}, of_log = {0};
    size_t known = 0, prompts = 0, logged = 0;
    bool enough = true; /* memory */

    for (size_t i = 0; i < w->n && enough; i++) {
        const char *id = w->req[i].id;

        enough = put_id(&of_trace, id, strlen(id)) &&
                 put_id(&of_trace, id, without_suffix(id));
    }
    for (size_t i = 0; i < s->n && enough; i++)
        for (uint32_t k = 0; k < s->step[i].n_prefill && enough; k++) {
            const char *id = s->step[i].prefill[k].id;

            prompts++;
            known += has_id(&of_trace, id, strlen(id));
            enough = put_id(&of_log, id, strlen(id));
        }
    for (size_t i = 0; i < w->n && enough; i++) {
        const char *id = w->req[i].id;

        logged +=
            has_id(&of_log, id, strlen(id)) || has_id(&of_log, id, without_suffix(id));
    }
    vt_map_free(&of_trace);
    vt_map_free(&of_log);
    return enough && 2 * known >= prompts && known > 0 && 2 * logged >= w->n;
}

static bool is_trace_without_steps(const struct fit_input *t)
{
    return !t->gone && t->kind == FIT_TRACE && t->steps.n == 0;
}

/* How sure it is that the trace is the log's; 0: it is not. */
static int fits(const struct fit_inputs *f, const struct fit_input *log,
                const struct fit_input *t)
{
    bool near = same_dir(log, t) || (log->asked && t->asked);
    size_t logs = 0, traces = 0;

    if (!near)
        return 0;
    if (same_dir(log, t) && same_name(log, t))
        return 3;
    if (!overlap(span_of_steps(&log->steps), span_of_work(&t->work)))
        return 0;
    if (ids_agree(&log->steps, &t->work))
        return 2;
    /* The only ones there. */
    for (size_t i = 0; i < f->n; i++)
        if (same_dir(&f->in[i], log)) {
            logs += f->in[i].kind == FIT_STEPS;
            traces += f->in[i].kind == FIT_TRACE;
        }
    return same_dir(log, t) && logs == 1 && traces == 1 ? 1 : 0;
}

/* The pair stands where the first of the two was. */
static void join(struct fit_input *log, struct fit_input *t)
{
    struct fit_input *first = log < t ? log : t, *second = log < t ? t : log;
    struct vt_workload work = t->work;
    struct vt_steps steps = log->steps;
    const char *name = t->name, *path = t->path;

    log->steps = (struct vt_steps){0};
    t->work = (struct vt_workload){0};
    second->gone = true;
    first->work = work;
    first->steps = steps;
    first->name = name;
    first->path = path;
    first->kind = FIT_TRACE;
}

static void join_steps(struct fit_inputs *f)
{
    for (size_t i = 0; i < f->n; i++) {
        struct fit_input *best = NULL;
        int sure = 0;

        if (f->in[i].gone || f->in[i].kind != FIT_STEPS)
            continue;
        for (size_t k = 0; k < f->n; k++) {
            int how =
                is_trace_without_steps(&f->in[k]) ? fits(f, &f->in[i], &f->in[k]) : 0;

            if (how > sure) {
                sure = how;
                best = &f->in[k];
            }
        }
        if (best)
            join(&f->in[i], best);
    }
}

/* A recorder's statistics say when each step ended, but not of whom: that is in the
 * trace of the same recording. */
static int join_stats(struct fit_inputs *f, struct vt_err *err)
{
    for (size_t i = 0; i < f->n; i++) {
        struct fit_input *stats = &f->in[i];
        int rc = VT_EINPUT;

        if (stats->kind != FIT_STATS)
            continue;
        stats->gone = true;
        vt_fail(err, VT_EINPUT,
                "%s: scheduler statistics need the trace of the same recording "
                "(record --trace-out)",
                stats->path);
        for (size_t k = 0; k < f->n && rc == VT_EINPUT; k++) {
            struct fit_input *t = &f->in[k];

            if (is_trace_without_steps(t) &&
                (same_dir(stats, t) || (stats->asked && t->asked)))
                rc = vt_steps_from_stats(&t->steps, stats->path, &t->work, err);
        }
        if (rc == VT_OK)
            continue;
        if (stats->asked || rc != VT_EINPUT)
            return rc;
        vt_buf_printf(&f->notes, "%s, left out\n", err->msg);
    }
    return VT_OK;
}

/* ---- the same requests twice ------------------------------------------ */

/* The better one of two that tell of the same requests has the higher number. */
static int worth(const struct fit_input *in)
{
    if (in->steps.n > 0)
        return 3;
    return in->work.measured && in->work.n_by_mean == 0 ? 2 : 1;
}

static uint64_t sizes_hash(const struct vt_workload *w)
{
    uint64_t sum = 0; /* whatever the order: many arrive at one moment */

    for (size_t i = 0; i < w->n; i++)
        sum += vt_hash2(w->req[i].prompt_tokens, w->req[i].output_tokens);
    return sum;
}

/* Two who looked at one run, by two clocks or into two kinds of file: requests of the
 * same sizes that came at the same moments. */
static bool is_same_run(const struct fit_input *a, const struct fit_input *b)
{
    const struct vt_workload *x = &a->work, *y = &b->work;
    const vt_ns within =
        100 * VT_MS; /* from a client to the engine, on a busy machine */

    if ((a->kind == b->kind && x->meta.clock == y->meta.clock) || x->n != y->n ||
        sizes_hash(x) != sizes_hash(y))
        return false;
    for (size_t i = 0; i < x->n; i++) {
        vt_ns apart = (x->req[i].arrival_ns - x->req[0].arrival_ns) -
                      (y->req[i].arrival_ns - y->req[0].arrival_ns);

        if (apart > within || apart < -within)
            return false;
    }
    return true;
}

/* How many requests of `a` are in `b` too: the same id and the very same times. */
static size_t requests_in_common(const struct vt_workload *a,
                                 const struct vt_workload *b)
{
    struct vt_map ids = {0};
    size_t n = 0;

    for (size_t i = 0; a->measured && b->measured && i < b->n; i++) {
        uint64_t *at = vt_map_put(&ids, hash_id(b->req[i].id, strlen(b->req[i].id)));

        if (!at)
            break;
        *at = i;
    }
    for (size_t i = 0; ids.n > 0 && i < a->n; i++) {
        const uint64_t *at =
            vt_map_get(&ids, hash_id(a->req[i].id, strlen(a->req[i].id)));

        n += at && a->req[i].prompt_tokens == b->req[*at].prompt_tokens &&
             a->measured[i].n_gaps == b->measured[*at].n_gaps &&
             a->measured[i].ttft_ns == b->measured[*at].ttft_ns &&
             a->measured[i].e2e_ns == b->measured[*at].e2e_ns;
    }
    vt_map_free(&ids);
    return n;
}

static bool tells_the_same(const struct fit_input *a, const struct fit_input *b)
{
    size_t least = a->work.n < b->work.n ? a->work.n : b->work.n;

    return is_same_run(a, b) || 2 * requests_in_common(&a->work, &b->work) > least;
}

/* Of equal worth the shorter stays: a recording of all day is worth less than its
 * parts, which say what load they were. */
static bool is_better(const struct fit_input *a, const struct fit_input *b)
{
    if (worth(a) != worth(b))
        return worth(a) > worth(b);
    return a->work.n < b->work.n;
}

static void leave_out_repeats(struct fit_inputs *f)
{
    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 0; k < f->n && !f->in[i].gone; k++) {
            const struct fit_input *a = &f->in[i], *b = &f->in[k];

            if (i == k || b->gone || a->work.n == 0 || b->work.n == 0 ||
                is_better(a, b) || (k > i && !is_better(b, a)) || !tells_the_same(a, b))
                continue;
            vt_buf_printf(&f->notes, "%s: the same requests as in %s, left out\n",
                          a->path, b->path);
            f->in[i].gone = true;
        }
}

/* Of arrivals and lengths nothing can be learned. */
static void leave_out_untimed(struct fit_inputs *f)
{
    for (size_t i = 0; i < f->n; i++) {
        struct fit_input *in = &f->in[i];

        if (in->gone || in->asked || in->steps.n > 0 || in->work.measured)
            continue;
        vt_buf_printf(&f->notes, "%s: it has no measured times, left out\n", in->path);
        in->gone = true;
    }
}

/* ---- all of it -------------------------------------------------------- */

int fit_find(struct fit_inputs *f, const struct opt_args *a, struct vt_err *err)
{
    const struct fit_options *o = a->options;
    int rc = VT_OK;

    for (size_t i = 0; i < a->n_operands && rc == VT_OK; i++) {
        fit_progress(o, "reading", i, a->n_operands);
        rc = add_path(f, a->operand[i], 0, err);
    }
    fit_progress(o, "", 1, 0);
    if (rc != VT_OK)
        return rc;
    join_steps(f);
    if ((rc = join_stats(f, err)))
        return rc;
    leave_out_untimed(f);
    leave_out_repeats(f);
    return f->notes.failed ? vt_nomem(err) : VT_OK;
}

void fit_inputs_free(struct fit_inputs *f)
{
    for (size_t i = 0; i < f->n; i++) {
        vt_workload_free(&f->in[i].work);
        vt_steps_free(&f->in[i].steps);
    }
    free(f->in);
    free(f->spans);
    vt_buf_free(&f->notes);
    vt_arena_free(&f->arena);
}
