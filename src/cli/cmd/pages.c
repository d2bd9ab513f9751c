/* pages.c - what the pages of all commands have in common. */
#include "cli/cmd/pages.h"

#include <math.h>
#include <string.h>

/* ---- the question ------------------------------------------------------ */

/* As a shell would take it. */
static void put_word(struct vt_buf *b, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789-_=./:,@%+";
    bool quoted = *word == '\0' || word[strspn(word, plain)] != '\0';

    vt_buf_str(b, quoted ? " '" : " ");
    for (; *word; word++)
        if (*word == '\'')
            vt_buf_str(b, "'\\''");
        else
            vt_buf_char(b, *word);
    if (quoted)
        vt_buf_char(b, '\'');
}

void pages_begin(struct vt_buf *b, const struct opt_args *a, const char *title)
{
    struct vt_buf line = {0};
    char kind[64];

    snprintf(kind, sizeof(kind), "vtwin %s", a->command->name);
    vt_buf_str(&line, kind);
    for (int i = 0; i < a->n_words; i++)
        put_word(&line, a->word[i]);
    vt_page_begin(b, kind, title, line.failed ? NULL : line.data);
    vt_buf_free(&line);
}

/* ---- the answer -------------------------------------------------------- */

enum { SENTENCE = 160 };

static size_t list_outside(char text[][SENTENCE], size_t most,
                           const struct pages_trust *t)
{
    const struct vt_basis *b = &t->engine->trust;
    struct vt_outside way[VT_OUTSIDE];
    size_t n = 0, ways = t->reached ? vt_outside(t->reached, t->known, way) : 0;

    for (size_t i = 0; i < ways && n < most; i++)
        snprintf(text[n++], SENTENCE, "%s reached %llu, fitted up to %llu.",
                 way[i].what, (unsigned long long)way[i].reached,
                 (unsigned long long)way[i].fitted);
    for (size_t i = 0; i < b->n_outside && n < most; i++)
        snprintf(text[n++], SENTENCE, "%s.", b->outside[i]);
    return n;
}

void pages_answer(struct vt_buf *b, const struct pages_trust *t, const char *fmt, ...)
{
    char text[VT_OUTSIDE + VT_MOST_OUTSIDE][SENTENCE];
    const char *outside[VT_COUNT(text)];
    struct vt_page_trust trust = {.basis = t->basis, .outside = outside};
    struct vt_buf sentence = {0}, about = {0};
    va_list args;

    va_start(args, fmt);
    vt_buf_vprintf(&sentence, fmt, args);
    va_end(args);
    if (t->engine && engine_tells_trust(t->engine)) {
        const struct vt_basis *basis = &t->engine->trust;

        trust.n_outside = list_outside(text, VT_COUNT(text), t);
        for (size_t i = 0; i < trust.n_outside; i++)
            outside[i] = text[i];
        vt_buf_str(&about, "Basis: ");
        vt_basis_about(&about, basis);
        vt_buf_str(&about, basis->has_expected ? " (four of five are nearer)." : ".");
        trust.basis = "simulated";
        trust.about = about.failed ? "" : about.data;
    } else if (t->engine) {
        trust.basis = "simulated";
        trust.about = "by a model that was given; how far it may be off is not known.";
    }
    vt_page_answer(b, sentence.failed ? "" : sentence.data, &trust);
    b->failed |= sentence.failed || about.failed;
    vt_buf_free(&sentence);
    vt_buf_free(&about);
}

/* ---- settings ---------------------------------------------------------- */

static void put_node(struct vt_buf *b, const char *key, const struct vt_node *v)
{
    double x;

    if (v->kind == VT_STR)
        vt_page_fact(b, key, "%s", v->u.str);
    else if (v->kind == VT_BOOL)
        vt_page_fact(b, key, "%s", v->u.boolean ? "yes" : "no");
    else if (vt_node_f64(v, &x))
        vt_page_fact(b, key, "%.10g", x);
    else if (v->kind == VT_LIST)
        vt_page_fact(b, key, "%u", v->n);
}

int pages_settings(struct vt_buf *b, const struct engine_job *e,
                   const struct vt_engine_config *c, const struct vt_fleet *fleet,
                   const struct traffic *t, struct vt_err *err)
{
    const struct vt_node *root = NULL, *all;
    struct vt_arena arena = {0};
    struct vt_buf json = {0};
    struct vt_jw w;
    int rc;

    /* The very list that the JSON has, so that none is forgotten. */
    vt_jw_init(&w, &json, NULL);
    vt_jw_map(&w, NULL);
    settings_json(&w, e, c, &e->setting, fleet, t);
    vt_jw_end(&w);
    rc = json.failed ? vt_nomem(err)
                     : vt_json_parse(&arena, json.data, json.len, 1, &root, err);
    vt_page_section(
        b, "settings", "Settings",
        "All that was decided, by a flag or without one, under vLLM's names.");
    vt_page_facts_begin(b);
    all = rc == VT_OK ? vt_get(root, "settings") : NULL;
    for (uint32_t i = 0; all && i < all->n; i++)
        put_node(b, all->u.item[i].key, &all->u.item[i]);
    vt_arena_free(&arena);
    vt_buf_free(&json);
    return rc;
}

/* ---- limits ------------------------------------------------------------ */

void pages_limits(struct vt_buf *b, const struct vt_slo *slo)
{
    for (size_t i = 0; i < VT_SLO_LIMITS; i++) {
        char label[32];

        snprintf(label, sizeof(label), "limit of %s", vt_slo_rows[i].name);
        if (vt_slo_at(slo, i) > 0)
            vt_page_fact(b, label, "%g ms", vt_slo_at(slo, i));
    }
}

void pages_lines(struct pages_lines *out, const struct vt_slo *slo)
{
    out->n = 0;
    for (size_t i = 0; i < VT_SLO_LIMITS; i++)
        if (vt_slo_at(slo, i) > 0) {
            size_t row = 0;

            while (vt_stat_rows[row].offset != vt_slo_rows[i].stat)
                row++;
            snprintf(out->text[out->n], sizeof(out->text[0]), "limit of p99: %g ms",
                     vt_slo_at(slo, i));
            out->line[out->n] =
                (struct vt_latency_limit){row, vt_slo_at(slo, i), out->text[out->n]};
            out->n++;
        }
}

/* ---- where times come from --------------------------------------------- */

static void put_tree(struct vt_buf *b, const char *prefix, const struct vt_node *map,
                     int depth)
{
    for (uint32_t i = 0; map && map->kind == VT_MAP && i < map->n; i++) {
        const struct vt_node *v = &map->u.item[i];
        char key[160];

        snprintf(key, sizeof(key), "%s%s%s", prefix, *prefix ? ", " : "", v->key);
        for (char *c = key; *c; c++)
            *c = *c == '_' ? ' ' : *c;
        if (v->kind == VT_MAP && depth < 3)
            put_tree(b, key, v, depth + 1);
        else
            put_node(b, key, v);
    }
}

void pages_profile(struct vt_buf *b, const struct engine_job *e)
{
    if (!e->has_profile)
        return;
    vt_page_section(b, "profile", "What the times stand on",
                    e->profile.description ? e->profile.description : NULL);
    vt_page_facts_begin(b);
    vt_page_fact(b, "profile", "%s", e->profile.name);
    if (e->profile.forced)
        vt_page_fact(b, "not to be trusted", "%s", e->profile.forced);
    put_tree(b, "expected error %", vt_get(e->profile.root, "expected_error_pct"), 0);
    put_tree(b, "", vt_get(e->profile.root, "provenance"), 0);
    vt_page_facts_end(b);
}
