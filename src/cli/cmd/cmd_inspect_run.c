/* cmd_inspect_run.c - simulates a capture's requests with one model after another. */
#include <math.h>

#include "cli/cmd/inspect.h"
#include "cli/cmd/simulate.h"

/* ---- the capture ------------------------------------------------------ */

int inspect_case_open(struct inspect_case *c, const char *path,
                      const struct opt_args *a, struct vt_err *err)
{
    int rc;

    *c = (struct inspect_case){.path = path, .args = a};
    rc = vt_records_load(&c->records, path, err);
    if (rc == VT_OK)
        rc = vt_view_records(&c->captured, &c->records, err);
    c->captured.label = c->records.meta.simulated ? "simulated" : "captured";
    return rc;
}

void inspect_case_close(struct inspect_case *c)
{
    for (size_t i = 0; i < c->n; i++)
        vt_view_free(&c->model[i].view);
    free(c->model);
    vt_view_free(&c->captured);
    vt_records_free(&c->records);
}

/* ---- one model -------------------------------------------------------- */

static int view_request(void *user, const struct vt_served *s, struct vt_err *err)
{
    return vt_view_served(user, s->index, s, err);
}

static int view_step(void *user, const struct vt_step_line *s, struct vt_err *err)
{
    return vt_view_step(user, s, err);
}

/* What timed it, for people. */
static void name_chosen(char *out, size_t cap, const struct engine_job *e)
{
    if (e->basis == VT_MEASURED)
        (void)snprintf(out, cap, "step: %s", e->timed_by);
    else
        (void)snprintf(out, cap, "step: %.60s, %s", e->label, vt_basis_names[e->basis]);
}

/* What is to be run, as flags of simulate that end with NULL. */
struct how {
    const char *const *flag;
    const struct vt_latency *own; /* in place of the model that they name; or NULL */
    const char *label;            /* NULL: what simulate chose */
    bool fitted; /* to the capture: what was said of model and GPU is not for it */
};

/* `--trace PATH --compare FLAG...`, and the engine as inspect was told. */
static int put_words(struct opt_words *w, const struct inspect_case *c,
                     const struct how *h, struct vt_err *err)
{
    const struct inspect_options *o = c->args->options;
    int rc;

    if ((rc = opt_word_put(w, err, "--trace=%s", c->path)) ||
        (rc = opt_word_add(w, "--compare", err)) ||
        (rc = opt_word_put(w, err, "--seed=%lld", (long long)o->seed)))
        return rc;
    for (const char *const *flag = h->flag; *flag && rc == VT_OK; flag++)
        rc = opt_word_add(w, *flag, err);
    if (rc == VT_OK && !h->fitted)
        rc = opt_repeat(c->args, model_rows, w, err);
    return rc == VT_OK ? opt_repeat(c->args, engine_rows, w, err) : rc;
}

static void name_model(struct inspect_model *m, const struct inspect_case *c,
                       const struct how *h, const struct engine_job *e)
{
    size_t len;

    if (h->label)
        snprintf(m->label, sizeof(m->label), "%s", h->label);
    else
        name_chosen(m->label, sizeof(m->label), e);
    len = strnlen(m->label, sizeof(m->label));
    if (e->has_profile && !h->own &&
        vt_profile_saw(&e->profile, c->path, &c->records.meta))
        snprintf(m->label + len, sizeof(m->label) - len, ", in-sample");
}

/* As `vtwin simulate` with those words. */
static int run_model(struct inspect_case *c, const struct how *h, struct vt_err *err)
{
    struct opt_args a = {0};
    struct vt_arena arena = {0};
    struct opt_words words = {.arena = &arena};
    struct vt_sim_sink sink = {.request = view_request, .step = view_step};
    struct simulate_job j = {0};
    struct inspect_model *m;
    int rc = vt_grow(&c->model, &c->cap, c->n + 1, sizeof(*c->model), err);

    if (rc == VT_OK)
        rc = put_words(&words, c, h, err);
    if (rc == VT_OK)
        rc = opt_parse(&a, &cmd_simulate, (int)words.n, words.word, err);
    if (rc == VT_OK) {
        m = &c->model[c->n++];
        *m = (struct inspect_model){0};
        rc = simulate_job_open(&j, &a, err);
        if (h->own)
            j.spec.model = h->own;
        sink.user = &m->view;
        j.spec.sink = &sink;
        m->measured = j.measured;
        if (rc == VT_OK)
            rc = vt_view_reserve(&m->view, j.workload.n, err);
        if (rc == VT_OK)
            rc = vt_sim_run(&j.spec, &m->summary, err);
        name_model(m, c, h, &j.engine);
        simulate_job_close(&j);
    }
    for (size_t i = 0; i < c->n; i++) /* the array may have moved */
        c->model[i].view.label = c->model[i].label;
    opt_free(&a);
    vt_arena_free(&arena);
    return rc;
}

static int add_profile(struct inspect_case *c, const char *profile, struct vt_err *err)
{
    struct vt_profile p;
    char label[96];
    int rc = vt_profile_open(&p, profile, err);

    if (rc != VT_OK)
        return rc;
    snprintf(label, sizeof(label), "%s: %s", p.model->ops->name, p.name);
    vt_profile_close(&p);
    return run_model(
        c,
        &(struct how){.flag = (const char *const[]){"--profile", profile, NULL},
                      .label = label},
        err);
}

static int add_model(struct inspect_case *c, const char *text, struct vt_err *err)
{
    char label[96];

    snprintf(label, sizeof(label), strlen(text) > 60 ? "%.57s..." : "%s", text);
    return run_model(
        c,
        &(struct how){.flag = (const char *const[]){"--latency", text, NULL},
                      .label = label},
        err);
}

/* ---- which profile ---------------------------------------------------- */

/* What simulate takes for the captured model and GPU; where those are not known, the
 * default profile. */
static int add_chosen(struct inspect_case *c, struct vt_err *err)
{
    const struct vt_meta *m = &c->records.meta;
    const char *flag[] = {"--hf-config", m->model, "--gpu", m->gpu, NULL, NULL, NULL};
    const struct inspect_options *o = c->args->options;
    struct vt_arch arch;
    struct vt_gpu gpu;
    char tp[16];

    if (o->engine.hf_config && o->engine.gpu)
        return run_model(c, &(struct how){.flag = (const char *const[]){NULL}}, err);
    if (!m->model || !m->gpu || vt_arch_load(&arch, m->model, NULL) != VT_OK ||
        vt_gpu_find(&gpu, m->gpu, NULL, NULL) != VT_OK)
        return add_profile(c, VT_DEFAULT_PROFILE, err);
    if (m->tp > 0) {
        (void)snprintf(tp, sizeof(tp), "%u", m->tp);
        flag[4] = "--tensor-parallel-size";
        flag[5] = tp;
    }
    return run_model(c, &(struct how){.flag = flag}, err);
}

int inspect_add_given(struct inspect_case *c, const struct inspect_options *o,
                      struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < o->profiles.n && rc == VT_OK; i++)
        rc = add_profile(c, o->profiles.value[i], err);
    for (size_t i = 0; i < o->models.n && rc == VT_OK; i++)
        rc = add_model(c, o->models.value[i], err);
    for (size_t i = 0; i < o->old_models.n && rc == VT_OK; i++)
        rc = add_model(c, o->old_models.value[i], err);
    return rc != VT_OK || c->n > 0 ? rc : add_chosen(c, err);
}

/* ---- models fitted to the capture ------------------------------------- */

int inspect_add_trace_fit(struct inspect_case *c, struct vt_err *err)
{
    struct vt_node file = {.kind = VT_STR,
                           .n = (uint32_t)strlen(c->path),
                           .key = "file",
                           .u.str = c->path};
    struct vt_node map = {.kind = VT_MAP, .n = 1, .u.item = &file};
    struct vt_latency *m = NULL;
    int rc = vt_model_find("trace")->open(&m, &map, err);

    if (rc == VT_OK)
        rc = run_model(
            c,
            &(struct how){.flag = (const char *const[]){"--latency", "null:", NULL},
                          .own = m,
                          .label = "trace, fitted on this capture",
                          .fitted = true},
            err);
    vt_latency_close(m);
    return rc;
}

struct moments {
    double mean, sd;
};

static int captured_moments(const struct inspect_case *c, enum vt_metric metric,
                            struct moments *out, struct vt_err *err)
{
    double *ms = NULL;
    size_t n = 0;
    int rc = vt_view_samples(&c->captured, metric, &ms, &n, err);

    *out = (struct moments){0};
    for (size_t i = 0; i < n && rc == VT_OK; i++)
        out->mean += ms[i] / (double)n;
    for (size_t i = 0; i < n && rc == VT_OK; i++)
        out->sd += (ms[i] - out->mean) * (ms[i] - out->mean);
    out->sd = rc == VT_OK && n > 1 ? sqrt(out->sd / (double)(n - 1)) : 0;
    free(ms);
    return rc;
}

int inspect_add_knob_fit(struct inspect_case *c, struct vt_err *err)
{
    struct moments ttft, itl;
    char text[256];
    int rc = captured_moments(c, VT_TTFT, &ttft, err);

    if (rc == VT_OK)
        rc = captured_moments(c, VT_ITL, &itl, err);
    if (rc != VT_OK)
        return rc;
    snprintf(text, sizeof(text),
             "knob:time_to_first_token=%.6f,time_to_first_token_std_dev=%.6f,"
             "inter_token_latency=%.6f,inter_token_latency_std_dev=%.6f",
             ttft.mean, ttft.sd, itl.mean, itl.sd);
    return run_model(
        c,
        &(struct how){.flag = (const char *const[]){"--latency", text, NULL},
                      .label = "knob, best fit",
                      .fitted = true},
        err);
}
