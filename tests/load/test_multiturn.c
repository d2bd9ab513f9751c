/* Conversations: from vLLM's files and from our own generator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "load/multiturn.h"

#define TINY VT_TEST_DIR "/cases/tiny-qwen3"

static struct vt_tokenizer *open_tiny(void)
{
    struct vt_tokenizer *t;
    struct vt_err err = {0};

    assert_int_equal(vt_tokenizer_open(&t, TINY, &err), VT_OK);
    return t;
}

static size_t tokens_of(const struct vt_tokenizer *t, const char *text, size_t len)
{
    struct vt_ids ids = {0};
    struct vt_err err = {0};
    size_t n;

    assert_int_equal(vt_tokenizer_encode(t, text, len, VT_ENCODE_PLAIN, &ids, &err),
                     VT_OK);
    n = ids.n;
    vt_ids_free(&ids);
    return n;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* ---- our own --------------------------------------------------------- */

static void lengths_are_what_was_asked_for(void **state)
{
    const struct vt_load_multiturn m = {.seed = 3,
                                        .conversations = 6,
                                        .turns = 4,
                                        .starters = 2,
                                        .starter_tokens = {30, 50},
                                        .user_tokens = {5, 9},
                                        .output_tokens = {10, 12},
                                        .think_s = 0.5,
                                        .think = VT_THINK_CONSTANT};
    struct vt_tokenizer *t = open_tiny();
    struct vt_load_plan p = {0};
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_load_multiturn(&p, &m, t, &err), VT_OK);
    assert_int_equal(p.n, 6);
    assert_int_equal(p.n_turns, 24);
    assert_true(p.ignore_eos);
    for (size_t i = 0; i < p.n; i++) {
        const struct vt_load_session *s = &p.session[i];
        size_t said = tokens_of(t, s->system, strlen(s->system));

        assert_in_range(said, 30, 50);
        assert_int_equal(s->n_turns, 4);
        for (uint32_t k = 0; k < 4; k++) {
            size_t user = tokens_of(t, s->turn[k].text, s->turn[k].text_len);

            assert_in_range(user, 5, 9);
            assert_in_range(s->turn[k].output_tokens, 10, 12);
            assert_int_equal(s->turn[k].prompt_tokens, said + user);
            assert_int_equal(s->turn[k].think_ns, k > 0 ? 500 * VT_MS : 0);
            said += user + s->turn[k].output_tokens;
        }
    }
    vt_load_plan_free(&p);
    vt_tokenizer_close(t);
}

static void starters_are_shared_and_messages_are_not(void **state)
{
    const struct vt_load_multiturn m = {.conversations = 12,
                                        .turns = 2,
                                        .starters = 3,
                                        .starter_tokens = {40, 40},
                                        .user_tokens = {12, 12}};
    struct vt_tokenizer *t = open_tiny();
    struct vt_load_plan p = {0};
    struct vt_err err = {0};
    size_t different = 0;

    (void)state;
    assert_int_equal(vt_load_multiturn(&p, &m, t, &err), VT_OK);
    for (size_t i = 0; i < p.n; i++) {
        bool seen = false;

        for (size_t k = 0; k < i; k++) {
            seen = seen || strcmp(p.session[k].system, p.session[i].system) == 0;
            assert_string_not_equal(p.session[k].turn[0].text,
                                    p.session[i].turn[0].text);
        }
        different += seen ? 0 : 1;
    }
    assert_in_range(different, 2, 3);
    vt_load_plan_free(&p);
    vt_tokenizer_close(t);
}

static void defaults_are_five_turns_and_long_starters(void **state)
{
    const struct vt_load_multiturn m = {.conversations = 2};
    struct vt_tokenizer *t;
    struct vt_load_plan p = {0};
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_tokenizer_builtin(&t, &err), VT_OK);
    assert_int_equal(vt_load_multiturn(&p, &m, t, &err), VT_OK);
    for (size_t i = 0; i < p.n; i++) {
        assert_int_equal(p.session[i].n_turns, 5);
        assert_in_range(tokens_of(t, p.session[i].system, strlen(p.session[i].system)),
                        3500, 4000);
        assert_in_range(p.session[i].turn[0].output_tokens, 700, 960);
    }
    vt_load_plan_free(&p);
    vt_tokenizer_close(t);
}

static void the_seed_decides_everything(void **state)
{
    struct vt_load_multiturn m = {.conversations = 2,
                                  .starter_tokens = {20, 30},
                                  .user_tokens = {5, 15},
                                  .think_s = 1};
    struct vt_tokenizer *t = open_tiny();
    struct vt_load_plan a = {0}, b = {0}, c = {0};
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_load_multiturn(&a, &m, t, &err), VT_OK);
    assert_int_equal(vt_load_multiturn(&b, &m, t, &err), VT_OK);
    m.seed = 1;
    assert_int_equal(vt_load_multiturn(&c, &m, t, &err), VT_OK);
    assert_string_equal(a.session[1].turn[4].text, b.session[1].turn[4].text);
    assert_int_equal(a.session[1].turn[4].think_ns, b.session[1].turn[4].think_ns);
    assert_true(a.session[1].turn[4].think_ns > 0);
    assert_string_not_equal(a.session[1].turn[4].text, c.session[1].turn[4].text);
    vt_load_plan_free(&a);
    vt_load_plan_free(&b);
    vt_load_plan_free(&c);
    vt_tokenizer_close(t);
}

/* ---- files ----------------------------------------------------------- */

static int load_text(struct vt_load_plan *p, const char *text, const char *book,
                     uint32_t turns, const struct vt_tokenizer *t, struct vt_err *err)
{
    char dir[] = "/tmp/vtwin-multiturn-XXXXXX", path[64], file[64];
    struct vt_load_multiturn m = {.path = path, .turns = turns};
    int rc;

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/in.json", dir);
    snprintf(file, sizeof(file), "%s/book.txt", dir);
    write_file(path, text);
    if (book)
        write_file(file, book);
    rc = vt_load_multiturn(p, &m, t, err);
    unlink(file);
    unlink(path);
    rmdir(dir);
    return rc;
}

static const char list[] =
    "[{\"id\": \"a\", \"messages\": ["
    "{\"role\": \"system\", \"content\": \"You are brief.\"},"
    "{\"role\": \"user\", \"content\": \"Hello there\"},"
    "{\"role\": \"assistant\", \"content\": \"one two three\"},"
    "{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"And \"},"
    "{\"type\": \"text\", \"text\": \"now?\"}]}]},"
    "{\"id\": \"b\", \"messages\": [{\"role\": \"user\", \"content\": \"x\"},"
    "{\"role\": \"assistant\", \"content\": \"\"}]}]";

static void a_list_gives_messages_and_lengths_of_answers(void **state)
{
    struct vt_tokenizer *t = open_tiny();
    struct vt_load_plan p = {0};
    struct vt_err err = {0};
    const struct vt_load_turn *turn;

    (void)state;
    assert_int_equal(load_text(&p, list, NULL, 0, t, &err), VT_OK);
    assert_int_equal(p.n, 2);
    assert_false(p.ignore_eos);
    assert_string_equal(p.session[0].id, "a");
    assert_string_equal(p.session[0].system, "You are brief.");
    assert_int_equal(p.session[0].n_turns, 2);
    turn = p.session[0].turn;
    assert_string_equal(turn[0].text, "Hello there");
    assert_int_equal(turn[0].output_tokens, tokens_of(t, "one two three", 13));
    assert_int_equal(turn[0].prompt_tokens, tokens_of(t, "You are brief.", 14) +
                                                tokens_of(t, "Hello there", 11));
    assert_string_equal(turn[1].text, "And now?");
    assert_int_equal(turn[1].output_tokens, 0); /* nobody said */
    assert_int_equal(p.session[1].turn[0].output_tokens, 1);
    vt_load_plan_free(&p);
    vt_tokenizer_close(t);
}

static void without_a_tokenizer_a_list_still_works(void **state)
{
    struct vt_load_plan p = {0};
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(load_text(&p, list, NULL, 1, NULL, &err), VT_OK);
    assert_int_equal(p.session[0].n_turns, 1); /* at most */
    assert_int_equal(p.session[0].turn[0].output_tokens, 0);
    vt_load_plan_free(&p);
}

static const char recipe[] =
    "{\"filetype\": \"generate_conversations\", \"num_conversations\": 3,"
    "\"text_files\": [\"book.txt\"], \"print_stats\": false,"
    "\"prompt_input\": {\"num_turns\": {\"distribution\": \"constant\", \"value\": 5},"
    "\"common_prefix_num_tokens\": {\"distribution\": \"constant\", \"value\": 20},"
    "\"prefix_num_tokens\": {\"distribution\": \"uniform\", \"min\": 10, \"max\": 15},"
    "\"num_tokens\": {\"distribution\": \"constant\", \"value\": 60}},"
    "\"prompt_output\": {\"num_tokens\": {\"distribution\": \"lognormal\", "
    "\"average\": 40, \"max\": 90}}}";

static void a_recipe_makes_conversations_out_of_a_text(void **state)
{
    struct vt_tokenizer *t = open_tiny();
    struct vt_load_plan p = {0};
    struct vt_err err = {0};
    struct vt_buf book = {0};

    (void)state;
    for (int i = 0; i < 400; i++)
        vt_buf_printf(&book, "In year %d the ship came home again. ", i);
    assert_int_equal(load_text(&p, recipe, book.data, 0, t, &err), VT_OK);
    assert_int_equal(p.n, 3);
    for (size_t i = 0; i < p.n; i++) {
        const struct vt_load_session *s = &p.session[i];
        char number[64];

        assert_int_equal(s->n_turns, 3); /* 5 is made even: three questions */
        snprintf(number, sizeof(number), "%zu is a nice number... ", i);
        for (uint32_t k = 0; k < 3; k++) {
            size_t n = tokens_of(t, s->turn[k].text, s->turn[k].text_len);

            assert_non_null(strstr(s->turn[k].text, number));
            assert_in_range(s->turn[k].output_tokens, 1, 90);
            /* Joints may merge; the prefix comes on top. */
            assert_in_range(n, 52, k == 0 ? 90 : 66);
        }
        /* All begin with the same text, and go on differently. */
        assert_memory_equal(s->turn[0].text, p.session[0].turn[0].text, 20);
    }
    assert_string_equal(p.session[2].id, "CONV_ID_2");
    vt_load_plan_free(&p);
    vt_buf_free(&book);
    vt_tokenizer_close(t);
}

/* ---- refusals -------------------------------------------------------- */

static struct refused {
    const char *name, *text, *message;
} refusals[] = {
    {"a number", "3", "filetype"},
    {"an empty list", "[]", "no conversations"},
    {"no id", "[{\"messages\": []}]", "'id'"},
    {"no messages", "[{\"id\": \"a\", \"messages\": []}]", "no list of messages"},
    {"an answer first",
     "[{\"id\": \"a\", \"messages\": [{\"role\": \"assistant\", \"content\": \"x\"}]}]",
     "not expected here"},
    {"only a system message",
     "[{\"id\": \"a\", \"messages\": [{\"role\": \"system\", \"content\": \"x\"}]}]",
     "no message of a user"},
    {"pictures",
     "[{\"id\": \"a\", \"messages\": [{\"role\": \"user\", \"content\": "
     "[{\"type\": \"image_url\"}]}]}]",
     "only parts of text"},
    {"the same id twice",
     "[{\"id\": \"a\", \"messages\": [{\"role\": \"user\", \"content\": \"x\"}]},"
     "{\"id\": \"a\", \"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}]",
     "two conversations have the id 'a'"},
    {"another kind of file", "{\"filetype\": \"x\"}", "not generate_conversations"},
    {"no text files",
     "{\"filetype\": \"generate_conversations\", \"num_conversations\": 1}",
     "text_files"},
    {"a distribution that is none",
     "{\"filetype\": \"generate_conversations\", \"num_conversations\": 1, "
     "\"text_files\": [\"book.txt\"], \"prompt_input\": {\"num_turns\": "
     "{\"distribution\": \"normal\"}}}",
     "none of constant, uniform"},
    {"a range upside down",
     "{\"filetype\": \"generate_conversations\", \"num_conversations\": 1, "
     "\"text_files\": [\"book.txt\"], \"prompt_input\": {\"num_turns\": "
     "{\"distribution\": \"uniform\", \"min\": 4, \"max\": 2}}}",
     "'max'"},
    {"too little text", recipe, "not enough text"},
};

static void refused_with_a_reason(void **state)
{
    const struct refused *r = *state;
    struct vt_tokenizer *t = open_tiny();
    struct vt_load_plan p = {0};
    struct vt_err err = {0};

    assert_int_equal(load_text(&p, r->text, "a short text", 0, t, &err), VT_EINPUT);
    assert_null(p.session);
    assert_non_null(strstr(err.msg, "in.json"));
    if (!strstr(err.msg, r->message))
        fail_msg("'%s' does not say '%s'", err.msg, r->message);
    vt_tokenizer_close(t);
}

/* ---- flags ----------------------------------------------------------- */

static void ranges_and_think_times_are_read(void **state)
{
    struct vt_load_multiturn m = {0};
    struct vt_load_range r = {0};
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_load_range_parse("3500:4000", &r, &err), VT_OK);
    assert_int_equal(r.lo, 3500);
    assert_int_equal(r.hi, 4000);
    assert_int_equal(vt_load_range_parse("7", &r, &err), VT_OK);
    assert_int_equal(r.lo + r.hi, 14);
    assert_int_equal(vt_load_range_parse("9:7", &r, &err), VT_EINPUT);
    assert_int_equal(vt_load_range_parse("0", &r, &err), VT_EINPUT);
    assert_int_equal(vt_load_range_parse("1:2:3", &r, &err), VT_EINPUT);
    assert_int_equal(vt_load_think_parse("constant:2.5", &m, &err), VT_OK);
    assert_int_equal(m.think, VT_THINK_CONSTANT);
    assert_true(m.think_s > 2.49 && m.think_s < 2.51);
    assert_int_equal(vt_load_think_parse("1", &m, &err), VT_OK);
    assert_int_equal(m.think, VT_THINK_EXPONENTIAL);
    assert_int_equal(vt_load_think_parse("gamma:1", &m, &err), VT_EINPUT);
    assert_int_equal(vt_load_think_parse("-1", &m, &err), VT_EINPUT);
}

/* ---- distributions --------------------------------------------------- */

static struct spread {
    const char *name, *text;
    double mean, within; /* of 20000 draws */
    uint32_t lo, hi;
} spreads[] = {
    {"constant", "{\"distribution\": \"constant\", \"value\": 7}", 7, 0, 7, 7},
    {"uniform", "{\"distribution\": \"uniform\", \"min\": 2, \"max\": 6}", 4, 0.05, 2,
     6},
    {"real uniform", "{\"distribution\": \"uniform\", \"min\": 2.0, \"max\": 6.0}", 3.5,
     0.05, 2, 6},
    {"lognormal by average", "{\"distribution\": \"lognormal\", \"average\": 1000}",
     1000, 0.5, 1, 20000},
    {"lognormal by mean",
     "{\"distribution\": \"lognormal\", \"mean\": 3, \"sigma\": 0.5}", 22.76, 0.4, 0,
     400},
    {"few arrivals", "{\"distribution\": \"poisson\", \"alpha\": 3}", 3, 0.06, 0, 30},
    {"many arrivals", "{\"distribution\": \"poisson\", \"alpha\": 250}", 250, 0.5, 150,
     350},
    {"zipf", "{\"distribution\": \"zipf\", \"alpha\": 4, \"max\": 9}", 1.107, 0.02, 1,
     9},
    {"steep zipf", "{\"distribution\": \"zipf\", \"alpha\": 15400}", 1, 0, 1, 1},
    {"flat zipf", "{\"distribution\": \"zipf\", \"alpha\": 1.001, \"max\": 9}", 8.22,
     0.05, 1, 9},
};

static void draws_have_their_mean(void **state)
{
    enum { N = 20000 };
    const struct spread *s = *state;
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_err err = {0};
    struct vt_rng rng;
    struct dist d;
    double *scratch = malloc(N * sizeof(*scratch)), sum = 0;
    uint32_t *v = malloc(N * sizeof(*v));

    assert_int_equal(vt_json_parse(&arena, s->text, strlen(s->text), 1, &root, &err),
                     VT_OK);
    assert_int_equal(dist_read(root, &d, &err), VT_OK);
    vt_rng_init(&rng, 1, "test");
    dist_sample(&d, &rng, 0, scratch, v, N);
    for (int i = 0; i < N; i++) {
        assert_in_range(v[i], s->lo, s->hi);
        sum += v[i];
    }
    if (fabs(sum / N - s->mean) > s->within)
        fail_msg("mean %g, not %g", sum / N, s->mean);
    free(scratch);
    free(v);
    vt_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest single[] = {
        cmocka_unit_test(lengths_are_what_was_asked_for),
        cmocka_unit_test(starters_are_shared_and_messages_are_not),
        cmocka_unit_test(defaults_are_five_turns_and_long_starters),
        cmocka_unit_test(the_seed_decides_everything),
        cmocka_unit_test(a_list_gives_messages_and_lengths_of_answers),
        cmocka_unit_test(without_a_tokenizer_a_list_still_works),
        cmocka_unit_test(a_recipe_makes_conversations_out_of_a_text),
        cmocka_unit_test(ranges_and_think_times_are_read),
    };
    enum { N = VT_COUNT(single), R = VT_COUNT(refusals), S = VT_COUNT(spreads) };
    struct CMUnitTest tests[N + R + S];

    for (size_t i = 0; i < N; i++)
        tests[i] = single[i];
    for (size_t i = 0; i < R; i++)
        tests[N + i] = (struct CMUnitTest){.name = refusals[i].name,
                                           .test_func = refused_with_a_reason,
                                           .initial_state = &refusals[i]};
    for (size_t i = 0; i < S; i++)
        tests[N + R + i] = (struct CMUnitTest){.name = spreads[i].name,
                                               .test_func = draws_have_their_mean,
                                               .initial_state = &spreads[i]};
    return cmocka_run_group_tests_name("multiturn", tests, NULL, NULL);
}
