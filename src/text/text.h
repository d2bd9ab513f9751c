/* text.h - text to tokens and back, as Hugging Face's `tokenizers` does it.
 *
 * Reads tokenizer.json of byte-level BPE models (GPT-2, Llama 3, Qwen 2 to 3 and their
 * kin) and gives the same ids; docs/tokenizers.md lists what is understood. An open
 * tokenizer never changes: any number of threads may use one at a time. */
#ifndef VT_TEXT_ROOM_H
#define VT_TEXT_ROOM_H

#include "base/base.h"

struct vt_tokenizer; /* opaque */

/* `path` is a tokenizer.json, or a model directory that holds one; beside it,
 * tokenizer_config.json, generation_config.json and chat_template.jinja are read where
 * they exist. Any of them may be gzip. On success *out is the caller's to close; on
 * failure it is NULL and the message starts with the path. */
int vt_tokenizer_open(struct vt_tokenizer **out, const char *path,
                      struct vt_err *err) VT_MUST_CHECK;
/* The same from memory: texts of tokenizer.json and (NULL: none) of
 * tokenizer_config.json and generation_config.json, borrowed only during the call. */
struct vt_tokenizer_texts {
    const char *tokenizer, *config, *generation;
    size_t tokenizer_len, config_len, generation_len;
};
int vt_tokenizer_from(struct vt_tokenizer **out, const struct vt_tokenizer_texts *texts,
                      struct vt_err *err) VT_MUST_CHECK;
/* For those who have no model at hand: a vocabulary of short pieces of words, made on
 * the spot and always the same. Every text comes back as it was; chats are ChatML. */
int vt_tokenizer_builtin(struct vt_tokenizer **out, struct vt_err *err) VT_MUST_CHECK;
void vt_tokenizer_close(struct vt_tokenizer *t); /* NULL is fine */

/* ---- text and ids ----------------------------------------------------- */

struct vt_ids { /* zero-initialise to start */
    uint32_t *id;
    size_t n, cap;
};
void vt_ids_free(struct vt_ids *ids);

enum vt_encode_flag {
    VT_ENCODE_PLAIN = 0,
    /* Adds what the model's post-processor puts around a text (Llama 3: its BOS). */
    VT_ENCODE_ADD_SPECIAL = 1,
    /* Special tokens spelt out in the text stay text. Otherwise they become their ids,
     * as in vLLM. */
    VT_ENCODE_SPECIAL_AS_TEXT = 2,
};

/* Appends the ids of a UTF-8 text, at most 64 MiB of it, to *ids; on failure *ids holds
 * what it held before. `flags` is a sum of vt_encode_flag. */
int vt_tokenizer_encode(const struct vt_tokenizer *t, const char *text, size_t len,
                        unsigned flags, struct vt_ids *ids,
                        struct vt_err *err) VT_MUST_CHECK;

enum vt_decode_special { VT_KEEP_SPECIAL, VT_SKIP_SPECIAL };

/* Appends the text of the ids. Bytes that are not UTF-8 become U+FFFD; ids that are no
 * tokens are passed over. Failures show in out->failed. */
void vt_tokenizer_decode(const struct vt_tokenizer *t, const uint32_t *id, size_t n,
                         enum vt_decode_special special, struct vt_buf *out);

/* The same token by token. Text that ends in U+FFFD is held back, for the next token
 * may complete the character: what comes out, and when, is what vLLM streams. Set the
 * first two members, zero the rest. */
struct vt_detokenizer {
    const struct vt_tokenizer *tokenizer; /* borrowed */
    enum vt_decode_special special;
    struct vt_buf held; /* bytes not yet given out */
    struct vt_buf text; /* of `held`; kept for its memory */
};
/* Appends what can be said now to *out, if anything. */
void vt_detokenizer_add(struct vt_detokenizer *d, uint32_t id, struct vt_buf *out);
/* Appends what was held back. vLLM drops it; with it, the whole stream is what
 * vt_tokenizer_decode() gives. */
void vt_detokenizer_end(struct vt_detokenizer *d, struct vt_buf *out);
void vt_detokenizer_free(struct vt_detokenizer *d); /* frees contents, not d */

/* ---- what is known of the vocabulary ---------------------------------- */

enum { VT_NO_TOKEN = -1 };

struct vt_token_facts {      /* all owned by the tokenizer */
    uint32_t vocab_size;     /* the largest id + 1 */
    const uint32_t *special; /* ids of special tokens, ascending */
    size_t n_special;
    int64_t bos, eos, pad; /* of tokenizer_config.json, or VT_NO_TOKEN */
    const uint32_t *stop;  /* ids that end a generation: eos, then those that
                              generation_config.json adds */
    size_t n_stop;
    const char *chat; /* kind of chat template: "chatml", ...; NULL: none or unknown */
};
const struct vt_token_facts *vt_tokenizer_facts(const struct vt_tokenizer *t);

/* The id of a token as the vocabulary spells it ("\u0120the", "<|im_end|>"). */
bool vt_tokenizer_id(const struct vt_tokenizer *t, const char *token, size_t len,
                     uint32_t *id);
/* How the vocabulary spells an id; NUL-terminated, owned by the tokenizer. NULL: no
 * such token. `len` may be NULL. */
const char *vt_tokenizer_token(const struct vt_tokenizer *t, uint32_t id, size_t *len);

/* ---- chats ------------------------------------------------------------ */

struct vt_chat_message { /* both NUL-terminated */
    const char *role;
    const char *content;
};

enum vt_thinking { VT_THINKING_DEFAULT, VT_THINKING_OFF };

struct vt_chat_options {
    bool add_generation_prompt;
    enum vt_thinking thinking; /* OFF is `enable_thinking: false` of Qwen 3 */
    const char *today; /* "26 Jul 2024": for templates that name the day; NULL: the
                          day in the template */
};

/* Appends the prompt that the model's chat template makes of the messages. Encode it
 * without VT_ENCODE_ADD_SPECIAL: the template has said all. VT_EINPUT if there is no
 * template, or one that is not known. */
int vt_chat_render(const struct vt_tokenizer *t, const struct vt_chat_message *message,
                   size_t n, const struct vt_chat_options *options, struct vt_buf *out,
                   struct vt_err *err) VT_MUST_CHECK;

/* ---- datasets: prompts and answers --------------------------------------- */

/* JSON (a list of rows), JSON lines or CSV, plain or gzip. A row gives token ids
 * (prompt_token_ids, output_token_ids) or text in the fields that datasets use. */

/* Tokens of a text, no special ones added. The callee puts them into *ids with malloc()
 * and the dataset frees them; n == 0 may leave NULL. */
typedef int vt_dataset_encode(void *user, const char *text, size_t len, uint32_t **ids,
                              size_t *n, struct vt_err *err);

/* A prompt as it will stand somewhere in a request, and its answer. A row has one; a
 * conversation has one for each answer in it. */
struct vt_dataset_turn {
    const uint32_t *prompt, *answer;
    uint32_t n_prompt, n_answer;
    uint32_t row;
};

struct vt_dataset_row {
    const uint32_t *answer; /* the whole one; NULL: the row has none */
    uint32_t n_answer;
    uint32_t line; /* of the file; 0: unknown */
};

struct vt_dataset {
    struct vt_arena arena;      /* owns what rows and turns point to */
    struct vt_dataset_row *row; /* in the file's order: a row's index is its name */
    size_t n_rows, cap_rows;
    struct vt_dataset_turn
        *turn; /* in the file's order; those with prompt and answer */
    size_t n_turns, cap_turns;
};

/* Reads into a zeroed *d. VT_EINPUT also where text needs a tokenizer and encode is
 * NULL. On failure nothing is left to free; messages start with the path and the line.
 */
int vt_dataset_load(struct vt_dataset *d, const char *path, vt_dataset_encode *encode,
                    void *user, struct vt_err *err) VT_MUST_CHECK;
/* The same from bytes in memory; name is for messages and its ending tells the form. */
int vt_dataset_read(struct vt_dataset *d, const char *name, const char *text,
                    size_t len, vt_dataset_encode *encode, void *user,
                    struct vt_err *err) VT_MUST_CHECK;
void vt_dataset_free(struct vt_dataset *d); /* frees contents, not d */

/* ---- made-up log probabilities ---------------------------------------- */

/* No model stands behind them, so their values say nothing; but each row is a plausible
 * one: falling with the rank, probabilities below 1 in sum, no token twice, and the
 * same for the same key and index. */
struct vt_made_ask {
    uint32_t vocab_size;
    uint64_t key; /* of the request */
    bool greedy;  /* the sampled token is always the best */
};
/* Index of a prompt's second token, the first that has a row; an output's first token
 * has 0. */
#define VT_MADE_PROMPT (UINT64_C(1) << 32)

struct vt_made_row {
    uint32_t token;               /* the sampled one */
    uint32_t rank;                /* its own, from 1 */
    double best, second;          /* log probabilities of ranks 1 and 2 */
    uint64_t from, stride, vocab; /* a walk through the vocabulary */
};
struct vt_made_row vt_made_row(const struct vt_made_ask *ask, uint64_t index,
                               uint32_t token);
/* Ranks count from 1 to the size of the vocabulary. */
uint32_t vt_made_token(const struct vt_made_row *r, uint32_t rank);
float vt_made_logprob(const struct vt_made_row *r, uint32_t rank);

#endif
