/* err.c - failures as one code and one line of text. */
#include "base/base.h"

/* Messages quote foreign bytes; whatever those are, the message stays one line and
 * ends on a whole character. */
static void one_line(char *msg, size_t cap)
{
    size_t len = strlen(msg);

    if (len + 1 == cap)
        len = vt_utf8_trim(msg, len);
    msg[len] = '\0';
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)msg[i];

        if (c == '\n' || c == '\r' || c == '\t')
            msg[i] = ' ';
        else if (c < 0x20 || c == 0x7f)
            msg[i] = '?';
    }
}

/* An argument may point into err->msg, so the text is built beside it. */
static void format(char *out, size_t cap, const char *fmt, va_list args)
    __attribute__((format(printf, 3, 0)));
static void format(char *out, size_t cap, const char *fmt, va_list args)
{
    if (vsnprintf(out, cap, fmt, args) < 0)
        out[0] = '\0';
}

int vt_fail(struct vt_err *err, enum vt_code code, const char *fmt, ...)
{
    char text[sizeof(err->msg)];
    va_list args;

    if (!err)
        return (int)code;
    va_start(args, fmt);
    format(text, sizeof(text), fmt, args);
    va_end(args);
    one_line(text, sizeof(text));
    err->code = code;
    memcpy(err->msg, text, sizeof(text));
    return (int)code;
}

int vt_within(struct vt_err *err, int rc, const char *fmt, ...)
{
    char text[sizeof(err->msg)];
    size_t len, n;
    va_list args;

    if (rc == VT_OK || !err)
        return rc;
    va_start(args, fmt);
    format(text, sizeof(text), fmt, args);
    va_end(args);
    len = strlen(text);
    if (len + 2 < sizeof(text)) {
        memcpy(text + len, ": ", 2);
        len += 2;
        n = strlen(err->msg);
        if (n > sizeof(text) - len - 1)
            n = sizeof(text) - len - 1;
        memcpy(text + len, err->msg, n);
        text[len + n] = '\0';
    }
    one_line(text, sizeof(text));
    err->code = (enum vt_code)rc;
    memcpy(err->msg, text, sizeof(text));
    return rc;
}

int vt_nomem(struct vt_err *err)
{
    return vt_fail(err, VT_ENOMEM, "out of memory");
}
