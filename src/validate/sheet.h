/* sheet.h - CSV files with a head: fields by the names of their columns. Private to
 * validate. */
#ifndef VT_VALIDATE_SHEET_H
#define VT_VALIDATE_SHEET_H

#include "base/base.h"

enum { SHEET_COLUMNS = 64 };

struct sheet {
    struct vt_lines *lines, *own; /* own: to be closed with it */
    char *head;                   /* heap */
    char *name[SHEET_COLUMNS], *field[SHEET_COLUMNS];
    int n;
    bool lenient; /* rows with more or fewer fields than the head are passed over */
};

/* Reads the head; a file without one has 0 columns. End it whatever happens. */
int sheet_begin(struct sheet *s, struct vt_lines *lines,
                struct vt_err *err) VT_MUST_CHECK;
/* A file of a program's results: it must have a head, rows may be broken. */
int sheet_open(struct sheet *s, const char *path, struct vt_err *err) VT_MUST_CHECK;
void sheet_end(struct sheet *s);

/* The next row; blank lines do not count. False at the end of the file, and where *rc
 * is a failure or becomes one. */
bool sheet_next(struct sheet *s, int *rc, struct vt_err *err);
/* Puts the file and the line before the message. */
int sheet_within(const struct sheet *s, struct vt_err *err, int rc);

int sheet_column(const struct sheet *s, const char *name); /* -1: there is none */
/* "": there is no such column. */
const char *sheet_text(const struct sheet *s, const char *name);
/* NAN: there is no such column, or no number in it. */
double sheet_number(const struct sheet *s, const char *name);

#endif
