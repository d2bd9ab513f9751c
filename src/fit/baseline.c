/* baseline.c - simpler models fitted to the same captures, for comparison. */
#include "fit/internal.h"

#include <math.h>

enum { TERMS = 3 };

/* ---- blackbox --------------------------------------------------------- */

struct sums { /* of x x' and x y over windows, weighted by 1/y: relative errors count */
    double xx[TERMS][TERMS], xy[TERMS];
};

/* Whole steps between clean boundaries, as for the step model. */
static void add_capture(struct sums *s, const struct capture *c)
{
    double x[TERMS] = {0}, start = 0;
    int steps = -1;

    for (size_t i = 1; i < c->n; i++) {
        const struct vt_step_features *f = &c->step[i].f;
        bool clean = f->mode == VT_STEP_GRAPH && c->step[i - 1].f.mode == VT_STEP_GRAPH;

        if (c->step[i].idle)
            steps = -1;
        if (clean && (steps < 0 || steps >= 4)) {
            double y = c->step[i - 1].out - start;

            for (int k = 0; k < TERMS && steps > 0 && y > 0; k++) {
                s->xy[k] += x[k];
                for (int m = 0; m < TERMS; m++)
                    s->xx[k][m] += x[k] * x[m] / y;
            }
            memset(x, 0, sizeof(x));
            start = c->step[i - 1].out;
            steps = 0;
        }
        if (steps < 0)
            continue;
        steps++;
        x[0] += 1;
        x[1] += f->prompt_tokens;
        x[2] += f->requests - f->prefills;
    }
}

/* Least squares over the chosen terms; the others are 0. False: no solution. */
static bool solve_terms(const struct sums *s, unsigned chosen, double *b)
{
    double a[TERMS][TERMS + 1];
    int term[TERMS] = {0}, n = 0;

    for (int i = 0; i < TERMS; i++) {
        b[i] = 0;
        if (chosen >> i & 1)
            term[n++] = i;
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++)
            a[i][k] = s->xx[term[i]][term[k]];
        a[i][n] = s->xy[term[i]];
    }
    for (int i = 0; i < n; i++) {
        if (fabs(a[i][i]) < 1e-12)
            return false;
        for (int k = 0; k < n; k++) {
            double r = a[k][i] / a[i][i];

            for (int m = i; m <= n && k != i; m++)
                a[k][m] -= r * a[i][m];
        }
    }
    for (int i = 0; i < n; i++) {
        b[term[i]] = a[i][n] / a[i][i];
        if (b[term[i]] < 0)
            return false;
    }
    return true;
}

static double misfit(const struct sums *s, const double *b)
{
    double e = 0;

    for (int i = 0; i < TERMS; i++) {
        e -= 2 * b[i] * s->xy[i];
        for (int k = 0; k < TERMS; k++)
            e += b[i] * b[k] * s->xx[i][k];
    }
    return e;
}

static int fit_blackbox(const struct vt_fit *f, size_t left_out, struct vt_buf *model,
                        struct vt_err *err)
{
    struct vt_step_params host;
    struct sums s = {0};
    double b[TERMS], best[TERMS] = {0}, lowest = 0;
    int rc;

    vt_step_params_init(&host);
    rc = host_costs(f, left_out, &host, err);
    if (rc != VT_OK)
        return rc;
    for (size_t i = 0; i < f->n; i++)
        if (capture_used(f, i, left_out))
            add_capture(&s, &f->capture[i]);
    /* Three terms have seven subsets: the best one without a negative part. */
    for (unsigned chosen = 1; chosen < 1u << TERMS; chosen++)
        if (solve_terms(&s, chosen, b) && misfit(&s, b) < lowest) {
            lowest = misfit(&s, b);
            memcpy(best, b, sizeof(b));
        }
    vt_buf_printf(model,
                  "{\"kind\": \"blackbox\", \"params\": {\"alpha\": [%.3f, 0, 0], "
                  "\"beta\": [%.3f, %.4f, %.4f]}}",
                  host.host_arrive + host.host_intake + host.host_wake, 1e3 * best[0],
                  1e3 * best[1], 1e3 * best[2]);
    return model->failed ? vt_nomem(err) : VT_OK;
}

/* ---- knobs ------------------------------------------------------------ */

static int fit_knob(const struct vt_fit *f, size_t left_out, struct vt_buf *model,
                    struct vt_err *err)
{
    double ttft = 0, itl = 0, n = 0;

    for (size_t i = 0; i < f->n; i++) {
        if (!capture_used(f, i, left_out) || f->capture[i].mean_ttft <= 0)
            continue;
        ttft += f->capture[i].mean_ttft;
        itl += f->capture[i].mean_itl;
        n++;
    }
    if (n == 0)
        return vt_fail(err, VT_EINPUT, "knobs need a trace with timings");
    vt_buf_printf(model,
                  "{\"kind\": \"knob\", \"params\": {\"time_to_first_token\": %.3f, "
                  "\"inter_token_latency\": %.3f}}",
                  ttft / n, itl / n);
    return model->failed ? vt_nomem(err) : VT_OK;
}

int vt_fit_baseline(const struct vt_fit *f, size_t left_out, enum vt_fit_baseline kind,
                    struct vt_buf *model, struct vt_err *err)
{
    return kind == VT_FIT_BLACKBOX ? fit_blackbox(f, left_out, model, err)
                                   : fit_knob(f, left_out, model, err);
}
