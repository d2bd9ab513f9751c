/* latency_null.c - every step takes no time: measures the simulator itself. */
#include "model/params.h"

static void null_step(const struct vt_latency *m, const struct vt_step_shape *s,
                      struct vt_step_cost *cost)
{
    (void)m;
    (void)s;
    (void)cost; /* zeroes; the engine makes a nanosecond of it */
}

static const struct vt_latency_ops ops = {
    .name = "null",
    .step = null_step,
};

static int null_open(struct vt_latency **out, const struct vt_node *params,
                     struct vt_err *err)
{
    static const char *const none[] = {NULL};
    int rc = vt_only_keys(params, none, err);

    if (rc != VT_OK)
        return rc;
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return vt_nomem(err);
    (*out)->ops = &ops;
    return VT_OK;
}

const struct vt_model_kind model_null = {
    .name = "null",
    .help = "every step takes one nanosecond: the cost of vtwin itself",
    .example = "null:",
    .open = null_open,
};
