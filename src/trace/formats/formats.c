/* formats.c - choosing a trace's format. */
#include "trace/formats/formats.h"
#include "trace/otlp/otlp.h"

/* To add a format: write <name>.c, add a row here, describe it in
 * docs/trace-format.md and add a case to tests/trace/test_trace_load.c. The first
 * that recognises the first line reads the file. */
static const struct trace_format *const formats[] = {
    &trace_format_azure,
    &trace_format_mooncake,
    &trace_format_weka,
    &trace_format_jsonl,
};

struct file_feed {
    struct trace_feed feed;
    struct trace_reader r;
    struct vt_lines *own; /* NULL: the lines are another's */
    struct vt_buf text;   /* of those lines, where they are no file's */
    const struct trace_format *format;
    void *state; /* the format's */
};

static int find_format(struct file_feed *f, struct vt_err *err)
{
    struct trace_reader *r = &f->r;
    const struct vt_node *first = NULL;
    struct vt_arena scratch = {0};
    int rc = vt_json_parse(&scratch, r->line, r->len, 1, &first, err);

    if (rc == VT_EINPUT) /* it may be CSV */
        first = NULL;
    for (size_t i = 0; rc != VT_ENOMEM && !f->format && i < VT_COUNT(formats); i++)
        if (formats[i]->recognise(r->line, r->len, first))
            f->format = formats[i];
    vt_arena_free(&scratch);
    if (rc == VT_ENOMEM || f->format)
        return rc == VT_ENOMEM ? rc : VT_OK;
    return vt_fail(err, VT_EINPUT,
                   "%s: line %u: not a trace: neither trace.jsonl nor Azure CSV nor "
                   "Mooncake JSONL nor an agent's session",
                   r->name, r->number);
}

static int read_more(struct trace_feed *feed, bool *done, struct vt_err *err)
{
    struct file_feed *f = (struct file_feed *)feed;
    int rc = f->format->read(&feed->b, &f->r, f->state, err);

    *done = rc != VT_OK || !f->r.line;
    return rc;
}

static void close_file(struct trace_feed *feed)
{
    struct file_feed *f = (struct file_feed *)feed;

    trace_build_free(&feed->b);
    vt_lines_close(f->own);
    vt_buf_free(&f->text);
    free(f->state);
    free(f);
}

/* *out is owned by the caller whatever happens, NULL being fine. */
static int open_lines(struct trace_feed **out, struct vt_workload *w,
                      struct vt_lines *lines, enum trace_rows rows, struct vt_err *err)
{
    struct file_feed *f = calloc(1, sizeof(*f));
    int rc;

    *out = f ? &f->feed : NULL;
    if (!f)
        return vt_nomem(err);
    f->r = (struct trace_reader){
        .lines = lines, .name = vt_lines_name(lines), .to = &f->feed.b};
    f->feed.more = read_more;
    f->feed.close = close_file;
    if ((rc = trace_build_init(&f->feed.b, w, f->r.name, err)) ||
        (rc = trace_reader_next(&f->r, err)))
        return rc;
    if (!f->r.line)
        return vt_fail(err, VT_EINPUT, "%s: the file is empty", f->r.name);
    if (rows == TRACE_ROWS_REQUESTS)
        f->format = &trace_format_requests;
    else if ((rc = find_format(f, err)))
        return rc;
    f->state = calloc(1, f->format->state_size + 1);
    return f->state ? VT_OK : vt_nomem(err);
}

int trace_file_open(struct trace_feed **out, struct vt_workload *w, const char *path,
                    enum trace_rows rows, struct vt_err *err)
{
    struct vt_lines *lines;
    struct vt_buf text = {0};
    int rc = rows == TRACE_ROWS_TRACE
                 ? otlp_lines_open(&lines, &text, path, OTLP_AS_TRACE, err)
                 : vt_lines_open(&lines, path, err);

    *out = NULL;
    if (rc == VT_OK)
        rc = open_lines(out, w, lines, rows, err);
    if (*out) {
        ((struct file_feed *)*out)->own = lines;
        ((struct file_feed *)*out)->text = text;
        return rc;
    }
    vt_lines_close(lines);
    vt_buf_free(&text);
    return rc;
}

static int read_lines(struct vt_workload *w, struct vt_lines *lines,
                      enum trace_rows rows, struct vt_err *err)
{
    struct trace_feed *feed;

    *w = (struct vt_workload){0};
    return trace_feed_all(&feed, w, open_lines(&feed, w, lines, rows, err), err);
}

int trace_read(void *workload, struct vt_lines *lines, struct vt_err *err)
{
    return read_lines(workload, lines, TRACE_ROWS_TRACE, err);
}

int trace_read_requests(void *workload, struct vt_lines *lines, struct vt_err *err)
{
    return read_lines(workload, lines, TRACE_ROWS_REQUESTS, err);
}
