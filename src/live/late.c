/* late.c - how late messages leave, in bounded memory, and whether that is too late. */
#include <inttypes.h>

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

bool vt_slow_note(struct vt_slow *s, vt_ns wall, vt_ns late)
{
    if (s->last - s->from >= VT_SLOW_WINDOW || s->n == 0)
        *s = (struct vt_slow){.from = wall, .said_at = s->said_at};
    s->n++;
    s->n_late += late > VT_SLOW_LATE;
    s->worst = late > s->worst ? late : s->worst;
    s->last = wall;
    if (wall - s->from < VT_SLOW_WINDOW || 2 * s->n_late <= s->n ||
        (s->said_at > 0 && wall - s->said_at < VT_SLOW_QUIET))
        return false;
    s->said_at = wall;
    return true;
}

void vt_slow_text(const struct vt_slow *s, char out[160])
{
    (void)snprintf(out, 160,
                   "this machine is too slow for the timing: of %" PRIu64
                   " messages in %.1f s %" PRIu64
                   " left more than %d ms late, the worst by %.0f ms",
                   s->n, (double)(s->last - s->from) / 1e9, s->n_late,
                   (int)(VT_SLOW_LATE / VT_MS), (double)s->worst / 1e6);
}
