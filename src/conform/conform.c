/* conform.c - the goldens that were asked for, check by check. */
#include "conform/golden.h"

bool conform_stopped(const struct vt_conform_config *c)
{
    return c->stopped && c->stopped(c->user);
}

/* *path is NULL if there is nothing more to check. */
static int check_file(struct judge *j, struct store *s, const char **path,
                      struct vt_err *err)
{
    const char *there = NULL;
    struct vt_err why = {0};
    char digest[65];
    int rc = store_find(s, j->golden, &there, &why);

    *path = NULL;
    if (rc == VT_OK && there)
        rc = file_sha256(there, digest, &why);
    if (rc != VT_OK)
        return judge_failure(j, "integrity", rc, &why, err);
    if (!there)
        return judge_row(j, "integrity",
                         j->config->strict ? VT_CHECK_FAILED : VT_CHECK_SKIPPED, err,
                         "%s", why.msg);
    if (strcmp(digest, j->golden->sha256) != 0)
        return judge_row(j, "integrity", VT_CHECK_FAILED, err,
                         "sha256 is %.12s..., the manifest says %.12s...", digest,
                         j->golden->sha256);
    *path = there;
    return judge_row(j, "integrity", VT_CHECK_OK, err, "sha256 %.12s...", digest);
}

static int check_contents(struct judge *j, const char *path, struct vt_err *err)
{
    static golden_check *const check[] = {check_line, check_provenance, check_schema,
                                          check_tokens, check_timing};
    size_t n = j->golden->role == VT_GOLDEN_FIDELITY ? VT_COUNT(check) : 3;
    struct golden_file f;
    struct vt_err why = {0};
    int rc = golden_load(&f, path, &why);

    if (rc != VT_OK)
        return judge_failure(j, "trace", rc, &why, err);
    rc = judge_row(j, "trace", VT_CHECK_OK, err, "%zu requests",
                   f.records.n + f.records.n_skipped);
    for (size_t i = 0; i < n && rc == VT_OK; i++)
        if (i < 3 || !conform_stopped(j->config))
            rc = check[i](j, &f, err);
    golden_free(&f);
    return rc;
}

int vt_conform_run(struct vt_conform *c, const struct vt_manifest *m,
                   const struct vt_conform_config *config, struct vt_err *err)
{
    struct store s = {.manifest = m, .config = config};
    struct vt_buf known = {0};
    bool found = !config->line;
    int rc = VT_OK;

    *c = (struct vt_conform){0};
    for (size_t i = 0; i < m->n_lines && !found; i++) {
        found = strcmp(m->line[i].line, config->line) == 0;
        vt_buf_printf(&known, "%s%s", i ? ", " : "", m->line[i].line);
    }
    /* A line that nobody knows is a slip of the hand; one without goldens is not. */
    if (!found)
        rc = vt_fail(err, VT_EINPUT, "line '%s' is not in compat.toml, which has %s",
                     config->line, known.data ? known.data : "none");
    vt_buf_free(&known);
    for (size_t i = 0; i < m->n_goldens && rc == VT_OK; i++) {
        const struct vt_golden *g = &m->golden[i];
        struct judge j = {.conform = c, .config = config, .golden = g};
        const char *path;

        if (conform_stopped(config))
            rc = vt_fail(err, VT_EIO, "stopped");
        if (rc != VT_OK || (config->line && strcmp(g->line, config->line) != 0) ||
            (config->role >= 0 && (int)g->role != config->role))
            continue;
        if (config->begins)
            config->begins(config->user, g);
        c->n_goldens++;
        rc = check_file(&j, &s, &path, err);
        if (rc == VT_OK && path)
            rc = check_contents(&j, path, err);
    }
    store_end(&s);
    if (rc != VT_OK)
        vt_conform_free(c);
    return rc;
}

void vt_conform_free(struct vt_conform *c)
{
    free(c->row);
    vt_arena_free(&c->arena);
    *c = (struct vt_conform){0};
}
