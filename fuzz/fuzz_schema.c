/* Schemas and regular expressions of clients: whatever is made of them is JSON, or
 * UTF-8, and bounded, and so are the work and the memory for it, of a choice and of all
 * choices of a request. The first byte says which it is. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/reply/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    MOST = 1 << 17,
    CHOICES = 4,     /* the last when the work of the request is used up */
    SLACK = 1 << 16, /* the one piece of work that is refused */
    MOST_MEMORY = 64 << 20,
};

static void try_schema(struct reply_forms *f, struct vt_buf *b,
                       const struct vt_node *schema, uint64_t key)
{
    struct vt_arena arena = {0};
    const struct vt_node *value;

    if (reply_schema_write(f, b, schema, key)) {
        assert(b->len > 0 && b->len < MOST);
        /* A const may say the same key twice no more than the schema itself may. */
        assert(vt_json_parse(&arena, b->data, b->len, 1, &value, NULL) == VT_OK);
    } else {
        assert(b->len == 0);
    }
    vt_arena_free(&arena);
}

static void try_regex(struct reply_forms *f, struct vt_buf *b, const char *text,
                      size_t len, uint64_t key)
{
    if (!reply_regex_write(f, b, text, len, key))
        assert(b->len == 0);
    assert(b->len < MOST);
}

static void check_work(const struct reply_forms *f, uint64_t before)
{
    size_t cells = f->names.mask + f->known.mask + f->expressions.mask;

    assert(f->spent - before <= 2 * REPLY_CHOICE_WORK + SLACK);
    assert(f->spent <= REPLY_REQUEST_WORK + REPLY_SIMPLE_WORK + SLACK);
    assert(f->arena.used_bytes + cells * sizeof(*f->names.cell) < MOST_MEMORY);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reply_forms forms = {0};
    struct vt_arena arena = {0};
    const struct vt_node *schema = NULL;
    struct vt_buf b = {0};
    char *text;
    size_t len;
    bool is_regex;

    if (size == 0)
        return 0;
    len = size - 1;
    text = malloc(size); /* its own, so that reading beyond it shows */
    if (!text)
        return 0;
    memcpy(text, data + 1, len);
    text[len] = '\0';
    is_regex = data[0] == 'r';
    if (is_regex || vt_json_parse(&arena, text, len, 1, &schema, NULL) == VT_OK)
        for (uint64_t key = 0; key < CHOICES; key++) {
            uint64_t before;

            if (key + 1 == CHOICES && forms.spent < REPLY_REQUEST_WORK)
                forms.spent = REPLY_REQUEST_WORK;
            before = forms.spent;
            reply_forms_choice(&forms);
            vt_buf_clear(&b);
            if (is_regex)
                try_regex(&forms, &b, text, len, key);
            else
                try_schema(&forms, &b, schema, key);
            check_work(&forms, before);
            if (forms.spent - before > REPLY_CHOICE_WORK && key == 0)
                key =
                    CHOICES - 2; /* a costly one: the first and the last tell enough */
        }
    reply_forms_free(&forms);
    vt_arena_free(&arena);
    vt_buf_free(&b);
    free(text);
    return 0;
}
