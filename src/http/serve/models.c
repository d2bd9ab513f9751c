/* models.c - the names that requests may ask for: the model's, and adapters'. */
#include <stdlib.h>
#include <string.h>

#include "http/serve/serve.h"

/* Under the lock; -1: none. */
static ptrdiff_t place_of(const struct models *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->model[i].id, name) == 0)
            return (ptrdiff_t)i;
    return -1;
}

int models_open(struct models *m, const struct vt_serve_config *c, struct vt_err *err)
{
    int rc;

    *m = (struct models){.n_base = c->n_names};
    (void)pthread_mutex_init(&m->lock, NULL);
    rc = vt_grow(&m->model, &m->cap, c->n_names, sizeof(*m->model), err);
    for (uint32_t i = 0; i < c->n_names && rc == VT_OK; i++)
        m->model[m->n++] = (struct plain_model){
            .id = c->name[i], .root = c->root, .created = (int64_t)vt_unix_s()};
    for (uint32_t i = 0; i < c->n_loras && rc == VT_OK; i++) {
        bool added;

        rc = models_add(m, c->lora[i].name, c->lora[i].path, &added, err);
        if (rc == VT_OK && !added)
            rc = vt_fail(err, VT_EINPUT, "two models are called '%s'", c->lora[i].name);
    }
    return rc;
}

static void free_adapter(struct plain_model *m)
{
    free((void *)(uintptr_t)m->id);
    free((void *)(uintptr_t)m->root);
}

void models_close(struct models *m)
{
    for (size_t i = m->n_base; i < m->n; i++)
        free_adapter(&m->model[i]);
    free(m->model);
    (void)pthread_mutex_destroy(&m->lock);
}

bool models_find(void *models, const char *name, uint32_t *lora)
{
    struct models *m = models;
    ptrdiff_t at;

    (void)pthread_mutex_lock(&m->lock);
    at = place_of(m, name);
    *lora = at >= 0 ? m->model[at].number : 0;
    (void)pthread_mutex_unlock(&m->lock);
    return at >= 0;
}

const char *models_path(struct models *m, const char *name, struct vt_arena *a)
{
    const char *path = NULL;
    ptrdiff_t at;

    (void)pthread_mutex_lock(&m->lock);
    at = place_of(m, name);
    if (at >= (ptrdiff_t)m->n_base)
        path = vt_arena_copy(a, m->model[at].root, strlen(m->model[at].root));
    (void)pthread_mutex_unlock(&m->lock);
    return path;
}

int models_add(struct models *m, const char *name, const char *path, bool *added,
               struct vt_err *err)
{
    struct plain_model x = {.created = (int64_t)vt_unix_s()};
    int rc = VT_OK;

    (void)pthread_mutex_lock(&m->lock);
    *added = place_of(m, name) < 0;
    if (*added) {
        x.id = strdup(name);
        x.root = strdup(path);
        x.parent = m->model[0].id;
        x.number = ++m->n_adapters;
        rc = x.id && x.root ? vt_grow(&m->model, &m->cap, m->n + 1, sizeof(x), err)
                            : vt_nomem(err);
        if (rc == VT_OK)
            m->model[m->n++] = x;
        else
            free_adapter(&x);
    }
    (void)pthread_mutex_unlock(&m->lock);
    return rc;
}

bool models_full(struct models *m, const char *name)
{
    bool full;

    (void)pthread_mutex_lock(&m->lock);
    full = m->n - m->n_base >= MODELS_ADAPTERS && place_of(m, name) < 0;
    (void)pthread_mutex_unlock(&m->lock);
    return full;
}

bool models_remove(struct models *m, const char *name)
{
    ptrdiff_t at;

    (void)pthread_mutex_lock(&m->lock);
    at = place_of(m, name);
    if (at >= (ptrdiff_t)m->n_base) {
        free_adapter(&m->model[at]);
        memmove(&m->model[at], &m->model[at + 1],
                (m->n - (size_t)at - 1) * sizeof(*m->model));
        m->n--;
    }
    (void)pthread_mutex_unlock(&m->lock);
    return at >= (ptrdiff_t)m->n_base;
}
