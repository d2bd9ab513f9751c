/* A trial offers exactly the rate it is asked for, and knows what was borne. */
#include <math.h>

#include "testing.h"

#define EVEN                                             \
    "requests: 400\n"                                    \
    "arrival: {process: constant, rate: 3}\nprompt: 8\n" \
    "output: 1\n"
#define RANDOM                                          \
    "requests: 300\n"                                   \
    "arrival: {process: poisson, rate: 3}\nprompt: 8\n" \
    "output: 2\n"
#define CLOSED                                                \
    "requests: 100\n"                                         \
    "arrival: {process: closed, concurrency: 4}\nprompt: 8\n" \
    "output: 2\n"

static void arrivals_span_what_the_rate_says(void **state)
{
    static const char *const workload[] = {EVEN, RANDOM, CLOSED};
    static const double rate[] = {0.25, 1, 3, 80};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(workload); i++) {
        struct toy t;

        toy_open(&t, workload[i]);
        for (size_t k = 0; k < VT_COUNT(rate); k++) {
            struct vt_workload w;
            struct vt_err err = {0};

            t.trial.rate = rate[k];
            assert_int_equal(vt_trial_workload(&t.trial, &w, &err), VT_OK);
            assert_int_equal(w.req[0].arrival_ns, 0);
            assert_int_equal(w.req[w.n - 1].arrival_ns,
                             llround((double)(w.n - 1) / rate[k] * 1e9));
            for (size_t q = 1; q < w.n; q++)
                assert_true(w.req[q].arrival_ns >= w.req[q - 1].arrival_ns);
            vt_trial_workload_free(&w);
        }
        toy_close(&t);
    }
}

static void gaps_keep_their_shape_at_every_rate(void **state)
{
    struct vt_workload slow, fast;
    struct vt_err err = {0};
    struct toy t;

    (void)state;
    toy_open(&t, RANDOM);
    t.trial.rate = 1;
    assert_int_equal(vt_trial_workload(&t.trial, &slow, &err), VT_OK);
    t.trial.rate = 10;
    assert_int_equal(vt_trial_workload(&t.trial, &fast, &err), VT_OK);
    for (size_t i = 0; i < slow.n; i++)
        assert_true(llabs(slow.req[i].arrival_ns - 10 * fast.req[i].arrival_ns) <= 10);
    vt_trial_workload_free(&slow);
    vt_trial_workload_free(&fast);
    toy_close(&t);
}

/* Each request of the workload once; turns in order; while conversations are left to
 * begin, nobody speaks before having thought. */
static void turns_follow_each_other(void **state)
{
    static const double rate[] = {0.2, 2, 50};
    struct toy t;

    (void)state;
    toy_open(&t, EVEN);
    t.trial.workload = "multiturn-starters";
    for (size_t k = 0; k < VT_COUNT(rate); k++) {
        uint32_t next[1000] = {0}, begun = 0;
        vt_ns spoke[1000] = {0};
        struct vt_workload w;
        struct vt_err err = {0};

        t.trial.rate = rate[k];
        assert_int_equal(vt_trial_workload(&t.trial, &w, &err), VT_OK);
        assert_int_equal(w.n, 600);
        for (size_t i = 0; i < w.n; i++) {
            const struct vt_work *q = &w.req[i];

            assert_true(q->session < 120);
            assert_int_equal(q->turn, next[q->session]++);
            begun += q->turn == 0;
            if (q->turn > 0 && begun < 120)
                assert_true(q->arrival_ns >= spoke[q->session] + q->think_ns);
            spoke[q->session] = q->arrival_ns;
        }
        for (size_t s = 0; s < 120; s++)
            assert_int_equal(next[s], 5);
        vt_trial_workload_free(&w);
    }
    toy_close(&t);
}

static void the_starters_workload_is_as_its_page_says(void **state)
{
    struct vt_workload w;
    struct vt_err err = {0};
    double output = 0, first = 0, last = 0;
    struct toy t;

    (void)state;
    toy_open(&t, EVEN);
    t.trial.workload = "multiturn-starters";
    t.trial.rate = 1;
    assert_int_equal(vt_trial_workload(&t.trial, &w, &err), VT_OK);
    for (size_t i = 0; i < w.n; i++) {
        output += w.req[i].output_tokens / (double)w.n;
        first += w.req[i].turn == 0 ? w.req[i].prompt_tokens / 120.0 : 0;
        last += w.req[i].turn == 4 ? w.req[i].prompt_tokens / 120.0 : 0;
        if (w.req[i].turn == 0)
            assert_in_range(w.req[i].prompt_tokens, 3520, 4100);
    }
    assert_true(output > 790 && output < 870);
    assert_true(first > 3600 && first < 4000);
    assert_true(last > 6900 && last < 7800);
    vt_trial_workload_free(&w);
    toy_close(&t);
}

/* 10 ms a request: 100 a second are borne, whatever is asked. */
static void what_is_borne_ends_at_what_can_be_served(void **state)
{
    static const double asked[] = {10, 50, 95, 150, 200, 400};
    struct toy t;

    (void)state;
    toy_open(&t, EVEN);
    for (size_t i = 0; i < VT_COUNT(asked); i++) {
        struct vt_summary s;
        struct vt_err err = {0};
        double achieved = 0, want = fmin(asked[i], 100);

        t.trial.rate = asked[i];
        assert_int_equal(vt_trial_measure(&t.trial, &s, &achieved, &err), VT_OK);
        assert_int_equal(s.requests, 400);
        assert_true(fabs(achieved / want - 1) < 0.02);
    }
    toy_close(&t);
}

/* A client that sends one at a time: each is served at once, and whoever is kept is
 * behind all the same. */
static void who_is_kept_by_the_client_is_not_borne(void **state)
{
    static const double asked[] = {50, 95, 150, 400};
    struct toy t;

    (void)state;
    toy_open(&t, EVEN);
    t.trial.engine.max_num_seqs = 8;
    t.trial.concurrency = 1;
    for (size_t i = 0; i < VT_COUNT(asked); i++) {
        struct vt_summary s;
        struct vt_err err = {0};
        double achieved = 0, want = fmin(asked[i], 100);

        t.trial.rate = asked[i];
        assert_int_equal(vt_trial_measure(&t.trial, &s, &achieved, &err), VT_OK);
        assert_true(fabs(achieved / want - 1) < 0.02);
        assert_true(s.ttft.p99 > 9.9 && s.ttft.p99 < 10.1);
    }
    toy_close(&t);
}

static void keeping_workloads_changes_nothing(void **state)
{
    struct vt_summary kept, fresh;
    struct vt_err err = {0};
    struct toy t;

    (void)state;
    toy_open(&t, RANDOM);
    t.trial.rate = 30;
    assert_int_equal(vt_trial_run(&t.trial, &kept, &err), VT_OK);
    assert_int_equal(vt_trial_run(&t.trial, &kept, &err), VT_OK);
    assert_true(kept.extent.running > 0 && kept.extent.step_tokens > 0);
    t.trial.kept = NULL;
    assert_int_equal(vt_trial_run(&t.trial, &fresh, &err), VT_OK);
    assert_memory_equal(&kept, &fresh, sizeof(kept));
    toy_close(&t);
}

static void each_seed_shuffles_a_recorded_trace(void **state)
{
    static const char csv[] = "id,arrival_us,input_tokens,output_tokens\n"
                              "a,0,8,1\nb,1000,8,1\nc,5000,8,1\nd,5500,8,1\n"
                              "e,9000,8,1\nf,9001,8,1\n";
    struct vt_workload w[3];
    struct vt_err err = {0};
    struct toy t;
    char path[72];

    (void)state;
    toy_open(&t, csv);
    (void)snprintf(path, sizeof(path), "%s.csv", t.path);
    assert_int_equal(rename(t.path, path), 0);
    t.trial.workload = path;
    t.trial.rate = 5 / 9001e-6; /* as recorded */
    for (uint64_t seed = 0; seed < 3; seed++) {
        t.trial.seed = seed;
        assert_int_equal(vt_trial_workload(&t.trial, &w[seed], &err), VT_OK);
        assert_int_equal(w[seed].req[5].arrival_ns, 9001000);
    }
    assert_int_equal(w[0].req[2].arrival_ns, 5000000);
    assert_true(w[1].req[1].arrival_ns != w[2].req[1].arrival_ns ||
                w[1].req[2].arrival_ns != w[2].req[2].arrival_ns);
    for (int i = 0; i < 3; i++)
        vt_trial_workload_free(&w[i]);
    unlink(path);
    toy_close(&t);
}

/* What two requests shared they share again, but no round has anything of another. */
static void recorded_requests_come_again_with_other_content(void **state)
{
    static const char csv[] =
        "id,arrival_us,input_tokens,output_tokens,prefix_group,prefix_tokens\n"
        "a,0,64,1,g,32\nb,1000,64,1,g,32\nc,5000,64,1,,0\n";
    struct vt_workload w;
    struct vt_err err = {0};
    struct toy t;
    char path[72];

    (void)state;
    toy_open(&t, csv);
    (void)snprintf(path, sizeof(path), "%s.csv", t.path);
    assert_int_equal(rename(t.path, path), 0);
    t.trial.workload = path;
    t.trial.rate = 10;
    t.trial.go_on = 9;
    if (vt_trial_workload(&t.trial, &w, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(w.n, 9);
    assert_int_equal(w.req[8].arrival_ns, llround(8 / 10.0 * 1e9));
    for (size_t i = 0; i < 9; i++) {
        const struct vt_segment *first = &w.segment[w.req[i].first_segment];

        assert_int_equal(w.req[i].prompt_tokens, 64);
        for (size_t k = 0; k < i; k++) {
            const struct vt_segment *other = &w.segment[w.req[k].first_segment];
            bool shared = i / 3 == k / 3 && i % 3 < 2 && k % 3 < 2;

            assert_true((first->content == other->content) == shared);
            assert_true(w.req[i].output_content != w.req[k].output_content);
        }
    }
    vt_trial_workload_free(&w);
    unlink(path);
    toy_close(&t);
}

/* A generator draws on: what it made before it is asked for more stays as it was. */
static void generated_requests_go_on_where_the_spec_ends(void **state)
{
    struct vt_workload few, many;
    struct vt_err err = {0};
    struct toy t;

    (void)state;
    toy_open(&t, "requests: 50\narrival: {process: poisson, rate: 3}\n"
                 "prompt: {dist: uniform, min: 8, max: 800}\noutput: 2\n");
    t.trial.rate = 5;
    assert_int_equal(vt_trial_workload(&t.trial, &few, &err), VT_OK);
    t.trial.go_on = 5000;
    assert_int_equal(vt_trial_workload(&t.trial, &many, &err), VT_OK);
    assert_int_equal(few.n, 50);
    assert_int_equal(many.n, 5000);
    for (size_t i = 0; i < 50; i++)
        assert_int_equal(few.req[i].prompt_tokens, many.req[i].prompt_tokens);
    assert_true(many.req[4999].id != NULL && many.req[4999].prompt_tokens >= 8);
    vt_trial_workload_free(&few);
    vt_trial_workload_free(&many);
    toy_close(&t);
}

static void what_cannot_be_run_is_said(void **state)
{
    static const struct {
        const char *workload;
        double rate;
        uint32_t requests;
        const char *why;
    } row[] = {
        {NULL, 0, 0, "rate"},
        {NULL, -1, 0, "rate"},
        {NULL, NAN, 0, "rate"},
        {NULL, 1, 401, "has 400 requests"},
        {"/no/such/file", 1, 0, "/no/such/file"},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct vt_summary s;
        struct vt_err err = {0};
        struct toy t;

        toy_open(&t, EVEN);
        if (row[i].workload != NULL)
            t.trial.workload = row[i].workload;
        t.trial.rate = row[i].rate;
        t.trial.requests = row[i].requests;
        assert_int_not_equal(vt_trial_run(&t.trial, &s, &err), VT_OK);
        assert_non_null(strstr(err.msg, row[i].why));
        toy_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrivals_span_what_the_rate_says),
        cmocka_unit_test(gaps_keep_their_shape_at_every_rate),
        cmocka_unit_test(turns_follow_each_other),
        cmocka_unit_test(the_starters_workload_is_as_its_page_says),
        cmocka_unit_test(what_is_borne_ends_at_what_can_be_served),
        cmocka_unit_test(who_is_kept_by_the_client_is_not_borne),
        cmocka_unit_test(keeping_workloads_changes_nothing),
        cmocka_unit_test(each_seed_shuffles_a_recorded_trace),
        cmocka_unit_test(recorded_requests_come_again_with_other_content),
        cmocka_unit_test(generated_requests_go_on_where_the_spec_ends),
        cmocka_unit_test(what_cannot_be_run_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
