/* BLIS's own results, to the microsecond, in compat mode. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "model/model.h"
#include "report/report.h"
#include "sim/sim.h"

#define CASES VT_TEST_DIR "/cases/blis/"

static struct row {
    const char *name;
    const char *model; /* inline; "KIND:" alone: of the case's config.json, hw.json */
    uint32_t tp;       /* then */
    uint32_t blocks, seqs, tokens, max_len;
    double hit_rate;    /* 0: not checked */
    uint32_t instances; /* round robin; 0: one engine without a router */
} rows[] = {
    {"c1-blackbox-steady", "blackbox:alpha=1000,1,500,beta=5000,10,20", 1, 10000, 256,
     2048, 8192, 0, 0},
    {"c2-blackbox-burst-chunked", "blackbox:alpha=1000,1,500,beta=5000,10,20", 1, 10000,
     16, 2048, 8192, 0, 0},
    {"c2-burst-4-instances", "blackbox:alpha=1000,1,500,beta=5000,10,20", 1, 10000, 16,
     2048, 8192, 0, 4},
    {"c3-blackbox-prefix-groups", "blackbox:alpha=500,0,100,beta=4000,20,15", 1, 600,
     256, 2048, 8192, 0, 0},
    {"c4-linear-preemption",
     "linear:queue=2000,post=300,out=50,base=4000,request=25,prefill_token=8,"
     "context_token=0.02,decode=0.02",
     1, 300, 64, 1024, 4096, 0.18871725990597715, 0},
    {"c6-roofline-llama8b", "roofline:", 1, 26312, 256, 2048, 8192, 0, 0},
    {"c8-trainedphysics-mixtral-tp2", "trained-physics:", 2, 48956, 128, 2048, 8192, 0,
     0},
};

/* Two more runs of BLIS over the same requests, of which only these are kept: ms. */
static struct crossed_row {
    struct row row;
    double duration_s, ttft_mean, e2e_mean, itl_mean, itl_p99;
} crossed[] = {
    {{"c6-roofline-llama8b", "trained-physics:", 1, 26312, 256, 2048, 8192, 0, 0},
     23.036567,
     35.176,
     1218.600,
     9.061,
     13.962},
    {{"c8-trainedphysics-mixtral-tp2", "roofline:", 2, 48956, 128, 2048, 8192, 0, 0},
     16.008802,
     34.430,
     1060.737,
     10.689,
     42.106},
};

struct check {
    const struct vt_node *expected; /* list in order of request_id */
    vt_ns post_ns;
    uint32_t n;
};

static int check_request(void *user, const struct vt_served *s, struct vt_err *err)
{
    struct check *c = user;
    int64_t id, want = 0;
    vt_ns e2e = s->ttft_ns + c->post_ns;
    const struct vt_node *e;

    assert_true(vt_parse_i64(s->req->id, strlen(s->req->id), &id));
    e = &c->expected->u.item[id];
    for (uint32_t i = 0; i < s->n_gaps; i++)
        e2e += s->gap[i];
    assert_int_equal(vt_get_i64(e, "ttft_us", VT_REQUIRED, 0, INT64_MAX, &want, err),
                     VT_OK);
    assert_int_equal(s->ttft_ns, want * VT_US);
    assert_int_equal(vt_get_i64(e, "e2e_us", VT_REQUIRED, 0, INT64_MAX, &want, err),
                     VT_OK);
    assert_int_equal(e2e, want * VT_US);
    c->n++;
    return VT_OK;
}

static void near(const char *what, double got, double want, double tolerance)
{
    if (fabs(got - want) > tolerance)
        fail_msg("%s: got %.9f, want %.9f", what, got, want);
}

static const char *case_file(const struct row *r, const char *file, char path[512])
{
    (void)snprintf(path, 512, CASES "%s/%s", r->name, file);
    return path;
}

static struct vt_latency *open_model(const struct row *r)
{
    char spec[2048], config[512], hw[512];
    struct vt_latency *m = NULL;
    struct vt_err err = {0};

    (void)snprintf(spec, sizeof(spec), "%s", r->model);
    if (spec[strlen(spec) - 1] == ':')
        (void)snprintf(spec, sizeof(spec), "%shf_config=%s,gpu=H100,hw=%s,tp=%u",
                       r->model, case_file(r, "config.json", config),
                       case_file(r, "hw.json", hw), r->tp);
    if (vt_model_open_inline(&m, spec, &err) != VT_OK)
        fail_msg("%s", err.msg);
    return m;
}

/* Runs the case under BLIS's rules. */
static void run(const struct row *r, const struct vt_sim_sink *sink,
                const struct vt_latency *model, struct vt_summary *sum)
{
    struct vt_workload w = {0};
    struct vt_sim_spec spec = {.workload = &w, .sink = sink, .model = model};
    const struct vt_fleet fleet = {.instances = r->instances, .routing = "round-robin"};
    struct vt_err err = {0};
    char path[512];

    spec.fleet = r->instances > 0 ? &fleet : NULL;
    if (vt_requests_load(&w, case_file(r, "requests.csv", path), &err) != VT_OK)
        fail_msg("%s", err.msg);
    vt_engine_config_init(&spec.engine);
    spec.engine.num_gpu_blocks = r->blocks;
    spec.engine.max_num_seqs = r->seqs;
    spec.engine.max_num_batched_tokens = r->tokens;
    spec.engine.max_model_len = r->max_len;
    spec.engine.compat = VT_COMPAT_BLIS;
    assert_int_equal(vt_sim_run(&spec, sum, &err), VT_OK);
    vt_workload_free(&w);
}

/* What BLIS printed: a title, a JSON object, maybe more. */
static void check_printed(const struct row *r, const struct vt_summary *s)
{
    const struct {
        const char *key;
        double got;
    } row[] = {
        {"completed_requests", (double)s->requests},
        {"preemption_count", (double)s->preemptions},
        {"vllm_estimated_duration_s", s->duration_s},
        {"responses_per_sec", s->req_per_s},
        {"e2e_mean_ms", s->e2e.mean},
        {"e2e_p90_ms", s->e2e.p90},
        {"e2e_p95_ms", s->e2e.p95},
        {"e2e_p99_ms", s->e2e.p99},
        {"ttft_mean_ms", s->ttft.mean},
        {"ttft_p90_ms", s->ttft.p90},
        {"ttft_p95_ms", s->ttft.p95},
        {"ttft_p99_ms", s->ttft.p99},
        {"itl_mean_ms", s->itl.mean},
        {"itl_p90_ms", s->itl.p90},
        {"itl_p95_ms", s->itl.p95},
        {"itl_p99_ms", s->itl.p99},
    };
    struct vt_arena arena = {0};
    struct vt_buf b = {0};
    const struct vt_node *printed = NULL;
    struct vt_err err = {0};
    char path[512];
    const char *from, *to;

    assert_int_equal(
        vt_read_file(case_file(r, "expected.stdout.txt", path), 1 << 20, &b, &err),
        VT_OK);
    assert_non_null(from = strchr(b.data, '\n'));
    assert_non_null(to = strstr(from, "\n}"));
    if (vt_json_parse(&arena, from, (size_t)(to + 2 - from), 1, &printed, &err) !=
        VT_OK)
        fail_msg("%s", err.msg);
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        double want = 0;

        assert_int_equal(
            vt_get_f64(printed, row[i].key, VT_REQUIRED, 0, 1e12, &want, &err), VT_OK);
        near(row[i].key, row[i].got, want, 1e-6);
    }
    vt_arena_free(&arena);
    vt_buf_free(&b);
}

static void case_agrees(void **state)
{
    const struct row *r = *state;
    struct vt_latency *model = open_model(r);
    struct vt_arena arena = {0};
    struct vt_err err = {0};
    struct vt_summary sum;
    struct check check = {.post_ns = vt_ns_from_us(model->post_us)};
    struct vt_sim_sink sink = {.user = &check, .request = check_request};
    char path[512];

    assert_int_equal(vt_tree_load(&arena, case_file(r, "expected.requests.json", path),
                                  &check.expected, &err),
                     VT_OK);
    run(r, &sink, model, &sum);
    assert_int_equal(check.n, check.expected->n);
    check_printed(r, &sum);
    if (r->hit_rate > 0)
        near("hit rate", sum.prefix_hit_rate, r->hit_rate, 1e-12);
    vt_latency_close(model);
    vt_arena_free(&arena);
}

static void crossed_case_agrees(void **state)
{
    const struct crossed_row *r = *state;
    struct vt_latency *model = open_model(&r->row);
    struct vt_summary sum;

    run(&r->row, NULL, model, &sum);
    near("duration", sum.duration_s, r->duration_s, 1e-9);
    near("ttft", sum.ttft.mean, r->ttft_mean, 5.1e-4);
    near("e2e", sum.e2e.mean, r->e2e_mean, 5.1e-4);
    near("itl", sum.itl.mean, r->itl_mean, 5.1e-4);
    near("itl p99", sum.itl.p99, r->itl_p99, 5.1e-4);
    vt_latency_close(model);
}

static void blocks_are_those_that_blis_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        const struct row *r = &rows[i];
        struct vt_kv_capacity room;
        struct vt_kv_query q;
        struct vt_arch arch;
        struct vt_gpu gpu;
        struct vt_err err = {0};
        char path[512];

        if (r->model[strlen(r->model) - 1] != ':')
            continue;
        vt_kv_query_init(&q);
        assert_int_equal(vt_arch_load(&arch, case_file(r, "config.json", path), &err),
                         VT_OK);
        assert_int_equal(vt_gpu_find(&gpu, "h100", case_file(r, "hw.json", path), &err),
                         VT_OK);
        q.kv.arch = &arch;
        q.gpu = &gpu;
        q.kv.tp = r->tp;
        q.compat = VT_COMPAT_BLIS;
        assert_int_equal(vt_kv_capacity(&q, &room, &err), VT_OK);
        assert_int_equal(room.engine.num_gpu_blocks, r->blocks);
    }
}

int main(void)
{
    enum { N = VT_COUNT(rows), X = VT_COUNT(crossed) };
    struct CMUnitTest tests[N + X + 1] = {
        cmocka_unit_test(blocks_are_those_that_blis_counts),
    };

    for (size_t i = 0; i < N; i++)
        tests[1 + i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = case_agrees, .initial_state = &rows[i]};
    for (size_t i = 0; i < X; i++)
        tests[1 + N + i] = (struct CMUnitTest){.name = crossed[i].row.model,
                                               .test_func = crossed_case_agrees,
                                               .initial_state = &crossed[i]};
    return cmocka_run_group_tests_name("blis", tests, NULL, NULL);
}
