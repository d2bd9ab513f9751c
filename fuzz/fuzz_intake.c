/* fuzz_intake.c - what a frontend sends, all the way: read, queued, scheduled, computed
 * in no time, and answered to nobody. The first byte chooses the engine; then follow
 * messages, each a type, two bytes of length and a payload. Whatever they are, the
 * engine does not fail, and each request has one end. */
#include "wire/play/engines.h"
#include "wire/play/intake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(x) ((x) ? (void)0 : fail(#x, __LINE__))

static _Noreturn void fail(const char *what, int line)
{
    fprintf(stderr, "fuzz_intake.c:%d: %s\n", line, what);
    abort();
}

static void quiet(void *user, const char *line)
{
    (void)user;
    REQUIRE(strlen(line) < 512);
}

/* ---- an engine without sockets ---------------------------------------- */

struct rig {
    struct vt_play_config c;
    struct play p;
    struct link link;
    struct vt_arena arena;
    struct complaints complaints;
    struct vt_latency *model;
};

static void choose(struct vt_play_config *c, uint8_t bits)
{
    size_t n;
    const struct vt_wire_line *const *line = vt_wire_lines(&n);

    *c = (struct vt_play_config){
        .n_engines = 1,
        .time_scale = 1,
        .vocab_size = 100,
        .tensor_parallel_size = 1,
        .shutdown_timeout_s = 0.001,
        .kv.on = bits & 1,
        .log_stats = bits & 2,
        .line = bits >> 5 < n ? line[bits >> 5] : NULL,
        .log = quiet,
    };
    vt_engine_config_init(&c->engine);
    c->engine.num_gpu_blocks = 32;
    c->engine.max_model_len = 256;
    c->engine.max_num_seqs = 4;
    c->engine.max_num_batched_tokens = 64;
    c->engine.num_spec_tokens = bits & 4 ? 2 : 0;
    c->engine.spec_acceptance = 0.5;
    c->engine.policy = bits & 8 ? VT_PRIORITY : VT_FCFS;
    c->engine.async_scheduling = bits & 16;
    if (bits & 32) {
        c->engine.n_kv_groups = 2;
        c->engine.kv_group[0] =
            (struct vt_kv_group){VT_ATTENTION_SLIDING, 16, 64, 1, 64};
        c->engine.kv_group[1] = (struct vt_kv_group){VT_ATTENTION_FULL, 32, 0, 1, 64};
    }
    c->follow_line = bits & 64;
}

static void open_rig(struct rig *r, uint8_t bits)
{
    struct vt_play_config s = {.vocab_size = 100, .engine.block_size = 16};

    choose(&r->c, bits);
    r->p = (struct play){.c = &r->c,
                         .engine = r->c.engine,
                         .axis = {.zero_ns = vt_wall_ns(), .scale = 1}};
    r->p.engine.kv_events = r->c.kv.on;
    REQUIRE(vt_model_open_inline(&r->model, "null:", NULL) == VT_OK);
    r->c.model = r->model;
    REQUIRE(vt_inbox_open(&r->p.to_engines, NULL) == VT_OK);
    REQUIRE(vt_inbox_open(&r->p.to_intake, NULL) == VT_OK);
    REQUIRE(script_source_open(&r->p.scripts, &s, NULL) == VT_OK);
    REQUIRE(failure_open(&r->p.failures, &s, NULL) == VT_OK);
    REQUIRE(play_engines_open(&r->p, NULL) == VT_OK);
    r->link = (struct link){.p = &r->p, .n_clients = 1, .line = r->c.line};
}

static void close_rig(struct rig *r)
{
    struct vt_inbox_item *at = vt_inbox_take(&r->p.to_intake), *next;

    for (; at != NULL; at = next) { /* block events */
        struct note *n = (struct note *)at;

        next = at->next;
        note_free(n);
    }
    REQUIRE(vt_inbox_take(&r->p.to_engines) == NULL);
    play_engines_close(&r->p);
    failure_close(r->p.failures);
    script_source_close(r->p.scripts);
    vt_inbox_close(&r->p.to_intake);
    vt_inbox_close(&r->p.to_engines);
    vt_latency_close(r->model);
    sock_msg_free(&r->link.msg);
    vt_arena_free(&r->arena);
}

/* ---- messages --------------------------------------------------------- */

static void put_frame(struct sock_msg *m, const void *bytes, size_t len)
{
    REQUIRE(m->n < m->cap && zmq_msg_init_size(&m->frame[m->n], len) == 0);
    if (len > 0)
        memcpy(zmq_msg_data(&m->frame[m->n]), bytes, len);
    m->n++;
}

static void send_to(struct rig *r, uint8_t type, const void *bytes, size_t len)
{
    struct sock_msg *m = &r->link.msg;

    if (m->frame == NULL) {
        m->cap = 2;
        m->frame = calloc(m->cap, sizeof(*m->frame));
        REQUIRE(m->frame != NULL);
    }
    sock_msg_clear(m);
    put_frame(m, &type, 1);
    put_frame(m, bytes, len);
    intake_message(&r->link, &r->arena, &r->complaints);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rig r = {0};
    struct vt_play_summary sum = {0};

    open_rig(&r, size > 0 ? data[0] : 0);
    for (size_t at = 1, len; at + 3 <= size; at += len) {
        uint8_t type = data[at];

        len = (size_t)data[at + 1] | (size_t)data[at + 2] << 8;
        at += 3;
        len = len < size - at ? len : size - at;
        send_to(&r, type, data + at, len);
    }
    play_send_note(&r.p, &r.p.to_engines, note_new(NOTE_STOP, 0));
    REQUIRE(play_engines_run(&r.p, NULL) == VT_OK);
    play_engines_sums(&r.p, &sum);
    REQUIRE(sum.requests == sum.finished + sum.aborted + sum.failed);
    close_rig(&r);
    return 0;
}
