/* KV-cache events: what a subscriber sees, live and on asking again. */
#include "../wire/codec_testing.h"

#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

#include "kvevents/kvevents.h"

enum { DEADLINE_MS = 5000 };

static void *ctx;
static int n_open; /* a test that failed leaves some: then ctx cannot end */
static char dir[] = "/tmp/vt-kv-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(dir) && sock_ctx(&ctx, NULL) == VT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    char file[64];

    (void)state;
    if (n_open == 0)
        zmq_ctx_term(ctx);
    snprintf(file, sizeof(file), "%s/pub", dir);
    unlink(file); /* libzmq may leave it */
    return rmdir(dir);
}

static struct vt_kv_publisher *opened(struct vt_kv_config c)
{
    struct vt_kv_publisher *e;
    struct vt_err err = {0};

    if (vt_kv_publisher_open(&e, ctx, &c, &err) != VT_OK)
        fail_msg("%s", err.msg);
    n_open++;
    return e;
}

static void closed(struct vt_kv_publisher *e)
{
    n_open--;
    vt_kv_publisher_close(e);
}

static void *peer(int type, const char *endpoint)
{
    const struct sock_options o = {.type = type, .gets = SOCK_GETS_MUCH};
    void *s;

    assert_int_equal(sock_open(&s, ctx, &o, NULL), VT_OK);
    if (type == ZMQ_SUB)
        zmq_setsockopt(s, ZMQ_SUBSCRIBE, "", 0);
    n_open++;
    assert_int_equal(sock_connect(s, endpoint, NULL), VT_OK);
    return s;
}

static void leave(void *sock)
{
    n_open--;
    sock_close(sock);
}

static void flush(struct vt_kv_publisher *e, double now)
{
    struct vt_err err = {0};

    if (vt_kv_publisher_flush(e, now, &err) != VT_OK)
        fail_msg("%s", err.msg);
}

static void receive(void *sock, struct sock_msg *m)
{
    assert_int_equal(sock_wait(sock, DEADLINE_MS), 1);
    assert_int_equal(sock_recv(sock, m, NULL), VT_OK);
    assert_true(m->n > 0);
}

static uint64_t sequence_in(const struct sock_msg *m, size_t frame)
{
    size_t len;
    const uint8_t *b = sock_data(m, frame, &len);
    uint64_t v = 0;

    assert_int_equal(len, 8);
    for (int i = 0; i < 8; i++)
        v = v << 8 | b[i];
    return v;
}

static void assert_text(const struct sock_msg *m, size_t frame, const char *text)
{
    size_t len;
    const void *b = sock_data(m, frame, &len);

    assert_int_equal(len, strlen(text));
    assert_memory_equal(b, text, len);
}

static void assert_payload(const struct sock_msg *m, size_t frame, const char *json)
{
    struct vt_buf b = {0};
    size_t len;
    const uint8_t *bytes = sock_data(m, frame, &len);

    assert_true(mp_json(&b, (struct mp_span){bytes, len}));
    assert_string_equal(b.data, json);
    vt_buf_free(&b);
}

/* A subscription takes its time: sends batches until one is seen, and reads on to the
 * last of them. Returns the next sequence number. */
static uint64_t join(struct vt_kv_publisher *e, void *sub)
{
    struct sock_msg m = {0};
    uint64_t sent = 0, seen;

    do {
        vt_kv_batch_cleared(vt_kv_publisher_batch(e));
        flush(e, 0);
        sent++;
    } while (sock_wait(sub, 10) == 0 && sent < DEADLINE_MS / 10);
    do {
        receive(sub, &m);
        assert_int_equal(m.n, 3);
        seen = sequence_in(&m, 1);
    } while (seen + 1 < sent);
    sock_msg_free(&m);
    return sent;
}

static void hash_named(uint8_t out[VT_HASH_BYTES], uint8_t name)
{
    memset(out, name, VT_HASH_BYTES);
    out[VT_HASH_BYTES - 8] = 0;
}

/* ---- batches ---------------------------------------------------------- */

struct live { /* a publisher and its subscriber */
    struct vt_kv_publisher *e;
    void *sub;
    uint64_t next;
    struct sock_msg m;
};

static struct live go_live(struct vt_kv_config c)
{
    struct live l = {0};

    l.e = opened(c);
    l.sub = peer(ZMQ_SUB, vt_kv_publisher_endpoint(l.e));
    l.next = join(l.e, l.sub);
    return l;
}

static void go_home(struct live *l)
{
    sock_msg_free(&l->m);
    leave(l->sub);
    closed(l->e);
}

static void expect(struct live *l, const char *topic, const char *json)
{
    receive(l->sub, &l->m);
    assert_int_equal(l->m.n, 3);
    assert_text(&l->m, 0, topic);
    assert_int_equal(sequence_in(&l->m, 1), l->next++);
    assert_payload(&l->m, 2, json);
}

static const uint32_t places[] = {0, 1};
static const struct vt_blocks nobodys = {0};

static void a_batch_has_the_form_of_a_real_one(void **state)
{
    struct live l = go_live((struct vt_kv_config){.wanted.endpoint = "inproc://real",
                                                  .wanted.topic = "kv@pod@m"});
    const uint32_t token[] = {1, 200, 70000, 4};
    uint8_t hash[2][VT_HASH_BYTES];

    (void)state;
    hash_named(hash[0], 0xab);
    hash_named(hash[1], 0x01);
    vt_kv_batch_stored(vt_kv_publisher_batch(l.e),
                       &(struct vt_kv_stored){.hash = hash[0],
                                              .at = places,
                                              .n_hashes = 1,
                                              .token = token,
                                              .n_tokens = 2,
                                              .block_size = 2,
                                              .of = &nobodys,
                                              .kind = "full_attention"});
    vt_kv_batch_stored(vt_kv_publisher_batch(l.e),
                       &(struct vt_kv_stored){.hash = hash[0],
                                              .at = places,
                                              .n_hashes = 2,
                                              .parent = hash[1],
                                              .token = token,
                                              .first_token = 2,
                                              .n_tokens = 4,
                                              .block_size = 2,
                                              .of = &nobodys,
                                              .group = 3,
                                              .kind = "sliding_window",
                                              .window = 128});
    vt_kv_batch_removed(vt_kv_publisher_batch(l.e), hash[1], 1, 3, VT_MEDIUM_GPU);
    vt_kv_batch_cleared(vt_kv_publisher_batch(l.e));
    flush(l.e, 1789095808.5);
    expect(&l, "kv@pod@m",
           "[1789095808.5,["
           "{\"type\":\"BlockStored\",\"block_hashes\":[48320974825434027],"
           "\"parent_block_hash\":null,\"token_ids\":[1,200],\"block_size\":2,"
           "\"lora_id\":null,\"medium\":\"GPU\",\"lora_name\":null,"
           "\"extra_keys\":[null],\"group_idx\":0,"
           "\"kv_cache_spec_kind\":\"full_attention\"},"
           "{\"type\":\"BlockStored\",\"block_hashes\":[48320974825434027,"
           "282578800148737],\"parent_block_hash\":282578800148737,"
           "\"token_ids\":[1,200,70000,4],\"block_size\":2,\"lora_id\":null,"
           "\"medium\":\"GPU\",\"lora_name\":null,\"extra_keys\":[null,null],"
           "\"group_idx\":3,\"kv_cache_spec_kind\":\"sliding_window\","
           "\"kv_cache_spec_sliding_window\":128},"
           "{\"type\":\"BlockRemoved\",\"block_hashes\":[282578800148737],"
           "\"medium\":\"GPU\",\"group_idx\":3},"
           "{\"type\":\"AllBlocksCleared\"}],0]");
    assert_int_equal(vt_kv_publisher_stats(l.e).events, l.next - 1 + 4);
    assert_int_equal(vt_kv_publisher_stats(l.e).batches, l.next);
    go_home(&l);
}

static void names_salts_images_and_sessions_are_told(void **state)
{
    static const struct vt_mm_item cat = {"cat", 1, 2};
    const struct vt_blocks blocks = {
        .chain = {.lora = "ad", .salt = "s", .mm = &cat, .n_mm = 1},
        .lora_id = 5,
        .session = "t1",
    };
    struct live l = go_live((struct vt_kv_config){
        .wanted.endpoint = "inproc://named", .dp_rank = 3, .vllm = 30});
    uint8_t hash[2][VT_HASH_BYTES];
    const uint32_t token[] = {7, 8};
    struct vt_kv_stored s = {.hash = hash[0],
                             .at = places,
                             .n_hashes = 2,
                             .token = token,
                             .n_tokens = 2,
                             .block_size = 1,
                             .of = &blocks,
                             .kind = "full_attention"};

    (void)state;
    hash_named(hash[0], 0);
    hash_named(hash[1], 0);
    vt_kv_batch_stored(vt_kv_publisher_batch(l.e), &s);
    flush(l.e, 0.5);
    expect(&l, "",
           "[0.5,[{\"type\":\"BlockStored\",\"block_hashes\":[0,0],"
           "\"parent_block_hash\":null,\"token_ids\":[7,8],\"block_size\":1,"
           "\"lora_id\":5,\"medium\":\"GPU\",\"lora_name\":\"ad\","
           "\"extra_keys\":[[\"ad\",\"s\"],[\"ad\",[\"cat\",0]]],\"group_idx\":0,"
           "\"kv_cache_spec_kind\":\"full_attention\",\"session_id\":\"t1\"}],3]");
    s.first_token = 2; /* only the second of the two is kept: it has nothing of these */
    s.n_hashes = 1;
    s.at = places + 1;
    vt_kv_batch_stored(vt_kv_publisher_batch(l.e), &s);
    flush(l.e, 0.5);
    expect(&l, "",
           "[0.5,[{\"type\":\"BlockStored\",\"block_hashes\":[0],"
           "\"parent_block_hash\":null,\"token_ids\":[7,8],\"block_size\":1,"
           "\"lora_id\":5,\"medium\":\"GPU\",\"lora_name\":\"ad\","
           "\"extra_keys\":[[\"ad\"]],\"group_idx\":0,"
           "\"kv_cache_spec_kind\":\"full_attention\",\"session_id\":\"t1\"}],3]");
    go_home(&l);
}

/* vLLM tells the tokens of blocks that nobody can find, and leaves a list of keys out
 * that would be empty. */
static void blocks_that_are_not_kept_have_tokens_only(void **state)
{
    struct live l = go_live((struct vt_kv_config){.wanted.endpoint = "inproc://lost"});
    const uint32_t token[] = {7, 8};
    struct vt_kv_stored s = {.token = token,
                             .n_tokens = 2,
                             .block_size = 1,
                             .of = &nobodys,
                             .group = 1,
                             .kind = "mamba"};

    (void)state;
    vt_kv_batch_stored(vt_kv_publisher_batch(l.e), &s);
    flush(l.e, 0.5);
    expect(&l, "",
           "[0.5,[{\"type\":\"BlockStored\",\"block_hashes\":[],"
           "\"parent_block_hash\":null,\"token_ids\":[7,8],\"block_size\":1,"
           "\"lora_id\":null,\"medium\":\"GPU\",\"lora_name\":null,"
           "\"group_idx\":1,\"kv_cache_spec_kind\":\"mamba\"}],0]");
    go_home(&l);
}

static void older_lines_know_no_session_and_hashes_may_be_raw(void **state)
{
    const struct vt_blocks blocks = {.session = "t1"};
    struct live l = go_live((struct vt_kv_config){
        .wanted.endpoint = "inproc://raw", .vllm = 29, .raw_hashes = true});
    uint8_t hash[VT_HASH_BYTES];
    const uint32_t token[] = {7};
    struct vt_kv_stored s = {.hash = hash,
                             .at = places,
                             .n_hashes = 1,
                             .parent = hash,
                             .token = token,
                             .n_tokens = 1,
                             .block_size = 1,
                             .of = &blocks,
                             .kind = "full_attention"};

    (void)state;
    hash_named(hash, 0x5a);
    vt_kv_batch_stored(vt_kv_publisher_batch(l.e), &s);
    flush(l.e, 0.5);
#define RAW "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a005a5a5a5a5a5a5a"
    expect(&l, "",
           "[0.5,[{\"type\":\"BlockStored\",\"block_hashes\":[{\"__bin__\":\"" RAW
           "\"}],\"parent_block_hash\":{\"__bin__\":\"" RAW
           "\"},\"token_ids\":[7],\"block_size\":1,\"lora_id\":null,"
           "\"medium\":\"GPU\",\"lora_name\":null,\"extra_keys\":[null],"
           "\"group_idx\":0,\"kv_cache_spec_kind\":\"full_attention\"}],0]");
    go_home(&l);
}

static void an_empty_batch_is_not_sent(void **state)
{
    struct live l = go_live((struct vt_kv_config){.wanted.endpoint = "inproc://empty"});

    (void)state;
    flush(l.e, 1);
    flush(l.e, 2);
    vt_kv_batch_cleared(vt_kv_publisher_batch(l.e));
    flush(l.e, 3.5);
    expect(&l, "", "[3.5,[{\"type\":\"AllBlocksCleared\"}],0]");
    go_home(&l);
}

static void chains_begin_alike_or_in_secret(void **state)
{
    uint8_t seeded[VT_HASH_BYTES], fixed[VT_HASH_BYTES], first[VT_HASH_BYTES],
        second[VT_HASH_BYTES];

    (void)state;
    vt_hash_none("7", seeded);
    vt_hash_none(NULL, fixed);
    vt_none_hash(26, "7", first);
    vt_none_hash(32, "7", second);
    assert_memory_equal(first, seeded, VT_HASH_BYTES);
    assert_memory_equal(second, seeded, VT_HASH_BYTES);
    vt_none_hash(29, NULL, first);
    assert_memory_equal(first, fixed, VT_HASH_BYTES);
    vt_none_hash(28, NULL, first);
    vt_none_hash(28, NULL, second);
    assert_memory_not_equal(first, second, VT_HASH_BYTES);
}

/* ---- endpoints -------------------------------------------------------- */

static void ranks_have_endpoints_of_their_own(void **state)
{
    static const struct {
        const char *given;
        uint32_t rank;
        const char *used;
    } rows[] = {
        {"inproc://a", 0, "inproc://a"},
        {"inproc://a", 2, "inproc://a_dp2"},
        {"tcp://127.0.0.1:5557", 0, "tcp://127.0.0.1:5557"},
        {"tcp://127.0.0.1:5557", 7, "tcp://127.0.0.1:5564"},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_kv_publisher *e = opened((struct vt_kv_config){
            .wanted.endpoint = rows[i].given, .dp_rank = rows[i].rank});

        assert_string_equal(vt_kv_publisher_endpoint(e), rows[i].used);
        assert_null(vt_kv_publisher_replay_endpoint(e));
        assert_false(vt_kv_publisher_replay(e));
        closed(e);
    }
}

static void bad_endpoints_are_named(void **state)
{
    static const struct {
        const char *given;
        uint32_t rank;
        const char *message;
    } rows[] = {
        {"tcp://127.0.0.1:65530", 9,
         "KV events: tcp://127.0.0.1:65530: no port that 9 could be added to for this "
         "rank"},
        {"tcp://127.0.0.1", 1,
         "KV events: tcp://127.0.0.1: no port that 1 could be added to for this rank"},
        {"tcp://*:port", 0, "KV events: cannot listen on tcp://*:port: "},
        {"nonsense", 0, "KV events: cannot connect to nonsense: "},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_kv_config c = {.wanted.endpoint = rows[i].given,
                                 .dp_rank = rows[i].rank};
        struct vt_kv_publisher *e;
        struct vt_err err;

        assert_int_equal(vt_kv_publisher_open(&e, ctx, &c, &err), VT_EINPUT);
        assert_null(e);
        assert_memory_equal(err.msg, rows[i].message, strlen(rows[i].message));
    }
}

static void a_taken_endpoint_is_an_error(void **state)
{
    struct vt_kv_config c = {.wanted.endpoint = "inproc://p",
                             .wanted.replay_endpoint = "inproc://r"};
    struct vt_kv_publisher *e = opened(c), *second;
    struct vt_err err;

    (void)state;
    assert_int_equal(vt_kv_publisher_open(&second, ctx, &c, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "cannot listen on inproc://p"));
    c.wanted.endpoint = "inproc://p2";
    assert_int_equal(vt_kv_publisher_open(&second, ctx, &c, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "cannot listen on inproc://r"));
    closed(e);
}

static void tcp_and_ipc_carry_batches(void **state)
{
    char ipc[64];
    const char *endpoints[] = {"tcp://*:0", ipc};

    (void)state;
    snprintf(ipc, sizeof(ipc), "ipc://%s/pub", dir);
    for (size_t i = 0; i < VT_COUNT(endpoints); i++) {
        struct live l = {0};
        char to[SOCK_ADDRESS];
        const char *port;

        l.e = opened((struct vt_kv_config){.wanted.endpoint = endpoints[i]});
        port = strrchr(vt_kv_publisher_endpoint(l.e), ':');
        assert_string_not_equal(port, ":0");
        snprintf(to, sizeof(to), "%s%s", i == 0 ? "tcp://127.0.0.1" : "",
                 i == 0 ? port : vt_kv_publisher_endpoint(l.e));
        l.sub = peer(ZMQ_SUB, to);
        l.next = join(l.e, l.sub);
        vt_kv_batch_cleared(vt_kv_publisher_batch(l.e));
        flush(l.e, 5.5);
        expect(&l, "", "[5.5,[{\"type\":\"AllBlocksCleared\"}],0]");
        go_home(&l);
    }
}

/* ---- replay ----------------------------------------------------------- */

enum { KEPT = 700 };

/* Names are free again only some time after a socket is closed. */
static struct vt_kv_publisher *with_history(uint64_t n)
{
    static int nth;
    char pub[32], replay[32];
    struct vt_kv_publisher *e;

    snprintf(pub, sizeof(pub), "inproc://history-%d", nth);
    snprintf(replay, sizeof(replay), "inproc://again-%d", nth++);
    e = opened((struct vt_kv_config){
        .wanted.endpoint = pub,
        .wanted.replay_endpoint = replay,
        .wanted.topic = "t",
        .buffer_steps = KEPT,
    });

    for (uint64_t i = 0; i < n; i++) {
        vt_kv_batch_cleared(vt_kv_publisher_batch(e));
        flush(e, (double)i + 0.5);
    }
    return e;
}

static void serve_all(struct vt_kv_publisher *e)
{
    for (int quiet = 0; quiet < 5;) {
        if (vt_kv_publisher_replay(e))
            quiet = 0;
        else
            quiet += poll(NULL, 0, 4) == 0;
    }
}

static void ask(void *dealer, const void *bytes, size_t len)
{
    assert_int_equal(sock_put(dealer, "", 0, true, NULL), VT_OK);
    assert_int_equal(sock_put(dealer, bytes, len, false, NULL), VT_OK);
}

/* Batches [from, to) and the end, as a DEALER sees them. */
static void expect_again(void *dealer, uint64_t from, uint64_t to)
{
    struct sock_msg m = {0};
    char json[80];

    for (uint64_t i = from; i < to; i++) {
        receive(dealer, &m);
        assert_int_equal(m.n, 4);
        assert_text(&m, 0, "");
        assert_text(&m, 1, "t");
        assert_int_equal(sequence_in(&m, 2), i);
        snprintf(json, sizeof(json),
                 "[%" PRIu64 ".5,[{\"type\":\"AllBlocksCleared\"}],0]", i);
        assert_payload(&m, 3, json);
    }
    receive(dealer, &m);
    assert_int_equal(m.n, 4);
    assert_text(&m, 0, "");
    assert_text(&m, 1, "");
    assert_true(sequence_in(&m, 2) == UINT64_MAX);
    assert_text(&m, 3, "");
    sock_msg_free(&m);
}

static void missed_batches_are_sent_again(void **state)
{
    static const struct {
        const char *name;
        uint64_t sent;
        uint8_t asked[9];
        size_t n_asked;
        uint64_t from;
    } rows[] = {
        {"from the middle", 10, {0, 0, 0, 0, 0, 0, 0, 6}, 8, 6},
        {"nothing yet", 0, {0, 0, 0, 0, 0, 0, 0, 0}, 8, 0},
        {"none so late", 10, {0, 0, 0, 0, 0, 0, 1, 0}, 8, 10},
        {"a short number", 10, {9}, 1, 9},
        {"a number too long", 10, {0, 0, 0, 0, 0, 0, 0, 0, 1}, 9, 10},
        {"all that are kept, in several goes", 1000, {0}, 8, 300},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_kv_publisher *e = with_history(rows[i].sent);
        void *dealer = peer(ZMQ_DEALER, vt_kv_publisher_replay_endpoint(e));

        ask(dealer, rows[i].asked, rows[i].n_asked);
        serve_all(e);
        expect_again(dealer, rows[i].from, rows[i].sent);
        leave(dealer);
        closed(e);
    }
}

static void strange_requests_do_not_stop_replay(void **state)
{
    struct vt_kv_publisher *e = with_history(3);
    void *dealer = peer(ZMQ_DEALER, vt_kv_publisher_replay_endpoint(e));
    const uint8_t first[8] = {0};

    (void)state;
    assert_int_equal(sock_put(dealer, "x", 1, false, NULL), VT_OK);
    assert_int_equal(sock_put(dealer, "a", 1, true, NULL), VT_OK);
    assert_int_equal(sock_put(dealer, "b", 1, true, NULL), VT_OK);
    assert_int_equal(sock_put(dealer, "c", 1, false, NULL), VT_OK);
    ask(dealer, first, sizeof(first));
    serve_all(e);
    expect_again(dealer, 0, 3);
    leave(dealer);
    closed(e);
}

static void batches_go_on_while_old_ones_are_sent(void **state)
{
    struct vt_kv_publisher *e = with_history(KEPT);
    void *a = peer(ZMQ_DEALER, vt_kv_publisher_replay_endpoint(e));
    void *b = peer(ZMQ_DEALER, vt_kv_publisher_replay_endpoint(e));
    const uint8_t first[8] = {0};
    struct sock_msg m = {0};
    uint64_t n = 0, last = 0;

    (void)state;
    ask(a, first, sizeof(first));
    while (!vt_kv_publisher_replay(e))
        poll(NULL, 0, 1);
    for (int i = 0; i < 400; i++) { /* what was to come is overwritten meanwhile */
        vt_kv_batch_cleared(vt_kv_publisher_batch(e));
        flush(e, 0);
    }
    ask(b, first, sizeof(first));
    serve_all(e);
    for (receive(a, &m); sequence_in(&m, 2) != UINT64_MAX; receive(a, &m), n++) {
        assert_true(n == 0 || sequence_in(&m, 2) > last);
        last = sequence_in(&m, 2);
        assert_true(last < KEPT);
    }
    assert_int_equal(last, KEPT - 1);
    for (receive(b, &m), n = 0; sequence_in(&m, 2) != UINT64_MAX; receive(b, &m), n++)
        assert_int_equal(sequence_in(&m, 2), 400 + n);
    assert_int_equal(n, KEPT);
    sock_msg_free(&m);
    leave(a);
    leave(b);
    closed(e);
}

static void closing_amid_a_replay_leaks_nothing(void **state)
{
    struct vt_kv_publisher *e = with_history(KEPT);
    void *dealer = peer(ZMQ_DEALER, vt_kv_publisher_replay_endpoint(e));
    const uint8_t first[8] = {0};

    (void)state;
    ask(dealer, first, sizeof(first));
    while (!vt_kv_publisher_replay(e))
        poll(NULL, 0, 1);
    vt_kv_batch_stored(vt_kv_publisher_batch(e),
                       &(struct vt_kv_stored){.of = &nobodys, .kind = "mamba"});
    leave(dealer);
    closed(e);
    vt_kv_publisher_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_has_the_form_of_a_real_one),
        cmocka_unit_test(names_salts_images_and_sessions_are_told),
        cmocka_unit_test(blocks_that_are_not_kept_have_tokens_only),
        cmocka_unit_test(chains_begin_alike_or_in_secret),
        cmocka_unit_test(older_lines_know_no_session_and_hashes_may_be_raw),
        cmocka_unit_test(an_empty_batch_is_not_sent),
        cmocka_unit_test(ranks_have_endpoints_of_their_own),
        cmocka_unit_test(bad_endpoints_are_named),
        cmocka_unit_test(a_taken_endpoint_is_an_error),
        cmocka_unit_test(tcp_and_ipc_carry_batches),
        cmocka_unit_test(missed_batches_are_sent_again),
        cmocka_unit_test(strange_requests_do_not_stop_replay),
        cmocka_unit_test(batches_go_on_while_old_ones_are_sent),
        cmocka_unit_test(closing_amid_a_replay_leaks_nothing),
    };

    return cmocka_run_group_tests_name("kv_events", tests, set_up, tear_down);
}
