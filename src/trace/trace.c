/* trace.c - what all formats share. */
#include "trace/internal.h"

/* ---- content ---------------------------------------------------------- */

/* One seed for each kind of name keeps kinds apart. */
enum { SEED_NAMED = 1, SEED_OUTPUT, SEED_PROMPT, SEED_PREFIX, SEED_BLOCK };

/* "#" and 16 hex digits, as vt_trace_write() names content: the number itself. */
static bool parse_exact(const char *name, size_t len, uint64_t *out)
{
    uint64_t v = 0;

    if (len != 17 || name[0] != '#')
        return false;
    for (size_t i = 1; i < len; i++) {
        char c = name[i];

        if (c >= '0' && c <= '9')
            v = v << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            v = v << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *out = v;
    return true;
}

uint64_t vt_content_output(const char *id, size_t len)
{
    return vt_hash_bytes(id, len, SEED_OUTPUT);
}

uint64_t vt_content_named(const char *name, size_t len)
{
    uint64_t exact;

    if (len >= 4 && memcmp(name, "out:", 4) == 0)
        return vt_content_output(name + 4, len - 4);
    if (parse_exact(name, len, &exact))
        return exact;
    return vt_hash_bytes(name, len, SEED_NAMED);
}

uint64_t trace_content_own(const char *id, size_t len)
{
    return vt_hash_bytes(id, len, SEED_PROMPT);
}

uint64_t trace_content_prefix(const char *group, size_t len)
{
    return vt_hash_bytes(group, len, SEED_PREFIX);
}

uint64_t trace_content_block(uint64_t hash)
{
    return vt_hash2(SEED_BLOCK, hash);
}

/* ---- workloads -------------------------------------------------------- */

void vt_workload_free(struct vt_workload *w)
{
    vt_arena_free(&w->arena);
    vt_arena_free(&w->names);
    free(w->req);
    free(w->segment);
    free(w->measured);
    free(w->gap);
    free(w->gap_tokens);
}

static int tokens_by_time(const void *a, const void *b)
{
    const struct vt_token *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->request < y->request ? -1 : x->request > y->request;
}

int vt_workload_tokens(const struct vt_workload *w, struct vt_token **out, size_t *n,
                       struct vt_err *err)
{
    struct vt_token *token = calloc(w->n + w->n_gaps + 1, sizeof(*token));

    *out = token;
    *n = 0;
    if (!token)
        return vt_nomem(err);
    for (size_t i = 0; i < w->n; i++) {
        const struct vt_measured *m = &w->measured[i];
        struct vt_token t = {.at = w->req[i].arrival_ns + m->ttft_ns,
                             .request = (uint32_t)i,
                             .chunk = 1};

        token[(*n)++] = t;
        for (uint32_t g = 0; g < m->n_gaps; g++) {
            t.at += w->gap[m->first_gap + g];
            t.chunk = w->gap_tokens ? w->gap_tokens[m->first_gap + g] : 1;
            t.index += t.chunk;
            token[(*n)++] = t;
        }
    }
    qsort(token, *n, sizeof(*token), tokens_by_time);
    return VT_OK;
}

/* ---- files that were cut ---------------------------------------------- */

static _Thread_local struct {
    void (*tell)(void *user, const char *line);
    void *user;
} cut_files;

void vt_take_cut_files(void (*tell)(void *user, const char *line), void *user)
{
    cut_files.tell = tell;
    cut_files.user = user;
}

/* Whether reading on, which gave `rc`, has met the end of a file that was cut: in the
 * middle of a line, or of its gzip stream. */
static bool is_cut_here(const struct trace_reader *r, int rc)
{
    if (rc != VT_OK || !r->line)
        return (rc == VT_OK || rc == VT_EINPUT) && vt_lines_cut(r->lines);
    return !r->complete && vt_json_is_cut(r->line, r->len);
}

/* The end of such a file is left out, or refused. */
static int end_cut_file(struct trace_reader *r, int rc, struct vt_err *err)
{
    bool in_line = rc != VT_OK || r->line;
    uint32_t whole = vt_lines_number(r->lines) - (r->line != NULL);
    struct vt_err said;

    if (!cut_files.tell || whole == 0) {
        if (in_line)
            return rc; /* it says so itself, or the line's reader will */
        return vt_fail(err, VT_EINPUT, "%s: the gzip stream has no end",
                       vt_lines_name(r->lines));
    }
    r->line = NULL;
    if (in_line)
        vt_fail(&said, VT_EINPUT,
                "%s: line %u is cut and left out; %u before it %s read",
                vt_lines_name(r->lines), whole + 1, whole, whole == 1 ? "is" : "are");
    else
        vt_fail(&said, VT_EINPUT,
                "%s: the gzip stream has no end: its writer was stopped, and lines "
                "behind the %u that are read may be missing",
                vt_lines_name(r->lines), whole);
    if (!r->to || !r->to->told_cut)
        cut_files.tell(cut_files.user, said.msg);
    if (r->to)
        r->to->told_cut = true;
    return VT_OK;
}

/* ---- lines ------------------------------------------------------------ */

int trace_reader_next(struct trace_reader *r, struct vt_err *err)
{
    int rc = vt_stopped(err);

    if (rc != VT_OK)
        return rc;
    do {
        rc = vt_lines_next(r->lines, &r->line, &r->len, &r->complete, err);

        if (is_cut_here(r, rc))
            rc = end_cut_file(r, rc, err);
        if (rc != VT_OK)
            return rc;
        r->number = vt_lines_number(r->lines);
        if (r->line && r->number == 1 && r->len >= 3 &&
            memcmp(r->line, "\xef\xbb\xbf", 3) == 0) { /* byte order mark */
            r->line += 3;
            r->len -= 3;
        }
    } while (r->line && strspn(r->line, " \t\r") == r->len);
    return VT_OK;
}

int trace_reader_value(struct trace_reader *r, const struct vt_node **out,
                       struct vt_err *err)
{
    int rc;

    vt_arena_reset(&r->scratch);
    rc = r->nulls ? vt_json_parse_report(&r->scratch, r->line, r->len, r->number,
                                         r->nulls, out, err)
                  : vt_json_parse(&r->scratch, r->line, r->len, r->number, out, err);
    if (rc == VT_EINPUT && !r->complete)
        return vt_fail(err, VT_EINPUT,
                       "line %u: the file ends in the middle of this line", r->number);
    return rc;
}

int trace_reader_json(struct trace_reader *r, const struct vt_node **out,
                      struct vt_err *err)
{
    int rc = trace_reader_value(r, out, err);

    if (rc == VT_OK && (*out)->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "line %u: not a JSON object", r->number);
    return rc;
}

static bool has_enough(const struct trace_reader *r)
{
    return r->to && trace_build_has_enough(r->to);
}

int trace_reader_rows(struct trace_reader *r, trace_row_reader *read, void *user,
                      struct vt_err *err)
{
    int rc = VT_OK;

    for (; rc == VT_OK && r->line && !has_enough(r); r->n_rows++) {
        const struct vt_node *row;

        if ((rc = trace_reader_json(r, &row, err)) || (rc = read(user, r, row, err)))
            rc = vt_within(err, rc, "%s", r->name);
        else
            rc = trace_reader_next(r, err);
    }
    vt_arena_free(&r->scratch);
    return rc;
}

int trace_reader_lines(struct trace_reader *r, trace_line_reader *read, void *user,
                       struct vt_err *err)
{
    int rc = VT_OK;

    while (!has_enough(r) && (rc = trace_reader_next(r, err)) == VT_OK && r->line) {
        rc = read(user, r, err);
        if (rc != VT_OK)
            return vt_within(err, rc, "%s: line %u", r->name, r->number);
    }
    return rc;
}

int trace_load(void *to, const char *path, trace_file_reader *read, struct vt_err *err)
{
    struct vt_lines *lines;
    int rc = vt_lines_open(&lines, path, err);

    if (rc != VT_OK)
        return rc;
    rc = read(to, lines, err);
    vt_lines_close(lines);
    return rc;
}

/* ---- order ------------------------------------------------------------ */

static int by_time(const void *pa, const void *pb)
{
    const struct trace_place *a = pa, *b = pb;

    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

void trace_sort_places(struct trace_place *p, size_t n)
{
    qsort(p, n, sizeof(*p), by_time);
}

int trace_reorder(void *array_ptr, const struct trace_place *order, size_t n,
                  size_t cell, struct vt_err *err)
{
    char *from, *to = malloc(n * cell);

    if (!to)
        return vt_nomem(err);
    memcpy(&from, array_ptr, sizeof(from));
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * cell, from + order[i].index * cell, cell);
    free(from);
    memcpy(array_ptr, &to, sizeof(to));
    return VT_OK;
}
