/* wire.h - vLLM's engine-core protocol: an engine behind a real frontend, a recorder
 * between frontend and engine, and a frontend of our own for tests and benchmarks.
 *
 * Messages are MessagePack over ZeroMQ. Their layout differs by line of vLLM ("0.26"):
 * the frontend never tells its version, so an engine is told, or guesses from the
 * length of the first request. */
#ifndef VT_WIRE_H
#define VT_WIRE_H

#include "base/base.h"
#include "core/core.h"
#include "model/model.h"
#include "trace/trace.h"

/* ---- lines of vLLM ---------------------------------------------------- */

struct vt_wire_line {
    const char *name;        /* "0.26" */
    uint32_t request_fields; /* of EngineCoreRequest */
    uint32_t output_fields;  /* of EngineCoreOutput */
    uint32_t outputs_fields; /* of EngineCoreOutputs */
    uint32_t prefill_at;     /* index of prefill_stats in EngineCoreOutput */
    uint32_t count_fields;   /* columns of the coordinator's request counts */
    bool ec_transfer;        /* EngineCoreOutput has ec_transfer_params */
    bool kv_fetch_stats;     /* the keys that 0.32 added to scheduler_stats */
};

const struct vt_wire_line *const *vt_wire_lines(size_t *n); /* oldest first; static */
const struct vt_wire_line *
vt_wire_line_find(const char *name); /* "0.26", "v0.26.1"; NULL */
/* The oldest line whose requests are so long, 0.26 for those that share its length. */
const struct vt_wire_line *vt_wire_line_of_request(uint32_t n_fields);

/* ---- provenance ------------------------------------------------------- */

/* config-fingerprint-v3: lower-case hex of SHA-256 over the three strings. NULL counts
 * as empty. */
void vt_config_hash(char out[65], const char *gpu, const char *vllm_tag,
                    const char *engine_config);

#endif
