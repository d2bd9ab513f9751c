/* store.c - where a golden's file is: in a directory, or in a bucket. */
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conform/golden.h"

/* ---- digests ---------------------------------------------------------- */

int file_sha256(const char *path, char out[65], struct vt_err *err)
{
    FILE *file = fopen(path, "rb");
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    unsigned char digest[32], bytes[1 << 14];
    bool good = file && ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);
    size_t n;

    while (good && (n = fread(bytes, 1, sizeof(bytes), file)) > 0)
        good = EVP_DigestUpdate(ctx, bytes, n);
    good = good && !ferror(file) && EVP_DigestFinal_ex(ctx, digest, NULL);
    for (size_t i = 0; good && i < sizeof(digest); i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
    EVP_MD_CTX_free(ctx);
    if (file)
        fclose(file);
    return good ? VT_OK : vt_fail(err, VT_EIO, "%s: cannot be read", path);
}

/* ---- directories ------------------------------------------------------ */

static char *join(const char *directory, const char *name)
{
    size_t size = strlen(directory) + strlen(name) + 2;
    char *path = malloc(size);

    if (path)
        snprintf(path, size, "%s/%s", directory, name);
    return path;
}

static bool is_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_uri(const char *path)
{
    return strncmp(path, "s3://", 5) == 0;
}

/* *path stays NULL if there is no such file. */
static int look(const char *directory, const char *name, char **path,
                struct vt_err *err)
{
    char *there;

    if (!name || is_uri(name))
        return VT_OK;
    there = *name == '/' ? strdup(name) : join(directory, name);
    if (!there)
        return vt_nomem(err);
    if (is_file(there))
        *path = there;
    else
        free(there);
    return VT_OK;
}

/* ---- buckets ---------------------------------------------------------- */

static int make_temporary(struct store *s, struct vt_err *err)
{
    char name[] = "/tmp/vtwin-conform-XXXXXX";

    if (s->temporary)
        return VT_OK;
    if (!mkdtemp(name))
        return vt_fail(err, VT_EIO, "%s: %s", name, strerror(errno));
    s->temporary = strdup(name);
    return s->temporary ? VT_OK : vt_nomem(err);
}

static char *uri_of(const struct vt_conform_config *c, const struct vt_golden *g)
{
    const char *bucket = c->bucket, *key = g->bucket_path;
    size_t n = strlen(bucket ? bucket : ""), size = n + strlen(key) + 8;
    char *uri;

    if (is_uri(key))
        return strdup(key);
    while (n > 0 && bucket[n - 1] == '/')
        n--;
    uri = malloc(size);
    if (uri)
        snprintf(uri, size, "%s%.*s/%s", is_uri(bucket) ? "" : "s3://", (int)n, bucket,
                 key + (*key == '/'));
    return uri;
}

/* A cached file is named by what it must be, so a wrong one is fetched again. */
static int fetch(struct store *s, const struct vt_golden *g, char **path,
                 struct vt_err *err)
{
    const struct vt_conform_config *c = s->config;
    char digest[65] = "", *uri = NULL, *there = NULL;
    int rc = c->cache ? vt_make_dirs(c->cache, NULL, err) : make_temporary(s, err);

    if (rc == VT_OK) {
        there = join(c->cache ? c->cache : s->temporary, g->sha256);
        uri = uri_of(c, g);
        rc = there && uri ? VT_OK : vt_nomem(err);
    }
    if (rc == VT_OK && is_file(there))
        rc = file_sha256(there, digest, err);
    if (rc == VT_OK && strcmp(digest, g->sha256) != 0)
        rc = vt_s3_fetch(&c->s3, uri, there, GOLDEN_MAX_BYTES, err);
    if (rc == VT_OK)
        *path = there;
    else
        free(there);
    free(uri);
    return rc;
}

/* ---- both ------------------------------------------------------------- */

int store_find(struct store *s, const struct vt_golden *g, char **path,
               struct vt_err *err)
{
    const char *directory =
        s->config->goldens ? s->config->goldens : s->manifest->directory;
    bool remote = g->bucket_path && (s->config->bucket || is_uri(g->bucket_path));
    int rc;

    *path = NULL;
    rc = look(directory, g->path, path, err);
    if (rc == VT_OK && !*path && remote)
        return fetch(s, g, path, err);
    if (rc == VT_OK && !*path)
        rc = look(directory, g->bucket_path, path, err);
    if (rc == VT_OK && !*path) {
        vt_fail(err, VT_EINPUT, "not in %s%s", directory,
                g->bucket_path ? ", and no bucket is given" : "");
        *path = strdup("");
        rc = *path ? VT_OK : vt_nomem(err);
    }
    return rc;
}

/* Removes what fetch() put there: files named by the manifest's digests. */
void store_end(struct store *s)
{
    for (size_t i = 0; s->temporary && i < s->manifest->n_goldens; i++) {
        char *path = join(s->temporary, s->manifest->golden[i].sha256);

        if (path)
            unlink(path);
        free(path);
    }
    if (s->temporary)
        rmdir(s->temporary);
    free(s->temporary);
    s->temporary = NULL;
}
