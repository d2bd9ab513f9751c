/* model.c - latency models: profiles, inline ones, and the caller's own. */
#include <stdlib.h>
#include <string.h>

#include "lib/lib.h"

struct lib_custom {
    struct vt_latency head; /* first: a vt_latency is all that core sees */
    double (*step_us)(void *user, const struct vtwin_step *s);
    void *user;
};

static void custom_step(const struct vt_latency *m, const struct vt_step_shape *s,
                        struct vt_step_cost *cost)
{
    const struct lib_custom *c = (const struct lib_custom *)m;
    const struct vt_step_plan *p = s->plan;
    struct vtwin_step step = {
        VTWIN_INIT(step),
        .number = s->step,
        .decodes = p->n_decodes,
        .prefills = p->n_prefills,
        .decode_tokens = p->decode_tokens,
        .prefill_tokens = p->prefill_tokens,
        .decode_context_tokens = p->decode_ctx,
        .running = p->running,
        .waiting = p->waiting,
    };

    cost->gpu_us = c->step_us(c->user, &step);
}

/* "kind:..." of a known kind is an inline model; a path may hold a colon as well. */
static bool is_inline(const char *name)
{
    size_t kind = strcspn(name, ":");
    char text[32] = "";

    if (kind >= sizeof(text))
        return false;
    memcpy(text, name, kind);
    return vt_model_find(text) != NULL;
}

static int open_model(struct vtwin_model **out, const char *name, struct vt_err *err)
{
    struct vtwin_model *m = calloc(1, sizeof(*m));
    int rc;

    if (!m)
        return vt_nomem(err);
    rc = is_inline(name) ? vt_model_open_inline(&m->opened, name, err)
                         : vt_profile_open(&m->profile, name, err);
    m->latency = m->opened ? m->opened : m->profile.model;
    if (rc == VT_OK)
        *out = m;
    else
        free(m);
    return rc;
}

int vtwin_model_open(struct vtwin_model **out, const char *name,
                     struct vtwin_error *err)
{
    struct vt_err why = {0};

    *out = NULL;
    return lib_end(err, open_model(out, name, &why), &why);
}

int vtwin_model_custom(struct vtwin_model **out,
                       double (*step_us)(void *, const struct vtwin_step *), void *user,
                       struct vtwin_error *err)
{
    static const struct vt_latency_ops ops = {.name = "custom", .step = custom_step};
    struct lib_custom *c = calloc(1, sizeof(*c));
    struct vt_err why = {0};

    *out = c ? calloc(1, sizeof(**out)) : NULL;
    if (!*out) {
        free(c);
        return lib_end(err, vt_nomem(&why), &why);
    }
    *c = (struct lib_custom){{.ops = &ops}, step_us, user};
    (*out)->latency = (*out)->opened = &c->head;
    return lib_end(err, VT_OK, &why);
}

void vtwin_model_free(struct vtwin_model *m)
{
    if (!m)
        return;
    vt_profile_close(&m->profile);
    vt_latency_close(m->opened);
    free(m);
}

void vtwin_model_extent(const struct vtwin_model *m, struct vtwin_extent *x)
{
    const struct vt_extent *known = &m->latency->known;
    struct vtwin_extent own = {
        .step_tokens = known->step_tokens,
        .running = known->running,
        .context_tokens = known->context,
    };

    lib_struct_out(x, &own, sizeof(own));
}
