/* names.c - simulators, models, workloads and hardware as figures show them. */
#include <ctype.h>
#include <strings.h>

#include "validate/figures/figures.h"

/* ---- simulators --------------------------------------------------------- */

/* To add one: add a row. Order here is the order in figures and tables. Markers are
 * gnuplot's: 3 star, 5 square, 7 disc, 9 and 11 triangles, 13 diamond, 15 pentagon. */
static const struct fig_simulator simulators[] = {
    {"vtwin-step", "vtwin step", "#1B3A57", FIG_PLAIN, 7, true, false},
    {"vtwin-trace", "vtwin trace", "#00A6A6", FIG_LEVEL, 15, true, false},
    {"vtwin-knob", "vtwin knob", "#F2C14E", FIG_DOTTED | FIG_LEVEL, 6, true, false},
    {"blis-trained-physics", "BLIS", "#D946EF", FIG_UPRIGHT, 3, true, false},
    {"blis-roofline", "BLIS-Roofline", "#64B5F6", FIG_RISING, 5, false, true},
    {"blis-trained-roofline", "BLIS-Trained-Roofline", "#1E88E5",
     FIG_RISING | FIG_UPRIGHT, 4, false, true},
    {"blis-crossmodel", "BLIS-Crossmodel", "#A5D6A7", FIG_FALLING | FIG_UPRIGHT, 8,
     false, true},
    {"blis-blackbox", "BLIS-Blackbox", "#9E9E9E", FIG_LEVEL | FIG_RISING, 12, false,
     true},
    {"blis-evolved", "BLIS-Evolved", "#F48FB1", FIG_LEVEL | FIG_FALLING, 10, false,
     true},
    {"vidur", "Vidur", "#DD8452", FIG_FALLING, 13, false, false},
    {"llm-optimizer-estimate", "LLM-Optimizer", "#55A868", FIG_RISING | FIG_FALLING, 9,
     false, false},
    {"aiconfigurator-estimate", "AIConfigurator", "#8172B3", FIG_DOTTED, 11, true,
     false},
    {FIG_SAMPLED, "LLMServingSim", "#C44E52", FIG_UPRIGHT | FIG_LEVEL, 1, false, false},
};

/* NULL: a foreign one, which gets its looks by fig_simulators(). */
static const struct fig_simulator *find_simulator(const char *name)
{
    for (size_t i = 0; i < VT_COUNT(simulators); i++)
        if (strcmp(simulators[i].name, name) == 0)
            return &simulators[i];
    return NULL;
}

static bool simulator_occurs(const struct fig_set *s, const char *name)
{
    for (size_t i = 0; i < s->n_errors; i++)
        if (strcmp(s->error[i].at.simulator, name) == 0)
            return true;
    for (size_t i = 0; i < s->n_runtimes; i++)
        if (strcmp(s->runtime[i].at.simulator, name) == 0)
            return true;
    return false;
}

/* Foreign simulators keep the order of their names. */
static int add_foreign(struct fig_simulators *out, size_t first, const char *name,
                       struct vt_err *err)
{
    size_t i = first;

    if (find_simulator(name))
        return VT_OK;
    while (i < out->n && strcmp(out->of[i].name, name) < 0)
        i++;
    if (i < out->n && strcmp(out->of[i].name, name) == 0)
        return VT_OK;
    if (out->n == FIG_MAX_SIMS)
        return vt_fail(err, VT_EINPUT, "more than %d simulators", FIG_MAX_SIMS);
    memmove(&out->of[i + 1], &out->of[i], (out->n - i) * sizeof(out->of[0]));
    out->of[i] = (struct fig_simulator){.name = name, .display = name};
    out->n++;
    return VT_OK;
}

int fig_simulators(struct fig_simulators *out, const struct fig_set *s,
                   struct vt_err *err)
{
    /* Of foreign ones. */
    static const char *const colour[] = {"#8C564B", "#BCBD22", "#17BECF",
                                         "#7F7F7F", "#E377C2", "#AEC7E8"};
    static const unsigned hatch[] = {FIG_LEVEL, FIG_RISING | FIG_LEVEL, FIG_DOTTED};
    size_t first;
    int rc = VT_OK;

    out->n = 0;
    for (size_t i = 0; i < VT_COUNT(simulators); i++)
        if (simulator_occurs(s, simulators[i].name))
            out->of[out->n++] = simulators[i];
    first = out->n;
    for (size_t i = 0; i < s->n_errors && rc == VT_OK; i++)
        rc = add_foreign(out, first, s->error[i].at.simulator, err);
    for (size_t i = 0; i < s->n_runtimes && rc == VT_OK; i++)
        rc = add_foreign(out, first, s->runtime[i].at.simulator, err);
    for (size_t i = first; i < out->n; i++) {
        out->of[i].colour = colour[(i - first) % VT_COUNT(colour)];
        out->of[i].hatch = hatch[(i - first) % VT_COUNT(hatch)];
        out->of[i].marker = 2;
    }
    return rc;
}

/* ---- models ------------------------------------------------------------- */

/* By size, dense ones first. */
static const struct fig_model models[] = {
    {"Llama-3.1-8B", "Ll-3.1-8B", false, true},
    {"Qwen3-14B", "Qw-14B", false, true},
    {"CodeLlama-34b", "CL-34B", false, false},
    {"Llama-2-70b", "Ll-2-70B", false, false},
    {"Mixtral-8x7B", "Mx-8x7B", true, false},
    {"Mixtral-8x22B", "Mx-8x22B", true, true},
    {"Scout", "Scout-17B", true, true},
};

/* Where in the text, whatever the case; NULL: nowhere. */
static const char *find_part(const char *text, const char *part)
{
    size_t n = strlen(part);

    for (; *text; text++)
        if (strncasecmp(text, part, n) == 0)
            return text;
    return NULL;
}

const struct fig_model *fig_model_find(const char *model)
{
    for (size_t i = 0; i < VT_COUNT(models); i++)
        if (find_part(model, models[i].part))
            return &models[i];
    return NULL;
}

size_t fig_model_rank(const char *model)
{
    const struct fig_model *m = fig_model_find(model);

    return m ? (size_t)(m - models) : VT_COUNT(models);
}

/* Whether a text ends within a character there. */
static bool is_inside(const char *at)
{
    return ((unsigned char)*at & 0xC0) == 0x80;
}

/* The text, or its two ends where it is too long: names differ in both. */
static void fit_label(char *out, size_t size, const char *text)
{
    size_t len = strlen(text), head = (size - 3) / 2, tail = size - 3 - head;

    if (len < size) {
        snprintf(out, size, "%s", text);
        return;
    }
    while (head > 0 && is_inside(text + head))
        head--;
    while (tail > 0 && is_inside(text + len - tail))
        tail--;
    snprintf(out, size, "%.*s..%s", (int)head, text, text + len - tail);
}

void fig_model_label(char *out, size_t size, const char *model)
{
    const struct fig_model *m = fig_model_find(model);
    const char *name = strrchr(model, '/');

    fit_label(out, size, m ? m->label : name ? name + 1 : model);
}

static bool is_label_of_other(char (*label)[FIG_LABEL], size_t n, size_t i)
{
    for (size_t k = 0; k < n; k++)
        if (k != i && strcmp(label[k], label[i]) == 0)
            return true;
    return false;
}

void fig_labels_apart(char (*label)[FIG_LABEL], const char *const *model, size_t n)
{
    bool same[FIG_MAX_PLACES];

    for (int whole = 0; whole < 2; whole++) {
        for (size_t i = 0; i < n; i++)
            same[i] = is_label_of_other(label, n, i);
        for (size_t i = 0; i < n; i++) {
            const char *slash = strrchr(model[i], '/');

            if (same[i])
                fit_label(label[i], FIG_LABEL, slash && !whole ? slash + 1 : model[i]);
        }
    }
    for (size_t i = 1; i < n; i++) /* names that differ in their middle only */
        if (is_label_of_other(label, i + 1, i)) {
            char number[8];
            size_t len = strlen(label[i]);
            int digits = snprintf(number, sizeof(number), " #%u", (unsigned)i % 1000);

            len =
                len + (size_t)digits < FIG_LABEL ? len : FIG_LABEL - 1 - (size_t)digits;
            memcpy(label[i] + len, number, (size_t)digits + 1);
        }
}

bool fig_model_is_moe(const char *model)
{
    static const char *const parts[] = {"Mixtral", "Scout",   "-A3B",       "-A22B",
                                        "MoE",     "gpt-oss", "DeepSeek-V3"};

    for (size_t i = 0; i < VT_COUNT(parts); i++)
        if (find_part(model, parts[i]))
            return true;
    return false;
}

uint32_t fig_default_tp(const char *model)
{
    static const struct {
        const char *part;
        uint32_t tp;
    } size[] = {{"8x22B", 8}, {"8x7B", 2}, {"Scout", 2}, {"70b", 4},
                {"34b", 2},   {"14B", 1},  {"8B", 1},    {"7b", 1}};

    for (size_t i = 0; i < VT_COUNT(size); i++) {
        const char *at = find_part(model, size[i].part);

        /* 18B is not 8B. */
        if (at && (at == model || !isalnum((unsigned char)at[-1])))
            return size[i].tp;
    }
    return 0;
}

/* ---- workloads and hardware --------------------------------------------- */

const char *fig_workload_family(const char *workload)
{
    if (strcmp(workload, "general-lite") == 0)
        return "general";
    if (strcmp(workload, "reasoning-lite") == 0)
        return "reasoning";
    return workload;
}

const char *fig_hardware_label(const char *hardware)
{
    return strncmp(hardware, "A100", 4) == 0 ? "A100" : hardware;
}
