/* spec.c - what speculative decoding did, by a server's counters. */
#define _GNU_SOURCE /* memmem */
#include <stdlib.h>
#include <string.h>

#include "load/load.h"

#define PREFIX "vllm:spec_decode_num_"

static uint64_t value_of(const char *line, size_t len)
{
    const char *at = line + len;
    double v;

    while (at > line && at[-1] != ' ')
        at--;
    if (!vt_parse_f64(at, (size_t)(line + len - at), &v) || v < 0 || v > 1e18)
        return 0;
    return (uint64_t)v;
}

static void add_position(struct vt_load_spec *s, const char *line, size_t len)
{
    static const char label[] = "position=\"";
    const char *at = memmem(line, len, label, sizeof(label) - 1);
    size_t i = at ? strtoul(at + sizeof(label) - 1, NULL, 10) : VT_LOAD_POSITIONS;

    if (i >= VT_LOAD_POSITIONS)
        return;
    s->position[i] += value_of(line, len);
    s->n_positions = i >= s->n_positions ? i + 1 : s->n_positions;
}

static bool starts(const char *line, size_t len, const char *word)
{
    size_t n = strlen(word);

    return len > n && memcmp(line, word, n) == 0 && (line[n] == '{' || line[n] == ' ');
}

static void add_line(struct vt_load_spec *s, const char *line, size_t len)
{
    if (len < sizeof(PREFIX) || memcmp(line, PREFIX, sizeof(PREFIX) - 1) != 0)
        return;
    line += sizeof(PREFIX) - 1;
    len -= sizeof(PREFIX) - 1;
    s->on = true;
    if (starts(line, len, "drafts_total"))
        s->drafts += value_of(line, len);
    else if (starts(line, len, "draft_tokens_total"))
        s->draft_tokens += value_of(line, len);
    else if (starts(line, len, "accepted_tokens_total"))
        s->accepted_tokens += value_of(line, len);
    else if (starts(line, len, "accepted_tokens_per_pos_total"))
        add_position(s, line, len);
}

void vt_load_spec_read(struct vt_load_spec *s, const char *metrics, size_t len)
{
    *s = (struct vt_load_spec){0};
    while (len > 0) {
        const char *nl = memchr(metrics, '\n', len);
        size_t line = nl ? (size_t)(nl - metrics) : len;

        add_line(s, metrics, line);
        metrics += line + (nl ? 1 : 0);
        len -= line + (nl ? 1 : 0);
    }
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
