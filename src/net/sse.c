/* sse.c - the data lines of an event stream. */
#include "net/net.h"

enum { MAX_LINE = 16 << 20 };

static void take_line(struct net_sse *s, const char *p, size_t n)
{
    if (n > 0 && p[n - 1] == '\r')
        n--;
    if (n < 5 || memcmp(p, "data:", 5) != 0)
        return; /* blank, a comment, or a field of no interest */
    p += 5;
    n -= 5;
    if (n > 0 && *p == ' ')
        p++, n--;
    s->data(s->user, p, n);
}

/* A line that comes whole is read where it lies. */
bool net_sse_feed(struct net_sse *s, const char *p, size_t n)
{
    while (n > 0) {
        const char *nl = memchr(p, '\n', n);
        size_t len = nl ? (size_t)(nl - p) : n;

        if (s->line.len > 0 || !nl) {
            vt_buf_add(&s->line, p, len);
            if (s->line.failed || s->line.len > MAX_LINE)
                return false;
        }
        if (!nl)
            return true;
        if (s->line.len > 0)
            take_line(s, s->line.data, s->line.len);
        else
            take_line(s, p, len);
        vt_buf_clear(&s->line);
        p += len + 1;
        n -= len + 1;
    }
    return true;
}

void net_sse_end(struct net_sse *s)
{
    if (s->line.len > 0)
        take_line(s, s->line.data, s->line.len);
    vt_buf_clear(&s->line);
}

void net_sse_free(struct net_sse *s)
{
    vt_buf_free(&s->line);
}
