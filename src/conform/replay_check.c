/* replay_check.c - what a replay must give: the recorded tokens, at about the recorded
 * times. */
#include "conform/replay.h"

/* What holds where neither the manifest nor the caller says otherwise. */
static const struct vt_tolerance usual = {2.0, 50.0};

enum { ATTEMPTS = 3 };

/* ---- tokens ----------------------------------------------------------- */

bool replay_differs(const struct replay_case *c, char *why, size_t size)
{
    const struct vt_record *rec = c->rec;
    uint32_t n = c->n_tokens < rec->output_tokens ? c->n_tokens : rec->output_tokens;

    for (uint32_t i = 0; i < n; i++)
        if (c->token[i] != rec->token_id[i]) {
            snprintf(why, size, "token %u is %u, not %u", i, c->token[i],
                     rec->token_id[i]);
            return true;
        }
    if (c->n_tokens != rec->output_tokens) {
        snprintf(why, size, "%u tokens, not %u", c->n_tokens, rec->output_tokens);
        return true;
    }
    if (rec->finish_reason && strcmp(c->finish, rec->finish_reason) != 0) {
        snprintf(why, size, "ended by '%s', not '%s'", c->finish, rec->finish_reason);
        return true;
    }
    return false;
}

static int judge_tokens(struct judge *j, const struct replay *r, const char *through,
                        struct vt_err *err)
{
    const struct replay_case *first = NULL;
    char why[200] = "", text[200];
    uint64_t tokens = 0;
    size_t n_bad = 0;

    for (size_t i = 0; i < r->n; i++) {
        tokens += r->c[i].n_tokens;
        if (!replay_differs(&r->c[i], text, sizeof(text)))
            continue;
        if (n_bad++ == 0) {
            first = &r->c[i];
            memcpy(why, text, sizeof(why));
        }
    }
    if (first)
        return judge_row(j, "tokens", VT_CHECK_FAILED, err,
                         "through %s: %zu of %zu requests differ; '%s': %s", through,
                         n_bad, r->n, first->rec->id, why);
    return judge_row(j, "tokens", VT_CHECK_OK, err,
                     "through %s: %zu requests, %llu tokens", through, r->n,
                     (unsigned long long)tokens);
}

/* The end of its path: "0.26.0/vllm-rs" says more than its name. */
static const char *name_frontend(const char *path)
{
    const char *name = path;
    int slashes = 0;

    if (!path)
        return "our own frontend";
    for (const char *p = path + strlen(path); p > path && slashes < 2; p--)
        if (p[-1] == '/' && ++slashes == 2)
            name = p;
    return slashes < 2 ? path : name;
}

/* Why a golden cannot be replayed; NULL if it can. */
static const char *why_not(const struct replay *r)
{
    if (r->n == 0)
        return "no request has output_token_ids";
    if (!r->config->vtwin)
        return "there is no program to start";
    return NULL;
}

int check_tokens(struct judge *j, const struct golden_file *f, struct vt_err *err)
{
    const char *through = name_frontend(j->config->frontend);
    struct vt_err why = {0};
    struct replay r;
    int rc = replay_begin(&r, j, f, err);

    if (rc != VT_OK || why_not(&r)) {
        if (rc == VT_OK)
            rc = judge_row(j, "tokens", VT_CHECK_SKIPPED, err, "%s", why_not(&r));
        replay_end(&r);
        return rc;
    }
    rc =
        j->config->frontend ? replay_http(&r, &why) : replay_own(&r, REPLAY_FAST, &why);
    vt_within(&why, rc, "through %s", through);
    rc = rc == VT_OK ? judge_tokens(j, &r, through, err)
                     : judge_failure(j, "tokens", rc, &why, err);
    replay_end(&r);
    return rc;
}

/* ---- times ------------------------------------------------------------ */

static int note_error(struct replay_errors *e, vt_ns got, vt_ns want,
                      struct vt_err *err)
{
    int rc = vt_grow(&e->ms, &e->cap, e->n + 1, sizeof(*e->ms), err);

    if (rc == VT_OK)
        e->ms[e->n++] = (double)(got > want ? got - want : want - got) / (double)VT_MS;
    return rc;
}

/* Chunks must be the recorded ones, or their times say nothing. */
static bool same_chunks(const struct replay_case *c)
{
    if (c->n_chunks != c->rec->n_gaps + 1)
        return false;
    for (uint32_t i = 0; i < c->rec->n_gaps; i++)
        if (c->chunk_tokens[i + 1] != (c->rec->gap_tokens ? c->rec->gap_tokens[i] : 1))
            return false;
    return true;
}

static struct vt_tolerance tolerance_of(const struct judge *j)
{
    struct vt_tolerance t = usual;
    const struct vt_tolerance *say[] = {&j->golden->tolerance, &j->config->tolerance};

    for (size_t i = 0; i < VT_COUNT(say); i++) {
        t.p50_ms = say[i]->p50_ms >= 0 ? say[i]->p50_ms : t.p50_ms;
        t.p99_ms = say[i]->p99_ms >= 0 ? say[i]->p99_ms : t.p99_ms;
    }
    return t;
}

void replay_times_end(struct replay_times *t)
{
    free(t->ttft.ms);
    free(t->gap.ms);
}

int replay_times(struct replay_times *t, const struct replay *r,
                 struct vt_tolerance allowed, struct vt_err *err)
{
    struct replay_errors *all[] = {&t->ttft, &t->gap};
    int rc = VT_OK;

    *t = (struct replay_times){0};
    for (size_t i = 0; i < r->n && rc == VT_OK; i++) {
        const struct replay_case *c = &r->c[i];

        if (!same_chunks(c)) {
            t->odd = c;
            return VT_OK;
        }
        rc = note_error(&t->ttft, c->chunk_ns[0] - c->sent_ns, c->rec->ttft_ns, err);
        for (uint32_t k = 0; k < c->rec->n_gaps && rc == VT_OK; k++)
            rc = note_error(&t->gap, c->chunk_ns[k + 1] - c->chunk_ns[k],
                            vt_record_gap(c->rec, k), err);
    }
    t->good = rc == VT_OK;
    for (size_t i = 0; i < VT_COUNT(all) && rc == VT_OK; i++) {
        struct replay_errors *e = all[i];

        vt_sort_f64(e->ms, e->n);
        e->p50_ms = vt_quantile(e->ms, e->n, 50);
        e->p99_ms = vt_quantile(e->ms, e->n, 99);
        t->good = t->good && e->p50_ms <= allowed.p50_ms && e->p99_ms <= allowed.p99_ms;
    }
    return rc;
}

static int times_row(struct judge *j, const struct replay_times *t,
                     struct vt_tolerance allowed, int attempt, struct vt_err *err)
{
    char again[32] = "";

    if (t->odd)
        return judge_row(j, "timing", VT_CHECK_FAILED, err,
                         "'%s' came in %u chunks, not in the recorded %u",
                         t->odd->rec->id, t->odd->n_chunks, t->odd->rec->n_gaps + 1);
    if (attempt > 1)
        snprintf(again, sizeof(again), ", attempt %d", attempt);
    return judge_row(
        j, "timing", t->good ? VT_CHECK_OK : VT_CHECK_FAILED, err,
        "error of %zu TTFTs p50 %.3f p99 %.3f ms, of %zu gaps p50 %.3f p99 "
        "%.3f ms; allowed p50 %g p99 %g ms%s",
        t->ttft.n, t->ttft.p50_ms, t->ttft.p99_ms, t->gap.n, t->gap.p50_ms,
        t->gap.p99_ms, allowed.p50_ms, allowed.p99_ms, again);
}

static const char *why_not_timed(const struct replay *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->c[i].rec->ttft_ns < 0 || r->c[i].rec->by_mean)
            return "not every request has times of its own";
    return why_not(r);
}

/* One replay; *again where another one may do better. */
static int attempt_timing(struct judge *j, const struct golden_file *f, int attempt,
                          bool *again, struct vt_err *err)
{
    struct vt_tolerance allowed = tolerance_of(j);
    struct replay_times t = {0};
    struct vt_err why = {0};
    struct replay r;
    int rc = replay_begin(&r, j, f, err);

    *again = false;
    if (rc == VT_OK && why_not_timed(&r)) {
        rc = judge_row(j, "timing", VT_CHECK_SKIPPED, err, "%s", why_not_timed(&r));
    } else if (rc == VT_OK) {
        rc = vt_within(&why, replay_own(&r, REPLAY_RECORDED, &why),
                       "through our own frontend");
        rc = rc == VT_OK ? replay_times(&t, &r, allowed, err)
                         : judge_failure(j, "timing", rc, &why, err);
        *again = rc == VT_OK && !*why.msg && !t.odd && !t.good && attempt < ATTEMPTS;
        if (rc == VT_OK && !*why.msg && !*again)
            rc = times_row(j, &t, allowed, attempt, err);
    }
    replay_times_end(&t);
    replay_end(&r);
    return rc;
}

/* Times are also those of this machine, which may be busy: a replay that is off gets
 * another chance. */
int check_timing(struct judge *j, const struct golden_file *f, struct vt_err *err)
{
    bool again = true;
    int rc = VT_OK;

    for (int attempt = 1; again && rc == VT_OK; attempt++)
        rc = attempt_timing(j, f, attempt, &again, err);
    return rc;
}
