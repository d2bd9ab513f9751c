/* Files of an experiment: any text is refused or gives numbers that make sense. The
 * first byte says which file it is. */
#include <assert.h>
#include <math.h>

#include "validate/truth/truth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef int read_tree(struct vt_experiment *e, const struct vt_node *root,
                      struct vt_err *err);

static int read_summary(struct vt_experiment *e, const struct vt_node *root,
                        struct vt_err *err)
{
    return truth_read_metrics(&e->summary, root, err);
}

static void try_tree(struct vt_experiment *e, const char *text, size_t len,
                     read_tree *read)
{
    struct vt_arena a = {0};
    const struct vt_node *root;
    struct vt_err err;

    if (vt_yaml_parse(&a, text, len, &root, &err) == VT_OK &&
        read(e, root, &err) == VT_OK) {
        for (size_t i = 0; i < e->n_plan; i++)
            assert(e->plan[i].rate >= 0 && e->plan[i].duration_s >= 0);
        for (size_t i = 1; i < e->n_requests; i++)
            assert(e->request[i].start_s >= e->request[i - 1].start_s);
    }
    vt_arena_free(&a);
}

static void try_lines(struct vt_experiment *e, const char *text, size_t len,
                      int (*read)(struct vt_experiment *e, struct vt_lines *l,
                                  struct vt_err *err))
{
    struct vt_lines *l;
    struct vt_err err;

    if (vt_lines_from(&l, "fuzz", text, len, &err) != VT_OK)
        return;
    if (read(e, l, &err) == VT_OK)
        assert(e->total_kv_blocks == 0 ||
               e->kv_tokens / TRUTH_BLOCK_TOKENS >= e->total_kv_blocks);
    vt_lines_close(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static read_tree *const tree[] = {truth_read_config, truth_read_profile,
                                      truth_read_entry, read_summary,
                                      truth_read_groups};
    struct vt_experiment e = {0};
    const char *text = (const char *)data + 1;

    if (size == 0)
        return 0;
    if (data[0] >= '0' && data[0] < '0' + (int)VT_COUNT(tree))
        try_tree(&e, text, size - 1, tree[data[0] - '0']);
    else if (data[0] == 'l')
        try_lines(&e, text, size - 1, truth_read_log);
    else if (data[0] == 'k')
        try_lines(&e, text, size - 1, truth_read_kv_events);
    vt_experiment_free(&e);
    return 0;
}
