/* json.h - trees of JSON, YAML and TOML, and JSON written; part of base.h. */
#ifndef VT_BASE_JSON_H
#define VT_BASE_JSON_H

#include "base/base.h"

/* ---- trees: JSON, YAML and TOML --------------------------------------- */

/* VT_BIG: an integer beyond 64 bits; only vt_json_parse_bounded() makes them, and only
 * where it is told to read as Python does. */
enum vt_kind { VT_NULL, VT_BOOL, VT_INT, VT_BIG, VT_REAL, VT_STR, VT_LIST, VT_MAP };

/* One value. Children of lists and maps are contiguous: item[0..n). Read-only to
 * its users and owned by the document's arena. */
struct vt_node {
    uint8_t kind;      /* enum vt_kind */
    bool is_u64;       /* integer holds a uint64 above INT64_MAX */
    uint32_t line;     /* 1-based line in the file; 0 unknown */
    uint32_t n;        /* list or map: children; string: bytes */
    uint32_t left_out; /* of a bounded list: members that were counted, not kept */
    const char *key;   /* in a map: the NUL-terminated key */
    union {
        bool boolean;
        int64_t integer; /* wraps where is_u64 is set */
        double real;
        const char *str; /* NUL-terminated; may hold NULs: see n; of a VT_BIG: digits */
        struct vt_node *item;
    } u;
};

/* Parses one JSON value that fills the whole text (white space around it is
 * fine). Nesting is bounded, integers stay exact, duplicate keys are errors, and
 * so are NaN and Infinity. first_line numbers the first line of the text. On
 * failure the message says "line N: ...". Nodes live in the arena. */
int vt_json_parse(struct vt_arena *a, const char *text, size_t len, uint32_t first_line,
                  const struct vt_node **out, struct vt_err *err) VT_MUST_CHECK;

/* The same for what a Python program measured: NaN and Infinity, which its json module
 * writes, are null, and *nulls counts them on. */
int vt_json_parse_report(struct vt_arena *a, const char *text, size_t len,
                         uint32_t first_line, size_t *nulls, const struct vt_node **out,
                         struct vt_err *err) VT_MUST_CHECK;

/* The same for texts of strangers, whose tree must not outgrow what it is good for. */
struct vt_json_bounds {
    uint32_t values; /* in all; more are an error */
    /* Where ids are expected: lists at this key of the outermost map, and lists in
     * them, keep so many integers from either end and count those between. NULL:
     * nowhere. */
    const char *key;
    uint32_t ends;
    /* As Python's json module reads: NaN, Infinity and numbers beyond any range are
     * numbers, and of a key that is there twice the last value stands in the place of
     * the first. */
    bool python;
    bool passed;      /* set where there were more values */
    bool many_digits; /* set where an integer has more than Python takes */
};
int vt_json_parse_bounded(struct vt_arena *a, const char *text, size_t len,
                          struct vt_json_bounds *bounds, const struct vt_node **out,
                          struct vt_err *err) VT_MUST_CHECK;

/* Whether the text begins an object or a list and ends before that does: what a writer
 * that was killed, or a full disk, leaves of a line. Nothing else is looked at. */
bool vt_json_is_cut(const char *text, size_t len);

/* The same tree from YAML (libyaml; core schema scalars, no anchors, one
 * document; an empty text is null). */
int vt_yaml_parse(struct vt_arena *a, const char *text, size_t len,
                  const struct vt_node **out, struct vt_err *err) VT_MUST_CHECK;

/* The same tree from TOML 1.0 without dates and times; the root is always a map. */
int vt_toml_parse(struct vt_arena *a, const char *text, size_t len,
                  const struct vt_node **out, struct vt_err *err) VT_MUST_CHECK;

/* Reads a whole file (optionally gzip) into a tree: TOML if its name ends in .toml or
 * .toml.gz, JSON if the first byte that is not white space is '{' or '[', else YAML.
 * Messages start with the path: "w.yaml: line 3: ...". */
int vt_tree_load(struct vt_arena *a, const char *path, const struct vt_node **out,
                 struct vt_err *err) VT_MUST_CHECK;

/* The same, and its JSON as vt_json_parse_report() reads it. */
int vt_report_tree_load(struct vt_arena *a, const char *path, size_t *nulls,
                        const struct vt_node **out, struct vt_err *err) VT_MUST_CHECK;

/* NULL if absent or not a map. */
const struct vt_node *vt_get(const struct vt_node *map, const char *key);
/* Null counts as absent. */
const struct vt_node *vt_get_non_null(const struct vt_node *map, const char *key);
/* Of a single value, which may be NULL: a finite number; an integer from 0 to `most`.
 * False: it is something else. */
bool vt_node_f64(const struct vt_node *n, double *out);
bool vt_node_u64(const struct vt_node *n, uint64_t most, uint64_t *out);

/* Typed access. A missing key leaves *out as it was and is VT_OK; `need` makes it
 * an error. Wrong type (null too), out of [lo, hi] or non-finite: VT_EINPUT, message
 * "line N: field 'key' ...". Integers written as 8.0 are accepted as integers. A NULL
 * map has no fields. */
enum vt_need { VT_OPTIONAL, VT_REQUIRED };
int vt_get_f64(const struct vt_node *map, const char *key, enum vt_need need, double lo,
               double hi, double *out, struct vt_err *err) VT_MUST_CHECK;
int vt_get_i64(const struct vt_node *map, const char *key, enum vt_need need,
               int64_t lo, int64_t hi, int64_t *out, struct vt_err *err) VT_MUST_CHECK;
int vt_get_u32(const struct vt_node *map, const char *key, enum vt_need need,
               uint32_t lo, uint32_t hi, uint32_t *out,
               struct vt_err *err) VT_MUST_CHECK;
int vt_get_bool(const struct vt_node *map, const char *key, enum vt_need need,
                bool *out, struct vt_err *err) VT_MUST_CHECK;
int vt_get_str(const struct vt_node *map, const char *key, enum vt_need need,
               const char **out, struct vt_err *err) VT_MUST_CHECK;
/* Fails on the first key of the map that is not in the NULL-terminated list, and
 * names the nearest known one: "line 4: unknown field 'outptu' (did you mean
 * 'output'?)". */
int vt_only_keys(const struct vt_node *map, const char *const *known,
                 struct vt_err *err) VT_MUST_CHECK;
/* Levenshtein's distance of two words; what goes beyond the longest is not seen. */
enum { VT_LONGEST_WORD = 95 };
size_t vt_edit_distance(const char *a, const char *b);
/* The known name nearest to `word` by edit distance, or NULL if none is near. */
const char *vt_nearest(const char *word, const char *const *known);
/* "unknown WHAT 'WORD'", of which `most` bytes are shown (-1: all), and the nearest. */
int vt_fail_unknown(struct vt_err *err, const char *what, const char *word, int most,
                    const char *const *known);
bool vt_is_one_of(const char *word, const char *const *known); /* ends with NULL */
/* Whether a text with no end of its own is that word. */
bool vt_is_text(const char *known, const char *text, size_t len);

/* ---- writing JSON ------------------------------------------------------- */

/* A text as a JSON string, with quotes; bytes that are not UTF-8 become U+FFFD. */
void vt_buf_json_str(struct vt_buf *b, const char *text, size_t len);
/* The same with everything above ASCII as \u escapes, as Python's json module does. */
void vt_buf_json_ascii(struct vt_buf *b, const char *text, size_t len);
/* vt_buf_json_str() to a place with room for vt_json_room(len) bytes; returns the end.
 */
char *vt_json_str_at(char *p, const char *text, size_t len);
static inline size_t vt_json_room(size_t len)
{
    return 6 * len + 2;
}

struct vt_json_style {
    void (*real)(struct vt_buf *b, double v);
    void (*text)(struct vt_buf *b, const char *text, size_t len);
    const char *comma, *colon;
    /* Every member stands on a line of its own, behind this for each level; NULL: all
     * on one line. */
    const char *indent;
};
extern const struct vt_json_style vt_json_tight;  /* {"a":1,"b":[2,3]} */
extern const struct vt_json_style vt_json_spaced; /* {"a": 1, "b": [2, 3]} */
extern const struct vt_json_style vt_json_python; /* the same as Python's json.dumps():
                                                   * ASCII only, Python's floats */
extern const struct vt_json_style vt_json_pretty; /* on lines, indented by two */

/* Writes JSON as it is told: commas, colons and line ends are the writer's business. It
 * asks for no memory but the buffer's, and never looks at what that holds: it may be
 * emptied on the way. key is NULL inside lists and for the outermost value. */
enum { VT_JW_DEPTH = 128 };
struct vt_jw {
    struct vt_buf *b;
    const struct vt_json_style *style;
    uint32_t depth; /* maps and lists around */
    uint32_t row;   /* depth of the one that is kept on one line; 0: none */
    bool more;      /* the innermost one has members */
    uint64_t is_map[VT_JW_DEPTH / 64];
};
void vt_jw_init(struct vt_jw *w, struct vt_buf *b,
                const struct vt_json_style *style); /* NULL: tight */
/* For members of a map that someone else opens and closes; `more`: it has some. */
void vt_jw_members(struct vt_jw *w, struct vt_buf *b, const struct vt_json_style *style,
                   bool more);
void vt_jw_map(struct vt_jw *w, const char *key);
void vt_jw_list(struct vt_jw *w, const char *key);
/* The same, kept on one line with all that is in them. */
void vt_jw_row(struct vt_jw *w, const char *key);
void vt_jw_row_list(struct vt_jw *w, const char *key);
void vt_jw_end(struct vt_jw *w); /* of the innermost map or list */

void vt_jw_str(struct vt_jw *w, const char *key, const char *text); /* NULL: null */
void vt_jw_strn(struct vt_jw *w, const char *key, const char *text, size_t len);
void vt_jw_u64(struct vt_jw *w, const char *key, uint64_t v);
void vt_jw_i64(struct vt_jw *w, const char *key, int64_t v);
void vt_jw_f64(struct vt_jw *w, const char *key, double v);
void vt_jw_bool(struct vt_jw *w, const char *key, bool v);
void vt_jw_null(struct vt_jw *w, const char *key);
void vt_jw_ms(struct vt_jw *w, const char *key, vt_ns t); /* as vt_ms_at() */
void vt_jw_node(struct vt_jw *w, const char *key,
                const struct vt_node *n); /* NULL: null */
/* The value as is. */
void vt_jw_raw(struct vt_jw *w, const char *key, const char *text, size_t len);
void vt_jw_printf(struct vt_jw *w, const char *key, const char *fmt, ...)
    VT_PRINTF(3, 4);
void vt_jw_key(struct vt_jw *w,
               const char *key); /* the value is for the caller to write */
/* Lists of numbers, on one line. */
void vt_jw_u32_list(struct vt_jw *w, const char *key, const uint32_t *v, uint32_t n);
void vt_jw_f64_list(struct vt_jw *w, const char *key, const double *v, uint32_t n);
void vt_jw_ms_list(struct vt_jw *w, const char *key, const vt_ns *t, uint32_t n);

/* A tree alone. style NULL: tight. */
void vt_buf_json_node(struct vt_buf *b, const struct vt_node *n,
                      const struct vt_json_style *style);
void vt_buf_int_node(struct vt_buf *b, const struct vt_node *n); /* of kind VT_INT */

#endif
