/* Schemas and regular expressions of clients: whatever is made of them is JSON, or
 * UTF-8, and bounded. The first byte says which it is. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/reply/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 20 };

static void try_schema(const char *text, size_t len, uint64_t key)
{
    struct vt_arena schema_arena = {0}, value_arena = {0};
    const struct vt_node *schema, *value;
    struct vt_buf b = {0};
    struct reply_forms forms = {0};

    if (vt_json_parse(&schema_arena, text, len, 1, &schema, NULL) == VT_OK &&
        reply_schema_write(&forms, &b, schema, key)) {
        assert(b.len > 0 && b.len < MOST);
        /* A const may say the same key twice no more than the schema itself may. */
        assert(vt_json_parse(&value_arena, b.data, b.len, 1, &value, NULL) == VT_OK);
    }
    reply_forms_free(&forms);
    vt_buf_free(&b);
    vt_arena_free(&value_arena);
    vt_arena_free(&schema_arena);
}

static void try_regex(const char *text, size_t len, uint64_t key)
{
    struct vt_buf b = {0};
    struct reply_forms forms = {0};

    if (!reply_regex_write(&forms, &b, text, len, key))
        assert(b.len == 0);
    assert(b.len < MOST);
    reply_forms_free(&forms);
    vt_buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;
    size_t len;

    if (size == 0)
        return 0;
    len = size - 1;
    text = malloc(size); /* its own, so that reading beyond it shows */
    if (!text)
        return 0;
    memcpy(text, data + 1, len);
    text[len] = '\0';
    for (uint64_t key = 0; key < 4; key++) {
        if (data[0] == 'r')
            try_regex(text, len, key);
        else
            try_schema(text, len, key);
    }
    free(text);
    return 0;
}
