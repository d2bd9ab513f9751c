/* experiments.c - which experiments a data directory holds: by its experiments.json, or
 * by the names of its directories. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "validate/sheet.h"
#include "validate/truth/truth.h"
#include "validate/values.h"

/* ---- names ---------------------------------------------------------- */

/* Sub-directories by name; the order of the file system is nobody's. */
static int list_directories(struct keys *l, struct vt_arena *a, const char *dir,
                            struct vt_err *err)
{
    DIR *d = opendir(dir);
    struct dirent *entry;
    int rc = VT_OK;

    if (!d)
        return vt_fail(err, VT_EINPUT, "%s: %s", dir, strerror(errno));
    while (rc == VT_OK && (entry = readdir(d)) != NULL) {
        const char *path = path_in(a, dir, entry->d_name);

        if (!path)
            rc = vt_nomem(err);
        else if (entry->d_name[0] != '.' && vt_is_directory(path))
            rc = keys_add(l, path + strlen(dir) + 1, err);
    }
    closedir(d);
    return rc;
}

static size_t count_digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* YYYYMMDD-HHMMSS-<model>-tp<N>-<workload> */
static bool is_timestamped(const char *name)
{
    const char *at, *last = strrchr(name, '-');
    size_t n;

    if (count_digits(name) != 8 || name[8] != '-' || count_digits(name + 9) != 6 ||
        name[15] != '-' || !last || !last[1])
        return false;
    for (at = last + 1; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '_')
            return false;
    for (at = name + 17; (at = strstr(at, "-tp")) != NULL; at += 3) {
        n = count_digits(at + 3);
        if (n > 0 && at + 3 + n == last)
            return true;
    }
    return false;
}

/* <id>-<slug> */
static bool is_numbered(const char *name, int64_t *id)
{
    size_t n = count_digits(name);

    return n > 0 && name[n] == '-' && name[n + 1] != '\0' && vt_parse_i64(name, n, id);
}

/* ---- metadata ------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

/* NULL: there is no such column, or nothing in it. */
static const char *column_text(const struct sheet *s, const char *name,
                               const char *other)
{
    const char *text = sheet_text(s, other && sheet_column(s, name) < 0 ? other : name);

    return *text ? text : NULL;
}

static int apply_row(struct vt_experiment *e, const struct sheet *s, struct vt_err *err)
{
    const struct {
        const char *name, *other, **to;
    } text[] = {{"hardware", "hw", &e->hardware},
                {"precision", NULL, &e->precision},
                {"workload", NULL, &e->workload}};
    const char *dp = column_text(s, "dp", NULL),
               *offload = column_text(s, "cpu_offload", NULL),
               *memory = column_text(s, "gpu_mem_util", "gpu_mem"),
               *id = column_text(s, "exp_id", "id");
    double v;

    for (size_t i = 0; i < VT_COUNT(text); i++) {
        const char *here = column_text(s, text[i].name, text[i].other);

        if (here && !(*text[i].to = truth_text(&e->arena, here)))
            return vt_nomem(err);
    }
    if (dp && (!vt_parse_f64(dp, strlen(dp), &v) || v < 1 || v > 4096))
        return vt_fail(err, VT_EINPUT, "dp is '%s'", dp);
    if (dp)
        e->dp = (uint32_t)v;
    if (offload)
        e->cpu_offload = strcmp(offload, "True") == 0 || strcmp(offload, "true") == 0 ||
                         strcmp(offload, "1") == 0;
    if (memory && (!vt_parse_f64(memory, strlen(memory), &v) || v <= 0 || v > 1))
        return vt_fail(err, VT_EINPUT, "gpu_mem_util is '%s'", memory);
    if (memory)
        e->gpu_mem_util = v;
    if (id && !vt_parse_i64(id, strlen(id), &e->id))
        return vt_fail(err, VT_EINPUT, "exp_id is '%s'", id);
    return VT_OK;
}

/* A left join on the folder's name. */
static int apply_metadata(struct vt_experiment *e, const char *path, struct vt_err *err)
{
    struct sheet s;
    int rc = sheet_open(&s, path, err);

    s.lenient = false;
    while (sheet_next(&s, &rc, err)) {
        const char *folder = sheet_text(&s, "experiment_folder");

        if (strcmp(base_name(folder), base_name(e->folder)) == 0)
            rc = sheet_within(&s, err, apply_row(e, &s, err));
    }
    sheet_end(&s);
    return rc;
}

/* ---- one by one ----------------------------------------------------- */

struct finder {
    struct vt_experiments *x;
    const char *dir;
    struct vt_arena *arena; /* of paths */
    const struct vt_truth_options *o;
    size_t dp_left_out;
};

static int add_experiment(struct finder *f, struct vt_experiment *e, struct vt_err *err)
{
    int rc;

    if (!f->o->dp_too && e->dp > 1) {
        f->dp_left_out++;
        vt_experiment_free(e);
        return VT_OK;
    }
    rc = vt_grow(&f->x->e, &f->x->cap, f->x->n + 1, sizeof(*f->x->e), err);
    if (rc == VT_OK)
        f->x->e[f->x->n++] = *e;
    else
        vt_experiment_free(e);
    return rc;
}

static int load_one(struct finder *f, const char *name, const struct vt_node *entry,
                    struct vt_err *err)
{
    struct vt_experiment e;
    struct vt_err why = {0};
    const char *path = path_in(f->arena, f->dir, name);
    int rc = path ? vt_experiment_load(&e, path, entry, f->o, &why) : VT_ENOMEM;

    f->x->found++;
    if (rc == VT_OK && !entry)
        (void)is_numbered(name, &e.id);
    if (rc == VT_OK && is_timestamped(name) && !entry)
        e.id = 0;
    if (rc == VT_OK && f->o->metadata) {
        rc = apply_metadata(&e, f->o->metadata, &why);
        if (rc != VT_OK)
            vt_experiment_free(&e);
    }
    if (rc == VT_OK)
        return add_experiment(f, &e, err);
    if (rc == VT_ENOMEM)
        return vt_nomem(err);
    truth_tell(f->o, name, "SKIP (parse error): %s", why.msg);
    return VT_OK;
}

/* ---- by manifest ----------------------------------------------------- */

/* The one directory that is called "<id>-...". With none, or several, *found is NULL.
 */
static void resolve_id(const struct finder *f, const struct keys *l, int64_t id,
                       const char **found)
{
    char head[32];
    size_t n = 0, len = (size_t)snprintf(head, sizeof(head), "%lld-", (long long)id);

    *found = NULL;
    for (size_t i = 0; i < l->n; i++)
        if (strncmp(l->key[i], head, len) == 0 && n++ == 0)
            *found = l->key[i];
    if (n == 1)
        return;
    if (n == 0)
        truth_tell(f->o, f->dir, "SKIP: no directory %s...", head);
    else
        truth_tell(f->o, f->dir,
                   "SKIP: id %lld is ambiguous: %zu directories are called %s..., the "
                   "first is %s",
                   (long long)id, n, head, *found);
    *found = NULL;
}

static int load_entry(struct finder *f, const struct keys *l,
                      const struct vt_node *root, uint32_t i, struct vt_err *err)
{
    const struct vt_node *entry = &root->u.item[i];
    const char *name, *safe = "safe";
    bool done = false;
    int64_t id = 0;

    if (entry->kind != VT_MAP ||
        vt_get_i64(entry, "id", VT_REQUIRED, 0, INT64_MAX, &id, NULL) != VT_OK) {
        truth_tell(f->o, f->dir, "SKIP: entry %u of experiments.json has no id", i);
        return VT_OK;
    }
    if (vt_get_bool(entry, "done", VT_OPTIONAL, &done, NULL) != VT_OK ||
        vt_get_str(entry, "safe", VT_OPTIONAL, &safe, NULL) != VT_OK || !done ||
        (!f->o->unsafe_too && strcmp(safe, "safe") != 0))
        return VT_OK;
    for (uint32_t k = 0; k < i; k++) {
        const struct vt_node *other = vt_get(&root->u.item[k], "id");

        if (!other || other->kind != VT_INT || other->u.integer != id)
            continue;
        truth_tell(f->o, f->dir,
                   "SKIP: id %lld is ambiguous: experiments.json has it twice",
                   (long long)id);
        return VT_OK;
    }
    resolve_id(f, l, id, &name);
    return name ? load_one(f, name, entry, err) : VT_OK;
}

static int by_id(const void *a, const void *b)
{
    const struct vt_experiment *p = a, *q = b;

    if (p->id != q->id)
        return p->id < q->id ? -1 : 1;
    return strcmp(p->folder, q->folder);
}

/* A report of simulate is an experiment of its own. */
static int load_report(struct finder *f, struct vt_err *err)
{
    struct vt_experiment e;
    int rc = vt_experiment_load(&e, f->dir, NULL, f->o, err);

    f->x->found = 1;
    return rc ? rc : add_experiment(f, &e, err);
}

int vt_experiments_load(struct vt_experiments *x, const char *data_dir,
                        const struct vt_truth_options *o, struct vt_err *err)
{
    struct vt_arena scratch = {0};
    struct finder f = {.x = x, .dir = data_dir, .arena = &scratch, .o = o};
    struct keys l = {0};
    const char *path;
    const struct vt_node *root;
    FILE *there;
    int64_t id;
    int rc;

    *x = (struct vt_experiments){0};
    if (truth_is_report(data_dir))
        return load_report(&f, err);
    rc = list_directories(&l, &scratch, data_dir, err);
    path = path_in(&scratch, data_dir, "experiments.json");
    there = rc == VT_OK && path ? fopen(path, "r") : NULL;
    if (there) {
        fclose(there);
        rc = vt_tree_load(&scratch, path, &root, err);
        if (rc == VT_OK && root->kind != VT_LIST)
            rc = vt_fail(err, VT_EINPUT, "%s: not a list of experiments", path);
        for (uint32_t i = 0; rc == VT_OK && i < root->n; i++)
            rc = load_entry(&f, &l, root, i, err);
        if (rc == VT_OK && root->n > 0 && x->found == 0)
            rc = vt_fail(err, VT_EINPUT,
                         "%s: none of its %u entries is done%s and has a directory",
                         path, root->n,
                         o->unsafe_too ? "" : ", safe (--unsafe: or not)");
    }
    for (size_t i = 0; i < l.n && rc == VT_OK && !there; i++)
        if (is_timestamped(l.key[i]) || is_numbered(l.key[i], &id))
            rc = load_one(&f, l.key[i], NULL, err);
    if (rc == VT_OK && x->n > 1)
        qsort(x->e, x->n, sizeof(*x->e), by_id);
    if (rc == VT_OK && !o->dp_too)
        truth_tell(o, data_dir, "DP filter: %zu kept, %zu left out", x->n,
                   f.dp_left_out);
    if (rc == VT_OK && x->n == 0 && f.dp_left_out > 0)
        rc = vt_fail(err, VT_EINPUT, "%s: all experiments have more than one replica",
                     data_dir);
    free(l.key);
    vt_arena_free(&scratch);
    if (rc != VT_OK)
        vt_experiments_free(x);
    return rc;
}

void vt_experiments_free(struct vt_experiments *x)
{
    for (size_t i = 0; i < x->n; i++)
        vt_experiment_free(&x->e[i]);
    free(x->e);
    *x = (struct vt_experiments){0};
}
