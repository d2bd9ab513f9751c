/* worker.c - reading requests, on the loop where that is quick, else on a thread
 * of its own. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "http/serve/serve.h"

enum {
    QUICK_BODY = 4096,     /* bytes that the loop reads itself */
    QUICK_REPLY = 16384,   /* tokens that it makes up itself */
    QUICK_STOPS = 16,      /* strings that it looks for in them */
    QUICK_ANSWER = 16384,  /* tokens of an answer that it writes itself */
    MOST_TOKENS = 4 << 20, /* of all choices of a request */
    MOST_TOLD = 2 << 20,   /* log probabilities in one answer: some 50 MB of it */
};

static bool make_choice(struct exchange *x, struct reply_batch *b, uint32_t i,
                        struct vt_err *err)
{
    struct choice *c = &x->choice[i];
    uint32_t prompt = i / x->r.n;

    *c = (struct choice){
        .x = x, .out = &x->out[i], .prompt = &x->r.prompt[prompt], .scheduled = -1};
    x->out[i] = (struct out_choice){.reply = &c->reply, .index = i, .prompt = prompt};
    /* An embedding is a prompt that the engine computes: one token, which nobody sees.
     */
    if (x->kind == API_EMBEDDINGS) {
        c->reply.n = 1;
        return true;
    }
    if (reply_make(&c->reply, b, prompt, i % x->r.n, x->number, err) != VT_OK)
        return false;
    if (x->midway)
        c->broken_at = c->reply.n / 2 + 1;
    if (!out_begin(&x->r, &x->out[i])) {
        (void)vt_nomem(err);
        return false;
    }
    return true;
}

/* Log probabilities that an answer tells of a choice; a stream tells them bit by bit.
 */
static uint64_t logprobs_of(const struct exchange *x, const struct choice *c)
{
    const struct api_request *r = &x->r;
    uint64_t n = 0;

    if (r->stream || x->kind == API_EMBEDDINGS)
        return 0;
    if (r->logprobs >= 0)
        n += c->reply.n * (1 + (uint64_t)r->logprobs);
    if (r->prompt_logprobs >= 0)
        n += c->prompt->n * (1 + (uint64_t)r->prompt_logprobs);
    return n;
}

static void make_choices(struct exchange *x)
{
    uint32_t n = x->r.n_prompts * x->r.n;
    struct reply_batch *b = NULL;
    uint64_t tokens = 0, told = 0;
    struct vt_err err = {0};
    struct api_error e;
    bool ok;

    x->choice = vt_arena_alloc(&x->r.arena, n * sizeof(*x->choice));
    x->out = vt_arena_alloc(&x->r.arena, n * sizeof(*x->out));
    ok = x->choice && x->out;
    if (!ok)
        (void)vt_nomem(&err);
    if (ok && x->kind != API_EMBEDDINGS)
        ok = reply_batch_open(&b, x->s->replies, &x->r, &err) == VT_OK;
    for (uint32_t i = 0; i < n && ok; i++) {
        ok = make_choice(x, b, i, &err);
        x->n_choices = i + 1;
        tokens += x->choice[i].reply.n;
        told += logprobs_of(x, &x->choice[i]);
        if (ok && told > MOST_TOLD)
            ok = !vt_fail(&err, VT_EINPUT,
                          "The answer would tell more than %d log probabilities, which "
                          "is as many as this server puts into one; a stream has no "
                          "such limit.",
                          MOST_TOLD);
        if (ok && tokens > MOST_TOKENS)
            ok = !vt_fail(&err, VT_EINPUT,
                          "The choices of this request have more than %d tokens, which "
                          "is as many as this server makes at once.",
                          MOST_TOKENS);
    }
    reply_batch_close(b);
    if (ok)
        return;
    x->bad = true;
    api_error_from(&e, &err);
    exchange_error(x, &e);
}

/* Adapters come and go on the loop, which answers what lists them. */
static void answer_plain(struct exchange *x)
{
    const struct models *m = &x->s->models;
    struct plain_context c = {.api = &x->s->api,
                              .config = x->s->c,
                              .model = x->at_worker ? NULL : m->model,
                              .n_models = x->at_worker ? 0 : (uint32_t)m->n};

    if (plain_answer(&c, &x->request, &x->answer, &x->plain))
        return;
    x->plain = (struct plain_answer){.status = 404, .type = "application/json"};
    vt_buf_str(&x->answer, "{\"detail\":\"Not Found\"}");
}

/* Schemas and expressions are followed within bounds, but not on the loop. */
static bool draws_by_form(const struct api_request *r)
{
    return r->format != API_TEXT ||
           (r->n_tools > 0 && r->tool_choice != API_TOOLS_NONE);
}

/* The few fields that admin.c looks at; more values than these can have are not read.
 */
static void read_tree(struct exchange *x)
{
    struct vt_json_bounds bounds = {.values = ADMIN_VALUES};
    struct vt_err why = {0};

    if (vt_json_parse_bounded(&x->copies, x->request.body, x->request.body_len, &bounds,
                              &x->tree, &why) == VT_OK)
        return;
    x->tree = NULL;
    x->why = vt_arena_alloc(&x->copies, sizeof(why));
    if (x->why)
        *x->why = why;
}

bool exchange_prepare(struct exchange *x, bool all)
{
    struct api_error e;

    if (!all && x->request.body_len > QUICK_BODY && !x->r.context &&
        strcmp(x->method, "POST") == 0)
        return false;
    if (x->task == TASK_PLAIN) {
        answer_plain(x);
        return true;
    }
    if (x->task == TASK_ADMIN) {
        read_tree(x);
        return true;
    }
    if (!x->r.context && !api_read(&x->r, &x->s->api, x->kind, x->request.body,
                                   x->request.body_len, &x->headers, &e)) {
        exchange_error(x, &e);
        x->bad = true;
        return true;
    }
    if (!all && (draws_by_form(&x->r) || x->r.n_stop > QUICK_STOPS ||
                 (uint64_t)x->r.n_prompts * x->r.n * x->r.max_tokens > QUICK_REPLY))
        return false;
    make_choices(x);
    return true;
}

/* ---- writing --------------------------------------------------------- */

void exchange_write(struct exchange *x)
{
    vt_buf_clear(&x->answer);
    if (x->kind == API_EMBEDDINGS)
        api_embeddings_json(&x->answer, &x->r);
    else
        out_whole(&x->answer, &x->r, x->out, x->n_choices);
}

bool exchange_writes_long(const struct exchange *x)
{
    const struct api_request *r = &x->r;
    uint64_t each = r->logprobs > 0 ? 1 + (uint64_t)r->logprobs : 1;
    uint64_t n = x->n_choices * (1 + x->most_told * each);

    for (uint32_t i = 0; i < r->n_prompts && n <= QUICK_ANSWER; i++)
        n += x->kind == API_EMBEDDINGS ? (uint64_t)r->prompt[i].n * r->dimensions / 8
                                       : (uint64_t)r->prompt[i].n * r->n;
    return n > QUICK_ANSWER;
}

/* ---- the thread ------------------------------------------------------ */

static void work_on(struct exchange *x)
{
    if (atomic_load_explicit(&x->gone, memory_order_relaxed))
        return; /* nobody waits for it any more */
    if (x->task == TASK_WRITE)
        exchange_write(x);
    else
        (void)exchange_prepare(x, true);
}

static void *worker_thread(void *arg)
{
    struct worker *w = arg;

    while (!atomic_load(&w->stop)) {
        struct vt_inbox_item *at, *next;

        if (vt_wait_fd(w->to.fd, VT_NEVER))
            vt_inbox_calm(&w->to);
        for (at = vt_inbox_take(&w->to); at; at = next) {
            struct exchange *x = (struct exchange *)at;

            next = at->next;
            if (x->task == TASK_FREE) {
                exchange_destroy(x);
                continue;
            }
            work_on(x);
            free(x->owned); /* what was read of it has been copied */
            x->request.body = x->owned = NULL;
            vt_inbox_put(&w->from, &x->item);
        }
    }
    return NULL;
}

int worker_open(struct worker *w, struct vt_err *err)
{
    int rc;

    if ((rc = vt_inbox_open(&w->to, err)) || (rc = vt_inbox_open(&w->from, err)) ||
        (rc = vt_thread_start(&w->thread, worker_thread, w, err)))
        return rc;
    w->started = true;
    return VT_OK;
}

void worker_give(struct worker *w, struct exchange *x)
{
    x->at_worker = true;
    vt_inbox_put(&w->to, &x->item);
}

static void drop_all(struct vt_inbox *b)
{
    struct vt_inbox_item *at = vt_inbox_take(b), *next;

    for (; at; at = next) {
        next = at->next;
        exchange_destroy((struct exchange *)at);
    }
}

void worker_close(struct worker *w)
{
    if (w->started) {
        atomic_store(&w->stop, true);
        (void)eventfd_write(w->to.fd, 1);
        (void)pthread_join(w->thread, NULL);
        drop_all(&w->to);
        drop_all(&w->from);
        w->started = false;
    }
    vt_inbox_close(&w->to);
    vt_inbox_close(&w->from);
}
