/* pattern.h - regular expressions as Hugging Face's tokenizers write them (Oniguruma,
 * Ruby syntax), run by PCRE2. */
#ifndef VT_TEXT_PATTERN_H
#define VT_TEXT_PATTERN_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/base.h"

struct pattern {
    /* Naming each of the newer characters halves the speed, so that is kept for the
     * texts that have one. */
    pcre2_code *usual, *newer;
    bool fast; /* both were compiled to machine code */
};

/* Compiles into a zeroed *p. A construct that PCRE2 might read differently is an error
 * that names it. */
int pattern_open(struct pattern *p, const char *regex, size_t len, struct vt_err *err);
/* A pattern for the text itself. */
int pattern_open_text(struct pattern *p, const char *text, size_t len,
                      struct vt_err *err);
void pattern_close(struct pattern *p); /* frees contents; a zeroed one is fine */

/* Goes through the matches in a text, which must be UTF-8. */
struct pattern_run {
    const pcre2_code *code;
    bool fast;
    pcre2_match_data *match; /* owned, like the next; pattern_run_free() */
    pcre2_match_context *limits;
    const char *text;
    size_t len;
    size_t at;       /* where the next search starts */
    size_t last_end; /* of the last match; SIZE_MAX: none yet */
};
int pattern_run_start(struct pattern_run *r, const struct pattern *p, bool newer,
                      const char *text, size_t len, struct vt_err *err);
/* *start is SIZE_MAX when there are no more. */
int pattern_run_next(struct pattern_run *r, size_t *start, size_t *end,
                     struct vt_err *err);
void pattern_run_free(struct pattern_run *r);

/* The translation: translate.c. `newer`: characters newer than PCRE2's tables are named
 * one by one. */
int pattern_translate(const char *regex, size_t len, bool newer, struct vt_buf *out,
                      struct vt_err *err);

#endif
