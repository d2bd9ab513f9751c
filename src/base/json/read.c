/* read.c - JSON into a tree.
 *
 * Our own reader, for three reasons: every value knows its line, so that a message
 * about a field can name it; 64-bit integers stay exact; and traces hold millions of
 * numbers, which decimal.c reads faster than strtod. */
#include <math.h>

#include "base/json/reader.h"

static int read_value(struct vt_json *j, struct vt_node *node, int depth);

int vt_json_unexpected(struct vt_json *j, const char *wanted)
{
    if (j->p >= j->end)
        return vt_fail(j->build.err, VT_EINPUT, "line %u: unexpected end of text",
                       (unsigned)j->line);
    return vt_fail_expected(j->build.err, j->line, wanted, (unsigned char)*j->p);
}

static void skip_space(struct vt_json *j)
{
    for (; j->p < j->end; j->p++) {
        if (*j->p == '\n')
            j->line++;
        else if (*j->p != ' ' && *j->p != '\t' && *j->p != '\r')
            break;
    }
}

static bool reads_python(const struct vt_json *j)
{
    return j->bounds && j->bounds->python;
}

static bool next_is(const struct vt_json *j, char c)
{
    return j->p < j->end && *j->p == c;
}

/* What neither 64 bits nor a double holds, as Python has it. */
static int read_any_size(struct vt_json *j, struct vt_node *node,
                         const struct vt_decimal *d)
{
    enum { DIGITS = 4300 }; /* sys.get_int_max_str_digits() */
    char *text = vt_arena_copy(j->build.arena, d->text, d->len);

    if (!text)
        return vt_nomem(j->build.err);
    if (!vt_decimal_is_int(d)) {
        node->kind = VT_REAL;
        node->u.real = strtod(text, NULL); /* which may be infinite */
        return VT_OK;
    }
    j->bounds->many_digits = d->n_int > DIGITS;
    if (j->bounds->many_digits)
        return vt_fail(j->build.err, VT_EINPUT,
                       "line %u: integer of more than %d digits", (unsigned)j->line,
                       DIGITS);
    node->kind = VT_BIG;
    node->u.str = text;
    return VT_OK;
}

static int read_number(struct vt_json *j, struct vt_node *node)
{
    struct vt_decimal d;
    const char *end = vt_decimal_scan(j->p, j->end, &d);
    int rc;

    if (!end || d.sign != d.negative || !vt_decimal_is_strict(&d))
        return vt_fail(j->build.err, VT_EINPUT, "line %u: malformed number",
                       (unsigned)j->line);
    j->p = end;
    rc = vt_node_number(node, &d, "number out of range", j->build.err);
    return rc == VT_EINPUT && reads_python(j) ? read_any_size(j, node, &d) : rc;
}

static int read_word(struct vt_json *j, const char *word, struct vt_node *node,
                     enum vt_kind kind, bool value)
{
    size_t len = strlen(word), left = (size_t)(j->end - j->p);

    if (left < len && memcmp(j->p, word, left) == 0)
        j->p = j->end;
    if (left < len || memcmp(j->p, word, len) != 0)
        return vt_json_unexpected(j, "a value");
    j->p += len;
    node->kind = (uint8_t)kind;
    node->u.boolean = value;
    return VT_OK;
}

/* NaN, Infinity and -Infinity; VT_EINPUT: none of them stands there. */
static int read_not_finite(struct vt_json *j, struct vt_node *node)
{
    static const struct {
        const char *word;
        double value;
    } rows[] = {{"NaN", (double)NAN},
                {"Infinity", (double)INFINITY},
                {"-Infinity", -(double)INFINITY}};

    for (size_t i = 0; i < VT_COUNT(rows) && (reads_python(j) || j->nulls); i++) {
        size_t len = strlen(rows[i].word);

        if ((size_t)(j->end - j->p) < len || memcmp(j->p, rows[i].word, len) != 0)
            continue;
        j->p += len;
        node->kind = j->nulls ? VT_NULL : VT_REAL;
        node->u.real = rows[i].value;
        if (j->nulls)
            ++*j->nulls;
        return VT_OK;
    }
    return VT_EINPUT;
}

static int read_key(struct vt_json *j, struct vt_node *node)
{
    uint32_t len;
    int rc;

    if (!next_is(j, '"'))
        return vt_json_unexpected(j, "a key in quotes");
    rc = vt_json_string(j, &node->key, &len);
    if (rc != VT_OK)
        return rc;
    if (memchr(node->key, '\0', len))
        return vt_fail(j->build.err, VT_EINPUT, "line %u: NUL in a key",
                       (unsigned)j->line);
    skip_space(j);
    if (!next_is(j, ':'))
        return vt_json_unexpected(j, "':'");
    j->p++;
    skip_space(j);
    return VT_OK;
}

/* ---- lists of ids ------------------------------------------------------ */

struct ids { /* the list being read, on the builder's stack */
    size_t base;
    uint32_t ends;     /* as vt_json_bounds'; 0: any other list */
    uint32_t left_out; /* the last `ends` members go round in their places */
};

static uint32_t ends_of(const struct vt_json *j, const struct vt_node *node, int depth)
{
    const struct vt_json_bounds *b = j->bounds;

    if (!b || !b->key || node->kind != VT_LIST)
        return 0;
    if (depth == 1 && node->key && strcmp(node->key, b->key) == 0)
        return b->ends;
    return depth == 2 && j->in_ids ? b->ends : 0;
}

/* Puts an id in the place of the oldest of the last ones, if there are enough. */
static bool takes_turn(struct vt_json *j, struct ids *l, const struct vt_node *id)
{
    if (l->ends == 0 || id->kind != VT_INT || id->u.integer < 0 ||
        j->build.n - l->base != 2 * (size_t)l->ends)
        return false;
    j->build.stack[l->base + l->ends + l->left_out++ % l->ends] = *id;
    j->n_values--;
    return true;
}

static void reverse_nodes(struct vt_node *node, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        struct vt_node x = node[i];

        node[i] = node[n - 1 - i];
        node[n - 1 - i] = x;
    }
}

/* The last ones get their order back. */
static void end_turns(struct vt_json *j, const struct ids *l)
{
    size_t first = l->left_out > 0 ? l->left_out % l->ends : 0;
    struct vt_node *last;

    if (first == 0)
        return;
    last = j->build.stack + l->base + l->ends;
    reverse_nodes(last, first);
    reverse_nodes(last + first, l->ends - first);
    reverse_nodes(last, l->ends);
}

/* ---- lists and maps ---------------------------------------------------- */

/* j->p is behind the opening bracket. */
static int read_children(struct vt_json *j, bool keyed, char close, int depth,
                         struct ids *l)
{
    skip_space(j);
    if (next_is(j, close))
        return VT_OK;
    for (;;) {
        struct vt_node child = {0};
        int rc = keyed ? read_key(j, &child) : VT_OK;

        if (rc == VT_OK)
            rc = read_value(j, &child, depth + 1);
        if (rc == VT_OK && !takes_turn(j, l, &child))
            rc = vt_build_push(&j->build, &child);
        if (rc != VT_OK)
            return rc;
        skip_space(j);
        if (next_is(j, close))
            return VT_OK;
        if (!next_is(j, ','))
            return vt_json_unexpected(j, keyed ? "',' or '}'" : "',' or ']'");
        j->p++;
        skip_space(j);
    }
}

static int read_container(struct vt_json *j, struct vt_node *node, int depth)
{
    bool keyed = *j->p == '{';
    struct ids l = {.base = j->build.n};
    int rc;

    if (depth >= VT_MAX_DEPTH)
        return vt_fail_deep(j->build.err, j->line);
    node->kind = keyed ? VT_MAP : VT_LIST;
    l.ends = ends_of(j, node, depth);
    if (depth == 1)
        j->in_ids = l.ends > 0;
    j->p++;
    rc = read_children(j, keyed, keyed ? '}' : ']', depth, &l);
    if (rc != VT_OK)
        return rc;
    j->p++;
    end_turns(j, &l);
    node->left_out = l.left_out;
    return vt_build_seal(&j->build, l.base, node);
}

static int count_value(struct vt_json *j)
{
    j->n_values++;
    if (!j->bounds || j->n_values <= j->bounds->values)
        return VT_OK;
    j->bounds->passed = true;
    return vt_fail(j->build.err, VT_EINPUT, "line %u: more than %u values",
                   (unsigned)j->line, (unsigned)j->bounds->values);
}

static int read_value(struct vt_json *j, struct vt_node *node, int depth)
{
    int rc = count_value(j);

    if (rc != VT_OK)
        return rc;
    node->line = j->line;
    switch (j->p < j->end ? *j->p : '\0') {
    case '{':
    case '[':
        return read_container(j, node, depth);
    case '"':
        node->kind = VT_STR;
        return vt_json_string(j, &node->u.str, &node->n);
    case 't':
        return read_word(j, "true", node, VT_BOOL, true);
    case 'f':
        return read_word(j, "false", node, VT_BOOL, false);
    case 'n':
        return read_word(j, "null", node, VT_NULL, false);
    case '-':
        if (read_not_finite(j, node) == VT_OK)
            return VT_OK;
        return read_number(j, node);
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
        return read_number(j, node);
    default:
        if (read_not_finite(j, node) == VT_OK)
            return VT_OK;
        return vt_json_unexpected(j, "a value");
    }
}

static int read_text(struct vt_json *j, const char *text, size_t len,
                     const struct vt_node **out)
{
    struct vt_node *root;
    int rc;

    *out = NULL;
    if (len > UINT32_MAX) /* node counts and lengths are 32 bits wide */
        return vt_fail(j->build.err, VT_EINPUT, "text is longer than 4 GiB");
    j->p = text ? text : "";
    j->end = j->p + len;
    root = vt_arena_alloc(j->build.arena, sizeof(*root));
    if (!root)
        return vt_nomem(j->build.err);
    skip_space(j);
    rc = read_value(j, root, 0);
    skip_space(j);
    if (rc == VT_OK && j->p < j->end)
        rc = vt_json_unexpected(j, "the end of text");
    vt_build_end(&j->build);
    if (rc == VT_OK)
        *out = root;
    return rc;
}

int vt_json_parse(struct vt_arena *a, const char *text, size_t len, uint32_t first_line,
                  const struct vt_node **out, struct vt_err *err)
{
    struct vt_json j = {.line = first_line, .build = {.arena = a, .err = err}};

    return read_text(&j, text, len, out);
}

int vt_json_parse_report(struct vt_arena *a, const char *text, size_t len,
                         uint32_t first_line, size_t *nulls, const struct vt_node **out,
                         struct vt_err *err)
{
    struct vt_json j = {
        .line = first_line, .build = {.arena = a, .err = err}, .nulls = nulls};

    return read_text(&j, text, len, out);
}

int vt_json_parse_bounded(struct vt_arena *a, const char *text, size_t len,
                          struct vt_json_bounds *bounds, const struct vt_node **out,
                          struct vt_err *err)
{
    struct vt_json j = {.line = 1,
                        .build = {.arena = a, .err = err, .last_wins = bounds->python},
                        .bounds = bounds};

    return read_text(&j, text, len, out);
}

bool vt_json_is_cut(const char *text, size_t len)
{
    bool quoted = false;
    size_t depth = 0;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (quoted && c == '\\')
            i++; /* whatever it is, it ends no string */
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '['))
            depth++;
        else if (!quoted && (c == '}' || c == ']') && depth-- <= 1)
            return false;
    }
    return depth > 0;
}
