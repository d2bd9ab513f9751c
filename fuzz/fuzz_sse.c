/* fuzz_sse.c - whatever a frontend sends, its stream is read or refused in one line. */
#include "conform/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_chunk(void *user, const struct sse_chunk *c, struct vt_err *err)
{
    uint64_t *sum = user;

    (void)err;
    for (uint32_t i = 0; i < c->n_tokens; i++)
        *sum += c->token[i];
    *sum += c->finish ? strlen(c->finish) : 0;
    return VT_OK;
}

/* The first byte says in how large pieces the rest comes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t sum = 0;
    struct sse s = {.on_chunk = on_chunk, .user = &sum};
    size_t step = size > 0 && data[0] > 0 ? data[0] : 1;
    struct vt_err err = {0};
    int rc = VT_OK;

    for (size_t i = 1; i < size && rc == VT_OK; i += step)
        rc = sse_feed(&s, (const char *)data + i, size - i < step ? size - i : step,
                      &err);
    if (rc != VT_OK && (rc != VT_EIO || !err.msg[0]))
        abort();
    sse_end(&s);
    return 0;
}
