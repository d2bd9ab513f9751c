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
                     struct vt_err *err)
{
    const struct vt_builtin *f = find_builtin(name);
    int64_t own = (int64_t)(seed & INT64_MAX); /* below 0 is the file's own seed */
    enum vt_file kind = VT_FILE_OTHER;
    int rc;

    if (f)
        return vt_workload_generate_text(w, name, f->text, f->len, own, err);
    if ((rc = vt_file_kind(name, &kind, err)))
        return rc;
    if (kind == VT_FILE_TRACE || kind == VT_FILE_FOREIGN)
        return vt_trace_load(w, name, err);
    if (vt_is_named(name, ".csv"))
        return vt_requests_load(w, name, err);
    return vt_workload_generate(w, name, own, err);
}
