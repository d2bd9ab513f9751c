/* parts.h - the parts that scripts are made of; private to script. */
#ifndef VT_WIRE_SCRIPT_PARTS_H
#define VT_WIRE_SCRIPT_PARTS_H

#include "wire/script/script.h"

#define SCRIPT_NONE UINT32_MAX

/* ---- ids of tokens (ids.c) ------------------------------------- */

struct script_ids { /* a heap array */
    uint32_t *id;
    size_t n, cap;
};
int script_ids_add(struct script_ids *l, const uint32_t *id, size_t n,
                   struct vt_err *err) VT_MUST_CHECK;
int script_by_id(const void *pa, const void *pb); /* for qsort() of uint32_t */
void script_ids_sort(struct script_ids *l);       /* ascending, each once */
bool script_ids_hold(const struct script_ids *l, uint32_t id); /* of a sorted one */

struct script_runs {
    struct script_run *run; /* one after the last has the number of ids as its rank */
    uint32_t n_runs, n_ids;
};
/* Room for the runs of n sorted ids, or of what lies between them. */
size_t script_runs_bytes(size_t n_ids);
/* The ids themselves, or all below vocab_size that are not among them. runs->run has
 * room for them. */
void script_runs_of(struct script_runs *runs, const struct script_ids *l);
void script_runs_without(struct script_runs *runs, const struct script_ids *l,
                         uint32_t vocab_size);

/* ---- names of requests (name.c) -------------------------------- */

enum { SCRIPT_FORMS = 4 };

struct script_name {
    /* How the same request may be called elsewhere, the most exact form first. */
    struct mp_span form[SCRIPT_FORMS];
    uint32_t n_forms;
    struct mp_span core; /* without what the API server put before it */
    uint32_t child;      /* of n > 1: which one; else 0 */
    bool made_up;        /* the frontend drew it: nobody gave the request a name */
    bool has_number;     /* it ends in one: */
    uint64_t number;
};
/* n_numbers: numbers below it name something. */
void script_name_of(struct script_name *n, const struct wire_request *r,
                    size_t n_numbers);
/* Of an id in a trace: the forms only. */
void script_name_recorded(struct script_name *n, const char *id);

/* ---- sequences that begin alike (sorted.c) --------------------- */

struct script_sequence { /* of token ids or hashes; borrowed */
    const void *at;
    size_t n, cell; /* cell: bytes of an element, the same in all that are compared */
};
/* How many elements both begin with. */
size_t script_common(struct script_sequence a, struct script_sequence b);

/* Sequences, each with the number of what it belongs to, sorted as words are: a
 * beginning comes before what goes on, and equal ones are in the order of numbers. */
struct script_sorted {
    struct script_entry {
        struct script_sequence sequence;
        uint32_t number;
    } *entry; /* heap, as the others; to be filled by the owner before sorting */
    size_t n;
    uint32_t *place; /* of a number */
    uint32_t *fresh; /* a tree of the smallest numbers that are not served yet, */
    uint32_t *all;   /* and of all */
};
/* Room for so many, whose numbers are below that. To be freed also after a failure. */
int script_sorted_init(struct script_sorted *s, size_t most,
                       struct vt_err *err) VT_MUST_CHECK;
int script_sorted_sort(struct script_sorted *s, struct vt_err *err) VT_MUST_CHECK;
void script_sorted_free(struct script_sorted *s);
/* The first place behind all that come before q; or also behind those that are equal;
 * or also behind those that go on from it. */
enum script_side { SCRIPT_BEFORE, SCRIPT_EQUAL, SCRIPT_GOING_ON };
size_t script_sorted_end(const struct script_sorted *s, struct script_sequence q,
                         enum script_side side);
/* The smallest number in places [lo, hi), in O(log n); SCRIPT_NONE: all are served. */
uint32_t script_sorted_first(const struct script_sorted *s, size_t lo, size_t hi,
                             bool also_served);
void script_sorted_serve(struct script_sorted *s, uint32_t number);

/* ---- records of a trace (records.c) ------- */

struct script_id_entry { /* one form of one record's id */
    uint64_t hash;
    uint32_t level; /* how exact: lower is more */
    uint32_t rec;
    uint32_t n_served; /* in the first of equal hashes: how many are done with */
};

struct script_records {
    const struct vt_records *file;
    enum vt_replay_match match;
    uint32_t block_size;
    bool *usable; /* by record; heap arrays, as the others */
    bool *served;
    size_t n_usable;
    uint32_t *order; /* INDEX: the record of each number */
    size_t n_order;
    struct script_sorted chains; /* PREFIX: records by their block hashes */
    uint64_t *hash;              /* of the request's prompt; scratch */
    size_t cap_hash;
    struct script_id_entry *entry; /* ID: sorted */
    size_t n_entries, cap_entries;
};

/* Borrows *file. A record is usable with token ids, or where they are not needed. */
int script_records_init(struct script_records *m, const struct vt_records *file,
                        enum vt_replay_match match, bool need_tokens,
                        uint32_t block_size, struct vt_err *err) VT_MUST_CHECK;
void script_records_free(struct script_records *m);
/* The record to serve, NULL: none matches. *again: it had been served before.
 * `arrival` numbers the requests that nobody gave a name. */
int script_records_match(struct script_records *m, const struct wire_request *r,
                         const struct script_name *name, uint64_t arrival,
                         const struct vt_record **out, bool *again,
                         struct vt_err *err) VT_MUST_CHECK;

/* The number that names a record of n, SCRIPT_NONE: no number does. */
uint32_t script_index_of(const struct script_name *name, uint64_t arrival, size_t n);

/* ---- turns of a dataset (dataset.c) ---------------------------- */

struct script_turns {
    const struct vt_dataset *data;
    enum vt_replay_match match;
    bool *served;              /* by turn or row; heap arrays, as the others */
    struct script_sorted runs; /* PREFIX: turns by the run that is looked for */
    uint32_t *up; /* the place whose run is the longest beginning of this one's */
    struct vt_map windows; /* keys: hashes of the runs' first tokens */
    uint32_t sizes;        /* bits: windows of 1 << i tokens are in it */
};
int script_turns_init(struct script_turns *t, const struct vt_dataset *data,
                      enum vt_replay_match match, struct vt_err *err) VT_MUST_CHECK;
void script_turns_free(struct script_turns *t);
struct script_answer {
    const uint32_t *token; /* NULL: none matches */
    uint32_t n;
    bool again;
};
struct script_answer script_turns_match(struct script_turns *t,
                                        const struct wire_request *r,
                                        const struct script_name *name,
                                        uint64_t arrival);

/* ---- where output ends (ends.c) -------------------------------- */

struct script_limits {              /* of the request; lists are sorted and borrowed */
    const struct script_ids *stop;  /* stop_token_ids */
    const struct script_ids *quiet; /* these, the EOS, and all others that end output */
    int64_t eos;                    /* -1: none, or it is ignored */
};

/* Each sets max_tokens, last_at and finish. `clamp`: no token beyond the recorded. */
void script_follow_record(struct script *s, const struct vt_record *rec, bool clamp,
                          const struct script_limits *l);
void script_follow_times(struct script *s, const struct vt_record *rec,
                         const struct script_limits *l);
void script_follow_answer(struct script *s, bool clamp, const struct script_limits *l);
void script_follow_length(struct script *s, const uint32_t *sorted, size_t n,
                          const struct script_limits *l);
/* Looks for what ends output before index `to`, and sets eos_at and stop_at. */
void script_find_end(struct script *s, uint32_t to, const struct script_limits *l);

#endif
