/* yaml.c - YAML into the same tree, from libyaml's events.
 *
 * Plain data only: anchors, aliases and tags are refused, because what they build is
 * not what the reader of the file sees. */
#include <yaml.h>

#include "base/json/build.h"

#define MAX_BYTES ((size_t)64 << 20)

struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; owned */
    const char *text;
    size_t len;
    struct vt_build build;
};

static int read_node(struct reader *r, struct vt_node *node, int depth);

static int fail_at(struct reader *r, size_t line0, const char *what)
{
    return vt_fail(r->build.err, VT_EINPUT, "line %zu: %s", line0 + 1, what);
}

static int fail_here(struct reader *r, const char *what)
{
    return fail_at(r, r->event.start_mark.line, what);
}

static int parser_error(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    size_t line0 = p->problem_mark.line;

    if (p->error == YAML_MEMORY_ERROR)
        return vt_nomem(r->build.err);
    if (p->error == YAML_READER_ERROR) { /* a byte that is no text has no mark */
        line0 = 0;
        for (size_t i = 0; i < p->problem_offset && i < r->len; i++)
            line0 += r->text[i] == '\n';
    }
    return fail_at(r, line0, p->problem ? p->problem : "not YAML");
}

/* Replaces the current event by the next one. */
static int advance(struct reader *r)
{
    yaml_event_delete(&r->event);
    if (!yaml_parser_parse(&r->parser, &r->event)) {
        memset(&r->event, 0, sizeof(r->event));
        return parser_error(r);
    }
    return VT_OK;
}

/* 0x1F and 0o17, which the core schema knows and JSON does not. */
static bool parse_based(const char *text, uint64_t *out)
{
    uint64_t base = text[0] != '0' ? 0 : text[1] == 'x' ? 16 : text[1] == 'o' ? 8 : 0;
    uint64_t v = 0;

    if (base == 0 || text[2] == '\0')
        return false;
    for (const char *p = text + 2; *p; p++) {
        int digit = vt_hex_value(*p);

        if (digit < 0 || (uint64_t)digit >= base ||
            v > (UINT64_MAX - (uint64_t)digit) / base)
            return false;
        v = v * base + (uint64_t)digit;
    }
    *out = v;
    return true;
}

static int set_string(struct reader *r, const char *text, size_t len,
                      struct vt_node *node)
{
    node->kind = VT_STR;
    node->n = (uint32_t)len;
    node->u.str = vt_arena_copy(r->build.arena, text, len);
    return node->u.str ? VT_OK : vt_nomem(r->build.err);
}

/* The core schema's reading of a scalar without quotes. */
static int resolve_plain(struct reader *r, const char *text, size_t len,
                         struct vt_node *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const yes[] = {"true", "True", "TRUE", NULL};
    static const char *const no[] = {"false", "False", "FALSE", NULL};
    static const char *const infinite[] = {".inf", ".Inf", ".INF", ".nan",
                                           ".NaN", ".NAN", NULL};
    struct vt_decimal d;
    uint64_t based;

    if (vt_is_one_of(text, nulls)) {
        node->kind = VT_NULL;
        return VT_OK;
    }
    if (vt_is_one_of(text, yes) || vt_is_one_of(text, no)) {
        node->kind = VT_BOOL;
        node->u.boolean = vt_is_one_of(text, yes);
        return VT_OK;
    }
    if (vt_is_one_of(*text == '-' || *text == '+' ? text + 1 : text, infinite))
        return fail_here(r, "not a finite number");
    if (vt_decimal_scan(text, text + len, &d) == text + len)
        return vt_node_number(node, &d, "not a finite number", r->build.err);
    if (parse_based(text, &based))
        return vt_node_integer(node, based, false, r->build.err);
    return set_string(r, text, len, node);
}

static int check_plain_data(struct reader *r)
{
    const yaml_event_t *e = &r->event;
    const yaml_char_t *anchor = NULL, *tag = NULL;

    if (e->type == YAML_ALIAS_EVENT)
        return fail_here(r, "aliases are not supported");
    if (e->type == YAML_SCALAR_EVENT) {
        anchor = e->data.scalar.anchor;
        tag = e->data.scalar.tag;
    } else if (e->type == YAML_SEQUENCE_START_EVENT) {
        anchor = e->data.sequence_start.anchor;
        tag = e->data.sequence_start.tag;
    } else if (e->type == YAML_MAPPING_START_EVENT) {
        anchor = e->data.mapping_start.anchor;
        tag = e->data.mapping_start.tag;
    }
    if (anchor)
        return fail_here(r, "anchors are not supported");
    return tag ? fail_here(r, "tags are not supported") : VT_OK;
}

/* Leaves the event that follows the key current. */
static int read_key(struct reader *r, struct vt_node *node)
{
    int rc = check_plain_data(r);

    if (rc != VT_OK)
        return rc;
    if (r->event.type != YAML_SCALAR_EVENT)
        return fail_here(r, "a key must be a word, not a list or map");
    if (memchr(r->event.data.scalar.value, '\0', r->event.data.scalar.length))
        return fail_here(r, "NUL in a key");
    node->key = vt_arena_copy(r->build.arena, (const char *)r->event.data.scalar.value,
                              r->event.data.scalar.length);
    return node->key ? advance(r) : vt_nomem(r->build.err);
}

static int read_children(struct reader *r, struct vt_node *node, int depth)
{
    bool keyed = node->kind == VT_MAP;
    yaml_event_type_t close = keyed ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    size_t base = r->build.n;
    int rc = advance(r);

    while (rc == VT_OK && r->event.type != close) {
        struct vt_node child = {0};

        if ((keyed && (rc = read_key(r, &child)) != VT_OK) ||
            (rc = read_node(r, &child, depth + 1)) != VT_OK ||
            (rc = vt_build_push(&r->build, &child)) != VT_OK)
            return rc;
        rc = advance(r);
    }
    return rc == VT_OK ? vt_build_seal(&r->build, base, node) : rc;
}

/* The value that starts at the current event; its last event stays current. */
static int read_node(struct reader *r, struct vt_node *node, int depth)
{
    const char *text;
    size_t len;
    int rc = check_plain_data(r);

    if (rc != VT_OK)
        return rc;
    node->line = (uint32_t)(r->event.start_mark.line + 1);
    if (r->event.type == YAML_SCALAR_EVENT) {
        text = (const char *)r->event.data.scalar.value;
        len = r->event.data.scalar.length;
        return r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE
                   ? resolve_plain(r, text, len, node)
                   : set_string(r, text, len, node);
    }
    if (depth >= VT_MAX_DEPTH)
        return vt_fail_deep(r->build.err, node->line);
    node->kind = r->event.type == YAML_MAPPING_START_EVENT ? VT_MAP : VT_LIST;
    return read_children(r, node, depth);
}

/* Text without a document reads as null. */
static int read_stream(struct reader *r, struct vt_node *root)
{
    int rc = advance(r); /* stream start */

    root->line = 1;
    if (rc != VT_OK || (rc = advance(r)) != VT_OK ||
        r->event.type == YAML_STREAM_END_EVENT)
        return rc;
    if ((rc = advance(r)) != VT_OK || (rc = read_node(r, root, 0)) != VT_OK ||
        (rc = advance(r)) != VT_OK || (rc = advance(r)) != VT_OK) /* document end */
        return rc;
    if (r->event.type != YAML_STREAM_END_EVENT)
        return fail_here(r, "a second document; only one is expected");
    return VT_OK;
}

int vt_yaml_parse(struct vt_arena *a, const char *text, size_t len,
                  const struct vt_node **out, struct vt_err *err)
{
    struct reader r = {.text = text, .len = len, .build = {.arena = a, .err = err}};
    struct vt_node *root;
    int rc;

    *out = NULL;
    if (len > MAX_BYTES)
        return vt_fail(err, VT_EINPUT, "YAML text is longer than 64 MiB");
    root = vt_arena_alloc(a, sizeof(*root));
    if (!root || !yaml_parser_initialize(&r.parser))
        return vt_nomem(err);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(text ? text : ""),
                                 len);
    rc = read_stream(&r, root);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    vt_build_end(&r.build);
    if (rc == VT_OK)
        *out = root;
    return rc;
}
