/* problems.h - error entries of a body that does not fit its schema; private to
 * http/api. */
#ifndef VT_HTTP_API_PROBLEMS_H
#define VT_HTTP_API_PROBLEMS_H

#include "http/api/request.h"

/* Where a value stands; a chain of places on the stack, innermost first. */
struct api_place {
    const struct api_place *up;
    const char *name; /* NULL: an index */
    uint32_t index;
};

struct api_problems { /* zero-initialise, set the line */
    enum api_line line;
    bool wanted;        /* else only whether there is one */
    uint32_t n;         /* entries, also those that are not written out */
    struct vt_buf text; /* freed by api_problems_end() */
    char param[128];    /* of the first */
};

/* Whether a string node is taken as such a value: "12", "-inf", "off". */
bool api_text_int(const struct vt_node *v, int64_t *out);
bool api_text_real(const struct vt_node *v, double *out);
bool api_text_bool(const struct vt_node *v, bool *out);

/* Adds an entry; ctx is Python text or NULL. Returns false, as the value did not fit.
 */
bool api_problem(struct api_problems *p, const struct api_place *at,
                 const struct vt_node *input, const char *type, const char *msg,
                 const char *ctx);
/* An entry for a ValueError, or a kind of it. extras: behind the message, not in the
 * error itself. */
void api_problem_raised(struct api_problems *p, const struct api_place *at,
                        const struct vt_node *input, const char *kind,
                        const char *extras, const char *message);
/* The 400 that they make together; frees what they hold. */
void api_problems_end(struct api_problems *p, struct api_error *e);

/* The 400 of one such entry, about a field or about the whole body: NULL. */
void api_refuse_field(struct api_error *e, enum api_line line, const char *field,
                      const struct vt_node *input, const char *kind, const char *extras,
                      const char *message);

#endif
