/* cors.c - questions of browsers before they ask, answered as Starlette does with
 * vLLM's defaults: every origin, method and header, no credentials. */
#include "net/server/server.h"

#define METHODS "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT, QUERY"

bool net_cors_preflight(struct net_conn *c, const struct net_request *r)
{
    static const char *const verdict[2][2] = {
        {"Disallowed CORS method", "Disallowed CORS method, private-network"},
        {"OK", "Disallowed CORS private-network"}};
    const char *method, *headers, *at = METHODS;
    bool allowed = false, to_private;
    struct net_header field[5] = {
        {"vary", "Origin, Access-Control-Request-Method, "
                 "Access-Control-Request-Headers, "
                 "Access-Control-Request-Private-Network"},
        {"access-control-allow-origin", "*"},
        {"access-control-allow-methods", METHODS},
        {"access-control-max-age", "600"},
    };
    struct net_reply reply = {
        .header = field,
        .n_headers = 4,
        .type = "text/plain; charset=utf-8",
        .bare = true,
    };

    if (!c->is.has_origin || strcmp(r->method, "OPTIONS") != 0)
        return false;
    method = net_header_value(r, "access-control-request-method");
    if (!method)
        return false;
    for (; *at && !allowed; at += strcspn(at, ","), at += strspn(at, ", "))
        allowed = strcspn(at, ",") == strlen(method) &&
                  memcmp(at, method, strlen(method)) == 0;
    to_private = net_header_value(r, "access-control-request-private-network") != NULL;
    headers = net_header_value(r, "access-control-request-headers");
    if (headers)
        field[reply.n_headers++] =
            (struct net_header){"access-control-allow-headers", headers};
    reply.body = verdict[allowed][to_private];
    reply.len = strlen(reply.body);
    reply.status = reply.len == 2 ? 200 : 400;
    net_answer(c, &reply);
    return true;
}
