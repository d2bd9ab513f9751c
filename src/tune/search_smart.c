/* search_smart.c - finds the best setting without trying them all.
 *
 * From a few starting points it looks along every axis at once (a cross), goes to the
 * best that it saw, or to the point that has each axis' own best value if that is
 * better still, and does so until a point is the best of its own cross. A cross costs
 * the sum of the lists' lengths where the grid costs their product. Engine limits act
 * one by one (more memory never hurts, too few sequences queue, too many thrash), so
 * there are no hidden peaks to miss in practice; nothing proves it. */
#include <stdlib.h>

#include "tune/tune_search.h"

struct walk {
    struct search *s;
    size_t *want; /* heap */
    size_t n, cap;
};

static size_t axis_stride(const struct vt_tune_space *space, int axis)
{
    size_t step = 1;

    for (int i = VT_TUNE_AXES - 1; i > axis; i--)
        step *= space->n[i];
    return step;
}

static size_t with_value(const struct vt_tune_space *space, size_t at, int axis,
                         size_t value)
{
    size_t step = axis_stride(space, axis), now = at / step % space->n[axis];

    return at - now * step + value * step;
}

static int ask_for(struct walk *w, size_t i, struct vt_err *err)
{
    int rc = VT_OK;

    if (w->s->result->tuned[i].tried)
        return VT_OK;
    for (size_t k = 0; k < w->n; k++)
        if (w->want[k] == i)
            return VT_OK;
    rc = vt_grow(&w->want, &w->cap, w->n + 1, sizeof(*w->want), err);
    if (rc == VT_OK)
        w->want[w->n++] = i;
    return rc;
}

static int try_asked(struct walk *w, struct vt_err *err)
{
    int rc = search_try(w->s, w->want, w->n, err);

    w->n = 0;
    return rc;
}

/* The best of the cross around `at`, and the point made of each axis' best. */
static size_t best_of_cross(const struct walk *w, size_t at, size_t *combined)
{
    const struct vt_tune_space *space = &w->s->spec->space;
    size_t best = at;

    *combined = at;
    for (int axis = 0; axis < VT_TUNE_AXES; axis++) {
        size_t line = at, value = at / axis_stride(space, axis) % space->n[axis];

        for (size_t v = 0; v < space->n[axis]; v++) {
            size_t i = with_value(space, at, axis, v);

            if (!vt_tune_better(w->s->spec, w->s->result, i, line))
                continue;
            line = i;
            value = v;
        }
        *combined = with_value(space, *combined, axis, value);
        if (vt_tune_better(w->s->spec, w->s->result, line, best))
            best = line;
    }
    return best;
}

static int climb_from(struct walk *w, size_t *at, struct vt_err *err)
{
    const struct vt_tune_space *space = &w->s->spec->space;

    for (;;) {
        size_t best, combined;
        int rc = VT_OK;

        for (int axis = 0; axis < VT_TUNE_AXES; axis++)
            for (size_t v = 0; v < space->n[axis] && rc == VT_OK; v++)
                rc = ask_for(w, with_value(space, *at, axis, v), err);
        if (rc || (rc = try_asked(w, err)))
            return rc;
        best = best_of_cross(w, *at, &combined);
        if ((rc = ask_for(w, combined, err)) || (rc = try_asked(w, err)))
            return rc;
        if (vt_tune_better(w->s->spec, w->s->result, combined, best))
            best = combined;
        if (best == *at)
            return VT_OK;
        *at = best;
    }
}

/* The middle, and the two far corners. */
int search_smart(struct search *s, struct vt_err *err)
{
    struct walk w = {.s = s};
    const struct vt_tune_space *space = &s->spec->space;
    size_t start[3] = {0, 0, s->result->n - 1};
    int rc = VT_OK;

    for (int axis = 0; axis < VT_TUNE_AXES; axis++)
        start[0] = with_value(space, start[0], axis, space->n[axis] / 2);
    for (size_t i = 0; i < VT_COUNT(start) && rc == VT_OK; i++)
        rc = ask_for(&w, start[i], err);
    if (rc == VT_OK)
        rc = try_asked(&w, err);
    for (size_t i = 1; i < VT_COUNT(start) && rc == VT_OK; i++)
        if (vt_tune_better(s->spec, s->result, start[i], start[0]))
            start[0] = start[i];
    if (rc == VT_OK)
        rc = climb_from(&w, &start[0], err);
    free(w.want);
    return rc;
}
