/* fuzz_ready.c - whatever a trace calls a registration, it is accepted or refused with
 * a reason, on every line. */
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t n;
    const struct vt_wire_line *const *line = vt_wire_lines(&n);

    for (size_t i = 0; i <= n; i++) {
        struct vt_err err = {0};
        int rc = vt_wire_ready_check(i < n ? line[i] : NULL, data, size, &err);

        if (rc != VT_OK && (rc != VT_ECHECK || !err.msg[0]))
            abort();
    }
    return 0;
}
