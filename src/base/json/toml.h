/* toml.h - what the two halves of the TOML reader share. */
#ifndef VT_TOML_H
#define VT_TOML_H

#include "base/json/build.h"

/* How a table or list came to be, which decides who may add to it. */
enum vt_toml_how {
    VT_TOML_CLOSED,  /* written whole: { } and [ ]; also what is no container */
    VT_TOML_IMPLIED, /* named on the way to another: [a.b] implies a */
    VT_TOML_HEADER,  /* [a] */
    VT_TOML_DOTTED,  /* a.b = 1 */
    VT_TOML_TABLES,  /* [[a]] */
};

/* A value while tables may still grow: children are a chain. All in the arena. */
struct vt_toml_item {
    struct vt_node node; /* complete but for its children */
    struct vt_toml_item *parent, *first, *last, *next;
    uint32_t section; /* in which dotted keys made it */
    uint8_t how;      /* enum vt_toml_how */
    uint8_t depth;    /* containers around it */
};

struct vt_toml {
    const char *p, *end;
    uint32_t line;
    uint32_t section; /* counts headers */
    struct vt_arena *arena;
    struct vt_map children; /* of all tables, by table and key */
    struct vt_buf text;     /* of the string being read */
    struct vt_err *err;
};

int vt_toml_fail(struct vt_toml *t, const char *what); /* "line N: what" */
void vt_toml_blank(struct vt_toml *t);                 /* skips spaces and tabs */
/* Takes a line feed, with or without a carriage return before it. */
bool vt_toml_newline(struct vt_toml *t);

/* A string of any of the four kinds; t->p is at its first quote. */
int vt_toml_string(struct vt_toml *t, const char **text, uint32_t *len);
/* A number or a boolean: what is neither string, list nor table. */
int vt_toml_scalar(struct vt_toml *t, struct vt_node *node);

#endif
