/* opt.h - what a command takes: one typed table, read once into the command's struct.
 *
 * A command names blocks of rows; each row says what a flag is called, what it holds,
 * within which bounds, and where in the command's struct it goes. Help, man pages and
 * shell completion are written from the same rows, so that they cannot disagree. A
 * block may be shared by commands: it then fills a struct inside of theirs. */
#ifndef VT_CLI_OPT_H
#define VT_CLI_OPT_H

#include <stddef.h>

#include "base/base.h"

/* ---- rows -------------------------------------------------------------- */

/* What a row's field is. */
enum opt_kind {
    OPT_IS_FLAG,   /* bool; --name */
    OPT_IS_SWITCH, /* bool; --name or --no-name, the last one counts */
    OPT_IS_TEXT,   /* const char *; of this and all below the last one counts */
    OPT_IS_U32,    /* uint32_t */
    OPT_IS_I64,    /* int64_t */
    OPT_IS_F64,    /* double */
    OPT_IS_TIME,   /* vt_ns; bounds and bare numbers count the row's unit */
    OPT_IS_WORD,   /* int or an enum: which of its words; -1: not given */
    OPT_IS_READ,   /* whatever its function makes of the text */
    OPT_IS_LIST,   /* struct opt_list: the flag may be repeated */
};

struct opt_list {
    const char *const *value; /* ends with NULL; itself NULL: not given */
    size_t n;
};

struct opt_row;
typedef int opt_reader(const struct opt_row *row, const char *text, void *field,
                       struct vt_err *err);

struct opt_row {
    const char *name; /* without dashes; NULL ends a table */
    enum opt_kind kind;
    size_t offset;        /* of its field in the block's struct */
    const char *value;    /* what the value is, as help shows it: "FILE", "N"; "N ..."
                             takes every word up to the next flag */
    const char *standard; /* what holds without it, as one would write it; NULL: zero */
    const char *shown;    /* what help says instead, where it depends */
    const char *help;     /* one line */
    const char *const *words; /* the values it takes, ending with NULL */
    int64_t least, most;      /* of whole numbers */
    double lo, hi;            /* of other numbers */
    vt_ns unit; /* of a time: what a bare number counts; others name theirs. 0: none */
    opt_reader *read;
    uint32_t subs;   /* bit i: subcommand i takes it; 0: all do */
    const char *now; /* an old name: what it is called now; help does not show it */
    bool flags;      /* its value is flags in one word, which begins with dashes */
};

/* Rows of the struct OPT_T, which the file defines. Behind the help text may stand more
 * members: .shown, .subs, .unit. The compiler refuses a field of another type. */
#define OPT_AT(f, C) (offsetof(OPT_T, f) + 0 * sizeof((C *)0 == &((OPT_T *)0)->f))
#define OPT_INT_AT(f)     \
    (offsetof(OPT_T, f) + \
     0 * sizeof(char[sizeof(((OPT_T *)0)->f) == sizeof(int) ? 1 : -1]))
#define OPT_ROW(k, at, n, v, d) \
    .name = n, .kind = k, .offset = at, .value = v, .standard = d
#define OPT_WHOLE(k, T, f, n, v, a, z, d, ...) \
    {OPT_ROW(k, OPT_AT(f, T), n, v, d), .least = a, .most = z, .help = __VA_ARGS__}
#define OPT_REAL(k, T, f, n, v, a, z, d, ...) \
    {OPT_ROW(k, OPT_AT(f, T), n, v, d), .lo = a, .hi = z, .help = __VA_ARGS__}

#define OPT_FLAG(f, n, ...) \
    {OPT_ROW(OPT_IS_FLAG, OPT_AT(f, bool), n, NULL, NULL), .help = __VA_ARGS__}
#define OPT_SWITCH(f, n, d, ...) \
    {OPT_ROW(OPT_IS_SWITCH, OPT_AT(f, bool), n, NULL, d), .help = __VA_ARGS__}
#define OPT_TEXT(f, n, v, d, ...) \
    {OPT_ROW(OPT_IS_TEXT, OPT_AT(f, const char *), n, v, d), .help = __VA_ARGS__}
#define OPT_U32(...) OPT_WHOLE(OPT_IS_U32, uint32_t, __VA_ARGS__)
#define OPT_I64(...) OPT_WHOLE(OPT_IS_I64, int64_t, __VA_ARGS__)
#define OPT_F64(...) OPT_REAL(OPT_IS_F64, double, __VA_ARGS__)
#define OPT_SECONDS(f, n, ...) \
    OPT_REAL(OPT_IS_TIME, vt_ns, f, n, "S", __VA_ARGS__, .unit = VT_SEC)
#define OPT_MS(f, n, ...) \
    OPT_REAL(OPT_IS_TIME, vt_ns, f, n, "MS", __VA_ARGS__, .unit = VT_MS)
#define OPT_WORD(f, n, v, w, d, ...) \
    {OPT_ROW(OPT_IS_WORD, OPT_INT_AT(f), n, v, d), .words = w, .help = __VA_ARGS__}
#define OPT_READ(f, n, v, r, d, ...) \
    {OPT_ROW(OPT_IS_READ, offsetof(OPT_T, f), n, v, d), .read = r, .help = __VA_ARGS__}
#define OPT_LIST(f, n, v, ...) \
    {OPT_ROW(OPT_IS_LIST, OPT_AT(f, struct opt_list), n, v, NULL), .help = __VA_ARGS__}

/* ---- flags of another program ---------------------------------------------- */

/* A flag of the program that a command stands in for: taken, so that its command lines
 * can be pasted, and told of. */
enum { OPT_TAKES_NOTHING, OPT_TAKES_ONE, OPT_TAKES_MANY };
struct opt_foreign {
    const char *name; /* without dashes; NULL ends a table */
    int takes;        /* words; many: every one up to the next flag */
    bool counts;      /* it would change what that program does, and does not here */
};
/* Puts a command line of that program into the words of this one. */
typedef int opt_rewriter(struct vt_arena *arena, int *argc, const char *const **argv,
                         struct vt_err *err);

/* Words of a new command line, for those who rewrite one; all in the arena. */
struct opt_words {
    struct vt_arena *arena;
    const char **word;
    size_t n, room;
};
/* The words of a line, as a shell cuts it: by blanks, but for what stands in quotes. */
int opt_word_split(struct opt_words *w, const char *line,
                   struct vt_err *err) VT_MUST_CHECK;
/* Borrows the word; NULL: out of memory. */
int opt_word_add(struct opt_words *w, const char *word,
                 struct vt_err *err) VT_MUST_CHECK;
int opt_word_put(struct opt_words *w, struct vt_err *err, const char *fmt, ...)
    VT_PRINTF(3, 4) VT_MUST_CHECK;

/* ---- commands ------------------------------------------------------------ */

struct opt_block {
    const struct opt_row *row; /* NULL ends a list of blocks */
    size_t base;               /* of its struct in the command's */
    uint32_t subs;             /* for rows that do not say themselves */
};

/* Rows of the command's own struct; of a member of it. */
#define OPT_ROWS(rows)                {.row = (rows)}
#define OPT_BLOCK(rows, type, member) {.row = (rows), .base = offsetof(type, member)}

struct opt_args;
typedef int opt_run(const struct opt_args *a, struct vt_err *err);

struct opt_sub { /* a subcommand: the first operand */
    const char *name;
    const char *usage;
    uint32_t least, most; /* operands behind its name */
    opt_run *run;
};

/* To add a command: write cmd_<name>.c with one of these, add a row to the table in
 * main.c, and a page in docs/. */
struct opt_command {
    const char *name;
    const char *summary; /* one line */
    const char *usage;   /* what follows the name */
    const char *about;   /* paragraphs, lines of at most 80 characters */
    /* A row hides those of the same name in later blocks. */
    const struct opt_block *blocks;
    size_t size;                 /* of the struct that they fill */
    const char *const *operands; /* words it takes; ends with NULL */
    uint32_t least, most;        /* operands */
    /* By the first operand; ends with a row without name. run is what happens without
     * one, NULL: it must be there. */
    const struct opt_sub *subs;
    const char *const *examples; /* command lines that work as pasted; ends with NULL */
    opt_run *run;
    /* Of the program that it stands in for; NULL: none. Its own rows come first. */
    const struct opt_foreign *foreign;
    opt_rewriter *rewrite;
};

/* ---- what was given --------------------------------------------------- */

/* One mention of a flag. */
struct opt_mention {
    const struct opt_row *row;
    const struct opt_block *block;
    size_t index;      /* of the row among all */
    const char *value; /* NULL for flags and switches */
    bool off;          /* --no-name */
};

struct opt_args {
    const struct opt_command *command;
    const void *options; /* the command's struct */
    const char **operand;
    size_t n_operands;
    const char *const *word; /* all of them, as they were given */
    int n_words;
    bool help;   /* --help was among them: nothing else was looked at */
    bool *given; /* of each row of each block */
    const struct opt_mention *mention; /* in the order in which they were given */
    size_t n_mentions;
    const struct opt_foreign **foreign; /* that were given */
    size_t n_foreign;
    int argc; /* what was read, as it was rewritten */
    const char *const *argv;
    struct vt_arena arena; /* of all of these */
};

/* argv is without the command's name and must outlive *a. End *a with opt_free()
 * whatever happens. */
int opt_parse(struct opt_args *a, const struct opt_command *c, int argc,
              const char *const *argv, struct vt_err *err) VT_MUST_CHECK;
void opt_free(struct opt_args *a);
/* Runs the command, or the subcommand that the first operand names. */
int opt_command_run(const struct opt_args *a, struct vt_err *err) VT_MUST_CHECK;

/* Whether some flag has set this field, which is within a->options. */
bool opt_given(const struct opt_args *a, const void *field);
bool opt_row_given(const struct opt_args *a, const struct opt_row *row);
/* Fails if two fields were both given: "--x and --y: give one of them". */
int opt_exclude(const struct opt_args *a, const void *one, const void *other,
                struct vt_err *err) VT_MUST_CHECK;
/* Fails if this field was given: "--x needs --y", or whatever the rest says. */
int opt_refuse(const struct opt_args *a, const void *field, const char *why,
               struct vt_err *err) VT_MUST_CHECK;
/* Whether --quiet was given. */
bool opt_is_quiet(const struct opt_args *a);
/* Tells of each old name that was given, and of what it is called now; with --quiet
 * nothing. */
void opt_tell_old(const struct opt_args *a, void (*tell)(void *user, const char *line),
                  void *user);
/* Tells of another program's flags that were given: one line for those that would have
 * counted there, and, if all are wanted, one for the others. */
void opt_tell_foreign(const struct opt_args *a, bool all,
                      void (*tell)(void *user, const char *line), void *user);
/* Copies the fields that were given, of those that lie in the first `size` bytes of the
 * block's struct, to another struct that begins alike. */
void opt_overlay(const struct opt_args *a, const struct opt_row *rows,
                 const void *block, void *to, size_t size);
/* Adds the flags of these rows that were given, as they were, to the command line of
 * another command that has the same rows. */
int opt_repeat(const struct opt_args *a, const struct opt_row *rows,
               struct opt_words *to, struct vt_err *err) VT_MUST_CHECK;
/* Of a row with words. */
const char *opt_word(const char *const *words, int which); /* NULL: none */

/* A number as vLLM reads those of tokens: 25.6k is 25600, 25K is 25600 as well. */
bool opt_count(const char *text, double *v);
/* Within the row's bounds. */
int opt_read_real(const struct opt_row *row, const char *text, double *v,
                  struct vt_err *err) VT_MUST_CHECK;
/* Reader of a latency limit, double, in milliseconds. A bare number below 1 looks like
 * seconds: it is asked back. */
opt_reader opt_read_limit;
/* The same of a text with no end of its own; `flag` is what it is given by, up to its
 * value: "--slo-ttft-p99 ", "--slo ttft-p99=". */
int opt_limit(const char *flag, const char *text, size_t len, double *ms,
              struct vt_err *err) VT_MUST_CHECK;
/* Reader: numbers with commas between them, each within the row's bounds. */
enum { OPT_NUMBERS = 256 };
struct opt_numbers {
    double at[OPT_NUMBERS];
    uint32_t n;
};
opt_reader opt_read_numbers;

/* ---- text ------------------------------------------------------------- */

void opt_help(struct vt_buf *b, const struct opt_command *c);
void opt_man(struct vt_buf *b, const struct opt_command *c);
void opt_man_program(struct vt_buf *b, const struct opt_command *const *all);
/* Of all commands; the list ends with NULL. */
void opt_complete_bash(struct vt_buf *b, const struct opt_command *const *all);
void opt_complete_zsh(struct vt_buf *b, const struct opt_command *const *all);

/* Rows that are not hidden, one after the other: start with *at = 0; NULL ends. */
const struct opt_row *opt_next(const struct opt_command *c, size_t *at);

#endif
