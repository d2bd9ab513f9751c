/* values.c - values as pydantic's lax mode and Python's bool() take them. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/api/request.h"

/* ---- numbers and truth in strings ------------------------------------ */

static bool trim_space(const struct vt_node *v, const char **text, size_t *len)
{
    const char *from = v->u.str, *to = from + v->n;

    while (from < to && isspace((unsigned char)*from))
        from++;
    while (to > from && isspace((unsigned char)to[-1]))
        to--;
    *text = from;
    *len = (size_t)(to - from);
    return *len > 0;
}

/* "12", "-3", "+4", "1_000", "5.000". */
bool api_text_int(const struct vt_node *v, int64_t *out)
{
    const char *text;
    char digits[32];
    size_t len, n = 0;

    if (!trim_space(v, &text, &len) || len >= sizeof(digits))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '.') {
            for (size_t k = i + 1; k < len; k++)
                if (text[k] != '0')
                    return false;
            if (i + 1 == len || n == 0)
                return false;
            break;
        }
        if (text[i] != '_' && !(text[i] == '+' && i == 0))
            digits[n++] = text[i];
    }
    return vt_parse_i64(digits, n, out);
}

bool api_text_real(const struct vt_node *v, double *out)
{
    static const struct {
        const char *text;
        double value;
    } words[] = {
        {"nan", NAN},           {"inf", INFINITY},        {"infinity", INFINITY},
        {"-inf", -INFINITY},    {"-infinity", -INFINITY}, {"+inf", INFINITY},
        {"+infinity", INFINITY}};
    const char *text;
    size_t len;

    if (!trim_space(v, &text, &len))
        return false;
    for (size_t i = 0; i < VT_COUNT(words); i++)
        if (strlen(words[i].text) == len &&
            strncasecmp(words[i].text, text, len) == 0) {
            *out = words[i].value;
            return true;
        }
    return vt_parse_f64(text + (*text == '+'), len - (*text == '+'), out);
}

bool api_text_bool(const struct vt_node *v, bool *out)
{
    static const char *const yes[] = {"1", "true", "t", "y", "yes", "on"};
    static const char *const no[] = {"0", "false", "f", "n", "no", "off"};

    for (size_t i = 0; i < VT_COUNT(yes); i++)
        if (strcasecmp(v->u.str, yes[i]) == 0 || strcasecmp(v->u.str, no[i]) == 0) {
            *out = strcasecmp(v->u.str, yes[i]) == 0;
            return true;
        }
    return false;
}

/* ---- values of checked fields ---------------------------------------- */

bool api_get_bool(const struct vt_node *v, bool def)
{
    bool value = def;

    if (!api_given(v))
        return def;
    if (v->kind == VT_STR)
        (void)api_text_bool(v, &value);
    else
        value = v->kind == VT_BOOL ? v->u.boolean
                : v->kind == VT_INT
                    ? v->u.integer != 0
                    : v->kind == VT_BIG || (v->kind == VT_REAL && v->u.real != 0);
    return value;
}

int64_t api_get_int(const struct vt_node *v, int64_t def)
{
    int64_t value = def;

    if (!api_given(v) || v->kind > VT_STR)
        return def;
    if (v->kind == VT_STR)
        (void)api_text_int(v, &value);
    else if (v->kind == VT_BIG)
        value = v->u.str[0] == '-' ? INT64_MIN : INT64_MAX;
    else if (v->kind == VT_REAL)
        value = isnan(v->u.real)       ? def
                : v->u.real >= 9.2e18  ? INT64_MAX
                : v->u.real <= -9.2e18 ? INT64_MIN
                                       : (int64_t)v->u.real;
    else
        value = v->kind == VT_BOOL ? v->u.boolean
                : v->is_u64        ? INT64_MAX
                                   : v->u.integer;
    return value;
}

double api_get_real(const struct vt_node *v, double def)
{
    double value = def;

    if (!api_given(v) || v->kind > VT_STR)
        return def;
    if (v->kind == VT_STR)
        (void)api_text_real(v, &value);
    else if (v->kind == VT_BIG)
        value = strtod(v->u.str, NULL);
    else if (v->kind == VT_INT && v->is_u64)
        value = (double)(uint64_t)v->u.integer;
    else
        value = v->kind == VT_REAL   ? v->u.real
                : v->kind == VT_BOOL ? (double)v->u.boolean
                                     : (double)v->u.integer;
    return value;
}

const char *api_get_str(const struct vt_node *v, const char *def)
{
    return v && v->kind == VT_STR ? v->u.str : def;
}

bool api_truth(const struct vt_node *v)
{
    return api_given(v) && (v->kind < VT_STR ? api_get_bool(v, false) : v->n > 0);
}
