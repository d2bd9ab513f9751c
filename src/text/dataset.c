/* dataset.c - the forms that a dataset comes in. */
#include "text/text.h"

#include "text/dataset_parts.h"

#define MAX_BYTES ((size_t)1 << 30)

/* The first byte that is not white space; 0: none. */
static char first_byte(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!memchr(" \t\r\n", text[i], 4))
            return text[i];
    return '\0';
}

/* ---- JSON ------------------------------------------------------------- */

/* The one list of rows in an object: {"data": [...]}. */
static const struct vt_node *list_within(const struct vt_node *root)
{
    const struct vt_node *found = NULL;

    if (root->kind != VT_MAP || vt_get(root, "messages") ||
        vt_get(root, "conversations"))
        return root->kind == VT_LIST ? root : NULL;
    for (uint32_t i = 0; i < root->n; i++) {
        const struct vt_node *v = &root->u.item[i];

        if (v->kind != VT_LIST || v->n == 0 || v->u.item[0].kind != VT_MAP)
            continue;
        if (found)
            return NULL;
        found = v;
    }
    return found;
}

static int read_lines(struct dataset_reader *r, const char *text, size_t len,
                      struct vt_err *err)
{
    struct vt_arena scratch = {0};
    struct vt_lines *lines;
    char *line;
    size_t n;
    int rc = vt_lines_from(&lines, "", text, len, err);

    if (rc != VT_OK)
        return rc;
    while ((rc = vt_lines_next(lines, &line, &n, NULL, err)) == VT_OK && line) {
        const struct vt_node *row;

        if (strspn(line, " \t\r") == n)
            continue;
        vt_arena_reset(&scratch);
        rc = vt_json_parse(&scratch, line, n, vt_lines_number(lines), &row, err);
        if (rc || (rc = dataset_add_row(r, row, err)))
            break;
    }
    vt_arena_free(&scratch);
    vt_lines_close(lines);
    return rc;
}

/* One value; or, where the name does not say so, lines of them. */
static int read_json(struct dataset_reader *r, const char *text, size_t len,
                     struct vt_err *err)
{
    struct vt_arena scratch = {0};
    const struct vt_node *root, *list;
    int rc = vt_json_parse(&scratch, text, len, 1, &root, err);

    if (rc == VT_EINPUT && first_byte(text, len) == '{') {
        rc = read_lines(r, text, len, err);
    } else if (rc == VT_OK) {
        list = list_within(root);
        if (!list)
            rc = dataset_add_row(r, root, err);
        for (uint32_t i = 0; rc == VT_OK && list && i < list->n; i++)
            rc = dataset_add_row(r, &list->u.item[i], err);
    }
    vt_arena_free(&scratch);
    return rc;
}

/* ---- CSV -------------------------------------------------------------- */

static int read_csv(struct dataset_reader *r, const char *text, size_t len,
                    struct vt_err *err)
{
    struct vt_arena header = {0}, scratch = {0};
    const struct vt_node *row = NULL;
    struct dataset_csv csv;
    int rc = dataset_csv_begin(&csv, &header, text, len, err);

    while (rc == VT_OK && !(rc = dataset_csv_next(&csv, &scratch, &row, err)) && row) {
        rc = dataset_add_row(r, row, err);
        vt_arena_reset(&scratch);
    }
    vt_arena_free(&header);
    vt_arena_free(&scratch);
    return rc;
}

/* ---- all of them ------------------------------------------------------ */

int vt_dataset_read(struct vt_dataset *d, const char *name, const char *text,
                    size_t len, vt_dataset_encode *encode, void *user,
                    struct vt_err *err)
{
    struct dataset_reader r = {.d = d, .encode = encode, .user = user};
    bool marked = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0, answered = false;
    char first;
    int rc;

    if (marked) {
        text += 3;
        len -= 3;
    }
    first = first_byte(text, len);
    *d = (struct vt_dataset){0};
    if (len == 0 && !marked)
        rc = vt_fail(err, VT_EINPUT, "it is empty");
    else if (vt_is_named(name, ".parquet") ||
             (len >= 4 && memcmp(text, "PAR1", 4) == 0))
        rc = vt_fail(err, VT_EINPUT,
                     "Parquet is not read; write it as JSON lines first");
    else if (vt_is_named(name, ".csv"))
        rc = read_csv(&r, text, len, err);
    else if (vt_is_named(name, ".jsonl") ||
             (!vt_is_named(name, ".json") && first == '{'))
        rc = read_lines(&r, text, len, err);
    else if (vt_is_named(name, ".json") || first == '[')
        rc = read_json(&r, text, len, err);
    else
        rc = read_csv(&r, text, len, err);
    for (size_t i = 0; i < d->n_rows; i++)
        answered |= d->row[i].answer != NULL;
    if (rc == VT_OK && !answered)
        rc = d->n_rows == 0
                 ? vt_fail(err, VT_EINPUT, "there are no rows")
                 : vt_fail(err, VT_EINPUT,
                           "no row has an answer: output_token_ids, output, response, "
                           "completion, answer, target, label, or an assistant's "
                           "message");
    vt_buf_free(&r.text);
    if (rc != VT_OK)
        vt_dataset_free(d);
    return vt_within(err, rc, "%s", name);
}

int vt_dataset_load(struct vt_dataset *d, const char *path, vt_dataset_encode *encode,
                    void *user, struct vt_err *err)
{
    struct vt_buf text = {0};
    int rc = vt_read_file(path, MAX_BYTES, &text, err);

    *d = (struct vt_dataset){0};
    if (rc == VT_OK)
        rc = vt_dataset_read(d, path, text.data ? text.data : "", text.len, encode,
                             user, err);
    vt_buf_free(&text);
    return rc;
}

void vt_dataset_free(struct vt_dataset *d)
{
    vt_arena_free(&d->arena);
    free(d->row);
    free(d->turn);
    *d = (struct vt_dataset){0};
}
