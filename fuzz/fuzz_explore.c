/* Any bytes as the query of a question to explore: refused, or a command line of words
 * that name no file and no flag but those of the table. The first byte chooses the
 * question. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "explore/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool takes(void *user, const char *command, const char *flag)
{
    (void)user;
    (void)command;
    (void)flag;
    return true;
}

/* A value of a page's is a known name, or has nothing of a path or a flag. */
static void check_word(const char *word)
{
    if (strncmp(word, "--", 2) == 0)
        assert(!strpbrk(word, "/= '\"\\$"));
    else
        assert(word[0] != '-' && !strstr(word, "..") && word[0] != '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct vt_explore x = {.takes = takes};
    size_t n = 0, which;
    struct argv_words w;
    struct vt_buf text = {0};
    struct vt_err err;
    char *query;

    if (size == 0)
        return 0;
    while (questions[n].path)
        n++;
    which = data[0] % n;
    query = calloc(size, 1);
    if (!query)
        return 0;
    memcpy(query, data + 1, size - 1);
    if (question_argv(&w, &x, &questions[which], query, &err) == VT_OK) {
        for (size_t i = 0; i < w.n; i++)
            check_word(w.word[i]);
        argv_text(&text, &w);
        assert(!memchr(text.data, '\n', text.len));
    }
    argv_free(&w);
    vt_buf_free(&text);
    free(query);
    return 0;
}
