/* prefix.c - what of prompts' shared content a table of requests can say: that
 * some begin with the same tokens. */
#include "trace/convert/convert.h"

struct first { /* begins with the name, so that it can be looked up */
    const char *name;
    size_t record; /* the first that begins so */
    bool shared;
};

struct groups {
    struct vt_names set;
    struct first *first;
    size_t n;
    uint32_t *of; /* which one each record begins with */
};

static bool same_start(const struct vt_record *a, const struct vt_record *b)
{
    return a->segment[0].offset == b->segment[0].offset &&
           strcmp(a->segment[0].name, b->segment[0].name) == 0;
}

static int look_up(struct groups *g, const struct vt_records *r, size_t i, bool *lost,
                   struct vt_err *err)
{
    const struct vt_record *q = &r->rec[i], *like;
    const char *name = q->segment[0].name;
    bool is_new;
    int rc;

    g->of[i] = (uint32_t)g->n;
    rc = vt_names_claim(&g->set, g->first, sizeof(*g->first), name, strlen(name),
                        &g->of[i], &is_new, err);
    if (rc != VT_OK)
        return rc;
    if (is_new) {
        g->first[g->n++] = (struct first){name, i, false};
        return VT_OK;
    }
    like = &r->rec[g->first[g->of[i]].record];
    g->first[g->of[i]].shared |= same_start(like, q);
    *lost = *lost || q->n_segments > 2; /* a later turn shares more than its start */
    return VT_OK;
}

int convert_prefixes(const struct vt_records *r, struct convert_prefix **out,
                     bool *lost, struct vt_err *err)
{
    struct groups g = {.first = malloc(r->n * sizeof(*g.first)),
                       .of = malloc(r->n * sizeof(*g.of))};
    int rc = VT_OK;

    *lost = false;
    *out = calloc(r->n, sizeof(**out));
    if (!*out || !g.first || !g.of)
        rc = vt_nomem(err);
    for (size_t i = 0; i < r->n && rc == VT_OK; i++) {
        *lost = *lost || r->rec[i].n_block_hashes > 0;
        if (r->rec[i].n_segments > 0)
            rc = look_up(&g, r, i, lost, err);
    }
    for (size_t i = 0; i < r->n && rc == VT_OK; i++) {
        const struct vt_record *q = &r->rec[i];
        const struct first *f = q->n_segments > 0 ? &g.first[g.of[i]] : NULL;

        if (f && f->shared && same_start(&r->rec[f->record], q))
            (*out)[i] = (struct convert_prefix){f->name, q->segment[0].tokens};
    }
    if (rc != VT_OK) {
        free(*out);
        *out = NULL;
    }
    vt_names_free(&g.set);
    free(g.first);
    free(g.of);
    return rc;
}
