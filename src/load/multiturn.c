/* multiturn.c - conversations: from a file, or made on the spot. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "load/multiturn.h"

#define NO_TOKENIZER "conversations cannot be made without a tokenizer"
static const size_t MAX_TEXT_BYTES = (size_t)1 << 30;

/* ---- one conversation ---------------------------------------------------- */

void talk_open(struct talk *t, struct vt_load_plan *p,
               const struct vt_load_multiturn *m)
{
    *t = (struct talk){.plan = p, .m = m};
    vt_rng_init(&t->think, m->seed, "multi-turn think time");
}

void talk_close(struct talk *t)
{
    free(t->turn);
    *t = (struct talk){0};
}

int talk_add(struct talk *t, const char *text, size_t len, uint32_t tokens,
             uint32_t output_tokens, struct vt_err *err)
{
    double think_s = t->n > 0 && t->m->think_s > 0 ? t->m->think_s : 0;
    int rc = vt_grow(&t->turn, &t->cap, t->n + 1, sizeof(*t->turn), err);

    if (rc != VT_OK)
        return rc;
    if (think_s > 0 && t->m->think == VT_THINK_EXPONENTIAL)
        think_s *= vt_rng_exp(&t->think);
    t->said += tokens;
    t->turn[t->n] = (struct vt_load_turn){
        .text = text,
        .text_len = len,
        .prompt_tokens = tokens ? t->said : 0,
        .output_tokens = output_tokens,
        .think_ns = vt_ns_from_ms(think_s * 1e3),
    };
    t->n++;
    t->said += output_tokens;
    return VT_OK;
}

int talk_end(struct talk *t, const char *id, const char *system, struct vt_err *err)
{
    struct vt_load_session s = {
        .id = vt_arena_copy(&t->plan->arena, id, strlen(id)),
        .system = system,
        .turn = t->turn,
        .n_turns = (uint32_t)t->n,
    };
    int rc = s.id ? vt_load_plan_add(t->plan, &s, err) : vt_nomem(err);

    t->n = 0;
    t->said = 0;
    return rc;
}

/* ---- words ----------------------------------------------------------- */

enum { MOST_WORDS = 4096, LEAST_WORDS = 8, LONGEST_WORD = 24 };

/* Words that are one token each wherever they stand, so that texts made of them have as
 * many tokens as words. */
struct words {
    struct vt_arena arena;
    struct word_list {
        const char **word; /* heap */
        size_t n, cap;
    } first, later; /* later: with a space before */
};

/* Adds the id's text if it is a word. Split patterns part words at spaces and nowhere
 * else, if they are plain letters; a merge of the vocabulary may be out of reach, so
 * each is tried. */
static int try_id(struct words *w, const struct vt_tokenizer *t, uint32_t id,
                  struct vt_buf *b, struct vt_ids *ids, struct vt_err *err)
{
    struct word_list *l;
    const char *text;
    bool spaced;
    int rc;

    vt_buf_clear(b);
    vt_tokenizer_decode(t, &id, 1, VT_KEEP_SPECIAL, b);
    if (b->failed || b->len < 3 || b->len > LONGEST_WORD)
        return VT_OK;
    spaced = b->data[0] == ' ';
    for (size_t i = spaced ? 1 : 0; i < b->len; i++)
        if (!((b->data[i] >= 'a' && b->data[i] <= 'z') ||
              (b->data[i] >= 'A' && b->data[i] <= 'Z')))
            return VT_OK;
    l = spaced ? &w->later : &w->first;
    if (l->n >= MOST_WORDS)
        return VT_OK;
    ids->n = 0;
    rc = vt_tokenizer_encode(t, b->data, b->len, VT_ENCODE_PLAIN, ids, err);
    if (rc != VT_OK || ids->n != 1 || ids->id[0] != id)
        return rc;
    text = vt_arena_copy(&w->arena, b->data, b->len);
    rc = text ? vt_grow(&l->word, &l->cap, l->n + 1, sizeof(*l->word), err)
              : vt_nomem(err);
    if (rc == VT_OK)
        l->word[l->n++] = text;
    return rc;
}

static int words_open(struct words *w, const struct vt_tokenizer *t, struct vt_err *err)
{
    uint32_t size = vt_tokenizer_facts(t)->vocab_size;
    struct vt_buf b = {0};
    struct vt_ids ids = {0};
    int rc = VT_OK;

    *w = (struct words){0};
    for (uint32_t id = 0; id < size && rc == VT_OK; id++) {
        rc = try_id(w, t, id, &b, &ids, err);
        if (w->later.n >= MOST_WORDS && w->first.n > 0)
            break;
    }
    vt_buf_free(&b);
    vt_ids_free(&ids);
    if (rc == VT_OK && (w->later.n < LEAST_WORDS || w->first.n == 0))
        return vt_fail(err, VT_EINPUT,
                       "the tokenizer knows too few words to make texts of");
    return rc;
}

static void words_close(struct words *w)
{
    vt_arena_free(&w->arena);
    free(w->first.word);
    free(w->later.word);
    *w = (struct words){0};
}

/* ---- our own --------------------------------------------------------- */

struct starter {
    const char *text;
    uint32_t tokens;
};

struct making {
    const struct vt_load_multiturn *m; /* with defaults in place */
    struct words words;
    struct starter *starter;
    struct vt_rng lengths, content;
    struct vt_buf text;
    struct talk talk;
};

static uint32_t draw_length(struct vt_rng *rng, struct vt_load_range r)
{
    return r.lo + (uint32_t)vt_rng_below(rng, (uint64_t)(r.hi - r.lo) + 1);
}

/* NULL: out of memory. */
static const char *make_text(struct making *k, uint32_t tokens, size_t *len)
{
    const struct words *w = &k->words;

    vt_buf_clear(&k->text);
    if (tokens > 0)
        vt_buf_str(&k->text, w->first.word[vt_rng_below(&k->content, w->first.n)]);
    for (uint32_t i = 1; i < tokens; i++)
        vt_buf_str(&k->text, w->later.word[vt_rng_below(&k->content, w->later.n)]);
    *len = k->text.len;
    return k->text.failed ? NULL
                          : vt_arena_copy(&k->talk.plan->arena, k->text.data, *len);
}

static int make_talk(struct making *k, uint32_t number, struct vt_err *err)
{
    const struct starter *s = &k->starter[vt_rng_below(&k->lengths, k->m->starters)];
    char id[32];
    int rc = VT_OK;

    snprintf(id, sizeof(id), "conversation-%u", number);
    k->talk.said = s->tokens;
    for (uint32_t i = 0; i < k->m->turns && rc == VT_OK; i++) {
        uint32_t tokens = draw_length(&k->lengths, k->m->user_tokens);
        uint32_t output = draw_length(&k->lengths, k->m->output_tokens);
        size_t len;
        const char *text = make_text(k, tokens, &len);

        rc = text ? talk_add(&k->talk, text, len, tokens, output, err) : vt_nomem(err);
    }
    return rc == VT_OK ? talk_end(&k->talk, id, s->text, err) : rc;
}

static int make_all(struct vt_load_plan *p, const struct vt_load_multiturn *m,
                    const struct vt_tokenizer *t, struct vt_err *err)
{
    struct making k = {.m = m};
    size_t len;
    int rc = words_open(&k.words, t, err);

    talk_open(&k.talk, p, m);
    vt_rng_init(&k.lengths, m->seed, "multi-turn lengths");
    vt_rng_init(&k.content, m->seed, "multi-turn content");
    if (rc == VT_OK) {
        k.starter = calloc(m->starters, sizeof(*k.starter));
        rc = k.starter ? VT_OK : vt_nomem(err);
    }
    for (uint32_t i = 0; i < m->starters && rc == VT_OK; i++) {
        k.starter[i].tokens = draw_length(&k.lengths, m->starter_tokens);
        k.starter[i].text = make_text(&k, k.starter[i].tokens, &len);
        rc = k.starter[i].text ? VT_OK : vt_nomem(err);
    }
    for (uint32_t i = 0; i < m->conversations && rc == VT_OK; i++)
        rc = make_talk(&k, i, err);
    p->ignore_eos = true; /* answers are to have the length asked for */
    words_close(&k.words);
    vt_buf_free(&k.text);
    free(k.starter);
    talk_close(&k.talk);
    return rc;
}

/* ---- defaults -------------------------------------------------------- */

static void fill_range(struct vt_load_range *r, uint32_t lo, uint32_t hi)
{
    if (r->lo == 0 && r->hi == 0)
        *r = (struct vt_load_range){lo, hi};
}

int multiturn_defaults(struct vt_load_multiturn *m, struct vt_err *err)
{
    const struct vt_load_range *r[] = {&m->starter_tokens, &m->user_tokens,
                                       &m->output_tokens};

    m->conversations = m->conversations ? m->conversations : 20;
    m->turns = m->turns ? m->turns : 5;
    m->starters = m->starters ? m->starters : 10;
    fill_range(&m->starter_tokens, 3500, 4000);
    fill_range(&m->user_tokens, 20, 200);
    fill_range(&m->output_tokens, 700, 960);
    for (size_t i = 0; i < VT_COUNT(r); i++)
        if (r[i]->lo == 0 || r[i]->lo > r[i]->hi || r[i]->hi > MULTITURN_MAX_TOKENS)
            return vt_fail(err, VT_EINPUT, "%u:%u is no range of lengths", r[i]->lo,
                           r[i]->hi);
    if (m->conversations > MULTITURN_MAX_CONVERSATIONS ||
        m->turns > MULTITURN_MAX_TURNS || m->starters > MULTITURN_MAX_TURNS)
        return vt_fail(
            err, VT_EINPUT, "at most %d conversations of %d turns, and %d starters",
            MULTITURN_MAX_CONVERSATIONS, MULTITURN_MAX_TURNS, MULTITURN_MAX_TURNS);
    return VT_OK;
}

int vt_load_range_parse(const char *text, struct vt_load_range *out, struct vt_err *err)
{
    const char *colon = strchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : strlen(text);
    const char *tail = colon ? colon + 1 : text;
    uint64_t lo, hi;

    if (!vt_parse_u64(text, n, &lo) || !vt_parse_u64(tail, strlen(tail), &hi) ||
        lo == 0 || lo > hi || hi > MULTITURN_MAX_TOKENS)
        return vt_fail(err, VT_EINPUT,
                       "'%s' is no range of lengths: 3500:4000, or one number", text);
    *out = (struct vt_load_range){(uint32_t)lo, (uint32_t)hi};
    return VT_OK;
}

int vt_load_think_parse(const char *text, struct vt_load_multiturn *m,
                        struct vt_err *err)
{
    static const struct {
        const char *head;
        enum vt_load_think think;
    } known[] = {{"exponential:", VT_THINK_EXPONENTIAL},
                 {"constant:", VT_THINK_CONSTANT}};
    const char *number = text;
    double s;

    m->think = VT_THINK_EXPONENTIAL;
    for (size_t i = 0; i < VT_COUNT(known); i++)
        if (strncmp(text, known[i].head, strlen(known[i].head)) == 0) {
            number = text + strlen(known[i].head);
            m->think = known[i].think;
        }
    if (!vt_parse_time(number, strlen(number), VT_SEC, &s) || s < 0 || s > 1e6)
        return vt_fail(err, VT_EINPUT,
                       "'%s' is no think time: 2.5, exponential:2.5 or constant:2.5 "
                       "(seconds)",
                       text);
    m->think_s = s;
    return VT_OK;
}

/* ---- all of it ------------------------------------------------------- */

static int read_texts(struct vt_ids *ids, const struct recipe *r, const char *beside,
                      const struct vt_tokenizer *t, struct vt_err *err)
{
    const char *slash = strrchr(beside, '/');
    struct vt_buf text = {0}, near = {0};
    int rc = VT_OK;

    for (uint32_t i = 0; i < r->text_files->n && rc == VT_OK; i++) {
        const char *path = r->text_files->u.item[i].u.str;

        /* Beside the file that names it, unless it is where it says. */
        vt_buf_clear(&near);
        if (path[0] != '/' && slash && access(path, R_OK) != 0)
            vt_buf_add(&near, beside, (size_t)(slash - beside) + 1);
        vt_buf_str(&near, path);
        vt_buf_clear(&text);
        rc = near.failed ? vt_nomem(err)
                         : vt_read_file(near.data, MAX_TEXT_BYTES, &text, err);
        if (rc == VT_OK)
            rc = vt_tokenizer_encode(t, text.data ? text.data : "", text.len,
                                     VT_ENCODE_PLAIN, ids, err);
        if (rc == VT_OK && ids->n > MULTITURN_MAX_TEXT)
            rc = vt_fail(err, VT_EINPUT, "text_files hold more than %d tokens",
                         MULTITURN_MAX_TEXT);
    }
    vt_buf_free(&near);
    vt_buf_free(&text);
    return rc;
}

static int from_file(struct vt_load_plan *p, const struct vt_load_multiturn *m,
                     const struct vt_tokenizer *t, struct vt_err *err)
{
    struct vt_arena scratch = {0};
    const struct vt_node *root;
    struct vt_ids text = {0};
    struct recipe r;
    int rc = vt_tree_load(&scratch, m->path, &root, err);

    if (rc != VT_OK)
        goto out;
    if (root->kind == VT_LIST) {
        rc = multiturn_list(p, root, m, t, err);
    } else if ((rc = recipe_read(root, &r, err)) == VT_OK) {
        rc = t ? read_texts(&text, &r, m->path, t, err)
               : vt_fail(err, VT_EINPUT, NO_TOKENIZER);
        if (rc == VT_OK)
            rc = recipe_make(p, &r, &text, m, t, err);
    }
    (void)vt_within(err, rc, "%s", m->path);
out:
    vt_ids_free(&text);
    vt_arena_free(&scratch);
    return rc;
}

int vt_load_multiturn(struct vt_load_plan *p, const struct vt_load_multiturn *given,
                      const struct vt_tokenizer *t, struct vt_err *err)
{
    struct vt_load_multiturn m = *given;
    int rc;

    if (m.path) {
        rc = from_file(p, &m, t, err);
    } else if (!t) {
        rc = vt_fail(err, VT_EINPUT, NO_TOKENIZER);
    } else {
        rc = multiturn_defaults(&m, err);
        if (rc == VT_OK)
            rc = make_all(p, &m, t, err);
    }
    if (rc != VT_OK)
        vt_load_plan_free(p);
    return rc;
}
