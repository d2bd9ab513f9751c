/* fuzz_yaml.c - whatever the bytes, a YAML tree is well formed or a clean error. */
#include "check_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_parse(vt_yaml_parse, data, size);
    return 0;
}
