/* logprobs.c - log probabilities made up by rule, row by row.
 *
 * Of a row the best token has probability p, the m-th after it a share of the rest that
 * falls as m^-1.5: all of them sum to less than 1 however many are shown. The tokens
 * beside the sampled one walk through the vocabulary with a stride that has no common
 * divisor with it, so that none comes twice. */
#include "text/text.h"

#include <math.h>

#define TAIL_POWER 1.5
#define TAIL_SUM   2.612375348685488 /* of m^-1.5 over all m */
#define TAIL_SHARE 0.99              /* of what the best leaves */

struct vt_made_row vt_made_row(const struct vt_made_ask *ask, uint64_t index,
                               uint32_t token)
{
    double p = 0.3 + 0.65 * vt_draw_f64(ask->key, index, 0);
    double u = vt_draw_f64(ask->key, index, 1), v = 1 - vt_draw_f64(ask->key, index, 2);
    double rank = ask->greedy || u < p ? 1 : 2 + floor(1 / (v * v) - 1);
    uint64_t draw = vt_mix64(vt_hash2(ask->key, index));
    struct vt_made_row r = {
        .token = token,
        .rank = 1,
        .best = log(p),
        .second = log((1 - p) * TAIL_SHARE / TAIL_SUM),
        .vocab = ask->vocab_size > 0 ? ask->vocab_size : 1,
    };

    if (rank > 1)
        r.rank = rank < ask->vocab_size ? (uint32_t)rank : ask->vocab_size;
    r.from = draw % r.vocab;
    r.stride = (draw >> 32) % r.vocab;
    for (;;) {
        uint64_t a = r.stride, b = r.vocab;

        while (b != 0) { /* Euclid's */
            uint64_t rest = a % b;

            a = b;
            b = rest;
        }
        if (a == 1)
            return r;
        r.stride = r.stride % r.vocab + 1;
    }
}

static uint32_t walked(const struct vt_made_row *r, uint64_t rank)
{
    return (uint32_t)((r->from + rank * r->stride) % r->vocab);
}

/* Where the walk meets the sampled token off its rank, it gives what it would have had
 * at that rank: so each id comes once. */
uint32_t vt_made_token(const struct vt_made_row *r, uint32_t rank)
{
    uint32_t id;

    if (rank == r->rank)
        return r->token;
    id = walked(r, rank);
    return id == r->token ? walked(r, r->rank) : id;
}

float vt_made_logprob(const struct vt_made_row *r, uint32_t rank)
{
    if (rank == 1)
        return (float)r->best;
    return (float)(r->second - TAIL_POWER * log(rank - 1.0));
}
