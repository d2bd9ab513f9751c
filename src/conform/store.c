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

static const char *print_path(struct store *s, const char *fmt, ...) VT_PRINTF(2, 3);

/* NULL: out of memory. */
static const char *print_path(struct store *s, const char *fmt, ...)
{
    struct vt_buf b = {0};
    const char *text;
    va_list args;

    va_start(args, fmt);
    vt_buf_vprintf(&b, fmt, args);
    va_end(args);
    text = b.failed ? NULL : vt_arena_copy(&s->arena, b.data, b.len);
    vt_buf_free(&b);
    return text;
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
static int look_for(struct store *s, const char *directory, const char *name,
                    const char **path, struct vt_err *err)
{
    const char *there;

    if (!name || is_uri(name))
        return VT_OK;
    there = *name == '/' ? name : print_path(s, "%s/%s", directory, name);
    if (!there)
        return vt_nomem(err);
    if (is_file(there))
        *path = there;
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
    s->temporary = vt_arena_copy(&s->arena, name, strlen(name));
    return s->temporary ? VT_OK : vt_nomem(err);
}

static const char *uri_of(struct store *s, const struct vt_golden *g)
{
    const char *bucket = s->config->bucket, *key = g->bucket_path;
    size_t n = strlen(bucket ? bucket : "");

    if (is_uri(key))
        return key;
    while (n > 0 && bucket[n - 1] == '/')
        n--;
    return print_path(s, "%s%.*s/%s", is_uri(bucket) ? "" : "s3://", (int)n, bucket,
                      key + (*key == '/'));
}

/* A cached file is named by what it must be, so a wrong one is fetched again. */
static int fetch_golden(struct store *s, const struct vt_golden *g, const char **path,
                        struct vt_err *err)
{
    const struct vt_conform_config *c = s->config;
    const char *uri, *there;
    char digest[65] = "";
    int rc = c->cache ? vt_make_dirs(c->cache, NULL, err) : make_temporary(s, err);

    if (rc != VT_OK)
        return rc;
    there = print_path(s, "%s/%s", c->cache ? c->cache : s->temporary, g->sha256);
    uri = uri_of(s, g);
    if (!there || !uri)
        return vt_nomem(err);
    if ((is_file(there) && (rc = file_sha256(there, digest, err))) ||
        (strcmp(digest, g->sha256) != 0 &&
         (rc = vt_s3_fetch(&c->s3, uri, there, GOLDEN_MAX_BYTES, err))))
        return rc;
    *path = there;
    return VT_OK;
}

/* ---- both ------------------------------------------------------------- */

int store_find(struct store *s, const struct vt_golden *g, const char **path,
               struct vt_err *err)
{
    const char *directory =
        s->config->goldens ? s->config->goldens : s->manifest->directory;
    int rc;

    *path = NULL;
    rc = look_for(s, directory, g->path, path, err);
    if (rc != VT_OK || *path)
        return rc;
    if (g->bucket_path && (s->config->bucket || is_uri(g->bucket_path)))
        return fetch_golden(s, g, path, err);
    rc = look_for(s, directory, g->bucket_path, path, err);
    if (rc == VT_OK && !*path)
        vt_fail(err, VT_EINPUT, "not in %s%s", directory,
                g->bucket_path ? ", and no bucket is given" : "");
    return rc;
}

/* Removes what fetch_golden() put there: files named by the manifest's digests. */
void store_end(struct store *s)
{
    for (size_t i = 0; s->temporary && i < s->manifest->n_goldens; i++) {
        const char *path =
            print_path(s, "%s/%s", s->temporary, s->manifest->golden[i].sha256);

        if (path)
            unlink(path);
    }
    if (s->temporary)
        rmdir(s->temporary);
    vt_arena_free(&s->arena);
}
