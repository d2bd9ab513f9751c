/* /metrics: the families, labels and buckets of real vLLM, and what the numbers count.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http/metrics/metrics.h"
#include "http/metrics/table.h"

static struct vt_serve_config config_of(uint32_t engines)
{
    static const char *const name[] = {"tiny"};
    struct vt_serve_config c = {
        .name = name, .n_engines = engines, .gpu_memory_utilization = 0.92};

    vt_engine_config_init(&c.engine);
    c.engine.max_model_len = 2048;
    c.engine.block_size = 16;
    c.engine.num_gpu_blocks = 1024;
    return c;
}

static struct metrics *open_with(const struct vt_serve_config *c, enum api_line line)
{
    struct metrics *m;
    struct vt_err err;

    if (metrics_open(&m, c, line, &err) != VT_OK)
        fail_msg("%s", err.msg);
    return m;
}

static struct metrics *open_metrics(enum api_line line, uint32_t engines,
                                    uint32_t drafts, uint32_t loras)
{
    struct vt_serve_config c = config_of(engines);

    c.max_loras = loras;
    c.engine.num_spec_tokens = drafts;
    return open_with(&c, line);
}

static struct vt_buf text_of(struct metrics *m)
{
    struct vt_buf b = {0};

    metrics_write(m, &b, 0);
    assert_false(b.failed);
    return b;
}

/* The value of a sample, as text, or NULL. */
static const char *value_of(const struct vt_buf *b, const char *sample)
{
    static char value[64];
    size_t len = strlen(sample);

    for (const char *p = b->data; (p = strstr(p, sample)); p += len)
        if (p[len] == ' ' && (p == b->data || p[-1] == '\n')) {
            snprintf(value, sizeof(value), "%.*s", (int)strcspn(p + len + 1, "\n"),
                     p + len + 1);
            return value;
        }
    return NULL;
}

static void assert_sample(const struct vt_buf *b, const char *sample, const char *want)
{
    const char *got = value_of(b, sample);

    if (!got || strcmp(got, want) != 0)
        fail_msg("%s is %s, not %s", sample, got ? got : "missing", want);
}

/* ---- against the recordings ---------------------------------------------- */

/* Samples without values, TYPE lines whole; the values of cache_config_info's labels
 * are the engine's own and taken out. */
static void reduce(struct vt_buf *out, const char *line, size_t len)
{
    bool type = len > 7 && memcmp(line, "# TYPE ", 7) == 0;
    bool info = !type && len > 23 && memcmp(line, "vllm:cache_config_info{", 23) == 0;
    bool quoted = false;

    if (strncmp(line + (type ? 7 : 0), "vllm:", 5) != 0 &&
        strncmp(line + (type ? 7 : 0), "http_", 5) != 0)
        return;
    for (size_t i = 0; i < len; i++) {
        if (!type && !quoted && line[i] == ' ')
            break;
        if (line[i] == '"')
            quoted = !quoted;
        if (!info || !quoted)
            vt_buf_char(out, line[i]);
    }
    vt_buf_char(out, '\n');
}

static void reduce_all(struct vt_buf *out, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");

        reduce(out, text, len);
        text += len + (text[len] == '\n');
    }
}

/* Exchanges as the recording counts them. */
static void replay_http(struct metrics *m, const char *text)
{
    static const char head[] = "http_requests_total{handler=\"";
    char handler[128], method[16], digit;

    for (const char *p = text; (p = strstr(p, head)); p++) {
        int n = sscanf(p + sizeof(head) - 1,
                       "%127[^\"]\",method=\"%15[^\"]\",status=\"%cxx\"}", handler,
                       method, &digit);

        assert_int_equal(n, 3);
        metrics_http(m, handler, method, (digit - '0') * 100, 0.01, 10, 20);
    }
}

static void assert_same_lines(const char *got, const char *want)
{
    while (*got || *want) {
        size_t n = strcspn(got, "\n"), w = strcspn(want, "\n");

        if (n != w || memcmp(got, want, n) != 0)
            fail_msg("ours: %.*s\nrecorded: %.*s", (int)n, got, (int)w, want);
        got += n + (got[n] == '\n');
        want += w + (want[w] == '\n');
    }
}

/* With the defaults they are those of a real server. */
static void the_caches_groups_are_told(void **state)
{
    static const struct {
        uint32_t n;
        struct vt_kv_group group[2];
        uint32_t retention;
        const char *want[6];
    } rows[] = {
        {0,
         {{0}},
         VT_RETENTION_DEFAULT,
         {",block_size=\"16\"", "effective_attention_block_size=\"16\"",
          "mamba_block_size=\"None\"", "kv_cache_size_tokens=\"16384\"",
          "sliding_window=\"None\"", "prefix_cache_retention_interval=\"0\""}},
        {2,
         {{VT_ATTENTION_FULL, 32, 0, 1, 64}, {VT_ATTENTION_SLIDING, 16, 64, 1, 64}},
         64,
         {",block_size=\"16\"", "effective_attention_block_size=\"32\"",
          "kv_cache_size_tokens=\"10922\"",
          "kv_cache_max_concurrency=\"5.333333333333333\"", "sliding_window=\"None\"",
          "prefix_cache_retention_interval=\"64\""}},
        {1,
         {{VT_ATTENTION_SLIDING, 16, 64, 1, 64}},
         VT_RETENTION_DENSE,
         {",block_size=\"16\"", "effective_attention_block_size=\"None\"",
          "sliding_window=\"64\"", "kv_cache_size_tokens=\"16384\"",
          "mamba_cache_mode=\"align\"", "prefix_cache_retention_interval=\"None\""}},
        {2,
         {{VT_ATTENTION_FULL, 16, 0, 1, 64}, {VT_ATTENTION_MAMBA, 16, 0, 1, 64}},
         VT_RETENTION_DEFAULT,
         {",block_size=\"16\"", "effective_attention_block_size=\"16\"",
          "mamba_block_size=\"16\"", "mamba_cache_mode=\"align\"",
          "kv_cache_size_tokens=\"16131\"", "num_gpu_blocks=\"1024\""}},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_serve_config c = config_of(1);
        struct metrics *m;
        struct vt_buf b;

        c.engine.n_kv_groups = rows[i].n;
        memcpy(c.engine.kv_group, rows[i].group, sizeof(rows[i].group));
        c.engine.prefix_cache_retention_interval = rows[i].retention;
        c.engine.mamba_cache_mode = rows[i].n > 0 ? VT_MAMBA_ALIGN : VT_MAMBA_NONE;
        m = open_with(&c, API_LINE_032);
        b = text_of(m);
        for (size_t k = 0; k < VT_COUNT(rows[i].want); k++)
            if (!strstr(b.data, rows[i].want[k]))
                fail_msg("no %s in %s", rows[i].want[k],
                         strstr(b.data, "vllm:cache_config_info{"));
        vt_buf_free(&b);
        metrics_close(m);
    }
}

static void every_family_label_and_bucket_is_the_recorded_one(void **state)
{
    static const char *const version[] = {"0.26.0", "0.32.0"};

    (void)state;
    for (int line = 0; line < 2; line++) {
        struct metrics *m = open_metrics((enum api_line)line, 1, 0, 0);
        struct vt_buf recorded = {0}, got = {0}, want = {0}, text;
        char path[512];
        struct vt_err err;

        snprintf(path, sizeof(path), "%s/cases/http/metrics-%s.txt.gz", VT_TEST_DIR,
                 version[line]);
        if (vt_read_file(path, 1 << 20, &recorded, &err) != VT_OK)
            fail_msg("%s", err.msg);
        replay_http(m, recorded.data);
        text = text_of(m);
        reduce_all(&got, text.data);
        reduce_all(&want, recorded.data);
        assert_same_lines(got.data, want.data);
        metrics_close(m);
        vt_buf_free(&recorded);
        vt_buf_free(&got);
        vt_buf_free(&want);
        vt_buf_free(&text);
    }
}

/* ---- numbers --------------------------------------------------------- */

static void numbers_look_as_prometheus_client_writes_them(void **state)
{
    static const struct {
        double v;
        const char *prometheus, *python;
    } row[] = {
        {0, "0.0", "0.0"},
        {1, "1.0", "1.0"},
        {999999, "999999.0", "999999.0"},
        {1e6, "1e+06", "1000000.0"},
        {1048576, "1.048576e+06", "1048576.0"},
        {1.7947148103222976e+09, "1.7947148103222976e+09", "1794714810.3222976"},
        {13.379999999999999, "13.379999999999999", "13.379999999999999"},
        {0.0017302480000580545, "0.0017302480000580545", "0.0017302480000580545"},
        {0.0001, "0.0001", "0.0001"},
        {1e-5, "1e-05", "1e-05"},
        {1.25e-7, "1.25e-07", "1.25e-07"},
        {0.92, "0.92", "0.92"},
        {123456.75, "123456.75", "123456.75"},
        {1e16, "1e+16", "1e+16"},
        {2.5e22, "2.5e+22", "2.5e+22"},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct vt_buf a = {0}, b = {0};

        metrics_put(&a, row[i].v);
        vt_buf_py_f64(&b, row[i].v);
        assert_string_equal(a.data, row[i].prometheus);
        assert_string_equal(b.data, row[i].python);
        vt_buf_free(&a);
        vt_buf_free(&b);
    }
}

/* ---- what is counted ------------------------------------------------- */

#define E0 "{engine=\"0\",model_name=\"tiny\"}"

static void steps_count_tokens_lookups_and_preemptions(void **state)
{
    struct metrics *m = open_metrics(API_LINE_032, 2, 0, 0);
    struct vt_step_plan plan = {.n_preempted = 2};
    struct vt_row row[] = {{.new_tokens = 1}, {.new_tokens = 1}, {.new_tokens = 1}};
    struct vt_first first = {.prompt_tokens = 100, .cached_tokens = 64};
    struct vt_step s = {.plan = &plan,
                        .row = row,
                        .n_rows = 3,
                        .first = &first,
                        .n_first = 1,
                        .cache = {.queries = 100, .hits = 64}};
    struct metrics_load load = {3, 5, 1, 0.25};
    struct vt_buf b;

    (void)state;
    metrics_step(m, 1, &s, &load);
    s.n_rows = 0; /* a step without output is no iteration */
    s.n_first = 0;
    s.cache.queries = s.cache.hits = 0;
    metrics_step(m, 1, &s, &load);
    metrics_first_token(m, 1, 0.03, 100, 64, 0);
    b = text_of(m);
#define E1 "{engine=\"1\",model_name=\"tiny\"}"
    assert_sample(&b, "vllm:num_requests_running" E1, "3.0");
    assert_sample(&b, "vllm:num_requests_waiting" E1, "5.0");
    assert_sample(
        &b,
        "vllm:num_requests_waiting_by_reason{engine=\"1\",model_name=\"tiny\","
        "reason=\"capacity\"}",
        "4.0");
    assert_sample(&b, "vllm:kv_cache_usage_perc" E1, "0.25");
    assert_sample(&b, "vllm:num_preemptions_total" E1, "4.0");
    assert_sample(&b, "vllm:generation_tokens_total" E1, "3.0");
    assert_sample(&b, "vllm:generation_tokens_total" E0, "0.0");
    assert_sample(&b, "vllm:iteration_tokens_total_count" E1, "1.0");
    assert_sample(&b, "vllm:iteration_tokens_total_sum" E1, "39.0");
    assert_sample(&b, "vllm:prefix_cache_queries_total" E1, "100.0");
    assert_sample(&b, "vllm:prefix_cache_hits_total" E1, "64.0");
    assert_sample(&b, "vllm:prompt_tokens_total" E1, "100.0");
    assert_sample(&b, "vllm:prompt_tokens_cached_total" E1, "64.0");
    assert_sample(&b,
                  "vllm:prompt_tokens_by_source_total{engine=\"1\",model_name=\"tiny\","
                  "source=\"local_compute\"}",
                  "36.0");
    assert_sample(
        &b,
        "vllm:time_to_first_token_seconds_bucket{engine=\"1\",le=\"0.02\",model_name="
        "\"tiny\"}",
        "0.0");
    assert_sample(
        &b,
        "vllm:time_to_first_token_seconds_bucket{engine=\"1\",le=\"0.04\",model_name="
        "\"tiny\"}",
        "1.0");
    vt_buf_free(&b);
    metrics_close(m);
}

static void a_value_at_a_bound_is_below_it(void **state)
{
    static const double gap[] = {0.01, 0.025, 0.0250001, 80, 81};
    static const struct {
        const char *le, *want;
    } row[] = {{"0.01", "1.0"}, {"0.025", "2.0"}, {"0.05", "3.0"},
               {"40.0", "3.0"}, {"80.0", "4.0"},  {"+Inf", "5.0"}};
    struct metrics *m = open_metrics(API_LINE_026, 1, 0, 0);
    struct vt_buf b;

    (void)state;
    for (size_t i = 0; i < VT_COUNT(gap); i++)
        metrics_gap(m, 0, gap[i]);
    b = text_of(m);
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        char name[128];

        snprintf(name, sizeof(name),
                 "vllm:inter_token_latency_seconds_bucket{engine=\"0\",le=\"%s\",model_"
                 "name=\"tiny\"}",
                 row[i].le);
        assert_sample(&b, name, row[i].want);
    }
    assert_sample(&b, "vllm:inter_token_latency_seconds_count" E0, "5.0");
    vt_buf_free(&b);
    metrics_close(m);
}

static void requests_count_once_for_all_their_choices(void **state)
{
    struct metrics *m = open_metrics(API_LINE_032, 1, 0, 0);
    struct metrics_request r = {.finish = METRICS_LENGTH,
                                .prompt_tokens = 10,
                                .cached_tokens = 4,
                                .output_tokens = 5,
                                .max_tokens = 9,
                                .preemptions = 1,
                                .e2e = 2,
                                .queue = 0.5,
                                .prefill = 0.5,
                                .decode = 1,
                                .inference = 1.5};
    struct metrics_request aborted = {.finish = METRICS_ABORT,
                                      .e2e = 1,
                                      .queue = -1,
                                      .prefill = -1,
                                      .decode = -1,
                                      .inference = -1,
                                      .n = 1};
    struct vt_buf b;

    (void)state;
    metrics_request(m, 0, &r);
    r.n = 2;
    r.output_tokens = 3;
    r.most_tokens = 5;
    metrics_request(m, 0, &r);
    metrics_request(m, 0, &aborted);
    b = text_of(m);
    assert_sample(&b,
                  "vllm:request_success_total{engine=\"0\",finished_reason=\"length\","
                  "model_name=\"tiny\"}",
                  "2.0");
    assert_sample(&b,
                  "vllm:request_success_total{engine=\"0\",finished_reason=\"abort\","
                  "model_name=\"tiny\"}",
                  "1.0");
    assert_sample(&b, "vllm:request_params_n_count" E0, "2.0");
    assert_sample(&b, "vllm:request_params_n_sum" E0, "3.0");
    assert_sample(&b, "vllm:request_max_num_generation_tokens_sum" E0, "5.0");
    assert_sample(&b, "vllm:request_generation_tokens_sum" E0, "8.0");
    assert_sample(&b, "vllm:request_prefill_kv_computed_tokens_sum" E0, "12.0");
    assert_sample(&b, "vllm:request_params_max_tokens_count" E0, "2.0");
    assert_sample(&b, "vllm:request_time_per_output_token_seconds_sum" E0, "0.75");
    assert_sample(&b, "vllm:request_queue_time_seconds_count" E0, "2.0");
    assert_sample(&b, "vllm:e2e_request_latency_seconds_count" E0, "3.0");
    assert_sample(&b, "vllm:request_num_preemptions_sum" E0, "2.0");
    vt_buf_free(&b);
    metrics_close(m);
}

static void drafts_are_counted_by_position(void **state)
{
    struct metrics *m = open_metrics(API_LINE_026, 1, 3, 0);
    struct vt_item item[] = {{.spec = 3}, {.spec = 3}, {.spec = 0}};
    const uint32_t sampled[] = {4, 2, 1};
    struct vt_step_plan plan = {.item = item, .n = 3};
    struct vt_step s = {.plan = &plan, .sampled = sampled};
    struct metrics_load load = {0};
    struct vt_buf b;
    char name[128];

    (void)state;
    metrics_step(m, 0, &s, &load);
    b = text_of(m);
    assert_sample(&b, "vllm:spec_decode_num_drafts_total" E0, "2.0");
    assert_sample(&b, "vllm:spec_decode_num_draft_tokens_total" E0, "6.0");
    assert_sample(&b, "vllm:spec_decode_num_accepted_tokens_total" E0, "4.0");
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof(name),
                 "vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\","
                 "model_name=\"tiny\",position=\"%d\"}",
                 i);
        assert_sample(&b, name, i == 0 ? "2.0" : "1.0");
    }
    vt_buf_free(&b);
    metrics_close(m);
}

static void adapters_keep_the_time_they_last_ran(void **state)
{
    struct metrics *m = open_metrics(API_LINE_026, 1, 0, 2);
    struct vt_buf b;

    (void)state;
    metrics_loras(m, "a,b", "", 100);
    metrics_loras(m, "a", "b\"x", 101.5);
    metrics_loras(m, "a,b", "", 102);
    for (int i = 0; i < 200; i++) { /* only so many are kept */
        char name[16];

        snprintf(name, sizeof(name), "n%d", i);
        metrics_loras(m, name, "", 10 + i);
    }
    b = text_of(m);
    assert_sample(
        &b,
        "vllm:lora_requests_info{max_lora=\"2\",running_lora_adapters=\"n199\","
        "waiting_lora_adapters=\"\"}",
        "209.0");
    assert_null(value_of(&b, "vllm:lora_requests_info{max_lora=\"2\",running_lora_"
                             "adapters=\"n0\",waiting_lora_adapters=\"\"}"));
    vt_buf_free(&b);
    metrics_close(m);
    m = open_metrics(API_LINE_026, 1, 0, 2);
    metrics_loras(m, "a", "b\"x", 101.5);
    b = text_of(m);
    assert_sample(&b,
                  "vllm:lora_requests_info{max_lora=\"2\",running_lora_adapters=\"a\","
                  "waiting_lora_adapters=\"b\\\"x\"}",
                  "101.5");
    vt_buf_free(&b);
    metrics_close(m);
}

static void sleep_states_exclude_each_other(void **state)
{
    static const char *const name[] = {"awake", "weights_offloaded", "discard_all"};
    struct metrics *m = open_metrics(API_LINE_026, 1, 0, 0);

    (void)state;
    for (uint32_t level = 0; level < 3; level++) {
        struct vt_buf b;

        metrics_sleep(m, 0, level);
        b = text_of(m);
        for (uint32_t i = 0; i < 3; i++) {
            char sample[128];

            snprintf(sample, sizeof(sample),
                     "vllm:engine_sleep_state{engine=\"0\",model_name=\"tiny\",sleep_"
                     "state=\"%s\"}",
                     name[i]);
            assert_sample(&b, sample, i == level ? "1.0" : "0.0");
        }
        vt_buf_free(&b);
    }
    metrics_close(m);
}

static void http_counts_by_route_and_passes_over_probes(void **state)
{
    struct metrics *m = open_metrics(API_LINE_026, 1, 0, 0);
    struct vt_buf b;

    (void)state;
    metrics_http(m, "/v1/completions", "POST", 200, 0.3, 50, 0);
    metrics_http(m, "/v1/completions", "POST", 200, 2, 50, 70);
    metrics_http(m, "/v1/completions", "POST", 400, 0.001, 5, 100);
    metrics_http(m, "/v1/completions", "BREW", 405, 0.001, 0, 0);
    metrics_http(m, "/health", "GET", 200, 0.001, 0, 0);
    metrics_http(m, "/v1/load_lora_adapter", "POST", 200, 0.001, 0, 0);
    b = text_of(m);
#define COMPLETIONS "{handler=\"/v1/completions\",method=\"POST\",status="
    assert_sample(&b, "http_requests_total" COMPLETIONS "\"2xx\"}", "2.0");
    assert_sample(&b, "http_requests_total" COMPLETIONS "\"4xx\"}", "1.0");
    assert_sample(&b, "http_request_size_bytes_sum{handler=\"/v1/completions\"}",
                  "105.0");
    assert_sample(&b, "http_response_size_bytes_sum{handler=\"/v1/completions\"}",
                  "170.0");
    assert_sample(&b,
                  "http_request_duration_seconds_bucket{handler=\"/v1/completions\",le="
                  "\"0.5\",method=\"POST\"}",
                  "2.0");
    assert_sample(&b, "http_request_duration_highr_seconds_count", "4.0");
    assert_sample(&b, "http_request_duration_highr_seconds_bucket{le=\"+Inf\"}", "4.0");
    assert_null(strstr(b.data, "handler=\"/health\""));
    assert_null(strstr(b.data, "handler=\"/v1/load"));
    assert_null(strstr(b.data, "BREW"));
    vt_buf_free(&b);
    metrics_close(m);
}

static void the_process_is_told_of(void **state)
{
    static const char *const name[] = {
        "process_virtual_memory_bytes",
        "process_resident_memory_bytes",
        "process_start_time_seconds",
        "process_open_fds",
        "process_max_fds",
    };
    struct metrics *m = open_metrics(API_LINE_026, 1, 0, 0);
    struct vt_buf b = text_of(m);
    const char *v = value_of(&b, "process_start_time_seconds");
    double now = (double)time(NULL);

    (void)state;
    assert_non_null(v);
    assert_true(strtod(v, NULL) > now - 3600 && strtod(v, NULL) < now + 5);
    for (size_t i = 0; i < VT_COUNT(name); i++) {
        v = value_of(&b, name[i]);
        assert_true(v && strtod(v, NULL) > 0);
    }
    assert_non_null(value_of(&b, "process_cpu_seconds_total"));
    vt_buf_free(&b);
    metrics_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_label_and_bucket_is_the_recorded_one),
        cmocka_unit_test(the_caches_groups_are_told),
        cmocka_unit_test(numbers_look_as_prometheus_client_writes_them),
        cmocka_unit_test(steps_count_tokens_lookups_and_preemptions),
        cmocka_unit_test(a_value_at_a_bound_is_below_it),
        cmocka_unit_test(requests_count_once_for_all_their_choices),
        cmocka_unit_test(drafts_are_counted_by_position),
        cmocka_unit_test(adapters_keep_the_time_they_last_ran),
        cmocka_unit_test(sleep_states_exclude_each_other),
        cmocka_unit_test(http_counts_by_route_and_passes_over_probes),
        cmocka_unit_test(the_process_is_told_of),
    };

    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
