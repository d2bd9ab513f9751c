/* fixture.h - workloads from text, shared by the tests of this room. */
#ifndef VT_TESTS_TRACE_FIXTURE_H
#define VT_TESTS_TRACE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace/formats/formats.h"
#include "trace/jsonl/jsonl.h"
#include "trace/workload/workload.h"

#define DATA(name) VT_TEST_DIR "/trace/data/" name

/* Reads text as a trace (or, with trace_read_requests, a request list) named "t". */
static inline int fixture_from(trace_file_reader *read, struct vt_workload *w,
                               const char *text, struct vt_err *err)
{
    struct vt_lines *lines;
    int rc = vt_lines_from(&lines, "t", text, strlen(text), err);

    assert_int_equal(rc, VT_OK);
    rc = read(w, lines, err);
    vt_lines_close(lines);
    return rc;
}

/* A row of a table of bad inputs; its test is named after it. */
struct fixture_bad {
    const char *name, *text, *message;
};

static inline void fixture_refuses(trace_file_reader *read,
                                   const struct fixture_bad *bad)
{
    struct vt_workload w;
    struct vt_err err = {0};

    assert_int_equal(fixture_from(read, &w, bad->text, &err), VT_EINPUT);
    assert_string_equal(err.msg, bad->message);
    assert_null(w.req);
    assert_int_equal(w.n, 0);
}

/* Runs the plain tests and then one for each bad row. */
static inline int fixture_run(const char *group, const struct CMUnitTest *plain,
                              size_t n, CMUnitTestFunction refuses,
                              struct fixture_bad *bad, size_t n_bad)
{
    struct CMUnitTest tests[128];

    assert_true(n + n_bad <= VT_COUNT(tests));
    memcpy(tests, plain, n * sizeof(*plain));
    for (size_t i = 0; i < n_bad; i++)
        tests[n + i] = (struct CMUnitTest){
            .name = bad[i].name,
            .test_func = refuses,
            .initial_state = &bad[i],
        };
    return _cmocka_run_group_tests(group, tests, n + n_bad, NULL, NULL);
}

#endif
