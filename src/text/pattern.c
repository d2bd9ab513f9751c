/* pattern.c - patterns compiled and run. */
#include "text/pattern.h"

/* Steps of backtracking allowed for one match: some for each byte of a long text, and
 * soon over for a pattern that explodes. */
enum { STEPS = 10000000, STEPS_PER_BYTE = 8, HEAP_LIMIT_KIB = 65536 };

static const char *error_text(int code, char text[160])
{
    if (pcre2_get_error_message(code, (PCRE2_UCHAR *)text, 160) < 0)
        text[0] = '\0';
    return text;
}

static int compile(pcre2_code **out, const char *regex, size_t len, bool newer,
                   struct vt_err *err)
{
    struct vt_buf text = {0};
    int code, rc = pattern_translate(regex, len, newer, &text, err);
    PCRE2_SIZE at;
    char why[160];

    if (rc == VT_OK) {
        /* '^' and '$' mean lines to Ruby. */
        *out = pcre2_compile((PCRE2_SPTR)(text.data ? text.data : ""), text.len,
                             PCRE2_UTF | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                             &code, &at, NULL);
        if (!*out && code == PCRE2_ERROR_HEAP_FAILED)
            rc = vt_nomem(err);
        else if (!*out)
            rc = vt_fail(err, VT_EINPUT, "pattern: %s (near byte %zu)",
                         error_text(code, why), at);
    }
    vt_buf_free(&text);
    return rc;
}

int pattern_open(struct pattern *p, const char *regex, size_t len, struct vt_err *err)
{
    int rc = compile(&p->usual, regex, len, false, err);

    if (rc == VT_OK)
        rc = compile(&p->newer, regex, len, true, err);
    if (rc != VT_OK) {
        pattern_close(p);
        return rc;
    }
    p->fast = pcre2_jit_compile(p->usual, PCRE2_JIT_COMPLETE) == 0 &&
              pcre2_jit_compile(p->newer, PCRE2_JIT_COMPLETE) == 0;
    return VT_OK;
}

int pattern_open_text(struct pattern *p, const char *text, size_t len,
                      struct vt_err *err)
{
    struct vt_buf regex = {0};
    int rc;

    for (size_t i = 0; i < len; i++) {
        if (strchr("\\^$.[]|()?*+{}#&-~", text[i]) && text[i])
            vt_buf_char(&regex, '\\');
        vt_buf_char(&regex, text[i]);
    }
    rc = regex.failed ? vt_nomem(err)
                      : pattern_open(p, regex.data ? regex.data : "", regex.len, err);
    vt_buf_free(&regex);
    return rc;
}

void pattern_close(struct pattern *p)
{
    pcre2_code_free(p->usual);
    pcre2_code_free(p->newer);
    *p = (struct pattern){0};
}

int pattern_run_start(struct pattern_run *r, const struct pattern *p, bool newer,
                      const char *text, size_t len, struct vt_err *err)
{
    uint32_t steps = len < (UINT32_MAX - STEPS) / STEPS_PER_BYTE
                         ? (uint32_t)len * STEPS_PER_BYTE + STEPS
                         : UINT32_MAX;

    if (!r->match)
        r->match = pcre2_match_data_create(1, NULL);
    if (!r->limits)
        r->limits = pcre2_match_context_create(NULL);
    if (!r->match || !r->limits)
        return vt_nomem(err);
    pcre2_set_match_limit(r->limits, steps);
    pcre2_set_heap_limit(r->limits, HEAP_LIMIT_KIB);
    r->code = newer ? p->newer : p->usual;
    r->fast = p->fast;
    r->text = text;
    r->len = len;
    r->at = 0;
    r->last_end = SIZE_MAX;
    return VT_OK;
}

/* The slow way is for what the fast one cannot do: deep nesting, and systems without.
 */
static int match_next(const struct pattern_run *r)
{
    int got = PCRE2_ERROR_JIT_STACKLIMIT;

    if (r->fast)
        got = pcre2_jit_match(r->code, (PCRE2_SPTR)r->text, r->len, r->at,
                              PCRE2_NO_UTF_CHECK, r->match, r->limits);
    if (got == PCRE2_ERROR_JIT_STACKLIMIT)
        got = pcre2_match(r->code, (PCRE2_SPTR)r->text, r->len, r->at,
                          PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, r->match, r->limits);
    return got;
}

/* As the `onig` crate: an empty match right behind the last one does not count, and the
 * search goes on one character later. */
int pattern_run_next(struct pattern_run *r, size_t *start, size_t *end,
                     struct vt_err *err)
{
    *start = *end = SIZE_MAX;
    while (r->at <= r->len) {
        const PCRE2_SIZE *found;
        uint32_t ignored;
        char why[160];
        int got = match_next(r);

        if (got == PCRE2_ERROR_NOMATCH)
            return VT_OK;
        if (got == PCRE2_ERROR_NOMEMORY)
            return vt_nomem(err);
        if (got < 0)
            return vt_fail(err, VT_EINPUT,
                           "the tokenizer's pattern fails at byte %zu: %s", r->at,
                           error_text(got, why));
        found = pcre2_get_ovector_pointer(r->match);
        if (found[0] == found[1] && found[1] == r->last_end) {
            r->at += r->at < r->len ? vt_utf8_get(r->text + r->at, &ignored) : 1;
            continue;
        }
        r->at = r->last_end = found[1];
        *start = found[0];
        *end = found[1];
        return VT_OK;
    }
    return VT_OK;
}

void pattern_run_free(struct pattern_run *r)
{
    pcre2_match_data_free(r->match);
    pcre2_match_context_free(r->limits);
    r->match = NULL;
    r->limits = NULL;
}
