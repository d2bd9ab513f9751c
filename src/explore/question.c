/* question.c - from flags in a query to a command line of this program. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "explore/parts.h"
#include "model/model.h"
#include "net/net.h"
#include "sim/sim.h"

/* To add a question: one row here, and one in docs/explore.md. */
const struct question questions[] = {
    {.path = "/api/v1/preview",
     .about = "a first look by short runs: the curve and about where it bends",
     .command = {"capacity"},
     .adds = {"--sketch", "--json"}},
    {.path = "/api/v1/capacity",
     .about = "the highest rate within the limits, and the rates that were tried",
     .command = {"capacity"},
     .adds = {"--json"}},
    {.path = "/api/v1/point",
     .about = "one run at request-rate: its summary, and what went on over time",
     .command = {"simulate"},
     .adds = {"--charts", "--json"},
     .leaves = "seeds"},
    {.path = "/api/v1/workload.yaml",
     .about = "the traffic",
     .command = {"workload", "show"},
     .type = "text/yaml; charset=utf-8",
     .file = "workload.yaml"},
    {.path = "/api/v1/profile.json",
     .about = "the engine and what its steps take",
     .command = {"profile", "make"},
     .type = "application/json",
     .file = "profile.json"},
    {.path = "/api/v1/report.html",
     .about = "the run at request-rate as a page of its own",
     .command = {"simulate"},
     .leaves = "seeds",
     .type = "text/html; charset=utf-8",
     .file = "report.html",
     .writes = "report"},
    {0},
};

const struct question *question_find(const char *path)
{
    for (const struct question *q = questions; q->path; q++)
        if (strcmp(q->path, path) == 0)
            return q;
    return NULL;
}

/* ---- what a page may set ---------------------------------------------------- */

/* What values look like. None of them can name a file, a server or another flag. */
enum flag_kind {
    IS_NUMBER,
    IS_WORD, /* letters, digits and what stands between them in lists */
    IS_SWITCH,
    IS_MODEL,
    IS_GPU,
    IS_WORKLOAD,
};
static const struct {
    const char *name;
    enum flag_kind kind;
} flags[] = {
    {"model", IS_MODEL}, /* the operand */
    {"gpu", IS_GPU},
    {"quantization", IS_WORD},
    {"dtype", IS_WORD},
    {"kv-cache-dtype", IS_WORD},
    {"tensor-parallel-size", IS_NUMBER},
    {"pipeline-parallel-size", IS_NUMBER},
    {"data-parallel-size", IS_NUMBER},
    {"enable-expert-parallel", IS_SWITCH},
    {"instances", IS_NUMBER},
    {"routing", IS_WORD},
    {"vllm-version", IS_NUMBER},
    {"max-num-seqs", IS_NUMBER},
    {"max-num-batched-tokens", IS_NUMBER},
    {"max-model-len", IS_NUMBER},
    {"gpu-memory-utilization", IS_NUMBER},
    {"enable-prefix-caching", IS_SWITCH},
    {"enforce-eager", IS_SWITCH},
    {"basis", IS_WORD},
    {"workload", IS_WORKLOAD},
    {"dataset-name", IS_WORD},
    {"num-prompts", IS_NUMBER},
    {"request-rate", IS_NUMBER},
    {"burstiness", IS_NUMBER},
    {"input-len", IS_NUMBER},
    {"output-len", IS_NUMBER},
    {"random-input-len", IS_NUMBER},
    {"random-output-len", IS_NUMBER},
    {"random-range-ratio", IS_NUMBER},
    {"random-prefix-len", IS_NUMBER},
    {"slo", IS_WORD},
    {"seed", IS_NUMBER},
    {"seeds", IS_NUMBER},
    {"tolerance", IS_NUMBER},
};

static bool is_made_of(const char *value, const char *others)
{
    if (!isalnum((unsigned char)*value))
        return false;
    for (; *value; value++)
        if (!isalnum((unsigned char)*value) && !strchr(others, *value))
            return false;
    return true;
}

static bool is_workload(const char *name)
{
    struct vt_builtin_workload w;

    for (size_t at = 0; vt_builtin_workload_next(&at, &w);)
        if (strcmp(w.name, name) == 0)
            return true;
    return false;
}

static bool is_value(enum flag_kind kind, const char *value)
{
    struct vt_gpu gpu;
    struct vt_err ignored;

    switch (kind) {
    case IS_NUMBER:
        return is_made_of(value, ".+-");
    case IS_WORD:
        return is_made_of(value, "._:,=-");
    case IS_SWITCH:
        return strcmp(value, "on") == 0 || strcmp(value, "off") == 0;
    case IS_MODEL:
        return vt_arch_is_known(value);
    case IS_GPU:
        return vt_gpu_find(&gpu, value, NULL, &ignored) == VT_OK;
    case IS_WORKLOAD:
        return is_workload(value);
    }
    return false;
}

static size_t flag_of(const char *name)
{
    size_t i = 0;

    while (i < VT_COUNT(flags) && strcmp(flags[i].name, name) != 0)
        i++;
    return i;
}

bool flag_is_free(const struct vt_explore_flag *f)
{
    size_t i = flag_of(f->name ? f->name : "model");

    return i < VT_COUNT(flags) &&
           (f->value ? is_value(flags[i].kind, f->value) : flags[i].kind == IS_SWITCH);
}

/* ---- the command line ---------------------------------------------------------- */

void argv_free(struct argv_words *w)
{
    free(w->word);
    vt_arena_free(&w->arena);
    *w = (struct argv_words){0};
}

static int add_word(struct argv_words *w, const char *before, const char *text,
                    struct vt_err *err)
{
    char flag[128];
    int rc = vt_grow(&w->word, &w->cap, w->n + 2, sizeof(*w->word), err);

    if (rc == VT_OK && *before != '\0')
        snprintf(flag, sizeof(flag), "%s%s", before, text);
    if (rc == VT_OK)
        rc = vt_arena_text(&w->arena, *before != '\0' ? flag : text, &w->word[w->n],
                           err);
    if (rc == VT_OK)
        w->word[++w->n] = NULL;
    return rc;
}

/* As a flag is written: "--x value", "--x", "--no-x", or the model alone. */
static int add_flag(struct argv_words *w, const struct vt_explore_flag *f,
                    struct vt_err *err)
{
    bool model = !f->name || strcmp(f->name, "model") == 0;
    size_t i = f->name ? flag_of(f->name) : 0;
    bool is_switch = i < VT_COUNT(flags) && flags[i].kind == IS_SWITCH;
    bool off = is_switch && f->value && strcmp(f->value, "off") == 0;
    int rc;

    if (model)
        return add_word(w, "", f->value, err);
    if (off && strcmp(f->name, "enforce-eager") == 0)
        return VT_OK; /* vLLM has no word for it */
    rc = add_word(w, off ? "--no-" : "--", f->name, err);
    if (rc == VT_OK && f->value && !is_switch)
        rc = add_word(w, "", f->value, err);
    return rc;
}

static bool command_takes(const struct vt_explore *x, const struct question *q,
                          const char *name)
{
    if (!name || strcmp(name, "model") == 0)
        return x->takes(x->user, q->command[0], "gpu");
    return !(q->leaves && strcmp(q->leaves, name) == 0) &&
           x->takes(x->user, q->command[0], name);
}

/* One flag of the query; *at moves behind it. */
static int take_flag(const char **at, char name[64], char value[256],
                     struct vt_err *err)
{
    size_t all = strcspn(*at, "&"), len = strcspn(*at, "=&");
    const char *start = *at;
    char part[1024];

    *at += all + (start[all] == '&');
    if (len >= 64 || all >= sizeof(part))
        return vt_fail(err, VT_EINPUT, "a flag of %zu bytes", all);
    snprintf(name, 64, "%.*s", (int)len, start);
    snprintf(part, sizeof(part), "%.*s", (int)all, start);
    if (!net_query_value(part, name, value, 256))
        return vt_fail(err, VT_EINPUT, "'%s' has no value that could be read", name);
    return VT_OK;
}

static int check_flag(const struct vt_explore_flag *f, struct vt_err *err)
{
    const char *known[VT_COUNT(flags) + 1] = {0};

    if (flag_is_free(f))
        return VT_OK;
    for (size_t i = 0; i < VT_COUNT(flags); i++)
        known[i] = flags[i].name;
    if (flag_of(f->name) == VT_COUNT(flags))
        return vt_fail_unknown(err, "flag", f->name, 40, known);
    return vt_fail(err, VT_EINPUT, "%s: '%.60s' is none that a page may ask for",
                   f->name, f->value);
}

int question_argv(struct argv_words *w, const struct vt_explore *x,
                  const struct question *q, const char *query, struct vt_err *err)
{
    char name[64], value[256];
    const struct vt_explore_flag asked = {name, value};
    int rc = VT_OK;

    *w = (struct argv_words){0};
    rc = add_word(w, "", "vtwin", err);
    for (size_t i = 0; q->command[i] && rc == VT_OK; i++)
        rc = add_word(w, "", q->command[i], err);
    for (size_t i = 0; i < x->n_start && rc == VT_OK; i++)
        if (!flag_is_free(&x->start[i]) && command_takes(x, q, x->start[i].name))
            rc = add_flag(w, &x->start[i], err);
    while (*query != '\0' && rc == VT_OK)
        if (!(rc = take_flag(&query, name, value, err)) &&
            !(rc = check_flag(&asked, err)) && command_takes(x, q, name))
            rc = add_flag(w, &asked, err);
    for (size_t i = 0; q->adds[i] && rc == VT_OK; i++)
        rc = add_word(w, "", q->adds[i], err);
    return rc;
}

void argv_text(struct vt_buf *b, const struct argv_words *w)
{
    for (size_t i = 0; i < w->n; i++) {
        const char *word = w->word[i];

        if (i > 0)
            vt_buf_char(b, ' ');
        if (*word != '\0' &&
            word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "0123456789_./:,=+-")] == '\0') {
            vt_buf_str(b, word);
            continue;
        }
        vt_buf_char(b, '\'');
        for (; *word; word++)
            vt_buf_printf(b, *word == '\'' ? "'\\'%c" : "%c", *word);
        vt_buf_char(b, '\'');
    }
}
