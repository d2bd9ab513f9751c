/* builtin.c - a tokenizer out of nothing, for those who have no model at hand.
 *
 * The vocabulary: every byte; every character of the scripts most in use; pairs of
 * punctuation; runs of spaces; numbers of up to three digits; all pieces of up to three
 * letters; and a list of English words. A word is cut from its front, each time as long
 * a token as there is. Nothing is lost: what has no token of its own is bytes. */
#include "text/builtin.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

#include <assert.h>

/* As in real ones, a word takes the space before it along. */
static const char pattern[] =
    " ?[A-Za-z]+|[0-9]{1,3}| ?[^\\sA-Za-z0-9]+|\\s+(?!\\S)|\\s";

static const char chat_template[] =
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + "
    "message.content + '<|im_end|>\\n' }}{%- endfor %}{%- if add_generation_prompt %}"
    "{{- '<|im_start|>assistant\\n' }}{%- endif %}";

enum { MAX_TOKEN = 24 };

struct making {
    struct vt_tokenizer *t;
    struct vt_err *err;
    int rc;
};

/* Adds the token of these bytes, under the next id. */
static void add_token(struct making *m, const char *bytes, size_t n)
{
    char spelt[2 * MAX_TOKEN + 1];
    size_t len = 0;

    for (size_t i = 0; i < n; i++)
        len += vt_utf8_put(spelt + len, byte_character((unsigned char)bytes[i]));
    spelt[len] = '\0';
    if (m->rc == VT_OK)
        m->rc = vocab_add(&m->t->vocab, spelt, len, (uint32_t)m->t->vocab.n, m->err);
}

/* With and without a space before it. */
static void add_both(struct making *m, const char *bytes, size_t n)
{
    char spaced[MAX_TOKEN] = " ";

    assert(n > 0 && n < sizeof(spaced));
    for (size_t i = 0; i < n; i++)
        spaced[1 + i] = bytes[i];
    if (n > 1)
        add_token(m, bytes, n); /* one alone is there as a byte */
    add_token(m, spaced, n + 1);
}

static char capital(char c)
{
    return (char)(c - 'a' + 'A');
}

/* All pieces that start so and have up to `more` small letters behind it. */
static void add_pieces(struct making *m, char *piece, size_t n, int more)
{
    add_both(m, piece, n);
    for (char c = 'a'; c <= 'z' && more > 0; c++) {
        piece[n] = c;
        add_pieces(m, piece, n + 1, more - 1);
    }
}

static void add_word(struct making *m, const char *p, size_t n)
{
    char word[MAX_TOKEN];

    memcpy(word, p, n);
    add_both(m, word, n);
    word[0] = capital(word[0]);
    add_both(m, word, n);
}

static void add_ending(struct making *m, const char *p, size_t n)
{
    if (vocab_find(&m->t->vocab, p, n) == NO_ID)
        add_token(m, p, n);
}

static void for_words(struct making *m, const char *const *line,
                      void (*each)(struct making *m, const char *p, size_t n))
{
    const char *end;

    for (; *line; line++)
        for (const char *p = *line; (end = strchr(p, ' ')); p = end + 1)
            each(m, p, (size_t)(end - p));
}

static void add_characters(struct making *m)
{
    static const uint32_t ranges[][2] = {
        {0x80, 0x7ff},    /* Latin to Arabic */
        {0x900, 0x97f},   /* Devanagari */
        {0x2010, 0x2027}, /* dashes and quotes */
        {0x3000, 0x30ff}, /* kana */
        {0x4e00, 0x9fff}, /* Han */
        {0xac00, 0xd7a3}, /* Hangul */
        {0xff01, 0xff5e}, /* full width */
    };

    for (size_t i = 0; i < VT_COUNT(ranges); i++)
        for (uint32_t c = ranges[i][0]; c <= ranges[i][1]; c++) {
            char bytes[4];

            add_token(m, bytes, vt_utf8_put(bytes, c));
        }
}

static void add_vocabulary(struct making *m)
{
    static const char spaces[] = "                ";
    static const char marks[] = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
    char piece[8];

    for (int i = 0; i < 256; i++) {
        piece[0] = (char)i;
        add_token(m, piece, 1);
    }
    for (size_t n = 2; n < sizeof(spaces); n++)
        add_token(m, spaces, n);
    add_token(m, "\n\n", 2);
    for (size_t i = 0; i + 1 < sizeof(marks); i++) { /* " {" and "):" and their like */
        add_both(m, &marks[i], 1);
        for (size_t k = 0; k + 1 < sizeof(marks); k++) {
            const char pair[2] = {marks[i], marks[k]};

            add_token(m, pair, 2);
        }
    }
    for (int n = 10; n < 1110; n++) {
        int len = n < 110 ? snprintf(piece, sizeof(piece), "%02d", n - 10)
                          : snprintf(piece, sizeof(piece), "%03d", n - 110);

        add_token(m, piece, (size_t)len);
    }
    for (char c = 'a'; c <= 'z'; c++) {
        piece[0] = c;
        add_pieces(m, piece, 1, 2);
        piece[0] = capital(c);
        add_pieces(m, piece, 1, 2);
    }
    for_words(m, builtin_words, add_word);
    for_words(m, builtin_endings, add_ending);
    add_characters(m);
}

static void add_special(struct making *m)
{
    static const char *const texts[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    struct vt_tokenizer *t = m->t;

    for (size_t i = 0; i < VT_COUNT(texts) && m->rc == VT_OK; i++) {
        struct added_token k = {.text = texts[i],
                                .len = (uint32_t)strlen(texts[i]),
                                .id = (uint32_t)t->vocab.n,
                                .special = true};

        if (!(m->rc = vocab_add(&t->vocab, k.text, k.len, k.id, m->err)) &&
            !(m->rc = added_push(&t->added, &k, m->err)))
            t->vocab.token[k.id].special = true;
    }
    added_seal(&t->added);
    added_seal(&t->added_normal);
}

static int fill_builtin(struct vt_tokenizer *t, const void *nothing, struct vt_err *err)
{
    struct making m = {t, err, VT_OK};
    int rc;

    (void)nothing;
    t->bpe.longest_first = true;
    t->step[0].splits = true;
    t->n_steps = 1;
    add_vocabulary(&m);
    add_special(&m);
    if ((rc = m.rc) || (rc = bpe_open(&t->bpe, &t->vocab, err)) ||
        (rc = pattern_open(&t->step[0].pattern, pattern, sizeof(pattern) - 1, err)) ||
        (rc = chat_recognise(&t->chat, chat_template, sizeof(chat_template) - 1,
                             &t->arena, err)))
        return rc;
    t->bos_text = "";
    t->facts.bos = VT_NO_TOKEN;
    t->facts.eos = t->facts.pad = t->added.token[0].id;
    /* Of the special tokens, all but the one that opens a message end a generation. */
    for (size_t i = 0; i < t->added.n && rc == VT_OK; i++)
        if (strcmp(t->added.token[i].text, "<|im_start|>") != 0)
            rc = ids_add(&t->stop, &t->added.token[i].id, 1, err);
    return rc == VT_OK ? list_special(t, err) : rc;
}

int vt_tokenizer_builtin(struct vt_tokenizer **out, struct vt_err *err)
{
    return tokenizer_make(out, fill_builtin, NULL, err);
}
