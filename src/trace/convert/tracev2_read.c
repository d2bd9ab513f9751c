/* tracev2_read.c - BLIS TraceV2 read. Columns are found by name, so that those
 * that later versions add do no harm. */
#include <unistd.h>

#include "trace/convert/tracev2.h"

enum column {
    ID,
    SESSION,
    ROUND,
    GROUP,
    PREFIX,
    INPUT,
    OUTPUT,
    SERVER_INPUT,
    ARRIVAL,
    SENT,
    FIRST,
    LAST,
    CHUNKS,
    STATUS,
    FINISH,
    PRIORITY,
    THINK,
    N_COLUMNS
};

static const char *const column_name[N_COLUMNS] = {
    [ID] = "request_id",
    [SESSION] = "session_id",
    [ROUND] = "round_index",
    [GROUP] = "prefix_group",
    [PREFIX] = "prefix_length",
    [INPUT] = "input_tokens",
    [OUTPUT] = "output_tokens",
    [SERVER_INPUT] = "server_input_tokens",
    [ARRIVAL] = "arrival_time_us",
    [SENT] = "send_time_us",
    [FIRST] = "first_chunk_time_us",
    [LAST] = "last_chunk_time_us",
    [CHUNKS] = "num_chunks",
    [STATUS] = "status",
    [FINISH] = "finish_reason",
    [PRIORITY] = "vllm_priority",
    [THINK] = "think_time_us",
};

enum { MAX_COLUMNS = 64 };

struct layout { /* of the file being read */
    struct vt_records *r;
    int at[N_COLUMNS]; /* -1: the file has no such column */
    int n;
};

struct row {
    const char *text[N_COLUMNS]; /* "" where absent */
    int64_t v[N_COLUMNS];        /* numbers; 0 where absent */
};

/* ---- columns ---------------------------------------------------------- */

static int read_header(struct layout *l, char *line, struct vt_err *err)
{
    char *name[MAX_COLUMNS];

    l->n = vt_csv_split(line, name, MAX_COLUMNS);
    if (l->n < 0)
        return vt_fail(err, VT_EINPUT,
                       "the header is no CSV line of at most %d columns", MAX_COLUMNS);
    for (int c = 0; c < N_COLUMNS; c++) {
        l->at[c] = -1;
        for (int i = 0; i < l->n; i++)
            if (strcmp(name[i], column_name[c]) == 0)
                l->at[c] = i;
        if (l->at[c] < 0 && (c == ID || c == INPUT || c == OUTPUT || c == ARRIVAL))
            return vt_fail(err, VT_EINPUT, "column '%s' is missing", column_name[c]);
    }
    return VT_OK;
}

static int split_row(const struct layout *l, char *line, struct row *row,
                     struct vt_err *err)
{
    static const bool is_text[N_COLUMNS] = {[ID] = true,
                                            [SESSION] = true,
                                            [GROUP] = true,
                                            [STATUS] = true,
                                            [FINISH] = true};
    static const int sizes[] = {ROUND, PREFIX, INPUT, OUTPUT, SERVER_INPUT};
    char *field[MAX_COLUMNS];

    if (vt_csv_split(line, field, l->n) != l->n)
        return vt_fail(err, VT_EINPUT, "a row needs %d columns, as the header has",
                       l->n);
    for (int c = 0; c < N_COLUMNS; c++) {
        double v = 0;

        row->text[c] = l->at[c] < 0 ? "" : field[l->at[c]];
        row->v[c] = 0;
        if (is_text[c] || row->text[c][0] == '\0')
            continue;
        if (!vt_parse_f64(row->text[c], strlen(row->text[c]), &v) || v < -2e9 ||
            v > TRACE_MAX_MS * 1e3)
            return vt_fail(err, VT_EINPUT, "column '%s': '%.40s' is not a number",
                           column_name[c], row->text[c]);
        row->v[c] = (int64_t)v;
    }
    for (size_t i = 0; i < VT_COUNT(sizes); i++)
        if (row->v[sizes[i]] < 0 || row->v[sizes[i]] > TRACE_MAX_TOKENS / 2)
            return vt_fail(err, VT_EINPUT, "column '%s': %lld is out of range",
                           column_name[sizes[i]], (long long)row->v[sizes[i]]);
    if (row->v[ARRIVAL] < 0 || row->v[SENT] < 0)
        return vt_fail(err, VT_EINPUT, "a time is before 0");
    if (row->text[ID][0] == '\0')
        return vt_fail(err, VT_EINPUT, "an id is empty");
    return VT_OK;
}

/* ---- rows ------------------------------------------------------------- */

static int copy_field(struct vt_records *r, const char *text, const char **out,
                      struct vt_err *err)
{
    return vt_arena_text(&r->arena, text[0] ? text : NULL, out, err);
}

static int add_segments(struct vt_records *r, struct vt_record *q,
                        const struct row *row, struct vt_err *err)
{
    uint32_t prefix = row->text[GROUP][0] != '\0' ? (uint32_t)row->v[PREFIX] : 0;
    struct vt_record_segment *s = vt_arena_alloc(&r->arena, 2 * sizeof(*s));
    struct vt_buf own = {0};
    int rc = VT_OK;

    if (!s)
        return vt_nomem(err);
    if (prefix > 0) {
        s[q->n_segments].tokens = prefix;
        rc = copy_field(r, row->text[GROUP], &s[q->n_segments++].name, err);
    }
    vt_buf_printf(&own, "prompt:%s", q->id);
    if (rc == VT_OK && q->prompt_tokens > prefix) {
        s[q->n_segments].tokens = q->prompt_tokens - prefix;
        rc = own.failed ? vt_nomem(err)
                        : copy_field(r, own.data, &s[q->n_segments++].name, err);
    }
    vt_buf_free(&own);
    q->segment = s;
    return rc;
}

static int add_times(struct vt_records *r, struct vt_record *q, const struct row *row,
                     struct vt_err *err)
{
    int64_t at = row->v[SENT] > 0 ? row->v[SENT] : row->v[ARRIVAL];
    int64_t chunks =
        row->v[CHUNKS] < q->output_tokens ? row->v[CHUNKS] : q->output_tokens;

    q->arrival_ns = at * VT_US;
    if (row->v[FIRST] <= 0)
        return VT_OK;
    if (row->v[FIRST] < at || row->v[LAST] < row->v[FIRST])
        return vt_fail(err, VT_EINPUT, "chunks came before the request was sent");
    q->ttft_ns = (row->v[FIRST] - at) * VT_US;
    if (chunks < 2)
        return VT_OK;
    return convert_mean(r, q, (row->v[LAST] - row->v[FIRST]) * VT_US / (chunks - 1),
                        (uint32_t)(chunks - 1), err);
}

static int add_row(struct vt_records *r, const struct row *row, uint32_t line,
                   struct vt_err *err)
{
    bool grouped = row->text[GROUP][0] != '\0';
    int64_t prompt = grouped                    ? row->v[PREFIX] + row->v[INPUT]
                     : row->v[SERVER_INPUT] > 0 ? row->v[SERVER_INPUT]
                                                : row->v[INPUT];
    struct vt_record *q;
    int rc;

    if (row->v[OUTPUT] == 0 || prompt == 0 ||
        (row->text[STATUS][0] != '\0' && strcmp(row->text[STATUS], "ok") != 0)) {
        records_skip(r, 0);
        return VT_OK;
    }
    rc = records_add(r, &q, err);
    if (rc != VT_OK)
        return rc;
    q->prompt_tokens = (uint32_t)prompt;
    q->line = line;
    q->output_tokens = (uint32_t)row->v[OUTPUT];
    q->turn = (uint32_t)row->v[ROUND];
    q->think_ns = row->v[THINK] > 0 ? row->v[THINK] * VT_US : 0;
    q->priority = row->v[PRIORITY] > INT32_MAX ? INT32_MAX : (int32_t)row->v[PRIORITY];
    if ((rc = copy_field(r, row->text[ID], &q->id, err)) ||
        (rc = copy_field(r, row->text[SESSION], &q->session, err)) ||
        (rc = copy_field(r, row->text[FINISH], &q->finish_reason, err)) ||
        (rc = add_segments(r, q, row, err)))
        return rc;
    return add_times(r, q, row, err);
}

static int read_row(void *user, struct trace_reader *in, struct vt_err *err)
{
    const struct layout *l = user;
    struct row row;
    int rc = split_row(l, in->line, &row, err);

    return rc ? rc : add_row(l->r, &row, in->number, err);
}

/* ---- files ------------------------------------------------------------ */

int convert_tracev2_lines(struct vt_records *r, struct vt_lines *csv,
                          struct vt_lines *itl, struct vt_err *err)
{
    struct trace_reader in = {.lines = csv, .name = vt_lines_name(csv)};
    struct layout l = {.r = r};
    int rc;

    if ((rc = records_init(r, in.name, err)) || (rc = trace_reader_next(&in, err)))
        goto out;
    if (!in.line) {
        rc = vt_fail(err, VT_EINPUT, "%s: the file is empty", in.name);
        goto out;
    }
    rc = vt_within(err, read_header(&l, in.line, err), "%s: line %u", in.name,
                   in.number);
    if (rc || (rc = trace_reader_lines(&in, read_row, &l, err)) ||
        (itl && (rc = tracev2_read_chunks(r, itl, err))))
        goto out;
    rc = vt_within(err, records_finish(r, err), "%s", in.name);
out:
    if (rc != VT_OK)
        vt_records_free(r);
    return rc;
}

static int read_limits(struct vt_records *r, const struct vt_node *server,
                       struct vt_err *err)
{
    struct vt_meta *m = &r->meta;
    const struct {
        const char *key;
        uint32_t *out;
    } limit[] = {
        {"tensor_parallel", &m->tp},
        {"max_num_seqs", &m->max_num_seqs},
        {"block_size", &m->block_size},
        {"max_model_len", &m->max_model_len},
    };
    int rc = jsonl_copy_str(&r->arena, server, "model", &m->model, err);

    for (size_t i = 0; i < VT_COUNT(limit) && rc == VT_OK; i++)
        rc = jsonl_get_u32(server, limit[i].key, 0, INT32_MAX, limit[i].out, err);
    return rc;
}

/* Chunk times and the header need not be there. */
int convert_read_tracev2(struct vt_records *r, const char *path, struct vt_err *err)
{
    struct vt_lines *csv = NULL, *itl = NULL;
    const struct vt_node *root;
    struct vt_arena a = {0};
    struct vt_buf name = {0};
    int rc;

    if ((rc = tracev2_path(path, ".csv", &name, err)) ||
        (rc = vt_lines_open(&csv, name.data, err)) ||
        (rc = tracev2_path(path, ".itl.csv", &name, err)) ||
        (access(name.data, F_OK) == 0 && (rc = vt_lines_open(&itl, name.data, err))) ||
        (rc = convert_tracev2_lines(r, csv, itl, err)) ||
        (rc = tracev2_path(path, ".yaml", &name, err)) || access(name.data, F_OK) != 0)
        goto out;
    rc = vt_tree_load(&a, name.data, &root, err);
    if (rc == VT_OK)
        rc = vt_within(err, read_limits(r, vt_get(root, "server"), err), "%s",
                       name.data);
out:
    if (rc != VT_OK)
        vt_records_free(r);
    vt_lines_close(csv);
    vt_lines_close(itl);
    vt_arena_free(&a);
    vt_buf_free(&name);
    return rc;
}
