/* front.c - what stands between clients and an engine, and what it adds to times.
 *
 * Measured on the hosts of H200s with vLLM 0.26.0. To add one: a row here, its name in
 * docs/simulate.md with where its numbers come from. */
#include "model/params.h"

static const struct vt_front frontends[] = {
    {.name = "none"},
    /* 420 requests over HTTP of c1, c16, r16 and cold of h200-tap: the engine's log,
     * a recorder's and the client's times of each. Only the sum of in and out is
     * measured; it is shared out as the frontend's own arrival times suggest. */
    {.name = "vllm-rs",
     .in_us = 300,
     .in_ktoken_us = 100,
     .tap_us = 150,
     .tap_row_us = 24,
     .out_us = 330,
     .out_row_us = 13,
     .client_us = 40,
     .next_us = 15,
     .noise = 0.2},
    /* 646 requests over HTTP to `vllm serve` in closed loops of 1, 16 and 64 and at
     * random times: logs of engine and frontend beside the client's times, as
     * bench/clocks reads them. What in_us has is what HTTP adds to an in-process call,
     * from which the engine times of shipped profiles count. */
    {.name = "python",
     .in_us = 1800,
     .in_ktoken_us = 220,
     .read_us = 850,
     .pass_us = 250,
     .tap_us = 150,
     .tap_row_us = 24,
     .out_us = 950,
     .out_row_us = 19,
     .client_us = 70,
     .next_us = 160,
     .noise = 0.2},
};

const char *const vt_front_names[] = {"none", "vllm-rs", "python", NULL};

const struct vt_front *vt_front_find(const char *name)
{
    for (size_t i = 0; i < VT_COUNT(frontends); i++)
        if (strcmp(frontends[i].name, name) == 0)
            return &frontends[i];
    return NULL;
}

int front_read(struct vt_front *f, const struct vt_node *node, struct vt_err *err)
{
#define NUMBER(field, hi)                               \
    {                                                   \
        #field, offsetof(struct vt_front, field), 0, hi \
    }
    static const struct param numbers[] = {
        NUMBER(in_us, PARAM_MAX),
        NUMBER(in_ktoken_us, PARAM_MAX),
        NUMBER(read_us, PARAM_MAX),
        NUMBER(pass_us, PARAM_MAX),
        NUMBER(tap_us, PARAM_MAX),
        NUMBER(tap_row_us, PARAM_MAX),
        NUMBER(out_us, PARAM_MAX),
        NUMBER(out_row_us, PARAM_MAX),
        NUMBER(client_us, PARAM_MAX),
        NUMBER(next_us, PARAM_MAX),
        NUMBER(noise, 3),
        {NULL, 0, 0, 0},
    };
    static const char *const also[] = {"kind", NULL};
    const char *kind = NULL;
    int rc;

    if (node->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "line %u: field 'frontend' must be an object",
                       node->line);
    if ((rc = vt_get_str(node, "kind", VT_REQUIRED, &kind, err)))
        return rc;
    if (!vt_front_find(kind))
        return vt_fail(err, VT_EINPUT,
                       "line %u: no frontend '%s'; there are none, vllm-rs and python",
                       node->line, kind);
    *f = *vt_front_find(kind);
    return params_read(node, numbers, also, f, err);
}
