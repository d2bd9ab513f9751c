/* steady.c - the part of a run at full concurrency.
 *
 * With a limit and no rate, a run begins with a rush and ends with a tail that is half
 * empty; both tell little of a server under that load. The window goes from the first
 * moment at which 95 % of the places are taken to the last one at which they are. */
#include <math.h>
#include <stdlib.h>

#include "load/summary.h"

struct edge {
    vt_ns at;
    int change;
};

static int compare(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->change - y->change; /* ends before starts */
}

static bool find_window(struct vt_load_steady *s, const struct vt_load_records *r,
                        vt_ns *from, vt_ns *to)
{
    struct edge *edge = malloc((r->n > 0 ? r->n : 1) * 2 * sizeof(*edge));
    uint32_t level = 0;
    size_t n = 0;

    if (!edge)
        return false; /* no window: all else stays true */
    *from = *to = -1;
    for (size_t i = 0; i < r->n; i++) {
        edge[n++] = (struct edge){r->record[i].begun, 1};
        edge[n++] = (struct edge){r->record[i].ended, -1};
    }
    qsort(edge, n, sizeof(*edge), compare);
    for (size_t i = 0; i < n; i++) {
        bool above = level >= s->threshold;

        level += (uint32_t)edge[i].change;
        if (level > s->observed_peak)
            s->observed_peak = level;
        if (level >= s->threshold && *from < 0)
            *from = edge[i].at;
        if (above && level < s->threshold)
            *to = edge[i].at;
    }
    free(edge);
    return *from >= 0 && *to > *from;
}

void load_steady(struct vt_load_steady *s, const struct vt_load_records *r,
                 const struct vt_load_asks *a, double *v)
{
    struct load_slice window;
    vt_ns from, to;

    if (a->steady_concurrency == 0)
        return;
    s->target = a->steady_concurrency;
    s->threshold = (uint32_t)ceil(0.95 * (double)a->steady_concurrency);
    s->found = find_window(s, r, &from, &to);
    if (!s->found)
        return;
    s->start_s = (double)from / 1e9;
    s->end_s = (double)to / 1e9;
    s->duration_s = (double)(to - from) / 1e9;
    s->is_short = to - from < 10 * VT_SEC || to - from < r->end / 10;
    for (size_t i = 0; i < r->n; i++) {
        const struct vt_load_record *q = &r->record[i];
        bool started = q->ok && q->begun >= from && q->begun < to;

        s->completed += q->ok && q->ended >= from && q->ended < to;
        s->started += started;
        s->input_tokens += started ? q->prompt_tokens : 0;
        for (uint32_t k = 0; q->ok && k < q->n_stamps; k++)
            s->tokens += q->stamp[k] >= from && q->stamp[k] < to;
    }
    window = (struct load_slice){.all_turns = true, .from = from, .to = to};
    load_spread(&s->ttft, r, &window, a, LOAD_TTFT, v);
    load_spread(&s->tpot, r, &window, a, LOAD_TPOT, v);
    s->request_throughput = (double)s->completed / s->duration_s;
    s->input_throughput = (double)s->input_tokens / s->duration_s;
    s->output_throughput = (double)s->tokens / s->duration_s;
}
