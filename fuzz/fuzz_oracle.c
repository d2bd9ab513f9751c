/* Recorded scheduler runs: a damaged one is refused or found to differ. */
#include "sim/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vt_oracle_result r;
    struct vt_err err = {0};
    int rc = vt_oracle_check_text("fuzz", (const char *)data, size, &r, &err);

    (void)rc;
    return 0;
}
