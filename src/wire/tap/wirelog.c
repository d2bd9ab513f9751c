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

static bool hex_read(uint8_t *out, const char *text, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
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
    if (!hex_read(bytes, text->u.str, text->n / 2))
        return vt_fail(err, VT_EINPUT, "not hex text");
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
static int names_read(struct wirelog_entry *e, const struct vt_node *line,
                      struct vt_err *err)
{
    int rc = vt_get_str(line, "sock", VT_REQUIRED, &e->sock, err);

    if (rc == VT_OK)
        rc = vt_get_str(line, "dir", VT_REQUIRED, &e->dir, err);
    if (rc == VT_OK)
        rc = vt_get_str(line, "kind", VT_REQUIRED, &e->kind, err);
    if (rc == VT_OK)
        rc = vt_get_str(line, "frontend", VT_OPTIONAL, &e->frontend, err);
    if (rc == VT_OK)
        rc = vt_get_str(line, "phase", VT_OPTIONAL, &e->phase, err);
    if (rc == VT_OK)
        rc = vt_get_str(line, "identity", VT_OPTIONAL, &e->identity, err);
    return rc;
}

static int numbers_read(struct wirelog_entry *e, const struct vt_node *line,
                        struct vt_err *err)
{
    int64_t seq = 0;
    int rc = vt_get_i64(line, "seq", VT_OPTIONAL, 0, INT64_MAX, &seq, err);

    e->seq = (uint64_t)seq;
    if (rc == VT_OK)
        rc = vt_get_i64(line, "t_mono_ns", VT_OPTIONAL, 0, INT64_MAX, &e->t_mono_ns,
                        err);
    if (rc == VT_OK)
        rc = vt_get_f64(line, "t_unix", VT_OPTIONAL, 0, 1e18, &e->t_unix, err);
    if (rc == VT_OK)
        rc = vt_get_i64(line, "client", VT_OPTIONAL, -1, UINT32_MAX, &e->client, err);
    return rc;
}

int wirelog_entry_read(struct wirelog_entry *e, struct vt_arena *a, const char *line,
                       size_t len, uint32_t line_no, struct vt_err *err)
{
    const struct vt_node *root;
    int rc = vt_json_parse(a, line, len, line_no, &root, err);

    *e = (struct wirelog_entry){.frontend = "", .phase = "", .client = -1};
    if (rc == VT_OK && root->kind != VT_MAP)
        rc = vt_fail(err, VT_EINPUT, "line %u: not an object", line_no);
    if (rc == VT_OK)
        rc = names_read(e, root, err);
    if (rc == VT_OK)
        rc = numbers_read(e, root, err);
    if (rc == VT_OK)
        rc = frames_read(e, a, root, err);
    return rc;
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
