/* search_model.c - a step model for an engine that was not captured.
 *
 * Halving a KV element halves what decoding reads of the context. n GPUs share weights,
 * matrices and KV heads, so what is proportional to those is divided by n; to it comes
 * what they tell each other: two all-reduces a layer. How long the host takes stays. */
#include <string.h>

#include "tune/tune_search.h"

#define REDUCE_US 8.0 /* one all-reduce of few bytes over NVLink: assumed */

static struct vt_step_scaling scaling_of(const struct vt_site *site, uint32_t from,
                                         uint32_t to)
{
    const struct vt_arch *a = site->arch;
    double measured = site->measured_kv_bytes > 0 ? site->measured_kv_bytes : 2;
    double element = site->kv_element_bytes > 0 ? site->kv_element_bytes : measured;
    struct vt_step_scaling s = {.share = (double)from / to};

    s.context = element / measured * s.share;
    if (from != to && to > 1 && a) {
        double n = to, sent = 2.0 * a->layers * a->hidden * 2.0 * 2 * (n - 1) / n;
        double link = site->gpu->link_gbs > 0 ? site->gpu->link_gbs / 2 : 25;

        s.step_us = 2.0 * a->layers * REDUCE_US;
        s.token_us = sent / (link * 1e3);
    }
    return s;
}

int search_model(struct vt_latency **out, const struct vt_site *site, uint32_t tp,
                 struct vt_err *err)
{
    const struct vt_node *model =
        site->profile ? vt_get(site->profile->root, "model") : NULL;
    const char *kind = "";
    struct vt_step_scaling c;
    struct vt_step_params p;
    uint32_t from = 1;
    int rc;

    *out = NULL;
    if ((rc = vt_get_u32(site->profile ? site->profile->engine : NULL,
                         "tensor_parallel_size", VT_OPTIONAL, 1, 1024, &from, err)) ||
        (rc = vt_get_str(model, "kind", VT_OPTIONAL, &kind, err)))
        return rc;
    c = scaling_of(site, from, tp);
    if (tp == from && c.context == 1)
        return VT_OK;
    if (site->model || strcmp(kind, "step") != 0)
        return vt_fail(err, VT_EINPUT,
                       "other GPUs per engine or KV elements than the profile's need "
                       "a profile of kind 'step'");
    if (tp != from && !site->arch)
        return vt_fail(err, VT_EINPUT,
                       "tensor-parallel-size %u: the model's sizes are not known; give "
                       "--hf-config",
                       tp);
    vt_step_params_init(&p);
    if ((rc = vt_step_params_read(&p, vt_get(model, "params"), err)))
        return rc;
    vt_step_scale(&p, &c);
    return vt_step_open(out, &p, err);
}
