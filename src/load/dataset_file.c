/* dataset_file.c - prompts out of files: ShareGPT's JSON and custom JSONL. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "load/dataset.h"

/* How many tokens a text has, or about how many. */
static int count_text(const struct vt_load_data *d, const char *text, size_t len,
                      uint32_t *out, struct vt_err *err)
{
    if (d->tokenizer)
        return load_count(d->tokenizer, text, len, out, err);
    *out = (uint32_t)ceil((double)len / d->bytes_per_token);
    return VT_OK;
}

/* ---- ShareGPT --------------------------------------------------------- */

enum { MIN_LEN = 4, MAX_PROMPT = 1024, MAX_TOTAL = 2048 };

static const struct vt_node *turn_text(const struct vt_node *entry, uint32_t i)
{
    const struct vt_node *list = vt_get(entry, "conversations"), *value;

    if (!list || list->kind != VT_LIST || list->n < 2)
        return NULL;
    value = vt_get(&list->u.item[i], "value");
    return value && value->kind == VT_STR ? value : NULL;
}

/* One that is too short or too long is left out. */
static int add_conversation(struct vt_load_plan *p, const struct vt_load_data *d,
                            const struct vt_node *entry, struct vt_err *err)
{
    const struct vt_node *ask = turn_text(entry, 0), *reply = turn_text(entry, 1);
    uint32_t in, out;
    int rc;

    if (!ask || !reply)
        return VT_OK;
    if ((rc = count_text(d, ask->u.str, ask->n, &in, err)) ||
        (rc = count_text(d, reply->u.str, reply->n, &out, err)))
        return rc;
    if (d->output_len > 0)
        out = (uint32_t)d->output_len;
    else if (out < MIN_LEN)
        return VT_OK;
    if (in < MIN_LEN || in > MAX_PROMPT || in + out > MAX_TOTAL)
        return VT_OK;
    return load_add_text(p, ask->u.str, ask->n, in, out, err);
}

int load_make_sharegpt(struct vt_load_plan *p, const struct vt_load_data *d,
                       struct vt_err *err)
{
    const struct vt_node *root = NULL;
    const struct vt_node **entry = NULL;
    struct vt_arena arena = {0};
    struct vt_rng rng;
    int rc = vt_tree_load(&arena, d->path, &root, err);

    if (rc != VT_OK)
        goto out;
    if (root->kind != VT_LIST) {
        rc = vt_fail(err, VT_EINPUT, "%s: not a list of conversations", d->path);
        goto out;
    }
    entry = malloc((root->n + 1) * sizeof(*entry));
    if (!entry) {
        rc = vt_nomem(err);
        goto out;
    }
    for (uint32_t i = 0; i < root->n; i++)
        entry[i] = &root->u.item[i];
    vt_rng_init(&rng, d->seed, "sharegpt");
    if (!d->no_shuffle)
        load_shuffle(&rng, entry, root->n, sizeof(*entry));
    for (uint32_t i = 0; rc == VT_OK && i < root->n && (d->n == 0 || p->n < d->n); i++)
        rc = add_conversation(p, d, entry[i], err);
    if (rc == VT_OK && !d->no_oversample)
        rc = load_oversample(p, d->n, d->seed, err);
out:
    free(entry);
    vt_arena_free(&arena);
    return rc;
}

/* ---- custom ----------------------------------------------------------- */

static int add_line(struct load_maker *ignored, struct vt_load_plan *p,
                    const struct vt_load_data *d, const struct vt_node *root,
                    struct vt_err *err)
{
    struct vt_chat_options options = {.add_generation_prompt = true};
    struct vt_chat_message message = {.role = "user"};
    uint32_t in, out = d->output_len > 0 ? (uint32_t)d->output_len : 0;
    struct vt_buf b = {0};
    int rc = vt_get_str(root, "prompt", VT_REQUIRED, &message.content, err);

    (void)ignored;
    if (rc != VT_OK ||
        (d->output_len <= 0 && (rc = vt_get_u32(root, "output_tokens", VT_REQUIRED, 1,
                                                UINT32_MAX, &out, err))))
        return rc;
    if (d->as_chat && d->tokenizer)
        rc =
            vt_within(err, vt_chat_render(d->tokenizer, &message, 1, &options, &b, err),
                      "the chat template (--skip-chat-template does without)");
    else
        vt_buf_str(&b, message.content);
    if (rc == VT_OK && b.failed)
        rc = vt_nomem(err);
    if (rc == VT_OK && !(rc = count_text(d, b.data ? b.data : "", b.len, &in, err)))
        rc = load_add_text(p, b.data, b.len, in, out, err);
    vt_buf_free(&b);
    return rc;
}

int load_make_custom(struct vt_load_plan *p, const struct vt_load_data *d,
                     struct vt_err *err)
{
    struct vt_rng rng;
    int rc = load_read_lines(NULL, p, d, 0, add_line, err);

    if (rc != VT_OK)
        return rc;
    vt_rng_init(&rng, d->seed, "custom");
    if (!d->no_shuffle)
        load_shuffle(&rng, p->session, p->n, sizeof(*p->session));
    if (d->n > 0 && p->n > d->n)
        p->n = p->n_turns = d->n;
    return d->no_oversample ? VT_OK : load_oversample(p, d->n, d->seed, err);
}
