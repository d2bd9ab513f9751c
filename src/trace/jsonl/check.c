/* check.c - every line of a trace or a step log on trial, not only up to the first bad
 * one. */
#include "trace/jsonl/jsonl.h"

static void note_bad(struct vt_check *c, const char *message)
{
    c->bad++;
    if (c->tell)
        c->tell(c->user, message);
}

/* One line of a file: VT_EINPUT makes it a bad one. */
typedef int check_line(void *state, const struct vt_node *row, bool first,
                       struct vt_err *err);

static int check_lines(struct vt_check *c, const char *path, check_line *check,
                       void *state, struct vt_err *err)
{
    struct trace_reader in = {.name = path};
    bool first = true;
    int rc = vt_lines_open(&in.lines, path, err);

    if (rc != VT_OK)
        return rc;
    while ((rc = trace_reader_next(&in, err)) == VT_OK && in.line) {
        const struct vt_node *row;

        c->lines++;
        rc = trace_reader_json(&in, &row, err);
        if (rc == VT_OK)
            rc = check(state, row, first, err);
        first = false;
        if (rc == VT_EINPUT)
            note_bad(c, err->msg);
        else if (rc != VT_OK)
            break;
    }
    if (rc == VT_EINPUT) { /* damaged gzip: nothing comes after it */
        note_bad(c, err->msg);
        rc = VT_OK;
    }
    vt_arena_free(&in.scratch);
    vt_lines_close(in.lines);
    return rc;
}

/* ---- traces ----------------------------------------------------------- */

static int trace_line(void *state, const struct vt_node *row, bool first,
                      struct vt_err *err)
{
    struct vt_records *r = state;
    int rc = records_read_line(r, row, first, err);

    r->n = 0;
    vt_arena_reset(&r->arena);
    r->meta = (struct vt_meta){0};
    return rc;
}

int vt_check_trace(struct vt_check *c, const char *path, struct vt_err *err)
{
    struct vt_records r = {0};
    struct vt_workload w;
    int rc;

    c->lines = c->bad = 0;
    rc = check_lines(c, path, trace_line, &r, err);
    vt_records_free(&r);
    if (rc != VT_OK || c->bad > 0)
        return rc;
    rc = vt_trace_load(&w, path, err);
    if (rc == VT_OK)
        vt_workload_free(&w);
    if (rc == VT_EINPUT)
        note_bad(c, err->msg);
    return rc == VT_EINPUT ? VT_OK : rc;
}

/* ---- steps ------------------------------------------------------------ */

struct step_state {
    struct vt_steps s;
    struct vt_step_line last;
    bool any;
};

static int step_line(void *state, const struct vt_node *row, bool first,
                     struct vt_err *err)
{
    struct step_state *st = state;
    struct vt_step_line last = st->last, now;
    int rc = trace_read_step(&st->s, row, err);

    (void)first;
    if (rc != VT_OK)
        return rc;
    now = st->last = st->s.step[0];
    st->s.n = 0;
    vt_arena_reset(&st->s.arena);
    if (now.sched_end_ns < now.sched_ns || now.out_ns < now.sched_end_ns ||
        now.done_ns < now.out_ns)
        rc = vt_fail(err, VT_EINPUT,
                     "line %u: sched_ms, sched_end_ms, out_ms and done_ms do not run "
                     "forward",
                     row->line);
    else if (st->any && now.step <= last.step)
        rc = vt_fail(err, VT_EINPUT, "line %u: step %llu after step %llu", row->line,
                     (unsigned long long)now.step, (unsigned long long)last.step);
    else if (st->any && (now.sched_ns < last.sched_ns || now.out_ns < last.out_ns))
        rc = vt_fail(err, VT_EINPUT, "line %u: times go back behind the step before",
                     row->line);
    st->any = true;
    return rc;
}

int vt_check_steps(struct vt_check *c, const char *path, struct vt_err *err)
{
    struct step_state st = {0};
    int rc;

    c->lines = c->bad = 0;
    rc = check_lines(c, path, step_line, &st, err);
    vt_steps_free(&st.s);
    if (rc == VT_OK && c->lines == 0)
        note_bad(c, "there are no steps");
    return rc;
}

/* ---- kinds ------------------------------------------------------------ */

/* [time, [event, ...], ...], or what a subscriber wrote around it. */
static bool is_kv_batch(const struct vt_node *row)
{
    const struct vt_node *batch = row->kind == VT_LIST ? row : vt_get(row, "decoded");

    return batch && batch->kind == VT_LIST && batch->n >= 2 &&
           batch->u.item[1].kind == VT_LIST;
}

int vt_file_kind(const char *path, enum vt_file *out, struct vt_err *err)
{
    struct trace_reader in = {.name = path};
    const struct vt_node *row;
    struct vt_err ignored;
    int rc = vt_lines_open(&in.lines, path, err);

    *out = VT_FILE_OTHER;
    if (rc != VT_OK)
        return rc;
    rc = trace_reader_next(&in, err);
    if (rc == VT_OK && in.line && trace_reader_json(&in, &row, &ignored) == VT_OK) {
        if (vt_get(row, "sched_ms"))
            *out = VT_FILE_STEPS;
        else if (vt_get(row, "ts_ms") && vt_get(row, "scheduler"))
            *out = VT_FILE_STATS;
        else if (vt_get(row, "resourceSpans") || vt_get(row, "resourceMetrics") ||
                 vt_get(row, "resourceLogs") || is_kv_batch(row))
            *out = VT_FILE_SPANS;
        else if (vt_get(row, "input_length"))
            *out = VT_FILE_FOREIGN;
        else if (vt_get(row, "meta") || vt_get(row, "prompt_tokens"))
            *out = VT_FILE_TRACE;
    } else if (rc == VT_OK && in.line && strncmp(in.line, "TIMESTAMP,", 10) == 0) {
        *out = VT_FILE_FOREIGN;
    } else if (rc == VT_OK && in.line && in.line[0] == '[' &&
               vt_json_parse(&in.scratch, in.line, strlen(in.line), 1, &row,
                             &ignored) == VT_OK &&
               is_kv_batch(row)) {
        *out = VT_FILE_SPANS;
    }
    vt_arena_free(&in.scratch);
    vt_lines_close(in.lines);
    return rc;
}
