/* stats.h - scheduler_stats inside an engine's outputs; private to wire. */
#ifndef VT_WIRE_CODEC_STATS_H
#define VT_WIRE_CODEC_STATS_H

#include "wire/codec/codec.h"
#include "wire/codec/fields.h"

int stats_read(struct wire_stats *s, struct msg_in *r) VT_MUST_CHECK;

/* Writes the map to memory that has stats_room() bytes; returns where it stopped. */
size_t stats_room(const struct wire_stats *s);
uint8_t *stats_poke(uint8_t *p, const struct vt_wire_line *line,
                    const struct wire_stats *s);

#endif
