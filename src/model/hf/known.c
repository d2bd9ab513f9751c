/* known.c - models by their Hugging Face names, and config.json files by their paths.
 *
 * A line of the table is {"names": [...], "config": {...}}; with "like" it is another
 * model's config but for the fields that it states itself, as of a quantised one. */
#include "model/hf/arch.h"

#include <ctype.h>
#include <sys/stat.h>

#define KNOWN_FILE "model-shapes.jsonl"

enum { NEAREST = 3 };

static bool same_name(const char *a, const char *b)
{
    for (; *a != '\0' && tolower((unsigned char)*a) == tolower((unsigned char)*b);
         a++, b++)
        continue;
    return *a == *b;
}

static const char *without_organisation(const char *name)
{
    const char *slash = strchr(name, '/');

    return slash ? slash + 1 : name;
}

/* ---- the table ---------------------------------------------------------- */

struct known_table {
    const char *at; /* what is left of the file */
    struct vt_arena arena;
};

static void table_open(struct known_table *t)
{
    const struct vt_builtin *file = vt_builtin_find(KNOWN_FILE);

    *t = (struct known_table){.at = file ? file->text : ""};
}

/* *line is NULL at the end, and good until the next call. */
static int table_next(struct known_table *t, const struct vt_node **line,
                      struct vt_err *err)
{
    size_t len = strcspn(t->at, "\n");
    int rc;

    *line = NULL;
    if (len == 0)
        return VT_OK;
    vt_arena_reset(&t->arena);
    rc = vt_json_parse(&t->arena, t->at, len, 1, line, err);
    t->at += len + (t->at[len] == '\n');
    return rc;
}

static void table_close(struct known_table *t)
{
    vt_arena_free(&t->arena);
}

static const char *name_at(const struct vt_node *line, uint32_t i)
{
    const struct vt_node *names = vt_get(line, "names");

    if (!names || names->kind != VT_LIST || i >= names->n)
        return NULL;
    return names->u.item[i].kind == VT_STR ? names->u.item[i].u.str : NULL;
}

/* "org/model" is also known as "model". */
static bool line_names(const struct vt_node *line, const char *name)
{
    const char *known;

    for (uint32_t i = 0; (known = name_at(line, i)); i++)
        if (same_name(known, name) || same_name(without_organisation(known), name))
            return true;
    return false;
}

/* Ends t at the line that has the name; *line NULL: none has. */
static int table_find(struct known_table *t, const char *name,
                      const struct vt_node **line, struct vt_err *err)
{
    int rc;

    do
        rc = table_next(t, line, err);
    while (rc == VT_OK && *line && !line_names(*line, name));
    return rc;
}

static int read_line(struct vt_arch *a, const struct vt_node *line, struct vt_err *err)
{
    const struct vt_node *own = vt_get(line, "config"), *other;
    struct known_table t;
    const char *like = NULL;
    int rc = vt_get_str(line, "like", VT_OPTIONAL, &like, err);

    if (rc != VT_OK || !like)
        return rc != VT_OK ? rc : vt_arch_read(a, own, err);
    table_open(&t);
    rc = table_find(&t, like, &other, err);
    if (rc == VT_OK && (!other || vt_get(other, "like")))
        rc = vt_fail(err, VT_EINPUT, "like '%s', which is no whole config", like);
    if (rc == VT_OK) {
        const struct arch_source s = {.text = own, .top = vt_get(other, "config")};

        rc = arch_read(a, &s, err);
    }
    table_close(&t);
    return rc;
}

static int find_known(struct vt_arch *a, const char *name, bool *found,
                      struct vt_err *err)
{
    struct known_table t;
    const struct vt_node *line;
    int rc;

    table_open(&t);
    rc = table_find(&t, name, &line, err);
    *found = rc == VT_OK && line;
    if (*found)
        rc = read_line(a, line, err);
    table_close(&t);
    return vt_within(err, rc, "%s: %s", KNOWN_FILE, name);
}

bool vt_arch_is_known(const char *name)
{
    struct known_table t;
    const struct vt_node *line;
    bool is;

    table_open(&t);
    is = table_find(&t, name, &line, NULL) == VT_OK && line;
    table_close(&t);
    return is;
}

int vt_arch_each_known(int (*each)(void *user, const char *name,
                                   const struct vt_arch *a, struct vt_err *err),
                       void *user, struct vt_err *err)
{
    struct known_table t;
    const struct vt_node *line;
    struct vt_arch a;
    const char *name;
    int rc;

    table_open(&t);
    while ((rc = table_next(&t, &line, err)) == VT_OK && line &&
           (rc = read_line(&a, line, err)) == VT_OK)
        for (uint32_t i = 0; rc == VT_OK && (name = name_at(line, i)); i++)
            rc = each(user, name, &a, err);
    table_close(&t);
    return rc;
}

/* ---- nearest names -------------------------------------------------------- */

/* A word of a name: what stands between two marks, or on one side of one. */
static size_t word_length(const char *at)
{
    return strcspn(at, "-_/ ");
}

static bool has_word(const char *name, const char *word, size_t len)
{
    for (; *name != '\0'; name += word_length(name), name += *name != '\0')
        if (word_length(name) == len && strncmp(name, word, len) == 0)
            return true;
    return false;
}

/* Small is near. Words in common weigh more than letters: who asks for "llama-8b" means
 * one with both. */
static int name_distance(const char *asked, const char *known)
{
    int far = (int)vt_edit_distance(asked, known);

    for (; *asked != '\0'; asked += word_length(asked), asked += *asked != '\0') {
        size_t len = word_length(asked);

        if (len > 1 && has_word(known, asked, len))
            far -= 3 * (int)len;
    }
    return far;
}

/* The model's name in lower case, cut to a word's length. */
static void bare_name(char out[VT_LONGEST_WORD + 1], const char *name)
{
    size_t n = 0;

    for (name = without_organisation(name); *name != '\0' && n < VT_LONGEST_WORD;
         name++)
        out[n++] = (char)tolower((unsigned char)*name);
    out[n] = '\0';
}

struct near_names {
    char asked[VT_LONGEST_WORD + 1];
    struct {
        char name[VT_LONGEST_WORD + 1];
        int far;
    } best[NEAREST];
    size_t n;
};

static void note_near(struct near_names *f, const char *name)
{
    char bare[VT_LONGEST_WORD + 1];
    size_t at = f->n;
    int far;

    bare_name(bare, name);
    far = name_distance(f->asked, bare);
    while (at > 0 && f->best[at - 1].far > far)
        at--;
    if (at == NEAREST)
        return;
    if (f->n < NEAREST)
        f->n++;
    memmove(&f->best[at + 1], &f->best[at], (f->n - 1 - at) * sizeof(f->best[0]));
    (void)snprintf(f->best[at].name, sizeof(f->best[at].name), "%s", name);
    f->best[at].far = far;
}

static int refuse_name(const char *name, struct vt_err *err)
{
    struct near_names f = {0};
    struct known_table t;
    const struct vt_node *line;
    const char *known;

    bare_name(f.asked, name);
    table_open(&t);
    while (table_next(&t, &line, NULL) == VT_OK && line)
        for (uint32_t i = 0; (known = name_at(line, i)); i++)
            note_near(&f, known);
    table_close(&t);
    return vt_fail(err, VT_EINPUT,
                   "'%.80s' is neither a known model nor a config.json; the nearest "
                   "known are %s, %s, %s; any other by the path of its config.json",
                   name, f.best[0].name, f.best[1].name, f.best[2].name);
}

/* ---- files -------------------------------------------------------------- */

/* Formats that ModelOpt writes beside the config.json, where that does not state them.
 */
static int read_with_quant(struct vt_arch *a, const struct vt_node *config,
                           const char *quant_path, struct vt_err *err)
{
    struct vt_arena arena = {0};
    const struct vt_node *file = NULL, *quant;
    int rc = vt_arch_read(a, config, err);

    if (rc != VT_OK || vt_get_non_null(config, "quantization_config"))
        return rc;
    rc = vt_tree_load(&arena, quant_path, &file, err);
    quant = vt_get_non_null(file, "quantization");
    if (rc == VT_OK && quant)
        rc = arch_read_quant(a, quant, err);
    vt_arena_free(&arena);
    return rc;
}

static bool is_there(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

static int load_file(struct vt_arch *a, const char *path, const char *quant_path,
                     struct vt_err *err)
{
    struct vt_arena arena = {0};
    const struct vt_node *config;
    int rc = vt_tree_load(&arena, path, &config, err);

    if (rc == VT_OK)
        rc = vt_within(err,
                       quant_path ? read_with_quant(a, config, quant_path, err)
                                  : vt_arch_read(a, config, err),
                       "%s", path);
    vt_arena_free(&arena);
    return rc;
}

static int load_directory(struct vt_arch *a, const char *dir, struct vt_err *err)
{
    struct vt_buf config = {0}, quant = {0};
    int rc;

    vt_buf_printf(&config, "%s/config.json", dir);
    vt_buf_printf(&quant, "%s/hf_quant_config.json", dir);
    rc = config.failed || quant.failed
             ? vt_nomem(err)
             : load_file(a, config.data, is_there(quant.data) ? quant.data : NULL, err);
    vt_buf_free(&config);
    vt_buf_free(&quant);
    return rc;
}

/* "NAME (fp8)": as recorders write of a model that vLLM was told to quantise. */
static int find_quantised(struct vt_arch *a, const char *text, bool *found,
                          struct vt_err *err)
{
    char name[VT_LONGEST_WORD + 1], method[16], end;
    int rc;

    *found = false;
    if (sscanf(text, "%95[^ (] (%15[a-z0-9_]%c", name, method, &end) != 3 ||
        end != ')' || (rc = find_known(a, name, found, err)) || !*found)
        return VT_OK;
    return vt_arch_quantize(a, method, err);
}

int vt_arch_load(struct vt_arch *a, const char *name_or_path, struct vt_err *err)
{
    bool found;
    int rc = find_known(a, name_or_path, &found, err);

    if (rc == VT_OK && !found)
        rc = find_quantised(a, name_or_path, &found, err);
    if (rc != VT_OK || found)
        return rc;
    if (vt_is_directory(name_or_path))
        return load_directory(a, name_or_path, err);
    if (is_there(name_or_path) || vt_is_named(name_or_path, ".json"))
        return load_file(a, name_or_path, NULL, err);
    return refuse_name(name_or_path, err);
}
