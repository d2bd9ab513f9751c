/* Any bytes as a request list: read or refused. */
#include <assert.h>

#include "trace/formats/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vt_lines *lines;
    struct vt_workload w;
    struct vt_err err;

    if (vt_lines_from(&lines, "fuzz", data, size, &err) != VT_OK)
        return 0;
    if (trace_read_requests(&w, lines, &err) == VT_OK) {
        assert(w.n > 0 && w.n_segments >= w.n);
        vt_workload_free(&w);
    }
    vt_lines_close(lines);
    return 0;
}
