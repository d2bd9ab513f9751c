/* target_server.c - the live server between trials: warm, with an empty cache, and
 * started again with other settings. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "live/live.h"
#include "tune/target.h"

enum { END_S = 60 };
#define LOOK_NS (200 * VT_MS) /* between looks at a server that starts */

static void tell_user(const struct vt_target *x, const char *text)
{
    if (x->tell)
        x->tell(x->user, text);
}

/* ---- before a trial ------------------------------------------------------------- */

static int find_model(struct vt_target *x, struct vt_err *err)
{
    struct vt_load_model found;
    struct vt_arena arena = {0};
    int rc;

    if (x->load->model || x->model[0])
        return VT_OK;
    rc = vt_load_find_model(x->load, &arena, &found, err);
    if (rc == VT_OK)
        snprintf(x->model, sizeof(x->model), "%s", found.id);
    vt_arena_free(&arena);
    return rc;
}

void target_config(struct vt_load_config *c, const struct vt_target *x)
{
    *c = *x->load;
    if (!c->model)
        c->model = x->model;
}

/* One after the other: the answer to the last one also says that the server has done
 * with what was cut off before. */
static int warm_up(struct vt_target *x, const struct vt_load_plan *p,
                   struct vt_err *err)
{
    struct vt_load_plan few = *p;
    struct vt_load_config c;
    struct vt_load_records r = {0};
    int rc;

    target_config(&c, x);
    few.timed = false;
    few.n = x->warmups < 1 ? 1 : x->warmups < p->n ? x->warmups : p->n;
    few.n_turns = few.n;
    c.max_concurrency = 1;
    c.progress = NULL;
    rc = vt_load_run(&r, &few, NULL, &c, err);
    x->is_warm = true;
    vt_load_records_free(&r);
    return rc;
}

/* A cache that still holds the last trial's prompts would flatter this one. */
static void reset_cache(struct vt_target *x)
{
    const struct vt_load_call call = {
        .path = "/reset_prefix_cache", .body = "", .timeout_ns = 30 * VT_SEC};
    struct vt_buf reply = {0};
    struct vt_err err = {0};
    int status = 0;

    if (x->cannot_reset)
        return;
    if (vt_load_call(x->load, &call, &status, &reply, &err) != VT_OK || status != 200) {
        x->cannot_reset = true;
        tell_user(x,
                  "the server does not reset its prefix cache: trials find the prompts "
                  "of those before (vLLM: VLLM_SERVER_DEV_MODE=1)");
    }
    vt_buf_free(&reply);
}

int target_prepare(struct vt_target *x, const struct vt_load_plan *p,
                   struct vt_err *err)
{
    int rc = find_model(x, err);

    if (rc == VT_OK && !x->is_warm)
        rc = warm_up(x, p, err);
    if (rc == VT_OK)
        reset_cache(x);
    return rc;
}

/* ---- starting it again ---------------------------------------------- */

static bool put_value(struct vt_buf *b, const char *name, size_t len,
                      const struct vt_setting *s)
{
    const struct {
        const char *name;
        double value;
    } row[] = {
        {"max_num_seqs", s->max_num_seqs},
        {"max_num_batched_tokens", s->max_num_batched_tokens},
        {"gpu_memory_utilization", s->gpu_memory_utilization},
        {"tensor_parallel_size", s->tp},
        {"data_parallel_size", s->dp},
        {"num_speculative_tokens", s->spec_tokens},
    };

    if (vt_is_text("kv_cache_dtype", name, len)) {
        vt_buf_str(b, vt_setting_kv_dtype(s));
        return true;
    }
    for (size_t i = 0; i < VT_COUNT(row); i++)
        if (vt_is_text(row[i].name, name, len)) {
            vt_buf_f64(b, row[i].value);
            return true;
        }
    return false;
}

/* Braces around anything else are the shell's. */
int target_command(struct vt_buf *b, const char *text, const struct vt_setting *s,
                   struct vt_err *err)
{
    size_t found = 0;

    for (const char *at = text; *at; at++) {
        const char *end = *at == '{' ? strchr(at, '}') : NULL;

        if (end && put_value(b, at + 1, (size_t)(end - at - 1), s)) {
            found++;
            at = end;
        } else {
            vt_buf_char(b, *at);
        }
    }
    if (b->failed)
        return vt_nomem(err);
    return found > 0 ? VT_OK
                     : vt_fail(err, VT_EINPUT,
                               "the restart command has no {max_num_seqs}, "
                               "{max_num_batched_tokens} or other setting in it");
}

static bool is_healthy(const struct vt_target *x)
{
    const struct vt_load_call call = {.path = "/health", .timeout_ns = 5 * VT_SEC};
    struct vt_buf reply = {0};
    struct vt_err err;
    int status = 0;
    bool ok = vt_load_call(x->load, &call, &status, &reply, &err) == VT_OK;

    vt_buf_free(&reply);
    return ok && status == 200;
}

/* A command that ends well has left a server behind; one that goes on is the server. */
static int wait_healthy(struct vt_target *x, struct vt_err *err)
{
    vt_ns until = vt_wall_ns() + x->ready_timeout_ns;
    struct vt_err ended;

    for (;;) {
        int status = vt_proc_running(&x->server, &ended) ? 0 : x->server.status;

        if (status != 0)
            return vt_fail(err, VT_EINPUT, "the restart command failed: %s %d",
                           WIFEXITED(status) ? "status" : "signal",
                           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        if (is_healthy(x))
            return VT_OK;
        if (x->load->stopped && x->load->stopped(x->load->user))
            return vt_fail(err, VT_EIO, "stopped");
        if (vt_wall_ns() >= until)
            return vt_fail(err, VT_EINPUT, "%s/health: not ready in %g s",
                           x->load->base_url, (double)x->ready_timeout_ns / 1e9);
        vt_sleep_ns(LOOK_NS);
    }
}

int vt_target_set(struct vt_target *x, const struct vt_setting *s, struct vt_err *err)
{
    struct vt_buf command = {0};
    int rc;

    if (!x->restart)
        return VT_OK;
    rc = target_command(&command, x->restart, s, err);
    vt_proc_stop(&x->server);
    if (rc == VT_OK) {
        tell_user(x, command.data);
        /* A group of its own: a shell's children end with it. What it prints goes where
         * messages go: stdout holds results. */
        x->server = (struct vt_proc){.name = "the restart command",
                                     .our_environment = true,
                                     .own_group = true,
                                     .outlives = true,
                                     .output = VT_PROC_TO_STDERR,
                                     .grace = END_S * VT_SEC};
        vt_proc_arg_pair(&x->server, "/bin/sh", "-c");
        vt_proc_arg(&x->server, command.data);
        rc = vt_proc_start(&x->server, err);
    }
    if (rc == VT_OK)
        rc = wait_healthy(x, err);
    x->is_warm = x->cannot_reset = false;
    vt_buf_free(&command);
    return rc;
}

void vt_target_close(struct vt_target *x)
{
    vt_proc_stop(&x->server);
}
