#include "testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static char dir[] = "/tmp/vt_test_files.XXXXXX";

static const char *in_dir(const char *name)
{
    static char path[4][256];
    static unsigned turn;
    char *p = path[turn++ % 4];

    snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
    return p;
}

static size_t count_files(void)
{
    DIR *d = opendir(dir);
    size_t n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void write_file(const char *path, const void *bytes, size_t len)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

/* One gzip member, appended. */
static void add_gzip(struct vt_buf *out, const char *text, size_t len)
{
    unsigned char room[4096];
    z_stream z = {0};
    char *copy = malloc(len + 1); /* zlib's input pointer is not const */
    int rc;

    assert_non_null(copy);
    memcpy(copy, text, len);
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)copy;
    z.avail_in = (uInt)len;
    do {
        z.next_out = room;
        z.avail_out = sizeof(room);
        rc = deflate(&z, Z_FINISH);
        vt_buf_add(out, room, sizeof(room) - z.avail_out);
    } while (rc == Z_OK);
    assert_int_equal(rc, Z_STREAM_END);
    deflateEnd(&z);
    free(copy);
}

/* Lines joined by '|', an incomplete last one marked by '~'. */
static int read_all(struct vt_lines *l, struct vt_buf *out, struct vt_err *err)
{
    for (;;) {
        bool complete;
        size_t len;
        char *line;
        int rc = vt_lines_next(l, &line, &len, &complete, err);

        if (rc != VT_OK || !line)
            return rc;
        assert_int_equal(strlen(line), len);
        vt_buf_add(out, line, len);
        vt_buf_char(out, complete ? '|' : '~');
    }
}

static struct row {
    const char *name;
    const char *text;
    size_t len;
    const char *want;
    const char *error;
} rows[] = {
    {"empty file", "", 0, "", NULL},
    {"lines", "a\nbc\n", 5, "a|bc|", NULL},
    {"last line without newline", "a\nb", 3, "a|b~", NULL},
    {"empty lines", "\n\nx\n", 4, "||x|", NULL},
    {"CR LF", "a\r\nb\r\n", 6, "a|b|", NULL},
    {"CR alone stays", "a\rb\r", 4, "a\rb\r~", NULL},
    {"NUL byte", "ok\na\0b\nc\n", 9, "ok|", "NAME: line 2: NUL byte"},
    {"one byte of gzip magic is text", "\x1f", 1, "\x1f~", NULL},
    {"gzip magic and nothing else", "\x1f\x8b", 2, "",
     "NAME: line 1: truncated gzip data"},
    {"gzip magic and garbage", "\x1f\x8b\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12,
     "", "NAME: line 1: damaged gzip data"},
};

static void assert_reads(struct vt_lines *l, const char *name, const struct row *r)
{
    struct vt_buf got = {0};
    struct vt_err err = {0};
    char want[512] = "";
    int rc;

    vt_buf_str(&got, "");
    rc = read_all(l, &got, &err);
    if (r->error)
        snprintf(want, sizeof(want), "%s%s", name, r->error + strlen("NAME"));
    assert_string_equal(got.data, r->want);
    assert_string_equal(err.msg, want);
    assert_int_equal(rc, r->error ? VT_EINPUT : VT_OK);
    assert_string_equal(vt_lines_name(l), name);
    /* A failed reader fails again in the same words, a finished one stays so. */
    assert_int_equal(read_all(l, &got, &err), rc);
    assert_string_equal(err.msg, want);
    vt_buf_free(&got);
    vt_lines_close(l);
}

static void reads_lines(void **state)
{
    const struct row *r = *state;
    const char *path = in_dir("lines.txt");
    struct vt_lines *l;

    assert_int_equal(vt_lines_from(&l, "some name", r->text, r->len, NULL), VT_OK);
    assert_reads(l, "some name", r);
    write_file(path, r->text, r->len);
    assert_int_equal(vt_lines_open(&l, path, NULL), VT_OK);
    assert_reads(l, path, r);
    unlink(path);
}

static void opening_tells_what_is_wrong(void **state)
{
    const struct vt_node *root;
    struct vt_arena arena = {0};
    struct vt_buf b = {0};
    struct vt_lines *l;
    struct vt_err err;
    char want[300];

    (void)state;
    snprintf(want, sizeof(want), "%s/none: No such file or directory", dir);
    assert_int_equal(vt_lines_open(&l, in_dir("none"), &err), VT_EINPUT);
    assert_string_equal(err.msg, want);
    assert_null(l);
    assert_int_equal(vt_read_file(in_dir("none"), 10, &b, &err), VT_EINPUT);
    assert_string_equal(err.msg, want);
    assert_int_equal(vt_tree_load(&arena, in_dir("none"), &root, &err), VT_EINPUT);
    assert_string_equal(err.msg, want);
    snprintf(want, sizeof(want), "%s: Is a directory", dir);
    assert_int_equal(vt_lines_open(&l, dir, &err), VT_EINPUT);
    assert_string_equal(err.msg, want);
    assert_int_equal(vt_read_file(dir, 10, &b, &err), VT_EINPUT);
    assert_string_equal(err.msg, want);
}

static void make_text(struct vt_buf *b)
{
    struct vt_rng r;

    vt_rng_init(&r, 1, "text");
    for (int i = 0; i < 300; i++)
        vt_buf_printf(b, "line %d %llx\n", i, (unsigned long long)vt_rng_u64(&r));
}

static size_t count_char(const struct vt_buf *b, char c)
{
    size_t n = 0;

    for (size_t i = 0; i < b->len; i++)
        n += b->data[i] == c;
    return n;
}

/* Bytes that come out of the first len bytes of a gzip member. */
static size_t unpacked(const struct vt_buf *gz, size_t len)
{
    unsigned char room[32768];
    z_stream z = {0};
    size_t sum;

    assert_int_equal(inflateInit2(&z, 31), Z_OK);
    z.next_in = (unsigned char *)gz->data;
    z.avail_in = (uInt)len;
    z.next_out = room;
    z.avail_out = sizeof(room);
    inflate(&z, Z_SYNC_FLUSH);
    sum = sizeof(room) - z.avail_out;
    assert_true(sum < sizeof(room));
    inflateEnd(&z);
    return sum;
}

/* Every line before the cut arrives. Between two lines that is all; in the middle of
 * one the message names it. Returns whether the cut was accepted. */
static bool assert_cut(const struct vt_buf *gz, size_t len, const struct vt_buf *text)
{
    size_t sum = unpacked(gz, len);
    bool whole = sum > 0 && text->data[sum - 1] == '\n';
    struct vt_buf got = {0};
    struct vt_lines *l;
    struct vt_err err = {0};
    char want[64];

    assert_int_equal(vt_lines_from(&l, "cut", gz->data, len, &err), VT_OK);
    vt_buf_str(&got, "");
    assert_int_equal(read_all(l, &got, &err), whole ? VT_OK : VT_EINPUT);
    for (size_t i = 0; i < got.len; i++)
        assert_int_equal(got.data[i] == '|' ? '\n' : got.data[i], text->data[i]);
    assert_true(vt_lines_cut(l));
    if (whole) {
        assert_int_equal(got.len, sum);
    } else {
        snprintf(want, sizeof(want), "cut: line %zu: truncated gzip data",
                 count_char(&got, '|') + 1);
        assert_string_equal(err.msg, want);
    }
    vt_lines_close(l);
    vt_buf_free(&got);
    return whole;
}

/* As a recorder writes: every line can be read as soon as it is in the file. */
static void add_flushed(struct vt_buf *gz, const struct vt_buf *text, int lines)
{
    unsigned char room[4096];
    z_stream z = {0};
    char *at = text->data;

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    for (int i = 0; i < lines; i++) {
        size_t len = strcspn(at, "\n") + 1;

        z.next_in = (unsigned char *)at;
        z.avail_in = (uInt)len;
        z.next_out = room;
        z.avail_out = sizeof(room);
        assert_int_equal(deflate(&z, Z_SYNC_FLUSH), Z_OK);
        assert_true(z.avail_in == 0 && z.avail_out > 0);
        vt_buf_add(gz, room, sizeof(room) - z.avail_out);
        at += len;
    }
    deflateEnd(&z);
}

static void gzip_cut_between_lines_is_read_and_told(void **state)
{
    struct vt_buf text = {0}, gz = {0};
    struct vt_lines *l;
    struct vt_err err;
    size_t accepted = 0;

    (void)state;
    make_text(&text);
    add_flushed(&gz, &text, 20);
    for (size_t len = 2; len <= gz.len; len++)
        accepted += assert_cut(&gz, len, &text);
    assert_true(accepted >= 20);
    assert_true(assert_cut(&gz, gz.len, &text));
    vt_buf_clear(&gz);
    add_gzip(&gz, "a\n", 2);
    vt_buf_clear(&text);
    assert_int_equal(vt_lines_from(&l, "whole", gz.data, gz.len, &err), VT_OK);
    assert_int_equal(read_all(l, &text, &err), VT_OK);
    assert_false(vt_lines_cut(l));
    vt_lines_close(l);
    vt_buf_free(&text);
    vt_buf_free(&gz);
}

static void gzip_cut_anywhere_is_a_clean_error(void **state)
{
    struct vt_buf text = {0}, gz = {0};

    (void)state;
    make_text(&text);
    add_gzip(&gz, text.data, text.len);
    for (size_t len = 2; len < gz.len; len += 7)
        assert_cut(&gz, len, &text);
    assert_cut(&gz, gz.len - 1, &text);
    vt_buf_free(&text);
    vt_buf_free(&gz);
}

static void gzip_damaged_anywhere_is_never_accepted(void **state)
{
    struct vt_buf text = {0}, gz = {0};

    (void)state;
    make_text(&text);
    add_gzip(&gz, text.data, text.len);
    for (size_t at = 10; at < gz.len; at += 7) { /* behind the header */
        struct vt_buf got = {0};
        struct vt_lines *l;
        struct vt_err err;

        gz.data[at] ^= 0x10;
        assert_int_equal(vt_lines_from(&l, "bad", gz.data, gz.len, &err), VT_OK);
        assert_int_equal(read_all(l, &got, &err), VT_EINPUT);
        assert_memory_equal(err.msg, "bad: line ", 10);
        gz.data[at] ^= 0x10;
        vt_lines_close(l);
        vt_buf_free(&got);
    }
    vt_buf_free(&text);
    vt_buf_free(&gz);
}

static void gzip_members_follow_each_other(void **state)
{
    struct vt_buf gz = {0}, got = {0};
    struct vt_lines *l;
    struct vt_err err;

    (void)state;
    assert_int_equal(vt_lines_from(&l, "x", NULL, 0, NULL), VT_OK);
    assert_int_equal(read_all(l, &got, NULL), VT_OK);
    vt_lines_close(l);
    add_gzip(&gz, "a\nb", 3);
    add_gzip(&gz, "", 0);
    add_gzip(&gz, "c\nd\n", 4);
    assert_int_equal(vt_lines_from(&l, "x", gz.data, gz.len, NULL), VT_OK);
    assert_int_equal(read_all(l, &got, NULL), VT_OK);
    assert_string_equal(got.data, "a|bc|d|");
    assert_int_equal(vt_lines_number(l), 3);
    vt_lines_close(l);
    vt_buf_clear(&got);
    vt_buf_str(&gz, "garbage");
    assert_int_equal(vt_lines_from(&l, "x", gz.data, gz.len, NULL), VT_OK);
    assert_int_equal(read_all(l, &got, &err), VT_EINPUT);
    assert_string_equal(err.msg, "x: line 4: damaged gzip data");
    vt_lines_close(l);
    vt_buf_free(&got);
    vt_buf_free(&gz);
}

/* 257 MiB of 'a' are a quarter of a MiB as gzip. */
static void lines_are_bounded(void **state)
{
    size_t mib = (size_t)1 << 20;
    char *as = malloc(mib), *line;
    struct vt_buf gz = {0};
    struct vt_lines *l;
    struct vt_err err;
    size_t len;

    (void)state;
    assert_non_null(as);
    memset(as, 'a', mib);
    for (int i = 0; i < 257; i++)
        add_gzip(&gz, as, mib);
    assert_int_equal(vt_lines_from(&l, "long", gz.data, gz.len, NULL), VT_OK);
    assert_int_equal(vt_lines_next(l, &line, &len, NULL, &err), VT_EINPUT);
    assert_string_equal(err.msg, "long: line 1: longer than 268435456 bytes");
    vt_lines_close(l);
    vt_buf_free(&gz);
    free(as);
}

static void lines_longer_than_a_read_are_whole(void **state)
{
    struct vt_buf text = {0};
    struct vt_lines *l;
    size_t len;
    char *line;

    (void)state;
    for (int i = 0; i < 200000; i++)
        vt_buf_str(&text, "0123456");
    vt_buf_str(&text, "\nnext\n");
    write_file(in_dir("long"), text.data, text.len);
    assert_int_equal(vt_lines_open(&l, in_dir("long"), NULL), VT_OK);
    assert_int_equal(vt_lines_next(l, &line, &len, NULL, NULL), VT_OK);
    assert_int_equal(len, 1400000);
    assert_int_equal(vt_lines_next(l, &line, &len, NULL, NULL), VT_OK);
    assert_string_equal(line, "next");
    vt_lines_close(l);
    vt_buf_free(&text);
    unlink(in_dir("long"));
}

static void whole_files_have_a_ceiling(void **state)
{
    struct vt_buf b = {0};
    struct vt_err err;
    char want[300];

    (void)state;
    write_file(in_dir("f"), "12345", 5);
    assert_int_equal(vt_read_file(in_dir("f"), 5, &b, &err), VT_OK);
    assert_string_equal(b.data, "12345");
    assert_int_equal(vt_read_file(in_dir("f"), 4, &b, &err), VT_EINPUT);
    snprintf(want, sizeof(want), "%s/f: longer than 4 bytes", dir);
    assert_string_equal(err.msg, want);
    write_file(in_dir("f"), "", 0);
    assert_int_equal(vt_read_file(in_dir("f"), 0, &b, &err), VT_OK);
    assert_string_equal(b.data, "");
    assert_int_equal(b.max, 0);
    vt_buf_free(&b);
    unlink(in_dir("f"));
}

static void trees_load_by_their_first_byte(void **state)
{
    static const struct {
        const char *text, *want;
    } files[] = {
        {" \n{\"a\": 1}", "{a:1}"},          {"[1, 2]", "[1 2]"}, {"a: 1", "{a:1}"},
        {"\xef\xbb\xbf{\"a\": 1}", "{a:1}"}, {"", "null"},
    };
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_err err;
    char want[300];

    (void)state;
    for (size_t i = 0; i < VT_COUNT(files); i++) {
        write_file(in_dir("tree"), files[i].text, strlen(files[i].text));
        assert_int_equal(vt_tree_load(&arena, in_dir("tree"), &root, &err), VT_OK);
        assert_dump(root, files[i].want);
    }
    write_file(in_dir("tree"), "a: 1\na: 2\n", 10);
    assert_int_equal(vt_tree_load(&arena, in_dir("tree"), &root, &err), VT_EINPUT);
    snprintf(want, sizeof(want), "%s/tree: line 2: key 'a' appears twice", dir);
    assert_string_equal(err.msg, want);
    vt_arena_free(&arena);
    unlink(in_dir("tree"));
}

static void csv_fields_are_split(void **state)
{
    static const struct {
        const char *line;
        int n;
        const char *want; /* joined by '|' */
    } cases[] = {
        {"", 1, ""},
        {"a,b,c", 3, "a|b|c"},
        {",,", 3, "||"},
        {"\"a,b\",c", 2, "a,b|c"},
        {"\"say \"\"hi\"\"\",x", 2, "say \"hi\"|x"},
        {"\"\",\"\"", 2, "|"},
        {"a\"b,c", 2, "a\"b|c"},
        {"a,b,c,d,e", -1, NULL},
        {"\"open", -1, NULL},
        {"\"a\"b", -1, NULL},
        {"a,\"", -1, NULL},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(cases); i++) {
        char *line = strdup(cases[i].line), *field[4];
        struct vt_buf b = {0};
        int n = vt_csv_split(line, field, 4);

        assert_int_equal(n, cases[i].n);
        for (int k = 0; k < n; k++)
            vt_buf_printf(&b, "%s%s", k ? "|" : "", field[k]);
        if (n > 0)
            assert_string_equal(b.data, cases[i].want);
        vt_buf_free(&b);
        free(line);
    }
}

static void write_out(const char *path, const struct vt_buf *text, size_t step)
{
    struct vt_out *o;
    struct vt_err err;

    assert_int_equal(vt_out_open(&o, path, &err), VT_OK);
    for (size_t at = 0; at < text->len; at += step) {
        size_t n = text->len - at < step ? text->len - at : step;

        assert_int_equal(vt_out_write(o, text->data + at, n, &err), VT_OK);
    }
    assert_int_equal(vt_out_commit(o, &err), VT_OK);
}

static void committed_files_hold_what_was_written(void **state)
{
    static const char *const names[] = {"plain.txt", "packed.txt.gz"};
    static const size_t steps[] = {13, 4096, 1 << 20};
    struct vt_buf text = {0}, back = {0};

    (void)state;
    for (int i = 0; i < 100; i++)
        make_text(&text);
    for (size_t i = 0; i < VT_COUNT(names); i++) {
        for (size_t k = 0; k < VT_COUNT(steps); k++) {
            write_out(in_dir(names[i]), &text, steps[k]);
            assert_int_equal(vt_read_file(in_dir(names[i]), text.len, &back, NULL),
                             VT_OK);
            assert_int_equal(back.len, text.len);
            assert_memory_equal(back.data, text.data, text.len);
        }
        assert_int_equal(count_files(), 1);
        unlink(in_dir(names[i]));
    }
    vt_buf_free(&text);
    vt_buf_free(&back);
}

static void an_empty_gzip_is_still_gzip(void **state)
{
    struct vt_buf none = {0}, back = {0};
    struct stat st;

    (void)state;
    write_out(in_dir("e.gz"), &none, 1);
    assert_int_equal(stat(in_dir("e.gz"), &st), 0);
    assert_true(st.st_size > 0);
    assert_int_equal(vt_read_file(in_dir("e.gz"), 0, &back, NULL), VT_OK);
    assert_int_equal(back.len, 0);
    vt_buf_free(&back);
    unlink(in_dir("e.gz"));
}

static void abandoned_files_leave_nothing(void **state)
{
    struct vt_buf back = {0};
    struct vt_out *o;
    struct vt_err err;

    (void)state;
    write_file(in_dir("old"), "old", 3);
    assert_int_equal(vt_out_open(&o, in_dir("old"), &err), VT_OK);
    assert_int_equal(vt_out_write(o, "new", 3, &err), VT_OK);
    assert_int_equal(count_files(), 2);
    vt_out_abandon(o);
    assert_int_equal(count_files(), 1);
    assert_int_equal(vt_read_file(in_dir("old"), 10, &back, &err), VT_OK);
    assert_string_equal(back.data, "old");
    vt_buf_free(&back);
    unlink(in_dir("old"));
    vt_out_abandon(NULL);
}

/* Two writers of one file would mix their bytes; the second is refused. */
static void a_second_writer_is_refused(void **state)
{
    struct vt_out *first, *second;
    struct vt_err err;
    char want[300];

    (void)state;
    assert_int_equal(vt_out_open(&first, in_dir("f"), &err), VT_OK);
    assert_int_equal(vt_out_open(&second, in_dir("f"), &err), VT_EINPUT);
    snprintf(want, sizeof(want), "%s/f: cannot write: File exists", dir);
    assert_string_equal(err.msg, want);
    assert_null(second);
    vt_out_abandon(first);
    assert_int_equal(count_files(), 0);
}

static void writing_where_one_cannot_is_told(void **state)
{
    struct vt_out *o;
    struct vt_err err;
    char want[300];

    (void)state;
    assert_int_equal(vt_out_open(&o, in_dir("no/such/file"), &err), VT_EINPUT);
    snprintf(want, sizeof(want),
             "%s/no/such/file: cannot write: No such file or directory", dir);
    assert_string_equal(err.msg, want);
    assert_int_equal(vt_out_open(&o, dir, &err), VT_EINPUT);
    snprintf(want, sizeof(want), "%s: Is a directory", dir);
    assert_string_equal(err.msg, want);
}

static void a_lost_directory_fails_the_commit(void **state)
{
    struct vt_out *o;
    struct vt_err err;
    char temp[64];

    (void)state;
    assert_int_equal(mkdir(in_dir("d"), 0777), 0);
    assert_int_equal(vt_out_open(&o, in_dir("d/f"), &err), VT_OK);
    assert_int_equal(rename(in_dir("d"), in_dir("moved")), 0);
    assert_int_equal(vt_out_commit(o, &err), VT_EIO);
    assert_non_null(strstr(err.msg, "d/f: No such file or directory"));
    /* The temporary file went with its directory, out of reach. */
    snprintf(temp, sizeof(temp), "moved/f.tmp.%ld", (long)getpid());
    assert_int_equal(unlink(in_dir(temp)), 0);
}

static void a_full_device_fails_the_write(void **state)
{
    struct vt_out *o;
    struct vt_err err;

    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_int_equal(vt_out_open(&o, "/dev/full", &err), VT_OK);
    assert_int_equal(vt_out_write(o, "x", 1, &err), VT_OK);
    assert_int_equal(vt_out_commit(o, &err), VT_EIO);
    assert_string_equal(err.msg, "/dev/full: No space left on device");
    assert_int_equal(access("/dev/full", W_OK), 0);
}

static void a_link_keeps_pointing(void **state)
{
    struct vt_buf text = {0};
    struct stat st;

    (void)state;
    write_file(in_dir("real"), "old", 3);
    assert_int_equal(symlink("real", in_dir("link")), 0);
    vt_buf_str(&text, "new!");
    write_out(in_dir("link"), &text, 1);
    assert_int_equal(lstat(in_dir("link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(in_dir("real"), &st), 0);
    assert_int_equal(st.st_size, 4);
    vt_buf_free(&text);
    unlink(in_dir("link"));
    unlink(in_dir("real"));
}

static void directories_are_made_and_named(void **state)
{
    char *first;
    struct vt_err err;
    char want[300];

    (void)state;
    assert_int_equal(vt_make_dirs(in_dir("a/b//c/"), &first, &err), VT_OK);
    assert_string_equal(first, in_dir("a"));
    free(first);
    assert_int_equal(access(in_dir("a/b/c"), F_OK), 0);
    assert_int_equal(vt_make_dirs(in_dir("a/b"), &first, &err), VT_OK);
    assert_null(first);
    assert_int_equal(vt_make_dirs("/", NULL, &err), VT_OK);
    assert_int_equal(vt_make_dirs("", NULL, &err), VT_EINPUT);
    write_file(in_dir("a/file"), "", 0);
    assert_int_equal(vt_make_dirs(in_dir("a/file/x"), &first, &err), VT_EINPUT);
    snprintf(want, sizeof(want), "%s/a/file/x: Not a directory", dir);
    assert_string_equal(err.msg, want);
}

/* A name too long for the file system makes the last step fail. */
static void half_made_directories_are_taken_back(void **state)
{
    struct vt_buf path = {0};
    struct vt_err err;
    char *first;

    (void)state;
    vt_buf_printf(&path, "%s/x/y/%0300d", dir, 0);
    assert_int_equal(vt_make_dirs(path.data, &first, &err), VT_EINPUT);
    assert_null(first);
    assert_int_equal(access(in_dir("x"), F_OK), -1);
    vt_buf_free(&path);
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

/* Each test removes its files; what the directory tests made goes here. */
static int remove_dir(void **state)
{
    static const char *const left[] = {"a/file", "a/b/c", "a/b", "a", "moved", ""};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(left); i++)
        remove(in_dir(left[i]));
    return access(dir, F_OK) == 0;
}

int main(void)
{
    static const struct CMUnitTest more[] = {
        cmocka_unit_test(opening_tells_what_is_wrong),
        cmocka_unit_test(gzip_cut_anywhere_is_a_clean_error),
        cmocka_unit_test(gzip_cut_between_lines_is_read_and_told),
        cmocka_unit_test(gzip_damaged_anywhere_is_never_accepted),
        cmocka_unit_test(gzip_members_follow_each_other),
        cmocka_unit_test(lines_are_bounded),
        cmocka_unit_test(lines_longer_than_a_read_are_whole),
        cmocka_unit_test(whole_files_have_a_ceiling),
        cmocka_unit_test(trees_load_by_their_first_byte),
        cmocka_unit_test(csv_fields_are_split),
        cmocka_unit_test(committed_files_hold_what_was_written),
        cmocka_unit_test(an_empty_gzip_is_still_gzip),
        cmocka_unit_test(abandoned_files_leave_nothing),
        cmocka_unit_test(a_second_writer_is_refused),
        cmocka_unit_test(writing_where_one_cannot_is_told),
        cmocka_unit_test(a_full_device_fails_the_write),
        cmocka_unit_test(a_link_keeps_pointing),
        cmocka_unit_test(half_made_directories_are_taken_back),
        cmocka_unit_test(a_lost_directory_fails_the_commit),
        cmocka_unit_test(directories_are_made_and_named),
    };
    struct CMUnitTest tests[VT_COUNT(rows) + VT_COUNT(more)];

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = reads_lines, .initial_state = &rows[i]};
    memcpy(tests + VT_COUNT(rows), more, sizeof(more));
    return cmocka_run_group_tests_name("files", tests, make_dir, remove_dir);
}
