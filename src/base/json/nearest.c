/* nearest.c - fields nobody knows, and the name that was probably meant. */
#include "base/base.h"

enum { MAX_WORD = 63 };

static size_t least(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;

    return m < c ? m : c;
}

/* Levenshtein's distance, one row at a time. */
static size_t distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    size_t row[MAX_WORD + 1];

    for (size_t k = 0; k <= n_b; k++)
        row[k] = k;
    for (size_t i = 1; i <= n_a; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t k = 1; k <= n_b; k++) {
            size_t swap = diagonal + (a[i - 1] != b[k - 1]);

            diagonal = row[k];
            row[k] = least(row[k] + 1, row[k - 1] + 1, swap);
        }
    }
    return row[n_b];
}

const char *vt_nearest(const char *word, const char *const *known)
{
    size_t len = strlen(word);
    size_t best_distance = len / 3 > 1 ? len / 3 : 1;
    const char *best = NULL;

    if (len > MAX_WORD)
        return NULL;
    for (; *known; known++) {
        size_t n = strlen(*known), d;

        if (n > MAX_WORD)
            continue;
        d = distance(word, len, *known, n);
        /* A distance as long as the word shares nothing with it. */
        if (d < len && (best ? d < best_distance : d <= best_distance)) {
            best = *known;
            best_distance = d;
        }
    }
    return best;
}

static bool is_known(const char *word, const char *const *known)
{
    for (; *known; known++)
        if (strcmp(word, *known) == 0)
            return true;
    return false;
}

int vt_only_keys(const struct vt_node *map, const char *const *known,
                 struct vt_err *err)
{
    if (!map || map->kind != VT_MAP)
        return VT_OK;
    for (uint32_t i = 0; i < map->n; i++) {
        const struct vt_node *node = &map->u.item[i];
        const char *near;
        int rc;

        if (is_known(node->key, known))
            continue;
        near = vt_nearest(node->key, known);
        if (near)
            rc = vt_fail(err, VT_EINPUT, "unknown field '%s' (did you mean '%s'?)",
                         node->key, near);
        else
            rc = vt_fail(err, VT_EINPUT, "unknown field '%s'", node->key);
        return node->line ? vt_within(err, rc, "line %u", (unsigned)node->line) : rc;
    }
    return VT_OK;
}
