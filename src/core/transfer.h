/* transfer.h - bytes between GPU and host on a time axis: one lane for each direction,
 * a job after the other, and both slower while both are busy. Private to core. */
#ifndef VT_CORE_TRANSFER_H
#define VT_CORE_TRANSFER_H

#include "core/core.h"

struct lane_job {
    struct vt_kv_moved is;
    double setup_ns, bytes; /* left */
};

struct lane {
    struct lane_job *job; /* from `first` on */
    size_t first, n, cap;
    double rate; /* bytes in a nanosecond; 0: no time is taken */
};

struct transfers {
    struct lane lane[2]; /* loads, stores */
    double setup_ns, duplex;
    double host_us, host_block_us;
    uint64_t block_bytes;
    vt_ns now;
    struct vt_kv_moved *late; /* stores of the last plan, handed over with the next */
    size_t n_late, cap_late;
    struct vt_kv_moved *done; /* by the time of their ends, not yet told of */
    size_t n_done, cap_done;
};

void transfers_init(struct transfers *t, const struct vt_offload *o);
void transfers_free(struct transfers *t);

/* What the host spends on handing over what begins with these moves. */
double transfers_host_us(const struct transfers *t, const struct vt_kv_moves *m);
/* A step with these moves is scheduled: stores that waited for it begin, and those it
 * flushes are over at *flushed (at `at` where there are none). */
int transfers_begin(struct transfers *t, const struct vt_kv_moves *m, vt_ns at,
                    vt_ns *flushed, struct vt_err *err) VT_MUST_CHECK;
/* Its launch begins: loads are handed over. Its stores wait for the next. */
int transfers_launch(struct transfers *t, const struct vt_kv_moves *m, vt_ns at,
                     struct vt_err *err) VT_MUST_CHECK;
/* Those that are over by then, soonest first; good until transfers_told(). */
int transfers_until(struct transfers *t, vt_ns at, uint32_t *n,
                    struct vt_err *err) VT_MUST_CHECK;
void transfers_told(struct transfers *t, uint32_t n);
/* When a step would next learn of something; VT_NEVER: nothing is under way. */
vt_ns transfers_due(const struct transfers *t);

#endif
