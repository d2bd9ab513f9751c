/* mpi.h - what vtwin-mpi.so does: the only part that links MPI, loaded only by
 * processes that mpirun has started.
 *
 * MPI places the ranks and passes one message among them. Jobs then go over plain
 * sockets, since Open MPI does not outlive the loss of a rank, and sockets tell of it
 * at once. */
#ifndef VT_MPI_H
#define VT_MPI_H

/* Found by dlsym() under these names; nonzero: it failed. In this order, once. */
int vt_mpi_join(int *rank, int *n);
int vt_mpi_share(void *bytes, int len); /* rank 0's bytes reach all */
int vt_mpi_leave(void);

#endif
