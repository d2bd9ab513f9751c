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
    size_t token_bytes;       /* no token's text is longer */
    const struct vt_token_facts *facts;
    struct reply_words words;
    uint32_t *length; /* ascending; NULL: log-normal */
    size_t n_lengths;
    struct vt_dataset data;
    struct vt_map turns; /* from prompts' hashes to turns of the data */
    uint32_t *row;       /* rows that have an answer */
    size_t n_rows;
};

/* ---- work: forms.c ------------------------------------------------ */

/* Schemas and expressions are foreign: what is drawn by them is counted in nodes that
 * are looked at, some nanoseconds each. A choice that has used up its share gets the
 * simplest value instead (least lengths, fewest items, no tries), and so do all others
 * once the request's is gone. */
enum {
    REPLY_CHOICE_WORK = 1 << 18,  /* of what is drawn for one, and as much for simplest
                                     values behind that */
    REPLY_REQUEST_WORK = 1 << 21, /* of all draws of a request */
    REPLY_SIMPLE_WORK = 1 << 20,  /* of all simplest values, beyond that */
    REPLY_BYTE_WORK = 16,         /* what a byte costs that is made into tokens */
};
enum reply_effort { REPLY_DRAWN, REPLY_SIMPLE };

/* What drawing has learnt for all choices of a request. Zero-initialise to start; what
 * was looked at must stay as and where it is until the end. */
struct reply_forms {
    struct vt_arena arena;     /* of expressions */
    struct vt_map expressions; /* from where their texts stand to their items */
    struct vt_map known;       /* nodes: where references lead, and what is indexed */
    struct vt_map names;       /* of children of large maps and lists */
    uint64_t spent, limit;
    uint64_t before; /* what the choices before this one spent */
    bool no_memory;
};
void reply_forms_free(struct reply_forms *f); /* frees contents, not f */
/* Another choice begins, which has a share of its own. */
static inline void reply_forms_choice(struct reply_forms *f)
{
    f->before = f->spent;
}
/* Sets the limit for what is to be made next of the choice. */
void reply_forms_limit(struct reply_forms *f, enum reply_effort effort);
/* No draw will be made any more. */
static inline bool reply_forms_spent(const struct reply_forms *f)
{
    return f->spent >= REPLY_REQUEST_WORK;
}
/* To be asked before each piece of work; false: it is not to be done. */
static inline bool reply_spend(struct reply_forms *f, uint64_t work)
{
    f->spent += work;
    return f->spent <= f->limit;
}
/* The first child of a map, or string of a list, with that name; NULL: none, or too
 * much work. Takes no longer for large ones, once they have been looked into. */
const struct vt_node *reply_forms_child(struct reply_forms *f,
                                        const struct vt_node *parent, const char *name);
/* A keyword's value; the same for short names. */
const struct vt_node *reply_forms_get(struct reply_forms *f, const struct vt_node *map,
                                      const char *keyword);

/* ---- drafts ------------------------------------------------------- */

/* A reply in the making. Token ids and texts live in the request's arena. */
struct reply_draft {
    const struct reply_source *s;
    struct api_request *r;
    struct reply_forms *forms;
    const struct reply_stops *stops;
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

/* ---- stops: stops.c ----------------------------------------------- */

/* All stop strings of a request as one automaton, so that a byte of text costs the same
 * however many there are. Its memory: at most 9 bytes for each of theirs, and some tens
 * for each string. */
struct reply_stops;
/* Stop strings that no text of the request can hold are left out. */
int reply_stops_open(struct reply_stops **out, const struct reply_source *s,
                     const struct api_request *r, struct vt_err *err) VT_MUST_CHECK;
void reply_stops_close(struct reply_stops *a); /* NULL is fine */
/* Is one of the client's stop tokens. */
bool reply_stops_token(const struct reply_stops *a, uint32_t id);
/* Characters that are held back while a stop string may be beginning. */
size_t reply_stops_held(const struct reply_stops *a);
/* Goes on with text[from, len); *state is 0 at first. The stop string that ends the
 * text, by its index, and where it ends; UINT32_MAX: none. Later lines of vLLM take
 * the one that is complete first, earlier ones the first of the list. */
uint32_t reply_stops_find(const struct reply_stops *a, uint32_t *state,
                          const char *text, size_t from, size_t len, size_t *end);

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
bool reply_schema_write(struct reply_forms *f, struct vt_buf *b,
                        const struct vt_node *schema, uint64_t key);
/* Appends an object of no particular schema. */
void reply_schema_any(struct vt_buf *b, uint64_t key);
/* Appends a text that the regular expression matches. False: it has something that is
 * not understood (look-around, back references), or its texts are too long. */
bool reply_regex_write(struct reply_forms *f, struct vt_buf *b, const char *regex,
                       size_t len, uint64_t key);

struct reply_lengths { /* characters that a text may have */
    uint32_t min, max;
    uint32_t tries; /* draws until one has them; then one is made to measure */
    bool simple;    /* made to measure at once */
};
/* The same within the limit that is set, and of such a length. */
bool reply_regex_text(struct reply_forms *f, struct vt_buf *b, const char *regex,
                      size_t len, const struct reply_lengths *l, uint64_t key);

#endif
