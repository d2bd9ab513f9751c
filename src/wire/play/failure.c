/* failure.c - which requests fail, by draws keyed by the number of the arrival. */
#include "wire/play/failure.h"

enum {
    MAX_IDS = 1 << 20, /* remembered; later ones are forgotten with all before them */
    DRAW_WHETHER = 0,
    DRAW_KIND = 1,
};

struct failure {
    double rate;
    uint32_t first;   /* so many fail whatever the rate says, */
    bool first_by_id; /* of each external id, so that a retry succeeds in the end */
    uint64_t seed;
    int kind[8];
    uint32_t n_kinds;
    uint64_t arrivals;
    struct vt_map seen; /* how often, by the hash of an external id */
};

/* ---- kinds ------------------------------------------------------------ */

static const int known_kinds[] = {WIRE_ERROR, WIRE_LENGTH, WIRE_REPETITION,
                                  WIRE_ABORTED};

int failure_kinds_parse(const char *text, uint32_t *kinds, struct vt_err *err)
{
    *kinds = 0;
    for (const char *word = text;; word++) {
        size_t len = strcspn(word, ",");
        int kind = -1;

        for (size_t i = 0; i < VT_COUNT(known_kinds); i++) {
            const char *name = wire_finish_name(known_kinds[i]);

            if (vt_is_text(name, word, len))
                kind = known_kinds[i];
        }
        if (len == 0)
            return vt_fail(err, VT_EINPUT, "there is an empty name in '%s'", text);
        if (kind < 0)
            return vt_fail(err, VT_EINPUT,
                           "'%.*s' is no kind of failure: error, length, repetition "
                           "and abort are",
                           (int)(len < 40 ? len : 40), word);
        *kinds |= UINT32_C(1) << kind;
        word += len;
        if (*word == '\0')
            return VT_OK;
    }
}

/* ---- ids -------------------------------------------------------------- */

/* How often the id has come before. Without memory: often enough. */
static uint64_t times_seen(struct failure *f, const struct mp_span *id)
{
    uint64_t *n;

    if (f->seen.n >= MAX_IDS)
        vt_map_clear(&f->seen);
    n = vt_map_put(&f->seen, vt_hash_bytes(id->at, id->len, f->seed) | 1);
    return n ? (*n)++ : UINT64_MAX;
}

/* ---- requests --------------------------------------------------------- */

int failure_open(struct failure **out, const struct vt_play_config *c,
                 struct vt_err *err)
{
    uint32_t kinds = UINT32_C(1) << WIRE_ERROR;
    struct failure *f;
    int rc =
        c->failure_types ? failure_kinds_parse(c->failure_types, &kinds, err) : VT_OK;

    *out = NULL;
    if (rc != VT_OK)
        return rc;
    if (!(c->failure_rate >= 0 && c->failure_rate <= 1))
        return vt_fail(err, VT_EINPUT, "a failure rate must be from 0 to 1");
    f = calloc(1, sizeof(*f));
    if (!f)
        return vt_nomem(err);
    f->rate = c->failure_rate;
    f->first = c->fail_first;
    f->first_by_id = c->fail_first_by_id;
    f->seed = c->seed;
    for (size_t i = 0; i < VT_COUNT(known_kinds); i++)
        if (kinds >> known_kinds[i] & 1)
            f->kind[f->n_kinds++] = known_kinds[i];
    *out = f;
    return VT_OK;
}

void failure_close(struct failure *f)
{
    if (!f)
        return;
    vt_map_free(&f->seen);
    free(f);
}

int failure_next(struct failure *f, const struct mp_span *external_id)
{
    uint64_t nth = f->arrivals++;
    double pick = vt_draw_f64(f->seed, nth, DRAW_KIND);
    bool named = external_id && external_id->at, forced = nth < f->first;

    if (f->first > 0 && f->first_by_id)
        forced = !named || times_seen(f, external_id) < f->first;
    if (!forced && vt_draw_f64(f->seed, nth, DRAW_WHETHER) >= f->rate)
        return WIRE_UNFINISHED;
    return f->kind[(size_t)(pick * f->n_kinds)];
}
