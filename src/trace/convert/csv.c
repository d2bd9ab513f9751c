/* csv.c - request lists, and the readers that know requests only. */
#include "trace/convert/convert.h"

/* ---- reading ---------------------------------------------------------- */

/* Content is named as vtwin names it: by number. */
static int copy_request(struct vt_records *r, const struct vt_workload *w,
                        const struct vt_work *q, struct vt_err *err)
{
    struct vt_record_segment *s = vt_arena_alloc(&r->arena, q->n_segments * sizeof(*s));
    struct vt_record *to;
    int rc;

    if (!s)
        return vt_nomem(err);
    if ((rc = records_add(r, &to, err)) ||
        (rc = vt_arena_text(&r->arena, q->id, &to->id, err)))
        return rc;
    to->arrival_ns = q->arrival_ns;
    to->prompt_tokens = q->prompt_tokens;
    to->output_tokens = q->output_tokens;
    to->priority = q->priority;
    if (q->lora && (rc = vt_arena_text(&r->arena, q->lora, &to->lora, err)))
        return rc;
    to->line = q->line;
    to->segment = s;
    to->n_segments = q->n_segments;
    for (uint32_t i = 0; i < q->n_segments; i++) {
        const struct vt_segment *from = &w->segment[q->first_segment + i];
        char name[24];

        snprintf(name, sizeof(name), "#%016llx", (unsigned long long)from->content);
        s[i] = (struct vt_record_segment){NULL, from->tokens, from->offset};
        if ((rc = vt_arena_text(&r->arena, name, &s[i].name, err)))
            return rc;
    }
    return VT_OK;
}

static int read_requests(struct vt_records *r, const char *path,
                         int (*load)(struct vt_workload *w, const char *path,
                                     struct vt_err *err),
                         struct vt_err *err)
{
    struct vt_workload w;
    int rc = load(&w, path, err);

    if (rc != VT_OK)
        return rc;
    rc = records_init(r, w.source, err);
    for (size_t i = 0; i < w.n && rc == VT_OK; i++)
        rc = copy_request(r, &w, &w.req[i], err);
    if (rc || (rc = records_finish(r, err)))
        vt_records_free(r);
    vt_workload_free(&w);
    return rc;
}

int convert_read_workload(struct vt_records *r, const char *path, struct vt_err *err)
{
    return read_requests(r, path, vt_trace_load, err);
}

int convert_read_requests(struct vt_records *r, const char *path, struct vt_err *err)
{
    return read_requests(r, path, vt_requests_load, err);
}

/* ---- writing ---------------------------------------------------------- */

static void put_row(struct vt_buf *b, const struct vt_records *r, size_t i, void *user)
{
    const struct convert_prefix *prefix = (const struct convert_prefix *)user + i;
    const struct vt_record *q = &r->rec[i];

    vt_buf_csv(b, q->id, false);
    vt_buf_char(b, ',');
    vt_buf_i64(b, q->arrival_ns / VT_US);
    if (q->arrival_ns % VT_US)
        vt_buf_printf(b, ".%03d", (int)(q->arrival_ns % VT_US));
    vt_buf_printf(b, ",%u,%u,", q->prompt_tokens, q->output_tokens);
    if (prefix->group)
        vt_buf_csv(b, prefix->group, false);
    vt_buf_printf(b, ",%u,%d,", prefix->tokens, q->priority);
    if (q->lora)
        vt_buf_csv(b, q->lora, false);
    vt_buf_char(b, '\n');
}

int convert_write_requests(const struct vt_records *r, const char *path,
                           struct vt_converted *done, struct vt_err *err)
{
    struct convert_prefix *prefix = NULL;
    bool lost;
    int rc;

    if ((rc = convert_need_arrivals(r, ", which a request list needs", err)) ||
        (rc = convert_prefixes(r, &prefix, &lost, err)))
        return rc;
    snprintf(done->note, sizeof(done->note), "%s%s",
             "a request list has no measured times",
             lost ? ", nor content shared beyond each prompt's first segment" : "");
    rc = convert_write_file(r, path,
                            "id,arrival_us,input_tokens,output_tokens,prefix_group,"
                            "prefix_tokens,priority,lora\n",
                            put_row, prefix, err);
    free(prefix);
    return rc;
}
