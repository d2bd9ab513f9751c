/* fields.c - a value against its type, as pydantic's lax mode sees it, and the
 * error entries it makes of what does not fit. */
#include "http/api/api.h"

#include <math.h>
#include <string.h>

#include "http/api/problems.h"

/* Types nest as deep as the tables do; values are bounded by the JSON reader. */
static bool fits(const struct api_type *t, const struct vt_node *v,
                 const struct api_place *at, struct api_problems *out);

/* ---- scalars ------------------------------------------------------------ */

static bool fits_bool(const struct vt_node *v, const struct api_place *at,
                      struct api_problems *out)
{
    bool value, number = v->kind == VT_INT ||
                         (v->kind == VT_REAL && v->u.real == floor(v->u.real));

    if (v->kind == VT_BOOL || (v->kind == VT_STR && api_text_bool(v, &value)))
        return true;
    if (number) {
        double n = v->kind == VT_INT ? (double)v->u.integer : v->u.real;

        if (n == 0 || n == 1)
            return true;
    }
    if (v->kind == VT_STR || number)
        return api_problem(out, at, v, "bool_parsing",
                           "Input should be a valid boolean, unable to interpret input",
                           NULL);
    return api_problem(out, at, v, "bool_type", "Input should be a valid boolean",
                       NULL);
}

static bool in_range(const struct api_type *t, int64_t n, const struct vt_node *v,
                     const struct api_place *at, struct api_problems *out)
{
    char msg[96], ctx[48];

    if (t->has_min && n < t->min) {
        (void)snprintf(msg, sizeof(msg),
                       "Input should be greater than or equal to %lld",
                       (long long)t->min);
        (void)snprintf(ctx, sizeof(ctx), "{'ge': %lld}", (long long)t->min);
        return api_problem(out, at, v, "greater_than_equal", msg, ctx);
    }
    if (t->has_max && n > t->max) {
        (void)snprintf(msg, sizeof(msg), "Input should be less than or equal to %lld",
                       (long long)t->max);
        (void)snprintf(ctx, sizeof(ctx), "{'le': %lld}", (long long)t->max);
        return api_problem(out, at, v, "less_than_equal", msg, ctx);
    }
    return true;
}

static bool fits_int(const struct api_type *t, const struct vt_node *v,
                     const struct api_place *at, struct api_problems *out)
{
    int64_t n = 0;

    if (v->kind == VT_INT || v->kind == VT_BOOL) {
        n = v->kind == VT_BOOL ? v->u.boolean : v->is_u64 ? INT64_MAX : v->u.integer;
        if (v->is_u64 && t->has_max && t->max == INT64_MAX)
            return api_problem(
                out, at, v, "less_than_equal",
                "Input should be less than or equal to 9223372036854775807",
                "{'le': 9223372036854775807}");
    } else if (v->kind == VT_REAL) {
        if (v->u.real != floor(v->u.real))
            return api_problem(
                out, at, v, "int_from_float",
                "Input should be a valid integer, got a number with a fractional part",
                NULL);
        n = api_get_int(v, 0);
    } else if (v->kind != VT_STR) {
        return api_problem(out, at, v, "int_type", "Input should be a valid integer",
                           NULL);
    } else if (!api_text_int(v, &n)) {
        return api_problem(
            out, at, v, "int_parsing",
            "Input should be a valid integer, unable to parse string as an integer",
            NULL);
    }
    return in_range(t, n, v, at, out);
}

static bool real_in_range(const struct api_type *t, double n, const struct vt_node *v,
                          const struct api_place *at, struct api_problems *out)
{
    bool low = t->has_min && !(n >= (double)t->min);
    long long limit = low ? t->min : t->max;
    char msg[96], ctx[48];

    if (!low && (!t->has_max || n <= (double)t->max))
        return true;
    (void)snprintf(msg, sizeof(msg), "Input should be %s than or equal to %lld",
                   low ? "greater" : "less", limit);
    (void)snprintf(ctx, sizeof(ctx), "{'%s': %lld.0}", low ? "ge" : "le", limit);
    return api_problem(out, at, v, low ? "greater_than_equal" : "less_than_equal", msg,
                       ctx);
}

static bool fits_real(const struct api_type *t, const struct vt_node *v,
                      const struct api_place *at, struct api_problems *out)
{
    double n;

    if (v->kind == VT_INT || v->kind == VT_REAL || v->kind == VT_BOOL)
        return real_in_range(t, api_get_real(v, 0), v, at, out);
    if (v->kind != VT_STR)
        return api_problem(out, at, v, "float_type", "Input should be a valid number",
                           NULL);
    if (!api_text_real(v, &n))
        return api_problem(
            out, at, v, "float_parsing",
            "Input should be a valid number, unable to parse string as a number", NULL);
    return real_in_range(t, n, v, at, out);
}

static size_t characters(const struct vt_node *v)
{
    size_t n = 0;

    for (uint32_t i = 0; i < v->n; i++)
        n += ((unsigned char)v->u.str[i] & 0xc0) != 0x80;
    return n;
}

static bool fits_str(const struct api_type *t, const struct vt_node *v,
                     const struct api_place *at, struct api_problems *out)
{
    char msg[96], ctx[48];
    int64_t n;

    if (v->kind != VT_STR)
        return t->what == API_BYTES
                   ? api_problem(out, at, v, "bytes_type",
                                 "Input should be a valid bytes", NULL)
                   : api_problem(out, at, v, "string_type",
                                 "Input should be a valid string", NULL);
    if (!t->has_min && !t->has_max)
        return true;
    n = (int64_t)characters(v);
    if (n >= t->min && (!t->has_max || n <= t->max))
        return true;
    (void)snprintf(msg, sizeof(msg), "String should have at %s %lld character%s",
                   n < t->min ? "least" : "most",
                   (long long)(n < t->min ? t->min : t->max),
                   (n < t->min ? t->min : t->max) == 1 ? "" : "s");
    (void)snprintf(ctx, sizeof(ctx), "{'%s': %lld}",
                   n < t->min ? "min_length" : "max_length",
                   (long long)(n < t->min ? t->min : t->max));
    return api_problem(out, at, v, n < t->min ? "string_too_short" : "string_too_long",
                       msg, ctx);
}

/* 'a', 'b' or 'c' */
static void put_choices(char *text, size_t size, const char *const *literal)
{
    size_t n = 0;

    for (size_t i = 0; literal[i] != NULL; i++) {
        int more = snprintf(text + n, size - n, "%s'%s'",
                            i == 0                   ? ""
                            : literal[i + 1] == NULL ? " or "
                                                     : ", ",
                            literal[i]);

        n += more > 0 && (size_t)more < size - n ? (size_t)more : 0;
    }
}

static bool fits_literal(const struct api_type *t, const struct vt_node *v,
                         const struct api_place *at, struct api_problems *out)
{
    char choices[320], msg[352];
    struct vt_buf ctx = {0};

    for (size_t i = 0; v->kind == VT_STR && t->literal[i] != NULL; i++)
        if (strcmp(v->u.str, t->literal[i]) == 0)
            return true;
    if (!out->wanted)
        return api_problem(out, at, v, "", "", NULL);
    put_choices(choices, sizeof(choices), t->literal);
    (void)snprintf(msg, sizeof(msg), "Input should be %s", choices);
    vt_buf_str(&ctx, "{'expected': ");
    api_py_repr_text(&ctx, choices, strlen(choices));
    vt_buf_char(&ctx, '}');
    (void)api_problem(out, at, v, "literal_error", msg, ctx.failed ? NULL : ctx.data);
    vt_buf_free(&ctx);
    return false;
}

/* ---- what holds others -------------------------------------------------- */

static bool fits_list(const struct api_type *t, const struct vt_node *v,
                      const struct api_place *at, struct api_problems *out)
{
    bool all = true;

    if (t->what == API_ITERABLE)
        return v->kind >= VT_STR || api_problem(out, at, v, "iterable_type",
                                                "Input should be iterable", NULL);
    if (t->what == API_SEQUENCE && v->kind != VT_LIST)
        return v->kind == VT_STR
                   ? api_problem(out, at, v, "sequence_str",
                                 "'str' instances are not allowed as a Sequence value",
                                 "{'type_name': 'str'}")
                   : api_problem(out, at, v, "is_instance_of",
                                 "Input should be an instance of Sequence",
                                 "{'class': 'Sequence'}");
    if (v->kind != VT_LIST)
        return api_problem(out, at, v, "list_type", "Input should be a valid list",
                           NULL);
    if (t->has_max && v->n > t->max) {
        char msg[96], ctx[128];

        (void)snprintf(msg, sizeof(msg),
                       "List should have at most %lld items after validation, not %u",
                       (long long)t->max, v->n);
        (void)snprintf(
            ctx, sizeof(ctx),
            "{'field_type': 'List', 'max_length': %lld, 'actual_length': %u}",
            (long long)t->max, v->n);
        return api_problem(out, at, v, "too_long", msg, ctx);
    }
    for (uint32_t i = 0; t->of != NULL && i < v->n; i++) {
        struct api_place place = {.up = at, .index = i};

        if (!fits(t->of, &v->u.item[i], &place, out))
            all = false;
        if (!all && !out->wanted)
            break;
    }
    return all;
}

static bool fits_dict(const struct api_type *t, const struct vt_node *v,
                      const struct api_place *at, struct api_problems *out)
{
    bool all = true;

    if (v->kind != VT_MAP)
        return api_problem(out, at, v, "dict_type",
                           "Input should be a valid dictionary", NULL);
    for (uint32_t i = 0; t->of != NULL && i < v->n; i++) {
        struct api_place place = {.up = at, .name = v->u.item[i].key};

        if (!fits(t->of, &v->u.item[i], &place, out))
            all = false;
    }
    return all;
}

static bool is_known(const struct api_field *f, enum api_line line)
{
    return f->lines == API_NO_LINE || f->lines == API_BOTH_LINES ||
           f->lines == (line == API_LINE_026 ? API_ONLY_026 : API_ONLY_032);
}

static bool fits_fields(const struct api_type *t, const struct vt_node *v,
                        const struct api_place *at, struct api_problems *out)
{
    bool all = true;

    for (const struct api_field *f = t->field; f != NULL && f->name != NULL; f++) {
        const struct vt_node *child;
        struct api_place place = {.up = at, .name = f->name};

        if (!is_known(f, out->line))
            continue;
        child = vt_get(v, f->name);
        if (child != NULL)
            all = fits(f->type, child, &place, out) && all;
        else if (f->required)
            all = api_problem(out, &place, v, "missing", "Field required", NULL);
    }
    return all;
}

static bool fits_model(const struct api_type *t, const struct vt_node *v,
                       const struct api_place *at, struct api_problems *out)
{
    char msg[128], ctx[96];

    if (v->kind == VT_MAP)
        return fits_fields(t, v, at, out);
    if (t->what == API_TYPED_DICT)
        return api_problem(out, at, v, "dict_type",
                           "Input should be a valid dictionary", NULL);
    if (t->what == API_MODEL)
        return api_problem(
            out, at, v, "model_attributes_type",
            "Input should be a valid dictionary or object to extract fields from",
            NULL);
    (void)snprintf(msg, sizeof(msg),
                   "Input should be a dictionary or an instance of %s", t->label);
    (void)snprintf(ctx, sizeof(ctx), "{'class_name': '%s'}", t->label);
    return api_problem(out, at, v, "dataclass_type", msg, ctx);
}

static bool fits_union(const struct api_type *t, const struct vt_node *v,
                       const struct api_place *at, struct api_problems *out)
{
    bool wanted = out->wanted;

    out->wanted = false;
    for (uint32_t i = 0; i < t->n; i++)
        if (fits(&t->of[i], v, at, out)) {
            out->wanted = wanted;
            return true;
        }
    out->wanted = wanted;
    if (!wanted)
        return false;
    for (uint32_t i = 0; i < t->n; i++) {
        struct api_place place = {.up = at, .name = t->of[i].label};

        (void)fits(&t->of[i], v, t->of[i].silent ? at : &place, out);
    }
    return false;
}

static bool fits_type(const struct api_type *t, const struct vt_node *v,
                      const struct api_place *at, struct api_problems *out)
{
    switch (t->what) {
    case API_ANY:
        return true;
    case API_BOOL:
        return fits_bool(v, at, out);
    case API_INT:
        return fits_int(t, v, at, out);
    case API_REAL:
        return fits_real(t, v, at, out);
    case API_STR:
    case API_BYTES:
        return fits_str(t, v, at, out);
    case API_LIST:
    case API_ITERABLE:
    case API_SEQUENCE:
        return fits_list(t, v, at, out);
    case API_DICT:
        return fits_dict(t, v, at, out);
    case API_LITERAL:
        return fits_literal(t, v, at, out);
    case API_MODEL:
    case API_DATACLASS:
    case API_TYPED_DICT:
        return fits_model(t, v, at, out);
    case API_UNION:
        return fits_union(t, v, at, out);
    }
    return false;
}

static bool fits_rule(const struct api_type *t, const struct vt_node *v,
                      const struct api_place *at, struct api_problems *out)
{
    struct vt_buf message = {0};
    bool ok = t->rule(v, &message);

    if (!ok && !message.failed)
        api_problem_raised(out, at, v, "ValueError", "", message.data);
    vt_buf_free(&message);
    return ok;
}

static bool fits(const struct api_type *t, const struct vt_node *v,
                 const struct api_place *at, struct api_problems *out)
{
    if (t->nullable && v->kind == VT_NULL)
        return true;
    return fits_type(t, v, at, out) && (t->rule == NULL || fits_rule(t, v, at, out));
}

/* ---- a body ------------------------------------------------------------- */

static const struct api_field *find(const struct api_field *fields, const char *name,
                                    enum api_line line)
{
    for (const struct api_field *f = fields; f->name != NULL; f++)
        if (f->name[0] == name[0] && strcmp(f->name, name) == 0 && is_known(f, line))
            return f;
    return NULL;
}

/* The common case in one pass over what came; only a body that does not fit pays for a
 * second one, in the order of the table and with words. */
static bool fits_quickly(const struct api_field *fields, const struct vt_node *body,
                         enum api_line line, const struct vt_node **slot)
{
    struct api_problems silent = {.line = line};

    for (uint32_t i = 0; i < body->n; i++) {
        const struct vt_node *v = &body->u.item[i];
        const struct api_field *f = find(fields, v->key, line);

        if (f != NULL && !fits(f->type, v, NULL, &silent))
            return false;
        if (f != NULL)
            slot[f->slot] = v;
    }
    for (const struct api_field *f = fields; f->name != NULL; f++)
        if (f->required && slot[f->slot] == NULL && is_known(f, line))
            return false;
    return true;
}

bool api_fields_check(const struct api_field *fields, const struct vt_node *body,
                      enum api_line line, const struct vt_node **slot,
                      struct api_error *e)
{
    const struct api_type whole = {.what = API_MODEL, .field = fields};
    const struct api_place root = {.name = "body"};
    struct api_problems problems = {.line = line, .wanted = true};

    if (body->kind == VT_MAP && fits_quickly(fields, body, line, slot))
        return true;
    (void)fits(&whole, body, &root, &problems);
    api_problems_end(&problems, e);
    return false;
}

bool api_value_check(const struct api_type *type, const struct vt_node *v,
                     enum api_line line, struct api_error *e)
{
    const struct api_place root = {.name = "body"};
    struct api_problems problems = {.line = line};

    if (fits(type, v, &root, &problems))
        return true;
    problems.wanted = true;
    (void)fits(type, v, &root, &problems);
    api_problems_end(&problems, e);
    return false;
}
