/* workload.c - whatever a workload's name stands for: a built-in one, or any kind of
 * file. */
#include <string.h>

#include "model/model.h"
#include "sim/sim.h"

static const struct vt_builtin *find_builtin(const char *name)
{
    char file[128];
    int len = snprintf(file, sizeof(file), "%s.yaml", name);

    if (len < 0 || (size_t)len >= sizeof(file) || strchr(name, '/'))
        return NULL;
    return vt_builtin_find(file);
}

int vt_workload_open(struct vt_workload *w, const char *name, uint64_t seed,
                     size_t most, struct vt_err *err)
{
    const struct vt_builtin *f = find_builtin(name);
    struct vt_input in = {
        .kind = VT_INPUT_SPEC,
        .name = name,
        .text = f ? f->text : NULL,
        .len = f ? f->len : 0,
        .seed = (int64_t)(seed & INT64_MAX), /* below 0 is the file's own seed */
    };
    enum vt_file kind = VT_FILE_OTHER;
    int rc;

    if (!f && (rc = vt_file_kind(name, &kind, err)))
        return rc;
    if (kind == VT_FILE_TRACE || kind == VT_FILE_FOREIGN)
        in.kind = VT_INPUT_TRACE;
    else if (!f && vt_is_named(name, ".csv"))
        in.kind = VT_INPUT_REQUESTS;
    return vt_workload_read(w, &in, most, err);
}
