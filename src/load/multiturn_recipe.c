/* multiturn_recipe.c - conversations made out of a text by the generator file of vLLM's
 * multi-turn benchmark. Its way of putting prompts together is kept, its random numbers
 * are our own. */
#include <stdlib.h>

#include "load/multiturn.h"

static const char instruction[] =
    "Please rewrite the following text and add more content: ";

/* ---- reading --------------------------------------------------------- */

int recipe_read(const struct vt_node *root, struct recipe *out, struct vt_err *err)
{
    const struct {
        const char *section, *key;
        enum vt_need need;
        struct dist *to;
    } lengths[] = {
        {"prompt_input", "num_turns", VT_REQUIRED, &out->turns},
        {"prompt_input", "common_prefix_num_tokens", VT_OPTIONAL, &out->common_prefix},
        {"prompt_input", "prefix_num_tokens", VT_REQUIRED, &out->prefix},
        {"prompt_input", "num_tokens", VT_REQUIRED, &out->input},
        {"prompt_output", "num_tokens", VT_REQUIRED, &out->output},
    };
    const struct vt_node *files = vt_get(root, "text_files");
    bool is_list = files && files->kind == VT_LIST && files->n > 0;
    const char *type = NULL;
    int rc = vt_get_str(root, "filetype", VT_REQUIRED, &type, err);

    if (rc != VT_OK)
        return rc;
    if (strcmp(type, "generate_conversations") != 0)
        return vt_fail(err, VT_EINPUT, "filetype '%s' is not generate_conversations",
                       type);
    rc = vt_get_u32(root, "num_conversations", VT_REQUIRED, 1,
                    MULTITURN_MAX_CONVERSATIONS, &out->conversations, err);
    if (rc != VT_OK)
        return rc;
    for (uint32_t i = 0; is_list && i < files->n; i++)
        is_list = files->u.item[i].kind == VT_STR;
    if (!is_list)
        return vt_fail(err, VT_EINPUT, "'text_files' is no list of files");
    out->text_files = files;
    for (size_t i = 0; i < VT_COUNT(lengths) && rc == VT_OK; i++) {
        const char *key = lengths[i].key;
        const struct vt_node *map = vt_get(vt_get(root, lengths[i].section), key);

        *lengths[i].to = (struct dist){.kind = DIST_CONSTANT};
        if (!map && lengths[i].need == VT_OPTIONAL)
            continue;
        rc = map && map->kind == VT_MAP
                 ? vt_within(err, dist_read(map, lengths[i].to, err), "%s", key)
                 : vt_fail(err, VT_EINPUT, "'%s' is missing or no object", key);
        if (strcmp(key, "num_tokens") == 0) /* there are two of them */
            rc = vt_within(err, rc, "%s", lengths[i].section);
    }
    return rc;
}

/* ---- making ---------------------------------------------------------- */

struct generator {
    const struct recipe *r;
    const struct vt_tokenizer *t;
    const struct vt_ids *text;
    struct talk talk;
    struct vt_rng rng;
    struct vt_ids ids;
    struct vt_buf content, common; /* one message; what all conversations begin with */
    uint32_t instruction_tokens;
    uint64_t base; /* where in the text this conversation takes from */
    uint32_t *turns, *prefix, *input, *output;
    double *scratch;
    size_t room; /* of the last three lists */
};

static int add_text(struct generator *g, uint64_t from, uint64_t n, struct vt_err *err)
{
    if (from + n >= g->text->n)
        return vt_fail(err, VT_EINPUT,
                       "not enough text: %llu tokens from %llu on, and text_files hold "
                       "%zu",
                       (unsigned long long)n, (unsigned long long)from, g->text->n);
    vt_tokenizer_decode(g->t, g->text->id + from, (size_t)n, VT_KEEP_SPECIAL,
                        &g->content);
    return VT_OK;
}

/* The number keeps conversations from sharing a beginning that they should not. */
static int make_message(struct generator *g, uint32_t number, uint32_t turn,
                        uint32_t tokens, uint32_t longest, struct vt_err *err)
{
    uint32_t head = 0, prefix = turn == 0 ? g->prefix[number] : 0;
    int rc;

    vt_buf_clear(&g->content);
    if (turn == 0 && g->common.len > 0)
        vt_buf_add(&g->content, g->common.data, g->common.len);
    vt_buf_printf(&g->content, "%u is a nice number... ", number);
    rc = g->content.failed
             ? vt_nomem(err)
             : count_tokens(g->t, &g->ids, g->content.data, g->content.len, &head, err);
    if (rc == VT_OK && prefix > 0) {
        vt_buf_printf(&g->content, "%u, ", number);
        rc = add_text(g, g->base, prefix, err);
        g->base += prefix;
    }
    vt_buf_str(&g->content, instruction);
    head += g->instruction_tokens;
    if (rc == VT_OK && tokens > head)
        rc = add_text(g, g->base + (uint64_t)turn * longest, tokens - head, err);
    return rc == VT_OK && g->content.failed ? vt_nomem(err) : rc;
}

static int make_room(struct generator *g, size_t n, struct vt_err *err)
{
    if (n <= g->room)
        return VT_OK;
    free(g->input);
    free(g->output);
    free(g->scratch);
    g->room = n;
    g->input = malloc(n * sizeof(*g->input));
    g->output = malloc(n * sizeof(*g->output));
    g->scratch = malloc(n * sizeof(*g->scratch));
    return g->input && g->output && g->scratch ? VT_OK : vt_nomem(err);
}

static int make_conversation(struct generator *g, uint32_t number, struct vt_err *err)
{
    uint32_t n = g->turns[number] + g->turns[number] % 2, longest = 0;
    uint32_t most = g->talk.m->turns ? 2 * g->talk.m->turns : n;
    int rc = make_room(g, n, err);
    const char *text;
    uint32_t tokens;
    char id[32];

    if (rc != VT_OK)
        return rc;
    dist_sample(&g->r->input, &g->rng, g->instruction_tokens, g->scratch, g->input, n);
    dist_sample(&g->r->output, &g->rng, 1, g->scratch, g->output, n);
    for (uint32_t i = 0; i < n; i++)
        longest = g->input[i] > longest ? g->input[i] : longest;
    for (uint32_t i = 0; i < n && i < most && rc == VT_OK; i += 2) {
        rc = make_message(g, number, i, g->input[i], longest, err);
        if (rc != VT_OK)
            break;
        text = vt_arena_copy(&g->talk.plan->arena, g->content.data, g->content.len);
        rc = text ? count_tokens(g->t, &g->ids, text, g->content.len, &tokens, err)
                  : vt_nomem(err);
        if (rc == VT_OK)
            rc =
                talk_add(&g->talk, text, g->content.len, tokens, g->output[i + 1], err);
    }
    g->base += n;
    snprintf(id, sizeof(id), "CONV_ID_%u", number);
    return rc == VT_OK ? talk_end(&g->talk, id, NULL, err) : rc;
}

/* Lengths that each conversation has one of, and what all have in common. */
static int draw_lengths(struct generator *g, struct vt_err *err)
{
    uint32_t n = g->r->conversations, common;
    int rc = make_room(g, n, err);

    g->turns = malloc(n * sizeof(*g->turns));
    g->prefix = malloc(n * sizeof(*g->prefix));
    if (rc != VT_OK || !g->turns || !g->prefix)
        return vt_nomem(err);
    dist_sample(&g->r->turns, &g->rng, 2, g->scratch, g->turns, n);
    dist_sample(&g->r->prefix, &g->rng, 0, g->scratch, g->prefix, n);
    for (uint32_t i = 0; i < n; i++)
        if (g->turns[i] > MULTITURN_MAX_TURNS)
            return vt_fail(err, VT_EINPUT, "a conversation of %u turns (at most %d)",
                           g->turns[i], MULTITURN_MAX_TURNS);
    dist_sample(&g->r->common_prefix, &g->rng, 0, g->scratch, &common, 1);
    if (common > 0) {
        rc = add_text(g, 0, common > 2 ? common - 2 : 0, err);
        vt_buf_char(&g->content, '.'); /* ends a sentence */
        g->common = g->content;
        g->content = (struct vt_buf){0};
        g->base = common;
    }
    if (rc == VT_OK)
        rc = count_tokens(g->t, &g->ids, instruction, sizeof(instruction) - 1,
                          &g->instruction_tokens, err);
    return rc;
}

int recipe_make(struct vt_load_plan *p, const struct recipe *r,
                const struct vt_ids *text, const struct vt_load_multiturn *m,
                const struct vt_tokenizer *t, struct vt_err *err)
{
    struct generator g = {.r = r, .t = t, .text = text};
    uint32_t most = m->conversations ? m->conversations : UINT32_MAX;
    int rc;

    talk_open(&g.talk, p, m);
    vt_rng_init(&g.rng, m->seed, "multi-turn recipe");
    rc = draw_lengths(&g, err);
    for (uint32_t i = 0; i < r->conversations && i < most && rc == VT_OK; i++)
        rc = vt_within(err, make_conversation(&g, i, err), "conversation %u", i);
    talk_close(&g.talk);
    vt_ids_free(&g.ids);
    vt_buf_free(&g.content);
    vt_buf_free(&g.common);
    free(g.turns);
    free(g.prefix);
    free(g.input);
    free(g.output);
    free(g.scratch);
    return rc;
}
