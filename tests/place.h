/* place.h - a directory of files for a test, thrown away at its end. */
#ifndef VT_TESTS_PLACE_H
#define VT_TESTS_PLACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"

enum { PLACE_FILES = 8 };

struct place {
    char directory[64];
    char path[PLACE_FILES][128];
    int n;
};

static inline void place_begin(struct place *p)
{
    *p = (struct place){.directory = "/tmp/vt-validate-XXXXXX"};
    assert_non_null(mkdtemp(p->directory));
}

/* Returns the file's path, which belongs to the place. */
static inline const char *place_put(struct place *p, const char *name, const char *text)
{
    char *path, built[sizeof(p->path[0])];
    FILE *f;

    assert_in_range(p->n, 0, PLACE_FILES - 1);
    snprintf(built, sizeof(built), "%s/%s", p->directory, name);
    path = memcpy(p->path[p->n++], built, sizeof(built));
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
    return path;
}

static inline void place_end(struct place *p)
{
    for (int i = 0; i < p->n; i++)
        unlink(p->path[i]);
    assert_int_equal(rmdir(p->directory), 0);
}

#endif
