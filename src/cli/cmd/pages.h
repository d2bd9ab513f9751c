/* pages.h - what the pages of all commands have in common: --report, the question, the
 * answer with its trust, settings, where the times come from; private to cmd. */
#ifndef VT_CLI_PAGES_H
#define VT_CLI_PAGES_H

#include "cli/cmd/settings.h"
#include "page/page.h"
#include "tune/tune.h"

/* The same flag everywhere. */
#define PAGES_ROW(f, ...)                    \
    OPT_TEXT(f, "report", "FILE.html", NULL, \
             "write a page: the answer, charts, numbers, settings", __VA_ARGS__)

/* Up to the heading; below it stands the command line. */
void pages_begin(struct vt_buf *b, const struct opt_args *a, const char *title);
/* The answer. e NULL: it is measured, which `basis` says ("measured at a server"). */
struct pages_trust {
    const struct engine_job *engine;
    const struct vt_extent *reached, *known; /* NULL: not looked at */
    const char *basis;
};
void pages_answer(struct vt_buf *b, const struct pages_trust *t, const char *fmt, ...)
    VT_PRINTF(3, 4);
/* Opens a list of all settings, to which the caller adds; vt_page_facts_end() closes
 * it.
 */
int pages_settings(struct vt_buf *b, const struct engine_job *e,
                   const struct vt_engine_config *c, const struct vt_fleet *fleet,
                   const struct traffic *t, struct vt_err *err) VT_MUST_CHECK;
void pages_limits(struct vt_buf *b, const struct vt_slo *slo); /* facts */
/* Limits as lines in charts of distributions; returns how many. Labels are in `text`.
 */
struct pages_lines {
    struct vt_latency_limit line[VT_SLO_LIMITS];
    char text[VT_SLO_LIMITS][48];
    size_t n;
};
void pages_lines(struct pages_lines *out, const struct vt_slo *slo);
/* The profile: its description, how it was made, its errors. */
void pages_profile(struct vt_buf *b, const struct engine_job *e);

#endif
