/* bench_align.c - prompts that were made with another tokenizer than the server's, cut
 * to the length wanted by asking the server. */
#include <stdlib.h>

#include "cli/cmd/bench.h"
#include "cli/signals.h"

/* POSTs what `w` has written and takes the list or text `key` from the reply, in
 * `arena`. Frees the body. */
static int ask_server(const struct bench_job *j, const char *path, struct vt_jw *w,
                      const char *key, enum vt_kind kind, struct vt_arena *arena,
                      const struct vt_node **out, struct vt_err *err)
{
    const struct vt_load_call call = {.path = path,
                                      .body = w->b->data,
                                      .body_len = w->b->len,
                                      .timeout_ns = 60 * VT_SEC};
    const struct vt_node *root = NULL;
    struct vt_buf reply = {0};
    int status = 0, rc;

    rc = w->b->failed ? vt_nomem(err)
                      : vt_load_call(&j->config, &call, &status, &reply, err);
    if (rc == VT_OK && status != 200)
        rc = vt_fail(err, VT_EINPUT, "%s: status %d", path, status);
    if (rc == VT_OK)
        rc = vt_json_parse(arena, reply.data ? reply.data : "", reply.len, 1, &root,
                           err);
    vt_buf_free(&reply);
    vt_buf_free(w->b);
    *out = rc == VT_OK ? vt_get(root, key) : NULL;
    if (rc == VT_OK && (!*out || (*out)->kind != kind))
        rc = vt_fail(err, kind == VT_LIST ? VT_EINPUT : VT_EIO,
                     "%s: no %s in its reply", path, key);
    return rc;
}

static void begin_body(const struct bench_job *j, struct vt_jw *w, struct vt_buf *b)
{
    vt_jw_init(w, b, &vt_json_tight);
    vt_jw_map(w, NULL);
    vt_jw_str(w, "model", j->config.model);
}

static int tokenize(const struct bench_job *j, const struct vt_load_turn *t,
                    struct vt_arena *arena, const struct vt_node **tokens,
                    struct vt_err *err)
{
    struct vt_buf b = {0};
    struct vt_jw w;

    begin_body(j, &w, &b);
    vt_jw_bool(&w, "add_special_tokens", false);
    vt_jw_strn(&w, "prompt", t->text, t->text_len);
    vt_jw_end(&w);
    return ask_server(j, "/tokenize", &w, "tokens", VT_LIST, arena, tokens, err);
}

static int detokenize(struct bench_job *j, const struct vt_node *tokens, uint32_t n,
                      struct vt_arena *arena, struct vt_load_turn *t,
                      struct vt_err *err)
{
    const struct vt_node *prompt;
    struct vt_buf b = {0};
    struct vt_jw w;
    int rc;

    begin_body(j, &w, &b);
    vt_jw_list(&w, "tokens");
    for (uint32_t i = 0; i < n; i++)
        vt_jw_node(&w, NULL, &tokens->u.item[i]);
    vt_jw_end(&w);
    vt_jw_end(&w);
    rc = ask_server(j, "/detokenize", &w, "prompt", VT_STR, arena, &prompt, err);
    if (rc != VT_OK)
        return rc;
    t->text = vt_arena_copy(&j->plan.arena, prompt->u.str, prompt->n);
    t->text_len = prompt->n;
    return t->text ? VT_OK : vt_nomem(err);
}

static int align_turn(struct bench_job *j, struct vt_load_turn *t, struct vt_err *err)
{
    const struct vt_node *tokens;
    struct vt_arena arena = {0};
    int rc = tokenize(j, t, &arena, &tokens, err);

    /* The same is said again behind it until the server counts enough tokens. */
    if (rc == VT_OK && tokens->n < t->prompt_tokens) {
        uint64_t has = tokens->n > 0 ? tokens->n : 1,
                 times = t->prompt_tokens / has + 2;
        struct vt_buf b = {0};

        for (uint64_t i = 0; i < times; i++) {
            vt_buf_add(&b, t->text, t->text_len);
            vt_buf_char(&b, ' ');
        }
        t->text = b.failed ? NULL : vt_arena_copy(&j->plan.arena, b.data, b.len);
        t->text_len = b.len;
        vt_buf_free(&b);
        vt_arena_reset(&arena);
        rc = t->text ? tokenize(j, t, &arena, &tokens, err) : vt_nomem(err);
    }
    if (rc == VT_OK && tokens->n > t->prompt_tokens)
        rc = detokenize(j, tokens, t->prompt_tokens, &arena, t, err);
    vt_arena_free(&arena);
    return rc;
}

/* A server without /tokenize is left alone, and so is one that counts as we do. */
int bench_align(struct bench_job *j, struct vt_err *err)
{
    const struct vt_load_turn *first = &j->plan.session[0].turn[0];
    const struct vt_node *tokens;
    struct vt_arena arena = {0};
    struct vt_err refused = {0};
    uint32_t counted;
    int rc = tokenize(j, first, &arena, &tokens, &refused);

    counted = rc == VT_OK ? tokens->n : 0;
    vt_arena_free(&arena);
    if (rc == VT_EIO || rc == VT_ENOMEM) {
        *err = refused;
        return rc;
    }
    if (rc != VT_OK) {
        if (j->own_tokenizer)
            bench_tell("no tokenizer was given and the server has no /tokenize (%s): "
                       "prompts may have other lengths",
                       refused.msg);
        return VT_OK;
    }
    if (counted == first->prompt_tokens)
        return VT_OK;
    bench_tell(
        "the server counts %u tokens where %u were meant: prompts are cut by its "
        "own tokenizer",
        (unsigned)counted, (unsigned)first->prompt_tokens);
    rc = VT_OK;
    for (size_t i = 0; i < j->plan.n && rc == VT_OK && !cli_signal_caught(); i++) {
        struct vt_load_turn t = j->plan.session[i].turn[0], *copy;

        rc = align_turn(j, &t, err);
        copy = rc == VT_OK ? vt_arena_alloc(&j->plan.arena, sizeof(t)) : NULL;
        if (!copy)
            return rc == VT_OK ? vt_nomem(err) : rc;
        *copy = t;
        j->plan.session[i].turn = copy;
    }
    return rc;
}
