/* Profiles and inline model specs: any text is either opened or refused. */
#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vt_profile p;
    struct vt_err err = {0};
    struct vt_latency *m = NULL;
    char *text = malloc(size + 1);

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (vt_profile_parse(&p, "fuzz", text, size, &err) == VT_OK)
        vt_profile_close(&p);
    if (vt_model_open_inline(&m, text, &err) == VT_OK)
        vt_latency_close(m);
    free(text);
    return 0;
}
