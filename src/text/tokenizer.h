/* tokenizer.h - an open tokenizer, part by part, in the order in which a text meets
 * them: added tokens, NFC, the splitting steps, BPE, and the template around it all. */
#ifndef VT_TEXT_TOKENIZER_H
#define VT_TEXT_TOKENIZER_H

#include <stdatomic.h>

#include "text/pattern.h"
#include "text/text.h"

enum {
    MAX_ID = (1 << 21) - 1, /* tables are as long as the largest id */
    MAX_MERGES = 1 << 22,
    MAX_STEPS = 16,
    MAX_AROUND = 64, /* ids that a template may put before or behind a text */
};
#define NO_ID UINT32_MAX

/* ---- the vocabulary: vocab.c ------------------------------------------ */

struct token {
    uint32_t text, text_len; /* in the pool, as the file spells it; NO_ID: no such id */
    uint32_t bytes, n_bytes; /* in the pool, what it decodes to */
    bool special;
};

struct vocab {
    struct token *token; /* by id */
    size_t n, cap;       /* n: the largest id + 1 */
    struct vt_buf pool;
    struct vt_map by_text; /* ids by hash of their text */
    size_t longest;        /* bytes that the longest token decodes to */
};

/* GPT-2's spelling of bytes: a character for each, so that any bytes are text. */
uint32_t byte_character(unsigned char byte);

/* Adds a token, or fails: id taken, text taken, too large. */
int vocab_add(struct vocab *v, const char *text, size_t len, uint32_t id,
              struct vt_err *err);
/* Changes what a token decodes to: added tokens may be normalized. */
int vocab_respell(struct vocab *v, uint32_t id, const char *text, size_t len,
                  struct vt_err *err);
/* NO_ID if there is none. */
uint32_t vocab_find(const struct vocab *v, const char *text, size_t len);
/* The id of the token that stands for these bytes, in GPT-2's spelling. `spelt` is room
 * for 2 * len bytes. */
uint32_t vocab_find_bytes(const struct vocab *v, const char *bytes, size_t len,
                          char *spelt);
void vocab_free(struct vocab *v);

/* ---- BPE: bpe.c, word_cache.c ----------------------------------------- */

struct word { /* a word seen before, and its ids */
    uint64_t hash;
    uint16_t n_bytes, n_ids;
    uint32_t id[]; /* n_ids, then the bytes */
};

/* Words are published once and never change or go, so that readers need no lock. */
enum { CACHE_SLOTS = 1 << 16, CACHE_WORD_BYTES = 48 };

struct bpe {
    struct vt_map merge;   /* left id << 32 | right id to rank << 32 | id of both */
    uint32_t byte_id[256]; /* NO_ID: the byte has no token */
    uint32_t unknown;      /* what it becomes then; NO_ID: nothing */
    bool fuse_unknown;
    bool whole_words;   /* "ignore_merges": a word that is a token stays whole */
    bool longest_first; /* no merges: the longest token at the front is taken off */
    _Atomic(struct word *) *cache; /* CACHE_SLOTS of them */
};

int bpe_open(struct bpe *b, const struct vocab *v, struct vt_err *err);
/* Lower ranks merge first. Of several merges of one pair the last one counts. */
int bpe_add_merge(struct bpe *b, uint32_t left, uint32_t right, uint32_t rank,
                  uint32_t id, struct vt_err *err);
void bpe_close(struct bpe *b);

/* The word's ids, or NULL. Safe from any thread, as is the next. */
const struct word *word_find(const struct bpe *b, const char *bytes, size_t n,
                             uint64_t hash);
/* Remembers a word unless the cache is full there. */
void word_keep(const struct bpe *b, const char *bytes, size_t n, uint64_t hash,
               const uint32_t *id, size_t n_ids);
uint64_t word_hash(const char *bytes, size_t n);

struct symbol {        /* of a long word, while it is being merged */
    uint32_t id, rank; /* rank of the merge with the next one; NO_ID: none */
    uint32_t merged;   /* what that gives */
    uint32_t before, behind;
};

struct bpe_room { /* of one encoding; zero to start */
    struct symbol *symbol;
    size_t cap_symbols;
    uint64_t *heap; /* rank above, position below */
    size_t n_heap, cap_heap;
    char *spelt;
    size_t cap_spelt;
};

/* Appends the ids of one word. */
int bpe_word(const struct bpe *b, const struct vocab *v, struct bpe_room *room,
             const char *bytes, size_t n, struct vt_ids *ids, struct vt_err *err);
void bpe_room_free(struct bpe_room *room);

/* ---- added tokens: added.c -------------------------------------------- */

struct added_token {
    const char *text; /* owned by the tokenizer's arena */
    uint32_t len;
    uint32_t id;
    bool special, single_word, lstrip, rstrip;
};

struct added_set {
    struct added_token *token; /* ascending by text once sealed */
    size_t n, cap;
    uint32_t from[257]; /* those starting with byte b: from[b] up to from[b + 1] */
    int only;           /* the one byte that they all start with, or -1 */
};

int added_push(struct added_set *s, const struct added_token *token,
               struct vt_err *err);
/* Once, behind the last push. */
void added_seal(struct added_set *s);

struct added_run { /* goes through a text */
    const struct added_set *set;
    const struct pattern *word; /* a character of a word */
    const char *text;
    size_t len;
    size_t at;      /* where to look next */
    size_t covered; /* up to here all was given out */
    bool special_as_text;
    struct vt_err *err;
    int rc; /* VT_OK until something failed */
};
/* The next token: text[*from, *to) stands before it and is not empty if *from < *to.
 * NULL: no more, and [*from, *to) is the rest; see r->rc. */
const struct added_token *added_next(struct added_run *r, size_t *from, size_t *to);

/* ---- splitting: split.c ----------------------------------------------- */

enum behavior {
    SPLIT_ISOLATED,
    SPLIT_REMOVED,
    SPLIT_CONTIGUOUS,
    SPLIT_WITH_PREVIOUS,
    SPLIT_WITH_NEXT,
};

struct step {
    bool prefix_space; /* a space is put before a piece that has none */
    bool splits;       /* if not, pattern is not set */
    bool invert;
    enum behavior behavior;
    struct pattern pattern;
};

struct encoding { /* one call of vt_tokenizer_encode() */
    const struct vt_tokenizer *t;
    struct vt_ids *ids;
    struct vt_err *err;
    bool newer; /* the text has characters newer than PCRE2's tables */
    bool special_as_text;
    struct pattern_run run[MAX_STEPS];
    struct vt_buf spaced; /* a piece with its space before it */
    struct vt_buf normal; /* a piece in NFC */
    struct bpe_room room;
};

/* Sends a piece of text through the steps and BPE. */
int split_piece(struct encoding *e, const char *text, size_t len);

/* ---- chats: chat_template.c, chat.c ----------------------------------- */

/* Whether a template adds the generation prompt. */
enum generates { GENERATES_NEVER, GENERATES_ASKED, GENERATES_ALWAYS };

struct chat_template {
    const char *kind;     /* "chatml", ...; NULL: none or unknown */
    const char *problem;  /* why there is none, in the tokenizer's arena */
    bool llama;           /* Llama 3's headers; otherwise ChatML's */
    bool bos;             /* starts with bos_token */
    bool trims;           /* white space around a message goes */
    bool has_thoughts;    /* <think> occurs */
    bool thinks;          /* Qwen 3's rules for <think> in answers */
    bool may_not_think;   /* enable_thinking=false is understood */
    bool starts_thinking; /* the generation prompt opens <think> */
    bool tools;           /* role "tool" has rules of its own */
    bool dated;           /* Llama 3.1's system header */
    bool today;           /* the day is that of the caller */
    enum generates generates;
    const char *system; /* default system message; NULL: none */
    const char *day;    /* of a dated template */
};

/* Recognises a template, or says in c->problem why not. Texts go to the arena. */
int chat_recognise(struct chat_template *c, const char *text, size_t len,
                   struct vt_arena *arena, struct vt_err *err);

/* ---- the whole -------------------------------------------------------- */

struct vt_tokenizer {
    struct vt_arena arena;                /* texts of added tokens and templates */
    struct added_set added, added_normal; /* found before and behind NFC */
    struct pattern word; /* a character of one; open if an added token is single_word */
    bool nfc;
    struct step step[MAX_STEPS];
    size_t n_steps;
    bool byte_level; /* the last step makes bytes of the text */
    struct vocab vocab;
    struct bpe bpe;
    uint32_t before[MAX_AROUND], behind[MAX_AROUND]; /* VT_ENCODE_ADD_SPECIAL */
    size_t n_before, n_behind;
    struct vt_token_facts facts;
    uint32_t *special;    /* facts.special */
    struct vt_ids stop;   /* facts.stop */
    const char *bos_text; /* for chat templates; "" if there is none */
    struct chat_template chat;
};

/* A new one, filled by `fill`; on failure *out is NULL: open.c. */
typedef int tokenizer_fill(struct vt_tokenizer *t, const void *from,
                           struct vt_err *err);
int tokenizer_make(struct vt_tokenizer **out, tokenizer_fill *fill, const void *from,
                   struct vt_err *err);

/* The parts of tokenizer.json: load.c, load_model.c. */
int load_tokenizer(struct vt_tokenizer *t, const struct vt_node *root,
                   struct vt_err *err);
int load_model(struct vt_tokenizer *t, const struct vt_node *model, struct vt_err *err);
int load_steps(struct vt_tokenizer *t, const struct vt_node *pre, struct vt_err *err);
/* Fails with "line N: type 'x' of WHERE is not supported". */
int load_unsupported(const struct vt_node *node, const char *where, struct vt_err *err);
/* The "type" of a node; "" if it has none. */
const char *load_type(const struct vt_node *node);
/* Whether it is a token id, which then is in *id. */
bool load_id(const struct vt_node *node, uint32_t *id);
/* A bool that may be absent or null. */
int load_bool(const struct vt_node *node, const char *key, bool *out,
              struct vt_err *err);
/* Calls `each` for the members of a Sequence, which are under `key`, or for the node
 * itself if it is none. */
typedef int load_part(struct vt_tokenizer *t, const struct vt_node *node,
                      struct vt_err *err);
int load_each(struct vt_tokenizer *t, const struct vt_node *node, const char *key,
              load_part *each, struct vt_err *err);

/* What stands beside tokenizer.json; NULL where a file is missing: config.c. */
int load_config(struct vt_tokenizer *t, const struct vt_node *config,
                const struct vt_node *generation, struct vt_err *err);
/* Special tokens, sorted; the last step of opening. */
int list_special(struct vt_tokenizer *t, struct vt_err *err);

int ids_add(struct vt_ids *ids, const uint32_t *id, size_t n, struct vt_err *err);

#endif
