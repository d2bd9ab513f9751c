/* start.c - what the page needs to begin: what there is to choose from, and what was
 * chosen on the command line. */
#include <string.h>

#include "explore/parts.h"
#include "model/model.h"
#include "sim/sim.h"

static int put_model(void *user, const char *name, const struct vt_arch *a,
                     struct vt_err *err)
{
    struct vt_jw *w = user;

    (void)err;
    vt_jw_row(w, NULL);
    vt_jw_str(w, "name", name);
    vt_jw_f64(w, "parameters", vt_arch_params(a));
    vt_jw_f64(w, "weight_bits", 8 * a->weight_bytes);
    vt_jw_u64(w, "experts", (uint64_t)a->experts);
    vt_jw_end(w);
    return VT_OK;
}

static void put_gpus(struct vt_jw *w)
{
    struct vt_gpu g;

    vt_jw_list(w, "gpus");
    for (size_t at = 0; vt_gpu_next(&at, &g);) {
        vt_jw_row(w, NULL);
        vt_jw_str(w, "name", g.name);
        vt_jw_f64(w, "memory_gb", g.memory_gb);
        vt_jw_f64(w, "bandwidth_tb_per_s", g.bandwidth_tbs);
        vt_jw_end(w);
    }
    vt_jw_end(w);
}

static void put_workloads(struct vt_jw *w)
{
    struct vt_builtin_workload b;

    vt_jw_list(w, "workloads");
    for (size_t at = 0; vt_builtin_workload_next(&at, &b);) {
        vt_jw_row(w, NULL);
        vt_jw_str(w, "name", b.name);
        vt_jw_str(w, "about", b.about);
        vt_jw_end(w);
    }
    vt_jw_end(w);
}

static void put_questions(struct vt_jw *w)
{
    vt_jw_list(w, "questions");
    for (const struct question *q = questions; q->path; q++) {
        vt_jw_row(w, NULL);
        vt_jw_str(w, "path", q->path);
        vt_jw_str(w, "about", q->about);
        vt_jw_end(w);
    }
    vt_jw_end(w);
}

/* A page always names model and GPU, unless something else says what times steps. */
static int put_state(struct vt_jw *w, const struct vt_explore *x, struct vt_err *err)
{
    static const char *const timing[] = {"profile", "latency", "hf-config",
                                         "hf-config-path", NULL};
    const char *model = NULL, *gpu = NULL;
    bool has_model = false, has_gpu = false;
    struct vt_profile p;
    int rc = vt_profile_open(&p, VT_DEFAULT_PROFILE, err);

    if (rc != VT_OK)
        return rc;
    for (size_t i = 0; i < x->n_start; i++) {
        const char *name = x->start[i].name;

        has_model |= !name || vt_is_one_of(name, timing);
        has_gpu |= name && (strcmp(name, "gpu") == 0 || vt_is_one_of(name, timing));
    }
    vt_jw_row(w, "state");
    if (!has_model && !(rc = vt_get_str(p.engine, "model", VT_REQUIRED, &model, err)))
        vt_jw_str(w, "model", model);
    if (rc == VT_OK && !has_gpu &&
        !(rc = vt_get_str(p.engine, "gpu", VT_REQUIRED, &gpu, err)))
        vt_jw_str(w, "gpu", gpu);
    for (size_t i = 0; i < x->n_start; i++)
        if (flag_is_free(&x->start[i]))
            vt_jw_str(w, x->start[i].name ? x->start[i].name : "model",
                      x->start[i].value ? x->start[i].value : "on");
    vt_jw_end(w);
    vt_profile_close(&p);
    return rc;
}

static void put_fixed(struct vt_jw *w, const struct vt_explore *x)
{
    vt_jw_list(w, "fixed");
    for (size_t i = 0; i < x->n_start; i++)
        if (!flag_is_free(&x->start[i])) {
            vt_jw_row(w, NULL);
            vt_jw_str(w, "flag", x->start[i].name ? x->start[i].name : "model");
            vt_jw_str(w, "value", x->start[i].value);
            vt_jw_end(w);
        }
    vt_jw_end(w);
}

int question_start(struct vt_buf *b, const struct vt_explore *x, struct vt_err *err)
{
    struct vt_jw w;
    int rc;

    vt_jw_init(&w, b, &vt_json_pretty);
    vt_jw_map(&w, NULL);
    vt_jw_str(&w, "version", VT_VERSION);
    if ((rc = put_state(&w, x, err)))
        return rc;
    put_fixed(&w, x);
    vt_jw_list(&w, "models");
    if ((rc = vt_arch_each_known(put_model, &w, err)))
        return rc;
    vt_jw_end(&w);
    put_gpus(&w);
    put_workloads(&w);
    put_questions(&w);
    vt_jw_end(&w);
    vt_buf_char(b, '\n');
    return b->failed ? vt_nomem(err) : VT_OK;
}
