/* check_tree.h - what holds for every tree that a reader of base makes; shared by their
 * fuzz targets. */
#ifndef VT_FUZZ_CHECK_TREE_H
#define VT_FUZZ_CHECK_TREE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define REQUIRE(x) ((x) ? (void)0 : fail(#x, __FILE__, __LINE__))

static _Noreturn void fail(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    abort();
}

static void check_tree(const struct vt_node *node, int depth)
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
        check_tree(item, depth + 1);
    }
}

typedef int parse_tree(struct vt_arena *a, const char *text, size_t len,
                       const struct vt_node **out, struct vt_err *err);

/* Whatever the bytes: a tree that is well formed, or a clean error. */
static void check_parse(parse_tree *parse, const uint8_t *data, size_t size)
{
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_err err = {0};
    int rc = parse(&arena, (const char *)data, size, &root, &err);

    if (rc == VT_OK)
        check_tree(root, 0);
    else
        REQUIRE(rc == VT_EINPUT && strncmp(err.msg, "line ", 5) == 0 && !root);
    vt_arena_free(&arena);
}

#endif
