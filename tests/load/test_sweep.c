/* Sweeps: which loads, which of them were too much, and what is written of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <unistd.h>

#include "make_records.h"

static struct loads {
    const char *name, *text;
    enum vt_sweep_of of;
    size_t n; /* 0: refused */
    double last;
} loads[] = {
    {"rates", "1,2.5,4", VT_SWEEP_RATE, 3, 4},
    {"the last one at full speed", "1,inf", VT_SWEEP_RATE, 2, INFINITY},
    {"one is enough", "8", VT_SWEEP_CONCURRENCY, 1, 8},
    {"no rate is 0", "1,0", VT_SWEEP_RATE, 0, 0},
    {"no rate is nothing", "1,,2", VT_SWEEP_RATE, 0, 0},
    {"nothing at the end", "1,", VT_SWEEP_RATE, 0, 0},
    {"half a request", "1,1.5", VT_SWEEP_CONCURRENCY, 0, 0},
    {"without end", "inf", VT_SWEEP_CONCURRENCY, 0, 0},
    {"words", "many", VT_SWEEP_RATE, 0, 0},
};

static void loads_are_read(void **state)
{
    const struct loads *l = *state;
    struct vt_err err = {0};
    double *out = NULL;
    size_t n;
    int rc = vt_sweep_parse(l->text, l->of, &out, &n, &err);

    assert_int_equal(rc, l->n > 0 ? VT_OK : VT_EINPUT);
    if (l->n > 0) {
        assert_int_equal(n, l->n);
        assert_true(out[n - 1] >= l->last && out[n - 1] <= l->last);
    } else {
        assert_null(out);
        assert_non_null(strchr(err.msg, '\''));
    }
    free(out);
}

/* Twelve requests whose first tokens come after `ttft` ms and `later` more each. */
static void make_run(struct vt_load_records *r, struct vt_load_summary *s, double rate,
                     double served, double ttft, double later)
{
    for (uint32_t i = 0; i < 12; i++) {
        const struct made m = {.session = i,
                               .begun = 1e3 * i / rate,
                               .ttft = ttft + later * i,
                               .gap = 10,
                               .events = 3,
                               .prompt = 10,
                               .output = 3};

        add_made(r, &m);
    }
    *s = (struct vt_load_summary){.completed = 12,
                                  .request_throughput = served,
                                  .output_throughput = 3 * served,
                                  .ttft = {.median = ttft, .p99 = 2 * ttft},
                                  .tpot = {.median = 10, .p99 = 11},
                                  .itl = {.median = 10, .p99 = 14}};
}

static void add_run(struct vt_sweep *w, double load, double served, double ttft,
                    double later)
{
    struct vt_load_records r = {0};
    struct vt_load_summary s;
    struct vt_err err = {0};

    make_run(&r, &s, isinf(load) ? 1000 : load, served, ttft, later);
    assert_int_equal(vt_sweep_add(w, load, &s, &r, &err), VT_OK);
    vt_load_records_free(&r);
}

static void a_rate_saturates_when_it_is_not_served_and_waits_grow(void **state)
{
    struct vt_sweep w = {.of = VT_SWEEP_RATE};

    (void)state;
    add_run(&w, 1, 0.99, 20, 0);
    add_run(&w, 2, 1.5, 20, 0);   /* a short run: its end drags, nothing grows */
    add_run(&w, 4, 3.9, 30, 20);  /* it grows, but is served */
    add_run(&w, 8, 5.0, 50, 200); /* both */
    add_run(&w, INFINITY, 5.1, 50, 200);
    assert_false(w.point[0].saturated);
    assert_false(w.point[1].saturated);
    assert_false(w.point[2].saturated);
    assert_true(w.point[3].saturated);
    assert_true(w.point[4].saturated);
    assert_string_equal(w.point[0].file, "rate-1.json");
    assert_string_equal(w.point[4].file, "rate-inf.json");
    add_run(&w, 1, 0.99, 20, 0);
    assert_string_equal(w.point[5].file, "rate-1-2.json");
    vt_sweep_free(&w);
}

/* A rate counts conversations that begin; each brings four requests. */
static void conversations_are_served_by_their_requests(void **state)
{
    struct vt_sweep w = {.of = VT_SWEEP_RATE};
    struct vt_load_summary s = {.completed = 48, .request_throughput = 7};
    struct vt_load_records r = {0};
    struct vt_err err = {0};

    (void)state;
    for (uint32_t i = 0; i < 48; i++) {
        const struct made m = {.session = i / 4,
                               .turn = i % 4,
                               .begun = 100.0 * i,
                               .ttft = 10 + 5 * i + 100 * (i % 4),
                               .events = 1,
                               .prompt = 10,
                               .output = 1};

        add_made(&r, &m);
    }
    assert_int_equal(vt_sweep_add(&w, 2, &s, &r, &err), VT_OK);
    assert_true(w.point[0].turns > 3.99 && w.point[0].turns < 4.01);
    assert_true(w.point[0].saturated); /* 7 of 8 requests a second, and it grows */
    s.request_throughput = 7.9;
    assert_int_equal(vt_sweep_add(&w, 2, &s, &r, &err), VT_OK);
    assert_false(w.point[1].saturated);
    vt_load_records_free(&r);
    vt_sweep_free(&w);
}

static void a_concurrency_saturates_when_it_brings_nothing(void **state)
{
    struct vt_sweep w = {.of = VT_SWEEP_CONCURRENCY};

    (void)state;
    add_run(&w, 1, 1, 20, 0);
    add_run(&w, 2, 1.9, 25, 0);
    add_run(&w, 4, 1.92, 60, 0);
    assert_false(w.point[1].saturated);
    assert_true(w.point[2].saturated);
    assert_string_equal(w.point[2].file, "concurrency-4.json");
    vt_sweep_free(&w);
}

static size_t count(const char *text, char c)
{
    size_t n = 0;

    for (; *text; text++)
        n += *text == c ? 1 : 0;
    return n;
}

static void summaries_tell_of_every_run(void **state)
{
    struct vt_sweep w = {.of = VT_SWEEP_RATE};
    struct vt_buf b = {0};
    struct vt_arena arena = {0};
    struct vt_err err = {0};
    const struct vt_node *root;
    struct vt_results r = {0};
    const char *line;
    double v;

    (void)state;
    add_run(&w, 1.5, 1.4, 20, 0);
    add_run(&w, INFINITY, 5, 50, 200);
    vt_sweep_csv(&b, &w);
    assert_int_equal(count(b.data, '\n'), 3);
    assert_int_equal(count(b.data, ',') % 3, 0); /* as many in each line */
    assert_int_equal(strncmp(b.data, "request_rate,duration,completed,", 32), 0);
    line = strchr(b.data, '\n') + 1;
    assert_int_equal(strncmp(line, "1.5,", 4), 0);
    vt_buf_clear(&b);
    vt_sweep_json(&b, &w);
    assert_int_equal(vt_json_parse(&arena, b.data, b.len, 1, &root, &err), VT_OK);
    assert_int_equal(root->n, 2);
    assert_string_equal(vt_get(&root->u.item[1], "request_rate")->u.str, "inf");
    /* Its runs can be compared with each other. */
    assert_int_equal(vt_results_read(&r, "summary.json", b.data, b.len, &err), VT_OK);
    assert_true(vt_result_get(&r.result[1], "median_ttft_ms", &v));
    assert_true(v > 49 && v < 51);
    vt_buf_clear(&b);
    vt_sweep_table(&b, &w);
    assert_non_null(strstr(b.data, "saturated"));
    assert_non_null(
        strstr(b.data, "highest throughput: 5.00 requests/s, 15.0 tokens/s at inf"));
    vt_results_free(&r);
    vt_arena_free(&arena);
    vt_buf_free(&b);
    vt_sweep_free(&w);
}

static void draw(const struct vt_sweep *w, const char *name, int want)
{
    char dir[] = "/tmp/vtwin-sweep-XXXXXX", path[64];
    struct vt_err err = {0};
    struct vt_buf b = {0};

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(vt_sweep_draw(w, "a 'title' & more", dir, path, &err), want);
    if (want == VT_OK) {
        assert_int_equal(vt_read_file(path, 1 << 24, &b, &err), VT_OK);
        assert_true(b.len > 4000);
    }
    vt_buf_free(&b);
    unlink(path);
    assert_int_equal(rmdir(dir), 0); /* nothing else is left behind */
}

static void pictures_are_drawn(void **state)
{
    struct vt_sweep w = {.of = VT_SWEEP_RATE}, one = {.of = VT_SWEEP_CONCURRENCY};
    struct vt_sweep full = {.of = VT_SWEEP_RATE};

    (void)state;
    for (int i = 0; i < 6; i++)
        add_run(&w, 1 << i, 0.9 * (1 << i), 20 << i, i == 5 ? 400 : 0);
    add_run(&one, 4, 3, 20, 0);
    add_run(&full, INFINITY, 3, 20, 0);
    draw(&w, "sweep.png", VT_OK);
    draw(&w, "sweep.svg", VT_OK);
    draw(&one, "sweep.svg", VT_OK);
    draw(&full, "sweep.svg", VT_ECHECK); /* has no place on an axis */
    draw(&w, "sweep.txt", VT_EINPUT);
    vt_sweep_free(&w);
    vt_sweep_free(&one);
    vt_sweep_free(&full);
}

int main(void)
{
    const struct CMUnitTest single[] = {
        cmocka_unit_test(a_rate_saturates_when_it_is_not_served_and_waits_grow),
        cmocka_unit_test(conversations_are_served_by_their_requests),
        cmocka_unit_test(a_concurrency_saturates_when_it_brings_nothing),
        cmocka_unit_test(summaries_tell_of_every_run),
        cmocka_unit_test(pictures_are_drawn),
    };
    enum { N = VT_COUNT(single), L = VT_COUNT(loads) };
    struct CMUnitTest tests[N + L];

    for (size_t i = 0; i < N; i++)
        tests[i] = single[i];
    for (size_t i = 0; i < L; i++)
        tests[N + i] = (struct CMUnitTest){.name = loads[i].name,
                                           .test_func = loads_are_read,
                                           .initial_state = &loads[i]};
    return cmocka_run_group_tests_name("sweep", tests, NULL, NULL);
}
