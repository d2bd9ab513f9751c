/* model_learn.c - vtwin model learn: captures of several models in, the constants of
 * estimates out, and how far they are off for models that they were not learned from.
 */
#include <math.h>
#include <unistd.h>

#include "cli/cmd/fit.h"
#include "cli/progress.h"
#include "cli/signals.h"

struct rows { /* errors of captures */
    struct vt_crossval_row *at;
    size_t n, cap;
};

struct member { /* a directory */
    const char *name;
    struct fit_model on;
    struct vt_gpu_reach reach;
    struct rows alone;   /* by a law of the others alone, */
    struct rows moved;   /* by captures with other settings, and that law's ratio, */
    struct rows related; /* and by captures of the nearest relative */
    double host;
};

struct learned {
    struct member *m;
    size_t n;
    struct vt_corpus *corpus;
    struct vt_law law;
    struct vt_arena arena; /* of judged rows */
    const struct vt_node **judged;
    size_t n_judged, cap_judged;
};

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] != '\0' ? slash + 1 : path;
}

static const char *class_of(const struct member *m)
{
    return m->on.arch.experts > 0 ? "mixture" : "dense";
}

/* ---- reading ------------------------------------------------------------ */

static int open_member(struct member *m, const char *dir, struct vt_err *err)
{
    int rc;

    m->name = last_part(dir);
    if ((rc = fit_model_open(&m->on, dir, err)))
        return rc;
    return vt_gpu_reach(&m->reach, m->on.gpu.name, err);
}

#define MOVED "transferred"
static const char *const classes[] = {"dense",          "mixture",          MOVED,
                                      "relative",       "relative_mixture", "other_gpu",
                                      "unmeasured_gpu", "tensor_parallel"};

/* {"class", and errors in percent by their names}. */
static int check_judged(const struct vt_node *row, struct vt_err *err)
{
    const char *class = NULL;
    double error;
    int rc = vt_get_str(row, "class", VT_REQUIRED, &class, err);

    for (size_t i = 0; i < VT_TRUSTS && rc == VT_OK; i++)
        rc = vt_get_f64(row, vt_trust_names[i], VT_OPTIONAL, -1e6, 1e6, &error, err);
    for (size_t i = 0; i < VT_COUNT(classes) && rc == VT_OK; i++)
        if (strcmp(class, classes[i]) == 0)
            return VT_OK;
    return rc ? rc : vt_fail(err, VT_EINPUT, "there is no class '%s'", class);
}

static int read_judged(struct learned *l, const char *path, struct vt_err *err)
{
    struct vt_lines *in = NULL;
    int rc = vt_lines_open(&in, path, err);
    bool complete;
    char *line;
    size_t len;

    while (rc == VT_OK &&
           (rc = vt_lines_next(in, &line, &len, &complete, err)) == VT_OK && line) {
        rc = vt_grow(&l->judged, &l->cap_judged, l->n_judged + 1, sizeof(*l->judged),
                     err);
        if (rc == VT_OK)
            rc = vt_json_parse(&l->arena, line, len, vt_lines_number(in),
                               &l->judged[l->n_judged], err);
        if (rc == VT_OK)
            rc = vt_within(err, check_judged(l->judged[l->n_judged++], err), "line %u",
                           vt_lines_number(in));
    }
    vt_lines_close(in);
    return vt_within(err, rc, "%s", path);
}

/* ---- judging ------------------------------------------------------------ */

/* Adds how far each capture of a model is off by a step model. */
static int judge(struct member *m, const struct vt_step_params *p, struct rows *into,
                 struct vt_err *err)
{
    struct vt_buf model = {0};
    int rc;

    vt_fit_step_model(&model, p);
    rc = model.failed ? vt_nomem(err) : VT_OK;
    for (size_t i = 0; i < m->on.job.n_seen && rc == VT_OK; i++) {
        const struct vt_workload *w = m->on.job.seen[i];
        struct vt_crossval_row with_stalls;

        if (!w || !w->measured)
            continue;
        rc = vt_grow(&into->at, &into->cap, into->n + 1, sizeof(*into->at), err);
        if (rc == VT_OK)
            rc = vt_crossval_in_sample(m->on.job.fit, i, model.data, w, &with_stalls,
                                       &into->at[into->n], err);
        into->n += rc == VT_OK;
    }
    vt_buf_free(&model);
    return rc;
}

/* By what was measured of another member, and the law's ratio of the two. */
static int judge_from(struct learned *l, size_t i, size_t from,
                      const struct vt_law *law, struct rows *into, struct vt_err *err)
{
    const struct member *m = &l->m[i], *k = &l->m[from];
    struct vt_step_params here, there, moved;

    vt_law_params(law, &m->reach, &m->on.q, &here);
    vt_law_params(law, &k->reach, &k->on.q, &there);
    vt_step_transfer(vt_corpus_own(l->corpus, from), &there, &here, &moved);
    return judge(&l->m[i], &moved, into, err);
}

/* As vt_choose() would take it: the one whose size is nearest; l->n: there is none. */
static size_t nearest_relative(const struct learned *l, size_t i)
{
    double size = vt_arch_active_params(&l->m[i].on.arch), least = INFINITY;
    size_t best = l->n;

    for (size_t k = 0; k < l->n; k++) {
        double away = fabs(log(vt_arch_active_params(&l->m[k].on.arch) / size));

        if (vt_corpus_same(l->corpus, i, k) || l->m[k].on.q.drafts > 0 ||
            !vt_arch_related(&l->m[i].on.arch, &l->m[k].on.arch) || !(away < least))
            continue;
        least = away;
        best = k;
    }
    return best;
}

/* By a law of the others alone; where the same weights were captured with other
 * settings, or a relative of the model was captured, by that and the law's ratio. */
static int judge_member(struct learned *l, size_t i, const struct vt_law *law,
                        struct vt_err *err)
{
    struct member *m = &l->m[i];
    size_t relative = nearest_relative(l, i);
    struct vt_step_params here;
    int rc;

    vt_law_params(law, &m->reach, &m->on.q, &here);
    rc = judge(m, &here, &m->alone, err);
    for (size_t k = 0; k < l->n && rc == VT_OK; k++)
        if (k != i && vt_arch_same(&m->on.arch, &l->m[k].on.arch) &&
            m->on.q.drafts == l->m[k].on.q.drafts)
            rc = judge_from(l, i, k, law, &m->moved, err);
    if (rc == VT_OK && relative < l->n && m->on.q.drafts == 0)
        rc = judge_from(l, i, relative, law, &m->related, err);
    return rc;
}

static int learn_all(struct learned *l, struct vt_err *err)
{
    struct vt_law without;
    int rc = vt_corpus_learn(l->corpus, VT_FIT_ALL, NULL, &l->law, err);

    for (size_t i = 0; i < l->n && rc == VT_OK; i++)
        l->m[i].host = vt_corpus_host(l->corpus, i);
    for (size_t i = 0; i < l->n && rc == VT_OK; i++) {
        cli_progress_count("learning without each model:", i, l->n);
        rc = vt_corpus_learn(l->corpus, i, &l->law, &without, err);
        if (rc == VT_OK)
            rc = judge_member(l, i, &without, err);
        if (rc == VT_OK && cli_signal_caught())
            rc = vt_fail(err, VT_EIO, "stopped: nothing is written");
    }
    cli_progress_end();
    return rc;
}

/* ---- writing ------------------------------------------------------------ */

static size_t add_rows(const struct rows *r, enum vt_trust metric, double *v, size_t n)
{
    for (size_t i = 0; i < r->n; i++) {
        double e = vt_crossval_at(&r->at[i], metric);

        if (!isnan(e)) /* it was measured */
            v[n++] = fabs(e);
    }
    return n;
}

/* Adds to v[n] the errors of models of a class, but not those of model `without` with
 * whatever settings (l->n: of all). */
static size_t add_class(const struct learned *l, const char *class,
                        enum vt_trust metric, size_t without, double *v, size_t n)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct member *m = &l->m[i];

        if (strcmp(class, MOVED) == 0)
            n = add_rows(&m->moved, metric, v, n);
        else if (strcmp(class,
                        m->on.arch.experts > 0 ? "relative_mixture" : "relative") == 0)
            n = add_rows(&m->related, metric, v, n);
        else if (strcmp(class, class_of(m)) == 0 &&
                 !(without < l->n && vt_corpus_same(l->corpus, i, without)))
            n = add_rows(&m->alone, metric, v, n);
    }
    return n;
}

static size_t add_judged(const struct learned *l, const char *class,
                         enum vt_trust metric, double *v, size_t n)
{
    for (size_t i = 0; i < l->n_judged; i++) {
        const char *of = "";
        struct vt_err none;
        double e = NAN;

        if (vt_get_str(l->judged[i], "class", VT_OPTIONAL, &of, &none) == VT_OK &&
            strcmp(of, class) == 0 &&
            vt_get_f64(l->judged[i], vt_trust_names[metric], VT_OPTIONAL, -1e6, 1e6, &e,
                       &none) == VT_OK &&
            isfinite(e))
            v[n++] = fabs(e);
    }
    return n;
}

/* What one of a class is expected to be off by; 0: nothing was judged. v: room for all.
 */
static double covering(const struct learned *l, const char *class, enum vt_trust metric,
                       size_t without, double *v)
{
    size_t n = add_class(l, class, metric, without, v, 0);

    n = add_judged(l, class, metric, v, n);
    return n > 0 ? vt_covering(v, n) : 0;
}

/* Of all captures, in how many percent the error stays below what the captures of other
 * models of its class would have had us expect: is the promise kept? NAN: no class has
 * two models. */
static double kept(const struct learned *l, enum vt_trust metric, double *v)
{
    size_t n = 0, below = 0;

    for (size_t i = 0; i < l->n; i++) {
        double most = covering(l, class_of(&l->m[i]), metric, i, v);

        for (size_t k = 0; k < l->m[i].alone.n && most > 0; k++) {
            double e = vt_crossval_at(&l->m[i].alone.at[k], metric);

            n += isnan(e) ? 0 : 1;
            below += fabs(e) <= most;
        }
    }
    return n > 0 ? 100 * (double)below / (double)n : NAN;
}

/* NULL: no memory. */
static double *room_for_all(const struct learned *l)
{
    size_t most = l->n_judged + 1;

    for (size_t i = 0; i < l->n; i++)
        most += l->m[i].alone.n + l->m[i].moved.n + l->m[i].related.n;
    return calloc(most, sizeof(double));
}

static void put_expected(struct vt_jw *j, const struct learned *l, double *room)
{
    vt_jw_map(j, "expected_error_pct");
    for (size_t c = 0; c < VT_COUNT(classes); c++) {
        if (covering(l, classes[c], VT_TRUST_ITL, l->n, room) <= 0)
            continue;
        vt_jw_row(j, classes[c]);
        for (enum vt_trust k = VT_TRUST_E2E; k < VT_TRUSTS; k++) {
            double v = covering(l, classes[c], k, l->n, room);

            if (v > 0)
                vt_jw_printf(j, vt_trust_names[k], "%.1f", v);
        }
        vt_jw_end(j);
    }
    vt_jw_end(j);
}

/* What the law has seen: beyond it an estimate says so. */
static void put_seen(struct vt_jw *j, const struct learned *l)
{
    double lo = INFINITY, hi = 0, tokens = 0, running = 0, context = 0;

    for (size_t i = 0; i < l->n; i++) {
        const struct vt_step_params *own = vt_corpus_own(l->corpus, i);
        double active = vt_arch_active_params(&l->m[i].on.arch) / 1e9;

        lo = fmin(lo, active);
        hi = fmax(hi, active);
        tokens = fmax(tokens, own->seen_step_tokens);
        running = fmax(running, own->seen_running);
        context = fmax(context, own->seen_context_ktokens);
    }
    vt_jw_map(j, "seen");
    vt_jw_printf(j, "least_active_billions", "%.3g", lo);
    vt_jw_printf(j, "most_active_billions", "%.3g", hi);
    vt_jw_printf(j, "step_tokens", "%.0f", tokens);
    vt_jw_printf(j, "running", "%.0f", running);
    vt_jw_printf(j, "context_ktokens", "%.0f", context);
    vt_jw_end(j);
}

static void put_member(struct vt_jw *j, const struct member *m)
{
    const struct vt_meta *meta = vt_fit_engine(m->on.job.fit);
    struct vt_crossval_row median, mean;

    vt_crossval_sum(m->alone.at, m->alone.n, &median, &mean);
    vt_jw_map(j, NULL);
    vt_jw_str(j, "name", m->name);
    vt_jw_str(j, "class", class_of(m));
    vt_jw_str(j, "gpu", m->on.gpu.name);
    vt_jw_str(j, "vllm_version", meta->vllm_version);
    vt_jw_printf(j, "host", "%.3f", m->host);
    vt_jw_row(j, "median_error_pct");
    for (enum vt_trust k = VT_TRUST_E2E; k < VT_TRUSTS; k++)
        if (!isnan(vt_crossval_at(&median, k)))
            vt_jw_printf(j, vt_trust_names[k], "%.1f", vt_crossval_at(&median, k));
    vt_jw_end(j);
    vt_jw_row_list(j, "captures");
    for (size_t i = 0; i < vt_fit_count(m->on.job.fit); i++)
        vt_jw_str(j, NULL, vt_fit_name(m->on.job.fit, i));
    vt_jw_end(j);
    vt_jw_end(j);
}

static int write_constants(const struct learned *l, const char *path,
                           struct vt_err *err)
{
    struct vt_buf b = {0}, law = {0};
    struct vt_jw j;
    double *room = room_for_all(l);
    int rc;

    if (!room)
        return vt_nomem(err);
    vt_buf_str(&law, "{\n");
    vt_law_write(&law, &l->law, "    ");
    vt_buf_str(&law, "  }");
    vt_jw_init(&j, &b, &vt_json_pretty);
    vt_jw_map(&j, NULL);
    vt_jw_u64(&j, "version", 1);
    vt_jw_str(&j, "gpu", l->m[0].on.gpu.name);
    vt_jw_raw(&j, "law", law.data, law.len);
    put_seen(&j, l);
    put_expected(&j, l, room);
    vt_jw_list(&j, "models");
    for (size_t i = 0; i < l->n; i++)
        put_member(&j, &l->m[i]);
    vt_jw_end(&j);
    vt_jw_end(&j);
    vt_buf_char(&b, '\n');
    rc = law.failed ? vt_nomem(err) : vt_write_file(path, &b, err);
    vt_buf_free(&law);
    vt_buf_free(&b);
    free(room);
    return rc;
}

/* ---- for people --------------------------------------------------------- */

static void put_table(struct vt_buf *b, const struct learned *l, double *room)
{
    int width = 34;

    vt_buf_str(b, "each model by a law of the others alone; errors in %\n\n");
    vt_crossval_head(b, width);
    for (size_t i = 0; i < l->n; i++) {
        struct vt_crossval_row median, mean;

        for (size_t k = 0; k < l->m[i].alone.n; k++)
            vt_crossval_put(b, width, &l->m[i].alone.at[k], "");
        vt_crossval_sum(l->m[i].alone.at, l->m[i].alone.n, &median, &mean);
        median.name = l->m[i].name;
        vt_crossval_put(b, width, &median, "  median size\n");
    }
    vt_buf_printf(b, "%-*s", width, "expected errors kept, % of them");
    for (enum vt_trust k = VT_TRUST_E2E; k < VT_TRUSTS; k++) {
        double share = kept(l, k, room);

        if (isnan(share))
            vt_buf_printf(b, " %8s", "-");
        else
            vt_buf_printf(b, " %8.1f", share);
    }
    vt_buf_char(b, '\n');
}

static void put_json(struct vt_jw *j, const struct learned *l, double *room)
{
    vt_jw_map(j, NULL);
    vt_jw_list(j, "captures");
    for (size_t i = 0; i < l->n; i++)
        for (size_t n = 0; n < l->m[i].alone.n; n++) {
            vt_jw_row(j, NULL);
            vt_jw_str(j, "model", l->m[i].name);
            vt_jw_str(j, "class", class_of(&l->m[i]));
            vt_jw_str(j, "name", l->m[i].alone.at[n].name);
            for (enum vt_trust k = VT_TRUST_E2E; k < VT_TRUSTS; k++)
                vt_jw_f64(j, vt_trust_names[k],
                          vt_crossval_at(&l->m[i].alone.at[n], k));
            vt_jw_end(j);
        }
    vt_jw_end(j);
    put_expected(j, l, room);
    vt_jw_row(j, "kept_pct");
    for (enum vt_trust k = VT_TRUST_E2E; k < VT_TRUSTS; k++)
        vt_jw_f64(j, vt_trust_names[k], kept(l, k, room)); /* NAN: null */
    vt_jw_end(j);
    vt_jw_end(j);
}

static int print_learned(const struct learned *l, const struct model_options *o,
                         struct vt_err *err)
{
    struct vt_buf b = {0};
    struct vt_jw j;
    double *room = room_for_all(l);

    if (!room)
        return vt_nomem(err);
    if (o->json) {
        vt_jw_init(&j, &b, &vt_json_pretty);
        put_json(&j, l, room);
        vt_buf_char(&b, '\n');
    } else {
        put_table(&b, l, room);
        if (o->out)
            vt_buf_printf(&b, "constants: %s\n", o->out);
    }
    free(room);
    return cli_print(&b, err);
}

/* ---- the command -------------------------------------------------------- */

static void learned_free(struct learned *l)
{
    vt_corpus_free(l->corpus);
    for (size_t i = 0; i < l->n; i++) {
        fit_free(&l->m[i].on.job);
        free(l->m[i].alone.at);
        free(l->m[i].moved.at);
        free(l->m[i].related.at);
    }
    free(l->m);
    free(l->judged);
    vt_arena_free(&l->arena);
}

static int same_gpu(const struct member *m, const struct member *first,
                    struct vt_err *err)
{
    if (strcmp(m->on.gpu.name, first->on.gpu.name) == 0)
        return VT_OK;
    return vt_fail(err, VT_EINPUT, "%s ran on %s, and %s on %s: one GPU at a time",
                   m->name, m->on.gpu.name, first->name, first->on.gpu.name);
}

static int by_name(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    int order = strcmp(last_part(x), last_part(y));

    return order ? order : strcmp(x, y);
}

/* In the order of their names: sums depend on it in their last digits, and the
 * constants must not depend on where captures lie. */
static int open_members(struct learned *l, const char **dir, size_t n,
                        struct vt_err *err)
{
    int rc = VT_OK;

    qsort(dir, n, sizeof(*dir), by_name);
    for (size_t i = 0; i < n && rc == VT_OK; i++) {
        struct member *m = &l->m[l->n++];

        if ((rc = open_member(m, dir[i], err)) == VT_OK &&
            (rc = same_gpu(m, &l->m[0], err)) == VT_OK)
            rc = vt_corpus_add(l->corpus, m->name, m->on.job.fit, &m->on.q, err);
    }
    return rc;
}

static int open_all(struct learned *l, const struct opt_args *a, struct vt_err *err)
{
    const struct model_options *o = a->options;
    size_t n = a->n_operands - 1; /* after "learn" */
    const char **dir;
    int rc = o->judged ? read_judged(l, o->judged, err) : VT_OK;

    if (rc != VT_OK || (rc = vt_corpus_new(&l->corpus, err)) != VT_OK)
        return rc;
    l->m = calloc(n, sizeof(*l->m));
    dir = malloc(n * sizeof(*dir));
    if (l->m && dir) {
        memcpy(dir, a->operand + 1, n * sizeof(*dir));
        rc = open_members(l, dir, n, err);
    } else {
        rc = vt_nomem(err);
    }
    free(dir);
    return rc;
}

int model_learn(const struct opt_args *a, struct vt_err *err)
{
    const struct model_options *o = a->options;
    struct learned l = {0};
    int rc;

    cli_signals_stop();
    cli_progress_begin(false, o->quiet);
    cli_progress_now("reading and fitting %zu folders; this takes minutes",
                     a->n_operands - 1);
    if ((rc = open_all(&l, a, err)) == VT_OK && (rc = learn_all(&l, err)) == VT_OK &&
        (!o->out || (rc = write_constants(&l, o->out, err)) == VT_OK))
        rc = print_learned(&l, o, err);
    learned_free(&l);
    return rc;
}
