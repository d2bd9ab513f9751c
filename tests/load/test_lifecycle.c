/* inference-perf's reports: what its readers look for is there, and single requests
 * read back as they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <unistd.h>

#include "make_records.h"
#include "trace/trace.h"

struct run {
    struct vt_load_records a, b;
    struct vt_load_origin slow, fast;
    struct vt_load_stage stage[2];
    char dir[64];
};

static const char *const files[] = {
    "summary_lifecycle_metrics.json", "stage_0_lifecycle_metrics.json",
    "stage_1_lifecycle_metrics.json", "per_request_lifecycle_metrics.json"};

/* Two stages: 2 requests, then 3 of which one fails; 5 tokens at 20 ms each. */
static void run_open(struct run *t)
{
    struct vt_err err = {0};

    *t = (struct run){.dir = "/tmp/vtwin-lifecycle-XXXXXX"};
    assert_non_null(mkdtemp(t->dir));
    for (uint32_t i = 0; i < 5; i++) {
        const struct made m = {.session = i % 2,
                               .begun = 100.0 * (i % 2 + 1),
                               .ttft = 49,
                               .gap = 20,
                               .events = i == 4 ? 0 : 5,
                               .prompt = 10 + i,
                               .output = 5,
                               .cached = i,
                               .fails = i == 4};

        add_made(i < 2 ? &t->a : &t->b, &m);
    }
    t->a.start_unix_s = 1000;
    t->b.start_unix_s = 1060;
    t->slow = (struct vt_load_origin){.rate = 10, .model = "m"};
    t->fast = (struct vt_load_origin){.rate = INFINITY, .max_concurrency = 7};
    t->stage[0] = (struct vt_load_stage){&t->a, &t->slow};
    t->stage[1] = (struct vt_load_stage){&t->b, &t->fast};
    if (vt_load_write_lifecycle(t->stage, 2, t->dir, &err) != VT_OK)
        fail_msg("%s", err.msg);
}

static void run_close(struct run *t)
{
    char path[160];

    for (size_t i = 0; i < VT_COUNT(files); i++) {
        snprintf(path, sizeof(path), "%s/%s", t->dir, files[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(t->dir), 0); /* and there are no others */
    vt_load_records_free(&t->a);
    vt_load_records_free(&t->b);
}

/* A number by its way through the objects: "successes.latency.request_latency.mean". */
static double at(const struct run *t, const char *file, const char *way)
{
    struct vt_arena arena = {0};
    struct vt_err err = {0};
    const struct vt_node *v;
    char path[160], key[64];
    double out;

    snprintf(path, sizeof(path), "%s/%s", t->dir, file);
    assert_int_equal(vt_tree_load(&arena, path, &v, &err), VT_OK);
    while (*way) {
        size_t n = strcspn(way, ".");

        snprintf(key, sizeof(key), "%.*s", (int)n, way);
        v = vt_get(v, key);
        if (!v)
            fail_msg("no '%s' in %s", key, file);
        way += n + (way[n] == '.');
    }
    out = v->kind == VT_REAL  ? v->u.real
          : v->kind == VT_INT ? (double)v->u.integer
                              : NAN;
    vt_arena_free(&arena);
    return out;
}

static struct number {
    const char *file, *way;
    double want;
} numbers[] = {
    {"summary_lifecycle_metrics.json", "load_summary.count", 5},
    {"summary_lifecycle_metrics.json", "load_summary.schedule_delay.mean", 0},
    {"summary_lifecycle_metrics.json", "successes.count", 4},
    {"summary_lifecycle_metrics.json", "successes.latency.request_latency.mean", 0.130},
    {"summary_lifecycle_metrics.json", "successes.latency.request_latency.p90", 0.130},
    {"summary_lifecycle_metrics.json", "successes.latency.time_to_first_token.median",
     0.050},
    {"summary_lifecycle_metrics.json", "successes.latency.time_per_output_token.p99",
     0.020},
    {"summary_lifecycle_metrics.json", "successes.latency.inter_token_latency.min",
     0.020},
    {"summary_lifecycle_metrics.json",
     "successes.latency.normalized_time_per_output_token.max", 0.026},
    {"summary_lifecycle_metrics.json", "successes.prompt_len.mean", 11.5},
    {"summary_lifecycle_metrics.json", "successes.output_len.p95", 5},
    {"summary_lifecycle_metrics.json", "successes.prompt_tokens.cached", 6},
    {"summary_lifecycle_metrics.json", "successes.output_tokens.total", 20},
    {"summary_lifecycle_metrics.json", "failures.count", 1},
    {"summary_lifecycle_metrics.json", "failures.by_label.HTTP Error 503.count", 1},
    /* From the first one's start, 0.1 s, to the second stage's end, 60.33 s. */
    {"summary_lifecycle_metrics.json", "benchmark_time_seconds", 60.230},
    {"stage_0_lifecycle_metrics.json", "load_summary.requested_rate", 10},
    {"stage_0_lifecycle_metrics.json", "load_summary.send_duration", 0.1},
    {"stage_0_lifecycle_metrics.json", "load_summary.achieved_rate", 20},
    {"stage_0_lifecycle_metrics.json", "successes.throughput.requests_per_sec",
     2 / 0.230},
    {"stage_0_lifecycle_metrics.json", "successes.throughput.output_tokens_per_sec",
     10 / 0.230},
    {"stage_0_lifecycle_metrics.json", "successes.throughput.total_tokens_per_sec",
     31 / 0.230},
    {"stage_1_lifecycle_metrics.json", "load_summary.concurrency", 7},
    {"stage_1_lifecycle_metrics.json", "load_summary.count", 3},
    {"stage_1_lifecycle_metrics.json", "successes.count", 2},
};

static void numbers_are_where_readers_look(void **state)
{
    struct run t;

    (void)state;
    run_open(&t);
    for (size_t i = 0; i < VT_COUNT(numbers); i++) {
        double got = at(&t, numbers[i].file, numbers[i].way);

        if (!(fabs(got - numbers[i].want) < 1e-6))
            fail_msg("%s: %s is %.9g, not %.9g", numbers[i].file, numbers[i].way, got,
                     numbers[i].want);
    }
    assert_true(
        isnan(at(&t, "stage_0_lifecycle_metrics.json", "failures.request_latency")));
    run_close(&t);
}

static void single_requests_read_back(void **state)
{
    char in[160], out[160];
    const struct vt_convert c = {.in = in, .out = out};
    struct vt_converted done;
    struct vt_records got;
    struct vt_err err = {0};
    struct run t;

    (void)state;
    run_open(&t);
    snprintf(in, sizeof(in), "%s/%s", t.dir, files[3]);
    snprintf(out, sizeof(out), "%s.jsonl", t.dir);
    if (vt_convert(&c, &done, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_string_equal(done.from, "inference-perf");
    assert_int_equal(done.requests, 4);
    assert_int_equal(done.skipped, 1);
    assert_int_equal(vt_records_load(&got, out, &err), VT_OK);
    assert_int_equal(got.rec[1].arrival_ns, 100 * VT_MS); /* from the first one on */
    assert_int_equal(got.rec[3].arrival_ns - got.rec[1].arrival_ns, 60 * VT_SEC);
    for (size_t i = 0; i < got.n; i++) {
        assert_int_equal(got.rec[i].n_gaps, 4);
        assert_int_equal(got.rec[i].output_tokens, 5);
        assert_int_equal(got.rec[i].prompt_tokens, 10 + i);
        assert_in_range(got.rec[i].ttft_ns, 50 * VT_MS - 100, 50 * VT_MS + 100);
        assert_in_range(got.rec[i].gap[3], 20 * VT_MS - 100, 20 * VT_MS + 100);
    }
    vt_records_free(&got);
    unlink(out);
    run_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_where_readers_look),
        cmocka_unit_test(single_requests_read_back),
    };

    return cmocka_run_group_tests_name("lifecycle", tests, NULL, NULL);
}
