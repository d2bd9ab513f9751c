/* workers.c - the driver of workers on other machines: a Python program of the wheel.
 */
#include "cli/workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/cli.h"
#include "tune/tune.h"

struct node {
    char name[64];
    size_t trials;
    vt_ns took;
};

/* For the whole process: it runs one command. */
static struct {
    bool settled; /* whoever started this process says who runs trials */
    bool quiet;
    const char *address; /* "": one that Ray finds or starts */
    struct vt_buf command, inputs;
    struct vt_proc driver;
    struct vt_jobs_driver link;
    struct vt_jobs_elsewhere self;
    struct node *node; /* heap */
    size_t n_nodes, cap_nodes;
} here;

/* ---- the driver ------------------------------------------------------------------ */

/* That of the environment which the program was installed into, or any. */
static void find_python(char out[4096])
{
    ssize_t n = readlink("/proc/self/exe", out, 4000);
    char *slash;

    out[n > 0 ? n : 0] = '\0';
    slash = strrchr(out, '/');
    if (slash)
        memcpy(slash, "/python3", sizeof("/python3"));
    if (!slash || access(out, X_OK) != 0)
        memcpy(out, "python3", sizeof("python3"));
}

static int fail_missing(const char *why, struct vt_err *err)
{
    return vt_fail(err, VT_EINPUT,
                   "--workers ray needs Python with vtwin's wheel and Ray: pip install "
                   "'vtwin[ray]' (%.200s)",
                   why);
}

static int start_driver(const char *python, int fd, struct vt_err *err)
{
    struct vt_proc *p = &here.driver;
    struct vt_err why;

    p->name = "python3 -m vtwin.ray";
    p->our_environment = p->in_path = true;
    p->output = VT_PROC_TALK;
    p->talk = fd;
    vt_proc_arg(p, python);
    vt_proc_arg(p, "-m");
    vt_proc_arg(p, "vtwin.ray");
    vt_proc_arg(p, here.address);
    return vt_proc_start(p, &why) == VT_OK ? VT_OK : fail_missing(why.msg, err);
}

/* It ended before it said a word: something is not installed. */
static int fail_silent(struct vt_err *err)
{
    char line[VT_PROC_LINE];

    vt_proc_last_line(&here.driver, line);
    return fail_missing(line[0] ? line : "it ended at once", err);
}

static int meet_driver(struct vt_err *err)
{
    struct vt_buf hello = {0};
    char python[4096];
    int fd[2], rc;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
        return vt_fail(err, VT_EIO, "can't make a socket for workers");
    here.link.fd = fd[0];
    find_python(python);
    rc = start_driver(python, fd[1], err);
    close(fd[1]);
    if (rc == VT_OK)
        rc = vt_jobs_driver_meet(&here.link, &hello, err);
    if (rc == VT_EIO && vt_stopped(NULL) == VT_OK && hello.len == 0)
        rc = fail_silent(err);
    if (rc == VT_OK && !here.quiet)
        cli_tell(NULL, hello.data);
    vt_buf_free(&hello);
    return rc;
}

static int run_elsewhere(void *user, const struct vt_jobs *j, uint32_t batch,
                         struct vt_err *err)
{
    int rc = batch == 0 ? meet_driver(err) : VT_OK;

    (void)user;
    if (rc == VT_OK && here.inputs.failed)
        rc = vt_nomem(err);
    return rc == VT_OK ? vt_jobs_driver_run(&here.link, j, batch, err) : rc;
}

/* ---- what it costs --------------------------------------------------------------- */

static void note_cost(void *user, const char *where, vt_ns took)
{
    size_t i = 0;

    (void)user;
    while (i < here.n_nodes && strcmp(here.node[i].name, where) != 0)
        i++;
    if (i == here.n_nodes) {
        struct vt_err ignored;

        if (vt_grow(&here.node, &here.cap_nodes, i + 1, sizeof(*here.node), &ignored))
            return;
        here.node[here.n_nodes++] = (struct node){0};
        (void)snprintf(here.node[i].name, sizeof(here.node[i].name), "%s", where);
    }
    here.node[i].trials++;
    here.node[i].took += took;
}

static void tell_costs(void)
{
    for (size_t i = 0; i < here.n_nodes && !here.quiet; i++)
        cli_say("vtwin: %s: %zu trial%s, %.2f s of work\n", here.node[i].name,
                here.node[i].trials, here.node[i].trials == 1 ? "" : "s",
                (double)here.node[i].took / 1e9);
}

/* ---- for commands -----------------------------------------------------------------
 */

/* Each process would do all of it, and print it. */
static int refuse_mpirun(struct vt_err *err)
{
    const char *n = getenv("OMPI_COMM_WORLD_SIZE");

    if (cli_asked()) /* what mpirun started is the other program */
        return VT_OK;
    if (n ? strcmp(n, "1") == 0 : getenv("PMIX_RANK") == NULL)
        return VT_OK;
    return vt_fail(err, VT_EINPUT,
                   "not under mpirun: --workers ray spreads trials over machines");
}

int cli_workers_open(const struct opt_args *a, const char *where, uint32_t at_once,
                     struct vt_err *err)
{
    int rc = refuse_mpirun(err);

    if (rc != VT_OK || here.settled || !where)
        return rc;
    if (strncmp(where, "ray", 3) != 0 || (where[3] != '\0' && where[3] != ':') ||
        (where[3] == ':' && where[4] == '\0'))
        return vt_fail(err, VT_EINPUT, "--workers: '%s' is not ray or ray:ADDRESS",
                       where);
    if (cli_asked()) /* which could not be sent to other machines */
        return vt_fail(err, VT_EINPUT, "--workers: only for the program itself");
    memset(&here, 0, sizeof(here));
    here.quiet = opt_is_quiet(a);
    here.address = where[3] == ':' ? where + 4 : "";
    vt_buf_add(&here.command, a->command->name, strlen(a->command->name) + 1);
    for (int i = 0; i < a->n_words; i++)
        vt_buf_add(&here.command, a->word[i], strlen(a->word[i]) + 1);
    if (here.command.failed)
        return vt_nomem(err);
    here.link = (struct vt_jobs_driver){.fd = -1,
                                        .most = at_once,
                                        .command = &here.command,
                                        .inputs = &here.inputs,
                                        .cost = note_cost};
    here.self = (struct vt_jobs_elsewhere){run_elsewhere, NULL};
    vt_note_inputs(&here.inputs);
    vt_jobs_elsewhere(&here.self);
    return VT_OK;
}

void cli_workers_close(void)
{
    if (!here.self.run)
        return;
    vt_note_inputs(NULL);
    vt_jobs_elsewhere(NULL);
    tell_costs();
    if (here.link.fd >= 0)
        close(here.link.fd); /* which ends it */
    vt_proc_stop(&here.driver);
    vt_buf_free(&here.command);
    vt_buf_free(&here.inputs);
    free(here.node);
    memset(&here, 0, sizeof(here));
}

void cli_workers_settled(void)
{
    here.settled = true;
}
