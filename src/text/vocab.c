/* vocab.c - tokens by id and by text. */
#include "text/tokenizer.h"
#include "text/unicode.h"

enum { FIRST_MASK = 1023, N_BYTE_CHARACTERS = 0x144 };

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

/* The byte that a character stands for, or -1. */
static int character_byte(uint32_t c)
{
    if (c < 0x100)
        return stands_for_itself(c) ? (int)c : -1;
    if (c <= 0x120)
        return (int)(c - 0x100);
    if (c <= 0x142)
        return (int)(c - 0x121 + 0x7f);
    return c == 0x143 ? 0xad : -1;
}

static size_t slot_of(const struct vocab *v, const char *text, size_t len)
{
    size_t i = vt_hash_bytes(text, len, 0) & v->mask;

    for (; v->by_text[i] != NO_ID; i = (i + 1) & v->mask) {
        const struct token *k = &v->token[v->by_text[i]];

        if (k->text_len == len && memcmp(v->pool.data + k->text, text, len) == 0)
            break;
    }
    return i;
}

uint32_t vocab_find(const struct vocab *v, const char *text, size_t len)
{
    return v->by_text ? v->by_text[slot_of(v, text, len)] : NO_ID;
}

uint32_t vocab_find_bytes(const struct vocab *v, const char *bytes, size_t len,
                          char *spelt)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += vt_utf8_put(spelt + n, byte_character((unsigned char)bytes[i]));
    return vocab_find(v, spelt, n);
}

static int grow_index(struct vocab *v, struct vt_err *err)
{
    struct vocab wider = *v;

    if (v->by_text && v->n_texts * 2 < v->mask)
        return VT_OK;
    wider.mask = v->by_text ? v->mask * 2 + 1 : FIRST_MASK;
    wider.by_text = malloc((wider.mask + 1) * sizeof(*wider.by_text));
    if (!wider.by_text)
        return vt_nomem(err);
    memset(wider.by_text, 0xff, (wider.mask + 1) * sizeof(*wider.by_text));
    for (size_t i = 0; v->by_text && i <= v->mask; i++) {
        uint32_t id = v->by_text[i];
        const struct token *k = id == NO_ID ? NULL : &v->token[id];

        if (k)
            wider.by_text[slot_of(&wider, v->pool.data + k->text, k->text_len)] = id;
    }
    free(v->by_text);
    *v = wider;
    return VT_OK;
}

static int grow_tokens(struct vocab *v, uint32_t id, struct vt_err *err)
{
    int rc = vt_grow(&v->token, &v->cap, (size_t)id + 1, sizeof(*v->token), err);

    if (rc != VT_OK)
        return rc;
    for (; v->n <= id; v->n++)
        v->token[v->n] = (struct token){.text = NO_ID};
    return VT_OK;
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

        i += uni_get(text + i, &c);
        byte = character_byte(c);
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
    size_t slot;
    int rc;

    if (id > MAX_ID)
        return vt_fail(err, VT_EINPUT, "token id %u is above %d", (unsigned)id, MAX_ID);
    rc = grow_tokens(v, id, err);
    if (rc == VT_OK)
        rc = grow_index(v, err);
    if (rc != VT_OK)
        return rc;
    k = &v->token[id];
    if (k->text != NO_ID)
        return vt_fail(err, VT_EINPUT,
                       "id %u belongs to two tokens, '%.40s' and '%.40s'", (unsigned)id,
                       v->pool.data + k->text, text);
    slot = slot_of(v, text, len);
    if (v->by_text[slot] != NO_ID)
        return vt_fail(err, VT_EINPUT, "token '%.40s' has two ids", text);
    k->text = (uint32_t)v->pool.len;
    k->text_len = (uint32_t)len;
    vt_buf_add(&v->pool, text, len);
    vt_buf_char(&v->pool, '\0');
    v->by_text[slot] = id;
    v->n_texts++;
    return add_bytes(v, k, text, len, err);
}

int vocab_respell(struct vocab *v, uint32_t id, const char *text, size_t len,
                  struct vt_err *err)
{
    return add_bytes(v, &v->token[id], text, len, err);
}

void vocab_free(struct vocab *v)
{
    free(v->token);
    free(v->by_text);
    vt_buf_free(&v->pool);
}
