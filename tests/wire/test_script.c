/* Scripts without a recording: random tokens, their keys, and where output ends. */
#include "script_testing.h"

#include <math.h>

static const uint32_t special[] = {0, 1, 2, 990, 991, 992, 993, 994, 995, 996};

static struct vt_play_config with_special(void)
{
    return (struct vt_play_config){.skip_token = special,
                                   .n_skip_tokens = VT_COUNT(special)};
}

static bool same_tokens(const struct script *a, const struct script *b)
{
    for (uint32_t i = 0; i < 20; i++)
        if (script_token(a, i) != script_token(b, i))
            return false;
    return true;
}

/* ---- random tokens ---------------------------------------------------- */

static void random_output_never_ends_by_chance(void **state)
{
    struct script_source *s = source(with_special());
    uint32_t stop[] = {STOP, 500, 501, 999};
    struct asked a;
    struct script q;

    (void)state;
    ask(&a, "x");
    a.p.max_tokens = UINT32_MAX;
    a.p.stop_token_ids = stop;
    a.p.n_stop_token_ids = 2;
    a.p.all_stop_token_ids = stop;
    a.p.n_all_stop_token_ids = 4;
    q = begin(s, &a);
    assert_int_equal(q.max_tokens, MODEL_LEN - 4);
    for (uint32_t i = 0; i < 200000; i++) {
        uint32_t id = script_token(&q, i);

        assert_true(id >= 3 && id < VOCAB && !(id >= 990 && id <= 996));
        assert_true(id != STOP && id != 500 && id != 501 && id != 999);
    }
    assert_int_equal(q.eos_at, VT_NO_STOP);
    assert_int_equal(q.stop_at, VT_NO_STOP);
    assert_int_equal(q.finish, -1);
    script_end(&q);
    script_source_close(s);
}

static void random_output_is_uniform(void **state)
{
    enum { N = 1000000, IDS = VOCAB - VT_COUNT(special) };
    struct script_source *s = source(with_special());
    static uint32_t count[VOCAB];
    double chi = 0, expected = (double)N / IDS;
    struct asked a;
    struct script q = begin(s, ask(&a, "x"));

    (void)state;
    for (uint32_t i = 0; i < N; i++)
        count[script_token(&q, i)]++;
    for (uint32_t id = 0; id < VOCAB; id++)
        if (count[id] > 0)
            chi += (count[id] - expected) * (count[id] - expected) / expected;
        else
            chi += id < 3 || (id >= 990 && id <= 996) ? 0 : 1e6;
    assert_true(fabs(chi - (IDS - 1)) < 5 * sqrt(2.0 * IDS));
    script_end(&q);
    script_source_close(s);
}

static void an_id_beyond_the_vocabulary_is_no_matter(void **state)
{
    uint32_t far[] = {5000, UINT32_MAX};
    struct script_source *s = source((struct vt_play_config){
        .skip_token = far, .n_skip_tokens = 2, .vocab_size = 2});
    struct asked a;
    struct script q;

    (void)state;
    ask(&a, "x");
    a.p.stop_token_ids = far;
    a.p.n_stop_token_ids = 2;
    q = begin(s, &a);
    for (uint32_t i = 0, seen = 0; i < 100 || seen != 3; i++) {
        assert_true(i < 1000);
        seen |= 1U << script_token(&q, i);
        assert_true(seen <= 3);
    }
    script_end(&q);
    script_source_close(s);
}

/* All ids stop: then any will have to do. */
static void a_request_that_forbids_everything_is_served(void **state)
{
    struct script_source *s = source((struct vt_play_config){.vocab_size = 4});
    uint32_t all[] = {0, 1, 2, 3};
    struct asked a;
    struct script q;

    (void)state;
    ask(&a, "x");
    a.p.stop_token_ids = all;
    a.p.n_stop_token_ids = 4;
    q = begin(s, &a);
    assert_true(script_token(&q, 0) < 4);
    script_end(&q);
    script_source_close(s);
}

/* ---- keys ------------------------------------------------------------- */

struct keyed {
    const char *id;
    uint32_t prompt;
    bool has_seed;
    int64_t seed;
    double temperature;
    uint64_t source_seed;
};

static struct pair {
    const char *name;
    struct keyed a, b;
    bool same;
} pairs[] = {
    {"a seed and a prompt", {"x", 1, 1, 42, 1, 1}, {"y", 1, 1, 42, 0.5, 2}, true},
    {"another seed", {"x", 1, 1, 42, 1, 1}, {"x", 1, 1, 43, 1, 1}, false},
    {"a seed, another prompt", {"x", 1, 1, 42, 1, 1}, {"x", 2, 1, 42, 1, 1}, false},
    {"greedy", {"x", 1, 0, 0, 0, 1}, {"y", 1, 0, 0, 0, 1}, true},
    {"greedy, another prompt", {"x", 1, 0, 0, 0, 1}, {"x", 2, 0, 0, 0, 1}, false},
    {"greedy, another source", {"x", 1, 0, 0, 0, 1}, {"x", 1, 0, 0, 0, 2}, false},
    {"a name of its own", {"x", 1, 0, 0, 1, 1}, {"x", 1, 0, 0, 1, 1}, true},
    {"a name behind an API", {"cmpl-x", 1, 0, 0, 1, 1}, {"x", 1, 0, 0, 1, 1}, true},
    {"another name", {"x", 1, 0, 0, 1, 1}, {"y", 1, 0, 0, 1, 1}, false},
    {"a name, another source", {"x", 1, 0, 0, 1, 1}, {"x", 1, 0, 0, 1, 2}, false},
    /* each is the first one that nobody named */
    {"a drawn name",
     {"cmpl-7ca10a90", 1, 0, 0, 1, 1},
     {"cmpl-b5d38284b3010477", 1, 0, 0, 1, 1},
     true},
};

static struct script keyed(struct script_source *s, const struct keyed *k)
{
    struct asked a;

    ask(&a, k->id);
    a.prompt[2] = k->prompt;
    a.p.has_seed = k->has_seed;
    a.p.seed = k->seed;
    a.p.temperature = k->temperature;
    return begin(s, &a);
}

static void keys_tell_requests_apart(void **state)
{
    const struct pair *p = *state;
    struct script_source *sa =
        source((struct vt_play_config){.seed = p->a.source_seed});
    struct script_source *sb =
        source((struct vt_play_config){.seed = p->b.source_seed});
    struct script a = keyed(sa, &p->a), b = keyed(sb, &p->b);

    assert_int_equal(same_tokens(&a, &b), p->same);
    script_end(&a);
    script_end(&b);
    script_source_close(sa);
    script_source_close(sb);
}

static void requests_without_a_name_differ(void **state)
{
    struct script_source *s = source((struct vt_play_config){0});
    struct asked a;
    struct script one = begin(s, ask(&a, "cmpl-7ca10a90"));
    struct script two = begin(s, ask(&a, "cmpl-7ca10a90"));

    (void)state;
    assert_false(same_tokens(&one, &two));
    script_end(&one);
    script_end(&two);
    script_source_close(s);
}

static void choices_of_one_request_differ(void **state)
{
    struct script_source *s = source((struct vt_play_config){0});
    struct script q[2];
    struct asked a;

    (void)state;
    for (int i = 0; i < 2; i++) {
        ask(&a, "cmpl-x-0");
        a.r.id = chars(i == 0 ? "0_cmpl-x-0-9c9c7ca4" : "1_cmpl-x-0-9c9c7ca4");
        q[i] = begin(s, &a);
    }
    assert_false(same_tokens(&q[0], &q[1]));
    script_end(&q[0]);
    script_end(&q[1]);
    script_source_close(s);
}

/* ---- limits ----------------------------------------------------------- */

static void limits_are_the_models_and_the_requests(void **state)
{
    static const struct {
        uint32_t max_tokens, min_tokens, n_prompt, max, min;
    } rows[] = {
        {40, 0, 4, 40, 0},
        {40, 50, 4, 40, 40},
        {0, 0, 4, 1, 0},
        {UINT32_MAX, 3, 4, MODEL_LEN - 4, 3},
        {40, 0, MODEL_LEN - 10, 10, 0},
        {40, 7, MODEL_LEN - 1, 1, 1},
        {40, 0, MODEL_LEN, 1, 0},
        {40, 0, MODEL_LEN + 5, 1, 0},
    };
    struct script_source *s = source((struct vt_play_config){0});
    struct asked a;

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct script q;

        ask(&a, "x");
        a.p.max_tokens = rows[i].max_tokens;
        a.p.min_tokens = rows[i].min_tokens;
        a.r.prompt = NULL; /* embeddings: only their number counts */
        a.r.n_prompt = rows[i].n_prompt;
        q = begin(s, &a);
        assert_int_equal(q.max_tokens, rows[i].max);
        assert_int_equal(q.min_tokens, rows[i].min);
        script_end(&q);
    }
    script_source_close(s);
}

/* ---- allowed tokens --------------------------------------------------- */

/* The first index from `from` on with one of two ids. */
static uint32_t first_with(const struct script *q, uint32_t from, uint32_t a,
                           uint32_t b)
{
    uint32_t i = from;

    while (script_token(q, i) != a && script_token(q, i) != b)
        i++;
    return i;
}

static void allowed_tokens_are_all_there_is(void **state)
{
    struct script_source *s = source(with_special());
    uint32_t allowed[] = {40, 10, 30, 20, 10}, seen = 0;
    struct asked a;
    struct script q;

    (void)state;
    ask(&a, "x");
    a.p.allowed_token_ids = allowed;
    a.p.n_allowed_token_ids = VT_COUNT(allowed);
    q = begin(s, &a);
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t id = script_token(&q, i);

        assert_true(id % 10 == 0 && id >= 10 && id <= 40);
        seen |= 1U << id / 10;
    }
    assert_int_equal(seen, 30);
    assert_int_equal(q.eos_at, VT_NO_STOP);
    assert_int_equal(q.stop_at, VT_NO_STOP);
    script_end(&q);
    script_source_close(s);
}

static void an_allowed_end_comes_by_chance(void **state)
{
    struct script_source *s = source(with_special());
    uint32_t allowed[] = {10, 20, 30, 40, STOP, EOS}, stop[] = {STOP, 999};
    uint32_t by_eos = 0, by_stop = 0, at;

    (void)state;
    for (uint32_t n = 0; n < 200; n++) {
        struct asked a;
        struct script q;

        ask(&a, "chatcmpl-0123abcd");
        a.p.min_tokens = n % 8;
        a.p.allowed_token_ids = allowed;
        a.p.n_allowed_token_ids = VT_COUNT(allowed);
        a.p.stop_token_ids = stop;
        a.p.n_stop_token_ids = 2;
        q = begin(s, &a);
        at = first_with(&q, a.p.min_tokens > 0 ? a.p.min_tokens - 1 : 0, EOS, STOP);
        if (at >= 40) {
            assert_int_equal(q.eos_at, VT_NO_STOP);
            assert_int_equal(q.stop_at, VT_NO_STOP);
        } else if (script_token(&q, at) == EOS) {
            by_eos++;
            assert_int_equal(q.eos_at, at);
            assert_int_equal(q.stop_at, VT_NO_STOP);
        } else {
            by_stop++;
            assert_int_equal(q.stop_at, at);
            assert_int_equal(q.stop_token, STOP);
            assert_int_equal(q.eos_at, VT_NO_STOP);
        }
        script_end(&q);
    }
    assert_true(by_eos > 50 && by_stop > 50);
    script_source_close(s);
}

/* ---- forced tokens ---------------------------------------------------- */

static void forced_tokens_win(void **state)
{
    static const struct {
        uint32_t token[4], n;
        bool ignore_eos;
        uint32_t min_tokens, eos_at, stop_at;
    } rows[] = {
        {{5, 6, 7}, 3, false, 0, VT_NO_STOP, VT_NO_STOP},
        {{5, EOS, 7}, 3, false, 0, 1, VT_NO_STOP},
        {{5, EOS, 7}, 3, true, 0, VT_NO_STOP, VT_NO_STOP},
        {{5, EOS, EOS}, 3, false, 3, 2, VT_NO_STOP},
        {{5, STOP, EOS}, 3, false, 2, VT_NO_STOP, 1},
        {{STOP, 7}, 2, false, 2, VT_NO_STOP, VT_NO_STOP},
    };
    struct script_source *s = source(with_special());
    uint32_t stop[] = {STOP};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        uint32_t token[4];
        struct asked a;
        struct script q;

        memcpy(token, rows[i].token, sizeof(token));
        ask(&a, "x");
        a.p.forced_token_ids = token;
        a.p.n_forced_token_ids = rows[i].n;
        a.p.ignore_eos = rows[i].ignore_eos;
        a.p.min_tokens = rows[i].min_tokens;
        a.p.stop_token_ids = stop;
        a.p.n_stop_token_ids = 1;
        q = begin(s, &a);
        memset(token, 0, sizeof(token)); /* the request is gone, the script is not */
        for (uint32_t k = 0; k < rows[i].n; k++)
            assert_int_equal(script_token(&q, k), rows[i].token[k]);
        assert_int_equal(q.max_tokens, 40);
        assert_int_equal(q.eos_at, rows[i].eos_at);
        assert_int_equal(q.stop_at, rows[i].stop_at);
        assert_true(script_token(&q, rows[i].n) != EOS);
        script_end(&q);
    }
    script_source_close(s);
}

/* ---- names ------------------------------------------------------------ */

static struct named {
    const char *id, *external;
    bool python;
    const char *core;
    bool made_up;
    int number; /* -1: none */
    uint32_t child;
} names[] = {
    {"cmpl-hdr-req-1-0-b9d83606", "cmpl-hdr-req-1-0", true, "hdr-req-1-0", false, 1, 0},
    {"cmpl-hdr-req-1-d7539b92", "cmpl-hdr-req-1", false, "hdr-req-1", false, 1, 0},
    {"chatcmpl-r-12-d7539b92", "chatcmpl-r-12", true, "r-12", false, 12, 0},
    {"cmpl-81a7831d6309fbe5-1-8aad9cf9", "cmpl-81a7831d6309fbe5-1", true,
     "81a7831d6309fbe5-1", true, 5, 0},
    {"cmpl-7ca10a90-3e431618", "cmpl-7ca10a90", false, "7ca10a90", true, 90, 0},
    {"chatcmpl-b0c6cd0fe3a7aef7-83ed3627", "chatcmpl-b0c6cd0fe3a7aef7", true,
     "b0c6cd0fe3a7aef7", true, 7, 0},
    {"cmpl-00000007-3e431618", "cmpl-00000007", false, "00000007", false, 7, 0},
    {"cmpl-81234567-3e431618", "cmpl-81234567", false, "81234567", true, 81234567, 0},
    {"1_cmpl-x-0-9c9c7ca4", "cmpl-x-0", true, "x-0", false, -1, 1},
    {"replay-12", NULL, false, "replay-12", false, 12, 0},
    {"replay-12-9c9c7ca4", NULL, false, "replay-12", false, 12, 0},
    {"replay-10000000", NULL, false, "replay-10000000", false, 10000000, 0},
    {"7ca10a90", NULL, false, "7ca10a90", false, 90, 0},
    {"cmpl-", NULL, false, "cmpl-", false, -1, 0},
    {"", NULL, false, "", true, -1, 0},
    {"x", "", false, "", true, -1, 0},
    {"99999999999999999999999", NULL, false, "99999999999999999999999", false, -1, 0},
};

static void names_are_taken_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(names); i++) {
        struct wire_request r = {.id = chars(names[i].id),
                                 .external_id = chars(names[i].external)};
        struct script_name n = {0};

        if (names[i].python)
            r.sampling = (struct mp_span){python_sampling, sizeof(python_sampling)};
        script_name_of(&n, &r, 1000);
        assert_int_equal(n.core.len, strlen(names[i].core));
        assert_memory_equal(n.core.at, names[i].core, n.core.len);
        assert_int_equal(n.made_up, names[i].made_up);
        assert_int_equal(n.child, names[i].child);
        assert_int_equal(n.has_number ? (int64_t)n.number : -1, names[i].number);
    }
}

/* ---- opening ---------------------------------------------------------- */

static void what_cannot_be_opened_is_said(void **state)
{
    static const uint32_t all[] = {0, 1};
    static const struct {
        struct vt_play_config c;
        const char *message;
    } rows[] = {
        {{.vocab_size = 0}, "a vocabulary of 0 tokens leaves none that is not special"},
        {{.vocab_size = 2, .skip_token = all, .n_skip_tokens = 2},
         "a vocabulary of 2 tokens leaves none that is not special"},
        {{.vocab_size = 9, .replay_tokens = "/nonexistent/t.jsonl"},
         "/nonexistent/t.jsonl: "},
        {{.vocab_size = 9, .replay_steps = "/nonexistent/t.jsonl"},
         "/nonexistent/t.jsonl: "},
        {{.vocab_size = 9, .lengths_from = "/nonexistent/t.jsonl"},
         "/nonexistent/t.jsonl: "},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct script_source *s;
        struct vt_err err;

        assert_int_not_equal(script_source_open(&s, &rows[i].c, &err), VT_OK);
        assert_null(s);
        assert_memory_equal(err.msg, rows[i].message, strlen(rows[i].message));
    }
    script_source_close(NULL);
}

int main(void)
{
    enum { FIXED = 12, N = VT_COUNT(pairs) };
    struct CMUnitTest tests[FIXED + N] = {
        cmocka_unit_test(random_output_never_ends_by_chance),
        cmocka_unit_test(random_output_is_uniform),
        cmocka_unit_test(an_id_beyond_the_vocabulary_is_no_matter),
        cmocka_unit_test(a_request_that_forbids_everything_is_served),
        cmocka_unit_test(requests_without_a_name_differ),
        cmocka_unit_test(choices_of_one_request_differ),
        cmocka_unit_test(limits_are_the_models_and_the_requests),
        cmocka_unit_test(allowed_tokens_are_all_there_is),
        cmocka_unit_test(an_allowed_end_comes_by_chance),
        cmocka_unit_test(forced_tokens_win),
        cmocka_unit_test(names_are_taken_apart),
        cmocka_unit_test(what_cannot_be_opened_is_said),
    };

    for (size_t i = 0; i < N; i++)
        tests[FIXED + i] = (struct CMUnitTest){.name = pairs[i].name,
                                               .test_func = keys_tell_requests_apart,
                                               .initial_state = &pairs[i]};
    return cmocka_run_group_tests_name("script", tests, NULL, NULL);
}
