/* failure.c - which requests fail, by draws keyed by the number of the arrival. */
#include "wire/play/failure.h"

enum {
    MAX_IDS = 1 << 20, /* remembered; later ones are forgotten with all before them */
    DRAW_WHETHER = 0,
    DRAW_KIND = 1,
};

struct seen { /* an external id; hash 0: an empty place */
    uint64_t hash;
    uint32_t n;
};

struct failure {
    struct failure_config c;
    int kind[8];
    uint32_t n_kinds;
    uint64_t arrivals;
    struct seen *seen; /* open addressing, half empty at least */
    size_t n_seen, cap_seen;
};

/* ---- kinds ------------------------------------------------------------ */

static const int known_kinds[] = {WIRE_ERROR, WIRE_LENGTH, WIRE_REPETITION,
                                  WIRE_ABORTED};

static int find_kind(const char *word, size_t len)
{
    for (size_t i = 0; i < VT_COUNT(known_kinds); i++) {
        const char *name = wire_finish_name(known_kinds[i]);

        if (strlen(name) == len && memcmp(name, word, len) == 0)
            return known_kinds[i];
    }
    return -1;
}

int failure_kinds_parse(const char *text, uint32_t *kinds, struct vt_err *err)
{
    *kinds = 0;
    for (const char *word = text;; word++) {
        size_t len = strcspn(word, ",");
        int kind = find_kind(word, len);

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

static struct seen *place_of(struct seen *table, size_t cap, uint64_t hash)
{
    size_t i = hash & (cap - 1);

    while (table[i].hash != 0 && table[i].hash != hash)
        i = (i + 1) & (cap - 1);
    return &table[i];
}

static bool grow_seen(struct failure *f)
{
    size_t cap = f->cap_seen ? f->cap_seen * 2 : 64;
    struct seen *table = calloc(cap, sizeof(*table));

    if (!table)
        return false;
    for (size_t i = 0; i < f->cap_seen; i++)
        if (f->seen[i].hash != 0)
            *place_of(table, cap, f->seen[i].hash) = f->seen[i];
    free(f->seen);
    f->seen = table;
    f->cap_seen = cap;
    return true;
}

/* How often the id has come before. Without memory: often enough. */
static uint32_t times_seen(struct failure *f, const struct mp_span *id)
{
    uint64_t hash = vt_hash_bytes(id->at, id->len, f->c.seed) | 1;
    struct seen *s;

    if (f->n_seen >= MAX_IDS) {
        memset(f->seen, 0, f->cap_seen * sizeof(*f->seen));
        f->n_seen = 0;
    }
    if (f->n_seen * 2 >= f->cap_seen && !grow_seen(f))
        return UINT32_MAX;
    s = place_of(f->seen, f->cap_seen, hash);
    if (s->hash == 0) {
        s->hash = hash;
        f->n_seen++;
    }
    return s->n < UINT32_MAX ? s->n++ : s->n;
}

/* ---- requests --------------------------------------------------------- */

static void list_kinds(struct failure *f)
{
    for (size_t i = 0; i < VT_COUNT(known_kinds); i++)
        if (f->c.kinds >> known_kinds[i] & 1)
            f->kind[f->n_kinds++] = known_kinds[i];
    if (f->n_kinds == 0)
        f->kind[f->n_kinds++] = WIRE_ERROR;
}

int failure_open(struct failure **out, const struct failure_config *c,
                 struct vt_err *err)
{
    struct failure *f;

    *out = NULL;
    if (!(c->rate >= 0 && c->rate <= 1))
        return vt_fail(err, VT_EINPUT, "a failure rate must be from 0 to 1");
    f = calloc(1, sizeof(*f));
    if (!f)
        return vt_nomem(err);
    f->c = *c;
    list_kinds(f);
    *out = f;
    return VT_OK;
}

void failure_close(struct failure *f)
{
    if (!f)
        return;
    free(f->seen);
    free(f);
}

static bool among_the_first(struct failure *f, const struct mp_span *id, uint64_t nth)
{
    if (f->c.first == 0)
        return false;
    if (!f->c.first_by_id)
        return nth < f->c.first;
    return !id || !id->at || times_seen(f, id) < f->c.first;
}

int failure_next(struct failure *f, const struct mp_span *external_id)
{
    uint64_t nth = f->arrivals++;
    double pick = vt_draw_f64(f->c.seed, nth, DRAW_KIND);

    if (!among_the_first(f, external_id, nth) &&
        vt_draw_f64(f->c.seed, nth, DRAW_WHETHER) >= f->c.rate)
        return WIRE_UNFINISHED;
    return f->kind[(size_t)(pick * f->n_kinds)];
}
