/* Messages to each line of vLLM: arrays of exactly its lengths, and what moved between
 * lines at its place. */
#include "play_harness.h"

static const struct shape {
    const char *line;
    uint32_t request, outputs, output, prefill_at;
    uint32_t stats, prefix, prefill; /* keys of maps */
    const char *guess;               /* what its messages are where nothing was said, */
    const char *as;                  /* and whose scheduler it gets then */
} shapes[] = {
    {"0.25", 20, 8, 13, 10, 15, 7, 5, "0.26", "0.26"},
    {"0.26", 20, 8, 14, 11, 16, 7, 6, "0.26", "0.26"},
    {"0.27", 20, 8, 14, 11, 16, 7, 6, "0.26", "0.26"},
    {"0.28", 21, 8, 16, 11, 16, 7, 6, "0.28", "0.30"},
    {"0.29", 21, 8, 17, 11, 16, 7, 6, "0.28", "0.30"},
    {"0.30", 21, 8, 17, 11, 16, 7, 6, "0.28", "0.30"},
    {"0.31", 22, 8, 18, 11, 17, 7, 6, "0.31", "0.32"},
    {"0.32", 22, 9, 18, 11, 18, 8, 6, "0.31", "0.32"},
};

static const struct shape *shape_of(const char *line)
{
    for (size_t i = 0; i < VT_COUNT(shapes); i++)
        if (strcmp(shapes[i].line, line) == 0)
            return &shapes[i];
    fail_msg("no line %s", line);
    return NULL;
}

static struct mp_span whole(const struct vt_frontend_message *m)
{
    return (struct mp_span){m->frame[0].at, m->frame[0].len};
}

static struct mp_span element(struct mp_span array, uint32_t i)
{
    struct mp_in in;

    mp_in_init(&in, array.at, array.len);
    assert_true(mp_array(&in) > i);
    while (i-- > 0)
        mp_skip(&in);
    return mp_raw(&in);
}

static uint32_t length(struct mp_span value)
{
    struct mp_in in;

    mp_in_init(&in, value.at, value.len);
    return mp_peek(&in) == MP_MAP ? mp_map(&in) : mp_array(&in);
}

/* A first output, with all that a frontend is told. */
static void assert_shape(const struct vt_frontend_message *m, const struct shape *x)
{
    struct mp_span stats = element(whole(m), 2);
    struct mp_span row = element(element(whole(m), 1), 0);

    assert_int_equal(length(whole(m)), x->outputs);
    assert_int_equal(length(row), x->output);
    assert_int_equal(length(stats), x->stats);
    assert_int_equal(length(mp_get(stats, "prefix_cache_stats")), x->prefix);
    for (uint32_t i = 8; i < x->output; i++) {
        struct mp_span v = element(row, i);

        if (i == x->prefill_at)
            assert_int_equal(length(v), x->prefill);
        else if (i != x->prefill_at + 2) /* num_nans_in_logits */
            assert_true(mp_is_nil(v));
    }
}

static const struct vt_frontend_message *first_output(struct stage *s)
{
    const struct vt_frontend_message *m;

    ask(s, "a", 20, 3);
    do
        m = next(s);
    while (m->n_outputs == 0);
    assert_true(m->output[0].has_prefill);
    return m;
}

static void each_line_gets_arrays_of_its_length(void **state)
{
    struct stage *s = *state;

    for (size_t i = 0; i < VT_COUNT(shapes); i++) {
        print_message("  %s\n", shapes[i].line);
        s->c.line = s->fc.line = vt_wire_line_find(shapes[i].line);
        stage_open(s);
        assert_shape(first_output(s), &shapes[i]);
        hear_finished(s, 1);
        stage_end(s);
        heard_free(&s->h);
    }
}

/* Lines whose requests are of one length get what the oldest of them understands: their
 * frontends reject what is longer than they know. 0.25 must be told. */
static void the_first_request_tells_the_line(void **state)
{
    struct stage *s = *state;

    s->c.line = NULL;
    for (size_t i = 1; i < VT_COUNT(shapes); i++) {
        print_message("  %s\n", shapes[i].line);
        s->fc.line = vt_wire_line_find(shapes[i].line);
        stage_open(s);
        assert_shape(first_output(s), shape_of(shapes[i].guess));
        stage_end(s);
        heard_free(&s->h);
    }
}

/* And with it whose scheduler it is, unless that was said: the newest that it may be.
 */
static void the_scheduler_follows_the_line(void **state)
{
    struct stage *s = *state;
    char said[64];

    s->c.line = NULL;
    for (size_t i = 1; i < VT_COUNT(shapes); i++) {
        bool other = strcmp(shapes[i].as, "0.32") != 0; /* than the one it began with */

        print_message("  %s\n", shapes[i].line);
        snprintf(said, sizeof(said), "scheduled as %s", shapes[i].as);
        s->fc.line = vt_wire_line_find(shapes[i].line);
        for (int follow = 0; follow < 2; follow++) {
            s->c.follow_line = follow;
            s->log_len = 0;
            stage_open(s);
            (void)first_output(s);
            stage_end(s);
            assert_int_equal(stage_logged(s, said), follow && other);
            heard_free(&s->h);
        }
    }
}

/* Before it, answers are as short as the oldest frontend that may be there wants. */
static void before_it_answers_suit_every_line(void **state)
{
    struct stage *s = *state;
    const struct vt_frontend_message *m;

    stage_open(s);
    m = call(s, 1, "is_sleeping", NULL);
    assert_int_equal(length(whole(m)), 8);
    assert_shape(first_output(s), shape_of("0.31"));
    m = call(s, 2, "is_sleeping", NULL);
    assert_int_equal(length(whole(m)), 8);
}

/* Requests of a later line have fields that nobody here knows. */
static void longer_requests_than_known_are_served(void **state)
{
    struct stage *s = *state;
    struct vt_buf b = {0}, more = {0};
    struct wire_request w = {
        .n_fields = WIRE_REQUEST_FIELDS,
        .id = {(const uint8_t *)"a", 1},
        .prompt = (uint32_t[]){1, 2, 3},
        .n_prompt = 3,
        .data_parallel_rank = -1,
        .sampling = {(const uint8_t *)"\x80", 1},
    };

    stage_open(s);
    wire_request_write(&b, &w);
    assert_memory_equal(b.data, "\xdc\x00\x16", 3); /* an array of 22 */
    vt_buf_add(&more, "\xdc\x00\x18", 3);
    vt_buf_add(&more, b.data + 3, b.len - 3);
    mp_put_str(&more, "what is this");
    mp_put_array(&more, 0);
    send_typed(s, 0, WIRE_ADD, more.data, more.len);
    hear_finished(s, 1);
    assert_int_equal(told_of(&s->h, "a")->n_tokens, 16);
    vt_buf_free(&b);
    vt_buf_free(&more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY_TEST(each_line_gets_arrays_of_its_length),
        PLAY_TEST(the_first_request_tells_the_line),
        PLAY_TEST(the_scheduler_follows_the_line),
        PLAY_TEST(before_it_answers_suit_every_line),
        PLAY_TEST(longer_requests_than_known_are_served),
    };

    return cmocka_run_group_tests_name("play_lines", tests, NULL, NULL);
}
