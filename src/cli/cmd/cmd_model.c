/* cmd_model.c - vtwin model: which latency models there are. */
#include "cli/cli.h"
#include "model/model.h"

struct model_list_options {
    bool json;
};

static int list_models(const struct opt_args *a, struct vt_err *err)
{
    const struct model_list_options *o = a->options;
    struct vt_buf b = {0};
    struct vt_jw j;
    size_t n;
    const struct vt_model_kind *const *kinds = vt_model_kinds(&n);

    if (o->json) {
        vt_jw_init(&j, &b, &vt_json_pretty);
        vt_jw_list(&j, NULL);
        for (size_t i = 0; i < n; i++) {
            vt_jw_row(&j, NULL);
            vt_jw_str(&j, "name", kinds[i]->name);
            vt_jw_str(&j, "help", kinds[i]->help);
            vt_jw_str(&j, "example", kinds[i]->example);
            vt_jw_end(&j);
        }
        vt_jw_end(&j);
        vt_buf_char(&b, '\n');
    }
    for (size_t i = 0; i < n && !o->json; i++)
        vt_buf_printf(&b, "%-16s %s\n", kinds[i]->name, kinds[i]->help);
    return cli_print(&b, err);
}

#define OPT_T struct model_list_options
static const struct opt_row rows[] = {
    OPT_FLAG(json, "json", "as JSON, with an example of each"),
    {0},
};
static const struct opt_block blocks[] = {OPT_ROWS(rows), {0}};
static const struct opt_sub subs[] = {{"list", "[--json]", 0, 0, list_models}, {0}};
static const char *const operands[] = {"list", NULL};
static const char *const examples[] = {"./run model list", NULL};

const struct opt_command cmd_model = {
    .name = "model",
    .summary = "list the latency models",
    .usage = "list",
    .about =
        "A latency model says how long each engine step takes. Every model can be\n"
        "given inline as --model KIND:key=value,... or by a profile.",
    .blocks = blocks,
    .size = sizeof(struct model_list_options),
    .operands = operands,
    .subs = subs,
    .examples = examples,
};
