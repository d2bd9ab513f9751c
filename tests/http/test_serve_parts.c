/* Parts of the server that need no socket: names, faults, what the loop reads itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http/serve/serve.h"

/* ---- models ---------------------------------------------------------- */

static const char *const names[] = {"big", "big-alias"};
static const struct vt_serve_lora loras[] = {{"sql", "/adapters/sql"}};

static struct vt_serve_config two_names(void)
{
    return (struct vt_serve_config){
        .name = names, .n_names = 2, .root = "/big", .lora = loras, .n_loras = 1};
}

static void test_adapters_come_and_go_and_models_stay(void **state)
{
    struct vt_serve_config c = two_names();
    struct models m;
    uint32_t lora;
    bool added;

    (void)state;
    assert_int_equal(models_open(&m, &c, NULL), VT_OK);
    assert_true(models_find(&m, "big-alias", &lora) && !lora);
    assert_true(models_find(&m, "sql", &lora) && lora);
    assert_false(models_find(&m, "other", &lora));

    assert_int_equal(models_add(&m, "law", "/l", &added, NULL), VT_OK);
    assert_true(added);
    assert_int_equal(models_add(&m, "law", "/l2", &added, NULL), VT_OK);
    assert_false(added);
    assert_string_equal(m.model[3].parent, "big");
    assert_true(models_remove(&m, "sql"));
    assert_false(models_remove(&m, "sql"));
    assert_false(models_remove(&m, "big"));
    assert_true(models_find(&m, "law", &lora) && lora);
    assert_int_equal(m.n, 3);
    models_close(&m);
}

static void test_an_adapter_may_not_take_a_models_name(void **state)
{
    static const struct vt_serve_lora bad[] = {{"big", "/x"}};
    struct vt_serve_config c = two_names();
    struct vt_err err = {0};
    struct models m;

    (void)state;
    c.lora = bad;
    assert_int_equal(models_open(&m, &c, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "'big'"));
    models_close(&m);
}

/* ---- faults ---------------------------------------------------------- */

static void test_faults_come_as_often_as_they_were_asked_for(void **state)
{
    static const struct {
        double rate;
        uint32_t first;
        uint32_t least, most; /* of 1000 */
    } cases[] = {{0, 0, 0, 0},
                 {1, 0, 1000, 1000},
                 {0.25, 0, 200, 300},
                 {0, 7, 7, 7},
                 {0.5, 100, 500, 600}};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(cases); i++) {
        struct vt_serve_config c = {.failure_rate = cases[i].rate,
                                    .fail_first = cases[i].first};
        struct faults f;
        struct api_error e;
        uint32_t n = 0;
        bool midway;

        assert_int_equal(faults_open(&f, &c, NULL), VT_OK);
        for (int k = 0; k < 1000; k++) {
            bool fails = faults_next(&f, "m", &e, &midway);

            if (k < (int)cases[i].first)
                assert_true(fails);
            if (fails)
                assert_in_range(e.status, 400, 503);
            n += fails;
        }
        assert_in_range(n, cases[i].least, cases[i].most);
    }
}

static void test_faults_are_of_the_kinds_asked_for(void **state)
{
    struct vt_serve_config c = {.failure_rate = 1,
                                .failure_kinds = "rate_limit,broken_stream"};
    struct faults f;
    struct api_error e;
    uint32_t limited = 0, broken = 0;
    bool midway;

    (void)state;
    assert_int_equal(faults_open(&f, &c, NULL), VT_OK);
    for (int i = 0; i < 200; i++) {
        assert_true(faults_next(&f, "the model", &e, &midway));
        assert_non_null(strstr(e.message, "'the model'"));
        limited += e.status == 429 && !midway;
        broken += e.status == 500 && midway;
    }
    assert_int_equal(limited + broken, 200);
    assert_true(limited > 50 && broken > 50);
}

static void test_unknown_kinds_of_faults_are_refused(void **state)
{
    static const char *const bad[] = {"", "rate", "rate_limit,", "rate_limit,x"};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(bad); i++) {
        struct vt_serve_config c = {.failure_kinds = bad[i]};
        struct vt_err err = {0};
        struct faults f;

        assert_int_equal(faults_open(&f, &c, &err), VT_EINPUT);
        assert_non_null(strstr(err.msg, "server_error"));
    }
}

/* ---- what the loop does itself --------------------------------------- */

/* Schemas and expressions are foreign programs of a kind: a hundred bytes of them can
 * take longer than a token may be late. */
static void test_what_is_drawn_by_a_form_is_the_workers(void **state)
{
    static const char *const stops[17] = {"x", "x", "x", "x", "x", "x", "x", "x", "x",
                                          "x", "x", "x", "x", "x", "x", "x", "x"};
    static const uint32_t ids[] = {1, 2, 3};
    static const struct api_tool tool = {.name = "f"};
    static const struct {
        const char *name;
        enum api_format format;
        uint32_t n_tools, n_stop;
        enum api_tool_choice choice;
        bool by_loop;
    } rows[] = {
        {"words", API_TEXT, .by_loop = true},
        {"a schema", API_JSON_SCHEMA},
        {"an expression", API_REGEX},
        {"a choice", API_CHOICE},
        {"an object", API_JSON_OBJECT},
        {"tools", API_TEXT, .n_tools = 1, .choice = API_TOOLS_AUTO},
        {"tools that are not used", API_TEXT, 1, .choice = API_TOOLS_NONE,
         .by_loop = true},
        {"some stop strings", API_TEXT, .n_stop = 16, .by_loop = true},
        {"many stop strings", API_TEXT, .n_stop = 17},
    };
    struct vt_tokenizer *t;
    struct vt_serve_config c = {.seed = 1};
    struct server s = {.c = &c};

    (void)state;
    assert_int_equal(vt_tokenizer_builtin(&t, NULL), VT_OK);
    c.tokenizer = t;
    assert_int_equal(reply_source_open(&s.replies, &c, NULL), VT_OK);
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct api_context context = {.tokenizer = t};
        struct api_prompt prompt = {ids, 3, "abc", 3};
        struct exchange x = {.s = &s,
                             .method = "POST",
                             .kind = API_COMPLETIONS,
                             .r = {.context = &context,
                                   .kind = API_COMPLETIONS,
                                   .prompt = &prompt,
                                   .n_prompts = 1,
                                   .n = 1,
                                   .max_tokens = 8,
                                   .limited = true,
                                   .stream_interval = 1,
                                   .logprobs = -1,
                                   .prompt_logprobs = -1,
                                   .temperature = 1,
                                   .format = rows[i].format,
                                   .tool = &tool,
                                   .n_tools = rows[i].n_tools,
                                   .tool_choice = rows[i].choice,
                                   .stop = stops,
                                   .n_stop = rows[i].n_stop}};

        if (exchange_prepare(&x, false) != rows[i].by_loop)
            fail_msg("%s", rows[i].name);
        assert_false(x.bad);
        assert_true(exchange_prepare(&x, true));
        assert_int_equal(x.n_choices, 1);
        vt_arena_free(&x.r.arena);
    }
    reply_source_close(s.replies);
    vt_tokenizer_close(t);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adapters_come_and_go_and_models_stay),
        cmocka_unit_test(test_an_adapter_may_not_take_a_models_name),
        cmocka_unit_test(test_faults_come_as_often_as_they_were_asked_for),
        cmocka_unit_test(test_faults_are_of_the_kinds_asked_for),
        cmocka_unit_test(test_unknown_kinds_of_faults_are_refused),
        cmocka_unit_test(test_what_is_drawn_by_a_form_is_the_workers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
