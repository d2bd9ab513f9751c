/* trace_contents.c - what prompts have in common, so that a prefix cache finds in the
 * trace what it found in the run.
 *
 * A conversation's prompt is the one before, its answer, and something new. Prompts of
 * single requests are in the plan: equal blocks of them have equal hashes. */
#include "load/trace_out.h"

void contents_open(struct contents *c, const struct vt_load_origin *o, bool talks)
{
    *c = (struct contents){.o = o, .talks = talks};
    c->by_blocks = !talks && o->plan && o->tokenizer;
}

void contents_close(struct contents *c)
{
    vt_arena_free(&c->arena);
    vt_ids_free(&c->ids);
}

/* ---- conversations --------------------------------------------------- */

static struct vt_record_segment *push(struct contents *c, struct session *s)
{
    struct vt_record_segment *more;

    if (s->n < s->cap)
        return &s->segment[s->n++];
    s->cap = s->cap ? 2 * s->cap : 8;
    more = vt_arena_alloc(&c->arena, s->cap * sizeof(*more));
    if (!more)
        return NULL;
    if (s->n > 0)
        memcpy(more, s->segment, s->n * sizeof(*more));
    s->segment = more;
    return &s->segment[s->n++];
}

static int add_segment(struct contents *c, struct session *s, uint32_t tokens,
                       const char *name, struct vt_err *err)
{
    struct vt_record_segment *g;

    if (tokens == 0)
        return VT_OK;
    g = push(c, s);
    if (!g)
        return vt_nomem(err);
    *g = (struct vt_record_segment){
        .name = vt_arena_copy(&c->arena, name, strlen(name)), .tokens = tokens};
    return g->name ? VT_OK : vt_nomem(err);
}

/* Sessions that begin with the same system prompt share its tokens. */
static int add_system(struct contents *c, struct session *s,
                      const struct vt_load_record *q, uint32_t *left,
                      struct vt_err *err)
{
    const struct vt_load_plan *p = c->o->plan;
    const char *text = p && q->session < p->n ? p->session[q->session].system : NULL;
    char name[32];
    int rc;

    if (!text || !c->o->tokenizer)
        return VT_OK;
    c->ids.n = 0;
    rc = vt_tokenizer_encode(c->o->tokenizer, text, strlen(text), VT_ENCODE_PLAIN,
                             &c->ids, err);
    if (rc != VT_OK || c->ids.n >= *left)
        return rc;
    snprintf(name, sizeof(name), "system-%016llx",
             (unsigned long long)vt_hash_bytes(text, strlen(text), 0));
    *left -= (uint32_t)c->ids.n;
    return add_segment(c, s, (uint32_t)c->ids.n, name, err);
}

static int add_turn(struct contents *c, struct session *s,
                    const struct vt_load_record *q, const struct vt_record *out,
                    struct vt_err *err)
{
    uint32_t left = q->prompt_tokens, known = s->prompt + s->output;
    struct vt_buf name = {0};
    int rc = VT_OK;

    if (s->turns == 0)
        rc = add_system(c, s, q, &left, err);
    else if (left >= known)
        left -= known;
    else
        s->n = 0; /* not what was said before: a template that cuts it */
    vt_buf_printf(&name, "%s.%u", out->session, out->turn);
    if (rc == VT_OK)
        rc = name.failed ? vt_nomem(err) : add_segment(c, s, left, name.data, err);
    vt_buf_free(&name);
    return rc;
}

static int add_answer(struct contents *c, struct session *s,
                      const struct vt_load_record *q, const struct vt_record *out,
                      struct vt_err *err)
{
    struct vt_buf name = {0};
    int rc;

    vt_buf_printf(&name, "out:%s", out->id);
    rc = name.failed ? vt_nomem(err)
                     : add_segment(c, s, q->output_tokens, name.data, err);
    vt_buf_free(&name);
    s->prompt = q->prompt_tokens;
    s->output = q->output_tokens;
    return rc;
}

static int set_talk(struct contents *c, struct session *s,
                    const struct vt_load_record *q, struct vt_record *out,
                    struct vt_arena *scratch, struct vt_err *err)
{
    struct vt_record_segment *list;
    int rc = add_turn(c, s, q, out, err);

    if (rc != VT_OK)
        return rc;
    list = vt_arena_alloc(scratch, s->n * sizeof(*list));
    if (!list)
        return vt_nomem(err);
    memcpy(list, s->segment, s->n * sizeof(*list));
    out->segment = list;
    out->n_segments = s->n;
    return add_answer(c, s, q, out, err);
}

/* ---- single requests ------------------------------------------------- */

/* Each hash stands for its block and all before it. */
static int set_blocks(struct contents *c, const struct vt_load_record *q,
                      struct vt_record *out, struct vt_arena *scratch,
                      struct vt_err *err)
{
    const struct vt_load_session *s = &c->o->plan->session[q->session];
    const struct vt_load_turn *t = &s->turn[q->turn];
    const uint32_t *id = t->id;
    size_t n = t->n_ids;
    uint64_t *hash, h = 0;

    if (t->text) {
        int rc;

        c->ids.n = 0;
        rc = vt_tokenizer_encode(c->o->tokenizer, t->text, t->text_len, VT_ENCODE_PLAIN,
                                 &c->ids, err);
        if (rc != VT_OK)
            return rc;
        id = c->ids.id;
        n = c->ids.n;
    }
    n = (n < q->prompt_tokens ? n : q->prompt_tokens) / CONTENTS_BLOCK;
    hash = vt_arena_alloc(scratch, (n + 1) * sizeof(*hash));
    if (!hash)
        return vt_nomem(err);
    for (size_t i = 0; i < n; i++)
        hash[i] = h =
            vt_hash_bytes(id + i * CONTENTS_BLOCK, CONTENTS_BLOCK * sizeof(*id), h + 1);
    out->block_hash = hash;
    out->n_block_hashes = (uint32_t)n;
    return VT_OK;
}

int contents_set(struct contents *c, struct session *s, const struct vt_load_record *q,
                 struct vt_record *out, struct vt_arena *scratch, struct vt_err *err)
{
    if (c->talks)
        return set_talk(c, s, q, out, scratch, err);
    if (c->by_blocks && q->session < c->o->plan->n)
        return set_blocks(c, q, out, scratch, err);
    return VT_OK;
}
