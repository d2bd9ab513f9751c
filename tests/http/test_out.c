/* Writers of responses: what holds for every kind, whatever vLLM's bytes are. */
#include "out_testing.h"

#include <math.h>
#include <stdio.h>

struct one { /* a request with one choice, and its reply */
    struct vt_tokenizer *t;
    struct reply_source *s;
    struct api_context context;
    struct api_request r;
    struct api_prompt prompt;
    struct reply reply;
    struct out_choice c;
};

static const uint32_t prompt_ids[] = {2514, 1703, 528};

static void begin(struct one *o, enum api_kind kind, uint32_t n_tokens,
                  int32_t logprobs)
{
    struct vt_serve_config config = {.seed = 3};
    struct reply_batch *b;
    struct vt_err err = {0};

    memset(o, 0, sizeof(*o));
    if (vt_tokenizer_open(&o->t, VT_TEST_DIR "/cases/tiny-qwen3", &err) != VT_OK)
        fail_msg("%s", err.msg);
    config.tokenizer = o->t;
    assert_int_equal(reply_source_open(&o->s, &config, NULL), VT_OK);
    o->context = (struct api_context){
        .tokenizer = o->t, .line = API_LINE_032, .fingerprint = "vllm-0.32.0-18f18d96"};
    o->prompt = (struct api_prompt){prompt_ids, 3, "hi there you", 12};
    o->r = (struct api_request){.context = &o->context,
                                .kind = kind,
                                .model = "tiny",
                                .id = "x-1",
                                .prompt = &o->prompt,
                                .n_prompts = 1,
                                .n = 1,
                                .stream = true,
                                .stream_interval = 1,
                                .max_tokens = n_tokens,
                                .limited = true,
                                .skip_special = true,
                                .temperature = 1,
                                .top_p = 1,
                                .logprobs = logprobs,
                                .prompt_logprobs = -1};
    assert_int_equal(reply_batch_open(&b, o->s, &o->r, NULL), VT_OK);
    assert_int_equal(reply_make(&o->reply, b, 0, 0, 1, NULL), VT_OK);
    reply_batch_close(b);
    o->c = (struct out_choice){.reply = &o->reply};
    assert_true(out_begin(&o->r, &o->c));
}

static void end(struct one *o)
{
    vt_arena_free(&o->r.arena);
    reply_source_close(o->s);
    vt_tokenizer_close(o->t);
}

static void write_whole(struct one *o, struct vt_buf *b)
{
    o->r.stream = false;
    out_whole(b, &o->r, &o->c, 1);
    o->r.stream = true;
    assert_false(b->failed);
}

static void write_stream(struct one *o, struct vt_buf *b)
{
    for (uint32_t i = 1; i <= o->reply.n; i++)
        out_tokens(b, &o->r, &o->c, i, &o->c, 1);
    out_done(b, &o->r, &o->c, 1);
    vt_buf_char(b, '\0');
    assert_false(b->failed);
}

/* The JSON of each event; `each` sees its tree. */
static void for_events(const struct vt_buf *b, void *user,
                       void (*each)(void *user, const struct vt_node *event))
{
    const char *p = b->data;

    while ((p = strstr(p, "data: "))) {
        const char *stop = strstr(p, "\n\n");
        struct vt_arena a = {0};

        p += 6;
        if (*p == '{')
            each(user, tree_of(&a, p, (size_t)(stop - p)));
        vt_arena_free(&a);
        p = stop;
    }
}

/* ---- JSON ------------------------------------------------------------ */

static void texts_are_escaped_as_python_does(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"", "\"\""},
        {"plain \xc3\xa9\xf0\x9f\x98\x80", "\"plain \xc3\xa9\xf0\x9f\x98\x80\""},
        {"\"\\/", "\"\\\"\\\\/\""},
        {"\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\""},
        {"\x01\x1f\x7f", "\"\\u0001\\u001f\x7f\""},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_buf b = {0};

        vt_buf_json_str(&b, rows[i].text, strlen(rows[i].text));
        vt_buf_char(&b, '\0');
        assert_string_equal(b.data, rows[i].want);
        vt_buf_free(&b);
    }
}

static void floats_are_the_shortest_that_read_back(void **state)
{
    struct vt_buf quick = {0}, slow = {0};

    (void)state;
    for (uint64_t i = 0; i < 20000; i++) {
        float v = i < 100 ? (float)i * 0.125F : (float)(-30 * vt_draw_f64(1, i, 0));

        if (i >= 10000)
            v = (float)((double)v * vt_draw_f64(1, i, 1) * vt_draw_f64(1, i, 2) * 1e-3);
        vt_buf_clear(&quick);
        vt_buf_clear(&slow);
        vt_buf_py_f32(&quick, v);
        vt_buf_py_f64(&slow, (double)v);
        assert_int_equal(quick.len, slow.len);
        assert_memory_equal(quick.data, slow.data, quick.len);
    }
    vt_buf_clear(&quick);
    vt_buf_py_f64(&quick, 1);
    assert_memory_equal(quick.data, "1.0", 3);
    vt_buf_free(&quick);
    vt_buf_free(&slow);
}

/* ---- streams --------------------------------------------------------- */

struct told {
    struct vt_buf text;
    uint32_t events, pieces;
};

/* Wherever the kinds put it. */
static void add_text(void *user, const struct vt_node *e)
{
    struct told *t = user;
    const struct vt_node *choices = vt_get(e, "choices"), *delta = vt_get(e, "delta");
    const struct vt_node *text = NULL;

    t->events++;
    if (choices && choices->n > 0) {
        text = vt_get(choices->u.item, "text");
        if (!text)
            text = vt_get(vt_get(choices->u.item, "delta"), "content");
    } else if (delta) {
        text = delta->kind == VT_STR ? delta : vt_get(delta, "text");
    }
    if (text && text->kind == VT_STR) {
        vt_buf_add(&t->text, text->u.str, text->n);
        t->pieces += text->n > 0;
    }
}

static void streams_say_what_the_whole_says(void **state)
{
    (void)state;
    for (int kind = API_COMPLETIONS; kind <= API_MESSAGES; kind++) {
        struct one o;
        struct vt_buf b = {0};
        struct told told = {.events = 0};

        begin(&o, (enum api_kind)kind, 40, -1);
        write_stream(&o, &b);
        for_events(&b, &told, add_text);
        assert_int_equal(told.text.len, o.reply.text_len);
        assert_memory_equal(told.text.data, o.reply.text, told.text.len);
        assert_int_equal(told.pieces, 40);
        vt_buf_clear(&b);
        write_whole(&o, &b);
        vt_buf_char(&b, '\0');
        assert_non_null(strstr(b.data, o.reply.text));
        vt_buf_free(&b);
        vt_buf_free(&told.text);
        end(&o);
    }
}

/* The first token and the last leave at once; between them `interval` at a time. */
static void an_interval_gathers_tokens(void **state)
{
    struct one o;
    struct vt_buf b = {0};
    struct told told = {.events = 0};

    (void)state;
    begin(&o, API_COMPLETIONS, 10, -1);
    o.r.stream_interval = 4;
    out_tokens(&b, &o.r, &o.c, 1, &o.c, 1);
    assert_int_equal(o.c.told, 1);
    out_tokens(&b, &o.r, &o.c, 4, &o.c, 1);
    assert_int_equal(o.c.told, 1);
    out_tokens(&b, &o.r, &o.c, 5, &o.c, 1);
    assert_int_equal(o.c.told, 5);
    out_tokens(&b, &o.r, &o.c, 8, &o.c, 1);
    out_tokens(&b, &o.r, &o.c, 10, &o.c, 1);
    assert_int_equal(o.c.told, 10);
    out_tokens(&b, &o.r, &o.c, 10, &o.c, 1); /* nothing is new */
    vt_buf_char(&b, '\0');
    for_events(&b, &told, add_text);
    assert_int_equal(told.events, 3);
    assert_int_equal(told.text.len, o.reply.text_len);
    vt_buf_free(&b);
    vt_buf_free(&told.text);
    end(&o);
}

static void a_broken_stream_says_so(void **state)
{
    static const struct {
        enum api_kind kind;
        const char *first, *last;
    } rows[] = {
        {API_COMPLETIONS, "data: {\"error\":{", "}}\n\ndata: [DONE]\n\n"},
        {API_CHAT, "data: {\"error\":{", "}}\n\ndata: [DONE]\n\n"},
        {API_RESPONSES, "event: error\ndata: {\"error\":{", "}}\n\n"},
        {API_MESSAGES, "event: error\ndata: {\"type\":\"error\"", "\"Bad\"}}\n\n"},
    };
    struct api_error e = {
        .status = 500, .type = "InternalServerError", .message = "Bad"};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct one o;
        struct vt_buf b = {0};

        begin(&o, rows[i].kind, 4, -1);
        out_broken(&b, &o.r, &e);
        vt_buf_char(&b, '\0');
        assert_memory_equal(b.data, rows[i].first, strlen(rows[i].first));
        assert_string_equal(b.data + b.len - 1 - strlen(rows[i].last), rows[i].last);
        vt_buf_free(&b);
        end(&o);
    }
}

/* ---- log probabilities ------------------------------------------------ */

enum { TOP = 5 };

struct rows { /* of log probabilities, as text, one after the other */
    struct vt_buf all;
    uint32_t n;
};

static void check_entry(const struct vt_node *e)
{
    const struct vt_node *top = vt_get(e, "top_logprobs");
    double last = 0, sum = 0;

    assert_int_equal(top->n, TOP);
    assert_string_equal(str_of(&top->u.item[0], "token", ""), str_of(e, "token", "?"));
    for (uint32_t i = 0; i < top->n; i++) {
        double p = real_of(&top->u.item[i], "logprob", 1);

        assert_true(p < 0);
        if (i > 1)
            assert_true(p < last);
        last = p;
        sum += exp(p);
    }
    assert_true(sum < 1);
}

static void add_rows(void *user, const struct vt_node *e)
{
    struct rows *rows = user;
    const struct vt_node *choices = vt_get(e, "choices");
    const struct vt_node *logprobs =
        choices && choices->n > 0 ? vt_get(choices->u.item, "logprobs") : NULL;
    const struct vt_node *list = vt_get(logprobs, "content");

    for (uint32_t i = 0; list && i < list->n; i++, rows->n++) {
        check_entry(&list->u.item[i]);
        vt_buf_json_node(&rows->all, &list->u.item[i], &json_body);
    }
}

static void log_probabilities_are_plausible_and_the_same_again(void **state)
{
    struct one o;
    struct vt_buf b = {0}, body = {0};
    struct rows streamed = {.n = 0}, whole = {.n = 0};

    (void)state;
    begin(&o, API_CHAT, 30, TOP);
    write_stream(&o, &b);
    for_events(&b, &streamed, add_rows);
    write_whole(&o, &body);
    vt_buf_clear(&b);
    vt_buf_str(&b, "data: ");
    vt_buf_add(&b, body.data, body.len);
    vt_buf_str(&b, "\n\n");
    for_events(&b, &whole, add_rows);
    assert_int_equal(streamed.n, 30);
    assert_int_equal(streamed.all.len, whole.all.len);
    assert_memory_equal(streamed.all.data, whole.all.data, whole.all.len);
    vt_buf_free(&b);
    vt_buf_free(&body);
    vt_buf_free(&streamed.all);
    vt_buf_free(&whole.all);
    end(&o);
}

static void completions_have_the_sampled_token_and_the_best(void **state)
{
    struct one o;
    struct vt_buf b = {0};
    const struct vt_node *logprobs, *tokens, *offsets, *top;
    int64_t at = 0;

    (void)state;
    begin(&o, API_COMPLETIONS, 30, TOP);
    write_whole(&o, &b);
    logprobs = vt_get(vt_get(tree_of(&o.r.arena, b.data, b.len), "choices")->u.item,
                      "logprobs");
    tokens = vt_get(logprobs, "tokens");
    offsets = vt_get(logprobs, "text_offset");
    top = vt_get(logprobs, "top_logprobs");
    assert_int_equal(tokens->n, 30);
    for (uint32_t i = 0; i < tokens->n; i++) {
        assert_non_null(vt_get(&top->u.item[i], tokens->u.item[i].u.str));
        assert_in_range(top->u.item[i].n, 1, TOP + 1);
        assert_int_equal(offsets->u.item[i].u.integer, at);
        at += tokens->u.item[i].n;
    }
    vt_buf_free(&b);
    end(&o);
}

/* ---- several choices -------------------------------------------------- */

static void choices_of_several_prompts_are_numbered_through(void **state)
{
    struct one o;
    struct api_prompt prompts[2];
    struct out_choice all[4] = {0};
    struct vt_buf b = {0};
    const struct vt_node *body, *choices;

    (void)state;
    begin(&o, API_COMPLETIONS, 5, -1);
    prompts[0] = prompts[1] = o.prompt;
    o.r.prompt = prompts;
    o.r.n_prompts = 2;
    o.r.n = 2;
    for (uint32_t i = 0; i < 4; i++)
        all[i] = (struct out_choice){.reply = &o.reply, .index = i, .prompt = i / 2};
    o.r.stream = false;
    out_whole(&b, &o.r, all, 4);
    body = tree_of(&o.r.arena, b.data, b.len);
    choices = vt_get(body, "choices");
    assert_int_equal(choices->n, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(int_of(&choices->u.item[i], "index", -1), i);
    assert_int_equal(int_of(vt_get(body, "usage"), "prompt_tokens", 0), 6);
    assert_int_equal(int_of(vt_get(body, "usage"), "completion_tokens", 0), 20);
    vt_buf_free(&b);
    end(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_escaped_as_python_does),
        cmocka_unit_test(floats_are_the_shortest_that_read_back),
        cmocka_unit_test(streams_say_what_the_whole_says),
        cmocka_unit_test(an_interval_gathers_tokens),
        cmocka_unit_test(a_broken_stream_says_so),
        cmocka_unit_test(log_probabilities_are_plausible_and_the_same_again),
        cmocka_unit_test(completions_have_the_sampled_token_and_the_best),
        cmocka_unit_test(choices_of_several_prompts_are_numbered_through),
    };

    return cmocka_run_group_tests_name("out", tests, NULL, NULL);
}
