/* wirelog.c - a log of messages: reading it, and a message as one line of it, its bytes
 * and what they mean. */
#include "wire/tap/tap.h"

struct wirelog {
    struct vt_lines *lines;
    struct vt_arena arena; /* of the entry last returned */
    struct wirelog_entry entry;
};

/* ---- one line --------------------------------------------------------- */

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
        int high = vt_hex_value(text->u.str[2 * i]);
        int low = vt_hex_value(text->u.str[2 * i + 1]);

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

/* ---- writing ---------------------------------------------------------- */

enum {
    SHOWN_MAX = 128,       /* bytes of a value that cannot be decoded */
    DECODED_MAX = 8 << 20, /* of one that is: its line must stay readable */
};

/* ---- kinds ------------------------------------------------------------ */

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* By what an EngineCoreOutputs holds: outputs at 1, stats at 2, a utility's at 4. */
static void output_kind(char out[64], struct mp_span payload)
{
    bool has_outputs = false, has_stats = false, has_utility = false;
    struct mp_in in;
    uint32_t n;

    mp_in_init(&in, payload.at, payload.len);
    n = mp_peek(&in) == MP_ARRAY ? mp_array(&in) : 0;
    for (uint32_t i = 0; i < n && i < 5 && !in.bad; i++) {
        struct mp_span value = mp_raw(&in);

        if (i == 1) /* an empty array is one byte */
            has_outputs = !mp_is_nil(value) && value.len > 1;
        else if (i == 2)
            has_stats = !mp_is_nil(value);
        else if (i == 4)
            has_utility = !mp_is_nil(value);
    }
    snprintf(out, 64, "OUTPUTS%s",
             has_utility   ? "/UTILITY"
             : has_outputs ? "/REQ"
             : has_stats   ? "/STATS"
                           : "");
}

static void find_kind(char out[64], const struct wirelog_entry *e)
{
    static const char *const types[] = {"ADD", "ABORT", "START_DP_WAVE", "UTILITY"};
    struct mp_span first = e->n_frames > 0 ? e->frame[0] : (struct mp_span){0};
    struct mp_span last =
        e->n_frames > 0 ? e->frame[e->n_frames - 1] : (struct mp_span){0};
    struct mp_span status = mp_text(mp_get(last, "status"));

    if (status.len >= 32)
        status.at = NULL;
    if (e->kind)
        snprintf(out, 64, "%s", e->kind);
    else if (is(e->sock, "handshake") && is(e->dir, "E>F"))
        snprintf(out, 64, "%.*s", status.at ? (int)status.len : 1,
                 status.at ? (const char *)status.at : "?");
    else if (is(e->sock, "handshake"))
        snprintf(out, 64, "INIT");
    else if (is(e->sock, "input") && is(e->dir, "E>F"))
        snprintf(out, 64, "REGISTER");
    else if (is(e->sock, "input") && first.len == 1 && first.at[0] < VT_COUNT(types))
        snprintf(out, 64, "%s", types[first.at[0]]);
    else if (is(e->sock, "input") && first.len > 0)
        snprintf(out, 64, "TYPE:%02x", first.at[0]);
    else if (is(e->sock, "input"))
        snprintf(out, 64, "TYPE:");
    else if (mp_span_is(first, WIRE_DEAD))
        snprintf(out, 64, WIRE_DEAD);
    else
        output_kind(out, first);
}

/* ---- what it means ---------------------------------------------------- */

static void put_undecodable(struct vt_buf *b, const char *why, struct mp_span value)
{
    size_t shown = value.len < SHOWN_MAX ? value.len : SHOWN_MAX;

    vt_buf_printf(b, "{\"__undecodable__\":\"%s\",\"hex\":\"", why);
    vt_buf_hex(b, value.at, shown);
    vt_buf_str(b, "\"}");
}

/* What readers of the log would refuse (keys that repeat, deep nesting) is not shown:
 * the frames say it all. */
static void put_value(struct vt_buf *b, struct mp_span value, struct vt_arena *scratch)
{
    const struct vt_node *ignored;
    size_t from = b->len;

    if (value.len > DECODED_MAX) {
        put_undecodable(b, "too long to show", value);
    } else if (!mp_json(b, value) && !b->failed) {
        put_undecodable(b, "not MessagePack", value);
    } else if (!b->failed) {
        vt_arena_reset(scratch);
        if (vt_json_parse(scratch, b->data + from, b->len - from, 1, &ignored, NULL) ==
            VT_OK)
            return;
        b->len = from;
        put_undecodable(b, "not JSON", value);
    }
}

/* The payload, and how long the buffers behind it are. */
static void put_payload(struct vt_jw *w, const struct wirelog_entry *e, uint32_t at,
                        struct vt_arena *scratch)
{
    vt_jw_map(w, "decoded");
    vt_jw_key(w, "payload");
    if (at < e->n_frames)
        put_value(w->b, e->frame[at], scratch);
    else
        vt_buf_str(w->b, "null");
    vt_jw_list(w, "aux");
    for (uint32_t i = at + 1; i < e->n_frames; i++)
        vt_jw_u64(w, NULL, e->frame[i].len);
    vt_jw_end(w);
    vt_jw_end(w);
}

/* ---- the line --------------------------------------------------------- */

void wirelog_write(struct vt_buf *b, const struct wirelog_entry *e,
                   struct vt_arena *scratch)
{
    char kind[64];
    struct vt_jw w;

    find_kind(kind, e);
    vt_jw_init(&w, b, NULL);
    vt_jw_map(&w, NULL);
    vt_jw_u64(&w, "seq", e->seq);
    vt_jw_i64(&w, "t_mono_ns", e->t_mono_ns);
    vt_jw_printf(&w, "t_unix", "%.6f", e->t_unix);
    if (e->frontend && e->frontend[0])
        vt_jw_str(&w, "frontend", e->frontend);
    vt_jw_str(&w, "phase", e->phase ? e->phase : "");
    vt_jw_str(&w, "sock", e->sock);
    vt_jw_str(&w, "dir", e->dir);
    vt_jw_str(&w, "kind", kind);
    vt_jw_u64(&w, "nframes", e->n_frames);
    vt_jw_list(&w, "frame_sizes");
    for (uint32_t i = 0; i < e->n_frames; i++)
        vt_jw_u64(&w, NULL, e->frame[i].len);
    vt_jw_end(&w);
    vt_jw_list(&w, "frames_hex");
    for (uint32_t i = 0; i < e->n_frames; i++) {
        vt_jw_key(&w, NULL);
        vt_buf_char(b, '"');
        vt_buf_hex(b, e->frame[i].at, e->frame[i].len);
        vt_buf_char(b, '"');
    }
    vt_jw_end(&w);
    if (e->n_frames == 0 || mp_span_is(e->frame[0], WIRE_DEAD)) {
        vt_jw_null(&w, "decoded");
    } else if (is(e->sock, "output")) {
        put_payload(&w, e, 0, scratch);
    } else if (is(e->sock, "input") && is(e->dir, "F>E")) {
        put_payload(&w, e, 1, scratch);
    } else {
        vt_jw_key(&w, "decoded");
        put_value(b, e->frame[e->n_frames - 1], scratch);
    }
    if (e->identity)
        vt_jw_str(&w, "identity", e->identity);
    if (e->client >= 0)
        vt_jw_i64(&w, "client", e->client);
    vt_jw_end(&w);
    vt_buf_char(b, '\n');
}
