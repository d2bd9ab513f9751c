/* engine_graphs.c - from vLLM's flags to the CUDA graphs that there are. */
#include "cli/cmd/engine.h"

static int add_graph(struct vt_graphs *g, int64_t tokens, struct vt_err *err)
{
    if (tokens < 1 || tokens > ENGINE_GRAPH_TOKENS)
        return vt_fail(err, VT_EINPUT, "a graph's size must be 1 to %d",
                       ENGINE_GRAPH_TOKENS);
    if (g->n == VT_MOST_GRAPHS)
        return vt_fail(err, VT_EINPUT, "more than %d sizes of graphs", VT_MOST_GRAPHS);
    g->size[g->n++] = (uint32_t)tokens;
    return VT_OK;
}

/* By words, or a list within one. */
static int add_graphs(struct vt_graphs *g, const char *text, struct vt_err *err)
{
    int rc = VT_OK;

    do {
        size_t len = strcspn(text, ",");
        uint64_t tokens = 0;

        if (!vt_parse_u64(text, len, &tokens))
            return vt_fail(err, VT_EINPUT, "'%s' is no whole number", text);
        rc = add_graph(g, tokens <= ENGINE_GRAPH_TOKENS ? (int64_t)tokens : 0, err);
        text += len + (text[len] == ',');
    } while (rc == VT_OK && *text);
    return rc;
}

int engine_find_graphs(struct vt_graphs *g, const struct opt_args *a,
                       const struct engine_options *o, struct vt_err *err)
{
    bool given = opt_given(a, &o->graph_sizes);
    int rc = VT_OK;

    *g = o->graphs;
    g->none = g->none || o->enforce_eager;
    if (given && g->n > 0)
        return vt_fail(err, VT_EINPUT,
                       "cudagraph_capture_sizes and "
                       "compilation_config.cudagraph_capture_sizes are mutually "
                       "exclusive");
    if (o->largest_graph > 0 && g->most > 0)
        return vt_fail(err, VT_EINPUT,
                       "max_cudagraph_capture_size and "
                       "compilation_config.max_cudagraph_capture_size are mutually "
                       "exclusive");
    if (o->largest_graph > 0)
        g->most = o->largest_graph;
    for (size_t i = 0; i < o->graph_sizes.n && rc == VT_OK; i++)
        rc = vt_within(err, add_graphs(g, o->graph_sizes.value[i], err),
                       "--cudagraph-capture-sizes");
    return rc == VT_OK ? vt_graphs_settle(g, err) : rc;
}

bool engine_asks_graphs(const struct engine_job *j)
{
    return j->graphs.none || j->graphs.most > 0 || j->graphs.n > 0;
}

/* Of vLLM's compilation config, what says which graphs there are. */
int engine_read_graphs(const struct opt_row *row, const char *text, void *field,
                       struct vt_err *err)
{
    struct vt_graphs *g = field;
    struct vt_arena arena = {0};
    const struct vt_node *root = NULL, *sizes;
    const char *mode = "";
    int rc = vt_json_parse(&arena, text, strlen(text), 1, &root, err);

    if (rc == VT_OK && root->kind != VT_MAP)
        rc = vt_fail(err, VT_EINPUT, "it is no JSON object");
    if (rc == VT_OK &&
        !(rc = vt_get_str(root, "cudagraph_mode", VT_OPTIONAL, &mode, err)))
        rc = vt_get_u32(root, "max_cudagraph_capture_size", VT_OPTIONAL, 1,
                        ENGINE_GRAPH_TOKENS, &g->most, err);
    sizes = rc == VT_OK ? vt_get_non_null(root, "cudagraph_capture_sizes") : NULL;
    if (sizes && (sizes->kind != VT_LIST || sizes->n == 0))
        rc = vt_fail(err, VT_EINPUT, "cudagraph_capture_sizes: must be a list");
    for (uint32_t i = 0; sizes && rc == VT_OK && i < sizes->n; i++)
        rc = add_graph(
            g, sizes->u.item[i].kind == VT_INT ? sizes->u.item[i].u.integer : 0, err);
    g->none = strcmp(mode, "NONE") == 0;
    vt_arena_free(&arena);
    return vt_within(err, rc, "--%s", row->name);
}
