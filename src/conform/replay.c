/* replay.c - which requests of a golden are sent again, and the engine that answers. */
#include "conform/replay.h"

enum {
    PROMPT_TOKEN = 42, /* what prompts are made of: their text is not in a trace */
    BLOCK_SIZE = 16,
    MIN_BLOCKS = 8192,
    EARLY_MS = 100, /* a program that refuses its flags has said so by then */
};

/* ---- requests --------------------------------------------------------- */

static bool ended_by_itself(const struct vt_record *rec)
{
    const char *finish = rec->finish_reason;

    return !finish || strcmp(finish, "stop") == 0 || strcmp(finish, "length") == 0 ||
           strcmp(finish, "repetition") == 0;
}

static void add_case(struct replay *r, const struct vt_record *rec)
{
    struct replay_case *c = &r->c[r->n++];
    uint32_t longest = 0;

    c->rec = rec;
    /* A request that stopped must not be ended by its limit. */
    c->max_tokens = !rec->finish_reason || strcmp(rec->finish_reason, "length") == 0
                        ? rec->output_tokens
                    : rec->max_tokens > rec->output_tokens ? rec->max_tokens
                                                           : rec->output_tokens + 1;
    if (rec->prompt_tokens > r->max_prompt)
        r->max_prompt = rec->prompt_tokens;
    if (rec->prompt_tokens + c->max_tokens > r->max_model_len)
        r->max_model_len = rec->prompt_tokens + c->max_tokens;
    for (uint32_t i = 0; i < rec->output_tokens; i++)
        longest = rec->token_id[i] > longest ? rec->token_id[i] : longest;
    if (longest >= r->vocab_size)
        r->vocab_size = longest + 1;
}

int replay_begin(struct replay *r, const struct judge *j, const struct golden_file *f,
                 struct vt_err *err)
{
    const struct vt_records *all = &f->records;
    const struct vt_golden_model *m = j->golden->model;

    *r = (struct replay){.file = f, .config = j->config, .golden = j->golden};
    r->max_model_len = m ? m->max_model_len : all->meta.max_model_len;
    r->vocab_size = m ? m->vocab_size : 0;
    r->c = calloc(all->n + 1, sizeof(*r->c));
    if (!r->c)
        return vt_nomem(err);
    for (size_t i = 0; i < all->n; i++)
        if (all->rec[i].token_id && ended_by_itself(&all->rec[i]))
            add_case(r, &all->rec[i]);
    r->n_left_out = all->n + all->n_skipped - r->n;
    r->prompt = malloc(((size_t)r->max_prompt + 1) * sizeof(*r->prompt));
    if (!r->prompt)
        return vt_nomem(err);
    for (uint32_t i = 0; i < r->max_prompt; i++)
        r->prompt[i] = PROMPT_TOKEN < r->vocab_size ? PROMPT_TOKEN : 0;
    return VT_OK;
}

void replay_end(struct replay *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->c[i].token);
        free(r->c[i].chunk_ns);
        free(r->c[i].chunk_tokens);
    }
    free(r->c);
    free(r->prompt);
    *r = (struct replay){0};
}

int replay_chunk(struct replay *r, struct replay_case *c, const uint32_t *token,
                 uint32_t n, const char *finish, vt_ns at, struct vt_err *err)
{
    int rc;

    if ((rc = vt_grow(&c->token, &c->cap_tokens, (size_t)c->n_tokens + n,
                      sizeof(*c->token), err)) ||
        (rc = vt_grow(&c->chunk_ns, &c->cap_chunks, (size_t)c->n_chunks + 1,
                      sizeof(*c->chunk_ns), err)) ||
        (rc = vt_grow(&c->chunk_tokens, &c->cap_chunk_tokens, (size_t)c->n_chunks + 1,
                      sizeof(*c->chunk_tokens), err)))
        return rc;
    if (n > 0) {
        memcpy(c->token + c->n_tokens, token, n * sizeof(*token));
        c->n_tokens += n;
        c->chunk_tokens[c->n_chunks] = n;
        c->chunk_ns[c->n_chunks++] = at;
    }
    if (finish && !*c->finish) {
        snprintf(c->finish, sizeof(c->finish), "%s", finish);
        r->n_done++;
    }
    return VT_OK;
}

/* ---- the engine ------------------------------------------------------- */

int replay_engine(struct replay *r, struct vt_proc *engine, const char *address,
                  enum replay_pace pace, const struct vt_wire_line *line,
                  struct vt_err *err)
{
    uint64_t blocks = (uint64_t)r->n * (r->max_model_len / BLOCK_SIZE + 1) + 1;
    int rc;

    blocks = blocks < MIN_BLOCKS ? MIN_BLOCKS : blocks > 1u << 20 ? 1u << 20 : blocks;
    engine->name = "vtwin play";
    engine->environment = r->config->environment;
    vt_proc_arg_pair(engine, r->config->vtwin, "play");
    vt_proc_arg_pair(engine, "--handshake-address", address);
    vt_proc_arg_pair(engine, "--replay-tokens", r->file->path);
    if (pace == REPLAY_RECORDED)
        vt_proc_arg_pair(engine, "--replay-steps", r->file->path);
    vt_proc_arg_pair(engine, "--replay-match", "id");
    vt_proc_arg_pair(engine, "--model", "null:");
    vt_proc_arg_u64(engine, "--vocab-size", r->vocab_size);
    vt_proc_arg_u64(engine, "--max-model-len", r->max_model_len);
    vt_proc_arg_u64(engine, "--num-gpu-blocks", blocks);
    if (line)
        vt_proc_arg_pair(engine, "--vllm-version", line->name);
    rc = vt_proc_start(engine, err);
    for (int ms = 0; rc == VT_OK && ms < EARLY_MS; ms += 10) {
        vt_sleep_ns(10 * VT_MS);
        if (!vt_proc_running(engine, err))
            rc = VT_EIO;
    }
    return rc;
}
