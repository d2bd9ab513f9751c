/* cli.h - commands, their flags, and what is told about them.
 *
 * A command is a table row. Help, man pages and shell completion are written from
 * the same tables that parse, so they cannot disagree. This is the one room that
 * prints, reads the environment or ends the process. */
#ifndef VT_CLI_H
#define VT_CLI_H

#include "base/base.h"

/* ---- tables ----------------------------------------------------------- */

enum cli_kind {
    CLI_VALUE,  /* --name VALUE or --name=VALUE; the last one counts */
    CLI_FLAG,   /* --name */
    CLI_SWITCH, /* --name or --no-name; the last one counts */
};

struct cli_option {
    const char *name; /* without dashes */
    enum cli_kind kind;
    const char *value;    /* what the value is, as help shows it: "FILE", "N"; "N ..."
                             takes every word up to the next flag */
    const char *fallback; /* what holds without it, for help; NULL: nothing to say */
    const char *help;     /* one line */
    const char *const *words; /* the values it takes, ending with NULL; NULL: any */
};

struct cli_args;

/* To add a command: write cmd_<name>.c with one of these, add a row to the table in
 * main.c, and a page in docs/. */
struct cli_command {
    const char *name;
    const char *summary;              /* one line */
    const char *usage;                /* what follows the name */
    const char *about;                /* paragraphs, lines of at most 80 characters */
    const struct cli_option *options; /* ends with a row without name */
    const char *const *operands;      /* words it takes; ends with NULL */
    const char *const *examples; /* command lines that work as pasted; ends with NULL */
    int (*run)(const struct cli_args *a, struct vt_err *err);
};

extern const struct cli_command cmd_serve, cmd_bench, cmd_play, cmd_record, cmd_conform,
    cmd_simulate, cmd_capacity, cmd_tune, cmd_validate, cmd_fit, cmd_inspect,
    cmd_profile, cmd_model, cmd_completion, cmd_man;

const struct cli_command *const *cli_commands(void);  /* ends with NULL */
const struct cli_command *cli_find(const char *name); /* NULL: unknown */

/* ---- arguments -------------------------------------------------------- */

struct cli_given {
    const struct cli_option *option;
    const char *value; /* NULL for flags and switches */
    bool off;          /* --no-name */
};

struct cli_args {
    struct cli_given *given;
    size_t n_given;
    const char **operand;
    size_t n_operands;
    const struct cli_option *options; /* the command's */
    bool help;                        /* --help was among them */
};

/* argv is without the command's name and must outlive *a. End *a with
 * cli_args_free() whatever happens. */
int cli_args_parse(struct cli_args *a, const struct cli_command *c, int argc,
                   char **argv, struct vt_err *err) VT_MUST_CHECK;
void cli_args_free(struct cli_args *a);

/* The names below must be in the command's table. */
bool cli_has(const struct cli_args *a, const char *name);
const char *cli_str(const struct cli_args *a, const char *name); /* NULL: not given */
const char *cli_str_or(const struct cli_args *a, const char *name,
                       const char *fallback);
/* All values of a flag that may be repeated: call with *at = 0 first; NULL ends. */
const char *cli_each(const struct cli_args *a, const char *name, size_t *at);
/* These leave *out as it was when the flag is not given. Messages name the flag. */
int cli_u32(const struct cli_args *a, const char *name, uint32_t lo, uint32_t hi,
            uint32_t *out, struct vt_err *err) VT_MUST_CHECK;
int cli_i64(const struct cli_args *a, const char *name, int64_t lo, int64_t hi,
            int64_t *out, struct vt_err *err) VT_MUST_CHECK;
int cli_f64(const struct cli_args *a, const char *name, double lo, double hi,
            double *out, struct vt_err *err) VT_MUST_CHECK;
/* The index of its value among the option's words. */
int cli_word(const struct cli_args *a, const char *name, int *out,
             struct vt_err *err) VT_MUST_CHECK;
void cli_switch(const struct cli_args *a, const char *name, bool *out);
/* Fails unless there are lo to hi operands. */
int cli_operands(const struct cli_args *a, const struct cli_command *c, size_t lo,
                 size_t hi, struct vt_err *err) VT_MUST_CHECK;

/* The first operand is none of the command's words. */
int cli_unknown_sub(const struct cli_command *c, const char *name,
                    struct vt_err *err) VT_MUST_CHECK;

/* ---- text ------------------------------------------------------------- */

/* Writes to stdout and empties the buffer; its failures become errors here. */
int cli_print(struct vt_buf *b, struct vt_err *err) VT_MUST_CHECK;

/* What a server has done, as one line of JSON. */
struct cli_count {
    const char *name;
    uint64_t v;
};
struct cli_late {
    double p50_us, p99_us, max_us;
};
void cli_put_counts(struct vt_buf *b, const struct cli_count *c, size_t n,
                    struct cli_late late);

void cli_help(struct vt_buf *b);
void cli_help_command(struct vt_buf *b, const struct cli_command *c);

#endif
