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

static struct script_sequence run_of(const uint32_t *token, size_t n)
{
    return (struct script_sequence){token, n, sizeof(*token)};
}

/* What is looked for. */
static struct script_sequence run_of_turn(const struct vt_dataset_turn *t)
{
    bool blurred = t->n_prompt >= BLURRED_FROM;

    return run_of(t->prompt + blurred, t->n_prompt - (blurred ? 2 : 0));
}

static bool begins(struct script_sequence whole, struct script_sequence part)
{
    return script_common(whole, part) == part.n;
}

/* ---- windows ---------------------------------------------------------- */

/* Over n tokens, so that the oldest can be taken out again. */
static uint64_t roll_in(uint64_t h, uint32_t token)
{
    return h * ROLL + vt_mix64(token);
}

static uint64_t roll_over(const uint32_t *token, size_t n)
{
    uint64_t h = 0;

    for (size_t i = 0; i < n; i++)
        h = roll_in(h, token[i]);
    return h;
}

static int list_windows(struct script_turns *t, struct vt_err *err)
{
    for (size_t i = 0; i < t->data->n_turns; i++) {
        struct script_sequence r = run_of_turn(&t->data->turn[i]);
        unsigned bit = 2;

        if (r.n < SHORTEST)
            continue;
        while (bit < WINDOW_BITS && (size_t)2 << bit <= r.n)
            bit++; /* the largest power of two of tokens that it has */
        if (!vt_map_put(&t->windows, vt_hash2(roll_over(r.at, (size_t)1 << bit), bit)))
            return vt_nomem(err);
        t->sizes |= 1U << bit;
    }
    return VT_OK;
}

/* ---- sorting ---------------------------------------------------------- */

static int sort_turns(struct script_turns *t, struct vt_err *err)
{
    struct script_sorted *s = &t->runs;
    size_t n = t->data->n_turns;
    int rc = script_sorted_init(s, n, err);

    t->up = malloc(n * sizeof(*t->up));
    if (rc != VT_OK || !t->up)
        return vt_nomem(err);
    for (size_t i = 0; i < n; i++)
        s->entry[s->n++] =
            (struct script_entry){run_of_turn(&t->data->turn[i]), (uint32_t)i};
    rc = script_sorted_sort(s, err);
    /* For each run the longest other one that it begins with: the one before it, or one
     * of those that that one begins with. */
    for (size_t i = 0; i < n; i++) {
        struct script_sequence run = s->entry[i].sequence;
        uint32_t up = i > 0 ? (uint32_t)(i - 1) : SCRIPT_NONE;

        while (up != SCRIPT_NONE && (!begins(run, s->entry[up].sequence) ||
                                     s->entry[up].sequence.n == run.n))
            up = t->up[up];
        t->up[i] = up;
    }
    return rc;
}

int script_turns_init(struct script_turns *t, const struct vt_dataset *data,
                      enum vt_replay_match match, struct vt_err *err)
{
    int rc;

    *t = (struct script_turns){.data = data, .match = match};
    if (match == VT_MATCH_ID)
        return vt_fail(err, VT_EINPUT,
                       "a dataset has no request ids: match by index or prefix");
    if (match == VT_MATCH_PREFIX && data->n_turns == 0)
        return vt_fail(err, VT_EINPUT,
                       "no row has both a prompt and an answer to find it by");
    t->served = calloc(match == VT_MATCH_INDEX ? data->n_rows : data->n_turns,
                       sizeof(*t->served));
    if (!t->served)
        return vt_nomem(err);
    if (match == VT_MATCH_INDEX)
        return VT_OK;
    if ((rc = sort_turns(t, err)) || (rc = list_windows(t, err)))
        script_turns_free(t);
    return rc;
}

void script_turns_free(struct script_turns *t)
{
    script_sorted_free(&t->runs);
    free(t->served);
    free(t->up);
    vt_map_free(&t->windows);
    *t = (struct script_turns){0};
}

/* ---- looking ---------------------------------------------------------- */

struct hit {
    uint32_t place;
    size_t at, n;
};

/* The longest run that the text from there on begins with. Longer beats shorter where
 * they overlap; else what stands later, the newest message of a conversation, wins. */
static void consider(const struct script_turns *t, struct hit *best,
                     const struct wire_request *r, size_t at)
{
    struct script_sequence rest = run_of(r->prompt + at, r->n_prompt - at);
    size_t after = script_sorted_end(&t->runs, rest, SCRIPT_EQUAL), n;
    uint32_t place = after > 0 ? (uint32_t)(after - 1) : SCRIPT_NONE;

    while (place != SCRIPT_NONE && !begins(rest, t->runs.entry[place].sequence))
        place = t->up[place];
    n = place != SCRIPT_NONE ? t->runs.entry[place].sequence.n : 0;
    if (n < SHORTEST)
        return;
    if (best->place == SCRIPT_NONE || n > best->n || at >= best->at + best->n)
        *best = (struct hit){place, at, n};
}

struct window { /* the hash of some tokens that moves along with a place */
    unsigned bit;
    uint64_t hash, oldest; /* what the oldest token counts for */
};

static uint32_t open_windows(const struct script_turns *t, const struct wire_request *r,
                             struct window w[WINDOW_BITS + 1])
{
    uint32_t n = 0;

    for (unsigned bit = 0; bit <= WINDOW_BITS; bit++) {
        size_t size = (size_t)1 << bit;

        if (!(t->sizes >> bit & 1) || r->n_prompt < size)
            continue;
        w[n] = (struct window){bit, roll_over(r->prompt, size), 1};
        for (size_t i = 1; i < size; i++)
            w[n].oldest *= ROLL;
        n++;
    }
    return n;
}

static uint32_t find_within(const struct script_turns *t, const struct wire_request *r)
{
    struct window w[WINDOW_BITS + 1];
    uint32_t n = open_windows(t, r, w);
    struct hit best = {SCRIPT_NONE, 0, 0};

    for (size_t at = 0; n > 0; at++) {
        bool known = false;
        uint32_t left = 0;

        for (uint32_t i = 0; i < n && !known; i++)
            known = vt_map_get(&t->windows, vt_hash2(w[i].hash, w[i].bit)) != NULL;
        if (known)
            consider(t, &best, r, at);
        for (uint32_t i = 0; i < n; i++) {
            size_t size = (size_t)1 << w[i].bit;

            if (at + size >= r->n_prompt)
                continue; /* it has come to the end */
            w[i].hash -= vt_mix64(r->prompt[at]) * w[i].oldest;
            w[i].hash = roll_in(w[i].hash, r->prompt[at + size]);
            w[left++] = w[i];
        }
        n = left;
    }
    return best.place;
}

/* ---- serving ---------------------------------------------------------- */

static uint32_t turn_of(const struct script_turns *t, uint32_t place)
{
    struct script_sequence run = t->runs.entry[place].sequence;
    size_t lo = script_sorted_end(&t->runs, run, SCRIPT_BEFORE);
    size_t hi = script_sorted_end(&t->runs, run, SCRIPT_EQUAL);
    uint32_t turn = script_sorted_first(&t->runs, lo, hi, false);

    return turn != SCRIPT_NONE ? turn : script_sorted_first(&t->runs, lo, hi, true);
}

struct script_answer script_turns_match(struct script_turns *t,
                                        const struct wire_request *r,
                                        const struct script_name *name,
                                        uint64_t arrival)
{
    struct script_sequence text = run_of(r->prompt, r->prompt ? r->n_prompt : 0);
    struct script_answer a = {0};
    uint32_t place, turn;
    size_t first;

    if (t->match == VT_MATCH_INDEX) {
        uint32_t row = script_index_of(name, arrival, t->data->n_rows);

        if (row == SCRIPT_NONE)
            return a;
        a = (struct script_answer){t->data->row[row].answer, t->data->row[row].n_answer,
                                   t->served[row]};
        t->served[row] = true;
        return a;
    }
    /* A prompt that is nothing but a run of the dataset's matches however short. */
    first = script_sorted_end(&t->runs, text, SCRIPT_BEFORE);
    if (first < t->runs.n && t->runs.entry[first].sequence.n == text.n &&
        begins(text, t->runs.entry[first].sequence))
        place = (uint32_t)first;
    else
        place = r->prompt ? find_within(t, r) : SCRIPT_NONE;
    if (place == SCRIPT_NONE)
        return a;
    turn = turn_of(t, place);
    a = (struct script_answer){t->data->turn[turn].answer, t->data->turn[turn].n_answer,
                               t->served[turn]};
    if (!t->served[turn])
        script_sorted_serve(&t->runs, turn);
    t->served[turn] = true;
    return a;
}
