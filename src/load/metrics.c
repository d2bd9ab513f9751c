/* metrics.c - what a server's /metrics says, sample by sample. */
#define _GNU_SOURCE /* memmem */
#include <string.h>

#include "load/load.h"

/* NAME{LABELS} VALUE, perhaps with a time behind it. */
static bool read_line(const char *line, size_t len, struct vt_load_sample *s)
{
    const char *end = line + len, *space = memchr(line, ' ', len), *brace, *close;

    if (len == 0 || line[0] == '#')
        return false;
    brace = memchr(line, '{', len);
    *s = (struct vt_load_sample){.name = line};
    if (brace && (!space || brace < space)) {
        close = memrchr(line, '}', len);
        if (!close || close < brace)
            return false;
        s->name_len = (size_t)(brace - line);
        s->labels = brace + 1;
        s->labels_len = (size_t)(close - brace - 1);
        space = close + 1;
    } else if (space) {
        s->name_len = (size_t)(space - line);
    } else {
        return false;
    }
    while (space < end && *space == ' ')
        space++;
    len = (size_t)(end - space);
    for (size_t i = 0; i < len; i++)
        if (space[i] == ' ' || space[i] == '\r')
            len = i;
    return vt_parse_f64(space, len, &s->value);
}

bool vt_load_sample_next(const char **at, const char *end, struct vt_load_sample *s)
{
    while (*at < end) {
        const char *line = *at, *nl = memchr(line, '\n', (size_t)(end - line));

        *at = nl ? nl + 1 : end;
        if (read_line(line, (size_t)((nl ? nl : end) - line), s))
            return true;
    }
    return false;
}

bool vt_load_sample_is(const struct vt_load_sample *s, const char *name)
{
    return vt_is_text(name, s->name, s->name_len);
}

void vt_load_sample_label(const struct vt_load_sample *s, const char *key, char *out,
                          size_t size)
{
    const char *at = s->labels, *end = at ? at + s->labels_len : at;
    size_t key_len = strlen(key), n = 0;

    /* A key begins the labels or stands behind a comma. */
    while (at && at < end) {
        const char *equals = memchr(at, '=', (size_t)(end - at));
        const char *text = equals ? equals + 2 : end;
        bool found =
            equals && (size_t)(equals - at) == key_len && !memcmp(at, key, key_len);

        for (; text < end && *text != '"'; text++) {
            text += *text == '\\' && text + 1 < end;
            if (found && n + 1 < size)
                out[n++] = *text;
        }
        if (found)
            break;
        at = text < end ? text + 1 : end;
        at += at < end && *at == ',';
    }
    if (size > 0)
        out[n] = '\0';
}
