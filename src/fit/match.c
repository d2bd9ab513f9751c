/* match.c - a model by simulation: the loads, and the rounds of the search. */
#include "fit/match_search.h"
#include "report/report.h"

#include <math.h>

/* ---- loads -------------------------------------------------------------- */

int vt_match_new(struct vt_match **out, const struct vt_fit_shape *shape,
                 struct vt_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return vt_nomem(err);
    (*out)->shape = *shape;
    return VT_OK;
}

void vt_match_free(struct vt_match *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++)
        match_load_close(&m->load[i]);
    free(m->load);
    free(m);
}

int vt_match_add(struct vt_match *m, const char *name, const struct vt_workload *w,
                 struct vt_err *err)
{
    int rc = vt_grow(&m->load, &m->cap, m->n + 1, sizeof(*m->load), err);

    if (rc == VT_OK)
        rc = match_load_open(&m->load[m->n], name, w, err);
    if (rc == VT_OK)
        m->n++;
    return rc;
}

/* ---- all of it ---------------------------------------------------------- */

static int search_rounds(struct search *s, struct vt_match_result *r,
                         struct vt_err *err)
{
    size_t odd, most_odd = s->m->n / 3;
    bool stalls = false;
    int rc = match_best(s, r, err);

    if (rc == VT_OK)
        rc = match_find_pool(s, r, err);
    if (rc == VT_OK)
        rc = match_leave_stalls_out(s, r, &stalls, err);
    if (rc == VT_OK && stalls)
        rc = match_best(s, r, err);
    for (size_t i = 0; i < most_odd && rc == VT_OK; i++) {
        if ((rc = match_find_odd(s, &odd, err)) || odd == SIZE_MAX)
            break;
        s->load_weight[odd] = 0;
        r->load[odd].odd = true;
        rc = match_best(s, r, err);
    }
    if (rc == VT_OK)
        rc = match_widen(s, r, err);
    return rc == VT_OK ? match_find_reading(s, r, err) : rc;
}

static void put_medians(struct search *s, struct vt_match_result *r)
{
    struct vt_crossval_row unused;
    size_t n = 0;

    for (size_t i = 0; i < s->m->n; i++)
        if (match_counts(s, i))
            s->row[n++] = r->load[i].in;
    vt_crossval_sum(s->row, n, &r->in, &unused);
    n = 0;
    for (size_t i = 0; i < s->m->n; i++)
        if (match_counts(s, i))
            s->row[n++] = r->load[i].out;
    vt_crossval_sum(s->row, n, &r->out, &unused);
}

static int finish(struct search *s, struct vt_match_result *r, struct vt_err *err)
{
    double value[MATCH_TERMS];
    int rc = VT_OK;

    for (size_t i = 0; i < s->m->n && rc == VT_OK; i++) {
        rc = match_judge(&s->best, i, &r->load[i].in, err);
        r->load[i].out.name = s->m->load[i].name;
    }
    put_medians(s, r);
    r->pause_us = match_look(s->m).pause_us;
    r->clock = match_look_clock(s->m);
    match_refuse(s, r);
    for (size_t i = 0; i < s->best.n_terms; i++)
        value[i] = exp(s->best.x[i]);
    r->kind = s->best.kind->name;
    s->best.kind->write(&s->best.hints, value, &r->model);
    return rc != VT_OK ? rc : r->model.failed ? vt_nomem(err) : VT_OK;
}

int vt_match_solve(struct vt_match *m, const struct vt_match_options *o,
                   struct vt_match_result *r, struct vt_err *err)
{
    struct search s = {.m = m, .o = o};
    double *cells = calloc(3 * m->n + 1, sizeof(*cells));
    int rc = VT_OK;

    *r = (struct vt_match_result){.n = m->n};
    r->load = calloc(m->n + 1, sizeof(*r->load));
    s.row = calloc(m->n + 1, sizeof(*s.row));
    s.tried = calloc(match_n_kinds, sizeof(*s.tried));
    if (!r->load || !s.row || !s.tried || !cells)
        rc = vt_nomem(err);
    else if (m->n == 0)
        rc = vt_fail(err, VT_EINPUT, "there are no loads to fit");
    s.load_weight = cells;
    s.cost_without = s.load_weight + m->n;
    s.best_without = s.cost_without + m->n;
    for (size_t i = 0; i < m->n && rc == VT_OK; i++)
        s.load_weight[i] = 1;
    if (rc == VT_OK) {
        match_leave_unanswered_out(&s, r);
        match_find_limits(&s, r);
    }
    if (rc == VT_OK)
        rc = search_rounds(&s, r, err);
    if (rc == VT_OK)
        rc = finish(&s, r, err);
    free(s.row);
    free(s.tried);
    free(cells);
    if (rc != VT_OK)
        vt_match_result_free(r);
    return rc;
}

int vt_match_check(const struct vt_match_result *r, struct vt_err *err)
{
    return r->refusal[0] ? vt_fail(err, VT_ECHECK, "%s", r->refusal) : VT_OK;
}

void vt_match_result_free(struct vt_match_result *r)
{
    free(r->load);
    vt_buf_free(&r->model);
    *r = (struct vt_match_result){0};
}
