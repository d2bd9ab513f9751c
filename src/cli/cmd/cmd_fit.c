/* cmd_fit.c - vtwin fit: captures in, a profile out. */
#include <math.h>

#include "cli/cmd/fit.h"
#include "cli/progress.h"
#include "cli/signals.h"

/* In the order of enum fit_what. */
static const char *const models[] = {"step", "blackbox", "knob", "regression", NULL};

/* ---- what physics says ------------------------------------------------ */

/* What no kernel can undercut. Weights may be stored in fewer bits than the model's
 * file says, if only its name is known. */
static struct vt_fit_physics
least_times(const struct vt_arch *m, const struct vt_gpu *g, uint32_t tp, bool by_name)
{
    double table = (double)m->vocab * m->hidden; /* looked up, not multiplied with */
    double active = vt_arch_active_params(m), share = active / vt_arch_params(m);
    double bytes = vt_arch_weight_bytes(m, tp) * share -
                   (m->tied ? 0 : table * m->dtype_bytes / tp);
    bool fp8 = (by_name || m->weight_bytes <= 1) && g->fp8_tflops > 0;
    double flop_us = 1e6 * (fp8 ? g->fp8_tflops : g->fp16_tflops);

    return (struct vt_fit_physics){
        .gpu = g->name,
        .weights_us = fmax(bytes, 0) * (by_name ? 0.5 : 1) / (g->bandwidth_tbs * 1e6),
        .token_us = 2 * fmax(active - (m->tied ? 1 : 2) * table, 0) / tp / flop_us,
    };
}

/* By flags, or by what the captures say they ran on. False: not known. */
static bool find_least(const struct fit_job *j, const struct fit_options *o,
                       struct vt_gpu *gpu, struct vt_fit_physics *least)
{
    struct fit_engine e = fit_engine_of(o, vt_fit_engine(j->fit));
    struct vt_arch arch;
    struct vt_err ignored;

    if (!e.model || !e.gpu || vt_arch_load(&arch, e.model, &ignored) != VT_OK ||
        vt_gpu_find(gpu, e.gpu, o->hw, &ignored) != VT_OK)
        return false;
    *least = least_times(&arch, gpu, e.tp, !o->hf_config);
    return true;
}

/* ---- learning ---------------------------------------------------------- */

/* What speaks against a profile goes into j->refusal; other failures are returned. */
static int refuse(struct fit_job *j, int rc, struct vt_err *err)
{
    if (rc != VT_ECHECK)
        return rc;
    if (!*j->refusal)
        (void)snprintf(j->refusal, sizeof(j->refusal), "%s", err->msg);
    return VT_OK;
}

static int learn_steps(struct fit_job *j, const struct fit_options *o,
                       struct vt_err *err)
{
    struct vt_fit_physics least;
    struct vt_gpu gpu;
    int rc = VT_OK;

    cli_progress_now("fitting %zu capture%s; long logs take a minute", j->n_seen,
                     j->n_seen == 1 ? "" : "s");
    if (find_least(j, o, &gpu, &least))
        rc = refuse(j, vt_fit_check_captures(j->fit, &least, err), err);
    if (rc == VT_OK && !o->no_cv)
        rc = vt_fit_sort_out(j->fit, &j->notes, err);
    if (rc != VT_OK ||
        (rc = vt_fit_solve(j->fit, VT_FIT_ALL, &j->params, &j->quality, err)) ||
        (rc = refuse(j, vt_fit_check_params(j->fit, &j->params, err), err)))
        return rc;
    vt_fit_thin(j->fit, &j->notes);
    vt_fit_step_model(&j->model, &j->params);
    return j->model.failed ? vt_nomem(err) : VT_OK;
}

/* ---- learning without steps --------------------------------------------- */

static void tell_progress(void *user, const char *what, size_t i, size_t n)
{
    const struct fit_options **o = user;

    fit_progress(*o, what, i, n);
}

/* How far off each load is, but for odd ones: in sample, or left out of the fit. */
static int take_errors(struct fit_job *j, struct fit_rows *r, struct vt_err *err)
{
    r->row = calloc(j->matched.n + 1, sizeof(*r->row));
    r->calm = calloc(j->matched.n + 1, sizeof(*r->calm));
    if (!r->row || !r->calm)
        return vt_nomem(err);
    for (size_t i = 0; i < j->matched.n; i++) {
        const struct vt_match_load *l = &j->matched.load[i];
        const struct vt_crossval_row *row = r == &j->own ? &l->in : &l->out;

        if (l->odd || !row->name) /* a single load is never left out */
            continue;
        r->row[r->n] = r->calm[r->n] = *row;
        r->n++;
    }
    return VT_OK;
}

/* What clients saw of each load is simulated until it comes out as measured. */
static int learn_simulated(struct fit_job *j, const struct fit_options *o,
                           struct vt_err *err)
{
    struct vt_match_options options = {
        .no_cv = o->no_cv, .tell = tell_progress, .user = &o};
    int rc = vt_match_new(&j->match, &j->shape, err);

    for (size_t i = 0; i < j->n_seen && rc == VT_OK; i++)
        rc = vt_match_add(j->match, vt_fit_name(j->fit, i), j->seen[i], err);
    if (rc == VT_OK)
        rc = vt_match_solve(j->match, &options, &j->matched, err);
    fit_progress(o, "", 1, 0);
    if (rc || (rc = take_errors(j, &j->own, err)) ||
        (!o->no_cv && (rc = take_errors(j, &j->left_out, err))))
        return rc;
    (void)snprintf(j->refusal, sizeof(j->refusal), "%s", j->matched.refusal);
    vt_buf_add(&j->model, j->matched.model.data, j->matched.model.len);
    for (size_t i = 0; i < j->matched.n; i++) {
        const struct vt_match_load *l = &j->matched.load[i];

        if (l->odd && l->unanswered > VT_UNANSWERED)
            vt_buf_printf(&j->notes,
                          "%s: %.0f %% of its requests failed or were aborted before a "
                          "token, nothing is learned from it\n",
                          vt_fit_name(j->fit, i), l->unanswered);
        else if (l->odd)
            vt_buf_printf(&j->notes,
                          "%s: it contradicts the others, nothing is learned from it\n",
                          vt_fit_name(j->fit, i));
        else if (l->stalled > 0)
            vt_buf_printf(
                &j->notes,
                "%s: %zu requests were stalled, or cached by what came before, "
                "and are left out\n",
                vt_fit_name(j->fit, i), l->stalled);
    }
    return j->model.failed || j->notes.failed ? vt_nomem(err) : VT_OK;
}

/* ---- judging ----------------------------------------------------------- */

/* Every capture with measured times that was not left out as odd. */
static int judge_captures(struct fit_job *j, const struct fit_options *o,
                          struct fit_rows *r, struct vt_err *err)
{
    bool own = r == &j->own;
    int rc = VT_OK;

    r->row = calloc(j->n_seen + 1, sizeof(*r->row));
    r->calm = calloc(j->n_seen + 1, sizeof(*r->calm));
    if (!r->row || !r->calm)
        return vt_nomem(err);
    for (size_t i = 0; i < j->n_seen && rc == VT_OK; i++) {
        const struct vt_workload *w = j->seen[i];

        fit_progress(o, own ? "judging" : "cross-validating", i, j->n_seen);
        if (!w || !w->measured || vt_fit_look(j->fit, i).odd)
            continue;
        rc = own ? vt_crossval_in_sample(j->fit, i, j->model.data, w, &r->row[r->n],
                                         &r->calm[r->n], err)
                 : vt_crossval_one(j->fit, i, w, &r->row[r->n], &r->calm[r->n], err);
        r->n += rc == VT_OK;
        rc = refuse(j, rc, err);
    }
    fit_progress(o, "", 1, 0);
    return rc;
}

static bool is_foreign(const struct vt_crossval_row *r)
{
    return r->foreign_hits < -VT_FOREIGN_HITS || r->unanswered > VT_UNANSWERED;
}

/* What is predicted of another load than the capture's counts only if all are so.
 * expected may be NULL. */
static void sum_rows(const struct vt_crossval_row *row, size_t n,
                     struct vt_crossval_row *median, struct vt_crossval_row *mean,
                     struct vt_crossval_row *expected)
{
    struct vt_crossval_row *own = calloc(n + 1, sizeof(*own));
    size_t n_own = 0;

    for (size_t i = 0; own && i < n; i++)
        if (!is_foreign(&row[i]))
            own[n_own++] = row[i];
    if (n_own > 0) {
        row = own;
        n = n_own;
    }
    vt_crossval_sum(row, n, median, mean);
    if (expected)
        vt_crossval_expect(row, n, expected);
    free(own);
}

static void note_foreign(struct fit_job *j)
{
    for (size_t i = 0; i < j->own.n; i++) {
        const struct vt_crossval_row *r = &j->own.row[i];

        if (r->unanswered > VT_UNANSWERED)
            vt_buf_printf(&j->notes,
                          "%s: %.0f %% of its requests failed or were aborted before a "
                          "token: its prediction is of a lighter load and does not "
                          "count\n",
                          r->name, r->unanswered);
        if (r->foreign_hits > VT_FOREIGN_HITS)
            vt_buf_printf(&j->notes,
                          "%s: %.0f %% of its prompt tokens were cached by what came "
                          "before it: it is predicted with the hits that it recorded\n",
                          r->name, r->foreign_hits);
        else if (r->foreign_hits < -VT_FOREIGN_HITS)
            vt_buf_printf(&j->notes,
                          "%s: %.0f %% of its prompt tokens were not cached, but its "
                          "prefixes say so: its prediction is of another load and does "
                          "not count\n",
                          r->name, -r->foreign_hits);
    }
}

static void note_limits(struct fit_job *j)
{
    for (size_t i = 0; i < j->own.n; i++) {
        const struct vt_crossval_row *r = &j->own.row[i];

        if (r->found_seqs > 0)
            vt_buf_printf(&j->notes,
                          "%s: max_num_seqs is not stated; by what waited it is %u\n",
                          r->name, r->found_seqs);
        if (r->found_blocks > 0)
            vt_buf_printf(
                &j->notes,
                "%s: num_gpu_blocks is not stated; by what waited it is about "
                "%u\n",
                r->name, r->found_blocks);
    }
}

static void refuse_bad(struct fit_job *j, const struct fit_rows *r, const char *what)
{
    struct vt_crossval_row median, mean;
    char why[128];

    if (r->n == 0 || *j->refusal)
        return;
    sum_rows(r->calm, r->n, &median, &mean, NULL);
    if (vt_crossval_bad(&median, why, sizeof(why)))
        (void)snprintf(j->refusal, sizeof(j->refusal), "%s: in the median %s", what,
                       why);
}

static int judge(struct fit_job *j, const struct fit_options *o, struct vt_err *err)
{
    int rc = judge_captures(j, o, &j->own, err);

    if (rc == VT_OK && o->model == FIT_STEP && !o->no_cv && j->n_seen > 1)
        rc = judge_captures(j, o, &j->left_out, err);
    if (rc == VT_OK) {
        note_foreign(j);
        note_limits(j);
    }
    if (rc != VT_OK || o->model != FIT_STEP)
        return rc;
    refuse_bad(j, &j->left_out, "the fit cross-validates badly");
    refuse_bad(j, &j->own, "the fit does not even predict what it was made from");
    return VT_OK;
}

/* ---- what was learned ------------------------------------------------- */

/* What OpenTelemetry files held and lacked. */
static void put_otlp(struct vt_buf *b, const struct fit_job *j)
{
    const struct vt_otlp_stats *s;

    if (!j->otlp)
        return;
    s = vt_otlp_stats(j->otlp);
    vt_buf_printf(
        b, "otlp      %llu steps, %llu ids missing in %llu holes; %llu requests\n",
        (unsigned long long)s->steps, (unsigned long long)s->missing_steps,
        (unsigned long long)s->holes,
        (unsigned long long)(s->journeys + s->call_spans));
    if (s->malformed > 0)
        vt_buf_printf(b, "skipped   %llu malformed spans\n",
                      (unsigned long long)s->malformed);
    for (size_t i = 0; i < s->n_reasons; i++)
        vt_buf_printf(b, "          %s\n", s->reason[i]);
}

static void put_stalls(struct vt_buf *b, const struct fit_job *j)
{
    double seconds = 0;

    if (j->quality.stalls == 0)
        return;
    for (size_t i = 0; i < j->n_seen; i++)
        seconds += vt_fit_look(j->fit, i).stall_seconds;
    vt_buf_printf(b, "stalls    %zu of %.1f s in all, %.1f %% of the time: left out\n",
                  j->quality.stalls, seconds, 100 * j->quality.stall_share);
    for (size_t i = 0; i < j->n_seen; i++) {
        struct vt_fit_look look = vt_fit_look(j->fit, i);

        if (look.stalls > 0)
            vt_buf_printf(b, "          %s: %zu of %.1f s in %.1f s\n", look.name,
                          look.stalls, look.stall_seconds, look.seconds);
    }
}

static void put_sum(struct vt_buf *b, int width, const struct vt_crossval_row *row,
                    size_t n)
{
    struct vt_crossval_row median, mean;

    sum_rows(row, n, &median, &mean, NULL);
    vt_crossval_put(b, width, &median, "");
    vt_crossval_put(b, width, &mean, "");
}

static bool differ(const struct vt_crossval_row *a, const struct vt_crossval_row *b)
{
    return a->e2e != b->e2e || a->ttft != b->ttft || a->itl != b->itl ||
           a->throughput != b->throughput;
}

/* Stalls are no error of the model, but they are of the truth: both are said. */
static void put_errors(struct vt_buf *b, const struct fit_job *j,
                       const struct fit_rows *r, const char *what)
{
    int width = 20;

    if (r->n == 0)
        return;
    for (size_t i = 0; i < r->n; i++)
        width = strlen(r->row[i].name) > (size_t)width ? (int)strlen(r->row[i].name)
                                                       : width;
    vt_buf_printf(b, "\n%s: error of the prediction, %%\n", what);
    vt_crossval_head(b, width);
    for (size_t i = 0; i < r->n; i++)
        vt_crossval_put(b, width, &r->row[i], "");
    put_sum(b, width, r->row, r->n);
    if (j->quality.stalls == 0)
        return;
    vt_buf_str(b, "with stalls cut out of what was measured\n");
    for (size_t i = 0; i < r->n; i++)
        if (differ(&r->row[i], &r->calm[i]))
            vt_crossval_put(b, width, &r->calm[i], "");
    put_sum(b, width, r->calm, r->n);
}

static void put_notes(struct vt_buf *b, const struct fit_job *j)
{
    const char *text = j->notes.len > 0 ? j->notes.data : "";

    if (*text)
        vt_buf_char(b, '\n');
    while (*text) {
        size_t len = strcspn(text, "\n");

        vt_buf_printf(b, "note      %.*s\n", (int)len, text);
        text += len + (text[len] != '\0');
    }
}

static void put_all_errors(struct vt_buf *b, const struct fit_job *j)
{
    if (j->left_out.n > 0)
        put_errors(b, j, &j->left_out, "leave one out");
    else
        put_errors(b, j, &j->own, "fitted on all of them");
    put_notes(b, j);
}

static void put_simulated(struct vt_buf *b, const struct fit_job *j)
{
    size_t requests = 0;

    for (size_t i = 0; i < j->n_seen; i++)
        requests += j->seen[i]->n;
    vt_buf_printf(b,
                  "captures  %zu, %zu requests; no step can be seen in them, so the "
                  "model was found by simulation\n",
                  j->n_seen, requests);
    vt_buf_printf(b, "model     %s\n", j->matched.kind);
    if (j->matched.max_num_seqs > 0)
        vt_buf_printf(b, "limit     %u requests run at once, by what waited\n",
                      j->matched.max_num_seqs);
    if (j->matched.num_gpu_blocks > 0)
        vt_buf_printf(b, "limit     %u blocks of %u tokens, by what waited\n",
                      j->matched.num_gpu_blocks, j->matched.block_size);
    put_all_errors(b, j);
}

static void put_learned(struct vt_buf *b, const struct fit_job *j)
{
    const struct vt_step_params *p = &j->params;

    vt_buf_printf(b, "captures  %zu, %llu steps, %zu windows\n", j->n_seen,
                  (unsigned long long)j->quality.steps, j->quality.windows);
    vt_buf_printf(b, "window    median error %.2f %%, bias %+.2f %%\n",
                  100 * j->quality.median_error, 100 * j->quality.bias);
    put_stalls(b, j);
    vt_buf_printf(b,
                  "decode    %.0f us + %.2f us a token + %.2f us per 1,000 tokens of "
                  "context\n",
                  p->base, p->graph_token, p->context_ktoken);
    if (p->experts > 0)
        vt_buf_printf(b, "experts   %.0f us when all %.0f are touched\n", p->expert,
                      p->experts);
    vt_buf_printf(b, "prompts   %.2f us a token within the graphs, %.2f beyond\n",
                  p->mixed_token, p->eager_token);
    vt_buf_printf(b, "launch    %.1f ms piece by piece, %.1f ms kernel by kernel\n",
                  1e-3 * p->host_launch_mixed, 1e-3 * p->host_launch_eager);
    vt_buf_printf(b,
                  "host      %.2f ms to schedulable, %.2f ms to wake up, %.2f ms to "
                  "schedule, %.2f ms to hand out\n",
                  1e-3 * (p->host_arrive + p->host_intake), 1e-3 * p->host_wake,
                  1e-3 * p->host_sched, 1e-3 * p->host_done);
    fit_link_put(b, j);
    put_all_errors(b, j);
}

/* Limits that no capture states, as what waited shows them. */
static void put_found_limits(const struct fit_job *j, struct vt_fit_about *about)
{
    const struct vt_meta *stated = vt_fit_engine(j->fit);

    about->max_num_seqs = j->matched.max_num_seqs;
    about->num_gpu_blocks = j->matched.num_gpu_blocks;
    about->block_size = j->matched.block_size;
    for (size_t i = 0; i < j->own.n; i++) {
        const struct vt_crossval_row *r = &j->own.row[i];

        if (stated->max_num_seqs == 0 && r->found_seqs > about->max_num_seqs)
            about->max_num_seqs = r->found_seqs;
        if (stated->num_gpu_blocks == 0 && r->found_blocks > about->num_gpu_blocks) {
            about->num_gpu_blocks = r->found_blocks;
            about->block_size = r->block_size;
        }
    }
}

static int write_profile(struct fit_job *j, const struct fit_options *o,
                         struct vt_err *err)
{
    const char *slash = strrchr(o->out, '/'), *file = slash ? slash + 1 : o->out;
    const char *model = fit_engine_of(o, vt_fit_engine(j->fit)).model;
    struct vt_crossval_row in, out, mean, expected;
    struct vt_fit_about about = {o->name, .description = o->description, .gpu = o->gpu};
    struct vt_offload link;
    struct vt_arch arch;
    struct vt_err unknown;
    struct vt_buf b = {0}, learned = {0};
    char name[128];
    int rc;

    (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(file, "."), file);
    if (!about.name)
        about.name = name;
    sum_rows(j->own.calm, j->own.n, &in, &mean, NULL);
    sum_rows(j->left_out.calm, j->left_out.n, &out, &mean, &expected);
    about.in_sample = j->own.n > 0 ? &in : NULL;
    about.out_of_sample = j->left_out.n > 0 ? &out : NULL;
    about.expected = &expected;
    about.forced = *j->refusal ? j->refusal : NULL;
    about.notes = j->notes.data;
    if (model && vt_arch_load(&arch, model, &unknown) == VT_OK)
        about.arch = &arch;
    put_found_limits(j, &about);
    about.link = fit_link_found(j, &link);
    if (o->model == FIT_REGRESSION) {
        fit_regress_learned(&learned, j);
        about.learned = learned.data;
    }
    about.clock = j->matched.clock;
    about.pause_us = j->matched.pause_us;
    about.read_us = j->matched.read_us;
    about.pass_us = j->matched.pass_us;
    vt_fit_profile(&b, j->fit, j->model.data,
                   o->model != FIT_STEP || j->match ? NULL : &j->quality, &about);
    rc = learned.failed ? vt_nomem(err) : vt_write_file(o->out, &b, err);
    vt_buf_free(&b);
    vt_buf_free(&learned);
    return rc;
}

/* What was learned when a signal ended it. */
static int tell_how_far(const struct fit_job *j, struct vt_err *err)
{
    if (!(j->quality.steps > 0))
        return vt_fail(err, VT_EIO,
                       "stopped before the fit was made: %zu captures were read, no "
                       "profile is written",
                       j->n_seen);
    return vt_fail(err, VT_EIO,
                   "stopped: fitted to %zu captures with a median error of %.2f %%, "
                   "%zu cross-validated; no profile is written",
                   j->n_seen, 100 * j->quality.median_error,
                   j->left_out.n > 0 ? j->left_out.n - 1 : 0);
}

static int learn(struct fit_job *j, const struct opt_args *a, struct vt_err *err)
{
    const struct fit_options *o = a->options;
    int rc;

    if ((rc = fit_load(j, a, err)))
        return rc;
    /* Of many models there may be coefficients, but no profile. */
    if (o->model == FIT_REGRESSION &&
        ((rc = fit_regress(j, o, err)) || !o->out || vt_fit_count(j->fit) == 0))
        return rc;
    if ((rc = vt_fit_agree(j->fit, o->limits_of, &j->notes, err)))
        return rc;
    if ((rc = refuse(j, fit_link(j, o, err), err)))
        return rc;
    if (o->model == FIT_REGRESSION)
        return judge(j, o, err);
    if (j->ends_only && o->model != FIT_STEP)
        return vt_fail(err, VT_EINPUT,
                       "--kind %s needs the times of single tokens, and these captures "
                       "have only first and last ones",
                       models[o->model]);
    if (j->by_simulation && o->model == FIT_STEP)
        return learn_simulated(j, o, err);
    rc = o->model == FIT_STEP
             ? learn_steps(j, o, err)
             : vt_fit_baseline(j->fit, VT_FIT_ALL,
                               (enum vt_fit_baseline)(o->model - FIT_BLACKBOX),
                               &j->model, err);
    return rc == VT_OK ? judge(j, o, err) : rc;
}

/* The last line: what was written, or why nothing is. */
static int end_with(struct fit_job *j, const struct fit_options *o, struct vt_buf *b,
                    struct vt_err *err)
{
    bool refused = *j->refusal && !o->force;
    int rc;

    if (o->out && !refused && (rc = write_profile(j, o, err)))
        return rc;
    if (o->out && !refused)
        vt_buf_printf(b, "%sprofile: %s%s%s\n", o->model != FIT_STEP ? "" : "\n",
                      o->out, *j->refusal ? ", by force: " : "", j->refusal);
    rc = cli_print(b, err);
    if (rc != VT_OK || !refused)
        return rc;
    return vt_fail(err, VT_ECHECK, "%s; nothing is written (--force does, marked)",
                   j->refusal);
}

static int fit(const struct opt_args *a, struct vt_err *err)
{
    const struct fit_options *o = a->options;
    struct fit_job j = {0};
    struct vt_buf b = {0};
    int rc;

    if (a->n_operands == 0 && o->otlp.n == 0)
        return vt_fail(err, VT_EINPUT, "usage: vtwin fit %s", cmd_fit.usage);
    cli_signals_stop();
    cli_progress_begin(o->progress, o->quiet);
    rc = learn(&j, a, err);
    cli_progress_end();
    if (rc == VT_OK) {
        put_otlp(&b, &j);
        if (j.match)
            put_simulated(&b, &j);
        else if (o->model == FIT_STEP)
            put_learned(&b, &j);
        else if (o->model == FIT_REGRESSION)
            rc = fit_regress_put(&b, &j, err);
        if (o->model != FIT_STEP)
            fit_link_put(&b, &j);
        if (rc == VT_OK)
            rc = fit_regress_csv(&j, o, err);
        if (rc == VT_OK)
            rc = end_with(&j, o, &b, err);
    }
    if (rc != VT_OK && cli_signal_caught())
        rc = tell_how_far(&j, err);
    fit_free(&j);
    return rc;
}

static const char *const step_times[] = {"interval", "duration", NULL};

#define OPT_T struct fit_options
static const struct opt_row rows[] = {
    OPT_TEXT(out, "out", "FILE", NULL, "the profile to write (also -o)"),
    OPT_LIST(otlp, "otlp", "FILE|DIR",
             "OpenTelemetry spans of one run as the collector writes them; repeatable"),
    OPT_WORD(step_time, "step-time", "KIND", step_times, "interval",
             "what a traced step took: until the next began, or its stated duration"),
    OPT_TEXT(hf_config, "hf-config", "FILE", NULL,
             "the model's config.json, or a name"),
    OPT_TEXT(gpu, "gpu", "NAME", NULL, "the GPU it ran on"),
    OPT_TEXT(hw, "hw", "FILE", NULL, "GPUs that are not built in"),
    OPT_U32(tp, "tensor-parallel-size", "N", 1, 1024, "1", "GPUs"),
    OPT_TEXT(name, "name", "TEXT", NULL, "of the profile; else the file's"),
    OPT_TEXT(description, "description", "TEXT", NULL, "one line about it"),
    OPT_WORD(model, "kind", "KIND", models, "step",
             "what to fit; blackbox and knob are there to compare with"),
    OPT_WORD(learner, "learner", "KIND", vt_learner_names, "linear",
             "regression: how coefficients are found"),
    OPT_TEXT(alpha_terms, "alpha-terms", "LIST", NULL,
             "regression: what explains waiting: a,b^2,a*c", .shown = "docs/otlp.md"),
    OPT_TEXT(beta_terms, "beta-terms", "LIST", NULL,
             "regression: what explains a step's time", .shown = "docs/otlp.md"),
    OPT_U32(degree, "degree", "N", 1, VT_TERM_POWER, "1",
            "regression: powers of each feature that is named"),
    OPT_F64(lambda, "lambda", "X", 0, 1e6, NULL,
            "regression: penalty of ridge and lasso", .shown = "found by time blocks"),
    OPT_F64(hold_out, "hold-out", "X", 0, 0.9, "0.2",
            "regression: share of each capture, its end, to judge on"),
    OPT_U32(warmup, "warmup-steps", "N", 0, INT32_MAX, "10",
            "regression: first steps of each capture to leave out"),
    OPT_TEXT(alpha_csv, "alpha-csv", "FILE", NULL,
             "write a row for each traced request: how long it waited, and why"),
    OPT_TEXT(beta_csv, "beta-csv", "FILE", NULL,
             "write a row for each step: how long it took, and what was in it"),
    OPT_WORD(model, "model", "KIND", models, "step", "", .now = "kind"),
    OPT_TEXT(limits_of, "limits-of", "NAME", NULL,
             "the capture that is right where they differ", .shown = "most are"),
    OPT_FLAG(no_cv, "no-cv", "leave no capture out: no cross-validation"),
    OPT_FLAG(force, "force", "write a profile that is not to be trusted, marked"),
    PROGRESS_ROW(progress),
    OPT_FLAG(quiet, "quiet", "no progress line"),
    {0},
};
static const struct opt_block blocks[] = {
    OPT_ROWS(rows),
    OPT_BLOCK(cli_files_rows, struct fit_options, files),
    {0},
};
static const char *const examples[] = {
    "./run fit tests/sim/data --hf-config qwen3-8b --gpu H200 -o my-profile.json",
    NULL};

const struct opt_command cmd_fit = {
    .name = "fit",
    .summary = "learn a profile from captures",
    .usage = "[DIR|FILE...] [--otlp FILE] -o PROFILE.json",
    .about =
        "Takes step logs, traces, OpenTelemetry spans and reports of load generators,\n"
        "whatever they are called; of a directory all that it finds. Learns the step\n"
        "model and says how well it predicts each capture when fitted without it.\n"
        "Without a step log the steps are rebuilt from the times of tokens; without\n"
        "those the model is found by simulation.",
    .blocks = blocks,
    .size = sizeof(struct fit_options),
    .most = UINT32_MAX,
    .examples = examples,
    .run = fit,
};
