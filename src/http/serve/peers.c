/* peers.c - prompts that are computed here for others, and answers to those that others
 * have computed: kv_transfer_params in requests and answers. */
#include <stdlib.h>
#include <string.h>

#include "http/serve/serve.h"

struct told { /* by another engine, or of it */
    struct vt_inbox_item item;
    struct vt_heard is;
    char id[];
};

/* On the side channel's thread. */
static void hear(void *server, const struct vt_heard *h)
{
    struct server *s = server;
    struct told *t = malloc(sizeof(*t) + h->len);

    if (!t)
        return; /* the lease will end it */
    *t = (struct told){.is = *h};
    if (h->len > 0)
        memcpy(t->id, h->id, h->len);
    t->is.id = t->id;
    vt_inbox_put(&s->told, &t->item);
}

int serve_peers_open(struct server *s, struct vt_err *err)
{
    int rc = vt_inbox_open(&s->told, err);

    return rc ? rc : vt_peers_open(&s->peers, &s->c->side, hear, s, err);
}

void serve_peers_heard(void *server)
{
    struct server *s = server;
    struct vt_inbox_item *at, *next;

    vt_inbox_calm(&s->told);
    for (at = vt_inbox_take(&s->told); at; at = next) {
        struct told *t = (struct told *)at;

        next = at->next;
        vt_peers_take(s->peers, s->driver, s->c->n_engines, &t->is,
                      vt_axis_now(&s->axis));
        free(t);
    }
}

void serve_peers_close(struct server *s)
{
    struct vt_inbox_item *at, *next;

    vt_peers_close(s->peers);
    if (s->told.fd < 0)
        return;
    for (at = vt_inbox_take(&s->told); at; at = next) {
        next = at->next;
        free(at);
    }
    vt_inbox_close(&s->told);
}

/* ---- steps -------------------------------------------------------------- */

static struct vt_kv_ask *ask_of(void *choice)
{
    return &((struct choice *)choice)->kv;
}

/* What the answer will say of a prompt whose blocks are kept. vLLM tells of the first
 * one only. */
static int note_kept(struct server *s, struct rank *r, const struct vt_step *step,
                     const struct vt_row *row, struct choice *c, struct vt_err *err)
{
    struct vt_buf *text = &c->x->kv_kept;
    const struct vt_first *first;
    uint32_t hint = 0;
    struct vt_jw w;
    char id[256];

    (void)snprintf(id, sizeof(id), "%.200s-%u-%llx", c->x->r.id, c->out->index,
                   (unsigned long long)c->tag);
    if (c->out->index == 0) {
        first = row->first ? vt_step_first(step, row->tag, &hint) : NULL;
        vt_buf_clear(text);
        vt_jw_init(&w, text, NULL);
        vt_kv_put_kept(&w, NULL, &s->c->side, s->c->engine.vllm,
                       vt_engine_sched(r->core), row->slot, id, first);
        if (text->failed)
            return vt_nomem(err);
        c->x->r.kv_kept = text->data;
    }
    return vt_peers_keep(s->peers, id, row->tag, err);
}

int serve_peers_step(struct server *s, struct rank *r, const struct vt_step *step,
                     struct vt_err *err)
{
    const struct vt_sched *q = vt_engine_sched(r->core);
    int rc = VT_OK;

    for (uint32_t i = 0; i < step->n_rows && rc == VT_OK; i++) {
        const struct vt_row *row = &step->row[i];
        struct choice *c;

        if (row->finish == VT_RUNNING_ON || !vt_sched_keeps(q, row->tag))
            continue;
        c = vt_driver_find(s->driver, row->tag);
        if (c)
            rc = note_kept(s, r, step, row, c, err);
    }
    return rc ? rc : vt_peers_step(s->peers, s->driver, step, ask_of, err);
}
