/* config.json: any text is refused, or gives sizes that everything can be worked out
 * from and every model that takes one can be opened on. */
#include <assert.h>
#include <math.h>

#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void size_it(const struct vt_arch *a)
{
    struct vt_kv_capacity room;
    struct vt_kv_query q;
    struct vt_gpu gpu;

    if (vt_gpu_find(&gpu, "H200", NULL, NULL) != VT_OK)
        abort();
    vt_kv_query_init(&q);
    q.kv.arch = a;
    q.gpu = &gpu;
    assert(isfinite(vt_arch_params(a)) && vt_arch_params(a) >= 0);
    assert(vt_arch_active_params(a) <= vt_arch_params(a));
    for (q.kv.tp = 1; q.kv.tp <= 8; q.kv.tp *= 2)
        for (int compat = VT_COMPAT_VLLM; compat <= VT_COMPAT_BLIS; compat++) {
            q.compat = (enum vt_compat)compat;
            if (vt_kv_capacity(&q, &room, NULL) == VT_OK)
                assert(room.engine.num_gpu_blocks >= 2 && isfinite(room.cache));
        }
}

static void open_on(const struct vt_node *config)
{
    static const char *const kinds[] = {"roofline", "crossmodel", "trained-roofline",
                                        "trained-physics"};
    struct vt_item item[2] = {{.tokens = 7, .known = 7, .prefill = true},
                              {.tokens = 1, .computed = 9}};
    struct vt_step_plan plan = {.item = item,
                                .n = 2,
                                .n_prefills = 1,
                                .n_decodes = 1,
                                .prefill_tokens = 7,
                                .decode_tokens = 1,
                                .decode_ctx = 9};
    struct vt_step_shape shape = {.plan = &plan, .max_num_seqs = 8};
    struct vt_node pair[2] = {*config, {.kind = VT_STR, .n = 4, .u = {.str = "H100"}}};
    struct vt_node map = {.kind = VT_MAP, .n = 2, .u = {.item = pair}};

    pair[0].key = "hf_config";
    pair[1].key = "gpu";
    for (size_t i = 0; i < VT_COUNT(kinds); i++) {
        struct vt_latency *m = NULL;
        struct vt_step_cost cost = {0};

        if (vt_model_find(kinds[i])->open(&m, &map, NULL) != VT_OK)
            continue;
        m->ops->step(m, &shape, &cost);
        assert(isfinite(cost.gpu_us) && cost.gpu_us >= 0);
        vt_latency_close(m);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vt_arena arena = {0};
    const struct vt_node *config;
    struct vt_arch a;

    if (vt_json_parse(&arena, (const char *)data, size, 1, &config, NULL) == VT_OK &&
        vt_arch_read(&a, config, NULL) == VT_OK) {
        size_it(&a);
        open_on(config);
    }
    vt_arena_free(&arena);
    return 0;
}
