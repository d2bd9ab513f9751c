/* host.c - the host's costs, read off the logs. */
#include "fit/internal.h"

#include <math.h>

/* ---- a robust line ---------------------------------------------------- */

struct line {
    double at_zero, slope;
};

static struct line least_squares(const struct pairs *p, const bool *keep)
{
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0, det;

    for (size_t i = 0; i < p->n; i++) {
        if (!keep[i])
            continue;
        n++;
        sx += p->p[i].x;
        sy += p->p[i].y;
        sxx += p->p[i].x * p->p[i].x;
        sxy += p->p[i].x * p->p[i].y;
    }
    det = n * sxx - sx * sx;
    if (n == 0)
        return (struct line){0, 0};
    if (det < 1e-9 * n * n)
        return (struct line){sy / n, 0};
    return (struct line){(sy * sxx - sx * sxy) / det, (n * sxy - sx * sy) / det};
}

static double quantile_of(double *v, size_t n, double p)
{
    vt_sort_f64(v, n);
    return vt_quantile(v, n, p);
}

/* Times the median distance from the line, and no less than this. */
static const double FAR = 10, NEAR_MS = 0.01;

/* Least squares that five times drops the tenth that fits worst, and what is far from
 * all others: stalls of the host are rare and long. Neither end of the line is
 * negative. */
static int robust_line(const struct pairs *p, struct line *out, struct vt_err *err)
{
    bool *keep = malloc(p->n + 1);
    double *e = malloc((p->n + 1) * sizeof(*e));
    int rc = !keep || !e ? vt_nomem(err) : VT_OK;

    *out = (struct line){0, 0};
    if (rc == VT_OK && p->n > 0) {
        memset(keep, true, p->n);
        for (int round = 0; round < 5; round++) {
            double limit;

            *out = least_squares(p, keep);
            for (size_t i = 0; i < p->n; i++)
                e[i] = fabs(out->at_zero + out->slope * p->p[i].x - p->p[i].y);
            limit = quantile_of(e, p->n, 90);
            limit = fmin(limit, FAR * fmax(vt_quantile(e, p->n, 50), NEAR_MS));
            for (size_t i = 0; i < p->n; i++)
                keep[i] =
                    fabs(out->at_zero + out->slope * p->p[i].x - p->p[i].y) <= limit;
        }
        out->at_zero = fmax(out->at_zero, 0);
        out->slope = fmax(out->slope, 0);
    }
    free(keep);
    free(e);
    return rc;
}

/* ---- from all captures ------------------------------------------------ */

enum quantity { SCHED, DONE, END, LOOP, TURNAROUND, NEXT_TURN };

/* like: of DONE, which END is beyond. */
static int gather_steps(const struct capture *c, enum quantity q,
                        const struct line *like, struct pairs *all, struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 2; i < c->n && rc == VT_OK; i++) {
        const struct observed *o = &c->step[i];

        if (o->stalled)
            continue;
        if (q == SCHED)
            rc = pairs_add(all, o->f.running, o->sched_end - o->sched, err);
        else if (q == DONE)
            rc = pairs_add(all, o->f.requests, o->done - o->out, err);
        else if (q == END && o->ended > 0)
            rc = pairs_add(
                all, 0,
                (o->done - o->out - like->at_zero - like->slope * o->f.requests) /
                    o->ended,
                err);
        else if (q == END)
            continue;
        else if (c->meta.async_scheduling == 0) /* result handed out to next call */
            rc = pairs_add(all, 0, fmax(o->sched - c->step[i - 1].done, 0), err);
        else if (!o->idle && !c->step[i - 1].idle)
            rc = pairs_add(all, 0, fmax(o->sched - c->step[i - 2].done, 0), err);
    }
    return rc;
}

static int gather(const struct vt_fit *f, size_t left_out, enum quantity q,
                  const struct line *like, struct pairs *all, struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < f->n && rc == VT_OK; i++) {
        const struct capture *c = &f->capture[i];
        const struct pairs *own = q == TURNAROUND ? &c->turnaround : &c->next_turn;

        if (!capture_used(f, i, left_out))
            continue;
        if (q <= LOOP) {
            rc = c->rebuilt ? VT_OK : gather_steps(c, q, like, all, err);
            continue;
        }
        for (size_t k = 0; k < own->n && rc == VT_OK; k++)
            rc = pairs_add(all, own->p[k].x, own->p[k].y, err);
    }
    return rc;
}

/* Of the logarithm around a line, by the middle half; no more than a profile may state,
 * which pauses on a busy machine go beyond. */
static double spread_around(const struct pairs *p, const struct line *l)
{
    static const double MOST = 3;
    double *e = malloc((p->n + 1) * sizeof(*e)), spread = 0;
    size_t n = 0;

    for (size_t i = 0; e && i < p->n; i++) {
        double y = l->at_zero + l->slope * p->p[i].x;

        if (y > 0 && p->p[i].y > 0)
            e[n++] = log(p->p[i].y / y);
    }
    if (n >= 4)
        spread = (quantile_of(e, n, 75) - vt_quantile(e, n, 25)) / 1.349;
    free(e);
    return fmin(spread, MOST);
}

/* spread: NULL, or for the spread around the line. END: *out has DONE's. */
static int line_of(const struct vt_fit *f, size_t left_out, enum quantity q,
                   struct line *out, double *spread, struct vt_err *err)
{
    struct pairs all = {0};
    int rc = gather(f, left_out, q, q == END ? out : NULL, &all, err);

    if (rc == VT_OK)
        rc = robust_line(&all, out, err);
    if (rc == VT_OK && spread)
        *spread = spread_around(&all, out);
    free(all.p);
    return rc;
}

int host_costs(const struct vt_fit *f, size_t left_out, struct vt_step_params *p,
               struct vt_err *err)
{
    struct line sched, done, end, loop, turn, next;
    int rc;

    if ((rc = line_of(f, left_out, SCHED, &sched, NULL, err)) ||
        (rc = line_of(f, left_out, DONE, &done, NULL, err)) ||
        (end = done, rc = line_of(f, left_out, END, &end, NULL, err)) ||
        (rc = line_of(f, left_out, LOOP, &loop, NULL, err)) ||
        (rc = line_of(f, left_out, TURNAROUND, &turn, &p->turnaround_noise, err)) ||
        (rc = line_of(f, left_out, NEXT_TURN, &next, NULL, err)) ||
        (rc = arrive_costs(f, left_out, p, err)))
        return rc;
    p->host_sched = 1e3 * (sched.at_zero + loop.at_zero);
    p->host_sched_request = 1e3 * sched.slope;
    p->host_done = 1e3 * done.at_zero;
    p->host_done_request = 1e3 * done.slope;
    p->host_done_end = 1e3 * end.at_zero;
    p->host_turnaround = 1e3 * turn.at_zero;
    p->host_turnaround_request = 1e3 * turn.slope;
    p->host_turnaround_next = 1e3 * next.at_zero;
    return VT_OK;
}

/* ---- launches --------------------------------------------------------- */

/* Median launch of a mode in one capture; its spread (of the logarithm) by the middle
 * half. 0: none seen. */
static double capture_launch(const struct capture *c, enum vt_step_mode mode,
                             double *cells, double *spread)
{
    size_t n = 0;
    double median;

    for (size_t i = 2; i < c->n; i++) {
        const struct observed *o = &c->step[i], *before = o - 1;
        double seen = before->out - o->sched_end;

        /* The result before a long launch is read when the launch returns. */
        if (o->f.mode == mode && !o->idle && !o->stalled && !c->rebuilt &&
            before->f.mode == VT_STEP_GRAPH && seen > 0)
            cells[n++] = seen;
    }
    *spread = 0;
    if (n < 4)
        return 0;
    median = quantile_of(cells, n, 50);
    *spread = log(vt_quantile(cells, n, 75) / vt_quantile(cells, n, 25)) / 1.349;
    return median;
}

int launch_seen(const struct vt_fit *f, size_t left_out, enum vt_step_mode mode,
                double *launch, double *spread, struct vt_err *err)
{
    double sum = 0, spreads = 0, n = 0;

    *launch = *spread = 0;
    for (size_t i = 0; i < f->n; i++) {
        const struct capture *c = &f->capture[i];
        double *cells, one, s;

        if (!capture_used(f, i, left_out))
            continue;
        cells = malloc(c->n * sizeof(*cells));
        if (!cells)
            return vt_nomem(err);
        one = capture_launch(c, mode, cells, &s);
        free(cells);
        if (one > 0) {
            sum += log(one);
            spreads += s;
            n++;
        }
    }
    if (n > 0) {
        *launch = exp(sum / n);
        *spread = spreads / n;
    }
    return VT_OK;
}
