/* Results of benchmarks: any text is refused or compared with itself without a
 * difference. */
#include <assert.h>
#include <stdlib.h>

#include "load/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct vt_result_judgement j = {.tolerance = 0};
    struct vt_results r = {0};
    struct vt_err err = {0};
    struct vt_buf b = {0};
    char *text = malloc(size + 1);
    size_t worse = 0, n;

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (vt_results_read(&r, "fuzz", text, size, &err) == VT_OK && r.n < 16) {
        n = r.n;
        if (vt_results_table(&b, &r, &j, &worse, &err) == VT_OK)
            assert(n > 1 && b.len > 0);
        if (n == 1 && vt_results_read(&r, "again", text, size, &err) == VT_OK) {
            vt_buf_clear(&b);
            assert(vt_results_json(&b, &r, &j, &worse, &err) == VT_OK);
            assert(worse == 0);
        }
    }
    vt_buf_free(&b);
    vt_results_free(&r);
    free(text);
    return 0;
}
