/* play.h - the parts of `vtwin play`; private to cli. */
#ifndef VT_CLI_PLAY_H
#define VT_CLI_PLAY_H

#include "cli/cli.h"
#include "text/text.h"
#include "wire/wire.h"

/* What a model directory tells an engine. Zero-initialise to start. */
struct play_model {
    struct vt_tokenizer *tokenizer; /* NULL: no directory was given */
    struct vt_ids skip;             /* ids that random output never holds */
    uint32_t vocab_size;
    uint32_t max_len; /* 0: not stated */
    bool experts;     /* a mixture of experts */
};

int play_model_open(struct play_model *m, const char *dir,
                    struct vt_err *err) VT_MUST_CHECK;
void play_model_close(struct play_model *m);
/* Face of vt_play_config.encode; user is the model. */
int play_model_encode(void *user, const char *text, size_t len, uint32_t **ids,
                      size_t *n, struct vt_err *err);

#endif
