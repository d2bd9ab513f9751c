/* pd.c - prefill and decode on engines of their own, behind a proxy that does what
 * llm-d's does: it asks a prefill engine for one token, which is not used, and a decode
 * engine for the answer, with what the first one said of its KV blocks. The decode
 * engine is chosen when the prefill ends; it takes blocks for the prompt, pulls their
 * content, and computes the prompt's last token again. The prefill engine keeps its
 * blocks until then. */
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
    for (uint32_t i = 0; i < f->instances; i++) {
        const struct vt_engine_config *c =
            f->replica ? &f->replica[i].engine : &spec->engine;

        if (!c->remote.on)
            return vt_fail(err, VT_EINPUT,
                           "engines that prefill or decode need a connector for it");
    }
    return VT_OK;
}

int pd_take_step(struct fleet *f, struct instance *from, const struct vt_step *s,
                 struct vt_err *err)
{
    int rc;

    f->r->kv_given = false;
    rc = run_note_step(f->r, s, err);
    for (uint32_t i = 0; i < s->n_rows && rc == VT_OK; i++) {
        const struct vt_row *row = &s->row[i];

        if (row->finish == VT_RUNNING_ON)
            continue;
        from->requests++;
        f->seen[from - f->inst].in_flight--;
        window_live(&f->r->window, row->tag)->prefilled = (uint32_t)(from - f->inst);
        if (!(rc = run_part(f->r, row->tag, err)))
            rc = fleet_route(f, row->tag, row->at, POOL_DECODE, err);
        if (rc == VT_OK)
            rc = vt_agenda_push(&f->transfers, row->at, row->tag, err);
    }
    return rc;
}

int pd_deliver(struct fleet *f, vt_ns now, struct vt_err *err)
{
    size_t req = f->transfers.due[0].item;
    struct vt_request q = run_hand_over(f->r, req);

    vt_agenda_remove(&f->transfers, 0);
    q.arrival = window_live(&f->r->window, req)->arrival;
    q.apart = VT_DECODE_ONLY;
    return fleet_add(f, &q, now, err);
}

void pd_note_pulled(struct fleet *f, const struct vt_step *s)
{
    for (uint32_t i = 0; s->remote && i < s->remote->n_pulled; i++) {
        uint64_t tag = s->remote->pulled[i].tag;
        uint32_t from = window_live(&f->r->window, tag)->prefilled;

        /* It may have given them up already. */
        (void)vt_engine_gave(f->inst[from].engine, s->done_ns, tag);
        fleet_follow(f, from);
    }
}
