/* Stop strings found by the automaton are those that looking for each of them finds, at
 * every token: where the text ends, by which of them, and what is held back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http/reply/reply.h"

enum { TOKENS = 60, MOST_STOPS = 40, MOST_BYTES = 48, CASES = 3000 };

static const uint32_t prompt_ids[] = {2514, 1703, 528};

struct job { /* of all tests */
    struct vt_tokenizer *t;
    struct reply_source *s;
    struct api_context context;
    struct api_prompt prompt;
    uint32_t allowed[8];
    uint32_t n_allowed;
};

static struct api_request request_of(struct job *j, uint64_t seed)
{
    return (struct api_request){
        .context = &j->context,
        .kind = API_COMPLETIONS,
        .prompt = &j->prompt,
        .n_prompts = 1,
        .n = 1,
        .max_tokens = TOKENS,
        .limited = true,
        .ignore_eos = true,
        .skip_special = true,
        .seeded = true,
        .seed = (int64_t)seed,
        .logprobs = -1,
        .allowed_id = j->allowed,
        .n_allowed_ids = j->n_allowed,
    };
}

static void make(struct job *j, struct api_request *r, struct reply *out)
{
    struct reply_batch *b;
    struct vt_err err = {0};

    if (reply_batch_open(&b, j->s, r, &err) != VT_OK ||
        reply_make(out, b, 0, 0, 1, &err) != VT_OK)
        fail_msg("%s", err.msg);
    reply_batch_close(b);
}

/* ---- the plain way --------------------------------------------------- */

struct wanted {
    uint32_t n, stop; /* UINT32_MAX: none */
    size_t len, end[TOKENS];
};

/* Where the first occurrence ends that does so behind `before`; SIZE_MAX: none. */
static size_t first_end(const char *text, size_t before, size_t len, const char *stop)
{
    size_t n = strlen(stop);

    for (size_t end = before + 1; end <= len; end++)
        if (end >= n && memcmp(text + end - n, stop, n) == 0)
            return end;
    return SIZE_MAX;
}

static size_t without_last(const char *text, size_t len, size_t chars)
{
    while (chars > 0 && len > 0)
        chars -= ((unsigned char)text[--len] & 0xc0) != 0x80;
    return len;
}

static size_t longest_of(const struct api_request *r)
{
    size_t most = 1;

    for (uint32_t i = 0; i < r->n_stop; i++) {
        size_t n = api_characters(r->stop[i], strlen(r->stop[i]));

        most = n > most ? n : most;
    }
    return most;
}

/* Of what `all` says without stop strings. */
static void plain_way(const struct api_request *r, const struct reply *all,
                      struct wanted *w)
{
    size_t held = r->include_stop ? 0 : longest_of(r) - 1, before = 0;

    *w = (struct wanted){.stop = UINT32_MAX, .n = all->n};
    for (uint32_t i = 0; i < all->n; before = all->text_end[i++]) {
        size_t best = SIZE_MAX, len = all->text_end[i];

        for (uint32_t k = 0; i >= r->min_tokens && k < r->n_stop; k++) {
            size_t end = first_end(all->text, before, len, r->stop[k]);

            if (end >= best)
                continue;
            best = end;
            w->stop = k;
            if (r->context->line == API_LINE_026)
                break;
        }
        w->end[i] = i + 1 < all->n ? without_last(all->text, len, held) : len;
        if (w->stop == UINT32_MAX)
            continue;
        w->n = i + 1;
        w->end[i] = r->include_stop ? best : best - strlen(r->stop[w->stop]);
        break;
    }
    w->len = w->end[w->n - 1];
}

/* ---- random stop strings ---------------------------------------------- */

static uint64_t below(struct vt_rng *rng, uint64_t n)
{
    return vt_rng_below(rng, n);
}

/* Random letters, or a piece of the text, perhaps with its last letter changed. */
static void draw_stop(struct vt_rng *rng, const struct reply *all, char *out)
{
    static const char *const letters[] = {"a", "b", "\xc3\xa9", "c"};
    size_t n = 0, from, len;

    if (all->text_len == 0 || below(rng, 2) == 0) {
        for (uint64_t k = 1 + below(rng, 5); k > 0; k--, n = strlen(out))
            snprintf(out + n, MOST_BYTES - n, "%s", letters[below(rng, 4)]);
        return;
    }
    from = without_last(all->text, all->text_len, 1 + below(rng, all->text_len));
    len = 1 + below(rng, MOST_BYTES - 4);
    len = len < all->text_len - from ? len : all->text_len - from;
    while (from + len < all->text_len &&
           ((unsigned char)all->text[from + len] & 0xc0) == 0x80)
        len++;
    snprintf(out, MOST_BYTES, "%.*s", (int)len, all->text + from);
    if (below(rng, 4) > 0 && (unsigned char)out[len - 1] < 0x80)
        out[len - 1] = 'c';
}

static void check(const struct reply *got, const struct api_request *r,
                  const struct reply *all, uint64_t number)
{
    struct wanted w;
    struct vt_buf reason = {0};

    plain_way(r, all, &w);
    if (got->n != w.n || got->text_len != w.len)
        fail_msg("case %u: %u tokens, %zu bytes, not %u, %zu", (unsigned)number, got->n,
                 got->text_len, w.n, w.len);
    assert_memory_equal(got->text, all->text, w.len);
    for (uint32_t i = 0; i < w.n; i++)
        assert_int_equal(got->text_end[i], w.end[i]);
    assert_int_equal(got->end == REPLY_STOP_STRING, w.stop < UINT32_MAX);
    if (w.stop < UINT32_MAX)
        vt_buf_json_str(&reason, r->stop[w.stop], strlen(r->stop[w.stop]));
    else
        vt_buf_str(&reason, "null");
    vt_buf_char(&reason, '\0');
    assert_string_equal(got->stop_reason, reason.data);
    vt_buf_free(&reason);
}

static void found_as_by_the_plain_way(void **state)
{
    static char text[MOST_STOPS][MOST_BYTES];
    const char *stop[MOST_STOPS];
    uint32_t stopped = 0;
    struct job *j = *state;

    for (uint64_t number = 0; number < CASES; number++) {
        struct api_request r = request_of(j, number / 10), with;
        struct reply all, got;
        struct vt_rng rng;

        vt_rng_init(&rng, number, "stops");
        make(j, &r, &all);
        with = request_of(j, number / 10);
        with.n_stop = 1 + (uint32_t)below(&rng, MOST_STOPS);
        with.stop = stop;
        for (uint32_t i = 0; i < with.n_stop; i++) {
            draw_stop(&rng, &all, text[i]);
            if (below(&rng, 2) > 0) /* seldom found, so that the search goes on */
                snprintf(text[i] + strlen(text[i]), 2, "c");
            stop[i] = text[i];
        }
        with.include_stop = below(&rng, 3) == 0;
        with.min_tokens = (uint32_t)(below(&rng, 2) * below(&rng, TOKENS));
        j->context.line = below(&rng, 2) ? API_LINE_032 : API_LINE_026;
        make(j, &with, &got);
        check(&got, &with, &all, number);
        stopped += got.end == REPLY_STOP_STRING;
        vt_arena_free(&r.arena);
        vt_arena_free(&with.arena);
    }
    assert_in_range(stopped, CASES / 4, CASES - CASES / 20);
}

/* Of thousands that are all begun again and again, the one that is there is found. */
static void one_of_thousands_is_found(void **state)
{
    enum { STOPS = 20000, LEN = 200, LONG = 20000 };
    struct job *j = *state;
    struct api_request r = request_of(j, 1), with = request_of(j, 1);
    char *text = malloc((size_t)STOPS * (LEN + 1));
    const char **stop = malloc(STOPS * sizeof(*stop));
    struct reply all, out;
    size_t there;

    assert_true(text && stop);
    r.n_allowed_ids = with.n_allowed_ids = 3; /* letters */
    r.max_tokens = with.max_tokens = LONG;
    make(j, &r, &all);
    there = all.text_len - 2 * LEN;
    for (size_t i = 0; i < STOPS; i++) {
        char *own = text + i * (LEN + 1);

        snprintf(own, LEN + 1, "%.*s", (int)LEN, all.text + i);
        snprintf(own + LEN - 10, 11, "%08zuab", i); /* as no text has it */
        stop[i] = own;
    }
    snprintf(text + (STOPS / 2) * (LEN + 1), LEN + 1, "%.*s", (int)LEN,
             all.text + there);
    with.stop = stop;
    with.n_stop = STOPS;
    make(j, &with, &out);
    assert_int_equal(out.end, REPLY_STOP_STRING);
    assert_int_equal(out.text_len, there);
    assert_memory_equal(out.text, all.text, there);
    vt_arena_free(&r.arena);
    vt_arena_free(&with.arena);
    free(stop);
    free(text);
}

/* ---- all of it ------------------------------------------------------- */

static int open_job(void **state)
{
    /* The last three are bytes that make a character only together. */
    static const char *const tokens[] = {"a", "b", "ab", "\xc3\x83", "\xc2\xa9", "aa"};
    static struct job j;
    struct vt_serve_config config = {.seed = 7};

    if (vt_tokenizer_open(&j.t, VT_TEST_DIR "/cases/tiny-qwen3", NULL) != VT_OK)
        return -1;
    config.tokenizer = j.t;
    if (reply_source_open(&j.s, &config, NULL) != VT_OK)
        return -1;
    for (size_t i = 0; i < VT_COUNT(tokens); i++)
        j.n_allowed +=
            vt_tokenizer_id(j.t, tokens[i], strlen(tokens[i]), &j.allowed[j.n_allowed]);
    j.context.tokenizer = j.t;
    j.prompt = (struct api_prompt){prompt_ids, 3, "hi there you", 12};
    *state = &j;
    return j.n_allowed >= 5 ? 0 : -1;
}

static int close_job(void **state)
{
    struct job *j = *state;

    reply_source_close(j->s);
    vt_tokenizer_close(j->t);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found_as_by_the_plain_way),
        cmocka_unit_test(one_of_thousands_is_found),
    };

    return cmocka_run_group_tests_name("reply_stops", tests, open_job, close_job);
}
