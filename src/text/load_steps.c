/* load_steps.c - tokenizer.json: the pre-tokenizer. */
#include "text/tokenizer.h"

/* GPT-2's own pattern, which ByteLevel stands for. */
static const char gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+|"
                           " ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static int byte_level(struct step *s, const struct vt_node *node, struct vt_err *err)
{
    int rc;

    s->prefix_space = true;
    s->splits = true;
    if ((rc = load_bool(node, "add_prefix_space", &s->prefix_space, err)) ||
        (rc = load_bool(node, "use_regex", &s->splits, err)) || !s->splits)
        return rc;
    return pattern_open(&s->pattern, gpt2, sizeof(gpt2) - 1, err);
}

static int load_digits(struct step *s, const struct vt_node *node, struct vt_err *err)
{
    bool each = false;
    int rc = load_bool(node, "individual_digits", &each, err);

    s->splits = true;
    s->behavior = each ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS;
    return rc == VT_OK ? pattern_open(&s->pattern, "\\p{N}", 5, err) : rc;
}

static int behavior(const struct vt_node *node, enum behavior *out, struct vt_err *err)
{
    static const char *const names[] = {
        [SPLIT_ISOLATED] = "Isolated",
        [SPLIT_REMOVED] = "Removed",
        [SPLIT_CONTIGUOUS] = "Contiguous",
        [SPLIT_WITH_PREVIOUS] = "MergedWithPrevious",
        [SPLIT_WITH_NEXT] = "MergedWithNext",
    };
    const char *name = "";
    int rc = vt_get_str(node, "behavior", VT_REQUIRED, &name, err);

    if (rc != VT_OK)
        return rc;
    for (size_t i = 0; i < VT_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (enum behavior)i;
            return VT_OK;
        }
    return vt_fail(err, VT_EINPUT, "line %u: behavior '%.40s' is not known",
                   (unsigned)node->line, name);
}

static int split(struct step *s, const struct vt_node *node, struct vt_err *err)
{
    const struct vt_node *pattern = vt_get(node, "pattern");
    const struct vt_node *regex = vt_get(pattern, "Regex");
    const struct vt_node *text = vt_get(pattern, "String");
    int rc;

    s->splits = true;
    if ((rc = behavior(node, &s->behavior, err)) ||
        (rc = load_bool(node, "invert", &s->invert, err)))
        return rc;
    if (regex && regex->kind == VT_STR)
        rc = pattern_open(&s->pattern, regex->u.str, regex->n, err);
    else if (text && text->kind == VT_STR)
        rc = pattern_open_text(&s->pattern, text->u.str, text->n, err);
    else
        rc = vt_fail(err, VT_EINPUT, "Split has neither 'Regex' nor 'String'");
    return vt_within(err, rc, "line %u", (unsigned)node->line);
}

static int add_step(struct vt_tokenizer *t, const struct vt_node *node,
                    struct vt_err *err)
{
    static const struct {
        const char *type;
        int (*load)(struct step *s, const struct vt_node *node, struct vt_err *err);
    } kinds[] = {{"ByteLevel", byte_level}, {"Split", split}, {"Digits", load_digits}};
    const char *type = load_type(node);

    if (t->n_steps == MAX_STEPS || t->byte_level)
        return vt_fail(err, VT_EINPUT,
                       "line %u: pre_tokenizer has more than %d steps, or one behind "
                       "ByteLevel",
                       (unsigned)node->line, MAX_STEPS);
    for (size_t i = 0; i < VT_COUNT(kinds); i++)
        if (strcmp(type, kinds[i].type) == 0) {
            t->byte_level = kinds[i].load == byte_level;
            return kinds[i].load(&t->step[t->n_steps++], node, err);
        }
    return load_unsupported(node, "pre_tokenizer", err);
}

int load_steps(struct vt_tokenizer *t, const struct vt_node *pre, struct vt_err *err)
{
    int rc = pre && pre->kind == VT_MAP
                 ? load_each(t, pre, "pretokenizers", add_step, err)
                 : VT_OK;

    if (rc == VT_OK && !t->byte_level)
        rc = vt_fail(err, VT_EINPUT,
                     "pre_tokenizer has no ByteLevel step: only byte-level BPE is "
                     "supported");
    return rc;
}
