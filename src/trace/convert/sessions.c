/* sessions.c - conversations of a report: which requests are turns of one, and how long
 * a client took between them. */
#include <stdlib.h>

#include "trace/convert/convert.h"

struct place { /* of a record in its session */
    const char *session;
    uint32_t turn;
    size_t record;
};

static int by_session(const void *pa, const void *pb)
{
    const struct place *a = pa, *b = pb;
    int order = strcmp(a->session, b->session);

    if (order != 0)
        return order;
    if (a->turn != b->turn)
        return a->turn < b->turn ? -1 : 1;
    return a->record < b->record ? -1 : a->record > b->record;
}

/* One request is no conversation; turns that come twice, or in several loads, are of
 * one that branches or was held again. */
static bool is_conversation(const struct vt_records *r, const struct place *p, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (p[i].turn == p[i - 1].turn ||
            r->rec[p[i].record].part != r->rec[p[0].record].part)
            return false;
    return n > 1;
}

static void think_between(const struct vt_record *before, struct vt_record *q)
{
    vt_ns end = before->arrival_ns + before->ttft_ns + vt_record_decode_ns(before);

    if (before->arrival_ns >= 0 && before->ttft_ns >= 0 && q->arrival_ns > end)
        q->think_ns = q->arrival_ns - end;
}

static void link_turns(struct vt_records *r, const struct place *p, size_t n)
{
    bool kept = is_conversation(r, p, n);

    for (size_t i = 0; i < n; i++) {
        struct vt_record *q = &r->rec[p[i].record];

        if (kept && i > 0)
            think_between(&r->rec[p[i - 1].record], q);
        if (!kept) {
            q->session = NULL;
            q->turn = 0;
        }
    }
    if (kept)
        r->part[r->rec[p[0].record].part].arrivals = VT_ARRIVALS_SESSION;
}

int convert_sessions(struct vt_records *r, struct vt_err *err)
{
    struct place *p = malloc((r->n + 1) * sizeof(*p));
    size_t n = 0, end;
    int rc = VT_OK;

    if (!p)
        return vt_nomem(err);
    for (size_t i = 0; i < r->n; i++)
        if (r->rec[i].session)
            p[n++] = (struct place){r->rec[i].session, r->rec[i].turn, i};
    qsort(p, n, sizeof(*p), by_session);
    if (n > 0 && r->n_parts == 0)
        rc = convert_part(r, NULL, 0, err);
    for (size_t i = 0; i < n && rc == VT_OK; i = end) {
        for (end = i + 1; end < n && strcmp(p[end].session, p[i].session) == 0;)
            end++;
        link_turns(r, &p[i], end - i);
    }
    free(p);
    return rc;
}
