/* chunks.c - a chunked body: sizes, extensions and trailers around its data. */
#include "net/chunks.h"

enum { /* of struct net_chunks */
       SIZE,
       EXTENSION,
       SIZE_LF,
       DATA,
       DATA_CR,
       DATA_LF,
       TRAILER,
       IN_TRAILER,
       TRAILER_LF,
       LAST_LF,
};
enum {
    BAD_REQUEST = 400,
    BODY_TOO_LARGE = 413,
    FIELDS_TOO_LARGE = 431,
    MAX_EXTENSION = 1024,
    MAX_DIGITS = 15, /* of a size; leading zeros count */
};

static int size_digit(struct net_chunks *k, const struct net_limits *l, char c)
{
    int d = net_hex_digit(c);

    if (k->lenient && (c == ' ' || c == '\t'))
        c = ';'; /* what follows is passed over */
    if (d >= 0) {
        k->left = k->left * 16 + (uint64_t)d;
        if (++k->digits > MAX_DIGITS)
            return BAD_REQUEST;
        return k->left > l->max_body_bytes ? BODY_TOO_LARGE : 0;
    }
    if (k->digits == 0 || (c != ';' && c != '\r'))
        return BAD_REQUEST;
    k->line = 0;
    k->state = c == ';' ? EXTENSION : SIZE_LF;
    return 0;
}

/* Lines whose content is of no use to us still hold no control characters. */
static bool is_text(char c)
{
    return c == '\t' || ((unsigned char)c >= 0x20 && c != 0x7f);
}

static int trailer_byte(struct net_chunks *k, const struct net_limits *l, char c)
{
    if (++k->trailer > l->max_header_bytes)
        return FIELDS_TOO_LARGE;
    if (k->state == TRAILER && (c == ' ' || c == '\t'))
        return BAD_REQUEST;
    if (c == '\r')
        k->state = k->state == TRAILER ? LAST_LF : TRAILER_LF;
    else if (is_text(c))
        k->state = IN_TRAILER;
    else
        return BAD_REQUEST;
    return 0;
}

static int take_byte(struct net_chunks *k, const struct net_limits *l, char c)
{
    switch (k->state) {
    case SIZE:
        return size_digit(k, l, c);
    case EXTENSION:
        if (c == '\r')
            k->state = SIZE_LF;
        else if (!is_text(c) || ++k->line > MAX_EXTENSION)
            return BAD_REQUEST;
        return 0;
    case SIZE_LF:
        k->state = k->left > 0 ? DATA : TRAILER;
        k->digits = 0;
        return c == '\n' ? 0 : BAD_REQUEST;
    case DATA_CR:
        k->state = DATA_LF;
        return c == '\r' ? 0 : BAD_REQUEST;
    case DATA_LF:
        k->state = SIZE;
        return c == '\n' ? 0 : BAD_REQUEST;
    case TRAILER_LF:
        k->state = TRAILER;
        return c == '\n' ? 0 : BAD_REQUEST;
    case LAST_LF:
        return c == '\n' ? NET_CHUNKS_END : BAD_REQUEST;
    default:
        return trailer_byte(k, l, c);
    }
}

/* The bytes around the data, one at a time: they are few. */
static int frame_byte(struct net_chunks *k, const struct net_limits *l, char c)
{
    if (c == '\n' && k->lenient && k->state != SIZE_LF && k->state != DATA_LF &&
        k->state != TRAILER_LF && k->state != LAST_LF) {
        int status = take_byte(k, l, '\r');

        if (status)
            return status;
    }
    return take_byte(k, l, c);
}

int net_chunks_read(struct net_chunks *k, const struct net_limits *l, const char **p,
                    const char *end, size_t *n)
{
    *n = 0;
    while (*p < end && k->state != DATA) {
        int status = frame_byte(k, l, *(*p)++);

        if (status)
            return status;
    }
    if (k->state == DATA && *p < end) {
        size_t here = (size_t)(end - *p);

        *n = here < k->left ? here : (size_t)k->left;
        k->left -= *n;
        if (k->left == 0)
            k->state = DATA_CR;
    }
    return 0;
}
