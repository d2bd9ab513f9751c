/* --replay-steps: requests follow recorded times and chunk sizes. Times are judged by
 * what the engine says of its messages; that these leave when it says so, by the clock.
 */
#include "play_harness.h"

#include <math.h>

/* ---- traces ----------------------------------------------------------- */

struct trace {
    struct vt_buf text;
    char path[64];
};

/* A record of chunks that come gap_ms(i) apart, of size(i) tokens. */
struct record {
    double ttft_ms;
    uint32_t n_gaps;
    double (*gap_ms)(uint32_t i);
    uint32_t (*size)(uint32_t i); /* NULL: 1; of the chunk behind gap i */
    uint32_t first;               /* tokens in the first chunk */
    uint32_t cached;
};

static uint32_t tokens_of(const struct record *r)
{
    uint32_t n = r->first;

    for (uint32_t i = 0; i < r->n_gaps; i++)
        n += r->size != NULL ? r->size(i) : 1;
    return n;
}

static void put_record(struct trace *t, const struct record *r)
{
    struct vt_buf *b = &t->text;

    vt_buf_printf(b,
                  "{\"prompt_tokens\":40,\"cached_tokens\":%u,\"output_tokens\":%u,"
                  "\"ttft_ms\":%g,\"finish_reason\":\"length\",\"itl_ms\":[",
                  r->cached, tokens_of(r), r->ttft_ms);
    for (uint32_t i = 0; i < r->n_gaps; i++)
        vt_buf_printf(b, i > 0 ? ",%g" : "%g", r->gap_ms(i));
    vt_buf_str(b, "]");
    for (uint32_t i = 0; i < r->n_gaps && r->size != NULL; i++)
        vt_buf_printf(b, i > 0 ? ",%u" : ",\"itl_tokens\":[%u", r->size(i));
    vt_buf_str(b, r->size != NULL ? "]}\n" : "}\n");
}

static void play_trace(struct stage *s, struct trace *t)
{
    struct vt_out *o;
    struct vt_err err = {0};

    assert_false(t->text.failed);
    (void)snprintf(t->path, sizeof(t->path), "%s/trace.jsonl", s->dir);
    assert_int_equal(vt_out_open(&o, t->path, &err), VT_OK);
    assert_int_equal(vt_out_write(o, t->text.data, t->text.len, &err), VT_OK);
    assert_int_equal(vt_out_commit(o, &err), VT_OK);
    vt_buf_free(&t->text);
    s->c.replay_steps = t->path;
    stage_open(s);
}

/* ---- what is heard ---------------------------------------------------- */

/* Every chunk at its recorded distance from the first sight of the request. */
static void assert_times(const struct told *t, const struct record *r, double scale)
{
    double at = t->queued + r->ttft_ms / 1e3 / scale;

    assert_int_equal(t->n_chunks, r->n_gaps + 1);
    assert_int_equal(t->n_tokens, tokens_of(r));
    assert_int_equal(t->chunk[0].n_tokens, r->first);
    for (uint32_t i = 0; i <= r->n_gaps; i++) {
        assert_true(fabs(t->chunk[i].at - at) < 1e-5); /* of a double's 12,000 s */
        if (i == r->n_gaps)
            break;
        at += r->gap_ms(i) / 1e3 / scale;
        assert_int_equal(t->chunk[i + 1].n_tokens, r->size != NULL ? r->size(i) : 1);
    }
}

static int by_value(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;

    return a < b ? -1 : a > b;
}

/* Messages leave when they say: not all of them, on a machine that does other things.
 */
static void assert_punctual(const struct told *t)
{
    double *late = malloc(t->n_chunks * sizeof(*late));

    assert_non_null(late);
    for (size_t i = 0; i < t->n_chunks; i++) {
        late[i] = (double)t->chunk[i].wall / 1e9 - t->chunk[i].at;
        assert_true(late[i] > -1e-5);
    }
    qsort(late, t->n_chunks, sizeof(*late), by_value);
    assert_true(late[t->n_chunks / 10] < 0.25);
    free(late);
}

static double uneven(uint32_t i)
{
    return 0.5 + (double)(i * 7 % 10) / 4;
}

static uint32_t growing(uint32_t i)
{
    return 1 + i % 5;
}

static double even(uint32_t i)
{
    (void)i;
    return 1.25;
}

static void times_and_chunks_are_those_of_the_record(void **state)
{
    static const struct record r = {25, 40, uneven, growing, 3, 16};
    struct stage *s = *state;
    struct trace t = {0};

    put_record(&t, &r);
    play_trace(s, &t);
    ask(s, "replay-0", 40, tokens_of(&r));
    hear_finished(s, 1);
    assert_times(&s->h.told[0], &r, 1);
    assert_string_equal(s->h.told[0].finish, "length");
    assert_int_equal(s->h.told[0].cached, 16);
    assert_int_equal(s->h.queries, 40); /* and so do the statistics */
    assert_int_equal(s->h.hits, 16);
    assert_int_equal(s->h.told[0].n_with_prefill, 1);
    assert_int_equal(s->h.told[0].n_with_events, 1);
    assert_int_equal(s->h.running, 0);
    stage_stop(s);
    assert_int_equal(s->sum.matched, 1);
    assert_int_equal(s->sum.finished, 1);
}

/* Two hundred gaps add up to their sum: each deadline is absolute. */
static void deadlines_do_not_drift(void **state)
{
    static const struct record r = {10, 200, even, NULL, 1, 0};
    struct stage *s = *state;
    struct trace t = {0};
    const struct told *x;

    put_record(&t, &r);
    play_trace(s, &t);
    ask(s, "replay-0", 40, 201);
    hear_finished(s, 1);
    x = &s->h.told[0];
    assert_times(x, &r, 1);
    assert_punctual(x);
    assert_true(fabs(x->chunk[200].at - x->chunk[0].at - 0.25) < 1e-5);
}

/* Others, and a machine that is held up, move nothing. */
static void several_at_once_keep_their_own_times(void **state)
{
    static const struct record r[] = {
        {5, 60, even, NULL, 1, 0},
        {30, 30, uneven, growing, 2, 0},
        {12, 45, even, growing, 1, 0},
    };
    struct stage *s = *state;
    struct trace t = {0};

    for (size_t i = 0; i < VT_COUNT(r); i++)
        put_record(&t, &r[i]);
    s->model = "linear:base=1000";
    s->c.log_requests = true;
    stall_at(s, "request replay-2:", 20);
    play_trace(s, &t);
    ask(s, "nobody's", 40, 80); /* timed by the model */
    for (uint32_t i = 0; i < VT_COUNT(r); i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "replay-%u", i);
        ask(s, id, 40, 1000);
    }
    hear_finished(s, 4);
    for (uint32_t i = 0; i < VT_COUNT(r); i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "replay-%u", i);
        assert_times(told_of(&s->h, id), &r[i], 1);
    }
    assert_int_equal(told_of(&s->h, "nobody's")->n_chunks, 80);
    hear_rest(s, 50); /* whoever ended last, statistics say so in the end */
    assert_int_equal(s->h.running, 0);
}

static void a_scale_of_ten_is_ten_times_as_fast(void **state)
{
    static const struct record r = {250, 100, even, NULL, 1, 0};
    struct stage *s = *state;
    struct trace t = {0};
    const struct told *x;

    put_record(&t, &r);
    s->model = "linear:base=10000";
    s->c.time_scale = 10;
    play_trace(s, &t);
    ask(s, "replay-0", 40, 101);
    ask(s, "modelled", 40, 50);
    hear_finished(s, 2);
    assert_times(told_of(&s->h, "replay-0"), &r, 10);
    x = told_of(&s->h, "modelled");
    assert_true(fabs(x->chunk[49].at - x->chunk[0].at - 0.049) < 1e-5);
}

/* ---- where the request and the record differ -------------------------- */

static void a_lower_limit_cuts_the_record_short(void **state)
{
    static const struct record r = {5, 40, even, growing, 3, 0};
    struct stage *s = *state;
    struct trace t = {0};
    const struct told *x;

    put_record(&t, &r);
    play_trace(s, &t);
    ask(s, "replay-0", 40, 10); /* 3, 1, 2, 3, and one of four */
    hear_finished(s, 1);
    x = &s->h.told[0];
    assert_int_equal(x->n_tokens, 10);
    assert_int_equal(x->n_chunks, 5);
    assert_int_equal(x->chunk[4].n_tokens, 1);
    assert_string_equal(x->finish, "length");
}

static void a_stop_token_cuts_the_record_short(void **state)
{
    static const struct record r = {5, 40, even, growing, 3, 0};
    struct stage *s = *state;
    struct trace t = {0};
    struct vt_buf sampling = {0};
    const uint32_t forced[] = {5, 6, 7, 8, 9}, stop[] = {8};
    const struct told *x;

    put_record(&t, &r);
    play_trace(s, &t);
    mp_put_map(&sampling, 3);
    put_key_u64(&sampling, "max_tokens", 100);
    put_key_ids(&sampling, "trace_decode_token_ids", forced, 5);
    put_key_ids(&sampling, "stop_token_ids", stop, 1);
    ask_with(s, "replay-0", 40, &sampling);
    vt_buf_free(&sampling);
    hear_finished(s, 1);
    x = &s->h.told[0];
    assert_string_equal(x->finish, "stop");
    assert_int_equal(x->n_tokens, 4);
    assert_int_equal(x->stop_token, 8);
}

static void an_abort_ends_it(void **state)
{
    static const struct record r = {5, 200, even, NULL, 1, 0};
    struct stage *s = *state;
    struct trace t = {0};
    size_t n;

    put_record(&t, &r);
    play_trace(s, &t);
    ask(s, "replay-0", 40, 201);
    hear_chunks(s, "replay-0", 5);
    abort_one(s, "replay-0");
    assert_call(s, "is_sleeping", NULL, "[null,false]"); /* it has been heard */
    n = s->h.told[0].n_chunks;
    hear_rest(s, 50);
    assert_int_equal(s->h.told[0].n_chunks, n);
    assert_string_equal(s->h.told[0].finish, "");
    stage_stop(s);
    assert_int_equal(s->sum.aborted, 1);
}

/* Pausing with "abort" ends them, too. */
static void a_pause_ends_them(void **state)
{
    static const struct record r = {5, 200, even, NULL, 1, 0};
    struct stage *s = *state;
    struct trace t = {0};
    struct vt_buf args = {0};

    put_record(&t, &r);
    play_trace(s, &t);
    ask(s, "replay-0", 40, 201);
    hear_chunks(s, "replay-0", 5);
    pause_args(&args, "abort", true);
    assert_call(s, "pause_scheduler", &args, "[null,null]");
    vt_buf_free(&args);
    assert_string_equal(s->h.told[0].finish, "abort");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY_TEST(times_and_chunks_are_those_of_the_record),
        PLAY_TEST(deadlines_do_not_drift),
        PLAY_TEST(several_at_once_keep_their_own_times),
        PLAY_TEST(a_scale_of_ten_is_ten_times_as_fast),
        PLAY_TEST(a_lower_limit_cuts_the_record_short),
        PLAY_TEST(a_stop_token_cuts_the_record_short),
        PLAY_TEST(an_abort_ends_it),
        PLAY_TEST(a_pause_ends_them),
    };

    return cmocka_run_group_tests_name("play_replay", tests, NULL, NULL);
}
