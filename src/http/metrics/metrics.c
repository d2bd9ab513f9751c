/* metrics.c - what happened becomes counts. */
#include <assert.h>

#include "http/metrics/metrics.h"

#include "http/metrics/table.h"
#include "live/live.h"

const char metrics_content_type[] = "text/plain; version=1.0.0; charset=utf-8";

/* ---- opening and closing ------------------------------------------------ */

int metrics_open(struct metrics **out, const struct vt_serve_config *c,
                 enum api_line line, struct vt_err *err)
{
    static const double mantissa[] = {1, 2, 5};
    size_t drafts = c->engine.num_spec_tokens;
    double lengths[METRICS_BOUNDS + 1], unit = 1;
    struct metrics *m = calloc(1, sizeof(*m));
    int n = 0, rc = VT_OK;

    *out = NULL;
    if (!m)
        return vt_nomem(err);
    /* 1, 2, 5, 10, ... as far as a request can be long. */
    while (n < METRICS_BOUNDS && mantissa[n % 3] * unit <= c->engine.max_model_len) {
        lengths[n] = mantissa[n % 3] * unit;
        n++;
        if (n % 3 == 0)
            unit *= 10;
    }
    lengths[n] = 0;
    m->config = *c;
    m->line = line;
    m->created = vt_unix_s();
    m->boot_s = metrics_boot_time();
    for (int h = 0; h < H_HISTOGRAMS; h++)
        metrics_pad(m->bound[h], metrics_bounds[h] ? metrics_bounds[h] : lengths);
    metrics_pad(m->web.highr_bound, metrics_bounds_highr);
    m->web.highr.bound = m->web.highr_bound;
    metrics_pad(m->late_bound, metrics_bounds_late);
    m->late.bound = m->late_bound;
    m->engine = calloc(c->n_engines, sizeof(*m->engine));
    m->accepted = calloc(c->n_engines * drafts + 1, sizeof(*m->accepted));
    if (!m->engine || !m->accepted)
        rc = vt_nomem(err);
    for (size_t i = 0; rc == VT_OK && i < c->n_engines; i++) {
        m->engine[i].accepted = m->accepted + i * drafts;
        m->engine[i].scalar[M_AWAKE] = 1;
        for (int h = 0; h < H_HISTOGRAMS; h++)
            m->engine[i].hist[h].bound = m->bound[h];
    }
    if (rc == VT_OK)
        rc = metrics_prepare(m, err);
    if (rc != VT_OK) {
        metrics_close(m);
        return rc;
    }
    *out = m;
    return VT_OK;
}

void metrics_close(struct metrics *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->n_loras; i++) {
        free(m->lora[i].running);
        free(m->lora[i].waiting);
    }
    metrics_web_close(&m->web);
    vt_buf_free(&m->text);
    free(m->hole);
    free(m->accepted);
    free(m->engine);
    free(m);
}

/* ---- steps -------------------------------------------------------------- */

void metrics_set_load(struct metrics *m, uint32_t engine,
                      const struct metrics_load *load)
{
    double *v = m->engine[engine].scalar;

    v[M_RUNNING] = load->running;
    v[M_WAITING] = load->waiting;
    v[M_WAITING_CAPACITY] = (double)load->waiting - load->waiting_deferred;
    v[M_WAITING_DEFERRED] = load->waiting_deferred;
    v[M_KV_USAGE] = load->kv_usage;
    v[M_FETCHES_WAITING] = load->fetches.waiting;
    v[M_FETCHES_MOVING] = load->fetches.pulling;
    v[M_FETCHES_DONE] = load->fetches.pulled;
}

/* What went to and from the host's memory; bytes are of all GPUs of an engine in vLLM,
 * and of one here, as times are. */
static void count_moved(struct metrics_engine *e, const struct vt_step_offload *s)
{
    double *v = e->scalar;

    for (uint32_t i = 0; i < s->n_moved; i++) {
        const struct vt_kv_moved *k = &s->moved[i];

        v[k->store ? M_STORE_BYTES : M_LOAD_BYTES] += (double)k->bytes;
        v[k->store ? M_STORE_TIME : M_LOAD_TIME] +=
            (double)(k->ended_ns - k->begun_ns) / 1e9;
        metrics_observe(&e->hist[k->store ? H_STORE_SIZE : H_LOAD_SIZE],
                        (double)k->bytes);
    }
    v[M_HOST_USAGE] = s->host.used;
    v[M_HOST_WRITE_USAGE] = s->host.written;
    v[M_HOST_READ_USAGE] = s->host.used - s->host.written;
    v[M_NO_ROOM] = (double)s->host.no_room;
    v[M_STORES_SKIPPED] += s->host.skipped;
    for (uint32_t i = 0; i < s->host.lookups; i++)
        metrics_observe(&e->hist[H_LOOKUP], 0);
    for (uint32_t i = 0; i < s->host.n_asked; i++)
        metrics_observe(&e->hist[H_ASKED], s->host.asked[i]);
}

static void count_pulled(struct metrics_engine *e, const struct vt_remote *link,
                         const struct vt_step_remote *s)
{
    e->scalar[M_PREFILLS_EXPIRED] += s->expired;
    e->scalar[M_TOLD_LATE] += s->told_late;
    for (uint32_t i = 0; i < s->n_pulled; i++) {
        const struct vt_kv_pulled *k = &s->pulled[i];

        e->scalar[M_PULLS_FAILED] += k->failed;
        if (k->blocks == 0 || k->failed)
            continue;
        metrics_observe(&e->hist[H_PULL_POST], link->setup_us / 1e6);
        metrics_observe(&e->hist[H_PULL_PARTS], (double)k->blocks * link->block_parts);
        metrics_observe(&e->hist[H_PULL_TIME],
                        (double)(k->ended_ns - k->begun_ns) / 1e9);
        metrics_observe(&e->hist[H_PULL_BYTES], (double)k->bytes);
    }
}

void metrics_step(struct metrics *m, uint32_t engine, const struct vt_step *s,
                  const struct metrics_load *load)
{
    struct metrics_engine *e = &m->engine[engine];
    double *v = e->scalar;
    uint64_t made = 0, computed = 0;

    assert(engine < m->config.n_engines);
    metrics_set_load(m, engine, load);
    v[M_CACHE_QUERIES] += (double)s->cache.queries;
    v[M_CACHE_HITS] += (double)s->cache.hits;
    v[M_CACHED_DEVICE] += (double)s->cache.hits;
    v[M_PREEMPTIONS] += s->plan->n_preempted;
    v[M_EXTERNAL_QUERIES] += (double)s->external.queries;
    v[M_EXTERNAL_HITS] += (double)s->external.hits;
    v[s->remote ? M_CACHED_P2P : M_CACHED_HOST] += (double)s->external.hits;
    if (s->offload)
        count_moved(e, s->offload);
    if (s->remote)
        count_pulled(e, &m->config.engine.remote, s->remote);
    for (uint32_t i = 0; m->config.engine.num_spec_tokens > 0 && i < s->plan->n; i++) {
        uint32_t drafts = s->plan->item[i].spec;
        uint32_t sampled = s->sampled ? s->sampled[i] : 1;
        uint32_t accepted = sampled > drafts ? drafts : sampled - 1;

        if (drafts == 0 || sampled == 0)
            continue;
        v[M_DRAFTS]++;
        v[M_DRAFT_TOKENS] += drafts;
        v[M_ACCEPTED] += accepted;
        for (uint32_t k = 0; k < accepted; k++)
            e->accepted[k]++;
    }
    if (s->n_rows == 0)
        return;
    for (uint32_t i = 0; i < s->n_rows; i++)
        made += s->row[i].new_tokens;
    for (uint32_t i = 0; i < s->n_first; i++)
        computed += s->first[i].prompt_tokens - s->first[i].cached_tokens;
    v[M_GENERATION] += (double)made;
    metrics_observe(&e->hist[H_ITERATION], (double)(made + computed));
}

/* ---- requests ----------------------------------------------------------- */

void metrics_first_token(struct metrics *m, uint32_t engine, double ttft_s,
                         uint32_t prompt_tokens, uint32_t cached_tokens,
                         uint32_t external_tokens)
{
    struct metrics_engine *e = &m->engine[engine];

    metrics_observe(&e->hist[H_TTFT], ttft_s);
    e->scalar[M_PROMPT] += prompt_tokens;
    e->scalar[M_PROMPT_COMPUTED] += (double)prompt_tokens - cached_tokens;
    e->scalar[M_PROMPT_CACHE_HIT] += (double)cached_tokens - external_tokens;
    e->scalar[M_PROMPT_EXTERNAL] += external_tokens;
    e->scalar[M_PROMPT_CACHED] += cached_tokens;
}

/* The server's, not an engine's: they stand with the first. */
void metrics_rejected(struct metrics *m, uint64_t by_requests, uint64_t by_tokens)
{
    m->engine[0].scalar[M_REJECTED_REQUESTS] = (double)by_requests;
    m->engine[0].scalar[M_REJECTED_TOKENS] = (double)by_tokens;
}

void metrics_gap(struct metrics *m, uint32_t engine, double itl_s)
{
    metrics_observe(&m->engine[engine].hist[H_ITL], itl_s);
}

static void observe_known(struct metrics_hist *h, double seconds)
{
    if (seconds >= 0)
        metrics_observe(h, seconds);
}

void metrics_request(struct metrics *m, uint32_t engine,
                     const struct metrics_request *r)
{
    struct metrics_engine *e = &m->engine[engine];
    struct metrics_hist *h = e->hist;

    e->scalar[M_FINISH + (int)r->finish]++;
    observe_known(&h[H_E2E], r->e2e);
    observe_known(&h[H_QUEUE], r->queue);
    observe_known(&h[H_PREFILL], r->prefill);
    observe_known(&h[H_DECODE], r->decode);
    observe_known(&h[H_INFERENCE], r->inference);
    if (r->decode >= 0)
        metrics_observe(&h[H_TPOT],
                        r->output_tokens > 1 ? r->decode / (r->output_tokens - 1) : 0);
    metrics_observe(&h[H_PROMPT], r->prompt_tokens);
    metrics_observe(&h[H_COMPUTED], (double)r->prompt_tokens - r->cached_tokens);
    metrics_observe(&h[H_GENERATION], r->output_tokens);
    metrics_observe(&h[H_PREEMPTIONS], r->preemptions);
    if (r->max_tokens > 0)
        metrics_observe(&h[H_MAX_TOKENS], r->max_tokens);
    if (r->n > 0) {
        metrics_observe(&h[H_N], r->n);
        metrics_observe(&h[H_MAX_GENERATION],
                        r->most_tokens ? r->most_tokens : r->output_tokens);
    }
}

/* ---- the rest ----------------------------------------------------------- */

void metrics_sleep(struct metrics *m, uint32_t engine, uint32_t level)
{
    double *v = m->engine[engine].scalar;

    v[M_AWAKE] = level == 0;
    v[M_WEIGHTS_OFFLOADED] = level == 1;
    v[M_DISCARD_ALL] = level == 2;
}

void metrics_cache_reset(struct metrics *m, uint32_t engine)
{
    m->engine[engine].scalar[M_KV_USAGE] = 0;
}

void metrics_loras(struct metrics *m, const char *running, const char *waiting,
                   double unix_s)
{
    struct metrics_lora *place = &m->lora[0], fresh;

    for (uint32_t i = 0; i < m->n_loras; i++) {
        struct metrics_lora *l = &m->lora[i];

        if (strcmp(l->running, running) == 0 && strcmp(l->waiting, waiting) == 0) {
            l->unix_s = unix_s;
            m->lora_now = i;
            return;
        }
        if (l->unix_s < place->unix_s)
            place = l;
    }
    fresh = (struct metrics_lora){strdup(running), strdup(waiting), unix_s};
    if (!fresh.running || !fresh.waiting) { /* a gauge less is no reason to fail */
        free(fresh.running);
        free(fresh.waiting);
        return;
    }
    if (m->n_loras < METRICS_LORAS) /* else the one heard of longest ago makes room */
        place = &m->lora[m->n_loras++];
    free(place->running);
    free(place->waiting);
    *place = fresh;
    m->lora_now = (uint32_t)(place - m->lora);
}

void metrics_late(struct metrics *m, double seconds)
{
    metrics_observe(&m->late, seconds > 0 ? seconds : 0);
}
