/* agenda.c - what is due when. */
#include <assert.h>

#include "base/base.h"

static bool sooner(const struct vt_due *a, const struct vt_due *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

/* Puts x at i or as far above it as it belongs; returns where. */
static size_t rise(struct vt_agenda *a, size_t i, struct vt_due x)
{
    for (; i > 0 && sooner(&x, &a->due[(i - 1) / 2]); i = (i - 1) / 2)
        a->due[i] = a->due[(i - 1) / 2];
    a->due[i] = x;
    return i;
}

int vt_agenda_push(struct vt_agenda *a, vt_ns at, size_t item, struct vt_err *err)
{
    int rc = vt_grow(&a->due, &a->cap, a->n + 1, sizeof(*a->due), err);

    if (rc == VT_OK)
        (void)rise(a, a->n++, (struct vt_due){at, a->order++, item});
    return rc;
}

void vt_agenda_remove(struct vt_agenda *a, size_t i)
{
    struct vt_due last;
    size_t child;

    assert(i < a->n);
    last = a->due[--a->n];
    if (i == a->n)
        return;
    for (i = rise(a, i, last); (child = 2 * i + 1) < a->n; i = child) {
        if (child + 1 < a->n && sooner(&a->due[child + 1], &a->due[child]))
            child++;
        if (!sooner(&a->due[child], &last))
            break;
        a->due[i] = a->due[child];
    }
    a->due[i] = last;
}

void vt_agenda_free(struct vt_agenda *a)
{
    free(a->due);
    *a = (struct vt_agenda){0};
}
