/* simulate_against.c - one question to several engines: the same command line, and what
 * is put over it, side by side. */
#include "cli/cmd/simulate.h"
#include "load/load.h"

enum { NAME = 200 };

struct side {
    const char *flags;   /* that it adds to the command line; "": none */
    struct vt_buf trust; /* what its answer stands on */
};

/* ---- a side's command line ---------------------------------------------------- */

/* All words but --against with its own: what comes last counts. */
static int copy_words(struct opt_words *w, const struct opt_args *a, struct vt_err *err)
{
    int rc = VT_OK;

    for (int i = 0; i < a->argc && rc == VT_OK; i++) {
        if (strcmp(a->argv[i], "--against") == 0)
            i++;
        else if (strncmp(a->argv[i], "--against=", strlen("--against=")) != 0)
            rc = opt_word_add(w, a->argv[i], err);
    }
    return rc;
}

/* A report is of one run; a comparison with what was measured is one of its own. */
static int check_flags(const struct opt_args *a, struct vt_err *err)
{
    static const char why[] = ": of one run, not with --against";
    const struct simulate_options *o = a->options;
    int rc = opt_refuse(a, &o->out, why, err);

    if (rc == VT_OK)
        rc = opt_refuse(a, &o->report, why, err);
    return rc ? rc : opt_refuse(a, &o->compare, why, err);
}

/* Of one of its runs; but for the first one in silence, since they would all say the
 * same. */
static int parse_run(struct opt_args *out, const struct opt_args *a,
                     const struct side *x, uint32_t run, struct vt_arena *arena,
                     struct vt_err *err)
{
    const struct simulate_options *o = a->options;
    struct opt_words all = {.arena = arena};
    int rc = copy_words(&all, a, err);

    *out = (struct opt_args){0};
    if (rc == VT_OK)
        rc = opt_word_split(&all, x->flags, err);
    if (rc == VT_OK && o->seeds > 1)
        rc = opt_word_put(&all, err, "--seed=%lld",
                          (long long)(o->seed >= 0 ? o->seed : 1) + run);
    if (rc == VT_OK && run > 0)
        rc = opt_word_add(&all, "--quiet", err);
    if (rc == VT_OK)
        rc = opt_parse(out, a->command, (int)all.n, all.word, err);
    if (rc == VT_OK && out->n_operands > a->command->most)
        rc = vt_fail(err, VT_EINPUT, "'%s' is no flag; a model is named by --model",
                     out->operand[out->n_operands - 1]);
    if (rc == VT_OK)
        rc = check_flags(out, err);
    return rc;
}

/* ---- its runs -------------------------------------------------------------------- */

/* a: of the run. */
static int run_once(struct vt_results *r, struct side *x, const struct opt_args *a,
                    struct vt_err *err)
{
    struct vt_summary s = {0};
    struct vt_buf b = {0};
    struct simulate_job j;
    char name[NAME];
    int rc = simulate_job_open(&j, a, err);

    (void)snprintf(name, sizeof(name), "%s", *x->flags ? x->flags : "as it is");
    if (rc == VT_OK)
        rc = simulate_run(&j, a, &s, err);
    if (rc == VT_OK) {
        if (x->trust.len == 0 && engine_tells_trust(&j.engine))
            vt_basis_table(&x->trust, &j.engine.trust);
        simulate_json(&b, &s, &j);
        rc = b.failed ? vt_nomem(err) : vt_results_read(r, name, b.data, b.len, err);
    }
    vt_buf_free(&b);
    simulate_job_close(&j);
    return rc;
}

/* Runs of one side differ by their seed alone. */
static int run_side(struct vt_results *r, struct side *x, const struct opt_args *a,
                    struct vt_err *err)
{
    const struct simulate_options *o = a->options;
    size_t side = r->n_sides, first = r->n;
    int rc = VT_OK;

    for (uint32_t i = 0; i < o->seeds && rc == VT_OK; i++) {
        struct vt_arena arena = {0};
        struct opt_args own;

        rc = parse_run(&own, a, x, i, &arena, err);
        if (rc == VT_OK)
            rc = run_once(r, x, &own, err);
        opt_free(&own);
        vt_arena_free(&arena);
    }
    for (size_t i = first; i < r->n; i++)
        r->result[i].side = side;
    r->n_sides = side + 1;
    return *x->flags ? vt_within(err, rc, "--against '%s'", x->flags) : rc;
}

/* ---- the answer ------------------------------------------------------------------ */

static bool is_same(const struct vt_buf *a, const struct vt_buf *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

/* Once where several stand on the same. */
static void put_trust(struct vt_buf *b, const struct side *x, size_t n)
{
    vt_buf_char(b, '\n');
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && is_same(&x[i].trust, &x[i - 1].trust))
            continue;
        if (i > 0)
            vt_buf_printf(b, "%c:\n", (char)('A' + i % 26));
        vt_buf_add(b, x[i].trust.data, x[i].trust.len);
    }
}

int simulate_against(const struct opt_args *a, struct vt_err *err)
{
    const struct simulate_options *o = a->options;
    const struct vt_result_judgement j = {.tolerance = -1};
    size_t n = o->against.n + 1, worse = 0;
    struct side *x = calloc(n, sizeof(*x));
    struct vt_results r = {0};
    struct vt_buf b = {0};
    int rc = x ? VT_OK : vt_nomem(err);

    for (size_t i = 0; i < n && rc == VT_OK; i++) {
        x[i].flags = i > 0 ? o->against.value[i - 1] : "";
        rc = run_side(&r, &x[i], a, err);
    }
    if (rc == VT_OK && o->json)
        rc = vt_results_json(&b, &r, &j, &worse, err);
    else if (rc == VT_OK)
        rc = vt_results_table(&b, &r, &j, &worse, err);
    if (rc == VT_OK && !o->json)
        put_trust(&b, x, n);
    rc = cli_print_end(&b, rc, err);
    vt_results_free(&r);
    for (size_t i = 0; x && i < n; i++)
        vt_buf_free(&x[i].trust);
    free(x);
    return rc;
}
