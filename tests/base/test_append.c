/* Lines that are appended: all of a put or nothing, whatever the disk and an earlier
 * writer have done. */
#include "testing.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/vt_test_append.XXXXXX";

static const char *in_dir(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void put(struct vt_append *f, const char *text)
{
    struct vt_buf b = {0};
    struct vt_err err;

    vt_buf_str(&b, text);
    assert_int_equal(vt_append_put(f, &b, &err), VT_OK);
    vt_buf_free(&b);
}

static void append(const char *path, bool more, const char *text)
{
    struct vt_append *f;
    struct vt_err err;

    assert_int_equal(vt_append_open(&f, path, 6, more, &err), VT_OK);
    put(f, text);
    assert_int_equal(vt_append_close(f, &err), VT_OK);
}

/* Lines that can be read, each behind a '|'; one without its end behind a '~'. */
static void read_lines(const char *path, struct vt_buf *out)
{
    struct vt_lines *l;
    struct vt_err err;
    bool complete;
    size_t len;
    char *line;

    vt_buf_clear(out);
    vt_buf_str(out, "");
    assert_int_equal(vt_lines_open(&l, path, &err), VT_OK);
    while (vt_lines_next(l, &line, &len, &complete, &err) == VT_OK && line) {
        vt_buf_char(out, complete ? '|' : '~');
        vt_buf_add(out, line, len);
    }
    vt_lines_close(l);
}

static void assert_lines(const char *path, const char *want)
{
    struct vt_buf got = {0};

    read_lines(path, &got);
    assert_string_equal(got.data, want);
    vt_buf_free(&got);
}

static void read_bytes(const char *path, struct vt_buf *out)
{
    FILE *f = fopen(path, "rb");
    char part[4096];
    size_t n;

    assert_non_null(f);
    while ((n = fread(part, 1, sizeof(part), f)) > 0)
        vt_buf_add(out, part, n);
    fclose(f);
}

static void write_bytes(const char *path, const char *bytes, size_t len)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

/* ---- a full disk -------------------------------------------------------- */

static void limit_files(rlim_t bytes)
{
    struct rlimit r;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &r), 0);
    r.rlim_cur = bytes < r.rlim_max ? bytes : r.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
}

static void hard_line(struct vt_buf *b, unsigned seed)
{
    vt_buf_clear(b);
    vt_buf_str(b, "{\"a\":\"");
    for (unsigned i = 0; i < 200; i++) /* that gzip makes little of */
        vt_buf_printf(b, "%016llx", (unsigned long long)vt_hash2(seed, i));
    vt_buf_str(b, "\"}\n");
}

/* However much fits, whole lines are there and nothing else. */
static void a_full_disk_cuts_no_line(void **state)
{
    const char *name = *state;
    struct vt_buf line = {0}, got = {0};
    struct vt_err err;

    for (rlim_t room = 4000; room < 4700; room += 61) {
        const char *path = in_dir(name);
        struct vt_append *f;
        size_t fits = 0, lines = 0;

        assert_int_equal(vt_append_open(&f, path, 6, false, &err), VT_OK);
        limit_files(room);
        for (int rc = VT_OK; rc == VT_OK; fits += rc == VT_OK) {
            hard_line(&line, (unsigned)fits);
            rc = vt_append_put(f, &line, &err);
        }
        assert_int_equal(err.code, VT_EIO);
        assert_non_null(strstr(err.msg, path));
        assert_non_null(strstr(err.msg, "File too large"));
        limit_files(RLIM_INFINITY);
        if (!vt_is_gz(path)) { /* then there is room again */
            put(f, "{}\n");
            fits++;
        } else {
            assert_int_equal(vt_append_put(f, &line, &err), VT_EIO);
        }
        assert_int_equal(vt_append_close(f, &err), VT_OK);
        read_lines(path, &got);
        for (size_t i = 0; i < got.len; i++)
            lines += got.data[i] == '|';
        assert_int_equal(lines, fits);
        assert_null(strchr(got.data, '~'));
    }
    vt_buf_free(&line);
    vt_buf_free(&got);
}

static void a_device_that_takes_nothing_is_an_error(void **state)
{
    struct vt_buf line = {0};
    struct vt_append *f;
    struct vt_err err;

    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    vt_buf_str(&line, "{}\n");
    assert_int_equal(vt_append_open(&f, "/dev/full", 6, true, &err), VT_OK);
    assert_int_equal(vt_append_put(f, &line, &err), VT_EIO);
    assert_string_equal(err.msg, "/dev/full: No space left on device");
    assert_int_equal(vt_append_close(f, &err), VT_OK);
    vt_buf_free(&line);
}

/* ---- what is there ------------------------------------------------------ */

#define FIRST  "{\"id\":\"a\",\"t\":[1,{\"b\":\"]}\"}]}"
#define SECOND "{\"id\":\"\\\"\\\\\",\"n\":{\"m\":2}}"

/* Cut at every byte of its two lines: what is whole stays, the rest goes, and a line
 * that follows is whole. */
static void a_cut_file_goes_on_behind_its_last_whole_line(void **state)
{
    const char text[] = FIRST "\n" SECOND "\n", *path = in_dir("cut.jsonl");

    (void)state;
    for (size_t len = 0; len < sizeof(text); len++) {
        bool first = len >= strlen(FIRST), second = len >= sizeof(text) - 2;

        write_bytes(path, text, len);
        append(path, true, "{}\n");
        assert_lines(path, second  ? "|" FIRST "|" SECOND "|{}"
                           : first ? "|" FIRST "|{}"
                                   : "|{}");
    }
}

/* Whole lines that could be read before are there, and those that follow. */
static void a_cut_gzip_file_goes_on_behind_its_last_whole_line(void **state)
{
    struct vt_buf bytes = {0}, before = {0}, want = {0};
    const char *path = in_dir("cut.jsonl.gz");
    struct vt_append *f;
    struct vt_err err;

    (void)state;
    assert_int_equal(vt_append_open(&f, path, 6, false, &err), VT_OK);
    put(f, FIRST "\n");
    put(f, SECOND "\n");
    assert_int_equal(vt_append_close(f, &err), VT_OK);
    read_bytes(path, &bytes);
    for (size_t len = 0; len <= bytes.len; len++) {
        write_bytes(path, bytes.data, len);
        if (len >= 2)
            read_lines(path, &before);
        vt_buf_clear(&want);
        vt_buf_printf(&want, "%s|{}", before.len > 0 ? before.data : "");
        append(path, true, "{}\n");
        assert_lines(path, want.data);
        append(path, true, "{}\n"); /* it is whole again */
        vt_buf_str(&want, "|{}");
        assert_lines(path, want.data);
    }
    assert_string_equal(want.data, "|" FIRST "|" SECOND "|{}|{}");
    vt_buf_free(&bytes);
    vt_buf_free(&before);
    vt_buf_free(&want);
}

static void a_long_cut_line_goes(void **state)
{
    const char *path = in_dir("long.jsonl");
    struct vt_buf b = {0};

    (void)state;
    vt_buf_str(&b, "{}\n{\"a\":[");
    for (int i = 0; i < 10000; i++)
        vt_buf_str(&b, "1,");
    write_bytes(path, b.data, b.len);
    append(path, true, "[]\n");
    assert_lines(path, "|{}|[]");
    vt_buf_free(&b);
}

static void gzip_and_its_name_must_agree(void **state)
{
    struct vt_append *f;
    struct vt_err err;

    (void)state;
    write_bytes(in_dir("plain.gz"), "{}\n", 3);
    assert_int_equal(vt_append_open(&f, in_dir("plain.gz"), 6, true, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "plain.gz: cannot append: it is no gzip"));
    write_bytes(in_dir("packed"), "\x1f\x8b\x08", 3);
    assert_int_equal(vt_append_open(&f, in_dir("packed"), 6, true, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "packed: cannot append: it is gzip"));
    append(in_dir("plain.gz"), false, "{}\n"); /* which asks nothing of the old one */
    assert_lines(in_dir("plain.gz"), "|{}");
}

/* ---- JSON --------------------------------------------------------------- */

static struct row {
    const char *name, *text;
    bool cut;
} rows[] = {
    {"nothing was begun", "", false},
    {"a whole object", "{\"a\":[1,2]}", false},
    {"an open object", "{", true},
    {"an open list in an object", "{\"a\":[1,2}", true},
    {"an open string", "{\"a", true},
    {"brackets in strings do not count", "{\"a\":\"}]\"", true},
    {"a quote behind a backslash ends nothing", "{\"a\":\"\\\"}", true},
    {"a backslash behind a backslash", "{\"a\":\"\\\\\"}", false},
    {"ends in a backslash", "{\"a\":\"\\", true},
    {"bad, but not cut", "{\"a\":nope}", false},
    {"something follows", "{} {", false},
    {"no JSON", "1,2,3", false},
};

static void cut_json_is_recognised(void **state)
{
    const struct row *r = *state;

    assert_int_equal(vt_json_is_cut(r->text, strlen(r->text)), r->cut);
}

static int set_up(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit is to fail, as on a disk */
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", dir);
    return system(command);
}

int main(void)
{
    static char plain[] = "full.jsonl", packed[] = "full.jsonl.gz";
    enum { N = sizeof(rows) / sizeof(rows[0]) };
    const struct CMUnitTest fixed[] = {
        {.name = "a_full_disk_cuts_no_line",
         .test_func = a_full_disk_cuts_no_line,
         .initial_state = plain},
        {.name = "a_full_disk_cuts_no_line_gzip",
         .test_func = a_full_disk_cuts_no_line,
         .initial_state = packed},
        cmocka_unit_test(a_device_that_takes_nothing_is_an_error),
        cmocka_unit_test(a_cut_file_goes_on_behind_its_last_whole_line),
        cmocka_unit_test(a_cut_gzip_file_goes_on_behind_its_last_whole_line),
        cmocka_unit_test(a_long_cut_line_goes),
        cmocka_unit_test(gzip_and_its_name_must_agree),
    };
    struct CMUnitTest tests[sizeof(fixed) / sizeof(fixed[0]) + N];
    size_t n = sizeof(fixed) / sizeof(fixed[0]);

    memcpy(tests, fixed, sizeof(fixed));
    for (size_t i = 0; i < N; i++)
        tests[n + i] = (struct CMUnitTest){.name = rows[i].name,
                                           .test_func = cut_json_is_recognised,
                                           .initial_state = &rows[i]};
    return cmocka_run_group_tests_name("append", tests, set_up, tear_down);
}
