/* The client against a server that answers, refuses, hangs and lies. */
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <signal.h>

#include "../net/serving.h"
#include "load/load.h"

#define SSE "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: "
#define WORDS                                                                          \
    "data: {\"choices\":[{\"text\":\" a\"}]}\n\ndata: {\"choices\":[{\"text\":\" b\"," \
    "\"finish_reason\":\"length\"}]}\n\n"
#define USAGE                                                                      \
    "data: "                                                                       \
    "{\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\n" \
    "data: [DONE]\n\n"
#define FINE SSE "181\r\n\r\n" WORDS USAGE

static struct vt_load_turn turn = {
    .text = "Hello", .text_len = 5, .prompt_tokens = 3, .output_tokens = 2};

static void plan_of(struct vt_load_plan *p, size_t n, const struct vt_load_turn *t,
                    uint32_t n_turns)
{
    struct vt_load_session s = {.turn = t, .n_turns = n_turns};
    struct vt_err err;

    *p = (struct vt_load_plan){0};
    for (size_t i = 0; i < n; i++)
        assert_int_equal(vt_load_plan_add(p, &s, &err), VT_OK);
}

static char url[64];

static void target(struct vt_load_config *c, const struct serving *s)
{
    snprintf(url, sizeof(url), "%s://127.0.0.1:%d", s->tls ? "https" : "http", s->port);
    *c = (struct vt_load_config){.base_url = url,
                                 .model = "tiny",
                                 .id_prefix = "t-",
                                 .logprobs = -1,
                                 .keep_texts = true,
                                 .max_concurrency = 1};
}

static void run(struct vt_load_records *r, const struct vt_load_plan *p,
                const struct vt_load_config *c)
{
    struct vt_err err = {0};

    *r = (struct vt_load_records){0};
    if (vt_load_run(r, p, NULL, c, &err) != VT_OK)
        fail_msg("%s", err.msg);
}

/* ---- what goes well --------------------------------------------------- */

static void expect_fine(const struct vt_load_record *q)
{
    if (!q->ok)
        fail_msg("%s: %s", q->error, q->detail ? q->detail : "");
    assert_int_equal(q->status, 200);
    assert_int_equal(q->n_stamps, 2);
    assert_int_equal(q->prompt_tokens, 7);
    assert_int_equal(q->output_tokens, 2);
    assert_true(q->counted_by_server);
    assert_string_equal(q->text, " a b");
    assert_string_equal(q->finish, "length");
    assert_true(q->begun >= q->planned && q->sent > q->begun && q->first > q->sent);
    assert_true(q->last >= q->first && q->ended >= q->last);
    assert_true(q->stamp[0] == q->first && q->stamp[1] == q->last);
}

static void streams_become_records(void **state)
{
    static const struct script scripts[] = {{.bytes = FINE},
                                            {.bytes = FINE, .piece = 7}};
    struct serving s = {0};
    struct vt_load_records r;
    struct vt_load_config c;
    struct vt_load_plan p;

    (void)state;
    serving_start(&s, scripts, 2);
    target(&c, &s);
    plan_of(&p, 5, &turn, 1);
    run(&r, &p, &c);
    serving_look(&s);
    assert_int_equal(r.n, 5);
    for (size_t i = 0; i < r.n; i++) {
        expect_fine(&r.record[i]);
        assert_int_equal(r.record[i].session, i);
    }
    assert_string_equal(r.record[4].request_id, "t-4");
    assert_int_equal(r.connections, 1); /* kept alive */
    assert_int_equal(r.peak_concurrency, 1);
    assert_int_equal(s.peak, 1);
    assert_true(r.end >= r.record[4].ended);
    assert_non_null(strstr(s.request[0], "POST /v1/completions HTTP/1.1\r\n"));
    assert_non_null(strstr(s.request[4], "\r\nx-request-id: t-4\r\n"));
    vt_load_records_free(&r);
    vt_load_plan_free(&p);
    serving_stop(&s);
}

static void at_most_so_many_are_in_flight(void **state)
{
    static const struct script slow = {.bytes = FINE, .pause_ms = 10};
    struct serving s = {0};
    struct vt_load_records r;
    struct vt_load_config c;
    struct vt_load_plan p;

    (void)state;
    serving_start(&s, &slow, 1);
    target(&c, &s);
    c.max_concurrency = 3;
    plan_of(&p, 12, &turn, 1);
    run(&r, &p, &c);
    serving_look(&s);
    assert_int_equal(r.n, 12);
    assert_int_equal(r.peak_concurrency, 3);
    assert_true(s.peak <= 3);
    for (size_t i = 3; i < r.n; i++) {
        assert_true(r.record[i].ok);
        assert_true(r.record[i].begun > r.record[i].planned);
        assert_true(r.record[i].begun >= r.record[i - 1].begun);
    }
    vt_load_records_free(&r);
    vt_load_plan_free(&p);
    serving_stop(&s);
}

static void requests_leave_when_they_are_planned(void **state)
{
    static const struct script fine = {.bytes = FINE};
    static const vt_ns at[] = {30 * VT_MS, 0, 15 * VT_MS};
    struct serving s = {0};
    struct vt_load_records r = {0};
    struct vt_load_config c;
    struct vt_load_plan p;
    struct vt_err err;

    (void)state;
    serving_start(&s, &fine, 1);
    target(&c, &s);
    c.max_concurrency = 0;
    plan_of(&p, 3, &turn, 1);
    assert_int_equal(vt_load_run(&r, &p, at, &c, &err), VT_OK);
    assert_int_equal(r.n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(r.record[i].planned, (vt_ns)i * 15 * VT_MS);
        assert_int_equal(r.record[i].begun, r.record[i].planned);
        assert_true(r.record[i].sent >= r.record[i].planned);
    }
    assert_int_equal(r.record[0].session, 1);
    vt_load_records_free(&r);
    vt_load_plan_free(&p);
    serving_stop(&s);
}

/* A server may close a connection that it had promised to keep. */
static void a_lost_connection_is_made_again(void **state)
{
    static const struct script rude = {.bytes = FINE, .close_after = true};
    struct serving s = {0};
    struct vt_load_records r;
    struct vt_load_config c;
    struct vt_load_plan p;

    (void)state;
    serving_start(&s, &rude, 1);
    target(&c, &s);
    plan_of(&p, 6, &turn, 1);
    run(&r, &p, &c);
    serving_look(&s);
    for (size_t i = 0; i < r.n; i++)
        expect_fine(&r.record[i]);
    assert_int_equal(r.connections, 6);
    vt_load_records_free(&r);
    vt_load_plan_free(&p);
    serving_stop(&s);
}

/* ---- conversations ---------------------------------------------------- */

#define ROLE \
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
#define REPLY "data: {\"choices\":[{\"delta\":{\"content\":\"Yes \\\"x\\\"\"}}]}\n\n"

static void replies_are_part_of_what_follows(void **state)
{
    static const struct script chat = {.bytes = SSE "134\r\n\r\n" ROLE REPLY
                                                    "data: [DONE]\n\n"};
    struct vt_load_turn turns[2] = {
        {.text = "One?", .text_len = 4},
        {.text = "Two?", .text_len = 4, .output_tokens = 9, .think_ns = 20 * VT_MS}};
    struct vt_load_session session = {
        .id = "s7", .system = "Be brief.", .turn = turns, .n_turns = 2};
    struct serving s = {0};
    struct vt_load_records r;
    struct vt_load_config c;
    struct vt_load_plan p = {0};
    struct vt_err err;

    (void)state;
    serving_start(&s, &chat, 1);
    target(&c, &s);
    c.backend = VT_LOAD_CHAT;
    c.session_header = true;
    assert_int_equal(vt_load_plan_add(&p, &session, &err), VT_OK);
    run(&r, &p, &c);
    serving_look(&s);
    assert_int_equal(r.n, 2);
    assert_true(r.record[0].ok && r.record[1].ok);
    assert_string_equal(r.record[0].text, "Yes \"x\"");
    assert_int_equal(r.record[0].n_stamps, 2);
    assert_int_equal(r.record[1].turn, 1);
    assert_int_equal(r.record[1].planned, r.record[0].ended + 20 * VT_MS);
    assert_string_equal(r.record[1].request_id, "t-0-1");
    assert_non_null(strstr(s.request[1], "POST /v1/chat/completions HTTP/1.1\r\n"));
    assert_non_null(strstr(s.request[1], "\r\nX-Session-ID: s7\r\n"));
    assert_string_equal(
        strstr(s.request[1], "\r\n\r\n") + 4,
        "{\"model\":\"tiny\",\"messages\":[{\"role\":\"system\",\"content\":\"Be "
        "brief.\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
        "\"One?\"}]},{\"role\":\"assistant\",\"content\":\"Yes \\\"x\\\"\"},{\"role\":"
        "\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Two?\"}]}],"
        "\"max_completion_tokens\":9,\"stream\":true,\"stream_options\":{\"include_"
        "usage\":true}}");
    vt_load_records_free(&r);
    vt_load_plan_free(&p);
    serving_stop(&s);
}

static void so_many_conversations_at_a_time(void **state)
{
    static const struct script fine = {.bytes = FINE, .pause_ms = 3};
    struct vt_load_turn turns[3] = {turn, turn, turn};
    struct serving s = {0};
    struct vt_load_records r;
    struct vt_load_config c;
    struct vt_load_plan p;
    size_t open = 0, most = 0;

    (void)state;
    serving_start(&s, &fine, 1);
    target(&c, &s);
    c.max_concurrency = 0;
    c.max_sessions = 2;
    plan_of(&p, 6, turns, 3);
    run(&r, &p, &c);
    serving_look(&s);
    assert_int_equal(r.n, 18);
    for (size_t i = 0; i < r.n; i++) {
        assert_true(r.record[i].ok);
        open += r.record[i].turn == 0;
        most = open > most ? open : most;
        open -= r.record[i].turn == 2;
    }
    assert_true(most <= 2);
    /* A completion's history is text. */
    assert_non_null(strstr(s.request[17], "\"prompt\":\"Hello a bHello a bHello\""));
    vt_load_records_free(&r);
    vt_load_plan_free(&p);
    serving_stop(&s);
}

/* ---- what goes wrong -------------------------------------------------- */

static struct failure {
    const char *name;
    struct script script;
    enum vt_load_failure want;
    int status;
    const char *error, *detail;
} failures[] = {
    {"a status",
     {.bytes = "HTTP/1.1 400 Bad Request\r\nContent-Length: 7\r\n\r\n{\"a\":1}"},
     VT_LOAD_STATUS,
     400,
     "Bad Request",
     "400 Bad Request: {\"a\":1}"},
    {"an end in the middle",
     {.bytes = SSE "500\r\n\r\n" WORDS, .close_after = true},
     VT_LOAD_CLOSED,
     200,
     "connection closed early",
     NULL},
    {"an end before the beginning",
     {.bytes = "", .close_after = true},
     VT_LOAD_CLOSED,
     0,
     "connection closed early",
     NULL},
    {"another protocol",
     {.bytes = "220 mail.example ESMTP\r\n"},
     VT_LOAD_MALFORMED,
     0,
     "malformed response",
     NULL},
    {"an event that is no JSON",
     {.bytes = SSE "21\r\n\r\ndata: {\"choices\":[{\n\n"},
     VT_LOAD_MALFORMED,
     200,
     "malformed response",
     NULL},
    {"an error in the stream",
     {.bytes = SSE "39\r\n\r\ndata: {\"error\":{\"message\":\"no more\"}}\n\n"},
     VT_LOAD_TOLD,
     200,
     "error in the stream",
     "no more"},
    {"nothing in the stream",
     {.bytes = SSE "14\r\n\r\ndata: [DONE]\n\n"},
     VT_LOAD_EMPTY,
     200,
     "no token came",
     NULL},
    {"silence", {.bytes = NULL}, VT_LOAD_TIMEOUT, 0, "timeout", NULL},
};

/* The one that fails, and then one that does not. */
static void fails(void **state)
{
    const struct failure *f = *state;
    const struct script scripts[] = {f->script, {.bytes = FINE}};
    struct serving s = {0};
    struct vt_load_records r;
    struct vt_load_config c;
    struct vt_load_plan p;

    serving_start(&s, scripts, 2);
    target(&c, &s);
    c.timeout_ns = f->want == VT_LOAD_TIMEOUT ? 50 * VT_MS : 60 * VT_SEC;
    plan_of(&p, 2, &turn, 1);
    run(&r, &p, &c);
    serving_look(&s);
    assert_int_equal(r.n, 2);
    assert_false(r.record[0].ok);
    assert_int_equal(r.record[0].failure, f->want);
    assert_int_equal(r.record[0].status, f->status);
    assert_string_equal(r.record[0].error, f->error);
    if (f->detail)
        assert_string_equal(r.record[0].detail, f->detail);
    assert_true(r.record[0].ended >= r.record[0].begun);
    if (f->want != VT_LOAD_TIMEOUT)
        expect_fine(&r.record[1]);
    vt_load_records_free(&r);
    vt_load_plan_free(&p);
    serving_stop(&s);
}

static void a_failed_turn_ends_its_conversation(void **state)
{
    static const struct script no = {
        .bytes = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"};
    struct vt_load_turn turns[3] = {turn, turn, turn};
    struct serving s = {0};
    struct vt_load_records r;
    struct vt_load_config c;
    struct vt_load_plan p;

    (void)state;
    serving_start(&s, &no, 1);
    target(&c, &s);
    c.max_sessions = 1;
    plan_of(&p, 4, turns, 3);
    run(&r, &p, &c);
    serving_look(&s);
    assert_int_equal(r.n, 4);
    vt_load_records_free(&r);
    vt_load_plan_free(&p);
    serving_stop(&s);
}

static bool after_two(void *user)
{
    struct serving *s = user;
    bool two;

    pthread_mutex_lock(&s->lock);
    two = s->n_requests >= 2;
    pthread_mutex_unlock(&s->lock);
    return two;
}

static void a_stop_keeps_what_there_is(void **state)
{
    static const struct script scripts[] = {{.bytes = FINE}, {.bytes = NULL}};
    struct serving s = {0};
    struct vt_load_records r;
    struct vt_load_config c;
    struct vt_load_plan p;

    (void)state;
    serving_start(&s, scripts, 2);
    target(&c, &s);
    c.stopped = after_two;
    c.user = &s;
    plan_of(&p, 5, &turn, 1);
    run(&r, &p, &c);
    serving_look(&s);
    assert_true(r.interrupted);
    assert_int_equal(r.n, 2);
    expect_fine(&r.record[0]);
    assert_int_equal(r.record[1].failure, VT_LOAD_STOPPED);
    vt_load_records_free(&r);
    vt_load_plan_free(&p);
    serving_stop(&s);
}

static void nobody_there_is_an_error(void **state)
{
    struct vt_load_config c = {.base_url = "http://127.0.0.1:1"};
    struct vt_load_records r = {0};
    struct vt_load_plan p;
    struct vt_err err = {0};

    (void)state;
    plan_of(&p, 1, &turn, 1);
    assert_int_equal(vt_load_run(&r, &p, NULL, &c, &err), VT_EIO);
    assert_non_null(strstr(err.msg, "127.0.0.1:1"));
    c.base_url = "ftp://x";
    assert_int_equal(vt_load_run(&r, &p, NULL, &c, &err), VT_EINPUT);
    c.base_url = "http://127.0.0.1:99999";
    assert_int_equal(vt_load_run(&r, &p, NULL, &c, &err), VT_EINPUT);
    vt_load_plan_free(&p);
}

/* ---- bodies ----------------------------------------------------------- */

static struct body {
    const char *name, *extra, *want;
    bool ignore_eos;
    const char *lora;
} bodies[] = {
    {"as vLLM writes it", NULL,
     "{\"model\":\"tiny\",\"prompt\":\"Hello\",\"repetition_penalty\":1.0,\"max_"
     "tokens\":2,\"logprobs\":null,\"stream\":true,\"stream_options\":{\"include_"
     "usage\":true}}",
     false, NULL},
    {"with exact lengths", NULL,
     "{\"model\":\"tiny\",\"prompt\":\"Hello\",\"repetition_penalty\":1.0,\"max_"
     "tokens\":2,\"logprobs\":null,\"stream\":true,\"stream_options\":{\"include_"
     "usage\":true},\"ignore_eos\":true}",
     true, NULL},
    {"more takes the place of what is there",
     "{\"temperature\":0.5,\"repetition_penalty\":1.2,\"stop\":[\"x\",null,{\"a\":-1}]"
     "}",
     "{\"model\":\"tiny\",\"prompt\":\"Hello\",\"repetition_penalty\":1.2,\"max_"
     "tokens\":2,\"logprobs\":null,\"stream\":true,\"stream_options\":{\"include_"
     "usage\":true},\"temperature\":0.5,\"stop\":[\"x\",null,{\"a\":-1}]}",
     false, NULL},
    {"an adapter in place of the model", NULL,
     "{\"model\":\"sql\",\"prompt\":\"Hello\",\"repetition_penalty\":1.0,\"max_"
     "tokens\":2,\"logprobs\":null,\"stream\":true,\"stream_options\":{\"include_"
     "usage\":true}}",
     false, "sql"},
};

static void writes(void **state)
{
    static const struct script fine = {.bytes = FINE};
    static const struct net_header headers[] = {{"X-A", "b"}};
    const struct body *w = *state;
    struct serving s = {0};
    struct vt_load_records r;
    struct vt_load_config c;
    struct vt_load_plan p;

    serving_start(&s, &fine, 1);
    target(&c, &s);
    c.extra_body = w->extra;
    c.ignore_eos = w->ignore_eos;
    c.lora = &w->lora;
    c.n_lora = w->lora ? 1 : 0;
    c.header = headers;
    c.n_headers = 1;
    c.api_key = "k";
    plan_of(&p, 1, &turn, 1);
    run(&r, &p, &c);
    serving_look(&s);
    assert_string_equal(strstr(s.request[0], "\r\n\r\n") + 4, w->want);
    assert_non_null(strstr(s.request[0], "\r\nX-A: b\r\n"));
    assert_non_null(strstr(s.request[0], "\r\nAuthorization: Bearer k\r\n"));
    vt_load_records_free(&r);
    vt_load_plan_free(&p);
    serving_stop(&s);
}

static void ids_are_sent_as_they_are(void **state)
{
    static const struct script fine = {.bytes = FINE};
    static const uint32_t id[] = {5, 4000000000U};
    struct vt_load_turn ids = {.id = id, .n_ids = 2};
    struct serving s = {0};
    struct vt_load_records r;
    struct vt_load_config c;
    struct vt_load_plan p;

    (void)state;
    serving_start(&s, &fine, 1);
    target(&c, &s);
    plan_of(&p, 1, &ids, 1);
    run(&r, &p, &c);
    serving_look(&s);
    assert_non_null(strstr(s.request[0], "\"prompt\":[5,4000000000],\"repetition"));
    assert_null(strstr(s.request[0], "max_tokens"));
    vt_load_records_free(&r);
    serving_stop(&s);

    /* A limit of the extra body holds where the turn has none. */
    s = (struct serving){0};
    serving_start(&s, &fine, 1);
    target(&c, &s);
    c.extra_body = "{\"max_tokens\":7}";
    run(&r, &p, &c);
    serving_look(&s);
    assert_non_null(strstr(s.request[0], "\"max_tokens\":7"));
    vt_load_records_free(&r);
    vt_load_plan_free(&p);
    serving_stop(&s);
}

/* ---- calls and probes ------------------------------------------------- */

static void a_call_brings_its_reply(void **state)
{
    static const struct script reply = {
        .bytes =
            "HTTP/1.1 418 Teapot\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
            "\r\n"};
    static const struct vt_load_call get = {.path = "/v1/models",
                                            .timeout_ns = 10 * VT_SEC};
    static const struct vt_load_call post = {
        .path = "/tokenize", .body = "{}", .body_len = 2, .timeout_ns = 10 * VT_SEC};
    struct serving s = {0};
    struct vt_load_config c;
    struct vt_buf b = {0};
    struct vt_err err = {0};
    int status = 0;

    (void)state;
    serving_start(&s, &reply, 1);
    target(&c, &s);
    assert_int_equal(vt_load_call(&c, &get, &status, &b, &err), VT_OK);
    assert_int_equal(status, 418);
    assert_string_equal(b.data, "{}");
    assert_int_equal(vt_load_call(&c, &post, &status, &b, &err), VT_OK);
    serving_look(&s);
    assert_memory_equal(s.request[0], "GET /v1/models HTTP/1.1\r\n", 25);
    assert_memory_equal(s.request[1], "POST /tokenize HTTP/1.1\r\n", 25);
    vt_buf_free(&b);
    serving_stop(&s);
}

static void probes_run_beside_the_rest(void **state)
{
    static const struct script slow = {.bytes = FINE, .pause_ms = 5};
    struct serving s = {0};
    struct vt_load_records r;
    struct vt_load_config c;
    struct vt_load_plan p;

    (void)state;
    serving_start(&s, &slow, 1);
    target(&c, &s);
    c.probe_rate = 500;
    plan_of(&p, 8, &turn, 1);
    run(&r, &p, &c);
    serving_look(&s);
    assert_int_equal(r.n, 8);
    assert_true(r.n_probes >= 1);
    assert_int_equal(r.probes_failed, 0);
    assert_true(r.probe[0] >= 5 * VT_MS);
    assert_int_equal(r.peak_concurrency, 1);
    vt_load_records_free(&r);
    vt_load_plan_free(&p);
    serving_stop(&s);
}

/* ---- TLS -------------------------------------------------------------- */

static SSL_CTX *self_signed(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    X509_NAME *name;

    assert_true(ctx && key && x);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), 0);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, key);
    name = X509_get_subject_name(x);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               (const unsigned char *)"localhost", -1, -1, 0);
    X509_set_issuer_name(x, name);
    assert_true(X509_sign(x, key, EVP_sha256()) > 0);
    assert_int_equal(SSL_CTX_use_certificate(ctx, x), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(ctx, key), 1);
    X509_free(x);
    EVP_PKEY_free(key);
    return ctx;
}

static void tls_is_checked_unless_told_not_to(void **state)
{
    static const struct script fine = {.bytes = FINE, .piece = 50};
    struct serving s = {.tls = self_signed()};
    struct vt_load_records r, none = {0};
    struct vt_load_config c;
    struct vt_load_plan p;
    struct vt_err err = {0};

    (void)state;
    serving_start(&s, &fine, 1);
    target(&c, &s);
    plan_of(&p, 3, &turn, 1);
    assert_int_equal(vt_load_run(&none, &p, NULL, &c, &err), VT_EIO);
    if (!strstr(err.msg, "self-signed"))
        fail_msg("%s", err.msg);
    c.insecure = true;
    run(&r, &p, &c);
    serving_look(&s);
    assert_int_equal(r.n, 3);
    for (size_t i = 0; i < r.n; i++)
        expect_fine(&r.record[i]);
    assert_int_equal(r.connections, 1);
    vt_load_records_free(&r);
    vt_load_plan_free(&p);
    serving_stop(&s);
}

int main(void)
{
    enum { N = VT_COUNT(failures), M = VT_COUNT(bodies) };
    const struct CMUnitTest fixed[] = {
        cmocka_unit_test(streams_become_records),
        cmocka_unit_test(at_most_so_many_are_in_flight),
        cmocka_unit_test(requests_leave_when_they_are_planned),
        cmocka_unit_test(a_lost_connection_is_made_again),
        cmocka_unit_test(replies_are_part_of_what_follows),
        cmocka_unit_test(so_many_conversations_at_a_time),
        cmocka_unit_test(a_failed_turn_ends_its_conversation),
        cmocka_unit_test(a_stop_keeps_what_there_is),
        cmocka_unit_test(nobody_there_is_an_error),
        cmocka_unit_test(ids_are_sent_as_they_are),
        cmocka_unit_test(a_call_brings_its_reply),
        cmocka_unit_test(probes_run_beside_the_rest),
        cmocka_unit_test(tls_is_checked_unless_told_not_to),
    };
    struct CMUnitTest tests[VT_COUNT(fixed) + N + M];

    signal(SIGPIPE, SIG_IGN); /* the server's threads write to peers that have gone */
    for (size_t i = 0; i < VT_COUNT(fixed); i++)
        tests[i] = fixed[i];
    for (size_t i = 0; i < N; i++)
        tests[VT_COUNT(fixed) + i] = (struct CMUnitTest){.name = failures[i].name,
                                                         .test_func = fails,
                                                         .initial_state = &failures[i]};
    for (size_t i = 0; i < M; i++)
        tests[VT_COUNT(fixed) + N + i] = (struct CMUnitTest){
            .name = bodies[i].name, .test_func = writes, .initial_state = &bodies[i]};
    return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
