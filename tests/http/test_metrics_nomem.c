/* Every allocation of counting, of /metrics and of export bodies is made to fail in
 * turn, once and for good. Allowed are the right outcome, an error, and a text that
 * says it is not whole; nothing may leak.
 *
 * This program replaces malloc, which sanitizers do too; under those it does nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "export/impl.h"
#include "http/metrics/metrics.h"

#include "../failing_malloc.h"

#if REPLACES_MALLOC

/* Fails each allocation of use() in turn. */
static void fail_each(void (*use)(void))
{
    for (int both = 0; both < 2; both++) {
        bool done = false;

        for (long at = 1; !done; at++) {
            long before = live;

            for_good = both;
            calls = 0;
            fail_at = at;
            use();
            done = calls < at;
            fail_at = 0;
            assert_int_equal(live, before);
        }
    }
}

static void use_metrics(void)
{
    static const char *const name[] = {"m"};
    struct vt_serve_config c = {
        .name = name, .n_engines = 2, .gpu_memory_utilization = 0.9, .max_loras = 1};
    struct metrics *m;
    struct vt_buf b = {0};
    struct vt_err err;
    int rc;

    vt_engine_config_init(&c.engine);
    c.engine.num_spec_tokens = 2;
    rc = metrics_open(&m, &c, API_LINE_032, &err);
    assert_true(rc == VT_OK || rc == VT_ENOMEM);
    if (rc != VT_OK)
        return;
    metrics_gap(m, 1, 0.01);
    metrics_http(m, "/v1/models", "GET", 200, 0.01, 0, 10);
    metrics_loras(m, "a", "b", 1);
    metrics_write(m, &b, 2);
    assert_true(b.failed || strstr(b.data, "http_request_duration_highr_seconds_sum"));
    vt_buf_free(&b);
    metrics_close(m);
}

static void metrics_survive(void **state)
{
    (void)state;
    fail_each(use_metrics);
}

struct request_record {
    struct export_note note;
    char text[16];
};
struct step_record {
    struct export_step_note note;
    struct export_item item[2];
};

static void use_bodies(void)
{
    const struct export_names names = {"m", "0", 0, true, 2};
    const struct request_record r = {
        {.r = {.tag = 1, .engine = 1}, .id_bytes = 2, .finish_bytes = 5}, "i\0stop"};
    const struct step_record s = {.note = {.id = 1, .n_items = 2}};
    struct export_body body = {.n = 0};
    struct vt_rng rng;

    vt_rng_init(&rng, 1, "test");
    for (int i = 0; i < 2; i++) {
        export_put_request(&body, &names, &r.note, &rng);
        export_put_step(&body, &names, &s.note);
        export_put_body(&body, &names, &rng);
        if (!body.text.failed) {
            struct vt_arena arena = {0};
            const struct vt_node *root;
            int rc =
                vt_json_parse(&arena, body.text.data, body.text.len, 1, &root, NULL);

            assert_true(rc == VT_OK || rc == VT_ENOMEM);
            vt_arena_free(&arena);
        }
    }
    export_body_free(&body);
}

static void bodies_survive(void **state)
{
    (void)state;
    fail_each(use_bodies);
}

#else

static void metrics_survive(void **state)
{
    (void)state;
    skip();
}

static void bodies_survive(void **state)
{
    (void)state;
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_survive),
        cmocka_unit_test(bodies_survive),
    };

    return cmocka_run_group_tests_name("metrics_nomem", tests, NULL, NULL);
}
