/* spec.c - what speculative decoding did, by a server's counters. */
#include <stdlib.h>
#include <string.h>

#include "load/load.h"

#define PREFIX "vllm:spec_decode_num_"

static void add_position(struct vt_load_spec *s, const struct vt_load_sample *m,
                         uint64_t v)
{
    char text[16];
    size_t i;

    vt_load_sample_label(m, "position", text, sizeof(text));
    i = text[0] ? strtoul(text, NULL, 10) : VT_LOAD_POSITIONS;
    if (i >= VT_LOAD_POSITIONS)
        return;
    s->position[i] += v;
    s->n_positions = i >= s->n_positions ? i + 1 : s->n_positions;
}

static void add_sample(struct vt_load_spec *s, const struct vt_load_sample *m)
{
    uint64_t v = m->value >= 0 && m->value <= 1e18 ? (uint64_t)m->value : 0;

    if (m->name_len < sizeof(PREFIX) ||
        memcmp(m->name, PREFIX, sizeof(PREFIX) - 1) != 0)
        return;
    s->on = true;
    if (vt_load_sample_is(m, PREFIX "drafts_total"))
        s->drafts += v;
    else if (vt_load_sample_is(m, PREFIX "draft_tokens_total"))
        s->draft_tokens += v;
    else if (vt_load_sample_is(m, PREFIX "accepted_tokens_total"))
        s->accepted_tokens += v;
    else if (vt_load_sample_is(m, PREFIX "accepted_tokens_per_pos_total"))
        add_position(s, m, v);
}

void vt_load_spec_read(struct vt_load_spec *s, const char *metrics, size_t len)
{
    const char *end = metrics + len;
    struct vt_load_sample m;

    *s = (struct vt_load_spec){0};
    while (vt_load_sample_next(&metrics, end, &m))
        add_sample(s, &m);
}

void vt_load_spec_minus(struct vt_load_spec *s, const struct vt_load_spec *before)
{
    s->drafts -= before->drafts;
    s->draft_tokens -= before->draft_tokens;
    s->accepted_tokens -= before->accepted_tokens;
    for (size_t i = 0; i < before->n_positions; i++)
        s->position[i] -= before->position[i];
    s->on = s->on && before->on && s->draft_tokens > 0;
}
