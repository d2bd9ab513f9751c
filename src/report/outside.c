/* outside.c - what of a run went beyond what its model was made from. */
#include "report/report.h"

size_t vt_outside(const struct vt_extent *run, const struct vt_extent *known,
                  struct vt_outside out[VT_OUTSIDE])
{
    const struct vt_outside all[VT_OUTSIDE] = {
        {"tokens in a step", "step_tokens", run->step_tokens, known->step_tokens},
        {"running requests", "running", run->running, known->running},
        {"context in a step", "context", run->context, known->context},
    };
    size_t n = 0;

    for (size_t i = 0; i < VT_OUTSIDE; i++)
        if (all[i].fitted > 0 && all[i].reached > all[i].fitted + all[i].fitted / 2)
            out[n++] = all[i];
    return n;
}

void vt_outside_json(struct vt_jw *j, const struct vt_extent *run,
                     const struct vt_extent *known, const struct vt_notes *notes)
{
    struct vt_outside way[VT_OUTSIDE];
    size_t n = vt_outside(run, known, way);

    if (n == 0 && (!notes || notes->n == 0))
        return;
    vt_jw_row(j, "outside");
    for (size_t i = 0; i < n; i++) {
        vt_jw_map(j, way[i].key);
        vt_jw_u64(j, "reached", way[i].reached);
        vt_jw_u64(j, "fitted_up_to", way[i].fitted);
        vt_jw_end(j);
    }
    if (notes && notes->n > 0) {
        vt_jw_list(j, "notes");
        for (size_t i = 0; i < notes->n; i++)
            vt_jw_str(j, NULL, notes->text[i]);
        vt_jw_end(j);
    }
    vt_jw_end(j);
}
