/* engine_offload.c - from vLLM's flags to the host's share of the KV cache, and to
 * prefills on other engines. */
#include "cli/cmd/engine.h"

static int read_extra(struct vt_offload *o, const struct vt_node *x, struct vt_err *err)
{
    const char *policy = o->eviction_policy == VT_EVICT_ARC ? "arc" : "lru";
    bool prompt_only = !o->offload_generated;
    int rc;

    if (x->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "kv_connector_extra_config is no object");
    if ((rc = vt_get_f64(x, "cpu_bytes_to_use", VT_OPTIONAL, 1, 0x1p60,
                         &o->cpu_bytes_to_use, err)) ||
        (rc = vt_get_u32(x, "blocks_per_chunk", VT_OPTIONAL, 1, 4096,
                         &o->blocks_per_chunk, err)) ||
        (rc = vt_get_u32(x, "store_threshold", VT_OPTIONAL, 0, INT32_MAX,
                         &o->store_threshold, err)) ||
        (rc = vt_get_u32(x, "max_tracker_size", VT_OPTIONAL, 1, INT32_MAX,
                         &o->max_tracker_size, err)) ||
        (rc = vt_get_bool(x, "offload_prompt_only", VT_OPTIONAL, &prompt_only, err)) ||
        (rc = vt_get_bool(x, "self_describing_kv_events", VT_OPTIONAL,
                          &o->self_describing_kv_events, err)) ||
        (rc = vt_get_str(x, "eviction_policy", VT_OPTIONAL, &policy, err)))
        return rc;
    if (strcmp(policy, "lru") != 0 && strcmp(policy, "arc") != 0)
        return vt_fail(err, VT_EINPUT, "eviction_policy '%s' is none of lru, arc",
                       policy);
    o->eviction_policy = *policy == 'a' ? VT_EVICT_ARC : VT_EVICT_LRU;
    o->offload_generated = !prompt_only;
    return VT_OK;
}

/* What the NixlConnector is told. */
static int read_nixl(struct engine_offload *f, const struct vt_node *root,
                     const struct vt_node *extra, struct vt_err *err)
{
    const char *role = "kv_both", *policy = "fail", *id = f->engine_id;
    bool both_ways = false;
    int rc;

    if ((rc = vt_get_str(root, "kv_role", VT_OPTIONAL, &role, err)) ||
        (rc = vt_get_str(root, "engine_id", VT_OPTIONAL, &id, err)))
        return rc;
    if (strcmp(role, "kv_both") != 0 && strcmp(role, "kv_producer") != 0 &&
        strcmp(role, "kv_consumer") != 0)
        return vt_fail(err, VT_EINPUT,
                       "kv_role '%s' is none of kv_both, kv_producer, kv_consumer",
                       role);
    if (id != f->engine_id && snprintf(f->engine_id, sizeof(f->engine_id), "%s", id) >=
                                  (int)sizeof(f->engine_id))
        return vt_fail(err, VT_EINPUT, "engine_id is too long");
    f->nixl = true;
    f->remote.pulls = strcmp(role, "kv_producer") != 0;
    if ((rc = vt_get_str(root, "kv_load_failure_policy", VT_OPTIONAL, &policy, err)))
        return rc;
    f->remote.recomputes = strcmp(policy, "recompute") == 0;
    if (!f->remote.recomputes && strcmp(policy, "fail") != 0)
        return vt_fail(err, VT_EINPUT,
                       "kv_load_failure_policy '%s' is none of recompute, fail",
                       policy);
    f->remote.lease_s = 30; /* vLLM's */
    if (!extra)
        return VT_OK;
    if ((rc = vt_get_f64(extra, "kv_lease_duration", VT_OPTIONAL, 1e-3, 1e9,
                         &f->remote.lease_s, err)) ||
        (rc =
             vt_get_bool(extra, "bidirectional_kv_xfer", VT_OPTIONAL, &both_ways, err)))
        return rc;
    return both_ways ? vt_fail(err, VT_EINPUT, "bidirectional_kv_xfer is not modelled")
                     : VT_OK;
}

/* Said again it adds to what was said before, as --kv-transfer-config.KEY does. */
int engine_read_transfer(const struct opt_row *row, const char *text, void *field,
                         struct vt_err *err)
{
    struct engine_offload *f = field;
    struct vt_arena arena = {0};
    const struct vt_node *root = NULL, *extra;
    const char *connector = NULL;
    int rc = vt_json_parse(&arena, text, strlen(text), 1, &root, err);

    if (rc == VT_OK && root->kind != VT_MAP)
        rc = vt_fail(err, VT_EINPUT, "it is no JSON object");
    if (rc == VT_OK)
        rc = vt_get_str(root, "kv_connector", VT_OPTIONAL, &connector, err);
    extra = rc == VT_OK ? vt_get_non_null(root, "kv_connector_extra_config") : NULL;
    if (rc == VT_OK && connector) {
        f->connector = strcmp(connector, "OffloadingConnector") == 0;
        f->nixl = strcmp(connector, "NixlConnector") == 0;
        f->other = !f->connector && !f->nixl;
    }
    if (rc == VT_OK && f->nixl)
        rc = read_nixl(f, root, extra, err);
    else if (extra)
        rc = read_extra(&f->is, extra, err);
    vt_arena_free(&arena);
    return vt_within(err, rc, "--%s", row->name);
}

int engine_link(struct vt_remote *r, const struct engine_job *j,
                const struct opt_args *a, const struct engine_options *o,
                char about[96], struct vt_err *err)
{
    const char *name = o->gpu;
    bool nvlink = o->offload.link > 0;
    struct vt_gpu gpu;
    bool known;
    int rc =
        name ? VT_OK : vt_get_str(j->profile.engine, "gpu", VT_OPTIONAL, &name, err);

    if (rc != VT_OK)
        return rc;
    known = name && vt_gpu_find(&gpu, name, o->hw, NULL) == VT_OK;
    *r = o->offload.remote;
    r->on = true;
    r->setup_us = o->offload.base_us;
    r->shares = o->offload.contention;
    r->gbs = opt_given(a, &o->offload.link_gbs)
                 ? o->offload.link_gbs
                 : vt_remote_gbs(known ? &gpu : NULL, nvlink);
    if (!(r->gbs > 0))
        return vt_fail(err, VT_EINPUT, "--kv-transfer-link nvlink: %s has none",
                       known ? gpu.name : "a GPU that is not known");
    if (about && opt_given(a, &o->offload.link_gbs))
        about[0] = '\0';
    else if (about)
        (void)snprintf(about, 96, "%s of %s, not measured",
                       nvlink ? "NVLink" : "the network", known ? gpu.name : "any GPU");
    return VT_OK;
}

void engine_set_link(struct vt_offload *link, const struct opt_args *a,
                     const struct engine_options *o)
{
    if (opt_given(a, &o->offload.gbs))
        link->load_gbs = link->store_gbs = o->offload.gbs;
    if (opt_given(a, &o->offload.setup_us))
        link->setup_us = o->offload.setup_us;
}

int engine_ask_offload(struct engine_job *j, const struct opt_args *a,
                       const struct engine_options *o, struct vt_err *err)
{
    struct vt_offload is = o->offload.is;
    bool sized = opt_given(a, &o->offload.size_gib);
    int rc =
        o->offload.nixl ? engine_link(&j->config.remote, j, a, o, NULL, err) : VT_OK;

    if (rc != VT_OK)
        return rc;
    if (opt_given(a, &o->offload.token_bytes))
        j->config.remote.block_bytes =
            (uint64_t)(o->offload.token_bytes * j->config.block_size /
                       ((o->tp > 0 ? o->tp : 1) * (o->pp > 0 ? o->pp : 1)));
    if (o->offload.other && !opt_is_quiet(a))
        cli_say("vtwin: warning: --kv-transfer-config: only the "
                "OffloadingConnector and the NixlConnector are modelled\n");
    if (sized && o->offload.backend != 0)
        return vt_fail(err, VT_EINPUT,
                       "--kv-offloading-backend lmcache: only native is modelled");
    if (sized)
        is.cpu_bytes_to_use = o->offload.size_gib * 0x1p30;
    if (!sized && !o->offload.connector)
        return VT_OK;
    if (!(is.cpu_bytes_to_use > 0))
        return vt_fail(err, VT_EINPUT,
                       "--kv-transfer-config: cpu_bytes_to_use must be specified in "
                       "kv_connector_extra_config");
    engine_set_link(&j->config.offload, a, o);
    is.load_gbs = j->config.offload.load_gbs; /* the profile's, or as asked */
    is.store_gbs = j->config.offload.store_gbs;
    is.setup_us = j->config.offload.setup_us;
    is.duplex = j->config.offload.duplex;
    is.host_us = j->config.offload.host_us;
    is.host_block_us = j->config.offload.host_block_us;
    j->config.offload = is;
    return VT_OK;
}

/* Keys and values of a layer lie apart, but for latent attention; of a block there are
 * the layers of its group. */
void engine_count_parts(struct engine_job *j)
{
    struct vt_engine_config *c = &j->config;
    uint32_t layers = c->n_kv_groups > 0 ? c->kv_group[0].layers : j->arch.layers;

    if (j->has_arch)
        c->remote.block_parts =
            j->arch.sort[0].type == VT_ATTENTION_MLA ? layers : 2 * layers;
}

int engine_settle_offload(struct engine_job *j, const struct engine_options *o,
                          uint64_t block_bytes, uint32_t tp, struct vt_err *err)
{
    int rc = j->config.offload.cpu_bytes_to_use > 0
                 ? engine_find_sizes(j, o, false, err)
                 : VT_OK;

    engine_count_parts(j);
    return rc == VT_OK
               ? vt_offload_settle(&j->config, j->has_sizes ? &j->gpu : NULL,
                                   block_bytes, j->has_arch ? j->arch.layers : 0,
                                   tp * (o->pp > 0 ? o->pp : 1), err)
               : rc;
}
