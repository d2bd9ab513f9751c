/* limits.c - limits that nobody states: how many requests an engine runs at once,
 * and how many tokens its KV cache holds. While others wait, it is as full as it gets.
 */
#include "fit/internal.h"

#include <math.h>

/* Of tokens or blocks: more than anybody has. */
enum { MOST = 1 << 30 };

struct change { /* of how many wait for their first token, and are being answered */
    vt_ns at;
    int waiting, answered;
    /* Of the tokens that those hold: prompts, and what is added in a ns, with the same
     * counted from the clock's zero. */
    double prompt, rate, offset;
};

static int by_time(const void *a, const void *b)
{
    const struct change *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->answered - y->answered; /* those that end make room */
}

static struct change *list_changes(const struct vt_workload *w)
{
    struct change *c = calloc(3 * w->n + 1, sizeof(*c));

    for (size_t i = 0; c && i < w->n; i++) {
        vt_ns at = w->req[i].arrival_ns, first = at + w->measured[i].ttft_ns;
        vt_ns last = at + w->measured[i].e2e_ns;
        double prompt = w->req[i].prompt_tokens;
        double rate =
            last > first ? w->req[i].output_tokens / (double)(last - first) : 0;

        c[3 * i] = (struct change){.at = at, .waiting = 1};
        c[3 * i + 1] =
            (struct change){first, -1, 1, prompt, rate, rate * (double)first};
        c[3 * i + 2] =
            (struct change){last, 0, -1, -prompt, -rate, -rate * (double)first};
    }
    if (c)
        qsort(c, 3 * w->n, sizeof(*c), by_time);
    return c;
}

/* What stood between two changes: while some waited, and more than are always on their
 * way. */
struct moment {
    double answered, tokens, ns;
};

static size_t list_moments(const struct change *c, size_t n, int most,
                           struct moment *out)
{
    struct change now = {0};
    size_t found = 0;

    for (size_t i = 0; i + 1 < n; i++) {
        double dt = (double)(c[i + 1].at - c[i].at);

        now.waiting += c[i].waiting;
        now.answered += c[i].answered;
        now.prompt += c[i].prompt;
        now.rate += c[i].rate;
        now.offset += c[i].offset;
        if (now.waiting < 2 || now.waiting < most / 10 || dt <= 0)
            continue;
        out[found++] = (struct moment){
            now.answered, now.prompt + now.rate * (double)c[i].at - now.offset, dt};
    }
    return found;
}

static int by_tokens(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;

    return x->tokens < y->tokens ? -1 : x->tokens > y->tokens;
}

static double sum_ns(const struct moment *m, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += m[i].ns;
    return sum;
}

/* Tokens that are exceeded for a tenth of the time: who lost its place is counted as
 * answered, but holds none. Sorts. */
static double usual_most(struct moment *m, size_t n)
{
    double left = 0.9 * sum_ns(m, n);
    size_t i = 0;

    qsort(m, n, sizeof(*m), by_tokens);
    for (; i + 1 < n && left > m[i].ns; i++)
        left -= m[i].ns;
    return m[i].tokens;
}

/* A few prompts are always being computed: people choose round numbers. */
static uint32_t rounded(int most)
{
    for (uint32_t unit = 64; unit > 1; unit /= 2) {
        uint32_t up = ((uint32_t)most + unit - 1) / unit * unit;

        if (up <= 1.05 * most)
            return up;
    }
    return (uint32_t)most;
}

/* Shares of the time in which requests waited. */
static double share_full(const struct moment *m, size_t n, double seats, double tokens)
{
    double full = 0;

    for (size_t i = 0; i < n; i++)
        full += m[i].answered >= seats && m[i].tokens >= tokens ? m[i].ns : 0;
    return full / sum_ns(m, n);
}

int limits_shown(const struct vt_workload *w, struct limits *out, struct vt_err *err)
{
    static const double SEEN = 0.1, MOSTLY = 0.6, NEARLY = 0.93, ABOUT = 0.8;
    struct change *c = list_changes(w);
    struct moment *m = calloc(3 * w->n + 1, sizeof(*m));
    int answered = 0, most = 0;
    size_t n;

    *out = (struct limits){0};
    if (!c || !m) {
        free(c);
        free(m);
        return vt_nomem(err);
    }
    for (size_t i = 0; i < 3 * w->n; i++) {
        answered += c[i].answered;
        most = answered > most ? answered : most;
    }
    n = list_moments(c, 3 * w->n, most, m);
    out->waited = n > 0 && sum_ns(m, n) > SEEN * (double)(c[3 * w->n - 1].at - c[0].at);
    if (out->waited) {
        double tokens = usual_most(m, n);
        double seats_full = share_full(m, n, NEARLY * most, -INFINITY);

        if (seats_full > MOSTLY)
            out->seats = rounded(most);
        else if (share_full(m, n, 0, ABOUT * tokens) > MOSTLY)
            out->tokens = tokens;
    }
    free(c);
    free(m);
    return VT_OK;
}

double longest_request(const struct vt_workload *w)
{
    bool stated = w->meta.max_model_len > 0;
    double most = 0;

    for (size_t i = 0; i < w->n; i++) {
        const struct vt_work *q = &w->req[i];
        double output = stated ? q->max_tokens : (double)q->output_tokens + 1;

        most = fmax(most, q->prompt_tokens + output);
    }
    return stated ? fmin(most, w->meta.max_model_len) : most;
}

/* In which a load never waits, nor loses what is cached of it: all requests at once
 * would fill half. */
static double ample_tokens(const struct vt_engine_config *c,
                           const struct vt_workload *w)
{
    double sum = 0;

    for (size_t i = 0; i < w->n; i++)
        sum += (double)w->req[i].prompt_tokens + w->req[i].max_tokens + c->block_size +
               c->num_spec_tokens;
    return fmax(2 * sum, (double)c->max_model_len + c->block_size);
}

/* The engine that served a trace, as far as it is known: what it served it had room
 * for. A pool that nobody states is no larger than the load can make use of, since
 * every simulation has to set it up. */
static void config_of(struct vt_engine_config *c, const struct vt_workload *w)
{
    double longest = longest_request(w), ample;

    vt_engine_config_init(c);
    vt_engine_config_take(c, &w->meta);
    c->seed = 1;
    if (w->meta.max_model_len == 0)
        vt_set_max_model_len(c, (uint32_t)fmin(longest, MOST));
    if (w->meta.num_gpu_blocks > 0)
        return;
    ample = ample_tokens(c, w);
    if (longest > (double)c->num_gpu_blocks * c->block_size)
        limits_pool(c, longest);
    else if (ample < (double)c->num_gpu_blocks * c->block_size)
        limits_pool(c, ample);
}

/* Requests that the engine was measured to serve, and could not. */
static int check_requests(const struct vt_engine_config *c, const struct vt_workload *w,
                          struct vt_err *err)
{
    const char *who = NULL;
    struct vt_err why = {0}, first = {0};
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++) {
        struct vt_request q = {.prompt_tokens = w->req[i].prompt_tokens,
                               .max_tokens = w->req[i].max_tokens};

        if (vt_request_check(c, &q, &why) == VT_OK)
            continue;
        if (n++ == 0) {
            who = w->req[i].id;
            first = why;
        }
    }
    if (n == 0)
        return VT_OK;
    return vt_fail(err, VT_ECHECK,
                   "simulated with the limits that it states %zu of %zu requests never "
                   "finish, and they did: request '%.40s': %s",
                   n, w->n, who, first.msg);
}

int limits_engine(struct vt_engine_config *c, const struct vt_workload *w,
                  struct limits *shown, struct vt_err *err)
{
    int rc;

    config_of(c, w);
    if ((rc = check_requests(c, w, err)) || (rc = limits_shown(w, shown, err)))
        return rc;
    if (w->meta.max_num_seqs > 0)
        shown->seats = 0;
    if (w->meta.num_gpu_blocks > 0)
        shown->tokens = 0;
    return VT_OK;
}

int limits_refuse(int rc, struct vt_err *err)
{
    struct vt_err why = *err;

    return rc == VT_EINPUT ? vt_fail(err, VT_ECHECK,
                                     "simulated, its requests never "
                                     "finish: %s",
                                     why.msg)
                           : rc;
}

void limits_pool(struct vt_engine_config *c, double tokens)
{
    double blocks = 1 + ceil(tokens / c->block_size); /* one is never handed out */

    c->num_gpu_blocks = (uint32_t)fmin(blocks, MOST);
}
