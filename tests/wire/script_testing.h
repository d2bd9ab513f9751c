/* script_testing.h - what the tests of scripts share: requests, sources, files. */
#ifndef VT_TESTS_WIRE_SCRIPT_TESTING_H
#define VT_TESTS_WIRE_SCRIPT_TESTING_H

#include "codec_testing.h"

#include <fcntl.h>
#include <unistd.h>

#include "wire/script/parts.h"

enum { VOCAB = 1000, EOS = 991, STOP = 17, MODEL_LEN = 4096 };

static inline struct mp_span chars(const char *text)
{
    return (struct mp_span){(const uint8_t *)text, text ? strlen(text) : 0};
}

/* {"output_kind": 2}: only the Python frontend sends it. */
static const uint8_t python_sampling[] = {0x81, 0xab, 'o', 'u', 't', 'p', 'u',
                                          't',  '_',  'k', 'i', 'n', 'd', 0x02};

struct asked { /* one request; prompt of up to 64 tokens */
    struct wire_request r;
    struct wire_sampling p;
    uint32_t prompt[64];
};

/* A request with this external id, a temperature and an EOS. */
static inline struct asked *ask(struct asked *a, const char *external_id)
{
    *a = (struct asked){
        .r = {.id = chars("internal"), .external_id = chars(external_id)},
        .p = {.temperature = 1, .max_tokens = 40, .eos_token_id = EOS},
    };
    a->r.prompt = a->prompt;
    a->r.n_prompt = 4;
    return a;
}

static inline void prompt_of(struct asked *a, const uint32_t *token, uint32_t n)
{
    assert_true(n <= VT_COUNT(a->prompt));
    memcpy(a->prompt, token, n * sizeof(*token));
    a->r.n_prompt = n;
}

static inline struct script_source *source(struct vt_play_config c)
{
    struct script_source *s;
    struct vt_err err = {0};

    if (c.vocab_size == 0)
        c.vocab_size = VOCAB;
    if (c.engine.block_size == 0)
        c.engine.block_size = 4;
    if (script_source_open(&s, &c, &err) != VT_OK)
        fail_msg("%s", err.msg);
    return s;
}

static inline struct script begin(struct script_source *s, const struct asked *a)
{
    struct script out;
    struct vt_err err = {0};

    if (script_begin(s, &a->r, &a->p, MODEL_LEN, &out, &err) != VT_OK)
        fail_msg("%s", err.msg);
    return out;
}

/* ---- files ------------------------------------------------------------ */

struct scratch {
    char path[64];
};

/* A file with this text; `ending` is that of its name. */
static inline struct scratch written(const char *text, const char *ending)
{
    static int nth;
    struct scratch f;
    int fd;
    size_t len = strlen(text);

    snprintf(f.path, sizeof(f.path), "/tmp/vt-script-%ld-%d%s", (long)getpid(), nth++,
             ending);
    fd = open(f.path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), len);
    close(fd);
    return f;
}

/* vllm-vcr's chain of block hashes, written down a second time: a byte at a time over
 * the 8 of the hash before and the 4 of each token. */
static inline uint64_t fnv_block(uint64_t before, const uint32_t *token, uint32_t n)
{
    uint8_t bytes[8 + 4 * 64];
    uint64_t h = UINT64_C(14695981039346656037);

    memcpy(bytes, &before, 8);
    memcpy(bytes + 8, token, 4 * (size_t)n);
    for (size_t i = 0; i < 8 + 4 * (size_t)n; i++)
        h = (h ^ bytes[i]) * UINT64_C(1099511628211);
    return h;
}

#endif
