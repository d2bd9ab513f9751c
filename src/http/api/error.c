/* error.c - what is wrong with a request, as the client reads it. */
#include "http/api/api.h"

#include <string.h>

/* A message that was cut must not end within a character. */
static void mend_end(char *text)
{
    size_t n = strlen(text), at = n;

    while (at > 0 && n - at < 4 && ((unsigned char)text[at - 1] & 0xc0) == 0x80)
        at--;
    if (at > 0 && (unsigned char)text[at - 1] >= 0xc0) {
        unsigned char lead = (unsigned char)text[at - 1];
        size_t need = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;

        if (n - at + 1 < need)
            text[at - 1] = '\0';
    }
}

void api_error_set(struct api_error *e, int status, const char *type, const char *param,
                   const char *fmt, ...)
{
    va_list args;

    e->status = status;
    e->type = type;
    e->anthropic = false;
    (void)snprintf(e->param, sizeof(e->param), "%s", param ? param : "");
    va_start(args, fmt);
    (void)vsnprintf(e->message, sizeof(e->message), fmt, args);
    va_end(args);
    mend_end(e->param);
    mend_end(e->message);
}

void api_error_json(struct vt_buf *b, const struct api_error *e)
{
    if (e->anthropic) {
        vt_buf_printf(
            b, "{\"type\":\"error\",\"error\":{\"type\":\"%s\",\"message\":", e->type);
        vt_buf_json_str(b, e->message, strlen(e->message));
        vt_buf_str(b, "}}");
        return;
    }
    vt_buf_str(b, "{\"error\":{\"message\":");
    vt_buf_json_str(b, e->message, strlen(e->message));
    vt_buf_printf(b, ",\"type\":\"%s\",\"param\":", e->type);
    if (e->param[0] != '\0')
        vt_buf_json_str(b, e->param, strlen(e->param));
    else
        vt_buf_str(b, "null");
    vt_buf_printf(b, ",\"code\":%d}}", e->status);
}
