/* play_peer.c - a frontend that offers load to `vtwin play` and measures it; for
 * bench/play.
 *
 *   play_peer ADDRESS REQUESTS CONCURRENCY PROMPT OUTPUT
 *
 * Waits for an engine at ADDRESS, keeps CONCURRENCY requests in flight until REQUESTS
 * are done, and prints one line of JSON: tokens, messages, most outputs of one request
 * in a message, wall seconds. Prompts are all different. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/wire.h"

struct load {
    uint32_t requests, concurrency, prompt, output;
    uint32_t sent, done;
    uint64_t tokens, messages, rows;
    uint32_t *token; /* of the prompt being made */
    char *seen;      /* by request: it was in the message in hand */
    uint32_t twice;  /* requests that were twice in a message */
};

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int send_one(struct vt_frontend *f, struct load *l, struct vt_err *err)
{
    char id[32];
    struct vt_frontend_request r = {
        .id = id,
        .prompt = l->token,
        .n_prompt = l->prompt,
        .max_tokens = l->output,
        .ignore_eos = true,
        .temperature = -1,
    };

    (void)snprintf(id, sizeof(id), "%u", l->sent);
    for (uint32_t i = 0; i < l->prompt; i++)
        l->token[i] = (uint32_t)(vt_hash2(l->sent, i) % 31000);
    l->sent++;
    return vt_frontend_add(f, 0, 0, &r, err);
}

static void take(struct load *l, const struct vt_frontend_message *m)
{
    l->messages += m->n_outputs > 0;
    l->rows += m->n_outputs;
    for (uint32_t i = 0; i < m->n_outputs; i++) {
        char *seen = &l->seen[strtoul(m->output[i].id, NULL, 10)];

        l->twice += *seen != 0;
        *seen = 1;
        l->tokens += m->output[i].n_tokens;
        l->done += m->output[i].finish_reason != NULL;
    }
    for (uint32_t i = 0; i < m->n_outputs; i++)
        l->seen[strtoul(m->output[i].id, NULL, 10)] = 0;
}

static int offer(struct vt_frontend *f, struct load *l, struct vt_err *err)
{
    const struct vt_frontend_message *m;
    int rc = VT_OK;

    while (rc == VT_OK && l->done < l->requests) {
        while (rc == VT_OK && l->sent < l->requests &&
               l->sent - l->done < l->concurrency)
            rc = send_one(f, l, err);
        if (rc == VT_OK)
            rc = vt_frontend_next(f, 60000, &m, err);
        if (rc == VT_OK && m == NULL)
            return vt_fail(err, VT_EIO, "nothing came for a minute");
        if (rc == VT_OK && m->bad != NULL)
            return vt_fail(err, VT_EIO, "%s", m->bad);
        if (rc == VT_OK)
            take(l, m);
    }
    return rc;
}

static int run(const char *address, struct load *l, struct vt_err *err)
{
    struct vt_frontend_config c = {.handshake = address,
                                   .line = vt_wire_line_find("0.26")};
    struct vt_frontend *f = NULL;
    double start;
    int rc = vt_frontend_open(&f, &c, err);

    if (rc == VT_OK)
        rc = vt_frontend_accept(f, 20000, err);
    start = seconds();
    if (rc == VT_OK)
        rc = offer(f, l, err);
    if (rc == VT_OK)
        printf("{\"tokens\":%llu,\"messages\":%llu,\"rows\":%llu,\"twice\":%u,"
               "\"wall_s\":%.3f}\n",
               (unsigned long long)l->tokens, (unsigned long long)l->messages,
               (unsigned long long)l->rows, l->twice, seconds() - start);
    vt_frontend_close(f);
    return rc;
}

int main(int argc, char **argv)
{
    struct load l = {0};
    struct vt_err err = {0};
    int rc = VT_EINPUT;

    if (argc == 6) {
        l.requests = (uint32_t)strtoul(argv[2], NULL, 10);
        l.concurrency = (uint32_t)strtoul(argv[3], NULL, 10);
        l.prompt = (uint32_t)strtoul(argv[4], NULL, 10);
        l.output = (uint32_t)strtoul(argv[5], NULL, 10);
        l.token = calloc(l.prompt + 1, sizeof(*l.token));
        l.seen = calloc(l.requests + 1, 1);
        rc = l.token != NULL && l.seen != NULL ? run(argv[1], &l, &err) : VT_ENOMEM;
    }
    if (rc != VT_OK)
        fprintf(stderr, "play_peer: %s\n",
                argc == 6 ? err.msg : "ADDRESS REQUESTS CONCURRENCY PROMPT OUTPUT");
    free(l.token);
    free(l.seen);
    return rc == VT_OK ? 0 : 1;
}
