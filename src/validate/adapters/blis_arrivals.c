/* blis_arrivals.c - when BLIS sends a profile's requests: the same microseconds as the
 * program's own, because both draw the same numbers.
 *
 * Each system prompt has so many users, and each user is a client of its own. Where a
 * profile says that turns are of a chat, a client is one session in a closed loop: its
 * next turn comes when the last one has ended, and after as long as all clients take
 * for a turn each. So a server that is slow gets fewer requests a second than the
 * profile says. Turns do not grow, and one that takes too long is the session's last.
 *
 * The releases of March 2026 knew no closed loop: there a client starts sessions at the
 * rate of its requests, each of five turns that hold all before, at fixed times and
 * without the system prompt, until there are as many requests as the profile has. */
#include <math.h>
#include <stdlib.h>

#include "validate/adapters/adapter.h"
#include "validate/adapters/go_rand.h"

enum {
    SEED = 42,
    TOKEN_IDS = 128000,  /* BLIS draws tokens, too, from the numbers of a client */
    DEFAULT_PREFIX = 50, /* where the profile says 0 */
    MOST_CLIENTS = 1000000,
    TURN_S = 300, /* after which a session is given up */
    EARLY_TURNS = 5,
    EARLY_THINK_US = 500000,
};

struct call { /* a request, or a session by its first one */
    int64_t at_us;
    size_t order;            /* in which BLIS made them */
    uint32_t group;          /* system prompt */
    uint32_t rounds;         /* that follow each other in a closed loop, */
    int64_t think_us;        /* each so long after the end of the one before */
    uint32_t session, round; /* of those of March 2026 */
};

struct maker {
    const struct vt_experiment *e;
    const struct vt_shared_prefix *p;
    uint32_t prefix, question, output; /* tokens */
    uint64_t clients, most;            /* clients of a stage; requests in all */
    struct go_rand parts;              /* gives each client its seed */
    struct call *call;
    size_t n, cap;
};

static uint32_t at_least_one(uint32_t tokens)
{
    return tokens > 0 ? tokens : 1;
}

/* Rounded up no request is lost, since their number ends the run. */
int64_t blis_seconds(const struct vt_stage_plan *p)
{
    return (int64_t)ceil(p->duration_s);
}

uint32_t blis_stage_at(const struct vt_experiment *e, double s)
{
    double end = 0;

    for (size_t i = 0; i + 1 < e->n_plan; i++) {
        end += e->plan[i].duration_s;
        if (s <= end)
            return (uint32_t)i;
    }
    return e->n_plan > 0 ? (uint32_t)e->n_plan - 1 : 0;
}

static int open_maker(struct maker *m, const struct vt_experiment *e,
                      struct vt_err *err)
{
    const struct vt_shared_prefix *p = &e->prefix;

    *m = (struct maker){
        .e = e,
        .p = p,
        .prefix = p->system_prompt_len > 0 ? p->system_prompt_len : DEFAULT_PREFIX,
        .question = at_least_one(p->question_len),
        .output = at_least_one(p->output_len),
        .clients =
            (uint64_t)p->num_unique_system_prompts * p->num_users_per_system_prompt,
        .most = gather_planned(e),
    };
    for (size_t i = 0; i < e->n_plan; i++)
        if (!(e->plan[i].rate > 0 && e->plan[i].duration_s > 0))
            return vt_fail(err, VT_EINPUT,
                           "BLIS has no stage of %g requests a second for %g s",
                           e->plan[i].rate, e->plan[i].duration_s);
    if (m->clients > MOST_CLIENTS)
        return vt_fail(err, VT_EINPUT, "more than %d users", MOST_CLIENTS);
    go_rand_seed(&m->parts, go_rand_part(SEED, "workload-gen"));
    go_rand_pass(&m->parts, TOKEN_IDS,
                 (uint64_t)p->num_unique_system_prompts * m->prefix);
    return VT_OK;
}

static int add_call(struct maker *m, struct call c, struct vt_err *err)
{
    int rc = vt_grow(&m->call, &m->cap, m->n + 1, sizeof(*m->call), err);

    c.order = m->n;
    if (rc == VT_OK)
        m->call[m->n++] = c;
    return rc;
}

static uint32_t group_of(const struct maker *m, uint64_t client)
{
    return (uint32_t)(client / m->p->num_users_per_system_prompt);
}

/* Microseconds to the next request of a client with so many in a microsecond. */
static int64_t draw_gap(struct go_rand *r, double rate_us)
{
    double us = go_rand_exp(r) / rate_us;

    return us < 1 ? 1 : us < 9e18 ? (int64_t)us : INT64_MAX / 2;
}

/* All clients have equal shares, which BLIS divides by their sum. */
static double shared_rate(const struct maker *m, double aggregate)
{
    double share = 1.0 / (double)m->clients, sum = 0;

    for (uint64_t i = 0; i < m->clients; i++)
        sum += share;
    return aggregate * (share / sum) / 1e6;
}

/* Of `total` requests those of one client: the first ones have one more. */
static uint64_t share_of(const struct maker *m, uint64_t total, uint64_t client)
{
    return total / m->clients + (client < total % m->clients);
}

/* ---- since then ---------------------------------------------------------------- */

/* Of one stage alone gaps fill it: drawn for the whole of it and stretched. */
static int fill_stage(struct maker *m, struct go_rand *own, uint64_t client,
                      uint64_t requests, int64_t us, struct vt_err *err)
{
    double rate = (double)requests / (double)us, sum = 0;
    struct go_rand again;
    int64_t at = 0;
    int rc = VT_OK;

    go_rand_seed(own, go_rand_int63(own));
    again = *own;
    for (uint64_t i = 0; i < requests; i++)
        sum += go_rand_exp(&again) / rate;
    for (uint64_t i = 0; i < requests && rc == VT_OK; i++) {
        int64_t gap = (int64_t)(go_rand_exp(own) / rate * ((double)us / sum));

        at += gap < 1 ? 1 : gap;
        rc = add_call(
            m, (struct call){.at_us = at, .group = group_of(m, client), .rounds = 1},
            err);
    }
    return rc;
}

/* Of several, a client sends from the start of the run, and what is not within its
 * stage is dropped. */
static int pass_stage(struct maker *m, struct go_rand *own, uint64_t client,
                      double rate_us, int64_t from, int64_t until, struct vt_err *err)
{
    uint64_t sent = 0;
    int64_t at = 0;
    int rc = VT_OK;

    while (rc == VT_OK && sent < 2 * m->most) {
        at += draw_gap(own, rate_us);
        if (at >= until)
            break;
        if (at < from)
            continue;
        go_rand_pass(own, TOKEN_IDS, (uint64_t)m->question + m->output);
        rc = add_call(
            m, (struct call){.at_us = at, .group = group_of(m, client), .rounds = 1},
            err);
        sent++;
    }
    return rc;
}

static int add_client(struct maker *m, size_t stage, int64_t from, uint64_t client,
                      struct vt_err *err)
{
    const struct vt_stage_plan *s = &m->e->plan[stage];
    int64_t us = blis_seconds(s) * 1000000, start;
    uint64_t requests =
        share_of(m, (uint64_t)(s->rate * (double)blis_seconds(s)), client);
    bool alone = m->e->n_plan == 1;
    double rate_us = s->rate / (double)m->clients / 1e6;
    struct go_rand own;

    go_rand_seed(&own, go_rand_int63(&m->parts));
    if (requests == 0 && (alone || m->p->enable_multi_turn_chat))
        return vt_fail(err, VT_EINPUT, "BLIS has a user without a request");
    if (alone && !m->p->enable_multi_turn_chat)
        return fill_stage(m, &own, client, requests, us, err);
    if (alone)
        rate_us = shared_rate(m, s->rate);
    else
        (void)go_rand_int63(&own);
    if (!m->p->enable_multi_turn_chat)
        return pass_stage(m, &own, client, rate_us, from, from + us, err);
    start = from + draw_gap(&own, rate_us);
    if (!alone && start >= from + us)
        return VT_OK;
    return add_call(
        m,
        (struct call){.at_us = start,
                      .group = group_of(m, client),
                      .rounds = (uint32_t)requests,
                      .think_us = (int64_t)((double)m->clients / s->rate * 1e6)},
        err);
}

static int add_clients(struct maker *m, struct vt_err *err)
{
    int64_t from = 0;
    int rc = VT_OK;

    for (size_t s = 0; s < m->e->n_plan && rc == VT_OK; s++) {
        for (uint64_t c = 0; c < m->clients && rc == VT_OK; c++)
            rc = add_client(m, s, from, c, err);
        from += blis_seconds(&m->e->plan[s]) * 1000000;
    }
    return rc;
}

/* ---- those of March 2026 ------------------------------------------------------- */

struct early { /* a client */
    struct go_rand own;
    int64_t at_us; /* of its next session */
    uint64_t sent;
};

/* Five turns, or the one request where there are no turns. */
static int add_early(struct maker *m, struct early *c, uint64_t client,
                     uint32_t session, struct vt_err *err)
{
    bool chat = m->p->enable_multi_turn_chat;
    int rc = VT_OK;

    if (chat)
        (void)go_rand_int63(&c->own); /* the session's name */
    for (uint32_t k = 0; k < (chat ? EARLY_TURNS : 1u) && rc == VT_OK; k++) {
        int64_t turn_us = (int64_t)EARLY_THINK_US + m->output;

        go_rand_pass(&c->own, TOKEN_IDS, (uint64_t)m->question + m->output);
        rc = add_call(m,
                      (struct call){.at_us = c->at_us + k * turn_us,
                                    .group = group_of(m, client),
                                    .rounds = 1,
                                    .session = session,
                                    .round = k},
                      err);
        c->sent++;
    }
    return rc;
}

/* Sessions of all clients that start until then. Only the earliest requests count, so
 * it is not needed to draw all that BLIS would. */
static int add_until(struct maker *m, struct early *c, double rate_us, int64_t until,
                     uint32_t *sessions, struct vt_err *err)
{
    int rc = VT_OK;

    for (uint64_t i = 0; i < m->clients; i++)
        while (rc == VT_OK && c[i].at_us <= until && c[i].sent < 2 * m->most) {
            rc = add_early(m, &c[i], i, (*sessions)++, err);
            c[i].at_us += draw_gap(&c[i].own, rate_us);
        }
    return rc;
}

static bool is_enough(const struct maker *m, const struct early *c, int64_t until)
{
    uint64_t known = 0, more = 0;

    for (size_t i = 0; i < m->n; i++)
        known += m->call[i].at_us <= until;
    for (uint64_t i = 0; i < m->clients; i++)
        more += c[i].sent < 2 * m->most;
    return known >= m->most || more == 0;
}

static int add_early_clients(struct maker *m, struct vt_err *err)
{
    double requests = 0, seconds = 0, rate_us;
    struct early *c = calloc(m->clients, sizeof(*c));
    uint32_t sessions = 0;
    int rc = c ? VT_OK : vt_nomem(err);

    for (size_t i = 0; i < m->e->n_plan; i++) {
        double s = (double)blis_seconds(&m->e->plan[i]);

        requests += m->e->plan[i].rate * s;
        seconds += s;
    }
    if (rc == VT_OK && m->e->n_plan > 1 && !m->p->enable_multi_turn_chat)
        rc = vt_fail(err, VT_EINPUT,
                     "BLIS of March 2026 never ends with stages and no turns");
    rate_us = shared_rate(m, requests / seconds);
    for (uint64_t i = 0; i < m->clients && rc == VT_OK; i++) {
        go_rand_seed(&c[i].own, go_rand_int63(&m->parts));
        c[i].at_us = draw_gap(&c[i].own, rate_us);
    }
    for (int64_t until = (int64_t)(seconds * 2.5e5); rc == VT_OK; until += until) {
        rc = add_until(m, c, rate_us, until, &sessions, err);
        if (rc == VT_OK && is_enough(m, c, until))
            break;
    }
    free(c);
    return rc;
}

/* ---- to a workload ------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    const struct call *p = a, *q = b;

    if (p->at_us != q->at_us)
        return p->at_us < q->at_us ? -1 : 1;
    return p->order < q->order ? -1 : 1;
}

/* A turn of a closed loop, or a request: its group's system prompt and a question that
 * nobody else asks. The system prompt that BLIS makes up is of first turns only. */
static int put_call(struct adapter_work *w, const struct maker *m, const struct call *c,
                    uint32_t turn, struct vt_err *err)
{
    uint32_t prefix = turn == 0 ? m->prefix : m->p->system_prompt_len;
    uint64_t question = w->w.n;
    int rc = adapter_work_add(w, c->at_us * 1000, prefix + m->question, m->output,
                              blis_stage_at(m->e, (double)c->at_us / 1e6), err);

    if (rc == VT_OK)
        rc = adapter_work_segment(w, vt_hash2(11, c->group), prefix, err);
    return rc ? rc : adapter_work_segment(w, vt_hash2(12, question), m->question, err);
}

static int put_session(struct adapter_work *w, const struct maker *m,
                       const struct call *c, uint32_t session, struct vt_err *err)
{
    size_t first = w->w.n;
    int rc = VT_OK;

    for (uint32_t k = 0; k < c->rounds && rc == VT_OK; k++) {
        rc = put_call(w, m, c, k, err);
        if (rc != VT_OK || c->rounds == 1)
            continue;
        w->w.req[first + k].session = session;
        w->w.req[first + k].turn = k;
        w->w.req[first + k].first_turn = k == 0;
        w->w.req[first + k].think_ns = k == 0 ? 0 : c->think_us * 1000;
        if (k + 1 < c->rounds)
            w->w.req[first + k].next_turn = (uint32_t)(first + k + 1);
    }
    return rc;
}

/* All that was said before, and a question; outputs are found again in later turns. */
static int put_turn(struct adapter_work *w, const struct maker *m, const struct call *c,
                    struct vt_err *err)
{
    uint32_t before = c->round * (m->question + m->output);
    uint64_t said = vt_hash2(13, c->session);
    int rc = adapter_work_add(w, c->at_us * 1000, before + m->question, m->output,
                              blis_stage_at(m->e, (double)c->at_us / 1e6), err);

    for (uint32_t k = 0; k <= c->round && rc == VT_OK; k++) {
        rc = adapter_work_segment(w, vt_hash2(said, 2 * k), m->question, err);
        if (rc == VT_OK && k < c->round)
            rc = adapter_work_segment(w, vt_hash2(said, 2 * k + 1), m->output, err);
    }
    if (rc == VT_OK)
        w->w.req[w->w.n - 1].output_content = vt_hash2(said, 2 * c->round + 1);
    return rc;
}

int blis_arrivals_open(struct adapter_work *w, const struct vt_experiment *e,
                       bool early, struct vt_err *err)
{
    struct maker m;
    int rc = open_maker(&m, e, err);

    if (rc == VT_OK)
        rc = early ? add_early_clients(&m, err) : add_clients(&m, err);
    if (rc == VT_OK && m.n > 0)
        qsort(m.call, m.n, sizeof(*m.call), by_time);
    if (rc == VT_OK && !m.p->enable_multi_turn_chat && m.n > m.most)
        m.n = m.most;
    if (rc == VT_OK && early && m.n > m.most)
        m.n = m.most;
    for (size_t i = 0; i < m.n && rc == VT_OK; i++)
        rc = early && m.p->enable_multi_turn_chat
                 ? put_turn(w, &m, &m.call[i], err)
                 : put_session(w, &m, &m.call[i], (uint32_t)i, err);
    free(m.call);
    if (rc != VT_OK || early || !m.p->enable_multi_turn_chat)
        return rc;
    w->w.arrivals = VT_ARRIVALS_SESSION;
    w->patience = malloc((w->w.n + 1) * sizeof(*w->patience));
    if (!w->patience)
        return vt_nomem(err);
    for (size_t i = 0; i < w->w.n; i++)
        w->patience[i] = TURN_S * VT_SEC;
    return VT_OK;
}
