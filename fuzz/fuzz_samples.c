/* Sample files for figures: any text is either read or refused. */
#include "report/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vt_samples s;
    struct vt_err err = {0};

    if (vt_samples_parse(&s, (const char *)data, size, &err) != VT_OK)
        return 0;
    for (size_t i = 0; i < s.n; i++)
        for (int m = 0; m < VT_N_METRICS; m++) {
            double *ms = NULL;
            size_t n = 0;

            if (vt_view_samples(&s.view[i], (enum vt_metric)m, &ms, &n, &err) == VT_OK)
                free(ms);
        }
    vt_samples_free(&s);
    return 0;
}
