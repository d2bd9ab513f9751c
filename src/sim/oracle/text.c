/* text.c - values as text, and the one comparison. */
#include "sim/oracle/replay.h"

void put_tags(struct replay *r, const uint64_t *v, uint32_t n)
{
    vt_jw_list(&r->out, NULL);
    for (uint32_t i = 0; i < n; i++)
        vt_jw_u64(&r->out, NULL, v[i]);
    vt_jw_end(&r->out);
}

/* From where to show two texts: their beginning, or shortly before they part where that
 * is far behind it. */
static size_t first_difference(const struct vt_buf *a, const struct vt_buf *b)
{
    enum { SHORT = 80, BEFORE = 40 };
    size_t n = 0;

    while (n < a->len && n < b->len && a->data[n] == b->data[n])
        n++;
    return n < SHORT ? 0 : n - BEFORE;
}

int check_field(struct replay *r, const struct vt_node *rec, const char *field,
                const char *if_absent, struct vt_err *err)
{
    const struct vt_node *n = vt_get(rec, field);
    size_t same;

    vt_buf_clear(&r->theirs);
    if (n)
        vt_buf_json_node(&r->theirs, n, NULL);
    else
        vt_buf_str(&r->theirs, if_absent);
    if (r->mine.failed || r->theirs.failed)
        return vt_nomem(err);
    if (r->mine.len == r->theirs.len &&
        memcmp(r->mine.data, r->theirs.data, r->mine.len) == 0) {
        vt_buf_clear(&r->mine);
        vt_jw_init(&r->out, &r->mine, NULL);
        return VT_OK;
    }
    same = first_difference(&r->mine, &r->theirs);
    return vt_fail(err, VT_ECHECK,
                   "%s: step %u: field '%s' differs%s: got %.100s, recorded %.100s",
                   r->c->name, r->step, field, same > 0 ? " at" : "",
                   r->mine.data + same, r->theirs.data + same);
}

int check_number(struct replay *r, const struct vt_node *rec, const char *field,
                 uint64_t v, struct vt_err *err)
{
    vt_jw_u64(&r->out, NULL, v);
    return check_field(r, rec, field, "0", err);
}
