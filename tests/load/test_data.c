/* Datasets: what they make of flags and files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "load/load.h"

static struct vt_tokenizer *tokenizer;
static char path[64];

static int open_all(void **state)
{
    struct vt_err err;

    (void)state;
    return vt_tokenizer_builtin(&tokenizer, &err);
}

static int close_all(void **state)
{
    (void)state;
    vt_tokenizer_close(tokenizer);
    return 0;
}

static void defaults(struct vt_load_data *d, const char *name)
{
    vt_load_data_init(d);
    d->name = name;
    d->tokenizer = tokenizer;
    d->n = 20;
}

static void make(struct vt_load_plan *p, const struct vt_load_data *d)
{
    struct vt_err err = {0};

    *p = (struct vt_load_plan){0};
    if (vt_load_data_make(p, d, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_true(p->n > 0);
}

static void fails(const struct vt_load_data *d, const char *why)
{
    struct vt_load_plan p = {0};
    struct vt_err err = {0};

    assert_int_equal(vt_load_data_make(&p, d, &err), VT_EINPUT);
    if (!strstr(err.msg, why))
        fail_msg("'%s' does not say '%s'", err.msg, why);
    assert_null(p.session);
}

static const char *file(const char *text)
{
    int fd;

    snprintf(path, sizeof(path), "/tmp/vt-data-XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return path;
}

static size_t count(const struct vt_load_turn *t)
{
    struct vt_ids ids = {0};
    struct vt_err err;
    size_t n;

    assert_int_equal(vt_tokenizer_encode(tokenizer, t->text, t->text_len,
                                         VT_ENCODE_PLAIN, &ids, &err),
                     VT_OK);
    n = ids.n;
    vt_ids_free(&ids);
    return n;
}

/* ---- random ------------------------------------------------------------ */

static void random_prompts_have_their_length(void **state)
{
    struct vt_load_data d;
    struct vt_load_plan p;

    (void)state;
    defaults(&d, "random");
    d.random.input = 64;
    d.random.output = 24;
    make(&p, &d);
    assert_int_equal(p.n, 20);
    assert_int_equal(p.n_turns, 20);
    assert_true(p.ignore_eos);
    assert_false(p.timed);
    for (size_t i = 0; i < p.n; i++) {
        assert_int_equal(p.session[i].n_turns, 1);
        assert_int_equal(p.session[i].turn->prompt_tokens, count(p.session[i].turn));
        assert_int_equal(p.session[i].turn->prompt_tokens, 64);
        assert_int_equal(p.session[i].turn->output_tokens, 24);
    }
    assert_true(p.session[0].turn->text_len != p.session[1].turn->text_len ||
                memcmp(p.session[0].turn->text, p.session[1].turn->text,
                       p.session[0].turn->text_len) != 0);
    vt_load_plan_free(&p);
}

static void lengths_spread_by_their_ratio(void **state)
{
    uint32_t lo = UINT32_MAX, hi = 0, least = UINT32_MAX, most = 0;
    struct vt_load_data d;
    struct vt_load_plan p;

    (void)state;
    defaults(&d, "random");
    d.n = 400;
    d.random = (struct vt_load_lens){
        .input = 20, .output = 2, .input_ratio = 0.25, .output_ratio = 0.9};
    make(&p, &d);
    for (size_t i = 0; i < p.n; i++) {
        const struct vt_load_turn *t = p.session[i].turn;

        lo = t->prompt_tokens < lo ? t->prompt_tokens : lo;
        hi = t->prompt_tokens > hi ? t->prompt_tokens : hi;
        least = t->output_tokens < least ? t->output_tokens : least;
        most = t->output_tokens > most ? t->output_tokens : most;
    }
    assert_int_equal(lo, 15);
    assert_int_equal(hi, 25);
    assert_int_equal(least, 1); /* not 0 */
    assert_int_equal(most, 4);
    vt_load_plan_free(&p);
}

static void a_prefix_is_shared(void **state)
{
    struct vt_load_data d;
    struct vt_load_plan p;

    (void)state;
    defaults(&d, "random");
    d.random = (struct vt_load_lens){.input = 8, .output = 4, .prefix = 30};
    d.token_ids = true;
    make(&p, &d);
    for (size_t i = 0; i < p.n; i++) {
        assert_null(p.session[i].turn->text);
        assert_int_equal(p.session[i].turn->n_ids, 38);
        assert_memory_equal(p.session[i].turn->id, p.session[0].turn->id,
                            25 * sizeof(uint32_t)); /* the seam may fall differently */
    }
    vt_load_plan_free(&p);
}

static void a_seed_makes_the_same_again(void **state)
{
    struct vt_load_plan p, q, r;
    struct vt_load_data d;

    (void)state;
    defaults(&d, "random");
    d.random.input = 32;
    make(&p, &d);
    make(&q, &d);
    d.seed = 1;
    make(&r, &d);
    assert_string_equal(p.session[7].turn->text, q.session[7].turn->text);
    assert_string_not_equal(p.session[7].turn->text, r.session[7].turn->text);
    vt_load_plan_free(&p);
    vt_load_plan_free(&q);
    vt_load_plan_free(&r);
}

static void prefixes_repeat(void **state)
{
    struct vt_load_data d;
    struct vt_load_plan p;
    size_t same = 0;

    (void)state;
    defaults(&d, "prefix_repetition");
    d.n = 23;
    d.prefixes = 4;
    d.prefix_len = 40;
    d.suffix_len = 10;
    d.repetition_output_len = 9;
    d.no_shuffle = true;
    make(&p, &d);
    assert_int_equal(p.n, 20); /* as many for each */
    for (size_t i = 1; i < p.n; i++)
        same += memcmp(p.session[i].turn->text, p.session[i - 1].turn->text, 40) == 0;
    assert_int_equal(same, 16);
    assert_int_equal(p.session[0].turn->prompt_tokens, 50);
    assert_int_equal(p.session[0].turn->output_tokens, 9);
    vt_load_plan_free(&p);
    d.n = 3;
    fails(&d, "3 prompts are fewer than 4 prefixes");
}

/* ---- files ------------------------------------------------------------ */

static void sharegpt_takes_what_vllm_takes(void **state)
{
    struct vt_load_data d;
    struct vt_load_plan p;

    (void)state;
    defaults(&d, "sharegpt");
    d.path = file(
        "[{\"conversations\":[{\"from\":\"human\",\"value\":\"tell me something about "
        "the sea and its fish\"},{\"from\":\"gpt\",\"value\":\"the sea is wide and the "
        "fish in it are many\"}]},"
        "{\"conversations\":[{\"value\":\"only one turn\"}]},"
        "{\"conversations\":[{\"value\":\"a question that is long enough\"},"
        "{\"value\":\"no\"}]},"
        "{\"id\":\"nothing\"}]");
    d.n = 3;
    make(&p, &d);
    assert_int_equal(p.n, 3); /* one, three times */
    assert_string_equal(p.session[2].turn->text,
                        "tell me something about the sea and its fish");
    assert_int_equal(p.session[0].turn->prompt_tokens, count(p.session[0].turn));
    assert_true(p.session[0].turn->output_tokens >= 4);
    vt_load_plan_free(&p);
    d.no_oversample = true;
    d.output_len = 7; /* then a short answer does not matter */
    make(&p, &d);
    assert_int_equal(p.n, 2);
    assert_int_equal(p.session[1].turn->output_tokens, 7);
    vt_load_plan_free(&p);
    unlink(path);
}

static void custom_lines(void **state)
{
    struct vt_load_data d;
    struct vt_load_plan p;

    (void)state;
    defaults(&d, "custom");
    d.path = file("{\"prompt\":\"one\",\"output_tokens\":3}\n\n{\"prompt\":\"two\","
                  "\"output_tokens\":5}\n");
    d.n = 0;
    d.output_len = -1;
    d.as_chat = false;
    d.no_shuffle = true;
    make(&p, &d);
    assert_int_equal(p.n, 2);
    assert_string_equal(p.session[1].turn->text, "two");
    assert_int_equal(p.session[1].turn->output_tokens, 5);
    vt_load_plan_free(&p);
    d.as_chat = true;
    d.output_len = 9;
    d.n = 5;
    make(&p, &d);
    assert_int_equal(p.n, 5);
    assert_string_equal(p.session[0].turn->text,
                        "<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\n");
    assert_int_equal(p.session[0].turn->output_tokens, 9);
    vt_load_plan_free(&p);
    unlink(path);
    d.path = file("{\"prompt\":\"one\"}\n{\"promt\":1}\n");
    fails(&d, "line 2: ");
    d.output_len = -1;
    fails(&d, "output_tokens");
    unlink(path);
}

/* ---- traces ----------------------------------------------------------- */

static void timed_traces_share_what_hashes_share(void **state)
{
    struct vt_load_data d;
    struct vt_load_plan p;

    (void)state;
    defaults(&d, "timed_trace");
    d.path =
        file("{\"timestamp\":0,\"input_length\":40,\"output_length\":5,\"hash_ids\":"
             "[1,2,3]}\n{\"timestamp\":2500,\"input_length\":48,\"output_length\":6,"
             "\"hash_ids\":[1,2,4]}\n{\"timestamp\":3000,\"input_length\":9,"
             "\"output_length\":7}\n");
    d.sec_multiplier = 0.001;
    d.token_ids = true;
    make(&p, &d);
    assert_true(p.timed);
    assert_int_equal(p.n, 3);
    assert_int_equal(p.session[1].at, 2500 * VT_MS);
    assert_int_equal(p.session[0].turn->n_ids, 40);
    assert_int_equal(p.session[1].turn->n_ids, 48);
    assert_memory_equal(p.session[0].turn->id, p.session[1].turn->id,
                        32 * sizeof(uint32_t));
    assert_true(memcmp(p.session[0].turn->id + 32, p.session[1].turn->id + 32,
                       8 * sizeof(uint32_t)) != 0);
    assert_int_equal(p.session[2].turn->n_ids, 0); /* nothing to make it of */
    vt_load_plan_free(&p);
    d.n = 1;
    make(&p, &d);
    assert_int_equal(p.n, 1);
    vt_load_plan_free(&p);
    d.n = 0;
    d.label_input = "tokens";
    fails(&d, "line 1: ");
    unlink(path);
}

static void traces_come_when_and_as_they_came(void **state)
{
    struct vt_load_data d;
    struct vt_load_plan p;

    (void)state;
    defaults(&d, "trace");
    d.path = file("{\"meta\":{\"model\":\"m\"}}\n"
                  "{\"id\":\"a\",\"arrival_ms\":100,\"prompt_tokens\":20,"
                  "\"output_tokens\":3,\"segments\":[[\"s\",15],[\"x\",5]]}\n"
                  "{\"id\":\"b\",\"arrival_ms\":300,\"prompt_tokens\":18,"
                  "\"output_tokens\":4,\"segments\":[[\"s\",15],[\"y\",3]]}\n");
    d.token_ids = true;
    d.speed = 2;
    make(&p, &d);
    assert_int_equal(p.n, 2);
    assert_true(p.timed);
    assert_int_equal(p.session[1].at - p.session[0].at, 100 * VT_MS);
    assert_int_equal(p.session[0].turn->n_ids, 20);
    assert_int_equal(p.session[1].turn->output_tokens, 4);
    assert_memory_equal(p.session[0].turn->id, p.session[1].turn->id,
                        15 * sizeof(uint32_t));
    vt_load_plan_free(&p);
    d.token_ids = false;
    make(&p, &d);
    assert_non_null(p.session[0].turn->text);
    vt_load_plan_free(&p);
    unlink(path);
}

/* ---- refused ---------------------------------------------------------- */

static void what_cannot_be_made(void **state)
{
    struct vt_load_data d;

    (void)state;
    defaults(&d, "sonnet");
    fails(&d, "unknown dataset 'sonnet'");
    defaults(&d, "sharegpt");
    fails(&d, "needs a file");
    defaults(&d, "random");
    d.path = "x";
    fails(&d, "made up");
    defaults(&d, "random");
    d.random.input = 0;
    fails(&d, "too small");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_prompts_have_their_length),
        cmocka_unit_test(lengths_spread_by_their_ratio),
        cmocka_unit_test(a_prefix_is_shared),
        cmocka_unit_test(a_seed_makes_the_same_again),
        cmocka_unit_test(prefixes_repeat),
        cmocka_unit_test(sharegpt_takes_what_vllm_takes),
        cmocka_unit_test(custom_lines),
        cmocka_unit_test(timed_traces_share_what_hashes_share),
        cmocka_unit_test(traces_come_when_and_as_they_came),
        cmocka_unit_test(what_cannot_be_made),
    };

    return cmocka_run_group_tests_name("data", tests, open_all, close_all);
}
