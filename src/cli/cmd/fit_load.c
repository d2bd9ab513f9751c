/* fit_load.c - what `vtwin fit` is to learn from: captures that were found, and what
 * OpenTelemetry spans tell. */
#include <unistd.h>

#include "cli/cmd/fit.h"
#include "cli/progress.h"

/* ---- what physics says ------------------------------------------------ */

/* Kernels reach about these shares of the GPU's peaks; the captures correct them. */
static const double GEMM_SHARE = 0.75, ATTENTION_SHARE = 0.6;
/* A row that fills up a tile takes so many times as long as one of a full tile. */
static const double FILL = 1.5;

/* What bandwidth and arithmetic allow, as the fit's starting point. */
static struct vt_fit_shape physics(const struct vt_arch *m, const struct vt_gpu *g,
                                   uint32_t tp)
{
    double bytes_us = g->bandwidth_tbs * 1e6, flop_us = g->fp16_tflops * 1e6;
    struct vt_arch_elements e = vt_arch_elements(m, tp);
    bool fp8 = vt_arch_fp8_kernels(m, g);
    double gemm_us = fp8 ? g->fp8_tflops * 1e6 : flop_us;
    double attention = 4.0 * m->layers * m->heads * m->head_dim / tp; /* a token pair */

    return (struct vt_fit_shape){
        .context_us = 1e3 * vt_arch_kv_bytes(m, tp, m->kv_bytes) / bytes_us,
        .expert_us = (double)m->moe_layers * m->experts * (m->gated ? 3.0 : 2.0) *
                     m->hidden * m->expert_ffn * m->weight_bytes / tp / bytes_us,
        .token_us = 2 * vt_arch_active_params(m) / tp / (gemm_us * GEMM_SHARE),
        .fill_us =
            fp8 ? FILL * 2 * (e.attention + e.dense) / (gemm_us * GEMM_SHARE) : 0,
        .depth_us = 1e6 * attention / (flop_us * ATTENTION_SHARE),
    };
}

/* What the captures state first; NULL: nothing. */
static const char *stated_gpu(const struct fit_inputs *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (!f->in[i].gone && f->in[i].work.n > 0 && f->in[i].work.meta.gpu)
            return f->in[i].work.meta.gpu;
    return NULL;
}

/* What physics says beforehand, by o's model, and by its GPU or the captures'. */
static int find_shape(struct fit_job *j, const struct fit_options *o,
                      struct vt_err *err)
{
    const char *stated = stated_gpu(&j->inputs);
    struct vt_arch arch;
    struct vt_gpu gpu;
    int rc = o->gpu ? vt_gpu_find(&gpu, o->gpu, o->hw, err) : VT_OK;

    if (rc != VT_OK || !o->hf_config ||
        (rc = vt_arch_load(&arch, o->hf_config, err)) != VT_OK)
        return rc;
    if (o->gpu || (stated && vt_gpu_find(&gpu, stated, o->hw, NULL) == VT_OK))
        j->shape = physics(&arch, &gpu, o->tp);
    j->shape.reads = vt_arch_reads(&arch, o->tp);
    j->shape.graph_limit = vt_arch_graph_limit(&arch);
    j->shape.experts = arch.experts;
    j->shape.experts_per_token = arch.experts > 0 ? arch.experts_per_token : 0;
    return VT_OK;
}

/* ---- captures --------------------------------------------------------- */

/* How much of the engine's steps can be seen in a capture. */
enum sight {
    SIGHT_NONE,   /* first and last tokens only */
    SIGHT_CLIENT, /* when tokens came to a client: steps, and the way from them */
    SIGHT_TOKENS, /* when tokens left: those that left together came from one step */
    SIGHT_STEPS,  /* a log of them */
};

static enum sight sight_of(const struct vt_steps *steps, const struct vt_workload *w)
{
    if (steps)
        return steps->only_out ? SIGHT_TOKENS : SIGHT_STEPS;
    if (w->n_by_mean > w->n / 20) /* few do no harm */
        return SIGHT_NONE;
    return w->meta.clock == VT_CLOCK_CLIENT ? SIGHT_CLIENT : SIGHT_TOKENS;
}

static int check_dates(const char *name, const struct vt_workload *w,
                       struct vt_err *err)
{
    if (w->n_undated == 0 || w->arrivals == VT_ARRIVALS_CLOSED)
        return VT_OK;
    return vt_fail(err, VT_EINPUT,
                   "%s: %zu of %zu requests have no arrival time, and it is no closed "
                   "loop: what was in flight can't be known",
                   name, w->n_undated, w->n);
}

/* One input, or one of the spans' captures. */
struct found {
    const char *name, *path; /* path NULL: of spans */
    const struct vt_otlp_capture *spans;
    const struct vt_steps *steps; /* NULL: none, as below */
    const struct vt_workload *work;
    enum sight sight;
};

static int add_capture(struct fit_job *j, const struct found *f, struct vt_err *err)
{
    const struct vt_workload *w = f->work;
    int rc = vt_grow(&j->seen, &j->cap_seen, j->n_seen + 1, sizeof(*j->seen), err);

    if (rc == VT_OK && !f->steps && w->measured)
        rc = check_dates(f->name, w, err);
    if (rc == VT_OK)
        rc = vt_fit_add(j->fit, f->name, f->steps, w, err);
    if (rc == VT_OK && f->spans)
        rc = vt_fit_moves(j->fit, vt_fit_count(j->fit) - 1, f->spans->kv,
                          f->spans->n_kv, err);
    if (rc == VT_OK)
        j->seen[j->n_seen++] = w;
    return rc;
}

/* Where some show the engine's steps, those that do not would only blur them. */
static int add_all(struct fit_job *j, struct found *f, size_t n, struct vt_err *err)
{
    enum sight best = SIGHT_NONE;
    int rc = VT_OK;

    for (size_t i = 0; i < n; i++) {
        f[i].sight = sight_of(f[i].steps, f[i].work);
        best = f[i].sight > best ? f[i].sight : best;
    }
    j->ends_only = n > 0 && best == SIGHT_NONE;
    /* One client's tokens alone are better than nothing to match them with. */
    j->by_simulation = j->ends_only || (n > 1 && best == SIGHT_CLIENT);
    for (size_t i = 0; i < n && rc == VT_OK; i++) {
        bool is_kept = f[i].sight == SIGHT_NONE     ? best == SIGHT_NONE
                       : f[i].sight == SIGHT_CLIENT ? best != SIGHT_STEPS
                                                    : true;

        if (is_kept)
            rc = add_capture(j, &f[i], err);
        else if (f[i].sight == SIGHT_NONE)
            vt_buf_printf(&j->notes,
                          "%s: only first and last tokens are known of its requests; "
                          "left out, since others have them all\n",
                          f[i].name);
        else
            vt_buf_printf(&j->notes,
                          "%s: its times were taken at a client; left out, since "
                          "others have the engine's own steps\n",
                          f[i].name);
    }
    return rc;
}

/* The data sets of regressions take all that there is; those of spans come last. */
static int add_data(struct fit_job *j, const struct fit_options *o,
                    const struct found *f, size_t n, struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < n && rc == VT_OK; i++) {
        rc = fit_regress_add(j, o, f[i].name, f[i].path, f[i].steps, f[i].work,
                             f[i].spans, err);
        j->n_data += rc == VT_OK;
    }
    return rc;
}

/* For the profile and its judgement: what shows steps. */
static int add_stepped(struct fit_job *j, const struct found *f, size_t n,
                       struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < n && rc == VT_OK; i++)
        if (f[i].steps)
            rc = add_capture(j, &f[i], err);
    return rc;
}

/* ---- OpenTelemetry ---------------------------------------------------- */

struct otlp_dir {
    struct vt_otlp *otlp;
    size_t found;
};

/* Every .json, .jsonl or .jsonl.gz that is no step log or trace. */
static int add_otlp_file(void *user, const char *file, struct vt_err *err)
{
    struct otlp_dir *d = user;
    enum vt_file kind = VT_FILE_OTHER;
    int rc;

    if (!vt_is_named(file, ".jsonl") && !vt_is_named(file, ".json"))
        return VT_OK;
    rc = vt_file_kind(file, &kind, err);
    if (rc != VT_OK || (kind != VT_FILE_SPANS && kind != VT_FILE_OTHER))
        return rc;
    d->found++;
    return vt_otlp_add_file(d->otlp, file, err);
}

static int add_otlp_dir(struct vt_otlp *otlp, const char *path, struct vt_err *err)
{
    struct otlp_dir d = {.otlp = otlp};
    int rc = vt_each_entry(path, add_otlp_file, &d, err);

    if (rc == VT_OK && d.found == 0)
        rc = vt_fail(err, VT_EINPUT, "%s: no .jsonl or .json in it", path);
    return rc;
}

/* Files that a flag names, and those among the operands: all of one run. */
static int read_otlp(struct fit_job *j, const struct fit_options *o, struct vt_err *err)
{
    struct vt_otlp_options options = {.step_time = o->step_time};
    const struct fit_inputs *f = &j->inputs;
    int rc = VT_OK;

    if (o->otlp.n == 0 && f->n_spans == 0)
        return VT_OK;
    rc = vt_otlp_new(&j->otlp, &options, err);
    for (size_t i = 0; i < o->otlp.n && rc == VT_OK; i++) {
        const char *path = o->otlp.value[i];

        rc = vt_is_directory(path) ? add_otlp_dir(j->otlp, path, err)
                                   : vt_otlp_add_file(j->otlp, path, err);
    }
    for (size_t i = 0; i < f->n_spans && rc == VT_OK; i++)
        rc = vt_otlp_add_file(j->otlp, f->spans[i], err);
    return rc ? rc : vt_otlp_finish(j->otlp, err);
}

/* ---- all of it -------------------------------------------------------- */

void fit_progress(const struct fit_options *o, const char *what, size_t i, size_t n)
{
    if (o->quiet && !o->progress)
        return;
    if (i < n)
        cli_progress_count(what, i, n);
    else
        cli_progress_end();
}

int fit_load(struct fit_job *j, const struct opt_args *a, struct vt_err *err)
{
    const struct fit_options *o = a->options;
    struct fit_inputs *f = &j->inputs;
    struct found *found = NULL;
    size_t n = 0;
    int rc;

    if ((rc = fit_find(f, a, err)) || (rc = read_otlp(j, o, err)) ||
        (rc = find_shape(j, o, err)) || (rc = vt_fit_new(&j->fit, &j->shape, err)))
        return rc;
    vt_buf_add(&j->notes, f->notes.data ? f->notes.data : "", f->notes.len);
    found =
        calloc(f->n + (j->otlp ? vt_otlp_captures(j->otlp) : 0) + 1, sizeof(*found));
    if (!found)
        return vt_nomem(err);
    for (size_t i = 0; i < f->n; i++)
        if (!f->in[i].gone)
            found[n++] = (struct found){
                .name = f->in[i].name,
                .path = f->in[i].path,
                .steps = f->in[i].steps.n > 0 ? &f->in[i].steps : NULL,
                .work = f->in[i].work.n > 0 ? &f->in[i].work : NULL,
            };
    for (size_t i = 0; j->otlp && i < vt_otlp_captures(j->otlp); i++) {
        const struct vt_otlp_capture *c = vt_otlp_capture(j->otlp, i);

        found[n++] = (struct found){
            .name = c->name,
            .spans = c,
            .steps = c->steps.n > 0 ? &c->steps : NULL,
            .work = c->work.n > 0 ? &c->work : NULL,
        };
    }
    rc = o->model == FIT_REGRESSION || o->alpha_csv || o->beta_csv
             ? add_data(j, o, found, n, err)
             : VT_OK;
    if (rc == VT_OK && o->model != FIT_REGRESSION)
        rc = add_all(j, found, n, err);
    else if (rc == VT_OK)
        rc = add_stepped(j, found, n, err);
    for (size_t i = 0; i < f->n; i++)
        vt_steps_free(&f->in[i].steps); /* the fit has its own copy */
    free(found);
    return rc;
}

void fit_free(struct fit_job *j)
{
    fit_inputs_free(&j->inputs);
    free(j->seen);
    free(j->left_out.row);
    free(j->left_out.calm);
    free(j->own.row);
    free(j->own.calm);
    vt_match_result_free(&j->matched);
    vt_match_free(j->match);
    for (int t = 0; t < VT_REGRESS_TARGETS; t++)
        vt_regress_free(&j->regress[t]);
    vt_regress_data_free(j->data);
    vt_buf_free(&j->model);
    vt_buf_free(&j->notes);
    vt_fit_free(j->fit);
    vt_otlp_free(j->otlp);
}
