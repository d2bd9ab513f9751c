/* workload.yaml: what is drawn, when it arrives, what is shared, what is refused. */
#include <math.h>

#include "fixture.h"

#define LENGTHS "prompt: 10\noutput: 5\n"
#define CLOSED  "arrival: {process: closed, concurrency: 4}\n"

static int generate(struct vt_workload *w, const char *text, int64_t seed,
                    struct vt_err *err)
{
    return vt_workload_generate_text(w, "t", text, strlen(text), seed, err);
}

static void make(struct vt_workload *w, const char *text, int64_t seed)
{
    struct vt_err err = {0};
    int rc = generate(w, text, seed, &err);

    if (rc != VT_OK)
        print_error("%s\n", err.msg);
    assert_int_equal(rc, VT_OK);
}

static void assert_near(double got, double want, double tolerance)
{
    if (fabs(got - want) > tolerance)
        print_error("%g is not within %g of %g\n", got, tolerance, want);
    assert_true(fabs(got - want) <= tolerance);
}

struct moments {
    double mean, std, min, max;
};

static struct moments moments_of(const double *v, size_t n)
{
    struct moments m = {.min = INFINITY, .max = -INFINITY};
    double sum = 0, squares = 0;

    for (size_t i = 0; i < n; i++) {
        sum += v[i];
        m.min = fmin(m.min, v[i]);
        m.max = fmax(m.max, v[i]);
    }
    m.mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (v[i] - m.mean) * (v[i] - m.mean);
    m.std = sqrt(squares / (double)n);
    return m;
}

/* ---- lengths ---------------------------------------------------------- */

static const struct length_case {
    const char *dist;
    struct moments want;
    double tolerance; /* of mean and std, relative */
} length_cases[] = {
    {"77", {77, 0, 77, 77}, 0},
    {"{dist: constant, value: 77}", {77, 0, 77, 77}, 0},
    {"{dist: uniform, min: 11, max: 20}", {15.5, 2.872, 11, 20}, 0.01},
    {"{dist: normal, mean: 500, std: 100, min: 1}", {500, 100, 1, 1000}, 0.01},
    {"{dist: normal, mean: 0, std: 100, min: 5, max: 6}", {5.48, 0.5, 5, 6}, 0.01},
    {"{dist: lognormal, median: 500, sigma: 0.5}", {566.6, 302, 1, 1e5}, 0.02},
    {"{dist: lognormal, mean: 700, std: 350}", {700, 350, 1, 1e5}, 0.02},
    {"{dist: lognormal, median: 500, sigma: 0}", {500, 0, 500, 500}, 0},
    {"{dist: empirical, file: " DATA("lengths.txt") "}", {28, 20.78, 16, 64}, 0.01},
    {"{dist: empirical, file: " DATA("lengths.txt") ", max: 60}",
     {27, 19.05, 16, 60},
     0.01},
    {"{dist: exponential, mean: 400}", {400.5, 400, 1, 1e5}, 0.02},
    {"{dist: quantiles, at: [[0, 10], [0.5, 30], [1, 30]]}", {25, 6.455, 10, 30}, 0.01},
};

static void lengths_have_their_moments(void **state)
{
    enum { N = 100000 };
    static double v[N];

    (void)state;
    for (size_t c = 0; c < VT_COUNT(length_cases); c++) {
        const struct length_case *k = &length_cases[c];
        struct vt_workload w;
        struct moments got;
        char text[400];

        snprintf(text, sizeof(text), "requests: %d\n" CLOSED "output: 5\nprompt: %s\n",
                 N, k->dist);
        make(&w, text, -1);
        assert_int_equal(w.n, N);
        for (size_t i = 0; i < N; i++)
            v[i] = w.req[i].prompt_tokens;
        vt_workload_free(&w);
        got = moments_of(v, N);
        assert_near(got.mean, k->want.mean, k->tolerance * k->want.mean);
        assert_near(got.std, k->want.std, k->tolerance * k->want.std);
        assert_true(got.min >= k->want.min && got.max <= k->want.max);
    }
}

static void files_are_found_beside_the_spec(void **state)
{
    struct vt_workload w;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_workload_generate(&w, DATA("empirical.yaml"), -1, &err), VT_OK);
    for (size_t i = 0; i < w.n; i++)
        assert_true(w.req[i].prompt_tokens == 16 || w.req[i].prompt_tokens == 64);
    vt_workload_free(&w);
}

/* ---- arrivals --------------------------------------------------------- */

static const struct arrival_case {
    const char *arrival;
    double mean_s, cv; /* of the gaps */
} arrival_cases[] = {
    {"{process: constant, rate: 8}", 0.125, 0},
    {"{process: poisson, rate: 8}", 0.125, 1},
    {"{process: gamma, rate: 8}", 0.125, 1},
    {"{process: gamma, rate: 8, burstiness: 4}", 0.125, 0.5},
    {"{process: gamma, rate: 8, burstiness: 0.25}", 0.125, 2},
};

static void gaps_have_their_moments(void **state)
{
    enum { N = 100000 };
    static double v[N - 1];

    (void)state;
    for (size_t c = 0; c < VT_COUNT(arrival_cases); c++) {
        const struct arrival_case *k = &arrival_cases[c];
        struct vt_workload w;
        struct moments got;
        char text[300];

        snprintf(text, sizeof(text), "requests: %d\n" LENGTHS "arrival: %s\n", N,
                 k->arrival);
        make(&w, text, -1);
        assert_int_equal(w.arrivals, VT_ARRIVALS_RECORDED);
        for (size_t i = 1; i < N; i++)
            v[i - 1] = (double)(w.req[i].arrival_ns - w.req[i - 1].arrival_ns) * 1e-9;
        vt_workload_free(&w);
        got = moments_of(v, N - 1);
        assert_near(got.mean, k->mean_s, 0.02 * k->mean_s);
        assert_near(got.std / got.mean, k->cv, 0.02 * k->cv + 1e-6);
    }
}

static void constant_arrivals_are_exact(void **state)
{
    struct vt_workload w;

    (void)state;
    make(&w, "duration_s: 3000\narrival: {process: constant, rate: 3}\n" LENGTHS, -1);
    assert_int_equal(w.n, 9000);
    assert_int_equal(w.req[0].arrival_ns, 0);
    assert_int_equal(w.req[1].arrival_ns, 333333333);
    assert_int_equal(w.req[8999].arrival_ns, INT64_C(2999666666667));
    assert_string_equal(w.req[8999].id, "request-8999");
    assert_int_equal(w.req[0].max_tokens, 5);
    vt_workload_free(&w);
}

static void bursts_come_together(void **state)
{
    struct vt_workload w;

    (void)state;
    make(&w,
         "duration_s: 20\narrival: {process: burst, size: 3, interval_s: 10}\n" LENGTHS,
         -1);
    assert_int_equal(w.n, 6);
    assert_int_equal(w.req[2].arrival_ns, 0);
    assert_int_equal(w.req[3].arrival_ns, 10 * VT_SEC);
    vt_workload_free(&w);
    make(&w, "requests: 4\narrival: {process: burst, size: 3, rate: 6}\n" LENGTHS, -1);
    assert_int_equal(w.n, 4);
    assert_int_equal(w.req[3].arrival_ns, VT_SEC / 2);
    assert_string_equal(w.meta.workload_kind, "burst");
    vt_workload_free(&w);
}

static void closed_loops_have_no_times(void **state)
{
    struct vt_workload w;

    (void)state;
    make(&w, "name: loop\nrequests: 7\n" CLOSED LENGTHS, -1);
    assert_int_equal(w.n, 7);
    assert_int_equal(w.arrivals, VT_ARRIVALS_CLOSED);
    assert_int_equal(w.concurrency, 4);
    assert_int_equal(w.req[6].arrival_ns, 0);
    assert_string_equal(w.meta.workload_name, "loop");
    assert_string_equal(w.meta.workload_kind, "closed");
    vt_workload_free(&w);
}

static void stages_follow_each_other(void **state)
{
    struct vt_workload w;

    (void)state;
    make(&w,
         "arrival: {process: constant}\nstages:\n  - {rate: 2, duration_s: 10}\n"
         "  - {rate: 10, requests: 50}\n  - {rate: 1, duration_s: 5}\n" LENGTHS,
         -1);
    assert_int_equal(w.n, 75);
    assert_int_equal(w.req[19].arrival_ns, 9500 * VT_MS);
    assert_int_equal(w.req[20].arrival_ns, 10 * VT_SEC);
    assert_int_equal(w.req[69].arrival_ns, 14900 * VT_MS);
    assert_int_equal(w.req[70].arrival_ns, 15 * VT_SEC);
    assert_int_equal(w.req[74].arrival_ns, 19 * VT_SEC);
    vt_workload_free(&w);
    make(&w,
         "arrival: {process: poisson}\nstages: [{rate: 100, duration_s: 100},"
         " {rate: 1000, requests: 5000}, {rate: 100, duration_s: 100}]\n" LENGTHS,
         -1);
    assert_near((double)w.n, 25000, 500);
    vt_workload_free(&w);
    make(&w,
         "arrival: {process: burst, size: 4}\nstages: [{rate: 2, requests: 6},"
         " {rate: 4, duration_s: 2}]\n" LENGTHS,
         -1);
    assert_int_equal(w.n, 14);
    assert_int_equal(w.req[4].arrival_ns, 2 * VT_SEC);
    assert_int_equal(w.req[6].arrival_ns, 4 * VT_SEC);
    assert_int_equal(w.req[10].arrival_ns, 5 * VT_SEC);
    vt_workload_free(&w);
}

static void durations_end_arrivals(void **state)
{
    struct vt_workload w;

    (void)state;
    make(&w, "duration_s: 100\narrival: {process: poisson, rate: 50}\n" LENGTHS, -1);
    assert_near((double)w.n, 5000, 300);
    assert_true(w.req[w.n - 1].arrival_ns < 100 * VT_SEC);
    vt_workload_free(&w);
}

/* ---- what is shared --------------------------------------------------- */

static void groups_share_their_prefix(void **state)
{
    struct vt_workload w;
    size_t in_group = 0;
    uint64_t content[8] = {0};
    size_t n_contents = 0;

    (void)state;
    make(
        &w,
        "requests: 10000\narrival: {process: poisson, rate: 1}\n" LENGTHS
        "prefix: {groups: 3, share: 0.25, tokens: {dist: uniform, min: 50, max: 60}}\n",
        -1);
    for (size_t i = 0; i < w.n; i++) {
        const struct vt_work *q = &w.req[i];
        const struct vt_segment *s = &w.segment[q->first_segment];
        size_t k = 0;

        assert_int_equal(s[q->n_segments - 1].tokens, 10);
        if (q->n_segments == 1)
            continue;
        in_group++;
        assert_in_range(s[0].tokens, 50, 60);
        assert_int_equal(q->prompt_tokens, s[0].tokens + 10);
        while (k < n_contents && content[k] != s[0].content)
            k++;
        if (k == n_contents) {
            assert_true(n_contents < VT_COUNT(content));
            content[n_contents++] = s[0].content;
        }
    }
    assert_int_equal(n_contents, 3);
    assert_near((double)in_group, 2500, 150);
    vt_workload_free(&w);
}

static void turns_repeat_what_was_said(void **state)
{
    struct vt_workload w;
    uint32_t n_sessions = 0;

    (void)state;
    make(&w,
         "requests: 1000\narrival: {process: poisson, rate: 2}\n"
         "prompt: {dist: uniform, min: 20, max: 200}\n"
         "output: {dist: uniform, min: 60, max: 240}\n"
         "sessions: {turns: {dist: uniform, min: 1, max: 9}, starters: 4,"
         " starter: {dist: uniform, min: 300, max: 400}, think_time_s: 1.5}\n",
         -1);
    assert_int_equal(w.n, 1000);
    assert_int_equal(w.arrivals, VT_ARRIVALS_SESSION);
    assert_int_equal(w.concurrency, 0);
    assert_string_equal(w.meta.workload_kind, "multiturn");
    for (uint32_t i = 0; i < w.n; i++) {
        const struct vt_work *q = &w.req[i], *next;
        const struct vt_segment *s = &w.segment[q->first_segment];
        uint32_t sum = 0;

        assert_int_equal(q->n_segments, 2 + 2 * q->turn);
        for (uint32_t k = 0; k < q->n_segments; k++)
            sum += s[k].tokens;
        assert_int_equal(sum, q->prompt_tokens);
        assert_in_range(s[0].tokens, 300, 400);
        assert_int_equal(q->first_turn, q->turn == 0);
        assert_int_equal(q->think_ns, q->turn ? 1500 * VT_MS : 0);
        n_sessions += q->first_turn;
        assert_int_equal(q->session, n_sessions - 1);
        if (q->next_turn == VT_NO_TURN)
            continue;
        next = &w.req[q->next_turn];
        assert_int_equal(next->session, q->session);
        assert_int_equal(next->turn, q->turn + 1);
        assert_int_equal(next->arrival_ns, q->arrival_ns);
        assert_int_equal(next->first_segment, q->first_segment);
        assert_int_equal(s[q->n_segments].content, q->output_content);
        assert_int_equal(s[q->n_segments].tokens, q->output_tokens);
    }
    assert_near(n_sessions, 200, 30);
    vt_workload_free(&w);
}

static void sessions_may_be_a_closed_loop(void **state)
{
    struct vt_workload w;

    (void)state;
    make(&w, "requests: 10\n" CLOSED LENGTHS "sessions: {turns: 3, starter: 7}\n", -1);
    assert_int_equal(w.n, 10);
    assert_int_equal(w.arrivals, VT_ARRIVALS_SESSION);
    assert_int_equal(w.concurrency, 4);
    assert_int_equal(w.req[2].prompt_tokens, 7 + 10 + 5 + 10 + 5 + 10);
    assert_int_equal(w.req[2].next_turn, VT_NO_TURN);
    assert_int_equal(w.req[9].session, 3);
    assert_int_equal(w.req[9].next_turn, VT_NO_TURN); /* the count cuts the last one */
    /* without `starters` each session has a starter of its own */
    assert_int_not_equal(w.segment[w.req[0].first_segment].content,
                         w.segment[w.req[3].first_segment].content);
    vt_workload_free(&w);
}

static void priorities_are_drawn(void **state)
{
    struct vt_workload w;
    bool seen[3] = {false};

    (void)state;
    make(&w,
         "requests: 100\n" CLOSED LENGTHS
         "priority: {dist: uniform, min: -1, max: 1}\n",
         -1);
    for (size_t i = 0; i < w.n; i++) {
        assert_true(w.req[i].priority >= -1 && w.req[i].priority <= 1);
        seen[w.req[i].priority + 1] = true;
    }
    assert_true(seen[0] && seen[1] && seen[2]);
    vt_workload_free(&w);
}

/* ---- determinism ------------------------------------------------------ */

static const char mixed[] =
    "seed: 5\nrequests: 300\narrival: {process: gamma, rate: 9, burstiness: 0.5}\n"
    "prompt: {dist: lognormal, median: 90, sigma: 1}\n"
    "output: {dist: normal, mean: 80, std: 40}\n"
    "prefix: {groups: 5, share: 0.5, tokens: {dist: uniform, min: 1, max: 99}}\n";

static bool same(const struct vt_workload *a, const struct vt_workload *b)
{
    if (a->n != b->n || a->n_segments != b->n_segments ||
        memcmp(a->segment, b->segment, a->n_segments * sizeof(*a->segment)) != 0)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->req[i].arrival_ns != b->req[i].arrival_ns ||
            a->req[i].prompt_tokens != b->req[i].prompt_tokens ||
            a->req[i].output_tokens != b->req[i].output_tokens)
            return false;
    return true;
}

static void a_seed_gives_one_workload(void **state)
{
    struct vt_workload a, b, c, d;

    (void)state;
    make(&a, mixed, -1);
    make(&b, mixed, 5);
    make(&c, mixed, 6);
    make(&d, mixed, 6);
    assert_true(same(&a, &b));
    assert_false(same(&a, &c));
    assert_true(same(&c, &d));
    assert_int_equal(a.seed, 5);
    assert_int_equal(c.seed, 6);
    vt_workload_free(&a);
    vt_workload_free(&b);
    vt_workload_free(&c);
    vt_workload_free(&d);
}

static void each_purpose_has_a_stream_of_its_own(void **state)
{
    struct vt_workload a, b;

    (void)state;
    make(&a,
         "requests: 50\narrival: {process: poisson, rate: 1}\n"
         "prompt: {dist: normal, mean: 99, std: 9}\noutput: 4\n",
         -1);
    make(&b,
         "requests: 50\narrival: {process: poisson, rate: 1}\n"
         "prompt: {dist: normal, mean: 99, std: 9}\n"
         "output: {dist: lognormal, median: 7, sigma: 1}\n"
         "prefix: {groups: 2, tokens: 1000}\n",
         -1);
    for (size_t i = 0; i < a.n; i++) {
        assert_int_equal(a.req[i].arrival_ns, b.req[i].arrival_ns);
        assert_int_equal(a.req[i].prompt_tokens + 1000, b.req[i].prompt_tokens);
    }
    vt_workload_free(&a);
    vt_workload_free(&b);
}

/* ---- what is shipped -------------------------------------------------- */

/* ---- put over a spec's own -------------------------------------------- */

static int put_over(struct vt_workload *w, const char *text, struct vt_traffic over,
                    struct vt_err *err)
{
    struct vt_input in = {VT_INPUT_SPEC, "t", text, strlen(text), -1, over};

    *w = (struct vt_workload){0};
    return vt_workload_read(w, &in, VT_WHOLE, err);
}

#define CHAT "arrival: {process: poisson, rate: 8}\n" LENGTHS
#define TALK                                                          \
    "requests: 600\narrival: {process: poisson, rate: 0.5}\n" LENGTHS \
    "sessions: {turns: {dist: uniform, min: 1, max: 5}}\n"

static const struct over_case {
    const char *text;
    struct vt_traffic over;
    size_t n;
    enum vt_arrivals arrivals;
    uint32_t concurrency, held_to;
    double last_s;    /* of the last arrival, */
    double tolerance; /* and how close to that, as a share */
    uint32_t prompt, output;
} over_cases[] = {
    {"duration_s: 100\n" CHAT, {.rate = 50}, 0, 0, 0, 0, 100, 0.01, 10, 5},
    {"duration_s: 100\n" CHAT, {.requests = 700}, 700, 0, 0, 0, 87.5, 0.1, 10, 5},
    {"requests: 900\n" CHAT,
     {.rate = 2, .burstiness = INFINITY},
     900,
     0,
     0,
     0,
     449.5,
     0,
     10,
     5},
    {"requests: 9\n" CHAT, {.rate = INFINITY}, 9, 0, 0, 0, 0, 0, 10, 5},
    {"requests: 9\n" CHAT,
     {.rate = INFINITY, .concurrency = 3},
     9,
     VT_ARRIVALS_CLOSED,
     3,
     0,
     0,
     0,
     10,
     5},
    {"requests: 900\n" CHAT, {.concurrency = 3}, 900, 0, 0, 3, 112, 0.1, 10, 5},
    {"requests: 900\n" CLOSED LENGTHS, {.rate = 9}, 900, 0, 0, 0, 100, 0.1, 10, 5},
    {"requests: 9\n" CLOSED LENGTHS,
     {.concurrency = 2},
     9,
     VT_ARRIVALS_CLOSED,
     2,
     0,
     0,
     0,
     10,
     5},
    {"requests: 9\n" CHAT,
     {.prompt_tokens = 7, .output_tokens = 8, .rate = INFINITY},
     9,
     0,
     0,
     0,
     0,
     0,
     7,
     8},
    /* 600 turns at 6 a second, whoever's they are */
    {TALK, {.rate = 6}, 600, VT_ARRIVALS_SESSION, 0, 0, 100, 0.15, 10, 5},
};

static void traffic_replaces_what_a_spec_says(void **state)
{
    (void)state;
    for (size_t c = 0; c < VT_COUNT(over_cases); c++) {
        const struct over_case *o = &over_cases[c];
        struct vt_workload w;
        struct vt_err err = {0};
        const struct vt_work *last;

        if (put_over(&w, o->text, o->over, &err) != VT_OK)
            fail_msg("case %zu: %s", c, err.msg);
        last = &w.req[w.n - 1];
        if (o->n > 0)
            assert_int_equal(w.n, o->n);
        assert_int_equal(w.arrivals, o->arrivals);
        assert_int_equal(w.concurrency, o->concurrency);
        assert_int_equal(w.held_to, o->held_to);
        assert_near((double)last->arrival_ns / 1e9, o->last_s,
                    o->tolerance * o->last_s + 1e-6);
        assert_int_equal(w.req[0].prompt_tokens, o->prompt);
        assert_int_equal(w.req[0].output_tokens, o->output);
        vt_workload_free(&w);
    }
}

static void traffic_that_cannot_be_is_refused(void **state)
{
    static const struct {
        const char *text;
        struct vt_traffic over;
        const char *message;
    } bad[] = {
        {"arrival: {process: poisson}\nstages: [{rate: 1, requests: 2}, {rate: 2, "
         "requests: 2}]\n" LENGTHS,
         {.rate = 3},
         "t: it has stages, each with a rate and an end of its own"},
        {"duration_s: 5\n" CHAT,
         {.rate = INFINITY},
         "t: all requests at once: their number must be stated"},
        {"requests: 5\n" CHAT, {.rate = -1}, "t: a request rate must be above 0"},
        {"requests: 5\n" CLOSED LENGTHS,
         {.burstiness = 2},
         "t: burstiness needs a request rate"},
        {TALK,
         {.concurrency = 2},
         "t: sessions that arrive at a rate are all served: no limit on those in "
         "flight"},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(bad); i++) {
        struct vt_workload w;
        struct vt_err err = {0};

        assert_int_equal(put_over(&w, bad[i].text, bad[i].over, &err), VT_EINPUT);
        assert_string_equal(err.msg, bad[i].message);
    }
}

static void pairs_of_lengths_stay_together(void **state)
{
    struct vt_workload w;
    size_t seen[3] = {0};

    (void)state;
    make(&w, "requests: 3000\n" CLOSED "lengths: [[10, 1], [20, 2], [30, 3]]\n", 1);
    for (size_t i = 0; i < w.n; i++) {
        assert_int_equal(w.req[i].prompt_tokens, 10 * w.req[i].output_tokens);
        seen[w.req[i].output_tokens - 1]++;
    }
    for (size_t i = 0; i < VT_COUNT(seen); i++)
        assert_in_range(seen[i], 900, 1100);
    vt_workload_free(&w);
}

/* Means as the pages that they come from state them. */
static void built_in_traffic_has_its_published_means(void **state)
{
    static const struct {
        const char *name;
        double prompt, output;
    } want[] = {
        {"chat", 1155, 211},      {"code", 2048, 28},       {"sharegpt", 230, 203},
        {"rag", 2944, 283},       {"longchat", 12035, 343}, {"agent", 8596, 182},
        {"summarize", 2588, 291},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(want); i++) {
        struct vt_input in = {VT_INPUT_SPEC, .seed = 3, .over = {.requests = 20000}};
        struct vt_workload w = {0};
        struct vt_err err = {0};
        double prompt = 0, output = 0;
        char path[1000];

        snprintf(path, sizeof(path), "%s/../profiles/%s.yaml", VT_TEST_DIR,
                 want[i].name);
        in.name = path;
        if (vt_workload_read(&w, &in, VT_WHOLE, &err) != VT_OK)
            fail_msg("%s", err.msg);
        for (size_t k = 0; k < w.n; k++) {
            prompt += w.req[k].prompt_tokens / (double)w.n;
            output += w.req[k].output_tokens / (double)w.n;
        }
        print_message("%s: %.0f in, %.0f out\n", want[i].name, prompt, output);
        assert_near(prompt, want[i].prompt, 0.05 * want[i].prompt);
        assert_near(output, want[i].output, 0.05 * want[i].output);
        vt_workload_free(&w);
    }
}

static void shipped_workloads_generate(void **state)
{
    static const char *const shipped[] = {
        "profiles/default-workload.yaml", "examples/closed-loop.yaml",
        "examples/bursty.yaml",           "examples/multiturn.yaml",
        "examples/stages.yaml",           "examples/burst.yaml",
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(shipped); i++) {
        struct vt_workload w;
        struct vt_err err = {0};
        char path[1000];
        int rc;

        snprintf(path, sizeof(path), "%s/../%s", VT_TEST_DIR, shipped[i]);
        rc = vt_workload_generate(&w, path, -1, &err);
        if (rc != VT_OK)
            print_error("%s\n", err.msg);
        assert_int_equal(rc, VT_OK);
        assert_true(w.n >= 300);
        vt_workload_free(&w);
    }
}

/* Every block of YAML in the manual that names a workload is one. */
static void documented_workloads_generate(void **state)
{
    static const char open[] = "```yaml\nname:";
    struct vt_buf b = {0};
    struct vt_err err = {0};
    size_t n = 0;
    int rc = vt_read_file(VT_TEST_DIR "/../docs/workload.md", 1 << 20, &b, &err);

    (void)state;
    assert_int_equal(rc, VT_OK);
    for (char *at = b.data; (at = strstr(at, open)); n++) {
        char *text = at + strlen("```yaml\n"), *end = strstr(text, "```");
        struct vt_workload w;

        assert_non_null(end);
        *end = '\0';
        make(&w, text, -1);
        vt_workload_free(&w);
        at = end + 1;
    }
    assert_true(n >= 4);
    vt_buf_free(&b);
}

/* ---- what is refused -------------------------------------------------- */

#define RATE1 "arrival: {process: poisson, rate: 1}\n"

static struct fixture_bad bad[] = {
    {"a list", "- 1\n", "t: line 1: a workload is a map of fields"},
    {"a misspelt field", "requests: 1\n" CLOSED "prompt: 1\noutptu: 1\n",
     "t: line 4: unknown field 'outptu' (did you mean 'output'?)"},
    {"no arrivals", "requests: 1\n" LENGTHS, "t: line 1: field 'arrival' is missing"},
    {"no prompt", "requests: 1\n" CLOSED "output: 1\n",
     "t: line 1: field 'prompt' is missing"},
    {"no extent", RATE1 LENGTHS, "t: line 1: 'requests' or 'duration_s' is missing"},
    {"two extents", "requests: 1\nduration_s: 1\n" RATE1 LENGTHS,
     "t: line 1: give 'requests' or 'duration_s', not both"},
    {"too many requests", "requests: 10000001\n" RATE1 LENGTHS,
     "t: line 1: field 'requests' must be from 1 to 10000000, not 10000001"},
    {"no requests",
     "duration_s: 0.001\narrival: {process: poisson, rate: 0.001}\n" LENGTHS,
     "t: there are no requests"},
    {"no time", "duration_s: 0\n" RATE1 LENGTHS,
     "t: line 1: field 'duration_s' must be above 0"},
    {"time without end", "duration_s: .inf\n" RATE1 LENGTHS,
     "t: line 1: not a finite number"},
    {"a negative seed", "seed: -1\nrequests: 1\n" RATE1 LENGTHS,
     "t: line 1: field 'seed' must be at least 0, not -1"},
    {"an unknown process", "requests: 1\narrival: {process: poison, rate: 1}\n" LENGTHS,
     "t: line 2: unknown process 'poison' (did you mean 'poisson'?)"},
    {"a process of a wrong type", "requests: 1\narrival: poisson\n" LENGTHS,
     "t: line 2: field 'arrival' is not a map"},
    {"no rate", "requests: 1\narrival: {process: poisson}\n" LENGTHS,
     "t: line 2: field 'rate' is missing"},
    {"a rate of zero", "requests: 1\narrival: {process: poisson, rate: 0}\n" LENGTHS,
     "t: line 2: field 'rate' must be above 0"},
    {"a negative rate", "requests: 1\narrival: {process: constant, rate: -2}\n" LENGTHS,
     "t: line 2: field 'rate' must be above 0"},
    {"a rate that is no number",
     "requests: 1\narrival: {process: gamma, rate: .nan}\n" LENGTHS,
     "t: line 2: not a finite number"},
    {"arrivals past the axis",
     "requests: 9\narrival: {process: constant, rate: 1e-9}\n" LENGTHS,
     "t: arrivals go on for more than 1e+09 seconds"},
    {"a field of another process",
     "requests: 1\narrival: {process: poisson, rate: 1, burstiness: 2}\n" LENGTHS,
     "t: line 2: unknown field 'burstiness'"},
    {"bursts of no size", "requests: 1\narrival: {process: burst, rate: 1}\n" LENGTHS,
     "t: line 2: field 'size' is missing"},
    {"bursts paced twice",
     "requests: 1\narrival: {process: burst, size: 2, rate: 1, interval_s: "
     "2}\n" LENGTHS,
     "t: line 2: give 'rate' or 'interval_s', not both"},
    {"a closed loop of no size", "requests: 1\narrival: {process: closed}\n" LENGTHS,
     "t: line 2: field 'concurrency' is missing"},
    {"a closed loop that lasts", "duration_s: 1\n" CLOSED LENGTHS,
     "t: line 1: a closed loop takes 'requests', not 'duration_s'"},
    {"stages of a closed loop", CLOSED LENGTHS "stages: [{rate: 1, requests: 1}]\n",
     "t: line 4: a closed loop has no stages"},
    {"stages and requests",
     "requests: 2\narrival: {process: poisson}\nstages: [{rate: 1, requests: "
     "1}]\n" LENGTHS,
     "t: line 3: 'stages' replaces 'requests' and 'duration_s'"},
    {"stages and a rate", RATE1 "stages: [{rate: 1, requests: 1}]\n" LENGTHS,
     "t: line 1: the rate is in 'stages'"},
    {"no stages", "arrival: {process: poisson}\nstages: []\n" LENGTHS,
     "t: line 2: field 'stages' must be a list of 1 to 10000 stages"},
    {"a stage without end",
     "arrival: {process: poisson}\nstages:\n  - rate: 1\n" LENGTHS,
     "t: line 3: 'requests' or 'duration_s' is missing"},
    {"a stage that is a number", "arrival: {process: poisson}\nstages: [1]\n" LENGTHS,
     "t: line 2: a stage is a map of 'rate' and 'duration_s' or 'requests'"},
    {"an unknown dist", "requests: 1\n" CLOSED "prompt: {dist: norml}\noutput: 1\n",
     "t: line 3: unknown dist 'norml' (did you mean 'normal'?)"},
    {"no dist", "requests: 1\n" CLOSED "prompt: {mean: 4}\noutput: 1\n",
     "t: line 3: field 'dist' is missing"},
    {"a field of another dist",
     "requests: 1\n" CLOSED "prompt: {dist: constant, value: 4, max: 5}\noutput: 1\n",
     "t: line 3: unknown field 'max'"},
    {"a length of zero", "requests: 1\n" CLOSED "prompt: 0\noutput: 1\n",
     "t: line 3: field 'prompt' must be from 1 to 2147483647, not 0"},
    {"a broken length", "requests: 1\n" CLOSED "prompt: 1.5\noutput: 1\n",
     "t: line 3: field 'prompt' is not a whole number"},
    {"min above max",
     "requests: 1\n" CLOSED "prompt: {dist: uniform, min: 5, max: 4}\noutput: 1\n",
     "t: line 3: field 'min' is above 'max'"},
    {"a negative deviation",
     "requests: 1\n" CLOSED "prompt: {dist: normal, mean: 5, std: -1}\noutput: 1\n",
     "t: line 3: field 'std' must be from 0 to 1000000000000, not -1"},
    {"a lognormal said twice",
     "requests: 1\n" CLOSED
     "prompt: {dist: lognormal, median: 5, sigma: 1, mean: 6}\noutput: 1\n",
     "t: line 3: a lognormal takes 'median' and 'sigma' or 'mean' and 'std', not both"},
    {"quantiles that do not begin",
     "requests: 1\n" CLOSED "prompt: {dist: quantiles, at: [[0.5, 1], [1, 2]]}\n"
     "output: 1\n",
     "t: line 3: shares of 'at' must ascend from 0 to 1"},
    {"quantiles that do not end",
     "requests: 1\n" CLOSED "prompt: {dist: quantiles, at: [[0, 1], [0.9, 2]]}\n"
     "output: 1\n",
     "t: line 3: shares of 'at' must ascend from 0 to 1"},
    {"quantiles that descend",
     "requests: 1\n" CLOSED "prompt: {dist: quantiles, at: [[0, 4], [1, 2]]}\n"
     "output: 1\n",
     "t: line 3: values of 'at' must not descend"},
    {"quantiles of words",
     "requests: 1\n" CLOSED "prompt: {dist: quantiles, at: [[0, x], [1, 2]]}\n"
     "output: 1\n",
     "t: line 3: a pair of 'at' is [share, value], two numbers"},
    {"quantiles below a length",
     "requests: 1\n" CLOSED "prompt: {dist: quantiles, at: [[0, 0], [1, 2]]}\n"
     "output: 1\n",
     "t: line 3: 0 is not in [1, 2147483647]"},
    {"quantiles of one",
     "requests: 1\n" CLOSED "prompt: {dist: quantiles, at: [[0, 1]]}\noutput: 1\n",
     "t: line 3: field 'at' is not a list of pairs [share, value]"},
    {"lengths beside a prompt", "requests: 1\n" CLOSED "lengths: [[1, 2]]\nprompt: 1\n",
     "t: line 3: 'lengths' replaces 'prompt' and 'output'"},
    {"lengths of three", "requests: 1\n" CLOSED "lengths: [[1, 2, 3]]\n",
     "t: line 3: a pair of 'lengths' is [prompt, output]"},
    {"lengths of nothing", "requests: 1\n" CLOSED "lengths: [[1, 0]]\n",
     "t: line 3: a length is not an integer in [1, 2147483647]"},
    {"no lengths", "requests: 1\n" CLOSED "lengths: []\n",
     "t: line 3: field 'lengths' is not a list of pairs"},
    {"a relative file in memory",
     "requests: 1\n" CLOSED "prompt: {dist: empirical, file: lengths.txt}\noutput: 1\n",
     "t: line 3: field 'file': 'lengths.txt' cannot be read here"},
    {"a prefix of unknown length",
     "requests: 1\n" CLOSED LENGTHS "prefix: {groups: 2}\n",
     "t: line 5: field 'tokens' is missing"},
    {"a share above one",
     "requests: 1\n" CLOSED LENGTHS "prefix: {tokens: 2, share: 2}\n",
     "t: line 5: field 'share' must be from 0 to 1, not 2"},
    {"a prefix for sessions",
     "requests: 1\n" CLOSED LENGTHS "prefix: {tokens: 2}\nsessions: {turns: 2}\n",
     "t: line 6: 'sessions' has a 'starter' instead of 'prefix'"},
    {"sessions without turns",
     "requests: 1\n" CLOSED LENGTHS "sessions: {starter: 3}\n",
     "t: line 5: field 'turns' is missing"},
    {"starters of no length",
     "requests: 1\n" CLOSED LENGTHS "sessions: {turns: 3, starters: 4}\n",
     "t: line 5: 'starters' needs 'starter', their length"},
    {"prompts too long together",
     "requests: 1\n" CLOSED "prompt: 2147483647\noutput: 1\nprefix: {tokens: 1}\n",
     "t: the prompt of 'request-0' has more than 2147483647 tokens"},
    {"sessions too long",
     "requests: 3\n" CLOSED
     "prompt: 2000000000\noutput: 200000000\nsessions: {turns: 3}\n",
     "t: a session has more than 2147483647 tokens"},
};

static void refuses(void **state)
{
    const struct fixture_bad *b = *state;
    struct vt_workload w;
    struct vt_err err = {0};

    assert_int_equal(generate(&w, b->text, -1, &err), VT_EINPUT);
    assert_string_equal(err.msg, b->message);
}

static void a_bad_table_of_lengths_names_both_lines(void **state)
{
    struct vt_workload w;
    struct vt_err err = {0};
    const char *path = DATA("bad-lengths.yaml");
    char want[1000];

    (void)state;
    snprintf(want, sizeof(want),
             "%s: line 6: field 'file': %s: line 2: 'x' is not an integer in "
             "[1, 2147483647]",
             path, DATA("bad-lengths.txt"));
    assert_int_equal(vt_workload_generate(&w, path, -1, &err), VT_EINPUT);
    assert_string_equal(err.msg, want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_have_their_moments),
        cmocka_unit_test(files_are_found_beside_the_spec),
        cmocka_unit_test(gaps_have_their_moments),
        cmocka_unit_test(constant_arrivals_are_exact),
        cmocka_unit_test(bursts_come_together),
        cmocka_unit_test(closed_loops_have_no_times),
        cmocka_unit_test(stages_follow_each_other),
        cmocka_unit_test(durations_end_arrivals),
        cmocka_unit_test(groups_share_their_prefix),
        cmocka_unit_test(turns_repeat_what_was_said),
        cmocka_unit_test(sessions_may_be_a_closed_loop),
        cmocka_unit_test(priorities_are_drawn),
        cmocka_unit_test(a_seed_gives_one_workload),
        cmocka_unit_test(each_purpose_has_a_stream_of_its_own),
        cmocka_unit_test(traffic_replaces_what_a_spec_says),
        cmocka_unit_test(traffic_that_cannot_be_is_refused),
        cmocka_unit_test(pairs_of_lengths_stay_together),
        cmocka_unit_test(built_in_traffic_has_its_published_means),
        cmocka_unit_test(shipped_workloads_generate),
        cmocka_unit_test(documented_workloads_generate),
        cmocka_unit_test(a_bad_table_of_lengths_names_both_lines),
    };

    return fixture_run("workload", tests, VT_COUNT(tests), refuses, bad, VT_COUNT(bad));
}
