/* cmd_learn.c - vtwin learn: a running server in, a profile of it out. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/signals.h"
#include "learn/learn.h"
#include "live/live.h"

struct learn_options {
    const char *base_url, *api_key, *ca_file, *model;
    struct opt_list headers;
    bool insecure;
    int kind;
    const char *out, *name, *description, *traces, *report;
    double minutes, seconds, tolerance;
    uint32_t max_concurrency, timeout_s;
    int64_t seed;
    bool force, plan, json, quiet;
};

static const char *const kinds[] = {"step", "linear", "blackbox", "knob", NULL};

struct learn_job {
    struct vt_arena arena;
    struct vt_learn_http http;
    struct vt_learn_config config;
    struct net_header *header; /* heap */
    struct vt_learn learned;
    const char *report;
};

/* "my-profile" of "out/my-profile.json", with something behind it. */
static int beside(struct learn_job *j, const char *path, const char *end,
                  const char **out, struct vt_err *err)
{
    size_t len = vt_ends_with(path, ".json") ? strlen(path) - 5 : strlen(path);
    struct vt_buf b = {0};
    int rc;

    vt_buf_add(&b, path, len);
    vt_buf_str(&b, end);
    rc = b.failed ? vt_nomem(err) : vt_arena_text(&j->arena, b.data, out, err);
    vt_buf_free(&b);
    return rc;
}

static int read_headers(struct learn_job *j, const struct opt_list *list,
                        struct vt_err *err)
{
    j->header = calloc(list->n + 1, sizeof(*j->header));
    if (!j->header)
        return vt_nomem(err);
    for (size_t i = 0; i < list->n; i++) {
        const char *text = list->value[i], *equals = strchr(text, '=');
        char *name;

        if (!equals || equals == text)
            return vt_fail(err, VT_EINPUT, "--header '%s' is not KEY=VALUE", text);
        name = vt_arena_copy(&j->arena, text, (size_t)(equals - text));
        if (!name)
            return vt_nomem(err);
        j->header[i] = (struct net_header){name, equals + 1};
    }
    j->http.config.header = j->header;
    j->http.config.n_headers = list->n;
    return VT_OK;
}

static int configure(struct learn_job *j, const struct opt_args *a, struct vt_err *err)
{
    const struct learn_options *o = a->options;
    struct vt_load_config *c = &j->http.config;
    struct vt_learn_config *l = &j->config;
    int rc;

    if (!o->plan && (!o->base_url || !o->out))
        return vt_fail(err, VT_EINPUT, "usage: vtwin learn %s", a->command->usage);
    if ((rc = opt_exclude(a, &o->minutes, &o->seconds, err)))
        return rc;
    l->seconds = opt_given(a, &o->seconds) ? o->seconds : 60 * o->minutes;
    l->max_concurrency = o->max_concurrency;
    if (o->plan)
        return VT_OK;
    if ((rc = vt_load_url_check(o->base_url, err)) ||
        (rc = read_headers(j, &o->headers, err)) ||
        (rc = beside(j, o->out, "-traces", &l->dir, err)) ||
        (rc = beside(j, o->out, "-report.html", &j->report, err)))
        return rc;
    c->base_url = cli_base_url(o->base_url);
    c->api_key = o->api_key ? o->api_key : getenv("OPENAI_API_KEY");
    c->ca_file = o->ca_file;
    c->insecure = o->insecure;
    c->model = o->model;
    c->timeout_ns = (vt_ns)o->timeout_s * VT_SEC;
    c->logprobs = -1;
    c->stopped = cli_stopped;
    /* Every run has prompts of its own: none of them is cached. */
    j->http.seed = (uint64_t)vt_unix_ns();
    l->seed = (uint64_t)o->seed;
    l->tolerance = o->tolerance;
    l->kind = opt_word(kinds, o->kind);
    l->stopped = cli_stopped;
    l->tell = o->quiet ? NULL : cli_tell_named;
    if (o->traces)
        l->dir = o->traces;
    if (o->report)
        j->report = o->report;
    return VT_OK;
}

static void raise_files(uint32_t connections)
{
    rlim_t need = (rlim_t)connections + 64;
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= need)
        return;
    r.rlim_cur = need < r.rlim_max ? need : r.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &r);
}

static int write_profile(const struct learn_job *j, const struct learn_options *o,
                         struct vt_err *err)
{
    const char *slash = strrchr(o->out, '/'), *file = slash ? slash + 1 : o->out;
    struct vt_buf b = {0};
    char name[128];
    int rc;

    (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(file, "."), file);
    rc = vt_learn_profile(&b, &j->learned, o->name ? o->name : name, o->description,
                          err);
    if (rc == VT_OK)
        rc = vt_write_file(o->out, &b, err);
    vt_buf_free(&b);
    return rc;
}

static int tell_learned(const struct learn_job *j, const struct learn_options *o,
                        bool written, struct vt_err *err)
{
    struct vt_buf b = {0};

    if (o->json) {
        vt_learn_json(&b, &j->learned);
    } else {
        vt_learn_table(&b, &j->learned);
        vt_buf_printf(&b, "\ntraces:  %s\nreport:  %s\n", j->config.dir, j->report);
        if (written)
            vt_buf_printf(&b, "profile: %s%s\n", o->out,
                          j->learned.refusal[0] ? " (by force)" : "");
    }
    return cli_print(&b, err);
}

static int learn(const struct opt_args *a, struct vt_err *err)
{
    const struct learn_options *o = a->options;
    struct learn_job j = {0};
    struct vt_learn_site site = vt_learn_http(&j.http);
    bool write;
    int rc = configure(&j, a, err);

    if (rc == VT_OK && o->plan) {
        struct vt_buf b = {0};

        vt_learn_plan(&b, &j.config);
        rc = cli_print(&b, err);
        goto out;
    }
    if (rc != VT_OK)
        goto out;
    cli_signals_stop();
    raise_files(o->max_concurrency);
    if ((rc = vt_learn_run(&j.learned, &j.config, &site, err)))
        goto out;
    write = !j.learned.refusal[0] || o->force;
    if ((rc = vt_learn_page(&j.learned, o->base_url, j.report, err)) ||
        (write && (rc = write_profile(&j, o, err))) ||
        (rc = tell_learned(&j, o, write, err)))
        goto out;
    if (!write)
        rc = vt_fail(err, VT_ECHECK, "no profile is written: %s", j.learned.refusal);
out:
    vt_learn_free(&j.learned);
    vt_learn_http_close(&j.http);
    free(j.header);
    vt_arena_free(&j.arena);
    return rc;
}

#define OPT_T struct learn_options
static const struct opt_row rows[] = {
    OPT_TEXT(base_url, "base-url", "URL", NULL, "the server; https:// for TLS"),
    OPT_TEXT(out, "out", "FILE", NULL, "the profile to write (also -o)"),
    OPT_F64(minutes, "minutes", "N", 1e-3, 1440, "5", "of load on the server, in all"),
    OPT_F64(seconds, "seconds", "N", 1e-2, 86400, NULL, "the same in seconds"),
    OPT_U32(max_concurrency, "max-concurrency", "N", 1, 1 << 16, "128",
            "never more requests at once"),
    OPT_TEXT(api_key, "api-key", "KEY", NULL, "sent as Authorization: Bearer",
             .shown = "$OPENAI_API_KEY"),
    OPT_LIST(headers, "header", "KEY=VALUE ...", "headers for every request"),
    OPT_FLAG(insecure, "insecure", "take any certificate"),
    OPT_TEXT(ca_file, "cacert", "FILE", NULL, "certificates to trust (PEM)",
             .shown = "the system's"),
    OPT_TEXT(model, "model", "NAME", NULL, "model to ask for",
             .shown = "the server's first"),
    OPT_U32(timeout_s, "request-timeout", "SEC", 1, 1 << 30, "600",
            "give a request up after so long", .unit = VT_SEC),
    OPT_F64(tolerance, "tolerance", "PERCENT", 0.1, 1000, "15",
            "median error of E2E, TTFT and ITL with which a profile is good"),
    OPT_WORD(kind, "kind", "KIND", kinds, NULL, "learn this kind of model only",
             .shown = "the best"),
    OPT_FLAG(force, "force", "write the profile also if it is not; it says so"),
    OPT_TEXT(name, "name", "TEXT", NULL, "of the profile", .shown = "the file's"),
    OPT_TEXT(description, "description", "TEXT", NULL, "one line about it"),
    OPT_TEXT(traces, "traces", "DIR", NULL, "where clients' traces are kept",
             .shown = "PROFILE-traces"),
    OPT_TEXT(report, "report", "FILE", NULL, "the page",
             .shown = "PROFILE-report.html"),
    OPT_I64(seed, "seed", "N", 0, INT64_MAX, "1", "of lengths and arrivals"),
    OPT_FLAG(plan, "plan", "only print which loads would be sent"),
    OPT_FLAG(json, "json", "print what was learned as JSON"),
    OPT_FLAG(quiet, "quiet", "no lines about how it goes"),
    {0},
};
static const struct opt_block blocks[] = {OPT_ROWS(rows), {0}};
static const char *const examples[] = {
    "./run learn --plan --minutes 5 --max-concurrency 64", NULL};

const struct opt_command cmd_learn = {
    .name = "learn",
    .summary = "a profile of a running vLLM server",
    .usage = "--base-url URL -o PROFILE.json [FLAGS]",
    .about =
        "Asks the server for its limits, sends it a short plan of loads, learns a\n"
        "model from what a client sees of them, predicts loads that it has not seen\n"
        "and measures those. The profile says how far off it was; one that is off\n"
        "too far is not written. Traces and a report lie beside it.",
    .blocks = blocks,
    .size = sizeof(struct learn_options),
    .examples = examples,
    .run = learn,
};
