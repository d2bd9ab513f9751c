/* dataset.c - the table of datasets, and what they share.
 *
 * Lengths, filters and the way prompts are put together are vLLM's. Random numbers are
 * our own: the same seed gives other prompts than numpy would. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "load/dataset.h"

/* To add one: write its function, add a row here and its name below, and describe it in
 * docs/bench.md. */
static const struct dataset {
    const char *name;
    bool needs_path;
    int (*make)(struct vt_load_plan *p, const struct vt_load_data *d,
                struct vt_err *err);
} datasets[] = {
    {"random", false, load_make_random},
    {"sharegpt", true, load_make_sharegpt},
    {"prefix_repetition", false, load_make_repetition},
    {"custom", true, load_make_custom},
    {"timed_trace", true, load_make_timed_trace},
    {"trace", true, load_make_trace},
};
const char *const vt_load_data_names[] = {
    "random", "sharegpt", "prefix_repetition", "custom", "timed_trace", "trace", NULL};

void vt_load_data_init(struct vt_load_data *d)
{
    *d = (struct vt_load_data){
        .name = "random",
        .n = 1000,
        .random = {.input = 1024, .output = 128},
        .prefixes = 10,
        .prefix_len = 256,
        .suffix_len = 256,
        .repetition_output_len = 128,
        .as_chat = true,
        .chunk_tokens = 16,
        .sec_multiplier = 1,
        .label_timestamp = "timestamp",
        .label_input = "input_length",
        .label_output = "output_length",
        .label_hashes = "hash_ids",
    };
}

int vt_load_data_make(struct vt_load_plan *out, const struct vt_load_data *d,
                      struct vt_err *err)
{
    for (size_t i = 0; i < VT_COUNT(datasets); i++) {
        int rc;

        if (strcmp(datasets[i].name, d->name) != 0)
            continue;
        if (datasets[i].needs_path != (d->path != NULL))
            return vt_fail(err, VT_EINPUT,
                           d->path ? "dataset '%s' is made up: it has no file"
                                   : "dataset '%s' needs a file",
                           d->name);
        rc = datasets[i].make(out, d, err);
        if (rc == VT_OK && out->n == 0)
            rc = vt_fail(err, VT_EINPUT, "%s: no request in it that can be sent",
                         d->path ? d->path : d->name);
        if (rc != VT_OK)
            vt_load_plan_free(out);
        return rc;
    }
    return vt_fail(err, VT_EINPUT, "unknown dataset '%s'", d->name);
}

/* ---- prompts out of tokens --------------------------------------------- */

/* Ids that are only sent need no vocabulary. */
static int take_range(struct load_maker *m, const struct vt_load_data *d,
                      struct vt_err *err)
{
    assert(d->token_ids && d->id_range.from < d->id_range.below);
    m->n_allowed = d->id_range.below - d->id_range.from;
    m->allowed = malloc(m->n_allowed * sizeof(*m->allowed));
    if (!m->allowed)
        return vt_nomem(err);
    for (uint32_t i = 0; i < m->n_allowed; i++)
        m->allowed[i] = d->id_range.from + i;
    return VT_OK;
}

int load_maker_open(struct load_maker *m, const struct vt_load_data *d,
                    const char *stream, struct vt_err *err)
{
    const struct vt_token_facts *f;

    m->tokenizer = d->tokenizer;
    vt_rng_init(&m->rng, d->seed, stream);
    if (d->id_range.below > 0)
        return take_range(m, d, err);
    f = vt_tokenizer_facts(d->tokenizer);
    m->allowed = malloc((f->vocab_size + 1) * sizeof(*m->allowed));
    if (!m->allowed)
        return vt_nomem(err);
    for (uint32_t id = 0, k = 0; id < f->vocab_size; id++) {
        while (k < f->n_special && f->special[k] < id)
            k++;
        if ((k == f->n_special || f->special[k] != id) &&
            vt_tokenizer_token(d->tokenizer, id, NULL))
            m->allowed[m->n_allowed++] = id;
    }
    return m->n_allowed > 0 ? VT_OK : vt_fail(err, VT_EINPUT, "an empty vocabulary");
}

void load_maker_close(struct load_maker *m)
{
    free(m->allowed);
    vt_ids_free(&m->ids);
    vt_buf_free(&m->text);
}

uint32_t load_maker_any(struct load_maker *m)
{
    return m->allowed[vt_rng_below(&m->rng, m->n_allowed)];
}

int load_maker_decode(struct load_maker *m, struct vt_err *err)
{
    vt_buf_clear(&m->text);
    vt_tokenizer_decode(m->tokenizer, m->ids.id, m->ids.n, VT_KEEP_SPECIAL, &m->text);
    return m->text.failed ? vt_nomem(err) : VT_OK;
}

int load_maker_settle(struct load_maker *m, size_t want, struct vt_err *err)
{
    enum { REPAIRS = 10 };
    int rc = VT_OK;

    for (int left = REPAIRS; rc == VT_OK; left--) {
        rc = load_maker_decode(m, err);
        if (rc != VT_OK)
            break;
        m->ids.n = 0;
        rc = vt_tokenizer_encode(m->tokenizer, m->text.data ? m->text.data : "",
                                 m->text.len, VT_ENCODE_PLAIN, &m->ids, err);
        if (rc != VT_OK || left == 0 || m->ids.n == want)
            break;
        if (m->ids.n > want)
            m->ids.n = want;
        rc = vt_grow(&m->ids.id, &m->ids.cap, want, sizeof(*m->ids.id), err);
        while (rc == VT_OK && m->ids.n < want)
            m->ids.id[m->ids.n++] = load_maker_any(m);
    }
    return rc;
}

int load_count(const struct vt_tokenizer *t, const char *text, size_t len,
               uint32_t *out, struct vt_err *err)
{
    struct vt_ids ids = {0};
    int rc = vt_tokenizer_encode(t, text, len, VT_ENCODE_ADD_SPECIAL, &ids, err);

    *out = (uint32_t)ids.n;
    vt_ids_free(&ids);
    return rc;
}

/* ---- plans ------------------------------------------------------------ */

int vt_load_plan_add(struct vt_load_plan *p, const struct vt_load_session *s,
                     struct vt_err *err)
{
    struct vt_load_turn *turn = vt_arena_alloc(&p->arena, s->n_turns * sizeof(*turn));
    int rc = turn ? vt_grow(&p->session, &p->cap, p->n + 1, sizeof(*p->session), err)
                  : vt_nomem(err);

    if (rc != VT_OK)
        return rc;
    memcpy(turn, s->turn, s->n_turns * sizeof(*turn));
    p->session[p->n] = *s;
    p->session[p->n++].turn = turn;
    p->n_turns += s->n_turns;
    return VT_OK;
}

size_t vt_load_plan_starts(const struct vt_load_plan *p)
{
    size_t n = 0;

    while (n < p->n && p->session[n].n_before == 0)
        n++;
    return n;
}

int load_add_text(struct vt_load_plan *p, const char *text, size_t len,
                  uint32_t prompt_tokens, uint32_t output_tokens, struct vt_err *err)
{
    struct vt_load_turn turn = {
        .text = vt_arena_copy(&p->arena, text ? text : "", len),
        .text_len = len,
        .prompt_tokens = prompt_tokens,
        .output_tokens = output_tokens,
    };
    struct vt_load_session s = {.turn = &turn, .n_turns = 1};

    return turn.text ? vt_load_plan_add(p, &s, err) : vt_nomem(err);
}

int load_turn_ids(struct load_maker *m, struct vt_load_plan *p,
                  const struct vt_load_data *d, struct vt_load_turn *t,
                  struct vt_err *err)
{
    uint32_t *id;

    t->prompt_tokens = t->n_ids = (uint32_t)m->ids.n;
    if (!d->token_ids) {
        int rc = load_maker_decode(m, err);

        if (rc != VT_OK)
            return rc;
        t->text =
            vt_arena_copy(&p->arena, m->text.data ? m->text.data : "", m->text.len);
        t->text_len = m->text.len;
        return t->text ? VT_OK : vt_nomem(err);
    }
    id = vt_arena_alloc(&p->arena, (m->ids.n + 1) * sizeof(*id));
    if (!id)
        return vt_nomem(err);
    if (m->ids.n > 0)
        memcpy(id, m->ids.id, m->ids.n * sizeof(*id));
    t->id = id;
    return VT_OK;
}

int load_read_lines(struct load_maker *m, struct vt_load_plan *p,
                    const struct vt_load_data *d, size_t most, load_add_line *add,
                    struct vt_err *err)
{
    struct vt_arena arena = {0};
    struct vt_lines *lines;
    char *line;
    size_t len;
    int rc = vt_lines_open(&lines, d->path, err);

    if (rc != VT_OK)
        return rc;
    while (rc == VT_OK && (most == 0 || p->n < most)) {
        const struct vt_node *root = NULL;

        rc = vt_lines_next(lines, &line, &len, NULL, err);
        if (rc != VT_OK || !line)
            break;
        if (line[strspn(line, " \t\r")] == '\0')
            continue;
        vt_arena_reset(&arena);
        rc = vt_json_parse(&arena, line, len, vt_lines_number(lines), &root, err);
        if (rc == VT_OK)
            rc = add(m, p, d, root, err);
        (void)vt_within(err, rc, "%s", d->path);
    }
    vt_lines_close(lines);
    vt_arena_free(&arena);
    return rc;
}

void load_shuffle(struct vt_rng *rng, void *array, size_t n, size_t cell)
{
    char *a = array, kept[64];

    for (size_t i = n; i > 1; i--) {
        size_t k = (size_t)vt_rng_below(rng, i);

        memcpy(kept, a + (i - 1) * cell, cell);
        memmove(a + (i - 1) * cell, a + k * cell, cell);
        memcpy(a + k * cell, kept, cell);
    }
}

int load_oversample(struct vt_load_plan *p, size_t n, uint64_t seed, struct vt_err *err)
{
    size_t had = p->n;
    struct vt_rng rng;
    int rc = VT_OK;

    vt_rng_init(&rng, seed, "oversample");
    while (had > 0 && p->n < n && rc == VT_OK) {
        struct vt_load_session s = p->session[vt_rng_below(&rng, had)];

        rc = vt_load_plan_add(p, &s, err);
    }
    return rc;
}
