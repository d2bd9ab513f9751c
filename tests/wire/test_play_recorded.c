/* What real frontends sent (tests/cases/wire) is sent again, byte by byte, and answered
 * in the shape of the real engine's answers: the same types at the same places, the
 * same keys, nil where it has nil. Values are our own. */
#include "play_harness.h"

#include "wire/tap/wirelog.h"

static const struct capture {
    const char *name, *file, *frontend, *line;
    bool told; /* the engine is told the line */
    uint32_t adds, aborts, calls;
    uint32_t lost; /* requests that the real engine failed or never answered */
} captures[] = {
    {"Python 0.26", "wire-capture-0.26.0.jsonl.gz", "python", "0.26", false, 69, 6, 12,
     0},
    {"Rust 0.26", "wire-capture-0.26.0.jsonl.gz", "rust", "0.26", true, 61, 8, 10, 3},
    {"Python 0.32", "wire-capture-0.32.0.jsonl.gz", "python", "0.32", true, 69, 6, 12,
     0},
    {"Rust 0.32", "wire-capture-0.32.0.jsonl.gz", "rust", "0.32", true, 58, 5, 10, 1},
    {"Python 0.26, short of blocks", "wire-capture-0.26.0-preempt-dead.jsonl.gz",
     "python", "0.26", true, 8, 0, 2, 0},
    {"Rust 0.26, short of blocks", "wire-capture-0.26.0-preempt-dead.jsonl.gz", "rust",
     "0.26", true, 8, 0, 0, 0},
    {"Rust 0.26 under a supervisor", "wire-capture-0.26.0-rust-supervised.jsonl.gz",
     "rust-supervised", "0.26", false, 2, 0, 3, 0},
};

/* ---- shapes ----------------------------------------------------------- */

static void put_shape(struct vt_buf *b, struct mp_in *in);

/* A list of numbers is one whatever its length. */
static void put_array_shape(struct vt_buf *b, struct mp_in *in)
{
    struct mp_in ahead = *in;
    uint32_t n = mp_array(&ahead);
    bool numbers = true;

    for (uint32_t i = 0; i < n && numbers; i++) {
        numbers = mp_peek(&ahead) == MP_INT;
        mp_skip(&ahead);
    }
    n = mp_array(in);
    vt_buf_str(b, numbers ? "[i*" : "[");
    for (uint32_t i = 0; i < n; i++) {
        if (numbers) {
            mp_skip(in);
            continue;
        }
        put_shape(b, in);
        vt_buf_str(b, ",");
    }
    vt_buf_str(b, "]");
}

static void put_map_shape(struct vt_buf *b, struct mp_in *in)
{
    uint32_t n = mp_map(in);

    vt_buf_str(b, "{");
    for (uint32_t i = 0; i < n; i++) {
        struct mp_span key = mp_str(in);

        vt_buf_add(b, key.at, key.len);
        vt_buf_str(b, ":");
        put_shape(b, in);
        vt_buf_str(b, ",");
    }
    vt_buf_str(b, "}");
}

static void put_shape(struct vt_buf *b, struct mp_in *in)
{
    static const char letter[] = "?nbifsba{x"; /* by enum mp_type */
    enum mp_type type = mp_peek(in);
    char text[2] = {letter[type], '\0'};

    if (type == MP_ARRAY) {
        put_array_shape(b, in);
    } else if (type == MP_MAP) {
        put_map_shape(b, in);
    } else {
        vt_buf_str(b, text);
        mp_skip(in);
    }
    assert_null(in->bad);
}

static char *shape_of(struct vt_arena *a, struct mp_span value)
{
    struct vt_buf b = {0};
    struct mp_in in;
    char *copy;

    mp_in_init(&in, value.at, value.len);
    put_shape(&b, &in);
    copy = vt_arena_copy(a, b.data, b.len);
    assert_non_null(copy);
    vt_buf_free(&b);
    return copy;
}

/* ---- what an engine answered ------------------------------------------ */

enum { MAX_FIELDS = 18, FINISH = 5, STOP = 6, EVENTS = 7, MAX_SHAPES = 32 };

struct rows { /* of one request */
    const char *id;
    bool first, later; /* there was such a row */
    const char *shape[2][MAX_FIELDS];
    uint32_t n_fields;
    int finish;
};

struct answer { /* to one call */
    const char *id, *shape;
};

struct answers {
    struct vt_arena arena;
    struct rows rows[128];
    uint32_t n_rows;
    const char *around[MAX_SHAPES]; /* shapes of messages without their rows */
    uint32_t n_around;
    struct answer call[32];
    uint32_t n_calls;
};

static struct rows *rows_of(struct answers *x, struct mp_span id)
{
    for (uint32_t i = 0; i < x->n_rows; i++)
        if (mp_span_is(id, x->rows[i].id))
            return &x->rows[i];
    assert_true(x->n_rows < VT_COUNT(x->rows));
    x->rows[x->n_rows] = (struct rows){
        .id = vt_arena_copy(&x->arena, (const char *)id.at, id.len), .finish = -1};
    return &x->rows[x->n_rows++];
}

static void keep_row(struct answers *x, struct mp_in *in)
{
    uint32_t n = mp_array(in);
    struct rows *r = rows_of(x, mp_str(in));
    bool first = !r->first;

    assert_true(n <= MAX_FIELDS);
    for (uint32_t i = 1; i < n; i++) {
        struct mp_span value = mp_raw(in);
        struct mp_in at;

        mp_in_init(&at, value.at, value.len);
        if (i == FINISH && mp_peek(&at) == MP_INT)
            r->finish = (int)mp_i64(&at);
        /* Events of a later row are those of a preemption, which we may not have. */
        if (first || !r->later)
            r->shape[!first][i] = shape_of(&x->arena, value);
    }
    r->n_fields = n;
    r->first = true;
    r->later |= !first;
}

static void keep_around(struct answers *x, const char *shape)
{
    for (uint32_t i = 0; i < x->n_around; i++)
        if (strcmp(x->around[i], shape) == 0)
            return;
    assert_true(x->n_around < MAX_SHAPES);
    x->around[x->n_around++] = shape;
}

static void keep_call(struct answers *x, struct mp_span value)
{
    struct vt_buf id = {0};
    struct mp_in in;

    mp_in_init(&in, value.at, value.len);
    assert_int_equal(mp_array(&in), 3);
    assert_true(mp_json(&id, mp_raw(&in)));
    assert_true(x->n_calls < VT_COUNT(x->call));
    x->call[x->n_calls++] = (struct answer){
        .id = vt_arena_copy(&x->arena, id.data, id.len),
        .shape = shape_of(&x->arena, value),
    };
    vt_buf_free(&id);
}

static void keep_message(struct answers *x, const void *bytes, size_t len)
{
    struct vt_buf around = {0};
    struct mp_in in;
    uint32_t n, rows;

    mp_in_init(&in, bytes, len);
    n = mp_array(&in);
    mp_skip(&in);
    rows = mp_array(&in);
    for (uint32_t i = 0; i < rows; i++)
        keep_row(x, &in);
    vt_buf_printf(&around, "%u:", n);
    for (uint32_t i = 2; i < n; i++) {
        struct mp_span value = mp_raw(&in);

        if (i == 4 && !mp_is_nil(value))
            keep_call(x, value);
        else
            vt_buf_str(&around, shape_of(&x->arena, value));
        vt_buf_str(&around, ",");
    }
    assert_null(in.bad);
    keep_around(x, vt_arena_copy(&x->arena, around.data, around.len));
    vt_buf_free(&around);
}

/* ---- sending what was sent -------------------------------------------- */

struct replay {
    struct stage *s;
    const struct capture *c;
    struct answers *real, *ours;
    char gone[32][64]; /* ids that were aborted */
    uint32_t n_gone, adds, aborts, calls;
};

static bool is_gone(const struct replay *r, const char *id)
{
    for (uint32_t i = 0; i < r->n_gone; i++)
        if (strcmp(r->gone[i], id) == 0)
            return true;
    return false;
}

static const struct vt_frontend_message *hear_one(struct replay *r)
{
    const struct vt_frontend_message *m = next(r->s);

    keep_message(r->ours, m->frame[0].at, m->frame[0].len);
    return m;
}

/* Until every request that was not aborted has ended. */
static void hear_all(struct replay *r)
{
    uint32_t ended;

    do {
        ended = r->n_gone;
        for (size_t i = 0; i < r->s->h.n; i++) {
            const struct told *t = &r->s->h.told[i];

            ended += t->finish[0] != '\0' && !is_gone(r, t->id);
        }
        if (ended < r->adds)
            (void)hear_one(r);
    } while (ended < r->adds);
}

/* A client goes away after it has got something. */
static void before_abort(struct replay *r, struct mp_span payload)
{
    struct vt_arena a = {0};
    struct vt_err err = {0};
    struct mp_span *id;
    uint32_t n;

    assert_int_equal(wire_abort_read(&id, &n, &a, payload.at, payload.len, &err),
                     VT_OK);
    for (uint32_t i = 0; i < n; i++) {
        char *name = r->gone[r->n_gone];

        assert_true(r->n_gone < VT_COUNT(r->gone) && id[i].len < 64);
        (void)snprintf(name, 64, "%.*s", (int)id[i].len, (const char *)id[i].at);
        while (told_of(&r->s->h, name) == NULL)
            (void)hear_one(r);
        r->n_gone++;
    }
    vt_arena_free(&a);
}

static void send_entry(struct replay *r, const struct wirelog_entry *e)
{
    struct vt_bytes frame[4];

    assert_true(e->n_frames >= 2 && e->n_frames <= VT_COUNT(frame));
    for (uint32_t i = 0; i < e->n_frames; i++)
        frame[i] = (struct vt_bytes){e->frame[i].at, e->frame[i].len};
    if (strcmp(e->kind, "UTILITY") == 0)
        hear_all(r);
    else if (strcmp(e->kind, "ABORT") == 0)
        before_abort(r, e->frame[1]);
    send_frames(r->s, 0, frame, e->n_frames);
    r->adds += strcmp(e->kind, "ADD") == 0;
    r->aborts += strcmp(e->kind, "ABORT") == 0;
    if (strcmp(e->kind, "UTILITY") == 0) {
        r->calls++;
        while (!hear_one(r)->has_utility)
            ;
    }
}

static void take_entry(struct replay *r, const struct wirelog_entry *e)
{
    if (strcmp(e->frontend, r->c->frontend) != 0)
        return;
    if (strcmp(e->sock, "input") == 0 && strcmp(e->dir, "F>E") == 0)
        send_entry(r, e);
    else if (strncmp(e->kind, "OUTPUTS", 7) == 0)
        keep_message(r->real, e->frame[0].at, e->frame[0].len);
}

static void replay(struct replay *r)
{
    char path[512];
    struct wirelog *log;
    const struct wirelog_entry *e;
    struct vt_err err = {0};

    (void)snprintf(path, sizeof(path), VT_TEST_DIR "/cases/wire/%s", r->c->file);
    if (wirelog_open(&log, path, &err) != VT_OK)
        fail_msg("%s", err.msg);
    while (wirelog_next(log, &e, &err) == VT_OK && e != NULL)
        take_entry(r, e);
    hear_all(r);
    wirelog_close(log);
    assert_int_equal(r->adds, r->c->adds);
    assert_int_equal(r->aborts, r->c->aborts);
    assert_int_equal(r->calls, r->c->calls);
}

/* ---- comparing -------------------------------------------------------- */

static void compare_rows(const struct rows *real, const struct rows *ours)
{
    assert_int_equal(real->n_fields, ours->n_fields);
    for (int later = 0; later < 2; later++)
        for (uint32_t i = 1; i < real->n_fields; i++) {
            const char *a = real->shape[later][i], *b = ours->shape[later][i];

            if (a == NULL || b == NULL || i == FINISH || i == STOP ||
                (i == EVENTS && later))
                continue;
            if (strcmp(a, b) != 0)
                fail_msg("%s: field %u of its %s row is %s, really %s", ours->id, i,
                         later ? "second" : "first", b, a);
        }
}

static void compare_all_rows(const struct answers *real, const struct answers *ours,
                             uint32_t lost)
{
    uint32_t compared = 0;

    for (uint32_t i = 0; i < ours->n_rows; i++) {
        const struct rows *o = &ours->rows[i], *r = NULL;

        for (uint32_t k = 0; k < real->n_rows; k++)
            if (strcmp(real->rows[k].id, o->id) == 0)
                r = &real->rows[k];
        /* A grammar that the real engine could not read has no first row. */
        if (r == NULL || r->finish == WIRE_ERROR)
            continue;
        compare_rows(r, o);
        compared++;
    }
    assert_int_equal(compared + lost, ours->n_rows);
}

static void compare_around(const struct answers *real, const struct answers *ours)
{
    for (uint32_t i = 0; i < ours->n_around; i++) {
        bool found = false;

        for (uint32_t k = 0; k < real->n_around; k++)
            found |= strcmp(ours->around[i], real->around[k]) == 0;
        if (!found)
            fail_msg("no real message is like %s but %s", ours->around[i],
                     real->around[0]);
    }
}

/* Workers are said to have every method: the one that the real ones lack is answered
 * as all others are. */
static void compare_calls(const struct answers *real, const struct answers *ours)
{
    assert_int_equal(real->n_calls, ours->n_calls);
    for (uint32_t i = 0; i < real->n_calls; i++) {
        assert_string_equal(real->call[i].id, ours->call[i].id);
        if (strcmp(real->call[i].shape, "[i,s,n,]") == 0)
            assert_string_equal(ours->call[i].shape, "[i,n,[n,[n,],],]");
        else
            assert_string_equal(real->call[i].shape, ours->call[i].shape);
    }
}

static void run_capture(struct stage *s, const struct capture *c, struct answers *x)
{
    struct replay r = {.s = s, .c = c, .real = x, .ours = x + 1};

    s->model = "linear:base=300";
    s->c.vocab_size = 4092;
    s->c.line = c->told ? vt_wire_line_find(c->line) : NULL;
    s->fc.line = vt_wire_line_find(c->line);
    stage_open(s);
    replay(&r);
    compare_all_rows(r.real, r.ours, c->lost);
    compare_around(r.real, r.ours);
    compare_calls(r.real, r.ours);
    for (size_t i = 0; i < s->h.n; i++)
        if (!is_gone(&r, s->h.told[i].id))
            assert_true(strcmp(s->h.told[i].finish, "length") == 0 ||
                        strcmp(s->h.told[i].finish, "stop") == 0);
}

struct both {
    const struct capture *c;
    struct stage *s;
    struct answers answers[2];
};

static int setup(void **state)
{
    struct both *both = calloc(1, sizeof(*both));
    void *stage;

    if (both == NULL || stage_setup(&stage) != 0)
        return -1;
    both->c = *state;
    both->s = stage;
    *state = both;
    return 0;
}

static int teardown(void **state)
{
    struct both *b = *state;
    void *stage = b->s;

    vt_arena_free(&b->answers[0].arena);
    vt_arena_free(&b->answers[1].arena);
    free(b);
    return stage_teardown(&stage);
}

static void is_answered_in_the_same_shape(void **state)
{
    struct both *b = *state;

    run_capture(b->s, b->c, b->answers);
}

int main(void)
{
    struct CMUnitTest tests[VT_COUNT(captures)];

    for (size_t i = 0; i < VT_COUNT(captures); i++) {
        union {
            const void *in;
            void *out;
        } p = {&captures[i]};

        tests[i] = (struct CMUnitTest){
            .name = captures[i].name,
            .test_func = is_answered_in_the_same_shape,
            .setup_func = setup,
            .teardown_func = teardown,
            .initial_state = p.out,
        };
    }
    return cmocka_run_group_tests_name("play_recorded", tests, NULL, NULL);
}
