/* logprobs.c - made-up log probabilities as tables in vLLM's encoding. */
#include "wire/play/logprobs.h"

#include "text/text.h"

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

static void put_cells(struct vt_buf *b, const struct table *t, enum part part)
{
    const struct vt_made_ask made = {
        .vocab_size = t->ask->vocab_size,
        .key = t->ask->key,
        .greedy = t->ask->greedy,
    };

    for (uint32_t i = 0; i < t->n_rows; i++) {
        struct vt_made_row r = vt_made_row(&made, t->first_index + i, t->token[i]);
        uint64_t rank = r.rank; /* little-endian, so its first bytes are the i4 */

        if (part == RANKS)
            vt_buf_add(b, &rank, t->rank_bytes);
        for (uint32_t col = 0; part != RANKS && col < t->n_cols; col++) {
            uint32_t at = col == 0 ? r.rank : col;
            uint32_t id = col == 0 ? r.token : vt_made_token(&r, at);
            float value = part == VALUES ? vt_made_logprob(&r, at) : 0;

            vt_buf_add(b, part == IDS ? (void *)&id : (void *)&value, sizeof(id));
        }
    }
}

/* [dtype, shape, bytes or the index of their frame] */
static void put_array(struct vt_buf *b, struct logprobs_aux *aux, const struct table *t,
                      enum part part)
{
    size_t n = part == RANKS ? t->rank_bytes : t->n_cols * sizeof(float);
    struct vt_buf *cells = &aux->frame[aux->n];

    mp_put_array(b, 3);
    mp_put_str(b, t->dtype[part]);
    mp_put_array(b, part == RANKS ? 1 : 2);
    mp_put_u64(b, t->n_rows);
    if (part != RANKS)
        mp_put_u64(b, t->n_cols);
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
    size_t old = aux->cap;
    int rc;

    if ((uint64_t)t->n_rows * t->n_cols > LOGPROBS_MAX_CELLS)
        return vt_fail(err, VT_EINPUT,
                       "log probabilities of %u tokens for each of %u are too many",
                       t->n_cols, t->n_rows);
    rc = vt_grow(&aux->frame, &aux->cap, aux->n + 3, sizeof(*aux->frame), err);
    if (rc != VT_OK)
        return rc;
    /* Frames beyond n keep their memory for the next message: they must be zeroed. */
    memset(&aux->frame[old], 0, (aux->cap - old) * sizeof(*aux->frame));
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
        .first_index = VT_MADE_PROMPT,
        .n_rows = n_prompt > 0 ? n_prompt - 1 : 0,
        .n_cols = columns(ask),
        .dtype = {"int32", "float32", "int32"},
        .rank_bytes = 4,
    };

    given.greedy = false; /* nobody chose the prompt's tokens */
    return put_table(b, aux, &t, ask->prompt_fields > 4 ? ask->prompt_fields : 4, err);
}
