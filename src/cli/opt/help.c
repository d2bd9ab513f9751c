/* help.c - help texts and man pages, from the tables. */
#include <errno.h>

#include "cli/cli.h"

enum { NAME_WIDTH = 38 };

int cli_print(struct vt_buf *b, struct vt_err *err)
{
    bool lost = b->failed;
    bool wrote = lost || b->len == 0 || fwrite(b->data, 1, b->len, stdout) == b->len;

    vt_buf_clear(b);
    if (lost)
        return vt_nomem(err);
    if (!wrote || fflush(stdout) != 0)
        return vt_fail(err, VT_EIO, "stdout: %s", strerror(errno));
    return VT_OK;
}

static void option_name(struct vt_buf *b, const struct cli_option *o)
{
    vt_buf_printf(b, "--%s", o->name);
    if (o->kind == CLI_SWITCH)
        vt_buf_printf(b, ", --no-%s", o->name);
    if (o->kind != CLI_VALUE)
        return;
    vt_buf_char(b, ' ');
    if (!o->words)
        vt_buf_str(b, o->value);
    for (size_t i = 0; o->words && o->words[i]; i++)
        vt_buf_printf(b, "%s%s", i ? "|" : "", o->words[i]);
}

static void option_help(struct vt_buf *b, const struct cli_option *o)
{
    size_t start;

    vt_buf_str(b, "  ");
    start = b->len;
    option_name(b, o);
    if (b->len - start >= NAME_WIDTH) {
        vt_buf_str(b, "\n  ");
        start = b->len;
    }
    while (!b->failed && b->len - start < NAME_WIDTH)
        vt_buf_char(b, ' ');
    vt_buf_str(b, o->help);
    if (o->fallback)
        vt_buf_printf(b, " [%s]", o->fallback);
    vt_buf_char(b, '\n');
}

void cli_help(struct vt_buf *b)
{
    vt_buf_str(b, "vtwin - a GPU-free twin of a vLLM serving engine\n\n"
                  "usage: vtwin COMMAND [FLAGS]\n"
                  "       vtwin            simulate the built-in workload\n\n");
    for (const struct cli_command *const *c = cli_commands(); *c; c++)
        vt_buf_printf(b, "  %-12s %s\n", (*c)->name, (*c)->summary);
    vt_buf_str(
        b, "\nvtwin COMMAND --help explains one. vtwin --version tells the version.\n"
           "Exit codes: 0 done; 1 a check failed; 2 bad usage or input; 3 a file\n"
           "or peer became unavailable while running.\n");
}

void cli_help_command(struct vt_buf *b, const struct cli_command *c)
{
    vt_buf_printf(b, "vtwin %s - %s\n\nusage: vtwin %s %s\n\n%s\n", c->name, c->summary,
                  c->name, c->usage, c->about);
    if (c->options[0].name)
        vt_buf_str(b, "\nflags:\n");
    for (const struct cli_option *o = c->options; o->name; o++)
        option_help(b, o);
    vt_buf_str(b, "\nexamples:\n");
    for (const char *const *e = c->examples; *e; e++)
        vt_buf_printf(b, "  $ %s\n", *e);
}

/* roff reads '-' as a hyphen and a leading '.' or '\'' as a request. */
static void roff(struct vt_buf *b, const char *text)
{
    bool line_start = true;

    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\''))
            vt_buf_str(b, "\\&");
        if (*text == '-')
            vt_buf_str(b, "\\-");
        else if (*text == '\\')
            vt_buf_str(b, "\\e");
        else
            vt_buf_char(b, *text);
        line_start = *text == '\n';
    }
}

static void roff_options(struct vt_buf *b, const struct cli_option *o)
{
    struct vt_buf name = {0};

    if (o->name)
        vt_buf_str(b, ".SH OPTIONS\n");
    for (; o->name; o++) {
        vt_buf_clear(&name);
        option_name(&name, o);
        vt_buf_str(b, ".TP\n.B ");
        roff(b, name.failed ? o->name : name.data);
        vt_buf_char(b, '\n');
        roff(b, o->help);
        if (o->fallback) {
            vt_buf_str(b, " [");
            roff(b, o->fallback);
            vt_buf_char(b, ']');
        }
        vt_buf_char(b, '\n');
    }
    vt_buf_free(&name);
}

static void man_page(struct vt_buf *b, const struct cli_command *c)
{
    vt_buf_printf(
        b, ".TH VTWIN\\-%s 1 \"\" \"vtwin %s\" \"vtwin manual\"\n.SH NAME\nvtwin\\-",
        c->name, VT_VERSION);
    roff(b, c->name);
    vt_buf_str(b, " \\- ");
    roff(b, c->summary);
    vt_buf_str(b, "\n.SH SYNOPSIS\n.B vtwin ");
    roff(b, c->name);
    vt_buf_str(b, "\n");
    roff(b, c->usage);
    vt_buf_str(b, "\n.SH DESCRIPTION\n");
    roff(b, c->about);
    vt_buf_char(b, '\n');
    roff_options(b, c->options);
    vt_buf_str(b, ".SH EXAMPLES\n.nf\n");
    for (const char *const *e = c->examples; *e; e++) {
        roff(b, *e);
        vt_buf_char(b, '\n');
    }
    vt_buf_str(b,
               ".fi\n.SH EXIT STATUS\n0 done; 1 a check failed; 2 bad usage or input; "
               "3 a file or peer became unavailable while running.\n");
}

static int run_man(const struct cli_args *a, struct vt_err *err)
{
    const struct cli_command *c;
    struct vt_buf b = {0};
    int rc = cli_operands(a, &cmd_man, 1, 1, err);

    if (rc != VT_OK)
        return rc;
    c = cli_find(a->operand[0]);
    if (!c)
        return vt_fail(err, VT_EINPUT, "no command '%s'", a->operand[0]);
    man_page(&b, c);
    rc = cli_print(&b, err);
    vt_buf_free(&b);
    return rc;
}

static const struct cli_option no_options[] = {{0}};
static const char *const no_operands[] = {NULL};
static const char *const examples[] = {"./run man simulate > vtwin-simulate.1", NULL};

const struct cli_command cmd_man = {
    .name = "man",
    .summary = "print the man page of a command",
    .usage = "COMMAND",
    .about = "Writes roff to stdout, from the same tables as --help.",
    .options = no_options,
    .operands = no_operands,
    .examples = examples,
    .run = run_man,
};

void cli_put_counts(struct vt_buf *b, const struct cli_count *c, size_t n,
                    struct cli_late late)
{
    vt_buf_char(b, '{');
    for (size_t i = 0; i < n; i++) {
        vt_buf_json_str(b, c[i].name, strlen(c[i].name));
        vt_buf_char(b, ':');
        vt_buf_u64(b, c[i].v);
        vt_buf_char(b, ',');
    }
    vt_buf_str(b, "\"late_us\":{\"p50\":");
    vt_buf_f64(b, late.p50_us);
    vt_buf_str(b, ",\"p99\":");
    vt_buf_f64(b, late.p99_us);
    vt_buf_str(b, ",\"max\":");
    vt_buf_f64(b, late.max_us);
    vt_buf_str(b, "}}\n");
}
