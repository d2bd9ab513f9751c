/* embeddings.c - vectors that depend on tokens alone, and the response of
 * /v1/embeddings. */
#include <math.h>
#include <string.h>

#include "http/api/api.h"

/* The same tokens give the same vector, whatever else the request holds; texts that
 * share tokens lie nearer to each other than those that do not, as one would expect. */
static void embed_prompt(const struct api_prompt *p, float *out, uint32_t n)
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

/* A byte of the floats, little-endian whatever the machine; 0 behind them. */
static uint32_t packed_byte(const float *v, uint32_t n, size_t at)
{
    uint32_t word = 0;

    if (at / sizeof(*v) < n)
        memcpy(&word, &v[at / sizeof(*v)], sizeof(word));
    return word >> 8 * (at % sizeof(*v)) & 255;
}

static void put_base64(struct vt_buf *b, const float *v, uint32_t n)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t len = n * sizeof(*v);

    vt_buf_char(b, '"');
    for (size_t i = 0; i < len; i += 3) {
        uint32_t x = packed_byte(v, n, i) << 16 | packed_byte(v, n, i + 1) << 8 |
                     packed_byte(v, n, i + 2);

        vt_buf_char(b, digits[x >> 18]);
        vt_buf_char(b, digits[x >> 12 & 63]);
        vt_buf_char(b, i + 1 < len ? digits[x >> 6 & 63] : '=');
        vt_buf_char(b, i + 2 < len ? digits[x & 63] : '=');
    }
    vt_buf_char(b, '"');
}

void api_embeddings_json(struct vt_buf *b, const struct api_request *r)
{
    struct vt_arena scratch = {0};
    float *v = vt_arena_alloc(&scratch, sizeof(*v) * r->dimensions);
    uint64_t tokens = 0;
    struct vt_jw w;

    if (!v) {
        b->failed = true;
        return;
    }
    vt_jw_init(&w, b, NULL);
    vt_jw_map(&w, NULL);
    vt_jw_str(&w, "id", r->id);
    vt_jw_str(&w, "object", "list");
    vt_jw_i64(&w, "created", r->created);
    vt_jw_str(&w, "model", r->model);
    vt_jw_list(&w, "data");
    for (uint32_t i = 0; i < r->n_prompts; i++) {
        embed_prompt(&r->prompt[i], v, r->dimensions);
        tokens += r->prompt[i].n;
        vt_jw_map(&w, NULL);
        vt_jw_u64(&w, "index", i);
        vt_jw_str(&w, "object", "embedding");
        if (r->base64) {
            vt_jw_key(&w, "embedding");
            put_base64(w.b, v, r->dimensions);
        } else {
            vt_jw_list(&w, "embedding");
            for (uint32_t k = 0; k < r->dimensions; k++)
                vt_jw_f64(&w, NULL, (double)v[k]);
            vt_jw_end(&w);
        }
        vt_jw_end(&w);
    }
    vt_jw_end(&w);
    vt_jw_map(&w, "usage");
    vt_jw_u64(&w, "prompt_tokens", tokens);
    vt_jw_u64(&w, "total_tokens", tokens);
    vt_jw_u64(&w, "completion_tokens", 0);
    vt_jw_null(&w, "prompt_tokens_details");
    if (r->context->line != API_LINE_026)
        vt_jw_null(&w, "completion_tokens_details");
    vt_jw_end(&w);
    vt_jw_end(&w);
    vt_arena_free(&scratch);
}
