/* bench_flags.c - what the flags of vtwin bench serve say together. */
#include <math.h>
#include <stdlib.h>

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

/* ---- readers of single flags -------------------------------------------- */

/* A number that goes into bodies as it was written. */
int bench_read_sampling(const struct opt_row *row, const char *text, void *field,
                        struct vt_err *err)
{
    double v;

    *(const char **)field = text;
    return opt_read_real(row, text, &v, err);
}

int bench_read_percentiles(const struct opt_row *row, const char *text, void *field,
                           struct vt_err *err)
{
    struct vt_load_asks *asks = field;

    for (asks->n_percentiles = 0;; text++) {
        size_t len = strcspn(text, ",");
        double v;

        if (asks->n_percentiles == VT_LOAD_PERCENTILES)
            return vt_fail(err, VT_EINPUT, "--%s: more than %d", row->name,
                           VT_LOAD_PERCENTILES);
        if (!vt_parse_f64(text, len, &v) || v < 0 || v > 100)
            return vt_fail(err, VT_EINPUT, "--%s: '%.*s' is not a number from 0 to 100",
                           row->name, (int)len, text);
        asks->percentile[asks->n_percentiles++] = v;
        text += len;
        if (!*text)
            return VT_OK;
    }
}

int bench_read_metrics(const struct opt_row *row, const char *text, void *field,
                       struct vt_err *err)
{
    static const char *const known[] = {"ttft", "tpot", "itl", "e2el"};

    for (const char *p = text; *p;) {
        size_t n = strcspn(p, ","), i = 0;

        while (i < VT_COUNT(known) && !vt_is_text(known[i], p, n))
            i++;
        if (i == VT_COUNT(known))
            return vt_fail(err, VT_EINPUT,
                           "--%s: '%.*s' is none of ttft, tpot, itl, e2el", row->name,
                           (int)n, p);
        p += n + (p[n] == ',');
    }
    *(const char **)field = text;
    return VT_OK;
}

/* ---- pairs ------------------------------------------------------------- */

static int split_pairs(struct bench_job *j, const char *flag,
                       const struct opt_list *list, struct vt_load_pair **out,
                       struct vt_err *err)
{
    struct vt_load_pair *pair =
        vt_arena_alloc(&j->arena, (list->n + 1) * sizeof(*pair));

    *out = pair;
    if (!pair)
        return vt_nomem(err);
    for (size_t i = 0; i < list->n; i++) {
        const char *text = list->value[i], *equals = strchr(text, '='), *value;
        size_t len = equals ? (size_t)(equals - text) : 0;

        if (!equals)
            return vt_fail(err, VT_EINPUT, "--%s: '%s' is not KEY=VALUE", flag, text);
        while (len > 0 && text[len - 1] == ' ')
            len--;
        value = equals + 1 + strspn(equals + 1, " ");
        pair[i].key = vt_arena_copy(&j->arena, text, len);
        pair[i].value = vt_arena_copy(&j->arena, value, strlen(value));
        if (!pair[i].key || !pair[i].value)
            return vt_nomem(err);
    }
    return VT_OK;
}

static int set_headers(struct bench_job *j, struct vt_err *err)
{
    size_t n = j->o->headers.n;
    struct net_header *h = vt_arena_alloc(&j->arena, (n + 1) * sizeof(*h));
    struct vt_load_pair *pair;
    int rc = h ? split_pairs(j, "header", &j->o->headers, &pair, err) : vt_nomem(err);

    if (rc != VT_OK)
        return rc;
    for (size_t i = 0; i < n; i++) {
        if (strpbrk(pair[i].key, "\r\n: ") || strpbrk(pair[i].value, "\r\n"))
            return vt_fail(err, VT_EINPUT, "--header: '%s' is no header", pair[i].key);
        h[i] = (struct net_header){pair[i].key, pair[i].value};
    }
    j->config.header = h;
    j->config.n_headers = n;
    return VT_OK;
}

/* ---- bodies ------------------------------------------------------------ */

/* Sampling flags become members; what --extra-body says of the same name counts. */
static int set_body(struct bench_job *j, struct vt_err *err)
{
    static const char *const member[BENCH_SAMPLING] = {"top_p",
                                                       "top_k",
                                                       "min_p",
                                                       "temperature",
                                                       "frequency_penalty",
                                                       "presence_penalty",
                                                       "repetition_penalty"};
    const char *extra = j->o->extra_body;
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
    for (size_t i = 0; i < BENCH_SAMPLING; i++)
        if (j->o->sampling[i] && !(root && vt_get(root, member[i])))
            vt_buf_printf(&b, "%s\"%s\":%s", b.len > 1 ? "," : "", member[i],
                          j->o->sampling[i]);
    if (extra && root->n > 0)
        vt_buf_printf(&b, "%s%s", b.len > 1 ? "," : "", strchr(extra, '{') + 1);
    else
        vt_buf_char(&b, '}');
    j->config.extra_body = vt_arena_copy(&j->arena, b.data ? b.data : "", b.len);
    if (b.failed || !j->config.extra_body)
        rc = vt_nomem(err);
    vt_buf_free(&b);
    return rc;
}

/* ---- where to ---------------------------------------------------------- */

static char *own_url(struct bench_job *j)
{
    const char *host = j->o->host;
    struct vt_buf b = {0};
    char *url;

    vt_buf_printf(&b, strchr(host, ':') ? "http://[%s]:%u" : "http://%s:%u", host,
                  (unsigned)j->o->port);
    url = b.failed ? NULL : vt_arena_copy(&j->arena, b.data, b.len);
    vt_buf_free(&b);
    return url;
}

static const char *any_prefix(struct bench_job *j)
{
    uint32_t seed = 0;
    char text[32];

    (void)vt_entropy(&seed, sizeof(seed));
    snprintf(text, sizeof(text), "bench-%08x-", (unsigned)seed);
    return vt_arena_copy(&j->arena, text, strlen(text));
}

static int set_target(struct bench_job *j, struct vt_err *err)
{
    static const char *const backends[] = {"openai", "vllm", "openai-chat"};
    const struct bench_options *o = j->o;
    struct vt_load_config *c = &j->config;
    int rc;

    c->base_url = c->base_url ? cli_base_url(c->base_url) : own_url(j);
    if (!c->id_prefix)
        c->id_prefix = any_prefix(j);
    if (!c->base_url || !c->id_prefix)
        return vt_nomem(err);
    if ((rc = vt_load_url_check(c->base_url, err)))
        return rc;
    if (c->endpoint && c->endpoint[0] != '/')
        return vt_fail(err, VT_EINPUT, "--endpoint: '%s' does not begin with /",
                       c->endpoint);
    if (strpbrk(c->id_prefix, "\r\n"))
        return vt_fail(err, VT_EINPUT, "--request-id-prefix: more than a line");
    c->backend = o->backend == 2 ? VT_LOAD_CHAT : VT_LOAD_COMPLETIONS;
    if (!c->api_key)
        c->api_key = getenv("OPENAI_API_KEY");
    c->timeout_ns = (vt_ns)o->timeout_s * VT_SEC;
    c->logprobs = (int32_t)o->logprobs;
    c->seed = (uint64_t)o->seed;
    c->keep_texts = o->about.detailed || o->trace_out;
    c->lora = o->loras.value;
    c->n_lora = o->loras.n;
    c->lora_in_turn = o->lora_assignment == 1;
    j->about.backend = backends[o->backend];
    j->about.max_concurrency = c->max_concurrency;
    return VT_OK;
}

/* ---- when ------------------------------------------------------------- */

static int set_arrivals(struct bench_job *j, struct vt_err *err)
{
    const struct bench_options *o = j->o;
    struct vt_load_about *about = &j->about;

    j->arrivals.seed = j->config.seed;
    about->rate = o->arrivals.rate;
    about->burstiness = o->arrivals.burstiness;
    if (o->ramp < 0) {
        about->ramp_start = about->ramp_end = 0;
        return VT_OK;
    }
    if (opt_given(j->args, &o->arrivals.rate))
        return vt_fail(err, VT_EINPUT, "--request-rate and --ramp-up-strategy: which?");
    if (!opt_given(j->args, &o->about.ramp_start) ||
        !opt_given(j->args, &o->about.ramp_end))
        return vt_fail(err, VT_EINPUT,
                       "--ramp-up-strategy needs --ramp-up-start-rps and "
                       "--ramp-up-end-rps");
    if (about->ramp_start > about->ramp_end)
        return vt_fail(err, VT_EINPUT, "a ramp from %u down to %u",
                       (unsigned)about->ramp_start, (unsigned)about->ramp_end);
    about->ramp = o->ramp == 0 ? VT_RAMP_LINEAR : VT_RAMP_EXPONENTIAL;
    j->arrivals.ramp = about->ramp;
    j->arrivals.ramp_start = about->ramp_start;
    j->arrivals.ramp_end = about->ramp_end;
    return VT_OK;
}

/* ---- what is asked of the result -------------------------------------- */

/* Limits of all requests are those of each, for its part of the goodput. */
static void set_limits(struct bench_job *j)
{
    const struct vt_slo *slo = &j->o->slo.at;
    const struct {
        double limit, *asked;
    } row[] = {{slo->ttft_p99, &j->asks.slo_ttft_ms},
               {slo->tpot_p99, &j->asks.slo_tpot_ms},
               {slo->e2e_p99, &j->asks.slo_e2el_ms}};

    for (size_t i = 0; i < VT_COUNT(row); i++)
        if (row[i].limit > 0 && *row[i].asked < 0) {
            *row[i].asked = row[i].limit;
            j->about.goodput = true;
        }
}

static int set_goodput(struct bench_job *j, struct vt_err *err)
{
    const struct {
        const char *name;
        double *slo;
    } slos[] = {{"ttft", &j->asks.slo_ttft_ms},
                {"tpot", &j->asks.slo_tpot_ms},
                {"e2el", &j->asks.slo_e2el_ms}};

    for (size_t k = 0; k < j->o->goodput.n; k++) {
        const char *text = j->o->goodput.value[k];
        size_t len = strcspn(text, ":"), i = 0;
        double v;

        while (i < VT_COUNT(slos) && !vt_is_text(slos[i].name, text, len))
            i++;
        if (i == VT_COUNT(slos) || text[len] != ':' ||
            !vt_parse_time(text + len + 1, strlen(text + len + 1), VT_MS, &v) || v < 0)
            return vt_fail(err, VT_EINPUT,
                           "--goodput: '%s' is not ttft:MS, tpot:MS or e2el:MS", text);
        *slos[i].slo = v;
        j->about.goodput = true;
    }
    return VT_OK;
}

/* ---- which requests --------------------------------------------------- */

struct vt_load_data bench_data(const struct bench_job *j)
{
    const struct bench_options *o = j->o;
    struct vt_load_data d = dataset_data(j->args, &o->what, bench_datasets[o->dataset]);

    d.n = o->num_prompts;
    d.seed = j->config.seed;
    d.tokenizer = j->tokenizer;
    d.as_chat = !o->skip_chat_template;
    d.token_ids = j->config.backend == VT_LOAD_COMPLETIONS &&
                  (d.token_ids || strstr(d.name, "trace") != NULL);
    return d;
}

/* All of them, before the server is asked for anything. */
int bench_configure(struct bench_job *j, struct vt_err *err)
{
    const struct bench_options *o = j->o;
    struct vt_load_pair *pair;
    int rc;

    for (const struct opt_row *row = bench_ignored_rows; row->name; row++)
        if (opt_row_given(j->args, row))
            bench_tell("--%s is of vllm bench and has no effect here", row->name);
    j->config = o->c;
    j->arrivals = o->arrivals;
    j->about = o->about;
    if ((rc = set_target(j, err)) || (rc = set_headers(j, err)) ||
        (rc = set_body(j, err)) || (rc = set_arrivals(j, err)) ||
        (rc = split_pairs(j, "metadata", &o->metadata, &pair, err)))
        return rc;
    j->about.metadata = pair;
    j->about.n_metadata = o->metadata.n;
    vt_load_asks_init(&j->asks);
    memcpy(j->asks.percentile, o->asks.percentile, sizeof(j->asks.percentile));
    j->asks.n_percentiles = o->asks.n_percentiles;
    j->asks.backend = j->config.backend;
    rc = set_goodput(j, err);
    set_limits(j);
    return rc;
}
