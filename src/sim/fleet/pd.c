/* pd.c - prefill and decode on engines of their own.
 *
 * A prefill engine computes the prompt; the token that comes of it is not used, as with
 * vLLM's KV connectors. The KV cache of the whole prompt then goes to a decode engine,
 * which is chosen when the prefill ends, and the request joins its queue when all is
 * there: it takes blocks for the prompt and computes its last token to get the first
 * one of the answer. */
#include <math.h>

#include "sim/fleet/parts.h"

int pd_check(const struct vt_sim_spec *spec, struct vt_err *err)
{
    const struct vt_fleet *f = spec->fleet;

    if (f->prefill_instances == 0)
        return VT_OK;
    if (f->prefill_instances >= f->instances)
        return vt_fail(err, VT_EINPUT,
                       "%u prefill instances of %u leave none to decode",
                       f->prefill_instances, f->instances);
    if (f->autoscale.interval_ns > 0)
        return vt_fail(err, VT_EINPUT,
                       "autoscaling of prefill and decode instances is not modelled");
    if (spec->engine.compat != VT_COMPAT_VLLM)
        return vt_fail(err, VT_EINPUT,
                       "prefill instances are not modelled by BLIS's rules");
    if (!(f->transfer_gb_per_s > 0.0) || !isfinite(f->transfer_gb_per_s) ||
        !(f->transfer_base_us >= 0.0 && f->transfer_base_us <= 1e12) ||
        !(f->kv_bytes_per_token >= 0.0 && f->kv_bytes_per_token <= 1e12))
        return vt_fail(err, VT_EINPUT,
                       "a KV transfer needs a bandwidth above 0, and base time and "
                       "bytes of at least 0");
    return VT_OK;
}

/* With contention n_active transfers, this one included, share the bandwidth; what a
 * transfer gets is fixed when it starts. */
vt_ns pd_transfer_ns(const struct vt_fleet *f, uint32_t tokens, size_t n_active)
{
    double share = f->transfer_contention && n_active > 1 ? (double)n_active : 1.0;
    double us = f->transfer_base_us +
                tokens * f->kv_bytes_per_token * share / (f->transfer_gb_per_s * 1e3);

    return vt_ns_from_us(us < 1e15 ? us : 1e15);
}

int pd_take_step(struct fleet *f, struct instance *from, const struct vt_step *s,
                 struct vt_err *err)
{
    int rc;

    f->r->kv_given = false;
    rc = run_note_step(f->r, s, err);
    for (uint32_t i = 0; i < s->n_rows && rc == VT_OK; i++) {
        const struct vt_row *row = &s->row[i];
        vt_ns took;

        if (row->finish == VT_RUNNING_ON)
            continue;
        from->requests++;
        f->seen[from - f->inst].in_flight--;
        took = pd_transfer_ns(f->f, window_work(&f->r->window, row->tag)->prompt_tokens,
                              f->transfers.n + 1);
        if (!(rc = run_part(f->r, row->tag, err)))
            rc = fleet_route(f, row->tag, row->at, POOL_DECODE, err);
        if (rc == VT_OK)
            rc = vt_agenda_push(&f->transfers, row->at + took, row->tag, err);
    }
    return rc;
}

int pd_deliver(struct fleet *f, vt_ns now, struct vt_err *err)
{
    size_t req = f->transfers.due[0].item;
    struct vt_request q = run_hand_over(f->r, req);

    vt_agenda_remove(&f->transfers, 0);
    q.arrival = window_live(&f->r->window, req)->arrival;
    q.given_tokens = q.prompt_tokens - 1;
    return fleet_add(f, &q, now, err);
}
