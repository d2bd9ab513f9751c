/* cors.c - questions of browsers before they ask, answered as Starlette does with
 * vLLM's defaults: every origin, method and header, no credentials. */
#include "net/server/server.h"

#define METHODS "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT, QUERY"

static bool is_allowed(const char *method)
{
    const char *at = METHODS;
    size_t len = strlen(method);

    for (; *at; at += strcspn(at, ","), at += strspn(at, ", "))
        if (strcspn(at, ",") == len && memcmp(at, method, len) == 0)
            return true;
    return false;
}

static const char *verdict(bool method_allowed, bool private_network)
{
    if (method_allowed)
        return private_network ? "Disallowed CORS private-network" : "OK";
    return private_network ? "Disallowed CORS method, private-network"
                           : "Disallowed CORS method";
}

bool net_cors_preflight(struct net_conn *c, const struct net_request *r)
{
    const char *method, *headers;
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
    headers = net_header_value(r, "access-control-request-headers");
    if (headers)
        field[reply.n_headers++] =
            (struct net_header){"access-control-allow-headers", headers};
    reply.body =
        verdict(is_allowed(method),
                net_header_value(r, "access-control-request-private-network") != NULL);
    reply.len = strlen(reply.body);
    reply.status = reply.len == 2 ? 200 : 400;
    net_answer(c, &reply);
    return true;
}
