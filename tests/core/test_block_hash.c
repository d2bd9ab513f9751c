/* Hashes of blocks as each release of vLLM makes them. The values are sha256 of the
 * CBOR of (parent, tokens, extra keys), put together by a program of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/core.h"

static const struct vt_mm_item cat = {"cat", 1, 2}; /* in both blocks */

static struct row {
    const char *name;
    uint32_t vllm;
    struct vt_chain chain;
    uint64_t want[2]; /* of two blocks of two tokens */
} rows[] = {
    {"tokens alone are hashed alike by all",
     26,
     {0},
     {11765161728356953586u, 15117785158394072644u}},
    {"tokens alone are hashed alike by all: 0.32",
     32,
     {0},
     {11765161728356953586u, 15117785158394072644u}},
    {"a salt is in the first block",
     30,
     {.salt = "s"},
     {13401241100612393423u, 4955861729005145762u}},
    {"a salt has a tag since 0.31",
     31,
     {.salt = "s"},
     {8363341023066491035u, 7035088703879731020u}},
    {"an adapter is its name",
     30,
     {.lora = "ad", .lora_path = "/p"},
     {14530214824187302095u, 11996813593542451101u}},
    {"an adapter has a tag and a path since 0.31",
     31,
     {.lora = "ad", .lora_path = "/p"},
     {15670009643991804218u, 9517260293900949081u}},
    {"an image is in every block that it reaches, at its place there",
     26,
     {.mm = &cat, .n_mm = 1},
     {10116359393377428853u, 12844997306409528010u}},
    {"an image has a tag since 0.31",
     32,
     {.mm = &cat, .n_mm = 1},
     {7974768414471276039u, 13354038429617530153u}},
    {"all of them in vLLM's order",
     29,
     {.lora = "ad", .lora_path = "/p", .salt = "s", .mm = &cat, .n_mm = 1},
     {6672429414625576641u, 11431755885612465715u}},
    {"all of them in vLLM's order since 0.31",
     32,
     {.lora = "ad", .lora_path = "/p", .salt = "s", .mm = &cat, .n_mm = 1},
     {3856578352893887934u, 1943859251458500185u}},
    {"embedded prompts are told apart",
     26,
     {.embedded = "r1"},
     {14665947733496947773u, 14836131472898772270u}},
    {"embedded prompts have a tag since 0.31",
     31,
     {.embedded = "r1"},
     {2334507853082899663u, 12032171250560557453u}},
};

static void chain_is_vllms(void **state)
{
    const struct row *r = *state;
    const uint32_t token[] = {1, 200, 70000, 4};
    struct vt_chain c = r->chain;
    uint8_t none[VT_HASH_BYTES];

    vt_hash_none("0", none);
    c.none_hash = none;
    c.vllm = r->vllm;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(vt_chain_add(&c, token + 2 * i, 2, NULL), VT_OK);
        assert_true(vt_hash_short(c.hash[i]) == r->want[i]);
    }
    vt_chain_free(&c);
}

static void a_chain_begins_with_the_seeds_hash(void **state)
{
    uint8_t hash[VT_HASH_BYTES];

    (void)state;
    vt_hash_none("0", hash);
    assert_true(vt_hash_short(hash) == 17921330210090130494u);
    vt_hash_none(NULL, hash);
    assert_true(vt_hash_short(hash) == 10672167085007826672u);
}

/* ---- what is told of groups -------------------------------------------- */

static const struct vt_kv_group full16 = {VT_ATTENTION_FULL, 16, 0, 8, 1024};
static const struct vt_kv_group full32 = {VT_ATTENTION_FULL, 32, 0, 8, 1024};
static const struct vt_kv_group mla32 = {VT_ATTENTION_MLA, 32, 0, 8, 1024};
static const struct vt_kv_group slide16 = {VT_ATTENTION_SLIDING, 16, 128, 8, 1024};
static const struct vt_kv_group chunk16 = {VT_ATTENTION_CHUNKED, 16, 128, 8, 1024};
static const struct vt_kv_group state16 = {VT_ATTENTION_MAMBA, 16, 0, 8, 1024};

static void an_engine_tells_of_its_groups(void **state)
{
    static const struct {
        const struct vt_kv_group *group[3];
        struct vt_kv_facts want;
    } facts[] = {
        /* 1000 blocks, requests of 1000 tokens in steps of 256 */
        {{NULL}, {16, 16, 0, 0, 1000.0 / 63, 15873}},
        {{&full32}, {32, 32, 0, 0, 1000.0 / 32, 31250}},
        {{&full32, &slide16}, {16, 32, 0, 0, 1000.0 / 57, 17543}},
        {{&full32, &full16}, {16, 0, 0, 0, 1000.0 / 95, 10526}},
        {{&mla32, &full32}, {32, 32, 0, 0, 1000.0 / 64, 15625}},
        {{&slide16}, {16, 0, 0, 128, 1000.0 / 25, 40000}},
        {{&slide16, &chunk16}, {16, 0, 0, 0, 1000.0 / 49, 20408}},
        {{&full16, &state16}, {16, 16, 16, 0, 1000.0 / 65, 15384}},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(facts); i++) {
        const struct vt_kv_facts *want = &facts[i].want;
        struct vt_engine_config c;
        struct vt_kv_facts got;

        vt_engine_config_init(&c);
        c.block_size = 16;
        c.num_gpu_blocks = 1000;
        c.max_model_len = 1000;
        c.max_num_batched_tokens = 256;
        c.async_scheduling = false;
        c.mamba_cache_mode = VT_MAMBA_ALIGN;
        for (; c.n_kv_groups < 3 && facts[i].group[c.n_kv_groups]; c.n_kv_groups++)
            c.kv_group[c.n_kv_groups] = *facts[i].group[c.n_kv_groups];
        got = vt_kv_facts(&c);
        assert_int_equal(got.block_size, want->block_size);
        assert_int_equal(got.whole_block_size, want->whole_block_size);
        assert_int_equal(got.state_block_size, want->state_block_size);
        assert_int_equal(got.window, want->window);
        assert_true(got.max_concurrency == want->max_concurrency);
        assert_int_equal(got.tokens, want->tokens);
    }
}

int main(void)
{
    enum { N = VT_COUNT(rows) };
    struct CMUnitTest tests[N + 2] = {
        [N] = cmocka_unit_test(a_chain_begins_with_the_seeds_hash),
        [N + 1] = cmocka_unit_test(an_engine_tells_of_its_groups),
    };

    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name,
            .test_func = chain_is_vllms,
            .initial_state = &rows[i],
        };
    return cmocka_run_group_tests_name("block_hash", tests, NULL, NULL);
}
