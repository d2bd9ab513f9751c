/* blis.c - BLIS's batch formation and KV accounting, for differential runs.
 *
 * Known differences from vLLM, all kept on purpose: a preempted request starts over
 * and produces its output again; blocks get their content when allocated; freed
 * blocks all go to the back of the list; a prompt that is wholly cached is not
 * computed at all and does not hold its blocks; of blocks with equal content only the
 * latest is found, and when any of them is taken for something else, none; what a step
 * ends has ended when the step starts. */
#include "core/rules.h"

#include <assert.h>

struct job { /* one request */
    uint64_t tag;
    uint32_t prompt, output;
    uint32_t progress; /* prompt tokens done and tokens produced */
    uint32_t computed; /* what progress becomes when a prompt step ends */
    uint32_t now;      /* tokens scheduled in this step */
    uint32_t held;     /* tokens its blocks hold */
    uint32_t room;     /* tokens they can hold */
    uint32_t origin;   /* token number of its first block's first token */
    uint32_t n_blocks;
    uint32_t *blocks;
    size_t cap_blocks;
    struct content content;
    bool restarted;
    bool known; /* from prepare() to its end */
};

struct blis {
    struct vt_engine_config c;
    struct pool pool;
    struct job *job;
    size_t n_jobs, cap_jobs;
    uint32_t *spare;
    size_t n_spare, cap_spare;
    uint32_t *running;
    uint32_t n_running;
    uint32_t *queue; /* ring */
    size_t cap_queue, head, n_waiting;
    struct vt_step_plan plan;
    size_t cap_preempted;
    struct vt_update update;
    size_t cap_rows, cap_first;
    uint64_t looked_up, found; /* blocks, since the last update */
    bool failed;
};

static void blis_close(void *blis)
{
    struct blis *b = blis;

    if (!b)
        return;
    for (size_t i = 0; i < b->n_jobs; i++) {
        free(b->job[i].blocks);
        content_free(&b->job[i].content);
    }
    pool_free(&b->pool);
    free(b->job);
    free(b->spare);
    free(b->running);
    free(b->queue);
    free(b->plan.item);
    free(b->plan.preempted);
    free(b->update.row);
    free(b->update.first);
    free(b);
}

static int blis_open(void **out, const struct vt_engine_config *c, struct vt_err *err)
{
    struct blis *b = calloc(1, sizeof(*b));

    *out = NULL;
    if (!b)
        return vt_nomem(err);
    b->c = *c;
    b->running = malloc(c->max_num_seqs * sizeof(*b->running));
    b->plan.item = malloc(c->max_num_seqs * sizeof(*b->plan.item));
    /* BLIS has no null block; one more keeps the pool's numbers from 1. */
    if (!b->running || !b->plan.item ||
        pool_init(&b->pool, c->num_gpu_blocks + 1, 1, true, c->kv_events, NULL) !=
            VT_OK) {
        blis_close(b);
        return vt_nomem(err);
    }
    b->pool.latest_only = true;
    *out = b;
    return VT_OK;
}

/* ---- the queue -------------------------------------------------------- */

/* Room for every known job, so that pushing can't fail. The ring is laid out anew. */
static int reserve_queue(struct blis *b, struct vt_err *err)
{
    size_t cap = b->cap_queue > 0 ? 2 * b->cap_queue : 64;
    uint32_t *q;

    if (b->n_jobs <= b->cap_queue)
        return VT_OK;
    q = malloc(cap * sizeof(*q));
    if (!q)
        return vt_nomem(err);
    for (size_t i = 0; i < b->n_waiting; i++)
        q[i] = b->queue[(b->head + i) & (b->cap_queue - 1)];
    free(b->queue);
    b->queue = q;
    b->cap_queue = cap;
    b->head = 0;
    return VT_OK;
}

/* On failure the slot stays among the spare ones, and nothing else has changed. */
static int blis_prepare(void *blis, const struct vt_request *r, uint32_t *slot,
                        struct vt_err *err)
{
    struct blis *b = blis;
    struct job *j, old;

    if (b->n_spare == 0) {
        if (vt_grow(&b->job, &b->cap_jobs, b->n_jobs + 1, sizeof(*b->job), err) !=
                VT_OK ||
            vt_grow(&b->spare, &b->cap_spare, b->n_jobs + 1, sizeof(*b->spare), err) !=
                VT_OK)
            return VT_ENOMEM;
        memset(&b->job[b->n_jobs], 0, sizeof(*b->job));
        b->spare[b->n_spare++] = (uint32_t)b->n_jobs++;
    }
    *slot = b->spare[b->n_spare - 1];
    j = &b->job[*slot];
    if (content_init(&j->content, r, err) != VT_OK || reserve_queue(b, err) != VT_OK)
        return VT_ENOMEM;
    b->n_spare--;
    old = *j;
    *j = (struct job){
        .tag = r->tag,
        .prompt = r->prompt_tokens,
        .output = r->max_tokens,
        .blocks = old.blocks,
        .cap_blocks = old.cap_blocks,
        .content = old.content,
        .known = true,
    };
    return VT_OK;
}

static void blis_enqueue(void *blis, uint32_t slot)
{
    struct blis *b = blis;

    assert(b->n_waiting < b->cap_queue);
    b->queue[(b->head + b->n_waiting++) & (b->cap_queue - 1)] = slot;
}

static bool blis_has_requests(const void *blis)
{
    const struct blis *b = blis;

    return b->n_running > 0 || b->n_waiting > 0;
}

static void blis_count(const void *blis, uint32_t *waiting, uint32_t *running)
{
    const struct blis *b = blis;

    *waiting = (uint32_t)b->n_waiting;
    *running = b->n_running;
}

static struct pool *blis_pool(void *blis)
{
    return &((struct blis *)blis)->pool;
}

/* ---- blocks ----------------------------------------------------------- */

static uint32_t find_cached(struct blis *b, struct job *j)
{
    uint32_t n = 0, max = j->prompt / b->c.block_size;
    uint64_t key;

    for (; b->c.enable_prefix_caching && n < max; n++) {
        if (!content_key(&j->content, n, b->c.block_size, &key)) {
            b->failed = true;
            return 0;
        }
        if (pool_lookup(&b->pool, key, 0) == 0)
            break;
    }
    return n;
}

/* The last block is full and gets its content, unless the job's blocks don't start at
 * its prompt. */
static void key_last(struct blis *b, struct job *j)
{
    uint64_t key;

    if (j->origin != 0 || !b->c.enable_prefix_caching)
        return;
    if (!content_key(&j->content, j->n_blocks - 1, b->c.block_size, &key)) {
        b->failed = true;
        return;
    }
    if (b->pool.log_events && pool_lookup(&b->pool, key, 0) == 0)
        pool_stored(&b->pool, (struct vt_kv_event){
                                  .tag = j->tag, .index = j->n_blocks - 1, .key = key});
    pool_register(&b->pool, j->blocks[j->n_blocks - 1], key, 0);
}

/* Asks for the memory of the blocks' keys that n more tokens fill, so that a large pool
 * costs one wait and not one for each block. */
static void expect_keys(struct blis *b, struct job *j, uint32_t n)
{
    uint32_t bs = b->c.block_size;
    uint64_t key;

    if (j->origin != 0 || !b->c.enable_prefix_caching)
        return;
    for (uint32_t i = j->held / bs; i < (j->held + n) / bs; i++)
        if (content_key(&j->content, i, bs, &key))
            pool_expect(&b->pool, key, 0);
}

/* Stores n more tokens; the caller knows that there are blocks for them. */
static void store(struct blis *b, struct job *j, uint32_t n)
{
    if (n > b->c.block_size)
        expect_keys(b, j, n);
    while (n > 0) {
        uint32_t take;

        if (j->held == j->room) {
            if (vt_grow(&j->blocks, &j->cap_blocks, (size_t)j->n_blocks + 1,
                        sizeof(*j->blocks), NULL) != VT_OK) {
                b->failed = true;
                return;
            }
            j->blocks[j->n_blocks++] = pool_take(&b->pool);
            j->room += b->c.block_size;
            b->looked_up++;
        }
        take = n < j->room - j->held ? n : j->room - j->held;
        j->held += take;
        n -= take;
        if (j->held == j->room)
            key_last(b, j);
    }
}

/* False: too few free blocks, nothing changed. */
static bool extend(struct blis *b, struct job *j, uint32_t n)
{
    uint32_t bs = b->c.block_size, spare = j->room - j->held;

    if (n < spare) { /* most tokens: the last block has room and stays unfinished */
        j->held += n;
        if (n + 1 == spare && !j->content.block_key)
            expect_keys(b, j, 1); /* for the next token, which fills it */
        return true;
    }
    if (n > spare && (n - spare + bs - 1) / bs > b->pool.n_free)
        return false;
    store(b, j, n);
    return true;
}

static bool claim(struct blis *b, struct job *j, uint32_t n_cached, uint32_t n)
{
    uint32_t bs = b->c.block_size, n_free = 0;
    uint64_t key;

    if (n == 0) { /* wholly cached: BLIS holds nothing for it */
        j->origin = n_cached * bs;
        return true;
    }
    if (vt_grow(&j->blocks, &j->cap_blocks, (size_t)n_cached + 1, sizeof(*j->blocks),
                NULL) != VT_OK) {
        b->failed = true;
        return false;
    }
    for (uint32_t i = 0; i < n_cached && content_key(&j->content, i, bs, &key); i++) {
        j->blocks[i] = pool_lookup(&b->pool, key, 0);
        n_free += b->pool.block[j->blocks[i]].ref == 0;
    }
    if ((n + bs - 1) / bs + n_free > b->pool.n_free)
        return false;
    for (uint32_t i = 0; i < n_cached; i++)
        pool_touch(&b->pool, j->blocks[i]);
    b->found += n_cached;
    b->looked_up += n_cached;
    j->n_blocks = n_cached;
    j->held = j->room = n_cached * bs;
    store(b, j, n);
    return true;
}

static void release(struct blis *b, struct job *j)
{
    pool_give_back(&b->pool, j->blocks, j->n_blocks);
    j->n_blocks = j->held = j->room = j->origin = 0;
}

static void end_job(struct blis *b, uint32_t slot)
{
    release(b, &b->job[slot]);
    b->job[slot].known = false;
    b->spare[b->n_spare++] = slot;
}

/* ---- one step --------------------------------------------------------- */

static void plan_add(struct blis *b, uint32_t slot, uint8_t origin)
{
    struct job *j = &b->job[slot];
    struct vt_step_plan *p = &b->plan;
    bool prefill = j->progress < j->prompt;

    p->item[p->n++] = (struct vt_item){
        .tag = j->tag,
        .slot = slot,
        .tokens = j->now,
        .computed = origin == VT_WAS_RUNNING ? j->progress : j->computed - j->now,
        .known = j->prompt,
        .prompt_tokens = j->prompt,
        .origin = origin,
        .prefill = prefill,
        .samples = true,
    };
    if (prefill) {
        p->n_prefills++;
        p->prefill_tokens += j->now;
    } else {
        p->n_decodes++;
        p->decode_tokens += j->now;
        p->decode_ctx += j->progress;
    }
}

static void preempt_last(struct blis *b)
{
    uint32_t slot = b->running[--b->n_running];
    struct job *j = &b->job[slot];
    struct vt_step_plan *p = &b->plan;

    release(b, j);
    j->progress = j->computed = j->now = 0;
    j->restarted = true;
    b->head = (b->head - 1) & (b->cap_queue - 1);
    b->queue[b->head] = slot;
    b->n_waiting++;
    if (vt_grow(&p->preempted, &b->cap_preempted, (size_t)p->n_preempted + 1,
                sizeof(j->tag), NULL) != VT_OK)
        b->failed = true;
    else
        p->preempted[p->n_preempted++] = j->tag;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t prompt_share(const struct blis *b, const struct job *j, uint32_t from,
                             uint32_t budget)
{
    uint32_t n = least(j->prompt - from, budget);

    if (b->c.long_prefill_token_threshold > 0)
        n = least(n, b->c.long_prefill_token_threshold);
    return least(n, b->c.max_model_len - 1 - from);
}

static void schedule_running(struct blis *b, uint32_t *budget)
{
    for (uint32_t i = 0; i < b->n_running && *budget > 0; i++) {
        uint32_t slot = b->running[i], n = 0;
        struct job *j = &b->job[slot];

        if (j->progress < j->prompt)
            n = prompt_share(b, j, j->progress, *budget);
        else if (j->progress + 1 <= b->c.max_model_len - 1)
            n = 1;
        if (n == 0)
            continue;
        while (!extend(b, j, n) && !b->failed) {
            preempt_last(b);
            if (b->n_running <= i) /* it was the victim itself */
                return;
        }
        *budget -= n;
        j->now = n;
        j->computed += n;
        plan_add(b, slot, VT_WAS_RUNNING);
    }
}

static void schedule_waiting(struct blis *b, uint32_t *budget)
{
    while (b->n_waiting > 0 && b->n_running < b->c.max_num_seqs && *budget > 0) {
        uint32_t slot = b->queue[b->head], n_cached, start, n;
        struct job *j = &b->job[slot];

        n_cached = find_cached(b, j);
        start = n_cached * b->c.block_size;
        n = prompt_share(b, j, start, *budget);
        if (!claim(b, j, n_cached, n))
            break;
        b->head = (b->head + 1) & (b->cap_queue - 1);
        b->n_waiting--;
        b->running[b->n_running++] = slot;
        j->computed = start + n;
        j->now = n;
        *budget -= n;
        if (n > 0)
            plan_add(b, slot, j->restarted ? VT_RESUMED : VT_NEW);
    }
}

static const struct vt_step_plan *blis_schedule(void *blis, bool throttle)
{
    struct blis *b = blis;
    struct vt_step_plan *p = &b->plan;
    uint32_t budget = b->c.max_num_batched_tokens;

    (void)throttle;
    p->n = p->n_decodes = p->n_prefills = 0;
    p->decode_tokens = p->prefill_tokens = 0;
    p->decode_ctx = 0;
    p->n_preempted = 0;
    p->waiting = (uint32_t)b->n_waiting;
    for (uint32_t i = 0; i < b->n_running; i++)
        b->job[b->running[i]].now = 0;
    schedule_running(b, &budget);
    if (p->n_preempted == 0)
        schedule_waiting(b, &budget);
    p->running = b->n_running;
    p->kv_usage = pool_usage(&b->pool);
    return b->failed ? NULL : p;
}

static void add_row(struct blis *b, uint32_t slot, bool first, bool last)
{
    struct vt_update *u = &b->update;
    struct job *j = &b->job[slot];

    u->row[u->n_rows++] = (struct vt_row){
        .tag = j->tag,
        .slot = slot,
        .first_index = j->progress - j->prompt,
        .new_tokens = 1,
        .first = first,
        .finish = last ? VT_LENGTH : VT_RUNNING_ON,
    };
    if (first)
        u->first[u->n_first++] =
            (struct vt_first){.tag = j->tag, .prompt_tokens = j->prompt};
}

/* Returns true if the job is over. */
static bool move_on(struct blis *b, uint32_t slot)
{
    struct job *j = &b->job[slot];
    bool first = false, decoded = false, over;

    if (j->progress < j->prompt) {
        j->progress = j->computed;
        first = j->progress == j->prompt;
    } else if (j->now > 0) {
        j->progress++;
        decoded = true;
    }
    over = j->progress >= j->prompt + (j->output > 1 ? j->output : 1) - 1 ||
           j->progress >= b->c.max_model_len - 1;
    if (first || decoded)
        add_row(b, slot, first, over);
    if (!over)
        return false;
    if (j->progress < j->prompt + j->output)
        (void)extend(b, j, 1);
    end_job(b, slot);
    return true;
}

static const struct vt_update *blis_update(void *blis, const struct vt_step_plan *p,
                                           const uint32_t *sampled)
{
    struct blis *b = blis;
    struct vt_update *u = &b->update;
    uint32_t n = 0;

    (void)p;
    (void)sampled;
    u->n_rows = u->n_first = 0;
    if (vt_grow(&u->row, &b->cap_rows, b->n_running, sizeof(*u->row), NULL) != VT_OK ||
        vt_grow(&u->first, &b->cap_first, b->n_running, sizeof(*u->first), NULL) !=
            VT_OK)
        return NULL;
    for (uint32_t i = 0; i < b->n_running; i++)
        if (!move_on(b, b->running[i]))
            b->running[n++] = b->running[i];
    b->n_running = n;
    u->looked_up = b->looked_up;
    u->found = b->found;
    b->looked_up = b->found = 0;
    return b->failed ? NULL : u;
}

/* ---- given up --------------------------------------------------------- */

/* Spare jobs keep their tags, and few are ever given up. */
static bool blis_find(const void *blis, uint64_t tag, uint32_t *slot)
{
    const struct blis *b = blis;

    for (size_t i = 0; i < b->n_jobs; i++)
        if (b->job[i].tag == tag && b->job[i].known) {
            *slot = (uint32_t)i;
            return true;
        }
    return false;
}

static void blis_abort(void *blis, uint32_t slot)
{
    struct blis *b = blis;
    uint32_t n = 0;
    size_t left = 0;

    for (uint32_t i = 0; i < b->n_running; i++)
        if (b->running[i] != slot)
            b->running[n++] = b->running[i];
    b->n_running = n;
    for (size_t i = 0; i < b->n_waiting; i++) {
        uint32_t waits = b->queue[(b->head + i) & (b->cap_queue - 1)];

        if (waits != slot)
            b->queue[(b->head + left++) & (b->cap_queue - 1)] = waits;
    }
    b->n_waiting = left;
    end_job(b, slot);
}

const struct sched_ops sched_blis = {
    .open = blis_open,
    .close = blis_close,
    .prepare = blis_prepare,
    .enqueue = blis_enqueue,
    .has_requests = blis_has_requests,
    .schedule = blis_schedule,
    .update = blis_update,
    .find = blis_find,
    .abort = blis_abort,
    .pool = blis_pool,
    .count = blis_count,
    .whole_us = true,
    .least_us = 1,
    .foresees = true,
    .sums_steps = true,
};
