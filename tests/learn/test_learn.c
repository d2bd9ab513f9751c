/* A server's profile is found from what clients see of it, whatever model is behind it;
 * and what cannot be learned is refused. */
#include <unistd.h>

#include "../sanitized.h"
#include "site.h"

/* Requests at once: what is learned of few is learned of short loads, in little time.
 */
enum { FEW = 4 };

/* A directory for traces that goes away with all that is in it. */
static void clear_away(const char *dir)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r '%s'", dir);
    assert_int_equal(system(command), 0);
}

struct learned {
    struct vt_learn l;
    struct vt_err err;
    char dir[64];
    int rc;
};

static void learn_from(struct learned *out, struct site *s, const char *kind,
                       double seconds, uint32_t most)
{
    struct vt_learn_site site = site_open(s);
    struct vt_learn_config c = {.seconds = seconds,
                                .max_concurrency = most,
                                .seed = 5,
                                .kind = kind,
                                .tolerance = 15,
                                .dir = out->dir};

    *out = (struct learned){.dir = "/tmp/vt-learn-XXXXXX"};
    assert_non_null(mkdtemp(out->dir));
    out->rc = vt_learn_run(&out->l, &c, &site, &out->err);
    site_close(s);
}

static void let_go(struct learned *x)
{
    vt_learn_free(&x->l);
    clear_away(x->dir);
}

/* ---- what is behind it -------------------------------------------------- */

static struct truth {
    const char *name;
    struct site site;
    const char *kind;
} truths[] = {
    {"constant times",
     {.model = "knob:time_to_first_token=60,inter_token_latency=15",
      .blocks = 2000,
      .seqs = 64,
      .budget = 8192},
     "knob"},
    {"few may run at once",
     {.model = "linear:base=9000,request=150,prefill_token=12,context_token=0.05",
      .blocks = 2000,
      .seqs = 3,
      .budget = 8192},
     "linear"},
    {"a pool that is too small",
     {.model = "linear:base=9000,decode=150,prefill_token=6,context_token=0.05",
      .blocks = 300,
      .seqs = 64,
      .budget = 8192},
     "linear"},
};

static void within(const struct vt_learn *l, const char *what, double v, double most)
{
    struct vt_buf b = {0};

    if (v <= most)
        return;
    vt_learn_table(&b, l);
    fputs(b.data, stderr);
    vt_buf_free(&b);
    fail_msg("%s is off by %.1f %%", what, v);
}

static void the_model_behind_a_server_is_found(void **state)
{
    const struct truth *t = *state;
    struct site s = t->site;
    struct learned x;

    s.jitter_ms = 0.2;
    learn_from(&x, &s, t->kind, 15, FEW);
    if (x.rc != VT_OK)
        fail_msg("%s", x.err.msg);
    within(&x.l, "E2E", x.l.median.e2e, 3);
    within(&x.l, "TTFT", x.l.median.ttft, 3);
    within(&x.l, "ITL", x.l.median.itl, 3);
    if (s.seqs < FEW)
        assert_int_equal(x.l.engine.max_num_seqs, s.seqs);
    let_go(&x);
}

/* ---- what may befall it ------------------------------------------------- */

#define PLAIN "linear:base=9000,decode=150,prefill_token=12"
#define USUAL .model = PLAIN, .blocks = 2000, .seqs = 64, .budget = 8192, .tells = true

static struct mishap {
    const char *name;
    struct site site;
} mishaps[] = {
    {"a stall in a load that is predicted", {USUAL, .stall_at = 16}},
    {"one odd load that is predicted", {USUAL, .slower_at = 17, .slower = 1.5}},
};

static void one_mishap_does_not_spoil_it(void **state)
{
    const struct mishap *m = *state;
    struct site s = m->site;
    struct learned x;

    s.jitter_ms = 0.2;
    learn_from(&x, &s, "linear", 8, FEW);
    if (x.rc != VT_OK)
        fail_msg("%s", x.err.msg);
    within(&x.l, "E2E", x.l.median.e2e, 3);
    within(&x.l, "TTFT", x.l.median.ttft, 5);
    within(&x.l, "ITL", x.l.median.itl, 3);
    let_go(&x);
}

/* ---- nobody says which kind it is --------------------------------------- */

/* A stall in one load, one odd load, or both: learn finds the kind all the same. */
#define STALL .stall_at = 8, .stall_ms = 300
#define ODD   .slower_at = 11, .slower = 1.5

static struct choice {
    const char *name;
    struct site site;
    const char *kind;
    double seconds; /* not many more than it takes at all */
} choices[] = {
    {"a blackbox is told from others",
     {.model = "blackbox:alpha=3000,0.5,200,beta=24000,60,500",
      .blocks = 2000,
      .seqs = 256,
      .budget = 2048,
      ODD},
     "blackbox",
     20},
    {"a sum is told from others",
     {.model = "linear:base=20000,request=900,prefill_token=40,context_token=0.5",
      .blocks = 2000,
      .seqs = 64,
      .budget = 8192,
      STALL,
      ODD},
     "linear",
     17},
    {"steps with a host are told from others",
     {.model = "step:base=16000,graph_token=300,mixed_token=25,eager_token=40,"
               "host_launch_mixed=30000,host_launch_eager=60000",
      .blocks = 2000,
      .seqs = 64,
      .budget = 8192,
      STALL,
      ODD},
     "step",
     14},
};

static void its_kind_is_found(void **state)
{
    const struct choice *t = *state;
    struct site s = t->site;
    struct learned x;

    s.jitter_ms = 0.2;
    learn_from(&x, &s, NULL, t->seconds, FEW);
    if (x.rc != VT_OK)
        fail_msg("%s", x.err.msg);
    assert_string_equal(x.l.fit.kind, t->kind);
    assert_string_equal(x.l.refusal, "");
    if (s.budget < 8192)
        assert_int_equal(x.l.engine.max_num_batched_tokens, s.budget);
    within(&x.l, "E2E", x.l.median.e2e, 3);
    within(&x.l, "TTFT", x.l.median.ttft, 5);
    within(&x.l, "ITL", x.l.median.itl, 3);
    let_go(&x);
}

/* Loads that no model can match. */
static void a_server_that_contradicts_itself_is_refused(void **state)
{
    struct site s = {.model = "linear:base=20000,decode=500,prefill_token=40",
                     .blocks = 2000,
                     .seqs = 64,
                     .budget = 8192,
                     .wanders = true,
                     .slower = 2};
    struct learned x;

    (void)state;
    learn_from(&x, &s, "linear", 16, FEW);
    if (x.rc != VT_OK)
        fail_msg("%s", x.err.msg);
    if (!x.l.refusal[0])
        within(&x.l, "what is not refused", 100, 0);
    let_go(&x);
}

/* A server that becomes a little slower is no reason to stop, but it is the first one
 * where the prediction fails. */
static void a_speed_that_changed_is_the_first_reason(void **state)
{
    struct site s = {.model = "linear:base=20000,decode=500,prefill_token=40",
                     .blocks = 2000,
                     .seqs = 64,
                     .budget = 8192,
                     .tells = true,
                     .slower_from = 15,
                     .slower = 1.18};
    struct learned x;

    (void)state;
    learn_from(&x, &s, "linear", 16, FEW);
    if (x.rc != VT_OK)
        fail_msg("%s", x.err.msg);
    assert_ptr_equal(strstr(x.l.refusal,
                            "the server's speed changed while it learned: one stream "
                            "had a token every 20.5 to 24.2 ms, 18 % apart; what it "
                            "predicts of loads that it has not seen is off by 15."),
                     x.l.refusal);
    assert_float_equal(vt_learn_speed_change(&x.l), 18, 0.5);
    let_go(&x);
}

/* ---- the token budget --------------------------------------------------- */

enum { DRAWS = 8 }; /* of the noise in times */

/* A stream's tokens beside a prompt of 20,000 as `vllm serve` on an H200 gave them: the
 * first ones were late because the server read it, one while the host launched its
 * first step, and only then one for each step. */
static struct budget {
    const char *name;
    struct site site;
    uint32_t least, most; /* that may be found; 0: none shows */
} budgets[] = {
#define H200(tokens)                                                           \
    .profile = "qwen3-8b-h200", .blocks = 50000, .seqs = 256, .read_us = 2000, \
    .read_ktoken_us = 220, .budget = (tokens)
    {"a budget of 1024 is told from launches", {H200(1024)}, 1024, 1024},
    {"a budget of 2048 is told from launches", {H200(2048)}, 2048, 2048},
    {"a budget of 4096 is told from launches", {H200(4096)}, 4096, 4096},
    {"a budget of 8192 is told from launches", {H200(8192)}, 8192, 8192},
    {"a budget of 16384 is told from launches", {H200(16384)}, 16384, 16384},
    {"a budget that is no power of two is met nearly", {H200(6000)}, 5000, 6700},
    {"a budget beyond the longest prompt is not known", {H200(32768)}, 0, 0},
#undef H200
    {"a budget is told where launches are as long as steps",
     {.profile = "qwen3-30b-a3b-h200", .blocks = 45781, .seqs = 256, .budget = 8192},
     8192,
     8192},
    {"a budget of 4096 is told where launches are as long as steps",
     {.profile = "qwen3-30b-a3b-h200", .blocks = 45781, .seqs = 256, .budget = 4096},
     4096,
     4096},
    {"a budget is told where no prompt of three steps fits into the pool",
     {.profile = "qwen3-8b-h200", .blocks = 700, .seqs = 256, .budget = 8192},
     8192,
     8192},
    {"a budget is told where launches are shorter than steps",
     {.profile = "llama-70b-fp8-h200", .blocks = 11392, .seqs = 256, .budget = 8192},
     8192,
     8192},
    {"a budget is told where nothing is launched",
     {.model = "linear:base=9000,decode=150,prefill_token=12",
      .blocks = 2000,
      .seqs = 64,
      .budget = 8192},
     8192,
     8192},
};

/* Checks come before all other loads. */
static bool is_checked(void *user)
{
    enum { CHECKS = 4 }; /* short, prompts, budget twice */

    return ((const struct site *)user)->loads >= CHECKS;
}

/* Launches take a little more or less each time: it does not hang on how they fell. */
static void find_the_budget(const struct budget *t, uint64_t noise)
{
    struct site s = t->site;
    struct vt_learn_site site = site_open(&s);
    struct learned x = {.dir = "/tmp/vt-learn-XXXXXX"};
    struct vt_learn_config c = {.seconds = 210,
                                .max_concurrency = 128,
                                .seed = 5,
                                .dir = x.dir,
                                .stopped = is_checked,
                                .user = &s};
    uint32_t found;

    s.jitter_ms = 0.2;
    s.noise_seed = noise;
    assert_non_null(mkdtemp(x.dir));
    assert_int_equal(vt_learn_run(&x.l, &c, &site, &x.err), VT_EIO);
    assert_string_equal(x.err.msg, "stopped");
    found = x.l.engine.max_num_batched_tokens;
    if (found < t->least || found > t->most)
        fail_msg("found %u with noise %u", (unsigned)found, (unsigned)noise);
    site_close(&s);
    let_go(&x);
}

/* Sanitized, two draws of each row have to do, and all rows together see each draw. */
static void the_budget_is_found(void **state)
{
    const struct budget *t = *state;
    size_t more = 1 + (size_t)(t - budgets) % (DRAWS - 1);

    for (uint64_t noise = 0; noise < DRAWS; noise++)
        if (!SANITIZED || noise == 0 || noise == more)
            find_the_budget(t, noise);
}

/* ---- whose clock -------------------------------------------------------- */

/* A profile is by the client's clock, with the client's pause: 250 us here, and the
 * jitter of its tokens. */
static void a_profile_states_the_clients_clock_and_pause(void **state)
{
    struct site s = {.model = "linear:base=9000,decode=150,prefill_token=12",
                     .blocks = 2000,
                     .seqs = 64,
                     .budget = 8192,
                     .tells = true};
    struct vt_profile p = {0};
    struct vt_buf b = {0};
    struct learned x;

    (void)state;
    learn_from(&x, &s, "linear", 8, FEW);
    if (x.rc != VT_OK || vt_learn_profile(&b, &x.l, "p", NULL, &x.err) != VT_OK ||
        vt_profile_parse(&p, "p", b.data, b.len, &x.err) != VT_OK)
        fail_msg("%s", x.err.msg);
    assert_int_equal(p.clock, VT_CLOCK_CLIENT);
    assert_string_equal(p.frontend.name, "none");
    assert_float_equal(p.frontend.client_us, 250, 20);
    assert_float_equal(p.model->turnaround_us, p.frontend.client_us, 1e-6);
    vt_profile_close(&p);
    vt_buf_free(&b);
    let_go(&x);
}

/* ---- frontends ---------------------------------------------------------- */

/* Of requests that come together Python's frontend reads all before the first goes on:
 * their first tokens are later than any engine's model says. */
static struct front {
    const char *name, *frontend;
    bool reads;
} fronts[] = {
    {"a frontend that reads bursts first is found", "python", true},
    {"one that does not is not taken for one", "vllm-rs", false},
};

static void a_frontend_that_reads_bursts_first_is_found(void **state)
{
    const struct front *f = *state;
    struct site s = {.model = "linear:base=9000,decode=150,prefill_token=12",
                     .blocks = 4000,
                     .seqs = 64,
                     .budget = 8192,
                     .tells = true,
                     .frontend = f->frontend};
    struct vt_profile p = {0};
    struct vt_buf b = {0};
    struct learned x;

    learn_from(&x, &s, "linear", 20, 24);
    if (x.rc != VT_OK || vt_learn_profile(&b, &x.l, "p", NULL, &x.err) != VT_OK ||
        vt_profile_parse(&p, "p", b.data, b.len, &x.err) != VT_OK)
        fail_msg("%s", x.err.msg);
    assert_float_equal(p.frontend.read_us, x.l.fit.read_us, 0.1);
    if (f->reads)
        assert_float_equal(p.frontend.read_us, vt_front_find("python")->read_us, 1);
    else
        assert_float_equal(p.frontend.read_us, 0, 0);
    within(&x.l, "E2E", x.l.median.e2e, 3);
    within(&x.l, "TTFT", x.l.median.ttft, 5);
    within(&x.l, "ITL", x.l.median.itl, 3);
    vt_profile_close(&p);
    vt_buf_free(&b);
    let_go(&x);
}

/* ---- what is refused ---------------------------------------------------- */

static struct refusal {
    const char *name;
    struct site site;
    double seconds;
    int rc;
    const char *why; /* how the message goes */
} refusals[] = {
    {"requests fail",
     {USUAL, .fails_at = 8},
     20,
     VT_EIO,
     "closed-4: 1 of 18 requests failed: status: 503"},
    {"others use it, too",
     {USUAL, .others_at = 6},
     20,
     VT_ECHECK,
     "closed-2: the server has other requests, too (2 ended meanwhile, 0 are there "
     "still): nothing it does is ours alone"},
    {"tokens are drafted",
     {USUAL, .drafts_at = 1},
     20,
     VT_ECHECK,
     "short: the server drafts tokens ahead, and how many are taken hangs on what "
     "people write"},
    {"its speed changes half way",
     {USUAL, .slower_from = 9, .slower = 1.3},
     20,
     VT_ECHECK,
     "the server's speed changed: one stream had a token every 9.15 ms at first, and "
     "every 11.89 ms later"},
    {"its speed changes at the end",
     {USUAL, .slower_from = 16, .slower = 1.3},
     20,
     VT_ECHECK,
     "the server's speed changed: one stream had a token every 9.15 ms at first, and "
     "every 11.89 ms later"},
    {"too fast for a clock",
     {.model = "linear:base=90", .blocks = 2000, .seqs = 64, .budget = 8192},
     20,
     VT_ECHECK,
     "a token every 0.0"},
    {"no time",
     {USUAL},
     2,
     VT_ECHECK,
     "2 s are too short: at 9.6 ms a token with 4 requests at once it takes 7 s to "
     "learn something"},
};

static void it_is_refused(void **state)
{
    const struct refusal *r = *state;
    struct site s = r->site;
    struct learned x;

    learn_from(&x, &s, "linear", r->seconds, FEW);
    assert_int_equal(x.rc, r->rc);
    if (strncmp(x.err.msg, r->why, strlen(r->why)) != 0)
        assert_string_equal(x.err.msg, r->why);
    let_go(&x);
}

int main(void)
{
    enum {
        T = VT_COUNT(truths),
        M = VT_COUNT(mishaps),
        R = VT_COUNT(refusals),
        C = VT_COUNT(choices),
        B = VT_COUNT(budgets),
        F = VT_COUNT(fronts),
        ONES = 3
    };
    struct CMUnitTest tests[T + M + R + C + ONES + B + F] = {
        [T + M + R + C] = cmocka_unit_test(a_server_that_contradicts_itself_is_refused),
        [T + M + R + C + 1] =
            cmocka_unit_test(a_profile_states_the_clients_clock_and_pause),
        [T + M + R + C + 2] =
            cmocka_unit_test(a_speed_that_changed_is_the_first_reason),
    };

    for (size_t i = 0; i < B; i++)
        tests[T + M + R + C + ONES + i] =
            (struct CMUnitTest){.name = budgets[i].name,
                                .test_func = the_budget_is_found,
                                .initial_state = &budgets[i]};

    for (size_t i = 0; i < F; i++)
        tests[T + M + R + C + ONES + B + i] = (struct CMUnitTest){
            .name = fronts[i].name,
            .test_func = a_frontend_that_reads_bursts_first_is_found,
            .initial_state = &fronts[i]};

    for (size_t i = 0; i < C; i++)
        tests[T + M + R + i] = (struct CMUnitTest){.name = choices[i].name,
                                                   .test_func = its_kind_is_found,
                                                   .initial_state = &choices[i]};

    for (size_t i = 0; i < M; i++)
        tests[T + i] = (struct CMUnitTest){.name = mishaps[i].name,
                                           .test_func = one_mishap_does_not_spoil_it,
                                           .initial_state = &mishaps[i]};
    for (size_t i = 0; i < R; i++)
        tests[T + M + i] = (struct CMUnitTest){.name = refusals[i].name,
                                               .test_func = it_is_refused,
                                               .initial_state = &refusals[i]};

    for (size_t i = 0; i < T; i++)
        tests[i] = (struct CMUnitTest){.name = truths[i].name,
                                       .test_func = the_model_behind_a_server_is_found,
                                       .initial_state = &truths[i]};
    return cmocka_run_group_tests_name("learn", tests, NULL, NULL);
}
