/* vllm_args.c - a command line of `vllm serve` in this program's words. */
#include <ctype.h>
#include <stdio.h>

#include "cli/cmd/vllm.h"

struct words {
    struct opt_words to;
    bool named; /* the model comes first: a file's does not count */
};

/* --NAME=VALUE; value NULL: --NAME. */
static int add_named(struct words *w, const char *name, const char *value,
                     struct vt_err *err)
{
    return value ? opt_word_put(&w->to, err, "--%s=%s", name, value)
                 : opt_word_put(&w->to, err, "--%s", name);
}

/* A node's value as one would write it on the command line. */
static int add_value(struct words *w, const char *name, const struct vt_node *n,
                     struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc;

    if (n->kind == VT_STR)
        return add_named(w, name, n->u.str, err);
    vt_buf_json_node(&b, n, NULL);
    rc = b.failed ? vt_nomem(err) : add_named(w, name, b.data, err);
    vt_buf_free(&b);
    return rc;
}

/* ---- settings that vLLM takes as JSON ------------------------------------ */

/* EAGLE and its like look ahead; those without a model do not. */
static const char *method_of(const char *vllm)
{
    return strstr(vllm, "ngram") || strcmp(vllm, "suffix") == 0 ? "ngram" : "eagle";
}

static int take_speculative(struct words *w, const struct vt_node *map,
                            struct vt_err *err)
{
    const struct vt_node *n = vt_get_non_null(map, "num_speculative_tokens");
    const struct vt_node *method = vt_get_non_null(map, "method");
    int rc = VT_OK;

    if (n)
        rc = add_value(w, "num-speculative-tokens", n, err);
    if (rc == VT_OK && method && method->kind == VT_STR)
        rc = add_named(w, "speculative-method", method_of(method->u.str), err);
    return rc;
}

static int take_kv_events(struct words *w, const struct vt_node *map,
                          struct vt_err *err)
{
    static const struct {
        const char *key, *flag;
    } text[] = {{"endpoint", "kv-events-endpoint"},
                {"replay_endpoint", "kv-events-replay-endpoint"},
                {"topic", "kv-events-topic"}};
    const struct vt_node *on = vt_get_non_null(map, "enable_kv_cache_events");
    int rc = VT_OK;

    if (on && on->kind == VT_BOOL && on->u.boolean)
        rc = add_named(w, "enable-kv-cache-events", NULL, err);
    for (size_t i = 0; i < VT_COUNT(text) && rc == VT_OK; i++) {
        const struct vt_node *v = vt_get_non_null(map, text[i].key);

        if (v && v->kind == VT_STR)
            rc = add_named(w, text[i].flag, v->u.str, err);
    }
    return rc;
}

struct setting {
    const char *name;
    int (*take)(struct words *w, const struct vt_node *map, struct vt_err *err);
};

static const struct setting settings[] = {{"speculative-config", take_speculative},
                                          {"kv-events-config", take_kv_events}};

static const struct setting *find_setting(const char *name, size_t len)
{
    for (size_t i = 0; i < VT_COUNT(settings); i++)
        if (vt_is_text(settings[i].name, name, len))
            return &settings[i];
    return NULL;
}

static int take_json(struct words *w, const struct setting *s, const char *text,
                     struct vt_err *err)
{
    const struct vt_node *map;
    int rc = vt_json_parse(w->to.arena, text, strlen(text), 1, &map, err);

    if (rc == VT_OK && map->kind != VT_MAP)
        rc = vt_fail(err, VT_EINPUT, "not an object");
    if (rc == VT_OK)
        rc = s->take(w, map, err);
    return vt_within(err, rc, "--%s", s->name);
}

/* ---- a file of flags ------------------------------------------------------- */

static void dashes(char *name)
{
    for (; *name; name++)
        if (*name == '_')
            *name = '-';
}

/* A list's members are words of one flag, and flags here are repeated. */
static int add_setting(struct words *w, const struct vt_node *n, struct vt_err *err)
{
    char *name = vt_arena_copy(w->to.arena, n->key, strlen(n->key));
    const struct setting *s;
    int rc = VT_OK;

    if (!name)
        return vt_nomem(err);
    dashes(name);
    s = find_setting(name, strlen(name));
    if (s && n->kind == VT_MAP)
        return s->take(w, n, err);
    if (n->kind == VT_NULL || (n->kind == VT_BOOL && !n->u.boolean))
        return VT_OK; /* vLLM leaves false ones out */
    if (n->kind == VT_BOOL)
        return add_named(w, name, NULL, err);
    if (strcmp(name, "model") == 0 || strcmp(name, "model-tag") == 0)
        return w->named            ? VT_OK
               : n->kind == VT_STR ? opt_word_add(&w->to, n->u.str, err)
                                   : vt_fail(err, VT_EINPUT, "'model' is no text");
    if (n->kind != VT_LIST)
        return add_value(w, name, n, err);
    for (uint32_t i = 0; i < n->n && rc == VT_OK; i++)
        rc = add_value(w, name, &n->u.item[i], err);
    return rc;
}

static int add_file(struct words *w, const char *path, struct vt_err *err)
{
    const struct vt_node *root;
    int rc = vt_tree_load(w->to.arena, path, &root, err);

    if (rc == VT_OK && root->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "%s: a file of flags is a map", path);
    for (uint32_t i = 0; rc == VT_OK && i < root->n; i++)
        rc = vt_within(err, add_setting(w, &root->u.item[i], err), "%s", path);
    return rc;
}

/* ---- names ----------------------------------------------------------------- */

static const struct {
    const char *vllm, *here;
} other_names[] = {
    {"-asc", "--api-server-count"},
    {"-q", "--quantization"},
    {"-pp", "--pipeline-parallel-size"},
    {"-n", "--nnodes"},
    {"-r", "--node-rank"},
    {"-tp", "--tensor-parallel-size"},
    {"-dcp", "--decode-context-parallel-size"},
    {"-pcp", "--prefill-context-parallel-size"},
    {"-dp", "--data-parallel-size"},
    {"-dpn", "--data-parallel-rank"},
    {"-dpr", "--data-parallel-start-rank"},
    {"-dpl", "--data-parallel-size-local"},
    {"-dpa", "--data-parallel-address"},
    {"-dpp", "--data-parallel-rpc-port"},
    {"-dpb", "--data-parallel-backend"},
    {"-dph", "--data-parallel-hybrid-lb"},
    {"-dpe", "--data-parallel-external-lb"},
    {"-dpm", "--data-parallel-multi-port-external-lb"},
    {"-ep", "--enable-expert-parallel"},
    {"-sc", "--speculative-config"},
    {"-cc", "--compilation-config"},
    {"-ac", "--attention-config"},
    {"-dc", "--diffusion-config"},
    {"-v", "--verbose"},
    {"--device-memory-utilization", "--gpu-memory-utilization"},
    {"--spec-tokens", "--num-speculative-tokens"},
};

/* The flag's name as it is written here, without its value. NULL: out of memory. */
static const char *plain_name(struct vt_arena *arena, const char *arg, size_t len)
{
    char *name;

    if (len > 2 && memcmp(arg, "-O", 2) == 0) /* -O3 */
        return "--optimization-level";
    name = vt_arena_copy(arena, arg, len);
    if (!name)
        return NULL;
    dashes(name);
    for (size_t i = 0; i < VT_COUNT(other_names); i++)
        if (strcmp(name, other_names[i].vllm) == 0)
            return other_names[i].here;
    return name;
}

/* ---- the whole ---------------------------------------------------------------- */

/* "a.b" and "3" as {"a":{"b":3}}. NULL: out of memory. */
static const char *nested(struct vt_arena *arena, const char *keys, size_t len,
                          const char *value)
{
    struct vt_buf b = {0};
    const struct vt_node *node;
    const char *text = NULL;
    struct vt_err ignored;
    size_t depth = 0;

    for (size_t at = 0; at < len; depth++) {
        const char *dot = memchr(keys + at, '.', len - at);
        size_t n = dot ? (size_t)(dot - keys) - at : len - at;

        vt_buf_char(&b, '{');
        vt_buf_json_str(&b, keys + at, n);
        vt_buf_char(&b, ':');
        at += n + 1;
    }
    if (vt_json_parse(arena, value, strlen(value), 1, &node, &ignored) == VT_OK)
        vt_buf_str(&b, value);
    else
        vt_buf_json_str(&b, value, strlen(value));
    while (depth-- > 0)
        vt_buf_char(&b, '}');
    if (!b.failed)
        text = vt_arena_copy(arena, b.data, b.len);
    vt_buf_free(&b);
    return text;
}

/* argv[*i] is a flag; its value may be the next word. */
static int rewrite_flag(struct words *w, int argc, const char *const *argv, int *i,
                        struct vt_err *err)
{
    const char *arg = argv[*i], *equals = strchr(arg, '=');
    size_t len = equals ? (size_t)(equals - arg) : strlen(arg);
    const char *dot = memchr(arg, '.', len), *value = equals ? equals + 1 : NULL;
    const char *next = *i + 1 < argc ? argv[*i + 1] : NULL;
    const char *name = plain_name(w->to.arena, arg, dot ? (size_t)(dot - arg) : len);
    const struct setting *s;

    if (!name)
        return vt_nomem(err);
    if (strncmp(arg, "-O", 2) == 0 && len > 2)
        return add_named(w, "optimization-level", arg + 2, err);
    s = find_setting(name + 2, strlen(name + 2));
    if (!value && next && (s || dot || strcmp(name, "--config") == 0)) {
        value = next;
        ++*i;
    }
    if (strcmp(name, "--config") == 0)
        return value ? add_file(w, value, err)
                     : vt_fail(err, VT_EINPUT, "--config needs a value (FILE)");
    if (dot && value &&
        !(value = nested(w->to.arena, dot + 1, (size_t)(arg + len - dot) - 1, value)))
        return vt_nomem(err);
    if (s && value)
        return take_json(w, s, value, err);
    return value ? add_named(w, name + 2, value, err) : opt_word_add(&w->to, name, err);
}

/* Takes "--compat llm-d" out of the words, and says whether it was there. */
static int take_compat(struct opt_words *w, int argc, const char *const *argv,
                       bool *llmd, struct vt_err *err)
{
    static const char flag[] = "--compat";
    size_t len = strlen(flag);
    int rc = VT_OK;

    *llmd = false;
    for (int i = 0; i < argc && rc == VT_OK; i++) {
        const char *value = argv[i][0] == '-' && strncmp(argv[i], flag, len) == 0
                                ? argv[i] + len
                                : NULL;

        if (!value || (*value != '\0' && *value != '=')) {
            rc = opt_word_add(w, argv[i], err);
            continue;
        }
        value = *value == '=' ? value + 1 : i + 1 < argc ? argv[++i] : "";
        if (strcmp(value, "llm-d") != 0 && strcmp(value, "vllm") != 0)
            return vt_fail(err, VT_EINPUT, "--compat: '%s' is none of vllm, llm-d",
                           value);
        *llmd = strcmp(value, "llm-d") == 0;
    }
    return rc;
}

int vllm_rewrite(struct vt_arena *arena, int *argc, const char *const **argv,
                 struct vt_err *err)
{
    struct words w = {.to = {.arena = arena},
                      .named = *argc > 0 && (*argv)[0][0] != '-'};
    struct opt_words rest = {.arena = arena};
    bool llmd;
    int rc = take_compat(&rest, *argc, *argv, &llmd, err);

    *argc = (int)rest.n;
    *argv = rest.word;
    if (rc == VT_OK && llmd)
        return llmd_rewrite(arena, argc, argv, err);
    for (int i = 0; i < *argc && rc == VT_OK; i++) {
        const char *arg = (*argv)[i];

        if (strcmp(arg, "--") == 0) {
            for (; i < *argc && rc == VT_OK; i++)
                rc = opt_word_add(&w.to, (*argv)[i], err);
        } else if (arg[0] == '-' && (arg[1] == '-' || isalpha((unsigned char)arg[1])) &&
                   strcmp(arg, "-h") != 0 && strcmp(arg, "-o") != 0) {
            rc = rewrite_flag(&w, *argc, *argv, &i, err);
        } else {
            rc = opt_word_add(&w.to, arg, err);
        }
    }
    *argc = (int)w.to.n;
    *argv = w.to.word;
    return rc;
}
