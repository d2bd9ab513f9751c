/* Conversations of vLLM's multi-turn benchmark, written out or as a recipe: any text is
 * refused or becomes a plan that adds up. */
#include <assert.h>
#include <stdlib.h>

#include "load/multiturn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct vt_tokenizer *tokenizer;
static struct vt_ids book;

static bool prepare(void)
{
    static const char text[] = "It was a dark night and the ship was far from home. ";
    struct vt_err err;

    if (tokenizer)
        return true;
    if (vt_tokenizer_builtin(&tokenizer, &err) != VT_OK)
        return false;
    for (int i = 0; i < 40; i++)
        if (vt_tokenizer_encode(tokenizer, text, sizeof(text) - 1, VT_ENCODE_PLAIN,
                                &book, &err) != VT_OK)
            return false;
    return true;
}

static void check(const struct vt_load_plan *p)
{
    size_t turns = 0;

    for (size_t i = 0; i < p->n; i++) {
        assert(p->session[i].n_turns > 0);
        for (uint32_t k = 0; k < p->session[i].n_turns; k++)
            assert(p->session[i].turn[k].text != NULL);
        turns += p->session[i].n_turns;
    }
    assert(turns == p->n_turns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct vt_load_multiturn m = {.path = "fuzz", .think_s = 1};
    struct vt_load_plan p = {0};
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_err err = {0};
    struct recipe r;
    int rc = VT_EINPUT;

    if (!prepare() || vt_json_parse(&arena, (const char *)data, size, 1, &root, &err)) {
        vt_arena_free(&arena);
        return 0;
    }
    if (root->kind == VT_LIST)
        rc = multiturn_list(&p, root, &m, tokenizer, &err);
    else if (recipe_read(root, &r, &err) == VT_OK && r.conversations <= 64)
        rc = recipe_make(&p, &r, &book, &m, tokenizer, &err);
    if (rc == VT_OK)
        check(&p);
    vt_load_plan_free(&p);
    vt_arena_free(&arena);
    return 0;
}
