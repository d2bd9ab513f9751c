/* split.c - the pre-tokenizer: steps that cut a piece of text into words.
 *
 * A piece goes to the next step as soon as it is cut, so no list of pieces is kept.
 * What a step does with its matches is decided by at most one piece that waits. */
#include "text/tokenizer.h"

static int run_step(struct encoding *e, size_t i, const char *text, size_t len);

struct cutting { /* one step at work on one piece */
    struct encoding *e;
    const struct step *step;
    size_t next; /* step */
    const char *text;
    size_t from, to;     /* the piece that waits */
    bool waits, matched; /* matched: the last one seen was a match */
};

static int emit_piece(const struct cutting *c, size_t from, size_t to)
{
    return from < to ? run_step(c->e, c->next, c->text + from, to - from) : VT_OK;
}

static int emit_waiting(struct cutting *c)
{
    bool waited = c->waits;

    c->waits = false;
    return waited ? emit_piece(c, c->from, c->to) : VT_OK;
}

/* Whether a stretch joins the one that waits. */
static bool joins(const struct cutting *c, bool match)
{
    switch (c->step->behavior) {
    case SPLIT_CONTIGUOUS:
        return match == c->matched;
    case SPLIT_WITH_PREVIOUS:
        return match && !c->matched;
    case SPLIT_WITH_NEXT:
        return !match && c->matched;
    case SPLIT_ISOLATED:
    case SPLIT_REMOVED:
        break;
    }
    return false;
}

static int cut_stretch(struct cutting *c, size_t from, size_t to, bool match)
{
    int rc = VT_OK;

    match ^= c->step->invert;
    if (c->step->behavior == SPLIT_ISOLATED)
        return emit_piece(c, from, to);
    if (c->step->behavior == SPLIT_REMOVED)
        return match ? VT_OK : emit_piece(c, from, to);
    if (c->waits && joins(c, match)) {
        c->to = to;
    } else {
        rc = emit_waiting(c);
        c->from = from;
        c->to = to;
        c->waits = true;
    }
    c->matched = match;
    return rc;
}

static int cut_piece(struct cutting *c, struct pattern_run *run, size_t len)
{
    size_t at = 0, start, end;
    int rc;

    for (;; at = end) {
        if ((rc = pattern_run_next(run, &start, &end, c->e->err)))
            return rc;
        if (start == SIZE_MAX)
            break;
        if ((at < start && (rc = cut_stretch(c, at, start, false))) ||
            (rc = cut_stretch(c, start, end, true)))
            return rc;
    }
    if (at < len && (rc = cut_stretch(c, at, len, false)))
        return rc;
    return emit_waiting(c);
}

static int run_step(struct encoding *e, size_t i, const char *text, size_t len)
{
    const struct vt_tokenizer *t = e->t;
    const struct step *step = &t->step[i];
    struct cutting c = {.e = e, .step = step, .next = i + 1};
    int rc;

    if (i == t->n_steps)
        return bpe_word(&t->bpe, &t->vocab, &e->room, text, len, e->ids, e->err);
    if (step->prefix_space && text[0] != ' ') { /* only the last step may ask for it */
        vt_buf_clear(&e->spaced);
        vt_buf_char(&e->spaced, ' ');
        vt_buf_add(&e->spaced, text, len);
        if (e->spaced.failed)
            return vt_nomem(e->err);
        text = e->spaced.data;
        len = e->spaced.len;
    }
    if (!step->splits)
        return run_step(e, i + 1, text, len);
    c.text = text;
    rc = pattern_run_start(&e->run[i], &step->pattern, e->newer, text, len, e->err);
    return rc == VT_OK ? cut_piece(&c, &e->run[i], len) : rc;
}

int split_piece(struct encoding *e, const char *text, size_t len)
{
    return len > 0 ? run_step(e, 0, text, len) : VT_OK;
}
