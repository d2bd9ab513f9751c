/* Files that end in the middle of a line or of their gzip stream, cut at every byte:
 * refused, unless somebody wants to be told. */
#include "fixture.h"

#include <zlib.h>

#include "trace/jsonl/jsonl.h"

#define META "{\"meta\":{\"model\":\"m\",\"block_size\":16}}"
#define ROW1                                                                           \
    "{\"id\":\"a\",\"prompt_tokens\":3,\"output_tokens\":2,\"ttft_ms\":1,\"itl_ms\":[" \
    "2]}"
#define ROW2                                                                          \
    "{\"id\":\"\\\"b}\",\"prompt_tokens\":4,\"output_tokens\":2,\"ttft_ms\":1,\"itl_" \
    "ms\":[3]}"
#define ROW3                                                                           \
    "{\"id\":\"c\",\"prompt_tokens\":5,\"output_tokens\":2,\"ttft_ms\":1,\"itl_ms\":[" \
    "4]}"
#define STEP(n)                                           \
    "{\"step\":" #n ",\"sched_ms\":" #n ",\"out_ms\":" #n \
    ".5,\"prefill\":[[\"a\",0,1,1]]}"

static size_t n_told;
static char told[256];

static void note_told(void *user, const char *line)
{
    (void)user;
    n_told++;
    snprintf(told, sizeof(told), "%s", line);
}

/* ---- readers ------------------------------------------------------------ */

/* How many requests or steps it finds. */
typedef int reader(struct vt_lines *lines, size_t *n, struct vt_err *err);

static int as_workload(struct vt_lines *lines, size_t *n, struct vt_err *err)
{
    struct vt_workload w;
    int rc = trace_read(&w, lines, err);

    *n = rc == VT_OK ? w.n : 0;
    if (rc == VT_OK)
        vt_workload_free(&w);
    return rc;
}

static int as_records(struct vt_lines *lines, size_t *n, struct vt_err *err)
{
    struct vt_records r;
    int rc = records_read(&r, lines, err);

    *n = rc == VT_OK ? r.n : 0;
    if (rc == VT_OK)
        vt_records_free(&r);
    return rc;
}

static int as_steps(struct vt_lines *lines, size_t *n, struct vt_err *err)
{
    struct vt_steps s;
    int rc = trace_read_steps(&s, lines, err);

    *n = rc == VT_OK ? s.n : 0;
    if (rc == VT_OK)
        vt_steps_free(&s);
    return rc;
}

static const struct row {
    const char *name;
    const char *lines[4];
    size_t meta; /* lines that are no rows */
    reader *read;
} rows[] = {
    {"a trace as a workload", {META, ROW1, ROW2, ROW3}, 1, as_workload},
    {"a trace as records", {META, ROW1, ROW2, ROW3}, 1, as_records},
    {"a trace without a meta line", {ROW1, ROW2, ROW3}, 0, as_workload},
    {"a step log", {STEP(1), STEP(2), STEP(3), STEP(4)}, 0, as_steps},
};

static int read_bytes(const struct row *r, const struct vt_buf *b, size_t len,
                      size_t *n, struct vt_err *err)
{
    struct vt_lines *lines;
    int rc = vt_lines_from(&lines, "t", b->data, len, err);

    n_told = 0;
    assert_int_equal(rc, VT_OK);
    rc = r->read(lines, n, err);
    vt_lines_close(lines);
    return rc;
}

/* ---- plain files -------------------------------------------------------- */

static size_t make_text(const struct row *r, struct vt_buf *text)
{
    size_t n = 0;

    for (; n < VT_COUNT(r->lines) && r->lines[n]; n++)
        vt_buf_printf(text, "%s\n", r->lines[n]);
    return n;
}

static void a_plain_file_cut_anywhere_in_its_last_two_lines(void **state)
{
    const struct row *r = *state;
    struct vt_buf text = {0};
    struct vt_err err;
    size_t lines = make_text(r, &text), n;
    size_t last = text.len - strlen(r->lines[lines - 1]) - 1;
    size_t from = last - strlen(r->lines[lines - 2]) - 1;

    for (size_t len = from; len <= text.len; len++) {
        size_t whole = len + 1 >= text.len ? lines
                       : len + 1 >= last   ? lines - 1
                                           : lines - 2;
        bool cut = len != from && len + 1 != last && len != last && len + 1 < text.len;

        vt_take_cut_files(NULL, NULL);
        assert_int_equal(read_bytes(r, &text, len, &n, &err), cut ? VT_EINPUT : VT_OK);
        if (cut)
            assert_non_null(
                strstr(err.msg, ": the file ends in the middle of this line"));
        vt_take_cut_files(note_told, NULL);
        assert_int_equal(read_bytes(r, &text, len, &n, &err), VT_OK);
        assert_int_equal(n, whole - r->meta);
        assert_int_equal(n_told, cut);
        if (cut) {
            char want[128];

            snprintf(want, sizeof(want),
                     "t: line %zu is cut and left out; %zu before it %s read",
                     whole + 1, whole, whole == 1 ? "is" : "are");
            assert_string_equal(told, want);
        }
    }
    vt_take_cut_files(NULL, NULL);
    vt_buf_free(&text);
}

/* ---- gzip --------------------------------------------------------------- */

static void pack(struct vt_buf *out, const struct vt_buf *text, bool by_line)
{
    unsigned char room[4096];
    z_stream z = {0};

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    for (size_t at = 0; at < text->len;) {
        size_t len = by_line ? strcspn(text->data + at, "\n") + 1 : text->len;

        z.next_in = (unsigned char *)text->data + at;
        z.avail_in = (uInt)len;
        at += len;
        z.next_out = room;
        z.avail_out = sizeof(room);
        deflate(&z, at < text->len ? Z_SYNC_FLUSH : Z_FINISH);
        vt_buf_add(out, room, sizeof(room) - z.avail_out);
    }
    deflateEnd(&z);
}

/* Wherever it is cut, the whole lines that can be unpacked are read. */
static void a_gzip_file_cut_anywhere(void **state)
{
    const struct row *r = *state;
    struct vt_buf text = {0}, gz = {0};
    struct vt_err err;
    size_t lines = make_text(r, &text), n, most = 0;

    for (int by_line = 0; by_line <= 1; by_line++) {
        vt_buf_clear(&gz);
        pack(&gz, &text, by_line);
        most = 0;
        for (size_t len = 2; len < gz.len; len++) {
            int rc;

            vt_take_cut_files(NULL, NULL);
            assert_int_equal(read_bytes(r, &gz, len, &n, &err), VT_EINPUT);
            vt_take_cut_files(note_told, NULL);
            rc = read_bytes(r, &gz, len, &n, &err);
            if (rc != VT_OK) { /* nothing is there yet */
                assert_int_equal(most, 0);
                continue;
            }
            assert_true(n >= most);
            assert_int_equal(n_told, 1);
            most = n;
        }
        assert_int_equal(most, lines - r->meta);
        assert_non_null(strstr(told, "t: the gzip stream has no end: "));
        vt_take_cut_files(NULL, NULL);
        assert_int_equal(read_bytes(r, &gz, gz.len, &n, &err), VT_OK);
    }
    vt_buf_free(&text);
    vt_buf_free(&gz);
}

/* ---- what is not cut ---------------------------------------------------- */

static void a_bad_line_at_the_end_is_no_cut_one(void **state)
{
    static const char *const text[] = {
        ROW1 "\n{\"prompt_tokens\":nope}", /* without a line end, but not cut */
        ROW1 "\n{\"prompt_tokens\":4\n",   /* with one */
        ROW1 "\n{\"prompt_to\n" ROW2 "\n", /* in the middle */
        "{\"prompt_tokens\":4",            /* nothing would be left */
    };

    (void)state;
    vt_take_cut_files(note_told, NULL);
    for (size_t i = 0; i < VT_COUNT(text); i++) {
        struct vt_buf b = {0};
        struct vt_err err;
        size_t n;

        vt_buf_str(&b, text[i]);
        assert_int_equal(read_bytes(&rows[0], &b, b.len, &n, &err), VT_EINPUT);
        assert_int_equal(n_told, 0);
        vt_buf_free(&b);
    }
    vt_take_cut_files(NULL, NULL);
}

int main(void)
{
    enum { N = sizeof(rows) / sizeof(rows[0]) };
    struct CMUnitTest tests[2 * N + 1];

    for (size_t i = 0; i < N; i++) {
        tests[2 * i] = (struct CMUnitTest){
            .name = rows[i].name,
            .test_func = a_plain_file_cut_anywhere_in_its_last_two_lines,
            .initial_state = (void *)(uintptr_t)&rows[i]};
        tests[2 * i + 1] =
            (struct CMUnitTest){.name = rows[i].name,
                                .test_func = a_gzip_file_cut_anywhere,
                                .initial_state = (void *)(uintptr_t)&rows[i]};
    }
    tests[2 * N] =
        (struct CMUnitTest)cmocka_unit_test(a_bad_line_at_the_end_is_no_cut_one);
    return cmocka_run_group_tests_name("cut", tests, NULL, NULL);
}
