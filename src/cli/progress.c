/* progress.c - what a long run is doing, on stderr. */
#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "live/live.h"

/* A line that erases itself may come early. */
enum { FIRST_LINE_MS = 1000, REDRAW_MS = 200, LINE_MS = 2000 };

static _Thread_local struct {
    bool on, terminal, bare;
    bool shown;              /* something is there to erase */
    vt_ns began_ns, told_ns; /* wall clock; told 0: nothing yet */
    const char *counted;     /* what is being counted; borrowed */
    vt_ns counted_ns;        /* since when */
    size_t counted_from;
} line;

void cli_progress_begin(bool asked, bool quiet)
{
    line.terminal = cli_seen();
    line.on = !cli_asked() && (asked || (line.terminal && !quiet));
    line.began_ns = line.on ? vt_wall_ns() : 0;
}

void cli_progress_bare(void)
{
    line.bare = true;
}

double cli_progress_passed(void)
{
    return (double)(vt_wall_ns() - line.began_ns) / 1e9;
}

bool cli_progress_due(void)
{
    vt_ns now, every = line.terminal ? REDRAW_MS * VT_MS : LINE_MS * VT_MS;

    if (!line.on)
        return false;
    now = vt_wall_ns();
    if (line.told_ns == 0 && !line.terminal)
        every = FIRST_LINE_MS * VT_MS;
    return now - (line.told_ns > 0 ? line.told_ns : line.began_ns) >= every;
}

static void VT_PRINTF(1, 0) show(const char *fmt, va_list args)
{
    line.told_ns = vt_wall_ns();
    fputs(line.terminal ? "\r\033[K" : line.bare ? "" : "vtwin: ", stderr);
    vfprintf(stderr, fmt, args);
    if (!line.terminal)
        fputc('\n', stderr);
    fflush(stderr);
    line.shown = line.terminal;
}

void cli_progress(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    if (cli_progress_due())
        show(fmt, args);
    va_end(args);
}

void cli_progress_now(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    if (line.on)
        show(fmt, args);
    va_end(args);
}

void cli_progress_count(const char *what, size_t done, size_t n)
{
    double passed;

    if (!line.on)
        return;
    if (!line.counted || strcmp(line.counted, what) != 0 || done < line.counted_from) {
        line.counted = what;
        line.counted_ns = vt_wall_ns();
        line.counted_from = done;
    }
    passed = (double)(vt_wall_ns() - line.counted_ns) / 1e9;
    if (done > line.counted_from && passed > 0)
        cli_progress("%s %zu of %zu, about %.0f s left", what, done, n,
                     passed * (double)(n - done) / (double)(done - line.counted_from));
    else
        cli_progress("%s %zu of %zu", what, done, n);
}

void cli_progress_end(void)
{
    if (line.shown)
        fputs("\r\033[K", stderr);
    line.shown = false;
}
