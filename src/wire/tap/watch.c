/* watch.c - whether both sides are still there. */
#include "wire/tap/tap.h"

static const vt_ns GRACE_NS = 500 * VT_MS; /* for a lost peer's last messages to come */

void tap_link_lost(struct tap *t, struct tap_link *l)
{
    if (l->registered)
        tap_post_event(t, TAP_ENGINE_LOST, l->number);
    l->registered = false;
    l->fd = -1;
    l->lost_at = VT_NEVER;
}

void tap_close_clients(struct tap *t, bool frontend_is_there)
{
    for (uint32_t i = 0; i < t->n_clients; i++)
        tap_client_close(&t->client[i], frontend_is_there);
    free(t->client);
    t->client = NULL;
    t->n_clients = 0;
    t->changed = true;
}

void tap_reset(struct tap *t)
{
    tap_tell(&t->log, "the frontend is gone; waiting for the next one");
    tap_post_event(t, TAP_FRONTEND_LOST, TAP_NO_ENGINE);
    for (size_t i = 0; i < t->n_links; i++) {
        if (t->link[i].asked)
            tap_link_close_inputs(&t->link[i]);
        else
            tap_link_close(&t->link[i]);
    }
    tap_close_clients(t, false);
    t->was_up = false;
    t->lost_at = VT_NEVER;
}

/* ---- connections ------------------------------------------------------ */

/* Whether the frontend holds the other end of any of the link's sockets. */
static bool watch_frontend(struct tap *t, struct tap_link *l)
{
    bool any = false;
    int event, fd;

    for (uint32_t i = 0; i < l->n_inputs; i++) {
        while (sock_monitor_next(l->input_monitor[i], &event, &fd)) {
            l->up[i] = event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
            t->was_up = t->was_up || l->up[i];
        }
        any = any || l->up[i];
    }
    return any;
}

/* A frontend that goes away before it has answered will not answer: the next one must
 * hear the hello too. */
static int watch_handshake(struct tap *t, struct tap_link *l, struct vt_err *err)
{
    bool lost;

    tap_link_is_up(l, &lost);
    if (!lost)
        return VT_OK;
    if (!l->asked) {
        t->was_up = t->was_up || !l->ready; /* and if nothing else is up, it is gone */
        return VT_OK;
    }
    t->changed = true;
    return tap_link_hello(l, t->ctx, t->config->frontend, err);
}

/* The one engine that was lost has come back: a hiccup of the network. */
static void connection_made(struct tap *t, int fd)
{
    struct tap_link *lost = NULL;

    for (size_t i = 0; i < t->n_links; i++) {
        if (t->link[i].lost_at == VT_NEVER)
            continue;
        if (lost)
            return;
        lost = &t->link[i];
    }
    if (!lost)
        return;
    lost->fd = fd;
    lost->lost_at = VT_NEVER;
}

static void watch_engines(struct tap *t)
{
    int event, fd;

    while (t->n_clients > 0 && sock_monitor_next(t->client[0].monitor, &event, &fd)) {
        if (event == ZMQ_EVENT_ACCEPTED)
            connection_made(t, fd);
        for (size_t i = 0; event == ZMQ_EVENT_DISCONNECTED && i < t->n_links; i++)
            if (t->link[i].registered && t->link[i].fd == fd)
                t->link[i].lost_at = t->at.mono;
    }
    for (size_t i = 0; i < t->n_links; i++) {
        struct tap_link *l = &t->link[i];

        if (l->lost_at == VT_NEVER || t->at.mono - l->lost_at < GRACE_NS)
            continue;
        tap_tell(&t->log, "engine %u is gone", l->number);
        tap_link_lost(t, l);
    }
}

int tap_watch(struct tap *t, struct vt_err *err)
{
    bool up = false, greeted = false;
    int rc = VT_OK;

    t->at = tap_stamp();
    t->next_tick = t->at.mono + TAP_TICK_MS * VT_MS;
    watch_engines(t);
    for (size_t i = 0; i < t->n_links && rc == VT_OK; i++) {
        greeted = greeted || t->link[i].n_inputs > 0;
        up = watch_frontend(t, &t->link[i]) || up;
        rc = watch_handshake(t, &t->link[i], err);
    }
    t->was_up = t->was_up && greeted;
    if (up || !t->was_up)
        t->lost_at = VT_NEVER;
    else if (t->lost_at == VT_NEVER)
        t->lost_at = t->at.mono;
    else if (t->at.mono - t->lost_at >= GRACE_NS)
        tap_reset(t);
    return rc;
}
