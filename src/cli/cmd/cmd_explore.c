/* cmd_explore.c - vtwin explore: a page that asks the other commands. */
#include "cli/cmd/simulate.h"
#include "cli/cmd/trial.h"
#include "cli/signals.h"
#include "explore/explore.h"

struct explore_options {
    uint32_t port;
    /* For help and checks; what was said goes to the commands as it was said. */
    struct traffic_options traffic;
    struct engine_options engine;
    struct fleet_options fleet;
    struct limits_named slo;
    uint32_t seeds;
    int64_t seed;
    double tolerance;
};

#define OPT_T struct explore_options
static const struct opt_row rows[] = {
    OPT_U32(port, "port", "N", 0, 65535, "8765", "on 127.0.0.1; 0: a free one"),
    {0},
};
/* As those of capacity. */
static const struct opt_row search_rows[] = {
    LIMITS_ROW(slo, .shown = "as capacity's"),
    OPT_U32(seeds, "seeds", "N", 1, 1000, "3", "runs of each rate"),
    OPT_I64(seed, "seed", "N", 0, INT64_MAX - 1000, "1", "the first of them"),
    OPT_F64(tolerance, "tolerance", "SHARE", 1e-4, 1, "0.02", "how close to search"),
    {0},
};
static const struct opt_block blocks[] = {
    OPT_ROWS(rows),
    OPT_ROWS(search_rows),
    TRAFFIC_BLOCKS(struct explore_options, traffic),
    ENGINE_BLOCKS(struct explore_options, engine),
    OPT_BLOCK(lockstep_rows, struct explore_options, engine),
    OPT_BLOCK(fleet_rows, struct explore_options, fleet),
    {0},
};

/* ---- what the server asks ----------------------------------------------------- */

static bool takes(void *user, const char *command, const char *flag)
{
    const struct opt_command *c = cli_find(command);
    const struct opt_row *row;

    (void)user;
    for (size_t at = 0; c && (row = opt_next(c, &at));)
        if (strcmp(row->name, flag) == 0)
            return true;
    return false;
}

static int run_line(void *user, int argc, const char *const *argv)
{
    (void)user;
    return cli_main(argc, argv);
}

static void tell_ready(void *user, const char *url)
{
    (void)user;
    printf("%s\n", url);
    fflush(stdout);
    cli_tell_named(NULL, "open that in a browser; Ctrl-C ends it");
}

/* ---- the command --------------------------------------------------------------- */

static int explore(const struct opt_args *a, struct vt_err *err)
{
    const struct explore_options *o = a->options;
    struct vt_explore_flag *start =
        calloc(a->n_mentions + a->n_operands + 1, sizeof(*start));
    struct vt_explore x = {.port = (uint16_t)o->port,
                           .start = start,
                           .takes = takes,
                           .command = run_line,
                           .scratch = cli_scratch(),
                           .ready = tell_ready,
                           .stopped = cli_stopped};
    int rc;

    if (!start)
        return vt_nomem(err);
    for (size_t i = 0; i < a->n_operands; i++)
        start[x.n_start++].value = a->operand[i];
    for (size_t i = 0; i < a->n_mentions; i++) {
        const struct opt_mention *s = &a->mention[i];
        bool is_switch = s->row->kind <= OPT_IS_SWITCH;

        if (s->row != &rows[0])
            start[x.n_start++] = (struct vt_explore_flag){
                s->row->name, is_switch ? (s->off ? "off" : "on") : s->value};
    }
    cli_signals_catch();
    rc = vt_explore(&x, err);
    cli_signal_answered();
    free(start);
    return rc;
}

static const char *const examples[] = {
    "timeout --preserve-status 1 ./run explore --port 0",
    "timeout --preserve-status 1 ./run explore llama-3.1-8b --gpu H100 --port 0",
    NULL,
};

const struct opt_command cmd_explore = {
    .name = "explore",
    .summary = "a local page: pick model, GPU and traffic, see the answer move",
    .usage = "[MODEL] [--gpu NAME] [--workload NAME|FILE] [--slo LIMITS] [FLAGS]",
    .about =
        "Serves a page on 127.0.0.1 and prints its address. Sliders set model, GPUs,\n"
        "traffic and limits; a curve by short runs comes at once, and then what\n"
        "vtwin capacity and vtwin simulate print for the same flags, which the page\n"
        "shows. Flags say where it begins; files can only be named here.",
    .blocks = blocks,
    .size = sizeof(struct explore_options),
    .most = 1,
    .examples = examples,
    .run = explore,
};
