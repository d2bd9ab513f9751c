/* Every message between real vLLM frontends and engines (tests/cases/wire) is read by
 * the typed readers and written again, byte by byte the same. */
#include "codec_testing.h"

#include "wire/codec/codec.h"
#include "wire/tap/wirelog.h"

struct counts {
    unsigned handshake, registers, adds, aborts, utilities, outputs, dead;
};

static const struct capture {
    const char *file, *line;
    struct counts n;
} captures[] = {
    {"wire-capture-0.26.0.jsonl.gz", "0.26", {8, 2, 130, 14, 22, 904, 0}},
    {"wire-capture-0.26.0-preempt-dead.jsonl.gz", "0.26", {8, 2, 16, 0, 2, 711, 2}},
    {"wire-capture-0.26.0-rust-supervised.jsonl.gz", "0.26", {4, 1, 2, 0, 3, 21, 0}},
    {"wire-capture-0.32.0.jsonl.gz", "0.32", {8, 2, 127, 11, 22, 1071, 0}},
};

struct context {
    struct vt_arena arena;
    struct vt_buf again; /* what the writer made of what the reader saw */
    const struct vt_wire_line *line;
    struct counts n;
};

static void assert_again(struct context *c, struct mp_span message)
{
    assert_false(c->again.failed);
    assert_int_equal(c->again.len, message.len);
    assert_memory_equal(c->again.data, message.at, message.len);
}

/* ---- handshake -------------------------------------------------------- */

static void check_hello(struct context *c, struct mp_span m)
{
    struct wire_hello h;
    struct vt_err err = {0};

    assert_int_equal(wire_hello_read(&h, m.at, m.len, &err), VT_OK);
    wire_hello_write(&c->again, &h);
    assert_again(c, m);
    c->n.handshake++;
}

static void check_init(struct context *c, struct mp_span m)
{
    struct wire_init w;
    struct vt_err err = {0};

    assert_int_equal(wire_init_read(&w, &c->arena, m.at, m.len, &err), VT_OK);
    wire_init_write(&c->again, &w);
    assert_again(c, m);
    c->n.handshake++;
}

/* Each key of an engine's registration is one that we write, in the same type; the
 * registration of 0.32 is ours byte by byte. */
static void check_register(struct context *c, struct mp_span m)
{
    struct wire_ready r;
    struct vt_err err = {0};
    struct mp_in in;
    uint32_t n;

    assert_int_equal(wire_ready_read(&r, &c->arena, m.at, m.len, &err), VT_OK);
    wire_ready_write(&c->again, &r);
    mp_in_init(&in, m.at, m.len);
    n = mp_map(&in);
    assert_true(n >= 10);
    for (uint32_t i = 0; i < n; i++) {
        struct mp_span key = mp_str(&in), theirs = mp_raw(&in), ours;
        char name[64] = "";
        struct mp_in a, b;

        memcpy(name, key.at, key.len);
        ours = mp_get(buf_span(&c->again), name);
        assert_non_null(ours.at);
        mp_in_init(&a, theirs.at, theirs.len);
        mp_in_init(&b, ours.at, ours.len);
        assert_int_equal(mp_peek(&a), mp_peek(&b));
    }
    if (c->line->minor >= 32)
        assert_again(c, m);
    c->n.registers++;
}

/* ---- requests --------------------------------------------------------- */

static void check_add(struct context *c, struct mp_span m)
{
    struct wire_request r;
    struct wire_sampling s;
    struct wire_lora l;
    struct vt_err err = {0};

    assert_int_equal(wire_request_read(&r, &c->arena, m.at, m.len, &err), VT_OK);
    assert_int_equal(r.n_fields, c->line->request_fields);
    assert_int_equal(wire_sampling_read(&s, &c->arena, r.sampling, &err), VT_OK);
    assert_true(s.max_tokens >= 1 && s.n >= 1);
    assert_int_equal(wire_lora_read(&l, r.lora, &err), VT_OK);
    /* Both frontends put eight random characters behind their own id. */
    assert_true(r.id.len > r.external_id.len + 8);
    wire_request_write(&c->again, &r);
    assert_again(c, m);
    c->n.adds++;
}

static void check_abort(struct context *c, struct mp_span m)
{
    struct mp_span *id;
    uint32_t n;
    struct vt_err err = {0};

    assert_int_equal(wire_abort_read(&id, &n, &c->arena, m.at, m.len, &err), VT_OK);
    assert_true(n >= 1);
    wire_abort_write(&c->again, id, n);
    assert_again(c, m);
    c->n.aborts++;
}

static void check_utility(struct context *c, struct mp_span m)
{
    struct wire_call call;
    struct vt_err err = {0};

    assert_int_equal(wire_call_read(&call, m.at, m.len, &err), VT_OK);
    wire_call_write(&c->again, &call);
    assert_again(c, m);
    c->n.utilities++;
}

/* ---- answers ---------------------------------------------------------- */

static void check_outputs(struct context *c, const struct wirelog_entry *e)
{
    struct mp_span m = e->frame[0];
    struct wire_outputs o;
    struct vt_err err = {0};
    const char *kind = strchr(e->kind, '/') + 1;

    assert_int_equal(
        wire_outputs_read(&o, &c->arena, m.at, m.len, e->n_frames - 1, &err), VT_OK);
    assert_int_equal(strcmp(kind, "UTILITY") == 0, o.has_utility);
    assert_int_equal(strcmp(kind, "REQ") == 0, o.n_outputs > 0);
    assert_int_equal(o.has_stats, !o.has_utility);
    wire_outputs_write(&c->again, c->line, &o);
    assert_again(c, m);
    c->n.outputs++;
}

static void check_dead(struct context *c, const struct wirelog_entry *e)
{
    assert_true(mp_span_is(e->frame[0], WIRE_DEAD));
    c->n.dead++;
}

/* ---- as JSON ---------------------------------------------------------- */

/* Python writes 1.0 where we write 1. */
static double number(const struct vt_node *n)
{
    return n->kind == VT_REAL ? n->u.real : (double)n->u.integer;
}

static void assert_same_tree(const struct vt_node *a, const struct vt_node *b)
{
    if (a->kind == VT_REAL || b->kind == VT_REAL) {
        assert_true(number(a) == number(b));
        return;
    }
    assert_int_equal(a->kind, b->kind);
    if (a->kind == VT_STR)
        assert_string_equal(a->u.str, b->u.str);
    else if (a->kind == VT_INT || a->kind == VT_BOOL)
        assert_true(a->kind == VT_BOOL ? a->u.boolean == b->u.boolean
                                       : a->u.integer == b->u.integer);
    if (a->kind != VT_LIST && a->kind != VT_MAP)
        return;
    assert_int_equal(a->n, b->n);
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->kind == VT_MAP)
            assert_string_equal(a->u.item[i].key, b->u.item[i].key);
        assert_same_tree(&a->u.item[i], &b->u.item[i]);
    }
}

/* What Python's msgpack made of the same bytes when they were captured. */
static bool check_json(struct context *c, const char *line, size_t len)
{
    struct wirelog_entry e;
    const struct vt_node *root, *ours, *theirs;
    struct vt_err err = {0};
    struct mp_span m;

    assert_int_equal(wirelog_entry_read(&e, &c->arena, line, len, 1, &err), VT_OK);
    assert_int_equal(vt_json_parse(&c->arena, line, len, 1, &root, &err), VT_OK);
    theirs = vt_get(root, "decoded");
    if (!theirs || theirs->kind == VT_NULL)
        return false;
    if (vt_get(theirs, "payload"))
        theirs = vt_get(theirs, "payload");
    /* Before the message: a type, or whose it is; after it: buffers. */
    m = e.frame[strcmp(e.sock, "output") != 0 && e.n_frames > 1];
    vt_buf_clear(&c->again);
    assert_true(mp_json(&c->again, m));
    assert_int_equal(
        vt_json_parse(&c->arena, c->again.data, c->again.len, 1, &ours, &err), VT_OK);
    assert_same_tree(ours, theirs);
    return true;
}

static void json_is_as_captured(void **state)
{
    const struct capture *cap = *state;
    struct context c = {0};
    struct vt_lines *lines;
    struct vt_err err = {0};
    char path[512], *line;
    size_t len;
    unsigned n = 0;

    snprintf(path, sizeof(path), "%s/cases/wire/%s", VT_TEST_DIR, cap->file);
    assert_int_equal(vt_lines_open(&lines, path, &err), VT_OK);
    for (;;) {
        assert_int_equal(vt_lines_next(lines, &line, &len, NULL, &err), VT_OK);
        if (!line)
            break;
        n += check_json(&c, line, len);
        vt_arena_reset(&c.arena);
    }
    assert_int_equal(n, cap->n.handshake + cap->n.registers + cap->n.adds +
                            cap->n.aborts + cap->n.utilities + cap->n.outputs);
    vt_lines_close(lines);
    vt_arena_free(&c.arena);
    vt_buf_free(&c.again);
}

/* ---- all of a capture ------------------------------------------------- */

static bool kind_is(const struct wirelog_entry *e, const char *kind)
{
    return strncmp(e->kind, kind, strlen(kind)) == 0;
}

static void check_input(struct context *c, const struct wirelog_entry *e)
{
    uint8_t type = e->frame[0].at[0];

    assert_int_equal(e->frame[0].len, 1);
    if (kind_is(e, "ADD") && type == WIRE_ADD)
        check_add(c, e->frame[1]);
    else if (kind_is(e, "ABORT") && type == WIRE_ABORT)
        check_abort(c, e->frame[1]);
    else if (kind_is(e, "UTILITY") && type == WIRE_UTILITY)
        check_utility(c, e->frame[1]);
    else
        fail_msg("message %s of type %u", e->kind, type);
}

static void check_entry(struct context *c, const struct wirelog_entry *e)
{
    struct mp_span last = e->frame[e->n_frames - 1];

    vt_buf_clear(&c->again);
    if (kind_is(e, "HELLO") || kind_is(e, "READY"))
        check_hello(c, last);
    else if (kind_is(e, "INIT"))
        check_init(c, last);
    else if (kind_is(e, "REGISTER"))
        check_register(c, last);
    else if (strcmp(e->sock, "input") == 0)
        check_input(c, e);
    else if (kind_is(e, "OUTPUTS/"))
        check_outputs(c, e);
    else if (kind_is(e, WIRE_DEAD))
        check_dead(c, e);
    else
        fail_msg("message of kind %s", e->kind);
}

static void every_message_comes_back(void **state)
{
    const struct capture *cap = *state;
    const struct wirelog_entry *e;
    struct context c = {.line = vt_wire_line_find(cap->line)};
    struct wirelog *log;
    struct vt_err err = {0};
    char path[512];

    snprintf(path, sizeof(path), "%s/cases/wire/%s", VT_TEST_DIR, cap->file);
    assert_int_equal(wirelog_open(&log, path, &err), VT_OK);
    for (;;) {
        assert_int_equal(wirelog_next(log, &e, &err), VT_OK);
        if (!e)
            break;
        check_entry(&c, e);
        vt_arena_reset(&c.arena);
    }
    assert_memory_equal(&c.n, &cap->n, sizeof(c.n));
    wirelog_close(log);
    vt_arena_free(&c.arena);
    vt_buf_free(&c.again);
}

int main(void)
{
    enum { N = VT_COUNT(captures) };
    struct CMUnitTest tests[2 * N];

    for (size_t i = 0; i < N; i++) {
        tests[i] = row(captures[i].file, every_message_comes_back, &captures[i]);
        tests[N + i] = row(captures[i].file, json_is_as_captured, &captures[i]);
    }
    return cmocka_run_group_tests_name("captures", tests, NULL, NULL);
}
