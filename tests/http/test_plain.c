/* Endpoints that need no engine, against what the real frontends answered (ids and
 * times aside), and the table of routes that all else comes from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http/serve/plain.h"

static bool find_model(void *user, const char *name, uint32_t *lora)
{
    (void)user;
    *lora = strcmp(name, "sql") == 0;
    return *lora || strcmp(name, "tiny") == 0;
}

static const struct plain_model models[] = {
    {"tiny", "tiny-qwen3", NULL, 1794712920},
    {"sql", "/adapters/sql", "tiny", 1794712921},
};

struct server {
    struct vt_tokenizer *tokenizer;
    struct api_context api;
    struct vt_serve_config config;
    struct plain_context c;
};

static void open_server(struct server *s, enum api_line line)
{
    char path[512];
    struct vt_err err;

    snprintf(path, sizeof(path), "%s/cases/tiny-qwen3", VT_TEST_DIR);
    if (vt_tokenizer_open(&s->tokenizer, path, &err) != VT_OK)
        fail_msg("%s", err.msg);
    s->api = (struct api_context){.tokenizer = s->tokenizer,
                                  .line = line,
                                  .version = line == API_LINE_026 ? "0.26.0" : "0.32.0",
                                  .max_model_len = 2048,
                                  .max_logprobs = 20,
                                  .find = find_model,
                                  .model = "tiny"};
    s->config =
        (struct vt_serve_config){.timed_by = "test", .n_engines = 1, .dev_mode = true};
    vt_engine_config_init(&s->config.engine);
    s->c = (struct plain_context){
        .api = &s->api, .config = &s->config, .model = models, .n_models = 1};
}

static void close_server(struct server *s)
{
    vt_tokenizer_close(s->tokenizer);
}

static const struct net_header json_header = {"content-type", "application/json"};

static struct plain_answer ask(const struct server *s, const char *method,
                               const char *path, const char *query, const char *body,
                               struct vt_buf *out)
{
    struct net_request r = {.method = method,
                            .path = path,
                            .query = query,
                            .header = &json_header,
                            .n_headers = 1,
                            .body = body,
                            .body_len = strlen(body)};
    struct plain_answer a;

    vt_buf_clear(out);
    vt_buf_str(out, "");
    assert_true(plain_answer(&s->c, &r, out, &a));
    assert_false(out->failed);
    return a;
}

/* ---- the recordings -------------------------------------------------- */

/* What differs from one run to the next becomes '#'. */
static void mask(char *text)
{
    static const char *const head[] = {"modelperm-", "chatcmpl-", "cmpl-",
                                       "\"created\":"};
    static const char *const digits[] = {"0123456789abcdef", "0123456789abcdef",
                                         "0123456789abcdef", "0123456789"};

    for (size_t i = 0; i < VT_COUNT(head); i++)
        for (char *p = text; (p = strstr(p, head[i]));) {
            size_t n = strspn(p += strlen(head[i]), digits[i]);

            memset(p, '#', n);
            p += n;
        }
}

static const char *text_of(const struct vt_node *row, const char *key)
{
    const struct vt_node *v = vt_get(row, key);

    return v && v->kind == VT_STR ? v->u.str : NULL;
}

static void assert_text(const char *got, const char *want, const char *name)
{
    if ((got == NULL) != (want == NULL) || (got && strcmp(got, want) != 0))
        fail_msg("%s: %s, not %s", name, got ? got : "NULL", want ? want : "NULL");
}

static void assert_row(const struct server *s, const struct vt_node *row)
{
    const char *name = text_of(row, "name"), *want = text_of(row, "body");
    struct vt_buf body = {0}, expected = {0};
    struct plain_answer a = ask(s, text_of(row, "method"), text_of(row, "path"), "",
                                text_of(row, "request"), &body);

    vt_buf_str(&expected, want);
    mask(body.data);
    mask(expected.data);
    assert_text(body.data, expected.data, name);
    assert_text(a.type, text_of(row, "type"), name);
    assert_text(a.allow, text_of(row, "allow"), name);
    assert_int_equal(a.status, vt_get(row, "status")->u.integer);
    vt_buf_free(&body);
    vt_buf_free(&expected);
}

static void answers_are_the_recorded_ones(void **state)
{
    static const char *const version[] = {"0.26.0", "0.32.0"};

    (void)state;
    for (int line = 0; line < 2; line++) {
        struct server s;
        char path[512], *text;
        struct vt_lines *lines;
        struct vt_err err;
        size_t len, n = 0;

        open_server(&s, (enum api_line)line);
        snprintf(path, sizeof(path), "%s/cases/http/plain-%s.jsonl", VT_TEST_DIR,
                 version[line]);
        assert_int_equal(vt_lines_open(&lines, path, &err), VT_OK);
        while (vt_lines_next(lines, &text, &len, NULL, &err) == VT_OK && text) {
            struct vt_arena arena = {0};
            const struct vt_node *row;

            assert_int_equal(vt_json_parse(&arena, text, len, 1, &row, &err), VT_OK);
            assert_row(&s, row);
            vt_arena_free(&arena);
            n++;
        }
        assert_int_equal(n, 10);
        vt_lines_close(lines);
        close_server(&s);
    }
}

/* ---- the rest of them ------------------------------------------------ */

/* Sampling parameters as the class of vLLM 0.26 gives them for these requests. */
#define PARAMS(sampling, rest)                                                 \
    "\"sampling_params\":{\"presence_penalty\":0.0,\"frequency_penalty\":0.0," \
    "\"repetition_penalty\":1.0," sampling rest

static const struct {
    const char *method, *path, *request;
    enum api_line line;
    int status;
    const char *want; /* part of the body */
} rows[] = {
    {"POST", "/ping", "", API_LINE_026, 200, ""},
    {"POST", "/tokenize", "{\"prompt\":\"Hello world\",\"return_token_strs\":true}",
     API_LINE_026, 200,
     "{\"count\":2,\"max_model_len\":2048,\"tokens\":[2663,4014],\"token_strs\":["
     "\"Hello\",\"\xc4\xa0world\"]}"},
    {"POST", "/tokenize",
     "{\"messages\":[{\"role\":\"user\",\"content\":\"Hello world\"}],"
     "\"return_token_strs\":true,\"add_generation_prompt\":false}",
     API_LINE_032, 200, "\"<|im_start|>\",\"user\",\"\xc4\x8a\",\"Hello\","},
    {"POST", "/tokenize", "{\"model\":\"nope\",\"prompt\":\"x\"}", API_LINE_026, 404,
     "{\"error\":{\"message\":\"The model `nope` does not exist.\",\"type\":"
     "\"NotFoundError\",\"param\":\"model\",\"code\":404}}"},
    {"POST", "/tokenize", "{\"model\":\"nope\",\"prompt\":\"x\"}", API_LINE_032, 404,
     "does not exist. Valid aliases: tiny.\""},
    {"POST", "/tokenize", "{\"model\":\"tiny\"}", API_LINE_026, 400,
     "{\"error\":{\"message\":\"2 validation errors:\\n  {'type': 'missing', 'loc': "
     "('body', 'function-wrap[__log_extra_fields__()]', 'prompt'), 'msg': 'Field "
     "required', 'input': {'model': 'tiny'}}\\n  {'type': 'missing', 'loc': ('body', "
     "'function-wrap[__log_extra_fields__()]', 'messages'), 'msg': 'Field required', "
     "'input': {'model': 'tiny'}}\",\"type\":\"Bad Request\",\"param\":"
     "\"body.prompt\",\"code\":400}}"},
    {"POST", "/tokenize", "{\"prompt\":5}", API_LINE_026, 400, "'string_type'"},
    {"POST", "/tokenize",
     "{\"prompt\":5,\"messages\":[{\"role\":\"user\",\"content\":"
     "\"x\"}]}",
     API_LINE_026, 200, "{\"count\":"},
    {"POST", "/tokenize", "{\"prompt\":", API_LINE_026, 400, "'json_invalid'"},
    {"POST", "/tokenize", "[]", API_LINE_026, 500,
     "{\"error\":{\"message\":\"'list' object has no attribute 'get'\",\"type\":"
     "\"InternalServerError\",\"param\":null,\"code\":500}}"},
    {"POST", "/tokenize", "[]", API_LINE_032, 400, "2 validation errors"},
    {"POST", "/tokenize", "", API_LINE_026, 400, "'missing'"},
    {"POST", "/detokenize", "{\"tokens\":[4090,2663,999999]}", API_LINE_026, 200,
     "{\"prompt\":\"<|im_start|>Hello\"}"},
    {"POST", "/detokenize", "{\"tokens\":[]}", API_LINE_026, 200, "{\"prompt\":\"\"}"},
    {"POST", "/detokenize", "{\"tokens\":[-1]}", API_LINE_026, 400,
     "'greater_than_equal'"},
    {"POST", "/detokenize", "{\"tokens\":[4294967296]}", API_LINE_026, 400,
     "out of range integral type conversion attempted"},
    {"POST", "/detokenize", "{}", API_LINE_026, 400, "\"param\":\"body.tokens\""},
    {"POST", "/detokenize", "{\"tokens\":[1],\"model\":\"nope\"}", API_LINE_026, 404,
     "NotFoundError"},
    {"POST", "/v1/completions/render",
     "{\"model\":\"tiny\",\"prompt\":[\"Hello world\",\"Hello\"],\"temperature\":0}",
     API_LINE_026, 200,
     PARAMS("\"temperature\":0.0,",
            "\"stop\":[],\"stop_token_ids\":[],\"output_kind\":2,\"skip_clone\":true,"
            "\"bad_words\":[],\"skip_reading_prefix_cache\":false}")},
    {"POST", "/v1/completions/render",
     "{\"model\":\"tiny\",\"prompt\":\"x\",\"temperature\":0.7,\"top_p\":0.9,\"top_k\":"
     "5,\"min_p\":0.1,\"seed\":1,\"stop\":\"a\",\"stop_token_ids\":[3],\"max_tokens\":"
     "7,"
     "\"min_tokens\":2,\"ignore_eos\":true,\"stream\":true}",
     API_LINE_026, 200,
     PARAMS("\"temperature\":0.7,\"top_p\":0.9,\"top_k\":5,\"min_p\":0.1,\"seed\":1,",
            "\"stop\":[\"a\"],\"stop_token_ids\":[3],\"ignore_eos\":true,"
            "\"max_tokens\":7,\"min_tokens\":2,\"output_kind\":1,\"skip_clone\":true,"
            "\"bad_words\":[],\"skip_reading_prefix_cache\":false},\"model\":\"tiny\","
            "\"stream\":true,\"stream_options\":null")},
    {"POST", "/v1/completions/render",
     "{\"model\":\"tiny\",\"prompt\":\"x\",\"temperature\":1.0,\"top_p\":1.0,"
     "\"response_format\":{\"type\":\"json_object\"},\"logit_bias\":{\"5\":1.5}}",
     API_LINE_026, 200,
     "\"skip_clone\":true,\"structured_outputs\":{\"json\":null,\"regex\":null,"
     "\"choice\":null,\"grammar\":null,\"json_object\":true,"
     "\"disable_any_whitespace\":false,\"disable_additional_properties\":false,"
     "\"whitespace_pattern\":null,\"structural_tag\":null,\"_backend\":null,"
     "\"_backend_was_auto\":false},\"logit_bias\":{\"5\":1.5},\"bad_words\":[]"},
    {"POST", "/v1/completions/render", "{\"model\":\"nope\",\"prompt\":\"x\"}",
     API_LINE_026, 404, "NotFoundError"},
    {"POST", "/v1/messages/count_tokens",
     "{\"model\":\"tiny\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello "
     "world\"}]}",
     API_LINE_026, 200, "\"context_management\":{\"original_input_tokens\":"},
    {"POST", "/v1/messages/count_tokens", "{\"model\":\"tiny\"}", API_LINE_026, 400,
     "messages"},
    {"PUT", "/ping", "", API_LINE_026, 405, "{\"detail\":\"Method Not Allowed\"}"},
    {"GET", "/v1/completion", "", API_LINE_026, 404, "{\"detail\":\"Not Found\"}"},
    {"POST", "/v1/models", "", API_LINE_026, 405,
     "{\"detail\":\"Method Not Allowed\"}"},
};

static void answers_and_refusals(void **state)
{
    struct server s[2];

    (void)state;
    open_server(&s[0], API_LINE_026);
    open_server(&s[1], API_LINE_032);
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_buf body = {0};
        struct plain_answer a = ask(&s[rows[i].line], rows[i].method, rows[i].path, "",
                                    rows[i].request, &body);

        if (a.status != rows[i].status || !strstr(body.data, rows[i].want))
            fail_msg("row %zu, %s %s: %d %s", i, rows[i].path, rows[i].request,
                     a.status, body.data);
        vt_buf_free(&body);
    }
    close_server(&s[0]);
    close_server(&s[1]);
}

static void bodies_must_be_called_json(void **state)
{
    struct net_header plain = {"content-type", "text/plain"};
    struct net_request r = {.method = "POST",
                            .path = "/tokenize",
                            .query = "",
                            .header = &plain,
                            .n_headers = 1,
                            .body = "{}",
                            .body_len = 2};
    struct server s;
    struct plain_answer a;
    struct vt_buf body = {0};

    (void)state;
    open_server(&s, API_LINE_026);
    assert_true(plain_answer(&s.c, &r, &body, &a));
    assert_int_equal(a.status, 400);
    assert_string_equal(body.data,
                        "{\"error\":{\"message\":\"1 validation error:\\n  Unsupported "
                        "Media Type: Only 'application/json' is allowed\",\"type\":"
                        "\"Bad Request\",\"param\":null,\"code\":400}}");
    vt_buf_free(&body);
    close_server(&s);
}

static void adapters_have_cards_with_a_parent(void **state)
{
    struct server s;
    struct vt_buf body = {0};

    (void)state;
    open_server(&s, API_LINE_026);
    s.c.n_models = 2;
    ask(&s, "GET", "/v1/models", "", "", &body);
    assert_non_null(
        strstr(body.data,
               "{\"id\":\"sql\",\"object\":\"model\",\"created\":1794712921,"
               "\"owned_by\":\"vllm\",\"root\":\"/adapters/sql\",\"parent\":\"tiny\","
               "\"max_model_len\":null,\"permission\":["));
    vt_buf_free(&body);
    close_server(&s);
}

static void scale_out_opens_rendering_in_032(void **state)
{
    static const char request[] =
        "{\"model\":\"tiny\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}";
    struct server s;
    struct vt_buf body = {0};

    (void)state;
    open_server(&s, API_LINE_032);
    assert_int_equal(
        ask(&s, "POST", "/v1/chat/completions/render", "", request, &body).status, 403);
    s.config.scale_out = true;
    assert_int_equal(
        ask(&s, "POST", "/v1/chat/completions/render", "", request, &body).status, 200);
    vt_buf_free(&body);
    close_server(&s);
}

static void a_long_prompt_may_be_counted(void **state)
{
    struct server s;
    struct vt_buf request = {0}, body = {0};

    (void)state;
    open_server(&s, API_LINE_026);
    vt_buf_str(&request, "{\"messages\":[{\"role\":\"user\",\"content\":\"");
    for (int i = 0; i < 5000; i++)
        vt_buf_str(&request, "world ");
    vt_buf_str(&request, "\"}]}");
    assert_int_equal(ask(&s, "POST", "/tokenize", "", request.data, &body).status, 200);
    assert_true(strtol(body.data + strlen("{\"count\":"), NULL, 10) > 5000);
    vt_buf_free(&request);
    vt_buf_free(&body);
    close_server(&s);
}

static void assert_begins(const char *text, const char *want)
{
    assert_memory_equal(text, want, strlen(want));
}

static void the_configuration_is_told(void **state)
{
    struct server s;
    struct vt_buf body = {0};

    (void)state;
    open_server(&s, API_LINE_026);
    ask(&s, "GET", "/server_info", "", "", &body);
    assert_begins(body.data, "{\"vllm_config\":\"model='tiny-qwen3', ");
    assert_non_null(strstr(body.data, ", enable_prefix_caching=True, "));
    assert_non_null(strstr(body.data, "\"system_env\":{\"vllm_version\":\"0.26.0\""));
    ask(&s, "GET", "/server_info", "config_format=json", "", &body);
    assert_begins(body.data, "{\"vllm_config\":{\"model\":\"tiny-qwen3\",");
    assert_non_null(strstr(body.data, "\"max_seq_len\":2048,"));
    s.config.dev_mode = false;
    assert_int_equal(ask(&s, "GET", "/server_info", "", "", &body).status, 404);
    vt_buf_free(&body);
    close_server(&s);
}

/* ---- routes ---------------------------------------------------------- */

static const char *plain_route(const struct plain_context *c, const char *path,
                               const char **allow)
{
    const struct plain_row *row = plain_find(c->config, path);

    *allow = row ? row->methods : NULL;
    return row ? row->path : "none";
}

static const struct {
    const char *path, *allow;
    bool dev, plain;
} routes[] = {
    {"/v1/completions", "POST", false, false},
    {"/v1/chat/completions", "POST", false, false},
    {"/v1/responses", "POST", false, false},
    {"/v1/messages", "POST", false, false},
    {"/v1/embeddings", "POST", false, false},
    {"/load", "GET", false, false},
    {"/metrics", "GET", false, false},
    {"/v1/load_lora_adapter", "POST", false, false},
    {"/v1/unload_lora_adapter", "POST", false, false},
    {"/ping", "GET, POST", false, true},
    {"/openapi.json", "GET, HEAD", false, true},
    {"/reset_prefix_cache", "POST", true, false},
    {"/reset_mm_cache", "POST", true, false},
    {"/reset_encoder_cache", "POST", true, false},
    {"/sleep", "POST", true, false},
    {"/wake_up", "POST", true, false},
    {"/is_sleeping", "GET", true, false},
    {"/pause", "POST", true, false},
    {"/resume", "POST", true, false},
    {"/is_paused", "GET", true, false},
    {"/abort_requests", "POST", true, false},
    {"/server_info", "GET", true, true},
};

static void routes_exist_as_the_mode_says(void **state)
{
    struct server s;

    (void)state;
    open_server(&s, API_LINE_026);
    for (size_t i = 0; i < VT_COUNT(routes); i++) {
        struct net_request r = {.method =
                                    strstr(routes[i].allow, "GET") ? "GET" : "POST",
                                .path = routes[i].path,
                                .query = "",
                                .body = ""};
        struct vt_buf body = {0};
        struct plain_answer a;
        const char *allow;

        s.config.dev_mode = true;
        assert_string_equal(plain_route(&s.c, routes[i].path, &allow), routes[i].path);
        assert_string_equal(allow, routes[i].allow);
        assert_int_equal(plain_answer(&s.c, &r, &body, &a), routes[i].plain);
        s.config.dev_mode = false;
        assert_string_equal(plain_route(&s.c, routes[i].path, &allow),
                            routes[i].dev ? "none" : routes[i].path);
        vt_buf_free(&body);
    }
    close_server(&s);
}

/* Every path of the description is a route, and takes just the methods it lists. */
static void assert_described(const struct server *s, const struct vt_node *paths)
{
    for (uint32_t i = 0; i < paths->n; i++) {
        const struct vt_node *path = &paths->u.item[i];
        const char *allow;

        assert_string_equal(plain_route(&s->c, path->key, &allow), path->key);
        assert_int_equal(vt_get(path, "get") != NULL, strstr(allow, "GET") != NULL);
        assert_int_equal(vt_get(path, "post") != NULL, strstr(allow, "POST") != NULL);
    }
}

static const struct vt_node *schema_of(const struct vt_node *paths, const char *path)
{
    const struct vt_node *post = vt_get(vt_get(paths, path), "post");
    const struct vt_node *content = vt_get(vt_get(post, "requestBody"), "content");

    return vt_get(vt_get(content, "application/json"), "schema");
}

static void the_description_fits_the_routes(void **state)
{
    (void)state;
    for (int dev = 0; dev < 2; dev++) {
        struct server s;
        struct vt_buf body = {0};
        struct vt_arena arena = {0};
        const struct vt_node *root, *paths, *schema;
        struct vt_err err;

        open_server(&s, (enum api_line)dev);
        s.config.dev_mode = dev;
        ask(&s, "GET", "/openapi.json", "", "", &body);
        if (vt_json_parse(&arena, body.data, body.len, 1, &root, &err) != VT_OK)
            fail_msg("%s", err.msg);
        assert_string_equal(text_of(root, "openapi"), "3.1.0");
        paths = vt_get(root, "paths");
        assert_int_equal(paths->n, dev ? 31 : 20);
        assert_described(&s, paths);
        schema = schema_of(paths, "/v1/chat/completions");
        assert_non_null(vt_get(vt_get(schema, "properties"), "messages"));
        assert_non_null(vt_get(schema_of(paths, "/tokenize"), "anyOf"));
        ask(&s, "GET", "/docs", "", "", &body);
        for (uint32_t i = 0; i < paths->n; i++)
            assert_non_null(strstr(body.data, paths->u.item[i].key));
        vt_arena_free(&arena);
        vt_buf_free(&body);
        close_server(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_the_recorded_ones),
        cmocka_unit_test(answers_and_refusals),
        cmocka_unit_test(bodies_must_be_called_json),
        cmocka_unit_test(adapters_have_cards_with_a_parent),
        cmocka_unit_test(scale_out_opens_rendering_in_032),
        cmocka_unit_test(a_long_prompt_may_be_counted),
        cmocka_unit_test(the_configuration_is_told),
        cmocka_unit_test(routes_exist_as_the_mode_says),
        cmocka_unit_test(the_description_fits_the_routes),
    };

    return cmocka_run_group_tests_name("plain", tests, NULL, NULL);
}
