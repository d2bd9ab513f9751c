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

int vt_fail(struct vt_err *err, enum vt_code code, const char *fmt, ...)
{
    char text[sizeof(err->msg)]; /* an argument may point into err->msg */
    va_list args;

    if (!err)
        return (int)code;
    va_start(args, fmt);
    if (vsnprintf(text, sizeof(text), fmt, args) < 0)
        text[0] = '\0';
    va_end(args);
    one_line(text, sizeof(text));
    err->code = code;
    memcpy(err->msg, text, sizeof(text));
    return (int)code;
}

int vt_within(struct vt_err *err, int rc, const char *fmt, ...)
{
    char context[sizeof(err->msg)];
    va_list args;

    if (rc == VT_OK || !err)
        return rc;
    va_start(args, fmt);
    if (vsnprintf(context, sizeof(context), fmt, args) < 0)
        context[0] = '\0';
    va_end(args);
    return vt_fail(err, (enum vt_code)rc, "%s: %s", context, err->msg);
}

int vt_nomem(struct vt_err *err)
{
    return vt_fail(err, VT_ENOMEM, "out of memory");
}

/* ---- being stopped ---------------------------------------------------- */

static _Thread_local struct {
    bool (*asked)(void *user);
    void *user;
} stop;

void vt_stop_when(bool (*asked)(void *user), void *user)
{
    stop.asked = asked;
    stop.user = user;
}

int vt_stopped(struct vt_err *err)
{
    return stop.asked && stop.asked(stop.user) ? vt_fail(err, VT_EIO, "stopped")
                                               : VT_OK;
}
