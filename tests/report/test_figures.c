/* Figures: every one is drawn in every format, and what has nothing to show says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/report.h"

#define CAPTURE VT_TEST_DIR "/trace/data/closed-c2.trace.jsonl.gz"
#define STEPS   VT_TEST_DIR "/trace/data/closed-c2.steps.jsonl.gz"

struct sight {
    struct vt_records r;
    struct vt_steps s;
    struct vt_view captured, modelled;
    const struct vt_view *view[2];
    char scratch[64];
    struct vt_figures f;
};

static void sight_open(struct sight *t)
{
    struct vt_err err = {0};

    *t = (struct sight){.scratch = "/tmp/vtwin-figures-XXXXXX"};
    assert_non_null(mkdtemp(t->scratch));
    assert_int_equal(vt_records_load(&t->r, CAPTURE, &err), VT_OK);
    assert_int_equal(vt_steps_load(&t->s, STEPS, &err), VT_OK);
    t->captured.label = "captured";
    t->modelled.label = "a \"model\" \\ with 100 % <odd> letters";
    assert_int_equal(vt_view_records(&t->captured, &t->r, &err), VT_OK);
    assert_int_equal(vt_view_records(&t->modelled, &t->r, &err), VT_OK);
    for (size_t i = 0; i < t->s.n; i++)
        assert_int_equal(vt_view_step(&t->captured, &t->s.step[i], &err), VT_OK);
    t->view[0] = &t->captured;
    t->view[1] = &t->modelled;
    t->f = (struct vt_figures){
        .view = t->view, .n_views = 2, .title = "a & b", .scratch = t->scratch};
}

static void assert_empty(const char *dir)
{
    struct dirent *entry;
    DIR *d = opendir(dir);

    assert_non_null(d);
    while ((entry = readdir(d)) != NULL)
        assert_true(entry->d_name[0] == '.');
    closedir(d);
}

static void sight_close(struct sight *t)
{
    assert_empty(t->scratch); /* nothing is left behind */
    rmdir(t->scratch);
    vt_view_free(&t->captured);
    vt_view_free(&t->modelled);
    vt_steps_free(&t->s);
    vt_records_free(&t->r);
}

/* A machine without it can still run everything else. */
static void need_gnuplot(void)
{
    if (system("command -v gnuplot >/dev/null") != 0)
        skip();
}

static void every_figure_in_every_format(void **state)
{
    static const struct {
        const char *file, *starts;
    } format[] = {
        {"f.tmp.pdf", "%PDF"}, {"f.tmp.svg", "<?xml"}, {"f.tmp.png", "\x89PNG"}};
    struct sight t;
    struct vt_err err = {0};

    (void)state;
    need_gnuplot();
    sight_open(&t);
    for (const char *const *name = vt_figure_names; *name; name++)
        for (size_t i = 0; i < VT_COUNT(format); i++) {
            struct vt_buf b = {0};

            if (vt_figure_draw(&t.f, *name, format[i].file, &err) != VT_OK)
                fail_msg("%s: %s", *name, err.msg);
            assert_int_equal(vt_read_file(format[i].file, 1 << 26, &b, &err), VT_OK);
            assert_true(b.len > 2000);
            assert_memory_equal(b.data, format[i].starts, 4);
            unlink(format[i].file);
            vt_buf_free(&b);
        }
    sight_close(&t);
}

static void a_page_needs_nothing_else(void **state)
{
    static const char path[] = "page.tmp.html";
    struct vt_summary s[2] = {{.requests = 3}, {.requests = 4}};
    struct sight t;
    struct vt_buf b = {0};
    struct vt_err err = {0};

    (void)state;
    need_gnuplot();
    sight_open(&t);
    if (vt_figures_page(&t.f, s, path, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(vt_read_file(path, 1 << 26, &b, &err), VT_OK);
    assert_non_null(strstr(b.data, "<title>a &amp; b</title>"));
    assert_non_null(strstr(b.data, "100 % &lt;odd&gt; letters</th>"));
    for (const char *const *name = vt_figure_names; *name; name++)
        assert_non_null(strstr(b.data, *name));
    assert_null(strstr(b.data, "src="));
    assert_null(strstr(b.data, "<?xml"));
    unlink(path);
    vt_buf_free(&b);
    sight_close(&t);
}

static void several_loads_are_side_by_side(void **state)
{
    static const char path[] = "loads.tmp.svg";
    struct vt_figures next;
    struct sight t;
    struct vt_buf b = {0};
    struct vt_err err = {0};

    (void)state;
    need_gnuplot();
    sight_open(&t);
    next = t.f;
    next.load = "the second load";
    t.f.next = &next;
    t.f.load = "the first load";
    if (vt_figure_draw(&t.f, "comparison", path, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(vt_read_file(path, 1 << 26, &b, &err), VT_OK);
    assert_non_null(strstr(b.data, "the first load"));
    assert_non_null(strstr(b.data, "the second load"));
    assert_non_null(strstr(b.data, " letters"));
    unlink(path);
    vt_buf_free(&b);
    sight_close(&t);
}

/* Samples have no requests: figures of those leave them out, or say so. */
static void samples_alone_show_what_they_can(void **state)
{
    static const char *const need[] = {"itl-means", "ttft-prompt", "timeline"};
    struct sight t;
    struct vt_err err = {0};

    (void)state;
    sight_open(&t);
    t.captured.only_samples = t.modelled.only_samples = true;
    for (size_t i = 0; i < VT_COUNT(need); i++)
        assert_int_equal(vt_figure_draw(&t.f, need[i], "x.tmp.svg", &err), VT_ECHECK);
    sight_close(&t);
}

static void what_is_not_there_is_not_drawn(void **state)
{
    struct sight t;
    struct vt_err err = {0};

    (void)state;
    sight_open(&t);
    t.captured.n_steps = 0;
    assert_int_equal(vt_figure_draw(&t.f, "step-shape", "x.tmp.svg", &err), VT_ECHECK);
    assert_string_equal(err.msg, "there are no steps to show");
    assert_int_equal(vt_figure_draw(&t.f, "no-such", "x.tmp.svg", &err), VT_EINPUT);
    assert_int_equal(vt_figure_draw(&t.f, "timeline", "x.tmp.gif", &err), VT_EINPUT);
    assert_int_not_equal(access("x.tmp.svg", F_OK), 0);
    sight_close(&t);
}

static void without_gnuplot_the_message_says_so(void **state)
{
    char *path = strdup(getenv("PATH"));
    struct sight t;
    struct vt_err err = {0};

    (void)state;
    sight_open(&t);
    setenv("PATH", t.scratch, 1);
    assert_int_equal(vt_figure_draw(&t.f, "timeline", "x.tmp.svg", &err), VT_EIO);
    setenv("PATH", path, 1);
    assert_non_null(strstr(err.msg, "gnuplot"));
    assert_non_null(strstr(err.msg, "not installed"));
    free(path);
    sight_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_figure_in_every_format),
        cmocka_unit_test(a_page_needs_nothing_else),
        cmocka_unit_test(several_loads_are_side_by_side),
        cmocka_unit_test(samples_alone_show_what_they_can),
        cmocka_unit_test(what_is_not_there_is_not_drawn),
        cmocka_unit_test(without_gnuplot_the_message_says_so),
    };

    return cmocka_run_group_tests_name("figures", tests, NULL, NULL);
}
