/* crew.c - threads that share pieces of work.
 *
 * Members sleep between two pieces and do not spin: on a machine that others use as
 * well, who spins keeps the one from running for whom he waits. */
#include <stdatomic.h>

#include "base/base.h"

struct member {
    struct vt_crew *crew;
    uint32_t number;
    pthread_t thread;
};

struct vt_crew {
    uint32_t n, n_started; /* threads beside the caller's: n - 1 */
    struct member *member;
    pthread_mutex_t lock;
    pthread_cond_t begin, end;
    uint64_t piece; /* their number so far */
    uint32_t busy;  /* members that are not done with it */
    bool over;
    /* The piece in hand: */
    void (*work)(void *user, uint32_t member, uint32_t item);
    void *user;
    uint32_t items, share; /* that a member takes at a time */
    atomic_uint next;
};

static void take_items(struct vt_crew *c, uint32_t member)
{
    for (;;) {
        uint32_t from = atomic_fetch_add(&c->next, c->share), end = c->items;

        if (from >= c->items)
            return;
        if (c->items - from > c->share)
            end = from + c->share;
        for (uint32_t i = from; i < end; i++)
            c->work(c->user, member, i);
    }
}

static void *work_on(void *arg)
{
    const struct member *m = arg;
    struct vt_crew *c = m->crew;
    uint64_t seen = 0;

    (void)pthread_mutex_lock(&c->lock);
    for (;;) {
        while (c->piece == seen && !c->over)
            (void)pthread_cond_wait(&c->begin, &c->lock);
        if (c->over)
            break;
        seen = c->piece;
        (void)pthread_mutex_unlock(&c->lock);
        take_items(c, m->number);
        (void)pthread_mutex_lock(&c->lock);
        if (--c->busy == 0)
            (void)pthread_cond_signal(&c->end);
    }
    (void)pthread_mutex_unlock(&c->lock);
    return NULL;
}

void vt_crew_free(struct vt_crew *c)
{
    if (!c)
        return;
    (void)pthread_mutex_lock(&c->lock);
    c->over = true;
    (void)pthread_cond_broadcast(&c->begin);
    (void)pthread_mutex_unlock(&c->lock);
    for (uint32_t i = 0; i < c->n_started; i++)
        (void)pthread_join(c->member[i].thread, NULL);
    (void)pthread_cond_destroy(&c->begin);
    (void)pthread_cond_destroy(&c->end);
    (void)pthread_mutex_destroy(&c->lock);
    free(c->member);
    free(c);
}

int vt_crew_new(struct vt_crew **out, uint32_t n, struct vt_err *err)
{
    struct vt_crew *c = calloc(1, sizeof(*c));
    int rc = VT_OK;

    *out = NULL;
    if (!c)
        return vt_nomem(err);
    c->n = n;
    c->member = calloc(n, sizeof(*c->member));
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_cond_init(&c->begin, NULL);
    (void)pthread_cond_init(&c->end, NULL);
    if (!c->member)
        rc = vt_nomem(err);
    for (uint32_t i = 0; i + 1 < n && rc == VT_OK; i++) {
        c->member[i] = (struct member){.crew = c, .number = i + 1};
        rc = vt_thread_start(&c->member[i].thread, work_on, &c->member[i], err);
        c->n_started += rc == VT_OK;
    }
    if (rc == VT_OK)
        *out = c;
    else
        vt_crew_free(c);
    return rc;
}

void vt_crew_run(struct vt_crew *c, uint32_t items, bool alone,
                 void (*work)(void *user, uint32_t member, uint32_t item), void *user)
{
    enum { SHARES = 16 }; /* of each member, so that none waits long for another */

    if (alone || c->n_started == 0) {
        for (uint32_t i = 0; i < items; i++)
            work(user, 0, i);
        return;
    }
    (void)pthread_mutex_lock(&c->lock);
    c->work = work;
    c->user = user;
    c->items = items;
    c->share = items / (SHARES * c->n) + 1;
    atomic_store(&c->next, 0);
    c->busy = c->n_started;
    c->piece++;
    (void)pthread_cond_broadcast(&c->begin);
    (void)pthread_mutex_unlock(&c->lock);
    take_items(c, 0);
    (void)pthread_mutex_lock(&c->lock);
    while (c->busy > 0)
        (void)pthread_cond_wait(&c->end, &c->lock);
    (void)pthread_mutex_unlock(&c->lock);
}
