/* logprobs.c - log probabilities made up by rule, row by row.
 *
 * Of a row the best token has probability p, the m-th after it a share of the rest that
 * falls as m^-1.5: all of them sum to less than 1 however many are shown. The tokens
 * beside the sampled one walk through the vocabulary with a stride that has no common
 * divisor with it, so that none comes twice. */
#include "wire/logprobs.h"

#include <math.h>

#define TAIL_POWER 1.5
#define TAIL_SUM   2.612375348685488 /* of m^-1.5 over all m */
#define TAIL_SHARE 0.99              /* of what the best leaves */

enum {
    INLINE_BYTES = 256, /* arrays from here on are frames of their own */
    EXT_BYTES = 3,      /* vLLM's ext type of raw bytes */
};

/* ---- buffers ---------------------------------------------------------- */

void logprobs_aux_clear(struct logprobs_aux *a)
{
    for (size_t i = 0; i < a->n; i++)
        vt_buf_clear(&a->frame[i]);
    a->n = 0;
}

void logprobs_aux_free(struct logprobs_aux *a)
{
    for (size_t i = 0; i < a->cap; i++)
        vt_buf_free(&a->frame[i]);
    free(a->frame);
    *a = (struct logprobs_aux){0};
}

/* Frames beyond n keep their memory for the next message, so they must be zeroed. */
static int reserve_frames(struct logprobs_aux *a, size_t n, struct vt_err *err)
{
    size_t old = a->cap;
    int rc = vt_grow(&a->frame, &a->cap, a->n + n, sizeof(*a->frame), err);

    if (rc == VT_OK && a->cap > old)
        memset(&a->frame[old], 0, (a->cap - old) * sizeof(*a->frame));
    return rc;
}

/* ---- one row ---------------------------------------------------------- */

struct walk { /* through the vocabulary */
    uint64_t from, stride, vocab;
};

struct row {
    uint32_t token; /* the sampled one */
    uint32_t rank;  /* its own, from 1 */
    double best;    /* logprob of rank 1 */
    double second;  /* of rank 2 */
    struct walk walk;
};

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

static struct walk walk_of(const struct logprobs_ask *ask, uint64_t index)
{
    uint64_t vocab = ask->vocab_size > 0 ? ask->vocab_size : 1;
    uint64_t draw = vt_mix64(vt_hash2(ask->key, index));
    struct walk w = {draw % vocab, (draw >> 32) % vocab, vocab};

    while (common_divisor(w.stride, vocab) != 1)
        w.stride = w.stride % vocab + 1;
    return w;
}

static uint32_t rank_of(const struct logprobs_ask *ask, uint64_t index, double p)
{
    double u = vt_draw_f64(ask->key, index, 1), v = 1 - vt_draw_f64(ask->key, index, 2);
    double rank;

    if (ask->greedy || u < p)
        return 1;
    rank = 2 + floor(1 / (v * v) - 1);
    return rank < ask->vocab_size ? (uint32_t)rank : ask->vocab_size;
}

static struct row row_of(const struct logprobs_ask *ask, uint64_t index, uint32_t token)
{
    double p = 0.3 + 0.65 * vt_draw_f64(ask->key, index, 0);

    return (struct row){
        .token = token,
        .rank = rank_of(ask, index, p),
        .best = log(p),
        .second = log((1 - p) * TAIL_SHARE / TAIL_SUM),
        .walk = walk_of(ask, index),
    };
}

static uint32_t walked(const struct walk *w, uint64_t rank)
{
    return (uint32_t)((w->from + rank * w->stride) % w->vocab);
}

/* Where the walk meets the sampled token off its rank, it gives what it would have had
 * at that rank: so each id comes once. */
static uint32_t token_at(const struct row *r, uint32_t rank)
{
    uint32_t id;

    if (rank == r->rank)
        return r->token;
    id = walked(&r->walk, rank);
    return id == r->token ? walked(&r->walk, r->rank) : id;
}

static float logprob_at(const struct row *r, uint32_t rank)
{
    if (rank == 1)
        return (float)r->best;
    return (float)(r->second - TAIL_POWER * log(rank - 1.0));
}

/* ---- arrays ----------------------------------------------------------- */

enum part { IDS, VALUES, RANKS };

struct table {
    const struct logprobs_ask *ask;
    const uint32_t *token;
    uint64_t first_index;
    uint32_t n_rows, n_cols;
    const char *dtype[3]; /* by enum part */
    size_t rank_bytes;
};

static void put_row(struct vt_buf *b, const struct table *t, enum part part,
                    const struct row *r)
{
    for (uint32_t col = 0; col < t->n_cols; col++) {
        uint32_t rank = col == 0 ? r->rank : col;
        uint32_t id = col == 0 ? r->token : token_at(r, rank);
        float value = part == VALUES ? logprob_at(r, rank) : 0;

        if (part == IDS)
            vt_buf_add(b, &id, sizeof(id));
        else
            vt_buf_add(b, &value, sizeof(value));
    }
}

static void put_cells(struct vt_buf *b, const struct table *t, enum part part)
{
    for (uint32_t i = 0; i < t->n_rows; i++) {
        struct row r = row_of(t->ask, t->first_index + i, t->token[i]);
        uint64_t rank = r.rank; /* little-endian, so its first bytes are the i4 */

        if (part == RANKS)
            vt_buf_add(b, &rank, t->rank_bytes);
        else
            put_row(b, t, part, &r);
    }
}

static void put_shape(struct vt_buf *b, const struct table *t, enum part part)
{
    mp_put_array(b, part == RANKS ? 1 : 2);
    mp_put_u64(b, t->n_rows);
    if (part != RANKS)
        mp_put_u64(b, t->n_cols);
}

/* [dtype, shape, bytes or the index of their frame] */
static void put_array(struct vt_buf *b, struct logprobs_aux *aux, const struct table *t,
                      enum part part)
{
    size_t n = part == RANKS ? t->rank_bytes : t->n_cols * sizeof(float);
    struct vt_buf *cells = &aux->frame[aux->n];

    mp_put_array(b, 3);
    mp_put_str(b, t->dtype[part]);
    put_shape(b, t, part);
    vt_buf_clear(cells);
    put_cells(cells, t, part);
    b->failed |= cells->failed;
    if (n * t->n_rows < INLINE_BYTES)
        mp_put_ext(b, EXT_BYTES, cells->len > 0 ? cells->data : "", cells->len);
    else
        mp_put_u64(b, ++aux->n);
}

static int put_table(struct vt_buf *b, struct logprobs_aux *aux, const struct table *t,
                     uint32_t n_fields, struct vt_err *err)
{
    int rc;

    if ((uint64_t)t->n_rows * t->n_cols > LOGPROBS_MAX_CELLS)
        return vt_fail(err, VT_EINPUT,
                       "log probabilities of %u tokens for each of %u are too many",
                       t->n_cols, t->n_rows);
    rc = reserve_frames(aux, 3, err);
    if (rc != VT_OK)
        return rc;
    mp_put_array(b, n_fields);
    put_array(b, aux, t, IDS);
    put_array(b, aux, t, VALUES);
    put_array(b, aux, t, RANKS);
    for (uint32_t i = 3; i < n_fields; i++)
        mp_put_nil(b);
    return b->failed ? vt_nomem(err) : VT_OK;
}

static uint32_t columns(const struct logprobs_ask *ask)
{
    if (ask->k < 0 || (uint32_t)ask->k > ask->vocab_size)
        return ask->vocab_size + 1;
    return (uint32_t)ask->k + 1;
}

int logprobs_put(struct vt_buf *b, struct logprobs_aux *aux,
                 const struct logprobs_ask *ask, const uint32_t *token,
                 uint32_t n_tokens, uint32_t first_index, struct vt_err *err)
{
    const struct table t = {
        .ask = ask,
        .token = token,
        .first_index = first_index,
        .n_rows = n_tokens,
        .n_cols = columns(ask),
        .dtype = {"<i4", "<f4", "<i8"},
        .rank_bytes = 8,
    };

    return put_table(b, aux, &t, 4, err);
}

int logprobs_put_prompt(struct vt_buf *b, struct logprobs_aux *aux,
                        const struct logprobs_ask *ask, const uint32_t *prompt,
                        uint32_t n_prompt, struct vt_err *err)
{
    struct logprobs_ask given = *ask;
    const struct table t = {
        .ask = &given,
        .token = n_prompt > 0 ? prompt + 1 : prompt,
        .first_index = UINT64_C(1) << 32, /* draws apart from the output's */
        .n_rows = n_prompt > 0 ? n_prompt - 1 : 0,
        .n_cols = columns(ask),
        .dtype = {"int32", "float32", "int32"},
        .rank_bytes = 4,
    };

    given.greedy = false; /* nobody chose the prompt's tokens */
    return put_table(b, aux, &t, ask->prompt_fields > 4 ? ask->prompt_fields : 4, err);
}
