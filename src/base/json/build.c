/* build.c - nodes from a stack into contiguous children, and what readers share. */
#include "base/json/build.h"

enum { FEW = 16, FIRST_CAP = 128 };

void vt_build_end(struct vt_build *b)
{
    free(b->stack);
    b->stack = NULL;
}

int vt_build_push(struct vt_build *b, const struct vt_node *node)
{
    if (b->n == b->cap) {
        int rc = vt_grow(&b->stack, &b->cap, b->n < FIRST_CAP ? FIRST_CAP : b->n + 1,
                         sizeof(*b->stack), b->err);
        if (rc != VT_OK)
            return rc;
    }
    b->stack[b->n++] = *node;
    return VT_OK;
}

int vt_node_integer(struct vt_node *node, uint64_t size, bool negative,
                    struct vt_err *err)
{
    if (negative && size > (uint64_t)INT64_MAX + 1)
        return vt_fail(err, VT_EINPUT, "line %u: integer does not fit 64 bits",
                       (unsigned)node->line);
    node->kind = VT_INT;
    node->is_u64 = !negative && size > (uint64_t)INT64_MAX;
    node->u.integer = (int64_t)(negative ? 0 - size : size);
    return VT_OK;
}

int vt_node_number(struct vt_node *node, const struct vt_decimal *d,
                   const char *infinite, struct vt_err *err)
{
    bool is_int = vt_decimal_is_int(d);
    uint64_t size;

    if (is_int && vt_decimal_u64(d, &size))
        return vt_node_integer(node, size, d->negative, err);
    node->kind = VT_REAL;
    if (!is_int && vt_decimal_f64(d, &node->u.real))
        return VT_OK;
    return vt_fail(err, VT_EINPUT, "line %u: %s", (unsigned)node->line,
                   is_int ? "integer does not fit 64 bits" : infinite);
}

int vt_fail_twice(struct vt_err *err, uint32_t line, const char *key)
{
    return vt_fail(err, VT_EINPUT, "line %u: key '%s' appears twice", (unsigned)line,
                   key);
}

int vt_fail_deep(struct vt_err *err, uint32_t line)
{
    return vt_fail(err, VT_EINPUT, "line %u: nested deeper than %d levels",
                   (unsigned)line, VT_MAX_DEPTH);
}

int vt_fail_expected(struct vt_err *err, uint32_t line, const char *wanted,
                     unsigned char found)
{
    if (found < 0x21 || found > 0x7e)
        return vt_fail(err, VT_EINPUT, "line %u: expected %s, not byte 0x%02x",
                       (unsigned)line, wanted, found);
    return vt_fail(err, VT_EINPUT, "line %u: expected %s, not '%c'", (unsigned)line,
                   wanted, found);
}

static int check_few(const struct vt_node *item, size_t n, struct vt_err *err)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (item[i].key[0] == item[k].key[0] &&
                strcmp(item[i].key, item[k].key) == 0)
                return vt_fail_twice(err, item[i].line, item[i].key);
    return VT_OK;
}

/* Equal keys keep the order of the file, so the second one is the one named. */
static int by_key(const void *a, const void *b)
{
    const struct vt_node *x = *(const struct vt_node *const *)a;
    const struct vt_node *y = *(const struct vt_node *const *)b;
    int order = strcmp(x->key, y->key);

    return order ? order : (x > y) - (x < y);
}

/* Sorting instead of hashing: no input makes it slow. Heap; NULL: memory. */
static struct vt_node **sort_by_key(struct vt_node *item, size_t n)
{
    struct vt_node **sorted = malloc(n * sizeof(struct vt_node *));

    for (size_t i = 0; sorted && i < n; i++)
        sorted[i] = &item[i];
    if (sorted)
        qsort(sorted, n, sizeof(struct vt_node *), by_key);
    return sorted;
}

static int check_many(struct vt_node *item, size_t n, struct vt_err *err)
{
    struct vt_node **sorted = sort_by_key(item, n);
    int rc = VT_OK;

    if (!sorted)
        return vt_nomem(err);
    for (size_t i = 1; i < n && rc == VT_OK; i++)
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
            rc = vt_fail_twice(err, sorted[i]->line, sorted[i]->key);
    free(sorted);
    return rc;
}

/* Each key once: the last of its values in the place of the first. */
static int keep_last(struct vt_node *map, struct vt_err *err)
{
    struct vt_node **sorted = sort_by_key(map->u.item, map->n);
    struct vt_node *first = NULL;
    uint32_t n = 0;

    if (!sorted)
        return vt_nomem(err);
    for (uint32_t i = 0; i < map->n; i++) {
        if (!first || strcmp(first->key, sorted[i]->key) != 0) {
            first = sorted[i];
            continue;
        }
        *first = *sorted[i];
        sorted[i]->key = NULL;
    }
    free(sorted);
    for (uint32_t i = 0; i < map->n; i++)
        if (map->u.item[i].key)
            map->u.item[n++] = map->u.item[i];
    map->n = n;
    return VT_OK;
}

int vt_build_seal(struct vt_build *b, size_t base, struct vt_node *parent)
{
    size_t n = b->n - base;
    int rc;

    parent->n = (uint32_t)n;
    parent->u.item = NULL;
    if (n == 0)
        return VT_OK;
    parent->u.item = vt_arena_alloc(b->arena, n * sizeof(*b->stack));
    if (!parent->u.item)
        return vt_nomem(b->err);
    memcpy(parent->u.item, b->stack + base, n * sizeof(*b->stack));
    b->n = base;
    if (parent->kind != VT_MAP)
        return VT_OK;
    rc = n <= FEW ? check_few(parent->u.item, n, b->err)
                  : check_many(parent->u.item, n, b->err);
    return rc == VT_EINPUT && b->last_wins ? keep_last(parent, b->err) : rc;
}
