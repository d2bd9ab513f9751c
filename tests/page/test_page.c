/* The frame, escaping, tables, and charts as data. */
#include "page/page.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void has(const struct vt_buf *b, const char *text)
{
    assert_false(b->failed);
    if (!strstr(b->data, text))
        fail_msg("no '%s' in '%s'", text, b->data);
}

static void text_is_escaped(void **state)
{
    static const struct {
        const char *in, *out;
    } row[] = {
        {"", NULL},
        {"plain", "plain"},
        {"a<b>&\"c\"", "a&lt;b&gt;&amp;&quot;c&quot;"},
        {"\xc3\xa9", "\xc3\xa9"},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct vt_buf b = {0};

        vt_page_text(&b, row[i].in);
        if (row[i].out)
            assert_string_equal(b.data, row[i].out);
        else
            assert_int_equal(b.len, 0);
        vt_buf_free(&b);
    }
}

/* Every part escapes what it is told. */
static void parts_escape(void **state)
{
    static const char *const heads[] = {"<left<", "r"}, *const beyond[] = {"<b>"};
    const struct vt_page_trust trust = {.basis = "<i>",
                                        .about = "&",
                                        .expected_error_pct = 7.25,
                                        .outside = beyond,
                                        .n_outside = 1};
    struct vt_page_table t;
    struct vt_buf b = {0};

    (void)state;
    vt_page_begin(&b, "<kind>", "<title>", "<sub>");
    vt_page_answer(&b, "<answer>", &trust);
    vt_page_figures(&b, &(struct vt_page_figure){"<1>", "ms", "TTFT", true}, 1);
    vt_page_section(&b, "id", "<section>", NULL);
    vt_page_para(&b, VT_PAGE_BAD, "%s", "<para>");
    vt_page_facts(&b, &(struct vt_page_fact){"<name>", "<value>"}, 1);
    vt_page_table_begin(&t, &b, heads, 2);
    vt_page_row(&t, "sum");
    vt_page_cell(&t, "%s", "<cell>");
    vt_page_cell_small(&t, "1", "<small>");
    vt_page_table_end(&t);
    vt_page_fold_begin(&b, "<fold>");
    vt_page_fold_end(&b);
    vt_page_svg(&b, NULL, false, NULL, "<why>");
    has(&b, "&lt;kind&gt;");
    has(&b, "<title>&lt;title&gt;</title>");
    has(&b, "&lt;answer&gt;");
    has(&b, "Expected error: about <b>7.2&nbsp;%</b>");
    has(&b, "Outside: &lt;b&gt;");
    has(&b, "<h2 id=\"id\">&lt;section&gt;</h2>");
    has(&b, "<p class=\"bad\">&lt;para&gt;</p>");
    has(&b, "<dt>&lt;name&gt;</dt><dd>&lt;value&gt;</dd>");
    has(&b, "<th class=\"l\">left&lt;</th><th>r</th>");
    has(&b, "<tr class=\"sum\"><td class=\"l\">&lt;cell&gt;</td>"
            "<td>1<small>&lt;small&gt;</small></td></tr>");
    has(&b, "Not drawn: &lt;why&gt;.");
    vt_buf_free(&b);
}

static void chart_is_data(void **state)
{
    static const double x[] = {1, 2.123456789, 3}, y[] = {1e6, NAN, -0.5};
    static const char *const text[] = {"</script>", "b", "c"};
    const struct vt_plot_series series[] = {
        {.name = "one", .x = x, .y = y, .text = text, .n = 3, .labels = true},
        {.name = "two",
         .y = y,
         .lo = y,
         .hi = y,
         .n = 3,
         .kind = VT_PLOT_STEPS,
         .styled = true,
         .dash = true,
         .hidden = true,
         .colour = 3},
    };
    const struct vt_plot_mark mark = {'y', 500, "limit"};
    const struct vt_plot p = {.id = "cdf",
                              .kind = VT_PLOT_LINES,
                              .title = "T",
                              .note = "N",
                              .x = {.label = "X", .unit = "ms", .log = true},
                              .y = {.has_min = true, .min = 0},
                              .series = series,
                              .n = 2,
                              .mark = &mark,
                              .n_marks = 1,
                              .sync = "time"};
    struct vt_buf b = {0};

    (void)state;
    vt_page_plot(&b, &p);
    assert_string_equal(
        b.data,
        "<div class=\"chart\" id=\"cdf\"><script type=\"application/json\">"
        "{\"kind\":\"lines\",\"title\":\"T\",\"note\":\"N\","
        "\"x\":{\"label\":\"X\",\"unit\":\"ms\",\"log\":true},\"y\":{\"min\":0},"
        "\"series\":[{\"name\":\"one\",\"x\":[1,2.12346,3],\"y\":[1e+06,null,-0.5],"
        "\"text\":[\"\\u003c/script>\",\"b\",\"c\"],\"labels\":true},"
        "{\"name\":\"two\",\"kind\":\"steps\",\"colour\":2,\"y\":[1e+06,null,-0.5],"
        "\"lo\":[1e+06,null,-0.5],\"hi\":[1e+06,null,-0.5],\"dash\":true,"
        "\"hidden\":true}],\"marks\":[{\"axis\":\"y\",\"at\":500,\"label\":\"limit\"}],"
        "\"sync\":\"time\"}</script></div>\n");
    vt_buf_free(&b);
}

static void percentiles_rise(void **state)
{
    double p[VT_CDF_POINTS];
    size_t n = vt_cdf_percentiles(p);

    (void)state;
    assert_int_equal(n, VT_CDF_POINTS);
    assert_true(p[0] == 0 && p[n - 1] == 100);
    for (size_t i = 1; i < n; i++)
        assert_true(p[i] > p[i - 1]);
    assert_true(p[n - 2] > 99.9); /* a tail is seen */
}

static void pages_appear_whole(void **state)
{
    static const char path[] = "page.tmp.html";
    struct vt_buf b = {0}, read = {0};
    struct vt_err err;

    (void)state;
    vt_page_begin(&b, "k", "t", NULL);
    assert_int_equal(vt_page_write(&b, VT_EINPUT, path, &err), VT_EINPUT);
    assert_int_not_equal(access(path, F_OK), 0);
    vt_page_begin(&b, "k", "t", NULL);
    assert_int_equal(vt_page_write(&b, VT_OK, path, &err), VT_OK);
    assert_int_equal(vt_read_file(path, 1 << 20, &read, &err), VT_OK);
    has(&read, "width=device-width");
    has(&read, "window.vtwin");
    has(&read, "prefers-color-scheme: dark");
    assert_true(vt_ends_with(read.data, "</script></body></html>\n"));
    assert_true(strlen(vt_page_script()) < 20 << 10);
    vt_buf_free(&read);
    (void)unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_escaped),    cmocka_unit_test(parts_escape),
        cmocka_unit_test(chart_is_data),      cmocka_unit_test(percentiles_rise),
        cmocka_unit_test(pages_appear_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
