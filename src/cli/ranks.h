/* ranks.h - processes that mpirun started together; private to cli. */
#ifndef VT_CLI_RANKS_H
#define VT_CLI_RANKS_H

#include "base/base.h"

bool cli_by_mpirun(void); /* one of several that it has started */
/* Nothing, unless mpirun has started this process. Then finds the others, so that
 * vt_jobs_run() spreads its jobs over all; those but rank 0 print no more. */
int cli_ranks_join(struct vt_err *err) VT_MUST_CHECK;
/* Ranks but 0 end here, and well: mpirun would end all others. Rank 0 tells of it. */
void cli_ranks_fail(const struct vt_err *err);

/* ranks_link.c: sockets between rank 0 and the others. */
struct ranks_contact { /* what rank 0 lets the others know */
    unsigned char secret[16];
    uint32_t address[16]; /* IPv4, network order; likely ones first */
    uint32_t n_addresses;
    uint16_t port; /* network order */
};
/* Rank 0: *fd listens. */
int ranks_listen(struct ranks_contact *c, int *fd, struct vt_err *err) VT_MUST_CHECK;
/* Rank 0: fills to[1..n-1]; those who do not come in time stay -1. Ends `listening`. */
void ranks_welcome(const struct ranks_contact *c, int listening, int *to, uint32_t n);
/* Others. */
int ranks_connect(const struct ranks_contact *c, uint32_t rank, int *fd,
                  struct vt_err *err) VT_MUST_CHECK;

#endif
