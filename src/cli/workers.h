/* workers.h - trials on other machines, and this process as a worker of another. */
#ifndef VT_CLI_WORKERS_H
#define VT_CLI_WORKERS_H

#include "cli/opt/opt.h"

/* For a command's table. */
#define WORKERS_ROW(f)                                              \
    OPT_TEXT(f, "workers", "ray[:ADDRESS]", NULL,                   \
             "run trials on a Ray cluster; the answer is the same", \
             .shown = "processes here")

/* Before the command reads its files: trials are to run where `where` says; NULL: here.
 * at_once: how many at a time, 0: as many as there is room for. Nothing is started
 * before there are trials. End with cli_workers_close() whatever happens. */
int cli_workers_open(const struct opt_args *a, const char *where, uint32_t at_once,
                     struct vt_err *err) VT_MUST_CHECK;
/* Ends what was started, and tells what its machines did, unless --quiet was given. */
void cli_workers_close(void);

/* Who runs trials of this process' command is settled, whatever its flags say. */
void cli_workers_settled(void);

#endif
