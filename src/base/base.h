/* base.h - what every room stands on: errors, memory, numbers, foreign text.
 *
 * Nothing here prints or exits, and only programs that are started see the
 * environment. Functions that can fail return a code (VT_OK is 0) and describe the
 * failure in a struct vt_err. */
#ifndef VT_BASE_H
#define VT_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/banned.h"

#define VT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define VT_MUST_CHECK        __attribute__((warn_unused_result))
#define VT_COUNT(array)      (sizeof(array) / sizeof((array)[0]))

/* ---- time ------------------------------------------------------------- */

typedef int64_t vt_ns; /* nanoseconds since the driver's own zero */
#define VT_NEVER INT64_MAX
#define VT_US    INT64_C(1000)
#define VT_MS    INT64_C(1000000)
#define VT_SEC   INT64_C(1000000000)

/* Rounds to the nearest nanosecond; the caller has checked the range. */
vt_ns vt_ns_from_ms(double ms);
vt_ns vt_ns_from_us(double us);

/* ---- errors ----------------------------------------------------------- */

enum vt_code {
    VT_OK = 0,
    VT_ECHECK, /* a comparison failed: exit 1 */
    VT_EINPUT, /* bad usage or bad input: exit 2 */
    VT_EIO,    /* a file or peer became unavailable while running: exit 3 */
    VT_ENOMEM, /* exit 3 */
};

struct vt_err { /* lives on the caller's stack, holds no memory */
    enum vt_code code;
    char msg[512]; /* one line, no trailing newline */
};

/* Both return the code, so a failing line is one statement. err may be NULL.
 * vt_within() puts "context: " before the message; no-op when rc is VT_OK. */
int vt_fail(struct vt_err *err, enum vt_code code, const char *fmt, ...)
    VT_PRINTF(3, 4);
int vt_within(struct vt_err *err, int rc, const char *fmt, ...) VT_PRINTF(3, 4);
int vt_nomem(struct vt_err *err);

/* ---- memory ----------------------------------------------------------- */

/* An arena hands out zeroed, 16-byte aligned memory and frees it all at once.
 * Zero-initialise to start. */
struct vt_arena {
    struct vt_arena_chunk *chunk;
    size_t used_bytes; /* handed out so far */
};
void *vt_arena_alloc(struct vt_arena *a, size_t size); /* NULL: out of memory */
char *vt_arena_copy(struct vt_arena *a, const char *text, size_t len); /* adds a NUL */
/* Keeps one chunk for reuse; everything handed out becomes invalid. */
void vt_arena_reset(struct vt_arena *a);
void vt_arena_free(struct vt_arena *a);

/* Grows a heap array so that *cap >= need. New cells are not zeroed. *array is
 * untouched on failure. Doubles, so n pushes cost O(n). */
int vt_grow_more(void *array_ptr, size_t *cap, size_t need, size_t cell,
                 struct vt_err *err) VT_MUST_CHECK;
VT_MUST_CHECK static inline int vt_grow(void *array_ptr, size_t *cap, size_t need,
                                        size_t cell, struct vt_err *err)
{
    return need <= *cap ? VT_OK : vt_grow_more(array_ptr, cap, need, cell, err);
}

/* Zeroed memory for tables that are read here and there: large ones ask for huge pages,
 * since otherwise every look would also miss the address cache. Pages cost nothing
 * until touched. The same n and cell must be given back; NULL is fine. */
void *vt_table_alloc(size_t n, size_t cell); /* NULL: out of memory */
void vt_table_free(void *table, size_t n, size_t cell);

/* A heap of things that are due at a time; equal times keep the order of pushing.
 * Zero-initialise to start. due[0] is the soonest. */
struct vt_due {
    vt_ns at;
    uint64_t order;
    size_t item; /* the caller's */
};
struct vt_agenda {
    struct vt_due *due;
    size_t n, cap;
    uint64_t order;
};
int vt_agenda_push(struct vt_agenda *a, vt_ns at, size_t item,
                   struct vt_err *err) VT_MUST_CHECK;
void vt_agenda_remove(struct vt_agenda *a, size_t i); /* the one at due[i] */
void vt_agenda_free(struct vt_agenda *a);

/* A growable byte buffer with a ceiling. A failed append sets `failed` and later
 * appends do nothing, so a writer checks once at the end. `data` is always
 * NUL-terminated once anything was appended. */
struct vt_buf {
    char *data;
    size_t len, cap;
    size_t max; /* 0: 1 GiB */
    bool failed;
};
void vt_buf_free(struct vt_buf *b);
void vt_buf_clear(struct vt_buf *b); /* keeps the memory and the ceiling */
void vt_buf_add(struct vt_buf *b, const void *bytes, size_t len);
/* A place for `more` bytes, to be written by hand; NULL when the buffer has failed or
 * would pass its ceiling. vt_buf_upto() says where the writing ended. */
char *vt_buf_room(struct vt_buf *b, size_t more);
void vt_buf_upto(struct vt_buf *b, const char *end);
void vt_buf_str(struct vt_buf *b, const char *text);
void vt_buf_char(struct vt_buf *b, char c);
void vt_buf_printf(struct vt_buf *b, const char *fmt, ...) VT_PRINTF(2, 3);
void vt_buf_vprintf(struct vt_buf *b, const char *fmt, va_list args) VT_PRINTF(2, 0);
void vt_buf_hex(struct vt_buf *b, const void *bytes, size_t len);
void vt_buf_u64(struct vt_buf *b, uint64_t v);
void vt_buf_i64(struct vt_buf *b, int64_t v);
void vt_buf_f64(struct vt_buf *b, double v); /* shortest text that reads back equal */
/* As Python's json module: the shortest digits that read back equal, as 1e-05 or 1e+16
 * outside of [1e-4, 1e16), with a fraction otherwise; NaN, Infinity. */
void vt_buf_py_f64(struct vt_buf *b, double v);
void vt_buf_py_f32(struct vt_buf *b, float v); /* the same for (double)v, sooner */
/* Milliseconds, exact to the ns, no trailing zeros. */
void vt_buf_ms(struct vt_buf *b, vt_ns t);
/* The same to a place with room for 32 bytes, without a NUL; they return the end. */
char *vt_u64_at(char *p, uint64_t v);
char *vt_ms_at(char *p, vt_ns t);

/* ---- UTF-8 -------------------------------------------------------------- */

/* Writes one character as UTF-8, at most 4 bytes; returns how many. */
size_t vt_utf8_put(char *out, uint32_t c);
/* Bytes of the well-formed character at p (1 to 4), or 0: overlong forms, surrogates,
 * values above U+10FFFF and cut sequences are not characters. */
size_t vt_utf8_len(const char *p, size_t left);
/* The length without a character that was cut at the end of the text. */
size_t vt_utf8_trim(const char *text, size_t len);

/* ---- numbers ---------------------------------------------------------- */

/* Shortest decimal text that strtod() reads back as v. Non-finite values give
 * "null". Returns the length. */
size_t vt_fmt_f64(char out[32], double v);

/* Whole text must be one finite number. Locale-independent. */
bool vt_parse_f64(const char *text, size_t len, double *out);
bool vt_parse_i64(const char *text, size_t len, int64_t *out); /* decimal only */
bool vt_parse_u64(const char *text, size_t len, uint64_t *out);

/* Linear interpolation at p/100 * (n-1), from the nearer neighbour: numpy's arithmetic
 * to the last bit. sorted ascending; n == 0 gives 0. */
double vt_quantile(const double *sorted, size_t n, double p);
void vt_sort_f64(double *v, size_t n);

/* ---- prompts ---------------------------------------------------------- */

/* A run of prompt tokens. Content identity stands for the tokens themselves: two
 * runs hold equal tokens where (content, offset + i) are equal. */
struct vt_segment {
    uint64_t content;
    uint32_t offset; /* of the run's first token within its content */
    uint32_t tokens;
};

/* ---- hashes and random numbers ---------------------------------------- */

uint64_t vt_mix64(uint64_t x); /* SplitMix64's finaliser: a bijection */
static inline uint64_t vt_hash2(uint64_t a, uint64_t b)
{
    /* Odd constants keep (a,b) and (b,a) apart; two rounds keep runs of small
     * integers apart. */
    uint64_t x =
        (a ^ (b * UINT64_C(0x9e3779b97f4a7c15))) * UINT64_C(0xff51afd7ed558ccd);

    x ^= x >> 32;
    x = (x + b) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 29);
}
uint64_t vt_hash_bytes(const void *bytes, size_t len, uint64_t seed);

/* xoshiro256++ seeded by SplitMix64 from (seed, stream name): one stream for
 * each purpose, so that a new draw in one never moves another. */
struct vt_rng {
    uint64_t s[4];
};
void vt_rng_init(struct vt_rng *r, uint64_t seed, const char *stream);
uint64_t vt_rng_u64(struct vt_rng *r);
double vt_rng_f64(struct vt_rng *r);                 /* [0, 1) */
uint64_t vt_rng_below(struct vt_rng *r, uint64_t n); /* [0, n), unbiased */
double vt_rng_normal(struct vt_rng *r);              /* Box-Muller, two draws each */
double vt_rng_exp(struct vt_rng *r);                 /* mean 1 */
double vt_rng_gamma(struct vt_rng *r, double shape); /* scale 1; Marsaglia-Tsang */

/* A draw addressed by key instead of by order: the k-th number of item i is the
 * same whatever was drawn before. [0, 1). */
double vt_draw_f64(uint64_t seed, uint64_t item, uint64_t k);
/* Standard normal addressed the same way; uses draws 2k and 2k+1. */
double vt_draw_normal(uint64_t seed, uint64_t item, uint64_t k);

/* ---- maps --------------------------------------------------------------- */

/* From 64-bit keys to 64-bit values: open addressing, no memory before the first key.
 * Zero-initialise to start. A place in it is good until the next put, add or drop. */
struct vt_map {
    struct vt_map_cell {
        uint64_t key, value;
    } *cell;     /* a power of two of them, key 0 being empty; one more for key 0 */
    size_t mask; /* their number - 1 */
    size_t n;    /* keys */
    unsigned shift;
};
/* The place of the key's value; NULL: it is not there. */
static inline uint64_t *vt_map_get(const struct vt_map *m, uint64_t key);
/* The same, put there with the value 0 if it was not; NULL: out of memory. */
uint64_t *vt_map_put(struct vt_map *m, uint64_t key);
void vt_map_drop(struct vt_map *m, uint64_t *place); /* no NULL */
/* The next pair behind *at, which starts at 0; false: there is none. */
bool vt_map_next(const struct vt_map *m, size_t *at, uint64_t *key, uint64_t *value);
void vt_map_clear(struct vt_map *m); /* keeps its memory */
void vt_map_free(struct vt_map *m);

/* For things that are known by more than a number, say by a text that their owner
 * keeps: the key is its hash, and `same` tells whether a value is what is sought. */
typedef bool vt_map_same(const void *sought, uint64_t value);
uint64_t *vt_map_find(const struct vt_map *m, uint64_t hash, vt_map_same *same,
                      const void *sought);
/* A new place, whatever else has that hash; NULL: out of memory. */
uint64_t *vt_map_add(struct vt_map *m, uint64_t hash);

/* Names of an array's members, each once: that of member i is the const char * at
 * first + i * stride. Zero-initialise to start. */
struct vt_names {
    struct vt_map map; /* to indices */
};
/* *index is the member of that name. If there is none, *is_new is set and it will be
 * the one at *index, as the caller has it there. */
int vt_names_claim(struct vt_names *s, const void *first, size_t stride,
                   const char *text, size_t len, uint32_t *index, bool *is_new,
                   struct vt_err *err) VT_MUST_CHECK;
void vt_names_free(struct vt_names *s);

static inline size_t vt_map_home(const struct vt_map *m, uint64_t key)
{
    return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> m->shift);
}
static inline uint64_t *vt_map_get(const struct vt_map *m, uint64_t key)
{
    size_t i;

    if (m->n == 0)
        return NULL;
    i = key ? vt_map_home(m, key) : m->mask + 1;
    while (key && m->cell[i].key != key && m->cell[i].key != 0)
        i = (i + 1) & m->mask;
    return m->cell[i].key ? &m->cell[i].value : NULL;
}

/* ---- trees: JSON, YAML and TOML --------------------------------------- */

enum vt_kind { VT_NULL, VT_BOOL, VT_INT, VT_REAL, VT_STR, VT_LIST, VT_MAP };

/* One value. Children of lists and maps are contiguous: item[0..n). Read-only to
 * its users and owned by the document's arena. */
struct vt_node {
    uint8_t kind;    /* enum vt_kind */
    bool is_u64;     /* integer holds a uint64 above INT64_MAX */
    uint32_t line;   /* 1-based line in the file; 0 unknown */
    uint32_t n;      /* list or map: children; string: bytes */
    const char *key; /* in a map: the NUL-terminated key */
    union {
        bool boolean;
        int64_t integer; /* wraps where is_u64 is set */
        double real;
        const char *str; /* NUL-terminated; may hold NULs: see n */
        struct vt_node *item;
    } u;
};

/* Parses one JSON value that fills the whole text (white space around it is
 * fine). Nesting is bounded, integers stay exact, duplicate keys are errors, and
 * so are NaN and Infinity. first_line numbers the first line of the text. On
 * failure the message says "line N: ...". Nodes live in the arena. */
int vt_json_parse(struct vt_arena *a, const char *text, size_t len, uint32_t first_line,
                  const struct vt_node **out, struct vt_err *err) VT_MUST_CHECK;

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

/* NULL if absent or not a map. */
const struct vt_node *vt_get(const struct vt_node *map, const char *key);

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
/* The known name nearest to `word` by edit distance, or NULL if none is near. */
const char *vt_nearest(const char *word, const char *const *known);

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
void vt_jw_ms(struct vt_jw *w, const char *key, vt_ns t); /* as vt_buf_ms() */
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

/* ---- files ------------------------------------------------------------ */

/* Reads lines of a text file, plain or gzip (recognised by its magic, several
 * members accepted). A truncated or damaged gzip stream is an error that names
 * the line reached, unless it ends behind a whole line: so does the file of a recorder
 * that was killed. Lines longer than 256 MiB are errors, and so are NUL bytes. */
struct vt_lines; /* opaque */
int vt_lines_open(struct vt_lines **out, const char *path,
                  struct vt_err *err) VT_MUST_CHECK;
/* The same over bytes in memory, which must outlive it; name is for messages. */
int vt_lines_from(struct vt_lines **out, const char *name, const void *bytes,
                  size_t len, struct vt_err *err) VT_MUST_CHECK;
/* *line is NULL at the end of the file; otherwise NUL-terminated, without its
 * line end, owned by the reader and good until the next call. *complete (may be
 * NULL) says whether the line ended with a newline. */
int vt_lines_next(struct vt_lines *l, char **line, size_t *len, bool *complete,
                  struct vt_err *err) VT_MUST_CHECK;
uint32_t vt_lines_number(const struct vt_lines *l); /* of the line last returned */
/* At the end of the file: it is gzip without its trailer, lines may be missing. */
bool vt_lines_cut(const struct vt_lines *l);
const char *vt_lines_name(const struct vt_lines *l);
void vt_lines_close(struct vt_lines *l); /* NULL is fine */

/* Reads a whole file, plain or gzip, at most max bytes. The buffer's memory is the
 * caller's to free. */
int vt_read_file(const char *path, size_t max, struct vt_buf *out,
                 struct vt_err *err) VT_MUST_CHECK;

/* Splits one CSV line in place (RFC 4180 quotes, no embedded newlines). Returns
 * the number of fields, at most max; -1 when there are more or a quote is
 * unbalanced. field[i] points into the line. */
int vt_csv_split(char *line, char **field, int max);

bool vt_is_gz(const char *path); /* its name ends in ".gz" */

/* Writes a file that appears whole or not at all: bytes go to a temporary file
 * beside it, commit renames. Plain, or gzip if the path ends in ".gz". A device or
 * pipe is written in place. */
struct vt_out; /* opaque */
int vt_out_open(struct vt_out **out, const char *path,
                struct vt_err *err) VT_MUST_CHECK;
int vt_out_write(struct vt_out *o, const void *bytes, size_t len,
                 struct vt_err *err) VT_MUST_CHECK;
/* Flushes, syncs and closes the temporary file under its final name; frees o
 * whatever happens. */
int vt_out_commit(struct vt_out *o, struct vt_err *err) VT_MUST_CHECK;
void vt_out_abandon(struct vt_out *o); /* removes the temporary file; NULL is fine */
/* Ends a file that was written with `rc` so far: commits it, or abandons it and returns
 * rc. */
int vt_out_end(struct vt_out *o, int rc, struct vt_err *err) VT_MUST_CHECK;
/* A whole file at once, whose path is `path`, or `name` in the directory `dir`. */
int vt_write_file(const char *path, const struct vt_buf *b,
                  struct vt_err *err) VT_MUST_CHECK;
int vt_write_file_in(const char *dir, const char *name, const struct vt_buf *b,
                     struct vt_err *err) VT_MUST_CHECK;
/* Like mkdir -p. Sets *created_first (may be NULL; caller frees) to the topmost
 * directory it made, or NULL, so that a failing caller can take it back. When it
 * fails itself, it has taken back what it made. */
int vt_make_dirs(const char *path, char **created_first,
                 struct vt_err *err) VT_MUST_CHECK;

/* ---- programs ----------------------------------------------------------- */

enum vt_proc_out {
    VT_PROC_KEPT,      /* all that it says is kept for messages */
    VT_PROC_TO_FILE,   /* its output goes to the file `out`, its complaints are kept */
    VT_PROC_TO_STDERR, /* all goes where our messages go: stdout holds results */
};

/* A program that we start. Zero-initialise, set what is needed, add arguments (the
 * first is the program), start it, and end with vt_proc_stop() whatever happens. */
struct vt_proc {
    const char *name;         /* in messages; NULL: its first argument */
    const char *directory;    /* to run in; NULL: here */
    char *const *environment; /* NULL: none */
    bool our_environment;
    bool in_path;   /* look for it in PATH */
    bool own_group; /* what it starts is stopped with it */
    bool outlives;  /* otherwise it is killed when the thread that started it ends */
    enum vt_proc_out output;
    const char *out; /* NULL: /dev/null */
    vt_ns grace;     /* from SIGTERM to SIGKILL; 0: two seconds */

    struct vt_arena arena;
    char **argv; /* ends with NULL */
    size_t n_args, cap_args;
    bool failed; /* no memory for an argument */
    bool has_log;
    int log;    /* what was kept: a file without a name */
    int pid;    /* 0: it does not run */
    int status; /* as waitpid() has it, once it has ended */
};
void vt_proc_arg(struct vt_proc *p, const char *text);
void vt_proc_arg_pair(struct vt_proc *p, const char *flag, const char *value);
void vt_proc_arg_u64(struct vt_proc *p, const char *flag, uint64_t v);
void vt_proc_arg_printf(struct vt_proc *p, const char *fmt, ...) VT_PRINTF(2, 3);
/* VT_EINPUT: there is no such program, or directory, or it may not be run. */
int vt_proc_start(struct vt_proc *p, struct vt_err *err) VT_MUST_CHECK;
/* False once it has ended, and then err says how and what it said last. */
bool vt_proc_running(struct vt_proc *p, struct vt_err *err);
/* Waits for its end, but not longer than `limit` (0: as long as it takes): then it is
 * killed. VT_EIO unless it ended with status 0. */
int vt_proc_wait(struct vt_proc *p, vt_ns limit, struct vt_err *err) VT_MUST_CHECK;
int vt_proc_run(struct vt_proc *p, vt_ns limit,
                struct vt_err *err) VT_MUST_CHECK; /* starts it and waits */
/* SIGTERM if it runs, and SIGKILL if that does not help; frees everything. */
void vt_proc_stop(struct vt_proc *p);
/* Lines of what was kept that are not blank, as much as fits; "": none. */
enum { VT_PROC_LINE = 300 };
void vt_proc_first_line(const struct vt_proc *p, char line[VT_PROC_LINE]);
void vt_proc_last_line(const struct vt_proc *p, char line[VT_PROC_LINE]);
/* Adds to the message of a failure what the program said last, which may explain it. */
int vt_proc_within(const struct vt_proc *p, struct vt_err *err, int rc);

/* ---- MessagePack ---------------------------------------------------------- */

#include "base/mp/mp.h"

#endif
