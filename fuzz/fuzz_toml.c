/* fuzz_toml.c - whatever the bytes, a TOML tree is well formed or a clean error. */
#include "check_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_parse(vt_toml_parse, data, size);
    return 0;
}
