/* match_refuse.c - loads and fits that no profile is made of. */
#include "fit/match_search.h"

#include <math.h>

/* Loads that differ less are alike. */
static const double VARIED = 1.5;
/* Percent; a second run of the same load differs by 4. */
static const double TOO_FAR = 15;

static double at_once(const struct match_load *l) /* requests, on average */
{
    return (double)l->w->n * l->measured.v[MATCH_E2E] / l->measured.v[MATCH_SPAN];
}

/* What the loads cannot tell, whatever was fitted. */
static void refuse_poor_loads(const struct search *s, struct vt_match_result *r)
{
    double least = INFINITY, most = 0, shortest = INFINITY, longest = 0;

    for (size_t i = 0; i < s->m->n; i++) {
        const struct match_load *l = &s->m->load[i];

        if (!match_counts(s, i))
            continue;
        least = fmin(least, at_once(l));
        most = fmax(most, at_once(l));
        for (size_t k = 0; k < l->w->n; k++) {
            shortest = fmin(shortest, l->w->req[k].prompt_tokens);
            longest = fmax(longest, l->w->req[k].prompt_tokens);
        }
    }
    if (match_counting(s) < 2)
        (void)snprintf(r->refusal, sizeof(r->refusal),
                       "one load cannot be checked against another: it takes two or "
                       "more, of different concurrency");
    else if (most < VARIED * least)
        (void)snprintf(r->refusal, sizeof(r->refusal),
                       "all loads have about %.0f requests at once: they do not tell "
                       "what a larger batch costs",
                       most);
    else if (longest < VARIED * shortest)
        (void)snprintf(r->refusal, sizeof(r->refusal),
                       "all prompts have about %.0f tokens: they do not tell what a "
                       "longer one costs",
                       longest);
}

static void refuse_bad_fits(const struct search *s, struct vt_match_result *r)
{
    const struct vt_match_load *worst = NULL;

    for (size_t i = 0; i < s->m->n; i++)
        if (match_counts(s, i) &&
            (!worst || fabs(r->load[i].in.e2e) > fabs(worst->in.e2e)))
            worst = &r->load[i];
    if (worst && fabs(worst->in.e2e) > TOO_FAR)
        (void)snprintf(
            r->refusal, sizeof(r->refusal),
            "no model matches all loads: E2E of %s is %+.0f %% off where it "
            "was fitted; they contradict each other, or are not of one server",
            worst->in.name, worst->in.e2e);
    else if (r->out.e2e > TOO_FAR || r->out.ttft > 2 * TOO_FAR)
        (void)snprintf(
            r->refusal, sizeof(r->refusal),
            "loads that were left out are predicted badly: E2E %.0f %%, TTFT "
            "%.0f %% off",
            r->out.e2e, r->out.ttft);
}

static void refuse_unanswered(const struct search *s, struct vt_match_result *r)
{
    for (size_t i = 0; i < s->m->n && !r->refusal[0]; i++)
        if (match_counts(s, i) && r->load[i].unanswered > VT_UNANSWERED)
            (void)snprintf(r->refusal, sizeof(r->refusal),
                           "%s: %.0f %% of its requests failed or were aborted before "
                           "a token: what they cost the others is not known",
                           s->m->load[i].name, r->load[i].unanswered);
}

/* Whether requests of a load waited much longer than anything explains, and a limit
 * that is not stated could. */
static bool waits_for_nothing(const struct match_load *m, const struct vt_match_load *l)
{
    static const double MOST = -50; /* % */
    const struct vt_meta *told = &m->w->meta;

    return l->waited && l->in.ttft < MOST &&
           (told->max_num_seqs == 0 || told->num_gpu_blocks == 0);
}

static void refuse_waiting(const struct search *s, struct vt_match_result *r)
{
    for (size_t i = 0; i < s->m->n && !r->refusal[0]; i++)
        if (waits_for_nothing(&s->m->load[i], &r->load[i]))
            (void)snprintf(r->refusal, sizeof(r->refusal),
                           "%s: its requests wait or lose their places, and no limit "
                           "that is stated or shows explains it; does its meta line "
                           "lack num_gpu_blocks or max_num_seqs?",
                           s->m->load[i].name);
}

void match_refuse(const struct search *s, struct vt_match_result *r)
{
    refuse_poor_loads(s, r);
    refuse_unanswered(s, r);
    refuse_waiting(s, r);
    if (!r->refusal[0])
        refuse_bad_fits(s, r);
}
