/* bench_twin.c - beside what was measured, what the twin of an engine predicts: the
 * very requests that were sent, at the times at which they were, by a client's clock.
 */
#include <unistd.h>

#include "cli/cmd/bench.h"
#include "cli/cmd/simulate.h"

/* simulate's command line. Flags of the user's come last, and count. */
static int parse_twin(struct opt_args *out, const char *trace, const char *flags,
                      struct vt_arena *arena, struct vt_err *err)
{
    struct opt_words w = {.arena = arena};
    int rc;

    *out = (struct opt_args){0};
    if ((rc = opt_word_put(&w, err, "--trace=%s", trace)) ||
        (rc = opt_word_add(&w, "--compare", err)) ||
        (rc = opt_word_split(&w, flags, err)) ||
        (rc = opt_parse(out, &cmd_simulate, (int)w.n, w.word, err)))
        return rc;
    if (out->n_operands > cmd_simulate.most)
        return vt_fail(err, VT_EINPUT, "'%s' is one model too many",
                       out->operand[out->n_operands - 1]);
    return VT_OK;
}

int bench_twin_check(const struct bench_job *j, struct vt_err *err)
{
    struct vt_arena arena = {0};
    struct opt_args a = {0};
    int rc = VT_OK;

    if (!j->o->twin)
        return VT_OK;
    if (j->o->dry_run)
        return vt_fail(err, VT_EINPUT, "--twin: nothing is measured with --dry-run");
    rc = parse_twin(&a, "-", j->o->twin, &arena, err);
    opt_free(&a);
    vt_arena_free(&arena);
    return vt_within(err, rc, "--twin '%s'", j->o->twin);
}

/* On one line: line ends of JSON text are only there for the eye. */
static void put_json(struct vt_buf *json, const struct vt_summary *s,
                     const struct simulate_job *j)
{
    size_t from = json->len;

    vt_compare_json(json, s, &j->measured);
    for (size_t i = from; !json->failed && i < json->len; i++)
        if (json->data[i] == '\n')
            json->data[i] = ' ';
}

static int run_twin(const struct opt_args *a, struct vt_buf *table, struct vt_buf *json,
                    struct vt_err *err)
{
    struct vt_summary s = {0};
    struct simulate_job j;
    int rc = simulate_job_open(&j, a, err);

    if (rc == VT_OK)
        rc = simulate_run(&j, a, &s, err);
    if (rc == VT_OK) {
        vt_buf_printf(table, "\nTwin: %s, by the %s's clock\n", j.engine.timed_by,
                      vt_clock_name(j.spec.clock));
        vt_compare_table(table, &s, &j.measured);
        if (engine_tells_trust(&j.engine))
            vt_basis_table(table, &j.engine.trust);
        put_json(json, &s, &j);
    }
    simulate_job_close(&j);
    return rc;
}

int bench_twin(const struct bench_job *j, const struct vt_load_records *r,
               struct vt_buf *table, struct vt_buf *json, struct vt_err *err)
{
    struct vt_load_origin origin = bench_job_origin(j);
    struct vt_arena arena = {0};
    struct opt_args a = {0};
    size_t left_out = 0;
    char path[4096];
    int rc;

    (void)snprintf(path, sizeof(path), "%s/vtwin-twin-%ld.jsonl", cli_scratch(),
                   (long)getpid());
    rc = vt_load_write_trace(r, &origin, path, &left_out, err);
    if (rc == VT_OK)
        rc = parse_twin(&a, path, j->o->twin, &arena, err);
    if (rc == VT_OK)
        rc = run_twin(&a, table, json, err);
    opt_free(&a);
    vt_arena_free(&arena);
    (void)unlink(path);
    return rc;
}
