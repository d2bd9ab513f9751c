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

struct kitchen {
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

static int take_text(struct kitchen *k, uint64_t from, uint64_t n, struct vt_err *err)
{
    if (from + n >= k->text->n)
        return vt_fail(err, VT_EINPUT,
                       "not enough text: %llu tokens from %llu on, and text_files hold "
                       "%zu",
                       (unsigned long long)n, (unsigned long long)from, k->text->n);
    vt_tokenizer_decode(k->t, k->text->id + from, (size_t)n, VT_KEEP_SPECIAL,
                        &k->content);
    return VT_OK;
}

/* The number keeps conversations from sharing a beginning that they should not. */
static int cook_message(struct kitchen *k, uint32_t number, uint32_t turn,
                        uint32_t tokens, uint32_t longest, struct vt_err *err)
{
    uint32_t head = 0, prefix = turn == 0 ? k->prefix[number] : 0;
    int rc;

    vt_buf_clear(&k->content);
    if (turn == 0 && k->common.len > 0)
        vt_buf_add(&k->content, k->common.data, k->common.len);
    vt_buf_printf(&k->content, "%u is a nice number... ", number);
    rc = k->content.failed
             ? vt_nomem(err)
             : count_tokens(k->t, &k->ids, k->content.data, k->content.len, &head, err);
    if (rc == VT_OK && prefix > 0) {
        vt_buf_printf(&k->content, "%u, ", number);
        rc = take_text(k, k->base, prefix, err);
        k->base += prefix;
    }
    vt_buf_str(&k->content, instruction);
    head += k->instruction_tokens;
    if (rc == VT_OK && tokens > head)
        rc = take_text(k, k->base + (uint64_t)turn * longest, tokens - head, err);
    return rc == VT_OK && k->content.failed ? vt_nomem(err) : rc;
}

static int make_room(struct kitchen *k, size_t n, struct vt_err *err)
{
    if (n <= k->room)
        return VT_OK;
    free(k->input);
    free(k->output);
    free(k->scratch);
    k->room = n;
    k->input = malloc(n * sizeof(*k->input));
    k->output = malloc(n * sizeof(*k->output));
    k->scratch = malloc(n * sizeof(*k->scratch));
    return k->input && k->output && k->scratch ? VT_OK : vt_nomem(err);
}

static int cook(struct kitchen *k, uint32_t number, struct vt_err *err)
{
    uint32_t n = k->turns[number] + k->turns[number] % 2, longest = 0;
    uint32_t most = k->talk.m->turns ? 2 * k->talk.m->turns : n;
    char id[32];
    int rc = make_room(k, n, err), len;
    const char *name, *text;
    uint32_t tokens;

    if (rc != VT_OK)
        return rc;
    dist_sample(&k->r->input, &k->rng, k->instruction_tokens, k->scratch, k->input, n);
    dist_sample(&k->r->output, &k->rng, 1, k->scratch, k->output, n);
    for (uint32_t i = 0; i < n; i++)
        longest = k->input[i] > longest ? k->input[i] : longest;
    for (uint32_t i = 0; i < n && i < most && rc == VT_OK; i += 2) {
        rc = cook_message(k, number, i, k->input[i], longest, err);
        if (rc != VT_OK)
            break;
        text = vt_arena_copy(&k->talk.plan->arena, k->content.data, k->content.len);
        rc = text ? count_tokens(k->t, &k->ids, text, k->content.len, &tokens, err)
                  : vt_nomem(err);
        if (rc == VT_OK)
            rc =
                talk_add(&k->talk, text, k->content.len, tokens, k->output[i + 1], err);
    }
    k->base += n;
    if (rc != VT_OK)
        return rc;
    len = snprintf(id, sizeof(id), "CONV_ID_%u", number);
    name = vt_arena_copy(&k->talk.plan->arena, id, (size_t)len);
    return name ? talk_end(&k->talk, name, NULL, err) : vt_nomem(err);
}

/* Lengths that each conversation has one of, and what all have in common. */
static int prepare(struct kitchen *k, struct vt_err *err)
{
    uint32_t n = k->r->conversations, common;
    int rc = make_room(k, n, err);

    k->turns = malloc(n * sizeof(*k->turns));
    k->prefix = malloc(n * sizeof(*k->prefix));
    if (rc != VT_OK || !k->turns || !k->prefix)
        return vt_nomem(err);
    dist_sample(&k->r->turns, &k->rng, 2, k->scratch, k->turns, n);
    dist_sample(&k->r->prefix, &k->rng, 0, k->scratch, k->prefix, n);
    for (uint32_t i = 0; i < n; i++)
        if (k->turns[i] > MULTITURN_MAX_TURNS)
            return vt_fail(err, VT_EINPUT, "a conversation of %u turns (at most %d)",
                           k->turns[i], MULTITURN_MAX_TURNS);
    dist_sample(&k->r->common_prefix, &k->rng, 0, k->scratch, &common, 1);
    if (common > 0) {
        rc = take_text(k, 0, common > 2 ? common - 2 : 0, err);
        vt_buf_char(&k->content, '.'); /* ends a sentence */
        k->common = k->content;
        k->content = (struct vt_buf){0};
        k->base = common;
    }
    if (rc == VT_OK)
        rc = count_tokens(k->t, &k->ids, instruction, sizeof(instruction) - 1,
                          &k->instruction_tokens, err);
    return rc;
}

int recipe_make(struct vt_load_plan *p, const struct recipe *r,
                const struct vt_ids *text, const struct vt_load_multiturn *m,
                const struct vt_tokenizer *t, struct vt_err *err)
{
    struct kitchen k = {.r = r, .t = t, .text = text};
    uint32_t most = m->conversations ? m->conversations : UINT32_MAX;
    int rc;

    talk_open(&k.talk, p, m);
    vt_rng_init(&k.rng, m->seed, "multi-turn recipe");
    rc = prepare(&k, err);
    for (uint32_t i = 0; i < r->conversations && i < most && rc == VT_OK; i++)
        rc = vt_within(err, cook(&k, i, err), "conversation %u", i);
    talk_close(&k.talk);
    vt_ids_free(&k.ids);
    vt_buf_free(&k.content);
    vt_buf_free(&k.common);
    free(k.turns);
    free(k.prefix);
    free(k.input);
    free(k.output);
    free(k.scratch);
    return rc;
}
