/* kills_peer.c - what a recorder that is killed has lost: a frontend, `vtwin record`
 * and `vtwin play` behind it, all over again for every kill. See bench/kills.
 *
 *   kills_peer VTWIN TRACE KILLS SEED [FLAGS OF RECORD]
 *
 * Requests of a few tokens are kept in flight; at some moment the recorder gets
 * SIGKILL. Whatever the frontend still finds in its sockets counts: that had left the
 * recorder. Then each request that it has seen end must have a whole line in TRACE.
 * Prints one line of JSON; exit 1: some were missing. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wire/wire.h"

enum { IN_FLIGHT = 16, PROMPT = 64, OUTPUT = 3, MOST = 1 << 20 };

struct kills {
    const char *vtwin, *trace;
    char **flags;
    int n_flags;
    char frontend[128], engines[128];
    struct vt_rng rng;
    uint64_t kills, ended, missing, cut;
    uint64_t late; /* of those missing: seen before the kill, not after it */
    vt_ns oldest;  /* of those missing, before the kill */
};

struct run { /* up to one kill */
    struct vt_frontend *f;
    uint32_t sent, done;
    vt_ns *ended; /* when, by number of the request; 0: it has not */
};

static vt_ns now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * VT_SEC + t.tv_nsec;
}

/* ---- the programs ------------------------------------------------------- */

static int start_recorder(struct kills *k, struct vt_proc *p, struct vt_err *err)
{
    vt_proc_arg(p, k->vtwin);
    vt_proc_arg(p, "record");
    vt_proc_arg_pair(p, "--trace-out", k->trace);
    vt_proc_arg_pair(p, "--frontend-handshake", k->frontend);
    vt_proc_arg_pair(p, "--engine-handshake", k->engines);
    vt_proc_arg(p, "--overwrite");
    for (int i = 0; i < k->n_flags; i++)
        vt_proc_arg(p, k->flags[i]);
    return vt_proc_start(p, err);
}

static int start_engine(struct kills *k, struct vt_proc *p, struct vt_err *err)
{
    vt_proc_arg(p, k->vtwin);
    vt_proc_arg(p, "play");
    vt_proc_arg_pair(p, "--handshake-address", k->engines);
    vt_proc_arg_pair(p, "--model", "linear:base=300");
    vt_proc_arg_pair(p, "--vllm-line", "0.26");
    p->grace = VT_MS;
    return vt_proc_start(p, err);
}

/* ---- requests ----------------------------------------------------------- */

static int send_one(struct run *r, struct vt_err *err)
{
    uint32_t prompt[PROMPT];
    char id[32];
    struct vt_frontend_request q = {
        .id = id,
        .prompt = prompt,
        .n_prompt = PROMPT,
        .max_tokens = 1 + r->sent % OUTPUT,
        .ignore_eos = true,
        .temperature = -1,
    };

    snprintf(id, sizeof(id), "%u", r->sent);
    for (uint32_t i = 0; i < PROMPT; i++)
        prompt[i] = (uint32_t)(vt_hash2(r->sent, i) % 31000);
    r->sent++;
    return vt_frontend_add(r->f, 0, 0, &q, err);
}

/* The next message, if one comes in time; *any: one did. */
static int take_one(struct run *r, int timeout_ms, bool *any, struct vt_err *err)
{
    const struct vt_frontend_message *m;
    int rc = vt_frontend_next(r->f, timeout_ms, &m, err);

    *any = rc == VT_OK && m;
    if (!*any)
        return rc;
    for (uint32_t i = 0; i < m->n_outputs; i++) {
        if (!m->output[i].finish_reason)
            continue;
        r->ended[strtoul(m->output[i].id, NULL, 10)] = m->at;
        r->done++;
    }
    return VT_OK;
}

/* Offers load until the time has come, from the first request that ends on. */
static int offer(struct run *r, vt_ns for_ns, struct vt_err *err)
{
    vt_ns give_up = now_ns() + 20 * VT_SEC, until = give_up;
    int rc = VT_OK;

    while (rc == VT_OK && now_ns() < until) {
        uint32_t before = r->done;
        bool any;

        while (rc == VT_OK && r->sent < MOST && r->sent - r->done < IN_FLIGHT)
            rc = send_one(r, err);
        if (rc == VT_OK)
            rc = take_one(r, 1, &any, err);
        if (before == 0 && r->done > 0)
            until = now_ns() + for_ns;
    }
    if (rc == VT_OK && r->done == 0)
        return vt_fail(err, VT_EIO, "no request has ended in 20 seconds");
    return rc;
}

/* ---- the judgement ------------------------------------------------------ */

/* Takes those off whose lines are whole. */
static int strike_written(struct kills *k, struct run *r, struct vt_err *err)
{
    static const char id[] = "{\"id\":\"";
    struct vt_lines *lines;
    bool complete, cut = false;
    size_t len;
    char *line;
    int rc = vt_lines_open(&lines, k->trace, err);

    if (rc != VT_OK)
        return rc;
    while ((rc = vt_lines_next(lines, &line, &len, &complete, err)) == VT_OK && line) {
        unsigned long number = MOST;

        if (complete && strncmp(line, id, strlen(id)) == 0)
            number = strtoul(line + strlen(id), NULL, 10);
        if (number < MOST)
            r->ended[number] = 0;
        cut = !complete;
    }
    if (rc == VT_EINPUT && vt_lines_cut(lines)) { /* in the middle of a packed line */
        cut = true;
        rc = VT_OK;
    }
    k->cut += cut;
    vt_lines_close(lines);
    return rc;
}

static void count_missing(struct kills *k, const struct run *r, vt_ns killed_at)
{
    k->ended += r->done;
    for (uint32_t i = 0; i < r->sent; i++) {
        vt_ns ago = killed_at - r->ended[i];

        if (r->ended[i] == 0)
            continue;
        k->missing++;
        k->late += ago > 0;
        k->oldest = ago > k->oldest ? ago : k->oldest;
    }
}

static int kill_once(struct kills *k, struct run *r, struct vt_proc *recorder,
                     struct vt_err *err)
{
    vt_ns for_ns = (vt_ns)(vt_rng_f64(&k->rng) * 100 * VT_MS), killed_at;
    bool any = true;
    int rc = vt_frontend_accept(r->f, 20000, err);

    if (rc != VT_OK || (rc = offer(r, for_ns, err)))
        return vt_proc_within(recorder, err, rc);
    killed_at = now_ns();
    kill(recorder->pid, SIGKILL);
    if (vt_proc_wait(recorder, 0, err) == VT_OK) /* it is not to end by itself */
        return vt_fail(err, VT_EIO, "the recorder has ended before it was killed");
    while (rc == VT_OK && any)
        rc = take_one(r, 20, &any, err);
    if (rc == VT_OK)
        rc = strike_written(k, r, err);
    if (rc == VT_OK)
        count_missing(k, r, killed_at);
    k->kills += rc == VT_OK;
    return rc;
}

static int run_once(struct kills *k, struct vt_err *err)
{
    struct vt_frontend_config c = {.handshake = k->frontend,
                                   .line = vt_wire_line_find("0.26")};
    struct vt_proc recorder = {.our_environment = true}, engine = recorder;
    struct run r = {.ended = calloc(MOST, sizeof(*r.ended))};
    int rc = r.ended ? vt_frontend_open(&r.f, &c, err) : vt_nomem(err);

    if (rc == VT_OK)
        rc = start_recorder(k, &recorder, err);
    if (rc == VT_OK)
        rc = start_engine(k, &engine, err);
    if (rc == VT_OK)
        rc = kill_once(k, &r, &recorder, err);
    vt_proc_stop(&engine);
    vt_proc_stop(&recorder);
    vt_frontend_close(r.f);
    free(r.ended);
    return rc;
}

int main(int argc, char **argv)
{
    struct kills k = {0};
    struct vt_err err = {0};
    uint64_t n, seed;
    int rc = VT_OK;

    if (argc < 5) {
        fprintf(stderr, "kills_peer: VTWIN TRACE KILLS SEED [FLAGS OF RECORD]\n");
        return 2;
    }
    n = strtoull(argv[3], NULL, 10);
    seed = strtoull(argv[4], NULL, 10);
    k.vtwin = argv[1];
    k.trace = argv[2];
    k.flags = argv + 5;
    k.n_flags = argc - 5;
    vt_rng_init(&k.rng, seed, "kills");
    snprintf(k.frontend, sizeof(k.frontend), "ipc://%.90s.fe", k.trace);
    snprintf(k.engines, sizeof(k.engines), "ipc://%.90s.en", k.trace);
    while (rc == VT_OK && k.kills < n)
        rc = run_once(&k, &err);
    if (rc != VT_OK) {
        fprintf(stderr, "kills_peer: %s\n", err.msg);
        return 3;
    }
    printf("{\"kills\":%llu,\"ended\":%llu,\"missing\":%llu,\"before_the_kill\":%llu,"
           "\"oldest_ms\":%.3f,\"cut_lines\":%llu}\n",
           (unsigned long long)k.kills, (unsigned long long)k.ended,
           (unsigned long long)k.missing, (unsigned long long)k.late,
           (double)k.oldest * 1e-6, (unsigned long long)k.cut);
    return k.missing > 0;
}
