/* bench_flags.c - the flags of vtwin bench serve, as a job. */
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cli/cmd/bench.h"

void bench_tell(const char *fmt, ...)
{
    va_list args;

    fputs("vtwin bench: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

char *bench_printf(struct bench_job *j, const char *fmt, ...)
{
    char *out, small[1];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(small, sizeof(small), fmt, args);
    va_end(args);
    out = len >= 0 ? vt_arena_alloc(&j->arena, (size_t)len + 1) : NULL;
    if (!out)
        return NULL;
    va_start(args, fmt);
    (void)vsnprintf(out, (size_t)len + 1, fmt, args);
    va_end(args);
    return out;
}

/* ---- numbers ----------------------------------------------------------- */

/* Like cli_f64(), with Python's inf. */
static int positive(const struct cli_args *a, const char *name, double *out,
                    struct vt_err *err)
{
    const char *text = cli_str(a, name);

    if (text && strcmp(text, "inf") == 0) {
        *out = INFINITY;
        return VT_OK;
    }
    return cli_f64(a, name, 1e-9, 1e9, out, err);
}

static int whole(const struct cli_args *a, const char *name, uint32_t *out,
                 struct vt_err *err)
{
    return cli_u32(a, name, 0, INT32_MAX, out, err);
}

static int take_ratio(const struct cli_args *a, struct vt_load_lens *l,
                      struct vt_err *err)
{
    const char *text = cli_str(a, "random-range-ratio");
    const struct vt_node *root = NULL;
    struct vt_arena arena = {0};
    int rc;

    if (!text || text[strspn(text, " ")] != '{') {
        rc = cli_f64(a, "random-range-ratio", 0, 0.999999999, &l->input_ratio, err);
        l->output_ratio = l->input_ratio;
        return rc;
    }
    rc = vt_json_parse(&arena, text, strlen(text), 1, &root, err);
    if (rc == VT_OK)
        rc = vt_get_f64(root, "input", VT_OPTIONAL, 0, 0.999999999, &l->input_ratio,
                        err);
    if (rc == VT_OK)
        rc = vt_get_f64(root, "output", VT_OPTIONAL, 0, 0.999999999, &l->output_ratio,
                        err);
    vt_arena_free(&arena);
    return vt_within(err, rc, "--random-range-ratio");
}

/* ---- pairs ------------------------------------------------------------- */

static int split_pair(struct bench_job *j, const char *flag, const char *text,
                      struct vt_load_pair *out, struct vt_err *err)
{
    const char *equals = strchr(text, '='), *value;
    size_t len = equals ? (size_t)(equals - text) : 0;

    if (!equals)
        return vt_fail(err, VT_EINPUT, "--%s: '%s' is not KEY=VALUE", flag, text);
    while (len > 0 && text[len - 1] == ' ')
        len--;
    value = equals + 1 + strspn(equals + 1, " ");
    out->key = vt_arena_copy(&j->arena, text, len);
    out->value = vt_arena_copy(&j->arena, value, strlen(value));
    return out->key && out->value ? VT_OK : vt_nomem(err);
}

static int take_pairs(struct bench_job *j, const char *flag, struct vt_load_pair **out,
                      size_t *n, struct vt_err *err)
{
    const char *text;
    size_t at = 0;
    int rc = VT_OK;

    *out = vt_arena_alloc(&j->arena, (j->args->n_given + 1) * sizeof(**out));
    if (!*out)
        return vt_nomem(err);
    for (*n = 0; rc == VT_OK && (text = cli_each(j->args, flag, &at));)
        rc = split_pair(j, flag, text, &(*out)[(*n)++], err);
    return rc;
}

static int take_headers(struct bench_job *j, struct vt_err *err)
{
    struct net_header *h;
    struct vt_load_pair *pair;
    size_t n;
    int rc = take_pairs(j, "header", &pair, &n, err);

    if (rc != VT_OK)
        return rc;
    h = vt_arena_alloc(&j->arena, (n + 1) * sizeof(*h));
    if (!h)
        return vt_nomem(err);
    for (size_t i = 0; i < n; i++) {
        if (strpbrk(pair[i].key, "\r\n: ") || strpbrk(pair[i].value, "\r\n"))
            return vt_fail(err, VT_EINPUT, "--header: '%s' is no header", pair[i].key);
        h[i] = (struct net_header){pair[i].key, pair[i].value};
    }
    j->config.header = h;
    j->config.n_headers = n;
    return VT_OK;
}

static int take_loras(struct bench_job *j, struct vt_err *err)
{
    const char **name =
        vt_arena_alloc(&j->arena, (j->args->n_given + 1) * sizeof(*name));
    const char *text;
    size_t at = 0;
    int word = 0, rc;

    if (!name)
        return vt_nomem(err);
    while ((text = cli_each(j->args, "lora-modules", &at)))
        name[j->config.n_lora++] = text;
    j->config.lora = name;
    rc = cli_word(j->args, "lora-assignment", &word, err);
    j->config.lora_in_turn = word == 1;
    return rc;
}

/* ---- bodies ------------------------------------------------------------ */

/* Sampling flags become members; what --extra-body says of the same name counts. */
static int take_body(struct bench_job *j, struct vt_err *err)
{
    static const char *const flags[][2] = {
        {"top-p", "top_p"},
        {"top-k", "top_k"},
        {"min-p", "min_p"},
        {"temperature", "temperature"},
        {"frequency-penalty", "frequency_penalty"},
        {"presence-penalty", "presence_penalty"},
        {"repetition-penalty", "repetition_penalty"}};
    const char *extra = cli_str(j->args, "extra-body");
    const struct vt_node *root = NULL;
    struct vt_buf b = {0};
    int rc = VT_OK;

    if (extra)
        rc = vt_json_parse(&j->arena, extra, strlen(extra), 1, &root, err);
    if (rc == VT_OK && root && root->kind != VT_MAP)
        rc = vt_fail(err, VT_EINPUT, "it is no JSON object");
    if (rc != VT_OK)
        return vt_within(err, rc, "--extra-body");
    vt_buf_char(&b, '{');
    for (size_t i = 0; rc == VT_OK && i < VT_COUNT(flags); i++) {
        const char *text = cli_str(j->args, flags[i][0]);
        double v;

        if (!text || (root && vt_get(root, flags[i][1])))
            continue;
        rc = cli_f64(j->args, flags[i][0], -1e9, 1e9, &v, err);
        vt_buf_printf(&b, "%s\"%s\":%s", b.len > 1 ? "," : "", flags[i][1], text);
    }
    if (extra && root->n > 0)
        vt_buf_printf(&b, "%s%s", b.len > 1 ? "," : "", strchr(extra, '{') + 1);
    else
        vt_buf_char(&b, '}');
    j->config.extra_body = vt_arena_copy(&j->arena, b.data ? b.data : "", b.len);
    if (rc == VT_OK && (b.failed || !j->config.extra_body))
        rc = vt_nomem(err);
    vt_buf_free(&b);
    return rc;
}

/* ---- where to ---------------------------------------------------------- */

static int take_target(struct bench_job *j, struct vt_err *err)
{
    const struct cli_args *a = j->args;
    const char *host = cli_str_or(a, "host", "127.0.0.1");
    struct vt_load_config *c = &j->config;
    uint32_t port = 8000, timeout_s = 6 * 3600;
    int word = 0, rc;

    if ((rc = cli_u32(a, "port", 1, 65535, &port, err)) ||
        (rc = cli_u32(a, "request-timeout", 1, 1U << 30, &timeout_s, err)) ||
        (rc = cli_word(a, "backend", &word, err)))
        return rc;
    c->base_url = cli_str(a, "base-url");
    if (!c->base_url)
        c->base_url =
            bench_printf(j, strchr(host, ':') ? "http://[%s]:%u" : "http://%s:%u", host,
                         (unsigned)port);
    if (!c->base_url)
        return vt_nomem(err);
    if ((rc = vt_load_url_check(c->base_url, err)))
        return rc;
    c->backend = word == 2 ? VT_LOAD_CHAT : VT_LOAD_COMPLETIONS;
    c->endpoint = cli_str(a, "endpoint");
    if (c->endpoint && c->endpoint[0] != '/')
        return vt_fail(err, VT_EINPUT, "--endpoint: '%s' does not begin with /",
                       c->endpoint);
    c->insecure = cli_has(a, "insecure");
    c->ca_file = cli_str(a, "cacert");
    c->api_key = cli_str_or(a, "api-key", getenv("OPENAI_API_KEY"));
    c->timeout_ns = (vt_ns)timeout_s * VT_SEC;
    j->about.backend = cli_str_or(a, "backend", "openai");
    return VT_OK;
}

static const char *any_prefix(struct bench_job *j)
{
    uint64_t seed = 0;
    FILE *f = fopen("/dev/urandom", "rb");

    if (f) {
        if (fread(&seed, sizeof(seed), 1, f) != 1)
            seed = 0;
        fclose(f);
    }
    return bench_printf(j, "bench-%08x-", (unsigned)(seed & UINT32_MAX));
}

static int take_manner(struct bench_job *j, struct vt_err *err)
{
    const struct cli_args *a = j->args;
    struct vt_load_config *c = &j->config;
    int64_t logprobs = -1, seed = 0;
    int rc;

    if ((rc = cli_i64(a, "logprobs", 0, 1000, &logprobs, err)) ||
        (rc = cli_i64(a, "seed", 0, INT64_MAX, &seed, err)) ||
        (rc = cli_u32(a, "max-concurrency", 1, 1U << 20, &c->max_concurrency, err)) ||
        (rc = cli_u32(a, "max-active-conversations", 1, 1U << 20, &c->max_sessions,
                      err)) ||
        (rc = cli_f64(a, "probe-request-rate", 0, 1e4, &c->probe_rate, err)))
        return rc;
    c->logprobs = (int32_t)logprobs;
    c->seed = (uint64_t)seed;
    c->ignore_eos = cli_has(a, "ignore-eos");
    c->session_header = cli_has(a, "session-header");
    c->keep_texts = cli_has(a, "save-detailed") || cli_has(a, "trace-out");
    c->id_prefix = cli_str(a, "request-id-prefix");
    if (!c->id_prefix)
        c->id_prefix = any_prefix(j);
    if (strpbrk(c->id_prefix, "\r\n"))
        return vt_fail(err, VT_EINPUT, "--request-id-prefix: more than a line");
    j->about.max_concurrency = c->max_concurrency;
    return VT_OK;
}

/* ---- when ------------------------------------------------------------- */

static int take_ramp(struct bench_job *j, struct vt_err *err)
{
    const struct cli_args *a = j->args;
    struct vt_load_about *about = &j->about;
    int word = -1, rc = cli_word(a, "ramp-up-strategy", &word, err);

    if (rc != VT_OK || word < 0)
        return rc;
    if (cli_has(a, "request-rate"))
        return vt_fail(err, VT_EINPUT, "--request-rate and --ramp-up-strategy: which?");
    if (!cli_has(a, "ramp-up-start-rps") || !cli_has(a, "ramp-up-end-rps"))
        return vt_fail(err, VT_EINPUT,
                       "--ramp-up-strategy needs --ramp-up-start-rps and "
                       "--ramp-up-end-rps");
    if ((rc = whole(a, "ramp-up-start-rps", &about->ramp_start, err)) ||
        (rc = whole(a, "ramp-up-end-rps", &about->ramp_end, err)))
        return rc;
    if (about->ramp_start > about->ramp_end)
        return vt_fail(err, VT_EINPUT, "a ramp from %u down to %u",
                       (unsigned)about->ramp_start, (unsigned)about->ramp_end);
    about->ramp = word == 0 ? VT_RAMP_LINEAR : VT_RAMP_EXPONENTIAL;
    j->arrivals.ramp = about->ramp;
    j->arrivals.ramp_start = about->ramp_start;
    j->arrivals.ramp_end = about->ramp_end;
    return VT_OK;
}

static int take_arrivals(struct bench_job *j, struct vt_err *err)
{
    int rc;

    j->arrivals = (struct vt_load_arrivals){.rate = INFINITY, .burstiness = 1};
    if ((rc = positive(j->args, "request-rate", &j->arrivals.rate, err)) ||
        (rc = positive(j->args, "burstiness", &j->arrivals.burstiness, err)) ||
        (rc = take_ramp(j, err)))
        return rc;
    j->arrivals.seed = j->config.seed;
    j->about.rate = j->arrivals.rate;
    j->about.burstiness = j->arrivals.burstiness;
    return VT_OK;
}

/* ---- what is asked of the result -------------------------------------- */

static int take_goodput(struct bench_job *j, struct vt_err *err)
{
    struct {
        const char *name;
        double *slo;
    } slos[] = {{"ttft", &j->asks.slo_ttft_ms},
                {"tpot", &j->asks.slo_tpot_ms},
                {"e2el", &j->asks.slo_e2el_ms}};
    const char *text;
    size_t at = 0;

    while ((text = cli_each(j->args, "goodput", &at))) {
        size_t len = strcspn(text, ":"), i = 0;
        double v;

        while (i < VT_COUNT(slos) &&
               (strlen(slos[i].name) != len || memcmp(slos[i].name, text, len) != 0))
            i++;
        if (i == VT_COUNT(slos) || text[len] != ':' ||
            !vt_parse_f64(text + len + 1, strlen(text + len + 1), &v) || v < 0)
            return vt_fail(err, VT_EINPUT,
                           "--goodput: '%s' is not ttft:MS, tpot:MS or e2el:MS", text);
        *slos[i].slo = v;
        j->about.goodput = true;
    }
    return VT_OK;
}

static int take_percentiles(struct bench_job *j, struct vt_err *err)
{
    const char *p = cli_str_or(j->args, "metric-percentiles", "99");

    j->asks.n_percentiles = 0;
    for (;;) {
        size_t len = strcspn(p, ",");
        double v;

        if (j->asks.n_percentiles == VT_LOAD_PERCENTILES)
            return vt_fail(err, VT_EINPUT, "--metric-percentiles: more than %d",
                           VT_LOAD_PERCENTILES);
        if (!vt_parse_f64(p, len, &v) || v < 0 || v > 100)
            return vt_fail(err, VT_EINPUT,
                           "--metric-percentiles: '%.*s' is not a number from 0 to 100",
                           (int)len, p);
        j->asks.percentile[j->asks.n_percentiles++] = v;
        if (!p[len])
            return VT_OK;
        p += len + 1;
    }
}

static int take_metrics(struct bench_job *j, struct vt_err *err)
{
    const char *list = cli_str_or(j->args, "percentile-metrics", "ttft,tpot,itl");

    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ",");

        if (!(n == 4 && (memcmp(p, "ttft", 4) == 0 || memcmp(p, "tpot", 4) == 0 ||
                         memcmp(p, "e2el", 4) == 0)) &&
            !(n == 3 && memcmp(p, "itl", 3) == 0))
            return vt_fail(err, VT_EINPUT,
                           "--percentile-metrics: '%.*s' is none of ttft, tpot, itl, "
                           "e2el",
                           (int)n, p);
        p += n + (p[n] == ',');
    }
    j->about.metrics = list;
    return VT_OK;
}

static int take_result(struct bench_job *j, struct vt_err *err)
{
    struct vt_load_pair *pair;
    int rc;

    vt_load_asks_init(&j->asks);
    j->asks.backend = j->config.backend;
    if ((rc = take_percentiles(j, err)) || (rc = take_metrics(j, err)) ||
        (rc = take_goodput(j, err)) ||
        (rc = take_pairs(j, "metadata", &pair, &j->about.n_metadata, err)))
        return rc;
    j->about.metadata = pair;
    j->about.label = cli_str(j->args, "label");
    j->about.detailed = cli_has(j->args, "save-detailed");
    return VT_OK;
}

/* ---- which requests --------------------------------------------------- */

static int take_lengths(const struct cli_args *a, struct vt_load_data *d,
                        struct vt_err *err)
{
    int64_t custom = 256, sharegpt = 0, all = 0;
    uint32_t output = 0;
    int rc;

    if ((rc = whole(a, "random-input-len", &d->random.input, err)) ||
        (rc = whole(a, "input-len", &d->random.input, err)) ||
        (rc = whole(a, "random-output-len", &d->random.output, err)) ||
        (rc = whole(a, "random-prefix-len", &d->random.prefix, err)) ||
        (rc = take_ratio(a, &d->random, err)) ||
        (rc = whole(a, "prefix-repetition-prefix-len", &d->prefix_len, err)) ||
        (rc = whole(a, "prefix-repetition-suffix-len", &d->suffix_len, err)) ||
        (rc = whole(a, "prefix-repetition-num-prefixes", &d->prefixes, err)) ||
        (rc = whole(a, "prefix-repetition-output-len", &d->repetition_output_len,
                    err)) ||
        (rc = cli_i64(a, "custom-output-len", -1, INT32_MAX, &custom, err)) ||
        (rc = cli_i64(a, "sharegpt-output-len", 1, INT32_MAX, &sharegpt, err)) ||
        (rc = cli_i64(a, "output-len", 1, INT32_MAX, &all, err)) ||
        (rc = whole(a, "output-len", &output, err)))
        return rc;
    if (all > 0)
        d->random.output = d->repetition_output_len = output;
    d->output_len = all > 0                            ? all
                    : strcmp(d->name, "sharegpt") == 0 ? sharegpt
                                                       : custom;
    return VT_OK;
}

int bench_take_data(struct bench_job *j, struct vt_load_data *d, struct vt_err *err)
{
    const struct cli_args *a = j->args;
    uint32_t n = 1000;
    int word = 0, rc;

    vt_load_data_init(d);
    d->name = cli_str_or(a, "dataset-name", "random");
    d->path = cli_str(a, "dataset-path");
    d->seed = j->config.seed;
    d->speed = 1;
    if ((rc = cli_word(a, "dataset-name", &word, err)) ||
        (rc = whole(a, "num-prompts", &n, err)) || (rc = take_lengths(a, d, err)) ||
        (rc = whole(a, "timed-trace-chunk-hash-size", &d->chunk_tokens, err)) ||
        (rc = cli_f64(a, "timed-trace-sec-multiplier", 1e-12, 1e12, &d->sec_multiplier,
                      err)) ||
        (rc = cli_f64(a, "trace-speed", 1e-6, 1e6, &d->speed, err)))
        return rc;
    d->label_timestamp =
        cli_str_or(a, "timed-trace-label-timestamp", d->label_timestamp);
    d->label_input = cli_str_or(a, "timed-trace-label-input-length", d->label_input);
    d->label_output = cli_str_or(a, "timed-trace-label-output-length", d->label_output);
    d->label_hashes = cli_str_or(a, "timed-trace-label-hash-ids", d->label_hashes);
    d->n = n;
    d->no_oversample = cli_has(a, "no-oversample");
    d->no_shuffle = cli_has(a, "disable-shuffle");
    d->as_chat = !cli_has(a, "skip-chat-template");
    d->token_ids = j->config.backend == VT_LOAD_COMPLETIONS &&
                   (cli_has(a, "prompt-token-ids") || strstr(d->name, "trace") != NULL);
    return VT_OK;
}

int bench_take_multiturn(struct bench_job *j, struct vt_load_multiturn *m,
                         struct vt_err *err)
{
    const struct cli_args *a = j->args;
    const char *text;
    int rc;

    *m = (struct vt_load_multiturn){.path = cli_str(a, "dataset-path"),
                                    .seed = j->config.seed};
    if ((rc = whole(a, "num-conversations", &m->conversations, err)) ||
        (rc = whole(a, "num-turns", &m->turns, err)) ||
        (rc = whole(a, "num-starters", &m->starters, err)))
        return rc;
    if ((text = cli_str(a, "starter-tokens")) &&
        (rc = vt_load_range_parse(text, &m->starter_tokens, err)))
        return vt_within(err, rc, "--starter-tokens");
    if ((text = cli_str(a, "user-tokens")) &&
        (rc = vt_load_range_parse(text, &m->user_tokens, err)))
        return vt_within(err, rc, "--user-tokens");
    if ((text = cli_str(a, "turn-output-tokens")) &&
        (rc = vt_load_range_parse(text, &m->output_tokens, err)))
        return vt_within(err, rc, "--turn-output-tokens");
    if ((text = cli_str(a, "think-time")) && (rc = vt_load_think_parse(text, m, err)))
        return vt_within(err, rc, "--think-time");
    return VT_OK;
}

/* All of them, before the server is asked for anything. */
int bench_take_flags(struct bench_job *j, struct vt_err *err)
{
    struct vt_load_multiturn m;
    struct vt_load_data d;
    int rc;

    for (const char *const *name = bench_ignored; *name; name++)
        if (cli_has(j->args, *name))
            bench_tell("--%s is of vllm bench and has no effect here", *name);
    if ((rc = take_target(j, err)) || (rc = take_manner(j, err)) ||
        (rc = take_headers(j, err)) || (rc = take_loras(j, err)) ||
        (rc = take_body(j, err)) || (rc = take_arrivals(j, err)) ||
        (rc = bench_take_data(j, &d, err)) || (rc = bench_take_multiturn(j, &m, err)))
        return rc;
    return take_result(j, err);
}
