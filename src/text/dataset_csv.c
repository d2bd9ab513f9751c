/* dataset_csv.c - rows of a CSV file as maps of texts. */
#include "text/dataset_parts.h"

enum { MAX_COLUMNS = 1024 };

struct cells {
    struct vt_node *cell;
    uint32_t n, cap;
};

/* One field from c->at on, its text in the arena. A quote that is not closed is an
 * error. */
static int read_field(struct dataset_csv *c, struct vt_arena *a, struct vt_node *out,
                      struct vt_err *err)
{
    bool quoted = c->at < c->end && *c->at == '"';
    uint32_t first_line = c->line;
    const char *from = c->at, *p = quoted ? c->at + 1 : c->at;
    char *text;
    size_t n = 0;

    for (; p < c->end; p++) {
        if (quoted && *p == '"' && p + 1 < c->end && p[1] == '"')
            p++;
        else if (quoted ? *p == '"' : *p == ',' || *p == '\n')
            break;
        c->line += *p == '\n';
    }
    if (quoted && p == c->end)
        return vt_fail(err, VT_EINPUT, "line %u: a quote is not closed", first_line);
    text = vt_arena_alloc(a, (size_t)(p - from) + 1);
    if (!text)
        return vt_nomem(err);
    for (const char *q = quoted ? from + 1 : from; q < p; q++) {
        text[n++] = *q;
        q += quoted && *q == '"'; /* the second of two */
    }
    if (!quoted && n > 0 && text[n - 1] == '\r' && (p == c->end || *p == '\n'))
        text[--n] = '\0';
    *out = (struct vt_node){
        .kind = VT_STR, .line = first_line, .n = (uint32_t)n, .u.str = text};
    c->at = quoted ? p + 1 : p;
    return VT_OK;
}

static int read_cells(struct dataset_csv *c, struct vt_arena *a, struct cells *out,
                      struct vt_err *err)
{
    bool more = true;
    int rc;

    for (out->n = 0; more; out->n++) {
        if (out->n == out->cap)
            return vt_fail(err, VT_EINPUT, "line %u: more than %u columns", c->line,
                           out->cap);
        rc = read_field(c, a, &out->cell[out->n], err);
        if (rc != VT_OK)
            return rc;
        if (c->at < c->end && *c->at == '\r' &&
            (c->at + 1 == c->end || c->at[1] == '\n'))
            c->at++;
        more = c->at < c->end && *c->at == ',';
        if (c->at == c->end)
            continue;
        if (!more && *c->at != '\n')
            return vt_fail(err, VT_EINPUT, "line %u: text follows a closing quote",
                           c->line);
        c->line += *c->at++ == '\n';
    }
    return VT_OK;
}

static void skip_blank_lines(struct dataset_csv *c)
{
    while (c->at < c->end && (*c->at == '\n' || *c->at == '\r')) {
        c->line += *c->at == '\n';
        c->at++;
    }
}

int dataset_csv_begin(struct dataset_csv *c, struct vt_arena *a, const char *text,
                      size_t len, struct vt_err *err)
{
    struct cells cells = {vt_arena_alloc(a, MAX_COLUMNS * sizeof(*cells.cell)), 0,
                          MAX_COLUMNS};
    int rc;

    *c = (struct dataset_csv){.at = text, .end = text + len, .line = 1};
    if (!cells.cell)
        return vt_nomem(err);
    skip_blank_lines(c);
    rc = read_cells(c, a, &cells, err);
    if (rc != VT_OK)
        return rc;
    c->n_columns = cells.n;
    c->name = vt_arena_alloc(a, cells.n * sizeof(*c->name));
    if (!c->name)
        return vt_nomem(err);
    for (uint32_t i = 0; i < cells.n; i++)
        c->name[i] = cells.cell[i].u.str;
    return VT_OK;
}

int dataset_csv_next(struct dataset_csv *c, struct vt_arena *a,
                     const struct vt_node **out, struct vt_err *err)
{
    struct vt_node *row = vt_arena_alloc(a, sizeof(*row));
    struct cells cells = {vt_arena_alloc(a, c->n_columns * sizeof(*cells.cell)), 0,
                          c->n_columns};
    int rc;

    *out = NULL;
    if (!row || !cells.cell)
        return vt_nomem(err);
    skip_blank_lines(c);
    if (c->at == c->end)
        return VT_OK;
    *row = (struct vt_node){.kind = VT_MAP, .line = c->line, .u.item = cells.cell};
    rc = read_cells(c, a, &cells, err);
    if (rc != VT_OK)
        return rc;
    row->n = cells.n;
    for (uint32_t i = 0; i < cells.n; i++)
        cells.cell[i].key = c->name[i];
    *out = row;
    return VT_OK;
}
