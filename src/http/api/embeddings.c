/* embeddings.c - vectors that depend on tokens alone, and the response of
 * /v1/embeddings. */
#include <math.h>
#include <string.h>

#include "http/api/api.h"

/* The same tokens give the same vector, whatever else the request holds; texts that
 * share tokens lie nearer to each other than those that do not, as one would expect. */
static void embed(const struct api_prompt *p, float *out, uint32_t n)
{
    double sum = 0;

    for (uint32_t k = 0; k < n; k++) {
        double x = 0;

        for (uint32_t i = 0; i < p->n; i++)
            x += vt_draw_f64(1, p->id[i], k) - 0.5;
        out[k] = (float)x;
        sum += x * x;
    }
    if (sum <= 0) {
        out[0] = 1;
        sum = 1;
    }
    for (uint32_t k = 0; k < n; k++)
        out[k] = (float)(out[k] / sqrt(sum));
}

static void put_base64(struct vt_buf *b, const unsigned char *bytes, size_t n)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < n; i += 3) {
        uint32_t x = (uint32_t)bytes[i] << 16;

        if (i + 1 < n)
            x |= (uint32_t)bytes[i + 1] << 8;
        if (i + 2 < n)
            x |= bytes[i + 2];
        vt_buf_char(b, digits[x >> 18]);
        vt_buf_char(b, digits[x >> 12 & 63]);
        vt_buf_char(b, i + 1 < n ? digits[x >> 6 & 63] : '=');
        vt_buf_char(b, i + 2 < n ? digits[x & 63] : '=');
    }
}

/* Little-endian, whatever the machine. */
static void put_packed(struct vt_buf *b, const float *v, uint32_t n)
{
    unsigned char bytes[12];
    size_t held = 0;

    vt_buf_char(b, '"');
    for (uint32_t i = 0; i < n; i++) {
        uint32_t word;

        memcpy(&word, &v[i], sizeof(word));
        for (int k = 0; k < 4; k++)
            bytes[held++] = (unsigned char)(word >> 8 * k);
        if (held == sizeof(bytes) || i + 1 == n) {
            put_base64(b, bytes, held);
            held = 0;
        }
    }
    vt_buf_char(b, '"');
}

static void put_numbers(struct vt_buf *b, const float *v, uint32_t n)
{
    vt_buf_char(b, '[');
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0)
            vt_buf_char(b, ',');
        vt_buf_f64(b, (double)v[i]);
    }
    vt_buf_char(b, ']');
}

void api_embeddings_json(struct vt_buf *b, const struct api_request *r)
{
    struct vt_arena scratch = {0};
    float *v = vt_arena_alloc(&scratch, sizeof(*v) * r->dimensions);
    uint64_t tokens = 0;

    if (!v) {
        b->failed = true;
        return;
    }
    vt_buf_str(b, "{\"id\":");
    vt_buf_json_str(b, r->id, strlen(r->id));
    vt_buf_printf(
        b, ",\"object\":\"list\",\"created\":%lld,\"model\":", (long long)r->created);
    vt_buf_json_str(b, r->model, strlen(r->model));
    vt_buf_str(b, ",\"data\":[");
    for (uint32_t i = 0; i < r->n_prompts; i++) {
        embed(&r->prompt[i], v, r->dimensions);
        tokens += r->prompt[i].n;
        vt_buf_printf(b, "%s{\"index\":%u,\"object\":\"embedding\",\"embedding\":",
                      i > 0 ? "," : "", i);
        if (r->base64)
            put_packed(b, v, r->dimensions);
        else
            put_numbers(b, v, r->dimensions);
        vt_buf_char(b, '}');
    }
    vt_buf_printf(
        b,
        "],\"usage\":{\"prompt_tokens\":%llu,\"total_tokens\":%llu,"
        "\"completion_tokens\":0,\"prompt_tokens_details\":null%s}}",
        (unsigned long long)tokens, (unsigned long long)tokens,
        r->context->line == API_LINE_026 ? "" : ",\"completion_tokens_details\":null");
    vt_arena_free(&scratch);
}
