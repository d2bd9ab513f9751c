/* graphs.c - which CUDA graphs an engine has. */
#include "model/model.h"

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

int vt_graphs_settle(struct vt_graphs *g, struct vt_err *err)
{
    uint32_t n = 0;

    if (g->n == 0)
        return VT_OK;
    qsort(g->size, g->n, sizeof(g->size[0]), by_size);
    for (uint32_t i = 0; i < g->n; i++)
        if (n == 0 || g->size[i] > g->size[n - 1])
            g->size[n++] = g->size[i];
    g->n = n;
    if (g->most > 0 && g->most != g->size[n - 1])
        return vt_fail(
            err, VT_EINPUT,
            "customized max_cudagraph_capture_size(=%u) should be consistent "
            "with the max value of cudagraph_capture_sizes(=%u)",
            g->most, g->size[n - 1]);
    g->most = g->size[n - 1];
    return VT_OK;
}

uint32_t vt_graphs_up_to(const struct vt_graphs *g, uint32_t tokens)
{
    uint32_t n = 0;

    if (g && g->none)
        return 0;
    if (g && g->n > 0) {
        while (n < g->n && g->size[n] <= tokens)
            n++;
        return n;
    }
    for (uint32_t size = 1; size <= tokens;
         size = size < 8 ? 2 * size : size + (size < 256 ? 8 : 16))
        n++;
    return n;
}
