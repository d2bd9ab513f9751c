/* samples.c - samples without requests: written, and read back for figures. */
#include "report/stats.h"

static const enum vt_metric listed[] = {VT_TTFT, VT_ITL};

int vt_samples_json(struct vt_buf *b, const struct vt_view *const *v,
                    const char *const *names, size_t n, struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < n && rc == VT_OK; i++) {
        struct vt_jw j;

        vt_buf_printf(b, "%s\"%s\":", i > 0 ? ",\n" : "{", names[i]);
        vt_jw_init(&j, b, NULL);
        vt_jw_map(&j, NULL);
        for (size_t k = 0; k < VT_COUNT(listed) && rc == VT_OK; k++) {
            double *ms = NULL;
            size_t n_ms = 0;

            rc = vt_view_samples(v[i], listed[k], &ms, &n_ms, err);
            vt_jw_f64_list(&j, metric_text[listed[k]].key, ms, (uint32_t)n_ms);
            free(ms);
        }
        vt_jw_end(&j);
    }
    vt_buf_str(b, "}\n");
    return rc;
}

/* ---- read back -------------------------------------------------------- */

static int read_ms(const struct vt_node *item, const char *key, vt_ns *out,
                   struct vt_err *err)
{
    static const double MOST = 1e9;
    double ms = item->kind == VT_INT    ? (double)item->u.integer
                : item->kind == VT_REAL ? item->u.real
                                        : -1;

    if (item->is_u64 || !(ms >= 0 && ms <= MOST))
        return vt_fail(err, VT_EINPUT, "line %u: '%s' must hold milliseconds only",
                       item->line, key);
    *out = vt_ns_from_ms(ms);
    return VT_OK;
}

static int find_list(const struct vt_node *map, enum vt_metric m,
                     const struct vt_node **out, struct vt_err *err)
{
    *out = vt_get(map, metric_text[m].key);
    if (*out && (*out)->kind != VT_LIST)
        return vt_fail(err, VT_EINPUT, "line %u: '%s' is no list", (*out)->line,
                       metric_text[m].key);
    return VT_OK;
}

/* Which gap is whose is not known: all are the first request's. */
static int read_source(struct vt_view *v, const struct vt_node *map, struct vt_err *err)
{
    const struct vt_node *ttft = NULL, *itl = NULL;
    size_t n, n_gaps;
    int rc;

    if (map->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "line %u: '%s' is no object of samples",
                       map->line, map->key);
    if ((rc = find_list(map, VT_TTFT, &ttft, err)) ||
        (rc = find_list(map, VT_ITL, &itl, err)))
        return rc;
    n = ttft ? ttft->n : 0;
    n_gaps = itl ? itl->n : 0;
    if (n + n_gaps == 0)
        return vt_fail(err, VT_EINPUT, "line %u: '%s' has neither ttft_ms nor itl_ms",
                       map->line, map->key);
    *v = (struct vt_view){.label = map->key, .only_samples = true};
    if ((rc = vt_view_reserve(v, n > 0 ? n : 1, err)) ||
        (rc = vt_grow(&v->gap, &v->cap_gaps, n_gaps + 1, sizeof(*v->gap), err)))
        return rc;
    if (n == 0)
        v->req[0].ttft_ns = -1;
    for (size_t i = 0; i < n && rc == VT_OK; i++)
        rc = read_ms(&ttft->u.item[i], "ttft_ms", &v->req[i].ttft_ns, err);
    for (size_t i = 0; i < n_gaps && rc == VT_OK; i++)
        rc = read_ms(&itl->u.item[i], "itl_ms", &v->gap[v->n_gaps++], err);
    v->req[0].n_gaps = (uint32_t)v->n_gaps;
    return rc;
}

static int read_sources(struct vt_samples *s, const struct vt_node *root,
                        struct vt_err *err)
{
    int rc = VT_OK;

    if (root->kind != VT_MAP || root->n == 0)
        return vt_fail(err, VT_EINPUT, "no object of samples");
    s->view = calloc(root->n, sizeof(*s->view));
    if (!s->view)
        return vt_nomem(err);
    for (uint32_t i = 0; i < root->n && rc == VT_OK; i++) {
        s->n = i + 1;
        rc = read_source(&s->view[i], &root->u.item[i], err);
    }
    return rc;
}

static int end_read(struct vt_samples *s, int rc)
{
    if (rc != VT_OK)
        vt_samples_free(s);
    return rc;
}

int vt_samples_parse(struct vt_samples *s, const char *text, size_t len,
                     struct vt_err *err)
{
    const struct vt_node *root;
    int rc;

    *s = (struct vt_samples){0};
    rc = vt_json_parse(&s->arena, text, len, 1, &root, err);
    return end_read(s, rc == VT_OK ? read_sources(s, root, err) : rc);
}

int vt_samples_load(struct vt_samples *s, const char *path, struct vt_err *err)
{
    const struct vt_node *root;
    int rc;

    *s = (struct vt_samples){0};
    rc = vt_tree_load(&s->arena, path, &root, err);
    if (rc == VT_OK)
        rc = vt_within(err, read_sources(s, root, err), "%s", path);
    return end_read(s, rc);
}

void vt_samples_free(struct vt_samples *s)
{
    for (size_t i = 0; i < s->n; i++)
        vt_view_free(&s->view[i]);
    free(s->view);
    vt_arena_free(&s->arena);
    *s = (struct vt_samples){0};
}
