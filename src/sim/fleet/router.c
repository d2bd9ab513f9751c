/* router.c - which engine gets a request. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fleet/router.h"

struct router {
    const struct policy *policy;
    struct term term[MAX_TERMS];
    uint32_t n_terms;
    unsigned wants;
    struct standing *standing; /* NULL: every candidate is scored for each request */
    struct memory memory;
    uint32_t n;
    uint32_t vllm; /* as router_config's */
    bool lockstep;
    struct vt_rng rng;
    uint64_t round[N_POOLS];
    double *score, *sum; /* scratch: one for each candidate */
    uint32_t *tied;
};

struct policy {
    const char *name;
    unsigned wants;
    uint32_t (*pick)(struct router *r, const struct ask *a); /* a candidate's place */
};

/* ---- policies --------------------------------------------------------- */

static uint32_t pick_tied(struct router *r, uint32_t n_tied)
{
    return r->tied[n_tied > 1 ? vt_rng_below(&r->rng, n_tied) : 0];
}

static uint32_t pick_round_robin(struct router *r, const struct ask *a)
{
    return (uint32_t)(r->round[a->pool]++ % a->n);
}

static uint32_t pick_random(struct router *r, const struct ask *a)
{
    return (uint32_t)vt_rng_below(&r->rng, a->n);
}

static uint32_t load_at(const struct ask *a, uint32_t k)
{
    return requests_at(&a->seen[a->candidate[k]]);
}

static uint32_t pick_extreme(struct router *r, const struct ask *a, bool most)
{
    uint32_t best = UINT32_MAX, n = 0;

    for (uint32_t k = 0; k < a->n; k++) {
        uint32_t load = most ? UINT32_MAX - load_at(a, k) : load_at(a, k);

        if (load < best)
            n = 0;
        if (load <= best) {
            best = load;
            r->tied[n++] = k;
        }
    }
    return pick_tied(r, n);
}

static uint32_t pick_least_loaded(struct router *r, const struct ask *a)
{
    return pick_extreme(r, a, false);
}

static uint32_t pick_busiest(struct router *r, const struct ask *a)
{
    return pick_extreme(r, a, true);
}

static uint32_t pick_power_of_two(struct router *r, const struct ask *a)
{
    uint32_t one = (uint32_t)vt_rng_below(&r->rng, a->n), two;

    if (a->n == 1)
        return one;
    two = (uint32_t)vt_rng_below(&r->rng, a->n - 1);
    two += two >= one;
    return load_at(a, two) < load_at(a, one) ? two : one;
}

/* What vLLM's data-parallel client takes for an engine's load. In 0.26 engines that are
 * independent tell it nothing. Since 0.27 it knows what it has sent, and a queue weighs
 * the more the fuller the KV cache is. */
static double vllm_load(const struct router *r, const struct seen *s)
{
    double here = (double)s->waiting + s->running, load;

    if (r->vllm < 27)
        return r->lockstep ? 4.0 * s->waiting + s->running : 0;
    load = s->in_flight > here ? s->in_flight : here;
    return s->kv_usage > 0.5 ? load + s->waiting * 6.0 * (s->kv_usage - 0.5) : load;
}

/* It counts what it sends as waiting until the engines tell anew, and looks at them
 * from another one on for each request: the first of equals wins. */
static uint32_t pick_vllm_dp(struct router *r, const struct ask *a)
{
    uint32_t from = pick_round_robin(r, a), best = from;
    double least = INFINITY;

    for (uint32_t i = 0; i < a->n; i++) {
        uint32_t k = (from + i) % a->n;
        double load = vllm_load(r, &a->seen[a->candidate[k]]);

        if (load < least) {
            least = load;
            best = k;
        }
    }
    a->seen[a->candidate[best]].waiting++;
    return best;
}

static uint32_t pick_session(struct router *r, const struct ask *a)
{
    uint32_t home = home_of(&r->memory, a);

    if (home != NO_HOME && a->place[home] != NO_PLACE)
        return a->place[home];
    return pick_least_loaded(r, a);
}

static uint32_t pick_weighted(struct router *r, const struct ask *a)
{
    double best = -1.0;
    uint32_t n = 0;

    if (r->standing)
        return standing_pick(r->standing, &r->memory, a, &r->rng);
    memset(r->sum, 0, a->n * sizeof(*r->sum));
    for (uint32_t i = 0; i < r->n_terms; i++) {
        scorer_score(r->term[i].scorer, &r->memory, a, r->score);
        for (uint32_t k = 0; k < a->n; k++)
            r->sum[k] += term_part(&r->term[i], r->score[k]);
    }
    for (uint32_t k = 0; k < a->n; k++) {
        if (r->sum[k] > best)
            n = 0;
        if (r->sum[k] >= best) {
            best = r->sum[k];
            r->tied[n++] = k;
        }
    }
    return pick_tied(r, n);
}

/* To add one: write its function, add a row, and its line in docs/simulate.md. */
static const struct policy policies[] = {
    {"round-robin", 0, pick_round_robin},
    {"random", 0, pick_random},
    {"least-loaded", WANT_STATE | WANT_EXACT, pick_least_loaded},
    {"always-busiest", WANT_STATE | WANT_EXACT, pick_busiest},
    {"power-of-two", WANT_STATE | WANT_EXACT, pick_power_of_two},
    {"vllm-dp", WANT_STATE | WANT_EXACT, pick_vllm_dp},
    {"session-affinity", WANT_STATE | WANT_EXACT | WANT_HOME, pick_session},
};
static const struct policy weighted = {"weighted", 0, pick_weighted};
#define DEFAULT_TERMS "precise-prefix-cache:2,queue-depth:1,kv-utilization:1"

/* ---- from text -------------------------------------------------------- */

static int unknown_routing(const char *name, struct vt_err *err)
{
    const char *names[64];
    size_t n = 0;

    for (; n < VT_COUNT(policies); n++)
        names[n] = policies[n].name;
    names[n++] = weighted.name;
    n += scorer_names(names + n, VT_COUNT(names) - n - 1);
    names[n] = NULL;
    return vt_fail_unknown(err, "routing", name, -1, names);
}

/* "queue-depth:2", of `len` bytes. */
static int add_term(struct router *r, const char *text, size_t len, struct vt_err *err)
{
    const char *colon = memchr(text, ':', len);
    size_t name_len = colon ? (size_t)(colon - text) : len;
    struct term t = {scorer_find(text, name_len), 1.0};
    char name[64];

    (void)snprintf(name, sizeof(name), "%.*s", (int)(name_len < 63 ? name_len : 63),
                   text);
    if (!t.scorer)
        return unknown_routing(name, err);
    if (colon && (!vt_parse_f64(colon + 1, len - name_len - 1, &t.weight) ||
                  t.weight <= 0.0 || t.weight > 1e9))
        return vt_fail(err, VT_EINPUT, "the weight of '%s' must be a number above 0",
                       name);
    for (uint32_t i = 0; i < r->n_terms; i++)
        if (r->term[i].scorer == t.scorer)
            return vt_fail(err, VT_EINPUT, "'%s' is given twice", name);
    if (r->n_terms == MAX_TERMS)
        return vt_fail(err, VT_EINPUT, "more than %d scorers", MAX_TERMS);
    r->term[r->n_terms++] = t;
    return VT_OK;
}

static int parse_terms(struct router *r, const char *text, struct vt_err *err)
{
    double total = 0.0;

    r->policy = &weighted;
    for (const char *at = text;; at++) {
        size_t len = strcspn(at, ",");
        int rc = add_term(r, at, len, err);

        if (rc != VT_OK)
            return rc;
        at += len;
        if (*at == '\0')
            break;
    }
    for (uint32_t i = 0; i < r->n_terms; i++)
        total += r->term[i].weight;
    for (uint32_t i = 0; i < r->n_terms; i++)
        r->term[i].weight /= total;
    return VT_OK;
}

static int parse_routing(struct router *r, const char *text, struct vt_err *err)
{
    for (size_t i = 0; i < VT_COUNT(policies); i++)
        if (strcmp(text, policies[i].name) == 0) {
            r->policy = &policies[i];
            return VT_OK;
        }
    return parse_terms(r, strcmp(text, weighted.name) == 0 ? DEFAULT_TERMS : text, err);
}

int vt_routing_check(const char *routing, struct vt_err *err)
{
    struct router r = {0};

    return parse_routing(&r, routing, err);
}

/* ---- life ------------------------------------------------------------- */

static int open_homes(struct memory *m, size_t n_sessions, struct vt_err *err)
{
    for (unsigned p = 0; p < N_POOLS; p++) {
        m->home[p] = malloc((n_sessions + 1) * sizeof(*m->home[p]));
        if (!m->home[p])
            return vt_nomem(err);
        for (size_t i = 0; i < n_sessions; i++)
            m->home[p][i] = NO_HOME;
    }
    return VT_OK;
}

static void put_between(struct memory *m, uint32_t older, uint32_t i, uint32_t newer)
{
    m->older[i] = older;
    m->newer[i] = newer;
    m->newer[older] = m->older[newer] = i;
}

static int open_memory(struct router *r, size_t n_sessions, struct vt_err *err)
{
    struct memory *m = &r->memory;

    m->n = r->n;
    m->newer = calloc((size_t)r->n + 1, sizeof(*m->newer));
    m->older = calloc((size_t)r->n + 1, sizeof(*m->older));
    m->chosen = calloc(r->n, sizeof(*m->chosen));
    m->lru = calloc(r->n, sizeof(*m->lru));
    if (!m->newer || !m->older || !m->chosen || !m->lru)
        return vt_nomem(err);
    m->newer[r->n] = m->older[r->n] = r->n;
    for (uint32_t i = 0; i < r->n; i++) {
        put_between(m, m->older[r->n], i, r->n);
        m->lru[i] =
            (struct key_lru){.cap = ROUTER_LRU_KEYS, .instance = i, .index = &m->sent};
    }
    return r->wants & WANT_HOME ? open_homes(m, n_sessions, err) : VT_OK;
}

static unsigned wants_of(const struct router *r)
{
    unsigned wants = r->policy->wants;

    for (uint32_t i = 0; i < r->n_terms; i++)
        wants |= r->term[i].scorer->wants;
    return wants;
}

/* Where all terms allow it. */
static int open_standing(struct router *r, struct vt_err *err)
{
    for (uint32_t i = 0; i < r->n_terms; i++)
        if (r->term[i].scorer->by == BY_ALL)
            return VT_OK;
    return r->n_terms > 0 ? standing_new(&r->standing, r->term, r->n_terms, r->n, err)
                          : VT_OK;
}

int router_new(struct router **out, const struct router_config *c, struct vt_err *err)
{
    struct router *r = calloc(1, sizeof(*r));
    int rc = r ? parse_routing(r, c->routing, err) : vt_nomem(err);

    *out = NULL;
    if (rc != VT_OK)
        goto fail;
    r->n = c->n_instances;
    r->wants = wants_of(r);
    r->vllm = c->vllm;
    r->lockstep = c->lockstep;
    vt_rng_init(&r->rng, c->seed, "router");
    r->score = calloc(r->n, sizeof(*r->score));
    r->sum = calloc(r->n, sizeof(*r->sum));
    r->tied = calloc(r->n, sizeof(*r->tied));
    rc = r->score && r->sum && r->tied ? open_memory(r, c->n_sessions, err)
                                       : vt_nomem(err);
    if (rc != VT_OK || (!c->one_by_one && (rc = open_standing(r, err))))
        goto fail;
    *out = r;
    return VT_OK;
fail:
    router_free(r);
    return rc;
}

void router_free(struct router *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; r->memory.lru && i < r->n; i++)
        key_lru_free(&r->memory.lru[i]);
    free(r->memory.lru);
    holders_free(&r->memory.sent);
    free(r->memory.newer);
    free(r->memory.older);
    free(r->memory.chosen);
    standing_free(r->standing);
    for (unsigned p = 0; p < N_POOLS; p++)
        free(r->memory.home[p]);
    free(r->score);
    free(r->sum);
    free(r->tied);
    free(r);
}

unsigned router_wants(const struct router *r)
{
    return r->wants;
}

static void leave_ring(struct memory *m, uint32_t i)
{
    m->newer[m->older[i]] = m->newer[i];
    m->older[m->newer[i]] = m->older[i];
}

void router_forget(struct router *r, uint32_t instance)
{
    struct memory *m = &r->memory;
    uint32_t before = m->n; /* it goes among those never chosen, by number */

    key_lru_free(&m->lru[instance]);
    holders_forget(&m->sent, instance);
    leave_ring(m, instance);
    m->chosen[instance] = false;
    while (m->newer[before] < instance && !m->chosen[m->newer[before]])
        before = m->newer[before];
    put_between(m, before, instance, m->newer[before]);
}

/* ---- one request ------------------------------------------------------ */

int router_pick(struct router *r, const struct ask *a, uint32_t *instance,
                struct vt_err *err)
{
    struct memory *m = &r->memory;

    *instance = a->candidate[r->policy->pick(r, a)];
    leave_ring(m, *instance);
    put_between(m, m->older[m->n], *instance, m->n);
    m->chosen[*instance] = true;
    if (a->session != VT_NO_TURN && m->home[a->pool])
        m->home[a->pool][a->session] = *instance;
    if ((r->wants & WANT_SENT) != 0 &&
        !key_lru_note(&m->lru[*instance], a->key, a->n_keys))
        return vt_nomem(err);
    return VT_OK;
}
