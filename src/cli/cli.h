/* cli.h - the commands, and what all of them need. This is the one room that prints,
 * reads the environment or ends the process. */
#ifndef VT_CLI_H
#define VT_CLI_H

#include "cli/opt/opt.h"

extern const struct opt_command cmd_serve, cmd_bench, cmd_play, cmd_record, cmd_conform,
    cmd_simulate, cmd_compare, cmd_capacity, cmd_tune, cmd_explore, cmd_validate,
    cmd_fit, cmd_learn, cmd_inspect, cmd_profile, cmd_model, cmd_workload, cmd_worker,
    cmd_merge, cmd_completion, cmd_man;

/* Of which commit the program is, and how it was built (tools/make_build_info). */
extern const char cli_commit[], cli_build[];

const struct opt_command *const *cli_commands(void);  /* ends with NULL */
const struct opt_command *cli_find(const char *name); /* NULL: unknown */
/* A whole command line, argv[0] being the program: runs it, tells of its failure, and
 * returns the exit status. */
int cli_main(int argc, const char *const *argv);
/* One command; argv is without its name. */
int cli_run(const struct opt_command *c, int argc, const char *const *argv,
            struct vt_err *err) VT_MUST_CHECK;

/* ---- asked by another program ------------------------------------------------- */

struct cli_answer {          /* owned by who asks, whatever happened */
    struct vt_buf out, said; /* what would have gone to stdout and to stderr */
};
/* A command for the thread of another program: nothing is printed and no signal is
 * taken. *stop becomes other than 0 when it is to end
 * soon, with VT_EIO; NULL: never. Threads may ask at once. */
int cli_ask(struct cli_answer *to, const struct opt_command *c, int argc,
            const char *const *argv, const volatile int *stop,
            struct vt_err *err) VT_MUST_CHECK;
void cli_answer_free(struct cli_answer *a);
bool cli_asked(void); /* this thread's command was asked for so */
bool cli_asked_to_stop(void);

/* ---- words ----------------------------------------------------------------------- */

/* Writes to stdout and frees the buffer; its failures become errors here. */
int cli_print(struct vt_buf *b, struct vt_err *err) VT_MUST_CHECK;
/* The same where `rc` is VT_OK; otherwise only frees it and returns rc. */
int cli_print_end(struct vt_buf *b, int rc, struct vt_err *err) VT_MUST_CHECK;
/* Writes a file in a directory and frees the buffer. */
int cli_save(const char *dir, const char *name, struct vt_buf *b,
             struct vt_err *err) VT_MUST_CHECK;
/* Whole lines for people, on stderr; they name the program themselves. */
void cli_say(const char *fmt, ...) VT_PRINTF(1, 2);
/* A person looks at stderr. */
bool cli_seen(void);
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
/* What `simulate --out` wrote, where a trace is asked for: its files. */
struct cli_report {
    char trace[4096], steps[4096]; /* steps "": not there */
};
/* The trace that a path stands for: itself, or r->trace where it is such a folder. */
const char *cli_report_trace(const char *path, struct cli_report *r);
/* A server's address without the /v1 that clients of OpenAI's write behind it: paths
 * begin with that here. The same, or good until the next call: a run has one server. */
const char *cli_base_url(const char *url);
/* Where temporary files may be. */
const char *cli_scratch(void);

#endif
