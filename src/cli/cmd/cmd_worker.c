/* cmd_worker.c - vtwin worker and vtwin merge: the trials of a command, one by one as
 * they are asked for, or a share of them, and all shares together. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/workers.h"
#include "tune/tune.h"

enum { MOST_WORDS = 4096, MOST_SHARDS = 1000000 };

#define SHARD_INDEX "JOB_COMPLETION_INDEX" /* as Kubernetes calls it */

struct worker_options {
    uint32_t shards;
    int64_t index; /* -1: the environment's */
    const char *out;
};

#define OPT_T struct worker_options
static const struct opt_row rows[] = {
    OPT_U32(shards, "shards", "N", 1, MOST_SHARDS, NULL,
            "run one share of N of COMMAND's trials and keep the results"),
    OPT_I64(index, "index", "I", 0, MOST_SHARDS - 1, NULL, "which share, from 0",
            .shown = "$" SHARD_INDEX),
    OPT_TEXT(out, "out", "DIR", NULL, "where share-I.vtw goes"),
    {0},
};
static const struct opt_block blocks[] = {OPT_ROWS(rows), {0}};

/* Runs a command line whose words have a NUL behind each, for the sake of its trials.
 */
static int run_words(const struct vt_buf *words, struct vt_err *err)
{
    static const struct opt_command *const known[] = {&cmd_tune, &cmd_capacity,
                                                      &cmd_validate};
    const char **argv;
    size_t which = 0;
    int n = 0, rc;

    while (which < VT_COUNT(known) &&
           (words->len == 0 || strcmp(known[which]->name, words->data) != 0))
        which++;
    if (which == VT_COUNT(known))
        return vt_fail(err, VT_EINPUT,
                       "'%.100s' has no trials: tune, capacity and validate have",
                       words->len > 0 ? words->data : "");
    for (size_t at = 0; at < words->len; at += strlen(words->data + at) + 1)
        n++;
    argv = calloc((size_t)n + 1, sizeof(*argv));
    if (!argv)
        return vt_nomem(err);
    n = 0;
    for (size_t at = 0; at < words->len; at += strlen(words->data + at) + 1)
        argv[n++] = words->data + at;
    cli_workers_settled();
    rc = cli_run(known[which], n - 1, argv + 1, err);
    free((void *)argv);
    return rc;
}

/* ---- a worker ------------------------------------------------------------------- */

/* Keeps what stands behind a descriptor to ourselves: what the command prints goes
 * nowhere. */
static int take_over(int fd, int flags)
{
    int mine = fcntl(fd, F_DUPFD_CLOEXEC, 3), none = open("/dev/null", flags);

    if (none >= 0) {
        (void)dup2(none, fd);
        close(none);
    }
    return mine;
}

static int serve_driver(struct vt_err *err)
{
    struct vt_jobs_worker w = {.in = take_over(STDIN_FILENO, O_RDONLY),
                               .out = take_over(STDOUT_FILENO, O_WRONLY)};
    struct vt_buf words = {0};
    int rc;

    /* Or a trial would go on for nobody. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    rc = vt_jobs_worker_command(&w, &words, err);
    if (rc == VT_OK) {
        vt_jobs_as_worker(&w);
        rc = run_words(&words, err);
        vt_jobs_elsewhere(NULL);
    }
    vt_buf_free(&words);
    close(w.in);
    close(w.out);
    return w.over ? VT_OK : rc;
}

/* ---- a share --------------------------------------------------------------------- */

static int find_index(const struct opt_args *a, uint32_t *index, struct vt_err *err)
{
    const struct worker_options *o = a->options;
    const char *text = getenv(SHARD_INDEX);
    char *end = NULL;
    long long v = o->index;

    if (!opt_given(a, &o->index)) {
        if (!text || !*text)
            return vt_fail(err, VT_EINPUT, "--shards needs --index or $" SHARD_INDEX);
        errno = 0;
        v = strtoll(text, &end, 10);
        if (errno || *end || v < 0)
            return vt_fail(err, VT_EINPUT, SHARD_INDEX ": '%.50s' is not an index",
                           text);
    }
    if (v >= (long long)o->shards)
        return vt_fail(err, VT_EINPUT, "share %lld: they count from 0 to %u", v,
                       o->shards - 1);
    *index = (uint32_t)v;
    return VT_OK;
}

static int save_share(struct vt_jobs_shard *s, const char *dir, struct vt_err *err)
{
    char name[64];
    int rc = vt_make_dirs(dir, NULL, err);

    (void)snprintf(name, sizeof(name), "share-%u.vtw", s->index);
    return rc == VT_OK ? vt_write_file_in(dir, name, &s->file, err) : rc;
}

static int run_share(const struct opt_args *a, struct vt_err *err)
{
    const struct worker_options *o = a->options;
    struct vt_buf words = {0}, inputs = {0};
    struct vt_jobs_shard s = {.of = o->shards, .command = &words, .inputs = &inputs};
    int rc = find_index(a, &s.index, err);

    if (rc == VT_OK && !o->out)
        rc = vt_fail(err, VT_EINPUT, "--shards needs --out");
    for (size_t i = 0; i < a->n_operands; i++)
        vt_buf_add(&words, a->operand[i], strlen(a->operand[i]) + 1);
    if (rc == VT_OK && words.failed)
        rc = vt_nomem(err);
    if (rc == VT_OK) {
        vt_note_inputs(&inputs);
        vt_jobs_as_shard(&s);
        rc = run_words(&words, err);
        vt_jobs_elsewhere(NULL);
        vt_note_inputs(NULL);
        if (s.over)
            rc = save_share(&s, o->out, err);
    }
    vt_buf_free(&s.file);
    vt_buf_free(&words);
    vt_buf_free(&inputs);
    return rc;
}

static int work(const struct opt_args *a, struct vt_err *err)
{
    const struct worker_options *o = a->options;

    if (o->shards > 0)
        return run_share(a, err);
    if (a->n_operands > 0 || o->out || opt_given(a, &o->index))
        return vt_fail(err, VT_EINPUT, "a share of a command needs --shards");
    return serve_driver(err);
}

static const char *const worker_examples[] = {
    "./run worker --shards 2 --index 0 --out shares -- tune --num-prompts 50 --search "
    "smart",
    "./run worker --shards 2 --index 1 --out shares -- tune --num-prompts 50 --search "
    "smart",
    NULL,
};

const struct opt_command cmd_worker = {
    .name = "worker",
    .summary = "run trials of tune, capacity and validate for others",
    .usage = "[--shards N [--index I] --out DIR -- COMMAND [FLAGS]]",
    .about =
        "Without flags it is what `--workers ray` starts on other machines: a command "
        "and\n"
        "numbers of its trials come on stdin, results go to stdout.\n"
        "With --shards it runs every N-th trial of a command and keeps the results in "
        "a\n"
        "file, say in a pod of a Kubernetes Indexed Job; `vtwin merge` makes the "
        "command's\n"
        "output of all of them.",
    .blocks = blocks,
    .size = sizeof(struct worker_options),
    .most = MOST_WORDS,
    .examples = worker_examples,
    .run = work,
};

/* ---- merging --------------------------------------------------------------------- */

struct names {
    struct vt_arena arena;
    const char **name; /* heap */
    size_t n, cap;
};

static int add_share(void *user, const char *path, struct vt_err *err)
{
    struct names *s = user;
    int rc;

    if (!vt_ends_with(path, ".vtw"))
        return VT_OK;
    rc = vt_grow(&s->name, &s->cap, s->n + 2, sizeof(*s->name), err);
    if (rc != VT_OK || (rc = vt_arena_text(&s->arena, path, &s->name[s->n], err)))
        return rc;
    s->name[++s->n] = NULL;
    return VT_OK;
}

static int merge(const struct opt_args *a, struct vt_err *err)
{
    const char *dir = a->operand[0];
    struct names files = {0};
    struct vt_buf words = {0}, inputs = {0};
    struct vt_jobs_shard s = {.command = &words, .inputs = &inputs};
    int rc = vt_each_entry(dir, add_share, &files, err);

    if (rc == VT_OK && files.n == 0)
        rc = vt_fail(err, VT_EINPUT, "%s: no share-I.vtw is there", dir);
    if (rc == VT_OK)
        rc = vt_jobs_shard_command(files.name[0], &words, err);
    if (rc == VT_OK) {
        s.path = files.name;
        vt_note_inputs(&inputs);
        vt_jobs_merge(&s);
        rc = run_words(&words, err);
        vt_jobs_elsewhere(NULL);
        vt_note_inputs(NULL);
    }
    free((void *)files.name);
    vt_arena_free(&files.arena);
    vt_buf_free(&words);
    vt_buf_free(&inputs);
    return rc;
}

static const struct opt_block no_blocks[] = {{0}};

static const char *const merge_examples[] = {"./run merge shares", NULL};

const struct opt_command cmd_merge = {
    .name = "merge",
    .summary = "make a command's output of the shares that workers have run",
    .usage = "DIR",
    .about =
        "Reads all files that `vtwin worker --shards N --out DIR` has left, and "
        "goes on\n"
        "where they end: prints and writes what their command would have, byte for "
        "byte.\n"
        "A share that is missing, or was made from other files, is an error.",
    .blocks = no_blocks,
    .least = 1,
    .most = 1,
    .examples = merge_examples,
    .run = merge,
};
