/* cmd_bench.c - vtwin bench: the subcommands and every flag of theirs. */
#include "cli/cmd/bench.h"

/* ---- subcommands ------------------------------------------------------- */

/* To add one: write its function, add a row here and its name to the operands below,
 * and describe it in docs/bench.md. */
static const struct sub {
    const char *name;
    const char *usage;
    const char *only; /* flags that no other takes: " a b " */
    bool serves;      /* takes all that `serve` takes */
    int (*run)(const struct cli_args *a, struct vt_err *err);
} subs[] = {
    {"serve", "[--base-url URL] [--dataset-name NAME] [FLAGS]", " ", true, bench_serve},
    {"compare", "A.json B.json ... [--metrics LIST] [--tolerance PERCENT] [--json]",
     " metrics tolerance json ", false, bench_compare},
    {"sweep", "--rates LIST|--concurrencies LIST [--output-dir DIR] [FLAGS]",
     " rates concurrencies output-dir seconds stop-when-saturated reset-prefix-cache ",
     true, bench_sweep},
};

static bool takes(const struct sub *s, const char *flag)
{
    char word[64];

    snprintf(word, sizeof(word), " %s ", flag);
    for (size_t i = 0; i < VT_COUNT(subs); i++)
        if (strstr(subs[i].only, word))
            return &subs[i] == s;
    return s->serves;
}

static int run(const struct cli_args *a, struct vt_err *err)
{
    if (a->n_operands == 0)
        return vt_fail(err, VT_EINPUT, "usage: vtwin bench %s", cmd_bench.usage);
    for (size_t i = 0; i < VT_COUNT(subs); i++) {
        if (strcmp(subs[i].name, a->operand[0]) != 0)
            continue;
        for (size_t k = 0; k < a->n_given; k++)
            if (!takes(&subs[i], a->given[k].option->name))
                return vt_fail(err, VT_EINPUT,
                               "--%s is not for bench %s; usage: vtwin bench %s %s",
                               a->given[k].option->name, subs[i].name, subs[i].name,
                               subs[i].usage);
        if (subs[i].serves && a->n_operands > 1)
            return vt_fail(err, VT_EINPUT,
                           "'%s' is one argument too many; usage: vtwin bench %s %s",
                           a->operand[1], subs[i].name, subs[i].usage);
        return subs[i].run(a, err);
    }
    return cli_unknown_sub(&cmd_bench, a->operand[0], err);
}

/* ---- flags ------------------------------------------------------------- */

static const char *const backends[] = {"openai", "vllm", "openai-chat", NULL};
static const char *const datasets[] = {"random",     "sharegpt",    "prefix_repetition",
                                       "custom",     "timed_trace", "trace",
                                       "multi-turn", NULL};
static const char *const ramps[] = {"linear", "exponential", NULL};
static const char *const assignments[] = {"random", "round-robin", NULL};

#define VALUE(n, v, f, h) {.name = n, .value = v, .fallback = f, .help = h}
#define WORDS(n, v, f, h, w) \
    {.name = n, .value = v, .fallback = f, .help = h, .words = w}
#define FLAG(n, h) {.name = n, .kind = CLI_FLAG, .help = h}
#define OF_VLLM    "of vllm bench; accepted, without effect"

static const struct cli_option options[] = {
    /* where to */
    WORDS("backend", "NAME", "openai",
          "vllm and openai: completions; openai-chat: chats", backends),
    VALUE("base-url", "URL", "http://HOST:PORT", "the server; https:// for TLS"),
    VALUE("host", "NAME", "127.0.0.1", "the server, without a base URL"),
    VALUE("port", "N", "8000", "its port"),
    VALUE("endpoint", "PATH", "by backend", "where requests go"),
    VALUE("header", "KEY=VALUE ...", NULL, "headers for every request"),
    FLAG("insecure", "take any certificate"),
    VALUE("cacert", "FILE", "the system's", "certificates to trust (PEM)"),
    VALUE("api-key", "KEY", "$OPENAI_API_KEY", "sent as Authorization: Bearer"),
    VALUE("model", "NAME", "the server's first", "model to ask for"),
    VALUE("served-model-name", "NAME", "the model", "its name in requests"),
    VALUE("tokenizer", "DIR", "the model, if it is a directory",
          "tokenizer.json, for prompts of so many tokens"),
    VALUE("request-timeout", "SEC", "21600", "give a request up after so long"),
    /* what */
    WORDS("dataset-name", "NAME", "random", "which requests to send", datasets),
    VALUE("dataset-path", "FILE", NULL, "where they are"),
    VALUE("num-prompts", "N", "1000", "how many; 0: all the file has"),
    VALUE("seed", "N", "0", "same seed, same requests at the same times"),
    VALUE("input-len", "N", NULL, "prompt tokens, whatever the dataset"),
    VALUE("output-len", "N", NULL, "output tokens, whatever the dataset"),
    VALUE("random-input-len", "N", "1024", "random: prompt tokens"),
    VALUE("random-output-len", "N", "128", "random: output tokens"),
    VALUE("random-range-ratio", "R", "0.0",
          "random: lengths from L(1-R) to L(1+R); or {\"input\": R, \"output\": R}"),
    VALUE("random-prefix-len", "N", "0", "random: tokens that all prompts begin with"),
    VALUE("sharegpt-output-len", "N", "as in the file", "sharegpt: output tokens"),
    VALUE("prefix-repetition-prefix-len", "N", "256", "tokens of a prefix"),
    VALUE("prefix-repetition-suffix-len", "N", "256", "tokens after it"),
    VALUE("prefix-repetition-num-prefixes", "N", "10", "different prefixes"),
    VALUE("prefix-repetition-output-len", "N", "128", "output tokens"),
    VALUE("custom-output-len", "N", "256", "custom: output tokens; -1: as in the file"),
    FLAG("skip-chat-template", "custom: send prompts as they are"),
    FLAG("no-oversample", "do not repeat requests of a file that has too few"),
    FLAG("disable-shuffle", "keep the order of the file"),
    VALUE("timed-trace-chunk-hash-size", "N", "16",
          "tokens of a hash id (Mooncake: 512)"),
    VALUE("timed-trace-sec-multiplier", "X", "1",
          "makes seconds of timestamps (Mooncake: 0.001)"),
    VALUE("timed-trace-label-timestamp", "KEY", "timestamp", "a timestamp's name"),
    VALUE("timed-trace-label-input-length", "KEY", "input_length", "and so on"),
    VALUE("timed-trace-label-output-length", "KEY", "output_length", "and so on"),
    VALUE("timed-trace-label-hash-ids", "KEY", "hash_ids", "and so on"),
    {.name = "self-timed",
     .kind = CLI_SWITCH,
     .fallback = "on",
     .help = "timed_trace, trace: requests come when the file says"},
    VALUE("trace-speed", "X", "1", "trace: times as fast as recorded"),
    FLAG("prompt-token-ids", "random, trace: send ids in place of text"),
    VALUE("num-conversations", "N", "20",
          "multi-turn: conversations; of a file: at most"),
    VALUE("num-turns", "N", "5", "multi-turn: questions in each; of a file: at most"),
    VALUE("num-starters", "N", "10", "multi-turn: system prompts that they share"),
    VALUE("starter-tokens", "LO:HI", "3500:4000", "multi-turn: length of those"),
    VALUE("user-tokens", "LO:HI", "20:200", "multi-turn: length of a question"),
    VALUE("turn-output-tokens", "LO:HI", "700:960", "multi-turn: length of a reply"),
    VALUE("think-time", "SEC|KIND:SEC", "0",
          "multi-turn: mean pause after a reply; KIND: exponential, constant"),
    VALUE("max-active-conversations", "N", "all", "multi-turn: how many at a time"),
    FLAG("session-header", "send X-Session-ID"),
    /* when */
    VALUE("request-rate", "R", "inf", "requests a second; inf: all at once"),
    VALUE("burstiness", "X", "1.0", "gamma's shape; 1: Poisson; inf: even"),
    VALUE("max-concurrency", "N", "no limit", "requests in flight"),
    WORDS("ramp-up-strategy", "NAME", NULL, "let the rate grow, in place of a rate",
          ramps),
    VALUE("ramp-up-start-rps", "N", NULL, "from this rate"),
    VALUE("ramp-up-end-rps", "N", NULL, "to this one"),
    VALUE("num-warmups", "N", "0", "requests before, which do not count"),
    VALUE("ready-check-timeout-sec", "SEC", "0", "wait so long for the server"),
    VALUE("probe-request-rate", "R", "0", "one-token requests beside the others"),
    /* how */
    FLAG("ignore-eos", "output has exactly the length asked for"),
    VALUE("temperature", "X", "the server's", "sampling"),
    VALUE("top-p", "X", NULL, "sampling"),
    VALUE("top-k", "N", NULL, "sampling"),
    VALUE("min-p", "X", NULL, "sampling"),
    VALUE("frequency-penalty", "X", NULL, "sampling"),
    VALUE("presence-penalty", "X", NULL, "sampling"),
    VALUE("repetition-penalty", "X", NULL, "sampling"),
    VALUE("logprobs", "N", NULL, "ask for log probabilities"),
    VALUE("extra-body", "JSON", NULL, "members to add to every request"),
    VALUE("lora-modules", "NAME ...", NULL,
          "adapters to ask for in place of the model"),
    WORDS("lora-assignment", "NAME", "random", "which request gets which", assignments),
    VALUE("request-id-prefix", "TEXT", "bench-<8 hex>-", "of x-request-id"),
    /* what comes of it */
    VALUE("percentile-metrics", "LIST", "ttft,tpot,itl", "which metrics; also e2el"),
    VALUE("metric-percentiles", "LIST", "99", "which percentiles"),
    VALUE("goodput", "KEY:MS ...", NULL, "limits: ttft, tpot, e2el"),
    FLAG("save-result", "write the result to a file (JSON)"),
    FLAG("save-detailed", "with a value for each request"),
    FLAG("append-result", "as one more line of the file"),
    VALUE("result-dir", "DIR", ".", "where to"),
    VALUE("result-filename", "NAME", "by label, rate, model, date", "its name"),
    VALUE("metadata", "KEY=VALUE ...", NULL, "more for the file"),
    VALUE("label", "TEXT", "the backend", "the run's name"),
    VALUE("trace-out", "FILE", NULL, "also a trace for fit and validate; gzip by .gz"),
    VALUE("lifecycle-out", "DIR", NULL, "also inference-perf's reports"),
    FLAG("vllm-only", "no table of our own after vLLM's"),
    FLAG("progress", "a progress line also if stderr is no terminal"),
    FLAG("disable-tqdm", "no progress line"),
    FLAG("dry-run", "print what would be sent when, without a server"),
    /* compare, sweep */
    VALUE("metrics", "LIST", "throughput, failures, mean, median and p99 latencies",
          "compare: what is judged"),
    VALUE("tolerance", "PERCENT", "none is judged", "compare: how much worse may be"),
    FLAG("json", "compare: print JSON"),
    VALUE("rates", "LIST", NULL, "sweep: request rates, as 1,2,4,inf"),
    VALUE("concurrencies", "LIST", NULL, "sweep: requests in flight, as 1,2,4"),
    VALUE("output-dir", "DIR", "vtwin-sweep", "sweep: where results go"),
    FLAG("stop-when-saturated", "sweep: end at the first load that is too much"),
    VALUE("seconds", "SEC", "all prompts", "sweep: send for so long at each rate"),
    {"reset-prefix-cache", CLI_SWITCH, NULL, "on",
     "sweep: empty the server's cache before each run", NULL},
    /* of vLLM's, for command lines that are pasted */
    FLAG("trust-remote-code", OF_VLLM),
    VALUE("tokenizer-mode", "MODE", NULL, OF_VLLM),
    FLAG("skip-tokenizer-init", OF_VLLM),
    FLAG("use-beam-search", OF_VLLM),
    FLAG("no-stream", OF_VLLM),
    FLAG("enable-multimodal-chat", OF_VLLM),
    FLAG("custom-ensure-client-side-data", OF_VLLM),
    VALUE("chat-template-kwargs", "JSON", NULL, OF_VLLM),
    VALUE("random-batch-size", "N", NULL, OF_VLLM),
    FLAG("no-reranker", OF_VLLM),
    FLAG("profile", OF_VLLM),
    FLAG("plot-timeline", OF_VLLM),
    VALUE("timeline-itl-thresholds", "LIST", NULL, OF_VLLM),
    FLAG("plot-dataset-stats", OF_VLLM),
    {0},
};

const char *const bench_ignored[] = {"trust-remote-code",
                                     "tokenizer-mode",
                                     "skip-tokenizer-init",
                                     "use-beam-search",
                                     "no-stream",
                                     "enable-multimodal-chat",
                                     "custom-ensure-client-side-data",
                                     "chat-template-kwargs",
                                     "random-batch-size",
                                     "no-reranker",
                                     "profile",
                                     "plot-timeline",
                                     "timeline-itl-thresholds",
                                     "plot-dataset-stats",
                                     NULL};

static const char *const operands[] = {"serve", "compare", "sweep", NULL};
static const char *const examples[] = {
    "./run bench serve --dry-run --num-prompts 5 --request-rate 2",
    "./run bench compare tests/cases/bench/result.json tests/cases/bench/result.json",
    NULL,
};

const struct cli_command cmd_bench = {
    .name = "bench",
    .summary = "load a server and measure it, as `vllm bench serve` does",
    .usage = "serve|compare|sweep [FILE ...] [FLAGS]",
    .about =
        "serve    sends requests to an OpenAI-compatible server at absolute times;\n"
        "         flags, table and result file are those of `vllm bench serve`,\n"
        "         followed by what the generator itself may have added\n"
        "compare  results of two or more runs side by side; exit 1 if worse\n"
        "sweep    one run for each rate or concurrency; latency against load",
    .options = options,
    .operands = operands,
    .examples = examples,
    .run = run,
};
