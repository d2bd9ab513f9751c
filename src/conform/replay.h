/* replay.h - a golden's requests, sent again to `vtwin play`, and what came back;
 * private to conform. */
#ifndef VT_CONFORM_REPLAY_H
#define VT_CONFORM_REPLAY_H

#include "conform/golden.h"
#include "live/live.h"
#include "wire/wire.h"

struct replay_case { /* one request */
    const struct vt_record *rec;
    uint32_t max_tokens; /* to ask for */
    vt_ns sent_ns;
    uint32_t *token; /* that came; n_tokens of them */
    uint32_t n_tokens;
    vt_ns *chunk_ns; /* when each chunk of them came */
    uint32_t *chunk_tokens;
    uint32_t n_chunks;
    size_t cap_tokens, cap_chunks, cap_chunk_tokens;
    char finish[16]; /* "": it has not ended */
};

struct replay {
    const struct golden_file *file;
    const struct vt_conform_config *config;
    const struct vt_golden *golden;
    struct replay_case *c; /* by arrival */
    size_t n;
    size_t n_left_out; /* records that cannot be replayed */
    size_t n_done;
    uint32_t max_prompt; /* longest of all */
    uint32_t *prompt;    /* max_prompt token ids, all the same */
    uint32_t vocab_size, max_model_len;
};

/* What of the golden can be replayed: requests that ended by themselves and whose
 * output was recorded. */
int replay_begin(struct replay *r, const struct judge *j, const struct golden_file *f,
                 struct vt_err *err) VT_MUST_CHECK;
void replay_end(struct replay *r);

/* A chunk of output has come. finish: NULL while the request goes on. */
int replay_chunk(struct replay *r, struct replay_case *c, const uint32_t *token,
                 uint32_t n, const char *finish, vt_ns at,
                 struct vt_err *err) VT_MUST_CHECK;

enum replay_pace {
    REPLAY_FAST,     /* tokens only: play answers at once */
    REPLAY_RECORDED, /* play follows the recorded times */
};

/* Starts `vtwin play` for an address. line: what to tell it; NULL: it finds out. */
int replay_engine(struct replay *r, struct vt_proc *engine, const char *address,
                  enum replay_pace pace, const struct vt_wire_line *line,
                  struct vt_err *err) VT_MUST_CHECK;

/* Sends all requests and waits for their ends. VT_EIO: something went wrong on the way,
 * and err says what. */
int replay_own(struct replay *r, enum replay_pace pace,
               struct vt_err *err) VT_MUST_CHECK;
int replay_http(struct replay *r, struct vt_err *err) VT_MUST_CHECK; /* a real one */

/* Writes what is wrong with a request's tokens and end; false if nothing is. */
bool replay_differs(const struct replay_case *c, char *why, size_t size);

struct replay_errors {
    double *ms; /* absolute, sorted; owned */
    size_t n, cap;
    double p50_ms, p99_ms;
};

struct replay_times { /* against the recorded ones */
    struct replay_errors ttft, gap;
    const struct replay_case *odd; /* came in other chunks than recorded; NULL: none */
    bool good;
};
int replay_times(struct replay_times *t, const struct replay *r,
                 struct vt_tolerance allowed, struct vt_err *err) VT_MUST_CHECK;
void replay_times_end(struct replay_times *t); /* a zeroed one is fine */

#endif
