/* ends.c - where a request's output ends, and how. */
#include "wire/script/parts.h"

static int finish_of(const char *reason)
{
    for (int f = WIRE_STOP; reason && f <= WIRE_REPETITION; f++)
        if (strcmp(reason, wire_finish_name(f)) == 0)
            return f;
    return WIRE_UNFINISHED;
}

/* Output ends after n tokens at the latest, and if it gets so far, as it did then. */
static void end_after(struct script *s, uint32_t n, int finish)
{
    if (n > s->max_tokens)
        return;
    s->max_tokens = n;
    s->finish = finish;
}

/* Output ends with an EOS at index i, if the request may end so. */
static bool end_with_eos(struct script *s, uint32_t i, const struct script_limits *l)
{
    if (l->eos < 0 || i >= s->max_tokens || (uint64_t)i + 1 < s->min_tokens)
        return false;
    s->last_at = i;
    s->last_token = (uint32_t)l->eos;
    return true;
}

/* A record that ended by itself without a token that says so ended by a stop string, by
 * a fault, or by its client: it does again. One that ended by length may go on. */
void script_follow_record(struct script *s, const struct vt_record *rec, bool clamp,
                          const struct script_limits *l)
{
    int finish = finish_of(rec->finish_reason);
    bool by_token =
        finish == WIRE_STOP && script_ids_hold(l->quiet, s->token[s->n_token - 1]);

    if (clamp || (finish >= 0 && finish != WIRE_LENGTH && !by_token))
        end_after(s, s->n_token, finish);
}

/* Only the times of the record: its length holds, and its end where it can. */
void script_follow_times(struct script *s, const struct vt_record *rec,
                         const struct script_limits *l)
{
    uint32_t n = rec->output_tokens;
    int finish = finish_of(rec->finish_reason);

    if (finish == WIRE_STOP && n <= s->max_tokens && n > s->n_token &&
        end_with_eos(s, n - 1, l))
        finish = WIRE_UNFINISHED;
    end_after(s, n, finish);
}

/* A dataset's answer is whole: an EOS follows. Without one it ends as if it did, or,
 * not clamped, goes on. */
void script_follow_answer(struct script *s, bool clamp, const struct script_limits *l)
{
    uint32_t at = s->n_token;

    if (at + UINT64_C(1) < s->min_tokens)
        at = s->min_tokens - 1;
    if (!end_with_eos(s, at, l) && clamp && l->eos < 0)
        end_after(s, s->n_token, WIRE_STOP);
}

/* A length as it was recorded, between the request's limits. */
void script_follow_length(struct script *s, const uint32_t *sorted, size_t n,
                          const struct script_limits *l)
{
    double at = vt_draw_f64(s->key, 0, 1) * (double)(n - 1);
    size_t low = (size_t)at, high = low + 1 < n ? low + 1 : low;
    double between = at - (double)low;
    double drawn = (1 - between) * sorted[low] + between * sorted[high];
    uint32_t length = (uint32_t)(drawn + 0.5);

    if (length < s->min_tokens)
        length = s->min_tokens;
    if (length < s->max_tokens)
        end_with_eos(s, length > 0 ? length - 1 : 0, l);
}

/* vLLM looks at the EOS first; its stop_reason is nil. */
void script_find_end(struct script *s, uint32_t to, const struct script_limits *l)
{
    uint32_t i = s->min_tokens > 0 ? s->min_tokens - 1 : 0;

    for (; i < to && i < s->max_tokens; i++) {
        uint32_t token = script_token(s, i);

        if ((int64_t)token == l->eos) {
            s->eos_at = i;
            return;
        }
        if (script_ids_hold(l->stop, token)) {
            s->stop_at = i;
            s->stop_token = token;
            return;
        }
    }
    if (s->last_at < s->max_tokens)
        s->eos_at = s->last_at;
}
