/* workload.c - whatever a workload's name stands for: a built-in one, or any kind of
 * file. */
#include <string.h>
#include <unistd.h>

#include "model/model.h"
#include "sim/sim.h"

/* ---- built-in ones ------------------------------------------------------- */

enum { MAX_BUILTIN = 64 };

/* The first sentence of the comment that a file opens with. */
static void copy_about(char *out, size_t size, const char *text)
{
    size_t n = 0;

    for (text += strspn(text, "# "); *text != '\0' && n + 1 < size; text++) {
        if (*text == '\n' && text[1] != '#')
            break;
        if (*text == '.' && strchr(" \n", text[1]))
            break;
        out[n++] = *text == '\n' ? ' ' : *text;
        if (*text == '\n')
            text += strspn(text + 1, "# ");
    }
    out[n] = '\0';
}

/* Plans for tuning are YAML, too; only a workload says when requests arrive. */
static bool is_workload(const struct vt_builtin *f)
{
    return vt_is_named(f->name, ".yaml") && strstr(f->text, "\narrival:") != NULL;
}

bool vt_builtin_workload_next(size_t *at, struct vt_builtin_workload *out)
{
    size_t n;
    const struct vt_builtin *f = vt_builtins(&n);

    while (*at < n && !is_workload(&f[*at]))
        ++*at;
    if (*at >= n)
        return false;
    f += (*at)++;
    (void)snprintf(out->name, sizeof(out->name), "%.*s",
                   (int)(strlen(f->name) - strlen(".yaml")), f->name);
    copy_about(out->about, sizeof(out->about), f->text);
    out->text = f->text;
    out->len = f->len;
    return true;
}

static bool find_builtin(struct vt_builtin_workload *out, const char *name)
{
    size_t at = 0;

    while (vt_builtin_workload_next(&at, out))
        if (strcmp(out->name, name) == 0)
            return true;
    return false;
}

static int fail_unknown(const char *name, struct vt_err *err)
{
    struct vt_builtin_workload w[MAX_BUILTIN];
    const char *known[MAX_BUILTIN + 1] = {NULL};
    char list[160] = "";
    size_t at = 0, len = 0;

    for (size_t n = 0; n < MAX_BUILTIN && vt_builtin_workload_next(&at, &w[n]); n++) {
        known[n] = w[n].name;
        if (len < sizeof(list))
            len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
                                    n > 0 ? ", " : "", w[n].name);
    }
    if (vt_nearest(name, known))
        return vt_fail_unknown(err, "workload", name, 60, known);
    return vt_fail(err, VT_EINPUT, "'%.60s' is no file and no workload: %s", name,
                   list);
}

/* ---- by name --------------------------------------------------------------- */

int vt_input_find(struct vt_input *in, const char *name, struct vt_err *err)
{
    enum vt_file kind = VT_FILE_OTHER;
    struct vt_builtin_workload w;
    int rc;

    in->kind = VT_INPUT_SPEC;
    in->name = name;
    in->text = NULL;
    in->len = 0;
    if (find_builtin(&w, name)) {
        in->text = w.text;
        in->len = w.len;
        return VT_OK;
    }
    /* What looks like a path is told to be missing as one. */
    if (!strpbrk(name, "/.") && access(name, F_OK) != 0)
        return fail_unknown(name, err);
    if ((rc = vt_file_kind(name, &kind, err)))
        return rc;
    if (kind == VT_FILE_TRACE || kind == VT_FILE_FOREIGN)
        in->kind = VT_INPUT_TRACE;
    else if (vt_is_named(name, ".csv"))
        in->kind = VT_INPUT_REQUESTS;
    return VT_OK;
}

int vt_workload_open(struct vt_workload *w, const char *name, uint64_t seed,
                     size_t most, struct vt_err *err)
{
    struct vt_input in = {0};
    int rc = vt_input_find(&in, name, err);

    in.seed = (int64_t)(seed & INT64_MAX); /* below 0 is the file's own seed */
    return rc == VT_OK ? vt_workload_read(w, &in, most, err) : rc;
}
