/* arch.h - the parts of reading a config.json. */
#ifndef VT_MODEL_ARCH_H
#define VT_MODEL_ARCH_H

#include "model/model.h"

/* Sets weight_bytes, scale_bytes, quant_experts_only and kv_bytes from a
 * quantization_config; a->dtype_bytes must be set. */
int arch_read_quant(struct vt_arch *a, const struct vt_node *quant, struct vt_err *err);

#endif
