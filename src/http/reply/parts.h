/* parts.h - how replies are made, part by part; private to http/reply. */
#ifndef VT_HTTP_REPLY_PARTS_H
#define VT_HTTP_REPLY_PARTS_H

#include "http/reply/reply.h"

enum { PIECE_BYTES = 8 };

struct reply_piece { /* a token that is text by itself */
    uint32_t id;
    uint32_t len;
    char text[PIECE_BYTES];
};

struct reply_pieces {
    struct reply_piece *piece;
    size_t n, cap;
};

struct reply_words {           /* what random text is made of */
    struct reply_pieces word;  /* " word" */
    struct reply_pieces start; /* " Word": behind a full stop */
    struct reply_pieces first; /* "Word": at the very beginning */
    struct reply_piece comma, stop;
    bool sentences; /* all of these exist; else `word` has whatever can be printed */
};

struct reply_source {
    struct vt_serve_config c; /* its texts are not looked at once it is open */
    const struct vt_token_facts *facts;
    struct reply_words words;
    uint32_t *length; /* ascending; NULL: log-normal */
    size_t n_lengths;
    struct vt_dataset data;
    struct vt_map turns; /* from prompts' hashes to turns of the data */
    uint32_t *row;       /* rows that have an answer */
    size_t n_rows;
};

/* A reply in the making. Token ids and texts live in the request's arena. */
struct reply_draft {
    const struct reply_source *s;
    struct api_request *r;
    uint64_t key;
    uint32_t *token;
    uint32_t n, cap;
    bool structured;  /* nothing but EOS may follow what there is */
    bool spells_call; /* special tokens are shown: they may be a call's marks */
};

/* The first turn of the dataset with these tokens as its prompt; NULL: none. */
const struct vt_dataset_turn *reply_turn_find(const struct reply_source *s,
                                              const uint32_t *id, size_t n);

/* For qsort() and bsearch() over uint32_t. */
static inline int reply_by_u32(const void *pa, const void *pb)
{
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

    return a < b ? -1 : a > b;
}
/* Where the text has `what` from `from` on; SIZE_MAX: nowhere. */
size_t reply_find(const char *text, size_t len, size_t from, const char *what);

/* Numbered draws of a reply's key, one for each purpose. */
enum reply_draw { DRAW_LENGTH = 1, DRAW_TOOLS, DRAW_SCHEMA, DRAW_ROW, DRAW_IDS };

/* ---- words: words.c ----------------------------------------------- */

int reply_words_open(struct reply_words *w, const struct vt_tokenizer *t,
                     struct vt_err *err) VT_MUST_CHECK;
void reply_words_close(struct reply_words *w);
/* Appends random words to the draft until it has n tokens; *text (room for PIECE_BYTES
 * a token; NULL: not wanted) gets their text and end[i] where token i's ends. */
void reply_words_add(struct reply_draft *d, uint32_t n, char *text, uint32_t *end);

/* ---- text of tokens: text.c --------------------------------------- */

/* Sets text, text_end, n, end and stop_reason of *out for the draft's tokens: what is
 * shown of them, what is held back, and where a stop string or a stop token ends them.
 * out->end says on entry how they end otherwise. */
int reply_text_of(struct reply *out, struct reply_draft *d,
                  struct vt_err *err) VT_MUST_CHECK;

/* ---- tools: tools.c ----------------------------------------------- */

/* Appends calls as a model of the Hermes kind spells them. */
int reply_tools_spell(struct reply_draft *d, struct vt_buf *text,
                      struct reply_call **call, uint32_t *n_calls,
                      struct vt_err *err) VT_MUST_CHECK;
/* Finds the calls in out->text and says with which token what of them is out. */
int reply_tools_find(struct reply *out, struct reply_draft *d, struct reply_call *call,
                     uint32_t n_calls, struct vt_err *err) VT_MUST_CHECK;

/* ---- constraints: schema*.c, regex.c --------------------- */

/* Appends a JSON value that fits the schema, written as Python's json.dumps would.
 * False: the schema cannot be met, or not by the means at hand; *b is then as before.
 */
bool reply_schema_write(struct vt_buf *b, const struct vt_node *schema, uint64_t key);
/* Appends an object of no particular schema. */
void reply_schema_any(struct vt_buf *b, uint64_t key);
/* Appends a text that the regular expression matches. False: it has something that is
 * not understood (look-around, back references), or its texts are too long. */
bool reply_regex_write(struct vt_buf *b, const char *regex, size_t len, uint64_t key);

#endif
