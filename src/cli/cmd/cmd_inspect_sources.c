/* cmd_inspect_sources.c - the files that vtwin inspect plot shows beside each other. */
#include <unistd.h>

#include "cli/cmd/inspect.h"

struct operand {
    char load[64], name[96]; /* "": not given */
    const char *path;
};

static int copy_name(char *to, size_t cap, const char *from, size_t len,
                     struct vt_err *err)
{
    if (len >= cap)
        return vt_fail(err, VT_EINPUT, "the name '%.*s' is too long", (int)len, from);
    memcpy(to, from, len);
    to[len] = '\0';
    return VT_OK;
}

/* A file that is called so goes before: its name may have any letters. */
static int read_operand(struct operand *o, const char *text, struct vt_err *err)
{
    const char *equals = strchr(text, '='), *name = text, *colon;
    int rc = VT_OK;

    *o = (struct operand){.path = text};
    if (!equals || access(text, F_OK) == 0)
        return VT_OK;
    o->path = equals + 1;
    colon = memchr(text, ':', (size_t)(equals - text));
    if (colon) {
        rc = copy_name(o->load, sizeof(o->load), text, (size_t)(colon - text), err);
        name = colon + 1;
    }
    return rc == VT_OK
               ? copy_name(o->name, sizeof(o->name), name, (size_t)(equals - name), err)
               : rc;
}

/* ---- sources ---------------------------------------------------------- */

/* "runs/c16.trace.jsonl.gz" is c16. */
static void name_by_file(char *out, size_t cap, const char *path)
{
    static const char *const ends[] = {".gz", ".jsonl", ".json", ".trace", ".steps"};
    const char *slash = strrchr(path, '/');
    size_t len;

    snprintf(out, cap, "%s", slash && slash[1] ? slash + 1 : path);
    for (size_t i = 0; i < VT_COUNT(ends); i++) {
        len = strlen(out);
        if (vt_ends_with(out, ends[i]) && len > strlen(ends[i]))
            out[len - strlen(ends[i])] = '\0';
    }
}

/* Takes over the view. */
static int add_source(struct inspect_load *l, struct vt_view *v, const char *label,
                      struct vt_err *err)
{
    int rc =
        vt_grow(&l->source, &l->cap_sources, l->n_sources + 1, sizeof(*l->source), err);

    if (rc != VT_OK)
        return rc;
    l->source[l->n_sources] = (struct inspect_source){.view = *v};
    snprintf(l->source[l->n_sources].label, sizeof(l->source->label), "%s", label);
    *v = (struct vt_view){0};
    l->n_sources++;
    return VT_OK;
}

static int add_trace(struct inspect_load *l, const char *path, const char *label,
                     struct vt_err *err)
{
    struct vt_records r = {0};
    struct vt_view v = {0};
    int rc = vt_records_load(&r, path, err);

    if (rc == VT_OK)
        rc = vt_view_records(&v, &r, err);
    if (rc == VT_OK)
        rc = add_source(l, &v, label, err);
    vt_view_free(&v);
    vt_records_free(&r);
    return rc;
}

/* The gaps that an engine's results made. */
static int add_steps(struct inspect_load *l, const char *path, const char *label,
                     struct vt_err *err)
{
    struct vt_steps s = {0};
    struct vt_view v = {0};
    int rc = vt_steps_load(&s, path, err);

    if (rc == VT_OK)
        rc = vt_view_steps(&v, &s, err);
    if (rc == VT_OK)
        rc = add_source(l, &v, label, err);
    vt_view_free(&v);
    vt_steps_free(&s);
    return rc;
}

static int add_samples(struct inspect_load *l, const char *path, const char *name,
                       struct vt_err *err)
{
    struct vt_samples s;
    char label[96];
    int rc = vt_samples_load(&s, path, err);

    if (rc != VT_OK)
        return rc;
    for (size_t i = 0; i < s.n && rc == VT_OK; i++) {
        const char *key = s.view[i].label;

        if (*name && s.n > 1)
            snprintf(label, sizeof(label), "%.60s, %.30s", name, key);
        else
            snprintf(label, sizeof(label), "%s", *name ? name : key);
        rc = add_source(l, &s.view[i], label, err);
    }
    vt_samples_free(&s);
    return rc;
}

static int add_file(struct inspect_load *l, const struct operand *o, struct vt_err *err)
{
    struct cli_report report;
    const char *path = cli_report_trace(o->path, &report);
    char label[96];
    enum vt_file kind = VT_FILE_OTHER;
    int rc = vt_file_kind(path, &kind, err);

    if (rc != VT_OK)
        return rc;
    name_by_file(label, sizeof(label), o->path);
    if (*o->name)
        snprintf(label, sizeof(label), "%s", o->name);
    if (kind == VT_FILE_TRACE || kind == VT_FILE_SPANS)
        return add_trace(l, path, label, err);
    if (kind == VT_FILE_STEPS)
        return add_steps(l, path, label, err);
    if (kind == VT_FILE_OTHER)
        return add_samples(l, path, o->name, err);
    return vt_fail(err, VT_EINPUT, "%s: no trace, step log or samples", path);
}

/* ---- loads ------------------------------------------------------------ */

static struct inspect_load *find_load(struct inspect_loads *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->load[i].name, name) == 0)
            return &l->load[i];
    return NULL;
}

/* Its first file is what models are to serve. */
static int open_load(struct inspect_load *l, const struct operand *o,
                     const struct opt_args *a, struct vt_err *err)
{
    int rc;

    snprintf(l->name, sizeof(l->name), "%s", o->load);
    rc = inspect_case_open(&l->c, cli_report_trace(o->path, &l->report), a, err);
    if (*o->name) {
        snprintf(l->c.label, sizeof(l->c.label), "%s", o->name);
        l->c.captured.label = l->c.label;
    }
    return rc;
}

int inspect_loads_open(struct inspect_loads *l, const struct opt_args *a,
                       struct vt_err *err)
{
    int rc = VT_OK;

    *l = (struct inspect_loads){.load = calloc(a->n_operands, sizeof(*l->load))};
    if (!l->load)
        return vt_nomem(err);
    for (size_t i = 1; i < a->n_operands && rc == VT_OK; i++) {
        struct inspect_load *in;
        struct operand o;

        rc = read_operand(&o, a->operand[i], err);
        in = find_load(l, o.load);
        if (rc == VT_OK)
            rc = in ? add_file(in, &o, err) : open_load(&l->load[l->n++], &o, a, err);
    }
    for (size_t i = 0; i < l->n; i++) /* arrays may have moved */
        for (size_t k = 0; k < l->load[i].n_sources; k++)
            l->load[i].source[k].view.label = l->load[i].source[k].label;
    return rc;
}

void inspect_loads_close(struct inspect_loads *l)
{
    for (size_t i = 0; i < l->n; i++) {
        for (size_t k = 0; k < l->load[i].n_sources; k++)
            vt_view_free(&l->load[i].source[k].view);
        free(l->load[i].source);
        inspect_case_close(&l->load[i].c);
    }
    free(l->load);
}
