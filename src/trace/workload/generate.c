/* generate.c - a workload made from a spec.
 *
 * Each purpose draws from a random stream of its own, so that a change of, say, the
 * output lengths moves neither arrivals nor prompts. */
#include <math.h>

#include "trace/workload/spec.h"

/* Of what others share, which stands before the request's own tokens. */
static int prepend_tokens(struct vt_work *q, uint32_t tokens, struct vt_err *err)
{
    if (tokens > TRACE_MAX_TOKENS - q->prompt_tokens)
        return vt_fail(err, VT_EINPUT, "the prompt of '%s' has more than %d tokens",
                       q->id, TRACE_MAX_TOKENS);
    q->prompt_tokens += tokens;
    return VT_OK;
}

struct generator {
    struct trace_feed feed;
    struct vt_arena arena; /* of the spec */
    struct spec spec;
    struct vt_rng arrivals, prompt, output, priority, prefix, sessions, think;
    uint32_t *shared_tokens; /* of each prefix group, or of each shared starter */
    uint32_t n_sessions;
    /* The stage under way. */
    size_t stage;
    struct trace_pace pace;
    double start_s, until_s;
    size_t end;   /* requests in all at which it ends */
    size_t go_on; /* requests in all before which stages come round again */
    size_t rounds;
};

/* ---- shared content --------------------------------------------------- */

static uint32_t draw_tokens(const struct trace_dist *d, struct vt_rng *rng)
{
    return (uint32_t)trace_dist_draw(d, rng);
}

static uint64_t content_shared(const char *kind, uint32_t index)
{
    char name[40];
    int len = snprintf(name, sizeof(name), "%s-%u", kind, index);

    return trace_content_prefix(name, (size_t)len);
}

/* Lengths of what several requests begin with, drawn before the first of them. */
static int draw_shared(struct generator *g, struct vt_err *err)
{
    const struct spec *s = &g->spec;
    const struct trace_dist *d = s->has_prefix ? &s->prefix_tokens : &s->starter;
    uint32_t n = s->has_prefix ? s->n_groups : s->n_starters;
    struct vt_rng rng;

    if (n == 0)
        return VT_OK;
    g->shared_tokens = vt_arena_alloc(&g->arena, n * sizeof(*g->shared_tokens));
    if (!g->shared_tokens)
        return vt_nomem(err);
    vt_rng_init(&rng, s->seed, "shared tokens");
    for (uint32_t i = 0; i < n; i++)
        g->shared_tokens[i] = draw_tokens(d, &rng);
    return VT_OK;
}

/* ---- requests --------------------------------------------------------- */

static void draw_lengths(struct generator *g, struct vt_work *q)
{
    const struct spec *s = &g->spec;

    if (s->n_pairs > 0) {
        const struct spec_pair *p = &s->pair[vt_rng_below(&g->prompt, s->n_pairs)];

        q->prompt_tokens = p->prompt;
        q->output_tokens = p->output;
    }
    if (s->prompt.kind)
        q->prompt_tokens = draw_tokens(&s->prompt, &g->prompt);
    if (s->output.kind)
        q->output_tokens = draw_tokens(&s->output, &g->output);
}

static int add_request(struct generator *g, vt_ns arrival_ns, struct vt_work **out,
                       struct vt_err *err)
{
    const struct spec *s = &g->spec;
    struct vt_work *q;
    int rc = trace_build_add_numbered(&g->feed.b, g->feed.b.n, &q, err);

    if (rc != VT_OK)
        return rc;
    q->arrival_ns = arrival_ns;
    draw_lengths(g, q);
    q->max_tokens = q->output_tokens;
    if (s->priority.kind)
        q->priority = (int32_t)trace_dist_draw(&s->priority, &g->priority);
    *out = q;
    return VT_OK;
}

static int add_single(struct generator *g, vt_ns arrival_ns, struct vt_err *err)
{
    const struct spec *s = &g->spec;
    struct vt_work *q;
    uint32_t own;
    int rc = add_request(g, arrival_ns, &q, err);

    if (rc != VT_OK)
        return rc;
    own = q->prompt_tokens;
    if (s->has_prefix) {
        /* Both draws are always made: another share keeps everyone's group. */
        bool member = vt_rng_f64(&g->prefix) < s->share;
        uint32_t group = (uint32_t)vt_rng_below(&g->prefix, s->n_groups);

        uint32_t tokens = g->shared_tokens[group];

        if (member &&
            ((rc = prepend_tokens(q, tokens, err)) ||
             (rc = trace_build_segment(&g->feed.b, content_shared("group", group), 0,
                                       tokens, err))))
            return rc;
    }
    return trace_build_own(&g->feed.b, own, err);
}

/* ---- sessions --------------------------------------------------------- */

/* Adds turn `turn`, whose prompt goes on from the last turn's (or the starter) in
 * `before`. The turns of a session share one run of segments: each prompt is a
 * prefix of the next. */
static int add_turn(struct generator *g, vt_ns arrival_ns, uint32_t turn,
                    struct vt_segment before, uint32_t history_tokens,
                    struct vt_err *err)
{
    const struct vt_workload *w = g->feed.b.w;
    struct vt_work *q;
    uint32_t own;
    int rc = add_request(g, arrival_ns, &q, err);

    if (rc != VT_OK)
        return rc;
    own = q->prompt_tokens;
    q->session = g->n_sessions;
    q->turn = turn;
    q->first_turn = turn == 0;
    q->n_before = turn > 0;
    if ((rc = prepend_tokens(q, history_tokens, err)) ||
        (rc = trace_build_segment(&g->feed.b, before.content, 0, before.tokens, err)) ||
        (rc = trace_build_own(&g->feed.b, own, err)) || turn == 0)
        return rc;
    if (g->spec.think_s.kind)
        q->think_ns =
            (vt_ns)(trace_dist_draw(&g->spec.think_s, &g->think) * (double)VT_SEC);
    q[-1].next_turn = (uint32_t)(g->feed.b.n - 1);
    q->first_segment = q[-1].first_segment;
    q->n_segments = (uint32_t)w->n_segments - q->first_segment;
    return VT_OK;
}

/* At most max_turns of them. */
static int add_session(struct generator *g, vt_ns arrival_ns, size_t max_turns,
                       struct vt_err *err)
{
    const struct spec *s = &g->spec;
    struct vt_workload *w = g->feed.b.w;
    uint32_t turns = draw_tokens(&s->turns, &g->sessions);
    struct vt_segment before = {0}; /* what the first prompt begins with */
    uint64_t history;
    int rc;

    if (s->has_starter && s->n_starters > 0) {
        uint32_t which = (uint32_t)vt_rng_below(&g->sessions, s->n_starters);

        before = (struct vt_segment){.content = content_shared("starter", which),
                                     .tokens = g->shared_tokens[which]};
    } else if (s->has_starter) {
        before =
            (struct vt_segment){.content = content_shared("session", g->n_sessions),
                                .tokens = draw_tokens(&s->starter, &g->sessions)};
    }
    history = before.tokens;
    for (uint32_t turn = 0; turn < turns && turn < max_turns; turn++) {
        const struct vt_work *q;

        if (history > TRACE_MAX_TOKENS)
            return vt_fail(err, VT_EINPUT, "a session has more than %d tokens",
                           TRACE_MAX_TOKENS);
        rc = add_turn(g, arrival_ns, turn, before, (uint32_t)history, err);
        if (rc != VT_OK)
            return rc;
        q = &w->req[w->n - 1];
        before = (struct vt_segment){.content = q->output_content,
                                     .tokens = q->output_tokens};
        history = (uint64_t)q->prompt_tokens + q->output_tokens;
    }
    g->n_sessions++;
    return VT_OK;
}

/* ---- arrivals --------------------------------------------------------- */

static void begin_stage(struct generator *g)
{
    const struct spec *s = &g->spec;
    const struct spec_stage *stage = &s->stage[g->stage];

    g->pace = (struct trace_pace){
        .rate = stage->rate,
        .burstiness = s->burstiness,
        .burst_size = s->burst_size,
        .interval_s = s->interval_s > 0 ? s->interval_s : s->burst_size / stage->rate,
        .rng = &g->arrivals,
    };
    g->end = stage->requests ? g->feed.b.n + stage->requests : SIZE_MAX;
    g->until_s = stage->duration_s > 0 ? stage->duration_s : INFINITY;
}

static void end_stage(struct generator *g)
{
    const struct spec *s = &g->spec;
    double duration_s = s->stage[g->stage].duration_s;

    g->start_s += duration_s > 0 ? duration_s : s->process->end(&g->pace);
    if (++g->stage == s->n_stages && s->n_stages > 1)
        g->feed.b.w->round = g->feed.b.n / ++g->rounds;
    if (g->stage == s->n_stages && g->feed.b.n < g->go_on)
        g->stage = 0;
    if (g->stage < s->n_stages)
        begin_stage(g);
}

/* The next arrival of the stage; *over: there is none. */
static int add_arrival(struct generator *g, bool *over, struct vt_err *err)
{
    const struct spec *s = &g->spec;
    size_t n = g->feed.b.n;
    vt_ns arrival_ns;
    double t_s;

    *over = n >= g->end || (t_s = s->process->next(&g->pace)) >= g->until_s;
    if (*over)
        return VT_OK;
    if (!(g->start_s + t_s <= SPEC_MAX_SECONDS))
        return vt_fail(err, VT_EINPUT, "arrivals go on for more than %g seconds",
                       SPEC_MAX_SECONDS);
    arrival_ns = vt_ns_from_ms((g->start_s + t_s) * 1e3);
    return s->has_sessions ? add_session(g, arrival_ns, g->end - n, err)
                           : add_single(g, arrival_ns, err);
}

static int generate_more(struct trace_feed *feed, bool *done, struct vt_err *err)
{
    struct generator *g = (struct generator *)feed;
    int rc = VT_OK;

    while (rc == VT_OK && g->stage < g->spec.n_stages &&
           !trace_build_has_enough(&feed->b)) {
        bool over = false;

        if (!(rc = vt_stopped(err)))
            rc = add_arrival(g, &over, err);
        if (over)
            end_stage(g);
    }
    *done = rc != VT_OK || g->stage == g->spec.n_stages;
    return vt_within(err, rc, "%s", feed->b.w->source);
}

static void close_generator(struct trace_feed *feed)
{
    struct generator *g = (struct generator *)feed;

    trace_build_free(&feed->b);
    vt_arena_free(&g->arena);
    free(g);
}

/* ---- from spec to feed ------------------------------------------------ */

static int prepare(struct generator *g, const struct vt_node *root,
                   const struct trace_generate_options *o, struct vt_err *err)
{
    const struct {
        struct vt_rng *rng;
        const char *name;
    } stream[] = {
        {&g->arrivals, "arrivals"}, {&g->prompt, "prompt"}, {&g->output, "output"},
        {&g->priority, "priority"}, {&g->prefix, "prefix"}, {&g->sessions, "sessions"},
        {&g->think, "think"},
    };
    struct vt_workload *w = g->feed.b.w;
    struct spec *s = &g->spec;
    int rc = spec_read(s, &g->arena, root, &o->files, err);

    if (rc || (rc = spec_put_over(s, &o->over, err)))
        return rc;
    if (o->seed >= 0)
        s->seed = (uint64_t)o->seed;
    g->feed.b.check_ids = false;
    g->feed.b.kept_whole = true;
    if (o->max_requests)
        g->feed.b.max_requests = o->max_requests;
    g->go_on = o->go_on;
    if (o->go_on > 0 && s->n_stages == 1)
        s->stage[0] =
            (struct spec_stage){.rate = s->stage[0].rate, .requests = o->go_on};
    for (size_t i = 0; i < VT_COUNT(stream); i++)
        vt_rng_init(stream[i].rng, s->seed, stream[i].name);
    w->seed = s->seed;
    w->concurrency = s->concurrency;
    w->held_to = s->held_to;
    w->meta.workload_kind = s->has_sessions ? "multiturn" : s->process->name;
    if (s->has_sessions)
        w->arrivals = VT_ARRIVALS_SESSION;
    else if (s->process->closed)
        w->arrivals = VT_ARRIVALS_CLOSED;
    begin_stage(g);
    rc = vt_arena_text(&w->arena, s->name, &w->meta.workload_name, err);
    return rc ? rc : draw_shared(g, err);
}

/* *out is owned by the caller whatever happens, NULL being fine. */
static int open_tree(struct trace_feed **out, struct vt_workload *w, const char *source,
                     const struct vt_node *root, const struct trace_generate_options *o,
                     struct vt_err *err)
{
    struct generator *g = calloc(1, sizeof(*g));
    int rc;

    *out = g ? &g->feed : NULL;
    if (!g)
        return vt_nomem(err);
    g->feed.more = generate_more;
    g->feed.close = close_generator;
    rc = trace_build_init(&g->feed.b, w, source, err);
    return rc ? rc : vt_within(err, prepare(g, root, o, err), "%s", source);
}

static int open_text(struct trace_feed **out, struct vt_workload *w, const char *name,
                     const char *text, size_t len,
                     const struct trace_generate_options *o, struct vt_err *err)
{
    struct vt_arena a = {0};
    const struct vt_node *root;
    int rc = vt_yaml_parse(&a, text, len, &root, err);

    *out = NULL;
    rc = rc ? vt_within(err, rc, "%s", name) : open_tree(out, w, name, root, o, err);
    vt_arena_free(&a);
    return rc;
}

static int open_file(struct trace_feed **out, struct vt_workload *w, const char *path,
                     struct trace_generate_options *o, struct vt_err *err)
{
    struct vt_arena a = {0};
    const struct vt_node *root;
    const char *slash = strrchr(path, '/');
    int rc = vt_tree_load(&a, path, &root, err);

    *out = NULL;
    if (rc == VT_OK) {
        o->files.dir = slash ? vt_arena_copy(&a, path, (size_t)(slash - path)) : ".";
        rc = o->files.dir ? open_tree(out, w, path, root, o, err) : vt_nomem(err);
    }
    vt_arena_free(&a);
    return rc;
}

int trace_generator_open(struct trace_feed **out, struct vt_workload *w,
                         const struct vt_input *in, struct vt_err *err)
{
    struct trace_generate_options o = {
        .seed = in->seed, .over = in->over, .go_on = in->go_on};

    return in->text ? open_text(out, w, in->name, in->text, in->len, &o, err)
                    : open_file(out, w, in->name, &o, err);
}

int trace_generate_text(struct vt_workload *w, const char *name, const char *text,
                        size_t len, const struct trace_generate_options *o,
                        struct vt_err *err)
{
    struct trace_feed *feed;

    *w = (struct vt_workload){0};
    return trace_feed_all(&feed, w, open_text(&feed, w, name, text, len, o, err), err);
}
