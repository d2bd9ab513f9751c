/* config_hash.c - the fingerprint of what a capture was taken on. */
#include <openssl/evp.h>

#include "wire/wire.h"

static void put_line(EVP_MD_CTX *sha, const char *key, const char *value)
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
        put_line(sha, "config-fingerprint-v3", NULL);
        put_line(sha, "gpu=", gpu);
        put_line(sha, "vllm_tag=", vllm_tag);
        put_line(sha, "engine_config=", engine_config);
        EVP_DigestFinal_ex(sha, digest, NULL);
    }
    EVP_MD_CTX_free(sha);
    for (size_t i = 0; i < 32; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
}
