/* fuzz_messages.c - every reader of engine-core messages. The first byte picks the
 * message; what is accepted is written and read again, and must not have changed. */
#include "wire/codec/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(x) ((x) ? (void)0 : fail(#x, __LINE__))

static _Noreturn void fail(const char *what, int line)
{
    fprintf(stderr, "fuzz_messages.c:%d: %s\n", line, what);
    abort();
}

struct round { /* what a reader accepted, written twice */
    struct vt_arena arena;
    struct vt_buf first, second;
    struct vt_err err;
};

static void same(struct round *r)
{
    REQUIRE(!r->first.failed && !r->second.failed);
    REQUIRE(r->first.len == r->second.len);
    REQUIRE(memcmp(r->first.data, r->second.data, r->first.len) == 0);
}

static int hello(struct round *r, const uint8_t *data, size_t size)
{
    struct wire_hello h;
    int rc = wire_hello_read(&h, data, size, &r->err);

    if (rc != VT_OK)
        return rc;
    wire_hello_write(&r->first, &h);
    REQUIRE(wire_hello_read(&h, r->first.data, r->first.len, &r->err) == VT_OK);
    wire_hello_write(&r->second, &h);
    same(r);
    return rc;
}

static int init(struct round *r, const uint8_t *data, size_t size)
{
    struct wire_init w;
    int rc = wire_init_read(&w, &r->arena, data, size, &r->err);

    if (rc != VT_OK)
        return rc;
    wire_init_write(&r->first, &w);
    REQUIRE(wire_init_read(&w, &r->arena, r->first.data, r->first.len, &r->err) ==
            VT_OK);
    wire_init_write(&r->second, &w);
    same(r);
    return rc;
}

static int registration(struct round *r, const uint8_t *data, size_t size)
{
    struct wire_ready w;
    int rc = wire_ready_read(&w, &r->arena, data, size, &r->err);

    if (rc != VT_OK)
        return rc;
    wire_ready_write(&r->first, &w);
    REQUIRE(wire_ready_read(&w, &r->arena, r->first.data, r->first.len, &r->err) ==
            VT_OK);
    wire_ready_write(&r->second, &w);
    same(r);
    return rc;
}

static int request(struct round *r, const uint8_t *data, size_t size)
{
    struct wire_request w;
    struct wire_sampling s;
    struct wire_lora l;
    int rc = wire_request_read(&w, &r->arena, data, size, &r->err);

    if (rc != VT_OK)
        return rc;
    rc = wire_sampling_read(&s, &r->arena, w.sampling, &r->err);
    REQUIRE(rc == VT_OK || rc == VT_EINPUT);
    rc = wire_lora_read(&l, w.lora, &r->err);
    REQUIRE(rc == VT_OK || rc == VT_EINPUT);
    wire_request_write(&r->first, &w);
    REQUIRE(wire_request_read(&w, &r->arena, r->first.data, r->first.len, &r->err) ==
            VT_OK);
    wire_request_write(&r->second, &w);
    same(r);
    return VT_OK;
}

static int aborted(struct round *r, const uint8_t *data, size_t size)
{
    struct mp_span *id;
    uint32_t n;
    int rc = wire_abort_read(&id, &n, &r->arena, data, size, &r->err);

    if (rc != VT_OK)
        return rc;
    wire_abort_write(&r->first, id, n);
    REQUIRE(wire_abort_read(&id, &n, &r->arena, r->first.data, r->first.len, &r->err) ==
            VT_OK);
    wire_abort_write(&r->second, id, n);
    same(r);
    return rc;
}

static int call(struct round *r, const uint8_t *data, size_t size)
{
    struct wire_call c;
    int rc = wire_call_read(&c, data, size, &r->err);

    if (rc != VT_OK)
        return rc;
    wire_call_write(&r->first, &c);
    REQUIRE(wire_call_read(&c, r->first.data, r->first.len, &r->err) == VT_OK);
    wire_call_write(&r->second, &c);
    same(r);
    return rc;
}

static int wave(struct round *r, const uint8_t *data, size_t size)
{
    int64_t number, exclude;

    return wire_wave_read(&number, &exclude, data, size, &r->err);
}

/* A line writes what it knows; of that nothing changes any more. */
static int outputs(struct round *r, const uint8_t *data, size_t size)
{
    size_t n;
    const struct vt_wire_line *const *lines = vt_wire_lines(&n), *line;
    struct wire_outputs o;
    int rc = wire_outputs_read(&o, &r->arena, data, size, 4, &r->err);

    if (rc != VT_OK)
        return rc;
    line = lines[size % n];
    wire_outputs_write(&r->first, line, &o);
    REQUIRE(wire_outputs_read(&o, &r->arena, r->first.data, r->first.len, 4, &r->err) ==
            VT_OK);
    wire_outputs_write(&r->second, line, &o);
    same(r);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const readers[])(struct round *, const uint8_t *, size_t) = {
        request, aborted, wave, call, outputs, hello, init, registration};
    struct round r = {0};
    int rc;

    if (size == 0)
        return 0;
    rc = readers[data[0] % VT_COUNT(readers)](&r, data + 1, size - 1);
    REQUIRE(rc == VT_OK || (rc == VT_EINPUT && r.err.msg[0]));
    vt_arena_free(&r.arena);
    vt_buf_free(&r.first);
    vt_buf_free(&r.second);
    return 0;
}
