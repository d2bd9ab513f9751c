/* router.c - which engine gets a request. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fleet/router.h"

enum { MAX_TERMS = 16 };

struct term {
    const struct scorer *scorer;
    double weight; /* all of them add up to 1 */
};

struct router {
    const struct policy *policy;
    struct term term[MAX_TERMS];
    uint32_t n_terms;
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
    uint32_t home =
        a->session != VT_NO_TURN ? r->memory.home[a->pool][a->session] : NO_HOME;

    for (uint32_t k = 0; k < a->n; k++)
        if (a->candidate[k] == home)
            return k;
    return pick_least_loaded(r, a);
}

static uint32_t pick_weighted(struct router *r, const struct ask *a)
{
    double best = -1.0;
    uint32_t n = 0;

    memset(r->sum, 0, a->n * sizeof(*r->sum));
    for (uint32_t i = 0; i < r->n_terms; i++) {
        scorer_score(r->term[i].scorer, &r->memory, a, r->score);
        for (uint32_t k = 0; k < a->n; k++) {
            double s = r->score[k] < 0.0 ? 0.0 : r->score[k] > 1.0 ? 1.0 : r->score[k];

            r->sum[k] += r->term[i].weight * s;
        }
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
    {"session-affinity", WANT_STATE | WANT_EXACT, pick_session},
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

static int open_memory(struct router *r, size_t n_sessions, struct vt_err *err)
{
    struct memory *m = &r->memory;

    m->used = calloc(r->n, sizeof(*m->used));
    m->lru = calloc(r->n, sizeof(*m->lru));
    if (!m->used || !m->lru)
        return vt_nomem(err);
    for (uint32_t i = 0; i < r->n; i++)
        m->lru[i].cap = ROUTER_LRU_KEYS;
    for (unsigned p = 0; p < N_POOLS; p++) {
        m->home[p] = malloc((n_sessions + 1) * sizeof(*m->home[p]));
        if (!m->home[p])
            return vt_nomem(err);
        for (size_t i = 0; i < n_sessions; i++)
            m->home[p][i] = NO_HOME;
    }
    return VT_OK;
}

int router_new(struct router **out, const struct router_config *c, struct vt_err *err)
{
    struct router *r = calloc(1, sizeof(*r));
    int rc = r ? parse_routing(r, c->routing, err) : vt_nomem(err);

    *out = NULL;
    if (rc != VT_OK)
        goto fail;
    r->n = c->n_instances;
    r->vllm = c->vllm;
    r->lockstep = c->lockstep;
    vt_rng_init(&r->rng, c->seed, "router");
    r->score = calloc(r->n, sizeof(*r->score));
    r->sum = calloc(r->n, sizeof(*r->sum));
    r->tied = calloc(r->n, sizeof(*r->tied));
    rc = r->score && r->sum && r->tied ? open_memory(r, c->n_sessions, err)
                                       : vt_nomem(err);
    if (rc != VT_OK)
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
    free(r->memory.used);
    for (unsigned p = 0; p < N_POOLS; p++)
        free(r->memory.home[p]);
    free(r->score);
    free(r->sum);
    free(r->tied);
    free(r);
}

unsigned router_wants(const struct router *r)
{
    unsigned wants = r->policy->wants;

    for (uint32_t i = 0; i < r->n_terms; i++)
        wants |= r->term[i].scorer->wants;
    return wants;
}

void router_forget(struct router *r, uint32_t instance)
{
    key_lru_free(&r->memory.lru[instance]);
    r->memory.used[instance] = 0;
}

/* ---- one request ------------------------------------------------------ */

int router_pick(struct router *r, const struct ask *a, uint32_t *instance,
                struct vt_err *err)
{
    struct memory *m = &r->memory;

    *instance = a->candidate[r->policy->pick(r, a)];
    m->used[*instance] = ++m->turn;
    if (a->session != VT_NO_TURN)
        m->home[a->pool][a->session] = *instance;
    if ((router_wants(r) & WANT_SENT) != 0 &&
        !key_lru_note(&m->lru[*instance], a->key, a->n_keys))
        return vt_nomem(err);
    return VT_OK;
}
