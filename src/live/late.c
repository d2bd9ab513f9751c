/* late.c - how late messages leave, in bounded memory. */
#include "live/live.h"

static uint32_t cell_of(vt_ns ns)
{
    uint64_t v = ns > 0 ? (uint64_t)ns : 0;
    uint32_t power = 0;

    while (v >= 32) {
        v >>= 1;
        power++;
    }
    return v < 16 ? (uint32_t)v : 16 * power + (uint32_t)v;
}

static vt_ns end_of(uint32_t cell)
{
    return cell < 32 ? (vt_ns)cell : (vt_ns)(cell % 16 + 17) << (cell / 16 - 1);
}

void vt_late_add(struct vt_late *l, vt_ns ns)
{
    l->cell[cell_of(ns)]++;
    l->n++;
    if (ns > l->max)
        l->max = ns;
}

vt_ns vt_late_at(const struct vt_late *l, double share)
{
    uint64_t sum = 0, want = (uint64_t)((double)l->n * share);

    for (uint32_t i = 0; i < VT_LATE_CELLS; i++) {
        sum += l->cell[i];
        if (sum > want)
            return end_of(i) < l->max ? end_of(i) : l->max;
    }
    return l->max;
}
