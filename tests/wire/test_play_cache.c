/* KV blocks as a frontend sees them: prefixes that are shared or kept apart, blocks
 * that run out, and who goes first. */
#include "play_harness.h"

/* ---- prefixes --------------------------------------------------------- */

struct asked { /* one request after the other */
    const char *name;
    uint32_t prompt, n_prompt; /* seed and length */
    const char *salt, *lora;
    bool skip;
    uint32_t cached; /* of its prompt */
};

static const struct asked asked[] = {
    {"the first time nothing is cached", 1, 40, NULL, NULL, false, 0},
    {"then all full blocks are", 1, 40, NULL, NULL, false, 32},
    {"a longer prompt shares what it begins with", 1, 70, NULL, NULL, false, 32},
    {"and leaves more behind", 1, 70, NULL, NULL, false, 64},
    {"of full blocks one token at least is computed", 1, 64, NULL, NULL, false, 48},
    {"another prompt shares nothing", 2, 40, NULL, NULL, false, 0},
    {"a salt keeps apart", 1, 40, "salt", NULL, false, 0},
    {"and the same salt shares", 1, 40, "salt", NULL, false, 32},
    {"another salt keeps apart", 1, 40, "pepper", NULL, false, 0},
    {"an adapter keeps apart", 1, 40, NULL, "alpha", false, 0},
    {"and the same adapter shares", 1, 40, NULL, "alpha", false, 32},
    {"another adapter keeps apart", 1, 40, NULL, "beta", false, 0},
    {"an adapter is no salt of that name", 1, 40, "alpha", NULL, false, 0},
    {"both keep apart", 1, 40, "salt", "alpha", false, 0},
    {"the cache need not be read", 1, 40, NULL, NULL, true, 0},
    {"less than a block is never cached", 3, 15, NULL, NULL, false, 0},
    {"not even the second time", 3, 15, NULL, NULL, false, 0},
};

static void ask_as(struct stage *s, const struct asked *a)
{
    struct vt_buf sampling = {0};
    struct vt_frontend_request r = {
        .id = a->name,
        .prompt = prompt_of(a->prompt, a->n_prompt),
        .n_prompt = a->n_prompt,
        .cache_salt = a->salt,
        .lora = a->lora,
        .max_tokens = 2,
    };

    if (a->skip) {
        mp_put_map(&sampling, 2);
        put_key_u64(&sampling, "max_tokens", 2);
        mp_put_str(&sampling, "skip_reading_prefix_cache");
        mp_put_bool(&sampling, true);
        r.sampling = (struct vt_bytes){sampling.data, sampling.len};
    }
    add(s, 0, 0, &r);
    vt_buf_free(&sampling);
}

/* What the statistics count is what requests are told, in tokens. */
static void prefixes_are_shared_where_they_may_be(void **state)
{
    struct stage *s = *state;
    uint64_t queries = 0, hits = 0;

    stage_open(s);
    for (size_t i = 0; i < VT_COUNT(asked); i++) {
        const struct asked *a = &asked[i];

        ask_as(s, a);
        hear_finished(s, (uint32_t)i + 1);
        print_message("  %s\n", a->name);
        assert_int_equal(s->h.told[i].cached, a->cached);
        assert_int_equal(s->h.told[i].n_with_prefill, 1);
        if (!a->skip) {
            queries += a->n_prompt;
            hits += a->cached;
        }
        assert_int_equal(s->h.queries, queries);
        assert_int_equal(s->h.hits, hits);
    }
}

/* So many adapters in one step: the most tokens that left together. */
static void adapters_take_turns(void **state)
{
    struct stage *s = *state;

    s->model = "linear:base=1000"; /* the second one comes long before the first ends */
    s->c.engine.async_scheduling = false;
    for (uint32_t most = 1; most <= 2; most++) {
        uint32_t together = 0, finished = 0;

        s->c.engine.max_loras = most;
        stage_open(s);
        for (uint32_t i = 0; i < 2; i++)
            add(s, 0, 0,
                &(struct vt_frontend_request){.id = i ? "b" : "a",
                                              .prompt = prompt_of(1, 40),
                                              .n_prompt = 40,
                                              .lora = i ? "beta" : "alpha",
                                              .lora_id = i + 1,
                                              .max_tokens = 200});
        while (finished < 2) {
            const struct vt_frontend_message *m = next(s);

            together = m->n_outputs > together ? m->n_outputs : together;
            for (uint32_t i = 0; i < m->n_outputs; i++)
                finished += m->output[i].finish_reason != NULL;
        }
        assert_int_equal(together, most);
        stage_end(s);
        heard_free(&s->h);
    }
}

/* The second turn of a talk: prompt and answer of the first one, and a few tokens. */
static void a_second_turn_finds_prompt_and_answer(void **state)
{
    struct stage *s = *state;
    uint32_t token[100];
    struct vt_frontend_request r = {.id = "second", .prompt = token, .max_tokens = 2};
    const struct told *t;

    stage_open(s);
    ask(s, "first", 40, 24);
    hear_finished(s, 1);
    t = told_of(&s->h, "first");
    memcpy(token, prompt_of(1, 40), 40 * sizeof(*token));
    memcpy(token + 40, t->token, 24 * sizeof(*token));
    memcpy(token + 64, prompt_of(9, 8), 8 * sizeof(*token));
    r.n_prompt = 72;
    add(s, 0, 0, &r);
    hear_finished(s, 2);
    /* 64 tokens, of which the last was never computed: three full blocks. */
    assert_int_equal(told_of(&s->h, "second")->cached, 48);
    token[45]++;
    r.id = "other";
    add(s, 0, 0, &r);
    hear_finished(s, 3);
    assert_int_equal(told_of(&s->h, "other")->cached, 32);
}

/* Two prompts with the same placeholder tokens and different images. */
static void images_keep_prompts_apart(void **state)
{
    static const char *const image[] = {"cat", "dog", "cat"};
    struct stage *s = *state;

    stage_open(s);
    for (uint32_t i = 0; i < 3; i++) {
        struct vt_buf features = {0}, message = {0};
        struct vt_arena a = {0};
        char id[16];
        struct wire_request w = {
            .n_fields = WIRE_REQUEST_FIELDS,
            .n_prompt = 70,
            .arrival_time = 1,
            .data_parallel_rank = -1,
        };
        struct vt_buf sampling = {0};

        (void)snprintf(id, sizeof(id), "%u", i);
        w.id = (struct mp_span){(const uint8_t *)id, strlen(id)};
        w.prompt = vt_arena_alloc(&a, 70 * sizeof(*w.prompt));
        memcpy(w.prompt, prompt_of(1, 70), 70 * sizeof(*w.prompt));
        mp_put_array(&features, 1);
        mp_put_map(&features, 2);
        mp_put_str(&features, "identifier");
        mp_put_str(&features, image[i]);
        mp_put_str(&features, "mm_position");
        mp_put_map(&features, 2);
        put_key_u64(&features, "offset", 20);
        put_key_u64(&features, "length", 10);
        w.mm_features = (struct mp_span){(const uint8_t *)features.data, features.len};
        mp_put_map(&sampling, 1);
        put_key_u64(&sampling, "max_tokens", 1);
        w.sampling = (struct mp_span){(const uint8_t *)sampling.data, sampling.len};
        wire_request_write(&message, &w);
        send_typed(s, 0, WIRE_ADD, message.data, message.len);
        hear_finished(s, i + 1);
        vt_buf_free(&features);
        vt_buf_free(&message);
        vt_buf_free(&sampling);
        vt_arena_free(&a);
    }
    assert_int_equal(told_of(&s->h, "0")->cached, 0);
    assert_int_equal(told_of(&s->h, "1")->cached, 16); /* before the image */
    assert_int_equal(told_of(&s->h, "2")->cached, 64);
}

/* ---- preemption ------------------------------------------------------- */

/* Blocks run out while all of them grow: those that came last give theirs back and are
 * computed again, and their tokens are what they would have been. */
static void preempted_requests_come_back(void **state)
{
    struct stage *s = *state;
    uint32_t preempted = 0;
    char id[16];

    s->model = "linear:base=500";
    s->c.engine.num_gpu_blocks = 16;
    s->c.engine.enable_prefix_caching = false;
    stage_open(s);
    hold_all(s);
    for (uint32_t i = 0; i < 4; i++) {
        (void)snprintf(id, sizeof(id), "r%u", i);
        ask(s, id, 20 + i, 60);
    }
    let_go(s);
    hear_finished(s, 4);
    for (size_t i = 0; i < 4; i++) {
        const struct told *t = &s->h.told[i];

        preempted += t->preemptions;
        assert_int_equal(t->n_tokens, 60);
        assert_int_equal(t->n_with_prefill, 1);
        assert_string_equal(t->finish, "length");
        if (t->preemptions > 0) /* with an output later than the first */
            assert_true(t->n_with_events > 1 && t->scheduled > t->chunk[0].at);
    }
    assert_true(preempted > 0);
    ask(s, "alone", 23, 60);
    hear_finished(s, 5);
    assert_memory_equal(told_of(&s->h, "alone")->token, told_of(&s->h, "r3")->token,
                        60 * sizeof(uint32_t));
    assert_int_equal(told_of(&s->h, "alone")->preemptions, 0);
}

static void a_request_beyond_all_blocks_is_an_error(void **state)
{
    struct stage *s = *state;

    s->c.engine.num_gpu_blocks = 16;
    stage_open(s);
    ask(s, "too large", 300, 10);
    ask(s, "fits", 100, 10);
    hear_finished(s, 2);
    assert_string_equal(told_of(&s->h, "too large")->finish, "error");
    assert_string_equal(told_of(&s->h, "fits")->finish, "length");
}

/* ---- order ------------------------------------------------------------ */

static void order_of(struct stage *s, enum vt_policy policy, const char *const *want)
{
    static const struct {
        const char *id;
        int32_t priority;
        double arrival;
    } row[] = {{"late", 5, 100}, {"first", 0, 103}, {"mid", 3, 102}, {"mid2", 3, 101}};

    s->c.engine.policy = policy;
    s->c.engine.max_num_seqs = 1;
    stage_open(s);
    hold_all(s);
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct vt_frontend_request r = {
            .id = row[i].id,
            .prompt = prompt_of(1, 8),
            .n_prompt = 8,
            .max_tokens = 2,
            .priority = row[i].priority,
            .arrival_time = row[i].arrival,
        };

        add(s, 0, 0, &r);
    }
    let_go(s);
    hear_finished(s, 4);
    for (size_t i = 0; i < VT_COUNT(row); i++)
        assert_string_equal(s->h.told[i].id, want[i]);
}

static void by_priority_the_lowest_goes_first(void **state)
{
    static const char *const want[] = {"first", "mid2", "mid", "late"};

    order_of(*state, VT_PRIORITY, want);
}

static void by_default_they_go_as_they_come(void **state)
{
    static const char *const want[] = {"late", "first", "mid", "mid2"};

    order_of(*state, VT_FCFS, want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY_TEST(prefixes_are_shared_where_they_may_be),
        PLAY_TEST(adapters_take_turns),
        PLAY_TEST(a_second_turn_finds_prompt_and_answer),
        PLAY_TEST(images_keep_prompts_apart),
        PLAY_TEST(preempted_requests_come_back),
        PLAY_TEST(a_request_beyond_all_blocks_is_an_error),
        PLAY_TEST(by_priority_the_lowest_goes_first),
        PLAY_TEST(by_default_they_go_as_they_come),
    };

    return cmocka_run_group_tests_name("play_cache", tests, NULL, NULL);
}
