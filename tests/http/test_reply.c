/* What replies say, how long they are, where they end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "http/reply/reply.h"
#include "schema_testing.h"

enum { EOS = 4091 }; /* of tiny-qwen3 */

static const uint32_t prompt_ids[] = {2514, 1703, 528};
static const char prompt_text[] = "hi there you";

static const struct vt_tokenizer *tiny; /* of all tests */

struct made { /* a request and a source, as most tests want them */
    struct api_context context;
    struct api_request r;
    struct api_prompt prompt;
    struct reply_source *s;
    struct reply out;
};

static struct reply_source *open_source(struct vt_serve_config c)
{
    struct reply_source *s;
    struct vt_err err = {0};

    c.seed = 7;
    if (!c.tokenizer)
        c.tokenizer = tiny;
    if (reply_source_open(&s, &c, &err) != VT_OK)
        fail_msg("%s", err.msg);
    return s;
}

static void begin(struct made *m, struct vt_serve_config c)
{
    *m = (struct made){.s = open_source(c)};
    m->context.tokenizer = c.tokenizer ? c.tokenizer : tiny;
    m->context.line = API_LINE_032;
    m->prompt = (struct api_prompt){prompt_ids, 3, prompt_text, strlen(prompt_text)};
    m->r = (struct api_request){
        .context = &m->context,
        .kind = API_CHAT,
        .prompt = &m->prompt,
        .n_prompts = 1,
        .n = 1,
        .max_tokens = 50,
        .limited = true,
        .skip_special = true,
        .temperature = 1,
        .logprobs = -1,
        .parallel_tools = true,
    };
}

static void end(struct made *m)
{
    vt_arena_free(&m->r.arena);
    reply_source_close(m->s);
}

static void make(struct made *m, struct reply *out, uint32_t choice, uint64_t number)
{
    struct reply_batch *b;
    struct vt_err err = {0};

    if (reply_batch_open(&b, m->s, &m->r, &err) != VT_OK ||
        reply_make(out, b, 0, choice, number, &err) != VT_OK)
        fail_msg("%s", err.msg);
    reply_batch_close(b);
}

static void say(struct made *m, uint64_t number)
{
    make(m, &m->out, 0, number);
    assert_true(m->out.n >= 1 && m->out.n <= m->r.max_tokens);
    assert_int_equal(m->out.text_end[m->out.n - 1], m->out.text_len);
    for (uint32_t i = 1; i < m->out.n; i++)
        assert_true(m->out.text_end[i - 1] <= m->out.text_end[i]);
}

static void assert_text_is_of_tokens(const struct made *m)
{
    struct vt_buf text = {0};

    vt_buf_str(&text, "");
    vt_tokenizer_decode(m->context.tokenizer, m->out.token, m->out.n, VT_SKIP_SPECIAL,
                        &text);
    assert_int_equal(text.len, m->out.text_len);
    assert_memory_equal(text.data, m->out.text, text.len);
    vt_buf_free(&text);
}

/* ---- random words ---------------------------------------------------- */

static void words_are_the_text_of_their_tokens(void **state)
{
    struct vt_tokenizer *builtin;
    const struct vt_tokenizer *all[2] = {tiny, NULL};

    (void)state;
    assert_int_equal(vt_tokenizer_builtin(&builtin, NULL), VT_OK);
    all[1] = builtin;
    for (size_t i = 0; i < VT_COUNT(all); i++) {
        struct made m;

        begin(&m, (struct vt_serve_config){.tokenizer = all[i]});
        for (uint64_t number = 0; number < 50; number++) {
            say(&m, number);
            assert_int_equal(m.out.n, 50);
            assert_text_is_of_tokens(&m);
        }
        end(&m);
    }
    vt_tokenizer_close(builtin);
}

static void words_are_sentences(void **state)
{
    struct made m;
    size_t stops = 0;

    (void)state;
    begin(&m, (struct vt_serve_config){0});
    m.r.max_tokens = 400;
    say(&m, 1);
    assert_in_range(m.out.text[0], 'A', 'Z');
    for (size_t i = 0; i + 2 < m.out.text_len; i++)
        if (m.out.text[i] == '.') {
            stops++;
            assert_int_equal(m.out.text[i + 1], ' ');
            assert_in_range(m.out.text[i + 2], 'A', 'Z');
        }
    assert_in_range(stops, 15, 70);
    end(&m);
}

static void a_vocabulary_without_words_will_do(void **state)
{
    static const char json[] =
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"!\":2},\"merges\":[]"
        "},"
        "\"decoder\":{\"type\":\"ByteLevel\"},\"pre_tokenizer\":{\"type\":"
        "\"ByteLevel\","
        "\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true}}";
    struct vt_tokenizer_texts texts = {.tokenizer = json,
                                       .tokenizer_len = sizeof(json) - 1};
    struct vt_tokenizer *t;
    struct made m;
    struct vt_err err;

    (void)state;
    if (vt_tokenizer_from(&t, &texts, &err) != VT_OK)
        fail_msg("%s", err.msg);
    begin(&m, (struct vt_serve_config){.tokenizer = t});
    say(&m, 1);
    assert_int_equal(m.out.text_len, 50);
    assert_int_equal(strspn(m.out.text, "ab!"), 50);
    m.r.limited = false; /* there is no EOS to end it with */
    m.r.max_tokens = 100000;
    say(&m, 1);
    assert_int_equal(m.out.end, REPLY_EOS);
    assert_text_is_of_tokens(&m);
    end(&m);
    vt_tokenizer_close(t);
}

/* ---- lengths --------------------------------------------------------- */

static void a_stated_limit_is_the_length(void **state)
{
    struct made m;

    (void)state;
    begin(&m, (struct vt_serve_config){0});
    for (m.r.max_tokens = 1; m.r.max_tokens < 2000; m.r.max_tokens += 331) {
        say(&m, m.r.max_tokens);
        assert_int_equal(m.out.n, m.r.max_tokens);
        assert_int_equal(m.out.end, REPLY_LENGTH);
        assert_string_equal(m.out.stop_reason, "null");
    }
    end(&m);
}

static void without_a_limit_an_eos_ends_it(void **state)
{
    struct made m;
    double sum = 0;

    (void)state;
    begin(&m, (struct vt_serve_config){0});
    m.r.limited = false;
    m.r.max_tokens = 100000;
    for (uint64_t number = 0; number < 500; number++) {
        say(&m, number);
        assert_int_equal(m.out.end, REPLY_EOS);
        assert_int_equal(m.out.token[m.out.n - 1], EOS);
        assert_text_is_of_tokens(&m); /* in which no EOS is shown */
        sum += m.out.n;
    }
    assert_in_range((uint64_t)(sum / 500), 150, 250);
    end(&m);
}

static void min_tokens_come_before_an_eos(void **state)
{
    struct made m;

    (void)state;
    begin(&m, (struct vt_serve_config){0});
    m.r.limited = false;
    m.r.max_tokens = 100000;
    m.r.min_tokens = 3000;
    say(&m, 1);
    assert_in_range(m.out.n, 3001, 100000);
    end(&m);
}

static void ignore_eos_goes_on_to_the_limit(void **state)
{
    struct made m;

    (void)state;
    begin(&m, (struct vt_serve_config){.answers = VT_ANSWER_ECHO});
    m.r.limited = false;
    m.r.ignore_eos = true;
    m.r.max_tokens = 3000;
    say(&m, 1);
    assert_int_equal(m.out.n, 3000);
    assert_int_equal(m.out.end, REPLY_LENGTH);
    assert_memory_equal(m.out.text, prompt_text, strlen(prompt_text));
    end(&m);
}

static void lengths_are_drawn_from_a_trace(void **state)
{
    struct made m;
    bool sooner = false;

    (void)state;
    begin(&m, (struct vt_serve_config){.lengths_from = VT_TEST_DIR
                                       "/sim/data/closed-c16.trace.jsonl.gz"});
    m.r.max_tokens = 100000;
    for (uint64_t number = 0; number < 50; number++) {
        say(&m, number);
        sooner |= m.out.end == REPLY_EOS;
        assert_true(m.out.n < 5000);
    }
    assert_true(sooner);
    end(&m);
}

static void a_broken_source_is_an_error(void **state)
{
    static const struct vt_serve_config rows[] = {
        {.lengths_from = "/nonexistent/trace.jsonl"},
        {.answers = VT_ANSWER_DATASET},
        {.answers = VT_ANSWER_DATASET, .dataset = "/nonexistent/data.jsonl"},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_serve_config c = rows[i];
        struct reply_source *s;
        struct vt_err err = {0};

        c.tokenizer = tiny;
        assert_int_not_equal(reply_source_open(&s, &c, &err), VT_OK);
        assert_null(s);
        assert_true(err.msg[0] != '\0');
    }
}

/* ---- seeds ----------------------------------------------------------- */

static void seeds_say_what_is_said(void **state)
{
    static const struct {
        bool seeded, greedy, same;
    } rows[] = {{true, false, true}, {false, true, true}, {false, false, false}};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct made a, b;

        begin(&a, (struct vt_serve_config){0});
        begin(&b, (struct vt_serve_config){0});
        a.r.seeded = b.r.seeded = rows[i].seeded;
        a.r.temperature = b.r.temperature = rows[i].greedy ? 0 : 1;
        say(&a, 1);
        say(&b, 2);
        assert_int_equal(strcmp(a.out.text, b.out.text) == 0, rows[i].same);
        assert_int_equal(a.out.key == b.out.key, rows[i].same);
        say(&b, 1);
        assert_string_equal(a.out.text, b.out.text);
        b.r.seed++;
        b.r.seeded = true;
        say(&b, 1);
        assert_string_not_equal(a.out.text, b.out.text);
        end(&a);
        end(&b);
    }
}

static void choices_differ(void **state)
{
    struct made m;
    struct reply other;

    (void)state;
    begin(&m, (struct vt_serve_config){0});
    m.r.seeded = true;
    say(&m, 1);
    make(&m, &other, 1, 1);
    assert_string_not_equal(m.out.text, other.text);
    end(&m);
}

/* ---- stops ----------------------------------------------------------- */

/* Any three characters of a text end it where they come first; what is out before is
 * never taken back. */
static void stop_strings_end_it(void **state)
{
    struct made m, stopped;

    (void)state;
    begin(&m, (struct vt_serve_config){0});
    m.r.seeded = true;
    say(&m, 1);
    for (size_t at = 0; at + 3 < m.out.text_len; at += 7) {
        char stop[4] = {m.out.text[at], m.out.text[at + 1], m.out.text[at + 2], 0};
        const char *list[] = {"never to be found", stop};
        size_t first = (size_t)(strstr(m.out.text, stop) - m.out.text);

        begin(&stopped, (struct vt_serve_config){0});
        stopped.r.seeded = true;
        stopped.r.stop = list;
        stopped.r.n_stop = 2;
        say(&stopped, 1);
        assert_int_equal(stopped.out.end, REPLY_STOP_STRING);
        assert_int_equal(stopped.out.text_len, first);
        assert_memory_equal(stopped.out.text, m.out.text, first);
        assert_int_equal(stopped.out.stop_reason[0], '"');
        stopped.r.include_stop = true;
        say(&stopped, 1);
        assert_int_equal(stopped.out.text_len, first + 3);
        end(&stopped);
    }
    end(&m);
}

static void as_much_is_held_back_as_a_stop_could_take(void **state)
{
    const char *list[] = {"0123456789"};
    struct made m, held;

    (void)state;
    begin(&m, (struct vt_serve_config){0});
    begin(&held, (struct vt_serve_config){0});
    m.r.seeded = held.r.seeded = true;
    held.r.stop = list;
    held.r.n_stop = 1;
    say(&m, 1);
    say(&held, 1);
    assert_string_equal(m.out.text, held.out.text);
    for (uint32_t i = 0; i + 1 < m.out.n; i++) {
        uint32_t all = m.out.text_end[i];

        assert_int_equal(held.out.text_end[i], all > 9 ? all - 9 : 0);
    }
    end(&m);
    end(&held);
}

static void stop_tokens_end_it(void **state)
{
    struct made m, stopped;

    (void)state;
    begin(&m, (struct vt_serve_config){0});
    begin(&stopped, (struct vt_serve_config){0});
    m.r.seeded = stopped.r.seeded = true;
    say(&m, 1);
    stopped.r.stop_id = &m.out.token[20];
    stopped.r.n_stop_ids = 1;
    say(&stopped, 1);
    assert_int_equal(stopped.out.end, REPLY_STOP_TOKEN);
    assert_true(stopped.out.n <= 21);
    assert_int_equal(stopped.out.token[stopped.out.n - 1], m.out.token[20]);
    assert_int_equal(strtol(stopped.out.stop_reason, NULL, 10), m.out.token[20]);
    assert_int_equal(stopped.out.text_len, m.out.text_end[stopped.out.n - 2]);
    stopped.r.min_tokens = 40; /* later ones may, sooner ones may not */
    say(&stopped, 1);
    assert_in_range(stopped.out.n, 40, 50);
    end(&m);
    end(&stopped);
}

static void only_allowed_tokens_are_used(void **state)
{
    static const uint32_t allowed[] = {10, 20, 30};
    struct made m;

    (void)state;
    begin(&m, (struct vt_serve_config){.answers = VT_ANSWER_ECHO});
    m.r.limited = false;
    m.r.allowed_id = allowed;
    m.r.n_allowed_ids = 3;
    say(&m, 1);
    assert_int_equal(m.out.n, 50); /* no EOS is among them */
    for (uint32_t i = 0; i < m.out.n; i++)
        assert_int_equal(m.out.token[i] % 10, 0);
    assert_text_is_of_tokens(&m);
    end(&m);
}

/* ---- echoes and datasets --------------------------------------------- */

static void an_echo_is_the_prompt(void **state)
{
    struct made m;

    (void)state;
    begin(&m, (struct vt_serve_config){.answers = VT_ANSWER_ECHO});
    say(&m, 1);
    assert_string_equal(m.out.text, prompt_text);
    assert_int_equal(m.out.end, REPLY_EOS);
    m.r.max_tokens = 2;
    say(&m, 1);
    assert_string_equal(m.out.text, "hi there");
    assert_int_equal(m.out.end, REPLY_LENGTH);
    m.prompt.text = "a <|im_end|> in the text"; /* is text */
    m.prompt.text_len = strlen(m.prompt.text);
    m.r.max_tokens = 50;
    say(&m, 1);
    assert_string_equal(m.out.text, m.prompt.text);
    m.prompt.text = "";
    m.prompt.text_len = 0;
    say(&m, 1);
    assert_int_equal(m.out.n, 1);
    assert_int_equal(m.out.text_len, 0);
    end(&m);
}

static void answers_come_from_a_dataset(void **state)
{
    static const char rows[] =
        "{\"prompt\":\"hi there you\",\"output\":\"Hello to you.\"}\n"
        "{\"prompt\":\"other\",\"output\":\"Something else.\"}\n";
    char path[] = "/tmp/vtwin-dataset-XXXXXX";
    char name[64];
    int fd = mkstemp(path);
    struct made m;

    (void)state;
    snprintf(name, sizeof(name), "%s.jsonl", path);
    assert_int_equal(rename(path, name), 0);
    assert_int_equal(write(fd, rows, sizeof(rows) - 1), sizeof(rows) - 1);
    close(fd);
    begin(&m, (struct vt_serve_config){.answers = VT_ANSWER_DATASET, .dataset = name});
    unlink(name);
    say(&m, 1);
    assert_string_equal(m.out.text, "Hello to you.");
    assert_int_equal(m.out.end, REPLY_EOS);
    m.prompt.text = "not in it";
    m.prompt.text_len = strlen(m.prompt.text);
    for (uint64_t number = 0; number < 20; number++) {
        say(&m, number);
        assert_true(strcmp(m.out.text, "Hello to you.") == 0 ||
                    strcmp(m.out.text, "Something else.") == 0);
    }
    end(&m);
}

/* ---- tools ----------------------------------------------------------- */

static const char parameters[] =
    "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"},\"unit\":{"
    "\"enum\":[\"C\",\"F\"]},\"days\":{\"type\":\"integer\",\"minimum\":1}},"
    "\"required\":[\"city\",\"unit\"],\"additionalProperties\":false}";

static void give_tools(struct made *m, struct api_tool tool[2], struct vt_arena *a,
                       enum api_tool_choice choice)
{
    tool[0] = (struct api_tool){.name = "get_weather"};
    tool[1] = (struct api_tool){.name = "noop"};
    assert_int_equal(
        vt_json_parse(a, parameters, strlen(parameters), 1, &tool[0].parameters, NULL),
        VT_OK);
    m->r.tool = tool;
    m->r.n_tools = 2;
    m->r.tool_choice = choice;
    m->r.max_tokens = 500;
}

static void check_call(const struct made *m, const struct api_tool *tool, uint32_t i)
{
    const struct reply_call *c = &m->out.call[i];
    struct vt_arena a = {0};
    const struct vt_node *n;
    struct judge j = {.root = tool[0].parameters};
    bool weather = strcmp(c->name, "get_weather") == 0;

    assert_int_equal(vt_json_parse(&a, c->arguments, c->arguments_len, 1, &n, NULL),
                     VT_OK);
    if (weather && !judge(&j, tool[0].parameters, n))
        fail_msg("%.*s: %s", (int)c->arguments_len, c->arguments, j.why);
    if (!weather)
        assert_int_equal(c->arguments_len, 2);
    assert_true(c->named < c->n && c->first + c->n <= m->out.n);
    assert_int_equal(c->arguments_end[c->n - 1], c->arguments_len);
    assert_memory_equal(c->id, "chatcmpl-tool-", 14);
    vt_arena_free(&a);
}

static void calls_have_arguments_that_fit(void **state)
{
    struct made m;
    struct api_tool tool[2];
    struct vt_arena a = {0};
    uint32_t most = 0;

    (void)state;
    begin(&m, (struct vt_serve_config){0});
    give_tools(&m, tool, &a, API_TOOLS_REQUIRED);
    for (uint64_t number = 0; number < 100; number++) {
        say(&m, number);
        assert_true(m.out.n_calls >= 1 && !m.out.calls_cut);
        assert_int_equal(m.out.end, REPLY_EOS);
        for (uint32_t i = 0; i < m.out.n_calls; i++)
            check_call(&m, tool, i);
        most = m.out.n_calls > most ? m.out.n_calls : most;
    }
    assert_true(most > 1);
    m.r.parallel_tools = false;
    for (uint64_t number = 0; number < 100; number++) {
        say(&m, number);
        assert_int_equal(m.out.n_calls, 1);
    }
    end(&m);
    vt_arena_free(&a);
}

static void a_named_tool_is_the_one(void **state)
{
    struct made m;
    struct api_tool tool[2];
    struct vt_arena a = {0};

    (void)state;
    begin(&m, (struct vt_serve_config){0});
    give_tools(&m, tool, &a, API_TOOLS_NAMED);
    m.r.tool_index = 1;
    for (uint64_t number = 0; number < 20; number++) {
        say(&m, number);
        assert_int_equal(m.out.n_calls, 1);
        assert_string_equal(m.out.call[0].name, "noop");
    }
    end(&m);
    vt_arena_free(&a);
}

static void auto_calls_as_often_as_it_is_told(void **state)
{
    static const struct {
        double rate;
        uint32_t least, most;
    } rows[] = {{0, 0, 0}, {0.5, 60, 140}, {1, 200, 200}};
    struct api_tool tool[2];

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct made m;
        struct vt_arena a = {0};
        uint32_t calls = 0;

        begin(&m, (struct vt_serve_config){.tool_rate = rows[i].rate});
        give_tools(&m, tool, &a, API_TOOLS_AUTO);
        for (uint64_t number = 0; number < 200; number++) {
            say(&m, number);
            calls += m.out.n_calls > 0;
        }
        assert_in_range(calls, rows[i].least, rows[i].most);
        m.r.tool_choice = API_TOOLS_NONE;
        say(&m, 1);
        assert_int_equal(m.out.n_calls, 0);
        end(&m);
        vt_arena_free(&a);
    }
}

/* Wherever it is cut, what is out grows and is a beginning of the whole. */
static void calls_are_cut_at_the_limit(void **state)
{
    struct made whole, m;
    struct api_tool tool[2];
    struct vt_arena a = {0};

    (void)state;
    begin(&whole, (struct vt_serve_config){0});
    begin(&m, (struct vt_serve_config){0});
    give_tools(&whole, tool, &a, API_TOOLS_NAMED);
    give_tools(&m, tool, &a, API_TOOLS_NAMED);
    say(&whole, 5);
    for (m.r.max_tokens = 1; m.r.max_tokens < whole.out.n - 3; m.r.max_tokens++) {
        say(&m, 5);
        assert_int_equal(m.out.end, REPLY_LENGTH);
        assert_int_equal(m.out.n, m.r.max_tokens);
        assert_true(m.out.calls_cut ||
                    m.out.call[0].arguments_len == whole.out.call[0].arguments_len);
        if (m.out.n_calls > 0)
            assert_memory_equal(m.out.call[0].arguments, whole.out.call[0].arguments,
                                m.out.call[0].arguments_len);
    }
    end(&whole);
    end(&m);
    vt_arena_free(&a);
}

/* ---- forms ------------------------------------------------------------ */

static void forms_are_kept(void **state)
{
    static const struct {
        enum api_format format;
        const char *constraint, *regex;
        bool unformed;
    } rows[] = {
        {API_JSON_OBJECT, "null", "^\\{.*\\}$", false},
        {API_JSON_SCHEMA,
         "{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":"
         "{\"const\":5}}}",
         "^\\{\"a\": 5\\}$", false},
        {API_CHOICE, "[\"red\",\"green\"]", "^(red|green)$", false},
        {API_REGEX, "\"[0-9]{3}\"", "^[0-9]{3}$", false},
        {API_REGEX, "\"(?=x)\"", "^[A-Z]", true},
        {API_GRAMMAR, "\"root ::= x\"", "^[A-Z]", true},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct made m;
        struct vt_arena a = {0};

        begin(&m, (struct vt_serve_config){0});
        m.r.format = rows[i].format;
        m.r.max_tokens = 300;
        assert_int_equal(vt_json_parse(&a, rows[i].constraint,
                                       strlen(rows[i].constraint), 1, &m.r.constraint,
                                       NULL),
                         VT_OK);
        for (uint64_t number = 0; number < 20; number++) {
            say(&m, number);
            assert_int_equal(m.out.unformed, rows[i].unformed);
            if (!pcre_matches(rows[i].regex, strlen(rows[i].regex), m.out.text,
                              m.out.text_len))
                fail_msg("%s: %s", rows[i].constraint, m.out.text);
            assert_int_equal(m.out.end, rows[i].unformed ? REPLY_LENGTH : REPLY_EOS);
        }
        end(&m);
        vt_arena_free(&a);
    }
}

/* All choices of a request share its budget; when that is gone, they say the simplest,
 * which is made once. */
static void many_choices_of_a_costly_form_fit(void **state)
{
    static const char text[] =
        "{\"type\":\"array\",\"uniqueItems\":true,\"minItems\":12,\"items\":{\"type\":"
        "\"string\",\"pattern\":\"^([a-w]{2}x?){60}$\"}}";
    enum { CHOICES = 400 };
    struct vt_arena a = {0};
    struct reply_batch *b;
    struct made m;
    const char *last = "";
    uint32_t same = 0;

    (void)state;
    begin(&m, (struct vt_serve_config){0});
    m.r.format = API_JSON_SCHEMA;
    m.r.max_tokens = 5000;
    m.r.n = CHOICES;
    assert_int_equal(
        vt_json_parse(&a, text, sizeof(text) - 1, 1, &m.r.constraint, NULL), VT_OK);
    assert_int_equal(reply_batch_open(&b, m.s, &m.r, NULL), VT_OK);
    for (uint32_t i = 0; i < CHOICES; i++) {
        struct judge j = {.root = m.r.constraint};
        struct vt_arena own = {0};
        const struct vt_node *value;

        assert_int_equal(reply_make(&m.out, b, 0, i, 1, NULL), VT_OK);
        assert_false(m.out.unformed);
        assert_int_equal(
            vt_json_parse(&own, m.out.text, m.out.text_len, 1, &value, NULL), VT_OK);
        if (!judge(&j, m.r.constraint, value))
            fail_msg("choice %u: %s", i, j.why);
        same = strcmp(m.out.text, last) == 0 ? same + 1 : 0;
        assert_true(same == 0 || i > 3); /* drawn at first */
        last = m.out.text;
        vt_arena_free(&own);
    }
    assert_true(same > CHOICES / 2);
    reply_batch_close(b);
    end(&m);
    vt_arena_free(&a);
}

static int open_tiny(void **state)
{
    struct vt_tokenizer *t;

    (void)state;
    if (vt_tokenizer_open(&t, VT_TEST_DIR "/cases/tiny-qwen3", NULL) != VT_OK)
        return -1;
    tiny = t;
    return 0;
}

static int close_tiny(void **state)
{
    struct vt_tokenizer *t;

    (void)state;
    memcpy(&t, &tiny, sizeof(t));
    vt_tokenizer_close(t);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_the_text_of_their_tokens),
        cmocka_unit_test(words_are_sentences),
        cmocka_unit_test(a_vocabulary_without_words_will_do),
        cmocka_unit_test(a_stated_limit_is_the_length),
        cmocka_unit_test(without_a_limit_an_eos_ends_it),
        cmocka_unit_test(min_tokens_come_before_an_eos),
        cmocka_unit_test(ignore_eos_goes_on_to_the_limit),
        cmocka_unit_test(lengths_are_drawn_from_a_trace),
        cmocka_unit_test(a_broken_source_is_an_error),
        cmocka_unit_test(seeds_say_what_is_said),
        cmocka_unit_test(choices_differ),
        cmocka_unit_test(stop_strings_end_it),
        cmocka_unit_test(as_much_is_held_back_as_a_stop_could_take),
        cmocka_unit_test(stop_tokens_end_it),
        cmocka_unit_test(only_allowed_tokens_are_used),
        cmocka_unit_test(an_echo_is_the_prompt),
        cmocka_unit_test(answers_come_from_a_dataset),
        cmocka_unit_test(calls_have_arguments_that_fit),
        cmocka_unit_test(a_named_tool_is_the_one),
        cmocka_unit_test(auto_calls_as_often_as_it_is_told),
        cmocka_unit_test(calls_are_cut_at_the_limit),
        cmocka_unit_test(forms_are_kept),
        cmocka_unit_test(many_choices_of_a_costly_form_fit),
    };

    return cmocka_run_group_tests_name("reply", tests, open_tiny, close_tiny);
}
