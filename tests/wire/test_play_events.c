/* What play publishes of its blocks: several KV groups, and what tells requests apart,
 * as the release has it. */
#include "play_harness.h"

#include "base/json/json.h"
#include "kvevents/kvevents.h"

enum { UNIT = 16, PROMPT = 100 };

/* Windows of 64 tokens in blocks of 16, everything in blocks of 32. */
static void set_groups(struct vt_engine_config *c)
{
    c->n_kv_groups = 2;
    c->kv_group[0] = (struct vt_kv_group){VT_ATTENTION_SLIDING, UNIT, 64, 1, 1024};
    c->kv_group[1] = (struct vt_kv_group){VT_ATTENTION_FULL, 2 * UNIT, 0, 1, 1024};
}

static void open_with_events(struct stage *s, uint32_t vllm)
{
    static char at[2][64];

    (void)snprintf(at[0], sizeof(at[0]), "ipc://%s/kv", s->dir);
    (void)snprintf(at[1], sizeof(at[1]), "ipc://%s/again", s->dir);
    s->c.engine.vllm = vllm;
    s->c.max_loras = 1;
    s->c.kv = (struct vt_kv_wanted){
        .on = true, .endpoint = at[0], .replay_endpoint = at[1], .hash_seed = "0"};
    stage_open(s);
}

/* All batches so far, asked for again, so that none is missed: their events as JSON. */
static const struct vt_node *ask_for_events(struct stage *s, struct vt_arena *a)
{
    struct sock_options o = {.type = ZMQ_DEALER, .gets = SOCK_GETS_MUCH};
    struct vt_buf json = {0};
    struct sock_msg m = {0};
    const struct vt_node *list;
    void *ctx, *sock;
    size_t len;

    assert_int_equal(sock_ctx(&ctx, NULL), VT_OK);
    assert_int_equal(sock_open(&sock, ctx, &o, NULL), VT_OK);
    assert_int_equal(sock_connect(sock, s->c.kv.replay_endpoint, NULL), VT_OK);
    assert_int_equal(sock_put(sock, "", 0, true, NULL), VT_OK);
    assert_int_equal(sock_put(sock, "\0\0\0\0\0\0\0\0", 8, false, NULL), VT_OK);
    vt_buf_char(&json, '[');
    for (;;) {
        struct mp_span batch;
        struct mp_in in;
        uint32_t n;

        assert_int_equal(sock_wait(sock, WAIT_MS), 1);
        assert_int_equal(sock_recv(sock, &m, NULL), VT_OK);
        batch.at = sock_data(&m, m.n - 1, &len);
        batch.len = len;
        if (len == 0)
            break;
        mp_in_init(&in, batch.at, batch.len);
        assert_int_equal(mp_array(&in), 3);
        (void)mp_raw(&in);
        n = mp_array(&in);
        for (uint32_t i = 0; i < n; i++) {
            if (json.len > 1)
                vt_buf_char(&json, ',');
            assert_true(mp_json(&json, mp_raw(&in)));
        }
    }
    vt_buf_char(&json, ']');
    assert_int_equal(vt_json_parse(a, json.data, json.len, 1, &list, NULL), VT_OK);
    vt_buf_free(&json);
    sock_msg_free(&m);
    sock_close(sock);
    zmq_ctx_term(ctx);
    return list;
}

/* The same once there are so many: a step's are published after its tokens. */
static const struct vt_node *events_so_far(struct stage *s, struct vt_arena *a,
                                           uint32_t at_least)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    const struct vt_node *e = ask_for_events(s, a);

    for (int i = 0; i < 250 && e->n < at_least; i++) {
        (void)nanosleep(&pause, NULL);
        vt_arena_reset(a);
        e = ask_for_events(s, a);
    }
    return e;
}

static void assert_number(const struct vt_node *e, const char *key, uint64_t want)
{
    const struct vt_node *n = vt_get(e, key);

    if (!n || n->kind != VT_INT || (uint64_t)n->u.integer != want)
        fail_msg("%s is not %llu", key, (unsigned long long)want);
}

static void assert_word(const struct vt_node *e, const char *key, const char *want)
{
    const struct vt_node *n = vt_get(e, key);

    if (!want && (!n || n->kind == VT_NULL))
        return;
    assert_non_null(n);
    assert_int_equal(n->kind, VT_STR);
    assert_string_equal(n->u.str, want);
}

struct wanted { /* an event about stored blocks of one prompt */
    uint32_t group, block_size, window;
    const char *kind;
    uint32_t first, end; /* of its blocks */
    uint32_t kept[8], n; /* of these: counted from the prompt's first */
};

/* The chain is made apart from what is tested, at the size that all groups share. */
static void assert_stored(const struct vt_node *e, const struct wanted *w,
                          const struct vt_chain *chain, const uint32_t *prompt)
{
    const struct vt_node *hashes = vt_get(e, "block_hashes");
    const struct vt_node *tokens = vt_get(e, "token_ids");
    uint32_t units = w->block_size / UNIT;

    assert_word(e, "type", "BlockStored");
    assert_word(e, "medium", "GPU");
    assert_word(e, "kv_cache_spec_kind", w->kind);
    assert_number(e, "group_idx", w->group);
    assert_number(e, "block_size", w->block_size);
    if (w->window > 0)
        assert_number(e, "kv_cache_spec_sliding_window", w->window);
    else
        assert_null(vt_get(e, "kv_cache_spec_sliding_window"));
    if (w->first > 0)
        assert_number(e, "parent_block_hash",
                      vt_hash_short(chain->hash[w->first * units - 1]));
    assert_int_equal(hashes->n, w->n);
    for (uint32_t i = 0; i < w->n; i++)
        assert_true((uint64_t)hashes->u.item[i].u.integer ==
                    vt_hash_short(chain->hash[(w->kept[i] + 1) * units - 1]));
    assert_int_equal(tokens->n, (w->end - w->first) * w->block_size);
    for (uint32_t i = 0; i < tokens->n; i++)
        assert_int_equal(tokens->u.item[i].u.integer,
                         prompt[w->first * w->block_size + i]);
    if (w->n > 0)
        assert_int_equal(vt_get(e, "extra_keys")->n, w->n);
    else
        assert_null(vt_get(e, "extra_keys"));
}

static void make_chain(struct vt_chain *c, const uint32_t *prompt)
{
    for (uint32_t i = 0; (i + 1) * UNIT <= PROMPT; i++)
        assert_int_equal(vt_chain_add(c, prompt + i * UNIT, UNIT, NULL), VT_OK);
}

static void events_are_of_groups(void **state)
{
    static const struct {
        uint32_t vllm;
        struct wanted want[2];
    } rows[] = {
        /* 100 tokens are three blocks of 32, so six of 16. 0.26 keeps all that somebody
         * could go on from, at any multiple of 32; 0.32 what who repeats the prompt
         * needs, 63 tokens before the 97th. */
        {26,
         {{0, UNIT, 64, "sliding_window", 0, 6, {0, 1, 2, 3, 4, 5}, 6},
          {1, 2 * UNIT, 0, "full_attention", 0, 3, {0, 1, 2}, 3}}},
        {32,
         {{0, UNIT, 64, "sliding_window", 0, 6, {2, 3, 4, 5}, 4},
          {1, 2 * UNIT, 0, "full_attention", 0, 3, {0, 1, 2}, 3}}},
    };
    struct stage *s = *state;

    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        uint8_t none[VT_HASH_BYTES];
        struct vt_chain chain = {.none_hash = none, .vllm = rows[i].vllm};
        struct vt_arena a = {0};
        const struct vt_node *e;

        set_groups(&s->c.engine);
        open_with_events(s, rows[i].vllm);
        ask(s, rows[i].vllm == 26 ? "a" : "b", PROMPT, 1);
        hear_finished(s, (uint32_t)i + 1);
        e = events_so_far(s, &a, 2);
        vt_hash_none("0", none);
        make_chain(&chain, prompt_of(1, PROMPT));
        assert_int_equal(e->n, 2);
        for (uint32_t k = 0; k < 2; k++)
            assert_stored(&e->u.item[k], &rows[i].want[k], &chain,
                          prompt_of(1, PROMPT));
        vt_chain_free(&chain);
        vt_arena_free(&a);
        stage_end(s);
    }
}

/* Nothing can be found, so nothing is hashed, however large the blocks. */
static void without_a_prefix_cache_nothing_is_told(void **state)
{
    struct stage *s = *state;
    struct vt_arena a = {0};

    s->c.engine.block_size = VT_BLOCK_TOKENS + 8;
    s->c.engine.max_model_len = 4 * VT_BLOCK_TOKENS;
    s->c.engine.enable_prefix_caching = false;
    open_with_events(s, 32);
    ask(s, "one", VT_BLOCK_TOKENS + 10, 1);
    hear_finished(s, 1);
    assert_int_equal(events_so_far(s, &a, 0)->n, 0);
    vt_arena_free(&a);
}

/* With one they are too large to be hashed. */
static void blocks_that_are_too_large_are_refused(void **state)
{
    struct stage *s = *state;

    s->c.engine.block_size = VT_BLOCK_TOKENS + 8;
    s->c.engine.max_model_len = 4 * VT_BLOCK_TOKENS;
    open_front(s);
    start_play(s);
    stage_join(s);
    assert_int_equal(s->rc, VT_EINPUT);
    assert_string_equal(s->err.msg, "block-size 8200 is above 8192");
}

static struct mp_span span_of(const struct vt_buf *b)
{
    return (struct mp_span){(const uint8_t *)b->data, b->len};
}

/* As the frontend of a line with so many fields writes it. */
static void write_named_request(struct vt_buf *out, const struct vt_chain *c,
                                const char *id, uint32_t n_fields)
{
    struct vt_buf lora = {0}, features = {0}, sampling = {0}, salt = {0}, session = {0};
    struct wire_request w = {
        .n_fields = n_fields,
        .id = wire_text(id),
        .n_prompt = PROMPT,
        .arrival_time = 1,
        .data_parallel_rank = -1,
    };
    struct vt_arena a = {0};

    w.prompt = vt_arena_alloc(&a, PROMPT * sizeof(*w.prompt));
    memcpy(w.prompt, prompt_of(1, PROMPT), PROMPT * sizeof(*w.prompt));
    mp_put_array(&lora, 3);
    mp_put_str(&lora, c->lora);
    mp_put_u64(&lora, 7);
    mp_put_str(&lora, c->lora_path);
    mp_put_array(&features, 1);
    mp_put_map(&features, 2);
    mp_put_str(&features, "identifier");
    mp_put_str(&features, c->mm->id);
    mp_put_str(&features, "mm_position");
    mp_put_map(&features, 2);
    put_key_u64(&features, "offset", c->mm->offset);
    put_key_u64(&features, "length", c->mm->length);
    mp_put_map(&sampling, 1);
    put_key_u64(&sampling, "max_tokens", 1);
    mp_put_str(&salt, c->salt);
    mp_put_str(&session, "talk");
    w.lora = span_of(&lora);
    w.mm_features = span_of(&features);
    w.sampling = span_of(&sampling);
    w.cache_salt = span_of(&salt);
    w.session_id = span_of(&session);
    wire_request_write(out, &w);
    vt_buf_free(&lora);
    vt_buf_free(&features);
    vt_buf_free(&sampling);
    vt_buf_free(&salt);
    vt_buf_free(&session);
    vt_arena_free(&a);
}

/* Hashes change with the release; what is told beside them does not. */
static void names_salts_and_images_are_hashed_as_the_release_does(void **state)
{
    static const struct {
        const char *id;
        uint32_t vllm;
        bool follows; /* what the frontend speaks; else it is said */
    } rows[] = {{"a", 26, false}, {"b", 32, false}, {"c", 26, true}, {"d", 32, true}};
    static const struct vt_mm_item cat = {"cat", 20, 30};
    struct stage *s = *state;

    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        uint32_t vllm = rows[i].vllm, fields = rows[i].follows && vllm == 26 ? 20 : 22;
        uint8_t none[VT_HASH_BYTES];
        struct vt_chain chain = {.none_hash = none,
                                 .vllm = vllm,
                                 .lora = "ad",
                                 .lora_path = "/adapters/ad",
                                 .salt = "pepper",
                                 .mm = &cat,
                                 .n_mm = 1};
        struct vt_buf bytes = {0};
        struct vt_arena a = {0};
        const struct vt_node *list, *keys;

        s->c.follow_line = rows[i].follows;
        open_with_events(s, rows[i].follows ? 29 : vllm);
        write_named_request(&bytes, &chain, rows[i].id, fields);
        send_typed(s, 0, WIRE_ADD, bytes.data, bytes.len);
        hear_finished(s, (uint32_t)i + 1);
        list = events_so_far(s, &a, 1);
        vt_hash_none("0", none);
        make_chain(&chain, prompt_of(1, PROMPT));
        assert_int_equal(list->n, 1);
        assert_stored(
            &list->u.item[0],
            &(struct wanted){0, UNIT, 0, "full_attention", 0, 6, {0, 1, 2, 3, 4, 5}, 6},
            &chain, prompt_of(1, PROMPT));
        assert_word(&list->u.item[0], "lora_name", "ad");
        assert_number(&list->u.item[0], "lora_id", 7);
        assert_word(&list->u.item[0], "session_id", vllm >= 30 ? "talk" : NULL);
        keys = vt_get(&list->u.item[0], "extra_keys");
        assert_int_equal(keys->u.item[0].n, 2); /* adapter and salt */
        assert_int_equal(keys->u.item[1].n, 2); /* adapter and image */
        assert_string_equal(keys->u.item[1].u.item[1].u.item[0].u.str, "cat");
        assert_int_equal(keys->u.item[1].u.item[1].u.item[1].u.integer, 4);
        assert_int_equal(keys->u.item[2].u.item[1].u.item[1].u.integer, -12);
        assert_int_equal(keys->u.item[5].n, 1);
        vt_buf_free(&bytes);
        vt_chain_free(&chain);
        vt_arena_free(&a);
        stage_end(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY_TEST(events_are_of_groups),
        PLAY_TEST(without_a_prefix_cache_nothing_is_told),
        PLAY_TEST(blocks_that_are_too_large_are_refused),
        PLAY_TEST(names_salts_and_images_are_hashed_as_the_release_does),
    };

    return cmocka_run_group_tests_name("play_events", tests, NULL, NULL);
}
