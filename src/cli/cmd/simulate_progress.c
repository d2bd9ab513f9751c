/* simulate_progress.c - one line on stderr that rewrites itself. */
#include "cli/cmd/simulate.h"
#include "live/live.h"

enum { EVERY_MS = 200 };

void simulate_progress_show(struct simulate_progress *p, size_t finished, size_t total,
                            vt_ns now)
{
    vt_ns wall = p->on ? vt_wall_ns() : 0;

    /* The first one waits too, so that a short run shows none. */
    if (p->on && p->shown_ns == 0)
        p->shown_ns = wall;
    if (!p->on || wall - p->shown_ns < EVERY_MS * VT_MS)
        return;
    p->shown_ns = wall;
    p->shown = true;
    fprintf(stderr, "\r\033[K%zu of %zu requests, %.1f s simulated", finished, total,
            (double)now / 1e9);
}

void simulate_progress_erase(struct simulate_progress *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
    p->shown = false;
}
