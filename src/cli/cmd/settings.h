/* settings.h - how a result was made, for its JSON; private to cmd. */
#ifndef VT_CLI_SETTINGS_H
#define VT_CLI_SETTINGS_H

#include "cli/cmd/engine.h"
#include "cli/cmd/traffic.h"

/* The member "settings": everything that was decided, by a flag or without one, under
 * vLLM's names. */
void settings_json(struct vt_jw *w, const struct engine_job *e,
                   const struct vt_engine_config *c, const struct vt_setting *s,
                   const struct vt_fleet *fleet, const struct traffic *t);

#endif
