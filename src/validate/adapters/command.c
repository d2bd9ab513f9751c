/* command.c - any command that reads a list of requests and writes what became
 * of each. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "validate/adapters/adapter.h"
#include "validate/sheet.h"

static const char in_mark[] = "{requests.csv}", out_mark[] = "{out.csv}";

int command_can_run(const struct adapter_job *j, struct vt_err *err)
{
    if (!strstr(j->a->kind, in_mark) || !strstr(j->a->kind, out_mark))
        return vt_fail(err, VT_EINPUT, "'%s' does not name %s and %s", j->a->kind,
                       in_mark, out_mark);
    return adapter_work_check(j->e, j->c->workload, err);
}

static void put_requests(struct vt_buf *b, const struct adapter_work *w)
{
    vt_buf_str(b, "id,arrival_us,input_tokens,output_tokens,prefix_group,"
                  "prefix_tokens,priority\n");
    for (size_t i = 0; i < w->w.n; i++) {
        const struct vt_work *q = &w->w.req[i];
        const struct vt_segment *s = &w->w.segment[q->first_segment];

        vt_buf_printf(b, "%s,", q->id);
        vt_buf_f64(b, (double)q->arrival_ns / 1e3);
        vt_buf_printf(b, ",%u,%u,", q->prompt_tokens, q->output_tokens);
        if (q->n_segments > 1)
            vt_buf_printf(b, "%016llx,%u,0\n", (unsigned long long)s->content,
                          s->tokens);
        else
            vt_buf_str(b, ",0,0\n");
    }
}

static int run_command(const struct adapter_job *j, const char *in, const char *out,
                       struct vt_err *err)
{
    struct vt_proc p = {.environment = j->c->environment, .output = VT_PROC_TO_FILE};
    struct vt_buf line = {0};
    int rc;

    /* The shell finds the paths in quotes, whatever is in them. */
    for (const char *at = j->a->kind; *at;) {
        if (strncmp(at, in_mark, strlen(in_mark)) == 0) {
            vt_buf_str(&line, "\"$1\"");
            at += strlen(in_mark);
        } else if (strncmp(at, out_mark, strlen(out_mark)) == 0) {
            vt_buf_str(&line, "\"$2\"");
            at += strlen(out_mark);
        } else {
            vt_buf_char(&line, *at++);
        }
    }
    vt_proc_arg_pair(&p, "/bin/sh", "-c");
    vt_proc_arg_pair(&p, line.failed ? "exit 1" : line.data, j->a->name);
    vt_proc_arg_pair(&p, in, out);
    rc = vt_proc_run(&p, 0, err);
    vt_proc_stop(&p);
    vt_buf_free(&line);
    return rc;
}

static size_t find_request(const struct adapter_work *w, const char *id)
{
    static const char head[] = "request-";
    uint64_t i;

    if (strncmp(id, head, strlen(head)) == 0 &&
        vt_parse_u64(id + strlen(head), strlen(id) - strlen(head), &i) && i < w->w.n)
        return (size_t)i;
    return w->w.n;
}

/* id,ttft_ms,e2e_ms and itl_ms if it likes; rows without a number are passed over. */
static int read_results(const char *path, const struct adapter_work *w,
                        struct gather *g, struct vt_err *err)
{
    struct sheet csv;
    int rc = sheet_open(&csv, path, err);

    while (sheet_next(&csv, &rc, err)) {
        size_t i = find_request(w, sheet_text(&csv, "id"));
        struct gather_request r = {.ttft_ms = sheet_number(&csv, "ttft_ms"),
                                   .e2e_ms = sheet_number(&csv, "e2e_ms"),
                                   .itl_ms = sheet_number(&csv, "itl_ms")};

        if (i == w->w.n || isnan(r.e2e_ms))
            continue;
        r.stage = w->stage[i];
        if (w->sent && w->sent[i].failed) {
            gather_leave_out(g, r.stage);
            continue;
        }
        r.output_tokens = w->w.req[i].output_tokens;
        rc = gather_add(g, &r, err);
    }
    sheet_end(&csv);
    return rc == VT_OK ? gather_finish(g, err) : rc;
}

int command_run(const struct adapter_job *j, const char *place, struct gather *g,
                struct vt_err *err)
{
    char in[ADAPTER_PATH], out[ADAPTER_PATH];
    struct vt_buf b = {0};
    struct adapter_work w;
    int rc;

    snprintf(in, sizeof(in), "%s/requests.csv", place);
    snprintf(out, sizeof(out), "%s/out.csv", place);
    rc = adapter_work_open(&w, j->e, j->c->workload, ARRIVALS_OPEN, err);
    if (rc == VT_OK) {
        put_requests(&b, &w);
        rc = vt_write_file_in(place, "requests.csv", &b, err);
    }
    if (rc == VT_OK)
        rc = run_command(j, in, out, err);
    if (rc == VT_OK)
        rc = read_results(out, &w, g, err);
    adapter_work_close(&w);
    vt_buf_free(&b);
    return rc;
}
