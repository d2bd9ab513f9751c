/* offload.c - the host's share of a KV cache: how many chunks fit, and how fast a GPU's
 * link moves them. */
#include "model/model.h"

/* Measured on an H200 with vLLM 0.26 (bench/offload): what each way reaches of the data
 * sheet's rate, what a job costs before its first byte, and what the host spends on
 * handing one over, for each and for each layer of each of its blocks, which is a copy
 * of its own. Assumed: what a way keeps while the other is busy. */
static const double load_reached = 0.55, store_reached = 0.85, setup_us = 200;
static const double host_us = 820, host_layer_us = 0.95;
static const double duplex = 0.85;
static const uint32_t usual_layers = 36;
static const double usual_gbs = 128; /* PCIe 5, both ways: where the GPU is not known */

enum { ALIGNED_SINCE = 27, ALIGNMENT = 4096 }; /* chunks begin on pages */

int vt_offload_settle(struct vt_engine_config *c, const struct vt_gpu *gpu,
                      uint64_t block_bytes, uint32_t layers, uint32_t gpus,
                      struct vt_err *err)
{
    struct vt_offload *o = &c->offload;
    double link = (gpu && gpu->pcie_gbs > 0 ? gpu->pcie_gbs : usual_gbs) / 2;
    uint64_t chunk;
    double n;

    if (c->remote.block_bytes == 0)
        c->remote.block_bytes = block_bytes;
    if (!(o->cpu_bytes_to_use > 0) && o->num_cpu_blocks == 0)
        return VT_OK;
    if (!(o->load_gbs > 0))
        o->load_gbs = link * load_reached;
    if (!(o->store_gbs > 0))
        o->store_gbs = link * store_reached;
    if (!(o->host_us > 0))
        o->host_us = host_us;
    if (!(o->host_block_us > 0) && (layers > 0 || block_bytes > 0 || o->num_cpu_blocks))
        o->host_block_us = host_layer_us * (layers > 0 ? layers : usual_layers);
    if (!(o->duplex > 0))
        o->duplex = duplex;
    if (!(o->setup_us > 0))
        o->setup_us = setup_us;
    o->block_bytes = block_bytes;
    if (o->num_cpu_blocks > 0 || block_bytes == 0)
        return VT_OK;
    chunk = block_bytes * (o->blocks_per_chunk > 0 ? o->blocks_per_chunk : 1) *
            (gpus > 0 ? gpus : 1);
    if (c->vllm >= ALIGNED_SINCE)
        chunk = (chunk + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    n = o->cpu_bytes_to_use / (double)chunk;
    if (n < 1)
        return vt_fail(err, VT_EINPUT,
                       "kv-offloading-size: %.3g GiB hold no chunk of %.3g MiB",
                       o->cpu_bytes_to_use / 0x1p30, (double)chunk / 0x1p20);
    o->num_cpu_blocks = n < 0x1p28 ? (uint32_t)n : 1u << 28;
    return VT_OK;
}

/* ---- to other engines --------------------------------------------------- */

double vt_remote_gbs(const struct vt_gpu *gpu, bool nvlink)
{
    /* A NIC of 200 Gbit/s beside PCIe 4, of 400 beside PCIe 5: what nodes are built
     * with.
     */
    static const double nic_gbs = 25, beside_gbs = 32;

    if (nvlink)
        return gpu ? gpu->link_gbs / 2 : 0;
    return gpu && gpu->pcie_gbs > 0 ? nic_gbs * gpu->pcie_gbs / 2 / beside_gbs
                                    : nic_gbs;
}
