/* text.c - values as text, and the one comparison. */
#include "sim/oracle/replay.h"

void put_tags(struct replay *r, const uint64_t *v, uint32_t n)
{
    vt_jw_list(&r->out, NULL);
    for (uint32_t i = 0; i < n; i++)
        vt_jw_u64(&r->out, NULL, v[i]);
    vt_jw_end(&r->out);
}

int check_field(struct replay *r, const struct vt_node *rec, const char *field,
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
        vt_jw_init(&r->out, &r->mine, NULL);
        return VT_OK;
    }
    return vt_fail(err, VT_ECHECK,
                   "%s: step %u: field '%s' differs: got %.120s, recorded %.120s",
                   r->c->name, r->step, field, r->mine.data, r->theirs.data);
}

int check_number(struct replay *r, const struct vt_node *rec, const char *field,
                 uint64_t v, struct vt_err *err)
{
    vt_jw_u64(&r->out, NULL, v);
    return check_field(r, rec, field, "0", err);
}
