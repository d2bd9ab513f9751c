/* fields.c - reading fields out of a tree, with messages that name line and field. */
#include "base/base.h"

#include <float.h>
#include <math.h>

#define MAX_JSON_BYTES ((size_t)1 << 30)

/* nulls: NULL, or as a report. */
static int load_tree(struct vt_arena *a, const char *path, size_t *nulls,
                     const struct vt_node **out, struct vt_err *err)
{
    static const char mark[] = "\xef\xbb\xbf"; /* some editors put it first */
    struct vt_buf b = {0};
    const char *text;
    size_t len, i = 0;
    int rc = vt_read_file(path, MAX_JSON_BYTES, &b, err);

    *out = NULL;
    if (rc != VT_OK) {
        vt_buf_free(&b);
        return rc;
    }
    text = b.data;
    len = b.len;
    if (len >= 3 && memcmp(text, mark, 3) == 0) {
        text += 3;
        len -= 3;
    }
    while (i < len && strchr(" \t\r\n", text[i]) && text[i])
        i++;
    /* By its name, since both JSON and TOML may begin with a bracket. */
    if (vt_is_named(path, ".toml"))
        rc = vt_toml_parse(a, text, len, out, err);
    else if (i < len && (text[i] == '{' || text[i] == '['))
        rc = nulls ? vt_json_parse_report(a, text, len, 1, nulls, out, err)
                   : vt_json_parse(a, text, len, 1, out, err);
    else
        rc = vt_yaml_parse(a, text, len, out, err);
    vt_buf_free(&b);
    return vt_within(err, rc, "%s", path);
}

int vt_tree_load(struct vt_arena *a, const char *path, const struct vt_node **out,
                 struct vt_err *err)
{
    return load_tree(a, path, NULL, out, err);
}

int vt_report_tree_load(struct vt_arena *a, const char *path, size_t *nulls,
                        const struct vt_node **out, struct vt_err *err)
{
    return load_tree(a, path, nulls, out, err);
}

const struct vt_node *vt_get(const struct vt_node *map, const char *key)
{
    if (!map || map->kind != VT_MAP)
        return NULL;
    for (uint32_t i = 0; i < map->n; i++) {
        const char *k = map->u.item[i].key;

        if (*k == *key && strcmp(k, key) == 0) /* most differ at once */
            return &map->u.item[i];
    }
    return NULL;
}

const struct vt_node *vt_get_non_null(const struct vt_node *map, const char *key)
{
    const struct vt_node *n = vt_get(map, key);

    return n && n->kind != VT_NULL ? n : NULL;
}

/* Puts "line N: " before the message where the line is known. */
static int at_line(struct vt_err *err, const struct vt_node *node, int rc)
{
    if (!node || node->line == 0)
        return rc;
    return vt_within(err, rc, "line %u", (unsigned)node->line);
}

static int bad_field(struct vt_err *err, const struct vt_node *node, const char *what)
{
    return at_line(err, node,
                   vt_fail(err, VT_EINPUT, "field '%s' %s", node->key, what));
}

/* *out is NULL if the field may be and is absent. A NULL map has no fields, so that
 * optional sections need no special case. */
static int find_field(const struct vt_node *map, const char *key, enum vt_need need,
                      const struct vt_node **out, struct vt_err *err)
{
    *out = vt_get(map, key);
    if (map && map->kind != VT_MAP)
        return at_line(err, map,
                       vt_fail(err, VT_EINPUT, "expected a map with field '%s'", key));
    if (!*out && need == VT_REQUIRED)
        return at_line(err, map, vt_fail(err, VT_EINPUT, "field '%s' is missing", key));
    return VT_OK;
}

static int out_of_range(struct vt_err *err, const struct vt_node *node, const char *lo,
                        const char *hi, const char *got)
{
    int rc;

    if (!lo)
        rc = vt_fail(err, VT_EINPUT, "field '%s' must be at most %s, not %s", node->key,
                     hi, got);
    else if (!hi)
        rc = vt_fail(err, VT_EINPUT, "field '%s' must be at least %s, not %s",
                     node->key, lo, got);
    else
        rc = vt_fail(err, VT_EINPUT, "field '%s' must be from %s to %s, not %s",
                     node->key, lo, hi, got);
    return at_line(err, node, rc);
}

bool vt_node_f64(const struct vt_node *n, double *out)
{
    if (n && n->kind == VT_REAL)
        *out = n->u.real;
    else if (n && n->kind == VT_INT)
        *out = n->is_u64 ? (double)(uint64_t)n->u.integer : (double)n->u.integer;
    else if (n && n->kind == VT_BIG)
        *out = strtod(n->u.str, NULL);
    else
        return false;
    return isfinite(*out);
}

bool vt_node_u64(const struct vt_node *n, uint64_t most, uint64_t *out)
{
    if (!n || n->kind != VT_INT || (n->u.integer < 0 && !n->is_u64) ||
        (uint64_t)n->u.integer > most)
        return false;
    *out = (uint64_t)n->u.integer;
    return true;
}

int vt_get_f64(const struct vt_node *map, const char *key, enum vt_need need, double lo,
               double hi, double *out, struct vt_err *err)
{
    char low[32], high[32], got[32];
    const struct vt_node *node;
    int rc = find_field(map, key, need, &node, err);
    double v;

    if (rc != VT_OK || !node)
        return rc;
    if (!vt_node_f64(node, &v))
        return bad_field(err, node, "is not a number");
    if (v >= lo && v <= hi) {
        *out = v;
        return VT_OK;
    }
    vt_fmt_f64(low, lo);
    vt_fmt_f64(high, hi);
    vt_fmt_f64(got, v);
    return out_of_range(err, node, lo > -DBL_MAX ? low : NULL,
                        hi < DBL_MAX ? high : NULL, got);
}

/* Whole numbers written as 8.0 or 1e3 count; *fits is false beyond int64. */
static bool as_i64(const struct vt_node *node, int64_t *v, bool *fits)
{
    *fits = true;
    if (node->kind == VT_INT) {
        *v = node->u.integer;
        *fits = !node->is_u64;
        return true;
    }
    if (node->kind != VT_REAL || node->u.real != floor(node->u.real))
        return false;
    *fits = node->u.real >= -0x1p63 && node->u.real < 0x1p63;
    *v = *fits ? (int64_t)node->u.real : 0;
    return true;
}

int vt_get_i64(const struct vt_node *map, const char *key, enum vt_need need,
               int64_t lo, int64_t hi, int64_t *out, struct vt_err *err)
{
    char low[32], high[32], got[32];
    const struct vt_node *node;
    int rc = find_field(map, key, need, &node, err);
    int64_t v;
    bool fits;

    if (rc != VT_OK || !node)
        return rc;
    if (!as_i64(node, &v, &fits))
        return bad_field(err, node, "is not a whole number");
    if (fits && v >= lo && v <= hi) {
        *out = v;
        return VT_OK;
    }
    snprintf(low, sizeof(low), "%lld", (long long)lo);
    snprintf(high, sizeof(high), "%lld", (long long)hi);
    if (fits)
        snprintf(got, sizeof(got), "%lld", (long long)v);
    else if (node->kind == VT_INT)
        snprintf(got, sizeof(got), "%llu", (unsigned long long)node->u.integer);
    else
        vt_fmt_f64(got, node->u.real);
    return out_of_range(err, node, fits && lo == INT64_MIN ? NULL : low,
                        fits && hi == INT64_MAX ? NULL : high, got);
}

int vt_get_u32(const struct vt_node *map, const char *key, enum vt_need need,
               uint32_t lo, uint32_t hi, uint32_t *out, struct vt_err *err)
{
    int64_t v = *out;
    int rc = vt_get_i64(map, key, need, lo, hi, &v, err);

    if (rc == VT_OK)
        *out = (uint32_t)v;
    return rc;
}

int vt_get_bool(const struct vt_node *map, const char *key, enum vt_need need,
                bool *out, struct vt_err *err)
{
    const struct vt_node *node;
    int rc = find_field(map, key, need, &node, err);

    if (rc != VT_OK || !node)
        return rc;
    if (node->kind != VT_BOOL)
        return bad_field(err, node, "is not true or false");
    *out = node->u.boolean;
    return VT_OK;
}

int vt_get_str(const struct vt_node *map, const char *key, enum vt_need need,
               const char **out, struct vt_err *err)
{
    const struct vt_node *node;
    int rc = find_field(map, key, need, &node, err);

    if (rc != VT_OK || !node)
        return rc;
    if (node->kind != VT_STR)
        return bad_field(err, node, "is not a string");
    if (strlen(node->u.str) != node->n)
        return bad_field(err, node, "holds a NUL");
    *out = node->u.str;
    return VT_OK;
}

/* ---- fields nobody knows, and the name that was probably meant ---------- */

size_t vt_edit_distance(const char *a, const char *b)
{
    size_t row[VT_LONGEST_WORD + 1];
    size_t n_a = strnlen(a, VT_LONGEST_WORD), n_b = strnlen(b, VT_LONGEST_WORD);

    for (size_t k = 0; k <= n_b; k++)
        row[k] = k;
    for (size_t i = 1; i <= n_a; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t k = 1; k <= n_b; k++) {
            size_t least = diagonal + (a[i - 1] != b[k - 1]);

            diagonal = row[k];
            least = row[k] + 1 < least ? row[k] + 1 : least;
            row[k] = row[k - 1] + 1 < least ? row[k - 1] + 1 : least;
        }
    }
    return row[n_b];
}

const char *vt_nearest(const char *word, const char *const *known)
{
    size_t len = strlen(word);
    size_t best_distance = len / 3 > 1 ? len / 3 : 1;
    const char *best = NULL;

    if (len > VT_LONGEST_WORD)
        return NULL;
    for (; *known; known++) {
        size_t d = vt_edit_distance(word, *known);

        /* A distance as long as the word shares nothing with it. */
        if (d < len && (best ? d < best_distance : d <= best_distance)) {
            best = *known;
            best_distance = d;
        }
    }
    return best;
}

bool vt_is_one_of(const char *word, const char *const *known)
{
    for (; *known; known++)
        if (strcmp(word, *known) == 0)
            return true;
    return false;
}

bool vt_is_text(const char *known, const char *text, size_t len)
{
    return strlen(known) == len && memcmp(known, text, len) == 0;
}

int vt_fail_unknown(struct vt_err *err, const char *what, const char *word, int most,
                    const char *const *known)
{
    const char *near = vt_nearest(word, known);

    return vt_fail(err, VT_EINPUT, "unknown %s '%.*s'%s%s%s", what, most, word,
                   near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

int vt_only_keys(const struct vt_node *map, const char *const *known,
                 struct vt_err *err)
{
    if (!map || map->kind != VT_MAP)
        return VT_OK;
    for (uint32_t i = 0; i < map->n; i++) {
        const struct vt_node *node = &map->u.item[i];

        if (!vt_is_one_of(node->key, known))
            return at_line(err, node,
                           vt_fail_unknown(err, "field", node->key, -1, known));
    }
    return VT_OK;
}
