/* tokenize.c - a tokenizer at the end of a pipe, for compare_tokenizers.py,
 * compare_chats.py and bench/tokenizer.
 *
 *   tokenize TOKENIZER_JSON_OR_DIRECTORY      ("" is the built-in one)
 *
 * Requests come on stdin: a letter, 32 bits of flags, 32 bits of length, as many bytes.
 * The answer is 32 bits of status (0 or 1), 32 bits of length, as many bytes; if the
 * status is 1, they are the error's sentence. All integers are the machine's own.
 *   e  text               ids (flags: vt_encode_flag)
 *   d  ids                text (flags: vt_decode_special)
 *   s  ids                text as it is streamed, for each id 32 bits of length and
 * text c  role\0content\0... prompt (flags: 1 generation prompt, 2 no thinking; the
 * first text is the day, or empty) t  text               CPU nanoseconds of flags + 1
 * encodings, and ids of one: 2 x 64 bits f                     facts as JSON */
#include <errno.h>

#include "text/text.h"

enum { MAX_REQUEST = 1 << 28, MAX_MESSAGES = 1024 };

struct request {
    char kind;
    uint32_t flags, len;
    char *bytes; /* owned, NUL-terminated */
    size_t cap;
};

static bool read_exactly(void *out, size_t n)
{
    return fread(out, 1, n, stdin) == n;
}

static bool read_request(struct request *r)
{
    int kind = getchar();

    if (kind == EOF)
        return false;
    r->kind = (char)kind;
    if (!read_exactly(&r->flags, 4) || !read_exactly(&r->len, 4) ||
        r->len > MAX_REQUEST ||
        vt_grow(&r->bytes, &r->cap, (size_t)r->len + 1, 1, NULL))
        return false;
    r->bytes[r->len] = '\0';
    return read_exactly(r->bytes, r->len);
}

/* Of this process alone: the machine may have other work. */
static int64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * VT_SEC + t.tv_nsec;
}

static int encode(const struct vt_tokenizer *t, const struct request *r,
                  struct vt_buf *out, struct vt_err *err)
{
    struct vt_ids ids = {0};
    int rc = vt_tokenizer_encode(t, r->bytes, r->len, r->flags, &ids, err);

    if (rc == VT_OK)
        vt_buf_add(out, ids.id, ids.n * sizeof(*ids.id));
    vt_ids_free(&ids);
    return rc;
}

static int decode(const struct vt_tokenizer *t, const struct request *r,
                  struct vt_buf *out, struct vt_err *err)
{
    size_t n = r->len / 4;
    uint32_t *id = calloc(n + 1, sizeof(*id));

    if (!id)
        return vt_nomem(err);
    memcpy(id, r->bytes, n * sizeof(*id));
    vt_tokenizer_decode(t, id, n, (enum vt_decode_special)r->flags, out);
    free(id);
    return VT_OK;
}

static int stream(const struct vt_tokenizer *t, const struct request *r,
                  struct vt_buf *out)
{
    struct vt_detokenizer d = {.tokenizer = t,
                               .special = (enum vt_decode_special)r->flags};
    struct vt_buf piece = {0};

    for (size_t i = 0; i < r->len / 4; i++) {
        uint32_t id, len;

        memcpy(&id, r->bytes + 4 * i, sizeof(id));
        vt_buf_clear(&piece);
        vt_detokenizer_add(&d, id, &piece);
        len = (uint32_t)piece.len;
        vt_buf_add(out, &len, sizeof(len));
        vt_buf_add(out, piece.data, piece.len);
    }
    vt_detokenizer_free(&d);
    vt_buf_free(&piece);
    return VT_OK;
}

static const char *next_text(const struct request *r, const char **p)
{
    const char *text = *p;

    *p += strlen(text) + 1;
    return text <= r->bytes + r->len ? text : NULL;
}

static int chat(const struct vt_tokenizer *t, const struct request *r,
                struct vt_buf *out, struct vt_err *err)
{
    struct vt_chat_message message[MAX_MESSAGES];
    struct vt_chat_options options = {
        .add_generation_prompt = r->flags & 1,
        .thinking = r->flags & 2 ? VT_THINKING_OFF : VT_THINKING_DEFAULT,
    };
    const char *p = r->bytes, *end = r->bytes + r->len;
    size_t n = 0;

    options.today = next_text(r, &p);
    if (options.today && !*options.today)
        options.today = NULL;
    while (p < end && n < MAX_MESSAGES) {
        message[n].role = next_text(r, &p);
        message[n].content = p <= end ? next_text(r, &p) : "";
        n++;
    }
    return vt_chat_render(t, message, n, &options, out, err);
}

static int measure(const struct vt_tokenizer *t, const struct request *r,
                   struct vt_buf *out, struct vt_err *err)
{
    struct vt_ids ids = {0};
    int64_t result[2] = {cpu_ns(), 0};
    int rc = VT_OK;

    for (uint32_t i = 0; i <= r->flags && rc == VT_OK; i++) {
        ids.n = 0;
        rc = vt_tokenizer_encode(t, r->bytes, r->len, 0, &ids, err);
    }
    result[0] = cpu_ns() - result[0];
    result[1] = (int64_t)ids.n;
    vt_buf_add(out, result, sizeof(result));
    vt_ids_free(&ids);
    return rc;
}

static void facts(const struct vt_tokenizer *t, struct vt_buf *out)
{
    const struct vt_token_facts *f = vt_tokenizer_facts(t);

    vt_buf_printf(out,
                  "{\"vocab_size\": %u, \"bos\": %lld, \"eos\": %lld, \"pad\": %lld, "
                  "\"chat\": ",
                  (unsigned)f->vocab_size, (long long)f->bos, (long long)f->eos,
                  (long long)f->pad);
    vt_buf_json_str(out, f->chat ? f->chat : "", f->chat ? strlen(f->chat) : 0);
    vt_buf_str(out, ", \"stop\": [");
    for (size_t i = 0; i < f->n_stop; i++)
        vt_buf_printf(out, "%s%u", i ? ", " : "", (unsigned)f->stop[i]);
    vt_buf_str(out, "], \"special\": [");
    for (size_t i = 0; i < f->n_special; i++)
        vt_buf_printf(out, "%s%u", i ? ", " : "", (unsigned)f->special[i]);
    vt_buf_str(out, "]}");
}

static int answer(const struct vt_tokenizer *t, const struct request *r,
                  struct vt_buf *out, struct vt_err *err)
{
    switch (r->kind) {
    case 'e':
        return encode(t, r, out, err);
    case 'd':
        return decode(t, r, out, err);
    case 's':
        return stream(t, r, out);
    case 'c':
        return chat(t, r, out, err);
    case 't':
        return measure(t, r, out, err);
    case 'f':
        facts(t, out);
        return VT_OK;
    default:
        return vt_fail(err, VT_EINPUT, "no request '%c'", r->kind);
    }
}

int main(int argc, char **argv)
{
    struct vt_tokenizer *t = NULL;
    struct request r = {0};
    struct vt_buf out = {0};
    struct vt_err err;
    int rc;

    if (argc != 2)
        return 2;
    rc = *argv[1] ? vt_tokenizer_open(&t, argv[1], &err)
                  : vt_tokenizer_builtin(&t, &err);
    if (rc != VT_OK) {
        fprintf(stderr, "tokenize: %s\n", err.msg);
        return 1;
    }
    while (read_request(&r)) {
        uint32_t head[2];

        vt_buf_clear(&out);
        rc = answer(t, &r, &out, &err);
        if (rc != VT_OK) {
            vt_buf_clear(&out);
            vt_buf_str(&out, err.msg);
        }
        head[0] = rc != VT_OK;
        head[1] = (uint32_t)out.len;
        fwrite(head, sizeof(head), 1, stdout);
        fwrite(out.data, 1, out.len, stdout);
        fflush(stdout);
    }
    free(r.bytes);
    vt_buf_free(&out);
    vt_tokenizer_close(t);
    return 0;
}
