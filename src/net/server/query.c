/* query.c - looking things up in a request. */
#include "net/server/intake.h"

const char *net_header_value(const struct net_request *r, const char *name)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (strcmp(r->header[i].name, name) == 0)
            return r->header[i].value;
    return NULL;
}

/* Decodes [from, from + len) into out; false: too long, or a NUL is in it. */
static bool decode(const char *from, size_t len, char *out, size_t cap)
{
    if (len >= cap)
        return false;
    for (size_t i = 0; i < len; i++)
        out[i] = from[i] == '+' ? ' ' : from[i];
    if (!net_percent_decode(out, &len))
        return false;
    out[len] = '\0';
    return true;
}

bool net_query_value(const char *query, const char *key, char *out, size_t cap)
{
    while (*query) {
        size_t pair = strcspn(query, "&"), name = strcspn(query, "=&");
        size_t from = name < pair ? name + 1 : pair;
        char text[64];

        if (decode(query, name, text, sizeof(text)) && strcmp(text, key) == 0)
            return decode(query + from, pair - from, out, cap);
        query += pair;
        query += *query == '&';
    }
    return false;
}
