/* cli.h - the commands, and what all of them need. This is the one room that prints,
 * reads the environment or ends the process. */
#ifndef VT_CLI_H
#define VT_CLI_H

#include "cli/opt/opt.h"

extern const struct opt_command cmd_serve, cmd_bench, cmd_play, cmd_record, cmd_conform,
    cmd_simulate, cmd_capacity, cmd_tune, cmd_validate, cmd_fit, cmd_learn, cmd_inspect,
    cmd_profile, cmd_model, cmd_workload, cmd_completion, cmd_man;

const struct opt_command *const *cli_commands(void);  /* ends with NULL */
const struct opt_command *cli_find(const char *name); /* NULL: unknown */

/* Writes to stdout and frees the buffer; its failures become errors here. */
int cli_print(struct vt_buf *b, struct vt_err *err) VT_MUST_CHECK;
/* The same where `rc` is VT_OK; otherwise only frees it and returns rc. */
int cli_print_end(struct vt_buf *b, int rc, struct vt_err *err) VT_MUST_CHECK;
/* Writes a file in a directory and frees the buffer. */
int cli_save(const char *dir, const char *name, struct vt_buf *b,
             struct vt_err *err) VT_MUST_CHECK;
/* Lines on stderr, for rooms that have something to say: behind "vtwin: ", and behind
 * "vtwin COMMAND: ". user is not looked at. */
void cli_tell(void *user, const char *line);
void cli_tell_named(void *user, const char *line);
/* For blocks of commands that read traces or step logs: what main makes of files that
 * were cut before it runs them. */
struct cli_files {
    bool whole;
};
extern const struct opt_row cli_files_rows[];
/* Where temporary files may be. */
const char *cli_scratch(void);

#endif
