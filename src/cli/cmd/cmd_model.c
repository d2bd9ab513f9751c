/* cmd_model.c - vtwin model: which latency models there are. */
#include "cli/cli.h"
#include "model/model.h"

static void table(struct vt_buf *b, const struct vt_model_kind *const *kinds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        vt_buf_printf(b, "%-16s %s\n", kinds[i]->name, kinds[i]->help);
}

static void member(struct vt_buf *b, const char *key, const char *text)
{
    vt_buf_printf(b, "\"%s\": ", key);
    vt_buf_json_str(b, text, strlen(text));
}

static void json(struct vt_buf *b, const struct vt_model_kind *const *kinds, size_t n)
{
    vt_buf_char(b, '[');
    for (size_t i = 0; i < n; i++) {
        vt_buf_str(b, i ? ",\n  {" : "\n  {");
        member(b, "name", kinds[i]->name);
        vt_buf_str(b, ", ");
        member(b, "help", kinds[i]->help);
        vt_buf_str(b, ", ");
        member(b, "example", kinds[i]->example);
        vt_buf_char(b, '}');
    }
    vt_buf_str(b, "\n]\n");
}

static int run(const struct cli_args *a, struct vt_err *err)
{
    struct vt_buf b = {0};
    const struct vt_model_kind *const *kinds;
    size_t n;
    int rc = cli_operands(a, &cmd_model, 1, 1, err);

    if (rc != VT_OK)
        return rc;
    if (strcmp(a->operand[0], "list") != 0)
        return vt_fail(err, VT_EINPUT, "'%s'; usage: vtwin model list", a->operand[0]);
    kinds = vt_model_kinds(&n);
    if (cli_has(a, "json"))
        json(&b, kinds, n);
    else
        table(&b, kinds, n);
    rc = cli_print(&b, err);
    vt_buf_free(&b);
    return rc;
}

static const struct cli_option options[] = {
    {"json", CLI_FLAG, NULL, NULL, "as JSON, with an example of each", NULL},
    {0},
};
static const char *const operands[] = {"list", NULL};
static const char *const examples[] = {"./run model list", NULL};

const struct cli_command cmd_model = {
    .name = "model",
    .summary = "list the latency models",
    .usage = "list",
    .about =
        "A latency model says how long each engine step takes. Every model can be\n"
        "given inline as --model KIND:key=value,... or by a profile.",
    .options = options,
    .operands = operands,
    .examples = examples,
    .run = run,
};
