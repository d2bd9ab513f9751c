/* progress.h - what a long run is doing, on stderr: on a terminal one line that
 * rewrites itself, elsewhere, if --progress asks for it, a line now and then.
 *
 * There is one for the process, since there is one stderr. A short run says nothing. */
#ifndef VT_CLI_PROGRESS_H
#define VT_CLI_PROGRESS_H

#include "cli/opt/opt.h"

/* For a command's table. */
#define PROGRESS_ROW(f) \
    OPT_FLAG(f, "progress", "say what is being done, on a terminal or not")

void cli_progress_begin(bool asked, bool quiet);
void cli_progress_bare(void);     /* lines elsewhere do not begin with "vtwin: " */
double cli_progress_passed(void); /* seconds since the beginning */
bool cli_progress_due(void);      /* whether the next one would be shown */
void cli_progress(const char *fmt, ...) VT_PRINTF(1, 2);
/* At once, before something that can't say how far it is. */
void cli_progress_now(const char *fmt, ...) VT_PRINTF(1, 2);
/* "WHAT 3 of 10, about 12 s left": so many are done. Another `what` begins anew. */
void cli_progress_count(const char *what, size_t done, size_t n);
void cli_progress_end(void); /* erases it */

#endif
