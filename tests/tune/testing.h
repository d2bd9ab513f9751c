/* testing.h - an engine whose times are known: one request at a time, 10 ms a step. */
#ifndef VT_TESTS_TUNE_TESTING_H
#define VT_TESTS_TUNE_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "model/model.h"
#include "tune/tune.h"

struct toy {
    char path[64]; /* its workload */
    struct vt_latency *model;
    struct vt_trials *kept;
    struct vt_trial trial;
};

/* A temporary file with this text. */
static void toy_file(char path[64], const char *text)
{
    size_t len = strlen(text);
    int fd;

    (void)snprintf(path, 64, "/tmp/vt-tune-XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), (ssize_t)len);
    close(fd);
}

/* step: what each step takes, as vtwin's --model has it. */
static void toy_open_paced(struct toy *t, const char *workload, const char *step)
{
    struct vt_err err = {0};

    memset(t, 0, sizeof(*t));
    toy_file(t->path, workload);
    assert_int_equal(vt_model_open_inline(&t->model, step, &err), VT_OK);
    assert_int_equal(vt_trials_new(&t->kept, &err), VT_OK);
    vt_engine_config_init(&t->trial.engine);
    t->trial.engine.max_num_seqs = 1;
    t->trial.engine.num_gpu_blocks = 4096;
    t->trial.engine.max_model_len = 4096;
    t->trial.engine.async_scheduling = false;
    t->trial.engine.enable_prefix_caching = false;
    assert_int_equal(vt_engine_config_check(&t->trial.engine, &err), VT_OK);
    t->trial.model = t->model;
    t->trial.workload = t->path;
    t->trial.kept = t->kept;
    t->trial.seed = 1;
}

static inline void toy_open(struct toy *t, const char *workload)
{
    toy_open_paced(t, workload, "linear:base=10000");
}

static void toy_close(struct toy *t)
{
    vt_latency_close(t->model);
    vt_trials_free(t->kept);
    unlink(t->path);
}

#endif
