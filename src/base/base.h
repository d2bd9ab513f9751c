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

/* Long work asks now and then whether it is to stop. One answer for a thread, to be set
 * before the work begins; NULL, as it is at first: never. VT_EIO: "stopped". */
void vt_stop_when(bool (*asked)(void *user), void *user);
int vt_stopped(struct vt_err *err) VT_MUST_CHECK;

/* ---- memory ----------------------------------------------------------- */

/* An arena hands out zeroed, 16-byte aligned memory and frees it all at once.
 * Zero-initialise to start. */
struct vt_arena {
    struct vt_arena_chunk *chunk;
    size_t used_bytes; /* handed out so far */
};
void *vt_arena_alloc(struct vt_arena *a, size_t size); /* NULL: out of memory */
char *vt_arena_copy(struct vt_arena *a, const char *text, size_t len); /* adds a NUL */
/* A copy of a whole text; NULL stays NULL. */
int vt_arena_text(struct vt_arena *a, const char *text, const char **out,
                  struct vt_err *err) VT_MUST_CHECK;
/* Keeps one chunk for reuse; everything handed out becomes invalid. */
void vt_arena_reset(struct vt_arena *a);
void vt_arena_free(struct vt_arena *a);

/* Grows a heap array so that *cap >= need. New cells are not zeroed. *array is
 * untouched on failure. Doubles, so n pushes cost O(n). */
enum { VT_SMALL_ARRAY = 64 << 10 }; /* bytes that nobody asks back */
int vt_grow_more(void *array_ptr, size_t *cap, size_t need, size_t cell,
                 struct vt_err *err) VT_MUST_CHECK;
VT_MUST_CHECK static inline int vt_grow(void *array_ptr, size_t *cap, size_t need,
                                        size_t cell, struct vt_err *err)
{
    return need <= *cap ? VT_OK : vt_grow_more(array_ptr, cap, need, cell, err);
}

/* The other way, for arrays that held a crowd: halves one of some size until a quarter
 * of it is used. May move it; what is kept are `used` cells. */
void vt_shrink_more(void *array_ptr, size_t *cap, size_t used, size_t cell);
static inline void vt_shrink(void *array_ptr, size_t *cap, size_t used, size_t cell)
{
    if (used < *cap / 4 && *cap * cell > VT_SMALL_ARRAY)
        vt_shrink_more(array_ptr, cap, used, cell);
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

/* Numbers from 0, for members of an array that come and go: each is taken by one and
 * given back. Low ones go first, so that after a crowd the high ones can be cut off.
 * Zero-initialise to start. */
struct vt_seats {
    struct vt_seat {
        uint32_t prev, next; /* free ones */
    } *link;
    size_t cap;
    uint32_t n;       /* that there are */
    uint32_t n_taken; /* of them */
    uint32_t first;   /* of the free ones, if there are any */
};
int vt_seats_take(struct vt_seats *s, uint32_t *seat, struct vt_err *err) VT_MUST_CHECK;
void vt_seats_give(struct vt_seats *s, uint32_t seat);
/* Cuts off free ones at the end, at most so many at a time, if three of four are free;
 * `keep` stay. Returns how many: what the caller keeps at [s->n, s->n + that) is to be
 * freed. */
uint32_t vt_seats_cut(struct vt_seats *s, uint32_t keep, uint32_t most);
void vt_seats_free(struct vt_seats *s);

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
/* The same, but memory above so many bytes is given back. */
void vt_buf_clear_most(struct vt_buf *b, size_t keep);
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
/* To a place with room for 32 bytes, without a NUL; they return the end. */
char *vt_u64_at(char *p, uint64_t v);
char *vt_ms_at(char *p, vt_ns t); /* milliseconds, exact, no trailing zeros */

/* ---- UTF-8 -------------------------------------------------------------- */

/* Writes one character as UTF-8, at most 4 bytes; returns how many. */
size_t vt_utf8_put(char *out, uint32_t c);
/* Bytes at p, of `left` (not 0), that belong together: a well-formed character (not
 * overlong, no surrogate, at most U+10FFFF), or as much of one as could be one, which
 * is what U+FFFD replaces. *good says which. */
size_t vt_utf8_step(const char *p, size_t left, bool *good);
/* Bytes of the well-formed character at p, or 0. */
static inline size_t vt_utf8_len(const char *p, size_t left)
{
    bool good = false;
    size_t n = left ? vt_utf8_step(p, left, &good) : 0;

    return good ? n : 0;
}
/* Reads the character at p of well-formed text; returns its bytes. */
static inline size_t vt_utf8_get(const char *p, uint32_t *c)
{
    const unsigned char *u = (const unsigned char *)p;

    if (u[0] < 0x80) {
        *c = u[0];
        return 1;
    }
    if (u[0] < 0xe0) {
        *c = (u[0] & 0x1fu) << 6 | (u[1] & 0x3fu);
        return 2;
    }
    if (u[0] < 0xf0) {
        *c = (u[0] & 0xfu) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu);
        return 3;
    }
    *c =
        (u[0] & 7u) << 18 | (u[1] & 0x3fu) << 12 | (u[2] & 0x3fu) << 6 | (u[3] & 0x3fu);
    return 4;
}
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
int vt_hex_value(char c); /* of a hex digit; -1: it is none */
/* A time with or without its unit: 500, 20us, 500ms, 0.5s. *out counts `unit`
 * (VT_MS: milliseconds), as a bare number does. */
bool vt_parse_time(const char *text, size_t len, vt_ns unit, double *out);

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
/* FNV-1a's next n bytes, of v from the lowest; begins with VT_FNV_BASIS. */
#define VT_FNV_BASIS UINT64_C(0xcbf29ce484222325)
static inline uint64_t vt_fnv(uint64_t h, uint64_t v, int n)
{
    for (int i = 0; i < n; i++)
        h = (h ^ (v >> (8 * i) & 255)) * UINT64_C(0x100000001b3);
    return h;
}

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

/* Up to 256 bytes from the kernel that nobody can repeat. False: it gives none. */
bool vt_entropy(void *out, size_t n);

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
void vt_map_clear(struct vt_map *m);                 /* keeps its memory */
void vt_map_fit(struct vt_map *m); /* gives memory back where few keys are left */
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

#include "base/crew/crew.h"
#include "base/fs/fs.h"
#include "base/json/json.h"
#include "base/mp/mp.h"
#include "base/proc/proc.h"

#endif
