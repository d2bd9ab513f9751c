/* signals.c - see signals.h. */
#include <signal.h>
#include <stddef.h>
#include <time.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/signals.h"

static volatile sig_atomic_t caught;
static struct timespec first; /* touched by the handler only */

/* timeout(1) and terminals send to a process and to its group, so one wish may come as
 * two signals; only one that comes later is a second wish. */
static void note_signal(int number)
{
    struct timespec now;
    double since_s;

    clock_gettime(CLOCK_MONOTONIC, &now);
    since_s = (double)(now.tv_sec - first.tv_sec) +
              (double)(now.tv_nsec - first.tv_nsec) / 1e9;
    if (caught && since_s > 0.2) {
        signal(number, SIG_DFL);
        raise(number);
    } else if (!caught) {
        first = now;
        caught = number;
    }
}

void cli_signals_catch(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = note_signal};

    if (cli_asked()) /* signals are the other program's */
        return;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigaddset(&action.sa_mask, numbers[i]);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct sigaction before;

        /* What nohup or a shell script ignores stays ignored. */
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

void cli_signals_stop(void)
{
    cli_signals_catch();
    vt_stop_when(cli_stopped, NULL);
}

int cli_signal_caught(void)
{
    if (cli_asked())
        return cli_asked_to_stop() ? SIGINT : 0;
    return caught;
}

bool cli_stopped(void *user)
{
    (void)user;
    return cli_signal_caught() != 0;
}

void cli_signal_answered(void)
{
    caught = 0;
}
