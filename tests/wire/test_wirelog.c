/* A log of messages: what a line must have, and how a bad one is named. The captures of
 * tests/cases/wire are read by test_captures. */
#include "codec_testing.h"

#include <stdio.h>
#include <unistd.h>

#include "wire/tap/wirelog.h"

static const char good[] =
    "{\"frontend\":\"rust\",\"seq\":7,\"t_mono_ns\":4196768867113,"
    "\"t_unix\":1794714405.5,\"phase\":\"start\",\"sock\":\"input\",\"dir\":\"F>E\","
    "\"kind\":\"ABORT\",\"nframes\":2,\"frame_sizes\":[1,3],"
    "\"frames_hex\":[\"01\",\"91A161\",\"\"],\"decoded\":null,\"client\":2,"
    "\"identity\":\"0100\"}";

static void every_field_is_read(void **state)
{
    struct wirelog_entry e;
    struct vt_arena a = {0};
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(wirelog_entry_read(&e, &a, good, strlen(good), 1, &err), VT_OK);
    assert_string_equal(e.frontend, "rust");
    assert_true(e.seq == 7 && e.t_mono_ns == 4196768867113 && e.t_unix == 1794714405.5);
    assert_string_equal(e.phase, "start");
    assert_string_equal(e.sock, "input");
    assert_string_equal(e.dir, "F>E");
    assert_string_equal(e.kind, "ABORT");
    assert_int_equal(e.client, 2);
    assert_string_equal(e.identity, "0100");
    assert_int_equal(e.n_frames, 3);
    assert_true(e.frame[0].len == 1 && e.frame[0].at[0] == 1);
    assert_memory_equal(e.frame[1].at, "\x91\xa1\x61", 3);
    assert_int_equal(e.frame[2].len, 0);
    vt_arena_free(&a);
}

#define NAMES "\"sock\":\"input\",\"dir\":\"F>E\",\"kind\":\"ADD\""

static struct bad {
    const char *name, *line, *message;
} bads[] = {
    {"no JSON", "{\"sock\"", NULL},
    {"a list", "[]", "line 9: not an object"},
    {"no socket", "{\"dir\":\"F>E\",\"kind\":\"ADD\",\"frames_hex\":[\"\"]}",
     "line 9: field 'sock' is missing"},
    {"no frames", "{" NAMES "}", "line 9: no list 'frames_hex'"},
    {"an empty list of frames", "{" NAMES ",\"frames_hex\":[]}",
     "line 9: no list 'frames_hex'"},
    {"half a byte", "{" NAMES ",\"frames_hex\":[\"00\",\"012\"]}",
     "line 9: frame 1: not hex text"},
    {"no hex", "{" NAMES ",\"frames_hex\":[\"0g\"]}", "line 9: frame 0: not hex text"},
    {"a number for a frame", "{" NAMES ",\"frames_hex\":[12]}",
     "line 9: frame 0: not hex text"},
};

static void bad_line_is_named(void **state)
{
    const struct bad *b = *state;
    struct wirelog_entry e;
    struct vt_arena a = {0};
    struct vt_err err = {0};

    assert_int_equal(wirelog_entry_read(&e, &a, b->line, strlen(b->line), 9, &err),
                     VT_EINPUT);
    if (b->message)
        assert_string_equal(err.msg, b->message);
    assert_int_equal(strncmp(err.msg, "line 9: ", 8), 0);
    vt_arena_free(&a);
}

/* A recorder that was killed leaves half a line; what is before it is read. */
static void file_cut_in_a_line(void **state)
{
    char path[] = "/tmp/vt_wirelog_XXXXXX";
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");
    const struct wirelog_entry *e;
    struct wirelog *log;
    struct vt_err err = {0};

    (void)state;
    assert_non_null(f);
    fprintf(f, "%s\n%.*s", good, 50, good);
    fclose(f);
    assert_int_equal(wirelog_open(&log, path, &err), VT_OK);
    assert_int_equal(wirelog_next(log, &e, &err), VT_OK);
    assert_non_null(e);
    assert_int_equal(wirelog_next(log, &e, &err), VT_EINPUT);
    assert_null(e);
    assert_non_null(
        strstr(err.msg, "line 2: the file ends in the middle of this line"));
    assert_int_equal(strncmp(err.msg, path, strlen(path)), 0);
    wirelog_close(log);
    unlink(path);
    assert_int_equal(wirelog_open(&log, path, &err), VT_EINPUT);
    assert_null(log);
}

int main(void)
{
    enum { N = VT_COUNT(bads) };
    struct CMUnitTest tests[N + 2] = {
        cmocka_unit_test(every_field_is_read),
        cmocka_unit_test(file_cut_in_a_line),
    };

    for (size_t i = 0; i < N; i++)
        tests[2 + i] = row(bads[i].name, bad_line_is_named, &bads[i]);
    return cmocka_run_group_tests_name("wirelog", tests, NULL, NULL);
}
