/* timer.c - deadlines of connections: a list for each kind, in order, so that ten
 * thousand of them cost no more than ten to set or to find the next of. */
#include "net/server/server.h"

static void timer_clear(struct net_conn *c)
{
    struct net_list *l = &c->net->timer[c->timer];

    if (c->timer == NET_NO_TIMER)
        return;
    *(c->timer_prev ? &c->timer_prev->timer_next : &l->first) = c->timer_next;
    *(c->timer_next ? &c->timer_next->timer_prev : &l->last) = c->timer_prev;
    c->timer = NET_NO_TIMER;
}

void net_timer_set(struct net_conn *c, enum net_timer t)
{
    struct net_list *l = &c->net->timer[t];

    timer_clear(c);
    if (t == NET_NO_TIMER || l->duration <= 0)
        return;
    c->timer = (uint8_t)t;
    c->deadline = c->net->now + l->duration;
    c->timer_prev = l->last;
    c->timer_next = NULL;
    *(l->last ? &l->last->timer_next : &l->first) = c;
    l->last = c;
}

vt_ns net_timer_due(const struct net *n)
{
    vt_ns due = VT_NEVER;

    for (size_t i = 0; i < NET_TIMERS; i++)
        if (n->timer[i].first && n->timer[i].first->deadline < due)
            due = n->timer[i].first->deadline;
    return due;
}

/* When thousands expire together, engines still have their turn. */
void net_timer_expire(struct net *n)
{
    for (size_t i = 0; i < NET_TIMERS; i++) {
        struct net_conn *c;

        while ((c = n->timer[i].first) && c->deadline <= n->now) {
            timer_clear(c);
            net_conn_expired(c);
            if (net_is_late(n))
                break;
        }
    }
}
