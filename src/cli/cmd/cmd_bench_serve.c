/* cmd_bench_serve.c - vtwin bench serve: one run against a server. */
#include <math.h>
#include <stdlib.h>

#include "cli/cmd/bench.h"
#include "cli/signals.h"

/* ---- the file ---------------------------------------------------------- */

/* vLLM's name of a result, unless one is given. */
static void file_name(const struct bench_job *j, struct vt_buf *b)
{
    const char *dir = j->o->result_dir, *name = j->o->result_filename;
    const struct vt_load_about *a = &j->about;
    const char *slash = strrchr(a->model, '/');

    if (dir)
        vt_buf_printf(b, "%s/", dir);
    if (name) {
        vt_buf_str(b, name);
        return;
    }
    vt_buf_printf(b, "%s-", a->label ? a->label : a->backend);
    if (a->ramp != VT_RAMP_NONE) {
        vt_buf_printf(b, "ramp-up-%s-%uqps-%u",
                      a->ramp == VT_RAMP_LINEAR ? "linear" : "exponential",
                      (unsigned)a->ramp_start, (unsigned)a->ramp_end);
    } else if (isinf(a->rate)) {
        vt_buf_str(b, "inf");
    } else {
        vt_buf_py_f64(b, a->rate);
    }
    vt_buf_str(b, "qps");
    if (a->max_concurrency > 0)
        vt_buf_printf(b, "-concurrency%u", (unsigned)a->max_concurrency);
    vt_buf_printf(b, "-%s-%s.json", slash ? slash + 1 : a->model, a->date);
}

/* Behind the results that are there. Like vLLM's, the last one has no line end. */
static int append_result(const char *path, const struct vt_buf *text,
                         struct vt_err *err)
{
    enum { GZIP_LEVEL = 6 };
    struct vt_append *f;
    int rc = vt_append_open(&f, path, GZIP_LEVEL, true, err), ended;

    if (rc != VT_OK)
        return rc;
    rc = vt_append_put(f, text, err);
    ended = vt_append_close(f, rc == VT_OK ? err : NULL);
    return rc == VT_OK ? ended : rc;
}

static int save_result(const struct bench_job *j, const struct vt_load_records *r,
                       const struct vt_load_summary *s, const struct vt_buf *twin,
                       struct vt_err *err)
{
    const char *dir = j->o->result_dir;
    struct vt_buf text = {0}, path = {0};
    bool appends = j->o->append_result;
    int rc = VT_OK;

    if (!appends && !j->o->save_result)
        return VT_OK;
    if (dir && (rc = vt_make_dirs(dir, NULL, err)))
        return rc;
    bench_job_json(j, r, s, twin, &text);
    file_name(j, &path);
    if (text.failed || path.failed)
        rc = vt_nomem(err);
    else
        rc = appends ? append_result(path.data, &text, err)
                     : vt_write_file(path.data, &text, err);
    if (rc == VT_OK)
        bench_tell("result in %s", path.data);
    if (rc == VT_OK && dir && !appends) {
        path.len -= vt_ends_with(path.data, ".json") ? strlen(".json") : 0;
        vt_buf_str(&path, ".html");
        rc = path.failed ? vt_nomem(err) : bench_page(j, r, s, path.data, err);
    }
    vt_buf_free(&text);
    vt_buf_free(&path);
    return rc;
}

/* What would be sent when. Later turns have no time: they wait for a reply. */
static int print_plan(const struct bench_job *j, struct vt_err *err)
{
    vt_ns *at = malloc((j->plan.n + 1) * sizeof(*at));
    struct vt_buf b = {0};
    int rc = at ? bench_job_times(j, at, err) : vt_nomem(err);
    uint64_t in = 0, out = 0;
    vt_ns last = 0;

    vt_buf_printf(&b, "%8s %12s %6s %8s %8s\n", "session", "at (s)", "turn", "prompt",
                  "output");
    for (size_t i = 0; rc == VT_OK && i < j->plan.n; i++) {
        const struct vt_load_session *s = &j->plan.session[i];
        vt_ns when = j->plan.timed ? s->at : at[i];

        last = when > last ? when : last;
        for (uint32_t k = 0; k < s->n_turns; k++) {
            in += s->turn[k].prompt_tokens;
            out += s->turn[k].output_tokens;
            if (k == 0)
                vt_buf_printf(&b, "%8zu %12.6f", i, (double)when / 1e9);
            else
                vt_buf_printf(&b, "%8zu %12s", i, "after");
            vt_buf_printf(&b, " %6u %8u %8u\n", (unsigned)k,
                          (unsigned)s->turn[k].prompt_tokens,
                          (unsigned)s->turn[k].output_tokens);
        }
    }
    vt_buf_printf(&b,
                  "%zu requests in %zu sessions, %llu prompt and %llu output tokens, "
                  "last first request at %.6f s\n",
                  j->plan.n_turns, j->plan.n, (unsigned long long)in,
                  (unsigned long long)out, (double)last / 1e9);
    free(at);
    return cli_print_end(&b, rc, err);
}

/* ---- limits ----------------------------------------------------------- */

/* What of a measurement limits are about. */
static struct vt_summary limited_part(const struct vt_load_summary *s)
{
    return (struct vt_summary){
        .ttft = {.p99 = s->ttft.p99},
        .tpot = {.p99 = s->tpot.p99},
        .itl = {.p99 = s->itl.p99},
        .e2e = {.p99 = s->e2el.p99},
    };
}

/* A limit on gaps alone is not one that a single request has. */
static void put_limits(struct vt_buf *b, const struct bench_job *j,
                       const struct vt_load_summary *s)
{
    struct vt_summary run = limited_part(s);
    struct limits_kept k = {&run, s->completed + s->failed,
                            j->about.goodput
                                ? (uint64_t)llround(s->request_goodput * s->duration_s)
                                : s->completed,
                            s->duration_s};

    limits_table(b, &j->o->slo.at, &k);
}

/* ---- the command ------------------------------------------------------ */

static int measure_server(struct bench_job *j, struct vt_err *err)
{
    const struct bench_options *o = j->o;
    struct vt_load_records r = {0};
    struct vt_load_summary s = {0};
    struct vt_load_origin origin;
    struct vt_buf b = {0}, twin = {0};
    struct vt_err why = {0};
    int rc = bench_job_warm(j, err), no_twin = VT_OK;

    if (rc || (rc = bench_job_run(j, &r, &s, err)))
        goto out;
    if (r.interrupted)
        bench_tell("stopped; this is what there is");
    origin = bench_job_origin(j);
    vt_load_result_table(&b, &j->about, &j->asks, &s);
    if (!o->vllm_only)
        vt_load_own_table(&b, &s, &r);
    if (!o->vllm_only && j->plan.n_turns > j->plan.n &&
        (rc = vt_load_turns_table(&b, &r, &j->asks, err)))
        goto out;
    if (o->slo.given)
        put_limits(&b, j, &s);
    /* What was measured is not lost with a twin that cannot be: that is told last. */
    if (o->twin && s.completed > 0)
        no_twin =
            vt_within(&why, bench_twin(j, &r, &b, &twin, &why), "--twin '%s'", o->twin);
    if ((rc = cli_print(&b, err)) || (rc = save_result(j, &r, &s, &twin, err)) ||
        (o->compare.report && (rc = bench_page(j, &r, &s, o->compare.report, err))) ||
        (o->trace_out && (rc = bench_write_trace(&r, &origin, o->trace_out, err))) ||
        (o->lifecycle_out &&
         (rc = vt_load_write_lifecycle(&(struct vt_load_stage){&r, &origin}, 1,
                                       o->lifecycle_out, err))))
        goto out;
    rc = bench_job_check(&r, &s, err);
    if (rc == VT_OK && o->slo.given) {
        struct vt_summary run = limited_part(&s);

        rc = limits_check(&o->slo.at, &run, err);
    }
    if (rc == VT_OK && no_twin != VT_OK) {
        *err = why;
        rc = no_twin;
    }
out:
    vt_buf_free(&b);
    vt_buf_free(&twin);
    vt_load_records_free(&r);
    return rc;
}

int bench_serve(const struct opt_args *a, struct vt_err *err)
{
    struct bench_job j;
    int rc;

    cli_signals_catch();
    j = (struct bench_job){.o = a->options};
    rc = bench_twin_check(&j, err);
    if (rc != VT_OK)
        return rc;
    rc = bench_job_open(&j, a, err);
    if (rc == VT_OK)
        rc = j.o->dry_run ? print_plan(&j, err) : measure_server(&j, err);
    bench_job_close(&j);
    return rc;
}
