/* cmd_bench.c - vtwin bench: the subcommands and every flag of theirs. */
#include "cli/cmd/bench.h"

static const char *const backends[] = {"openai", "vllm", "openai-chat", NULL};
const char *const bench_datasets[] = {"random",     "sharegpt",    "prefix_repetition",
                                      "custom",     "timed_trace", "trace",
                                      "multi-turn", NULL};
static const char *const ramps[] = {"linear", "exponential", NULL};
static const char *const assignments[] = {"random", "round-robin", NULL};

#define OPT_T             struct bench_options
#define LEN(f, n, d, ...) OPT_U32(f, n, "N", 0, INT32_MAX, d, __VA_ARGS__)
#define SAMPLING(i, n, v, ...)                                                      \
    OPT_READ(sampling[i], n, v, bench_read_sampling, NULL, __VA_ARGS__, .lo = -1e9, \
             .hi = 1e9)
#define OF_VLLM "of vllm bench; accepted, without effect"

enum { SERVE = 1, COMPARE = 2, SWEEP = 4 };

static const struct opt_row rows[] = {
    /* where to */
    OPT_WORD(backend, "backend", "NAME", backends, "openai",
             "vllm and openai: completions; openai-chat: chats"),
    OPT_TEXT(c.base_url, "base-url", "URL", NULL, "the server; https:// for TLS",
             .shown = "http://HOST:PORT"),
    OPT_TEXT(host, "host", "NAME", "127.0.0.1", "the server, without a base URL"),
    OPT_U32(port, "port", "N", 1, 65535, "8000", "its port"),
    OPT_TEXT(c.endpoint, "endpoint", "PATH", NULL, "where requests go",
             .shown = "by backend"),
    OPT_LIST(headers, "header", "KEY=VALUE ...", "headers for every request"),
    OPT_FLAG(c.insecure, "insecure", "take any certificate"),
    OPT_TEXT(c.ca_file, "cacert", "FILE", NULL, "certificates to trust (PEM)",
             .shown = "the system's"),
    OPT_TEXT(c.api_key, "api-key", "KEY", NULL, "sent as Authorization: Bearer",
             .shown = "$OPENAI_API_KEY"),
    OPT_TEXT(model, "model", "NAME", NULL, "model to ask for",
             .shown = "the server's first"),
    OPT_TEXT(served_model_name, "served-model-name", "NAME", NULL,
             "its name in requests", .shown = "the model"),
    OPT_U32(timeout_s, "request-timeout", "SEC", 1, 1 << 30, "21600",
            "give a request up after so long", .unit = VT_SEC),
    /* what */
    OPT_WORD(dataset, "dataset-name", "NAME", bench_datasets, "random",
             "which requests to send"),
    LEN(num_prompts, "num-prompts", "1000", "how many; 0: all the file has"),
    OPT_I64(seed, "seed", "N", 0, INT64_MAX, "0",
            "same seed, same requests at the same times"),
    OPT_FLAG(skip_chat_template, "skip-chat-template",
             "custom: send prompts as they are"),
    LEN(what.data.chunk_tokens, "timed-trace-chunk-hash-size", "16",
        "tokens of a hash id (Mooncake: 512)"),
    OPT_F64(what.data.sec_multiplier, "timed-trace-sec-multiplier", "X", 1e-12, 1e12,
            "1", "makes seconds of timestamps (Mooncake: 0.001)"),
    OPT_TEXT(what.data.label_timestamp, "timed-trace-label-timestamp", "KEY",
             "timestamp", "a timestamp's name"),
    OPT_TEXT(what.data.label_input, "timed-trace-label-input-length", "KEY",
             "input_length", "and so on"),
    OPT_TEXT(what.data.label_output, "timed-trace-label-output-length", "KEY",
             "output_length", "and so on"),
    OPT_TEXT(what.data.label_hashes, "timed-trace-label-hash-ids", "KEY", "hash_ids",
             "and so on"),
    OPT_SWITCH(self_timed, "self-timed", "on",
               "timed_trace, trace: requests come when the file says"),
    OPT_F64(what.data.speed, "trace-speed", "X", 1e-6, 1e6, "1",
            "trace: times as fast as recorded"),
    OPT_FLAG(what.data.token_ids, "prompt-token-ids",
             "random, trace: send ids in place of text"),
    OPT_U32(c.max_sessions, "max-active-conversations", "N", 1, 1 << 20, NULL,
            "multi-turn: how many at a time", .shown = "all"),
    OPT_FLAG(c.session_header, "session-header", "send X-Session-ID"),
    /* when */
    OPT_READ(arrivals.rate, "request-rate", "R", traffic_read_positive, "inf",
             "requests a second; inf: all at once", .lo = 1e-9, .hi = 1e9),
    OPT_READ(arrivals.burstiness, "burstiness", "X", traffic_read_positive, "1.0",
             "gamma's shape; 1: Poisson; inf: even", .lo = 1e-9, .hi = 1e9),
    OPT_U32(c.max_concurrency, "max-concurrency", "N", 1, 1 << 20, NULL,
            "requests in flight", .shown = "no limit"),
    OPT_WORD(ramp, "ramp-up-strategy", "NAME", ramps, NULL,
             "let the rate grow, in place of a rate"),
    LEN(about.ramp_start, "ramp-up-start-rps", NULL, "from this rate"),
    LEN(about.ramp_end, "ramp-up-end-rps", NULL, "to this one"),
    OPT_U32(warmups, "num-warmups", "N", 0, 1 << 20, "0",
            "requests before, which do not count"),
    OPT_U32(ready_timeout_s, "ready-check-timeout-sec", "SEC", 0, 1 << 20, "0",
            "wait so long for the server", .unit = VT_SEC),
    OPT_F64(c.probe_rate, "probe-request-rate", "R", 0, 1e4, "0",
            "one-token requests beside the others"),
    /* how */
    OPT_FLAG(c.ignore_eos, "ignore-eos", "output has exactly the length asked for"),
    SAMPLING(3, "temperature", "X", "sampling", .shown = "the server's"),
    SAMPLING(0, "top-p", "X", "sampling"),
    SAMPLING(1, "top-k", "N", "sampling"),
    SAMPLING(2, "min-p", "X", "sampling"),
    SAMPLING(4, "frequency-penalty", "X", "sampling"),
    SAMPLING(5, "presence-penalty", "X", "sampling"),
    SAMPLING(6, "repetition-penalty", "X", "sampling"),
    OPT_I64(logprobs, "logprobs", "N", 0, 1000, "-1", "ask for log probabilities",
            .shown = ""),
    OPT_TEXT(extra_body, "extra-body", "JSON", NULL, "members to add to every request"),
    OPT_LIST(loras, "lora-modules", "NAME ...",
             "adapters to ask for in place of the model"),
    OPT_WORD(lora_assignment, "lora-assignment", "NAME", assignments, "random",
             "which request gets which"),
    OPT_TEXT(c.id_prefix, "request-id-prefix", "TEXT", NULL, "of x-request-id",
             .shown = "bench-<8 hex>-"),
    /* what comes of it */
    OPT_READ(about.metrics, "percentile-metrics", "LIST", bench_read_metrics,
             "ttft,tpot,itl", "which metrics; also e2el"),
    OPT_READ(asks, "metric-percentiles", "LIST", bench_read_percentiles, "99",
             "which percentiles"),
    OPT_LIST(goodput, "goodput", "KEY:MS ...", "limits: ttft, tpot, e2el"),
    LIMITS_ROW(slo, .shown = "none; exit 1 if one is broken"),
    OPT_FLAG(save_result, "save-result", "write the result to a file (JSON)"),
    OPT_FLAG(about.detailed, "save-detailed", "with a value for each request"),
    OPT_FLAG(append_result, "append-result", "as one more line of the file"),
    OPT_TEXT(result_dir, "result-dir", "DIR", NULL, "where to", .shown = "."),
    OPT_TEXT(result_filename, "result-filename", "NAME", NULL, "its name",
             .shown = "by label, rate, model, date"),
    OPT_LIST(metadata, "metadata", "KEY=VALUE ...", "more for the file"),
    OPT_TEXT(about.label, "label", "TEXT", NULL, "the run's name",
             .shown = "the backend"),
    OPT_TEXT(trace_out, "trace-out", "FILE", NULL,
             "also a trace for fit and validate; gzip by .gz"),
    OPT_TEXT(twin, "twin", "FLAGS", NULL,
             "also what simulate predicts of it: 'MODEL --gpu H200'", .flags = true,
             .subs = SERVE),
    OPT_TEXT(lifecycle_out, "lifecycle-out", "DIR", NULL,
             "also inference-perf's reports"),
    OPT_FLAG(vllm_only, "vllm-only", "no table of our own after vLLM's"),
    OPT_FLAG(progress, "progress", "a progress line also if stderr is no terminal"),
    OPT_FLAG(disable_tqdm, "disable-tqdm", "no progress line"),
    OPT_FLAG(dry_run, "dry-run", "print what would be sent when, without a server"),
    {0},
};

static const struct opt_row sweep_rows[] = {
    OPT_TEXT(rates, "rates", "LIST", NULL, "sweep: request rates, as 1,2,4,inf"),
    OPT_TEXT(concurrencies, "concurrencies", "LIST", NULL,
             "sweep: requests in flight, as 1,2,4"),
    OPT_TEXT(output_dir, "output-dir", "DIR", "vtwin-sweep", "sweep: where results go"),
    OPT_FLAG(stop_when_saturated, "stop-when-saturated",
             "sweep: end at the first load that is too much"),
    OPT_F64(seconds, "seconds", "SEC", 0.001, 1e6, NULL,
            "sweep: send for so long at each rate", .shown = "all prompts",
            .unit = VT_SEC),
    OPT_SWITCH(reset_cache, "reset-prefix-cache", "on",
               "sweep: empty the server's cache before each run"),
    {0},
};

/* For command lines that are pasted. */
const struct opt_row bench_ignored_rows[] = {
    OPT_FLAG(no_flag, "trust-remote-code", OF_VLLM),
    OPT_TEXT(no_value, "tokenizer-mode", "MODE", NULL, OF_VLLM),
    OPT_FLAG(no_flag, "skip-tokenizer-init", OF_VLLM),
    OPT_FLAG(no_flag, "use-beam-search", OF_VLLM),
    OPT_FLAG(no_flag, "no-stream", OF_VLLM),
    OPT_FLAG(no_flag, "enable-multimodal-chat", OF_VLLM),
    OPT_FLAG(no_flag, "custom-ensure-client-side-data", OF_VLLM),
    OPT_TEXT(no_value, "chat-template-kwargs", "JSON", NULL, OF_VLLM),
    OPT_TEXT(no_value, "random-batch-size", "N", NULL, OF_VLLM),
    OPT_FLAG(no_flag, "no-reranker", OF_VLLM),
    OPT_FLAG(no_flag, "profile", OF_VLLM),
    OPT_FLAG(no_flag, "plot-timeline", OF_VLLM),
    OPT_TEXT(no_value, "timeline-itl-thresholds", "LIST", NULL, OF_VLLM),
    OPT_FLAG(no_flag, "plot-dataset-stats", OF_VLLM),
    {0},
};

/* To add a subcommand: write its function, add a row here and its name to the operands
 * below, and describe it in docs/bench.md. */
static const struct opt_sub subs[] = {
    {"serve", "[--base-url URL] [--dataset-name NAME] [FLAGS]", 0, 0, bench_serve},
    {"compare", "A.json B.json ... [--metrics LIST] [--tolerance PERCENT] [--json]", 0,
     UINT32_MAX, bench_compare},
    {"sweep", "--rates LIST|--concurrencies LIST [--output-dir DIR] [FLAGS]", 0, 0,
     bench_sweep},
    {0},
};

static const struct opt_block blocks[] = {
    {.row = rows, .subs = SERVE | SWEEP},
    {.row = dataset_rows,
     .base = offsetof(struct bench_options, what),
     .subs = SERVE | SWEEP},
    {.row = compare_rows,
     .base = offsetof(struct bench_options, compare),
     .subs = COMPARE},
    {.row = compare_page_rows,
     .base = offsetof(struct bench_options, compare),
     .subs = SERVE | COMPARE | SWEEP},
    {.row = sweep_rows, .subs = SWEEP},
    {.row = cli_files_rows,
     .base = offsetof(struct bench_options, files),
     .subs = SERVE | SWEEP},
    {.row = bench_ignored_rows, .subs = SERVE | SWEEP},
    {0},
};

static const char *const operands[] = {"serve", "compare", "sweep", NULL};
static const char *const examples[] = {
    "./run bench serve --dry-run --num-prompts 5 --request-rate 2",
    "./run bench compare tests/cases/bench/result.json tests/cases/bench/result.json",
    NULL,
};

const struct opt_command cmd_bench = {
    .name = "bench",
    .summary = "load a server and measure it, as `vllm bench serve` does",
    .usage = "serve|compare|sweep [FILE ...] [FLAGS]",
    .about =
        "serve    sends requests to an OpenAI-compatible server at absolute times;\n"
        "         flags, table and result file are those of `vllm bench serve`,\n"
        "         followed by what the generator itself may have added\n"
        "compare  results of two or more runs side by side; exit 1 if worse\n"
        "sweep    one run for each rate or concurrency; latency against load",
    .blocks = blocks,
    .size = sizeof(struct bench_options),
    .operands = operands,
    .subs = subs,
    .examples = examples,
};
