/* dataset.h - prompts and answers to serve, from a dataset instead of a trace; private
 * to wire.
 *
 * JSON (a list of rows), JSON lines or CSV, plain or gzip. A row gives token ids
 * (prompt_token_ids, output_token_ids) or text in the fields that datasets use. */
#ifndef VT_WIRE_DATASET_H
#define VT_WIRE_DATASET_H

#include "base/base.h"

/* Tokens of a text, no special ones added. The callee puts them into *ids with malloc()
 * and the dataset frees them; n == 0 may leave NULL. */
typedef int dataset_encode(void *user, const char *text, size_t len, uint32_t **ids,
                           size_t *n, struct vt_err *err);

/* A prompt as it will stand somewhere in a request, and its answer. A row has one; a
 * conversation has one for each answer in it. */
struct dataset_turn {
    const uint32_t *prompt, *answer;
    uint32_t n_prompt, n_answer;
    uint32_t row;
};

struct dataset_row {
    const uint32_t *answer; /* the whole one; NULL: the row has none */
    uint32_t n_answer;
    uint32_t line; /* of the file; 0: unknown */
};

struct dataset {
    struct vt_arena arena;   /* owns what rows and turns point to */
    struct dataset_row *row; /* in the file's order: a row's index is its name */
    size_t n_rows, cap_rows;
    struct dataset_turn *turn; /* in the file's order; those with prompt and answer */
    size_t n_turns, cap_turns;
};

/* Reads into a zeroed *d. VT_EINPUT also where text needs a tokenizer and encode is
 * NULL. On failure nothing is left to free; messages start with the path and the line.
 */
int dataset_load(struct dataset *d, const char *path, dataset_encode *encode,
                 void *user, struct vt_err *err) VT_MUST_CHECK;
/* The same from bytes in memory; name is for messages and its ending tells the form. */
int dataset_read(struct dataset *d, const char *name, const char *text, size_t len,
                 dataset_encode *encode, void *user, struct vt_err *err) VT_MUST_CHECK;
void dataset_free(struct dataset *d); /* frees contents, not d */

#endif
