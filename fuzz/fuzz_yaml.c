/* fuzz_yaml.c - whatever the bytes, a YAML tree is well formed or a clean error. */
#include "base/base.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(x) ((x) ? (void)0 : fail(#x, __LINE__))

static _Noreturn void fail(const char *what, int line)
{
    fprintf(stderr, "fuzz_yaml.c:%d: %s\n", line, what);
    abort();
}

static void check(const struct vt_node *node, int depth)
{
    REQUIRE(depth <= 64 && node->line >= 1);
    if (node->kind == VT_REAL)
        REQUIRE(isfinite(node->u.real));
    if (node->kind == VT_STR)
        REQUIRE(node->u.str[node->n] == '\0');
    if (node->kind != VT_LIST && node->kind != VT_MAP)
        return;
    for (uint32_t i = 0; i < node->n; i++) {
        const struct vt_node *item = &node->u.item[i];

        REQUIRE((item->key != NULL) == (node->kind == VT_MAP));
        /* Keys are unique, so looking one up finds the very same node. */
        if (item->key && node->n < 1000)
            REQUIRE(vt_get(node, item->key) == item);
        check(item, depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_err err = {0};
    int rc = vt_yaml_parse(&arena, (const char *)data, size, &root, &err);

    if (rc == VT_OK)
        check(root, 0);
    else
        REQUIRE(rc == VT_EINPUT && strncmp(err.msg, "line ", 5) == 0 && !root);
    vt_arena_free(&arena);
    return 0;
}
