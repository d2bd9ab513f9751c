/* fit_regress.c - `vtwin fit` by regression: both data sets, their coefficients, and
 * what the formulas make of them. */
#include <math.h>
#include <unistd.h>

#include "cli/cmd/fit.h"

/* ---- what captures ran on ------------------------------------------------- */

struct known { /* kept while a capture is added */
    struct vt_arch arch;
    struct vt_gpu gpu;
    struct vt_regress_engine e;
};

/* A config.json beside the capture's file speaks for it. */
static bool find_beside(struct vt_arch *arch, const char *path)
{
    const char *slash = strrchr(path, '/');
    struct vt_buf at = {0};
    struct vt_err ignored;
    bool found;

    vt_buf_printf(&at, "%.*sconfig.json", slash ? (int)(slash + 1 - path) : 0, path);
    found = !at.failed && access(at.data, R_OK) == 0 &&
            vt_arch_load(arch, at.data, &ignored) == VT_OK;
    vt_buf_free(&at);
    return found;
}

/* By flags, else by what the capture says, else by what lies beside it. */
static int find_engine(struct known *k, const struct fit_options *o,
                       const struct vt_meta *m, const char *path, struct vt_err *err)
{
    struct fit_engine e = fit_engine_of(o, m);
    bool has_arch = false, has_gpu = false;
    int rc = VT_OK;

    if (o->hf_config && (rc = vt_arch_load(&k->arch, e.model, err)))
        return vt_within(err, rc, "--hf-config");
    has_arch = o->hf_config ||
               (e.model && vt_arch_load(&k->arch, e.model, NULL) == VT_OK) ||
               find_beside(&k->arch, path);
    if (o->gpu && (rc = vt_gpu_find(&k->gpu, e.gpu, o->hw, err)))
        return vt_within(err, rc, "--gpu");
    has_gpu = o->gpu || (e.gpu && vt_gpu_find(&k->gpu, e.gpu, o->hw, NULL) == VT_OK);
    k->e = (struct vt_regress_engine){
        .model = e.model,
        .gpu = has_gpu ? k->gpu.name : e.gpu,
        .arch = has_arch ? &k->arch : NULL,
        .hardware = has_gpu ? &k->gpu : NULL,
        .tp = e.tp,
        .max_num_seqs = m ? m->max_num_seqs : 0,
        .num_gpu_blocks = m ? m->num_gpu_blocks : 0,
    };
    return VT_OK;
}

int fit_regress_add(struct fit_job *j, const struct fit_options *o, const char *name,
                    const char *path, const struct vt_steps *steps,
                    const struct vt_workload *w, const struct vt_otlp_capture *spans,
                    struct vt_err *err)
{
    struct known k;
    int rc = j->data ? VT_OK : vt_regress_data_new(&j->data, o->warmup, err);

    if (rc == VT_OK)
        rc = find_engine(&k, o, w ? &w->meta : NULL, path ? path : "", err);
    return rc ? rc : vt_regress_data_add(j->data, name, &k.e, steps, spans, err);
}

/* ---- learning -------------------------------------------------------------- */

static int solve(struct fit_job *j, const struct fit_options *o,
                 enum vt_regress_target t, struct vt_err *err)
{
    struct vt_regress_options options = {
        .learner = o->learner,
        .degree = o->degree,
        .lambda = o->lambda > 0 ? o->lambda : NAN,
        .hold_out = o->hold_out,
        .terms = t == VT_REGRESS_STEP    ? o->beta_terms
                 : t == VT_REGRESS_QUEUE ? o->alpha_terms
                                         : NULL,
    };
    int rc;

    if (vt_regress_data_rows(j->data, t) == 0)
        return VT_OK;
    rc = vt_regress_solve(&j->regress[t], j->data, t, &options, err);
    j->regressed[t] = rc == VT_OK;
    return rc;
}

int fit_regress(struct fit_job *j, const struct fit_options *o, struct vt_err *err)
{
    int rc = VT_OK;

    if (!j->data)
        return vt_fail(err, VT_EINPUT, "there is nothing to regress");
    for (int t = 0; t < VT_REGRESS_TARGETS && rc == VT_OK; t++)
        rc = solve(j, o, (enum vt_regress_target)t, err);
    if (rc != VT_OK)
        return rc;
    if (j->regressed[VT_REGRESS_STEP])
        vt_regress_model(
            &j->model, j->data, &j->regress[VT_REGRESS_STEP],
            j->regressed[VT_REGRESS_ARRIVE] ? &j->regress[VT_REGRESS_ARRIVE] : NULL);
    else if (o->out)
        return vt_fail(err, VT_EINPUT,
                       "no step can be seen in these captures, and a profile needs "
                       "them");
    return j->model.failed ? vt_nomem(err) : VT_OK;
}

/* ---- telling ---------------------------------------------------------------- */

static const struct vt_regress *found(const struct fit_job *j, enum vt_regress_target t)
{
    return j->regressed[t] ? &j->regress[t] : NULL;
}

int fit_regress_put(struct vt_buf *b, const struct fit_job *j, struct vt_err *err)
{
    const struct vt_formulas f = {.data = j->data,
                                  .queue = found(j, VT_REGRESS_QUEUE),
                                  .arrive = found(j, VT_REGRESS_ARRIVE),
                                  .step = found(j, VT_REGRESS_STEP),
                                  .model = j->model.data};
    size_t n = j->otlp ? vt_otlp_captures(j->otlp) : 0;
    int rc = VT_OK;

    for (int t = 0; t < VT_REGRESS_TARGETS; t++)
        if (j->regressed[t]) {
            if (b->len > 0)
                vt_buf_char(b, '\n');
            vt_regress_put(b, &j->regress[t]);
        }
    /* Captures of spans were added last. */
    for (size_t i = 0; i < n && f.step && rc == VT_OK; i++) {
        const struct vt_otlp_capture *c = vt_otlp_capture(j->otlp, i);

        if (c->steps.n == 0 || c->n_journeys == 0)
            continue;
        vt_buf_char(b, '\n');
        rc = vt_formulas_put(b, &f, j->n_data - n + i, c, err);
    }
    return rc;
}

/* What the profile says of where its coefficients are from. */
void fit_regress_learned(struct vt_buf *b, const struct fit_job *j)
{
    static const char *const keys[] = {"alpha", "arrive", "beta"};
    struct vt_jw w;

    vt_jw_init(&w, b, NULL);
    vt_jw_map(&w, NULL);
    for (int t = 0; t < VT_REGRESS_TARGETS; t++)
        if (j->regressed[t])
            vt_regress_json(&w, keys[t], &j->regress[t]);
    vt_jw_end(&w);
}

int fit_regress_csv(const struct fit_job *j, const struct fit_options *o,
                    struct vt_err *err)
{
    const struct {
        const char *path;
        enum vt_regress_target rows;
        void (*put)(const struct vt_regress_data *d, struct vt_buf *b);
    } set[] = {{o->alpha_csv, VT_REGRESS_QUEUE, vt_regress_data_alpha_csv},
               {o->beta_csv, VT_REGRESS_STEP, vt_regress_data_beta_csv}};
    int rc = VT_OK;

    for (size_t i = 0; i < VT_COUNT(set) && rc == VT_OK; i++) {
        struct vt_buf b = {0};

        if (!set[i].path)
            continue;
        if (!j->data || vt_regress_data_rows(j->data, set[i].rows) == 0)
            return vt_fail(err, VT_EINPUT, "%s: no %s can be seen in these captures",
                           set[i].path, i == 0 ? "request in the queue" : "step");
        set[i].put(j->data, &b);
        rc = b.failed ? vt_nomem(err) : vt_write_file(set[i].path, &b, err);
        vt_buf_free(&b);
    }
    return rc;
}
