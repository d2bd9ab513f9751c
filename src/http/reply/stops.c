/* stops.c - all stop strings of a request looked for at once: the automaton of Aho and
 * Corasick.
 *
 * Its nodes stand level by level, so that children of one are neighbours, in the order
 * of their bytes, and need no links of their own. */
#include "http/reply/parts.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 1 << 30 };
#define ENDS_ANY (UINT32_C(1) << 31) /* with `fail`: a stop string ends there, */
#define ENDS_OWN (UINT32_C(1) << 30) /* and it is the node's own */
#define FAIL     (ENDS_OWN - 1)

struct reply_stops {
    uint32_t *id; /* stop tokens, ascending */
    size_t n_ids;
    size_t held;
    bool first_of_list; /* else the first that is complete */
    uint32_t n_nodes;   /* 0: there are no stop strings */
    uint32_t *first;    /* children of node v: [first[v], first[v + 1]) */
    uint32_t *fail;     /* the longest end of v that is a beginning of another */
    unsigned char *byte;
    struct own { /* by node */
        uint32_t node, stop;
    } *own;
    size_t n_own;
};

/* ---- stop strings in order ------------------------------------------- */

struct sorted {
    const char *text;
    uint32_t stop;
};

static int by_text(const void *pa, const void *pb)
{
    const struct sorted *a = pa, *b = pb;
    int order = strcmp(a->text, b->text);

    return order != 0 ? order : a->stop < b->stop ? -1 : a->stop > b->stop;
}

/* Bytes that both begin with. */
static size_t shared_bytes(const char *a, const char *b)
{
    size_t n = 0;

    while (a[n] != '\0' && a[n] == b[n])
        n++;
    return n;
}

/* Drops all but the first of equal ones; returns the nodes that the rest needs. */
static size_t drop_equal(struct sorted *s, size_t *n)
{
    size_t nodes = 1, kept = 0;

    for (size_t i = 0; i < *n; i++) {
        size_t shared = kept > 0 ? shared_bytes(s[kept - 1].text, s[i].text) : 0;

        if (kept > 0 && s[i].text[shared] == '\0')
            continue;
        nodes += strlen(s[i].text + shared);
        s[kept++] = s[i];
    }
    *n = kept;
    return nodes;
}

/* ---- the automaton --------------------------------------------------- */

/* The child by that byte; 0, the root, which is nobody's: none. */
static uint32_t child_of(const struct reply_stops *a, uint32_t node, unsigned char c)
{
    uint32_t low = a->first[node], end = a->first[node + 1], high = end;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (a->byte[mid] < c)
            low = mid + 1;
        else
            high = mid;
    }
    return low < end && a->byte[low] == c ? low : 0;
}

static uint32_t next_node(const struct reply_stops *a, uint32_t node, unsigned char c)
{
    uint32_t child = child_of(a, node, c);

    while (child == 0 && node != 0) {
        node = a->fail[node] & FAIL;
        child = child_of(a, node, c);
    }
    return child;
}

struct level { /* nodes of one depth: each holds for strings [from, to) */
    struct span {
        uint32_t from, to;
    } *span;
    uint32_t n;
};

/* Adds the children of a node, whose strings are s[span]. Where their ends lead is
 * known by then, for it is less deep. */
static void add_children(struct reply_stops *a, uint32_t node, const struct sorted *s,
                         struct span span, size_t depth, struct level *below)
{
    a->first[node] = a->n_nodes;
    if (span.from < span.to && s[span.from].text[depth] == '\0')
        span.from++; /* the node's own */
    while (span.from < span.to) {
        unsigned char c = (unsigned char)s[span.from].text[depth];
        uint32_t from = span.from, child = a->n_nodes++, fail;

        while (span.from < span.to && (unsigned char)s[span.from].text[depth] == c)
            span.from++;
        fail = node == 0 ? 0 : next_node(a, a->fail[node] & FAIL, c);
        a->byte[child] = c;
        a->fail[child] = fail | (a->fail[fail] & ENDS_ANY);
        if (s[from].text[depth + 1] == '\0') {
            a->fail[child] |= ENDS_ANY | ENDS_OWN;
            a->own[a->n_own++] = (struct own){child, s[from].stop};
        }
        below->span[below->n++] = (struct span){from, span.from};
    }
}

static void build(struct reply_stops *a, const struct sorted *s, uint32_t n,
                  struct span *one, struct span *other)
{
    struct level level = {one, 1}, below = {other, 0};
    uint32_t node = 0;

    level.span[0] = (struct span){0, n};
    a->n_nodes = 1;
    for (size_t depth = 0; level.n > 0; depth++) {
        struct level was = level;

        for (uint32_t i = 0; i < level.n; i++, node++)
            add_children(a, node, s, level.span[i], depth, &below);
        level = below;
        below = (struct level){was.span, 0};
    }
    a->first[node] = a->n_nodes;
}

/* ---- opening --------------------------------------------------------- */

/* Stop strings that the longest text could hold, sorted; their number. */
static size_t sort_stops(struct sorted *s, const struct reply_source *source,
                         const struct api_request *r)
{
    uint64_t most = (uint64_t)r->max_tokens * source->token_bytes;
    size_t n = 0;

    for (uint32_t i = 0; i < r->n_stop; i++)
        if (strlen(r->stop[i]) <= most && r->stop[i][0] != '\0')
            s[n++] = (struct sorted){r->stop[i], i};
    qsort(s, n, sizeof(*s), by_text);
    return n;
}

static int open_strings(struct reply_stops *a, const struct reply_source *source,
                        const struct api_request *r, struct vt_err *err)
{
    struct sorted *s = malloc(r->n_stop * sizeof(*s));
    struct span *span = NULL;
    size_t n = s ? sort_stops(s, source, r) : 0, nodes;
    int rc = s ? VT_OK : vt_nomem(err);

    if (n == 0)
        goto out;
    nodes = drop_equal(s, &n);
    if (nodes > MAX_NODES) {
        rc = vt_fail(err, VT_EINPUT, "stop strings have more than %d bytes", MAX_NODES);
        goto out;
    }
    a->first = malloc((nodes + 1) * sizeof(*a->first));
    a->fail = calloc(nodes, sizeof(*a->fail));
    a->byte = malloc(nodes);
    a->own = malloc(n * sizeof(*a->own));
    span = malloc((n + 1) * 2 * sizeof(*span));
    if (a->first && a->fail && a->byte && a->own && span)
        build(a, s, (uint32_t)n, span, span + n + 1);
    else
        rc = vt_nomem(err);
out:
    free(span);
    free(s);
    return rc;
}

int reply_stops_open(struct reply_stops **out, const struct reply_source *s,
                     const struct api_request *r, struct vt_err *err)
{
    struct reply_stops *a;
    int rc = VT_OK;

    *out = NULL;
    if (r->n_stop == 0 && r->n_stop_ids == 0)
        return VT_OK;
    a = calloc(1, sizeof(*a));
    if (!a)
        return vt_nomem(err);
    *out = a;
    a->first_of_list = r->context->line == API_LINE_026;
    for (uint32_t i = 0; !r->include_stop && i < r->n_stop; i++) {
        size_t n = api_characters(r->stop[i], strlen(r->stop[i]));

        a->held = n > a->held + 1 ? n - 1 : a->held;
    }
    if (r->n_stop_ids > 0) {
        a->id = malloc(r->n_stop_ids * sizeof(*a->id));
        if (!a->id)
            return vt_nomem(err);
        memcpy(a->id, r->stop_id, r->n_stop_ids * sizeof(*a->id));
        a->n_ids = r->n_stop_ids;
        qsort(a->id, a->n_ids, sizeof(*a->id), reply_by_u32);
    }
    if (r->n_stop > 0)
        rc = open_strings(a, s, r, err);
    return rc;
}

void reply_stops_close(struct reply_stops *a)
{
    if (!a)
        return;
    free(a->id);
    free(a->first);
    free(a->fail);
    free(a->byte);
    free(a->own);
    free(a);
}

/* ---- looking --------------------------------------------------------- */

bool reply_stops_token(const struct reply_stops *a, uint32_t id)
{
    return a && a->n_ids > 0 && bsearch(&id, a->id, a->n_ids, sizeof(id), reply_by_u32);
}

size_t reply_stops_held(const struct reply_stops *a)
{
    return a ? a->held : 0;
}

static int by_node(const void *pa, const void *pb)
{
    const struct own *a = pa, *b = pb;

    return a->node < b->node ? -1 : a->node > b->node;
}

/* The first of the list among those that end at a node. */
static uint32_t first_ending(const struct reply_stops *a, uint32_t node)
{
    uint32_t best = UINT32_MAX;

    for (; a->fail[node] & ENDS_ANY; node = a->fail[node] & FAIL) {
        const struct own sought = {.node = node}, *own;

        if (!(a->fail[node] & ENDS_OWN))
            continue;
        own = bsearch(&sought, a->own, a->n_own, sizeof(*own), by_node);
        best = own->stop < best ? own->stop : best;
    }
    return best;
}

uint32_t reply_stops_find(const struct reply_stops *a, uint32_t *state,
                          const char *text, size_t from, size_t len, size_t *end)
{
    uint32_t best = UINT32_MAX;

    if (!a || a->n_nodes == 0)
        return best;
    for (; from < len; from++) {
        uint32_t stop;

        *state = next_node(a, *state, (unsigned char)text[from]);
        if (!(a->fail[*state] & ENDS_ANY))
            continue;
        if (best < UINT32_MAX &&
            !a->first_of_list) /* one is complete: the state only */
            continue;
        stop = first_ending(a, *state);
        if (stop >= best)
            continue;
        best = stop;
        *end = from + 1;
    }
    return best;
}
