/* cmd_conform.c - vtwin conform: are goldens what they say, and do they come back when
 * they are replayed? */
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/signals.h"
#include "conform/conform.h"

extern char **environ;

enum { MAX_PATH = 4096, LEVELS = 4 };

static const char *const roles[] = {"schema", "fidelity", NULL};

static const struct cli_option options[] = {
    {"manifest", CLI_VALUE, "FILE", "conformance/manifest.toml",
     "the goldens; compat.toml and models.toml beside it", NULL},
    {"goldens", CLI_VALUE, "DIR", "the manifest's", "where their files are", NULL},
    {"bucket", CLI_VALUE, "URI", "$CONFORMANCE_BUCKET",
     "S3 bucket that has what is not there: s3://BUCKET/PREFIX", NULL},
    {"cache", CLI_VALUE, "DIR", "none", "keep what was fetched, by its SHA-256", NULL},
    {"line", CLI_VALUE, "LINE", "all", "only goldens of this line of vLLM", NULL},
    {"role", CLI_VALUE, "ROLE", "both", "only schema or only fidelity goldens", roles},
    {"expect-config-hash", CLI_VALUE, "H", NULL,
     "the configuration that every golden must come from", NULL},
    {"frontend", CLI_VALUE, "PATH", "$VLLM_RS, or our own",
     "replay tokens through this vllm-rs (or vllm)", NULL},
    {"model-dir", CLI_VALUE, "DIR", "models.toml's", "what the frontend serves", NULL},
    {"tolerance-ms", CLI_VALUE, "MS", "the golden's, or 2",
     "median error that replayed times may have", NULL},
    {"tolerance-p99-ms", CLI_VALUE, "MS", "the golden's, or 50",
     "and the error that one in a hundred may exceed", NULL},
    {"strict", CLI_FLAG, NULL, NULL,
     "also fail for lines that are not validated and for missing files", NULL},
    {"list", CLI_FLAG, NULL, NULL, "print what there is, and check nothing", NULL},
    {"json", CLI_FLAG, NULL, NULL, "print JSON instead of a table", NULL},
    {0},
};

/* ---- places ----------------------------------------------------------- */

static bool own_path(char out[MAX_PATH])
{
    ssize_t n = readlink("/proc/self/exe", out, MAX_PATH - 1);

    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* Under the working directory, or in a directory above the program: the repository
 * that it was built in. */
static bool find_manifest(char out[MAX_PATH])
{
    static const char name[] = "conformance/manifest.toml";
    char directory[MAX_PATH];

    snprintf(out, MAX_PATH, "%s", name);
    if (access(out, R_OK) == 0)
        return true;
    if (!own_path(directory))
        return false;
    for (int i = 0; i < LEVELS; i++) {
        char *slash = strrchr(directory, '/');

        if (!slash)
            return false;
        *slash = '\0';
        if ((size_t)snprintf(out, MAX_PATH, "%s/%s", directory, name) < MAX_PATH &&
            access(out, R_OK) == 0)
            return true;
    }
    return false;
}

/* ---- what the user says ----------------------------------------------- */

static const char *or_env(const struct cli_args *a, const char *flag, const char *name)
{
    const char *value = cli_has(a, flag) ? cli_str(a, flag) : getenv(name);

    return value && *value ? value : NULL;
}

static const char *first_env(const char *name, const char *other)
{
    const char *value = getenv(name);

    return value && *value ? value : getenv(other);
}

static void take_s3(struct vt_s3 *s3)
{
    s3->access_key = getenv("AWS_ACCESS_KEY_ID");
    s3->secret_key = getenv("AWS_SECRET_ACCESS_KEY");
    s3->session_token = getenv("AWS_SESSION_TOKEN");
    s3->region = first_env("AWS_REGION", "AWS_DEFAULT_REGION");
    s3->endpoint = first_env("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
}

static bool was_stopped(void *user)
{
    (void)user;
    return cli_signal_caught() != 0;
}

static void show_progress(void *user, const struct vt_golden *g)
{
    (void)user;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[Kchecking %s", g->name);
}

static void erase_progress(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

static int take_config(struct vt_conform_config *c, const struct cli_args *a,
                       struct vt_err *err)
{
    int rc;

    *c = (struct vt_conform_config){.role = -1,
                                    .tolerance = {-1, -1},
                                    .begins = show_progress,
                                    .stopped = was_stopped};
    c->goldens = cli_str(a, "goldens");
    c->bucket = or_env(a, "bucket", "CONFORMANCE_BUCKET");
    c->cache = cli_str(a, "cache");
    c->line = cli_str(a, "line");
    c->expect_config_hash = cli_str(a, "expect-config-hash");
    c->frontend = or_env(a, "frontend", "VLLM_RS");
    c->model_dir = cli_str(a, "model-dir");
    c->strict = cli_has(a, "strict");
    take_s3(&c->s3);
    rc = cli_word(a, "role", &c->role, err);
    if (rc == VT_OK)
        rc = cli_f64(a, "tolerance-ms", 0, 1e6, &c->tolerance.p50_ms, err);
    if (rc == VT_OK)
        rc = cli_f64(a, "tolerance-p99-ms", 0, 1e6, &c->tolerance.p99_ms, err);
    if (rc == VT_OK && c->frontend && access(c->frontend, X_OK) != 0)
        rc = vt_fail(err, VT_EINPUT, "--frontend: %s is no program", c->frontend);
    return rc;
}

/* ---- doing it --------------------------------------------------------- */

static int list(const struct vt_manifest *m, bool json, struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc;

    if (json)
        vt_manifest_json(&b, m);
    else
        vt_manifest_table(&b, m);
    rc = cli_print(&b, err);
    vt_buf_free(&b);
    return rc;
}

static int show(const struct vt_conform *c, bool json, struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc;

    if (json)
        vt_conform_json(&b, c);
    else
        vt_conform_table(&b, c);
    rc = cli_print(&b, err);
    vt_buf_free(&b);
    if (rc == VT_OK && c->n_failed > 0)
        rc = vt_fail(err, VT_ECHECK, "conform: %zu check%s failed", c->n_failed,
                     c->n_failed == 1 ? "" : "s");
    return rc;
}

static int check(const struct vt_manifest *m, struct vt_conform_config *config,
                 bool json, struct vt_err *err)
{
    struct vt_conform result;
    char own[MAX_PATH];
    int rc;

    config->vtwin = own_path(own) ? own : NULL;
    /* The model is a directory: nothing is to be asked of a hub. */
    setenv("HF_HUB_OFFLINE", "1", 0);
    config->environment = environ;
    cli_signals_catch();
    rc = vt_conform_run(&result, m, config, err);
    erase_progress();
    if (rc != VT_OK)
        return vt_within(err, rc, "conform");
    rc = show(&result, json, err);
    vt_conform_free(&result);
    return rc;
}

static int run(const struct cli_args *a, struct vt_err *err)
{
    char found[MAX_PATH];
    const char *path = cli_str(a, "manifest");
    struct vt_conform_config config;
    struct vt_manifest m = {0};
    bool json = cli_has(a, "json");
    int rc = cli_operands(a, &cmd_conform, 0, 0, err);

    if (rc == VT_OK)
        rc = take_config(&config, a, err);
    if (rc != VT_OK)
        return rc;
    if (!path && find_manifest(found))
        path = found;
    if (!path) {
        puts("no goldens: there is no conformance/manifest.toml; --manifest names one");
        return VT_OK;
    }
    rc = vt_manifest_load(&m, path, err);
    if (rc == VT_OK)
        rc = cli_has(a, "list") ? list(&m, json, err) : check(&m, &config, json, err);
    vt_manifest_free(&m);
    return rc;
}

static const char *const operands[] = {NULL};
static const char *const examples[] = {
    "./run conform --list",
    "./run conform --role schema",
    "./run conform --role schema --line 0.26 --json >conform.json",
    NULL,
};

const struct cli_command cmd_conform = {
    .name = "conform",
    .summary =
        "check recordings of real engines, and that they come back when replayed",
    .usage = "[--manifest FILE] [--line LINE] [--frontend PATH]",
    .about =
        "Goldens are traces that were recorded between a real frontend and a real\n"
        "engine. Each is checked: its bytes (SHA-256), its line of vLLM, its\n"
        "configuration, its engine's registration; and it is replayed by `vtwin play`\n"
        "behind a frontend: the same tokens must come out, at about the same times.\n"
        "Exit status: 0 all good or nothing to check, 1 a check failed, 2 bad input.",
    .options = options,
    .operands = operands,
    .examples = examples,
    .run = run,
};
