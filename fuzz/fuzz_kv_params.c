/* fuzz_kv_params.c - kv_transfer_params of any client, and any message of the side
 * channel: what is read lies within what came. The first byte chooses. */
#include <assert.h>
#include <string.h>

#include "kvevents/kvevents.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_params(const char *text, size_t len)
{
    struct vt_arena arena = {0};
    const struct vt_node *root = NULL;
    struct vt_kv_ask a;

    if (vt_json_parse(&arena, text, len, 1, &root, NULL) == VT_OK) {
        assert(vt_kv_ask_read(&a, root, NULL) == VT_OK);
        assert(!a.host == !a.id && (!a.host || (a.port >= 1 && a.port <= 65535)));
        assert(!a.host || (*a.host && *a.id && a.apart == VT_DECODE_ONLY));
        vt_kv_ask_free(&a);
        assert(!a.host && !a.id);
    }
    vt_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data + 1;
    struct vt_heard h;

    if (size == 0)
        return 0;
    if (data[0] & 1) {
        read_params(text, size - 1);
    } else if (vt_heard_read(&h, text, size - 1)) {
        assert(h.len > 0 && h.id >= text && h.id + h.len <= text + size - 1);
        assert(h.what == VT_HEARD_PULLED || h.what == VT_HEARD_WANTED);
    }
    return 0;
}
