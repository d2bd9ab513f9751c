/* cmd_conform.c - vtwin conform: are goldens what they say, and do they come back when
 * they are replayed? */
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/signals.h"
#include "conform/conform.h"

extern char **environ;

enum { MAX_PATH = 4096, LEVELS = 4 };

struct conform_options {
    struct vt_conform_config c;
    const char *manifest;
    bool list, json;
    struct cli_files files;
};

#define OPT_T struct conform_options
static const struct opt_row rows[] = {
    OPT_TEXT(manifest, "manifest", "FILE", NULL,
             "the goldens; compat.toml and models.toml beside it",
             .shown = "conformance/manifest.toml"),
    OPT_TEXT(c.goldens, "goldens", "DIR", NULL, "where their files are",
             .shown = "the manifest's"),
    OPT_TEXT(c.bucket, "bucket", "URI", NULL,
             "S3 bucket that has what is not there: s3://BUCKET/PREFIX",
             .shown = "$CONFORMANCE_BUCKET"),
    OPT_TEXT(c.cache, "cache", "DIR", NULL, "keep what was fetched, by its SHA-256",
             .shown = "none"),
    OPT_TEXT(c.line, "line", "LINE", NULL, "only goldens of this line of vLLM",
             .shown = "all"),
    OPT_WORD(c.role, "role", "ROLE", vt_golden_roles, NULL,
             "only schema or only fidelity goldens", .shown = "both"),
    OPT_TEXT(c.expect_config_hash, "expect-config-hash", "H", NULL,
             "the configuration that every golden must come from"),
    OPT_TEXT(c.frontend, "frontend", "PATH", NULL,
             "replay tokens through this vllm-rs (or vllm)",
             .shown = "$VLLM_RS, or our own"),
    OPT_TEXT(c.model_dir, "model-dir", "DIR", NULL, "what the frontend serves",
             .shown = "models.toml's"),
    OPT_F64(c.tolerance.p50_ms, "tolerance-ms", "MS", 0, 1e6, NULL,
            "median error that replayed times may have", .shown = "the golden's, or 2",
            .unit = VT_MS),
    OPT_F64(c.tolerance.p99_ms, "tolerance-p99-ms", "MS", 0, 1e6, NULL,
            "and the error that one in a hundred may exceed",
            .shown = "the golden's, or 50", .unit = VT_MS),
    OPT_FLAG(c.strict, "strict",
             "also fail for lines that are not validated and for missing files"),
    OPT_FLAG(list, "list", "print what there is, and check nothing"),
    OPT_FLAG(json, "json", "print JSON instead of a table"),
    {0},
};
static const struct opt_block blocks[] = {
    OPT_ROWS(rows),
    OPT_BLOCK(cli_files_rows, struct conform_options, files),
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

static const char *or_env(const char *given, const char *name)
{
    const char *value = given ? given : getenv(name);

    return value && *value ? value : NULL;
}

static const char *first_env(const char *name, const char *other)
{
    const char *value = getenv(name);

    return value && *value ? value : getenv(other);
}

static void show_progress(void *user, const struct vt_golden *g)
{
    (void)user;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[Kchecking %s", g->name);
}

static int configure(struct vt_conform_config *c, const struct opt_args *a,
                     struct vt_err *err)
{
    const struct conform_options *o = a->options;

    *c = o->c;
    if (!opt_given(a, &o->c.tolerance.p50_ms))
        c->tolerance.p50_ms = -1;
    if (!opt_given(a, &o->c.tolerance.p99_ms))
        c->tolerance.p99_ms = -1;
    c->bucket = or_env(c->bucket, "CONFORMANCE_BUCKET");
    c->frontend = or_env(c->frontend, "VLLM_RS");
    c->begins = show_progress;
    c->stopped = cli_stopped;
    c->s3 = (struct vt_s3){
        .access_key = getenv("AWS_ACCESS_KEY_ID"),
        .secret_key = getenv("AWS_SECRET_ACCESS_KEY"),
        .session_token = getenv("AWS_SESSION_TOKEN"),
        .region = first_env("AWS_REGION", "AWS_DEFAULT_REGION"),
        .endpoint = first_env("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    };
    if (c->frontend && access(c->frontend, X_OK) != 0)
        return vt_fail(err, VT_EINPUT, "--frontend: %s is no program", c->frontend);
    return VT_OK;
}

/* ---- doing it --------------------------------------------------------- */

static int check_goldens(const struct vt_manifest *m, struct vt_conform_config *config,
                         bool json, struct vt_err *err)
{
    struct vt_conform result;
    struct vt_buf b = {0};
    char own[MAX_PATH];
    int rc;

    config->vtwin = own_path(own) ? own : NULL;
    /* The model is a directory: nothing is to be asked of a hub. */
    setenv("HF_HUB_OFFLINE", "1", 0);
    config->environment = environ;
    cli_signals_catch();
    rc = vt_conform_run(&result, m, config, err);
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    if (rc != VT_OK)
        return vt_within(err, rc, "conform");
    if (json)
        vt_conform_json(&b, &result);
    else
        vt_conform_table(&b, &result);
    rc = cli_print(&b, err);
    if (rc == VT_OK && result.n_failed > 0)
        rc = vt_fail(err, VT_ECHECK, "conform: %zu check%s failed", result.n_failed,
                     result.n_failed == 1 ? "" : "s");
    vt_conform_free(&result);
    return rc;
}

static int conform(const struct opt_args *a, struct vt_err *err)
{
    const struct conform_options *o = a->options;
    const char *path = o->manifest;
    struct vt_conform_config config;
    struct vt_manifest m = {0};
    struct vt_buf b = {0};
    char found[MAX_PATH];
    int rc = configure(&config, a, err);

    if (rc != VT_OK)
        return rc;
    if (!path && find_manifest(found))
        path = found;
    if (!path) {
        puts("no goldens: there is no conformance/manifest.toml; --manifest names one");
        return VT_OK;
    }
    rc = vt_manifest_load(&m, path, err);
    if (rc == VT_OK && !o->list) {
        rc = check_goldens(&m, &config, o->json, err);
    } else if (rc == VT_OK) {
        if (o->json)
            vt_manifest_json(&b, &m);
        else
            vt_manifest_table(&b, &m);
        rc = cli_print(&b, err);
    }
    vt_manifest_free(&m);
    return rc;
}

static const char *const examples[] = {
    "./run conform --list",
    "./run conform --role schema",
    "./run conform --role schema --line 0.26 --json >conform.json",
    NULL,
};

const struct opt_command cmd_conform = {
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
    .blocks = blocks,
    .size = sizeof(struct conform_options),
    .examples = examples,
    .run = conform,
};
