/* calls.c - utilities: what a frontend asks of an engine beside tokens. */
#include "wire/play/engines.h"

#include <string.h>

enum {
    MAX_LORAS = 4096,
    MAX_VERSION = 256, /* bytes: every message repeats it */
};

/* ---- arguments and answers -------------------------------------------- */

static struct mp_span argument(const struct wire_call *c, uint32_t i)
{
    struct mp_in in;

    mp_in_init(&in, c->args.at, c->args.len);
    if (mp_peek(&in) != MP_ARRAY || mp_array(&in) <= i)
        return (struct mp_span){0};
    while (i-- > 0)
        mp_skip(&in);
    return mp_raw(&in);
}

static bool is_true(struct mp_span value)
{
    struct mp_in in;

    mp_in_init(&in, value.at, value.len);
    return mp_peek(&in) == MP_BOOL && mp_bool(&in);
}

static int64_t integer(struct mp_span value, int64_t fallback)
{
    struct mp_in in;

    mp_in_init(&in, value.at, value.len);
    return mp_peek(&in) == MP_INT ? mp_i64(&in) : fallback;
}

static int answer_call(struct play_engines *k, struct rank *r, uint32_t client,
                       struct mp_span call_id, const char *failure,
                       const struct vt_buf *result, struct vt_err *err)
{
    struct wire_outputs o = {
        .has_utility = true,
        .call_id = call_id,
        .failure = wire_text(failure),
        .wave_complete = -1,
        .start_wave = -1,
    };

    if (result)
        o.result = (struct mp_span){(const uint8_t *)result->data, result->len};
    return engines_tell(k, r, client, &o, err);
}

/* The result is [type_info, value]: the value is what put() appends. */
static void open_result(struct vt_buf *b)
{
    vt_buf_clear(b);
    mp_put_array(b, 2);
    mp_put_nil(b);
}

/* ---- what they do ----------------------------------------------------- */

struct call {
    struct play_engines *k;
    struct rank *r;
    const struct wire_call *c;
    vt_ns now;
    struct vt_buf *result; /* [nil, ... : the value is to be appended */
    const char *failure;   /* set where it fails */
    bool held;             /* the answer comes later */
    struct vt_err *err;
};

static bool reset_cache(struct play_engines *k, struct rank *r, bool preempt, vt_ns now)
{
    double at = play_timestamp(k->p, now);
    const uint64_t *tags;
    uint32_t n;
    bool done = vt_engine_clear_cache(r->core, now, preempt, &tags, &n) == VT_OK;

    for (uint32_t i = 0; i < n; i++) {
        struct play_request *q = vt_driver_find(k->driver, tags[i]);

        if (q)
            play_request_event(q, WIRE_PREEMPTED, at);
    }
    return done;
}

static int hold_answer(struct call *u, bool clear, uint32_t level)
{
    struct rank *r = u->r;
    struct held_call h = {.client = u->c->client_index,
                          .id_len = u->c->call_id.len,
                          .clear = clear,
                          .level = level};

    if (vt_grow(&r->held, &r->cap_held, r->n_held + 1, sizeof(*r->held), u->err) !=
        VT_OK)
        return VT_ENOMEM;
    h.id = malloc(h.id_len + 1);
    if (!h.id)
        return vt_nomem(u->err);
    memcpy(h.id, u->c->call_id.at, h.id_len);
    r->held[r->n_held++] = h;
    u->held = true;
    return VT_OK;
}

/* mode abort: all requests end; wait: those that run go on to their ends; keep: all
 * stay where they are. New ones queue up meanwhile. */
static int pause_engine(struct call *u, struct mp_span mode, bool clear, uint32_t level)
{
    struct mp_span word = mp_text(mode);
    bool keep = mp_span_is(word, "keep"), wait = mp_span_is(word, "wait");
    int rc = VT_OK;

    if (word.at && !keep && !wait && !mp_span_is(word, "abort")) {
        u->failure = "Invalid pause mode";
        return VT_OK;
    }
    if (!keep && !wait)
        rc = engines_abort_all(u->k, u->r, UINT32_MAX, true, u->now, u->err);
    u->r->pause = keep ? VT_PAUSE_ALL : VT_PAUSE_NEW;
    vt_engine_pause(u->r->core, u->now, u->r->pause);
    return rc == VT_OK ? hold_answer(u, clear, level) : rc;
}

static int do_pause(struct call *u)
{
    struct mp_span clear = argument(u->c, 1);

    return pause_engine(u, argument(u->c, 0), mp_is_nil(clear) || is_true(clear), 0);
}

static int do_sleep(struct call *u)
{
    int64_t level = integer(argument(u->c, 0), 1);

    return pause_engine(u, argument(u->c, 1), level >= 1,
                        level < 0   ? 0
                        : level > 2 ? 2
                                    : (uint32_t)level);
}

/* What is due by now is done first, as a paused engine does it: or what it kept would
 * run on from when it was paused. */
static int run_again(struct call *u)
{
    int rc = vt_driver_catch_up(u->k->driver, u->r->number, u->now, u->err);

    u->r->pause = VT_RUN;
    vt_engine_pause(u->r->core, u->now, VT_RUN);
    return rc;
}

static int do_resume(struct call *u)
{
    mp_put_nil(u->result);
    return run_again(u);
}

/* What was put away comes back by tags, or all at once; "scheduling" alone brings back
 * nothing. A tag that is not away leaves all as it is. */
static void bring_back(struct rank *r, struct mp_span tags)
{
    bool weights = false, cache = false;
    struct mp_in in;

    mp_in_init(&in, tags.at, tags.len);
    if (mp_peek(&in) != MP_ARRAY) {
        r->weights_away = r->cache_away = false;
        return;
    }
    for (uint32_t n = mp_array(&in); n > 0 && !in.bad; n--) {
        struct mp_span tag = mp_str(&in);

        weights |= mp_span_is(tag, "weights");
        cache |= mp_span_is(tag, "kv_cache");
    }
    if ((weights && !r->weights_away) || (cache && !r->cache_away))
        return;
    r->weights_away &= !weights;
    r->cache_away &= !cache;
}

static int do_wake(struct call *u)
{
    bool awake;
    int rc = VT_OK;

    bring_back(u->r, argument(u->c, 0));
    awake = !u->r->weights_away && !u->r->cache_away;
    if (awake)
        rc = run_again(u);
    if (u->r->line->minor >= 31) /* since then it is told */
        mp_put_bool(u->result, awake);
    else
        mp_put_nil(u->result);
    return rc;
}

static int do_is_sleeping(struct call *u)
{
    mp_put_bool(u->result,
                u->r->pause != VT_RUN || u->r->weights_away || u->r->cache_away);
    return VT_OK;
}

static int do_is_paused(struct call *u)
{
    mp_put_bool(u->result, u->r->pause != VT_RUN);
    return VT_OK;
}

static int do_reset_prefix_cache(struct call *u)
{
    bool done = reset_cache(u->k, u->r, is_true(argument(u->c, 0)), u->now);

    mp_put_bool(u->result, done);
    return VT_OK;
}

static int do_tasks(struct call *u)
{
    mp_put_array(u->result, 1);
    mp_put_str(u->result, "generate");
    return VT_OK;
}

static int do_nothing(struct call *u)
{
    mp_put_nil(u->result);
    return VT_OK;
}

/* Each worker answers None. */
static int do_collective_rpc(struct call *u)
{
    uint32_t n = u->k->p->c->tensor_parallel_size;

    mp_put_array(u->result, n);
    while (n-- > 0)
        mp_put_nil(u->result);
    return VT_OK;
}

/* ---- adapters --------------------------------------------------------- */

static size_t lora_at(const struct rank *r, int64_t id)
{
    size_t i = 0;

    while (i < r->n_loras && r->lora[i] != id)
        i++;
    return i;
}

static int do_add_lora(struct call *u)
{
    struct wire_lora l;
    struct rank *r = u->r;

    if (wire_lora_read(&l, argument(u->c, 0), NULL) != VT_OK || !l.name.at) {
        u->failure = "not a LoRA request";
        return VT_OK;
    }
    if (lora_at(r, l.id) == r->n_loras && r->n_loras >= MAX_LORAS) {
        u->failure = "No free lora slots";
        return VT_OK;
    }
    if (lora_at(r, l.id) == r->n_loras) {
        if (vt_grow(&r->lora, &r->cap_loras, r->n_loras + 1, sizeof(*r->lora),
                    u->err) != VT_OK)
            return VT_ENOMEM;
        r->lora[r->n_loras++] = l.id;
    }
    mp_put_bool(u->result, true);
    return VT_OK;
}

static int do_remove_lora(struct call *u)
{
    struct rank *r = u->r;
    size_t i = lora_at(r, integer(argument(u->c, 0), -1));
    bool found = i < r->n_loras;

    if (found)
        r->lora[i] = r->lora[--r->n_loras];
    mp_put_bool(u->result, found);
    return VT_OK;
}

static int do_pin_lora(struct call *u)
{
    size_t i = lora_at(u->r, integer(argument(u->c, 0), -1));

    mp_put_bool(u->result, i < u->r->n_loras);
    return VT_OK;
}

static int do_list_loras(struct call *u)
{
    mp_put_array(u->result, (uint32_t)u->r->n_loras);
    for (size_t i = 0; i < u->r->n_loras; i++)
        mp_put_i64(u->result, u->r->lora[i]);
    return VT_OK;
}

/* ---- weights ---------------------------------------------------------- */

struct mp_span engines_weight_version(const struct rank *r)
{
    static const char unset[] = "\xa7"
                                "default";

    if (r->weight_version.len == 0)
        return (struct mp_span){(const uint8_t *)unset, sizeof(unset) - 1};
    return (struct mp_span){(const uint8_t *)r->weight_version.data,
                            r->weight_version.len};
}

static int do_set_weight_version(struct call *u)
{
    struct mp_span version = mp_text(argument(u->c, 0));
    struct vt_buf *b = &u->r->weight_version;

    if (!version.at || version.len > MAX_VERSION) {
        u->failure = "a weight version is a short text";
        return VT_OK;
    }
    vt_buf_clear(b);
    mp_put_strn(b, version.at, version.len);
    mp_put_nil(u->result);
    return b->failed ? vt_nomem(u->err) : VT_OK;
}

static int do_get_weight_version(struct call *u)
{
    mp_put_raw(u->result, engines_weight_version(u->r));
    return VT_OK;
}

/* A twin has no weights: each worker has a sum of none. */
static int do_weight_checksums(struct call *u)
{
    uint32_t n = u->k->p->c->tensor_parallel_size;

    mp_put_array(u->result, n);
    while (n-- > 0)
        mp_put_map(u->result, 0);
    return VT_OK;
}

/* ---- the table -------------------------------------------------------- */

/* To add one: write a function, add a row. */
static const struct {
    const char *method;
    int (*run)(struct call *u);
} calls[] = {
    {"get_supported_tasks", do_tasks},
    {"is_sleeping", do_is_sleeping},
    {"is_scheduler_paused", do_is_paused},
    {"reset_prefix_cache", do_reset_prefix_cache},
    {"reset_mm_cache", do_nothing},
    {"reset_encoder_cache", do_nothing},
    {"profile", do_nothing},
    {"sleep", do_sleep},
    {"wake_up", do_wake},
    {"pause_scheduler", do_pause},
    {"resume_scheduler", do_resume},
    {"execute_dummy_batch", do_nothing},
    {"add_lora", do_add_lora},
    {"remove_lora", do_remove_lora},
    {"pin_lora", do_pin_lora},
    {"list_loras", do_list_loras},
    {"collective_rpc", do_collective_rpc},
    {"set_weight_version", do_set_weight_version},
    {"get_weight_version", do_get_weight_version},
    {"compute_weight_checksums", do_weight_checksums},
};

static int answer_failure(struct call *u)
{
    char message[256];
    int len = u->c->method.len < 100 ? (int)u->c->method.len : 100;
    bool stopping = vt_driver_draining(u->k->driver);

    if (stopping)
        (void)snprintf(message, sizeof(message), "Server shutting down");
    else
        (void)snprintf(message, sizeof(message), "Call to %.*s method failed: %s", len,
                       (const char *)u->c->method.at, u->failure);
    play_complain(u->k->p, &u->k->complaints, "utility %.*s: %s", len,
                  (const char *)u->c->method.at,
                  stopping ? "refused, the engine is stopping" : u->failure);
    return answer_call(u->k, u->r, u->c->client_index, u->c->call_id, message, NULL,
                       u->err);
}

int engines_call(struct play_engines *k, struct rank *r, const struct wire_call *c,
                 vt_ns now, struct vt_err *err)
{
    struct call u = {.k = k, .r = r, .c = c, .now = now, .err = err};
    struct vt_buf result = {0};
    int (*run)(struct call *u) = NULL;
    int rc = VT_OK;

    u.result = &result;
    open_result(&result);
    for (size_t i = 0; i < VT_COUNT(calls) && !run; i++)
        if (mp_span_is(c->method, calls[i].method))
            run = calls[i].run;
    if (vt_driver_draining(k->driver))
        u.failure = "stopping";
    else if (run)
        rc = run(&u);
    else
        u.failure = "the engine has no such method";
    if (rc == VT_OK && u.failure)
        rc = answer_failure(&u);
    else if (rc == VT_OK && !u.held)
        rc = answer_call(k, r, c->client_index, c->call_id, NULL, &result, err);
    vt_buf_free(&result);
    return rc;
}

int engines_answer_held(struct play_engines *k, struct rank *r, vt_ns now,
                        struct vt_err *err)
{
    struct vt_buf result = {0};
    int rc = VT_OK;

    if (r->n_held == 0 || vt_engine_due(r->core) != VT_NEVER || r->replays.n > 0)
        return VT_OK; /* not at rest yet */
    open_result(&result);
    mp_put_nil(&result);
    for (size_t i = 0; i < r->n_held && rc == VT_OK; i++) {
        struct held_call *h = &r->held[i];

        if (h->clear)
            (void)reset_cache(k, r, true, now);
        if (h->level > 0)
            r->weights_away = r->cache_away = true;
        rc = answer_call(k, r, h->client,
                         (struct mp_span){(const uint8_t *)h->id, h->id_len}, NULL,
                         &result, err);
    }
    engines_drop_held(r);
    vt_buf_free(&result);
    return rc;
}

void engines_drop_held(struct rank *r)
{
    for (size_t i = 0; i < r->n_held; i++)
        free(r->held[i].id);
    r->n_held = 0;
}
