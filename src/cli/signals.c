/* signals.c - see signals.h. */
#include <signal.h>
#include <stddef.h>

#include "cli/signals.h"

static volatile sig_atomic_t caught;

static void note(int number)
{
    caught = number;
}

void cli_signals_catch(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND};

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct sigaction before;

        /* What nohup or a shell script ignores stays ignored. */
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

int cli_signal_caught(void)
{
    return caught;
}

void cli_signal_answered(void)
{
    caught = 0;
}
