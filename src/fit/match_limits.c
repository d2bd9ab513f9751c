/* match_limits.c - how many requests an engine runs at once, where nobody states it:
 * while others wait, as many are answered as it runs, and no more ever are. */
#include "fit/match.h"

#include <math.h>

struct change { /* of how many wait for their first token, and are being answered */
    vt_ns at;
    int waiting, answered;
};

static int by_time(const void *a, const void *b)
{
    const struct change *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->answered - y->answered; /* those that end make room */
}

static struct change *list_changes(const struct vt_workload *w)
{
    struct change *c = calloc(3 * w->n + 1, sizeof(*c));

    for (size_t i = 0; c && i < w->n; i++) {
        vt_ns at = w->req[i].arrival_ns;

        c[3 * i] = (struct change){at, 1, 0};
        c[3 * i + 1] = (struct change){at + w->measured[i].ttft_ns, -1, 1};
        c[3 * i + 2] = (struct change){at + w->measured[i].e2e_ns, 0, -1};
    }
    if (c)
        qsort(c, 3 * w->n, sizeof(*c), by_time);
    return c;
}

/* Time in which some waited, and of it the time in which about `most` were answered. */
static void time_full(const struct change *c, size_t n, int most, double *queued,
                      double *full)
{
    int waiting = 0, answered = 0;

    *queued = *full = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        double dt = (double)(c[i + 1].at - c[i].at);

        waiting += c[i].waiting;
        answered += c[i].answered;
        if (waiting < 2 || waiting < most / 10)
            continue;
        *queued += dt;
        *full += answered >= 0.93 * most ? dt : 0;
    }
}

/* A few prompts are always being computed: people choose round numbers. */
static uint32_t rounded(int most)
{
    for (uint32_t unit = 64; unit > 1; unit /= 2) {
        uint32_t up = ((uint32_t)most + unit - 1) / unit * unit;

        if (up <= 1.05 * most)
            return up;
    }
    return (uint32_t)most;
}

int match_seats(const struct vt_workload *w, uint32_t *out, struct vt_err *err)
{
    static const double SEEN = 0.1, MOSTLY = 0.6;
    struct change *c = list_changes(w);
    int answered = 0, most = 0;
    double queued, full, span;

    *out = 0;
    if (!c)
        return vt_nomem(err);
    for (size_t i = 0; i < 3 * w->n; i++) {
        answered += c[i].answered;
        most = answered > most ? answered : most;
    }
    span = (double)(c[3 * w->n - 1].at - c[0].at);
    time_full(c, 3 * w->n, most, &queued, &full);
    if (queued > SEEN * span && full > MOSTLY * queued)
        *out = rounded(most);
    free(c);
    return VT_OK;
}
