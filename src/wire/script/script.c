/* script.c - a source of scripts, and a request's way to its own. */
#include "wire/script/parts.h"

enum { MAX_FILES = 3, DRAW_NAMED = 1, DRAW_ARRIVED = 2, DRAW_SEEDED = 3, DRAW_GREEDY };

struct script_source {
    uint64_t seed;
    uint32_t vocab_size;
    struct script_ids skip;      /* sorted */
    struct script_runs ordinary; /* all but those */
    bool clamp;                  /* no token follows the recorded ones */
    struct vt_records file[MAX_FILES];
    size_t n_files;
    struct vt_dataset data;
    struct script_records tokens, steps; /* file NULL: none */
    struct script_turns turns;           /* data NULL: none */
    uint32_t *length;                    /* recorded ones, sorted; NULL: none */
    size_t n_lengths;
    size_t n_numbers;                       /* numbers below it name a record */
    struct script_ids stop, quiet, scratch; /* of the request at hand */
    uint64_t n_made_up;
    struct script_source_stats stats;
};

/* ---- memory of one script --------------------------------------------- */

struct owned {
    struct owned *next;
    max_align_t bytes[];
};

static void *script_alloc(struct script *s, size_t size, struct vt_err *err)
{
    struct owned *o = malloc(sizeof(*o) + size);

    if (!o) {
        vt_nomem(err);
        return NULL;
    }
    o->next = s->own;
    s->own = o;
    return o->bytes;
}

void script_end(struct script *s)
{
    for (struct owned *o = s->own, *next; o; o = next) {
        next = o->next;
        free(o);
    }
    *s = (struct script){0};
}

/* ---- opening ---------------------------------------------------------- */

static int open_vocabulary(struct script_source *s, const struct vt_play_config *c,
                           struct vt_err *err)
{
    int rc = script_ids_add(&s->skip, c->skip_token, c->n_skip_tokens, err);

    if (rc != VT_OK)
        return rc;
    script_ids_sort(&s->skip);
    s->ordinary.run = malloc(script_runs_bytes(s->skip.n));
    if (!s->ordinary.run)
        return vt_nomem(err);
    script_runs_without(&s->ordinary, &s->skip, c->vocab_size);
    if (s->ordinary.n_ids == 0)
        return vt_fail(err, VT_EINPUT,
                       "a vocabulary of %u tokens leaves none that is not special",
                       c->vocab_size);
    return VT_OK;
}

/* A file that serves several purposes is read once. */
static int load_records(struct script_source *s, const char *path,
                        const struct vt_records **out, struct vt_err *err)
{
    int rc;

    for (size_t i = 0; i < s->n_files; i++)
        if (strcmp(s->file[i].source, path) == 0) {
            *out = &s->file[i];
            return VT_OK;
        }
    rc = vt_records_load(&s->file[s->n_files], path, err);
    if (rc == VT_OK)
        *out = &s->file[s->n_files++];
    return rc;
}

static int open_records(struct script_source *s, struct script_records *m,
                        const char *path, const struct vt_play_config *c,
                        struct vt_err *err)
{
    bool need_tokens = m == &s->tokens;
    const struct vt_records *file;
    int rc;

    if ((rc = load_records(s, path, &file, err)) ||
        (rc = script_records_init(m, file, c->match, need_tokens, c->engine.block_size,
                                  err)))
        return rc;
    if (need_tokens || !c->replay_tokens) {
        s->n_numbers = m->n_order;
        s->stats.records = m->n_usable;
    }
    return VT_OK;
}

static int open_tokens(struct script_source *s, const struct vt_play_config *c,
                       struct vt_err *err)
{
    enum vt_file kind;
    int rc = vt_file_kind(c->replay_tokens, &kind, err);

    if (rc != VT_OK)
        return rc;
    if (kind == VT_FILE_TRACE)
        return open_records(s, &s->tokens, c->replay_tokens, c, err);
    rc = vt_dataset_load(&s->data, c->replay_tokens, c->encode, c->encode_user, err);
    if (rc != VT_OK)
        return rc;
    s->n_numbers = s->data.n_rows;
    s->stats.records = s->data.n_turns;
    return vt_within(err, script_turns_init(&s->turns, &s->data, c->match, err), "%s",
                     c->replay_tokens);
}

static int open_lengths(struct script_source *s, const struct vt_play_config *c,
                        struct vt_err *err)
{
    const struct vt_records *file;
    int rc = load_records(s, c->lengths_from, &file, err);

    if (rc != VT_OK)
        return rc;
    s->n_lengths = file->n;
    s->length = malloc(file->n * sizeof(*s->length));
    if (!s->length)
        return vt_nomem(err);
    for (size_t i = 0; i < file->n; i++)
        s->length[i] = file->rec[i].output_tokens;
    qsort(s->length, s->n_lengths, sizeof(*s->length), script_by_id);
    return VT_OK;
}

int script_source_open(struct script_source **out, const struct vt_play_config *c,
                       struct vt_err *err)
{
    struct script_source *s = calloc(1, sizeof(*s));
    int rc;

    *out = NULL;
    if (!s)
        return vt_nomem(err);
    s->seed = c->seed;
    s->vocab_size = c->vocab_size;
    s->clamp = c->match != VT_MATCH_INDEX;
    if ((rc = open_vocabulary(s, c, err)) ||
        (c->replay_tokens && (rc = open_tokens(s, c, err))) ||
        (c->replay_steps &&
         (rc = open_records(s, &s->steps, c->replay_steps, c, err))) ||
        (c->lengths_from && (rc = open_lengths(s, c, err)))) {
        script_source_close(s);
        return rc;
    }
    *out = s;
    return VT_OK;
}

void script_source_close(struct script_source *s)
{
    if (!s)
        return;
    script_records_free(&s->tokens);
    script_records_free(&s->steps);
    script_turns_free(&s->turns);
    vt_dataset_free(&s->data);
    for (size_t i = 0; i < s->n_files; i++)
        vt_records_free(&s->file[i]);
    free(s->ordinary.run);
    free(s->length);
    free(s->skip.id);
    free(s->stop.id);
    free(s->quiet.id);
    free(s->scratch.id);
    free(s);
}

struct script_source_stats script_source_stats(const struct script_source *s)
{
    return s->stats;
}

/* ---- what random output may hold -------------------------------------- */

/* The ids that end this request, and those that might end any. */
static int list_stops(struct script_source *s, const struct wire_sampling *p,
                      struct vt_err *err)
{
    uint32_t eos = p->eos_token_id >= 0 ? (uint32_t)p->eos_token_id : 0;
    int rc;

    s->stop.n = s->quiet.n = 0;
    if ((rc = script_ids_add(&s->stop, p->stop_token_ids, p->n_stop_token_ids, err)) ||
        (rc = script_ids_add(&s->quiet, p->stop_token_ids, p->n_stop_token_ids, err)) ||
        (rc = script_ids_add(&s->quiet, p->all_stop_token_ids, p->n_all_stop_token_ids,
                             err)) ||
        (rc = script_ids_add(&s->quiet, &eos, p->eos_token_id >= 0, err)))
        return rc;
    script_ids_sort(&s->stop);
    script_ids_sort(&s->quiet);
    return VT_OK;
}

static void use_runs(struct script *out, const struct script_runs *r)
{
    out->run = r->run;
    out->n_runs = r->n_runs;
    out->n_ids = r->n_ids;
}

/* s->scratch as runs of the script's own, inside out with `without`; the ordinary ones
 * where nothing would be left. */
static int own_runs(struct script_source *s, struct script *out, bool without,
                    struct vt_err *err)
{
    struct script_runs r;

    script_ids_sort(&s->scratch);
    r.run = script_alloc(out, script_runs_bytes(s->scratch.n), err);
    if (!r.run)
        return VT_ENOMEM;
    if (without)
        script_runs_without(&r, &s->scratch, s->vocab_size);
    else
        script_runs_of(&r, &s->scratch);
    use_runs(out, r.n_ids > 0 ? &r : &s->ordinary);
    return VT_OK;
}

/* Mostly a request's stops are special tokens, and nothing has to be made for it. */
static int choose_ids(struct script_source *s, const struct wire_sampling *p,
                      struct script *out, struct vt_err *err)
{
    int rc = VT_OK;

    s->scratch.n = 0;
    if (p->allowed_token_ids && p->n_allowed_token_ids > 0) {
        for (uint32_t i = 0; rc == VT_OK && i < p->n_allowed_token_ids; i++)
            if (p->allowed_token_ids[i] < s->vocab_size)
                rc = script_ids_add(&s->scratch, &p->allowed_token_ids[i], 1, err);
        return rc == VT_OK ? own_runs(s, out, false, err) : rc;
    }
    use_runs(out, &s->ordinary);
    for (size_t i = 0; rc == VT_OK && i < s->quiet.n; i++)
        if (s->quiet.id[i] < s->vocab_size &&
            !script_ids_hold(&s->skip, s->quiet.id[i]))
            rc = script_ids_add(&s->scratch, &s->quiet.id[i], 1, err);
    if (rc != VT_OK || s->scratch.n == 0)
        return rc;
    rc = script_ids_add(&s->scratch, s->skip.id, s->skip.n, err);
    return rc == VT_OK ? own_runs(s, out, true, err) : rc;
}

/* ---- keys ------------------------------------------------------------- */

static uint64_t hash_prompt(const struct wire_request *r)
{
    uint64_t h = r->prompt
                     ? vt_hash_bytes(r->prompt, r->n_prompt * sizeof(*r->prompt), 0)
                     : r->n_prompt;

    return mp_is_nil(r->lora) ? h : vt_hash_bytes(r->lora.at, r->lora.len, h);
}

/* What is the same in another run gives the same tokens there: a seed or no temperature
 * with the same prompt; else a name that a client gave; else the number of the request
 * among those without one. */
static uint64_t key_of(const struct script_source *s, const struct wire_request *r,
                       const struct wire_sampling *p, const struct script_name *name)
{
    uint64_t h;

    if (p->has_seed)
        return vt_hash2(vt_hash2(DRAW_SEEDED, (uint64_t)p->seed), hash_prompt(r));
    if (p->temperature == 0)
        return vt_hash2(vt_hash2(DRAW_GREEDY, s->seed), hash_prompt(r));
    h = vt_hash2(name->made_up ? DRAW_ARRIVED : DRAW_NAMED, s->seed);
    h = name->made_up ? vt_hash2(h, s->n_made_up)
                      : vt_hash_bytes(name->core.at, name->core.len, h);
    return vt_hash2(h, name->child);
}

/* ---- a request -------------------------------------------------------- */

struct found { /* at most one of the first two */
    const struct vt_record *rec;
    struct script_answer answer;
    const struct vt_record *steps;
};

static int find_recording(struct script_source *s, const struct wire_request *r,
                          const struct script_name *name, struct found *f,
                          struct vt_err *err)
{
    bool again = false, again_steps = false;
    int rc = VT_OK;

    *f = (struct found){0};
    if (s->tokens.file)
        rc = script_records_match(&s->tokens, r, name, s->n_made_up, &f->rec, &again,
                                  err);
    if (s->turns.data)
        f->answer = script_turns_match(&s->turns, r, name, s->n_made_up);
    if (f->rec && s->steps.file == s->tokens.file && f->rec->ttft_ns >= 0)
        f->steps = f->rec;
    else if (rc == VT_OK && s->steps.file)
        rc = script_records_match(&s->steps, r, name, s->n_made_up, &f->steps,
                                  &again_steps, err);
    s->stats.matched += f->rec || f->answer.token || f->steps;
    s->stats.repeated += again || f->answer.again || again_steps;
    return rc;
}

/* What was found, in the order of its weight. */
static void follow_recording(const struct script_source *s, struct script *out,
                             const struct found *f, const struct script_limits *l,
                             bool allowed)
{
    out->steps = f->steps;
    if (f->rec) {
        out->token = f->rec->token_id;
        out->n_token = f->rec->output_tokens;
        script_follow_record(out, f->rec, s->clamp || f->steps == f->rec, l);
    } else if (f->answer.token) {
        out->token = f->answer.token;
        out->n_token = f->answer.n;
        script_follow_answer(out, s->clamp, l);
    }
    if (f->steps && f->steps != f->rec)
        script_follow_times(out, f->steps, l);
    else if (!f->rec && !f->answer.token && s->n_lengths > 0 && !allowed)
        script_follow_length(out, s->length, s->n_lengths, l);
}

static int fill_script(struct script_source *s, const struct wire_request *r,
                       const struct wire_sampling *p, struct script *out,
                       struct vt_err *err)
{
    bool allowed = p->allowed_token_ids && p->n_allowed_token_ids > 0;
    bool may_draw_end = false;
    struct script_limits l = {&s->stop, &s->quiet, -1};
    struct script_name name;
    struct found f;
    int rc = list_stops(s, p, err);

    if (rc != VT_OK)
        return rc;
    l.eos = p->ignore_eos ? -1 : p->eos_token_id;
    script_name_of(&name, r, s->n_numbers);
    out->key = key_of(s, r, p, &name);
    if (!(rc = choose_ids(s, p, out, err)))
        rc = find_recording(s, r, &name, &f, err);
    s->n_made_up += name.made_up;
    if (rc != VT_OK)
        return rc;
    if (p->forced_token_ids && p->n_forced_token_ids > 0) {
        size_t size = p->n_forced_token_ids * sizeof(uint32_t);
        uint32_t *token = script_alloc(out, size, err);

        if (!token)
            return VT_ENOMEM;
        out->token = memcpy(token, p->forced_token_ids, size);
        out->n_token = p->n_forced_token_ids;
    } else {
        follow_recording(s, out, &f, &l, allowed);
    }
    /* Random tokens end it only where an id that does is among those it may draw. */
    for (uint32_t i = 0; allowed && i < p->n_allowed_token_ids && !may_draw_end; i++)
        may_draw_end = (int64_t)p->allowed_token_ids[i] == l.eos ||
                       script_ids_hold(l.stop, p->allowed_token_ids[i]);
    script_find_end(out, may_draw_end ? out->max_tokens : out->n_token, &l);
    return VT_OK;
}

int script_begin(struct script_source *s, const struct wire_request *r,
                 const struct wire_sampling *p, uint32_t max_model_len,
                 struct script *out, struct vt_err *err)
{
    uint32_t room = max_model_len > r->n_prompt ? max_model_len - r->n_prompt : 1;
    uint32_t max_tokens = p->max_tokens < room ? p->max_tokens : room;
    int rc;

    max_tokens = max_tokens > 0 ? max_tokens : 1;
    *out = (struct script){
        .max_tokens = max_tokens,
        .min_tokens = p->min_tokens < max_tokens ? p->min_tokens : max_tokens,
        .last_at = VT_NO_STOP,
        .eos_at = VT_NO_STOP,
        .stop_at = VT_NO_STOP,
        .finish = WIRE_UNFINISHED,
    };
    s->stats.requests++;
    rc = fill_script(s, r, p, out, err);
    if (rc != VT_OK)
        script_end(out);
    else if (out->min_tokens > out->max_tokens)
        out->min_tokens = out->max_tokens;
    return rc;
}
