/* learn.c - see learn.h. The experiment that is to be predicted is never among those
 * that are learned from. */
#include "validate/adapters/learn.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static bool is_kin(const struct adapter_job *j, const struct vt_experiment *other)
{
    const struct vt_experiment *e = j->e;

    return other != e && other->tp == e->tp && strcmp(other->model, e->model) == 0 &&
           strcmp(other->hardware, e->hardware) == 0 &&
           strcmp(other->precision, e->precision) == 0;
}

static bool teaches(const struct vt_experiment *e, bool times)
{
    return times ? e->token_times && e->n_requests > 0
                 : !isnan(e->summary.ms[3]) && !isnan(e->summary.ms[6]);
}

int learn_check(const char *kind, const struct adapter_job *j, struct vt_err *err)
{
    bool times = strcmp(kind, "trace") == 0;

    for (size_t i = 0; i < j->all->n; i++)
        if (is_kin(j, &j->all->e[i]) && teaches(&j->all->e[i], times))
            return VT_OK;
    return vt_fail(err, VT_EINPUT,
                   "no %s profile, and no other experiment with %s, %s, TP %u on %s%s",
                   kind, j->e->model, j->e->precision, j->e->tp, j->e->hardware,
                   times ? " that has a time for each token" : "");
}

int learn_knobs(struct vt_buf *profile, const struct adapter_job *j, struct vt_err *err)
{
    double n = 0, ttft = 0, itl = 0;
    struct vt_jw w;
    int rc = learn_check("knob", j, err);

    if (rc != VT_OK)
        return rc;
    for (size_t i = 0; i < j->all->n; i++) {
        const struct vt_experiment *o = &j->all->e[i];
        double weight = (double)o->summary.requests;

        if (!is_kin(j, o) || !teaches(o, false))
            continue;
        n += weight;
        ttft += weight * o->summary.ms[3];
        itl += weight * o->summary.ms[6];
    }
    adapter_profile_begin(&w, profile, "knob", "knob");
    vt_jw_f64(&w, "time_to_first_token", n > 0 ? ttft / n : 0);
    vt_jw_f64(&w, "inter_token_latency", n > 0 ? itl / n : 0);
    adapter_profile_end(&w);
    return VT_OK;
}

/* ---- requests -------------------------------------------------------- */

/* How many were in flight when each arrived, itself included. Requests are by start. */
static int count_flights(const struct vt_experiment *e, uint32_t *out,
                         struct vt_err *err)
{
    struct vt_agenda ends = {0};
    int rc = VT_OK;

    for (size_t i = 0; i < e->n_requests && rc == VT_OK; i++) {
        const struct vt_truth_request *q = &e->request[i];
        vt_ns at = vt_ns_from_ms(q->start_s * 1e3);

        while (ends.n > 0 && ends.due[0].at <= at)
            vt_agenda_remove(&ends, 0);
        rc = vt_agenda_push(&ends, at + vt_ns_from_ms(q->e2e_s * 1e3), i, err);
        out[i] = (uint32_t)ends.n;
    }
    vt_agenda_free(&ends);
    return rc;
}

static int put_experiment(struct vt_buf *b, const struct vt_experiment *e,
                          double *from_s, struct vt_err *err)
{
    uint32_t *flights = calloc(e->n_requests, sizeof(*flights));
    int rc = flights ? count_flights(e, flights, err) : vt_nomem(err);

    for (size_t i = 0; i < e->n_requests && rc == VT_OK; i++) {
        const struct vt_truth_request *q = &e->request[i];
        char id[48];
        struct vt_record r = {.id = id,
                              .arrival_ns = vt_ns_from_ms((*from_s + q->start_s) * 1e3),
                              .ttft_ns = vt_ns_from_ms(q->ttft_s * 1e3),
                              .prompt_tokens = q->input_tokens,
                              .output_tokens = q->output_tokens,
                              .concurrency = flights[i],
                              .n_gaps = q->n_gaps,
                              .gap = &e->gap[q->first_gap]};

        snprintf(id, sizeof(id), "%lld-%zu", (long long)e->id, i);
        if (!q->failed) /* but it was in flight */
            vt_record_write(b, &r, NULL);
    }
    *from_s += e->request[e->n_requests - 1].start_s + 1000; /* none overlaps */
    free(flights);
    return rc;
}

static int write_all(const struct vt_buf *b, char *path, size_t size,
                     const char *scratch, struct vt_err *err)
{
    int fd = -1;
    size_t at = 0;

    if ((size_t)snprintf(path, size, "%s/vtwin-trace-XXXXXX", scratch) < size)
        fd = mkstemp(path);
    if (fd < 0) {
        vt_fail(err, VT_EIO, "%s: %s", path, strerror(errno));
        *path = '\0';
        return VT_EIO;
    }
    while (at < b->len) {
        ssize_t n = write(fd, b->data + at, b->len - at);

        if (n <= 0)
            break;
        at += (size_t)n;
    }
    close(fd);
    return at == b->len ? VT_OK : vt_fail(err, VT_EIO, "%s: %s", path, strerror(errno));
}

int learn_trace(struct vt_buf *profile, const struct adapter_job *j, char *path,
                size_t size, struct vt_err *err)
{
    struct vt_buf b = {0};
    double from_s = 0;
    struct vt_jw w;
    int rc = learn_check("trace", j, err);

    vt_buf_printf(&b, "{\"meta\":{\"max_num_batched_tokens\":%u}}\n",
                  j->e->max_num_batched_tokens);
    for (size_t i = 0; i < j->all->n && rc == VT_OK; i++)
        if (is_kin(j, &j->all->e[i]) && teaches(&j->all->e[i], true))
            rc = put_experiment(&b, &j->all->e[i], &from_s, err);
    if (rc == VT_OK)
        rc = b.failed ? vt_nomem(err) : write_all(&b, path, size, j->c->scratch, err);
    vt_buf_free(&b);
    if (rc != VT_OK)
        return rc;
    adapter_profile_begin(&w, profile, "trace", "trace");
    vt_jw_str(&w, "file", path);
    adapter_profile_end(&w);
    return VT_OK;
}
