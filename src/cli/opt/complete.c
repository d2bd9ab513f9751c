/* complete.c - shell completion, from the tables. */
#include "cli/opt/opt.h"

/* What a value's placeholder promises; words are apart. */
struct promise {
    const char *bash, *zsh;
};

static struct promise promise_of(const struct opt_row *o)
{
    if (strstr(o->value, "FILE"))
        return (struct promise){"COMPREPLY=($(compgen -f -- \"$cur\")); ", "_files"};
    if (strcmp(o->value, "DIR") == 0)
        return (struct promise){"COMPREPLY=($(compgen -d -- \"$cur\")); ", "_files -/"};
    return (struct promise){"", " "};
}

static void put_words(struct vt_buf *b, const char *const *list)
{
    for (size_t i = 0; list[i]; i++)
        vt_buf_printf(b, "%s%s", i ? " " : "", list[i]);
}

static void put_command_names(struct vt_buf *b, const struct opt_command *const *c)
{
    for (; *c; c++)
        vt_buf_printf(b, "%s ", (*c)->name);
}

/* ---- bash ------------------------------------------------------------- */

static void put_bash_command(struct vt_buf *b, const struct opt_command *c)
{
    const struct opt_row *o;

    vt_buf_printf(b, "    %s)\n        case $prev in\n", c->name);
    for (size_t at = 0; (o = opt_next(c, &at));) {
        if (o->kind <= OPT_IS_SWITCH)
            continue;
        vt_buf_printf(b, "        --%s) ", o->name);
        if (o->words) {
            vt_buf_str(b, "COMPREPLY=($(compgen -W \"");
            put_words(b, o->words);
            vt_buf_str(b, "\" -- \"$cur\")); return ;;\n");
        } else {
            vt_buf_printf(b, "%sreturn ;;\n", promise_of(o).bash);
        }
    }
    vt_buf_str(b, "        esac\n        COMPREPLY=($(compgen -W \"");
    if (c->operands)
        put_words(b, c->operands);
    for (size_t at = 0; (o = opt_next(c, &at));) {
        vt_buf_printf(b, " --%s", o->name);
        if (o->kind == OPT_IS_SWITCH)
            vt_buf_printf(b, " --no-%s", o->name);
    }
    vt_buf_str(b, " --help\" -- \"$cur\"))\n        ;;\n");
}

void opt_complete_bash(struct vt_buf *b, const struct opt_command *const *all)
{
    vt_buf_str(b, "# bash completion for vtwin: source <(vtwin completion bash)\n"
                  "_vtwin() {\n"
                  "    local cur=${COMP_WORDS[COMP_CWORD]}\n"
                  "    local prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
                  "    COMPREPLY=()\n"
                  "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                  "        COMPREPLY=($(compgen -W \"");
    put_command_names(b, all);
    vt_buf_str(b, "help --help --version\" -- \"$cur\"))\n"
                  "        return\n"
                  "    fi\n"
                  "    case ${COMP_WORDS[1]} in\n"
                  "    help) COMPREPLY=($(compgen -W \"");
    put_command_names(b, all);
    vt_buf_str(b, "\" -- \"$cur\")) ;;\n");
    for (const struct opt_command *const *c = all; *c; c++)
        put_bash_command(b, *c);
    vt_buf_str(b, "    esac\n}\ncomplete -F _vtwin vtwin\n");
}

/* ---- zsh -------------------------------------------------------------- */

/* Help inside '...[...]' : no quotes, brackets or colons may get through. */
static void put_zsh_text(struct vt_buf *b, const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            vt_buf_str(b, "'\\''");
        else if (strchr("[]:\\", *text))
            vt_buf_printf(b, "\\%c", *text);
        else
            vt_buf_char(b, *text);
    }
}

static void put_zsh_command(struct vt_buf *b, const struct opt_command *c)
{
    const struct opt_row *o;

    vt_buf_printf(b, "    %s)\n        _arguments '--help[explain %s]'", c->name,
                  c->name);
    if (c->operands) {
        vt_buf_str(b, " '1:what:(");
        put_words(b, c->operands);
        vt_buf_str(b, ")'");
    }
    for (size_t at = 0; (o = opt_next(c, &at));) {
        bool valued = o->kind > OPT_IS_SWITCH;

        vt_buf_printf(b, " \\\n            '--%s%s[", o->name, valued ? "=" : "");
        put_zsh_text(b, o->help);
        vt_buf_str(b, valued ? "]:value:" : "]");
        if (valued && o->words) {
            vt_buf_char(b, '(');
            put_words(b, o->words);
            vt_buf_char(b, ')');
        } else if (valued) {
            vt_buf_str(b, promise_of(o).zsh);
        }
        vt_buf_char(b, '\'');
        if (o->kind == OPT_IS_SWITCH)
            vt_buf_printf(b, " \\\n            '--no-%s[switch it off]'", o->name);
    }
    vt_buf_str(b, "\n        ;;\n");
}

void opt_complete_zsh(struct vt_buf *b, const struct opt_command *const *all)
{
    vt_buf_str(b, "#compdef vtwin\n"
                  "# zsh completion for vtwin: source <(vtwin completion zsh)\n"
                  "_vtwin() {\n"
                  "    local -a names\n"
                  "    names=(\n");
    for (const struct opt_command *const *c = all; *c; c++) {
        vt_buf_printf(b, "        '%s:", (*c)->name);
        put_zsh_text(b, (*c)->summary);
        vt_buf_str(b, "'\n");
    }
    vt_buf_str(b, "    )\n"
                  "    if (( CURRENT == 2 )); then\n"
                  "        _describe command names\n"
                  "        return\n"
                  "    fi\n"
                  "    local command=$words[2]\n"
                  "    shift words\n"
                  "    (( CURRENT-- ))\n"
                  "    case $command in\n"
                  "    help) _describe command names ;;\n");
    for (const struct opt_command *const *c = all; *c; c++)
        put_zsh_command(b, *c);
    vt_buf_str(b, "    esac\n"
                  "}\n"
                  "if [ \"$funcstack[1]\" = _vtwin ]; then\n"
                  "    _vtwin \"$@\"\n"
                  "else\n"
                  "    compdef _vtwin vtwin\n"
                  "fi\n");
}
