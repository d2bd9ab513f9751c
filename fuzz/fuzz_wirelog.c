/* fuzz_wirelog.c - one line of a log of messages. */
#include "wire/tap/wirelog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vt_arena arena = {0};
    struct wirelog_entry e;
    struct vt_err err = {0};
    int rc = wirelog_entry_read(&e, &arena, (const char *)data, size, 1, &err);
    size_t total = 0;

    if (rc != VT_OK && (rc != VT_EINPUT || strncmp(err.msg, "line ", 5) != 0))
        abort();
    for (uint32_t i = 0; rc == VT_OK && i < e.n_frames; i++)
        for (size_t k = 0; k < e.frame[i].len; k++)
            total += e.frame[i].at[k]; /* all of it is there */
    if (rc == VT_OK && (!e.sock || !e.dir || !e.kind || total > 255 * size))
        abort();
    vt_arena_free(&arena);
    return 0;
}
