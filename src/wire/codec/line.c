/* line.c - how messages of each line of vLLM differ. To add a line: add a row, and its
 * captures to tests/cases/wire. */
#include <openssl/evp.h>
#include <string.h>

#include "wire/wire.h"

static const struct vt_wire_line table[] = {
    {"0.25", 25, 20, 13, 8, 10, .past = true},
    {"0.26", 26, 20, 14, 8, 11, .past = false},
    {"0.27", 27, 20, 14, 8, 11, .past = true},
    {"0.28", 28, 21, 16, 8, 11, .past = true},
    {"0.29", 29, 21, 17, 8, 11, .past = false},
    {"0.30", 30, 21, 17, 8, 11, .past = false},
    {"0.31", 31, 22, 18, 8, 11, .past = false},
    {"0.32", 32, 22, 18, 9, 11, .past = false},
};
static const struct vt_wire_line *const lines[] = {&table[0], &table[1], &table[2],
                                                   &table[3], &table[4], &table[5],
                                                   &table[6], &table[7]};
_Static_assert(VT_COUNT(lines) == VT_COUNT(table), "each of them");

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

/* Frontends reject arrays that are longer than they know, and take shorter ones: so the
 * oldest that it can be. 0.25 is not guessed: fields of its answers stand elsewhere. */
const struct vt_wire_line *vt_wire_line_of_request(uint32_t n_fields)
{
    const struct vt_wire_line *found = vt_wire_line_find("0.26");

    for (size_t i = 0; i < VT_COUNT(lines); i++)
        if (lines[i]->request_fields > found->request_fields &&
            lines[i]->request_fields <= n_fields)
            found = lines[i];
    return found;
}

uint32_t vt_wire_release(const struct vt_wire_line *line)
{
    uint32_t release = line->minor;

    for (size_t i = 0; i < VT_COUNT(lines); i++)
        if (lines[i]->request_fields == line->request_fields && !lines[i]->past)
            release = lines[i]->minor;
    return release;
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
