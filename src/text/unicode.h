/* unicode.h - UTF-8, the few facts on characters that PCRE2 cannot give, and NFC. */
#ifndef VT_TEXT_UNICODE_H
#define VT_TEXT_UNICODE_H

#include "base/base.h"

/* ---- tables: unicode_tables.c ----------------------------------------- */

struct uni_pair { /* the character `whole` is `first` and a second one */
    uint32_t first, whole;
};
/* By their second character, then by the first. NFC puts them together again unless the
 * flags of the whole say UNI_NORMALIZES. */
extern const struct uni_pair uni_pairs[];
extern const size_t uni_n_pairs;
extern const uint16_t uni_by_whole[]; /* their indices, ascending by the whole */
struct uni_second {   /* ascending; ends with one that is no character */
    uint32_t c, from; /* from: index of its first pair */
};
extern const struct uni_second uni_seconds[];
extern const size_t uni_n_seconds;

struct uni_range { /* ascending */
    uint32_t first, last;
    uint32_t value;
};
/* Characters that stand for another one; value: where in uni_singles the first's is. */
extern const struct uni_range uni_single_runs[];
extern const size_t uni_n_single_runs;
extern const uint32_t uni_singles[];
/* Canonical combining classes above 0. */
extern const struct uni_range uni_classes[];
extern const size_t uni_n_classes;

struct uni_newer { /* characters that are newer than PCRE2's tables */
    uint32_t first, last;
    char category[3];
};
extern const struct uni_newer uni_newer[];
extern const size_t uni_n_newer;

enum {
    UNI_NORMALIZES = 1, /* NFC may change it, move it or put it to the one before */
    UNI_NEWER = 2,      /* in uni_newer */
};
extern const uint8_t uni_flag_block[];  /* of c / 256 */
extern const uint64_t uni_flag_cells[]; /* eight to a block, two bits to a character */
extern const size_t uni_n_flag_blocks;

static inline unsigned uni_flags(uint32_t c)
{
    if (c >> 8 >= uni_n_flag_blocks)
        return 0;
    return (unsigned)(uni_flag_cells[uni_flag_block[c >> 8] * 8 + (c >> 5 & 7)] >>
                      (c & 31) * 2) &
           3;
}

/* ---- UTF-8 ------------------------------------------------------------ */

/* The start of the character before p of well-formed text. */
static inline const char *uni_before(const char *p)
{
    do
        p--;
    while (((unsigned char)*p & 0xc0) == 0x80);
    return p;
}

/* The flags of all characters together. False: the text is not UTF-8, *bad says where.
 */
bool uni_scan(const char *text, size_t len, unsigned *flags, size_t *bad);

/* White_Space of Unicode: \s of Oniguruma and Rust. */
bool uni_is_space(uint32_t c);
/* Bytes of white space that a well-formed text starts or ends with. */
typedef bool uni_space(uint32_t c);
size_t uni_front_spaces(const char *text, size_t len, uni_space *is_space);
size_t uni_back_spaces(const char *text, size_t len, uni_space *is_space);

/* Appends text with U+FFFD for what is not UTF-8. */
void uni_add_lossy(struct vt_buf *out, const char *bytes, size_t len);

/* ---- NFC: nfc.c ------------------------------------------------------- */

/* Appends the canonical composition of a well-formed text. */
int uni_nfc(const char *text, size_t len, struct vt_buf *out, struct vt_err *err);

#endif
