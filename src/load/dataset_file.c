/* dataset_file.c - prompts out of files: ShareGPT's JSON and custom JSONL. */
#include <stdlib.h>
#include <string.h>

#include "load/dataset.h"

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

/* false: not to be used. */
static int add_conversation(struct vt_load_plan *p, const struct vt_load_data *d,
                            const struct vt_node *entry, struct vt_err *err)
{
    const struct vt_node *ask = turn_text(entry, 0), *reply = turn_text(entry, 1);
    uint32_t in, out;
    int rc;

    if (!ask || !reply)
        return VT_OK;
    rc = load_count(d->tokenizer, ask->u.str, ask->n, VT_ENCODE_ADD_SPECIAL, &in, err);
    if (rc == VT_OK)
        rc = load_count(d->tokenizer, reply->u.str, reply->n, VT_ENCODE_ADD_SPECIAL,
                        &out, err);
    if (rc != VT_OK)
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

    if (rc == VT_OK && root->kind != VT_LIST)
        rc = vt_fail(err, VT_EINPUT, "%s: not a list of conversations", d->path);
    if (rc == VT_OK) {
        entry = malloc((root->n + 1) * sizeof(*entry));
        rc = entry ? VT_OK : vt_nomem(err);
    }
    for (uint32_t i = 0; rc == VT_OK && i < root->n; i++)
        entry[i] = &root->u.item[i];
    vt_rng_init(&rng, d->seed, "sharegpt");
    if (rc == VT_OK && !d->no_shuffle)
        load_shuffle(&rng, entry, root->n, sizeof(*entry));
    for (uint32_t i = 0; rc == VT_OK && i < root->n && (d->n == 0 || p->n < d->n); i++)
        rc = add_conversation(p, d, entry[i], err);
    if (rc == VT_OK && !d->no_oversample)
        rc = load_oversample(p, d->n, d->seed, err);
    free(entry);
    vt_arena_free(&arena);
    return rc;
}

/* ---- custom ----------------------------------------------------------- */

static int add_prompt(struct vt_load_plan *p, const struct vt_load_data *d,
                      const char *prompt, uint32_t out, struct vt_err *err)
{
    struct vt_chat_message message = {.role = "user", .content = prompt};
    struct vt_chat_options options = {.add_generation_prompt = true};
    struct vt_buf b = {0};
    uint32_t in = 0;
    int rc = VT_OK;

    if (d->as_chat)
        rc =
            vt_within(err, vt_chat_render(d->tokenizer, &message, 1, &options, &b, err),
                      "the chat template (--skip-chat-template does without)");
    else
        vt_buf_str(&b, prompt);
    if (rc == VT_OK && b.failed)
        rc = vt_nomem(err);
    if (rc == VT_OK)
        rc = load_count(d->tokenizer, b.data ? b.data : "", b.len,
                        VT_ENCODE_ADD_SPECIAL, &in, err);
    if (rc == VT_OK)
        rc = load_add_text(p, b.data, b.len, in, out, err);
    vt_buf_free(&b);
    return rc;
}

static int add_line(struct vt_load_plan *p, const struct vt_load_data *d,
                    const char *line, size_t len, uint32_t number, struct vt_err *err)
{
    const struct vt_node *root = NULL;
    struct vt_arena arena = {0};
    const char *prompt = NULL;
    uint32_t out = d->output_len > 0 ? (uint32_t)d->output_len : 0;
    int rc = vt_json_parse(&arena, line, len, number, &root, err);

    if (rc == VT_OK)
        rc = vt_get_str(root, "prompt", VT_REQUIRED, &prompt, err);
    if (rc == VT_OK && d->output_len <= 0)
        rc = vt_get_u32(root, "output_tokens", VT_REQUIRED, 1, UINT32_MAX, &out, err);
    if (rc == VT_OK)
        rc = add_prompt(p, d, prompt, out, err);
    vt_arena_free(&arena);
    return rc;
}

int load_make_custom(struct vt_load_plan *p, const struct vt_load_data *d,
                     struct vt_err *err)
{
    struct vt_lines *lines = NULL;
    struct vt_rng rng;
    char *line = NULL;
    size_t len = 0;
    int rc = vt_lines_open(&lines, d->path, err);

    if (rc != VT_OK)
        return rc;
    while ((rc = vt_lines_next(lines, &line, &len, NULL, err)) == VT_OK && line) {
        if (line[strspn(line, " \t\r")] == '\0')
            continue;
        rc = add_line(p, d, line, len, vt_lines_number(lines), err);
        if (rc != VT_OK) {
            (void)vt_within(err, rc, "%s", d->path);
            break;
        }
    }
    vt_lines_close(lines);
    vt_rng_init(&rng, d->seed, "custom");
    if (rc == VT_OK && !d->no_shuffle)
        load_shuffle(&rng, p->session, p->n, sizeof(*p->session));
    if (rc == VT_OK && d->n > 0 && p->n > d->n) {
        p->n = d->n;
        p->n_turns = p->n;
    }
    if (rc == VT_OK && !d->no_oversample)
        rc = load_oversample(p, d->n, d->seed, err);
    return rc;
}
