/* adapters.c - the table of adapters, and which of them are wanted. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "validate/adapters/adapter.h"

/* Programs of others keep their files in a directory that is gone afterwards. */
static int run_in_place(const struct adapter_job *j, struct gather *g,
                        struct vt_err *err)
{
    char place[ADAPTER_PATH - 104];
    size_t len = (size_t)snprintf(place, sizeof(place), "%s/vtwin-validate-XXXXXX",
                                  j->c->scratch);
    struct vt_proc rm = {0};
    struct vt_err ignored;
    int rc;

    if (len >= sizeof(place) || !mkdtemp(place))
        return vt_fail(err, VT_EIO, "%s: %s", place, strerror(errno));
    rc = j->a->run_in(j, place, g, err);
    vt_proc_arg_pair(&rm, "/bin/rm", "-rf");
    vt_proc_arg_pair(&rm, "--", place);
    if (vt_proc_run(&rm, 0, &ignored) != VT_OK)
        rmdir(place);
    vt_proc_stop(&rm);
    return rc;
}

#define NATIVE(name, kind, help) \
    {name, help, kind, ARRIVALS_OPEN, false, native_can_run, native_run, NULL}
/* BLIS's models, with its arrivals and with those of an open loop. */
#define BLIS(kind, help)                                                     \
    {                                                                        \
        "blis-" kind, help,           kind,       ARRIVALS_BLIS,             \
        false,        native_can_run, native_run, NULL},                     \
    {                                                                        \
        "blis-" kind "-open", help ", open loop", kind, ARRIVALS_OPEN, true, \
            native_can_run, native_run, NULL                                 \
    }
/* What the study's first release of BLIS sent. */
#define EARLY(kind, help)                                             \
    {"blis-" kind "-b05154c", help,       kind, ARRIVALS_EARLY, true, \
     native_can_run,          native_run, NULL}
#define PROGRAM(of, name, kind, help) \
    {name, help, kind, ARRIVALS_OPEN, false, of##_can_run, run_in_place, of##_run}

static const struct adapter table[] = {
    NATIVE("vtwin-step", "step", "a profile fitted to engine steps, or an estimate"),
    NATIVE("vtwin-trace", "trace",
           "times drawn from the requests of other experiments"),
    NATIVE("vtwin-knob", "knob", "mean TTFT and ITL of other experiments"),
    BLIS("blackbox", "BLIS's alpha/beta coefficients"),
    BLIS("roofline", "BLIS's roofline"),
    BLIS("crossmodel", "BLIS's coefficients for all models"),
    BLIS("trained-roofline", "BLIS's roofline with trained corrections"),
    BLIS("trained-physics", "BLIS's trained physics"),
    EARLY("blackbox", "BLIS's coefficients, as of commit b05154c"),
    EARLY("roofline", "BLIS's roofline, as of commit b05154c"),
    EARLY("crossmodel", "BLIS's, for all models, as of commit b05154c"),
    {"llm-optimizer-estimate", "llm-optimizer's roofline, matched by throughput", "",
     ARRIVALS_OPEN, false, estimate_can_run, estimate_run, NULL},
    PROGRAM(blis, "blis-binary-blackbox", "blackbox",
            "the BLIS program with its coefficients"),
    PROGRAM(blis, "blis-binary-roofline", "roofline",
            "the BLIS program with its roofline"),
    PROGRAM(blis, "blis-binary-crossmodel", "crossmodel",
            "the BLIS program, coefficients for all models"),
    PROGRAM(blis, "blis-binary-trained-roofline", "trained-roofline",
            "the BLIS program, trained roofline"),
    PROGRAM(blis, "blis-binary-trained-physics", "trained-physics",
            "the BLIS program with its trained physics"),
    PROGRAM(vidur, "vidur", "", "Vidur (Python)"),
    PROGRAM(aiconfigurator, "aiconfigurator-estimate", "",
            "AIConfigurator (Python), matched by throughput"),
    PROGRAM(llmservingsim, "llmservingsim", "", "LLMServingSim (Python)"),
};

void vt_adapters_list(struct vt_buf *b)
{
    for (size_t i = 0; i < VT_COUNT(table); i++)
        vt_buf_printf(b, "%-28s %s\n", table[i].name, table[i].help);
}

/* ---- generic ones ---------------------------------------------------- */

static size_t name_length(const char *command)
{
    const char *equals = strchr(command, '=');

    return equals ? (size_t)(equals - command) : 0;
}

static bool is_builtin(const char *name)
{
    for (size_t i = 0; i < VT_COUNT(table); i++)
        if (strcmp(table[i].name, name) == 0)
            return true;
    return false;
}

static int add_command(struct vt_arena *arena, struct adapter *to, const char *command,
                       struct vt_err *err)
{
    size_t n = name_length(command);

    *to = (struct adapter)PROGRAM(command, NULL, command + n + 1, NULL);
    if (n == 0 || command[n + 1] == '\0')
        return vt_fail(err, VT_EINPUT, "'%s' is not NAME=COMMAND", command);
    to->name = vt_arena_copy(arena, command, n);
    if (to->name && is_builtin(to->name))
        return vt_fail(err, VT_EINPUT, "'%s' is an adapter already", to->name);
    return to->name ? VT_OK : vt_nomem(err);
}

/* ---- choosing -------------------------------------------------------- */

int vt_adapter_check(const struct vt_harness_config *c, const char *name,
                     struct vt_err *err)
{
    const char *names[VT_COUNT(table) + 1] = {0};
    const char *near;

    if (is_builtin(name))
        return VT_OK;
    for (size_t i = 0; c->commands && c->commands[i]; i++)
        if (name_length(c->commands[i]) == strlen(name) &&
            strncmp(c->commands[i], name, strlen(name)) == 0)
            return VT_OK;
    for (size_t i = 0; i < VT_COUNT(table); i++)
        names[i] = table[i].name;
    near = vt_nearest(name, names);
    return vt_fail(err, VT_EINPUT, "unknown adapter '%s'%s%s%s", name,
                   near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

/* Programs of others take part when somebody said where they are. */
static bool is_wanted(const struct vt_harness_config *c, const struct adapter *a)
{
    for (size_t i = 0; c->adapters && c->adapters[i]; i++)
        if (strcmp(c->adapters[i], a->name) == 0)
            return true;
    if (c->adapters || a->named)
        return false;
    return !a->run_in || a->run_in == command_run ||
           (a->run_in == blis_run && c->blis_binary) ||
           (a->run_in == vidur_run && c->vidur_dir) ||
           (a->run_in == llmservingsim_run && c->llmservingsim_dir) ||
           (a->run_in == aiconfigurator_run && c->aiconfigurator);
}

int adapters_choose(struct vt_arena *arena, const struct vt_harness_config *c,
                    const struct adapter **out, size_t *n, struct vt_err *err)
{
    size_t n_commands = 0;
    struct adapter *list;
    int rc = VT_OK;

    for (size_t i = 0; c->adapters && c->adapters[i] && rc == VT_OK; i++)
        rc = vt_adapter_check(c, c->adapters[i], err);
    while (c->commands && c->commands[n_commands])
        n_commands++;
    list = vt_arena_alloc(arena, (VT_COUNT(table) + n_commands) * sizeof(*list));
    if (rc == VT_OK && !list)
        rc = vt_nomem(err);
    *n = 0;
    for (size_t i = 0; i < VT_COUNT(table) && rc == VT_OK; i++)
        if (is_wanted(c, &table[i]))
            list[(*n)++] = table[i];
    for (size_t i = 0; i < n_commands && rc == VT_OK; i++) {
        rc = add_command(arena, &list[*n], c->commands[i], err);
        *n += rc == VT_OK && is_wanted(c, &list[*n]);
    }
    *out = list;
    return rc;
}
