/* build.h - what the JSON, YAML and TOML readers share, and how trees are put together.
 *
 * Children are collected on a stack and copied to the arena once their parent is
 * complete, which makes them contiguous without knowing their number beforehand. */
#ifndef VT_TREE_BUILD_H
#define VT_TREE_BUILD_H

#include "base/base.h"
#include "base/decimal.h"

enum { VT_MAX_DEPTH = 64 };

struct vt_build {
    struct vt_arena *arena;
    struct vt_node *stack;
    size_t n, cap;
    bool last_wins; /* of equal keys in a map; else they are an error */
    struct vt_err *err;
};

void vt_build_end(struct vt_build *b);

/* Copies the node, whose own children are complete, to the top of the stack. */
int vt_build_push(struct vt_build *b, const struct vt_node *node);

/* Moves the nodes above `base` into `parent` as its children. */
int vt_build_seal(struct vt_build *b, size_t base, struct vt_node *parent);

/* Numbers into nodes that know their line, which messages name. */
int vt_node_integer(struct vt_node *node, uint64_t size, bool negative,
                    struct vt_err *err);
int vt_node_number(struct vt_node *node, const struct vt_decimal *d,
                   const char *infinite, struct vt_err *err);

int vt_fail_twice(struct vt_err *err, uint32_t line, const char *key);
int vt_fail_deep(struct vt_err *err, uint32_t line);
int vt_fail_expected(struct vt_err *err, uint32_t line, const char *wanted,
                     unsigned char found);

#endif
