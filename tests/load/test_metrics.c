/* What is read of a server's /metrics, one sample after the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "load/load.h"

static struct row {
    const char *name, *text;
    int n;             /* samples in it */
    const char *first; /* name of the first */
    double value;
    const char *label, *is; /* a label of the first, and its value */
} rows[] = {
    {"a gauge with labels",
     "# HELP x y\nvllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3.0\n", 1,
     "vllm:num_requests_running", 3, "model_name", "m"},
    {"a name without labels", "process_cpu_seconds_total 0.25", 1,
     "process_cpu_seconds_total", 0.25, "le", ""},
    {"a time behind the value", "a{le=\"1.0\"} 7 1700000000\nb 2\n", 2, "a", 7, "le",
     "1.0"},
    {"a key that ends another one", "a{num_gpu_blocks=\"4\",gpu_blocks=\"5\"} 1\n", 1,
     "a", 1, "gpu_blocks", "5"},
    {"what stands in quotes is no label", "a{x=\"b=\\\"1\\\",c\",b=\"2 {}\"} 1\n", 1,
     "a", 1, "b", "2 {}"},
    {"a line that is no sample", "a{b=\"1\n\nc\nd 4\n", 1, "d", 4, "b", ""},
    {"a value that is no number", "a x\n", 0, NULL, 0, NULL, NULL},
    {"nothing", "", 0, NULL, 0, NULL, NULL},
};

static void samples_are_read(void **state)
{
    const struct row *r = *state;
    const char *at = r->text, *end = at + strlen(at);
    struct vt_load_sample s, first = {0};
    char is[32];
    int n = 0;

    while (vt_load_sample_next(&at, end, &s)) {
        if (n++ == 0)
            first = s;
    }
    assert_int_equal(n, r->n);
    if (n == 0)
        return;
    assert_true(vt_load_sample_is(&first, r->first));
    assert_true(first.value == r->value);
    vt_load_sample_label(&first, r->label, is, sizeof(is));
    assert_string_equal(is, r->is);
    vt_load_sample_label(&first, r->label, is, 2);
    assert_true(strlen(is) <= 1);
}

int main(void)
{
    struct CMUnitTest tests[VT_COUNT(rows)];

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i] = (struct CMUnitTest){.name = rows[i].name,
                                       .test_func = samples_are_read,
                                       .initial_state = &rows[i]};
    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
