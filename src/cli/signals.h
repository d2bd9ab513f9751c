/* signals.h - lets a run that is being ended take back its unfinished files. */
#ifndef VT_CLI_SIGNALS_H
#define VT_CLI_SIGNALS_H

#include <stdbool.h>

/* From now on SIGINT, SIGTERM and SIGHUP are only noted: the run asks now and then. A
 * second signal ends the process at once, unless it comes with the first. */
void cli_signals_catch(void);
/* The same, and all work asks (vt_stopped()): for commands that tell how far they came.
 */
void cli_signals_stop(void);
int cli_signal_caught(void); /* 0: none */
/* The same as a question that rooms below ask; user is not looked at. */
bool cli_stopped(void *user);
/* The signal was how the run was to end: the process need not die of it. */
void cli_signal_answered(void);

#endif
