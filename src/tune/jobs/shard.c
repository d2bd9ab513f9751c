/* shard.c - a share of a command's jobs, kept in a file, and all shares together.
 *
 * The file is the messages that a worker would have got and sent: the command, which
 * share it is, answers. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tune/jobs/jobs.h"

/* What must be the same in all shares. */
struct kin {
    uint64_t n; /* jobs of the batch */
    uint64_t inputs;
    char version[16];
};

static const size_t MOST_INPUT = SIZE_MAX / 2;

/* Of the files' names and what they hold. What can't be read again counts as empty. */
static int sum_inputs(const struct vt_buf *names, uint64_t *sum, struct vt_err *err)
{
    struct vt_buf text = {.max = MOST_INPUT};

    *sum = 0;
    for (size_t at = 0; at < names->len; at += strlen(names->data + at) + 1) {
        const char *name = names->data + at;
        struct stat st;

        vt_buf_clear(&text);
        if (stat(name, &st) == 0 && S_ISREG(st.st_mode)) {
            int rc = vt_read_file(name, MOST_INPUT, &text, err);

            if (rc != VT_OK) {
                vt_buf_free(&text);
                return rc;
            }
        }
        *sum = vt_hash_bytes(name, strlen(name), *sum);
        *sum = vt_hash_bytes(text.data, text.len, *sum);
    }
    vt_buf_free(&text);
    return VT_OK;
}

static int describe(const struct vt_jobs_shard *s, const struct vt_jobs *j,
                    struct kin *kin, struct vt_err *err)
{
    memset(kin, 0, sizeof(*kin)); /* it is compared as bytes */
    kin->n = j->n;
    (void)snprintf(kin->version, sizeof(kin->version), "%s", VT_VERSION);
    return sum_inputs(s->inputs, &kin->inputs, err);
}

/* ---- making one ------------------------------------------------------------------ */

static void put_message(struct vt_buf *b, const struct job_head *h, const void *bytes)
{
    vt_buf_add(b, h, sizeof(*h));
    vt_buf_add(b, bytes, h->len);
}

struct share {
    struct vt_jobs_shard *s;
    const struct vt_jobs *all;
};

static int run_mine(void *user, size_t i, struct vt_buf *result, struct vt_err *err)
{
    const struct share *m = user;

    return m->all->run(m->all->user, m->s->index + i * m->s->of, result, err);
}

static int keep_mine(void *user, size_t i, const char *result, size_t len,
                     struct vt_err *err)
{
    const struct share *m = user;
    const struct job_head h = {
        .kind = JOB_ANSWER, .index = m->s->index + i * m->s->of, .len = len + 1};

    vt_buf_add(&m->s->file, &h, sizeof(h));
    vt_buf_char(&m->s->file, VT_OK);
    vt_buf_add(&m->s->file, result, len);
    return m->s->file.failed ? vt_nomem(err) : VT_OK;
}

static int run_share(void *user, const struct vt_jobs *j, uint32_t batch,
                     struct vt_err *err)
{
    struct vt_jobs_shard *s = user;
    struct share m = {s, j};
    struct vt_jobs mine = {
        .n = j->n > s->index ? (j->n - s->index - 1) / s->of + 1 : 0,
        .run = run_mine,
        .done = keep_mine,
        .user = &m,
        .workers = j->workers,
    };
    struct kin kin;
    int rc = describe(s, j, &kin, err);

    (void)batch;
    put_message(&s->file,
                &(struct job_head){.kind = JOB_COMMAND, .len = s->command->len},
                s->command->data);
    put_message(
        &s->file,
        &(struct job_head){
            .kind = JOB_SHARD, .batch = s->of, .index = s->index, .len = sizeof(kin)},
        &kin);
    if (rc == VT_OK)
        rc = job_desk_run(&mine, err);
    if (rc != VT_OK)
        return rc;
    s->over = true;
    return vt_fail(err, VT_EIO, "its share is done");
}

void vt_jobs_as_shard(struct vt_jobs_shard *s)
{
    s->self = (struct vt_jobs_elsewhere){run_share, s};
    vt_jobs_elsewhere(&s->self);
}

/* ---- all of them ----------------------------------------------------------------- */

static int fail_odd(const char *path, struct vt_err *err)
{
    return vt_fail(err, VT_EINPUT, "%s: not a whole file of `vtwin worker --shards`",
                   path);
}

static int open_shard(const char *path, int *fd, struct vt_buf *words,
                      struct vt_err *err)
{
    struct job_head h;

    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0)
        return vt_fail(err, VT_EINPUT, "%s: %s", path, strerror(errno));
    if (job_recv(*fd, &h, words) && h.kind == JOB_COMMAND && words->len > 0 &&
        words->data[words->len - 1] == '\0')
        return VT_OK;
    close(*fd);
    return fail_odd(path, err);
}

int vt_jobs_shard_command(const char *path, struct vt_buf *words, struct vt_err *err)
{
    int fd, rc = open_shard(path, &fd, words, err);

    if (rc == VT_OK)
        close(fd);
    return rc;
}

struct merge {
    const struct vt_jobs_shard *s;
    struct job_book book;
    struct kin kin;
    bool *answered;    /* of each job */
    const char **from; /* the file of each share; NULL: none yet */
    uint32_t of;       /* shares; 0: not known yet */
};

/* Says which share it is, of the same command, version and files. */
static int check_shard(struct merge *m, const char *path, const struct job_head *h,
                       const struct vt_buf *b, struct vt_err *err)
{
    struct kin kin;

    if (h->kind != JOB_SHARD || b->len != sizeof(kin) || h->batch == 0 ||
        h->index >= h->batch)
        return fail_odd(path, err);
    memcpy(&kin, b->data, sizeof(kin));
    if (memcmp(kin.version, m->kin.version, sizeof(kin.version)) != 0)
        return vt_fail(err, VT_EINPUT, "%s: made by vtwin %.15s, not " VT_VERSION, path,
                       kin.version);
    if (kin.inputs != m->kin.inputs || kin.n != m->kin.n)
        return vt_fail(err, VT_EINPUT, "%s: it has read other files than are here",
                       path);
    if (m->of == 0)
        m->of = h->batch;
    if (!m->from)
        m->from = calloc(m->of, sizeof(*m->from));
    if (!m->from)
        return vt_nomem(err);
    if (h->batch != m->of)
        return vt_fail(err, VT_EINPUT, "%s: a share of %u, the others are of %u", path,
                       h->batch, m->of);
    if (m->from[h->index])
        return vt_fail(err, VT_EINPUT, "%s and %s are the same share",
                       m->from[h->index], path);
    m->from[h->index] = path;
    return VT_OK;
}

static int take_shard(struct merge *m, const char *path, struct vt_err *err)
{
    struct vt_buf b = {0};
    struct job_head h;
    uint64_t index = 0;
    int fd, rc = open_shard(path, &fd, &b, err);

    if (rc != VT_OK)
        goto out;
    if (b.len != m->s->command->len || memcmp(b.data, m->s->command->data, b.len) != 0)
        rc = vt_fail(err, VT_EINPUT, "%s: a share of another command", path);
    else if (!job_recv(fd, &h, &b))
        rc = fail_odd(path, err);
    else if ((rc = check_shard(m, path, &h, &b, err)) == VT_OK)
        index = h.index;
    while (rc == VT_OK && job_recv(fd, &h, &b)) {
        if (h.kind != JOB_ANSWER || h.index >= m->kin.n || h.index % m->of != index ||
            m->answered[h.index]) {
            rc = fail_odd(path, err);
            break;
        }
        m->answered[h.index] = true;
        job_book_take(&m->book, h.index, b.data, b.len);
    }
    close(fd);
    for (uint64_t i = index; i < m->kin.n && rc == VT_OK; i += m->of)
        if (!m->answered[i])
            rc = fail_odd(path, err);
out:
    vt_buf_free(&b);
    return rc;
}

static int run_merged(void *user, const struct vt_jobs *j, uint32_t batch,
                      struct vt_err *err)
{
    const struct vt_jobs_shard *s = user;
    struct merge m = {.s = s};
    int rc;

    if (batch > 0)
        return job_desk_run(j, err);
    job_book_open(&m.book, j);
    m.answered = calloc(j->n + 1, sizeof(*m.answered));
    rc = m.answered ? describe(s, j, &m.kin, err) : vt_nomem(err);
    for (const char *const *path = s->path; *path && rc == VT_OK; path++)
        rc = take_shard(&m, *path, err);
    for (uint32_t i = 0; i < m.of && rc == VT_OK; i++)
        if (!m.from[i])
            rc = vt_fail(err, VT_EINPUT, "share %u of %u is missing", i, m.of);
    free(m.answered);
    free((void *)m.from);
    return job_book_end(&m.book, rc, err);
}

void vt_jobs_merge(struct vt_jobs_shard *s)
{
    s->self = (struct vt_jobs_elsewhere){run_merged, s};
    vt_jobs_elsewhere(&s->self);
}
