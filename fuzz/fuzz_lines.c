/* fuzz_lines.c - lines of any bytes: plain text gives back its bytes, packed or not,
 * and broken gzip gives a clean error. */
#include <zlib.h>

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(x) ((x) ? (void)0 : fail(#x, __LINE__))

static _Noreturn void fail(const char *what, int line)
{
    fprintf(stderr, "fuzz_lines.c:%d: %s\n", line, what);
    abort();
}

/* The lines with their newlines put back (CR LF becomes LF), and the message. */
static int collect(const void *bytes, size_t len, struct vt_buf *out,
                   struct vt_err *err)
{
    struct vt_lines *l;
    uint32_t n = 0;
    int rc = vt_lines_from(&l, "f", bytes, len, err);

    REQUIRE(rc == VT_OK);
    for (;;) {
        bool complete;
        char *line;
        size_t n_line;

        rc = vt_lines_next(l, &line, &n_line, &complete, err);
        if (rc != VT_OK || !line)
            break;
        REQUIRE(strlen(line) == n_line && !memchr(line, '\n', n_line));
        REQUIRE(vt_lines_number(l) == ++n);
        vt_buf_add(out, line, n_line);
        if (complete)
            vt_buf_char(out, '\n');
    }
    if (rc != VT_OK)
        REQUIRE(rc == VT_EINPUT && strncmp(err->msg, "f: line ", 8) == 0);
    vt_lines_close(l);
    return rc;
}

static void expect_text(const uint8_t *data, size_t size, const struct vt_buf *got)
{
    size_t at = 0;

    for (size_t i = 0; i < size; i++) {
        if (data[i] == '\r' && i + 1 < size && data[i + 1] == '\n')
            continue;
        REQUIRE(at < got->len && (uint8_t)got->data[at] == data[i]);
        at++;
    }
    REQUIRE(at == got->len);
}

static size_t pack(uint8_t *data, size_t size, uint8_t *out, size_t cap)
{
    z_stream z = {0};

    REQUIRE(deflateInit2(&z, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_in = data;
    z.avail_in = (uInt)size;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
    deflateEnd(&z);
    return cap - z.avail_out;
}

/* Packed text reads the same and fails the same as plain text. */
static void compare_packed(const uint8_t *data, size_t size, int rc,
                           const struct vt_buf *plain, const struct vt_err *plain_err)
{
    struct vt_buf got = {0};
    struct vt_err err = {0};
    size_t cap = size + 1024;
    uint8_t *copy = malloc(size + 1), *packed = malloc(cap);

    REQUIRE(copy && packed);
    if (size > 0)
        memcpy(copy, data, size);
    REQUIRE(collect(packed, pack(copy, size, packed, cap), &got, &err) == rc);
    REQUIRE(got.len == plain->len && strcmp(err.msg, plain_err->msg) == 0);
    if (got.len > 0)
        REQUIRE(memcmp(got.data, plain->data, got.len) == 0);
    vt_buf_free(&got);
    free(packed);
    free(copy);
}

static void split(const uint8_t *data, size_t size)
{
    char *line = malloc(size + 1), *field[16];
    int n;

    REQUIRE(line);
    if (size > 0)
        memcpy(line, data, size);
    line[size] = '\0';
    n = vt_csv_split(line, field, 16);
    REQUIRE(n == -1 || (n >= 1 && n <= 16));
    for (int i = 0; i < n; i++)
        REQUIRE(field[i] >= line && field[i] + strlen(field[i]) <= line + size);
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vt_buf got = {0};
    struct vt_err err = {0};
    int rc = collect(data, size, &got, &err);
    bool gzip = size >= 2 && data[0] == 0x1f && data[1] == 0x8b;

    if (!gzip && rc == VT_OK)
        expect_text(data, size, &got);
    if (!gzip && size < 65536)
        compare_packed(data, size, rc, &got, &err);
    split(data, size);
    vt_buf_free(&got);
    return 0;
}
