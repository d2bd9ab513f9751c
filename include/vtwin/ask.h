/* ask.h - the questions that the program answers, for programs: a command's words in,
 * the JSON out that the command prints with --json, byte for byte.
 *
 *     const char *words[] = {"capacity", "qwen3-8b", "--gpu", "H200"};
 *     struct vtwin_question q = {VTWIN_INIT(q), .words = words, .n_words = 4};
 *     struct vtwin_answer *a;
 *     if (vtwin_ask(&a, &q, &err) == VTWIN_OK)
 *         puts(vtwin_answer_json(a, NULL));
 *     vtwin_answer_free(a);
 *
 * Threads may ask at once. capacity and tune fork worker processes, as the command
 * does, unless --jobs is 1; those run nothing of the program that asks. */
#ifndef VTWIN_ASK_H
#define VTWIN_ASK_H

#include <vtwin/vtwin.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vtwin_question {
    size_t size;
    /* simulate, capacity or tune, and its words as a shell would pass them. */
    const char *const *words;
    size_t n_words;
    /* NULL, or yours: set it to other than 0, from a signal handler or another thread,
     * and the answer is VTWIN_EIO soon. */
    const volatile int *stop;
};

struct vtwin_answer; /* opaque */

/* *out is yours to free, whatever is returned. VTWIN_ECHECK: the command's exit status
 * would be 1, such as when a limit is broken; there is JSON all the same. */
VTWIN_API int vtwin_ask(struct vtwin_answer **out, const struct vtwin_question *q,
                        struct vtwin_error *err);
VTWIN_API void vtwin_answer_free(struct vtwin_answer *a);
/* Both end with NUL, belong to the answer and may be empty. len may be NULL. */
VTWIN_API const char *vtwin_answer_json(const struct vtwin_answer *a, size_t *len);
/* What the command says besides, for people: whole lines, such as warnings. */
VTWIN_API const char *vtwin_answer_notes(const struct vtwin_answer *a, size_t *len);

#ifdef __cplusplus
}
#endif

#endif
