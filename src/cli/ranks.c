/* ranks.c - finding the other processes that mpirun has started. */
#include "cli/ranks.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "tune/tune.h"

/* For the whole life of the process, as mpirun's ranks are. */
static struct {
    struct vt_ranks ranks;
    bool joined;
} here;

struct plugin {
    int (*join)(int *rank, int *n);
    int (*share)(void *bytes, int len);
    int (*leave)(void);
};

/* ---- the plugin --------------------------------------------------------------- */

bool cli_by_mpirun(void)
{
    const char *n = getenv("OMPI_COMM_WORLD_SIZE");

    if (cli_asked()) /* what mpirun started is the other program */
        return false;
    return n ? strcmp(n, "1") != 0 : getenv("PMIX_RANK") != NULL;
}

/* Beside the executable, or where installation puts it from there. */
static bool plugin_path(char *out, size_t size)
{
    static const char *const places[] = {"/vtwin-mpi.so",
                                         "/" VT_PLUGIN_DIR "/vtwin-mpi.so"};
    ssize_t n = readlink("/proc/self/exe", out, size - 1);
    char *slash;

    if (n <= 0)
        return false;
    out[n] = '\0';
    slash = strrchr(out, '/');
    for (size_t i = 0; slash && i < VT_COUNT(places); i++) {
        size_t room = size - (size_t)(slash - out);

        if (strlen(places[i]) < room) {
            memcpy(slash, places[i], strlen(places[i]) + 1);
            if (access(out, R_OK) == 0)
                return true;
        }
    }
    return false;
}

static int load_plugin(struct plugin *p, struct vt_err *err)
{
    char path[4096 + 16];
    void *so;

    if (!plugin_path(path, sizeof(path)))
        return vt_fail(err, VT_EINPUT,
                       "mpirun needs vtwin-mpi.so beside vtwin: build it with "
                       "libopenmpi-dev installed");
    so = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!so)
        return vt_fail(err, VT_EIO, "%s", dlerror());
    /* ISO C has no cast from an object's address to a function's. */
    *(void **)&p->join = dlsym(so, "vt_mpi_join");
    *(void **)&p->share = dlsym(so, "vt_mpi_share");
    *(void **)&p->leave = dlsym(so, "vt_mpi_leave");
    if (!p->join || !p->share || !p->leave)
        return vt_fail(err, VT_EIO, "%s is not of this vtwin", path);
    return VT_OK;
}

/* ---- what becomes of ranks ------------------------------------------------------- */

static void is_over(void *user)
{
    (void)user;
    _exit(0);
}

static void is_lost(void *user, uint32_t rank, const char *why)
{
    (void)user;
    fprintf(stderr, "vtwin: goes on without rank %u: %s\n", (unsigned)rank, why);
}

/* ---- joining ----------------------------------------------------------------- */

static int link_up(const struct ranks_contact *c, int listening, struct vt_err *err)
{
    struct vt_ranks *r = &here.ranks;

    r->fd = malloc(r->n * sizeof(*r->fd));
    if (!r->fd)
        return vt_nomem(err);
    for (uint32_t i = 0; i < r->n; i++)
        r->fd[i] = -1;
    if (r->rank > 0)
        return ranks_connect(c, r->rank, &r->fd[0], err);
    ranks_welcome(c, listening, r->fd, r->n);
    for (uint32_t i = 1; i < r->n; i++)
        if (r->fd[i] < 0)
            is_lost(NULL, i, "it did not come");
    return VT_OK;
}

int cli_ranks_join(struct vt_err *err)
{
    struct ranks_contact c = {0};
    struct plugin p = {0};
    int listening = -1, rank = 0, n = 1, null, rc;

    if (!cli_by_mpirun() || here.joined)
        return VT_OK;
    if ((rc = load_plugin(&p, err)) != VT_OK)
        return rc;
    if (p.join(&rank, &n) != 0)
        return vt_fail(err, VT_EIO, "MPI does not start");
    here.ranks.rank = (uint32_t)rank;
    here.ranks.n = (uint32_t)n;
    if (rank == 0 && n > 1)
        rc = ranks_listen(&c, &listening, err);
    if (p.share(&c, (int)sizeof(c)) != 0 || p.leave() != 0)
        return vt_fail(err, VT_EIO, "MPI does not reach all ranks");
    if (rc != VT_OK || n < 2)
        return rc;
    null = rank > 0 ? open("/dev/null", O_WRONLY) : -1;
    if (null >= 0) { /* what rank 0 prints, nobody else has to */
        (void)dup2(null, STDOUT_FILENO);
        close(null);
    }
    here.ranks.over = is_over;
    here.ranks.lost = is_lost;
    rc = link_up(&c, listening, err);
    here.joined = rc == VT_OK;
    if (here.joined)
        vt_jobs_ranks(&here.ranks);
    return rc;
}

void cli_ranks_fail(const struct vt_err *err)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    if (here.joined && here.ranks.rank > 0) {
        vt_jobs_ranks_leave(err->msg);
        _exit(0);
    }
    if (!here.joined && cli_by_mpirun() && rank && strcmp(rank, "0") != 0)
        _exit(0); /* before they have met, all fail alike */
}
