/* gnuplot.c - gnuplot as a child process. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/figures/figures.h"

extern char **environ;

/* The first line of what it complained about that is not blank. */
static void first_complaint(const char *log_path, char *out, size_t size)
{
    FILE *f = fopen(log_path, "r");

    out[0] = '\0';
    while (f && fgets(out, (int)size, f)) {
        out[strcspn(out, "\r\n")] = '\0';
        if (out[strspn(out, " \t")] != '\0')
            break;
    }
    if (f)
        fclose(f);
}

static int spawn(pid_t *pid, const char *script_path, const char *log_path)
{
    static char program[] = "gnuplot";
    char *script = strdup(script_path);
    char *argv[] = {program, script, NULL};
    posix_spawn_file_actions_t files;
    int rc;

    if (!script)
        return ENOMEM;
    rc = posix_spawn_file_actions_init(&files);
    if (rc == 0) {
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY,
                                         0);
        posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log_path,
                                         O_WRONLY | O_CREAT | O_TRUNC, 0600);
        posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
        rc = posix_spawnp(pid, program, &files, NULL, argv, environ);
        posix_spawn_file_actions_destroy(&files);
    }
    free(script);
    return rc;
}

int gnuplot_run(const char *script_path, const char *log_path, struct vt_err *err)
{
    char complaint[256];
    int status = 0, rc;
    pid_t pid;

    rc = spawn(&pid, script_path, log_path);
    if (rc == ENOENT)
        return vt_fail(err, VT_EIO,
                       "gnuplot draws the figures and is not installed (Debian: "
                       "apt-get install gnuplot-nox)");
    if (rc != 0)
        return vt_fail(err, VT_EIO, "gnuplot: %s", strerror(rc));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return vt_fail(err, VT_EIO, "gnuplot: %s", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return VT_OK;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return vt_fail(err, VT_EIO, "gnuplot cannot be run");
    first_complaint(log_path, complaint, sizeof(complaint));
    return vt_fail(err, VT_EIO, "gnuplot failed: %s", complaint);
}
