/* arch.h - the parts of reading a config.json. */
#ifndef VT_MODEL_ARCH_H
#define VT_MODEL_ARCH_H

#include "model/model.h"

struct arch_source {
    const struct vt_node *text, *top; /* text may be NULL */
};
/* The map that has the key, text first, and the field; NULL: none has, or null. */
const struct vt_node *arch_map_with(const struct arch_source *s, const char *key);
const struct vt_node *arch_field(const struct arch_source *s, const char *key);
/* The same as a number; what it is without the field, or if it is none. */
uint32_t arch_number(const struct arch_source *s, const char *key, uint32_t otherwise);
bool arch_flag(const struct arch_source *s, const char *key, bool otherwise);
/* Bytes of a number format's element; 0: unknown. */
double arch_dtype_bytes(const char *name);

/* A whole model; what `text` does not state is looked for in `top`. */
int arch_read(struct vt_arch *a, const struct arch_source *s, struct vt_err *err);

enum { ARCH_MAX_WIDTH = 1 << 22 };

/* What each layer keeps for the tokens to come: sets sort[], state, bare_layers and
 * puzzle; all else in *a must be set. */
void arch_read_layers(struct vt_arch *a, const struct arch_source *s);
/* state, and whether the file has one. */
bool arch_read_state(struct vt_arch *a, const struct arch_source *s);

/* Sets weight_bytes, scale_bytes, quant_experts_only and kv_bytes from a
 * quantization_config; a->dtype_bytes must be set. */
int arch_read_quant(struct vt_arch *a, const struct vt_node *quant, struct vt_err *err);

#endif
