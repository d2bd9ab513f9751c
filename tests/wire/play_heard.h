/* play_heard.h - what a frontend heard of each request, and the rules that hold for
 * every message of an engine. */
#ifndef VT_TESTS_WIRE_PLAY_HEARD_H
#define VT_TESTS_WIRE_PLAY_HEARD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "wire/codec/codec.h"

struct chunk { /* one output with tokens */
    double at; /* engine seconds */
    vt_ns wall;
    uint32_t n_tokens;
};

struct told { /* of one request */
    char id[80];
    uint32_t client, engine; /* that it was told to and by, with its last output */
    uint32_t *token;
    size_t n_tokens, cap_tokens;
    struct chunk *chunk;
    size_t n_chunks, cap_chunks;
    uint32_t n_outputs;
    char finish[16];    /* "": it goes on */
    bool stop_said;     /* with a stop_reason, */
    int64_t stop_token; /* a token id */
    double queued, scheduled;
    uint32_t preemptions;
    bool has_prefill; /* it was told how its prompt was computed, */
    uint32_t cached;  /* and so many tokens were not */
    uint32_t n_with_prefill, n_with_events, n_with_logprobs;
};

struct heard {
    struct told *told; /* owned, in order of their first output */
    size_t n, cap;
    uint32_t finished;
    uint32_t messages;   /* with outputs */
    uint32_t stats_only; /* with statistics and nothing else */
    uint32_t with_stats;
    uint64_t queries, hits;
    uint32_t running, waiting, running_max, waiting_max; /* of the last one, of all */
    double kv_usage, kv_usage_max;
    double timestamp; /* of the last message with outputs or statistics */
    uint32_t largest; /* outputs of one message */
};

static inline void heard_free(struct heard *h)
{
    for (size_t i = 0; i < h->n; i++) {
        free(h->told[i].token);
        free(h->told[i].chunk);
    }
    free(h->told);
    *h = (struct heard){0};
}

static inline struct told *told_of(struct heard *h, const char *id)
{
    for (size_t i = 0; i < h->n; i++)
        if (strcmp(h->told[i].id, id) == 0)
            return &h->told[i];
    return NULL;
}

static inline struct told *told_or_new(struct heard *h, const char *id, size_t hint)
{
    struct told *t = hint < h->n && strcmp(h->told[hint].id, id) == 0 ? &h->told[hint]
                                                                      : told_of(h, id);

    if (t != NULL)
        return t;
    assert_int_equal(vt_grow(&h->told, &h->cap, h->n + 1, sizeof(*h->told), NULL),
                     VT_OK);
    t = &h->told[h->n++];
    *t = (struct told){.stop_token = -1};
    (void)snprintf(t->id, sizeof(t->id), "%s", id);
    return t;
}

static inline void take_tokens(struct told *t, const struct vt_frontend_output *o,
                               const struct vt_frontend_message *m)
{
    assert_int_equal(vt_grow(&t->token, &t->cap_tokens, t->n_tokens + o->n_tokens,
                             sizeof(*t->token), NULL),
                     VT_OK);
    for (uint32_t i = 0; i < o->n_tokens; i++)
        t->token[t->n_tokens++] = o->token[i];
    if (o->n_tokens == 0)
        return;
    assert_int_equal(
        vt_grow(&t->chunk, &t->cap_chunks, t->n_chunks + 1, sizeof(*t->chunk), NULL),
        VT_OK);
    t->chunk[t->n_chunks++] = (struct chunk){m->timestamp, m->at, o->n_tokens};
}

static inline void take_stop(struct told *t, const struct vt_frontend_output *o)
{
    struct mp_in in;

    t->stop_said = o->stop_reason.at != NULL;
    if (!t->stop_said)
        return;
    mp_in_init(&in, o->stop_reason.at, o->stop_reason.len);
    t->stop_token = mp_peek(&in) == MP_INT ? mp_i64(&in) : -2;
}

static inline void take_told(struct heard *h, const struct vt_frontend_output *o,
                             const struct vt_frontend_message *m, size_t hint)
{
    struct told *t = told_or_new(h, o->id, hint);

    assert_string_equal(t->finish, ""); /* nothing follows the end */
    t->client = m->client;
    t->engine = m->engine;
    t->n_outputs++;
    take_tokens(t, o, m);
    if (o->queued > 0)
        t->queued = o->queued;
    if (o->scheduled > 0)
        t->scheduled = o->scheduled;
    t->n_with_events += o->queued > 0 || o->scheduled > 0 || o->preemptions > 0;
    t->preemptions += o->preemptions;
    t->n_with_prefill += o->has_prefill;
    t->n_with_logprobs += o->has_logprobs;
    if (o->has_prefill) {
        t->has_prefill = true;
        t->cached = o->cached_tokens;
    }
    if (o->finish_reason == NULL)
        return;
    (void)snprintf(t->finish, sizeof(t->finish), "%s", o->finish_reason);
    take_stop(t, o);
    h->finished++;
}

static inline void take_stats(struct heard *h, const struct vt_frontend_message *m)
{
    h->with_stats++;
    h->stats_only += m->n_outputs == 0;
    h->queries += m->queries;
    h->hits += m->hits;
    h->running = m->running;
    h->waiting = m->waiting;
    h->kv_usage = m->kv_usage;
    h->running_max = m->running > h->running_max ? m->running : h->running_max;
    h->waiting_max = m->waiting > h->waiting_max ? m->waiting : h->waiting_max;
    h->kv_usage_max = m->kv_usage > h->kv_usage_max ? m->kv_usage : h->kv_usage_max;
}

/* A request has at most one output in a message. */
static inline void assert_no_twins(const struct vt_frontend_message *m)
{
    static uint64_t seen[1 << 12]; /* a set, cleared each time */
    uint32_t mask = VT_COUNT(seen) - 1;

    if (m->n_outputs < 2)
        return;
    assert_true(m->n_outputs < VT_COUNT(seen) / 2);
    memset(seen, 0, sizeof(seen));
    for (uint32_t i = 0; i < m->n_outputs; i++) {
        const char *id = m->output[i].id;
        uint64_t hash = vt_hash_bytes(id, strlen(id), 1) | 1;
        uint32_t at = (uint32_t)(hash >> 20) & mask;

        while (seen[at] != 0 && seen[at] != hash)
            at = (at + 1) & mask;
        if (seen[at] == hash)
            fail_msg("%s has two outputs in one message", id);
        seen[at] = hash;
    }
}

/* Every message is one of: outputs or statistics; an answer to a call; a wave. */
static inline void assert_one_kind(const struct vt_frontend_message *m)
{
    int kinds = (m->n_outputs > 0 || m->has_stats) + m->has_utility +
                (m->wave_complete >= 0) + (m->start_wave >= 0);

    assert_true(kinds <= 1);
    if (m->has_utility || m->wave_complete >= 0 || m->start_wave >= 0)
        assert_false(m->has_stats);
}

static inline void hear(struct heard *h, const struct vt_frontend_message *m)
{
    if (m->bad != NULL)
        fail_msg("%s", m->bad);
    assert_one_kind(m);
    assert_no_twins(m);
    if (m->client == VT_FRONTEND_COORDINATOR || m->dead)
        return;
    if (m->n_outputs > 0)
        h->messages++;
    if (m->n_outputs > h->largest)
        h->largest = m->n_outputs;
    for (uint32_t i = 0; i < m->n_outputs; i++)
        take_told(h, &m->output[i], m, i);
    if (m->has_stats)
        take_stats(h, m);
    if (m->n_outputs > 0 || m->has_stats)
        h->timestamp = m->timestamp;
}

#endif
