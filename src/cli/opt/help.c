/* help.c - help texts and man pages, from the tables. */
#include "cli/opt/opt.h"

enum { NAME_WIDTH = 38 };

static void put_option_name(struct vt_buf *b, const struct opt_row *o)
{
    vt_buf_printf(b, "--%s", o->name);
    if (o->kind == OPT_IS_SWITCH)
        vt_buf_printf(b, ", --no-%s", o->name);
    if (o->kind <= OPT_IS_SWITCH)
        return;
    vt_buf_char(b, ' ');
    if (!o->words)
        vt_buf_str(b, o->value);
    for (size_t i = 0; o->words && o->words[i]; i++)
        vt_buf_printf(b, "%s%s", i ? "|" : "", o->words[i]);
}

/* What holds without it; NULL: nothing to say. */
static const char *default_text(const struct opt_row *o)
{
    const char *text = o->shown ? o->shown : o->standard;

    return text && *text ? text : NULL;
}

void opt_help(struct vt_buf *b, const struct opt_command *c)
{
    const struct opt_row *o;

    vt_buf_printf(b, "vtwin %s - %s\n\nusage: vtwin %s %s\n\n%s\n", c->name, c->summary,
                  c->name, c->usage, c->about);
    for (size_t at = 0; (o = opt_next(c, &at));) {
        size_t start;

        vt_buf_str(b, at == 1 ? "\nflags:\n  " : "  ");
        start = b->len;
        put_option_name(b, o);
        if (b->len - start >= NAME_WIDTH) {
            vt_buf_str(b, "\n  ");
            start = b->len;
        }
        while (!b->failed && b->len - start < NAME_WIDTH)
            vt_buf_char(b, ' ');
        vt_buf_str(b, o->help);
        if (default_text(o))
            vt_buf_printf(b, " [%s]", default_text(o));
        vt_buf_char(b, '\n');
    }
    vt_buf_str(b, "\nexamples:\n");
    for (const char *const *e = c->examples; *e; e++)
        vt_buf_printf(b, "  $ %s\n", *e);
}

/* roff reads '-' as a hyphen and a leading '.' or '\'' as a request. */
static void put_roff(struct vt_buf *b, const char *text)
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

static void put_roff_exits(struct vt_buf *b)
{
    vt_buf_str(b, ".SH EXIT STATUS\n0 done; 1 a check failed; 2 bad usage or input; "
                  "3 a file or peer became unavailable while running.\n");
}

void opt_man(struct vt_buf *b, const struct opt_command *c)
{
    const struct {
        const char *text, *behind;
    } part[] = {{c->name, " \\- "},
                {c->summary, "\n.SH SYNOPSIS\n.B vtwin "},
                {c->name, "\n"},
                {c->usage, "\n.SH DESCRIPTION\n"},
                {c->about, "\n"}};
    struct vt_buf name = {0};
    const struct opt_row *o;

    vt_buf_printf(
        b, ".TH VTWIN\\-%s 1 \"\" \"vtwin %s\" \"vtwin manual\"\n.SH NAME\nvtwin\\-",
        c->name, VT_VERSION);
    for (size_t i = 0; i < VT_COUNT(part); i++) {
        put_roff(b, part[i].text);
        vt_buf_str(b, part[i].behind);
    }
    for (size_t at = 0; (o = opt_next(c, &at));) {
        vt_buf_clear(&name);
        put_option_name(&name, o);
        vt_buf_str(b, at == 1 ? ".SH OPTIONS\n.TP\n.B " : ".TP\n.B ");
        put_roff(b, name.failed ? o->name : name.data);
        vt_buf_char(b, '\n');
        put_roff(b, o->help);
        if (default_text(o)) {
            vt_buf_str(b, " [");
            put_roff(b, default_text(o));
            vt_buf_char(b, ']');
        }
        vt_buf_char(b, '\n');
    }
    vt_buf_free(&name);
    vt_buf_str(b, ".SH EXAMPLES\n.nf\n");
    for (const char *const *e = c->examples; *e; e++) {
        put_roff(b, *e);
        vt_buf_char(b, '\n');
    }
    vt_buf_str(b, ".fi\n");
    put_roff_exits(b);
}

void opt_man_program(struct vt_buf *b, const struct opt_command *const *all)
{
    vt_buf_str(b, ".TH VTWIN 1 \"\" \"vtwin " VT_VERSION "\" \"vtwin manual\"\n"
                  ".SH NAME\nvtwin \\- a GPU\\-free twin of a vLLM serving engine\n"
                  ".SH SYNOPSIS\n.B vtwin\nCOMMAND [FLAGS]\n.SH COMMANDS\n");
    for (; *all; all++) {
        vt_buf_printf(b, ".TP\n.BR vtwin\\-%s (1)\n", (*all)->name);
        put_roff(b, (*all)->summary);
        vt_buf_char(b, '\n');
    }
    put_roff_exits(b);
}
