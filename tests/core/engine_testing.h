/* engine_testing.h - requests for engines under test. */
#ifndef VT_TEST_ENGINE_H
#define VT_TEST_ENGINE_H

#include "core/core.h"

/* With content of its own, so that nothing is found in a cache. */
static inline void add_request(struct vt_engine *e, vt_ns now, uint64_t tag,
                               uint32_t prompt, uint32_t output)
{
    struct vt_segment seg = {.content = 1000 + tag, .tokens = prompt};
    struct vt_request r = {
        .tag = tag,
        .prompt_tokens = prompt,
        .max_tokens = output,
        .eos_at = VT_NO_STOP,
        .stop_at = VT_NO_STOP,
        .arrival = now,
        .segment = &seg,
        .n_segments = 1,
        .output_content = 2000 + tag,
    };

    assert_int_equal(vt_engine_add(e, now, &r, NULL), VT_OK);
}

#endif
