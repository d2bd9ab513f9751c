/* dataset.h - what datasets share; private to load. */
#ifndef VT_LOAD_DATASET_H
#define VT_LOAD_DATASET_H

#include "load/load.h"

struct load_maker { /* of prompts out of tokens */
    const struct vt_tokenizer *tokenizer;
    struct vt_rng rng;
    uint32_t *allowed; /* heap: every id but special ones, ascending */
    size_t n_allowed;
    struct vt_ids ids; /* of the prompt in hand */
    struct vt_buf text;
};
int load_maker_open(struct load_maker *m, const struct vt_load_data *d,
                    const char *stream, struct vt_err *err) VT_MUST_CHECK;
void load_maker_close(struct load_maker *m);
uint32_t load_maker_any(struct load_maker *m); /* a random id */
int load_maker_decode(struct load_maker *m,
                      struct vt_err *err) VT_MUST_CHECK; /* m->ids to m->text */
/* Decodes m->ids and encodes the text again until that gives `want` tokens, cutting
 * and adding up to ten times as vLLM does. m->text and m->ids hold what it came to. */
int load_maker_settle(struct load_maker *m, size_t want,
                      struct vt_err *err) VT_MUST_CHECK;

/* How many ids a text has, with those that the model puts around it. */
int load_count(const struct vt_tokenizer *t, const char *text, size_t len,
               uint32_t *out, struct vt_err *err) VT_MUST_CHECK;
/* A session of one turn with a copy of the text. */
int load_add_text(struct vt_load_plan *p, const char *text, size_t len,
                  uint32_t prompt_tokens, uint32_t output_tokens,
                  struct vt_err *err) VT_MUST_CHECK;
/* The maker's ids as a turn's prompt, or their text where ids cannot be sent. */
int load_turn_ids(struct load_maker *m, struct vt_load_plan *p,
                  const struct vt_load_data *d, struct vt_load_turn *t,
                  struct vt_err *err) VT_MUST_CHECK;
/* Hands each line of d->path that is not blank to `add`, as a tree that is gone
 * afterwards, until the plan has so many requests; 0: to the end. m may be NULL. */
typedef int load_add_line(struct load_maker *m, struct vt_load_plan *p,
                          const struct vt_load_data *d, const struct vt_node *root,
                          struct vt_err *err);
int load_read_lines(struct load_maker *m, struct vt_load_plan *p,
                    const struct vt_load_data *d, size_t most, load_add_line *add,
                    struct vt_err *err) VT_MUST_CHECK;
void load_shuffle(struct vt_rng *rng, void *array, size_t n, size_t cell);
/* Repeats sessions at random until there are n. */
int load_oversample(struct vt_load_plan *p, size_t n, uint64_t seed,
                    struct vt_err *err) VT_MUST_CHECK;

struct load_range { /* of lengths, both included */
    uint64_t lo, hi;
};
/* vLLM's: from L (1 - ratio) to L (1 + ratio), none below `least`. */
struct load_range load_range_of(uint32_t mean, double ratio, uint64_t least);

int load_make_random(struct vt_load_plan *p, const struct vt_load_data *d,
                     struct vt_err *err) VT_MUST_CHECK;
int load_make_repetition(struct vt_load_plan *p, const struct vt_load_data *d,
                         struct vt_err *err) VT_MUST_CHECK;
int load_make_sharegpt(struct vt_load_plan *p, const struct vt_load_data *d,
                       struct vt_err *err) VT_MUST_CHECK;
int load_make_custom(struct vt_load_plan *p, const struct vt_load_data *d,
                     struct vt_err *err) VT_MUST_CHECK;
int load_make_timed_trace(struct vt_load_plan *p, const struct vt_load_data *d,
                          struct vt_err *err) VT_MUST_CHECK;
int load_make_trace(struct vt_load_plan *p, const struct vt_load_data *d,
                    struct vt_err *err) VT_MUST_CHECK;

#endif
