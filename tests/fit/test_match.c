/* What a client saw of a few loads becomes a model that predicts others. */
#include "twin.h"

#include "fit/match.h"

#define PROMPTS "prompt: {dist: lognormal, median: 300, sigma: 0.8, min: 8, max: 3000}"

static const char *const mine[] = {
    "{requests: 6, arrival: {process: closed, concurrency: 1}, " PROMPTS
    ", output: {dist: uniform, min: 4, max: 16}}",
    "{requests: 24, arrival: {process: closed, concurrency: 8}, " PROMPTS
    ", output: {dist: uniform, min: 4, max: 20}}",
    "{requests: 70, arrival: {process: closed, concurrency: 40}, " PROMPTS
    ", output: {dist: uniform, min: 10, max: 40}}",
    "{requests: 30, arrival: {process: poisson, rate: 16}, " PROMPTS
    ", output: {dist: uniform, min: 5, max: 20}}",
};
enum { N_MINE = VT_COUNT(mine) };

/* Not one of those above: longer prompts and outputs, another concurrency. */
static const char unseen[] =
    "{requests: 80, seed: 9, arrival: {process: closed, concurrency: 20}, prompt: "
    "{dist: lognormal, median: 600, sigma: 0.6, min: 8, max: 4000}, output: {dist: "
    "uniform, min: 20, max: 90}}";

/* Keeps the first token's time and the last one's. */
static void keep_ends_only(struct vt_workload *w)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct vt_measured *m = &w->measured[i];
        vt_ns left = m->e2e_ns - m->ttft_ns;

        for (uint32_t k = 0; k < m->n_gaps; k++) {
            w->gap[m->first_gap + k] = left / (m->n_gaps - k);
            left -= w->gap[m->first_gap + k];
        }
    }
    w->n_by_mean = w->n;
}

struct bed {
    struct vt_workload w[N_MINE + 1]; /* the last one is not fitted */
    struct circumstances how[N_MINE + 1];
    struct vt_match *m;
};

static void record_all(struct bed *b, const char *truth)
{
    struct vt_latency *model;
    struct vt_err err = {0};

    assert_int_equal(vt_model_open_inline(&model, truth, &err), VT_OK);
    for (size_t i = 0; i <= N_MINE; i++) {
        struct recorder r;

        record_in(&r, &b->w[i], model, i < N_MINE ? mine[i] : unseen, b->how[i]);
        vt_steps_free(&r.steps);
        if (i < N_MINE)
            keep_ends_only(&b->w[i]);
    }
    vt_latency_close(model);
}

static void bed_free(struct bed *b)
{
    vt_match_free(b->m);
    for (size_t i = 0; i <= N_MINE; i++)
        vt_workload_free(&b->w[i]);
}

static void add_all(struct bed *b)
{
    struct vt_fit_shape shape = {0};
    struct vt_err err = {0};

    assert_int_equal(vt_match_new(&b->m, &shape, &err), VT_OK);
    for (size_t i = 0; i < N_MINE; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "load-%zu", i);
        if (vt_match_add(b->m, name, &b->w[i], &err) != VT_OK)
            fail_msg("%s", err.msg);
    }
}

static void predict(const struct vt_match_result *r, const struct vt_workload *w,
                    struct vt_summary *out)
{
    struct vt_sim_spec spec = {
        .workload = w, .arrivals = w->arrivals, .concurrency = w->concurrency};
    struct vt_buf b = {0};
    struct vt_profile p;
    struct vt_err err = {0};

    vt_buf_printf(&b, "{\"name\": \"x\", \"model\": %s}", r->model.data);
    if (vt_profile_parse(&p, "x", b.data, b.len, &err) != VT_OK)
        fail_msg("%s", err.msg);
    vt_engine_config_init(&spec.engine);
    vt_engine_config_take(&spec.engine, &w->meta);
    spec.model = p.model;
    if (vt_sim_run(&spec, out, &err) != VT_OK)
        fail_msg("%s", err.msg);
    vt_profile_close(&p);
    vt_buf_free(&b);
}

#define LINEAR \
    "linear:queue=900,base=4000,prefill_token=30,decode=25,context_token=0.05"

static struct truth {
    const char *name, *model, *kind;
} truths[] = {
    {"a blackbox server's ends of requests predict an unseen load",
     "blackbox:alpha=1500,2,200,beta=6000,25,30", "blackbox"},
    {"a server's with constant latencies do, and its kind is found",
     "knob:prefill_overhead=60,prefill_time_per_token=0.05,inter_token_latency=9,"
     "time_factor_under_load=3",
     NULL},
};

/* It may refuse, but not fail. */
static void solve(struct vt_match *m, const struct vt_match_options *o,
                  struct vt_match_result *r)
{
    struct vt_err err = {0};

    if (vt_match_solve(m, o, r, &err) != VT_OK)
        fail_msg("%s", err.msg);
}

static void predicts_unseen(const struct bed *b, const struct vt_match_result *r)
{
    struct vt_summary sim, real;
    struct vt_err err = {0};

    predict(r, &b->w[N_MINE], &sim);
    assert_int_equal(vt_summary_measured(&real, &b->w[N_MINE], &err), VT_OK);
    near("E2E", sim.e2e.mean, real.e2e.mean, 0.03);
    near("TTFT", sim.ttft.mean, real.ttft.mean, 0.05);
    near("ITL", sim.itl.mean, real.itl.mean, 0.03);
    near("throughput", sim.req_per_s, real.req_per_s, 0.03);
}

static void what_ends_of_requests_tell_predicts_an_unseen_load(void **state)
{
    const struct truth *t = *state;
    struct vt_match_options o = {.kind = t->kind};
    struct vt_match_result r;
    struct bed b = {0};
    struct vt_err err = {0};

    record_all(&b, t->model);
    add_all(&b);
    solve(b.m, &o, &r);
    if (vt_match_check(&r, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_memory_equal(r.kind, t->model, strlen(r.kind));
    predicts_unseen(&b, &r);
    vt_match_result_free(&r);
    bed_free(&b);
}

/* As another machine would have borne it. */
static void slow_down(struct vt_workload *w, double factor)
{
    for (size_t i = 0; i < w->n; i++) {
        struct vt_measured *m = &w->measured[i];

        w->req[i].arrival_ns = (vt_ns)(factor * (double)w->req[i].arrival_ns);
        m->ttft_ns = (vt_ns)(factor * (double)m->ttft_ns);
        m->e2e_ns = (vt_ns)(factor * (double)m->e2e_ns);
    }
    keep_ends_only(w);
}

/* Something before the engine holds every second request up. */
static void hold_up(struct vt_workload *w, double seconds)
{
    for (size_t i = 0; i < w->n; i += 2) {
        w->measured[i].ttft_ns += (vt_ns)(1e9 * seconds);
        w->measured[i].e2e_ns += (vt_ns)(1e9 * seconds);
    }
}

static struct oddity {
    const char *name;
    double slow, late; /* as `refusals` has them */
} oddities[] = {
    {"a slow run is named and spoils nothing", 1.6, 0},
    {"a run that waited for no limit that is stated is named, too", 0, 2},
};

static void an_odd_run_is_named_and_spoils_nothing(void **state)
{
    const struct oddity *t = *state;
    struct vt_match_options o = {.kind = "linear"};
    struct vt_match_result r;
    struct bed b = {0};
    struct vt_err err = {0};

    record_all(&b, LINEAR);
    if (t->slow > 0)
        slow_down(&b.w[1], t->slow);
    if (t->late > 0)
        hold_up(&b.w[1], t->late);
    for (size_t i = 0; i < N_MINE; i++) {
        b.w[i].meta.max_num_seqs = 256;
        b.w[i].meta.num_gpu_blocks = 8000;
    }
    add_all(&b);
    solve(b.m, &o, &r);
    for (size_t i = 0; i < N_MINE; i++)
        assert_int_equal(r.load[i].odd, i == 1);
    assert_string_equal(r.load[1].out.name, "load-1");
    assert_true(r.load[1].out.e2e < -30);
    assert_int_equal(vt_match_check(&r, &err), VT_OK);
    predicts_unseen(&b, &r);
    vt_match_result_free(&r);
    bed_free(&b);
}

/* Something else on the machine holds two answers up for three seconds; one prompt was
 * in the cache from before. */
static void requests_that_were_stalled_or_cached_are_left_out(void **state)
{
    struct vt_match_options o = {.kind = "linear"};
    struct vt_match_result r;
    struct bed b = {0};
    struct vt_measured *cached;
    size_t longest = 0;
    struct vt_err err = {0};

    (void)state;
    record_all(&b, LINEAR);
    for (size_t i = 20; i < 22; i++)
        b.w[3].measured[i].e2e_ns += 3 * VT_SEC;
    for (size_t i = 1; i < b.w[3].n; i++)
        if (b.w[3].req[i].prompt_tokens > b.w[3].req[longest].prompt_tokens)
            longest = i;
    cached = &b.w[3].measured[longest];
    cached->e2e_ns -= 9 * cached->ttft_ns / 10;
    cached->ttft_ns /= 10;
    keep_ends_only(&b.w[3]);
    add_all(&b);
    solve(b.m, &o, &r);
    assert_int_equal(r.load[3].stalled, 3);
    assert_int_equal(r.load[2].stalled, 0);
    assert_int_equal(vt_match_check(&r, &err), VT_OK);
    predicts_unseen(&b, &r);
    vt_match_result_free(&r);
    bed_free(&b);
}

/* A fifth of a load's requests was given up: the others shared the engine with them,
 * which cannot be simulated, and other loads tell better. */
static void a_load_with_many_requests_given_up_is_left_out(void **state)
{
    struct vt_match_options o = {.kind = "linear"};
    struct vt_match_result r;
    struct bed b = {.how = {[2] = {.give_up_every = 5}}};
    struct vt_err err = {0};

    (void)state;
    record_all(&b, LINEAR);
    add_all(&b);
    solve(b.m, &o, &r);
    for (size_t i = 0; i < N_MINE; i++)
        assert_int_equal(r.load[i].odd, i == 2);
    near("unanswered", r.load[2].unanswered, 20, 0.01);
    assert_int_equal(vt_match_check(&r, &err), VT_OK);
    predicts_unseen(&b, &r);
    vt_match_result_free(&r);
    bed_free(&b);
}

/* Nobody states how many requests run at once: 120 that come together at an engine
 * with so many seats show it, if they have to wait. */
static void the_limit_on_running_requests_shows_in_what_waits(void **state)
{
    enum { N = 120 };
    static const struct {
        uint32_t seats, want;
    } rows[] = {{24, 24}, {31, 32}, {256, 0}};

    (void)state;
    for (size_t t = 0; t < VT_COUNT(rows); t++) {
        struct vt_work req[N] = {{0}};
        struct vt_measured measured[N] = {{0}};
        struct vt_workload w = {.req = req, .measured = measured, .n = N};
        vt_ns free_at[256] = {0};
        struct limits found;
        struct vt_err err = {0};

        for (size_t i = 0; i < N; i++) {
            size_t seat = 0;

            for (size_t k = 1; k < rows[t].seats; k++)
                if (free_at[k] < free_at[seat])
                    seat = k;
            measured[i].ttft_ns = free_at[seat] + VT_MS;
            free_at[seat] += (vt_ns)(200 + i * 37 % 100) * VT_MS;
            measured[i].e2e_ns = free_at[seat];
        }
        assert_int_equal(limits_shown(&w, &found, &err), VT_OK);
        assert_int_equal(found.seats, rows[t].want);
        assert_true(found.tokens == 0);
    }
}

/* Simulated as if they were computed whole, prompts that earlier traffic had cached
 * would make computing look cheap. */
static void prompts_that_were_cached_before_are_simulated_so(void **state)
{
    struct vt_match_options o = {.kind = "linear"};
    struct vt_match_result r;
    struct bed b = {0};
    struct vt_err err = {0};

    (void)state;
    for (size_t i = 0; i < N_MINE; i++)
        b.how[i].warm = true;
    record_all(&b, LINEAR);
    add_all(&b);
    solve(b.m, &o, &r);
    assert_int_equal(vt_match_check(&r, &err), VT_OK);
    predicts_unseen(&b, &r);
    vt_match_result_free(&r);
    bed_free(&b);
}

/* Nobody states how large the KV cache is: requests that lose their places in it, and
 * those that wait for room, tell, and it is found by simulation. */
static void the_size_of_the_cache_shows_in_what_waits(void **state)
{
    enum { BLOCKS = 560 };
    struct vt_match_options o = {.kind = "linear"};
    struct vt_match_result r;
    struct bed b = {0};
    struct vt_err err = {0};

    (void)state;
    for (size_t i = 0; i < N_MINE; i++)
        b.how[i].blocks = BLOCKS;
    record_all(&b, LINEAR);
    add_all(&b);
    solve(b.m, &o, &r);
    assert_int_equal(vt_match_check(&r, &err), VT_OK);
    assert_int_equal(r.block_size, 16);
    near("blocks", r.num_gpu_blocks, BLOCKS, 0.06);
    for (size_t i = 0; i < N_MINE; i++)
        assert_false(r.load[i].odd);
    predicts_unseen(&b, &r);
    vt_match_result_free(&r);
    bed_free(&b);
}

/* ---- refusals ----------------------------------------------------------- */

#define SAME "output: {dist: uniform, min: 5, max: 30}}"

static struct refusal {
    const char *name, *load[2];
    double slow; /* the second one's times are so many times as long; 0: as they are */
    double late; /* so many seconds lie before every second request of the first one */
    const char *want;
} refusals[] = {
    {"one load is refused",
     {"{requests: 40, arrival: {process: closed, concurrency: 8}, " PROMPTS ", " SAME},
     0,
     0,
     "one load cannot be checked against another"},
    {"loads of one concurrency are refused",
     {"{requests: 40, arrival: {process: closed, concurrency: 8}, " PROMPTS ", " SAME,
      "{requests: 40, seed: 2, arrival: {process: closed, concurrency: 8}, " PROMPTS
      ", " SAME},
     0,
     0,
     "all loads have about 8 requests at once"},
    {"prompts of one length are refused",
     {"{requests: 20, arrival: {process: closed, concurrency: 2}, prompt: 512, " SAME,
      "{requests: 40, arrival: {process: closed, concurrency: 8}, prompt: 512, " SAME},
     0,
     0,
     "all prompts have about 512 tokens"},
    {"loads that contradict each other are refused",
     {"{requests: 30, arrival: {process: closed, concurrency: 8}, " PROMPTS ", " SAME,
      "{requests: 10, seed: 2, arrival: {process: closed, concurrency: 2}, " PROMPTS
      ", " SAME},
     9,
     0,
     "no model matches all loads"},
    {"waiting that no limit explains is refused",
     {"{requests: 40, arrival: {process: closed, concurrency: 8}, " PROMPTS ", " SAME,
      "{requests: 10, seed: 2, arrival: {process: closed, concurrency: 2}, " PROMPTS
      ", " SAME},
     0,
     2,
     "wait or lose their places, and no limit"},
};

static void says_why_it_refuses(void **state)
{
    const struct refusal *t = *state;
    struct vt_match_options o = {.kind = "linear"};
    struct vt_fit_shape shape = {0};
    struct vt_workload w[2];
    struct vt_match_result r;
    struct vt_latency *model;
    struct vt_match *m;
    struct vt_err err = {0};
    size_t n = 0;

    assert_int_equal(vt_model_open_inline(&model, LINEAR, &err), VT_OK);
    assert_int_equal(vt_match_new(&m, &shape, &err), VT_OK);
    for (; n < 2 && t->load[n]; n++) {
        struct recorder rec;

        record(&rec, &w[n], model, t->load[n]);
        vt_steps_free(&rec.steps);
        if (n == 1 && t->slow > 0)
            slow_down(&w[n], t->slow);
        if (n == 0 && t->late > 0)
            hold_up(&w[n], t->late);
        assert_int_equal(vt_match_add(m, n == 0 ? "a" : "b", &w[n], &err), VT_OK);
    }
    solve(m, &o, &r);
    assert_int_equal(vt_match_check(&r, &err), VT_ECHECK);
    if (!strstr(err.msg, t->want))
        fail_msg("says \"%s\"", err.msg);
    assert_non_null(r.model.data); /* for those who want it all the same */
    vt_match_result_free(&r);
    vt_match_free(m);
    vt_latency_close(model);
    while (n-- > 0)
        vt_workload_free(&w[n]);
}

/* ---- mixtures ----------------------------------------------------------- */

#define STEPS "step:base=3500,graph_token=25,mixed=1500,mixed_token=8,eager_token=12"

static struct mixture {
    const char *name, *model;
    double least, most; /* share of the experts that a token may be found to meet */
    bool tiles;         /* that rows have to fill */
} mixtures[] = {
    {"steps of a dense model are not a mixture's", STEPS, 0, 0, false},
    {"tiles that rows have to fill show in rebuilt steps", STEPS ",fill_row=25", 0, 0,
     true},
    {"128 experts show in rebuilt steps",
     STEPS ",experts=128,experts_per_token=8,expert=12000", 1.0 / 16, 1.0 / 16, false},
};

static void experts_show_in_rebuilt_steps(void **state)
{
    const struct mixture *t = *state;
    const double weight[N_MINE] = {1, 1, 1, 1};
    struct vt_fit_shape shape = {0};
    struct vt_workload w[N_MINE];
    struct vt_latency *model;
    struct vt_match *m;
    struct vt_err err = {0};
    double share = 0;

    assert_int_equal(vt_model_open_inline(&model, t->model, &err), VT_OK);
    assert_int_equal(vt_match_new(&m, &shape, &err), VT_OK);
    for (size_t i = 0; i < N_MINE; i++) {
        struct recorder rec;

        record(&rec, &w[i], model, mine[i]);
        vt_steps_free(&rec.steps);
        assert_int_equal(vt_match_add(m, "load", &w[i], &err), VT_OK);
    }
    assert_int_equal(match_find_form(m, weight, &err), VT_OK);
    if (m->shape.experts > 0)
        share = m->shape.experts_per_token / m->shape.experts;
    if (share < t->least || share > t->most)
        fail_msg("%g of the experts", share);
    assert_int_equal(m->shape.fill_us > 0, t->tiles);
    vt_match_free(m);
    vt_latency_close(model);
    for (size_t i = 0; i < N_MINE; i++)
        vt_workload_free(&w[i]);
}

static void a_load_without_times_is_refused(void **state)
{
    struct vt_fit_shape shape = {0};
    struct vt_workload w = {0};
    struct vt_match *m;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_match_new(&m, &shape, &err), VT_OK);
    assert_int_equal(vt_match_add(m, "x", &w, &err), VT_EINPUT);
    assert_string_equal(err.msg, "x: no timings to fit");
    vt_match_free(m);
}

int main(void)
{
    struct CMUnitTest tests[6 + VT_COUNT(oddities) + VT_COUNT(truths) +
                            VT_COUNT(refusals) + VT_COUNT(mixtures)] = {
        cmocka_unit_test(a_load_without_times_is_refused),
        cmocka_unit_test(requests_that_were_stalled_or_cached_are_left_out),
        cmocka_unit_test(a_load_with_many_requests_given_up_is_left_out),
        cmocka_unit_test(prompts_that_were_cached_before_are_simulated_so),
        cmocka_unit_test(the_size_of_the_cache_shows_in_what_waits),
        cmocka_unit_test(the_limit_on_running_requests_shows_in_what_waits),
    };
    size_t n = 6;

    for (size_t i = 0; i < VT_COUNT(oddities); i++)
        tests[n++] =
            (struct CMUnitTest){.name = oddities[i].name,
                                .test_func = an_odd_run_is_named_and_spoils_nothing,
                                .initial_state = &oddities[i]};
    for (size_t i = 0; i < VT_COUNT(truths); i++)
        tests[n++] = (struct CMUnitTest){
            .name = truths[i].name,
            .test_func = what_ends_of_requests_tell_predicts_an_unseen_load,
            .initial_state = &truths[i],
        };
    for (size_t i = 0; i < VT_COUNT(refusals); i++)
        tests[n++] = (struct CMUnitTest){.name = refusals[i].name,
                                         .test_func = says_why_it_refuses,
                                         .initial_state = &refusals[i]};
    for (size_t i = 0; i < VT_COUNT(mixtures); i++)
        tests[n++] = (struct CMUnitTest){.name = mixtures[i].name,
                                         .test_func = experts_show_in_rebuilt_steps,
                                         .initial_state = &mixtures[i]};
    return cmocka_run_group_tests_name("match", tests, NULL, NULL);
}
