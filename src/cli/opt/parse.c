/* parse.c - reads a command's arguments by its table. */
#include <assert.h>
#include <inttypes.h>

#include "cli/cli.h"

enum { MAX_OPTIONS = 256 };

static const struct cli_option help_option = {
    .name = "help", .kind = CLI_FLAG, .help = "show this text"};

static const struct cli_option *find(const struct cli_option *o, const char *name,
                                     size_t len)
{
    for (; o->name; o++)
        if (strlen(o->name) == len && memcmp(o->name, name, len) == 0)
            return o;
    if (len == strlen(help_option.name) && memcmp(name, help_option.name, len) == 0)
        return &help_option;
    return NULL;
}

static int unknown(const struct cli_option *o, const char *arg, struct vt_err *err)
{
    const char *names[MAX_OPTIONS + 1] = {0};
    const char *word = arg + strspn(arg, "-"), *near;
    char head[64];

    snprintf(head, sizeof(head), "%.*s", (int)strcspn(word, "="), word);
    for (size_t i = 0; i < MAX_OPTIONS && o[i].name; i++)
        names[i] = o[i].name;
    near = vt_nearest(head, names);
    if (near)
        return vt_fail(err, VT_EINPUT, "unknown flag '%s' (did you mean '--%s'?)", arg,
                       near);
    return vt_fail(err, VT_EINPUT, "unknown flag '%s'; --help lists them", arg);
}

/* A switch may be written --no-name. */
static const struct cli_option *find_off(const struct cli_option *o, const char *name,
                                         size_t len)
{
    const struct cli_option *found;

    if (len <= 3 || memcmp(name, "no-", 3) != 0)
        return NULL;
    found = find(o, name + 3, len - 3);
    return found && found->kind == CLI_SWITCH ? found : NULL;
}

/* -o is --out wherever there is one. */
static const char *name_of(const struct cli_option *o, const char *arg)
{
    return strcmp(arg, "-o") == 0 && find(o, "out", 3) ? "out" : arg + 2;
}

/* Whether the words up to the next flag are its values too: help shows "...". */
static bool takes_many(const struct cli_option *o)
{
    size_t len = o->kind == CLI_VALUE && o->value ? strlen(o->value) : 0;

    return len > 3 && strcmp(o->value + len - 3, "...") == 0;
}

/* argv[*i] starts with "--" or is "-o". Moves *i on when the value is the next
 * argument. */
static int parse_one(struct cli_args *a, int argc, char **argv, int *i,
                     struct vt_err *err)
{
    const char *name = name_of(a->options, argv[*i]), *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    struct cli_given *g = &a->given[a->n_given];

    g->option = find(a->options, name, len);
    if (!g->option) {
        g->option = find_off(a->options, name, len);
        g->off = true;
    }
    if (!g->option)
        return unknown(a->options, argv[*i], err);
    if (g->option->kind != CLI_VALUE) {
        if (equals)
            return vt_fail(err, VT_EINPUT, "--%s takes no value", g->option->name);
    } else if (equals) {
        g->value = equals + 1;
    } else if (*i + 1 < argc && strncmp(argv[*i + 1], "--", 2) != 0) {
        g->value = argv[++*i];
    } else {
        return vt_fail(err, VT_EINPUT, "--%s needs a value (%s)", g->option->name,
                       g->option->value);
    }
    a->help = a->help || g->option == &help_option;
    a->n_given++;
    while (takes_many(g->option) && *i + 1 < argc && argv[*i + 1][0] != '-')
        a->given[a->n_given++] =
            (struct cli_given){.option = g->option, .value = argv[++*i]};
    return VT_OK;
}

int cli_args_parse(struct cli_args *a, const struct cli_command *c, int argc,
                   char **argv, struct vt_err *err)
{
    bool only_operands = false;
    int rc = VT_OK;

    *a = (struct cli_args){.options = c->options};
    a->given = calloc((size_t)argc + 1, sizeof(*a->given));
    a->operand = calloc((size_t)argc + 1, sizeof(*a->operand));
    if (!a->given || !a->operand)
        return vt_nomem(err);
    for (int i = 0; i < argc && rc == VT_OK; i++) {
        if (only_operands || argv[i][0] != '-' || strcmp(argv[i], "-") == 0)
            a->operand[a->n_operands++] = argv[i];
        else if (strcmp(argv[i], "--") == 0)
            only_operands = true;
        else if (strcmp(argv[i], "-h") == 0)
            a->help = true;
        else if (strncmp(argv[i], "--", 2) == 0 || strcmp(argv[i], "-o") == 0)
            rc = parse_one(a, argc, argv, &i, err);
        else
            rc = unknown(a->options, argv[i], err);
    }
    return rc;
}

void cli_args_free(struct cli_args *a)
{
    free(a->given);
    free(a->operand);
    *a = (struct cli_args){0};
}

/* The last mention of a flag; NULL: not given. */
static const struct cli_given *last(const struct cli_args *a, const char *name)
{
    assert(find(a->options, name, strlen(name)));
    for (size_t i = a->n_given; i > 0; i--)
        if (strcmp(a->given[i - 1].option->name, name) == 0)
            return &a->given[i - 1];
    return NULL;
}

bool cli_has(const struct cli_args *a, const char *name)
{
    return last(a, name) != NULL;
}

const char *cli_str(const struct cli_args *a, const char *name)
{
    const struct cli_given *g = last(a, name);

    return g ? g->value : NULL;
}

const char *cli_str_or(const struct cli_args *a, const char *name, const char *fallback)
{
    const char *given = cli_str(a, name);

    return given != NULL ? given : fallback;
}

const char *cli_each(const struct cli_args *a, const char *name, size_t *at)
{
    while (*at < a->n_given) {
        const struct cli_given *g = &a->given[(*at)++];

        if (strcmp(g->option->name, name) == 0)
            return g->value;
    }
    return NULL;
}

int cli_i64(const struct cli_args *a, const char *name, int64_t lo, int64_t hi,
            int64_t *out, struct vt_err *err)
{
    const char *text = cli_str(a, name);
    int64_t v;

    if (!text)
        return VT_OK;
    if (!vt_parse_i64(text, strlen(text), &v) || v < lo || v > hi)
        return vt_fail(err, VT_EINPUT,
                       "--%s: '%s' is not a whole number from %" PRId64 " to %" PRId64,
                       name, text, lo, hi);
    *out = v;
    return VT_OK;
}

int cli_u32(const struct cli_args *a, const char *name, uint32_t lo, uint32_t hi,
            uint32_t *out, struct vt_err *err)
{
    int64_t v = *out;
    int rc = cli_i64(a, name, lo, hi, &v, err);

    *out = (uint32_t)v;
    return rc;
}

int cli_f64(const struct cli_args *a, const char *name, double lo, double hi,
            double *out, struct vt_err *err)
{
    const char *text = cli_str(a, name);
    double v;

    if (!text)
        return VT_OK;
    if (!vt_parse_f64(text, strlen(text), &v) || v < lo || v > hi)
        return vt_fail(err, VT_EINPUT, "--%s: '%s' is not a number from %g to %g", name,
                       text, lo, hi);
    *out = v;
    return VT_OK;
}

int cli_word(const struct cli_args *a, const char *name, int *out, struct vt_err *err)
{
    const struct cli_given *g = last(a, name);
    struct vt_buf list = {0};

    if (!g)
        return VT_OK;
    for (int i = 0; g->option->words[i]; i++) {
        if (strcmp(g->option->words[i], g->value) == 0) {
            *out = i;
            return VT_OK;
        }
    }
    for (int i = 0; g->option->words[i]; i++)
        vt_buf_printf(&list, "%s%s", i ? ", " : "", g->option->words[i]);
    vt_fail(err, VT_EINPUT, "--%s: '%s' is none of %s", name, g->value,
            list.data ? list.data : "its words");
    vt_buf_free(&list);
    return VT_EINPUT;
}

void cli_switch(const struct cli_args *a, const char *name, bool *out)
{
    const struct cli_given *g = last(a, name);

    if (g)
        *out = !g->off;
}

int cli_operands(const struct cli_args *a, const struct cli_command *c, size_t lo,
                 size_t hi, struct vt_err *err)
{
    if (a->n_operands > hi)
        return vt_fail(err, VT_EINPUT,
                       "'%s' is one argument too many; usage: vtwin %s %s",
                       a->operand[hi], c->name, c->usage);
    if (a->n_operands < lo)
        return vt_fail(err, VT_EINPUT, "usage: vtwin %s %s", c->name, c->usage);
    return VT_OK;
}

int cli_unknown_sub(const struct cli_command *c, const char *name, struct vt_err *err)
{
    const char *near = vt_nearest(name, c->operands);

    if (near)
        return vt_fail(err, VT_EINPUT, "unknown subcommand '%s' (did you mean '%s'?)",
                       name, near);
    return vt_fail(err, VT_EINPUT, "unknown subcommand '%s'; usage: vtwin %s %s", name,
                   c->name, c->usage);
}
