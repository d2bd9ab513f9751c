/* Tuning plans: any text is either read or refused. */
#include "tune/tune.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct vt_tuning_plan p; /* too large for some stacks */
    struct vt_err err = {0};

    if (vt_tuning_plan_parse(&p, "fuzz", (const char *)data, size, &err) == VT_OK)
        vt_tuning_plan_free(&p);
    return 0;
}
