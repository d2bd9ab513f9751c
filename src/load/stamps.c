/* stamps.c - when tokens came, out of when events did.
 *
 * A chat begins with an event that only names the role, and some servers end with one
 * that only says why: neither is a token. */
#include "load/stamps.h"

struct stamps stamps_of(const struct vt_load_record *q, enum vt_load_backend backend)
{
    struct stamps s = {.at = q->stamp, .n = q->n_stamps};

    if (backend == VT_LOAD_CHAT && s.n > q->output_tokens && s.n > 1 &&
        s.at[0] <= q->first_text) {
        s.at++;
        s.n--;
    }
    if (s.n == q->output_tokens + 1 && q->output_tokens > 0)
        s.n--;
    return s;
}

bool stamps_are_tokens(const struct stamps *s, const struct vt_load_record *q)
{
    return s->n > 0 && s->n <= q->output_tokens;
}

uint32_t stamps_tokens(const struct stamps *s, const struct vt_load_record *q,
                       uint32_t i)
{
    uint64_t all = q->output_tokens;

    return (uint32_t)(all * (i + 1) / s->n - all * i / s->n);
}
