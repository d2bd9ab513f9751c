/* capacity.h - what vtwin capacity prints; private to cli. */
#ifndef VT_CLI_CAPACITY_H
#define VT_CLI_CAPACITY_H

#include "cli/cmd/trial.h"

struct capacity_answer { /* all borrowed */
    const struct vt_capacity *found;
    const struct vt_capacity_spec *spec;
    const char *timed_by;          /* profile or inline model */
    const struct vt_extent *known; /* what it was made from; NULL: a live server is */
};

void capacity_table(struct vt_buf *b, const struct capacity_answer *a);
void capacity_json(struct vt_buf *b, const struct capacity_answer *a);
int capacity_csv(const struct capacity_answer *a, const char *path,
                 struct vt_err *err) VT_MUST_CHECK;
int capacity_plot(const struct capacity_answer *a, const char *path,
                  struct vt_err *err) VT_MUST_CHECK;

#endif
