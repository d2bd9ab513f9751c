/* profile_builtin.c - built-in profiles, among them BLIS's table of alpha/beta fits.
 *
 * A row of profiles/blackbox.csv becomes the profile
 * "blackbox:<model without organisation>:<gpu>:tp<N>", in lower case; where the table
 * has a second row for the same three, ":2" follows. BLIS itself takes the first. */
#include "model/params.h"

#include <ctype.h>

#define TABLE_FILE "blackbox.csv"

enum column {
    MODEL,
    GPU,
    TP,
    VLLM,
    ALPHA, /* and the two after it */
    BETA = ALPHA + 3,
    BLOCKS = BETA + 3,
    LOSS,
    N_COLUMNS
};

struct row {
    char *field[N_COLUMNS];
    char name[128];
};

struct table {
    char *text; /* its fields point into it */
    struct row *row;
    size_t n, cap;
};

/* ---- the table -------------------------------------------------------- */

static void add_lower(char *out, size_t cap, const char *text)
{
    size_t n = strlen(out);

    for (; *text != '\0' && n + 1 < cap; text++)
        out[n++] = (char)tolower((unsigned char)*text);
    out[n] = '\0';
}

static void name_row(const struct table *t, struct row *r)
{
    const char *model = r->field[MODEL], *slash = strrchr(model, '/');
    const char *part[] = {"blackbox:", slash ? slash + 1 : model,
                          ":",         r->field[GPU],
                          ":tp",       r->field[TP]};
    size_t len;

    r->name[0] = '\0';
    for (size_t i = 0; i < VT_COUNT(part); i++)
        add_lower(r->name, sizeof(r->name), part[i]);
    len = strlen(r->name);
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->row[i].name, r->name) == 0) {
            (void)snprintf(r->name + len, sizeof(r->name) - len, ":2");
            return;
        }
}

/* The caller frees it whatever happens. */
static int table_load(struct table *t, struct vt_err *err)
{
    const struct vt_builtin *file = vt_builtin_find(TABLE_FILE);
    char *at;
    int rc;

    *t = (struct table){0};
    if (!file)
        return VT_OK;
    t->text = malloc(file->len + 1);
    if (!t->text)
        return vt_nomem(err);
    memcpy(t->text, file->text, file->len + 1);
    at = strchr(t->text, '\n'); /* the header */
    while (at && at[1] != '\0') {
        char *line = at + 1;
        struct row r;

        at = strchr(line, '\n');
        if (at)
            *at = '\0';
        rc = vt_grow(&t->row, &t->cap, t->n + 1, sizeof(*t->row), err);
        if (rc != VT_OK)
            return rc;
        if (vt_csv_split(line, r.field, N_COLUMNS) != N_COLUMNS)
            return vt_fail(err, VT_EINPUT, TABLE_FILE ": row %zu has other columns",
                           t->n + 1);
        name_row(t, &r);
        t->row[t->n++] = r;
    }
    return VT_OK;
}

static void table_free(struct table *t)
{
    free(t->row);
    free(t->text);
}

/* ---- a row as a profile ----------------------------------------------- */

static uint32_t blocks_of(const struct row *r)
{
    struct vt_kv_capacity room;
    struct vt_kv_query q;
    struct vt_arch arch;
    struct vt_gpu gpu;
    uint64_t n;

    if (vt_parse_u64(r->field[BLOCKS], strlen(r->field[BLOCKS]), &n))
        return n <= 1u << 30 ? (uint32_t)n : 0;
    if (vt_arch_load(&arch, r->field[MODEL], NULL) != VT_OK ||
        vt_gpu_find(&gpu, r->field[GPU], NULL, NULL) != VT_OK)
        return 0;
    vt_kv_query_init(&q);
    q.kv.arch = &arch;
    q.gpu = &gpu;
    q.engine.max_num_batched_tokens = 2048;
    if (vt_parse_u64(r->field[TP], strlen(r->field[TP]), &n))
        q.kv.tp = (uint32_t)n;
    return vt_kv_capacity(&q, &room, NULL) == VT_OK ? room.engine.num_gpu_blocks : 0;
}

static const char *version_of(const struct row *r)
{
    return r->field[VLLM] + (*r->field[VLLM] == 'v');
}

static void describe(const struct row *r, char *out, size_t cap)
{
    (void)snprintf(out, cap, "%s, %s %s, vLLM %s, fitted by BLIS", r->field[MODEL],
                   r->field[TP], r->field[GPU], version_of(r));
}

/* The table's fields hold no quotes or backslashes: it is our own file. */
static void write_row(struct vt_buf *b, const struct row *r)
{
    char *const *field = r->field, *const *alpha = &field[ALPHA],
                *const *beta = &field[BETA];
    uint32_t blocks = blocks_of(r);
    char text[256];

    describe(r, text, sizeof(text));
    vt_buf_printf(b,
                  "{\n  \"name\": \"%s\",\n  \"description\": \"%s\",\n"
                  "  \"engine\": {\n    \"model\": \"%s\",\n    \"gpu\": \"%s\",\n"
                  "    \"tensor_parallel_size\": %s,\n    \"vllm_version\": \"%s\",\n"
                  "    \"max_num_seqs\": 256,\n    \"max_num_batched_tokens\": 2048,\n",
                  r->name, text, field[MODEL], field[GPU], field[TP], version_of(r));
    if (blocks > 0)
        vt_buf_printf(b, "    \"num_gpu_blocks\": %u,\n", blocks);
    vt_buf_printf(
        b,
        "    \"async_scheduling\": false\n  },\n"
        "  \"model\": {\n    \"kind\": \"blackbox\",\n    \"params\": {\n"
        "      \"alpha\": [%s, %s, %s],\n      \"beta\": [%s, %s, %s]\n    }\n  },\n"
        "  \"provenance\": {\n"
        "    \"method\": \"BLIS's black-box fit (defaults.yaml of v0.7.9)\",\n"
        "    \"best_loss\": %s\n  }\n}\n",
        alpha[0], alpha[1], alpha[2], beta[0], beta[1], beta[2],
        *field[LOSS] != '\0' ? field[LOSS] : "null");
}

/* ---- all built-in profiles -------------------------------------------- */

int vt_profile_text(const char *name, struct vt_buf *text, bool *found,
                    struct vt_err *err)
{
    size_t n, len = strlen(name);
    const struct vt_builtin *f = vt_builtins(&n);
    const char *slash = strchr(name, '/');
    char plain[128] = "";
    struct table t;
    int rc;

    *found = false;
    for (size_t i = 0; i < n && !*found; i++)
        if (strncmp(f[i].name, name, len) == 0 &&
            strcmp(f[i].name + len, ".json") == 0 && vt_builtin_is_profile(&f[i])) {
            vt_buf_add(text, f[i].text, f[i].len);
            *found = true;
        }
    if (*found || strncmp(name, "blackbox:", 9) != 0)
        return text->failed ? vt_nomem(err) : VT_OK;
    if (slash) /* "org/" before the model's name may be given too */
        add_lower(plain, sizeof(plain), "blackbox:");
    add_lower(plain, sizeof(plain), slash ? slash + 1 : name);
    rc = table_load(&t, err);
    for (size_t i = 0; i < t.n && rc == VT_OK && !*found; i++)
        if (strcmp(t.row[i].name, plain) == 0) {
            write_row(text, &t.row[i]);
            *found = true;
        }
    table_free(&t);
    return rc == VT_OK && text->failed ? vt_nomem(err) : rc;
}

static int add_entry(struct vt_arena *a, struct vt_profile_entry *e, const char *name,
                     const char *description, struct vt_err *err)
{
    int rc = vt_arena_text(a, name, &e->name, err);

    return rc ? rc : vt_arena_text(a, description, &e->description, err);
}

int vt_profile_list(struct vt_arena *a, struct vt_profile_entry **out, size_t *n,
                    struct vt_err *err)
{
    struct vt_profile_entry *e;
    size_t n_files;
    const struct vt_builtin *f = vt_builtins(&n_files);
    char name[128], text[256];
    struct vt_profile p;
    struct table t;
    int rc = table_load(&t, err);

    *n = 0;
    *out = e = vt_arena_alloc(a, (n_files + t.n + 1) * sizeof(*e));
    if (!e)
        rc = vt_nomem(err);
    for (size_t i = 0; i < n_files && rc == VT_OK; i++) {
        if (!vt_builtin_is_profile(&f[i]))
            continue;
        (void)snprintf(name, sizeof(name), "%.*s", (int)strlen(f[i].name) - 5,
                       f[i].name);
        rc = vt_profile_parse(&p, name, f[i].text, f[i].len, err);
        if (rc != VT_OK)
            break;
        rc = add_entry(a, &e[(*n)++], name, p.description ? p.description : "", err);
        vt_profile_close(&p);
    }
    for (size_t i = 0; i < t.n && rc == VT_OK; i++) {
        describe(&t.row[i], text, sizeof(text));
        e[*n].blackbox = true;
        rc = add_entry(a, &e[(*n)++], t.row[i].name, text, err);
    }
    table_free(&t);
    return rc;
}
