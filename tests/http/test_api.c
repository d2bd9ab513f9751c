/* What a request asks for, field by field and kind by kind. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "api_testing.h"

static const struct api_headers json = {.content_type = "application/json"};

static void read_as(struct api_request *r, const struct api_context *c,
                    enum api_kind kind, const char *body)
{
    struct api_error e;

    if (!api_read(r, c, kind, body, strlen(body), &json, &e))
        fail_msg("%s\n%s", body, e.message);
}

/* The prompt as text again. */
static void assert_prompt(const struct api_request *r, const char *want)
{
    struct vt_buf text = {0};

    vt_tokenizer_decode(tokenizer, r->prompt[0].id, r->prompt[0].n, VT_KEEP_SPECIAL,
                        &text);
    assert_string_equal(text.data, want);
    vt_buf_free(&text);
}

/* ---- options --------------------------------------------------------- */

#define BODY(fields) "{\"model\": \"tiny\", \"prompt\": \"Hello world\"" fields "}"

static void has_defaults(void **state)
{
    struct api_context c = context_of(API_LINE_026);
    struct api_request r = {0};

    (void)state;
    read_as(&r, &c, API_COMPLETIONS, BODY(""));
    assert_int_equal(r.n, 1);
    assert_int_equal(r.n_prompts, 1);
    assert_int_equal(r.prompt[0].n, 2);
    assert_int_equal(r.max_tokens, 16);
    assert_false(r.limited);
    assert_false(r.stream || r.echo || r.ignore_eos || r.include_stop || r.seeded);
    assert_true(r.skip_special && r.parallel_tools);
    assert_true(r.temperature == 1.0 && r.top_p == 1.0);
    assert_int_equal(r.logprobs, -1);
    assert_int_equal(r.prompt_logprobs, -1);
    assert_int_equal(r.stream_interval, 1);
    assert_int_equal(r.dp_rank, -1);
    assert_int_equal(r.format, API_TEXT);
    assert_int_equal(r.tool_choice, API_TOOLS_NONE);
    assert_null(r.cache_salt);
    vt_arena_free(&r.arena);
}

static void reads_what_is_said(void **state)
{
    struct api_context c = context_of(API_LINE_032);
    struct api_request r = {0};

    (void)state;
    read_as(
        &r, &c, API_COMPLETIONS,
        BODY(", \"max_tokens\": \"9\", \"n\": 3, \"seed\": -4, \"stop\": \"a\", "
             "\"stop_token_ids\": [7, 8], \"min_tokens\": 2, \"ignore_eos\": \"on\", "
             "\"echo\": true, \"logprobs\": 2, \"priority\": 5, \"temperature\": 0.5, "
             "\"cache_salt\": \"s\", \"session_id\": \"me\", \"stream\": true, "
             "\"stream_interval\": 4, \"stream_options\": {\"include_usage\": 1, "
             "\"continuous_usage_stats\": true}, \"allowed_token_ids\": [1, 2, 3], "
             "\"return_token_ids\": true, \"include_stop_str_in_output\": true, "
             "\"return_tokens_as_token_ids\": true, \"skip_special_tokens\": false"));
    assert_int_equal(r.max_tokens, 9);
    assert_true(r.limited);
    assert_int_equal(r.n, 3);
    assert_true(r.seeded);
    assert_int_equal(r.seed, -4);
    assert_int_equal(r.n_stop, 1);
    assert_string_equal(r.stop[0], "a");
    assert_int_equal(r.n_stop_ids, 2);
    assert_int_equal(r.stop_id[1], 8);
    assert_int_equal(r.n_allowed_ids, 3);
    assert_int_equal(r.min_tokens, 2);
    assert_true(r.ignore_eos && r.echo && r.stream && r.include_usage);
    assert_true(r.continuous_usage && r.return_token_ids && r.tokens_as_ids);
    assert_true(r.include_stop && !r.skip_special);
    assert_int_equal(r.stream_interval, 4);
    assert_int_equal(r.logprobs, 2);
    assert_int_equal(r.prompt_logprobs, 2); /* of echo */
    assert_int_equal(r.priority, 5);
    assert_string_equal(r.cache_salt, "s");
    assert_string_equal(r.session, "me");
    assert_string_equal(r.prompt[0].text, "Hello world");
    vt_arena_free(&r.arena);
}

static void headers_come_first(void **state)
{
    const struct api_headers h = {.content_type = "application/json; charset=utf-8",
                                  .request_id = "mine",
                                  .traceparent = "00-1-2-01",
                                  .session = "s1",
                                  .priority = "-7",
                                  .dp_rank = "3"};
    const char *body = BODY(", \"request_id\": \"theirs\", \"priority\": 1");
    struct api_context c = context_of(API_LINE_032);
    struct api_request r = {0};
    struct api_error e;

    (void)state;
    assert_true(api_read(&r, &c, API_COMPLETIONS, body, strlen(body), &h, &e));
    assert_string_equal(r.id, "cmpl-mine");
    assert_string_equal(r.traceparent, "00-1-2-01");
    assert_string_equal(r.session, "s1");
    assert_int_equal(r.priority, -7);
    assert_int_equal(r.dp_rank, 3);
    read_as(&r, &c, API_COMPLETIONS, body);
    assert_string_equal(r.id, "cmpl-theirs");
    assert_int_equal(r.priority, 1);
    vt_arena_free(&r.arena);
}

static void usage_can_be_forced(void **state)
{
    struct api_context c = context_of(API_LINE_026);
    struct api_request r = {0};

    (void)state;
    c.force_usage = true;
    read_as(&r, &c, API_COMPLETIONS, BODY(", \"stream\": true"));
    assert_true(r.include_usage && r.continuous_usage);
    read_as(&r, &c, API_COMPLETIONS, BODY(""));
    assert_false(r.include_usage);
    vt_arena_free(&r.arena);
}

static void knows_adapters(void **state)
{
    struct api_context c = context_of(API_LINE_026);
    struct api_request r = {0};

    (void)state;
    read_as(&r, &c, API_COMPLETIONS, "{\"model\": \"adapter\", \"prompt\": \"x\"}");
    assert_true(r.lora);
    read_as(&r, &c, API_COMPLETIONS, "{\"prompt\": \"x\"}");
    assert_false(r.lora);
    assert_string_equal(r.model, "tiny");
    vt_arena_free(&r.arena);
}

/* ---- lengths --------------------------------------------------------- */

static struct row {
    const char *name;
    enum api_line line;
    enum api_kind kind;
    const char *body;
    uint32_t prompt, max_tokens; /* or a message */
    const char *message;
} rows[] = {
    {"a chat takes all the room there is", API_LINE_026, API_CHAT,
     "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}", 10, 2038, NULL},
    {"max_completion_tokens wins", API_LINE_026, API_CHAT,
     "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \"max_tokens\": 9, "
     "\"max_completion_tokens\": 5}",
     10, 5, NULL},
    {"null is the default", API_LINE_026, API_COMPLETIONS,
     BODY(", \"max_tokens\": null"), 2, 16, NULL},
    {"0.32 gives what is left", API_LINE_032, API_COMPLETIONS,
     BODY(", \"max_tokens\": 2047"), 2, 2046, NULL},
    {"0.26 does not", API_LINE_026, API_COMPLETIONS, BODY(", \"max_tokens\": 2047"), 0,
     0,
     "This model's maximum context length is 2048 tokens. However, you requested 2047 "
     "output tokens and your prompt contains at least 2 input tokens, for a total of "
     "at "
     "least 2049 tokens. Please reduce the length of the input prompt or the number of "
     "requested output tokens. (parameter=input_tokens, value=2)"},
    {"more than the model has", API_LINE_026, API_COMPLETIONS,
     BODY(", \"max_tokens\": 5000"), 0, 0,
     "max_tokens=5000 cannot be greater than max_model_len=max_total_tokens=2048. "
     "Please "
     "request fewer output tokens. (parameter=max_tokens, value=5000)"},
    {"the same in 0.32", API_LINE_032, API_COMPLETIONS, BODY(", \"max_tokens\": 5000"),
     0, 0,
     "max_tokens=5000 cannot be greater than max_model_len=2048. Please request fewer "
     "output tokens. (parameter=max_tokens, value=5000)"},
    {"prompts can be cut", API_LINE_026, API_COMPLETIONS,
     "{\"prompt\": [1, 2, 3, 4], \"truncate_prompt_tokens\": 3}", 3, 16, NULL},
    {"but not to more than fits", API_LINE_032, API_COMPLETIONS,
     BODY(", \"truncate_prompt_tokens\": 4000"), 0, 0,
     "truncate_prompt_tokens=4000 cannot be greater than max_model_len = 2048. Please "
     "request a smaller truncation size. (parameter=truncate_prompt_tokens, "
     "value=4000)"},
    {"echo without a token still makes one", API_LINE_026, API_COMPLETIONS,
     BODY(", \"max_tokens\": 0, \"echo\": true"), 2, 1, NULL},
    {"nothing to say", API_LINE_026, API_COMPLETIONS, "{\"prompt\": [[]]}", 0, 0,
     "The decoder prompt cannot be empty"},
    {"ids that the vocabulary lacks", API_LINE_032, API_COMPLETIONS,
     BODY(", \"stop_token_ids\": [3, 4096, -1]"), 0, 0,
     "token_id(s) [4096, -1] in stop_token_ids contain out-of-vocab token ids. "
     "Vocabulary "
     "size: 4096 (parameter=stop_token_ids, value=[4096, -1])"},
    {"none allowed", API_LINE_026, API_COMPLETIONS, BODY(", \"allowed_token_ids\": []"),
     0, 0,
     "allowed_token_ids is not None and empty! (parameter=allowed_token_ids, "
     "value=[])"},
    {"too many of the likeliest", API_LINE_026, API_CHAT,
     "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \"logprobs\": true, "
     "\"top_logprobs\": 21}",
     0, 0,
     "Requested sample logprobs of 21, which is greater than max allowed: 20 "
     "(parameter=logprobs, value=21)"},
    {"templates of strangers", API_LINE_026, API_CHAT,
     "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \"chat_template\": "
     "\"x\"}",
     0, 0,
     "Chat template is passed with request, but --trust-request-chat-template is not "
     "set. "
     "Refused request with untrusted chat template."},
    {"pictures", API_LINE_026, API_CHAT,
     "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", "
     "\"image_url\": {\"url\": \"x\"}}]}], \"model\": \"tiny\"}",
     0, 0, "tiny is not a multimodal model"},
};

static void fits_the_model(void **state)
{
    const struct row *row = *state;
    struct api_context c = context_of(row->line);
    struct api_request r = {0};
    struct api_error e;
    bool ok = api_read(&r, &c, row->kind, row->body, strlen(row->body), &json, &e);

    if (row->message != NULL) {
        assert_false(ok);
        assert_string_equal(e.message, row->message);
        assert_int_equal(e.status, 400);
        assert_string_equal(e.type, "BadRequestError");
    } else {
        if (!ok)
            fail_msg("%s", e.message);
        assert_int_equal(r.prompt[0].n, row->prompt);
        assert_int_equal(r.max_tokens, row->max_tokens);
        assert_int_equal(r.echo_only, r.echo);
    }
    vt_arena_free(&r.arena);
}

/* A prompt of n ids, each its own number modulo 4000. */
static void put_ids(struct vt_buf *body, const char *key, uint32_t n, const char *more)
{
    vt_buf_clear(body);
    vt_buf_printf(body, "{\"%s\": [", key);
    for (uint32_t i = 0; i < n; i++)
        vt_buf_printf(body, i > 0 ? ",%u" : "%u", i % 4000);
    vt_buf_printf(body, "]%s}", more);
}

static void long_lists_of_ids_are_counted_but_not_kept(void **state)
{
    enum { N = 1000000 };
    struct api_context c = context_of(API_LINE_032);
    struct vt_buf body = {0};
    struct api_request r = {0};
    struct api_error e;

    (void)state;
    c.max_values = 10000;
    for (int embeds = 0; embeds < 2; embeds++) {
        put_ids(&body, embeds ? "input" : "prompt", N, "");
        assert_false(api_read(&r, &c, embeds ? API_EMBEDDINGS : API_COMPLETIONS,
                              body.data, body.len, &json, &e));
        assert_string_equal(
            e.message,
            "This model's maximum context length is 2048 tokens. However, your prompt "
            "contains 1000000 input tokens, which exceeds this limit even without any "
            "output tokens. Please reduce the length of the input prompt. "
            "(parameter=input_tokens, value=1000000)");
        assert_true(r.arena.used_bytes < 1 << 20);
    }
    /* Either end can be had of it. */
    for (int left = 0; left < 2; left++) {
        put_ids(&body, "prompt", N,
                left ? ", \"truncate_prompt_tokens\": 3"
                     : ", \"truncate_prompt_tokens\": 3, \"truncation_side\": "
                       "\"right\"");
        read_as(&r, &c, API_COMPLETIONS, body.data);
        assert_int_equal(r.prompt[0].n, 3);
        assert_int_equal(r.prompt[0].id[0], left ? (N - 3) % 4000 : 0);
        assert_int_equal(r.prompt[0].id[2], left ? (N - 1) % 4000 : 2);
    }
    vt_buf_free(&body);
    vt_arena_free(&r.arena);
}

static void bodies_of_too_many_values_are_refused(void **state)
{
    struct api_context c = context_of(API_LINE_026);
    struct vt_buf body = {0};
    struct api_request r = {0};
    struct api_error e;

    (void)state;
    c.max_values = 10000;
    put_ids(&body, "stop_token_ids", 20000, ", \"prompt\": \"x\"");
    assert_false(api_read(&r, &c, API_COMPLETIONS, body.data, body.len, &json, &e));
    assert_int_equal(e.status, 413);
    assert_string_equal(e.message,
                        "The body holds more than 10000 JSON values, which is "
                        "as many as this server reads.");
    vt_buf_free(&body);
    vt_arena_free(&r.arena);
}

/* n is vLLM's to limit, the product of prompts and n the server's. */
static void choices_are_limited(void **state)
{
    static const struct {
        enum api_kind kind;
        const char *body, *message; /* NULL: it is fine */
    } cases[] = {
        {API_COMPLETIONS, "{\"prompt\": [\"a\", \"b\"], \"n\": 50}", NULL},
        {API_COMPLETIONS, "{\"prompt\": [\"a\", \"b\"], \"n\": 51}",
         "2 prompts with n=51 ask for 102 choices; this server makes at most 100 for a "
         "request (--max-choices)."},
        {API_COMPLETIONS, "{\"prompt\": \"a\", \"n\": 101}",
         "1 prompts with n=101 ask for 101 choices; this server makes at most 100 for "
         "a "
         "request (--max-choices)."},
        {API_COMPLETIONS, "{\"prompt\": \"a\", \"n\": 16385}",
         "n must be at most 16384, got 16385. To increase this limit, set the "
         "VLLM_MAX_N_SEQUENCES environment variable."},
        {API_CHAT,
         "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], \"n\": 101}",
         "1 prompts with n=101 ask for 101 choices; this server makes at most 100 for "
         "a "
         "request (--max-choices)."},
    };
    struct api_context c = context_of(API_LINE_026);
    struct api_request r = {0};
    struct vt_buf body = {0};
    struct api_error e;

    (void)state;
    c.max_choices = 100;
    for (size_t i = 0; i < VT_COUNT(cases); i++) {
        bool ok = api_read(&r, &c, cases[i].kind, cases[i].body, strlen(cases[i].body),
                           &json, &e);

        assert_int_equal(ok, cases[i].message == NULL);
        if (!ok) {
            assert_int_equal(e.status, 400);
            assert_string_equal(e.message, cases[i].message);
        }
    }
    for (uint32_t n = 100; n <= 101; n++) {
        vt_buf_clear(&body);
        vt_buf_str(&body, "{\"input\": [\"x\"");
        for (uint32_t i = 1; i < n; i++)
            vt_buf_str(&body, ",\"x\"");
        vt_buf_str(&body, "]}");
        assert_int_equal(
            api_read(&r, &c, API_EMBEDDINGS, body.data, body.len, &json, &e), n == 100);
    }
    assert_string_equal(e.message,
                        "101 prompts with n=1 ask for 101 choices; this server "
                        "makes at most 100 for a request (--max-choices).");
    vt_buf_free(&body);
    vt_arena_free(&r.arena);
}

static void a_text_that_cannot_fit_is_not_tokenised(void **state)
{
    struct api_context c = context_of(API_LINE_032);
    struct vt_buf body = {0};
    struct api_request r = {0};
    struct api_error e;

    (void)state;
    vt_buf_str(&body, "{\"prompt\": \"");
    for (int i = 0; i < 200000; i++)
        vt_buf_char(&body, 'x');
    vt_buf_str(&body, "\"}");
    assert_false(api_read(&r, &c, API_COMPLETIONS, body.data, body.len, &json, &e));
    assert_string_equal(e.param, "input_text");
    assert_non_null(
        strstr(e.message, "your prompt contains 200000 characters (more than"));
    vt_arena_free(&r.arena);
    vt_buf_free(&body);
}

/* ---- chats ----------------------------------------------------------- */

static struct chat {
    const char *name;
    enum api_kind kind;
    const char *body, *prompt, *last;
} chats[] = {
    {"parts of text are lines", API_CHAT,
     "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", "
     "\"text\": "
     "\"a\"}, {\"type\": \"text\", \"text\": \"b\"}]}]}",
     "<|im_start|>user\na\nb<|im_end|>\n<|im_start|>assistant\n", "a\nb"},
    {"calls of tools are text of the assistant", API_CHAT,
     "{\"messages\": [{\"role\": \"user\", \"content\": \"q\"}, {\"role\": "
     "\"assistant\", "
     "\"content\": \"c\", \"tool_calls\": [{\"id\": \"1\", \"type\": \"function\", "
     "\"function\": {\"name\": \"f\", \"arguments\": \"{}\"}}]}, {\"role\": \"tool\", "
     "\"tool_call_id\": \"1\", \"content\": \"5\"}]}",
     "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\nc\n<tool_call>\n{\"name\": "
     "\"f\", \"arguments\": "
     "{}}\n</tool_call><|im_end|>\n<|im_start|>tool\n5<|im_end|>\n"
     "<|im_start|>assistant\n",
     "q"},
    {"the last message may stay open", API_CHAT,
     "{\"messages\": [{\"role\": \"user\", \"content\": \"q\"}, {\"role\": "
     "\"assistant\", "
     "\"content\": \"It is\"}], \"continue_final_message\": true, "
     "\"add_generation_prompt\": false}",
     "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\nIt is", "q"},
    {"no answer is asked for", API_CHAT,
     "{\"messages\": [{\"role\": \"user\", \"content\": \"q\"}], "
     "\"add_generation_prompt\": false}",
     "<|im_start|>user\nq<|im_end|>\n", "q"},
    {"responses: a string", API_RESPONSES,
     "{\"input\": \"q\", \"instructions\": \"Be brief.\"}",
     "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nq<|im_end|>\n"
     "<|im_start|>assistant\n",
     "q"},
    {"responses: items", API_RESPONSES,
     "{\"input\": [{\"role\": \"user\", \"content\": [{\"type\": \"input_text\", "
     "\"text\": \"q\"}]}, {\"type\": \"function_call\", \"name\": \"f\", "
     "\"arguments\": "
     "\"{}\", \"call_id\": \"1\"}, {\"type\": \"function_call_output\", \"call_id\": "
     "\"1\", \"output\": \"5\"}]}",
     "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<tool_call>\n{\"name\": "
     "\"f\", \"arguments\": "
     "{}}\n</tool_call><|im_end|>\n<|im_start|>tool\n5<|im_end|>\n"
     "<|im_start|>assistant\n",
     "q"},
    {"messages: blocks", API_MESSAGES,
     "{\"model\": \"tiny\", \"max_tokens\": 4, \"system\": [{\"type\": \"text\", "
     "\"text\": \"S\"}], \"messages\": [{\"role\": \"assistant\", \"content\": "
     "[{\"type\": \"text\", \"text\": \"c\"}, {\"type\": \"tool_use\", \"id\": \"1\", "
     "\"name\": \"f\", \"input\": {\"a\": [1, \"x\"]}}]}, {\"role\": \"user\", "
     "\"content\": [{\"type\": \"tool_result\", \"tool_use_id\": \"1\", \"content\": "
     "\"5\"}, {\"type\": \"text\", \"text\": \"q\"}]}]}",
     "<|im_start|>system\nS<|im_end|>\n<|im_start|>assistant\nc\n<tool_call>\n{"
     "\"name\": "
     "\"f\", \"arguments\": {\"a\": [1, \"x\"]}}\n</tool_call><|im_end|>\n"
     "<|im_start|>tool\n5<|im_end|>\n<|im_start|>user\nq<|im_end|>\n"
     "<|im_start|>assistant\n",
     "q"},
};

static void makes_a_prompt_of_messages(void **state)
{
    const struct chat *row = *state;
    struct api_context c = context_of(API_LINE_032);
    struct api_request r = {0};

    read_as(&r, &c, row->kind, row->body);
    assert_prompt(&r, row->prompt);
    assert_string_equal(r.prompt[0].text, row->last);
    assert_int_equal(r.prompt[0].text_len, strlen(row->last));
    vt_arena_free(&r.arena);
}

/* Each call joins the message of those before it, which is not copied each time. */
static void calls_in_a_row_take_memory_once(void **state)
{
    enum { CALLS = 4000 };
    struct api_context c = context_of(API_LINE_032);
    const struct api_headers h = {.content_type = "application/json"};
    struct api_request r = {0};
    struct api_error e = {0};
    struct vt_buf body = {0};

    (void)state;
    c.max_model_len = 1 << 20;
    vt_buf_str(&body, "{\"input\": [{\"role\": \"user\", \"content\": \"q\"}");
    for (unsigned i = 0; i < CALLS; i++)
        vt_buf_str(&body,
                   ", {\"type\": \"function_call\", \"call_id\": \"c\", "
                   "\"name\": \"f\", \"arguments\": \"{}\"}"
                   ", {\"type\": \"reasoning\", \"id\": \"r\", \"summary\": []}");
    vt_buf_str(&body, "]}");
    if (!api_read(&r, &c, API_RESPONSES, body.data, body.len, &h, &e))
        fail_msg("%s", e.message);
    assert_true(r.arena.used_bytes < 32 * body.len);
    vt_arena_free(&r.arena);
    vt_buf_free(&body);
}

/* ---- tools and formats ----------------------------------------------- */

#define CHAT(fields) \
    "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], " fields "}"
#define TOOLS                                                                   \
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\"}}, "   \
    "{\"type\": \"function\", \"function\": {\"name\": \"g\", \"parameters\": " \
    "{\"type\": \"object\"}}}]"

static struct choice {
    const char *name;
    enum api_kind kind;
    const char *body;
    enum api_tool_choice choice;
    uint32_t n, index;
} choices[] = {
    {"tools alone are a choice", API_CHAT, CHAT(TOOLS), API_TOOLS_AUTO, 2, 0},
    {"none", API_CHAT, CHAT(TOOLS ", \"tool_choice\": \"none\""), API_TOOLS_NONE, 2, 0},
    {"required", API_CHAT, CHAT(TOOLS ", \"tool_choice\": \"required\""),
     API_TOOLS_REQUIRED, 2, 0},
    {"named", API_CHAT,
     CHAT(TOOLS ", \"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": "
                "\"g\"}}"),
     API_TOOLS_NAMED, 2, 1},
    {"responses: flat", API_RESPONSES,
     "{\"input\": \"q\", \"tools\": [{\"type\": \"web_search\"}, {\"type\": "
     "\"function\", "
     "\"name\": \"g\", \"parameters\": {}}], \"tool_choice\": {\"type\": \"function\", "
     "\"name\": \"g\"}}",
     API_TOOLS_NAMED, 1, 0},
    {"messages: any", API_MESSAGES,
     "{\"model\": \"tiny\", \"max_tokens\": 4, \"messages\": [{\"role\": \"user\", "
     "\"content\": \"q\"}], \"tools\": [{\"name\": \"g\", \"input_schema\": {\"type\": "
     "\"object\"}}], \"tool_choice\": {\"type\": \"any\"}}",
     API_TOOLS_REQUIRED, 1, 0},
};

static void chooses_tools(void **state)
{
    const struct choice *row = *state;
    struct api_context c = context_of(API_LINE_032);
    struct api_request r = {0};

    read_as(&r, &c, row->kind, row->body);
    assert_int_equal(r.n_tools, row->n);
    assert_int_equal(r.tool_choice, row->choice);
    assert_string_equal(r.tool[r.n_tools - 1].name, "g");
    assert_non_null(r.tool[r.n_tools - 1].parameters);
    if (row->choice == API_TOOLS_NAMED)
        assert_int_equal(r.tool_index, row->index);
    vt_arena_free(&r.arena);
}

static struct format {
    const char *name;
    enum api_kind kind;
    const char *body;
    enum api_format format;
    enum vt_kind constraint; /* VT_NULL: none */
} formats[] = {
    {"json_object", API_CHAT, CHAT("\"response_format\": {\"type\": \"json_object\"}"),
     API_JSON_OBJECT, VT_NULL},
    {"json_schema", API_CHAT,
     CHAT(
         "\"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"name\": "
         "\"x\", \"schema\": {\"type\": \"object\"}}}"),
     API_JSON_SCHEMA, VT_MAP},
    {"a schema as text", API_COMPLETIONS,
     BODY(", \"structured_outputs\": {\"json\": \"{\\\"type\\\": \\\"object\\\"}\"}"),
     API_JSON_SCHEMA, VT_MAP},
    {"choice", API_COMPLETIONS, BODY(", \"structured_outputs\": {\"choice\": [\"a\"]}"),
     API_CHOICE, VT_LIST},
    {"regex", API_COMPLETIONS, BODY(", \"structured_outputs\": {\"regex\": \"a+\"}"),
     API_REGEX, VT_STR},
    {"grammar", API_COMPLETIONS, BODY(", \"structured_outputs\": {\"grammar\": \"x\"}"),
     API_GRAMMAR, VT_STR},
    {"responses: text.format", API_RESPONSES,
     "{\"input\": \"q\", \"text\": {\"format\": {\"type\": \"json_schema\", \"name\": "
     "\"x\", \"schema\": {\"type\": \"object\"}}}}",
     API_JSON_SCHEMA, VT_MAP},
};

static void shapes_the_output(void **state)
{
    const struct format *row = *state;
    struct api_context c = context_of(API_LINE_026);
    struct api_request r = {0};

    read_as(&r, &c, row->kind, row->body);
    assert_int_equal(r.format, row->format);
    if (row->constraint == VT_NULL)
        assert_null(r.constraint);
    else
        assert_int_equal(r.constraint->kind, row->constraint);
    vt_arena_free(&r.arena);
}

/* ---- embeddings ------------------------------------------------------ */

static void embed(const char *body, struct vt_arena *a, const struct vt_node **out)
{
    struct api_context c = context_of(API_LINE_026);
    struct api_request r = {0};
    struct vt_buf text = {0};
    struct vt_err err;

    read_as(&r, &c, API_EMBEDDINGS, body);
    api_embeddings_json(&text, &r);
    if (vt_json_parse(a, text.data, text.len, 1, out, &err) != VT_OK)
        fail_msg("%s", err.msg);
    vt_buf_free(&text);
    vt_arena_free(&r.arena);
}

static const struct vt_node *vector_of(const struct vt_node *answer, uint32_t i)
{
    return vt_get(&vt_get(answer, "data")->u.item[i], "embedding");
}

static double product(const struct vt_node *a, const struct vt_node *b)
{
    double sum = 0;

    for (uint32_t i = 0; i < a->n; i++)
        sum += a->u.item[i].u.real * b->u.item[i].u.real;
    return sum;
}

static void vectors_depend_on_tokens_alone(void **state)
{
    struct vt_arena a = {0};
    const struct vt_node *one, *two, *v;

    (void)state;
    embed("{\"model\": \"tiny\", \"input\": [\"Hello world\", \"other\", \"Hello\"]}",
          &a, &one);
    embed("{\"input\": \"Hello world\"}", &a, &two);
    assert_string_equal(text_of(one, "object"), "list");
    assert_memory_equal(text_of(one, "id"), "embd-", 5);
    assert_int_equal(vt_get(one, "data")->n, 3);
    v = vector_of(one, 0);
    assert_int_equal(v->n, 32);
    assert_true(product(v, v) > 0.999999 && product(v, v) < 1.000001);
    assert_true(product(v, vector_of(two, 0)) > 0.999999);
    assert_true(product(v, vector_of(one, 1)) < 0.99);
    assert_int_equal(int_of(vt_get(two, "usage"), "prompt_tokens"), 2);
    vt_arena_free(&a);
}

static void vectors_come_packed(void **state)
{
    struct vt_arena a = {0};
    const struct vt_node *answer, *v;

    (void)state;
    embed("{\"input\": [1, 2], \"encoding_format\": \"base64\", \"dimensions\": 8}", &a,
          &answer);
    v = vector_of(answer, 0);
    assert_int_equal(v->kind, VT_STR);
    assert_int_equal(v->n, 44); /* 32 bytes */
    assert_string_equal(v->u.str + 43, "=");
    assert_int_equal(vt_get(answer, "data")->n, 1);
    vt_arena_free(&a);
}

/* ---- ids ------------------------------------------------------------- */

enum { N_THREADS = 4, N_IDS = 2000 };
static char made[N_THREADS][N_IDS][32];

static void *make_ids(void *arg)
{
    char (*out)[32] = arg;
    struct api_context c = context_of(API_LINE_026);
    struct api_request r = {0};

    for (int i = 0; i < N_IDS; i++) {
        struct api_error e;
        const char *body = BODY("");

        if (api_read(&r, &c, API_COMPLETIONS, body, strlen(body), &json, &e))
            (void)snprintf(out[i], sizeof(out[i]), "%s", r.id);
    }
    vt_arena_free(&r.arena);
    return NULL;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void no_id_is_given_twice(void **state)
{
    pthread_t thread[N_THREADS];
    char (*all)[32] = made[0];

    (void)state;
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, make_ids, made[i]), 0);
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    qsort(all, (size_t)N_THREADS * N_IDS, sizeof(*all), by_text);
    for (size_t i = 0; i + 1 < (size_t)N_THREADS * N_IDS; i++) {
        assert_int_equal(strlen(all[i]), 21);
        assert_non_null(strchr("89ab", all[i][5])); /* half a UUID */
        assert_string_not_equal(all[i], all[i + 1]);
    }
}

/* What vt_mix64() makes `y` of. */
static uint64_t unmixed(uint64_t y)
{
    static const uint64_t factor[] = {UINT64_C(0x94d049bb133111eb),
                                      UINT64_C(0xbf58476d1ce4e5b9)};
    static const unsigned shift[] = {27, 30};
    uint64_t x = y ^ y >> 31 ^ y >> 62;

    for (int i = 0; i < 2; i++) {
        uint64_t inverse = factor[i];

        for (int k = 0; k < 6; k++)
            inverse *= 2 - factor[i] * inverse;
        x *= inverse;
        x ^= x >> shift[i] ^ x >> 2 * shift[i];
    }
    return x;
}

/* Counts whose 64-bit mix differs only in the two bits that an id has no room for: cut,
 * they would be the same id. */
static void ids_use_all_bits_they_have(void **state)
{
    const uint64_t seed = UINT64_C(0x123456789abcdef), limit = UINT64_C(1) << 62;
    unsigned pairs = 0;

    (void)state;
    assert_true(vt_mix64(unmixed(12345)) == 12345);
    for (uint64_t low = 1; pairs < 100; low++)
        for (uint64_t top = 1; top < 4; top++) {
            uint64_t a = unmixed(low) ^ seed, b = unmixed(low | top << 62) ^ seed;

            if (a >= limit || b >= limit)
                continue;
            pairs++;
            assert_true(api_id_bits(seed, a) != api_id_bits(seed, b));
            assert_true(api_id_bits(seed, a) < limit);
        }
}

int main(void)
{
    struct CMUnitTest tests[64] = {
        cmocka_unit_test(has_defaults),
        cmocka_unit_test(reads_what_is_said),
        cmocka_unit_test(headers_come_first),
        cmocka_unit_test(usage_can_be_forced),
        cmocka_unit_test(knows_adapters),
        cmocka_unit_test(a_text_that_cannot_fit_is_not_tokenised),
        cmocka_unit_test(long_lists_of_ids_are_counted_but_not_kept),
        cmocka_unit_test(bodies_of_too_many_values_are_refused),
        cmocka_unit_test(choices_are_limited),
        cmocka_unit_test(calls_in_a_row_take_memory_once),
        cmocka_unit_test(vectors_depend_on_tokens_alone),
        cmocka_unit_test(vectors_come_packed),
        cmocka_unit_test(no_id_is_given_twice),
        cmocka_unit_test(ids_use_all_bits_they_have),
    };
    size_t n = 14; /* of these; rows of tables follow */

#define ADD(table, function)                                  \
    for (size_t i = 0; i < VT_COUNT(table); i++)              \
    tests[n++] = (struct CMUnitTest){.name = (table)[i].name, \
                                     .test_func = (function), \
                                     .initial_state = &(table)[i]}
    ADD(rows, fits_the_model);
    ADD(chats, makes_a_prompt_of_messages);
    ADD(choices, chooses_tools);
    ADD(formats, shapes_the_output);
    return _cmocka_run_group_tests("api", tests, n, open_tokenizer, close_tokenizer);
}
