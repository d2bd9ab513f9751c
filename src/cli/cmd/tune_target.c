/* tune_target.c - from flags to a live server that trials are measured at. */
#include "cli/cmd/tune_target.h"

#include <stdlib.h>

#include "cli/ranks.h"
#include "cli/signals.h"

static bool stopped(void *user)
{
    (void)user;
    return cli_signal_caught() != 0;
}

static void tell(void *user, const char *text)
{
    (void)user;
    fprintf(stderr, "vtwin: %s\n", text);
}

int target_job_open(struct target_job *t, const struct cli_args *a,
                    const struct vt_slo *slo, struct vt_err *err)
{
    int rc;

    *t = (struct target_job){.on = cli_has(a, "target")};
    if (!t->on) {
        if (cli_has(a, "target-model") || cli_has(a, "num-warmups"))
            return vt_fail(err, VT_EINPUT, "--%s needs --target",
                           cli_has(a, "num-warmups") ? "num-warmups" : "target-model");
        return VT_OK;
    }
    if (cli_by_mpirun())
        return vt_fail(err, VT_EINPUT,
                       "--target measures one trial after the other: not with mpirun");
    cli_signals_catch();
    t->load = (struct vt_load_config){
        .base_url = cli_str(a, "target"),
        .api_key = getenv("OPENAI_API_KEY"),
        .model = cli_str(a, "target-model"),
        .logprobs = -1,
        .stopped = stopped,
    };
    t->target =
        (struct vt_target){.load = &t->load, .slo = *slo, .warmups = 1, .tell = tell};
    rc = vt_within(err, vt_load_url_check(t->load.base_url, err), "--target");
    return rc == VT_OK ? cli_u32(a, "num-warmups", 1, 100000, &t->target.warmups, err)
                       : rc;
}

/* A server that cannot be started anew has the settings it has. */
static int keep_settings(struct vt_tune_space *s, const struct cli_args *a,
                         struct vt_err *err)
{
    static const char *const name[VT_TUNE_AXES] = {
        "max-num-seqs",           "max-num-batched-tokens", "gpu-memory-utilization",
        "tensor-parallel-size",   "data-parallel-size",     "routing",
        "num-speculative-tokens", "prefix-caching"};

    for (int i = 0; i < VT_TUNE_AXES; i++) {
        if (s->n[i] > 1 && cli_has(a, name[i]))
            return vt_fail(err, VT_EINPUT,
                           "--%s: a live server needs --restart-cmd to change it",
                           name[i]);
        s->n[i] = 1;
    }
    tell(NULL,
         "no --restart-cmd: the server stays as it is, only the load is searched");
    return VT_OK;
}

int target_job_tune(struct target_job *t, const struct cli_args *a,
                    struct vt_tune_spec *spec, const char **timed_by,
                    struct vt_err *err)
{
    double seconds = 600;
    int rc = target_job_open(t, a, &spec->slo, err);

    if (rc == VT_OK)
        rc = cli_f64(a, "ready-timeout", 0, 1e6, &seconds, err);
    if (rc != VT_OK)
        return rc;
    if (!t->on) {
        if (cli_has(a, "restart-cmd") || cli_has(a, "ready-timeout"))
            return vt_fail(err, VT_EINPUT, "--%s needs --target",
                           cli_has(a, "restart-cmd") ? "restart-cmd" : "ready-timeout");
        return VT_OK;
    }
    t->target.restart = cli_str(a, "restart-cmd");
    t->target.ready_timeout_ns = vt_ns_from_ms(seconds * 1e3);
    spec->target = &t->target;
    spec->workers = 1;
    *timed_by = t->load.base_url;
    return t->target.restart ? VT_OK : keep_settings(&spec->space, a, err);
}

void target_job_use(struct target_job *t, struct vt_trial *trial, uint32_t *workers)
{
    if (!t->on)
        return;
    trial->measure = vt_target_measure;
    trial->measure_user = &t->target;
    *workers = 1;
}

void target_job_close(struct target_job *t)
{
    vt_target_close(&t->target);
}
