/* client.h - what is asked for, and what the events that come say; private to load. */
#ifndef VT_LOAD_CLIENT_H
#define VT_LOAD_CLIENT_H

#include "load/load.h"

/* ---- one event --------------------------------------------------------- */

struct span { /* borrowed */
    const char *p;
    size_t len;
};

/* What matters of an event. Texts are as they stand in the JSON: without their quotes,
 * escapes not undone. */
struct load_event {
    bool choice;      /* there is at least one; what follows is of the first */
    bool says;        /* with something new to read: text, reasoning, a tool call */
    struct span text; /* of text or delta.content */
    struct span finish;
    bool usage;
    uint32_t prompt_tokens, output_tokens, cached_tokens;
    bool error;
    struct span message;
};
/* Reads `len` bytes once, without a tree and without memory. false: no JSON object. */
bool load_event_scan(struct load_event *e, const char *p, size_t len);
/* Appends a JSON string's text with its escapes undone; halves of surrogate pairs that
 * stand alone become U+FFFD. */
void load_unescape(struct vt_buf *out, struct span s);

/* ---- bodies ------------------------------------------------------------ */

struct load_body { /* what all requests have in common; zero-initialise */
    const struct vt_load_config *config;
    const struct net_url *url;
    const char *path;
    struct vt_arena arena;
    const struct vt_node *extra; /* NULL: none */
    bool ignore_eos;
    struct vt_buf scratch; /* the JSON of one request, */
    struct vt_jw json;     /* and its writer */
};
int load_body_open(struct load_body *b, const struct vt_load_config *c,
                   const struct net_url *url, const struct vt_load_plan *plan,
                   struct vt_err *err) VT_MUST_CHECK;
void load_body_close(struct load_body *b);

struct load_ask {                          /* one request to write */
    const struct vt_load_session *session; /* NULL: a probe */
    const struct vt_load_turn *turn;
    size_t session_no;
    uint32_t turn_no;
    const struct vt_buf *history; /* what was said before; NULL: nothing */
};
/* Head and body, ready to be sent, at the end of *out. */
void load_ask_write(struct load_body *b, const struct load_ask *a, struct vt_buf *out);
/* Adds a turn and the reply to it to a session's history. */
void load_history_add(const struct load_body *b, const struct load_ask *a,
                      struct span reply, struct vt_buf *history);
void load_request_id(const struct vt_load_config *c, const struct load_ask *a,
                     struct vt_buf *out);

#endif
