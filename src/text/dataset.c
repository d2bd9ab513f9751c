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

static int add_list(struct dataset_reader *r, const struct vt_node *list,
                    struct vt_err *err)
{
    int rc = VT_OK;

    for (uint32_t i = 0; rc == VT_OK && i < list->n; i++)
        rc = dataset_add_row(r, &list->u.item[i], err);
    return rc;
}

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
        if (rc == VT_OK)
            rc = dataset_add_row(r, row, err);
        if (rc != VT_OK)
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
        rc = list ? add_list(r, list, err) : dataset_add_row(r, root, err);
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

    while (rc == VT_OK) {
        vt_arena_reset(&scratch);
        rc = dataset_csv_next(&csv, &scratch, &row, err);
        if (rc != VT_OK || !row)
            break;
        rc = dataset_add_row(r, row, err);
    }
    vt_arena_free(&header);
    vt_arena_free(&scratch);
    return rc;
}

/* ---- all of them ------------------------------------------------------ */

static bool is_named(const char *name, const char *ending)
{
    size_t len = strlen(name), end = strlen(ending);

    if (len > 3 && strcmp(name + len - 3, ".gz") == 0)
        len -= 3;
    return len >= end && memcmp(name + len - end, ending, end) == 0;
}

static int read_form(struct dataset_reader *r, const char *name, const char *text,
                     size_t len, struct vt_err *err)
{
    char first = first_byte(text, len);

    if (is_named(name, ".parquet") || (len >= 4 && memcmp(text, "PAR1", 4) == 0))
        return vt_fail(err, VT_EINPUT,
                       "Parquet is not read; write it as JSON lines first");
    if (is_named(name, ".csv"))
        return read_csv(r, text, len, err);
    if (is_named(name, ".jsonl") || (!is_named(name, ".json") && first == '{'))
        return read_lines(r, text, len, err);
    if (is_named(name, ".json") || first == '[')
        return read_json(r, text, len, err);
    return read_csv(r, text, len, err);
}

static int check_answers(const struct vt_dataset *d, struct vt_err *err)
{
    for (size_t i = 0; i < d->n_rows; i++)
        if (d->row[i].answer)
            return VT_OK;
    if (d->n_rows == 0)
        return vt_fail(err, VT_EINPUT, "there are no rows");
    return vt_fail(err, VT_EINPUT,
                   "no row has an answer: output_token_ids, output, response, "
                   "completion, answer, target, label, or an assistant's message");
}

int vt_dataset_read(struct vt_dataset *d, const char *name, const char *text,
                    size_t len, vt_dataset_encode *encode, void *user,
                    struct vt_err *err)
{
    struct dataset_reader r = {.d = d, .encode = encode, .user = user};
    bool marked = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
    int rc;

    *d = (struct vt_dataset){0};
    if (len == 0)
        rc = vt_fail(err, VT_EINPUT, "it is empty");
    else
        rc = read_form(&r, name, marked ? text + 3 : text, marked ? len - 3 : len, err);
    if (rc == VT_OK)
        rc = check_answers(d, err);
    vt_buf_free(&r.text);
    if (rc != VT_OK)
        vt_dataset_free(d);
    return rc == VT_OK ? rc : vt_within(err, rc, "%s", name);
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
