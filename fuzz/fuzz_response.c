/* fuzz_response.c - whatever a server answers, in whatever pieces: it is read the same
 * way or refused, and every event is scanned within its bounds. */
#include <stdlib.h>
#include <string.h>

#include "load/client.h"
#include "net/client/client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_data(void *user, const char *p, size_t len)
{
    struct vt_buf *seen = user;
    struct load_event e;
    char *copy = malloc(len + 1); /* a bound that a sanitizer sees */
    bool fine;

    if (!copy)
        abort();
    memcpy(copy, p, len);
    fine = load_event_scan(&e, copy, len);
    if (fine && e.text.len > len)
        abort();
    if (fine)
        load_unescape(seen, e.text);
    vt_buf_add(seen, copy, len);
    vt_buf_char(seen, fine ? '+' : '-');
    free(copy);
}

static enum net_part read_in(const uint8_t *data, size_t size, size_t step,
                             struct vt_buf *seen)
{
    struct net_response r = {.max_body = 4096, .sse = {.data = on_data, .user = seen}};
    size_t at = 0;
    enum net_part part;

    net_response_reset(&r);
    while (at < size && r.part != NET_PART_WHOLE && r.part != NET_PART_BROKEN) {
        size_t n = size - at < step ? size - at : step;

        at += net_response_feed(&r, (const char *)data + at, n);
    }
    net_response_close(&r);
    part = (enum net_part)r.part;
    vt_buf_add(seen, r.body.data ? r.body.data : "", r.body.len);
    net_response_free(&r);
    return part;
}

/* The first byte says in how large pieces it comes the second time. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vt_buf whole = {0}, pieces = {0};
    size_t step = size > 0 && data[0] > 0 ? data[0] : 1;
    enum net_part a, b;

    if (size == 0)
        return 0;
    a = read_in(data + 1, size - 1, size, &whole);
    b = read_in(data + 1, size - 1, step, &pieces);
    if (a != b || whole.len != pieces.len ||
        (whole.len > 0 && memcmp(whole.data, pieces.data, whole.len) != 0))
        abort();
    vt_buf_free(&whole);
    vt_buf_free(&pieces);
    return 0;
}
