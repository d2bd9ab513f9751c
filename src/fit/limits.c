/* limits.c - limits that nobody states: how many requests an engine runs at once,
 * and how many tokens its KV cache holds. While others wait, it is as full as it gets.
 */
#include "fit/internal.h"

#include <math.h>

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

int limits_take(struct vt_engine_config *c, const struct vt_workload *w,
                struct limits *shown, struct vt_err *err)
{
    uint64_t longest = 0;
    int rc = limits_shown(w, shown, err);

    for (size_t i = 0; i < w->n; i++) {
        uint64_t tokens = (uint64_t)w->req[i].prompt_tokens + w->req[i].max_tokens;

        longest = tokens > longest ? tokens : longest;
    }
    if (w->meta.max_num_seqs > 0)
        shown->seats = 0;
    if (w->meta.num_gpu_blocks > 0)
        shown->tokens = 0;
    if (shown->seats > 0)
        c->max_num_seqs = shown->seats;
    if (shown->tokens > 0)
        c->num_gpu_blocks = limits_blocks(c, fmax(shown->tokens, (double)longest));
    return rc;
}

uint32_t limits_blocks(const struct vt_engine_config *c, double tokens)
{
    return 1 + (uint32_t)ceil(tokens / c->block_size); /* one is never handed out */
}
