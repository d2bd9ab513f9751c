/* fit_model.c - captures of one model as what estimates are compared with. */
#include <unistd.h>

#include "cli/cmd/fit.h"

enum { LONGEST_PATH = 4096 };

/* What its captures say they ran on. */
static int ask_captures(struct fit_model *m, const char *draft, struct vt_err *err)
{
    const struct vt_meta *meta = vt_fit_engine(m->job.fit);
    int rc;

    if (!meta->gpu)
        return vt_fail(err, VT_EINPUT, "its captures do not state their GPU");
    if ((rc = vt_gpu_find(&m->gpu, meta->gpu, NULL, err)))
        return rc;
    m->q = (struct vt_estimate_query){
        .arch = &m->arch,
        .gpu = &m->gpu,
        .tp = meta->tp,
        .kv_bytes = vt_kv_dtype_bytes(meta->kv_cache_dtype),
    };
    if (meta->num_speculative_tokens == 0 || access(draft, R_OK) != 0)
        return VT_OK;
    m->q.draft = &m->draft;
    m->q.drafts = meta->num_speculative_tokens;
    return vt_arch_load(&m->draft, draft, err);
}

static int load(struct fit_model *m, const char *path, const char *config,
                struct vt_err *err)
{
    struct fit_options o = {.tp = 1, .hf_config = config, .quiet = true};
    struct opt_args a = {.options = &o, .operand = &path, .n_operands = 1};
    int rc = fit_load(&m->job, &a, err);

    return rc ? rc : vt_fit_agree(m->job.fit, NULL, &m->job.notes, err);
}

/* The captures are read for their model's name, and then again as that model's. */
static int named_model(struct fit_model *m, const char *path, char config[LONGEST_PATH],
                       struct vt_err *err)
{
    const char *name;
    int rc = load(m, path, NULL, err);

    if (rc != VT_OK)
        return rc;
    name = vt_fit_engine(m->job.fit)->model;
    (void)snprintf(config, LONGEST_PATH, "%s", name ? name : "");
    fit_free(&m->job);
    m->job = (struct fit_job){0};
    return *config
               ? VT_OK
               : vt_fail(err, VT_EINPUT,
                         "%s: its captures do not state their model, and there is no "
                         "config.json",
                         path);
}

int fit_model_open(struct fit_model *m, const char *path, struct vt_err *err)
{
    char config[LONGEST_PATH], draft[LONGEST_PATH];
    int rc = VT_OK;

    (void)snprintf(config, sizeof(config), "%s/config.json", path);
    (void)snprintf(draft, sizeof(draft), "%s/draft-config.json", path);
    if (access(config, R_OK) != 0)
        rc = named_model(m, path, config, err);
    if (rc || (rc = vt_arch_load(&m->arch, config, err)) ||
        (rc = load(m, path, config, err)))
        return rc;
    return vt_within(err, ask_captures(m, draft, err), "%s", path);
}

int fit_host_speed(const char *path, double *speed, struct vt_err *err)
{
    struct fit_model m = {0};
    struct vt_law law;
    double slower = 1;
    int rc = fit_model_open(&m, path, err);

    if (rc == VT_OK && (rc = vt_law_load(&law, err)) == VT_OK)
        rc = vt_law_host(&law, m.job.fit, &m.q, &slower, err);
    *speed = 1 / slower;
    fit_free(&m.job);
    return rc;
}
