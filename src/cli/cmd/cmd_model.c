/* cmd_model.c - vtwin model: which latency models there are, which models' sizes
 * are known by name, and the constants of estimates. */
#include <strings.h>

#include "cli/cmd/fit.h"
#include "model/model.h"

static void put_kind(struct vt_jw *j, const struct vt_model_kind *kind,
                     const struct vt_kind_error *error, size_t n)
{
    bool any = false;

    vt_jw_map(j, NULL);
    vt_jw_str(j, "name", kind->name);
    vt_jw_str(j, "help", kind->help);
    vt_jw_str(j, "example", kind->example);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(error[i].kind, kind->name) != 0)
            continue;
        if (!any)
            vt_jw_map(j, "median_error_pct");
        any = true;
        vt_jw_row(j, error[i].what);
        for (size_t k = 0; k < VT_TRUSTS; k++)
            vt_jw_printf(j, vt_trust_names[k], "%.1f", error[i].median[k]);
        vt_jw_end(j);
    }
    if (any)
        vt_jw_end(j);
    vt_jw_end(j);
}

static void put_errors(struct vt_buf *b, const struct vt_kind_error *error, size_t n)
{
    int width = 34;

    vt_buf_printf(b, "\n%-*s %8s %8s %8s %8s %8s %8s\n", width,
                  "median error on an H200, %", "E2E", "TTFT", "TTFT p99", "ITL",
                  "ITL p99", "tok/s");
    for (size_t i = 0; i < n; i++) {
        int used = (int)strlen(error[i].kind) + 2;

        vt_buf_printf(b, "%s, %-*s", error[i].kind, width - used, error[i].what);
        for (size_t k = 0; k < VT_TRUSTS; k++)
            vt_buf_printf(b, " %8.1f", error[i].median[k]);
        vt_buf_char(b, '\n');
    }
}

/* A median hides who is far off: of each class and metric the worst one. */
static int put_worst(struct vt_buf *b, struct vt_err *err)
{
    static const char *const class[] = {"dense", "mixture"};
    static const char *const shown[VT_TRUSTS] = {"E2E", "TTFT",    "TTFT p99",
                                                 "ITL", "ITL p99", "tok/s"};
    struct vt_worst_model w;
    int rc = VT_OK;

    vt_buf_str(b, "\nworst of the models that estimates were judged by, each unseen\n");
    for (size_t i = 0; i < VT_COUNT(class) && rc == VT_OK; i++) {
        vt_buf_printf(b, "%-8s", class[i]);
        for (size_t k = 0; k < VT_TRUSTS && rc == VT_OK; k++) {
            rc = vt_worst_estimate(&w, class[i], (enum vt_trust)k, err);
            vt_buf_printf(b, "%s %s %.1f %s", k > 0 ? "," : "", shown[k], w.median,
                          w.name);
        }
        vt_buf_char(b, '\n');
    }
    return rc;
}

static int list_models(const struct opt_args *a, struct vt_err *err)
{
    const struct model_options *o = a->options;
    struct vt_kind_error error[VT_MOST_KIND_ERRORS];
    struct vt_buf b = {0};
    struct vt_jw j;
    size_t n, n_errors;
    const struct vt_model_kind *const *kinds = vt_model_kinds(&n);
    int rc = vt_kind_errors(error, &n_errors, err);

    if (rc != VT_OK)
        return rc;
    if (o->json) {
        vt_jw_init(&j, &b, &vt_json_pretty);
        vt_jw_list(&j, NULL);
        for (size_t i = 0; i < n; i++)
            put_kind(&j, kinds[i], error, n_errors);
        vt_jw_end(&j);
        vt_buf_char(&b, '\n');
        return cli_print(&b, err);
    }
    for (size_t i = 0; i < n; i++)
        vt_buf_printf(&b, "%-16s %s\n", kinds[i]->name, kinds[i]->help);
    put_errors(&b, error, n_errors);
    rc = put_worst(&b, err);
    return cli_print_end(&b, rc, err);
}

/* ---- models known by name ---------------------------------------------- */

struct known_list {
    const char *part; /* that names must have; NULL: any */
    bool json;
    struct vt_buf text;
    struct vt_jw writer;
};

static bool has_part(const char *name, const char *part)
{
    for (; *name != '\0'; name++)
        if (strncasecmp(name, part, strlen(part)) == 0)
            return true;
    return false;
}

static int put_known(void *user, const char *name, const struct vt_arch *a,
                     struct vt_err *err)
{
    struct known_list *l = user;
    double total = vt_arch_params(a), active = vt_arch_active_params(a);

    (void)err;
    if (l->part && !has_part(name, l->part))
        return VT_OK;
    if (!l->json) {
        vt_buf_printf(&l->text, "%-56s %8.2f B", name, total * 1e-9);
        if (a->experts > 0)
            vt_buf_printf(&l->text, " %6.2f B a token", active * 1e-9);
        else
            vt_buf_printf(&l->text, " %16s", "");
        vt_buf_printf(&l->text, " %3g-bit\n", 8 * a->weight_bytes);
        return VT_OK;
    }
    vt_jw_row(&l->writer, NULL);
    vt_jw_str(&l->writer, "name", name);
    vt_jw_f64(&l->writer, "parameters", total);
    vt_jw_f64(&l->writer, "active_parameters", active);
    vt_jw_f64(&l->writer, "weight_bits", 8 * a->weight_bytes);
    vt_jw_u64(&l->writer, "max_model_len", a->max_len);
    vt_jw_end(&l->writer);
    return VT_OK;
}

static int list_known(const struct opt_args *a, struct vt_err *err)
{
    const struct model_options *o = a->options;
    struct known_list l = {.part = a->n_operands > 1 ? a->operand[1] : NULL,
                           .json = o->json};
    int rc;

    vt_jw_init(&l.writer, &l.text, &vt_json_pretty);
    if (o->json)
        vt_jw_list(&l.writer, NULL);
    rc = vt_arch_each_known(put_known, &l, err);
    if (o->json) {
        vt_jw_end(&l.writer);
        vt_buf_char(&l.text, '\n');
    }
    if (rc == VT_OK)
        return cli_print(&l.text, err);
    vt_buf_free(&l.text);
    return rc;
}

/* ---- the table ---------------------------------------------------------- */

#define OPT_T struct model_options
static const struct opt_row rows[] = {
    OPT_FLAG(json, "json", "as JSON; list: with an example of each"),
    OPT_TEXT(out, "out", "FILE", NULL, "learn: the constants to write (also -o)"),
    OPT_TEXT(judged, "judged", "FILE", NULL,
             "learn: errors on other GPUs, a JSON object on each line"),
    OPT_FLAG(quiet, "quiet", "learn: no progress line"),
    {0},
};
static const struct opt_block blocks[] = {OPT_ROWS(rows), {0}};
static const struct opt_sub subs[] = {
    {"list", "[--json]", 0, 0, list_models},
    {"known", "[TEXT] [--json]", 0, 1, list_known},
    {"learn", "DIR... [-o FILE] [--json]", 1, UINT32_MAX, model_learn},
    {0},
};
static const char *const operands[] = {"list", "known", "learn", NULL};
static const char *const examples[] = {"./run model list",
                                       "./run model known llama-3.1", NULL};

const struct opt_command cmd_model = {
    .name = "model",
    .summary = "list latency models and known models; learn estimates' constants",
    .usage = "list | known [TEXT] | learn DIR... [-o FILE]",
    .about =
        "A latency model says how long each engine step takes. Every model can be\n"
        "given inline as --latency KIND:key=value,... or by a profile.\n"
        "\n"
        "known lists the models whose sizes are built in by their Hugging Face names;\n"
        "any other is described by its config.json.\n"
        "\n"
        "learn finds the constants behind estimates of engines that nobody measured, "
        "from\n"
        "folders with a model's config.json, step logs and traces each, and how far "
        "they\n"
        "are off for every model when it is left out.",
    .blocks = blocks,
    .size = sizeof(struct model_options),
    .operands = operands,
    .subs = subs,
    .examples = examples,
};
