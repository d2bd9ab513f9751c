/* The fingerprints of vllm-vcr's manifest, and of inputs at the edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/wire.h"

#define ENGINE(caching)                                                   \
    "block_size=16;enable_prefix_caching=" caching                        \
    ";enforce_eager=true;gpu_memory_utilization=0.9;max_model_len=16384;" \
    "max_num_seqs=256;model=Qwen/Qwen3-8B;speculative=none;tensor_parallel=1"
#define CACHED   ENGINE("true")
#define UNCACHED ENGINE("false")

static struct row {
    const char *name;
    const char *gpu, *tag, *engine_config;
    const char *want;
} rows[] = {
    {"0.24 with prefix cache", "H200", "v0.24.0", CACHED,
     "6877a96ac4bfb8281101baecdccdbc1bb1e2d447f0d0595ffcf2bef1771cbd51"},
    {"0.25 with prefix cache", "H200", "v0.25.1", CACHED,
     "c74d2e5958ebe152838089bfc134ba615c9f10f113fb9ff034c68cfe7ed1d543"},
    {"0.26 with prefix cache", "H200", "v0.26.0", CACHED,
     "a50876aca900d094a2d58897176c1c96748203743b29a17ce1eb355fccbac84c"},
    {"0.27 with prefix cache", "H200", "v0.27.1", CACHED,
     "008ec925f30d74759b6c62bd5e78b16efb7b450c687554c053726dad9740a9dd"},
    {"0.24 without", "H200", "v0.24.0", UNCACHED,
     "e4cae396fbb56fb7587526332d2b9078baeadb710345c665c1e3630dc740c1fb"},
    {"0.25 without", "H200", "v0.25.1", UNCACHED,
     "c7f70be8d426964e035600f31adb13b56f4335c93bbf5b51e63e4da8ae63c86c"},
    {"0.26 without", "H200", "v0.26.0", UNCACHED,
     "17e60055a625292e67a354084204b1f7f0f3f196ee3d62363113d3de15aa20ec"},
    {"0.27 without", "H200", "v0.27.1", UNCACHED,
     "207648aeb128254e4e0c6d177c428abccd40a306478c04b0b8519a61b9c4ce8e"},
    {"keys in another order are another string", "H200", "v0.23.0",
     "block_size=16;enforce_eager=true;enable_prefix_caching=true;"
     "gpu_memory_utilization=0.9;max_model_len=16384;max_num_seqs=256;"
     "model=Qwen/Qwen3-8B;speculative=none;tensor_parallel=1",
     "3c28800c21c81a0a7c92b5c2e48b963b14c7624a887ece3e3eb5b4ded13bb6d6"},
    {"few keys", "H200", "v0.23.0", "model=Qwen/Qwen3-8B;tensor_parallel=1",
     "54579d8f8af818ab4186c1bd006f5504883eeeeafcfe8e06cd1c1307fb5b34a5"},
    {"no engine_config", "H200", "v0.23.0", "",
     "0fe1c5f4504ac830557154d7758178032bc8560acb08cff52722b96e97c1f92c"},
    {"all empty", "", "", "",
     "a4337510cb7fceea0fd1e2d1dbe1813d63bd375867bfbaeb5a7af501a8decc2e"},
    {"absent is empty", NULL, NULL, NULL,
     "a4337510cb7fceea0fd1e2d1dbe1813d63bd375867bfbaeb5a7af501a8decc2e"},
};

static void hashes(void **state)
{
    const struct row *r = *state;
    char got[65];

    vt_config_hash(got, r->gpu, r->tag, r->engine_config);
    assert_string_equal(got, r->want);
}

int main(void)
{
    struct CMUnitTest tests[VT_COUNT(rows)];

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = hashes, .initial_state = &rows[i]};
    return cmocka_run_group_tests_name("config_hash", tests, NULL, NULL);
}
