/* replay_own.c - a golden's requests through our own frontend, straight over ZeroMQ,
 * with our own clock. */
#include "conform/replay.h"

enum {
    ACCEPT_MS = 30000,
    IN_FLIGHT = 64, /* while times do not matter */
    SILENCE_S = 30, /* beyond what was recorded: given up */
    LOOK_MS = 100,  /* how often to look whether the engine still runs */
};

struct own_replay {
    struct replay *r;
    enum replay_pace pace;
    struct vt_frontend *frontend;
    struct vt_proc engine;
    size_t first;     /* case that has not ended */
    size_t next;      /* case to send */
    vt_ns shift_ns;   /* from recorded arrivals to our clock */
    vt_ns allowed_ns; /* of silence */
    vt_ns heard_ns;   /* last sign of life */
};

/* ---- sending ---------------------------------------------------------- */

static int send_case(struct own_replay *u, struct replay_case *c, struct vt_err *err)
{
    const struct vt_frontend_request q = {.id = c->rec->id,
                                          .external_id = c->rec->id,
                                          .prompt = u->r->prompt,
                                          .n_prompt = c->rec->prompt_tokens,
                                          .max_tokens = c->max_tokens,
                                          .ignore_eos = true,
                                          .temperature = -1};

    c->sent_ns = vt_wall_ns();
    u->heard_ns = c->sent_ns;
    return vt_frontend_add(u->frontend, 0, 0, &q, err);
}

/* When the next request is due. Time in which nothing was going on is left out. */
static vt_ns next_due(struct own_replay *u, vt_ns now)
{
    size_t in_flight = u->next - u->r->n_done;
    vt_ns due;

    if (u->next == u->r->n)
        return VT_NEVER;
    if (u->pace == REPLAY_FAST)
        return in_flight < IN_FLIGHT ? now : VT_NEVER;
    due = u->r->c[u->next].rec->arrival_ns + u->shift_ns;
    if (due > now && in_flight == 0) {
        u->shift_ns -= due - now;
        due = now;
    }
    return due;
}

/* ---- receiving -------------------------------------------------------- */

/* Among those that are going on. */
static struct replay_case *find_case(struct own_replay *u, const char *id)
{
    struct replay *r = u->r;

    while (u->first < u->next && *r->c[u->first].finish)
        u->first++;
    for (size_t i = u->first; i < u->next; i++)
        if (!*r->c[i].finish && strcmp(r->c[i].rec->id, id) == 0)
            return &r->c[i];
    return NULL;
}

static int take_message(struct own_replay *u, const struct vt_frontend_message *m,
                        struct vt_err *err)
{
    int rc = VT_OK;

    u->heard_ns = m->at;
    if (m->dead)
        return vt_fail(err, VT_EIO, "the engine says that it is dead");
    if (m->bad)
        return vt_fail(err, VT_EIO, "a message cannot be decoded: %s", m->bad);
    for (uint32_t i = 0; i < m->n_outputs && rc == VT_OK; i++) {
        const struct vt_frontend_output *o = &m->output[i];
        struct replay_case *c = find_case(u, o->id);

        if (!c)
            return vt_fail(err, VT_EIO, "output for '%s', which is not going on",
                           o->id);
        rc = replay_chunk(u->r, c, o->token, o->n_tokens, o->finish_reason, m->at, err);
    }
    return rc;
}

static int check_life(struct own_replay *u, vt_ns now, struct vt_err *err)
{
    if (conform_stopped(u->r->config))
        return vt_fail(err, VT_EIO, "stopped");
    if (!vt_proc_running(&u->engine, err))
        return VT_EIO;
    if (u->next > u->r->n_done && now - u->heard_ns > u->allowed_ns)
        return vt_fail(err, VT_EIO, "no output for %d s with %zu requests going on",
                       (int)(u->allowed_ns / VT_SEC), u->next - u->r->n_done);
    return VT_OK;
}

static int send_cases(struct own_replay *u, struct vt_err *err)
{
    const struct vt_frontend_message *m;
    int rc = VT_OK;

    u->shift_ns = vt_wall_ns() - (u->r->n ? u->r->c[0].rec->arrival_ns : 0);
    u->heard_ns = vt_wall_ns();
    while (rc == VT_OK && u->r->n_done < u->r->n) {
        vt_ns now = vt_wall_ns(), due = next_due(u, now), ms;

        for (; rc == VT_OK && due <= now; due = next_due(u, now))
            rc = send_case(u, &u->r->c[u->next++], err);
        ms = due == VT_NEVER ? LOOK_MS : (due - now) / VT_MS;
        if (rc == VT_OK)
            rc = vt_frontend_next(u->frontend, (int)(ms < LOOK_MS ? ms : LOOK_MS), &m,
                                  err);
        if (rc == VT_OK)
            rc = m ? take_message(u, m, err) : check_life(u, now, err);
    }
    return rc;
}

/* ---- all of it -------------------------------------------------------- */

/* The longest silence that was recorded, and some. */
static vt_ns longest_silence(const struct replay *r, enum replay_pace pace)
{
    vt_ns longest = 0;

    for (size_t i = 0; pace == REPLAY_RECORDED && i < r->n; i++) {
        const struct vt_record *rec = r->c[i].rec;

        longest = rec->ttft_ns > longest ? rec->ttft_ns : longest;
        for (uint32_t k = 0; k < rec->n_gaps; k++)
            if (vt_record_gap(rec, k) > longest)
                longest = vt_record_gap(rec, k);
    }
    return longest + SILENCE_S * VT_SEC;
}

int replay_own(struct replay *r, enum replay_pace pace, struct vt_err *err)
{
    const struct vt_wire_line *line = vt_wire_line_find(r->golden->line);
    const struct vt_frontend_config config = {.handshake = "tcp://127.0.0.1:*",
                                              .line = line};
    struct own_replay u = {
        .r = r, .pace = pace, .allowed_ns = longest_silence(r, pace)};
    int rc = vt_frontend_open(&u.frontend, &config, err);

    if (rc == VT_OK)
        rc = replay_engine(r, &u.engine, vt_frontend_address(u.frontend), pace, line,
                           err);
    if (rc == VT_OK) {
        rc = vt_frontend_accept(u.frontend, ACCEPT_MS, err);
        rc = vt_proc_within(&u.engine, err, rc);
    }
    if (rc == VT_OK)
        rc = send_cases(&u, err);
    vt_proc_stop(&u.engine);
    vt_frontend_close(u.frontend);
    return rc;
}
