/* What each release of vLLM changed: small cases that show a decision before and after
 * it, and settings under which nothing but one change can show, in any release. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/core.h"

/* ---- names ------------------------------------------------------------ */

static void releases_are_named_by_their_second_number(void **state)
{
    static const struct {
        const char *text;
        uint32_t exact, nearest; /* 0: none */
    } row[] = {
        {"0.26", 26, 26},
        {"v0.32.0", 32, 32},
        {"0.31.1+cu129", 31, 31},
        {"0.32.0.dev7", 32, 32},
        {"0.25.1", 0, 26},
        {"0.6.3", 0, 26},
        {"0.33", 0, 32},
        {"1.0.0", 0, 32},
        {"12.26", 0, 32},
        {"", 0, 0},
        {"0.", 0, 0},
        {"0.26x", 0, 0},
        {"nightly", 0, 0},
        {"vv0.26", 0, 0},
        {"0.99999999999", 0, 32},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        uint32_t release = 0;
        int rc = vt_vllm_release(row[i].text, &release, NULL);

        if (release != row[i].exact || (rc == VT_OK) != (row[i].exact > 0) ||
            vt_vllm_nearest(row[i].text) != row[i].nearest)
            fail_msg("'%s': %u, nearest %u", row[i].text, release,
                     vt_vllm_nearest(row[i].text));
    }
    assert_int_equal(vt_vllm_nearest(NULL), 0);
}

/* ---- a scheduler and what it decides ---------------------------------- */

static struct vt_engine_config small(uint32_t vllm)
{
    struct vt_engine_config c;

    vt_engine_config_init(&c);
    c.vllm = vllm;
    c.max_num_seqs = 8;
    c.max_num_batched_tokens = 64;
    c.max_model_len = 256;
    c.num_gpu_blocks = 24;
    c.async_scheduling = false;
    return c;
}

static struct vt_sched *open_sched(const struct vt_engine_config *c)
{
    struct vt_sched *s;
    struct vt_err err;

    if (vt_engine_config_check(c, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(vt_sched_new(&s, c, NULL), VT_OK);
    return s;
}

static uint32_t add(struct vt_sched *s, uint64_t tag, uint32_t tokens, uint32_t output,
                    uint32_t lora)
{
    struct vt_segment seg = {.content = tag, .tokens = tokens};
    struct vt_request r = {.tag = tag,
                           .prompt_tokens = tokens,
                           .max_tokens = output,
                           .eos_at = VT_NO_STOP,
                           .stop_at = VT_NO_STOP,
                           .segment = &seg,
                           .n_segments = 1,
                           .output_content = 1000 + tag,
                           .lora = lora};
    uint32_t slot;

    assert_int_equal(vt_sched_add(s, &r, &slot, NULL), VT_OK);
    return slot;
}

static const struct vt_update *step(struct vt_sched *s, const struct vt_step_plan **p)
{
    *p = vt_sched_schedule(s, false);
    assert_non_null(*p);
    return vt_sched_update(s, *p, NULL);
}

/* ---- before and after -------------------------------------------------- */

/* Without a prefix cache: the block that a request gets after one that has gone. */
static uint32_t reused_block(uint32_t vllm)
{
    struct vt_engine_config c = small(vllm);
    const struct vt_step_plan *p;
    struct vt_sched *s;
    uint32_t n, slot, block;

    c.enable_prefix_caching = false;
    s = open_sched(&c);
    slot = add(s, 1, 10, 5, 0);
    (void)step(s, &p);
    vt_sched_abort(s, slot);
    slot = add(s, 2, 10, 5, 0);
    (void)step(s, &p);
    block = vt_sched_blocks(s, slot, 0, &n)[0];
    vt_sched_abort(s, slot);
    vt_sched_free(s);
    return block;
}

/* Looks into the cache that are counted while one waits for room. */
static uint32_t counted_looks(uint32_t vllm)
{
    struct vt_engine_config c = small(vllm);
    const struct vt_step_plan *p;
    struct vt_sched *s;
    uint32_t looks = 0;

    c.num_gpu_blocks = 5;
    s = open_sched(&c);
    (void)add(s, 1, 40, 8, 0);
    (void)add(s, 2, 40, 8, 0);
    for (int i = 0; i < 3; i++)
        looks += (uint32_t)step(s, &p)->cache.requests;
    vt_sched_abort(s, 0);
    vt_sched_abort(s, 1);
    vt_sched_free(s);
    return looks;
}

/* Tokens of a request whose second one is EOS and which asks for four. */
static uint32_t tokens_until_eos(uint32_t vllm)
{
    struct vt_engine_config c = small(vllm);
    struct vt_segment seg = {.content = 1, .tokens = 10};
    struct vt_request r = {.tag = 1,
                           .prompt_tokens = 10,
                           .max_tokens = 6,
                           .min_tokens = 4,
                           .eos_at = 1,
                           .stop_at = VT_NO_STOP,
                           .segment = &seg,
                           .n_segments = 1};
    struct vt_sched *s = open_sched(&c);
    const struct vt_step_plan *p;
    uint32_t slot, tokens = 0;
    uint8_t finish = 0;

    assert_int_equal(vt_sched_add(s, &r, &slot, NULL), VT_OK);
    while (finish == VT_RUNNING_ON) {
        const struct vt_update *u = step(s, &p);

        assert_int_equal(u->n_rows, 1);
        tokens += u->row[0].new_tokens;
        finish = u->row[0].finish;
    }
    vt_sched_free(s);
    return tokens;
}

/* The first piece of a prompt that nobody else is with. */
static uint32_t lone_piece(uint32_t vllm)
{
    struct vt_engine_config c = small(vllm);
    const struct vt_step_plan *p;
    struct vt_sched *s;
    uint32_t tokens, slot;

    c.long_prefill_token_threshold = 20;
    s = open_sched(&c);
    slot = add(s, 1, 50, 2, 0);
    (void)step(s, &p);
    tokens = p->item[0].tokens;
    vt_sched_abort(s, slot);
    vt_sched_free(s);
    return tokens;
}

static struct shown {
    const char *name;
    uint32_t (*decide)(uint32_t vllm);
    uint32_t since, until; /* the first release of the change, and after it */
    uint32_t before, after;
} shown[] = {
    {"blocks without a cache are taken in turn", reused_block, 27, 28, 1, 2},
    {"one who waits is not counted at every look", counted_looks, 27, 33, 4, 1},
    {"min_tokens does not hide EOS", tokens_until_eos, 29, 33, 6, 2},
    {"a lone prompt is not cut", lone_piece, 31, 33, 20, 50},
};

static void decision_changes(void **state)
{
    const struct shown *r = *state;

    for (uint32_t v = VT_VLLM_OLDEST; v <= VT_VLLM_NEWEST; v++) {
        uint32_t want = v >= r->since && v < r->until ? r->after : r->before;
        uint32_t got = r->decide(v);

        if (got != want)
            fail_msg("0.%u: %u, not %u", v, got, want);
    }
}

/* ---- each at its release and at no other ------------------------------- */

enum { RUNS = 40, STEPS = 60, REQUESTS = 24 };

struct course { /* of random requests, the same for every release */
    struct vt_engine_config c;
    bool statistics; /* look at those alone */
    bool ends;       /* requests that end by themselves before they may */
    bool adapters, priorities;
    bool blocks;      /* look at which ones, too */
    uint32_t longest; /* prompt that may be shared */
};

static uint64_t mix(uint64_t h, uint64_t v)
{
    return vt_hash2(h, v + 1);
}

static void ask(const struct course *x, struct vt_sched *s, struct vt_rng *g,
                uint64_t tag)
{
    struct vt_segment seg[2] = {
        {.content = 1 + vt_rng_below(g, 3),
         .tokens = 1 + (uint32_t)vt_rng_below(g, x->longest)},
        {.content = 100 + tag, .tokens = 1 + (uint32_t)vt_rng_below(g, 30)}};
    struct vt_request r = {.tag = tag,
                           .max_tokens = 1 + (uint32_t)vt_rng_below(g, 24),
                           .eos_at = VT_NO_STOP,
                           .stop_at = VT_NO_STOP,
                           .segment = seg,
                           .n_segments = 1 + (vt_rng_below(g, 2) > 0),
                           .output_content = 1000 + tag};
    uint32_t slot;

    for (uint32_t i = 0; i < r.n_segments; i++)
        r.prompt_tokens += seg[i].tokens;
    r.min_tokens = (uint32_t)vt_rng_below(g, r.max_tokens + 1);
    if (x->ends)
        r.eos_at = (uint32_t)vt_rng_below(g, 12);
    if (x->adapters)
        r.lora = (uint32_t)vt_rng_below(g, 4);
    if (x->priorities)
        r.priority = (int32_t)vt_rng_below(g, 3);
    assert_int_equal(vt_sched_add(s, &r, &slot, NULL), VT_OK);
}

static uint64_t planned(const struct course *x, const struct vt_sched *s,
                        const struct vt_step_plan *p, uint64_t h)
{
    uint32_t n, groups = vt_sched_groups(s);

    for (uint32_t i = 0; i < p->n; i++) {
        h = mix(mix(mix(h, p->item[i].tag), p->item[i].tokens), p->item[i].computed);
        h = mix(h, p->item[i].spec);
    }
    for (uint32_t i = 0; i < p->n_preempted; i++)
        h = mix(h, p->preempted[i]);
    for (uint32_t i = 0; x->blocks && i < p->n * groups; i++) {
        const uint32_t *block =
            vt_sched_blocks(s, p->item[i / groups].slot, i % groups, &n);

        for (uint32_t k = 0; k < n; k++)
            h = mix(h, block[k]);
    }
    return h;
}

static void abort_all(struct vt_sched *s)
{
    uint32_t n, waiting[REQUESTS];
    const uint32_t *running;

    while ((running = vt_sched_running(s, &n)), n > 0)
        vt_sched_abort(s, running[0]);
    while (vt_sched_waiting(s, waiting, REQUESTS) > 0)
        vt_sched_abort(s, waiting[0]);
}

static uint64_t run_course(const struct course *x, uint64_t seed)
{
    struct vt_sched *s = open_sched(&x->c);
    uint32_t sampled[64], n_asked = 0;
    uint64_t h = 0, tag = 1;
    const struct vt_step_plan *before = NULL; /* one step is ahead of its result */
    struct vt_rng g;

    vt_rng_init(&g, seed, "release");
    for (int k = 0; k < STEPS; k++) {
        const struct vt_step_plan *p, *done;
        const struct vt_update *u;

        for (uint64_t n = vt_rng_below(&g, 3); n > 1 && n_asked < REQUESTS; n--) {
            ask(x, s, &g, tag++);
            n_asked++;
        }
        p = vt_sched_schedule(s, false);
        assert_non_null(p);
        if (!x->statistics)
            h = planned(x, s, p, h);
        done = x->c.async_scheduling ? before : p;
        before = p;
        if (!done)
            continue;
        for (uint32_t i = 0; i < done->n; i++) {
            const struct vt_item *it = &done->item[i];
            uint64_t luck = vt_hash2(it->tag, it->computed) % ((uint64_t)it->spec + 1);

            sampled[i] = it->samples ? 1 + (uint32_t)luck : 0;
        }
        u = vt_sched_update(s, done, sampled);
        if (x->statistics)
            h = mix(mix(h, u->cache.requests), u->cache.queries);
    }
    abort_all(s);
    vt_sched_free(s);
    return h;
}

static void plainly(struct course *x)
{
    x->c.num_gpu_blocks = 20;
}

static void without_cache(struct course *x)
{
    x->c.enable_prefix_caching = false;
    x->c.num_gpu_blocks = 20;
    x->blocks = true;
}

static void statistics(struct course *x)
{
    x->c.num_gpu_blocks = 20;
    x->statistics = true;
}

static void by_priority(struct course *x)
{
    x->c.policy = VT_PRIORITY;
    x->c.num_gpu_blocks = 16;
    x->c.async_scheduling = true;
    x->priorities = true;
}

static void ends_early(struct course *x)
{
    x->ends = true;
}

static void with_threshold(struct course *x)
{
    x->c.long_prefill_token_threshold = 20;
}

static void with_adapters(struct course *x)
{
    x->c.max_loras = 1;
    x->c.num_gpu_blocks = 16;
    x->adapters = true;
}

static void drafts_at_the_end(struct course *x)
{
    x->c.enable_prefix_caching = false;
    x->c.num_spec_tokens = 3;
    x->c.max_model_len = 122;
}

static void drafts_after_hits(struct course *x)
{
    x->c.num_spec_tokens = 3;
}

static void group(struct course *x, enum vt_attention type, uint32_t window)
{
    x->c.kv_group[x->c.n_kv_groups++] = (struct vt_kv_group){
        .type = (uint8_t)type, .block_size = 16, .window = window, .layers = 1};
    x->c.num_gpu_blocks = 48;
}

static void with_window(struct course *x)
{
    group(x, VT_ATTENTION_FULL, 0);
    group(x, VT_ATTENTION_SLIDING, 24);
}

static void two_whole(struct course *x)
{
    group(x, VT_ATTENTION_FULL, 0);
    group(x, VT_ATTENTION_FULL, 0);
    x->c.kv_group[1].block_size = 32;
    group(x, VT_ATTENTION_SLIDING, 24);
    x->c.prefix_cache_retention_interval = VT_RETENTION_DENSE;
    x->blocks = true;
}

static void with_states(struct course *x)
{
    group(x, VT_ATTENTION_FULL, 0);
    group(x, VT_ATTENTION_MAMBA, 0);
    x->c.mamba_cache_mode = VT_MAMBA_ALIGN;
    x->c.max_num_batched_tokens = 40;
    x->longest = 160;
    x->c.prefix_cache_retention_interval = VT_RETENTION_DENSE;
    x->blocks = true;
}

static void with_eagle(struct course *x)
{
    with_window(x);
    x->c.num_spec_tokens = 2;
    x->c.use_eagle = true;
    x->c.prefix_cache_retention_interval = 0;
}

static struct change {
    const char *name;
    void (*set)(struct course *x);
    uint32_t at[4]; /* releases that decide otherwise than the one before */
} change[] = {
    {"nothing, with one group and enough of everything", plainly, {0}},
    {"frees_to_back", without_cache, {27, 28}},
    {"counts_admissions", statistics, {27}},
    {"scan_follows", by_priority, {28}},
    {"stops_early", ends_early, {29}},
    {"pads_if_room", drafts_at_the_end, {29}},
    {"sparse_retention", with_window, {29}},
    {"pads_after_hits", drafts_after_hits, {30}},
    {"lone_prompt_uncut", with_threshold, {31}},
    {"aside_is_waiting", with_adapters, {31}},
    {"cuts_all_whole", two_whole, {29}},
    {"mamba_whole_blocks, leaves_last_token", with_states, {27, 32}},
    {"eagle_resends, eagle_sees_whole", with_eagle, {30, 32}},
};

static bool is_at(const struct change *r, uint32_t vllm)
{
    for (size_t i = 0; i < VT_COUNT(r->at); i++)
        if (r->at[i] == vllm)
            return true;
    return false;
}

static void change_shows_at_its_release(void **state)
{
    const struct change *r = *state;
    uint64_t before = 0;

    for (uint32_t v = VT_VLLM_OLDEST; v <= VT_VLLM_NEWEST; v++) {
        struct course x = {.c = small(v), .longest = 90};
        uint64_t h = 0;

        r->set(&x);
        for (uint64_t seed = 1; seed <= RUNS; seed++)
            h = mix(h, run_course(&x, seed));
        if (v > VT_VLLM_OLDEST && (h != before) != is_at(r, v))
            fail_msg("0.%u decides %s 0.%u", v, h != before ? "otherwise than" : "as",
                     v - 1);
        before = h;
    }
}

/* A scheduler that follows another release is one of that release. */
static void another_release_can_be_followed(void **state)
{
    struct vt_engine_config c = small(26);
    const struct vt_step_plan *p;
    struct vt_sched *s;
    uint32_t slot;

    (void)state;
    c.long_prefill_token_threshold = 20;
    s = open_sched(&c);
    assert_true(vt_sched_follow(s, 31));
    slot = add(s, 1, 50, 2, 0);
    assert_false(vt_sched_follow(s, 26)); /* one is there */
    (void)step(s, &p);
    assert_int_equal(p->item[0].tokens, 50);
    vt_sched_abort(s, slot);
    vt_sched_free(s);
}

int main(void)
{
    enum { OWN = 2, N = OWN + VT_COUNT(shown) + VT_COUNT(change) };
    struct CMUnitTest tests[N] = {
        cmocka_unit_test(releases_are_named_by_their_second_number),
        cmocka_unit_test(another_release_can_be_followed),
    };

    for (size_t i = 0; i < VT_COUNT(shown); i++)
        tests[OWN + i] = (struct CMUnitTest){.name = shown[i].name,
                                             .test_func = decision_changes,
                                             .initial_state = &shown[i]};
    for (size_t i = 0; i < VT_COUNT(change); i++)
        tests[OWN + VT_COUNT(shown) + i] =
            (struct CMUnitTest){.name = change[i].name,
                                .test_func = change_shows_at_its_release,
                                .initial_state = &change[i]};
    return cmocka_run_group_tests_name("release", tests, NULL, NULL);
}
