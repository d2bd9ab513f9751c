/* toml.c - TOML 1.0 into the same tree, without dates.
 *
 * Tables may be named in any order and added to later, so they are chains of items
 * while the text is read; at its end they become nodes. A hash of all keys keeps files
 * with very many of them from taking quadratic time. */
#include "base/json/toml.h"

#define MAX_BYTES ((size_t)4 << 20)

static int read_value(struct vt_toml *t, struct vt_toml_item *item);

int vt_toml_fail(struct vt_toml *t, const char *what)
{
    return vt_fail(t->err, VT_EINPUT, "line %u: %s", (unsigned)t->line, what);
}

/* ---- characters ------------------------------------------------------- */

static bool next_is(const struct vt_toml *t, char c)
{
    return t->p < t->end && *t->p == c;
}

static bool accept_char(struct vt_toml *t, char c)
{
    if (!next_is(t, c))
        return false;
    t->p++;
    return true;
}

bool vt_toml_newline(struct vt_toml *t)
{
    size_t n = next_is(t, '\n')                                           ? 1
               : t->end - t->p >= 2 && t->p[0] == '\r' && t->p[1] == '\n' ? 2
                                                                          : 0;

    t->p += n;
    t->line += n > 0;
    return n > 0;
}

void vt_toml_blank(struct vt_toml *t)
{
    while (next_is(t, ' ') || next_is(t, '\t'))
        t->p++;
}

static int skip_comment(struct vt_toml *t)
{
    if (!next_is(t, '#'))
        return VT_OK;
    while (t->p < t->end && *t->p != '\n') {
        size_t n = vt_utf8_len(t->p, (size_t)(t->end - t->p));
        unsigned char c = (unsigned char)*t->p;

        if (c == '\r' && t->end - t->p >= 2 && t->p[1] == '\n')
            break;
        if (n == 0)
            return vt_toml_fail(t, "bytes that are not UTF-8 in a comment");
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return vt_toml_fail(t, "control character in a comment");
        t->p += n;
    }
    return VT_OK;
}

/* Blanks, comments and newlines. */
static int skip_lines(struct vt_toml *t)
{
    int rc;

    do {
        vt_toml_blank(t);
        rc = skip_comment(t);
    } while (rc == VT_OK && vt_toml_newline(t));
    return rc;
}

static int unexpected(struct vt_toml *t, const char *wanted)
{
    unsigned char c = t->p < t->end ? (unsigned char)*t->p : '\n';

    if (c == '\n' || c == '\r')
        return vt_fail(t->err, VT_EINPUT, "line %u: expected %s", (unsigned)t->line,
                       wanted);
    return vt_fail_expected(t->err, t->line, wanted, c);
}

static int end_of_line(struct vt_toml *t)
{
    int rc;

    vt_toml_blank(t);
    rc = skip_comment(t);
    if (rc != VT_OK || t->p == t->end || vt_toml_newline(t))
        return rc;
    return unexpected(t, "the end of the line");
}

/* ---- items ------------------------------------------------------------ */

struct sought { /* the child of that key */
    const struct vt_toml_item *parent;
    const char *key;
};

static uint64_t hash_of(const struct vt_toml_item *parent, const char *key)
{
    return vt_hash_bytes(key, strlen(key), (uint64_t)(uintptr_t)parent);
}

static bool is_sought(const void *sought, uint64_t value)
{
    const struct sought *s = sought;
    const struct vt_toml_item *item = (const void *)(uintptr_t)value;

    return item->parent == s->parent && strcmp(item->node.key, s->key) == 0;
}

static struct vt_toml_item *
find_child(const struct vt_toml *t, const struct vt_toml_item *parent, const char *key)
{
    const struct sought s = {parent, key};
    const uint64_t *place =
        vt_map_find(&t->children, hash_of(parent, key), is_sought, &s);

    return place ? (struct vt_toml_item *)(uintptr_t)*place : NULL;
}

/* A new child at the end of its parent; key is NULL in a list. */
static int add_item(struct vt_toml *t, struct vt_toml_item *parent, const char *key,
                    struct vt_toml_item **out)
{
    struct vt_toml_item *item = vt_arena_alloc(t->arena, sizeof(*item));
    uint64_t *place = key ? vt_map_add(&t->children, hash_of(parent, key)) : NULL;

    if (!item || (key && !place))
        return vt_nomem(t->err);
    item->node.key = key;
    item->node.line = t->line;
    item->parent = parent;
    item->depth = (uint8_t)(parent->depth + 1);
    if (key)
        *place = (uintptr_t)item;
    if (parent->last)
        parent->last->next = item;
    else
        parent->first = item;
    parent->last = item;
    parent->node.n++;
    *out = item;
    return VT_OK;
}

static int make_container(struct vt_toml *t, struct vt_toml_item *item,
                          enum vt_kind kind, enum vt_toml_how how)
{
    if (item->depth >= VT_MAX_DEPTH)
        return vt_fail_deep(t->err, t->line);
    item->node.kind = (uint8_t)kind;
    item->how = (uint8_t)how;
    item->section = t->section;
    return VT_OK;
}

static int add_table(struct vt_toml *t, struct vt_toml_item *parent, const char *key,
                     enum vt_toml_how how, struct vt_toml_item **out)
{
    int rc = add_item(t, parent, key, out);

    return rc == VT_OK ? make_container(t, *out, VT_MAP, how) : rc;
}

/* ---- keys ------------------------------------------------------------- */

static bool is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '-';
}

/* One part of a key, and the blanks around it. */
static int read_key(struct vt_toml *t, const char **key)
{
    const char *start;
    uint32_t len;
    int rc = VT_OK;

    vt_toml_blank(t);
    start = t->p;
    if (next_is(t, '"') || next_is(t, '\'')) {
        if (t->end - t->p >= 3 && t->p[1] == *t->p && t->p[2] == *t->p)
            return vt_toml_fail(t, "a key on several lines");
        rc = vt_toml_string(t, key, &len);
        if (rc == VT_OK && strlen(*key) != len)
            return vt_toml_fail(t, "NUL in a key");
    } else {
        while (t->p < t->end && is_bare(*t->p))
            t->p++;
        if (t->p == start)
            return unexpected(t, "a key");
        *key = vt_arena_copy(t->arena, start, (size_t)(t->p - start));
        rc = *key ? VT_OK : vt_nomem(t->err);
    }
    vt_toml_blank(t);
    return rc;
}

/* The table `key` inside *table on the way of a dotted key: one that dotted keys of
 * the same section made, or that only headers below it have implied. */
static int enter_dotted(struct vt_toml *t, struct vt_toml_item **table, const char *key)
{
    struct vt_toml_item *next = find_child(t, *table, key);

    if (!next)
        return add_table(t, *table, key, VT_TOML_DOTTED, table);
    if (next->how == VT_TOML_IMPLIED)
        next->how = VT_TOML_DOTTED;
    else if (next->how != VT_TOML_DOTTED || next->section != t->section)
        return vt_fail_twice(t->err, t->line, key);
    next->section = t->section;
    *table = next;
    return VT_OK;
}

/* The same on the way of a header: any table but one that was written whole, and of a
 * list of tables the last. */
static int enter_header(struct vt_toml *t, struct vt_toml_item **table, const char *key)
{
    struct vt_toml_item *next = find_child(t, *table, key);

    if (!next)
        return add_table(t, *table, key, VT_TOML_IMPLIED, table);
    if (next->how == VT_TOML_TABLES)
        next = next->last;
    else if (next->how == VT_TOML_CLOSED)
        return vt_fail_twice(t->err, t->line, key);
    *table = next;
    return VT_OK;
}

/* key.key = value, into `table`. */
static int read_pair(struct vt_toml *t, struct vt_toml_item *table)
{
    struct vt_toml_item *item;
    const char *key;
    int rc = read_key(t, &key);

    while (rc == VT_OK && accept_char(t, '.')) {
        rc = enter_dotted(t, &table, key);
        if (rc == VT_OK)
            rc = read_key(t, &key);
    }
    if (rc != VT_OK)
        return rc;
    if (!accept_char(t, '='))
        return unexpected(t, "'='");
    if (find_child(t, table, key))
        return vt_fail_twice(t->err, t->line, key);
    vt_toml_blank(t);
    rc = add_item(t, table, key, &item);
    return rc == VT_OK ? read_value(t, item) : rc;
}

/* ---- values ----------------------------------------------------------- */

static int read_list(struct vt_toml *t, struct vt_toml_item *list)
{
    int rc = make_container(t, list, VT_LIST, VT_TOML_CLOSED);
    struct vt_toml_item *item = NULL;

    t->p++;
    while (rc == VT_OK) {
        if ((rc = skip_lines(t)) != VT_OK || accept_char(t, ']'))
            return rc;
        if ((rc = add_item(t, list, NULL, &item)) != VT_OK ||
            (rc = read_value(t, item)) != VT_OK || (rc = skip_lines(t)) != VT_OK)
            return rc;
        if (!accept_char(t, ',') && !next_is(t, ']'))
            return unexpected(t, "',' or ']'");
    }
    return rc;
}

static int read_inline_table(struct vt_toml *t, struct vt_toml_item *table)
{
    int rc = make_container(t, table, VT_MAP, VT_TOML_CLOSED);

    t->p++;
    vt_toml_blank(t);
    if (rc != VT_OK || accept_char(t, '}'))
        return rc;
    for (;;) {
        rc = read_pair(t, table);
        if (rc != VT_OK)
            return rc;
        vt_toml_blank(t);
        if (accept_char(t, '}'))
            return VT_OK;
        if (!accept_char(t, ','))
            return unexpected(t, "',' or '}'");
    }
}

static int read_value(struct vt_toml *t, struct vt_toml_item *item)
{
    if (next_is(t, '['))
        return read_list(t, item);
    if (next_is(t, '{'))
        return read_inline_table(t, item);
    if (next_is(t, '"') || next_is(t, '\'')) {
        item->node.kind = VT_STR;
        return vt_toml_string(t, &item->node.u.str, &item->node.n);
    }
    return vt_toml_scalar(t, &item->node);
}

/* ---- headers ---------------------------------------------------------- */

/* Where the pairs below [key], or [[key]] for many, go. */
static int open_table(struct vt_toml *t, struct vt_toml_item *parent, const char *key,
                      bool many, struct vt_toml_item **table)
{
    struct vt_toml_item *item = find_child(t, parent, key);
    int rc;

    if (item && item->how != (many ? VT_TOML_TABLES : VT_TOML_IMPLIED))
        return vt_fail_twice(t->err, t->line, key);
    if (!many && !item)
        return add_table(t, parent, key, VT_TOML_HEADER, table);
    if (!many) {
        item->how = VT_TOML_HEADER;
        *table = item;
        return VT_OK;
    }
    if (!item && ((rc = add_item(t, parent, key, &item)) != VT_OK ||
                  (rc = make_container(t, item, VT_LIST, VT_TOML_TABLES)) != VT_OK))
        return rc;
    return add_table(t, item, NULL, VT_TOML_HEADER, table);
}

/* [a.b] or [[a.b]]; *table becomes where the pairs below go. */
static int read_header(struct vt_toml *t, struct vt_toml_item *root,
                       struct vt_toml_item **table)
{
    struct vt_toml_item *parent = root;
    const char *key;
    bool many;
    int rc;

    t->p++;
    many = accept_char(t, '[');
    t->section++;
    rc = read_key(t, &key);
    while (rc == VT_OK && accept_char(t, '.')) {
        rc = enter_header(t, &parent, key);
        if (rc == VT_OK)
            rc = read_key(t, &key);
    }
    if (rc != VT_OK)
        return rc;
    if (!accept_char(t, ']') || (many && !accept_char(t, ']')))
        return unexpected(t, many ? "']]'" : "']'");
    return open_table(t, parent, key, many, table);
}

static int read_document(struct vt_toml *t, struct vt_toml_item *root)
{
    struct vt_toml_item *table = root;
    int rc = skip_lines(t);

    while (rc == VT_OK && t->p < t->end) {
        rc = next_is(t, '[') ? read_header(t, root, &table) : read_pair(t, table);
        if (rc != VT_OK || (rc = end_of_line(t)) != VT_OK)
            return rc;
        rc = skip_lines(t);
    }
    return rc;
}

/* ---- the tree --------------------------------------------------------- */

/* Recursion is as deep as the text nests, which is bounded. */
static int make_nodes(struct vt_toml *t, const struct vt_toml_item *item,
                      struct vt_node *node)
{
    uint32_t i = 0;
    int rc = VT_OK;

    *node = item->node;
    if ((node->kind != VT_LIST && node->kind != VT_MAP) || node->n == 0)
        return VT_OK;
    node->u.item = vt_arena_alloc(t->arena, node->n * sizeof(*node));
    if (!node->u.item)
        return vt_nomem(t->err);
    for (const struct vt_toml_item *c = item->first; c && rc == VT_OK; c = c->next)
        rc = make_nodes(t, c, &node->u.item[i++]);
    return rc;
}

int vt_toml_parse(struct vt_arena *a, const char *text, size_t len,
                  const struct vt_node **out, struct vt_err *err)
{
    struct vt_toml_item root = {
        .node = {.kind = VT_MAP, .line = 1}, .how = VT_TOML_HEADER, .depth = 0};
    struct vt_toml t = {.p = text ? text : "", .line = 1, .arena = a, .err = err};
    struct vt_node *node;
    int rc;

    *out = NULL;
    if (len > MAX_BYTES)
        return vt_fail(err, VT_EINPUT, "TOML text is longer than 4 MiB");
    t.end = t.p + len;
    node = vt_arena_alloc(a, sizeof(*node));
    rc = node ? read_document(&t, &root) : vt_nomem(err);
    if (rc == VT_OK)
        rc = make_nodes(&t, &root, node);
    if (rc == VT_OK)
        *out = node;
    vt_map_free(&t.children);
    vt_buf_free(&t.text);
    return rc;
}
