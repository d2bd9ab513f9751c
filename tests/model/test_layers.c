/* What a config.json says its layers keep, and the KV groups that come of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arch_testing.h"

/* 12 layers of 4 KV heads, 64 wide: 1024 bytes of a token in a layer. */
#define SIZES                                                                  \
    "\"num_hidden_layers\":12,\"hidden_size\":1024,\"num_attention_heads\":8," \
    "\"num_key_value_heads\":4,\"head_dim\":64,\"intermediate_size\":2048,"    \
    "\"vocab_size\":1000"
#define OF(type, rest)   "{\"model_type\":\"" type "\"," SIZES rest "}"
#define FOUR(a, b, c, d) "\"" a "\",\"" b "\",\"" c "\",\"" d "\""
#define THRICE(x)        "[" x "," x "," x "]"
#define SLIDING          "sliding_attention"
#define FULL             "full_attention"

static void load(const char *text_or_file, struct vt_arch *a)
{
    struct vt_err err = {0};
    int rc = *text_or_file == '{' ? read_text(text_or_file, a, &err)
                                  : vt_arch_load(a, text_or_file, &err);

    if (rc != VT_OK)
        fail_msg("%s", err.msg);
}

/* "10 sliding_window/4096 of 2 @16, ..." */
static void describe(const struct vt_engine_config *c, char *out, size_t cap)
{
    size_t at = 0;

    out[0] = '\0';
    for (uint32_t i = 0, n; i < c->n_kv_groups; i += n) {
        const struct vt_kv_group *g = &c->kv_group[i];

        for (n = 1; i + n < c->n_kv_groups; n++)
            if (memcmp(g, &c->kv_group[i + n], sizeof(*g)) != 0)
                break;
        at += (size_t)snprintf(out + at, cap - at, "%s%u %s", i ? ", " : "", n,
                               vt_attention_name((enum vt_attention)g->type));
        if (g->window > 0)
            at += (size_t)snprintf(out + at, cap - at, "/%u", g->window);
        at += (size_t)snprintf(out + at, cap - at, " of %u @%u", g->layers,
                               g->block_size);
    }
}

/* ---- groups ------------------------------------------------------------- */

static struct groups_row {
    const char *name, *config, *groups; /* "": every layer keeps every token */
    uint64_t block_bytes;
    uint32_t vllm, tp;
    enum vt_hybrid hybrid;
} groups[] = {
    {"nothing about windows", OF("llama", ""), "", 12 * 16384},
    {"null is none", OF("mistral", ",\"sliding_window\":null"), "", 12 * 16384},
    {"0 is none", OF("mistral", ",\"sliding_window\":0"), "", 12 * 16384},
    {"one window for all", OF("mistral", ",\"sliding_window\":4096"),
     "1 sliding_window/4096 of 12 @16", 12 * 16384},
    {"Qwen has one that it does not use", OF("qwen2", ",\"sliding_window\":4096"), "",
     12 * 16384},
    {"Qwen says that it does not use it",
     OF("qwen3", ",\"sliding_window\":4096,\"use_sliding_window\":false,"
                 "\"max_window_layers\":0"),
     "", 12 * 16384},
    {"Qwen uses it from no layer on",
     OF("qwen2", ",\"sliding_window\":4096,\"use_sliding_window\":true,"
                 "\"max_window_layers\":12"),
     "", 12 * 16384},
    {"Qwen uses it from the first layer on",
     OF("qwen2", ",\"sliding_window\":4096,\"use_sliding_window\":true,"
                 "\"max_window_layers\":0"),
     "1 sliding_window/4096 of 12 @16", 12 * 16384},
    {"layer_types",
     OF("llama", ",\"sliding_window\":512,\"layer_types\":" THRICE(
                     FOUR(SLIDING, SLIDING, SLIDING, FULL))),
     "3 sliding_window/512 of 3 @16, 1 full_attention of 3 @16", 3 * 16384},
    {"layer_types without a window",
     OF("llama", ",\"layer_types\":" THRICE(FOUR(SLIDING, SLIDING, SLIDING, FULL))), "",
     12 * 16384},
    {"Gemma 2 alternates", OF("gemma2", ",\"sliding_window\":4096"),
     "1 sliding_window/4096 of 6 @16, 1 full_attention of 6 @16", 6 * 16384},
    {"Gemma 3: every sixth is full", OF("gemma3_text", ",\"sliding_window\":1024"),
     "5 sliding_window/1024 of 2 @16, 1 full_attention of 2 @16", 2 * 16384},
    {"Gemma 3: its own pattern",
     OF("gemma3_text", ",\"sliding_window\":1024,\"sliding_window_pattern\":4"),
     "3 sliding_window/1024 of 3 @16, 1 full_attention of 3 @16", 3 * 16384},
    {"the language part of a model that sees",
     "{\"model_type\":\"gemma3\",\"text_config\":" OF("gemma3_text",
                                                      ",\"sliding_window\":1024") "}",
     "5 sliding_window/1024 of 2 @16, 1 full_attention of 2 @16", 2 * 16384},
    {"Cohere 2 until 0.28", OF("cohere2", ",\"sliding_window\":4096"),
     "3 sliding_window/4096 of 3 @16, 1 full_attention of 3 @16", 3 * 16384,
     .vllm = 28},
    {"Cohere 2 from 0.29 on", OF("cohere2", ",\"sliding_window\":4096"),
     "3 sliding_window/4097 of 3 @16, 1 full_attention of 3 @16", 3 * 16384,
     .vllm = 29},
    {"gpt-oss alternates, whatever it lists",
     OF("gpt_oss", ",\"layer_types\":" THRICE(FOUR(FULL, FULL, FULL, FULL))),
     "1 sliding_window/128 of 6 @16, 1 full_attention of 6 @16", 6 * 16384},
    {"a list of windows", OF("mistral", ",\"sliding_window\":[4096,null,null]"),
     "1 sliding_window/4096 of 4 @16, 2 full_attention of 4 @16", 4 * 16384},
    {"interleaved windows", OF("pangu", ",\"interleaved_sliding_window\":[64,null]"),
     "1 sliding_window/64 of 6 @16, 1 full_attention of 6 @16", 6 * 16384},
    {"Llama 4: every fourth sees all", OF("llama4_text", ""),
     "3 chunked_local_attention/8192 of 3 @16, 1 full_attention of 3 @16", 3 * 16384},
    {"Llama 4 with a list",
     OF("llama4_text", ",\"attention_chunk_size\":256,\"no_rope_layers\":"
                       "[1,0,1,0,1,0,1,0,1,0,1,0]"),
     "1 chunked_local_attention/256 of 6 @16, 1 full_attention of 6 @16", 6 * 16384},
    {"Llama 4 without chunks", OF("llama4_text", ",\"attention_chunk_size\":null"), "",
     12 * 16384},
    {"latent attention",
     OF("deepseek_v3", ",\"kv_lora_rank\":512,"
                       "\"qk_rope_head_dim\":64"),
     "1 mla_attention of 12 @16", 12 * 16 * 576 * 2},
    {"latent attention on more GPUs",
     OF("deepseek_v3", ",\"kv_lora_rank\":512,"
                       "\"qk_rope_head_dim\":64"),
     "1 mla_attention of 12 @16", 12 * 16 * 576 * 2, .tp = 4},
    {"windows that free no blocks", OF("gemma3_text", ",\"sliding_window\":1024"), "",
     12 * 16384, .hybrid = VT_HYBRID_OFF},
    {"layers that use others' cache",
     OF("gemma3n_text",
        ",\"sliding_window\":512,\"num_kv_shared_layers\":4,"
        "\"layer_types\":" THRICE(FOUR(SLIDING, SLIDING, SLIDING, FULL))),
     "3 sliding_window/512 of 2 @16, 1 full_attention of 2 @16", 2 * 16384},
    {"heads of two sizes: smaller pages keep more tokens",
     OF("gemma4_text",
        ",\"sliding_window\":512,\"global_head_dim\":128,"
        "\"layer_types\":" THRICE(FOUR(SLIDING, SLIDING, SLIDING, FULL))),
     "3 sliding_window/512 of 3 @32, 1 full_attention of 3 @16", 3 * 32768},
    {"heads of which no page divides the other, from 0.29 on",
     OF("mimo_v2_flash", ",\"sliding_window_size\":128,\"v_head_dim\":64,"
                         "\"swa_head_dim\":96,\"swa_v_head_dim\":96,"
                         "\"hybrid_layer_pattern\":[0,1,0,1,0,1,0,1,0,1,0,1]"),
     "1 full_attention of 6 @16, 1 sliding_window/128 of 6 @16", 6 * 24576},
    {"GPUs share the heads", OF("gemma2", ",\"sliding_window\":4096"),
     "1 sliding_window/4096 of 6 @16, 1 full_attention of 6 @16", 6 * 4096, .tp = 8},
    /* From the logs and vLLM's own arithmetic. */
    {"gemma-3-12b", VT_TEST_DIR "/cases/models/gemma-3-12b.json",
     "5 sliding_window/1024 of 8 @16, 1 full_attention of 8 @16", 8 * 131072},
    {"gpt-oss-20b", VT_TEST_DIR "/cases/models/gpt-oss-20b.json",
     "1 sliding_window/128 of 12 @16, 1 full_attention of 12 @16", 12 * 32768},
};

static void layers_form_groups(void **state)
{
    const struct groups_row *r = *state;
    struct vt_engine_config c;
    struct vt_kv_wish w = {.tp = r->tp, .hybrid = r->hybrid};
    struct vt_arch a;
    struct vt_err err = {0};
    uint64_t bytes;
    char got[512];

    load(r->config, &a);
    w.arch = &a;
    vt_engine_config_init(&c);
    if (r->vllm > 0)
        c.vllm = r->vllm;
    if (vt_kv_groups(&c, &w, &bytes, &err) != VT_OK)
        fail_msg("%s", err.msg);
    describe(&c, got, sizeof(got));
    assert_string_equal(got, r->groups);
    assert_int_equal(bytes, r->block_bytes);
    assert_int_equal(vt_engine_config_check(&c, &err), VT_OK);
    /* Said again of what was said already. */
    if (vt_kv_groups(&c, &w, &bytes, &err) != VT_OK)
        fail_msg("%s", err.msg);
    describe(&c, got, sizeof(got));
    assert_string_equal(got, r->groups);
}

/* ---- states ---------------------------------------------------------------- */

#define NEXT                                                                         \
    "{\"model_type\":\"qwen3_next\",\"num_hidden_layers\":48,\"hidden_size\":2048,"  \
    "\"num_attention_heads\":16,\"num_key_value_heads\":2,\"head_dim\":256,"         \
    "\"intermediate_size\":5120,\"vocab_size\":151936,\"torch_dtype\":\"bfloat16\"," \
    "\"linear_num_key_heads\":16,\"linear_num_value_heads\":32,"                     \
    "\"linear_key_head_dim\":128,\"linear_value_head_dim\":128,"                     \
    "\"linear_conv_kernel_dim\":4,\"full_attention_interval\":4}"
#define MAMBA2                                                         \
    ",\"mamba_n_heads\":32,\"mamba_d_head\":64,\"mamba_d_state\":128," \
    "\"mamba_n_groups\":1,\"mamba_d_conv\":4,\"mamba_expand\":2"

static struct state_row {
    const char *name, *config, *groups;
    uint64_t state_bytes;
    uint32_t vllm, tp;
    enum vt_mamba_wish mode;
    bool caching;
} states[] = {
    /* The block sizes are vLLM's: a state must fit into a page of attention. */
    {"Qwen3-Next", NEXT, "3 mamba of 12 @544, 1 full_attention of 12 @544", 1097728, 32,
     1, VT_MAMBA_AUTO, true},
    {"Qwen3-Next without prefix caching", NEXT,
     "3 mamba of 12 @32768, 1 full_attention of 12 @544", 1097728, 32, 1, VT_MAMBA_AUTO,
     false},
    {"Qwen3-Next on two GPUs", NEXT, "3 mamba of 12 @544, 1 full_attention of 12 @544",
     548864, 32, 2, VT_MAMBA_AUTO, true},
    {"Granite's Mamba 2",
     OF("granitemoehybrid", MAMBA2
        ",\"layer_types\":" THRICE(FOUR("mamba", "mamba", "mamba", "attention"))),
     "3 mamba of 3 @528, 1 full_attention of 3 @528",
     (3 * (2048 + 256) + 32 * 64 * 128) * 2, 32, 1, VT_MAMBA_AUTO, true},
    {"its groups of heads on two GPUs",
     OF("granitemoehybrid", MAMBA2
        ",\"layer_types\":" THRICE(FOUR("mamba", "mamba", "mamba", "attention"))),
     "3 mamba of 3 @528, 1 full_attention of 3 @528",
     (3 * (2048 + 2 * 256) / 2 + 16 * 64 * 128) * 2, 32, 2, VT_MAMBA_AUTO, true},
    {"Nemotron-H: letters, and states in 32 bits",
     OF("nemotron_h", ",\"hybrid_override_pattern\":\"M-M*-M-M*-M-\","
                      "\"mamba_num_heads\":32,\"mamba_head_dim\":64,"
                      "\"ssm_state_size\":128,\"n_groups\":1,\"conv_kernel\":4"),
     "2 mamba of 2 @1040, 1 mamba of 1 @1040, 1 full_attention of 2 @1040",
     3 * (2048 + 256) * 2 + 32 * 64 * 128 * 4, 32, 1, VT_MAMBA_AUTO, true},
    {"Jamba's Mamba 1",
     OF("jamba", ",\"attn_layer_period\":4,\"attn_layer_offset\":1,"
                 "\"mamba_d_state\":16,\"mamba_d_conv\":4"),
     "3 mamba of 3 @80, 1 full_attention of 3 @80", (3 * 2048 + 2048 * 16) * 2, 32, 1,
     VT_MAMBA_AUTO, true},
    {"Falcon-H1: every layer has both", OF("falcon_h1", MAMBA2),
     "1 mamba of 12 @528, 1 full_attention of 12 @528",
     (3 * (2048 + 256) + 32 * 64 * 128) * 2, 32, 1, VT_MAMBA_AUTO, true},
    {"LFM2's convolutions",
     OF("lfm2", ",\"conv_L_cache\":3,\"full_attn_idxs\":[2,5,8]"),
     "3 mamba of 3 @16, 1 full_attention of 3 @16", 2 * 1024 * 2, 32, 1, VT_MAMBA_AUTO,
     true},
    {"Kimi's, beside latent attention: whole 128 tokens",
     OF("kimi_linear", ",\"kv_lora_rank\":512,\"qk_rope_head_dim\":64,"
                       "\"linear_attn_config\":{\"kda_layers\":[1,2,3,5,6,7,9,10,11],"
                       "\"full_attn_layers\":[4,8,12],\"num_heads\":8,\"head_dim\":64,"
                       "\"short_conv_kernel_size\":4}"),
     "3 mamba of 3 @128, 1 mla_attention of 3 @128", 3 * 3 * 512 * 2 + 8 * 64 * 64 * 4,
     32, 1, VT_MAMBA_AUTO, true},
    {"align where 0.26 would keep all", OF("falcon_h1", MAMBA2),
     "1 mamba of 12 @528, 1 full_attention of 12 @528",
     (3 * (2048 + 256) + 32 * 64 * 128) * 2, 26, 1, VT_MAMBA_ASK_ALIGN, true},
};

static void states_share_pages(void **state)
{
    const struct state_row *r = *state;
    struct vt_kv_wish w = {.tp = r->tp, .mamba = r->mode, .caching_stated = true};
    struct vt_kv_layer layer[VT_ARCH_SORTS];
    struct vt_engine_config c;
    struct vt_arch a;
    struct vt_err err = {0};
    uint64_t bytes;
    uint32_t n = 0;
    char got[512];

    load(r->config, &a);
    w.arch = &a;
    vt_engine_config_init(&c);
    c.vllm = r->vllm;
    c.enable_prefix_caching = r->caching;
    if (vt_kv_groups(&c, &w, &bytes, &err) != VT_OK ||
        vt_arch_kv_layers(&a, r->tp, 2, c.vllm, layer, &n, &err) != VT_OK)
        fail_msg("%s", err.msg);
    for (uint32_t i = 0; i < n; i++)
        if (layer[i].type == VT_ATTENTION_MAMBA)
            assert_int_equal(layer[i].bytes, r->state_bytes);
    describe(&c, got, sizeof(got));
    assert_string_equal(got, r->groups);
    assert_int_equal(c.mamba_cache_mode, r->caching ? VT_MAMBA_ALIGN : VT_MAMBA_NONE);
    assert_int_equal(vt_engine_config_check(&c, &err), VT_OK);
}

static void releases_differ_in_what_they_cache_of_states(void **state)
{
    struct vt_kv_wish w = {0};
    struct vt_engine_config c;
    struct vt_arch a;
    struct vt_err err = {0};
    uint64_t bytes;

    (void)state;
    load(NEXT, &a);
    w.arch = &a;
    for (uint32_t vllm = VT_VLLM_OLDEST; vllm <= VT_VLLM_NEWEST; vllm++) {
        vt_engine_config_init(&c);
        c.vllm = vllm;
        assert_int_equal(vt_kv_groups(&c, &w, &bytes, &err), VT_OK);
        assert_int_equal(c.enable_prefix_caching, vllm >= 28);
    }
}

/* ---- what vLLM would not start with, or nobody knows ---------------------- */

static struct refused_row {
    const char *name, *config, *why;
    uint32_t vllm, retention;
    bool drafts, caching;
    enum vt_hybrid hybrid;
    enum vt_mamba_wish mode;
} refused[] = {
    {"an unknown kind of layer",
     OF("llama",
        ",\"layer_types\":" THRICE(FOUR("full_attention", "dilated", "conv", "conv"))),
     "'dilated' is not known"},
    {"too few kinds of layers", OF("llama", ",\"layer_types\":[\"full_attention\"]"),
     "no entry for each of 12 layers"},
    {"states of an unknown size",
     OF("llama", ",\"layer_types\":" THRICE(FOUR("mamba", "mamba", "mamba", FULL))),
     "the size of a layer's state is not known"},
    {"states of an unknown family", OF("zamba2", ",\"mamba_d_state\":64"),
     "model_type 'zamba2' with field 'mamba_d_state'"},
    {"sparse attention",
     OF("deepseek_v32", ",\"kv_lora_rank\":512,"
                        "\"qk_rope_head_dim\":64,"
                        "\"index_topk\":2048"),
     "field 'index_topk' is not known"},
    {"an encoder", OF("t5", ",\"is_encoder_decoder\":true"), "an encoder's tokens"},
    {"a pattern in words",
     OF("exaone4", ",\"sliding_window\":4096,"
                   "\"sliding_window_pattern\":\"LLLG\""),
     "sliding_window_pattern is no number"},
    {"a window for some layers of Qwen",
     OF("qwen2", ",\"sliding_window\":4096,\"use_sliding_window\":true,"
                 "\"max_window_layers\":6"),
     "which vLLM does not support"},
    {"pages that divide no other, until 0.28",
     OF("mimo_v2_flash", ",\"sliding_window_size\":128,\"v_head_dim\":64,"
                         "\"swa_head_dim\":96,\"swa_v_head_dim\":96,"
                         "\"hybrid_layer_pattern\":[0,1,0,1,0,1,0,1,0,1,0,1]"),
     "one must be a multiple of the other", .vllm = 28},
    {"states without the hybrid manager", NEXT, "without the hybrid KV cache manager",
     .hybrid = VT_HYBRID_OFF},
    {"drafts with states", NEXT, "are not modelled", .drafts = true},
    {"chunks and a draft head with the hybrid manager", OF("llama4_text", ""),
     "can't be used for chunked local attention", .drafts = true,
     .hybrid = VT_HYBRID_ON},
    {"every state, as 0.26 does", OF("falcon_h1", MAMBA2), "mamba-cache-mode all",
     .vllm = 26, .caching = true},
    {"every state, asked for", OF("falcon_h1", MAMBA2), "mamba-cache-mode all",
     .vllm = 31, .caching = true, .mode = VT_MAMBA_ASK_ALL},
    {"retention off the blocks' ends", OF("gemma2", ""), "must be a multiple of 16",
     .retention = 24},
    {"retention without windows", OF("llama", ""), "no layer of the model",
     .retention = 32},
    {"the variable without windows", OF("llama", ""), "no layer of the model",
     .vllm = 26, .retention = UINT32_MAX - 2 /* 0 */},
};

static void refused_with_a_reason(void **state)
{
    const struct refused_row *r = *state;
    struct vt_kv_wish w = {
        .hybrid = r->hybrid, .mamba = r->mode, .caching_stated = r->caching};
    struct vt_engine_config c;
    struct vt_arch a;
    struct vt_err err = {0};
    uint64_t bytes;

    load(r->config, &a); /* its other sizes can be read all the same */
    w.arch = &a;
    vt_engine_config_init(&c);
    if (r->vllm > 0)
        c.vllm = r->vllm;
    if (r->retention > 0)
        c.prefix_cache_retention_interval =
            r->retention == UINT32_MAX - 2 ? 0 : r->retention;
    if (r->drafts) {
        c.num_spec_tokens = 3;
        c.use_eagle = true;
    }
    assert_int_equal(vt_kv_groups(&c, &w, &bytes, &err), VT_EINPUT);
    if (!strstr(err.msg, r->why))
        fail_msg("'%s' lacks '%s'", err.msg, r->why);
}

/* ---- other users of the same layers --------------------------------------- */

static void a_draft_head_brings_its_layers(void **state)
{
    struct vt_kv_wish w = {0};
    struct vt_engine_config c;
    struct vt_arch a, same, wide;
    struct vt_err err = {0};
    uint64_t bytes;

    (void)state;
    load(OF("llama", ""), &a);
    same = wide = a;
    same.sort[0].n = wide.sort[0].n = 1;
    wide.sort[0].kv_heads = 8;
    w.arch = &a;
    w.draft = &same;
    vt_engine_config_init(&c);
    assert_int_equal(vt_kv_groups(&c, &w, &bytes, &err), VT_OK);
    assert_int_equal(c.n_kv_groups, 0);
    assert_int_equal(bytes, 13 * 16384);
    w.draft = &wide; /* other heads, the same tokens: still one group */
    assert_int_equal(vt_kv_groups(&c, &w, &bytes, &err), VT_OK);
    assert_int_equal(c.n_kv_groups, 0);
    assert_int_equal(bytes, 14 * 16384);
}

static void a_pool_limits_the_longest_request(void **state)
{
    struct vt_kv_wish w = {0};
    struct vt_engine_config c, short_one;
    struct vt_arch a;
    struct vt_err err = {0};
    uint64_t bytes;

    (void)state;
    vt_engine_config_init(&c);
    c.num_gpu_blocks = 101;
    assert_int_equal(vt_longest_request(&c), 1600);
    load(VT_TEST_DIR "/cases/models/gemma-3-12b.json", &a);
    w.arch = &a;
    c.num_gpu_blocks = 7493; /* what one of 32,768 takes, without the null block */
    assert_int_equal(vt_kv_groups(&c, &w, &bytes, &err), VT_OK);
    assert_int_equal(vt_blocks_of_request(&c, 32768), 7493);
    assert_int_equal(vt_longest_request(&c), 32752);
    c.num_gpu_blocks = 7494;
    assert_true(vt_longest_request(&c) >= 32768);
    load(NEXT, &a);
    c.block_size = 16;
    c.enable_prefix_caching = false;
    assert_int_equal(vt_kv_groups(&c, &w, &bytes, &err), VT_OK);
    short_one = c;
    vt_set_max_model_len(&short_one, 5440);
    assert_int_equal(short_one.kv_group[0].block_size, 5440);
    assert_int_equal(vt_blocks_of_request(&short_one, 5440), 3 + 10);
}

int main(void)
{
    enum {
        G = VT_COUNT(groups),
        S = VT_COUNT(states),
        R = VT_COUNT(refused),
        REST = 3
    };
    struct CMUnitTest tests[G + S + R + REST] = {
        cmocka_unit_test(releases_differ_in_what_they_cache_of_states),
        cmocka_unit_test(a_draft_head_brings_its_layers),
        cmocka_unit_test(a_pool_limits_the_longest_request),
    };
    struct CMUnitTest *t = tests + REST;

    for (size_t i = 0; i < G; i++)
        *t++ = (struct CMUnitTest){groups[i].name, layers_form_groups, NULL, NULL,
                                   &groups[i]};
    for (size_t i = 0; i < S; i++)
        *t++ = (struct CMUnitTest){states[i].name, states_share_pages, NULL, NULL,
                                   &states[i]};
    for (size_t i = 0; i < R; i++)
        *t++ = (struct CMUnitTest){refused[i].name, refused_with_a_reason, NULL, NULL,
                                   &refused[i]};
    return cmocka_run_group_tests_name("layers", tests, NULL, NULL);
}
