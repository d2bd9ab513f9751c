/* What a frontend hears of steps: which messages come, what is in them, and when. */
#include "play_harness.h"

#include <math.h>

/* ---- registration ----------------------------------------------------- */

static void registration_has_every_key_of_every_line(void **state)
{
    struct stage *s = *state;
    const struct vt_wire_line *const *line;
    const struct vt_frontend_engine *e;
    struct vt_arena a = {0};
    struct wire_ready r;
    struct vt_err err = {0};
    size_t n;

    s->c.max_loras = 4;
    stage_open(s);
    e = vt_frontend_engine(s->f, 0);
    assert_true(e->headless && !e->local);
    assert_null(e->config_hash);
    line = vt_wire_lines(&n);
    for (size_t i = 0; i < n; i++)
        if (vt_wire_ready_check(line[i], e->registration.at, e->registration.len,
                                &err) != VT_OK)
            fail_msg("%s: %s", line[i]->name, err.msg);
    assert_int_equal(
        wire_ready_read(&r, &a, e->registration.at, e->registration.len, &err), VT_OK);
    assert_int_equal(r.max_model_len, 4096);
    assert_int_equal(r.num_gpu_blocks, 1024);
    assert_int_equal(r.block_size, 16);
    assert_int_equal(r.kv_cache_size_tokens, 1024 * 16);
    assert_true(fabs(r.kv_cache_max_concurrency - 4) < 1e-9);
    assert_int_equal(r.max_num_seqs, 1024);
    assert_int_equal(r.max_num_batched_tokens, 8192);
    assert_int_equal(r.data_parallel_size, 1);
    assert_string_equal(r.dtype, "bfloat16");
    assert_string_equal(r.vllm_version, "0.32.0");
    assert_string_equal(r.instance_id, "twin");
    assert_true(r.supports_lora);
    assert_int_equal(r.max_loras, 4);
    assert_null(r.events_endpoint);
    vt_arena_free(&a);
}

static void registration_is_of_all_groups(void **state)
{
    static const struct {
        struct vt_kv_group group[2];
        uint32_t block, whole, state;
        uint64_t tokens;
    } rows[] = {
        /* 4096 tokens: 128 blocks, and 8192 in flight are more than all of them */
        {{{VT_ATTENTION_FULL, 32, 0, 1, 1024}, {VT_ATTENTION_SLIDING, 16, 64, 1, 1024}},
         16,
         32,
         0,
         (uint64_t)(1024.0 / (128 + 256) * 4096)},
        {{{VT_ATTENTION_FULL, 32, 0, 1, 1024}, {VT_ATTENTION_MLA, 64, 0, 1, 1024}},
         32,
         0,
         0,
         (uint64_t)(1024.0 / (128 + 64) * 4096)},
        {{{VT_ATTENTION_FULL, 16, 0, 1, 1024}, {VT_ATTENTION_MAMBA, 16, 0, 1, 1024}},
         16,
         16,
         16,
         (uint64_t)(1024.0 / (256 + 2) * 4096)},
    };
    struct stage *s = *state;

    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        const struct vt_frontend_engine *e;
        struct vt_arena a = {0};
        struct vt_err err = {0};
        struct wire_ready r;

        s->c.engine.n_kv_groups = 2;
        s->c.engine.mamba_cache_mode = VT_MAMBA_ALIGN;
        memcpy(s->c.engine.kv_group, rows[i].group, sizeof(rows[i].group));
        stage_open(s);
        e = vt_frontend_engine(s->f, 0);
        assert_int_equal(
            wire_ready_read(&r, &a, e->registration.at, e->registration.len, &err),
            VT_OK);
        assert_int_equal(r.num_gpu_blocks, 1024);
        assert_int_equal(r.block_size, rows[i].block);
        assert_int_equal(r.whole_block_size, rows[i].whole);
        assert_int_equal(r.state_block_size, rows[i].state);
        assert_int_equal(r.kv_cache_size_tokens, rows[i].tokens);
        vt_arena_free(&a);
        stage_end(s);
    }
}

static void ready_tells_the_parallel_config_hash(void **state)
{
    struct stage *s = *state;

    s->c.parallel_config_hash = "abcdef";
    stage_open(s);
    assert_string_equal(vt_frontend_engine(s->f, 0)->config_hash, "abcdef");
}

static void frontend_and_engine_may_talk_over_tcp(void **state)
{
    struct stage *s = *state;

    s->fc.handshake = s->fc.data = "tcp://127.0.0.1:*";
    stage_open(s);
    assert_non_null(strstr(s->handshake, "tcp://127.0.0.1:"));
    ask(s, "a", 40, 4);
    hear_finished(s, 1);
    assert_int_equal(told_of(&s->h, "a")->n_tokens, 4);
}

/* ---- one request ------------------------------------------------------ */

static void first_output_tells_queue_and_prefill(void **state)
{
    struct stage *s = *state;
    struct told *t;

    s->model = "linear:base=2000,prefill_token=100";
    stage_open(s);
    ask(s, "a", 40, 4);
    hear_finished(s, 1);
    t = told_of(&s->h, "a");
    assert_int_equal(t->n_tokens, 4);
    assert_int_equal(t->n_outputs, 4);
    assert_int_equal(t->n_with_prefill, 1);
    assert_int_equal(t->n_with_events, 1);
    assert_true(t->queued > 0 && t->queued <= t->scheduled);
    assert_true(t->scheduled < t->chunk[0].at);
    assert_true(fabs(t->chunk[0].at - t->scheduled - 0.006) < 1e-6);
    for (int i = 1; i < 4; i++)
        assert_true(fabs(t->chunk[i].at - t->chunk[i - 1].at - 0.002) < 1e-6);
}

/* Events and messages are told on the clock that frontends have, and none leaves
 * before its time. */
static void timestamps_are_of_the_monotonic_clock(void **state)
{
    struct stage *s = *state;
    double before, after;
    struct told *t;

    s->model = "linear:base=1000";
    stage_open(s);
    before = (double)wall_ns() / 1e9;
    ask(s, "a", 40, 20);
    hear_finished(s, 1);
    after = (double)wall_ns() / 1e9;
    t = told_of(&s->h, "a");
    assert_true(before <= t->queued);
    for (size_t i = 0; i < t->n_chunks; i++) {
        assert_true(t->chunk[i].at <= (double)t->chunk[i].wall / 1e9);
        assert_true(t->chunk[i].at <= after);
    }
}

/* So many messages with nothing but statistics, and no more. */
static void hear_stats_only(struct stage *s, uint32_t n)
{
    while (s->h.stats_only < n)
        (void)next(s);
    hear_rest(s, 30);
    assert_int_equal(s->h.stats_only, n);
}

static void prefill_in_chunks_says_nothing_until_its_end(void **state)
{
    struct stage *s = *state;

    s->c.engine.max_num_batched_tokens = 64;
    s->c.engine.async_scheduling = false;
    s->model = "linear:base=1000";
    stage_open(s);
    ask(s, "a", 300, 1);
    hear_finished(s, 1);
    hear_stats_only(s, 5); /* four steps without a token, and the one behind the end */
    assert_int_equal(told_of(&s->h, "a")->n_outputs, 1);
    assert_int_equal(told_of(&s->h, "a")->n_with_prefill, 1);
}

/* ---- steps ------------------------------------------------------------ */

static void ask_many(struct stage *s, uint32_t n, uint32_t n_prompt,
                     uint32_t max_tokens)
{
    char id[16];

    for (uint32_t i = 0; i < n; i++) {
        (void)snprintf(id, sizeof(id), "r%u", i);
        ask(s, id, n_prompt, max_tokens);
    }
}

static void a_step_is_one_message_with_all_its_requests(void **state)
{
    struct stage *s = *state;

    s->model = "linear:base=2000";
    stage_open(s);
    hold_all(s);
    ask_many(s, 20, 8, 5);
    let_go(s);
    hear_finished(s, 20);
    assert_int_equal(s->h.messages, 5);
    assert_int_equal(s->h.largest, 20);
    for (size_t i = 0; i < s->h.n; i++)
        for (size_t k = 0; k < 5; k++)
            assert_true(s->h.told[i].chunk[k].at == s->h.told[0].chunk[k].at);
}

static void an_instant_model_still_streams_token_by_token(void **state)
{
    struct stage *s = *state;

    s->c.engine.num_gpu_blocks = 2048;
    stage_open(s);
    hold_all(s);
    ask_many(s, 256, 8, 64);
    let_go(s);
    hear_finished(s, 256);
    assert_int_equal(s->h.messages, 64);
    assert_int_equal(s->h.largest, 256);
    for (size_t i = 0; i < s->h.n; i++) {
        assert_int_equal(s->h.told[i].n_tokens, 64);
        assert_int_equal(s->h.told[i].n_outputs, 64);
        assert_string_equal(s->h.told[i].finish, "length");
    }
    stage_stop(s);
    assert_int_equal(s->sum.requests, 256);
    assert_int_equal(s->sum.finished, 256);
    assert_int_equal(s->sum.tokens, 256 * 64);
}

/* A driver that is held up sends the steps that were due meanwhile one by one, with
 * the times that they had, and is back on schedule. */
static void a_late_driver_catches_up_step_by_step(void **state)
{
    struct stage *s = *state;
    double longest = 0;
    struct told *t;

    s->model = "linear:base=1000";
    s->c.log_requests = true;
    stall_at(s, "request held:", 120);
    stage_open(s);
    hold_all(s);
    ask_many(s, 4, 8, 500);
    let_go(s);
    hear_chunks(s, "r0", 10);
    ask(s, "held", 8, 2); /* the clock logs it, and is held there */
    hear_finished(s, 5);
    for (int i = 0; i < 4; i++) {
        t = &s->h.told[i];
        assert_int_equal(t->n_outputs, 500);
        for (size_t k = 1; k < t->n_chunks; k++)
            assert_true(fabs(t->chunk[k].at - t->chunk[k - 1].at - 0.001) < 1e-6);
        for (size_t k = 1; k < t->n_chunks; k++)
            longest =
                fmax(longest, (double)(t->chunk[k].wall - t->chunk[k - 1].wall) / 1e9);
    }
    assert_true(longest > 0.1); /* it was held up, and yet: */
    t = told_of(&s->h, "r3");
    assert_true(fabs(t->chunk[499].at - t->chunk[0].at - 0.499) < 1e-6);
    stage_stop(s);
    assert_true(s->sum.late_max_us > 100000);
    assert_true(s->sum.late_p50_us < s->sum.late_max_us);
}

/* ---- statistics ------------------------------------------------------- */

static void every_step_tells_counts_as_they_are_after_it(void **state)
{
    struct stage *s = *state;
    const struct vt_frontend_message *m;

    s->model = "linear:base=2000";
    s->c.engine.max_num_seqs = 2;
    stage_open(s);
    hold_all(s);
    ask(s, "short", 8, 3);
    ask(s, "long", 8, 6);
    ask(s, "waits", 8, 1);
    let_go(s);
    do {
        m = next(s);
        assert_true(m->has_stats);
        if (told_of(&s->h, "short") == NULL ||
            told_of(&s->h, "short")->finish[0] == '\0') {
            assert_int_equal(m->running, 2);
            assert_int_equal(m->waiting, 1);
            assert_true(m->kv_usage > 0);
        }
        if (told_of(&s->h, "short") != NULL && s->h.finished == 1 && m->n_outputs == 2)
            assert_int_equal(m->running, 1); /* one of two has just ended */
    } while (s->h.finished < 3);
    assert_int_equal(s->h.running, 0);
    assert_int_equal(s->h.waiting, 0);
    assert_int_equal(s->h.queries, 24); /* tokens of three prompts */
}

/* One more step tells the workers; with async scheduling it is planned before the end
 * is known, and once more after it. */
static void a_finish_is_followed_by_statistics_alone(void **state)
{
    struct stage *s = *state;
    const struct vt_frontend_message *m;

    s->model = "linear:base=2000";
    s->c.engine.async_scheduling = false;
    stage_open(s);
    ask(s, "a", 40, 3);
    hear_finished(s, 1);
    assert_int_equal(s->h.stats_only, 0);
    m = next(s);
    assert_true(m->has_stats && m->n_outputs == 0);
    assert_int_equal(m->running, 0);
    assert_true(m->kv_usage == 0);
    assert_null(next_within(s, 50)); /* and then nothing */
}

static void with_async_scheduling_it_is_followed_by_two(void **state)
{
    struct stage *s = *state;

    s->model = "linear:base=2000";
    stage_open(s);
    ask(s, "a", 40, 3);
    hear_finished(s, 1);
    hear_stats_only(s, 2);
    assert_int_equal(s->h.running, 0);
}

static void an_abort_is_answered_by_statistics_alone(void **state)
{
    struct stage *s = *state;

    s->model = "linear:base=2000";
    stage_open(s);
    ask(s, "a", 40, 1000);
    ask(s, "b", 40, 20);
    hear_chunks(s, "a", 3);
    abort_one(s, "a");
    hear_finished(s, 1);
    while (s->h.running > 0 || s->h.kv_usage > 0)
        (void)next(s);
    assert_string_equal(told_of(&s->h, "a")->finish, "");
    assert_string_equal(told_of(&s->h, "b")->finish, "length");
    assert_true(told_of(&s->h, "a")->n_tokens < 1000);
    stage_stop(s);
    assert_int_equal(s->sum.aborted, 1);
    assert_int_equal(s->sum.finished, 1);
}

static void without_log_stats_there_are_neither_statistics_nor_events(void **state)
{
    struct stage *s = *state;

    s->c.log_stats = false;
    stage_open(s);
    ask(s, "a", 40, 3);
    hear_finished(s, 1);
    hear_rest(s, 50);
    assert_int_equal(s->h.with_stats, 0);
    assert_int_equal(told_of(&s->h, "a")->n_with_events, 0);
    assert_int_equal(told_of(&s->h, "a")->n_with_prefill, 1);
}

/* The statistics of a message, read by our own codec. */
static struct wire_stats stats_of(const struct vt_frontend_message *m,
                                  struct vt_arena *a)
{
    struct wire_outputs o;
    struct vt_err err = {0};

    vt_arena_reset(a);
    assert_int_equal(wire_outputs_read(&o, a, m->frame[0].at, m->frame[0].len,
                                       (uint32_t)m->n_frames - 1, &err),
                     VT_OK);
    assert_true(o.has_stats);
    return o.stats;
}

static void iteration_details_tell_what_a_step_computed(void **state)
{
    struct stage *s = *state;
    struct vt_arena a = {0};
    struct wire_stats t;

    s->model = "linear:base=2000";
    s->c.iteration_details = true;
    stage_open(s);
    ask(s, "a", 40, 2);
    t = stats_of(next(s), &a);
    assert_true(t.has_iteration);
    assert_int_equal(t.iteration.prefills, 1);
    assert_int_equal(t.iteration.prefill_tokens, 40);
    assert_int_equal(t.iteration.decodes, 0);
    assert_true(fabs(t.iteration.elapsed_ms - 2) < 1e-6);
    t = stats_of(next(s), &a);
    assert_int_equal(t.iteration.prefills, 0);
    assert_int_equal(t.iteration.decodes, 1);
    assert_int_equal(t.iteration.decode_tokens, 1);
    vt_arena_free(&a);
}

static void accepted_drafts_come_in_one_output(void **state)
{
    struct stage *s = *state;
    struct vt_arena a = {0};
    const struct vt_frontend_message *m;
    uint64_t drafts = 0, accepted = 0;
    struct told *t;

    s->model = "linear:base=1000";
    s->c.engine.num_spec_tokens = 3;
    s->c.engine.spec_acceptance = 1;
    stage_open(s);
    ask(s, "a", 40, 21);
    do {
        m = next(s);
        if (stats_of(m, &a).has_spec) {
            struct wire_stats stats = stats_of(m, &a);

            assert_int_equal(stats.spec.num_spec_tokens, 3);
            drafts += stats.spec.drafts;
            accepted += stats.spec.accepted_tokens;
        }
    } while (s->h.finished == 0);
    t = told_of(&s->h, "a");
    assert_int_equal(t->n_tokens, 21);
    assert_int_equal(t->n_chunks, 6); /* one, and five of four */
    assert_int_equal(t->chunk[0].n_tokens, 1);
    assert_int_equal(t->chunk[1].n_tokens, 4);
    assert_int_equal(drafts, 5);
    assert_int_equal(accepted, 15);
    vt_arena_free(&a);
}

static void step_stats_out_has_a_line_for_each_step(void **state)
{
    struct stage *s = *state;
    struct vt_arena a = {0};
    struct vt_lines *lines;
    struct vt_err err = {0};
    char path[64], *line;
    size_t len, n = 0;

    (void)snprintf(path, sizeof(path), "%s/steps", s->dir);
    s->c.step_stats_out = path;
    stage_open(s);
    ask(s, "a", 40, 5);
    hear_finished(s, 1);
    stage_stop(s);
    assert_int_equal(vt_lines_open(&lines, path, &err), VT_OK);
    while (vt_lines_next(lines, &line, &len, NULL, &err) == VT_OK && line != NULL) {
        const struct vt_node *root;
        int64_t running = -1;

        if (vt_json_parse(&a, line, len, 1, &root, &err) != VT_OK)
            fail_msg("%s", err.msg);
        assert_int_equal(vt_get_i64(vt_get(root, "scheduler"), "num_running_reqs",
                                    VT_REQUIRED, 0, 1, &running, &err),
                         VT_OK);
        n++;
    }
    while (s->h.with_stats < n)
        (void)next(s);
    assert_true(n >= 5);
    vt_lines_close(lines);
    vt_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY_TEST(registration_has_every_key_of_every_line),
        PLAY_TEST(registration_is_of_all_groups),
        PLAY_TEST(ready_tells_the_parallel_config_hash),
        PLAY_TEST(frontend_and_engine_may_talk_over_tcp),
        PLAY_TEST(first_output_tells_queue_and_prefill),
        PLAY_TEST(timestamps_are_of_the_monotonic_clock),
        PLAY_TEST(prefill_in_chunks_says_nothing_until_its_end),
        PLAY_TEST(a_step_is_one_message_with_all_its_requests),
        PLAY_TEST(an_instant_model_still_streams_token_by_token),
        PLAY_TEST(a_late_driver_catches_up_step_by_step),
        PLAY_TEST(every_step_tells_counts_as_they_are_after_it),
        PLAY_TEST(a_finish_is_followed_by_statistics_alone),
        PLAY_TEST(with_async_scheduling_it_is_followed_by_two),
        PLAY_TEST(an_abort_is_answered_by_statistics_alone),
        PLAY_TEST(without_log_stats_there_are_neither_statistics_nor_events),
        PLAY_TEST(iteration_details_tell_what_a_step_computed),
        PLAY_TEST(accepted_drafts_come_in_one_output),
        PLAY_TEST(step_stats_out_has_a_line_for_each_step),
    };

    return cmocka_run_group_tests_name("play_serve", tests, NULL, NULL);
}
