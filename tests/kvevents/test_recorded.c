/* Whole runs of the real scheduler with KV events, several groups among them: what a
 * subscriber is sent is what vLLM told, field by field. */
#include "../wire/codec_testing.h"

#include "base/json/json.h"
#include "kvevents/kvevents.h"

#define CASES VT_TEST_DIR "/cases/scheduler/"

enum { MOST_REQUESTS = 16, MOST_TOKENS = 512 };

struct asked { /* one request of a recording */
    const struct vt_node *node;
    uint32_t number;
    uint32_t prompt[MOST_TOKENS];
    struct vt_blocks blocks;
};

struct run {
    struct vt_arena arena;
    const struct vt_node *root;
    struct vt_engine_config config;
    uint8_t none_hash[VT_HASH_BYTES];
    struct asked asked[MOST_REQUESTS];
    uint32_t n;
    struct vt_sched *sched;
    struct vt_kv_batch batch;
    uint32_t next_event; /* of the recording */
};

static uint32_t number_in(const struct vt_node *map, const char *key)
{
    const struct vt_node *n = vt_get(map, key);

    assert_non_null(n);
    assert_int_equal(n->kind, VT_INT);
    return (uint32_t)n->u.integer;
}

/* ---- the recording ---------------------------------------------------- */

static void read_groups(struct vt_engine_config *c, const struct vt_node *groups)
{
    for (uint32_t i = 0; groups && i < groups->n; i++) {
        const struct vt_node *g = &groups->u.item[i];
        bool slides = strcmp(vt_get(g, "type")->u.str, "sliding") == 0;

        c->kv_group[c->n_kv_groups++] = (struct vt_kv_group){
            .type = slides ? VT_ATTENTION_SLIDING : VT_ATTENTION_FULL,
            .block_size = number_in(g, "block_size"),
            .window = slides ? number_in(g, "sliding_window") : 0,
            .layers = vt_get(g, "layers")->n,
            .page_bytes = number_in(g, "page_size_bytes"),
        };
    }
}

static void read_config(struct run *r)
{
    const struct vt_node *c = vt_get(r->root, "config");

    vt_engine_config_init(&r->config);
    assert_int_equal(
        vt_vllm_release(vt_get(r->root, "vllm_version")->u.str, &r->config.vllm, NULL),
        VT_OK);
    r->config.max_num_seqs = number_in(c, "max_num_seqs");
    r->config.max_num_batched_tokens = number_in(c, "max_num_batched_tokens");
    r->config.max_model_len = number_in(c, "max_model_len");
    r->config.block_size = number_in(c, "block_size");
    r->config.num_gpu_blocks = number_in(c, "num_blocks");
    r->config.async_scheduling = false;
    r->config.kv_events = true;
    read_groups(&r->config, vt_get(c, "kv_groups"));
    vt_none_hash(r->config.vllm, vt_get(r->root, "PYTHONHASHSEED")->u.str,
                 r->none_hash);
}

static uint32_t output_token(const void *request, uint32_t index)
{
    const struct asked *a = request;

    return 40000 + (a->number * 131 + index * 17) % 20000;
}

static void read_request(struct run *r, uint32_t i, const struct vt_node *node)
{
    const struct vt_node *parts = vt_get(node, "prompt");
    const struct vt_node *salt = vt_get(node, "cache_salt");
    struct asked *a = &r->asked[i];
    uint32_t n = 0;

    for (uint32_t k = 0; k < parts->n; k++)
        for (uint64_t j = 0; j < number_in(&parts->u.item[k], "n"); j++) {
            uint64_t s = number_in(&parts->u.item[k], "s");

            assert_true(n < MOST_TOKENS);
            a->prompt[n++] = (uint32_t)((s * 7919 + j * 31 + j * j % 97) % 32000);
        }
    a->node = node;
    a->number = i;
    a->blocks = (struct vt_blocks){
        .size = vt_hash_block_size(&r->config),
        .prompt = a->prompt,
        .n_prompt = n,
        .output = output_token,
        .request = a,
        .chain = {.none_hash = r->none_hash,
                  .vllm = r->config.vllm,
                  .salt = salt ? salt->u.str : NULL},
    };
}

static void load(struct run *r, const char *name)
{
    struct vt_err err = {0};
    const struct vt_node *requests;
    char path[256];

    snprintf(path, sizeof(path), CASES "%s.json.gz", name);
    if (vt_tree_load(&r->arena, path, &r->root, &err) != VT_OK)
        fail_msg("%s", err.msg);
    read_config(r);
    requests = vt_get(r->root, "requests");
    r->n = requests->n;
    assert_true(r->n <= MOST_REQUESTS);
    for (uint32_t i = 0; i < r->n; i++)
        read_request(r, i, &requests->u.item[i]);
    if (vt_sched_new(&r->sched, &r->config, &err) != VT_OK)
        fail_msg("%s", err.msg);
    r->batch.vllm = r->config.vllm;
}

static void unload(struct run *r)
{
    vt_sched_free(r->sched);
    for (uint32_t i = 0; i < r->n; i++)
        vt_chain_free(&r->asked[i].blocks.chain);
    vt_buf_free(&r->batch.events);
    vt_arena_free(&r->arena);
}

/* ---- comparing -------------------------------------------------------- */

static bool equal(const struct vt_node *a, const struct vt_node *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == VT_INT)
        return a->u.integer == b->u.integer && a->is_u64 == b->is_u64;
    if (a->kind == VT_STR)
        return strcmp(a->u.str, b->u.str) == 0;
    for (uint32_t i = 0; a->kind == VT_LIST && i < a->n; i++)
        if (a->n != b->n || !equal(&a->u.item[i], &b->u.item[i]))
            return false;
    return a->kind != VT_LIST || a->n == b->n;
}

/* Fields that are left out where they have their default. */
static bool may_miss(const char *key)
{
    static const char *const optional[] = {
        "extra_keys", "group_idx", "kv_cache_spec_kind", "kv_cache_spec_sliding_window",
        "locality",   "ownership", "session_id"};

    for (size_t i = 0; i < VT_COUNT(optional); i++)
        if (strcmp(key, optional[i]) == 0)
            return true;
    return false;
}

static void assert_told(const struct vt_node *sent, const struct vt_node *recorded,
                        uint32_t nth)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < recorded->n; i++) {
        const struct vt_node *want = &recorded->u.item[i];
        const struct vt_node *got = vt_get(sent, want->key);

        if (!got && want->kind == VT_NULL && may_miss(want->key))
            continue;
        if (!got || !equal(got, want))
            fail_msg("event %u: field '%s' %s", nth, want->key,
                     got ? "differs" : "is missing");
        if (want->kind == VT_NULL && may_miss(want->key))
            fail_msg("event %u: field '%s' is told, which vLLM leaves out", nth,
                     want->key);
        found++;
    }
    assert_int_equal(sent->n, found); /* and nothing else */
}

/* All events of a batch are recorded for that step, and all that are recorded came. */
static void assert_step(struct run *r, uint32_t step)
{
    const struct vt_node *all = vt_get(r->root, "kv_events"), *sent;
    struct mp_in in;

    mp_in_init(&in, r->batch.events.data, r->batch.events.len);
    for (uint32_t i = 0; i < r->batch.n_events; i++) {
        const struct vt_node *pair = &all->u.item[r->next_event];
        struct vt_buf json = {0};

        assert_true(r->next_event < all->n);
        assert_int_equal(pair->u.item[0].u.integer, step);
        assert_true(mp_json(&json, mp_raw(&in)));
        assert_int_equal(vt_json_parse(&r->arena, json.data, json.len, 1, &sent, NULL),
                         VT_OK);
        assert_told(sent, &pair->u.item[1], r->next_event++);
        vt_buf_free(&json);
    }
    if (r->next_event < all->n)
        assert_true(all->u.item[r->next_event].u.item[0].u.integer > step);
    vt_buf_clear(&r->batch.events);
    r->batch.n_events = 0;
}

/* ---- running ---------------------------------------------------------- */

static const struct vt_blocks *blocks_of(void *run, uint64_t tag)
{
    return &((struct run *)run)->asked[tag].blocks;
}

static void add_arrivals(struct run *r, uint32_t step)
{
    for (uint32_t i = 0; i < r->n; i++) {
        struct asked *a = &r->asked[i];
        struct vt_request q = {
            .tag = i,
            .prompt_tokens = a->blocks.n_prompt,
            .max_tokens = number_in(a->node, "max_tokens"),
            .eos_at = VT_NO_STOP,
            .stop_at = VT_NO_STOP,
            .arrival = i,
            .block_key = vt_blocks_key,
            .tokens = &a->blocks,
        };
        uint32_t slot;

        if (number_in(a->node, "arrival_step") == step)
            assert_int_equal(vt_sched_add(r->sched, &q, &slot, NULL), VT_OK);
    }
}

static void a_subscriber_is_sent_what_vllm_told(void **state)
{
    struct run *r = calloc(1, sizeof(*r));
    const struct vt_node *all;
    uint32_t n_steps;

    assert_non_null(r);
    load(r, *state);
    all = vt_get(r->root, "kv_events");
    n_steps = vt_get(r->root, "steps")->n;
    for (uint32_t step = 0; step < n_steps; step++) {
        const struct vt_step_plan *p;

        add_arrivals(r, step);
        p = vt_sched_schedule(r->sched, false);
        assert_non_null(p);
        vt_kv_batch_collect(&r->batch, &r->config, r->sched, blocks_of, r);
        assert_step(r, step);
        (void)vt_sched_update(r->sched, p, NULL);
    }
    assert_true(all->n > 20);
    assert_int_equal(r->next_event, all->n);
    unload(r);
    free(r);
}

#define ROW(name) \
    {name, a_subscriber_is_sent_what_vllm_told, NULL, NULL, (void *)(uintptr_t)name}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW("0.26/c25_kv_events"),        ROW("0.32/c25_kv_events"),
        ROW("0.26/c59_alt64_kv_events"),  ROW("0.32/c59_alt64_kv_events"),
        ROW("0.26/d11_events_two_sizes"), ROW("0.32/d11_events_two_sizes"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
