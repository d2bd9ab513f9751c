/* gate.c - how much may be there at once: vLLM's --max-num-queued-reqs and
 * --max-num-queued-tokens. The loop counts; whoever reads a request may ask. */
#include "http/serve/serve.h"

void gate_open(struct gate *g, const struct vt_serve_config *c)
{
    *g = (struct gate){.most_requests = UINT64_MAX, .most_tokens = UINT64_MAX};
    if (c->limit_queued_reqs)
        g->most_requests = c->max_num_queued_reqs;
    if (c->limit_queued_tokens)
        g->most_tokens = c->max_num_queued_tokens;
}

static bool refuse(struct gate *g, enum gate_reason why, struct api_error *e)
{
    static const char *const words[] = {
        [GATE_REQUESTS] =
            "The engine is currently busy and cannot accept new requests.",
        [GATE_TOKENS] = "The engine has reached its prefill token backlog limit."};

    (void)atomic_fetch_add(&g->refused[why], 1);
    return api_error_set(e, 503, "Service Unavailable", NULL,
                         "%s Please try again later or on a different instance.",
                         words[why]);
}

/* As if so many more were there. A request's own tokens are not looked at. */
static bool admits(struct gate *g, uint64_t more_requests, uint64_t more_tokens,
                   uint32_t n, struct api_error *e)
{
    uint64_t requests = atomic_load(&g->requests) + more_requests;

    /* "Any number" is no limit to compare with: sums must not come near it. */
    if (g->most_requests != UINT64_MAX && requests + n > g->most_requests)
        return refuse(g, GATE_REQUESTS, e);
    if (g->most_tokens != UINT64_MAX &&
        atomic_load(&g->tokens) + more_tokens >= g->most_tokens)
        return refuse(g, GATE_TOKENS, e);
    return true;
}

bool gate_admits(void *gate, uint32_t n, struct api_error *e)
{
    return admits(gate, 0, 0, n, e);
}

bool gate_admits_all(struct gate *g, const struct api_request *r, struct api_error *e)
{
    uint64_t requests = 0, tokens = 0;

    for (uint32_t i = 0; i < r->n_prompts; i++) {
        if (!admits(g, requests, tokens, r->n, e))
            return false;
        requests += r->n;
        tokens += (uint64_t)r->n * r->prompt[i].n;
    }
    return true;
}

void gate_enter(struct gate *g, uint32_t prompt_tokens)
{
    (void)atomic_fetch_add(&g->requests, 1);
    (void)atomic_fetch_add(&g->tokens, prompt_tokens);
}

void gate_first_token(struct gate *g, uint32_t prompt_tokens)
{
    (void)atomic_fetch_sub(&g->tokens, prompt_tokens);
}

void gate_leave(struct gate *g)
{
    (void)atomic_fetch_sub(&g->requests, 1);
}
