/* wirelog.c - reading a log of messages. */
#include "wire/tap/wirelog.h"

struct wirelog {
    struct vt_lines *lines;
    struct vt_arena arena; /* of the entry last returned */
    struct wirelog_entry entry;
};

/* ---- one line --------------------------------------------------------- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int frame_read(struct mp_span *frame, struct vt_arena *a,
                      const struct vt_node *text, struct vt_err *err)
{
    uint8_t *bytes;

    if (text->kind != VT_STR || text->n % 2 != 0)
        return vt_fail(err, VT_EINPUT, "not hex text");
    bytes = vt_arena_alloc(a, text->n / 2);
    if (!bytes)
        return vt_nomem(err);
    for (size_t i = 0; i < text->n / 2; i++) {
        int high = hex_digit(text->u.str[2 * i]);
        int low = hex_digit(text->u.str[2 * i + 1]);

        if (high < 0 || low < 0)
            return vt_fail(err, VT_EINPUT, "not hex text");
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    *frame = (struct mp_span){bytes, text->n / 2};
    return VT_OK;
}

static int frames_read(struct wirelog_entry *e, struct vt_arena *a,
                       const struct vt_node *line, struct vt_err *err)
{
    const struct vt_node *list = vt_get(line, "frames_hex");
    int rc = VT_OK;

    if (!list || list->kind != VT_LIST || list->n == 0)
        return vt_fail(err, VT_EINPUT, "line %u: no list 'frames_hex'", line->line);
    e->frame = vt_arena_alloc(a, list->n * sizeof(*e->frame));
    if (!e->frame)
        return vt_nomem(err);
    e->n_frames = list->n;
    for (uint32_t i = 0; i < list->n && rc == VT_OK; i++)
        rc = vt_within(err, frame_read(&e->frame[i], a, &list->u.item[i], err),
                       "line %u: frame %u", line->line, i);
    return rc;
}

/* sock, dir and kind say what the frames are; all else may be missing. */
int wirelog_entry_read(struct wirelog_entry *e, struct vt_arena *a, const char *line,
                       size_t len, uint32_t line_no, struct vt_err *err)
{
    const struct vt_node *root;
    int64_t seq = 0;
    int rc = vt_json_parse(a, line, len, line_no, &root, err);

    *e = (struct wirelog_entry){.frontend = "", .phase = "", .client = -1};
    if (rc != VT_OK)
        return rc;
    if (root->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "line %u: not an object", line_no);
    if ((rc = vt_get_str(root, "sock", VT_REQUIRED, &e->sock, err)) ||
        (rc = vt_get_str(root, "dir", VT_REQUIRED, &e->dir, err)) ||
        (rc = vt_get_str(root, "kind", VT_REQUIRED, &e->kind, err)) ||
        (rc = vt_get_str(root, "frontend", VT_OPTIONAL, &e->frontend, err)) ||
        (rc = vt_get_str(root, "phase", VT_OPTIONAL, &e->phase, err)) ||
        (rc = vt_get_str(root, "identity", VT_OPTIONAL, &e->identity, err)) ||
        (rc = vt_get_i64(root, "seq", VT_OPTIONAL, 0, INT64_MAX, &seq, err)) ||
        (rc = vt_get_i64(root, "t_mono_ns", VT_OPTIONAL, 0, INT64_MAX, &e->t_mono_ns,
                         err)) ||
        (rc = vt_get_f64(root, "t_unix", VT_OPTIONAL, 0, 1e18, &e->t_unix, err)) ||
        (rc = vt_get_i64(root, "client", VT_OPTIONAL, -1, UINT32_MAX, &e->client, err)))
        return rc;
    e->seq = (uint64_t)seq;
    return frames_read(e, a, root, err);
}

/* ---- a file ----------------------------------------------------------- */

int wirelog_open(struct wirelog **out, const char *path, struct vt_err *err)
{
    struct wirelog *log = calloc(1, sizeof(*log));
    int rc;

    *out = NULL;
    if (!log)
        return vt_nomem(err);
    rc = vt_lines_open(&log->lines, path, err);
    if (rc != VT_OK) {
        free(log);
        return rc;
    }
    *out = log;
    return VT_OK;
}

int wirelog_next(struct wirelog *log, const struct wirelog_entry **e,
                 struct vt_err *err)
{
    char *line;
    size_t len;
    bool complete;
    int rc = vt_lines_next(log->lines, &line, &len, &complete, err);
    uint32_t number = vt_lines_number(log->lines);

    *e = NULL;
    if (rc != VT_OK || !line)
        return rc;
    vt_arena_reset(&log->arena);
    rc = wirelog_entry_read(&log->entry, &log->arena, line, len, number, err);
    if (rc == VT_EINPUT && !complete)
        rc = vt_fail(err, VT_EINPUT,
                     "line %u: the file ends in the middle of this line", number);
    if (rc == VT_OK)
        *e = &log->entry;
    return vt_within(err, rc, "%s", vt_lines_name(log->lines));
}

void wirelog_close(struct wirelog *log)
{
    if (!log)
        return;
    vt_lines_close(log->lines);
    vt_arena_free(&log->arena);
    free(log);
}
