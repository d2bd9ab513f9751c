#include "core/wave.h"

#include "core/release.h"

enum {
    EVERY_BEFORE = 32,  /* passes, not to be changed before --dp-sync-interval came */
    EVERY_DEFAULT = 16, /* the option's */
};

void wave_init(struct wave *w, const struct vt_engine_config *c)
{
    bool newer = release_rules(c->vllm).agrees_at_first;

    *w = (struct wave){
        .at_first = newer,
        .every = !newer                    ? EVERY_BEFORE
                 : c->dp_sync_interval > 0 ? c->dp_sync_interval
                                           : EVERY_DEFAULT,
    };
}

void wave_start(struct wave *w, uint64_t number)
{
    if (w->deaf || number < w->number)
        return;
    w->number = number;
    w->running = true;
}

bool wave_throttles(const struct wave *w, uint32_t interval)
{
    return interval > 1 && w->pass % interval != 0;
}

bool wave_needs_dummy(const struct wave *w, bool unfinished)
{
    return unfinished || w->running;
}

bool wave_pass(struct wave *w)
{
    w->pass++;
    w->running = true;
    return (w->at_first && w->pass == 1) || w->pass % w->every == 0;
}

void wave_agree(struct wave *w, const struct wave_votes *v)
{
    bool all_pause = v->pausing == v->ranks;

    if (all_pause) {
        w->pausing = false;
        w->deaf = true;
    }
    w->running = v->unfinished > 0 || (v->pausing > 0 && !all_pause);
    if (w->running)
        return;
    w->pass = 0;
    w->number++;
}

void wave_pause(struct wave *w)
{
    w->pausing = w->running = true;
}

bool wave_resume(struct wave *w)
{
    if (w->pausing || (w->running && w->deaf))
        return false;
    w->deaf = false;
    return true;
}
