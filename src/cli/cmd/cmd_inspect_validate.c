/* cmd_inspect_validate.c - vtwin inspect validate: is a file what it should be? */
#include "cli/cmd/inspect.h"

enum kind { TRACE, STEPS, WORKLOAD, PROFILE, SPANS };

/* ---- lines ------------------------------------------------------------ */

static void print_bad(void *user, const char *message)
{
    const char *path = *(const char **)user;

    if (strncmp(message, path, strlen(path)) == 0)
        printf("%s\n", message); /* it names the file itself */
    else
        printf("%s: %s\n", path, message);
}

/* All bad lines on stdout; how many in the message. */
static int check_all(const char *path, enum kind kind, struct vt_err *err)
{
    struct vt_check c = {.tell = print_bad, .user = &path};
    int rc =
        kind == TRACE ? vt_check_trace(&c, path, err) : vt_check_steps(&c, path, err);

    if (rc == VT_OK && c.bad > 0)
        return vt_fail(err, VT_EINPUT, "%s: %zu of %zu lines are bad", path, c.bad,
                       c.lines);
    return rc;
}

/* ---- whole files ------------------------------------------------------ */

static int check_trace(const char *path, struct vt_buf *b, struct vt_err *err)
{
    struct vt_workload w;
    int rc = vt_trace_load(&w, path, err);

    if (rc != VT_OK)
        return rc;
    vt_buf_printf(b, "%s: a trace of %zu requests", path, w.n);
    if (w.measured)
        vt_buf_printf(b, " with %zu measured gaps\n", w.n_gaps);
    else
        vt_buf_str(b, " without measured times\n");
    vt_workload_free(&w);
    return VT_OK;
}

static void note_first_bad(void *user, const char *message)
{
    struct vt_err *first = user;

    if (first->code == VT_OK)
        vt_fail(first, VT_EINPUT, "%s", message);
}

static int check_steps(const char *path, struct vt_buf *b, struct vt_err *err)
{
    struct vt_err first = {0};
    struct vt_check c = {.tell = note_first_bad, .user = &first};
    int rc = vt_check_steps(&c, path, err);

    if (rc == VT_OK && first.code != VT_OK)
        return vt_fail(err, VT_EINPUT, "%s: %s", path, first.msg);
    if (rc == VT_OK)
        vt_buf_printf(b, "%s: a log of %zu steps\n", path, c.lines);
    return rc;
}

static int check_workload(const char *path, struct vt_buf *b, struct vt_err *err)
{
    struct vt_workload w;
    int rc = vt_workload_generate(&w, path, -1, err);

    if (rc != VT_OK)
        return rc;
    vt_buf_printf(b, "%s: a workload of %zu requests\n", path, w.n);
    vt_workload_free(&w);
    return VT_OK;
}

static double number(const struct vt_node *map, const char *key)
{
    struct vt_err ignored;
    double v = 0;

    return vt_get_f64(map, key, VT_OPTIONAL, -1e300, 1e300, &v, &ignored) == VT_OK ? v
                                                                                   : 0;
}

static void put_errors(struct vt_buf *b, const struct vt_node *errors, const char *key,
                       const char *what)
{
    const struct vt_node *e = vt_get(errors, key);

    if (!e || e->kind != VT_MAP)
        return;
    vt_buf_printf(b, "  median error of %s: E2E %.1f, TTFT %.1f, p99 %.1f, ITL %.1f",
                  what, number(e, "e2e"), number(e, "ttft"), number(e, "ttft_p99"),
                  number(e, "itl"));
    if (vt_get(e, "itl_p99"))
        vt_buf_printf(b, ", p99 %.1f", number(e, "itl_p99"));
    vt_buf_printf(b, ", req/s %.1f %%\n", number(e, "throughput"));
}

/* What a profile stands on, as far as it says. */
static void put_provenance(struct vt_buf *b, const struct vt_profile *p)
{
    const struct vt_node *from = vt_get(p->root, "provenance"),
                         *captures = vt_get(from, "captures"),
                         *made = vt_get(from, "made_by");
    double seconds = 0, stalls = 0, requests = 0;

    if (!captures || captures->kind != VT_LIST)
        return;
    for (uint32_t i = 0; i < captures->n; i++) {
        const struct vt_node *c = &captures->u.item[i];

        seconds += c->kind == VT_MAP ? number(c, "seconds") : 0;
        stalls += c->kind == VT_MAP ? number(c, "stalls") : 0;
        requests += c->kind == VT_MAP ? number(c, "requests") : 0;
    }
    vt_buf_printf(b, "  made by %s from %u captures, %.0f %s",
                  made && made->kind == VT_STR ? made->u.str : "somebody", captures->n,
                  vt_get(from, "steps") ? number(from, "steps") : requests,
                  vt_get(from, "steps") ? "steps" : "requests");
    if (seconds > 0)
        vt_buf_printf(b, ", %.1f s with %.0f stalls", seconds, stalls);
    vt_buf_char(b, '\n');
    put_errors(b, vt_get(from, "median_error_percent"), "in_sample",
               "what it was fitted on");
    put_errors(b, vt_get(from, "median_error_percent"), "out_of_sample",
               "captures left out");
}

static int check_profile(const char *path, struct vt_buf *b, struct vt_err *err)
{
    struct vt_profile p;
    int rc = vt_profile_open(&p, path, err);

    if (rc != VT_OK)
        return rc;
    vt_buf_printf(b, "%s: profile '%s' with model %s\n", path, p.name,
                  p.model->ops->name);
    put_provenance(b, &p);
    if (p.forced)
        vt_buf_printf(b, "  written by force: %s\n", p.forced);
    vt_profile_close(&p);
    return VT_OK;
}

/* ---- which kind ------------------------------------------------------- */

static int kind_of(const char *path, int *kind, bool *foreign, struct vt_err *err)
{
    enum vt_file file = VT_FILE_OTHER;
    const struct vt_node *root;
    struct vt_arena tree = {0};
    int rc;

    *foreign = false;
    if (*kind >= 0)
        return VT_OK;
    rc = vt_file_kind(path, &file, err);
    if (rc != VT_OK)
        return rc;
    *foreign = file == VT_FILE_FOREIGN;
    if (file == VT_FILE_STATS)
        return vt_fail(err, VT_EINPUT,
                       "%s: scheduler statistics, which `vtwin fit` reads; there is no "
                       "check for them",
                       path);
    if (file == VT_FILE_SPANS) {
        *kind = SPANS;
        return VT_OK;
    }
    if (file != VT_FILE_OTHER) {
        *kind = file == VT_FILE_STEPS ? STEPS : TRACE;
        return VT_OK;
    }
    rc = vt_tree_load(&tree, path, &root, err);
    if (rc == VT_OK) /* a profile names a model, a workload does not */
        *kind = vt_get(root, "model") ? PROFILE : WORKLOAD;
    vt_arena_free(&tree);
    return rc;
}

int inspect_validate(const struct opt_args *a, struct vt_err *err)
{
    const struct inspect_options *o = a->options;
    static int (*const check[])(const char *path, struct vt_buf *b,
                                struct vt_err *err) = {[TRACE] = check_trace,
                                                       [STEPS] = check_steps,
                                                       [WORKLOAD] = check_workload,
                                                       [PROFILE] = check_profile};
    struct cli_report report;
    const char *path = inspect_trace(a, &report);
    struct vt_buf b = {0};
    bool foreign;
    int kind = o->kind, rc = kind_of(path, &kind, &foreign, err);

    if (rc == VT_OK && o->all && !foreign && (kind == TRACE || kind == STEPS))
        rc = check_all(path, (enum kind)kind, err);
    if (rc == VT_OK)
        rc = kind == SPANS ? inspect_spans_check(path, o->all, &b, err)
                           : check[kind](path, &b, err);
    return cli_print_end(&b, rc, err);
}
