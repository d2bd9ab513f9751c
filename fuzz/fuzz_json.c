/* fuzz_json.c - our JSON reader against jansson: the same texts accepted, the same
 * values read. */
#include <jansson.h>

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(x) ((x) ? (void)0 : fail(#x, __LINE__))

static _Noreturn void fail(const char *what, int line)
{
    fprintf(stderr, "fuzz_json.c:%d: %s\n", line, what);
    abort();
}

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

static void compare(const struct vt_node *ours, const json_t *theirs)
{
    REQUIRE(ours->line >= 1);
    switch ((enum vt_kind)ours->kind) {
    case VT_NULL:
        REQUIRE(json_is_null(theirs));
        break;
    case VT_BOOL:
        REQUIRE(json_is_boolean(theirs) && json_is_true(theirs) == ours->u.boolean);
        break;
    case VT_INT:
        REQUIRE(json_is_integer(theirs) && !ours->is_u64);
        REQUIRE(json_integer_value(theirs) == ours->u.integer);
        break;
    case VT_BIG:
        REQUIRE(false); /* the text was not to be read as Python does */
        break;
    case VT_REAL:
        REQUIRE(json_is_real(theirs));
        REQUIRE(same_bits(json_real_value(theirs), ours->u.real));
        break;
    case VT_STR:
        REQUIRE(json_is_string(theirs) && json_string_length(theirs) == ours->n);
        REQUIRE(memcmp(json_string_value(theirs), ours->u.str, ours->n + 1) == 0);
        break;
    case VT_LIST:
        REQUIRE(json_is_array(theirs) && json_array_size(theirs) == ours->n);
        for (uint32_t i = 0; i < ours->n; i++)
            compare(&ours->u.item[i], json_array_get(theirs, i));
        break;
    case VT_MAP:
        REQUIRE(json_is_object(theirs) && json_object_size(theirs) == ours->n);
        for (uint32_t i = 0; i < ours->n; i++) {
            const json_t *value = json_object_get(theirs, ours->u.item[i].key);

            REQUIRE(value);
            compare(&ours->u.item[i], value);
        }
        break;
    }
}

/* Bounds and number ranges differ on purpose: we stop at 64 levels and 1000 digits,
 * jansson at int64 where we go on to uint64. */
static bool may_differ(const struct vt_err *ours, const json_error_t *theirs)
{
    return strstr(ours->msg, "nested deeper") || strstr(ours->msg, "64 bits") ||
           strstr(ours->msg, "out of range") ||
           json_error_code(theirs) == json_error_numeric_overflow ||
           json_error_code(theirs) == json_error_stack_overflow;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* jansson's lexer drops a raw NUL that follows a number. */
    bool has_nul = size > 0 && memchr(data, '\0', size);
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL;
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_err err = {0};
    json_error_t json_err = {0};
    json_t *theirs = json_loadb((const char *)data, size, flags, &json_err);
    int rc = vt_json_parse(&arena, (const char *)data, size, 1, &root, &err);

    if (rc != VT_OK)
        REQUIRE(rc == VT_EINPUT && strncmp(err.msg, "line ", 5) == 0 && !root);
    if (rc == VT_OK && theirs)
        compare(root, theirs);
    else if ((rc == VT_OK) != (theirs != NULL) && !may_differ(&err, &json_err) &&
             !has_nul)
        fail(rc == VT_OK ? json_err.text : err.msg, 0);
    json_decref(theirs);
    vt_arena_free(&arena);
    return 0;
}
