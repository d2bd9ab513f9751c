/* timing.c - where an adapter's latency model comes from: a profile that was
 * given or is built in, BLIS's tables, the model's sizes (by BLIS's formulas or by our
 * estimate), or the other experiments. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "validate/adapters/adapter.h"
#include "validate/adapters/learn.h"

/* ---- names ---------------------------------------------------------------------- */

const char *adapter_gpu(const struct vt_experiment *e)
{
    return strcmp(e->hardware, "A100-80GB") == 0 ? "A100-80" : e->hardware;
}

static const char *without_organisation(const char *model)
{
    const char *slash = strrchr(model, '/');

    return slash ? slash + 1 : model;
}

enum { MAX_NAME = 256 };

/* In lower case, as much as fits; returns the length. */
static size_t put_lower(char out[MAX_NAME], const char *text, const char *until)
{
    size_t n = 0;

    for (; *text && !strchr(until, *text) && n + 1 < MAX_NAME; text++)
        out[n++] = (char)tolower((unsigned char)*text);
    out[n] = '\0';
    return n;
}

/* Where shapes are not known: without organisation, "(...)" or "-instruct". */
static bool same_name(const char *model, const struct vt_experiment *e)
{
    static const char tail[] = "-instruct";
    const char *const both[] = {model, e->model};
    char plain[2][MAX_NAME], low[MAX_NAME];

    for (int i = 0; i < 2; i++) {
        size_t n = put_lower(plain[i], without_organisation(both[i]), "(");

        while (n > 0 && plain[i][n - 1] == ' ')
            plain[i][--n] = '\0';
        if (n > strlen(tail) && strcmp(plain[i] + n - strlen(tail), tail) == 0)
            plain[i][n - strlen(tail)] = '\0';
    }
    (void)put_lower(low, model, "");
    return strcmp(plain[0], plain[1]) == 0 &&
           (strstr(low, "fp8") != NULL) == (strcmp(e->precision, "FP8") == 0);
}

/* ---- sizes ---------------------------------------------------------- */

static bool try_arch(struct vt_arch *arch, struct vt_buf *path, const char *fmt, ...)
    VT_PRINTF(3, 4);

static bool try_arch(struct vt_arch *arch, struct vt_buf *path, const char *fmt, ...)
{
    va_list args;

    vt_buf_clear(path);
    va_start(args, fmt);
    vt_buf_vprintf(path, fmt, args);
    va_end(args);
    return !path->failed && access(path->data, R_OK) == 0 &&
           vt_arch_load(arch, path->data, NULL) == VT_OK;
}

int adapter_arch(struct vt_arch *arch, const struct adapter_job *j, struct vt_buf *name,
                 struct vt_err *err)
{
    const char *model = without_organisation(j->e->model), *dir = j->c->model_configs;
    struct vt_buf own = {0}, *path = name ? name : &own;
    bool found = try_arch(arch, path, "%s/config.json", j->e->folder) ||
                 (dir && (try_arch(arch, path, "%s/%s/config.json", dir, model) ||
                          try_arch(arch, path, "%s/%s.json", dir, model)));

    if (!found) {
        vt_buf_clear(path);
        vt_buf_str(path, j->e->model);
        found = vt_arch_load(arch, j->e->model, NULL) == VT_OK;
    }
    vt_buf_free(&own);
    return found
               ? VT_OK
               : vt_fail(err, VT_EINPUT, "no config.json of %s is known", j->e->model);
}

bool adapter_config_folder(struct vt_buf *name)
{
    static const char tail[] = "/config.json";

    if (name->failed || name->len <= strlen(tail) ||
        strcmp(name->data + name->len - strlen(tail), tail) != 0)
        return false;
    name->len -= strlen(tail);
    name->data[name->len] = '\0';
    return true;
}

/* Only BLIS's trained physics knows ranks, and only those of experts. */
uint32_t adapter_ranks(const struct adapter_job *j)
{
    struct vt_arch arch;

    if (j->e->dp < 2 || strcmp(j->a->kind, "trained-physics") != 0 ||
        adapter_arch(&arch, j, NULL, NULL) != VT_OK || arch.experts == 0)
        return 1;
    return j->e->dp;
}

/* What an experiment ran on; *arch and *gpu are for it to point at. */
static int query_of(struct vt_estimate_query *q, struct vt_arch *arch,
                    struct vt_gpu *gpu, const struct adapter_job *j, struct vt_err *err)
{
    int rc = adapter_arch(arch, j, NULL, err);

    if (rc == VT_OK && arch->quant[0] == '\0' && strcmp(j->e->precision, "FP8") == 0)
        rc = vt_arch_quantize(arch, "fp8", err);
    if (rc == VT_OK)
        rc = vt_gpu_find(gpu, adapter_gpu(j->e), NULL, err);
    *q = (struct vt_estimate_query){.arch = arch, .gpu = gpu, .tp = j->e->tp};
    return rc;
}

/* ---- profiles that were given ---------------------------------------- */

static bool suits_model(const char *model, const struct adapter_job *j)
{
    struct vt_estimate_query q;
    struct vt_arch asked, own;
    struct vt_gpu gpu;

    if (query_of(&q, &asked, &gpu, j, NULL) == VT_OK &&
        vt_arch_load(&own, model, NULL) == VT_OK)
        return vt_arch_same(&own, &asked);
    return same_name(model, j->e);
}

static bool suits_gpu(const char *gpu, const struct vt_experiment *e)
{
    struct vt_gpu own, asked;

    return vt_gpu_find(&own, gpu, NULL, NULL) == VT_OK &&
           vt_gpu_find(&asked, adapter_gpu(e), NULL, NULL) == VT_OK &&
           strcmp(own.name, asked.name) == 0;
}

/* What a profile does not say, it does not forbid. */
static bool suits(const struct vt_profile *p, const struct adapter_job *j)
{
    const char *is = "", *model = NULL, *gpu = NULL;
    uint32_t tp = j->e->tp;

    if (vt_get_str(vt_get(p->root, "model"), "kind", VT_OPTIONAL, &is, NULL) != VT_OK ||
        strcmp(is, j->a->kind) != 0 ||
        vt_get_str(p->engine, "model", VT_OPTIONAL, &model, NULL) != VT_OK ||
        vt_get_str(p->engine, "gpu", VT_OPTIONAL, &gpu, NULL) != VT_OK ||
        vt_get_u32(p->engine, "tensor_parallel_size", VT_OPTIONAL, 1, 4096, &tp,
                   NULL) != VT_OK)
        return false;
    return (!model || suits_model(model, j)) && (!gpu || suits_gpu(gpu, j->e)) &&
           tp == j->e->tp;
}

/* VT_ECHECK: there is none for this experiment. */
static int find_given(struct vt_profile *p, const struct adapter_job *j,
                      struct vt_err *err)
{
    int rc;

    for (size_t i = 0; j->c->profiles && j->c->profiles[i]; i++) {
        if ((rc = vt_profile_open(p, j->c->profiles[i], err)))
            return rc;
        if (suits(p, j))
            return VT_OK;
        vt_profile_close(p);
    }
    return VT_ECHECK;
}

/* ---- BLIS's table --------------------------------------------------- */

static bool has_alpha(const struct vt_profile *p)
{
    const struct vt_node *alpha =
        vt_get(vt_get(vt_get(p->root, "model"), "params"), "alpha");

    for (uint32_t i = 0; alpha && alpha->kind == VT_LIST && i < alpha->n; i++) {
        const struct vt_node *v = &alpha->u.item[i];

        if ((v->kind == VT_REAL && v->u.real != 0) ||
            (v->kind == VT_INT && v->u.integer != 0))
            return true;
    }
    return false;
}

static int blackbox_profile(struct vt_profile *p, const struct adapter_job *j,
                            struct vt_err *err)
{
    char text[MAX_NAME], name[MAX_NAME];
    struct vt_err ignored;
    size_t n = (size_t)snprintf(text, sizeof(text), "blackbox:%s:%s:tp%u",
                                without_organisation(j->e->model), adapter_gpu(j->e),
                                j->e->tp);

    (void)put_lower(name, text, "");
    if (n < sizeof(text) && vt_profile_open(p, name, &ignored) == VT_OK) {
        if (has_alpha(p))
            return VT_OK;
        vt_profile_close(p);
    }
    return vt_fail(err, VT_EINPUT, "BLIS has no coefficients for %s on %u %s",
                   j->e->model, j->e->tp, j->e->hardware);
}

void adapter_profile_begin(struct vt_jw *w, struct vt_buf *b, const char *name,
                           const char *kind)
{
    vt_jw_init(w, b, NULL);
    vt_jw_map(w, NULL);
    vt_jw_str(w, "name", name);
    vt_jw_map(w, "model");
    vt_jw_str(w, "kind", kind);
    vt_jw_map(w, "params");
}

void adapter_profile_end(struct vt_jw *w)
{
    vt_jw_end(w);
    vt_jw_end(w);
    vt_jw_end(w);
}

/* Frees the text. */
static int parse_profile(struct vt_profile *p, const struct adapter_job *j,
                         struct vt_buf *text, struct vt_err *err)
{
    int rc = text->failed ? vt_nomem(err)
                          : vt_profile_parse(p, j->a->name, text->data, text->len, err);

    vt_buf_free(text);
    return rc;
}

/* BLIS's first roofline had the alphas of its coefficients for that model, where there
 * were any. */
static void put_early(struct vt_jw *w, const struct adapter_job *j)
{
    struct vt_profile p;
    struct vt_err ignored;

    vt_jw_str(w, "release", "b05154c");
    if (blackbox_profile(&p, j, &ignored) != VT_OK)
        return;
    vt_jw_node(w, "alpha", vt_get(vt_get(vt_get(p.root, "model"), "params"), "alpha"));
    vt_profile_close(&p);
}

/* A model of the sizes, as the profile that a user would write. */
static int sizes_profile(struct vt_profile *p, const struct adapter_job *j,
                         struct vt_err *err)
{
    struct vt_buf name = {0}, text = {0};
    struct vt_arch arch;
    struct vt_jw w;
    int rc = adapter_arch(&arch, j, &name, err);

    if (rc == VT_OK)
        rc = vt_arch_check_tp(&arch, j->e->tp, err);
    if (rc == VT_OK) {
        adapter_profile_begin(&w, &text, j->a->name, j->a->kind);
        vt_jw_str(&w, "hf_config", name.data);
        vt_jw_str(&w, "gpu", adapter_gpu(j->e));
        vt_jw_u64(&w, "tp", j->e->tp);
        if (adapter_ranks(j) > 1)
            vt_jw_u64(&w, "dp", adapter_ranks(j));
        if (j->a->arrivals == ARRIVALS_EARLY && strcmp(j->a->kind, "roofline") == 0)
            put_early(&w, j);
        adapter_profile_end(&w);
        rc = parse_profile(p, j, &text, err);
    }
    vt_buf_free(&name);
    return rc;
}

/* An estimate as the profile that `vtwin profile make` would write. */
static int made_profile(struct vt_profile *p, const struct adapter_job *j,
                        const struct vt_estimate *e, struct vt_err *err)
{
    struct vt_buf text = {0};
    struct vt_basis basis;
    struct vt_jw w;

    vt_basis_of_estimate(&basis, e);
    adapter_profile_begin(&w, &text, j->a->name, j->a->kind);
    vt_step_params_write(&text, &e->params, "", VT_STEP_FITTED);
    vt_jw_end(&w);
    vt_jw_end(&w);
    vt_basis_members(&w, &basis);
    vt_jw_end(&w);
    return parse_profile(p, j, &text, err);
}

/* What simulate would take for it. */
static int chosen_profile(struct vt_profile *p, const struct adapter_job *j,
                          struct vt_err *err)
{
    struct vt_estimate_query q;
    struct vt_choice c;
    struct vt_arch arch;
    struct vt_gpu gpu;
    int rc;

    if ((rc = query_of(&q, &arch, &gpu, j, err)) ||
        (rc = vt_choose(&c, &q, VT_BASIS_UNKNOWN, j->c->profiles, err)))
        return rc;
    return c.kind == VT_MEASURED ? vt_profile_open(p, c.source.name, err)
                                 : made_profile(p, j, &c.estimate, err);
}

/* ---- what others teach ----------------------------------------------- */

static int learned_profile(struct adapter_timing *t, const struct adapter_job *j,
                           struct vt_err *err)
{
    struct vt_buf text = {0};
    int rc = strcmp(j->a->kind, "knob") == 0
                 ? learn_knobs(&text, j, err)
                 : learn_trace(&text, j, t->learned, sizeof(t->learned), err);

    return rc == VT_OK ? parse_profile(&t->profile, j, &text, err) : rc;
}

/* ---- one of them ----------------------------------------------------- */

static bool is_vtwin(const struct adapter *a)
{
    return strncmp(a->name, "vtwin-", strlen("vtwin-")) == 0;
}

static bool learns(const struct adapter *a)
{
    return strcmp(a->kind, "knob") == 0 || strcmp(a->kind, "trace") == 0;
}

int adapter_timing_open(struct adapter_timing *t, const struct adapter_job *j,
                        struct vt_err *err)
{
    int rc;

    *t = (struct adapter_timing){.learned = ""};
    if (is_vtwin(j->a)) {
        rc = find_given(&t->profile, j, err);
        if (rc == VT_ECHECK && learns(j->a))
            rc = learned_profile(t, j, err);
        else if (rc == VT_ECHECK)
            rc = chosen_profile(&t->profile, j, err);
    } else if (strcmp(j->a->kind, "blackbox") == 0) {
        rc = blackbox_profile(&t->profile, j, err);
    } else {
        rc = sizes_profile(&t->profile, j, err);
    }
    if (rc != VT_OK && *t->learned)
        unlink(t->learned);
    return rc;
}

/* Learning takes long; whether there is something to learn from does not. */
int adapter_timing_check(const struct adapter_job *j, struct vt_err *err)
{
    struct adapter_timing t;
    int rc;

    if (is_vtwin(j->a) && learns(j->a)) {
        rc = find_given(&t.profile, j, err);
        if (rc == VT_ECHECK)
            return learn_check(j->a->kind, j, err);
        if (rc == VT_OK)
            vt_profile_close(&t.profile);
        return rc;
    }
    rc = adapter_timing_open(&t, j, err);
    if (rc == VT_OK)
        adapter_timing_close(&t);
    return rc;
}

void adapter_timing_close(struct adapter_timing *t)
{
    vt_profile_close(&t->profile);
    if (*t->learned)
        unlink(t->learned);
}
