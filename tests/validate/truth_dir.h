/* A small experiment's directory, written anew for each test. */
#ifndef VT_TESTS_TRUTH_DIR_H
#define VT_TESTS_TRUTH_DIR_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "validate/validate.h"

static char truth_root[64];
static char truth_said[8192]; /* all that was told */

static void truth_put(const char *name, const char *text)
{
    char path[512];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", truth_root, name);
    for (char *p = path + strlen(truth_root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        mkdir(path, 0700);
        *p = '/';
    }
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void truth_put_in(const char *dir, const char *name, const char *text)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    truth_put(path, text);
}

/* mean, p90, p99 of E2E and TTFT in seconds; output lengths of `out` on average. */
static void truth_metrics(const char *dir, const char *name, int count, double e2e,
                          double ttft, double out)
{
    char text[1024];

    snprintf(text, sizeof(text),
             "{\"load_summary\": {\"count\": %d},\n \"successes\": {\"count\": %d, "
             "\"latency\": {\"request_latency\": {\"mean\": %g, \"p90\": %g, \"p99\": "
             "%g}, \"time_to_first_token\": {\"mean\": %g, \"p90\": %g, \"p99\": %g}, "
             "\"inter_token_latency\": {\"mean\": 0.001}}, \"output_len\": {\"mean\": "
             "%g}}, \"failures\": {\"count\": 1}}",
             count + 1, count, e2e, 2 * e2e, 3 * e2e, ttft, 2 * ttft, 3 * ttft, out);
    truth_put_in(dir, name, text);
}

static void truth_experiment(const char *dir, const char *perf)
{
    char path[256];

    truth_put_in(dir, "exp-config.yaml",
                 "model: meta-llama/Llama-3.1-8B-Instruct\ntensor_parallelism: 1\n"
                 "max_model_len: 4096\nmax_num_batched_tokens: 2048\n"
                 "max_num_seqs: 128\napp: inference-perf\n");
    truth_put_in(dir, "profile.yaml",
                 "{\"load\": {\"type\": \"constant\", \"stages\": [{\"rate\": 4, "
                 "\"duration\": 2.5}, {\"rate\": 8, \"duration\": 2.5}]}, \"data\": "
                 "{\"type\": \"shared_prefix\", \"shared_prefix\": {\"question_len\": "
                 "447, \"system_prompt_len\": 100, \"output_len\": 24, "
                 "\"num_unique_system_prompts\": 9, \"num_users_per_system_prompt\": "
                 "5}}}\n");
    truth_put_in(dir, "vllm.log",
                 "INFO x\nINFO [kv_cache_utils.py:1307] GPU KV cache size: 119,408 "
                 "tokens\nGPU KV cache size: 16 tokens\n");
    snprintf(path, sizeof(path), "%s/%s", dir, perf);
    truth_metrics(path, "summary_lifecycle_metrics.json", 30, 0.4, 0.05, 24);
    truth_metrics(path, "stage_0_lifecycle_metrics.json", 10, 0.3, 0.04, 24);
    truth_metrics(path, "stage_1_lifecycle_metrics.json", 20, 0.5, 0.06, 24);
}

#define TRUTH_ENTRY(id, more)                                                       \
    "{\"id\": " id ", \"hw\": \"H100\", \"dp\": null, \"cpu_offload\": false, "     \
    "\"gpu_mem\": 0.9, \"precision\": \"FP16\", \"safe\": \"safe\", \"workload\": " \
    "\"general-lite\", \"done\": true" more "}"

static void truth_tell_all(void *user, const char *line)
{
    size_t n = strlen(truth_said);

    (void)user;
    snprintf(truth_said + n, sizeof(truth_said) - n, "%s\n", line);
}

static int truth_begin(void **state)
{
    (void)state;
    snprintf(truth_root, sizeof(truth_root), "/tmp/vtwin-truth-XXXXXX");
    truth_said[0] = '\0';
    return mkdtemp(truth_root) ? 0 : -1;
}

static int truth_end(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf '%s'", truth_root);
    return system(command);
}

#endif
