/* fault.c - requests that fail on purpose, with the answers that gateways and
 * clients must cope with. */
#include <string.h>

#include "http/serve/serve.h"

static const struct fault {
    const char *name;
    int status;
    const char *type, *param, *message;
    bool midway;
} table[] = {
    {"rate_limit", 429, "RateLimitError", NULL,
     "Rate limit reached for model '%s': too many requests.", false},
    {"invalid_api_key", 401, "AuthenticationError", NULL,
     "The API key given for model '%s' is not valid.", false},
    {"context_length", 400, "BadRequestError", "messages",
     "The prompt is longer than the context of model '%s'.", false},
    {"server_error", 503, "ServiceUnavailableError", NULL,
     "The server of model '%s' is overloaded or not ready yet.", false},
    {"invalid_request", 400, "BadRequestError", "temperature",
     "A parameter of the request to model '%s' is not valid.", false},
    {"model_not_found", 404, "NotFoundError", "model", "The model `%s` does not exist.",
     false},
    {"broken_stream", 500, "InternalServerError", NULL,
     "EngineCore of model '%s' encountered an issue.", true},
};

int faults_open(struct faults *f, const struct vt_serve_config *c, struct vt_err *err)
{
    const char *at = c->failure_kinds;

    *f = (struct faults){.rate = c->failure_rate,
                         .first = c->fail_first,
                         .seed = vt_hash2(c->seed, 0x6661756c74)};
    if (!at)
        f->kinds = (UINT32_C(1) << (VT_COUNT(table) - 1)) - 1;
    while (at) {
        const char *comma = strchr(at, ',');
        size_t len = comma ? (size_t)(comma - at) : strlen(at), i = 0;

        while (i < VT_COUNT(table) && !vt_is_text(table[i].name, at, len))
            i++;
        if (i == VT_COUNT(table))
            return vt_fail(err, VT_EINPUT,
                           "no failure is called '%.*s'; there are rate_limit, "
                           "invalid_api_key, context_length, server_error, "
                           "invalid_request, model_not_found and broken_stream",
                           (int)(len < 60 ? len : 60), at);
        f->kinds |= UINT32_C(1) << i;
        at = comma ? comma + 1 : NULL;
    }
    return VT_OK;
}

static const struct fault *draw_fault(const struct faults *f)
{
    uint32_t n = (uint32_t)__builtin_popcount(f->kinds);
    uint32_t pick = (uint32_t)(vt_draw_f64(f->seed, f->n, 1) * n);

    for (size_t i = 0; i < VT_COUNT(table); i++)
        if ((f->kinds >> i & 1) != 0 && pick-- == 0)
            return &table[i];
    return &table[0];
}

bool faults_next(struct faults *f, const char *model, struct api_error *e, bool *midway)
{
    const struct fault *x;
    const char *hole;

    if (f->rate <= 0 && f->first == 0)
        return false;
    f->n++;
    if (f->n > f->first && vt_draw_f64(f->seed, f->n, 0) >= f->rate)
        return false;
    x = draw_fault(f);
    hole = strstr(x->message, "%s"); /* each has one, for the model */
    api_error_set(e, x->status, x->type, x->param, "%.*s%.200s%s",
                  (int)(hole - x->message), x->message, model, hole + 2);
    *midway = x->midway;
    return true;
}
