/* line.c - how messages of each line of vLLM differ. To add a line: add a row, and its
 * captures to tests/cases/wire. */
#include <openssl/evp.h>
#include <string.h>

#include "wire/wire.h"

static const struct vt_wire_line v0_25 = {"0.25", 20, 13, 8, 10, false, false};
static const struct vt_wire_line v0_26 = {"0.26", 20, 14, 8, 11, true, false};
static const struct vt_wire_line v0_27 = {"0.27", 20, 14, 8, 11, true, false};
static const struct vt_wire_line v0_28 = {"0.28", 21, 16, 8, 11, true, false};
static const struct vt_wire_line v0_32 = {"0.32", 22, 18, 9, 11, true, true};

static const struct vt_wire_line *const lines[] = {&v0_25, &v0_26, &v0_27, &v0_28,
                                                   &v0_32};

const struct vt_wire_line *const *vt_wire_lines(size_t *n)
{
    *n = VT_COUNT(lines);
    return lines;
}

const struct vt_wire_line *vt_wire_line_find(const char *name)
{
    if (*name == 'v')
        name++;
    for (size_t i = 0; i < VT_COUNT(lines); i++) {
        size_t len = strlen(lines[i]->name);

        if (strncmp(name, lines[i]->name, len) == 0 &&
            (name[len] == '\0' || name[len] == '.'))
            return lines[i];
    }
    return NULL;
}

const struct vt_wire_line *vt_wire_line_of_request(uint32_t n_fields)
{
    if (n_fields >= v0_32.request_fields)
        return &v0_32;
    if (n_fields >= v0_28.request_fields)
        return &v0_28;
    return &v0_26;
}

/* ---- the fingerprint of what a capture was taken on ------------------- */

static void hash_line(EVP_MD_CTX *sha, const char *key, const char *value)
{
    EVP_DigestUpdate(sha, key, strlen(key));
    if (value)
        EVP_DigestUpdate(sha, value, strlen(value));
    EVP_DigestUpdate(sha, "\n", 1);
}

void vt_config_hash(char out[65], const char *gpu, const char *vllm_tag,
                    const char *engine_config)
{
    unsigned char digest[EVP_MAX_MD_SIZE] = {0};
    EVP_MD_CTX *sha = EVP_MD_CTX_new();

    if (sha && EVP_DigestInit_ex(sha, EVP_sha256(), NULL) == 1) {
        hash_line(sha, "config-fingerprint-v3", NULL);
        hash_line(sha, "gpu=", gpu);
        hash_line(sha, "vllm_tag=", vllm_tag);
        hash_line(sha, "engine_config=", engine_config);
        EVP_DigestFinal_ex(sha, digest, NULL);
    }
    EVP_MD_CTX_free(sha);
    for (size_t i = 0; i < 32; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
}
