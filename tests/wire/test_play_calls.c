/* Utility calls: what they answer, and what pausing, sleeping and resetting do to the
 * requests there are. */
#include "play_harness.h"

/* ---- arguments -------------------------------------------------------- */

/* "sIb": a text, an integer, a bool; "n": nil; "l": a LoRA request; "t": a list of one
 * text. */
static void put_args(struct vt_buf *b, const char *kinds, const char *text,
                     int64_t number, bool flag)
{
    vt_buf_clear(b);
    mp_put_array(b, (uint32_t)strlen(kinds));
    for (; *kinds != '\0'; kinds++) {
        if (*kinds == 's') {
            mp_put_str(b, text);
        } else if (*kinds == 'I') {
            mp_put_i64(b, number);
        } else if (*kinds == 'b') {
            mp_put_bool(b, flag);
        } else if (*kinds == 't') {
            mp_put_array(b, 1);
            mp_put_str(b, text);
        } else if (*kinds == 'l') {
            mp_put_array(b, 3);
            mp_put_str(b, text);
            mp_put_i64(b, number);
            mp_put_str(b, "/adapters");
        } else {
            mp_put_nil(b);
        }
    }
}

/* ---- answers ---------------------------------------------------------- */

static const struct row {
    const char *method, *kinds, *text;
    int64_t number;
    bool flag;
    const char *want;
} rows[] = {
    {"get_supported_tasks", "", NULL, 0, false, "[null,[\"generate\"]]"},
    {"is_sleeping", "", NULL, 0, false, "[null,false]"},
    {"is_scheduler_paused", "", NULL, 0, false, "[null,false]"},
    {"reset_prefix_cache", "bb", NULL, 0, false, "[null,true]"},
    {"reset_prefix_cache", "", NULL, 0, false, "[null,true]"},
    {"reset_mm_cache", "", NULL, 0, false, "[null,null]"},
    {"reset_encoder_cache", "", NULL, 0, false, "[null,null]"},
    {"profile", "bs", "trace", 0, true, "[null,null]"},
    {"execute_dummy_batch", "", NULL, 0, false, "[null,null]"},
    {"resume_scheduler", "", NULL, 0, false, "[null,null]"},
    {"list_loras", "", NULL, 0, false, "[null,[]]"},
    {"add_lora", "l", "alpha", 7, false, "[null,true]"},
    {"add_lora", "l", "beta", 9, false, "[null,true]"},
    {"add_lora", "l", "alpha", 7, false, "[null,true]"},
    {"list_loras", "", NULL, 0, false, "[null,[7,9]]"},
    {"pin_lora", "I", NULL, 7, false, "[null,true]"},
    {"pin_lora", "I", NULL, 8, false, "[null,false]"},
    {"remove_lora", "I", NULL, 7, false, "[null,true]"},
    {"remove_lora", "I", NULL, 7, false, "[null,false]"},
    {"list_loras", "", NULL, 0, false, "[null,[9]]"},
    {"collective_rpc", "snnn", "check_health", 0, false, "[null,[null,null]]"},
    {"get_weight_version", "", NULL, 0, false, "[null,\"default\"]"},
    {"set_weight_version", "s", "v2", 0, false, "[null,null]"},
    {"get_weight_version", "", NULL, 0, false, "[null,\"v2\"]"},
    {"compute_weight_checksums", "", NULL, 0, false, "[null,[{},{}]]"},
    /* What makes no sense fails or does nothing; the engine goes on. */
    {"no_such_method", "", NULL, 0, false, "failed"},
    {"", "", NULL, 0, false, "failed"},
    {"pause_scheduler", "sb", "sometimes", 0, false, "failed"},
    {"sleep", "Is", "sometimes", 1, false, "failed"},
    {"add_lora", "s", "alpha", 0, false, "failed"},
    {"add_lora", "", NULL, 0, false, "failed"},
    {"remove_lora", "s", "alpha", 0, false, "[null,false]"},
    {"set_weight_version", "I", NULL, 3, false, "failed"},
    {"is_scheduler_paused", "sIbn", "what", 3, true, "[null,false]"},
};

static void calls_are_answered_as_vllm_does(void **state)
{
    struct stage *s = *state;
    struct vt_buf args = {0};

    s->c.tensor_parallel_size = 2;
    stage_open(s);
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        const struct row *r = &rows[i];

        print_message("  %s %s\n", r->method, r->text != NULL ? r->text : "");
        put_args(&args, r->kinds, r->text, r->number, r->flag);
        assert_call(s, r->method, &args, r->want);
    }
    vt_buf_free(&args);
}

static void an_unknown_method_is_named(void **state)
{
    struct stage *s = *state;
    const struct vt_frontend_message *m;

    stage_open(s);
    m = call(s, 1, "fly", NULL);
    assert_non_null(strstr(m->failure, "Call to fly method failed: "));
    assert_null(m->result.at);
}

/* ---- call ids --------------------------------------------------------- */

static const struct {
    const char *bytes;
    size_t len;
} ids[] = {
    {"\x00", 1},
    {"\x7f", 1},
    {"\xcd\x12\x34", 3},
    {"\xcf\x7f\xff\xff\xff\xff\xff\xff\xff", 9}, /* 2^63 - 1 */
    {"\xcf\x80\x00\x00\x00\x00\x00\x00\x00", 9}, /* 2^63 */
    {"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9}, /* 2^64 - 1 */
    {"\xff", 1},                                 /* -1 */
    {"\xd3\x80\x00\x00\x00\x00\x00\x00\x00", 9}, /* -2^63 */
    {"\xcf\x00\x00\x00\x00\x00\x00\x00\x05", 9}, /* 5, longer than it need be */
    {"\xd3\x00\x00\x00\x00\x00\x00\x00\x05", 9},
};

static void call_ids_come_back_bit_by_bit(void **state)
{
    struct stage *s = *state;

    stage_open(s);
    for (size_t i = 0; i < VT_COUNT(ids); i++) {
        struct vt_buf b = {0};
        const struct vt_frontend_message *m;
        struct mp_in in;
        struct mp_span id;

        mp_put_array(&b, 4);
        mp_put_u64(&b, 0);
        vt_buf_add(&b, ids[i].bytes, ids[i].len);
        mp_put_str(&b, "is_sleeping");
        mp_put_array(&b, 0);
        send_typed(s, 0, WIRE_UTILITY, b.data, b.len);
        vt_buf_free(&b);
        m = next(s);
        assert_true(m->has_utility);
        mp_in_init(&in, m->frame[0].at, m->frame[0].len);
        mp_array(&in);
        for (int k = 0; k < 4; k++)
            mp_skip(&in);
        assert_int_equal(mp_array(&in), 3);
        id = mp_raw(&in);
        assert_int_equal(id.len, ids[i].len);
        assert_memory_equal(id.at, ids[i].bytes, id.len);
    }
}

/* ---- pausing ---------------------------------------------------------- */

enum { LONG = 4000 }; /* tokens: more than a test waits for, on any machine */

static void pause_with(struct stage *s, const char *mode, bool clear)
{
    struct vt_buf args = {0};

    pause_args(&args, mode, clear);
    assert_call(s, "pause_scheduler", &args, "[null,null]");
    vt_buf_free(&args);
}

static void pausing_with_abort_ends_what_runs(void **state)
{
    struct stage *s = *state;

    s->model = "linear:base=2000";
    s->c.engine.max_num_seqs = 2;
    stage_open(s);
    ask(s, "runs", 8, LONG);
    ask(s, "too", 8, LONG);
    ask(s, "waits", 8, LONG);
    hear_chunks(s, "too", 3);
    pause_with(s, "abort", true);
    assert_int_equal(s->h.finished, 3); /* before the answer */
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(s->h.told[i].finish, "abort");
    assert_call(s, "is_scheduler_paused", NULL, "[null,true]");
    assert_call(s, "is_sleeping", NULL, "[null,true]");
    ask(s, "later", 8, 2);
    hear_rest(s, 60);
    assert_null(told_of(&s->h, "later"));
    assert_call(s, "resume_scheduler", NULL, "[null,null]");
    hear_finished(s, 4);
    assert_string_equal(told_of(&s->h, "later")->finish, "length");
}

/* What is kept goes on from where it was, and its time from when it is let go. */
static void pausing_with_keep_holds_what_runs(void **state)
{
    struct stage *s = *state;
    const struct told *t;
    size_t n;

    s->model = "linear:base=2000";
    stage_open(s);
    ask(s, "kept", 8, LONG);
    hear_chunks(s, "kept", 5);
    pause_with(s, "keep", false);
    n = told_of(&s->h, "kept")->n_chunks;
    ask(s, "new", 8, 2);
    pause_ms(100);
    hear_rest(s, 0);
    assert_int_equal(told_of(&s->h, "kept")->n_chunks, n);
    assert_null(told_of(&s->h, "new"));
    assert_call(s, "resume_scheduler", NULL, "[null,null]");
    hear_finished(s, 1);
    hear_chunks(s, "kept", n + 10);
    t = told_of(&s->h, "kept");
    assert_int_equal(t->n_tokens, t->n_chunks);
    assert_int_equal(t->preemptions, 0);
    assert_true(t->chunk[n].at - t->chunk[n - 1].at > 0.1);
    for (size_t i = n + 1; i < t->n_chunks; i++) /* no step was made up for */
        assert_true(t->chunk[i].at - t->chunk[i - 1].at > 0.0019);
}

/* The engine is let go in one breath with a new request: what waited does not run in
 * the time that is over. */
static void time_held_is_not_made_up_for(void **state)
{
    struct stage *s = *state;
    struct vt_err err = {0};
    const struct told *t;
    size_t n;

    s->model = "linear:base=2000";
    stage_open(s);
    ask(s, "kept", 8, LONG);
    hear_chunks(s, "kept", 5);
    pause_with(s, "keep", false);
    n = told_of(&s->h, "kept")->n_chunks;
    pause_ms(100);
    stall_at(s, "utility fly:", 50); /* while this holds it, what follows arrives */
    assert_int_equal(
        vt_frontend_call(s->f, 0, 0, 99, "fly", (struct vt_bytes){0}, &err), VT_OK);
    ask(s, "new", 8, 2);
    assert_int_equal(vt_frontend_call(s->f, 0, 0, 100, "resume_scheduler",
                                      (struct vt_bytes){0}, &err),
                     VT_OK);
    hear_finished(s, 1);
    hear_chunks(s, "kept", n + 1);
    t = told_of(&s->h, "kept");
    assert_true(t->chunk[n].at - t->chunk[n - 1].at > 0.1);
}

static void pausing_with_wait_is_answered_when_all_have_ended(void **state)
{
    struct stage *s = *state;

    s->model = "linear:base=2000";
    s->c.engine.max_num_seqs = 1;
    stage_open(s);
    ask(s, "runs", 8, 200);
    ask(s, "waits", 8, 2);
    hear_chunks(s, "runs", 5);
    pause_with(s, "wait", false);
    assert_string_equal(told_of(&s->h, "runs")->finish, "length");
    assert_int_equal(told_of(&s->h, "runs")->n_tokens, 200);
    assert_null(told_of(&s->h, "waits"));
    assert_call(s, "resume_scheduler", NULL, "[null,null]");
    hear_finished(s, 2);
}

/* The tokens so far are those that a request has which nothing happened to. */
static void assert_same_tokens(struct stage *s, const char *id, const char *other)
{
    const struct told *a = told_of(&s->h, id), *b = told_of(&s->h, other);
    size_t n = a->n_tokens < b->n_tokens ? a->n_tokens : b->n_tokens;

    assert_memory_equal(a->token, b->token, n * sizeof(*a->token));
}

static void clearing_on_pause_preempts_what_is_kept(void **state)
{
    struct stage *s = *state;
    size_t n;

    s->model = "linear:base=2000";
    stage_open(s);
    ask(s, "alone", 40, 40);
    hear_finished(s, 1);
    ask(s, "kept", 40, LONG);
    hear_chunks(s, "kept", 5);
    pause_with(s, "keep", true);
    assert_call(s, "resume_scheduler", NULL, "[null,null]");
    n = told_of(&s->h, "kept")->n_chunks;
    hear_chunks(s, "kept", n + 5);
    assert_int_equal(told_of(&s->h, "kept")->cached, 32);
    assert_int_equal(told_of(&s->h, "kept")->preemptions, 1);
    assert_same_tokens(s, "kept", "alone");
}

static void aborting_works_while_paused(void **state)
{
    struct stage *s = *state;
    size_t n;

    s->model = "linear:base=2000";
    stage_open(s);
    ask(s, "a", 8, LONG);
    ask(s, "b", 8, LONG);
    hear_chunks(s, "b", 5);
    pause_with(s, "keep", false);
    n = told_of(&s->h, "a")->n_chunks;
    abort_one(s, "a");
    assert_call(s, "resume_scheduler", NULL, "[null,null]");
    hear_chunks(s, "b", told_of(&s->h, "b")->n_chunks + 5);
    assert_int_equal(told_of(&s->h, "a")->n_chunks, n);
    assert_int_equal(s->h.running, 1);
}

/* ---- resetting the cache ---------------------------------------------- */

static void the_cache_is_not_reset_while_blocks_are_in_use(void **state)
{
    struct stage *s = *state;
    struct vt_buf args = {0};

    s->model = "linear:base=2000";
    stage_open(s);
    put_args(&args, "bb", NULL, 0, false);
    ask(s, "a", 40, LONG);
    hear_chunks(s, "a", 2);
    assert_call(s, "reset_prefix_cache", &args, "[null,false]");
    abort_one(s, "a");
    ask(s, "hit", 40, 1);
    hear_finished(s, 1);
    assert_int_equal(told_of(&s->h, "hit")->cached, 32);
    while (s->h.kv_usage > 0)
        (void)next(s);
    assert_call(s, "reset_prefix_cache", &args, "[null,true]");
    ask(s, "miss", 40, 1);
    hear_finished(s, 2);
    assert_int_equal(told_of(&s->h, "miss")->cached, 0);
    vt_buf_free(&args);
}

static void resetting_with_running_requests_preempts_them(void **state)
{
    struct stage *s = *state;
    struct vt_buf args = {0};

    s->model = "linear:base=2000";
    stage_open(s);
    put_args(&args, "bb", NULL, 0, true);
    ask(s, "alone", 40, 40);
    hear_finished(s, 1);
    ask(s, "a", 40, LONG);
    hear_chunks(s, "a", 3);
    assert_call(s, "reset_prefix_cache", &args, "[null,true]");
    hear_chunks(s, "a", told_of(&s->h, "a")->n_chunks + 5);
    assert_int_equal(told_of(&s->h, "a")->preemptions, 1);
    assert_same_tokens(s, "a", "alone");
    vt_buf_free(&args);
}

/* ---- sleep ------------------------------------------------------------ */

static void sleep_at(struct stage *s, int64_t level)
{
    struct vt_buf args = {0};

    put_args(&args, "Is", "abort", level, false);
    assert_call(s, "sleep", &args, "[null,null]");
    vt_buf_free(&args);
}

static void sleep_levels_keep_or_drop_the_cache(void **state)
{
    static const uint32_t cached[] = {32, 0, 0}; /* by level */
    struct stage *s = *state;
    char id[16];

    s->c.line = s->fc.line = vt_wire_line_find("0.26");
    stage_open(s);
    ask(s, "first", 40, 1);
    hear_finished(s, 1);
    for (int64_t level = 0; level <= 2; level++) {
        sleep_at(s, level);
        assert_call(s, "is_sleeping", NULL, "[null,true]");
        assert_call(s, "is_scheduler_paused", NULL, "[null,true]");
        (void)snprintf(id, sizeof(id), "%d", (int)level);
        ask(s, id, 40, 1);
        hear_rest(s, 30);
        assert_null(told_of(&s->h, id));
        assert_call(s, "wake_up", NULL, "[null,null]");
        assert_call(s, "is_sleeping", NULL, "[null,false]");
        hear_finished(s, (uint32_t)level + 2);
        assert_int_equal(told_of(&s->h, id)->cached, cached[level]);
    }
}

static void an_engine_wakes_up_in_parts(void **state)
{
    struct stage *s = *state;
    struct vt_buf args = {0};

    s->c.line = s->fc.line = vt_wire_line_find("0.32");
    stage_open(s);
    sleep_at(s, 1);
    put_args(&args, "t", "scheduling", 0, false);
    assert_call(s, "wake_up", &args, "[null,false]");
    put_args(&args, "t", "weights", 0, false);
    assert_call(s, "wake_up", &args, "[null,false]");
    assert_call(s, "is_sleeping", NULL, "[null,true]");
    ask(s, "a", 8, 1);
    put_args(&args, "t", "kv_cache", 0, false);
    assert_call(s, "wake_up", &args, "[null,true]");
    assert_call(s, "is_sleeping", NULL, "[null,false]");
    hear_finished(s, 1);
    vt_buf_free(&args);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY_TEST(calls_are_answered_as_vllm_does),
        PLAY_TEST(an_unknown_method_is_named),
        PLAY_TEST(call_ids_come_back_bit_by_bit),
        PLAY_TEST(pausing_with_abort_ends_what_runs),
        PLAY_TEST(pausing_with_keep_holds_what_runs),
        PLAY_TEST(time_held_is_not_made_up_for),
        PLAY_TEST(pausing_with_wait_is_answered_when_all_have_ended),
        PLAY_TEST(clearing_on_pause_preempts_what_is_kept),
        PLAY_TEST(aborting_works_while_paused),
        PLAY_TEST(the_cache_is_not_reset_while_blocks_are_in_use),
        PLAY_TEST(resetting_with_running_requests_preempts_them),
        PLAY_TEST(sleep_levels_keep_or_drop_the_cache),
        PLAY_TEST(an_engine_wakes_up_in_parts),
    };

    return cmocka_run_group_tests_name("play_calls", tests, NULL, NULL);
}
