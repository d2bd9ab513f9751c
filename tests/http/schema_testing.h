/* schema_testing.h - does a JSON value fit a schema? Written from the standard, not
 * from the generator it judges. Patterns are PCRE2's to match. */
#ifndef VT_SCHEMA_TESTING_H
#define VT_SCHEMA_TESTING_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/base.h"

struct judge {
    const struct vt_node *root;
    char why[256]; /* of the first misfit */
};

static bool judge(struct judge *j, const struct vt_node *s, const struct vt_node *v);

static bool misfit(struct judge *j, const char *why)
{
    if (j->why[0] == '\0')
        snprintf(j->why, sizeof(j->why), "%s", why);
    return false;
}

static bool same_value(const struct vt_node *a, const struct vt_node *b);

static double number_of(const struct vt_node *n)
{
    return n->kind == VT_REAL ? n->u.real : (double)n->u.integer;
}

static bool is_number(const struct vt_node *n)
{
    return n && (n->kind == VT_INT || n->kind == VT_REAL);
}

static bool same_children(const struct vt_node *a, const struct vt_node *b)
{
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        const struct vt_node *other =
            a->kind == VT_MAP ? vt_get(b, a->u.item[i].key) : &b->u.item[i];

        if (!other || !same_value(&a->u.item[i], other))
            return false;
    }
    return true;
}

static bool same_value(const struct vt_node *a, const struct vt_node *b)
{
    if (is_number(a) && is_number(b))
        return number_of(a) == number_of(b);
    if (a->kind != b->kind)
        return false;
    if (a->kind == VT_BOOL)
        return a->u.boolean == b->u.boolean;
    if (a->kind == VT_STR)
        return a->n == b->n && memcmp(a->u.str, b->u.str, a->n) == 0;
    return a->kind == VT_NULL || same_children(a, b);
}

/* ---- strings --------------------------------------------------------- */

static bool pcre_matches(const char *pattern, size_t len, const char *text, size_t n)
{
    int code;
    PCRE2_SIZE at;
    pcre2_code *re =
        pcre2_compile((PCRE2_SPTR)pattern, len, PCRE2_UTF, &code, &at, NULL);
    pcre2_match_data *data = re ? pcre2_match_data_create_from_pattern(re, NULL) : NULL;
    int rc = re ? pcre2_match(re, (PCRE2_SPTR)text, n, 0, 0, data, NULL) : -1;

    pcre2_match_data_free(data);
    pcre2_code_free(re);
    return rc > 0;
}

static const char *format_pattern(const char *format)
{
    static const char *const rules[][2] = {
        {"date", "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])$"},
        {"date-time",
         "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(Z|[+-]\\d\\d:\\d\\d)$"},
        {"time", "^\\d\\d:\\d\\d:\\d\\d(Z|[+-]\\d\\d:\\d\\d)$"},
        {"email", "^[^@ ]+@[^@ ]+\\.[^@ ]+$"},
        {"uuid",
         "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"},
        {"ipv4", "^(\\d{1,3}\\.){3}\\d{1,3}$"},
        {"uri", "^[a-z]+://\\S+$"},
    };

    for (size_t i = 0; i < VT_COUNT(rules); i++)
        if (strcmp(rules[i][0], format) == 0)
            return rules[i][1];
    return NULL;
}

static size_t chars(const struct vt_node *v)
{
    size_t n = 0;

    for (uint32_t i = 0; i < v->n; i++)
        n += ((unsigned char)v->u.str[i] & 0xc0) != 0x80;
    return n;
}

static bool judge_string(struct judge *j, const struct vt_node *s,
                         const struct vt_node *v)
{
    const struct vt_node *min = vt_get(s, "minLength"), *max = vt_get(s, "maxLength");
    const struct vt_node *pattern = vt_get(s, "pattern"), *format = vt_get(s, "format");
    const char *rule = format ? format_pattern(format->u.str) : NULL;

    if (min && (double)chars(v) < number_of(min))
        return misfit(j, "shorter than minLength");
    if (max && (double)chars(v) > number_of(max))
        return misfit(j, "longer than maxLength");
    if (pattern && !pcre_matches(pattern->u.str, pattern->n, v->u.str, v->n))
        return misfit(j, "does not match the pattern");
    if (rule && !pcre_matches(rule, strlen(rule), v->u.str, v->n))
        return misfit(j, "is not of the format");
    return true;
}

/* ---- numbers --------------------------------------------------------- */

static bool judge_number(struct judge *j, const struct vt_node *s,
                         const struct vt_node *v)
{
    const struct vt_node *low = vt_get(s, "minimum"), *high = vt_get(s, "maximum");
    const struct vt_node *above = vt_get(s, "exclusiveMinimum");
    const struct vt_node *below = vt_get(s, "exclusiveMaximum");
    const struct vt_node *step = vt_get(s, "multipleOf");
    double x = number_of(v), k = step ? x / number_of(step) : 0;

    if (low && x < number_of(low))
        return misfit(j, "below minimum");
    if (high && x > number_of(high))
        return misfit(j, "above maximum");
    if (above && (is_number(above) ? x <= number_of(above)
                                   : above->u.boolean && low && x <= number_of(low)))
        return misfit(j, "not above exclusiveMinimum");
    if (below && (is_number(below) ? x >= number_of(below)
                                   : below->u.boolean && high && x >= number_of(high)))
        return misfit(j, "not below exclusiveMaximum");
    if (step && fabs(k - round(k)) > 1e-9)
        return misfit(j, "no multiple");
    return true;
}

/* ---- arrays and objects ----------------------------------------------- */

static bool judge_items(struct judge *j, const struct vt_node *s,
                        const struct vt_node *v)
{
    const struct vt_node *items = vt_get(s, "items"),
                         *prefix = vt_get(s, "prefixItems");
    uint32_t own = prefix ? prefix->n : 0;

    for (uint32_t i = 0; i < v->n; i++) {
        const struct vt_node *rule = i < own ? &prefix->u.item[i] : items;

        if (rule && !judge(j, rule, &v->u.item[i]))
            return misfit(j, "an item does not fit");
    }
    return true;
}

static bool judge_array(struct judge *j, const struct vt_node *s,
                        const struct vt_node *v)
{
    const struct vt_node *min = vt_get(s, "minItems"), *max = vt_get(s, "maxItems");
    const struct vt_node *unique = vt_get(s, "uniqueItems");

    if (min && v->n < (uint32_t)number_of(min))
        return misfit(j, "fewer than minItems");
    if (max && v->n > (uint32_t)number_of(max))
        return misfit(j, "more than maxItems");
    for (uint32_t i = 0; unique && unique->u.boolean && i < v->n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (same_value(&v->u.item[i], &v->u.item[k]))
                return misfit(j, "an item comes twice");
    return judge_items(j, s, v);
}

static bool judge_object(struct judge *j, const struct vt_node *s,
                         const struct vt_node *v)
{
    const struct vt_node *known = vt_get(s, "properties"),
                         *need = vt_get(s, "required");
    const struct vt_node *other = vt_get(s, "additionalProperties");
    const struct vt_node *min = vt_get(s, "minProperties"),
                         *max = vt_get(s, "maxProperties");

    for (uint32_t i = 0; need && i < need->n; i++)
        if (!vt_get(v, need->u.item[i].u.str))
            return misfit(j, "a required property is missing");
    if ((min && v->n < (uint32_t)number_of(min)) ||
        (max && v->n > (uint32_t)number_of(max)))
        return misfit(j, "wrong number of properties");
    for (uint32_t i = 0; i < v->n; i++) {
        const struct vt_node *rule = vt_get(known, v->u.item[i].key);

        if (!rule)
            rule = other;
        if (rule && !judge(j, rule, &v->u.item[i]))
            return misfit(j, "a property does not fit");
    }
    return true;
}

/* ---- schemas --------------------------------------------------------- */

static bool is_of_type(const char *type, const struct vt_node *v)
{
    static const struct {
        const char *name;
        int kind;
    } kinds[] = {{"null", VT_NULL},
                 {"boolean", VT_BOOL},
                 {"string", VT_STR},
                 {"array", VT_LIST},
                 {"object", VT_MAP}};

    if (strcmp(type, "number") == 0)
        return is_number(v);
    if (strcmp(type, "integer") == 0)
        return is_number(v) && number_of(v) == floor(number_of(v));
    for (size_t i = 0; i < VT_COUNT(kinds); i++)
        if (strcmp(type, kinds[i].name) == 0)
            return v->kind == kinds[i].kind;
    return false;
}

static bool judge_type(struct judge *j, const struct vt_node *s,
                       const struct vt_node *v)
{
    const struct vt_node *type = vt_get(s, "type"), *null = vt_get(s, "nullable");

    if (!type || (null && null->u.boolean && v->kind == VT_NULL))
        return true;
    if (type->kind == VT_STR)
        return is_of_type(type->u.str, v) || misfit(j, "wrong type");
    for (uint32_t i = 0; i < type->n; i++)
        if (is_of_type(type->u.item[i].u.str, v))
            return true;
    return misfit(j, "none of the types");
}

static uint32_t n_fitting(struct judge *j, const struct vt_node *list,
                          const struct vt_node *v)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < list->n; i++) {
        struct judge own = {.root = j->root};

        n += judge(&own, &list->u.item[i], v);
    }
    return n;
}

static bool judge_lists(struct judge *j, const struct vt_node *s,
                        const struct vt_node *v)
{
    const struct vt_node *any = vt_get(s, "anyOf"), *one = vt_get(s, "oneOf");
    const struct vt_node *all = vt_get(s, "allOf"), *list = vt_get(s, "enum");
    const struct vt_node *fixed = vt_get(s, "const");
    bool listed = !list;

    for (uint32_t i = 0; list && i < list->n; i++)
        listed |= same_value(&list->u.item[i], v);
    if (!listed || (fixed && !same_value(fixed, v)))
        return misfit(j, "not a value of enum or const");
    if (any && n_fitting(j, any, v) == 0)
        return misfit(j, "fits none of anyOf");
    if (one && n_fitting(j, one, v) != 1)
        return misfit(j, "does not fit exactly one of oneOf");
    return !all || n_fitting(j, all, v) == all->n || misfit(j, "not all of allOf");
}

/* "#", "#/$defs/name", "#/definitions/name". */
static const struct vt_node *referred(const struct judge *j, const char *ref)
{
    const char *slash = strchr(ref + (ref[1] == '/' ? 2 : 1), '/');

    if (strcmp(ref, "#") == 0)
        return j->root;
    return vt_get(vt_get(j->root, ref[2] == '$' ? "$defs" : "definitions"), slash + 1);
}

static bool judge(struct judge *j, const struct vt_node *s, const struct vt_node *v)
{
    const struct vt_node *ref = vt_get(s, "$ref");

    if (s->kind == VT_BOOL)
        return s->u.boolean || misfit(j, "nothing fits false");
    if (ref && !judge(j, referred(j, ref->u.str), v))
        return misfit(j, "what is referred to does not fit");
    if (!judge_type(j, s, v) || !judge_lists(j, s, v))
        return false;
    if (v->kind == VT_STR)
        return judge_string(j, s, v);
    if (is_number(v))
        return judge_number(j, s, v);
    if (v->kind == VT_LIST)
        return judge_array(j, s, v);
    return v->kind != VT_MAP || judge_object(j, s, v);
}

#endif
