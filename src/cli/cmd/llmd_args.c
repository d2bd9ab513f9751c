/* llmd_args.c - a command line of llm-d-inference-sim in this program's words: serve
 * --compat llm-d. Its sleeps are the knobs of a latency model; what it bounds is
 * bounded as it does it. */
#include <stdio.h>

#include "cli/cmd/vllm.h"

/* What a flag becomes. */
enum way {
    KNOB,    /* of --latency knob:; a duration, milliseconds if it has no unit */
    FACTOR,  /* the same, a plain number */
    FLAG,    /* as it is, under another name */
    SWITCH,  /* the same, without a value */
    PERCENT, /* a share of 1 here */
    NAME,    /* what the model is called, unless --served-model-name says it */
    ADAPTER, /* {"name": ..., "path": ...} */
    TAKEN,   /* as itself */
    MANY,    /* the same, of every word up to the next flag */
    JOINED,  /* the same, as one list with commas */
    TOGGLE,  /* as itself; its value, if it has one, is true or false */
};

static const struct meaning {
    const char *name, *here;
    enum way way;
} meanings[] = {
    {"time-to-first-token", "time_to_first_token", KNOB},
    {"time-to-first-token-std-dev", "time_to_first_token_std_dev", KNOB},
    {"inter-token-latency", "inter_token_latency", KNOB},
    {"inter-token-latency-std-dev", "inter_token_latency_std_dev", KNOB},
    {"prefill-overhead", "prefill_overhead", KNOB},
    {"prefill-time-per-token", "prefill_time_per_token", KNOB},
    {"prefill-time-std-dev", "prefill_time_std_dev", KNOB},
    {"kv-cache-transfer-latency", "kv_cache_transfer_latency", KNOB},
    {"kv-cache-transfer-latency-std-dev", "kv_cache_transfer_latency_std_dev", KNOB},
    {"kv-cache-transfer-time-per-token", "kv_cache_transfer_time_per_token", KNOB},
    {"kv-cache-transfer-time-std-dev", "kv_cache_transfer_time_std_dev", KNOB},
    {"time-factor-under-load", "time_factor_under_load", FACTOR},
    {"model", NULL, NAME},
    {"lora-modules", "lora-modules", ADAPTER},
    {"kv-cache-size", "num-gpu-blocks", FLAG},
    {"enable-kvcache", "enable-kv-cache-events", SWITCH},
    {"zmq-endpoint", "kv-events-endpoint", FLAG},
    {"hash-seed", "block-hash-seed", FLAG},
    {"failure-injection-rate", "failure-injection-rate", PERCENT},
    {"default-embedding-dimensions", "embedding-dimensions", FLAG},
    {"max-request-body-size-mb", "max-request-body-mb", FLAG},
    {"log-http", "log-requests", SWITCH},
    {"port", NULL, TAKEN},
    {"served-model-name", NULL, MANY},
    {"max-loras", NULL, TAKEN},
    {"max-model-len", NULL, TAKEN},
    {"max-num-seqs", NULL, TAKEN},
    {"mode", NULL, TAKEN},
    {"seed", NULL, TAKEN},
    {"block-size", NULL, TAKEN},
    {"dataset-path", NULL, TAKEN},
    {"failure-types", NULL, JOINED},
    {"kv-events-replay-endpoint", NULL, TAKEN},
    {"ssl-certfile", NULL, TAKEN},
    {"ssl-keyfile", NULL, TAKEN},
    {"enable-request-id-headers", NULL, TOGGLE},
    {"enable-prefix-caching", NULL, TOGGLE},
    {"tensor-parallel-size", NULL, TAKEN},
    {"enforce-eager", NULL, TOGGLE},
};

struct llmd {
    struct opt_words to;
    struct vt_buf knobs;
    const char *model; /* its name */
    bool named, seqs, len, events, blocks;
    /* While a file is read: the command line, whose lists replace the file's. */
    int argc;
    const char *const *argv;
};

static const struct meaning *find(const char *name, size_t len)
{
    for (size_t i = 0; i < VT_COUNT(meanings); i++)
        if (vt_is_text(meanings[i].name, name, len))
            return &meanings[i];
    return NULL;
}

static int put_knob(struct llmd *l, const struct meaning *m, const char *value,
                    struct vt_err *err)
{
    double ms;
    bool good = m->way == FACTOR ? vt_parse_f64(value, strlen(value), &ms)
                                 : vt_parse_time(value, strlen(value), VT_MS, &ms);

    if (!good)
        return vt_fail(err, VT_EINPUT, "--%s: '%s' is no %s", m->name, value,
                       m->way == FACTOR ? "number" : "time");
    vt_buf_printf(&l->knobs, "%s%s=%.9g", l->knobs.len > 0 ? "," : "", m->here, ms);
    return VT_OK;
}

static int put_adapter(struct llmd *l, const char *value, struct vt_err *err)
{
    const char *name = NULL, *path = NULL;
    const struct vt_node *map;
    int rc;

    if (value[0] != '{')
        return opt_word_put(&l->to, err, "--lora-modules=%s", value);
    if ((rc = vt_json_parse(l->to.arena, value, strlen(value), 1, &map, err)) ||
        (rc = vt_get_str(map, "name", VT_REQUIRED, &name, err)) ||
        (rc = vt_get_str(map, "path", VT_OPTIONAL, &path, err)))
        return vt_within(err, rc, "--lora-modules");
    return opt_word_put(&l->to, err, "--lora-modules=%s=%s", name, path ? path : name);
}

static int put_percent(struct llmd *l, const struct meaning *m, const char *value,
                       struct vt_err *err)
{
    double percent;

    if (!vt_parse_f64(value, strlen(value), &percent) || percent < 0 || percent > 100)
        return vt_fail(err, VT_EINPUT, "--%s: '%s' is no percentage", m->name, value);
    return opt_word_put(&l->to, err, "--%s=%.9g", m->here, percent / 100);
}

static int put_meaning(struct llmd *l, const struct meaning *m, const char *value,
                       struct vt_err *err)
{
    l->named |= strcmp(m->name, "served-model-name") == 0;
    l->seqs |= strcmp(m->name, "max-num-seqs") == 0;
    l->len |= strcmp(m->name, "max-model-len") == 0;
    l->events |= strcmp(m->name, "enable-kvcache") == 0;
    l->blocks |= strcmp(m->name, "kv-cache-size") == 0;
    switch (m->way) {
    case KNOB:
    case FACTOR:
        return put_knob(l, m, value, err);
    case SWITCH:
        return opt_word_put(&l->to, err, "--%s", m->here);
    case PERCENT:
        return put_percent(l, m, value, err);
    case NAME:
        l->model = value;
        return VT_OK;
    case ADAPTER:
        return put_adapter(l, value, err);
    case FLAG:
        return opt_word_put(&l->to, err, "--%s=%s", m->here, value);
    case TAKEN:
    case MANY:
    case JOINED:
    case TOGGLE:
        break;
    }
    return value ? opt_word_put(&l->to, err, "--%s=%s", m->name, value)
                 : opt_word_put(&l->to, err, "--%s", m->name);
}

/* As Go reads them. */
static bool is_false(const char *value)
{
    static const char *const no[] = {"false", "False", "FALSE", "0", "f", "F", NULL};

    return value && vt_is_one_of(value, no);
}

/* A flag without value, or with one that says whether it is meant. */
static int put_toggle(struct llmd *l, const struct meaning *m, bool on,
                      struct vt_err *err)
{
    if (on)
        return put_meaning(l, m, NULL, err);
    return strcmp(m->name, "enable-prefix-caching") == 0
               ? opt_word_add(&l->to, "--no-enable-prefix-caching", err)
               : VT_OK; /* without it, it is off */
}

/* The values of a list: each of its own, or one with commas. */
static int put_list(struct llmd *l, const struct meaning *m, const char *const *value,
                    size_t n, struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc = VT_OK;

    for (size_t i = 0; i < n && rc == VT_OK; i++) {
        if (m->way == JOINED)
            vt_buf_printf(&b, "%s%s", i > 0 ? "," : "", value[i]);
        else
            rc = put_meaning(l, m, value[i], err);
    }
    if (rc == VT_OK && m->way == JOINED)
        rc = b.failed ? vt_nomem(err)
                      : opt_word_put(&l->to, err, "--%s=%s", m->name, b.data);
    vt_buf_free(&b);
    return rc;
}

static bool is_list(const struct meaning *m)
{
    return m->way == MANY || m->way == JOINED || m->way == ADAPTER;
}

static bool is_toggle(const struct meaning *m)
{
    return m->way == TOGGLE || m->way == SWITCH;
}

/* What only that program has is told apart by its place in the table of foreign flags:
 * llm-d/NAME. off: it is switched off, as it is without. */
static int put_foreign(struct llmd *l, const char *arg, bool off, struct vt_err *err)
{
    return off ? VT_OK : opt_word_put(&l->to, err, "--llm-d/%s", arg);
}

/* ---- words --------------------------------------------------------------------- */

static int take_file(struct llmd *l, const char *path, struct vt_err *err);

/* argv[*i] is a flag. */
static int take_flag(struct llmd *l, int argc, const char *const *argv, int *i,
                     struct vt_err *err)
{
    const char *name = argv[*i] + 2, *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name), n = 0;
    const char *value = equals ? equals + 1 : NULL;
    bool no = len > 3 && strncmp(name, "no-", 3) == 0;
    const struct meaning *m = find(no ? name + 3 : name, no ? len - 3 : len);

    if (!m && vllm_is_llmd(name + 3 * no, len - 3 * (size_t)no))
        return put_foreign(l, name, no || is_false(value), err);
    if (m && is_toggle(m))
        return put_toggle(l, m, no == is_false(value), err);
    if (vt_is_text("v", name, len)) { /* a level of words */
        *i += !value && *i + 1 < argc;
        return opt_word_add(&l->to, "--verbose", err);
    }
    if (!value && *i + 1 < argc && (vt_is_text("config", name, len) || (m && !no)))
        value = argv[++*i];
    if (value && vt_is_text("config", name, len))
        return take_file(l, value, err);
    if (!m || no)
        return opt_word_add(&l->to, argv[*i], err);
    if (!value)
        return vt_fail(err, VT_EINPUT, "--%s needs a value", m->name);
    if (!is_list(m))
        return put_meaning(l, m, value, err);
    if (equals)
        return put_list(l, m, &value, 1, err);
    while (*i + (int)n < argc && strncmp(argv[*i + (int)n], "--", 2) != 0)
        n++;
    *i += (int)n - 1;
    return put_list(l, m, &argv[*i + 1 - (int)n], n, err);
}

/* ---- a file of them ------------------------------------------------------------ */

static bool is_on_line(const struct llmd *l, const char *name)
{
    for (int i = 0; i < l->argc; i++)
        if (strncmp(l->argv[i], "--", 2) == 0 &&
            vt_is_text(name, l->argv[i] + 2, strcspn(l->argv[i] + 2, "=")))
            return true;
    return false;
}

/* A scalar as one would write it; NULL: out of memory. */
static const char *text_of(struct vt_arena *a, const struct vt_node *n)
{
    char text[64];
    double v;

    if (n->kind == VT_STR)
        return n->u.str;
    if (n->kind == VT_BOOL)
        return n->u.boolean ? "true" : "false";
    if (n->kind == VT_INT)
        (void)snprintf(text, sizeof(text), "%lld", (long long)n->u.integer);
    else
        (void)snprintf(text, sizeof(text), "%.17g", vt_node_f64(n, &v) ? v : 0);
    return vt_arena_copy(a, text, strlen(text));
}

static int take_list(struct llmd *l, const struct meaning *m, const struct vt_node *n,
                     struct vt_err *err)
{
    const char **value =
        vt_arena_alloc(l->to.arena, (n->n + (size_t)1) * sizeof(*value));

    if (!value)
        return vt_nomem(err);
    for (uint32_t i = 0; i < n->n; i++)
        if (!(value[i] = text_of(l->to.arena, &n->u.item[i])))
            return vt_nomem(err);
    return put_list(l, m, value, n->n, err);
}

static int take_member(struct llmd *l, const struct vt_node *n, struct vt_err *err)
{
    const struct meaning *m = find(n->key, strlen(n->key));
    const char *value;

    if (n->kind == VT_NULL || is_on_line(l, n->key))
        return VT_OK;
    if (!m && vllm_is_llmd(n->key, strlen(n->key)))
        return put_foreign(l, n->key, n->kind == VT_BOOL && !n->u.boolean, err);
    if (!m)
        return vt_fail(err, VT_EINPUT, "line %u: unknown setting '%s'", n->line,
                       n->key);
    if (n->kind == VT_LIST && is_list(m))
        return take_list(l, m, n, err);
    if (n->kind == VT_LIST || n->kind == VT_MAP)
        return vt_fail(err, VT_EINPUT, "line %u: '%s' is one value", n->line, n->key);
    value = text_of(l->to.arena, n);
    if (!value)
        return vt_nomem(err);
    return is_toggle(m) ? put_toggle(l, m, !is_false(value), err)
           : is_list(m) ? put_list(l, m, &value, 1, err)
                        : put_meaning(l, m, value, err);
}

/* What the command line says as well, it says in place of the file. */
static int take_file(struct llmd *l, const char *path, struct vt_err *err)
{
    const struct vt_node *root;
    int rc = vt_tree_load(l->to.arena, path, &root, err);

    if (rc != VT_OK)
        return rc;
    if (root->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "%s: no settings", path);
    for (uint32_t i = 0; i < root->n && rc == VT_OK; i++)
        rc = vt_within(err, take_member(l, &root->u.item[i], err), "%s", path);
    return rc;
}

/* ---- the whole ------------------------------------------------------------------ */

/* What it has where nobody says otherwise. */
static int put_standards(struct llmd *l, struct vt_err *err)
{
    int rc = opt_word_put(&l->to, err, "--latency=knob:%s",
                          l->knobs.len > 0 ? l->knobs.data : "time_to_first_token=0");

    if (l->knobs.failed)
        rc = vt_nomem(err);
    if (rc == VT_OK && l->model && !l->named)
        rc = opt_word_put(&l->to, err, "--served-model-name=%s", l->model);
    if (rc == VT_OK && !l->seqs)
        rc = opt_word_put(&l->to, err, "--max-num-seqs=5");
    if (rc == VT_OK && !l->len)
        rc = opt_word_put(&l->to, err, "--max-model-len=1024");
    /* Without its KV cache it bounds none. */
    if (rc == VT_OK && l->events && !l->blocks)
        rc = opt_word_put(&l->to, err, "--num-gpu-blocks=1024");
    return rc;
}

int llmd_rewrite(struct vt_arena *arena, int *argc, const char *const **argv,
                 struct vt_err *err)
{
    struct llmd l = {.to = {.arena = arena}, .argc = *argc, .argv = *argv};
    int rc = opt_word_put(&l.to, err, "--host=0.0.0.0");

    for (int i = 0; i < *argc && rc == VT_OK; i++) {
        const char *arg = (*argv)[i];

        if (strncmp(arg, "-v", 2) == 0) { /* a level of words, which may stand alone */
            i +=
                arg[2] == '\0' && i + 1 < *argc && strspn((*argv)[i + 1], "0123456789");
            rc = opt_word_add(&l.to, "--verbose", err);
        } else if (strncmp(arg, "--", 2) == 0) {
            rc = take_flag(&l, *argc, *argv, &i, err);
        } else {
            rc = opt_word_add(&l.to, arg, err);
        }
    }
    if (rc == VT_OK)
        rc = put_standards(&l, err);
    vt_buf_free(&l.knobs);
    *argc = (int)l.to.n;
    *argv = l.to.word;
    return rc;
}
