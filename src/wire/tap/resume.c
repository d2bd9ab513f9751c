/* resume.c - going on with a trace: what is in it already, and whether this engine is
 * the one that it tells of. */
#include "wire/tap/tap.h"

#include <math.h>

static const double MAX_MS = 1e12; /* of a time in a trace: 31 years */

/* ---- what is there ------------------------------------------------------ */

static int read_meta(struct tap_recorder *r, const struct vt_node *row,
                     struct vt_err *err)
{
    const struct vt_node *meta = vt_get(row, "meta");
    const char *source = NULL;
    double start = 0;

    if (!meta || vt_get_str(meta, "source", VT_REQUIRED, &source, NULL) != VT_OK ||
        strcmp(source, "tap") != 0 ||
        vt_get_f64(meta, "start_unix", VT_REQUIRED, 0, 9e9, &start, NULL) != VT_OK)
        return vt_fail(err, VT_EINPUT,
                       "line %u: not a recording: nothing can be appended", row->line);
    r->old.meta = meta;
    /* Written with six digits: doubles hold more. */
    r->old.start_unix_ns = llround(start * 1e6) * VT_US;
    return VT_OK;
}

/* When a request ended, in ms. */
static double end_of(const struct vt_node *row, double arrival_ms)
{
    const struct vt_node *gaps = vt_get(row, "itl_ms");
    double ms = 0, end = arrival_ms;

    if (vt_node_f64(vt_get(row, "ttft_ms"), &ms))
        end += ms;
    for (uint32_t i = 0; gaps && gaps->kind == VT_LIST && i < gaps->n; i++)
        if (vt_node_f64(&gaps->u.item[i], &ms))
            end += ms;
    return fmin(end, MAX_MS); /* whatever a file says */
}

static int read_row(struct tap_recorder *r, const struct vt_node *row,
                    struct vt_err *err)
{
    const char *id = NULL;
    double arrival_ms = 0, end_ms;
    uint64_t *times;
    int rc;

    if ((rc = vt_get_str(row, "id", VT_REQUIRED, &id, err)) ||
        (rc = vt_get_f64(row, "arrival_ms", VT_REQUIRED, 0, MAX_MS, &arrival_ms, err)))
        return rc;
    times = tap_id_count(r, id);
    if (!times)
        return vt_nomem(err);
    (*times)++;
    end_ms = end_of(row, arrival_ms);
    r->old.last_ms = end_ms > r->old.last_ms ? end_ms : r->old.last_ms;
    r->n_rows++;
    return VT_OK;
}

/* One line, unless it is the end of a file that was cut: that goes when the file is
 * opened. The first one stays in memory. */
static int read_line(struct tap_recorder *r, char *line, size_t len, bool complete,
                     uint32_t number, struct vt_err *err)
{
    struct vt_arena *a = r->old.meta ? &r->arena : &r->old.arena;
    const struct vt_node *row;
    int rc;

    if (!complete && vt_json_is_cut(line, len))
        return VT_OK;
    vt_arena_reset(a);
    rc = vt_json_parse(a, line, len, number, &row, err);
    if (rc != VT_OK)
        return rc;
    return r->old.meta ? read_row(r, row, err) : read_meta(r, row, err);
}

int tap_resume_read(struct tap_recorder *r, const char *path, struct vt_err *err)
{
    struct vt_lines *lines;
    bool complete;
    size_t len;
    char *line;
    int rc = vt_lines_open(&lines, path, err);

    if (rc != VT_OK)
        return rc;
    while ((rc = vt_lines_next(lines, &line, &len, &complete, err)) == VT_OK && line) {
        rc = read_line(r, line, len, complete, vt_lines_number(lines), err);
        if (rc != VT_OK) {
            rc = vt_within(err, rc, "%s", path);
            break;
        }
    }
    if (rc == VT_EINPUT && vt_lines_cut(lines)) /* in the middle of a line */
        rc = VT_OK;
    vt_lines_close(lines);
    return rc;
}

/* ---- the same engine? --------------------------------------------------- */

/* What is no setting, or differs from run to run. */
static bool is_passing(const char *key)
{
    return strcmp(key, "start_unix") == 0 || strcmp(key, "engines") == 0 ||
           strcmp(key, "ready_response_hex") == 0;
}

/* A meta line holds texts and whole numbers. */
static void put_value(struct vt_buf *b, const struct vt_node *n)
{
    if (!n)
        vt_buf_str(b, "nothing");
    else if (n->kind == VT_STR)
        vt_buf_printf(b, "'%s'", n->u.str);
    else if (n->kind == VT_INT)
        vt_buf_i64(b, n->u.integer);
    else
        vt_buf_str(b, "something else");
}

/* Whether all that `some` says is what `others` say. */
static int compare_values(const struct vt_node *some, const struct vt_node *others,
                          bool some_is_old, struct vt_err *err)
{
    struct vt_buf a = {0}, b = {0};
    int rc = VT_OK;

    for (uint32_t i = 0; i < some->n && rc == VT_OK; i++) {
        const char *key = some->u.item[i].key;

        if (is_passing(key))
            continue;
        vt_buf_clear(&a);
        vt_buf_clear(&b);
        put_value(&a, &some->u.item[i]);
        put_value(&b, vt_get(others, key));
        if (a.failed || b.failed)
            rc = vt_nomem(err);
        else if (strcmp(a.data, b.data) != 0)
            rc = vt_fail(err, VT_EINPUT,
                         "it was recorded with %s %.80s, not %.80s; nothing was "
                         "recorded",
                         key, some_is_old ? a.data : b.data,
                         some_is_old ? b.data : a.data);
    }
    vt_buf_free(&a);
    vt_buf_free(&b);
    return rc;
}

int tap_resume_check(struct tap_recorder *r, struct vt_err *err)
{
    const struct vt_node *line = NULL, *now;
    struct vt_buf b = {0};
    int rc = VT_OK;

    vt_arena_reset(&r->arena);
    tap_meta_write(&b, r);
    rc = b.failed ? vt_nomem(err)
                  : vt_json_parse(&r->arena, b.data, b.len, 1, &line, err);
    now = vt_get(line, "meta");
    if (rc == VT_OK && !(rc = compare_values(r->old.meta, now, true, err)))
        rc = compare_values(now, r->old.meta, false, err);
    vt_buf_free(&b);
    return vt_within(err, rc, "%s", r->config->trace_out);
}

/* Arrivals count from the first recorder's start, by the clock that both could read. If
 * that was set back meanwhile, no request comes before the end of those that are there.
 */
struct tap_stamp tap_resume_zero(const struct tap_recorder *r, struct tap_stamp now)
{
    vt_ns since = now.unix_ns - r->old.start_unix_ns;

    if (since < vt_ns_from_ms(r->old.last_ms))
        since = vt_ns_from_ms(r->old.last_ms);
    return (struct tap_stamp){now.mono - since, r->old.start_unix_ns};
}
