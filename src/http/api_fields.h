/* api_fields.h - request bodies against a schema, refused in the words of pydantic and
 * FastAPI as vLLM's Python frontend passes them on; private to http.
 *
 * A schema is a table of fields in the order of vLLM's own class (errors come in that
 * order). What is not in the table is ignored. Values are taken as pydantic's lax mode
 * takes them: "8" and 8.0 are integers, "on" is true. */
#ifndef VT_HTTP_API_FIELDS_H
#define VT_HTTP_API_FIELDS_H

#include "http/api.h"

/* ---- schemas ----------------------------------------------------------- */

enum api_what {
    API_ANY,
    API_BOOL,
    API_INT,
    API_REAL,
    API_STR,
    API_BYTES,    /* a string, too */
    API_LIST,     /* of: the item; NULL: anything */
    API_ITERABLE, /* a list, whose items nobody looks at */
    API_SEQUENCE, /* a list, too, in other words */
    API_DICT,     /* of: the value; NULL: anything */
    API_LITERAL,  /* one of some strings */
    API_MODEL,    /* a dictionary with fields of its own */
    API_DATACLASS,
    API_TYPED_DICT,
    API_UNION /* of: n types, one of which must fit */
};

struct api_field;
struct api_type { /* constant */
    enum api_what what;
    bool nullable;
    bool has_min, has_max; /* of an integer, or of the length of a string or list */
    bool silent;           /* in a union: no label in the place of an error */
    int64_t min, max;
    const char *label; /* in a union: names the branch in the place of an error; a
                        * dataclass: its name */
    const struct api_type *of;
    uint32_t n;
    const char *const *literal; /* NULL-terminated */
    const struct api_field *field;
    /* A rule of a value whose type fits; false: the message says what is wrong. */
    bool (*rule)(const struct vt_node *v, struct vt_buf *message);
};

enum api_lines { API_NO_LINE, API_ONLY_026, API_ONLY_032, API_BOTH_LINES };
struct api_field { /* a table ends with a row without a name */
    const char *name;
    const struct api_type *type;
    uint8_t slot;  /* where api_fields_check() leaves the value */
    uint8_t lines; /* enum api_lines: who knows the field; 0: both */
    bool required;
};

extern const struct api_type api_any, api_bool, api_bool_or_null, api_int,
    api_int_or_null, api_real, api_real_or_null, api_str, api_str_or_null,
    api_ints_or_null, api_strs, api_dict_or_null;

/* Fills slot[], the caller's, at least as long as the greatest slot + 1 and zeroed:
 * NULL where the body has no such field. False: *e says what does not fit. */
bool api_fields_check(const struct api_field *fields, const struct vt_node *body,
                      enum api_line line, const struct vt_node **slot,
                      struct api_error *e);

/* The same of one value, named as if it were the body. */
bool api_value_check(const struct api_type *type, const struct vt_node *v,
                     enum api_line line, struct api_error *e);

/* ---- bodies ------------------------------------------------------------- */

/* What FastAPI does before anything: content type, JSON. *out lives in the arena. */
bool api_body_read(struct vt_arena *a, enum api_line line, const char *content_type,
                   const char *body, size_t len, const struct vt_node **out,
                   struct api_error *e);

/* ---- values of checked fields -------------------------------------------- */

/* NULL and null give the default. */
bool api_get_bool(const struct vt_node *v, bool def);
int64_t api_get_int(const struct vt_node *v, int64_t def);
double api_get_real(const struct vt_node *v, double def);
const char *api_get_str(const struct vt_node *v, const char *def);
/* Python's truth of a value: `if data.get("x")`. */
bool api_truth(const struct vt_node *v);
static inline bool api_given(const struct vt_node *v)
{
    return v != NULL && v->kind != VT_NULL;
}

/* ---- refusals -------------------------------------------------------- */

/* A VLLMValidationError of a request's own checks: 0.26 wraps it as pydantic does,
 * with the whole body in it, 0.32 gives it as it is. param may be NULL. value: NULL, or
 * what Python's str() gives for it. Returns false. */
bool api_refuse(struct api_error *e, enum api_line line, const struct vt_node *body,
                const char *param, const char *value, const char *fmt, ...)
    VT_PRINTF(6, 7);
/* A plain ValueError in 0.26, which names no parameter; one like the above in 0.32. */
bool api_refuse_value(struct api_error *e, enum api_line line,
                      const struct vt_node *body, const char *param,
                      const char *message);
/* One that a later stage raises: " (parameter=..., value=...)" behind the message, and
 * never wrapped. Returns false. */
bool api_refuse_late(struct api_error *e, const char *param, const char *value,
                     const char *fmt, ...) VT_PRINTF(4, 5);
/* The messages hold neither paths nor addresses: vLLM's last step, and ours. */
void api_sanitize(char *text);

/* ---- Python's way of writing ----------------------------------------- */

void api_py_repr(struct vt_buf *b, const struct vt_node *v);
void api_py_str(struct vt_buf *b, const struct vt_node *v); /* str(): no quotes */
void api_py_repr_text(struct vt_buf *b, const char *text, size_t len);
void api_py_float(struct vt_buf *b, double v);
const char *api_py_type(const struct vt_node *v); /* "int", "NoneType"; static */

/* What json.loads() says of a text: its message (static), or NULL if it has no
 * complaint; *at: the place, in characters. */
const char *api_py_json_error(const char *text, size_t len, size_t *at);

#endif
