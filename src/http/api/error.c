/* error.c - what is wrong with a request, as the client reads it. */
#include "http/api/api.h"

#include <string.h>

/* A message that was cut must not end within a character. */
static void mend_end(char *text)
{
    text[vt_utf8_trim(text, strlen(text))] = '\0';
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

void api_error_from(struct api_error *e, const struct vt_err *why)
{
    bool theirs = why->code == VT_EINPUT;

    api_error_set(e, theirs ? 400 : 500,
                  theirs ? "BadRequestError" : "InternalServerError", NULL, "%s",
                  why->msg);
}

void api_error_json(struct vt_buf *b, const struct api_error *e)
{
    struct vt_jw w;

    vt_jw_init(&w, b, NULL);
    vt_jw_map(&w, NULL);
    if (e->anthropic)
        vt_jw_str(&w, "type", "error");
    vt_jw_map(&w, "error");
    if (e->anthropic)
        vt_jw_str(&w, "type", e->type);
    vt_jw_str(&w, "message", e->message);
    if (!e->anthropic) {
        vt_jw_str(&w, "type", e->type);
        vt_jw_str(&w, "param", e->param[0] ? e->param : NULL);
        vt_jw_i64(&w, "code", e->status);
    }
    vt_jw_end(&w);
    vt_jw_end(&w);
}
