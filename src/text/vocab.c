/* vocab.c - tokens by id and by text. */
#include <assert.h>

#include "text/tokenizer.h"
#include "text/unicode.h"

/* Printable Latin-1 stands for itself; the others follow from U+0100 on, in order. */
static bool stands_for_itself(unsigned c)
{
    return (c >= 0x21 && c <= 0x7e) || (c >= 0xa1 && c <= 0xff && c != 0xad);
}

uint32_t byte_character(unsigned char byte)
{
    if (stands_for_itself(byte))
        return byte;
    if (byte <= 0x20)
        return 0x100u + byte;
    if (byte <= 0xa0)
        return 0x121u + (byte - 0x7fu);
    return 0x143;
}

struct sought {
    const struct vocab *v;
    const char *text;
    size_t len;
};

static bool is_sought(const void *sought, uint64_t id)
{
    const struct sought *s = sought;
    const struct token *k = &s->v->token[id];

    return k->text_len == s->len &&
           memcmp(s->v->pool.data + k->text, s->text, s->len) == 0;
}

uint32_t vocab_find(const struct vocab *v, const char *text, size_t len)
{
    const struct sought s = {v, text, len};
    const uint64_t *id =
        vt_map_find(&v->by_text, vt_hash_bytes(text, len, 0), is_sought, &s);

    return id ? (uint32_t)*id : NO_ID;
}

uint32_t vocab_find_bytes(const struct vocab *v, const char *bytes, size_t len,
                          char *spelt)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += vt_utf8_put(spelt + n, byte_character((unsigned char)bytes[i]));
    return vocab_find(v, spelt, n);
}

/* A text in GPT-2's spelling decodes to the bytes it spells, any other to itself. */
static int add_bytes(struct vocab *v, struct token *k, const char *text, size_t len,
                     struct vt_err *err)
{
    size_t from = v->pool.len;

    k->bytes = (uint32_t)from;
    for (size_t i = 0; i < len;) {
        uint32_t c;
        int byte;

        i += vt_utf8_get(text + i, &c);
        if (c < 0x100)
            byte = stands_for_itself(c) ? (int)c : -1;
        else if (c <= 0x142)
            byte = c <= 0x120 ? (int)(c - 0x100) : (int)(c - 0x121 + 0x7f);
        else
            byte = c == 0x143 ? 0xad : -1;
        if (byte < 0) {
            v->pool.len = from;
            vt_buf_add(&v->pool, text, len);
            break;
        }
        vt_buf_char(&v->pool, (char)byte);
    }
    k->n_bytes = (uint32_t)(v->pool.len - from);
    if (v->longest < k->n_bytes)
        v->longest = k->n_bytes;
    return v->pool.failed ? vt_nomem(err) : VT_OK;
}

int vocab_add(struct vocab *v, const char *text, size_t len, uint32_t id,
              struct vt_err *err)
{
    struct token *k;
    uint64_t *place;
    int rc;

    if (id > MAX_ID)
        return vt_fail(err, VT_EINPUT, "token id %u is above %d", (unsigned)id, MAX_ID);
    rc = vt_grow(&v->token, &v->cap, (size_t)id + 1, sizeof(*v->token), err);
    if (rc != VT_OK)
        return rc;
    for (; v->n <= id; v->n++)
        v->token[v->n] = (struct token){.text = NO_ID};
    k = &v->token[id];
    if (k->text != NO_ID)
        return vt_fail(err, VT_EINPUT,
                       "id %u belongs to two tokens, '%.40s' and '%.40s'", (unsigned)id,
                       v->pool.data + k->text, text);
    if (vocab_find(v, text, len) != NO_ID)
        return vt_fail(err, VT_EINPUT, "token '%.40s' has two ids", text);
    place = vt_map_add(&v->by_text, vt_hash_bytes(text, len, 0));
    if (!place)
        return vt_nomem(err);
    *place = id;
    k->text = (uint32_t)v->pool.len;
    k->text_len = (uint32_t)len;
    vt_buf_add(&v->pool, text, len);
    vt_buf_char(&v->pool, '\0');
    return add_bytes(v, k, text, len, err);
}

int vocab_respell(struct vocab *v, uint32_t id, const char *text, size_t len,
                  struct vt_err *err)
{
    assert(id < v->n && v->token[id].text != NO_ID);
    return add_bytes(v, &v->token[id], text, len, err);
}

void vocab_free(struct vocab *v)
{
    free(v->token);
    vt_map_free(&v->by_text);
    vt_buf_free(&v->pool);
}
