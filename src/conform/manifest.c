/* manifest.c - manifest.toml, compat.toml and models.toml: which goldens there are,
 * which lines of vLLM they speak for, and what their models need. */
#include <assert.h>
#include <ctype.h>

#include "conform/conform.h"
#include "wire/wire.h"

enum { MAX_ROWS = 10000 };

const char *const vt_golden_roles[] = {"schema", "fidelity", NULL};

static int at_line(struct vt_err *err, const struct vt_node *node, int rc)
{
    return vt_within(err, rc, "line %u", (unsigned)node->line);
}

/* ---- files ------------------------------------------------------------ */

static const char *path_beside(struct vt_manifest *m, const char *name)
{
    size_t len = strlen(m->directory) + strlen(name) + 2;
    char *path = vt_arena_alloc(&m->arena, len);

    if (path)
        snprintf(path, len, "%s/%s", m->directory, name);
    return path;
}

/* The rows of the list `key`, the only thing the file may hold. */
static int load_rows(struct vt_manifest *m, const char *path, const char *key,
                     const struct vt_node **out, struct vt_err *err)
{
    const char *known[] = {key, NULL};
    const struct vt_node *root, *list;
    int rc = vt_tree_load(&m->arena, path, &root, err);

    *out = NULL;
    if (rc == VT_OK)
        rc = vt_within(err, vt_only_keys(root, known, err), "%s", path);
    if (rc != VT_OK)
        return rc;
    list = vt_get(root, key);
    if (list && list->kind != VT_LIST)
        return vt_fail(err, VT_EINPUT, "%s: line %u: '%s' is not a list of tables",
                       path, (unsigned)list->line, key);
    if (list && list->n > MAX_ROWS)
        return vt_fail(err, VT_EINPUT, "%s: more than %d rows", path, MAX_ROWS);
    *out = list;
    return VT_OK;
}

/* ---- rows ------------------------------------------------------------- */

struct text_field {
    const char *key;
    enum vt_need need;
    const char **to;
};

/* A row may have these texts, which end with one without key, and `others`. */
static int read_texts(const struct vt_node *row, const struct text_field *text,
                      const char *const *others, struct vt_err *err)
{
    const char *known[16] = {0};
    size_t n = 0;
    int rc;

    for (const struct text_field *t = text; t->key; t++)
        known[n++] = t->key;
    for (; *others; others++)
        known[n++] = *others;
    assert(n < VT_COUNT(known));
    rc = vt_only_keys(row, known, err);
    for (; rc == VT_OK && text->key; text++)
        rc = vt_get_str(row, text->key, text->need, text->to, err);
    return rc;
}

typedef int row_reader(struct vt_manifest *m, void *to, const struct vt_node *row,
                       struct vt_err *err);

/* The list's rows into an array of so many bytes each, whose pointer is at `rows`. */
static int read_rows(struct vt_manifest *m, const struct vt_node *list,
                     row_reader *read, size_t size, void *rows, size_t *n,
                     struct vt_err *err)
{
    char *row = vt_arena_alloc(&m->arena, list->n * size);
    int rc = row ? VT_OK : vt_nomem(err);

    memcpy(rows, &row, sizeof(row));
    for (uint32_t i = 0; i < list->n && rc == VT_OK; i++)
        rc = read(m, row + (*n)++ * size, &list->u.item[i], err);
    return rc;
}

/* ---- compat.toml ------------------------------------------------------ */

static const struct vt_golden_line *find_line(const struct vt_manifest *m,
                                              const char *line)
{
    for (size_t i = 0; i < m->n_lines; i++)
        if (strcmp(m->line[i].line, line) == 0)
            return &m->line[i];
    return NULL;
}

static int check_line(const struct vt_manifest *m, const struct vt_golden_line *l,
                      struct vt_err *err)
{
    const struct vt_wire_line *wire = vt_wire_line_find(l->line);
    bool nightly = strcmp(l->line, VT_NIGHTLY) == 0;

    if (!nightly && (!wire || strcmp(wire->name, l->line) != 0))
        return vt_fail(err, VT_EINPUT, "vtwin does not know vLLM's line '%s'", l->line);
    if (!nightly && vt_wire_line_find(l->tag) != wire)
        return vt_fail(err, VT_EINPUT, "tag '%s' is not on line %s", l->tag, l->line);
    if (!l->patch_repo != !l->patch_rev)
        return vt_fail(err, VT_EINPUT, "patch_repo and patch_rev come together");
    if (find_line(m, l->line) != l)
        return vt_fail(err, VT_EINPUT, "line %s appears twice", l->line);
    return VT_OK;
}

static int read_line(struct vt_manifest *m, void *to, const struct vt_node *row,
                     struct vt_err *err)
{
    static const char *const others[] = {"default", "notes", "fidelity_validated",
                                         NULL};
    struct vt_golden_line *l = to;
    const struct text_field text[] = {{"line", VT_REQUIRED, &l->line},
                                      {"tag", VT_REQUIRED, &l->tag},
                                      {"protocol_rev", VT_OPTIONAL, &l->protocol_rev},
                                      {"patch_repo", VT_OPTIONAL, &l->patch_repo},
                                      {"patch_rev", VT_OPTIONAL, &l->patch_rev},
                                      {0}};
    int rc;

    if ((rc = read_texts(row, text, others, err)) ||
        (rc = vt_get_bool(row, "fidelity_validated", VT_REQUIRED,
                          &l->fidelity_validated, err)) ||
        (rc = vt_get_bool(row, "default", VT_OPTIONAL, &l->is_default, err)))
        return rc;
    return at_line(err, row, check_line(m, l, err));
}

static int load_lines(struct vt_manifest *m, const char *path, struct vt_err *err)
{
    const struct vt_node *list;
    size_t n_default = 0;
    int rc = load_rows(m, path, "vllm", &list, err);

    if (rc != VT_OK || !list)
        return rc != VT_OK ? rc : vt_fail(err, VT_EINPUT, "%s: no [[vllm]]", path);
    rc = read_rows(m, list, read_line, sizeof(*m->line), &m->line, &m->n_lines, err);
    for (size_t i = 0; i < m->n_lines; i++)
        n_default += m->line[i].is_default;
    if (rc == VT_OK && n_default != 1)
        rc = vt_fail(err, VT_EINPUT, "%zu lines are the default, not one", n_default);
    return vt_within(err, rc, "%s", path);
}

/* ---- models.toml ------------------------------------------------------ */

static const struct vt_golden_model *find_model(const struct vt_manifest *m,
                                                const char *name)
{
    for (size_t i = 0; i < m->n_models; i++)
        if (strcmp(m->model[i].name, name) == 0)
            return &m->model[i];
    return NULL;
}

static int read_model(struct vt_manifest *m, void *to, const struct vt_node *row,
                      struct vt_err *err)
{
    static const char *const others[] = {"vocab_size", "max_model_len", "notes", NULL};
    struct vt_golden_model *model = to;
    const char *directory = NULL;
    const struct text_field text[] = {{"name", VT_REQUIRED, &model->name},
                                      {"directory", VT_OPTIONAL, &directory},
                                      {0}};
    int rc;

    if ((rc = read_texts(row, text, others, err)) ||
        (rc = vt_get_u32(row, "vocab_size", VT_REQUIRED, 1, 1u << 30,
                         &model->vocab_size, err)) ||
        (rc = vt_get_u32(row, "max_model_len", VT_REQUIRED, 1, 1u << 30,
                         &model->max_model_len, err)))
        return rc;
    if (directory) {
        model->directory = *directory == '/' ? directory : path_beside(m, directory);
        if (!model->directory)
            return vt_nomem(err);
    }
    if (find_model(m, model->name) != model)
        return at_line(
            err, row, vt_fail(err, VT_EINPUT, "model '%s' appears twice", model->name));
    return VT_OK;
}

static int load_models(struct vt_manifest *m, const char *path, struct vt_err *err)
{
    const struct vt_node *list;
    int rc = load_rows(m, path, "model", &list, err);

    if (rc != VT_OK || !list)
        return rc;
    rc =
        read_rows(m, list, read_model, sizeof(*m->model), &m->model, &m->n_models, err);
    return vt_within(err, rc, "%s", path);
}

/* ---- manifest.toml ---------------------------------------------------- */

static bool is_sha256(const char *text)
{
    size_t n = 0;

    while (isdigit((unsigned char)text[n]) || (text[n] >= 'a' && text[n] <= 'f'))
        n++;
    return n == 64 && text[n] == '\0';
}

/* The file's name up to its first dot that no digit follows: "a-0.26.jsonl.gz" is
 * "a-0.26". */
static int name_golden(struct vt_manifest *m, struct vt_golden *g, struct vt_err *err)
{
    const char *path = g->path ? g->path : g->bucket_path;
    const char *slash = strrchr(path, '/');
    const char *start = slash ? slash + 1 : path, *end = start;

    while (*end && !(*end == '.' && !isdigit((unsigned char)end[1])))
        end++;
    g->name = vt_arena_copy(&m->arena, start, (size_t)(end - start));
    return g->name ? VT_OK : vt_nomem(err);
}

static int check_golden(const struct vt_manifest *m, struct vt_golden *g,
                        const char *role, const char *model, struct vt_err *err)
{
    const struct vt_golden_line *l = find_line(m, g->line);
    size_t r = 0;

    while (vt_golden_roles[r] && strcmp(vt_golden_roles[r], role) != 0)
        r++;
    if (!l)
        return vt_fail(err, VT_EINPUT, "line '%s' is not in compat.toml", g->line);
    if (!g->path && !g->bucket_path)
        return vt_fail(err, VT_EINPUT, "neither path nor bucket_path");
    if (!is_sha256(g->sha256))
        return vt_fail(err, VT_EINPUT, "sha256 is not 64 digits of lower-case hex");
    if (!is_sha256(g->config_hash))
        return vt_fail(err, VT_EINPUT,
                       "config_hash is not 64 digits of lower-case hex");
    if (!vt_golden_roles[r])
        return vt_fail(err, VT_EINPUT, "role '%s' is neither schema nor fidelity",
                       role);
    g->role = (enum vt_golden_role)r;
    g->model = model ? find_model(m, model) : NULL;
    if (model && !g->model)
        return vt_fail(err, VT_EINPUT, "model '%s' is not in models.toml", model);
    g->validated = l->fidelity_validated;
    return VT_OK;
}

static int read_tolerance(struct vt_tolerance *t, const struct vt_node *row,
                          struct vt_err *err)
{
    static const char *const known[] = {"p50_ms", "p99_ms", NULL};
    const struct vt_node *map = vt_get(row, "tolerance");
    int rc;

    *t = (struct vt_tolerance){-1, -1};
    if (!map)
        return VT_OK;
    if ((rc = vt_only_keys(map, known, err)) ||
        (rc = vt_get_f64(map, "p50_ms", VT_REQUIRED, 0, 1e6, &t->p50_ms, err)))
        return rc;
    return vt_get_f64(map, "p99_ms", VT_REQUIRED, 0, 1e6, &t->p99_ms, err);
}

static int read_golden(struct vt_manifest *m, void *to, const struct vt_node *row,
                       struct vt_err *err)
{
    static const char *const others[] = {"tolerance", "notes", NULL};
    struct vt_golden *g = to;
    const char *role = "", *model = NULL;
    const struct text_field text[] = {{"line", VT_REQUIRED, &g->line},
                                      {"path", VT_OPTIONAL, &g->path},
                                      {"bucket_path", VT_OPTIONAL, &g->bucket_path},
                                      {"sha256", VT_REQUIRED, &g->sha256},
                                      {"config_hash", VT_REQUIRED, &g->config_hash},
                                      {"workload", VT_REQUIRED, &g->workload},
                                      {"role", VT_REQUIRED, &role},
                                      {"model", VT_OPTIONAL, &model},
                                      {0}};
    int rc;

    if ((rc = read_texts(row, text, others, err)) ||
        (rc = read_tolerance(&g->tolerance, row, err)) ||
        (rc = at_line(err, row, check_golden(m, g, role, model, err))))
        return rc;
    return name_golden(m, g, err);
}

static int load_all(struct vt_manifest *m, const char *path, struct vt_err *err)
{
    const char *slash = strrchr(path, '/'), *compat, *models;
    size_t len = !slash || slash == path ? 1 : (size_t)(slash - path);
    const struct vt_node *list;
    int rc;

    m->directory = vt_arena_copy(&m->arena, slash ? path : ".", len);
    compat = m->directory ? path_beside(m, "compat.toml") : NULL;
    models = m->directory ? path_beside(m, "models.toml") : NULL;
    if (!compat || !models)
        return vt_nomem(err);
    if ((rc = load_rows(m, path, "golden", &list, err)) ||
        (rc = load_lines(m, compat, err)) || (rc = load_models(m, models, err)) ||
        !list)
        return rc;
    rc = read_rows(m, list, read_golden, sizeof(*m->golden), &m->golden, &m->n_goldens,
                   err);
    return vt_within(err, rc, "%s", path);
}

int vt_manifest_load(struct vt_manifest *m, const char *path, struct vt_err *err)
{
    int rc;

    *m = (struct vt_manifest){0};
    rc = load_all(m, path, err);
    if (rc != VT_OK)
        vt_manifest_free(m);
    return rc;
}

void vt_manifest_free(struct vt_manifest *m)
{
    vt_arena_free(&m->arena);
    *m = (struct vt_manifest){0};
}
