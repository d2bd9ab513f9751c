/* simulate_out.c - writes requests.jsonl, steps.jsonl, report.html and
 * summary.json.
 *
 * summary.json is renamed into place last, so where there is one the others are
 * whole and belong to it.
 *
 * Requests finish in one order and are written in another, that of the workload, so
 * that replaying requests.jsonl keeps the order of simultaneous arrivals. A line waits
 * until all before it are written. Sessions are the exception: a late last turn would
 * make the whole file wait, and their arrivals follow from completions anyway. */
#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "cli/cmd/simulate.h"
#include "cli/signals.h"

enum { REQUESTS, STEPS, PAGE, SUMMARY, N_FILES };

static const char *const file_name[N_FILES] = {"requests.jsonl", "steps.jsonl",
                                               "report.html", "summary.json"};

struct out_file {
    char *path;
    struct vt_out *out; /* NULL once committed or abandoned */
    struct vt_buf buf;  /* not yet handed to it */
};

struct simulate_out {
    char *dir;
    char *made; /* topmost directory made for it; NULL: none */
    struct out_file file[N_FILES];
    const struct simulate_job *job;
    bool in_order;       /* of the workload; else written as they finish */
    size_t next;         /* the first one not yet written */
    struct vt_buf *held; /* a ring: the line of request i is at i & (n_held - 1) */
    size_t n_held;       /* a power of two; no line is further than that from next */
};

static char *join_path(const char *dir, const char *name)
{
    size_t len = strlen(dir) + strlen(name) + 2;
    char *path = malloc(len);

    if (path)
        snprintf(path, len, "%s/%s", dir, name);
    return path;
}

static int flush_if_full(struct out_file *f, struct vt_err *err)
{
    if (cli_signal_caught())
        return vt_fail(err, VT_EIO, "interrupted");
    return vt_out_flush(f->out, &f->buf, false, err);
}

/* Removes dir and its parents up to and including `made`; full ones stay. */
static void unmake_dirs(char *dir, const char *made)
{
    for (;;) {
        char *slash;

        for (size_t n = strlen(dir); n > 1 && dir[n - 1] == '/'; n--)
            dir[n - 1] = '\0';
        if (rmdir(dir) != 0 && errno != ENOENT)
            return;
        slash = strrchr(dir, '/');
        if (strlen(dir) <= strlen(made) || !slash || slash == dir)
            return;
        *slash = '\0';
    }
}

static void free_out(struct simulate_out *o)
{
    for (size_t i = 0; i < o->n_held; i++)
        vt_buf_free(&o->held[i]);
    free(o->held);
    for (size_t i = 0; i < N_FILES; i++) {
        free(o->file[i].path);
        vt_buf_free(&o->file[i].buf);
    }
    free(o->dir);
    free(o->made);
    free(o);
}

void simulate_out_abandon(struct simulate_out *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < N_FILES; i++)
        vt_out_abandon(o->file[i].out);
    if (o->made)
        unmake_dirs(o->dir, o->made);
    free_out(o);
}

int simulate_out_open(struct simulate_out **out, const char *dir,
                      const struct simulate_job *j, struct vt_err *err)
{
    const struct vt_engine_config *c = &j->spec.engine;
    struct vt_meta meta = j->workload.meta;
    struct simulate_out *o = calloc(1, sizeof(*o));
    int rc;

    *out = NULL;
    if (!o)
        return vt_nomem(err);
    o->job = j;
    o->in_order = j->spec.arrivals != VT_ARRIVALS_SESSION;
    o->dir = join_path(dir, "");
    rc = o->dir ? vt_make_dirs(dir, &o->made, err) : vt_nomem(err);
    for (size_t i = 0; i < N_FILES && rc == VT_OK; i++) {
        o->file[i].path = join_path(dir, file_name[i]);
        rc = o->file[i].path ? vt_out_open(&o->file[i].out, o->file[i].path, err)
                             : vt_nomem(err);
    }
    if (rc != VT_OK) {
        simulate_out_abandon(o);
        return rc;
    }
    /* Limits as they were in force, so that the trace replays under the same ones. */
    if (c->compat == VT_COMPAT_VLLM)
        meta.vllm_version = j->engine.vllm_version;
    meta.clock = j->spec.clock;
    meta.num_gpu_blocks = c->num_gpu_blocks;
    meta.block_size = c->block_size;
    meta.max_num_seqs = c->max_num_seqs;
    meta.max_num_batched_tokens = c->max_num_batched_tokens;
    meta.max_model_len = c->max_model_len;
    /* An engine that is warmed for all is so for as many as it takes. */
    meta.warmed_for = c->warmed_for > 0 ? c->warmed_for : c->max_num_seqs;
    meta.async_scheduling = c->async_scheduling;
    meta.enable_prefix_caching = c->enable_prefix_caching;
    vt_trace_write_meta(&o->file[REQUESTS].buf, &j->workload, &meta,
                        "vtwin " VT_VERSION);
    *out = o;
    return VT_OK;
}

/* Makes room for a line that is so far from the next one to write. */
static int widen_held(struct simulate_out *o, size_t distance, struct vt_err *err)
{
    size_t n = o->n_held > 0 ? o->n_held : 64;
    struct vt_buf *held;

    if (distance < o->n_held)
        return VT_OK;
    while (n <= distance)
        n *= 2;
    held = calloc(n, sizeof(*held));
    if (!held)
        return vt_nomem(err);
    for (size_t i = o->next; i < o->next + o->n_held; i++)
        held[i & (n - 1)] = o->held[i & (o->n_held - 1)];
    free(o->held);
    o->held = held;
    o->n_held = n;
    return VT_OK;
}

static int hold_line(struct simulate_out *o, const struct vt_served *s,
                     struct vt_err *err)
{
    struct vt_buf *line;
    int rc = widen_held(o, s->index - o->next, err);

    if (rc != VT_OK)
        return rc;
    line = &o->held[s->index & (o->n_held - 1)];
    vt_trace_write(line, s);
    return line->failed ? vt_nomem(err) : VT_OK;
}

int simulate_out_request(struct simulate_out *o, const struct vt_served *s,
                         struct vt_err *err)
{
    struct out_file *f = &o->file[REQUESTS];
    struct vt_buf *line;
    int rc;

    if (o->in_order && s->index != o->next)
        return hold_line(o, s, err);
    vt_trace_write(&f->buf, s);
    rc = flush_if_full(f, err);
    o->next++;
    /* The lines whose turn has come. */
    while (rc == VT_OK && o->n_held > 0 &&
           (line = &o->held[o->next & (o->n_held - 1)])->len > 0) {
        vt_buf_add(&f->buf, line->data, line->len);
        vt_buf_free(line);
        rc = flush_if_full(f, err);
        o->next++;
    }
    return rc;
}

int simulate_out_step(struct simulate_out *o, const struct vt_step_line *s,
                      struct vt_err *err)
{
    vt_steps_write(&o->file[STEPS].buf, s);
    return flush_if_full(&o->file[STEPS], err);
}

int simulate_out_commit(struct simulate_out *o, const struct vt_summary *s,
                        const struct vt_buf *page, struct vt_err *err)
{
    size_t done = 0;
    int rc = VT_OK;

    assert(!o->in_order || o->next == o->job->workload.n);
    simulate_json(&o->file[SUMMARY].buf, s, o->job);
    vt_buf_add(&o->file[PAGE].buf, page->data, page->len);
    for (size_t i = 0; i < N_FILES && rc == VT_OK; i++)
        rc = vt_out_flush(o->file[i].out, &o->file[i].buf, true, err);
    if (rc == VT_OK && cli_signal_caught())
        rc = vt_fail(err, VT_EIO, "interrupted");
    /* An older summary must not stand beside newer requests. */
    if (rc == VT_OK && unlink(o->file[SUMMARY].path) != 0 && errno != ENOENT)
        rc = vt_fail(err, VT_EIO, "%s: %s", o->file[SUMMARY].path, strerror(errno));
    for (; done < N_FILES && rc == VT_OK; done++) {
        struct vt_out *out = o->file[done].out;

        o->file[done].out = NULL;
        rc = vt_out_commit(out, err);
    }
    if (rc == VT_OK) {
        free_out(o);
        return VT_OK;
    }
    /* Those that already had their names are taken back. */
    for (size_t i = 0; i + 1 < done; i++)
        unlink(o->file[i].path);
    simulate_out_abandon(o);
    return rc;
}
