/* cli.h - the commands, and what all of them need. This is the one room that prints,
 * reads the environment or ends the process. */
#ifndef VT_CLI_H
#define VT_CLI_H

#include "cli/opt/opt.h"

extern const struct opt_command cmd_serve, cmd_bench, cmd_play, cmd_record, cmd_conform,
    cmd_simulate, cmd_capacity, cmd_tune, cmd_validate, cmd_fit, cmd_inspect,
    cmd_profile, cmd_model, cmd_completion, cmd_man;

const struct opt_command *const *cli_commands(void);  /* ends with NULL */
const struct opt_command *cli_find(const char *name); /* NULL: unknown */

/* Writes to stdout and frees the buffer; its failures become errors here. */
int cli_print(struct vt_buf *b, struct vt_err *err) VT_MUST_CHECK;
/* Where temporary files may be. */
const char *cli_scratch(void);

#endif
