/* Engines of a fleet side by side on threads: what one event after the other gives, to
 * the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/model.h"
#include "report/report.h"
#include "sim/sim.h"

#define LINEAR "linear:base=3000,prefill_token=10,decode=50"
#define NOISY  "blackbox:alpha=4000,0,0,beta=5000,20,100"

#define SHARED                                               \
    "arrival: {process: gamma, rate: 60, burstiness: 0.3}\n" \
    "prompt: {dist: uniform, min: 10, max: 300}\n"           \
    "output: {dist: uniform, min: 1, max: 60}\n"             \
    "requests: 700\n"
#define SINGLES SHARED "prefix: {groups: 6, share: 0.7, tokens: 400}\n"
#define AT_ONCE                                              \
    "arrival: {process: burst, size: 40, interval_s: 0.5}\n" \
    "prompt: 64\noutput: 10\nrequests: 400\n"
#define SESSIONS(think) \
    SHARED              \
    "sessions: {turns: 4, starters: 3, starter: 200, think_time_s: " think "}\n"

enum { ENGINES = 7 };

static const struct {
    const char *name, *workload, *routing;
    vt_ns stale_ms;
    uint32_t blocks;
    bool blis;
} cases[] = {
    {"turns", SINGLES, "round-robin", 50, 400},
    {"lots", SINGLES, "random", 50, 400},
    {"crowds", AT_ONCE, "round-robin", 50, 400},
    {"by its own memory", SINGLES, "prefix-affinity", 50, 200},
    {"by queues", SINGLES, "queue-depth", 50, 400},
    {"by late caches", SINGLES, "precise-prefix-cache", 20, 200},
    {"weighted", SINGLES, "weighted", 50, 120},
    {"a late look", SINGLES, "weighted", 700, 120},
    {"never late", SINGLES, "weighted", 0, 400},
    {"exact counts", SINGLES, "least-loaded", 50, 400},
    {"sessions", SESSIONS("{dist: uniform, min: 0.1, max: 3}"), "round-robin", 50, 400},
    {"sessions, weighted", SESSIONS("{dist: uniform, min: 0.02, max: 1}"), "weighted",
     50, 200},
    {"at home", SESSIONS("0.5"), "session-affinity:2,queue-depth:1", 50, 400},
    {"without a thought", SESSIONS("0"), "round-robin", 50, 400},
    {"at home, or where the prompt is", SESSIONS("{dist: uniform, min: 0.05, max: 1}"),
     "session-affinity:1,precise-prefix-cache:2,kv-utilization:1", 30, 150},
    {"sent there, if not busy", SINGLES, "prefix-affinity:2,queue-depth:1", 50, 200},
    {"new ones in turn", SINGLES, "precise-prefix-cache:2,no-hit-lru:1", 50, 150},
    {"blis", SINGLES, "round-robin", 50, 60, true},
    {"blis, weighted", SINGLES, "weighted", 50, 60, true},
};

static int see_request(void *user, const struct vt_served *s, struct vt_err *err)
{
    (void)err;
    vt_trace_write(user, s);
    return VT_OK;
}

static void see_engines(struct vt_buf *b, const struct vt_replica_summary *r)
{
    for (uint32_t i = 0; i < ENGINES; i++)
        vt_buf_printf(b, "%llu %llu %llu %.17g %.17g %.17g %lld\n",
                      (unsigned long long)r[i].requests, (unsigned long long)r[i].steps,
                      (unsigned long long)r[i].preemptions, r[i].prefix_hit_rate,
                      r[i].kv_usage_peak, r[i].busy_s, (long long)r[i].to_ns);
}

/* All that a run tells, as text. */
static struct vt_buf run_case(size_t k, uint32_t threads)
{
    struct vt_buf b = {0};
    struct vt_replica_summary replica[ENGINES];
    struct vt_fleet fleet = {.instances = ENGINES,
                             .routing = cases[k].routing,
                             .staleness_ns = cases[k].stale_ms * VT_MS,
                             .seed = 5,
                             .threads = threads};
    struct vt_sim_sink sink = {.user = &b, .request = see_request};
    struct vt_sim_spec spec = {.sink = &sink, .fleet = &fleet, .replica = replica};
    struct vt_workload w;
    struct vt_latency *model = NULL;
    struct vt_summary sum;
    struct vt_jw j;
    struct vt_err err = {0};

    if (vt_workload_generate_text(&w, "test", cases[k].workload,
                                  strlen(cases[k].workload), -1, &err) != VT_OK ||
        vt_model_open_inline(&model, cases[k].blis ? NOISY : LINEAR, &err) != VT_OK)
        fail_msg("%s", err.msg);
    vt_engine_config_init(&spec.engine);
    spec.engine.num_gpu_blocks = cases[k].blocks;
    spec.engine.max_model_len = 1500;
    spec.engine.compat = cases[k].blis ? VT_COMPAT_BLIS : VT_COMPAT_VLLM;
    spec.engine.max_num_batched_tokens = 512;
    spec.engine.max_num_seqs = 32;
    spec.workload = &w;
    spec.model = model;
    spec.arrivals = w.arrivals;
    if (vt_sim_run(&spec, &sum, &err) != VT_OK)
        fail_msg("%s: %s", cases[k].name, err.msg);
    see_engines(&b, replica);
    vt_jw_init(&j, &b, NULL);
    vt_jw_map(&j, NULL);
    vt_summary_members(&j, &sum);
    vt_jw_end(&j);
    assert_false(b.failed);
    vt_latency_close(model);
    vt_workload_free(&w);
    return b;
}

static void test_threads_change_nothing(void **state)
{
    static const uint32_t threads[] = {1, 2, 8};

    (void)state;
    for (size_t k = 0; k < VT_COUNT(cases); k++) {
        struct vt_buf one = run_case(k, 0);

        for (size_t i = 0; i < VT_COUNT(threads); i++) {
            struct vt_buf many = run_case(k, threads[i]);

            if (one.len != many.len || memcmp(one.data, many.data, one.len) != 0)
                fail_msg("%s: %u threads differ from none", cases[k].name, threads[i]);
            vt_buf_free(&many);
        }
        vt_buf_free(&one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_change_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
