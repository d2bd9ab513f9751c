/* text.c - values as text, and the one comparison. */
#include "sim/oracle/replay.h"

void put_comma(struct vt_buf *b, bool needed)
{
    if (needed)
        vt_buf_char(b, ',');
}

void put_u32s(struct vt_buf *b, const uint32_t *v, uint32_t n)
{
    vt_buf_char(b, '[');
    for (uint32_t i = 0; i < n; i++) {
        put_comma(b, i > 0);
        vt_buf_u64(b, v[i]);
    }
    vt_buf_char(b, ']');
}

void put_tags(struct vt_buf *b, const uint64_t *v, uint32_t n)
{
    vt_buf_char(b, '[');
    for (uint32_t i = 0; i < n; i++) {
        put_comma(b, i > 0);
        vt_buf_u64(b, v[i]);
    }
    vt_buf_char(b, ']');
}

int same(struct replay *r, const struct vt_node *rec, const char *field,
         const char *if_absent, struct vt_err *err)
{
    const struct vt_node *n = vt_get(rec, field);

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
        return VT_OK;
    }
    return vt_fail(err, VT_ECHECK,
                   "%s: step %u: field '%s' differs: got %.120s, recorded %.120s",
                   r->c->name, r->step, field, r->mine.data, r->theirs.data);
}

int same_number(struct replay *r, const struct vt_node *rec, const char *field,
                uint64_t v, struct vt_err *err)
{
    vt_buf_u64(&r->mine, v);
    return same(r, rec, field, "0", err);
}
