/* dataset_random.c - prompts made of tokens: random, and repeated prefixes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "load/dataset.h"

struct load_range load_range_of(uint32_t mean, double ratio, uint64_t least)
{
    struct load_range r = {(uint64_t)floor((double)mean * (1 - ratio)),
                           (uint64_t)ceil((double)mean * (1 + ratio))};

    r.lo = r.lo < least ? least : r.lo;
    r.hi = r.hi < r.lo ? r.lo : r.hi;
    return r;
}

static uint32_t draw_length(struct vt_rng *rng, struct load_range r)
{
    return (uint32_t)(r.lo + vt_rng_below(rng, r.hi - r.lo + 1));
}

static int reserve_ids(struct load_maker *m, size_t n, struct vt_err *err)
{
    m->ids.n = 0;
    return vt_grow(&m->ids.id, &m->ids.cap, n > 0 ? n : 1, sizeof(*m->ids.id), err);
}

static int any_tokens(struct load_maker *m, size_t n, struct vt_err *err)
{
    int rc = reserve_ids(m, n, err);

    while (rc == VT_OK && m->ids.n < n)
        m->ids.id[m->ids.n++] = load_maker_any(m);
    return rc == VT_OK ? load_maker_settle(m, n, err) : rc;
}

/* A prefix: the maker goes on without it. */
static int make_prefix(struct load_maker *m, size_t n, struct vt_ids *out,
                       struct vt_err *err)
{
    int rc = any_tokens(m, n, err);

    *out = m->ids;
    m->ids = (struct vt_ids){0};
    return rc;
}

/* ---- random ----------------------------------------------------------- */

struct random_job {
    struct load_maker maker;
    struct load_range input, output;
    struct vt_ids prefix;
};

static int open_random(struct random_job *j, const struct vt_load_data *d,
                       struct vt_err *err)
{
    uint32_t special;
    int rc = load_maker_open(&j->maker, d, "random", err);

    if (rc != VT_OK || (rc = load_count(d->tokenizer, "", 0, &special, err)))
        return rc;
    j->input = load_range_of(d->random.input > special ? d->random.input - special : 0,
                             d->random.input_ratio, 0);
    j->output = load_range_of(d->random.output, d->random.output_ratio, 1);
    if (d->random.prefix + j->input.lo < 1)
        return vt_fail(err, VT_EINPUT,
                       "prompts of no token: the input length is too "
                       "small");
    if (d->random.prefix == 0)
        return VT_OK;
    return make_prefix(&j->maker, d->random.prefix, &j->prefix, err);
}

/* Tokens that follow each other in the vocabulary, from a random one on. */
static int add_random(struct random_job *j, struct vt_load_plan *p, size_t index,
                      const struct vt_load_data *d, struct vt_err *err)
{
    struct load_maker *m = &j->maker;
    uint32_t n = draw_length(&m->rng, j->input), out = draw_length(&m->rng, j->output);
    uint64_t offset = vt_rng_below(&m->rng, m->n_allowed);
    struct vt_load_turn turn = {.output_tokens = out};
    struct vt_load_session s = {.turn = &turn, .n_turns = 1};
    int rc = reserve_ids(m, j->prefix.n + n, err);

    if (rc != VT_OK)
        return rc;
    if (j->prefix.n > 0)
        memcpy(m->ids.id, j->prefix.id, j->prefix.n * sizeof(*m->ids.id));
    m->ids.n = j->prefix.n;
    for (uint32_t i = 0; i < n; i++)
        m->ids.id[m->ids.n++] = m->allowed[(offset + index + i) % m->n_allowed];
    rc = load_maker_settle(m, j->prefix.n + n, err);
    if (rc != VT_OK)
        return rc;
    if (d->token_ids) {
        rc = load_turn_ids(m, p, d, &turn, err);
        return rc == VT_OK ? vt_load_plan_add(p, &s, err) : rc;
    }
    return load_add_text(p, m->text.data, m->text.len, (uint32_t)m->ids.n, out, err);
}

int load_make_random(struct vt_load_plan *p, const struct vt_load_data *d,
                     struct vt_err *err)
{
    struct random_job j = {0};
    int rc = open_random(&j, d, err);

    for (size_t i = 0; rc == VT_OK && i < d->n; i++)
        rc = add_random(&j, p, i, d, err);
    p->ignore_eos = true;
    vt_ids_free(&j.prefix);
    load_maker_close(&j.maker);
    return rc;
}

/* ---- repeated prefixes ------------------------------------------------ */

static int add_repeated(struct load_maker *m, struct vt_load_plan *p,
                        const struct vt_load_data *d, const struct vt_ids *prefix,
                        struct vt_err *err)
{
    size_t n = prefix->n;
    int rc;

    if ((rc = any_tokens(m, d->suffix_len, err)) ||
        (rc = vt_grow(&m->ids.id, &m->ids.cap, n + m->ids.n, sizeof(*m->ids.id), err)))
        return rc;
    memmove(m->ids.id + n, m->ids.id, m->ids.n * sizeof(*m->ids.id));
    if (n > 0)
        memcpy(m->ids.id, prefix->id, n * sizeof(*m->ids.id));
    m->ids.n += n;
    rc = load_maker_decode(m, err);
    return rc ? rc
              : load_add_text(p, m->text.data, m->text.len, (uint32_t)m->ids.n,
                              d->repetition_output_len, err);
}

int load_make_repetition(struct vt_load_plan *p, const struct vt_load_data *d,
                         struct vt_err *err)
{
    size_t each = d->prefixes > 0 ? d->n / d->prefixes : 0;
    struct load_maker m = {0};
    int rc;

    if (each == 0)
        return vt_fail(err, VT_EINPUT, "%zu prompts are fewer than %u prefixes", d->n,
                       (unsigned)d->prefixes);
    rc = load_maker_open(&m, d, "prefix_repetition", err);
    for (uint32_t i = 0; rc == VT_OK && i < d->prefixes; i++) {
        struct vt_ids prefix;

        rc = make_prefix(&m, d->prefix_len, &prefix, err);
        for (size_t k = 0; rc == VT_OK && k < each; k++)
            rc = add_repeated(&m, p, d, &prefix, err);
        vt_ids_free(&prefix);
    }
    if (rc == VT_OK && !d->no_shuffle)
        load_shuffle(&m.rng, p->session, p->n, sizeof(*p->session));
    load_maker_close(&m);
    return rc;
}
