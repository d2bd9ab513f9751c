/* The trace model: what it learns from records whose law is known, and what it then
 * charges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <unistd.h>

#include "model/model.h"

/* ---- traces made for a purpose ---------------------------------------- */

struct made {
    char path[64];
    struct vt_buf b;
};

static void made_open(struct made *t)
{
    int fd;

    *t = (struct made){.path = "/tmp/vtwin-trace-model-XXXXXX"};
    fd = mkstemp(t->path);
    assert_true(fd >= 0);
    close(fd);
}

static void made_close(struct made *t)
{
    unlink(t->path);
    vt_buf_free(&t->b);
}

/* Writes what was collected and opens a model on it. */
static int made_model(struct made *t, struct vt_latency **m, struct vt_err *err)
{
    struct vt_out *o;
    char text[128];

    assert_false(t->b.failed);
    assert_int_equal(vt_out_open(&o, t->path, err), VT_OK);
    assert_int_equal(vt_out_write(o, t->b.data, t->b.len, err), VT_OK);
    assert_int_equal(vt_out_commit(o, err), VT_OK);
    snprintf(text, sizeof(text), "trace:file=%s,max_num_batched_tokens=8192", t->path);
    return vt_model_open_inline(m, text, err);
}

static void must_open(struct made *t, struct vt_latency **m)
{
    struct vt_err err = {0};

    if (made_model(t, m, &err) != VT_OK)
        fail_msg("%s", err.msg);
}

/* A request with n equal gaps; a mark > 0 puts a prompt into the middle one. */
struct record {
    uint32_t prompt, cached, concurrency;
    double ttft, gap;
    uint32_t n, mark;
    double marked_gap;
};

static void add(struct made *t, struct record r)
{
    vt_buf_printf(&t->b,
                  "{\"prompt_tokens\":%u,\"cached_tokens\":%u,\"output_tokens\":%u,"
                  "\"concurrency\":%u,\"ttft_ms\":%.9f,\"itl_ms\":[",
                  r.prompt, r.cached, r.n + 1, r.concurrency, r.ttft);
    for (uint32_t i = 0; i < r.n; i++)
        vt_buf_printf(&t->b, "%s%.9f", i > 0 ? "," : "",
                      r.mark > 0 && i == r.n / 2 ? r.marked_gap : r.gap);
    vt_buf_str(&t->b, "],\"itl_ctx\":{\"num_running\":[");
    for (uint32_t i = 0; i < r.n; i++)
        vt_buf_printf(&t->b, "%s%u", i > 0 ? "," : "", r.concurrency);
    vt_buf_str(&t->b, "],\"prefill_tokens\":[");
    for (uint32_t i = 0; i < r.n; i++)
        vt_buf_printf(&t->b, "%s%u", i > 0 ? "," : "", i == r.n / 2 ? r.mark : 0);
    vt_buf_str(&t->b, "]}}\n");
}

/* ---- asking the model ------------------------------------------------- */

static double step_ms(const struct vt_latency *m, struct vt_item *item, uint32_t n,
                      uint32_t running, uint64_t step)
{
    struct vt_step_plan p = {.item = item, .n = n, .running = running};
    struct vt_step_shape s = {.plan = &p, .step = step, .max_num_seqs = 256, .seed = 7};
    struct vt_step_cost cost = {0};

    for (uint32_t i = 0; i < n; i++) {
        if (item[i].prefill) {
            p.n_prefills++;
            p.prefill_tokens += item[i].tokens;
        } else {
            p.n_decodes++;
            p.decode_tokens += item[i].tokens;
        }
    }
    m->ops->step(m, &s, &cost);
    return cost.gpu_us / 1e3;
}

static double first_ms(const struct vt_latency *m, uint32_t prompt, uint32_t cached)
{
    struct vt_step_plan p = {.running = 1};
    struct vt_step_shape s = {.plan = &p, .max_num_seqs = 256, .seed = 7};

    return m->ops->first_token_us(m, &s, 3, prompt, prompt - cached) / 1e3;
}

static double decode_ms(const struct vt_latency *m, uint32_t prompt, uint32_t running,
                        bool churn, uint64_t step)
{
    struct vt_item it = {
        .tag = 1, .tokens = 1, .computed = prompt, .prompt_tokens = prompt};

    it.churn = churn;
    return step_ms(m, &it, 1, running, step);
}

static void assert_near(double got, double want)
{
    if (fabs(got - want) > 1e-6 * (1 + fabs(want)))
        fail_msg("%.9g is not %.9g", got, want);
}

/* ---- first tokens ----------------------------------------------------- */

static double law(double u)
{
    return 20 + 0.02 * u + 1e-6 * u * u;
}

/* Clusters far apart, so that each window holds one and its tenth is on the curve. */
static void add_curve(struct made *t)
{
    for (uint32_t i = 0; i < 12; i++)
        for (int k = 0; k < 6; k++)
            add(t,
                (struct record){100 + 700 * i, 0, 1, law(100 + 700 * i), 10, 1, 0, 0});
}

static void a_curve_is_found_again(void **state)
{
    static const uint32_t u[] = {500, 2000, 5000, 7800, 11000};
    struct vt_latency *m;
    struct made t;

    (void)state;
    made_open(&t);
    add_curve(&t);
    for (uint32_t i = 0; i < 12; i++) /* busy ones must not bend it */
        for (int k = 0; k < 6; k++)
            add(&t, (struct record){100 + 700 * i, 0, 9, 900, 10, 1, 0, 0});
    must_open(&t, &m);
    for (size_t i = 0; i < VT_COUNT(u); i++) {
        assert_near(first_ms(m, u[i], 0), law(u[i]));
        assert_near(first_ms(m, u[i] + 640, 640), law(u[i])); /* cached ones are free */
    }
    assert_near(first_ms(m, 1, 0), law(100)); /* not below the fastest seen */
    vt_latency_close(m);
    made_close(&t);
}

/* Too few for a curve: samples of the emptiest engine, by prompt length. */
static void without_a_curve_samples_are_drawn(void **state)
{
    struct vt_latency *m;
    struct made t;

    (void)state;
    made_open(&t);
    add(&t, (struct record){100, 0, 1, 42, 10, 3, 0, 0});
    add(&t, (struct record){110, 0, 1, 42, 10, 3, 0, 0});
    add(&t, (struct record){105, 0, 9, 500, 10, 3, 0, 0});
    must_open(&t, &m);
    assert_near(first_ms(m, 90, 0), 42);
    assert_near(first_ms(m, 1100, 0), 42 * 8); /* borrowed: by tokens, at most 8 */
    assert_near(first_ms(m, 220, 0), 42 * 2);  /* 220 of 110 */
    assert_near(first_ms(m, 10, 0), 42 * 0.25);
    vt_latency_close(m);
    made_close(&t);
}

/* ---- chunks ----------------------------------------------------------- */

static const double c0 = 0.012, c1 = 2e-6;

static double chunk(double tokens, double depth)
{
    double end = depth + tokens;

    return c0 * tokens + c1 * (end * end - depth * depth) / 2;
}

static void add_chunks(struct made *t)
{
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t mark = 300 + 70 * i;

        add(t, (struct record){500, 0, 4, 30, 10, 11, mark, 10 + chunk(mark, 0)});
    }
}

static void chunks_cost_by_tokens_and_depth(void **state)
{
    struct vt_item two[] = {
        {.tag = 1, .tokens = 1000, .computed = 3000, .known = 4000, .prefill = true},
        {.tag = 2, .tokens = 500, .known = 500, .prefill = true},
    };
    struct vt_latency *m;
    struct made t;

    (void)state;
    made_open(&t);
    add_chunks(&t);
    must_open(&t, &m);
    assert_near(step_ms(m, two, 1, 1, 0), chunk(1000, 3000));
    assert_near(step_ms(m, two, 2, 2, 0), chunk(1000, 3000) + chunk(500, 0));
    vt_latency_close(m);
    made_close(&t);
}

/* Chunks hide under decoding, and decoding under chunks. */
static void a_step_lasts_as_its_longer_part(void **state)
{
    struct vt_item mixed[] = {
        {.tag = 1, .tokens = 1, .computed = 600, .prompt_tokens = 500},
        {.tag = 2, .tokens = 64, .known = 64, .prefill = true},
    };
    struct vt_latency *m;
    struct made t;

    (void)state;
    made_open(&t);
    add_chunks(&t);
    must_open(&t, &m);
    assert_near(step_ms(m, mixed, 2, 2, 5), 10);
    mixed[1].tokens = mixed[1].known = 4000;
    assert_near(step_ms(m, mixed, 2, 2, 5), chunk(4000, 0));
    vt_latency_close(m);
    made_close(&t);
}

static void a_full_step_costs_its_premium(void **state)
{
    double full = 1.3 * chunk(8192, 0);
    struct vt_item it = {.tag = 1, .tokens = 8192, .known = 20000, .prefill = true};
    struct vt_latency *m;
    struct made t;

    (void)state;
    made_open(&t);
    add_chunks(&t);
    for (int i = 0; i < 30; i++) { /* a gap as long as that, without a mark */
        add(&t, (struct record){500, 0, 4, 30, 10, 11, 1, 10 + full});
        t.b.len -= strlen("0,1,0,0,0,0,0]}}\n");
        vt_buf_str(&t.b, "0,0,0,0,0,0,0]}}\n");
    }
    must_open(&t, &m);
    assert_near(step_ms(m, &it, 1, 1, 0), full);
    it.tokens = 8191; /* one below the budget */
    assert_near(step_ms(m, &it, 1, 1, 0), chunk(8191, 0));
    it.computed = 30000; /* deep ones cost more than the premium */
    it.tokens = 8192;
    assert_near(step_ms(m, &it, 1, 1, 0), chunk(8192, 30000));
    vt_latency_close(m);
    made_close(&t);
}

static void what_the_steps_charge_is_not_charged_twice(void **state)
{
    struct vt_latency *m;
    struct made t;

    (void)state;
    made_open(&t);
    add_curve(&t);
    add_chunks(&t);
    must_open(&t, &m);
    assert_near(first_ms(m, 5000, 0), law(5000) - chunk(5000, 0));
    assert_near(first_ms(m, 5640, 640), law(5000) - chunk(5000, 640));
    assert_near(first_ms(m, 9000, 0), law(9000) - chunk(8192, 0) - chunk(808, 8192));
    assert_near(first_ms(m, 60000, 50000), 0); /* never negative */
    vt_latency_close(m);
    made_close(&t);
}

/* ---- donors ----------------------------------------------------------- */

static void donors_go_by_prompt_and_load(void **state)
{
    struct vt_item both[] = {
        {.tag = 1, .tokens = 1, .prompt_tokens = 100},
        {.tag = 2, .tokens = 1, .prompt_tokens = 3000},
    };
    struct vt_latency *m;
    struct made t;

    (void)state;
    made_open(&t);
    add(&t, (struct record){100, 0, 1, 30, 5, 9, 0, 0});
    add(&t, (struct record){100, 0, 40, 30, 8, 9, 0, 0});
    add(&t, (struct record){3000, 0, 1, 30, 6, 9, 0, 0});
    add(&t, (struct record){3000, 0, 40, 30, 12, 9, 0, 0});
    must_open(&t, &m);
    assert_near(decode_ms(m, 100, 1, false, 0), 5);
    assert_near(decode_ms(m, 100, 40, false, 0), 8);
    assert_near(decode_ms(m, 3000, 1, false, 0), 6);
    assert_near(decode_ms(m, 3000, 64, false, 0), 12);
    assert_near(decode_ms(m, 200, 1, false, 0), 5); /* the nearest cell */
    assert_near(decode_ms(m, 30000, 2, false, 0), 6);
    assert_near(step_ms(m, both, 2, 2, 0), 6); /* the longest prompt paces */
    vt_latency_close(m);
    made_close(&t);
}

static void a_request_keeps_its_donor(void **state)
{
    struct vt_latency *m;
    struct made t;
    double first;
    int slow = 0;

    (void)state;
    made_open(&t);
    add(&t, (struct record){100, 0, 1, 30, 5, 10, 0, 0});
    add(&t, (struct record){100, 0, 1, 30, 50, 30, 0, 0});
    must_open(&t, &m);
    first = decode_ms(m, 100, 1, false, 0);
    for (uint64_t step = 1; step < 50; step++)
        assert_near(decode_ms(m, 100, 1, false, step), first);
    for (uint64_t tag = 0; tag < 4000; tag++) { /* by weight: 30 of 40 gaps */
        struct vt_item it = {.tag = tag, .tokens = 1, .prompt_tokens = 100};

        slow += step_ms(m, &it, 1, 1, 0) > 20;
    }
    assert_in_range(slow, 2900, 3100);
    vt_latency_close(m);
    made_close(&t);
}

/* Under churn: more than 6 % of the gaps beside prompts of more than 4,096 tokens. */
static void churn_has_donors_of_its_own(void **state)
{
    struct vt_latency *m;
    struct made t;

    (void)state;
    made_open(&t);
    add(&t, (struct record){100, 0, 1, 30, 5, 11, 0, 0});
    must_open(&t, &m);
    assert_false(m->needs_churn);
    assert_true(m->serial);
    vt_latency_close(m);
    add(&t, (struct record){100, 0, 1, 30, 9, 11, 5000, 80});
    must_open(&t, &m);
    assert_true(m->needs_churn);
    assert_near(decode_ms(m, 100, 1, false, 0), 5);
    assert_near(decode_ms(m, 100, 1, true, 0), 9);
    vt_latency_close(m);
    made_close(&t);
}

/* Without itl_ctx all gaps are the donor's; a mean stands for them all. */
static void vllm_vcr_traces_without_context_do(void **state)
{
    struct vt_latency *m;
    struct made t;

    (void)state;
    made_open(&t);
    vt_buf_str(&t.b, "{\"prompt_tokens\":100,\"output_tokens\":4,\"ttft_ms\":30,"
                     "\"itl_ms\":[7,7,7]}\n"
                     "{\"prompt_tokens\":3000,\"output_tokens\":4,\"ttft_ms\":30,"
                     "\"itl_summary\":{\"mean_ms\":11,\"count\":3}}\n");
    must_open(&t, &m);
    assert_near(decode_ms(m, 100, 1, false, 3), 7);
    assert_near(decode_ms(m, 3000, 1, false, 3), 11);
    vt_latency_close(m);
    made_close(&t);
}

/* ---- the engine ------------------------------------------------------- */

static void steps_come_one_at_a_time(void **state)
{
    struct vt_segment content = {.content = 1, .tokens = 100};
    struct vt_request q = {.prompt_tokens = 100,
                           .max_tokens = 5,
                           .eos_at = VT_NO_STOP,
                           .stop_at = VT_NO_STOP,
                           .segment = &content,
                           .n_segments = 1};
    struct vt_engine_config c;
    struct vt_engine *e;
    struct vt_latency *m;
    struct vt_err err = {0};
    struct made t;
    vt_ns last = 0;
    int steps = 0;

    (void)state;
    made_open(&t);
    add(&t, (struct record){100, 0, 1, 30, 5, 9, 0, 0});
    must_open(&t, &m);
    vt_engine_config_init(&c);
    assert_true(c.async_scheduling);
    assert_int_equal(vt_engine_new(&e, &c, m, &err), VT_OK);
    assert_int_equal(vt_engine_add(e, 0, &q, &err), VT_OK);
    while (vt_engine_due(e) != VT_NEVER) {
        const struct vt_step *done;

        assert_int_equal(vt_engine_step(e, vt_engine_due(e), &done, &err), VT_OK);
        if (!done || done->plan->n == 0)
            continue;
        assert_true(done->sched_ns >= last);
        last = done->out_ns;
        steps++;
    }
    assert_int_equal(steps, 5);
    assert_int_equal(last, 4 * 5 * VT_MS + 1); /* the prompt costs nothing here */
    vt_engine_free(e);
    vt_latency_close(m);
    made_close(&t);
}

/* The gap between a lone request's two tokens. */
static vt_ns gap_of(struct vt_engine *e, vt_ns at, uint32_t prompt)
{
    struct vt_segment content = {.content = (uint64_t)at + 1, .tokens = prompt};
    struct vt_request q = {.tag = (uint64_t)at,
                           .prompt_tokens = prompt,
                           .max_tokens = 2,
                           .eos_at = VT_NO_STOP,
                           .stop_at = VT_NO_STOP,
                           .segment = &content,
                           .n_segments = 1};
    struct vt_err err = {0};
    vt_ns last = 0, gap = 0;

    assert_int_equal(vt_engine_add(e, at, &q, &err), VT_OK);
    while (vt_engine_due(e) != VT_NEVER) {
        const struct vt_step *done;

        assert_int_equal(vt_engine_step(e, vt_engine_due(e), &done, &err), VT_OK);
        for (uint32_t i = 0; done && i < done->n_rows; i++) {
            gap = done->row[i].at - last;
            last = done->row[i].at;
        }
    }
    return gap;
}

static void requests_after_a_long_prompt_decode_under_churn(void **state)
{
    struct vt_engine_config c;
    struct vt_engine *e;
    struct vt_latency *m;
    struct vt_err err = {0};
    struct made t;

    (void)state;
    made_open(&t);
    add(&t, (struct record){100, 0, 1, 30, 5, 11, 0, 0});
    add(&t, (struct record){5000, 0, 1, 30, 5, 11, 0, 0});
    add(&t, (struct record){100, 0, 1, 30, 9, 11, 5000, 80});
    must_open(&t, &m);
    vt_engine_config_init(&c);
    assert_int_equal(vt_engine_new(&e, &c, m, &err), VT_OK);
    assert_int_equal(gap_of(e, 0, 100), 5 * VT_MS);
    assert_int_equal(gap_of(e, VT_SEC, 5000), 5 * VT_MS); /* nobody came before it */
    assert_int_equal(gap_of(e, 3 * VT_SEC / 2, 100), 9 * VT_MS);
    assert_int_equal(gap_of(e, 3 * VT_SEC, 100), 5 * VT_MS);
    vt_engine_free(e);
    vt_latency_close(m);
    made_close(&t);
}

/* ---- refusals --------------------------------------------------------- */

static struct bad {
    const char *name, *text, *message;
} bads[] = {
    {"no file",
     "trace:", "model trace: field 'file' must be a path or a list of paths"},
    {"a number for a file", "trace:file=3",
     "model trace: field 'file' must be a path or a list of paths"},
    {"a parameter it does not know", "trace:fil=x",
     "model trace: unknown field 'fil' (did you mean 'file'?)"},
    {"a budget that is no number", "trace:file=x,max_num_batched_tokens=y",
     "model trace: field 'max_num_batched_tokens': 'y' is not a finite number"},
};

static void is_refused(void **state)
{
    const struct bad *b = *state;
    struct vt_latency *m;
    struct vt_err err = {0};

    assert_int_equal(vt_model_open_inline(&m, b->text, &err), VT_EINPUT);
    assert_string_equal(err.msg, b->message);
    assert_null(m);
}

static void a_trace_without_gaps_is_refused(void **state)
{
    struct vt_latency *m;
    struct vt_err err = {0};
    struct made t;

    (void)state;
    made_open(&t);
    vt_buf_str(&t.b, "{\"prompt_tokens\":1,\"output_tokens\":1,\"ttft_ms\":30}\n");
    assert_int_equal(made_model(&t, &m, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "no gaps between tokens to learn from"));
    vt_buf_clear(&t.b);
    vt_buf_str(&t.b, "{\"prompt_tokens\":1,\"output_tokens\":1}\n");
    assert_int_equal(made_model(&t, &m, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "no measured times"));
    made_close(&t);
}

/* Real captures, several at once; a model of them runs and stays within what it saw. */
static void captures_can_be_learnt_from_together(void **state)
{
    static const char text[] =
        "trace:file=" VT_TEST_DIR "/sim/data/closed-c16.trace.jsonl.gz," VT_TEST_DIR
        "/sim/data/poisson-r18.trace.jsonl.gz," VT_TEST_DIR
        "/sim/data/K-closed-c64.trace.jsonl.gz";
    struct vt_latency *m;
    struct vt_err err = {0};

    (void)state;
    if (vt_model_open_inline(&m, text, &err) != VT_OK)
        fail_msg("%s", err.msg);
    for (uint32_t running = 1; running < 300; running += 7)
        for (uint32_t prompt = 1; prompt < 40000; prompt = prompt * 3 + 1) {
            double ms = decode_ms(m, prompt, running, running % 2 == 0, prompt);

            assert_true(ms > 1 && ms < 500);
            assert_true(first_ms(m, prompt, 0) >= 0);
        }
    vt_latency_close(m);
}

int main(void)
{
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(a_curve_is_found_again),
        cmocka_unit_test(without_a_curve_samples_are_drawn),
        cmocka_unit_test(chunks_cost_by_tokens_and_depth),
        cmocka_unit_test(a_step_lasts_as_its_longer_part),
        cmocka_unit_test(a_full_step_costs_its_premium),
        cmocka_unit_test(what_the_steps_charge_is_not_charged_twice),
        cmocka_unit_test(donors_go_by_prompt_and_load),
        cmocka_unit_test(a_request_keeps_its_donor),
        cmocka_unit_test(churn_has_donors_of_its_own),
        cmocka_unit_test(vllm_vcr_traces_without_context_do),
        cmocka_unit_test(steps_come_one_at_a_time),
        cmocka_unit_test(requests_after_a_long_prompt_decode_under_churn),
        cmocka_unit_test(a_trace_without_gaps_is_refused),
        cmocka_unit_test(captures_can_be_learnt_from_together),
    };
    struct CMUnitTest tests[VT_COUNT(plain) + VT_COUNT(bads)];

    memcpy(tests, plain, sizeof(plain));
    for (size_t i = 0; i < VT_COUNT(bads); i++)
        tests[VT_COUNT(plain) + i] = (struct CMUnitTest){
            .name = bads[i].name,
            .test_func = is_refused,
            .initial_state = &bads[i],
        };
    return cmocka_run_group_tests_name("trace model", tests, NULL, NULL);
}
