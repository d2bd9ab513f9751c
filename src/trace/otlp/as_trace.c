/* as_trace.c - spans where a trace or a step log is asked for: the lines that such a
 * file would have, so that whoever reads them knows one format only. */
#include "trace/otlp/otlp.h"

static bool is_spans(const char *path)
{
    enum vt_file kind;
    struct vt_err ignored;

    return vt_file_kind(path, &kind, &ignored) == VT_OK && kind == VT_FILE_SPANS;
}

/* The one that tells of most requests, or of most steps. */
static const struct vt_otlp_capture *choose(const struct vt_otlp *o, enum otlp_as as)
{
    const struct vt_otlp_capture *best = NULL;
    size_t most = 0;

    for (size_t i = 0; i < o->n_captures; i++) {
        const struct vt_otlp_capture *c = &o->capture[i];
        size_t n = as == OTLP_AS_STEPS ? c->steps.n : c->work.n;

        if (n > most) {
            most = n;
            best = c;
        }
    }
    return best;
}

static void put_requests(struct vt_buf *b, const struct vt_otlp_capture *c)
{
    const struct vt_workload *w = &c->work;

    vt_trace_write_meta(b, w, &w->meta, "otlp");
    for (size_t i = 0; i < w->n; i++) {
        const struct vt_work *q = &w->req[i];
        const struct vt_measured *m = &w->measured[i];
        struct vt_record r = {.id = q->id,
                              .arrival_ns = q->arrival_ns,
                              .ttft_ns = m->ttft_ns,
                              .prompt_tokens = q->prompt_tokens,
                              .cached_tokens = m->cached_tokens,
                              .output_tokens = q->output_tokens,
                              .max_tokens = q->max_tokens,
                              .n_gaps = m->n_gaps,
                              .gap = m->n_gaps > 0 ? w->gap + m->first_gap : NULL,
                              .queue_ns = m->queue_ns,
                              .finish_reason =
                                  q->max_tokens > q->output_tokens ? "stop" : "length"};

        /* Where no time between is known the gaps are shares of the whole. */
        r.by_mean = m->n_gaps > 1 && c->shared_gaps >= w->n_gaps;
        vt_record_write(b, &r, NULL);
    }
}

static int put_lines(struct vt_buf *b, const char *path, enum otlp_as as,
                     struct vt_err *err)
{
    static const struct vt_otlp_options options = {VT_STEP_INTERVAL};
    const struct vt_otlp_capture *c;
    struct vt_otlp *o = NULL;
    int rc = vt_otlp_new(&o, &options, err);

    if (rc == VT_OK && !(rc = vt_otlp_add_file(o, path, err)) &&
        !(rc = vt_otlp_finish(o, err))) {
        c = choose(o, as);
        if (!c)
            rc = vt_fail(err, VT_EINPUT, "%s: no %s whose time is known", path,
                         as == OTLP_AS_STEPS ? "step" : "request");
        else if (as == OTLP_AS_TRACE)
            put_requests(b, c);
        for (size_t i = 0; c && as == OTLP_AS_STEPS && i < c->steps.n; i++)
            vt_steps_write(b, &c->steps.step[i]);
        if (rc == VT_OK && b->failed)
            rc = vt_nomem(err);
    }
    vt_otlp_free(o);
    return rc;
}

int otlp_lines_open(struct vt_lines **out, struct vt_buf *text, const char *path,
                    enum otlp_as as, struct vt_err *err)
{
    int rc;

    *out = NULL;
    if (!is_spans(path))
        return vt_lines_open(out, path, err);
    rc = put_lines(text, path, as, err);
    if (rc == VT_OK)
        rc = vt_lines_from(out, path, text->data, text->len, err);
    return rc;
}

int otlp_load_as(void *to, const char *path, enum otlp_as as, trace_file_reader *read,
                 struct vt_err *err)
{
    struct vt_buf text = {0};
    struct vt_lines *lines;
    int rc = otlp_lines_open(&lines, &text, path, as, err);

    if (rc == VT_OK)
        rc = read(to, lines, err);
    vt_lines_close(lines);
    vt_buf_free(&text);
    return rc;
}
