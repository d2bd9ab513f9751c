/* What a gRPC peer sends, bit by bit: never more than was allowed goes out. */
#include <stdlib.h>

#include "net/client/h2.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char body[1000];
    struct net_grpc_call c = {.path = "/a.B/C", .body = body, .len = sizeof(body)};
    struct net_url url = {.authority = "a"};
    struct h2 h = {0};
    size_t half = size / 2;

    h2_begin(&h, &url, &c);
    h2_feed(&h, data, half);
    h2_feed(&h, data + half, size - half);
    if (h.sent > h.body.len)
        abort();
    h2_free(&h);
    return 0;
}
