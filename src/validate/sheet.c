/* sheet.c - see sheet.h. */
#include "validate/sheet.h"

#include <math.h>

int sheet_within(const struct sheet *s, struct vt_err *err, int rc)
{
    return vt_within(err, rc, "%s: line %u", vt_lines_name(s->lines),
                     vt_lines_number(s->lines));
}

/* The fields of the next line that is not blank; *n is 0 at the end of the file. */
static int read_fields(struct sheet *s, char **field, int *n, char **kept,
                       struct vt_err *err)
{
    size_t len = 0;
    char *line;
    int rc;

    do {
        rc = vt_lines_next(s->lines, &line, &len, NULL, err);
        if (rc != VT_OK)
            return rc;
    } while (line && len == 0);
    *n = 0;
    if (!line)
        return VT_OK;
    if (kept)
        line = *kept = strdup(line);
    if (!line)
        return vt_nomem(err);
    *n = vt_csv_split(line, field, SHEET_COLUMNS);
    if (*n < 0 && !s->lenient)
        return sheet_within(s, err,
                            vt_fail(err, VT_EINPUT,
                                    "a quote is not closed, or more than %d columns",
                                    SHEET_COLUMNS));
    return VT_OK;
}

int sheet_begin(struct sheet *s, struct vt_lines *lines, struct vt_err *err)
{
    *s = (struct sheet){.lines = lines};
    return read_fields(s, s->name, &s->n, &s->head, err);
}

int sheet_open(struct sheet *s, const char *path, struct vt_err *err)
{
    struct vt_lines *lines;
    int rc;

    *s = (struct sheet){0};
    rc = vt_lines_open(&lines, path, err);
    if (rc != VT_OK)
        return rc;
    rc = sheet_begin(s, lines, err);
    s->own = lines;
    s->lenient = true;
    return rc == VT_OK && s->n == 0
               ? vt_fail(err, VT_EINPUT, "%s: the file is empty", path)
               : rc;
}

void sheet_end(struct sheet *s)
{
    vt_lines_close(s->own);
    free(s->head);
    *s = (struct sheet){0};
}

bool sheet_next(struct sheet *s, int *rc, struct vt_err *err)
{
    int n = 0;

    if (*rc != VT_OK)
        return false;
    do
        *rc = read_fields(s, s->field, &n, NULL, err);
    while (*rc == VT_OK && n != 0 && n != s->n && s->lenient);
    if (*rc == VT_OK && n != 0 && n != s->n)
        *rc = sheet_within(
            s, err,
            vt_fail(err, VT_EINPUT, "%d columns where the head has %d", n, s->n));
    return *rc == VT_OK && n != 0;
}

int sheet_column(const struct sheet *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->name[i], name) == 0)
            return i;
    return -1;
}

const char *sheet_text(const struct sheet *s, const char *name)
{
    int i = sheet_column(s, name);

    return i < 0 ? "" : s->field[i];
}

double sheet_number(const struct sheet *s, const char *name)
{
    const char *text = sheet_text(s, name);
    double v;

    return vt_parse_f64(text, strlen(text), &v) ? v : NAN;
}
