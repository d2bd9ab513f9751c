/* mpi.c - meeting the other ranks. */
#include "mpi/mpi.h"

#include <mpi.h>
#include <stddef.h>

int vt_mpi_join(int *rank, int *n)
{
    int rc = MPI_Init(NULL, NULL);

    if (rc == MPI_SUCCESS)
        rc = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rc == MPI_SUCCESS)
        rc = MPI_Comm_rank(MPI_COMM_WORLD, rank);
    if (rc == MPI_SUCCESS)
        rc = MPI_Comm_size(MPI_COMM_WORLD, n);
    return rc == MPI_SUCCESS ? 0 : -1;
}

int vt_mpi_share(void *bytes, int len)
{
    return MPI_Bcast(bytes, len, MPI_BYTE, 0, MPI_COMM_WORLD) == MPI_SUCCESS ? 0 : -1;
}

int vt_mpi_leave(void)
{
    return MPI_Finalize() == MPI_SUCCESS ? 0 : -1;
}
