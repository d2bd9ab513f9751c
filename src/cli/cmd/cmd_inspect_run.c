/* cmd_inspect_run.c - simulates a capture's requests with one model after another. */
#include <math.h>

#include "cli/cmd/inspect.h"
#include "cli/cmd/simulate.h"

/* ---- the capture ------------------------------------------------------ */

int inspect_case_open(struct inspect_case *c, const char *path, int64_t seed,
                      struct vt_err *err)
{
    int rc;

    *c = (struct inspect_case){.path = path, .seed = (uint64_t)seed};
    rc = vt_records_load(&c->records, path, err);
    if (rc == VT_OK)
        rc = vt_view_records(&c->captured, &c->records, err);
    c->captured.label = "captured";
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

/* As `vtwin simulate --trace PATH --compare FLAG VALUE` would run it; `own` takes the
 * place of the model that the flags name. */
static int run_model(struct inspect_case *c, const char *flag, const char *value,
                     const struct vt_latency *own, const char *label,
                     struct vt_err *err)
{
    char seed[32];
    const char *const argv[] = {"--trace", c->path, "--compare", "--seed",
                                seed,      flag,    value};
    struct opt_args a = {0};
    struct vt_sim_sink sink = {.request = view_request, .step = view_step};
    struct simulate_job j = {0};
    struct inspect_model *m;
    int rc = vt_grow(&c->model, &c->cap, c->n + 1, sizeof(*c->model), err);

    snprintf(seed, sizeof(seed), "%llu", (unsigned long long)c->seed);
    if (rc == VT_OK)
        rc = opt_parse(&a, &cmd_simulate, VT_COUNT(argv), argv, err);
    if (rc == VT_OK) {
        m = &c->model[c->n++];
        *m = (struct inspect_model){0};
        rc = simulate_job_open(&j, &a, err);
        if (own)
            j.spec.model = own;
        sink.user = &m->view;
        j.spec.sink = &sink;
        m->measured = j.measured;
        if (rc == VT_OK)
            rc = vt_view_reserve(&m->view, j.workload.n, err);
        if (rc == VT_OK)
            rc = vt_sim_run(&j.spec, &m->summary, err);
        snprintf(m->label, sizeof(m->label), "%s", label);
        simulate_job_close(&j);
    }
    for (size_t i = 0; i < c->n; i++) /* the array may have moved */
        c->model[i].view.label = c->model[i].label;
    opt_free(&a);
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
    return run_model(c, "--profile", profile, NULL, label, err);
}

static int add_model(struct inspect_case *c, const char *text, struct vt_err *err)
{
    char label[96];

    snprintf(label, sizeof(label), strlen(text) > 60 ? "%.57s..." : "%s", text);
    return run_model(c, "--model", text, NULL, label, err);
}

/* ---- which profile ---------------------------------------------------- */

static bool made_for(const struct vt_builtin *f, const struct vt_meta *m)
{
    struct vt_arena a = {0};
    const struct vt_node *root, *engine;
    const char *model = "", *gpu = NULL;
    struct vt_err ignored;
    bool found = false;

    if (vt_json_parse(&a, f->text, f->len, 1, &root, &ignored) == VT_OK) {
        engine = vt_get(root, "engine");
        found = vt_get_str(engine, "model", VT_OPTIONAL, &model, &ignored) == VT_OK &&
                vt_get_str(engine, "gpu", VT_OPTIONAL, &gpu, &ignored) == VT_OK &&
                m->model && strcmp(model, m->model) == 0 &&
                (!gpu || !m->gpu || strcmp(gpu, m->gpu) == 0);
    }
    vt_arena_free(&a);
    return found;
}

int inspect_add_given(struct inspect_case *c, const struct inspect_options *o,
                      struct vt_err *err)
{
    char chosen[128] = VT_DEFAULT_PROFILE;
    const struct vt_builtin *f;
    size_t n;
    int rc = VT_OK;

    for (size_t i = 0; i < o->profiles.n && rc == VT_OK; i++)
        rc = add_profile(c, o->profiles.value[i], err);
    for (size_t i = 0; i < o->models.n && rc == VT_OK; i++)
        rc = add_model(c, o->models.value[i], err);
    if (rc != VT_OK || c->n > 0)
        return rc;
    /* The built-in profile of the captured model and GPU, else the default one. */
    f = vt_builtins(&n);
    for (size_t i = 0; i < n; i++) {
        if (!vt_builtin_is_profile(&f[i]) || !made_for(&f[i], &c->records.meta))
            continue;
        snprintf(chosen, sizeof(chosen), "%.*s",
                 (int)(strlen(f[i].name) - strlen(".json")), f[i].name);
        break;
    }
    return add_profile(c, chosen, err);
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
        rc = run_model(c, "--model", "null:", m, "trace, fitted on this capture", err);
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
    return run_model(c, "--model", text, NULL, "knob, best fit", err);
}
