/* A recorder that is started again goes on with its files: what it leaves reads as one
 * trace. */
#include "tap_harness.h"

#include <sys/stat.h>

struct session {
    struct harness h;
    struct vt_frontend *f;
    struct scripted s;
};

/* One recording, with one request of two tokens that is called "a". */
static int record_once(struct session *t)
{
    static const uint32_t prompt[] = {1, 2, 3}, token = 7;
    struct vt_frontend_request r = {
        .id = "a", .prompt = prompt, .n_prompt = 3, .max_tokens = 50};
    char address[SOCK_ADDRESS];

    atomic_store(&t->h.stop, false);
    t->h.n_lines = 0;
    open_frontend(&t->f, "tcp://127.0.0.1:*", 1, 1, false);
    tap_start(&t->h, vt_frontend_address(t->f), address);
    connect_all(t->f, &t->s, 1, address);
    ok(vt_frontend_add(t->f, 0, 0, &r, &problem));
    take_one(&t->s, 0);
    for (int i = 0; i < 2; i++) {
        struct wire_output o = {.id = text("a"),
                                .token = &token,
                                .n_tokens = 1,
                                .finish = i == 0 ? WIRE_UNFINISHED : WIRE_STOP};
        struct wire_outputs w = {.output = &o,
                                 .n_outputs = 1,
                                 .timestamp = 1,
                                 .wave_complete = -1,
                                 .start_wave = -1};

        ok(scripted_outputs(&t->s, 0, vt_wire_line_find("0.26"), &w, &problem));
        assert_null(next_message(t->f)->bad);
    }
    tap_stop(&t->h);
    scripted_close(&t->s);
    vt_frontend_close(t->f);
    return t->h.rc;
}

/* A recording that is refused when the engine registers, or before. */
static void assert_refused(struct session *t, const char *why)
{
    struct vt_buf before = {0}, after = {0};
    struct engine_thread e = {.e = &t->s, .version = "0.26.0"};
    char address[SOCK_ADDRESS];

    ok(vt_read_file(t->h.trace, SIZE_MAX, &before, &problem));
    atomic_store(&t->h.stop, false);
    t->h.n_lines = 0;
    open_frontend(&t->f, "tcp://127.0.0.1:*", 1, 1, false);
    tap_start(&t->h, vt_frontend_address(t->f), address);
    e.address = address;
    assert_int_equal(pthread_create(&e.thread, NULL, join_frontend, &e), 0);
    assert_int_not_equal(vt_frontend_accept(t->f, 500, &problem), VT_OK);
    assert_int_equal(pthread_join(t->h.thread, NULL), 0);
    t->h.running = false;
    assert_int_equal(t->h.rc, VT_EINPUT);
    assert_non_null(strstr(t->h.err.msg, why));
    pthread_join(e.thread, NULL);
    scripted_close(&t->s);
    vt_frontend_close(t->f);
    ok(vt_read_file(t->h.trace, SIZE_MAX, &after, &problem));
    assert_string_equal(after.data, before.data);
    vt_buf_free(&before);
    vt_buf_free(&after);
}

static void start(struct session *t, bool packed)
{
    *t = (struct session){0};
    harness_init(&t->h);
    if (packed)
        snprintf(t->h.trace + strlen(t->h.trace), 8, ".gz");
    t->h.config.append = true;
    assert_int_equal(record_once(t), VT_OK);
}

/* What the one trace says. */
static void assert_trace(struct session *t, const char *const *id, size_t n)
{
    struct vt_records r;

    ok(vt_records_load(&r, t->h.trace, &problem));
    assert_int_equal(r.n, n);
    assert_int_equal(r.meta.max_num_seqs, 64);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(r.rec[i].id, id[i]);
        assert_int_equal(r.rec[i].concurrency, 1);
        if (i > 0) /* those before have ended */
            assert_true(r.rec[i].arrival_ns > r.rec[i - 1].arrival_ns +
                                                  r.rec[i - 1].ttft_ns +
                                                  vt_record_decode_ns(&r.rec[i - 1]));
    }
    vt_records_free(&r);
}

static void cut_file(const char *path, off_t by)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - by), 0);
}

/* ---- tests -------------------------------------------------------------- */

static void two_recordings_read_as_one_trace(void **state)
{
    static const char *const ids[] = {"a", "a#1", "a#2"};
    bool packed = *(bool *)*state;
    struct session t;

    start(&t, packed);
    assert_int_equal(record_once(&t), VT_OK);
    assert_trace(&t, ids, 2);
    assert_true(was_told(&t.h, "goes on behind 1 requests", NULL));
    assert_int_equal(t.h.sum.requests, 1); /* of this one */
    assert_int_equal(record_once(&t), VT_OK);
    assert_trace(&t, ids, 3);
    harness_free(&t.h);
}

static void a_cut_line_goes_first(void **state)
{
    static const char *const ids[] = {"a", "a#1"};
    bool packed = *(bool *)*state;
    struct session t;

    start(&t, packed);
    assert_int_equal(record_once(&t), VT_OK); /* a#1, half of which goes */
    cut_file(t.h.trace, packed ? 60 : 100);
    assert_int_equal(record_once(&t), VT_OK); /* a#1 again: that name is free */
    assert_trace(&t, ids, 2);
    harness_free(&t.h);
}

/* A clock that was set back brings no request before one that is there. */
static void arrivals_never_go_back(void **state)
{
    static const char *const ids[] = {"a", "a#1"};
    struct vt_buf b = {0};
    struct session t;
    char *start_unix;

    (void)state;
    start(&t, false);
    ok(vt_read_file(t.h.trace, SIZE_MAX, &b, &problem));
    start_unix = strstr(b.data, "\"start_unix\":1");
    assert_non_null(start_unix);
    start_unix[strlen("\"start_unix\":")] = '2'; /* decades later */
    ok(vt_write_file(t.h.trace, &b, &problem));
    assert_int_equal(record_once(&t), VT_OK);
    assert_trace(&t, ids, 2);
    vt_buf_free(&b);
    harness_free(&t.h);
}

static void another_engine_is_refused(void **state)
{
    struct session t;

    (void)state;
    start(&t, false);
    t.h.config.max_num_seqs = 128;
    assert_refused(&t,
                   "t.jsonl: it was recorded with max_num_seqs 64, not 128; nothing "
                   "was recorded");
    t.h.config.max_num_seqs = 0;
    t.h.config.gpu = "H200";
    assert_refused(&t, "t.jsonl: it was recorded with config_hash '");
    harness_free(&t.h);
}

static void other_files_are_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"{\"meta\":{\"source\":\"sim\",\"start_unix\":1.5}}\n",
         "line 1: not a recording"},
        {"{\"meta\":{\"source\":\"tap\"}}\n", "line 1: not a recording"},
        {"{\"id\":\"a\"}\n", "line 1: not a recording"},
        {"{\"meta\":{\"source\":\"tap\",\"start_unix\":1.5}}\n{}\n",
         "line 2: field 'id' is missing"},
        {"TIMESTAMP,ContextTokens\n", "line 1: "},
    };
    struct session t = {0};

    (void)state;
    harness_init(&t.h);
    t.h.config.append = true;
    t.h.config.frontend = "tcp://127.0.0.1:1";
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_buf b = {0};

        vt_buf_str(&b, rows[i].text);
        ok(vt_write_file(t.h.trace, &b, &problem));
        assert_int_equal(vt_tap(&t.h.config, &t.h.sum, &t.h.err), VT_EINPUT);
        assert_non_null(strstr(t.h.err.msg, rows[i].why));
        vt_buf_free(&b);
    }
    harness_free(&t.h);
}

int main(void)
{
    static bool no, yes = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(two_recordings_read_as_one_trace, &no),
        cmocka_unit_test_prestate(two_recordings_read_as_one_trace, &yes),
        cmocka_unit_test_prestate(a_cut_line_goes_first, &no),
        cmocka_unit_test_prestate(a_cut_line_goes_first, &yes),
        cmocka_unit_test(arrivals_never_go_back),
        cmocka_unit_test(another_engine_is_refused),
        cmocka_unit_test(other_files_are_refused),
    };

    return cmocka_run_group_tests_name("tap_append", tests, NULL, NULL);
}
