/* dataset.c - which answer of a dataset a request is served.
 *
 * By prefix means here: the dataset's prompt stands somewhere in the request's, between
 * whatever a chat template put around it. The runs of tokens to look for are sorted, so
 * that the longest one which begins at a place is found by halving; and a place is only
 * looked at if its next few tokens are the first of some run, which a rolling hash over
 * the request tells. */
#include "wire/script/parts.h"

enum {
    SHORTEST = 4,     /* a shorter run only matches a prompt that is nothing else */
    BLURRED_FROM = 8, /* such runs go without their first and last token: a tokenizer
                       * may join these with the template's text */
    WINDOW_BITS = 5,  /* windows of 4, 8, 16 and 32 tokens */
};

#define ROLL UINT64_C(0xd6e8feb86659fd93) /* odd */

struct run { /* of tokens */
    const uint32_t *token;
    size_t n;
};

static struct run run_of(const struct vt_dataset_turn *t)
{
    if (t->n_prompt < BLURRED_FROM)
        return (struct run){t->prompt, t->n_prompt};
    return (struct run){t->prompt + 1, t->n_prompt - 2};
}

static struct run run_at(const struct script_turns *t, size_t place)
{
    return run_of(&t->data->turn[t->turn[place]]);
}

static size_t common(struct run a, struct run b)
{
    size_t n = a.n < b.n ? a.n : b.n, i = 0;

    while (i < n && a.token[i] == b.token[i])
        i++;
    return i;
}

static int compare(struct run a, struct run b)
{
    size_t i = common(a, b);

    if (i == a.n || i == b.n)
        return a.n < b.n ? -1 : a.n > b.n;
    return a.token[i] < b.token[i] ? -1 : 1;
}

static bool begins(struct run whole, struct run part)
{
    return common(whole, part) == part.n;
}

/* ---- windows ---------------------------------------------------------- */

/* Over n tokens, so that the oldest can be taken out again. */
static uint64_t roll_in(uint64_t h, uint32_t token)
{
    return h * ROLL + vt_mix64(token);
}

static uint64_t roll_over(struct run r)
{
    uint64_t h = 0;

    for (size_t i = 0; i < r.n; i++)
        h = roll_in(h, r.token[i]);
    return h;
}

/* The place of a hash, or the empty one where it would go. */
static size_t window_place(const struct script_turns *t, uint64_t hash)
{
    size_t i = vt_mix64(hash) & (t->n_windows - 1);

    while (t->window[i] != 0 && t->window[i] != hash)
        i = (i + 1) & (t->n_windows - 1);
    return i;
}

static uint64_t window_hash(uint64_t rolled, unsigned bit)
{
    return vt_hash2(rolled, bit) | 1; /* 0 is an empty place */
}

static int list_windows(struct script_turns *t, struct vt_err *err)
{
    size_t n = t->data->n_turns;

    for (t->n_windows = 64; t->n_windows < 4 * n;)
        t->n_windows *= 2;
    t->window = calloc(t->n_windows, sizeof(*t->window));
    if (!t->window)
        return vt_nomem(err);
    for (size_t i = 0; i < n; i++) {
        struct run r = run_of(&t->data->turn[i]);
        unsigned bit = 2;
        uint64_t hash;

        if (r.n < SHORTEST)
            continue;
        while (bit < WINDOW_BITS && (size_t)2 << bit <= r.n)
            bit++; /* the largest power of two of tokens that it has */
        hash = window_hash(roll_over((struct run){r.token, (size_t)1 << bit}), bit);
        t->window[window_place(t, hash)] = hash;
        t->sizes |= 1U << bit;
    }
    return VT_OK;
}

/* ---- sorting ---------------------------------------------------------- */

struct sortable {
    struct run run;
    uint32_t turn;
};

static int by_run(const void *pa, const void *pb)
{
    const struct sortable *a = pa, *b = pb;
    int order = compare(a->run, b->run);

    return order != 0 ? order : a->turn < b->turn ? -1 : 1;
}

static int sort_turns(struct script_turns *t, struct vt_err *err)
{
    size_t n = t->data->n_turns;
    struct sortable *s = malloc(n * sizeof(*s));
    int rc;

    t->turn = malloc(n * sizeof(*t->turn));
    t->place = malloc(n * sizeof(*t->place));
    t->up = malloc(n * sizeof(*t->up));
    if (!s || !t->turn || !t->place || !t->up) {
        free(s);
        return vt_nomem(err);
    }
    for (size_t i = 0; i < n; i++)
        s[i] = (struct sortable){run_of(&t->data->turn[i]), (uint32_t)i};
    qsort(s, n, sizeof(*s), by_run);
    for (size_t i = 0; i < n; i++) {
        t->turn[i] = s[i].turn;
        t->place[s[i].turn] = (uint32_t)i;
    }
    free(s);
    /* For each run the longest other one that it begins with: the one before it, or one
     * of those that that one begins with. */
    for (size_t i = 0; i < n; i++) {
        uint32_t up = i > 0 ? (uint32_t)(i - 1) : SCRIPT_NONE;

        while (up != SCRIPT_NONE && (!begins(run_at(t, i), run_at(t, up)) ||
                                     run_at(t, up).n == run_at(t, i).n))
            up = t->up[up];
        t->up[i] = up;
    }
    rc = script_pick_init(&t->fresh, t->turn, n, err);
    return rc == VT_OK ? script_pick_init(&t->all, t->turn, n, err) : rc;
}

int script_turns_init(struct script_turns *t, const struct vt_dataset *data,
                      enum script_match match, struct vt_err *err)
{
    int rc;

    *t = (struct script_turns){.data = data, .match = match};
    if (match == SCRIPT_BY_ID)
        return vt_fail(err, VT_EINPUT,
                       "a dataset has no request ids: match by index or prefix");
    if (match == SCRIPT_BY_PREFIX && data->n_turns == 0)
        return vt_fail(err, VT_EINPUT,
                       "no row has both a prompt and an answer to find it by");
    t->served = calloc(match == SCRIPT_BY_INDEX ? data->n_rows : data->n_turns,
                       sizeof(*t->served));
    if (!t->served)
        return vt_nomem(err);
    if (match == SCRIPT_BY_INDEX)
        return VT_OK;
    if ((rc = sort_turns(t, err)) || (rc = list_windows(t, err)))
        script_turns_free(t);
    return rc;
}

void script_turns_free(struct script_turns *t)
{
    script_pick_free(&t->fresh);
    script_pick_free(&t->all);
    free(t->served);
    free(t->turn);
    free(t->place);
    free(t->up);
    free(t->window);
    *t = (struct script_turns){0};
}

/* ---- looking ---------------------------------------------------------- */

/* The first place whose run comes after r. */
static size_t place_after(const struct script_turns *t, struct run r)
{
    size_t lo = 0, hi = t->data->n_turns;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (compare(run_at(t, mid), r) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct hit {
    uint32_t place;
    size_t at, n;
};

/* The longest run that the text from there on begins with. Longer beats shorter where
 * they overlap; else what stands later, the newest message of a conversation, wins. */
static void consider(const struct script_turns *t, struct hit *best, struct run text,
                     size_t at)
{
    struct run rest = {text.token + at, text.n - at};
    size_t after = place_after(t, rest), n;
    uint32_t place = after > 0 ? (uint32_t)(after - 1) : SCRIPT_NONE;

    while (place != SCRIPT_NONE && !begins(rest, run_at(t, place)))
        place = t->up[place];
    n = place != SCRIPT_NONE ? run_at(t, place).n : 0;
    if (n < SHORTEST)
        return;
    if (best->place == SCRIPT_NONE || n > best->n || at >= best->at + best->n)
        *best = (struct hit){place, at, n};
}

struct window { /* the hash of some tokens that moves along with a place */
    unsigned bit;
    uint64_t hash, oldest; /* what the oldest token counts for */
};

static uint32_t open_windows(const struct script_turns *t, struct run text,
                             struct window w[WINDOW_BITS + 1])
{
    uint32_t n = 0;

    for (unsigned bit = 0; bit <= WINDOW_BITS; bit++) {
        size_t size = (size_t)1 << bit;

        if (!(t->sizes >> bit & 1) || text.n < size)
            continue;
        w[n] = (struct window){bit, roll_over((struct run){text.token, size}), 1};
        for (size_t i = 1; i < size; i++)
            w[n].oldest *= ROLL;
        n++;
    }
    return n;
}

static uint32_t find_within(const struct script_turns *t, struct run text)
{
    struct window w[WINDOW_BITS + 1];
    uint32_t n = open_windows(t, text, w);
    struct hit best = {SCRIPT_NONE, 0, 0};

    for (size_t at = 0; n > 0; at++) {
        bool known = false;
        uint32_t left = 0;

        for (uint32_t i = 0; i < n && !known; i++)
            known = t->window[window_place(t, window_hash(w[i].hash, w[i].bit))] != 0;
        if (known)
            consider(t, &best, text, at);
        for (uint32_t i = 0; i < n; i++) {
            size_t size = (size_t)1 << w[i].bit;

            if (at + size >= text.n)
                continue; /* it has come to the end */
            w[i].hash -= vt_mix64(text.token[at]) * w[i].oldest;
            w[i].hash = roll_in(w[i].hash, text.token[at + size]);
            w[left++] = w[i];
        }
        n = left;
    }
    return best.place;
}

/* ---- serving ---------------------------------------------------------- */

static uint32_t turn_of(const struct script_turns *t, uint32_t place)
{
    struct run r = run_at(t, place);
    size_t hi = place_after(t, r), lo = 0, end = hi;
    uint32_t turn;

    while (lo < end) { /* the first that is equal */
        size_t mid = lo + (end - lo) / 2;

        if (compare(run_at(t, mid), r) < 0)
            lo = mid + 1;
        else
            end = mid;
    }
    turn = script_pick_first(&t->fresh, lo, hi);
    return turn != SCRIPT_NONE ? turn : script_pick_first(&t->all, lo, hi);
}

struct script_answer script_turns_match(struct script_turns *t,
                                        const struct wire_request *r,
                                        const struct script_name *name,
                                        uint64_t arrival)
{
    struct run text = {r->prompt, r->prompt ? r->n_prompt : 0};
    struct script_answer a = {0};
    uint32_t place, turn;
    size_t after;

    if (t->match == SCRIPT_BY_INDEX) {
        uint32_t row = script_index_of(name, arrival, t->data->n_rows);

        if (row == SCRIPT_NONE)
            return a;
        a = (struct script_answer){t->data->row[row].answer, t->data->row[row].n_answer,
                                   t->served[row]};
        t->served[row] = true;
        return a;
    }
    /* A prompt that is nothing but a run of the dataset's matches however short. */
    after = place_after(t, text);
    if (after > 0 && compare(run_at(t, after - 1), text) == 0)
        place = (uint32_t)(after - 1);
    else
        place = find_within(t, text);
    if (place == SCRIPT_NONE)
        return a;
    turn = turn_of(t, place);
    a = (struct script_answer){t->data->turn[turn].answer, t->data->turn[turn].n_answer,
                               t->served[turn]};
    if (!t->served[turn])
        script_pick_remove(&t->fresh, t->place[turn]);
    t->served[turn] = true;
    return a;
}
