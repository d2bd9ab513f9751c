/* parse.c - reads a command's arguments by its table. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "cli/opt/opt.h"

enum { MAX_OPTIONS = 256 };
#define OPT_MOST_MS 1e12

static const struct opt_row help_row = {
    .name = "help", .kind = OPT_IS_FLAG, .help = "show this text"};

/* ---- rows --------------------------------------------------------------- */

/* Row i of all blocks; NULL: there are no more. */
static const struct opt_row *row_at(const struct opt_command *c, size_t i,
                                    const struct opt_block **block)
{
    for (const struct opt_block *b = c->blocks; b && b->row; b++)
        for (const struct opt_row *r = b->row; r->name; r++)
            if (i-- == 0) {
                *block = b;
                return r;
            }
    return NULL;
}

/* The first of that name: it hides those behind it. */
static bool find_row(const struct opt_command *c, const char *name, size_t len,
                     struct opt_mention *m)
{
    for (m->index = 0; (m->row = row_at(c, m->index, &m->block)); m->index++)
        if (vt_is_text(m->row->name, name, len))
            return true;
    if (vt_is_text(help_row.name, name, len))
        m->row = &help_row;
    return m->row != NULL;
}

const struct opt_row *opt_next(const struct opt_command *c, size_t *at)
{
    const struct opt_row *row;
    const struct opt_block *block;
    struct opt_mention first;

    while ((row = row_at(c, (*at)++, &block)))
        if (!row->now && find_row(c, row->name, strlen(row->name), &first) &&
            first.row == row)
            return row;
    return NULL;
}

static const struct opt_foreign *find_foreign(const struct opt_command *c,
                                              const char *name, size_t len)
{
    bool off = len > 3 && memcmp(name, "no-", 3) == 0;

    for (const struct opt_foreign *f = c->foreign; f && f->name; f++) {
        if (vt_is_text(f->name, name, len))
            return f;
        if (off && f->takes == OPT_TAKES_NOTHING &&
            vt_is_text(f->name, name + 3, len - 3))
            return f;
    }
    return NULL;
}

static int fail_unknown(const struct opt_command *c, const char *arg,
                        struct vt_err *err)
{
    const char *names[MAX_OPTIONS + 1] = {0};
    const char *word = arg + strspn(arg, "-"), *near;
    const struct opt_row *row;
    const struct opt_block *block;
    char head[64];

    snprintf(head, sizeof(head), "%.*s", (int)strcspn(word, "="), word);
    for (size_t i = 0; i < MAX_OPTIONS && (row = row_at(c, i, &block)); i++)
        names[i] = row->name;
    near = vt_nearest(head, names);
    if (near)
        return vt_fail(err, VT_EINPUT, "unknown flag '%s' (did you mean '--%s'?)", arg,
                       near);
    return vt_fail(err, VT_EINPUT, "unknown flag '%s'; --help lists them", arg);
}

/* ---- values ------------------------------------------------------------- */

static const char *unit_name(vt_ns unit)
{
    return unit == VT_SEC ? "s" : unit == VT_MS ? "ms" : "us";
}

static int read_time(const struct opt_row *r, const char *text, double *v,
                     struct vt_err *err)
{
    if (!vt_parse_time(text, strlen(text), r->unit, v) || *v < r->lo || *v > r->hi)
        return vt_fail(err, VT_EINPUT, "--%s: '%s' is not a time from %g to %g %s",
                       r->name, text, r->lo, r->hi, unit_name(r->unit));
    return VT_OK;
}

int opt_limit(const char *flag, const char *text, size_t len, double *ms,
              struct vt_err *err)
{
    bool bare = len > 0 && text[len - 1] != 's';

    if (!vt_parse_time(text, len, VT_MS, ms) || *ms < 0 || *ms > OPT_MOST_MS)
        return vt_fail(err, VT_EINPUT, "%s%.*s: not a time from 0 to %g ms", flag,
                       (int)len, text, OPT_MOST_MS);
    if (!bare || !(*ms > 0 && *ms < 1))
        return VT_OK;
    return vt_fail(err, VT_EINPUT,
                   "%s%.*s: %g ms? give %g for %g seconds, or %gs; %s%gms if you mean "
                   "it",
                   flag, (int)len, text, *ms, *ms * 1e3, *ms, *ms, flag, *ms);
}

int opt_read_limit(const struct opt_row *r, const char *text, void *field,
                   struct vt_err *err)
{
    char flag[64];

    snprintf(flag, sizeof(flag), "--%s ", r->name);
    return opt_limit(flag, text, strlen(text), field, err);
}

bool opt_count(const char *text, double *v)
{
    static const struct {
        char letter;
        double factor;
    } unit[] = {{'k', 1e3},     {'m', 1e6},     {'g', 1e9},
                {'K', 1 << 10}, {'M', 1 << 20}, {'G', 1 << 30}};
    size_t len = strlen(text);
    double factor = 1;

    for (size_t i = 0; len > 0 && i < VT_COUNT(unit); i++)
        if (text[len - 1] == unit[i].letter)
            factor = unit[i].factor;
    len -= factor > 1;
    if (!vt_parse_f64(text, len, v) || *v < 0 || *v * factor > 1e15)
        return false;
    *v = floor(*v * factor);
    return true;
}

static bool has_letter(const char *text)
{
    return *text && strchr("kKmMgG", text[strlen(text) - 1]);
}

/* Of a time: in whole units. */
static int read_whole(const struct opt_row *r, const char *text, int64_t *v,
                      struct vt_err *err)
{
    double time;

    if (r->unit > 0 && vt_parse_time(text, strlen(text), r->unit, &time) &&
        time >= (double)r->least && time <= (double)r->most && !(floor(time) < time)) {
        *v = (int64_t)time;
        return VT_OK;
    }
    if (!vt_parse_i64(text, strlen(text), v))
        *v = r->unit == 0 && has_letter(text) && opt_count(text, &time) ? (int64_t)time
                                                                        : r->least - 1;
    if (*v < r->least || *v > r->most)
        return vt_fail(err, VT_EINPUT,
                       "--%s: '%s' is not a whole number from %" PRId64 " to %" PRId64,
                       r->name, text, r->least, r->most);
    return VT_OK;
}

int opt_read_real(const struct opt_row *r, const char *text, double *v,
                  struct vt_err *err)
{
    if (r->unit > 0)
        return read_time(r, text, v, err);
    if (!vt_parse_f64(text, strlen(text), v) || *v < r->lo || *v > r->hi)
        return vt_fail(err, VT_EINPUT, "--%s: '%s' is not a number from %g to %g",
                       r->name, text, r->lo, r->hi);
    return VT_OK;
}

static int read_word(const struct opt_row *r, const char *text, int *v,
                     struct vt_err *err)
{
    struct vt_buf list = {0};

    for (*v = 0; r->words[*v]; (*v)++)
        if (strcmp(r->words[*v], text) == 0)
            return VT_OK;
    for (int i = 0; r->words[i]; i++)
        vt_buf_printf(&list, "%s%s", i ? ", " : "", r->words[i]);
    vt_fail(err, VT_EINPUT, "--%s: '%s' is none of %s", r->name, text,
            list.data ? list.data : "its words");
    vt_buf_free(&list);
    return VT_EINPUT;
}

int opt_read_numbers(const struct opt_row *row, const char *text, void *field,
                     struct vt_err *err)
{
    struct opt_numbers *out = field;
    uint32_t most = row->most > 0 ? (uint32_t)row->most : OPT_NUMBERS;

    for (out->n = 0; text; out->n++) {
        const char *comma = strchr(text, ',');
        size_t len = comma ? (size_t)(comma - text) : strlen(text);
        double *v = &out->at[out->n];

        if (out->n == most || !vt_parse_f64(text, len, v) || !(*v >= row->lo) ||
            !(*v <= row->hi))
            return vt_fail(err, VT_EINPUT,
                           "--%s: '%.*s' is not a number from %g to %g, or there are "
                           "more than %u",
                           row->name, (int)len, text, row->lo, row->hi, most);
        text = comma ? comma + 1 : NULL;
    }
    return VT_OK;
}

/* text: NULL for flags and switches that were given. */
static int store_value(const struct opt_row *r, const char *text, bool off, void *field,
                       struct vt_err *err)
{
    int64_t whole = 0;
    double real = 0;
    int word = 0, rc = VT_OK;

    switch (r->kind) {
    case OPT_IS_FLAG:
    case OPT_IS_SWITCH:
        *(bool *)field = text ? strcmp(text, "on") == 0 : !off;
        break;
    case OPT_IS_TEXT:
        *(const char **)field = text;
        break;
    case OPT_IS_U32:
        rc = read_whole(r, text, &whole, err);
        *(uint32_t *)field = (uint32_t)whole;
        break;
    case OPT_IS_I64:
        rc = read_whole(r, text, field, err);
        break;
    case OPT_IS_F64:
        rc = opt_read_real(r, text, field, err);
        break;
    case OPT_IS_TIME:
        rc = read_time(r, text, &real, err);
        *(vt_ns *)field = rc ? 0 : vt_ns_from_us(real * (double)(r->unit / VT_US));
        break;
    case OPT_IS_WORD:
        rc = read_word(r, text, &word, err);
        memcpy(field, &word, sizeof(word)); /* it may be an enum's */
        break;
    case OPT_IS_READ:
        rc = r->read(r, text, field, err);
        break;
    case OPT_IS_LIST:
        break; /* collected apart */
    }
    return rc;
}

/* ---- arguments ---------------------------------------------------------- */

/* Whether the words up to the next flag are its values too: help shows "...". */
static bool takes_many(const struct opt_row *r)
{
    size_t len = r->value ? strlen(r->value) : 0;

    return len > 3 && strcmp(r->value + len - 3, "...") == 0;
}

/* "-1" is a number, "-" stands for a file. */
static bool looks_like_flag(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && !(word[1] >= '0' && word[1] <= '9');
}

/* Another program's flag and its words, which nobody looks at. */
static bool skip_foreign(struct opt_args *a, int argc, const char *const *argv, int *i,
                         const char *name, size_t len)
{
    const struct opt_foreign *f = find_foreign(a->command, name, len);

    if (!f)
        return false;
    a->foreign[a->n_foreign++] = f;
    if (name[len] == '=')
        return true;
    for (int k = 0; f->takes > k && *i + 1 < argc && !looks_like_flag(argv[*i + 1]);
         k = f->takes == OPT_TAKES_ONE)
        ++*i;
    return true;
}

/* argv[*i] starts with "--", or is "-o", which is --out wherever there is one. Moves *i
 * on when the value is the next argument. */
static int read_flag(struct opt_args *a, int argc, const char *const *argv, int *i,
                     struct opt_mention *m, size_t *n, struct vt_err *err)
{
    const struct opt_command *c = a->command;
    const char *name = strcmp(argv[*i], "-o") == 0 ? "out" : argv[*i] + 2;
    const char *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    bool many;

    m += *n;
    if (!find_row(c, name, len, m)) {
        m->off = len > 3 && memcmp(name, "no-", 3) == 0 &&
                 find_row(c, name + 3, len - 3, m) && m->row->kind == OPT_IS_SWITCH;
        if (!m->off)
            return skip_foreign(a, argc, argv, i, name, len)
                       ? VT_OK
                       : fail_unknown(c, argv[*i], err);
    }
    if (m->row->kind <= OPT_IS_SWITCH) {
        if (equals)
            return vt_fail(err, VT_EINPUT, "--%s takes no value", m->row->name);
    } else if (equals) {
        m->value = equals + 1;
    } else if (*i + 1 < argc &&
               (m->row->flags || strncmp(argv[*i + 1], "--", 2) != 0)) {
        m->value = argv[++*i];
    } else {
        return vt_fail(err, VT_EINPUT, "--%s needs a value (%s)", m->row->name,
                       m->row->value);
    }
    /* As vLLM takes them: once the model is named, no word can be meant for it. */
    many = takes_many(m->row) ||
           (c->foreign && m->row->kind == OPT_IS_LIST && a->n_operands > 0 && !equals);
    for (++*n; many && *i + 1 < argc && argv[*i + 1][0] != '-'; ++*n) {
        m[1] = m[0];
        (++m)->value = argv[++*i];
    }
    return VT_OK;
}

static int read_argv(struct opt_args *a, int argc, const char *const *argv,
                     struct opt_mention *m, size_t *n, struct vt_err *err)
{
    bool only_operands = false;
    int rc = VT_OK;

    for (int i = 0; i < argc && rc == VT_OK; i++) {
        if (only_operands || argv[i][0] != '-' || strcmp(argv[i], "-") == 0)
            a->operand[a->n_operands++] = argv[i];
        else if (strcmp(argv[i], "--") == 0)
            only_operands = true;
        else if (strcmp(argv[i], "-h") == 0)
            a->help = true;
        else if (strncmp(argv[i], "--", 2) == 0 || strcmp(argv[i], "-o") == 0)
            rc = read_flag(a, argc, argv, &i, m, n, err);
        else
            rc = fail_unknown(a->command, argv[i], err);
    }
    for (size_t i = 0; i < *n; i++)
        a->help = a->help || m[i].row == &help_row;
    return rc;
}

/* Of all mentions the last one counts; lists keep all. */
static int set_fields(struct opt_args *a, char *options, const struct opt_mention *m,
                      size_t n, const char **values, struct vt_err *err)
{
    for (size_t i = n; i-- > 0;) {
        void *field = options + m[i].block->base + m[i].row->offset;
        int rc = VT_OK;

        if (a->given[m[i].index])
            continue;
        a->given[m[i].index] = true;
        if (m[i].row->kind == OPT_IS_LIST) {
            struct opt_list *list = field;

            list->value = values;
            for (size_t k = 0; k <= i; k++)
                if (m[k].row == m[i].row)
                    values[list->n++] = m[k].value;
            values += list->n + 1;
        } else {
            rc = store_value(m[i].row, m[i].value, m[i].off, field, err);
        }
        if (rc != VT_OK)
            return rc;
    }
    return VT_OK;
}

int opt_parse(struct opt_args *a, const struct opt_command *c, int argc,
              const char *const *argv, struct vt_err *err)
{
    size_t n = 0, n_rows = 0, room;
    const struct opt_block *block;
    const struct opt_row *row;
    struct vt_err ignored;
    const char **values;
    struct opt_mention *m;
    char *options;
    int rc;

    while (row_at(c, n_rows, &block))
        n_rows++;
    assert(n_rows <= MAX_OPTIONS);
    *a = (struct opt_args){.command = c, .word = argv, .n_words = argc};
    if (c->rewrite && (rc = c->rewrite(&a->arena, &argc, &argv, err)) != VT_OK)
        return rc;
    a->argc = argc;
    a->argv = argv;
    room = (size_t)argc + 1;
    m = vt_arena_alloc(&a->arena, room * sizeof(*m));
    values = vt_arena_alloc(&a->arena, 2 * room * sizeof(*values));
    a->options = options = vt_arena_alloc(&a->arena, c->size + 1);
    a->operand = vt_arena_alloc(&a->arena, room * sizeof(*a->operand));
    a->given = vt_arena_alloc(&a->arena, (n_rows + 1) * sizeof(*a->given));
    a->foreign = vt_arena_alloc(&a->arena, room * sizeof(const struct opt_foreign *));
    if (!m || !values || !options || !a->operand || !a->given || !a->foreign)
        return vt_nomem(err);
    for (size_t i = 0; (row = row_at(c, i, &block)); i++) {
        void *field = options + block->base + row->offset;

        if (row->kind == OPT_IS_WORD)
            memcpy(field, &(int){-1}, sizeof(int));
        if (row->standard &&
            store_value(row, row->standard, false, field, &ignored) != VT_OK) {
            /* A value out of bounds stands for "not given": only the row may say it. */
            assert(row->kind == OPT_IS_I64 && strcmp(row->standard, "-1") == 0);
            *(int64_t *)field = -1;
        }
    }
    rc = read_argv(a, argc, argv, m, &n, err);
    a->mention = m;
    a->n_mentions = n;
    return rc == VT_OK && !a->help ? set_fields(a, options, m, n, values, err) : rc;
}

void opt_free(struct opt_args *a)
{
    vt_arena_free(&a->arena);
    *a = (struct opt_args){0};
}

/* ---- what was given ----------------------------------------------------- */

/* The row by which a field was given; NULL: it was not. */
static const struct opt_row *row_that_gave(const struct opt_args *a, const void *field)
{
    size_t offset = (size_t)((const char *)field - (const char *)a->options);
    const struct opt_block *block;
    const struct opt_row *row;

    assert(offset < a->command->size);
    for (size_t i = 0; (row = row_at(a->command, i, &block)); i++)
        if (a->given[i] && block->base + row->offset == offset)
            return row;
    return NULL;
}

bool opt_given(const struct opt_args *a, const void *field)
{
    return row_that_gave(a, field) != NULL;
}

bool opt_row_given(const struct opt_args *a, const struct opt_row *row)
{
    const struct opt_block *block;
    const struct opt_row *r;

    for (size_t i = 0; (r = row_at(a->command, i, &block)); i++)
        if (r == row)
            return a->given[i];
    return false;
}

int opt_exclude(const struct opt_args *a, const void *one, const void *other,
                struct vt_err *err)
{
    const struct opt_row *x = row_that_gave(a, one), *y = row_that_gave(a, other);

    if (x && y)
        return vt_fail(err, VT_EINPUT, "--%s and --%s: give one of them", x->name,
                       y->name);
    return VT_OK;
}

int opt_refuse(const struct opt_args *a, const void *field, const char *why,
               struct vt_err *err)
{
    const struct opt_row *row = row_that_gave(a, field);

    return row ? vt_fail(err, VT_EINPUT, "--%s%s", row->name, why) : VT_OK;
}

bool opt_is_quiet(const struct opt_args *a)
{
    const struct opt_block *block;
    const struct opt_row *row;

    for (size_t i = 0; (row = row_at(a->command, i, &block)); i++)
        if (a->given[i] && strcmp(row->name, "quiet") == 0)
            return true;
    return false;
}

void opt_tell_old(const struct opt_args *a, void (*tell)(void *user, const char *line),
                  void *user)
{
    const struct opt_block *block;
    const struct opt_row *row;
    char line[160];

    for (size_t i = 0; !opt_is_quiet(a) && (row = row_at(a->command, i, &block)); i++)
        if (row->now && a->given[i]) {
            (void)snprintf(line, sizeof(line), "note: --%s is now --%s", row->name,
                           row->now);
            tell(user, line);
        }
}

static void tell_of(const struct opt_args *a, bool counts, const char *what,
                    const char *why, void (*tell)(void *user, const char *line),
                    void *user)
{
    struct vt_buf b = {0};
    size_t n = 0;

    for (size_t i = 0; i < a->n_foreign; i++)
        if (a->foreign[i]->counts == counts)
            vt_buf_printf(&b, "%s--%s", n++ > 0 ? ", " : what, a->foreign[i]->name);
    if (n > 0) {
        vt_buf_printf(&b, "%s", why);
        if (!b.failed)
            tell(user, b.data);
    }
    vt_buf_free(&b);
}

void opt_tell_foreign(const struct opt_args *a, bool all,
                      void (*tell)(void *user, const char *line), void *user)
{
    tell_of(a, true, "warning: ", ": not modelled, it behaves and times as without",
            tell, user);
    if (all)
        tell_of(a, false, "note: ", ": without a meaning for a twin", tell, user);
}

void opt_overlay(const struct opt_args *a, const struct opt_row *rows,
                 const void *block, void *to, size_t size)
{
    for (const struct opt_row *r = rows; r->name; r++)
        if (r->offset < size && opt_given(a, (const char *)block + r->offset)) {
            bool narrow = r->kind == OPT_IS_U32 || r->kind == OPT_IS_WORD;
            size_t bytes = r->kind <= OPT_IS_SWITCH ? sizeof(bool)
                           : narrow                 ? sizeof(uint32_t)
                                                    : sizeof(uint64_t);

            assert(r->kind != OPT_IS_READ && r->kind != OPT_IS_LIST);
            memcpy((char *)to + r->offset, (const char *)block + r->offset, bytes);
        }
}

const char *opt_word(const char *const *words, int which)
{
    return which >= 0 ? words[which] : NULL;
}

/* ---- running -------------------------------------------------------------- */

static int check_operands(const struct opt_args *a, uint32_t least, uint32_t most,
                          const char *sub, const char *usage, struct vt_err *err)
{
    const char *name = a->command->name, *space = *sub ? " " : "";

    if (a->n_operands > most)
        return vt_fail(err, VT_EINPUT,
                       "'%s' is one argument too many; usage: vtwin %s%s%s %s",
                       a->operand[most], name, space, sub, usage);
    if (a->n_operands < least)
        return vt_fail(err, VT_EINPUT, "usage: vtwin %s%s%s %s", name, space, sub,
                       usage);
    return VT_OK;
}

/* Subcommands share a table; each takes its part of it. */
static int check_rows(const struct opt_args *a, const struct opt_sub *s,
                      struct vt_err *err)
{
    uint32_t bit = 1u << (s - a->command->subs);
    const struct opt_block *block;
    const struct opt_row *row;

    for (size_t i = 0; (row = row_at(a->command, i, &block)); i++) {
        uint32_t takers = row->subs ? row->subs : block->subs;

        if (a->given[i] && takers && !(takers & bit))
            return vt_fail(err, VT_EINPUT,
                           "--%s is not for %s %s; usage: vtwin %s %s %s", row->name,
                           a->command->name, s->name, a->command->name, s->name,
                           s->usage);
    }
    return VT_OK;
}

int opt_command_run(const struct opt_args *a, struct vt_err *err)
{
    const struct opt_command *c = a->command;
    const struct opt_sub *s = c->subs;
    const char *near;
    int rc;

    if (!s || (c->run && a->n_operands == 0)) {
        rc = check_operands(a, c->least, c->most, "", c->usage, err);
        return rc == VT_OK ? c->run(a, err) : rc;
    }
    if (a->n_operands == 0)
        return vt_fail(err, VT_EINPUT, "usage: vtwin %s %s", c->name, c->usage);
    while (s->name && strcmp(s->name, a->operand[0]) != 0)
        s++;
    near = s->name ? NULL : vt_nearest(a->operand[0], c->operands);
    if (near)
        return vt_fail(err, VT_EINPUT, "unknown subcommand '%s' (did you mean '%s'?)",
                       a->operand[0], near);
    if (!s->name)
        return vt_fail(err, VT_EINPUT, "unknown subcommand '%s'; usage: vtwin %s %s",
                       a->operand[0], c->name, c->usage);
    rc = check_rows(a, s, err);
    if (rc == VT_OK)
        rc = check_operands(a, s->least + 1,
                            s->most < UINT32_MAX ? s->most + 1 : s->most, s->name,
                            s->usage, err);
    return rc == VT_OK ? s->run(a, err) : rc;
}
