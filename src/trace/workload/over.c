/* over.c - traffic that is asked for in place of a spec's own: its rate, its number of
 * requests, how many are in flight, their lengths. */
#include <math.h>

#include "trace/workload/spec.h"

static int take_process(struct spec *s, const char *name, struct vt_err *err)
{
    s->interval_s = 0;
    return trace_process_find(&s->process, name, err);
}

/* All at once. Later stages would have to know when the first is over. */
static int put_at_once(struct spec *s, struct vt_err *err)
{
    size_t n = s->stage->requests;

    if (n == 0)
        return vt_fail(err, VT_EINPUT,
                       "all requests at once: their number must be stated");
    s->stage->rate = 1; /* any will do: there is one burst */
    s->burst_size = (uint32_t)n;
    return take_process(s, "burst", err);
}

static int put_rate(struct spec *s, double rate, struct vt_err *err)
{
    if (!(rate > 0))
        return vt_fail(err, VT_EINPUT, "a request rate must be above 0");
    if (isinf(rate))
        return put_at_once(s, err);
    /* A spec's rate is that of sessions. */
    s->stage->rate = s->has_sessions ? rate / trace_dist_mean(&s->turns) : rate;
    s->concurrency = 0;
    /* What has no rate gets the plainest process that has. */
    if (s->process->closed || s->interval_s > 0)
        return take_process(s, "poisson", err);
    return VT_OK;
}

static int put_burstiness(struct spec *s, double burstiness, struct vt_err *err)
{
    if (!(burstiness > 0))
        return vt_fail(err, VT_EINPUT, "burstiness must be above 0");
    if (s->process->closed)
        return vt_fail(err, VT_EINPUT, "burstiness needs a request rate");
    s->burstiness = burstiness;
    return take_process(s, isinf(burstiness) ? "constant" : "gamma", err);
}

/* Without a rate it is what sets the pace. */
static int put_concurrency(struct spec *s, const struct vt_traffic *over,
                           struct vt_err *err)
{
    if (isinf(over->rate) || s->process->closed) {
        s->concurrency = over->concurrency;
        return take_process(s, "closed", err);
    }
    if (s->has_sessions)
        return vt_fail(err, VT_EINPUT,
                       "sessions that arrive at a rate are all served: no limit on "
                       "those in flight");
    s->held_to = over->concurrency;
    return VT_OK;
}

int spec_put_over(struct spec *s, const struct vt_traffic *over, struct vt_err *err)
{
    bool rate = over->rate != 0;
    int rc = VT_OK;

    if ((rate || over->requests > 0) && s->n_stages > 1)
        return vt_fail(err, VT_EINPUT,
                       "it has stages, each with a rate and an end of its own");
    if (over->requests > 0)
        *s->stage =
            (struct spec_stage){.rate = s->stage->rate, .requests = over->requests};
    if (over->prompt_tokens > 0)
        s->prompt = trace_dist_constant(over->prompt_tokens);
    if (over->output_tokens > 0)
        s->output = trace_dist_constant(over->output_tokens);
    if (rate)
        rc = put_rate(s, over->rate, err);
    if (rc == VT_OK && over->burstiness != 0 && !isinf(over->rate))
        rc = put_burstiness(s, over->burstiness, err);
    if (rc == VT_OK && over->concurrency > 0)
        rc = put_concurrency(s, over, err);
    return rc;
}
