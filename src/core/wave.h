/* wave.h - when the ranks of a mixture of experts go through the model, and when they
 * rest: vLLM's rules, as one rank knows them.
 *
 * The experts of every rank work on the tokens of all, so no rank can go through the
 * model alone. While any of them has requests all make passes together: one that has
 * nothing to compute makes a dummy pass. Such a time is a wave. Whether it goes on is
 * agreed on at some passes only, because it takes a message to all. */
#ifndef VT_CORE_WAVE_H
#define VT_CORE_WAVE_H

#include "core/core.h"

struct wave {
    uint32_t every; /* so many passes from one agreement to the next */
    bool at_first;  /* the wave's first pass ends with one, too */
    bool running;   /* as far as this rank knows */
    bool pausing;   /* it wants to rest, once all do */
    bool deaf;      /* all wanted to: nobody's request starts a wave */
    uint32_t pass;  /* passes since the wave began */
    uint64_t number;
};

struct wave_votes { /* of all ranks, at an agreement */
    uint32_t ranks, unfinished, pausing;
};

void wave_init(struct wave *w, const struct vt_engine_config *c);
/* Another rank has begun wave `number`. */
void wave_start(struct wave *w, uint64_t number);
/* Whether new prefills are held back in the coming pass. */
bool wave_throttles(const struct wave *w, uint32_t interval);
/* Whether a rank that computed nothing must make a pass all the same. */
bool wave_needs_dummy(const struct wave *w, bool unfinished);
/* A pass was made. True: all ranks must agree before the next one. */
bool wave_pass(struct wave *w);
void wave_agree(struct wave *w, const struct wave_votes *v);
void wave_pause(struct wave *w);
/* False: the pause is not yet agreed on. vLLM then refuses. */
bool wave_resume(struct wave *w);

#endif
