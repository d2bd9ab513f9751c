/* fields.c - a value against its type, as pydantic's lax mode sees it, and the
 * error entries it makes of what does not fit. */
#include <math.h>
#include <string.h>

#include "http/api/request.h"

struct spot { /* a value that is looked at */
    const struct vt_node *v;
    const struct api_place *at;
    struct api_problems *out;
};

/* Types nest as deep as the tables do; values are bounded by the JSON reader. */
static bool fits(const struct api_type *t, const struct vt_node *v,
                 const struct api_place *at, struct api_problems *out);

static bool misfit(const struct spot *s, const char *type, const char *msg)
{
    return api_problem(s->out, s->at, s->v, type, msg, NULL);
}

/* ---- scalars ------------------------------------------------------------ */

static bool fits_bool(const struct api_type *t, const struct spot *s)
{
    const struct vt_node *v = s->v;
    /* What pydantic can make a 64-bit integer of. */
    bool value, number = (v->kind == VT_INT && !v->is_u64) ||
                         (v->kind == VT_REAL && v->u.real == floor(v->u.real) &&
                          fabs(v->u.real) < 0x1p63);

    (void)t;
    if (v->kind == VT_BOOL || (v->kind == VT_STR && api_text_bool(v, &value)))
        return true;
    if (number && (api_get_real(v, 2) == 0 || api_get_real(v, 2) == 1))
        return true;
    if (v->kind == VT_STR || number)
        return misfit(s, "bool_parsing",
                      "Input should be a valid boolean, unable to interpret input");
    return misfit(s, "bool_type", "Input should be a valid boolean");
}

/* `ending`: what the limit has behind it, ".0" of a real number. */
static bool beyond(const struct spot *s, bool low, int64_t limit, const char *ending)
{
    char msg[96], ctx[48];

    (void)snprintf(msg, sizeof(msg), "Input should be %s than or equal to %lld",
                   low ? "greater" : "less", (long long)limit);
    (void)snprintf(ctx, sizeof(ctx), "{'%s': %lld%s}", low ? "ge" : "le",
                   (long long)limit, ending);
    return api_problem(s->out, s->at, s->v,
                       low ? "greater_than_equal" : "less_than_equal", msg, ctx);
}

/* An integer that is beyond what api_get_int() gives for it. */
static bool is_wide(const struct vt_node *v)
{
    return v->kind == VT_BIG || (v->kind == VT_INT && v->is_u64);
}

static bool fits_int(const struct api_type *t, const struct spot *s)
{
    const struct vt_node *v = s->v;
    int64_t n = api_get_int(v, 0);

    if (v->kind == VT_NULL || v->kind > VT_STR)
        return misfit(s, "int_type", "Input should be a valid integer");
    if (v->kind == VT_REAL && !isfinite(v->u.real))
        return misfit(s, "finite_number", "Input should be a finite number");
    if (v->kind == VT_REAL && v->u.real != floor(v->u.real))
        return misfit(
            s, "int_from_float",
            "Input should be a valid integer, got a number with a fractional part");
    if (v->kind == VT_REAL && fabs(v->u.real) >= 0x1p63)
        return misfit(
            s, "int_parsing_size",
            "Unable to parse input string as an integer, exceeded maximum size");
    if (v->kind == VT_STR && !api_text_int(v, &n))
        return misfit(
            s, "int_parsing",
            "Input should be a valid integer, unable to parse string as an integer");
    if (t->has_min && (n < t->min || (n < 0 && is_wide(v))))
        return beyond(s, true, t->min, "");
    if (t->has_max && (n > t->max || (n > 0 && is_wide(v))))
        return beyond(s, false, t->max, "");
    return true;
}

static bool fits_real(const struct api_type *t, const struct spot *s)
{
    const struct vt_node *v = s->v;
    double n = api_get_real(v, 0);

    if (v->kind == VT_NULL || v->kind > VT_STR || (v->kind == VT_BIG && isinf(n)))
        return misfit(s, "float_type", "Input should be a valid number");
    if (v->kind == VT_STR && !api_text_real(v, &n))
        return misfit(
            s, "float_parsing",
            "Input should be a valid number, unable to parse string as a number");
    if (t->has_max && !(n <= (double)t->max)) /* so is what is no number */
        return beyond(s, false, t->max, ".0");
    if (t->has_min && !(n >= (double)t->min))
        return beyond(s, true, t->min, ".0");
    return true;
}

static bool fits_str(const struct api_type *t, const struct spot *s)
{
    char msg[96], ctx[48];
    long long n, limit;
    bool low;

    if (s->v->kind != VT_STR)
        return t->what == API_BYTES
                   ? misfit(s, "bytes_type", "Input should be a valid bytes")
                   : misfit(s, "string_type", "Input should be a valid string");
    if (!t->has_min && !t->has_max)
        return true;
    n = (long long)api_characters(s->v->u.str, s->v->n);
    low = n < t->min;
    if (!low && (!t->has_max || n <= t->max))
        return true;
    limit = low ? t->min : t->max;
    (void)snprintf(msg, sizeof(msg), "String should have at %s %lld character%s",
                   low ? "least" : "most", limit, limit == 1 ? "" : "s");
    (void)snprintf(ctx, sizeof(ctx), "{'%s': %lld}", low ? "min_length" : "max_length",
                   limit);
    return api_problem(s->out, s->at, s->v,
                       low ? "string_too_short" : "string_too_long", msg, ctx);
}

static bool fits_literal(const struct api_type *t, const struct spot *s)
{
    struct vt_buf msg = {0}, ctx = {0};
    const char *choices;

    for (size_t i = 0; s->v->kind == VT_STR && t->literal[i]; i++)
        if (strcmp(s->v->u.str, t->literal[i]) == 0)
            return true;
    if (!s->out->wanted)
        return false;
    vt_buf_str(&msg, "Input should be ");
    for (size_t i = 0; t->literal[i]; i++)
        vt_buf_printf(&msg, "%s'%s'",
                      i == 0               ? ""
                      : !t->literal[i + 1] ? " or "
                                           : ", ",
                      t->literal[i]);
    vt_buf_str(&ctx, "{'expected': ");
    choices = msg.failed ? "" : msg.data + strlen("Input should be ");
    api_py_repr_text(&ctx, choices, strlen(choices));
    vt_buf_char(&ctx, '}');
    (void)api_problem(s->out, s->at, s->v, "literal_error", msg.failed ? "" : msg.data,
                      ctx.failed ? NULL : ctx.data);
    vt_buf_free(&msg);
    vt_buf_free(&ctx);
    return false;
}

/* ---- what holds others -------------------------------------------------- */

static bool fits_items(const struct api_type *t, const struct spot *s)
{
    bool all = true;

    for (uint32_t i = 0; t->of && i < s->v->n && (all || s->out->wanted); i++) {
        const struct vt_node *item = &s->v->u.item[i];
        struct api_place place = {
            .up = s->at, .index = i, .name = s->v->kind == VT_MAP ? item->key : NULL};

        all = fits(t->of, item, &place, s->out) && all;
    }
    return all;
}

static bool fits_list(const struct api_type *t, const struct spot *s)
{
    enum vt_kind kind = (enum vt_kind)s->v->kind;
    char msg[96], ctx[128];

    if (t->what == API_ITERABLE)
        return kind >= VT_STR || misfit(s, "iterable_type", "Input should be iterable");
    if (t->what == API_SEQUENCE && kind == VT_STR)
        return api_problem(s->out, s->at, s->v, "sequence_str",
                           "'str' instances are not allowed as a Sequence value",
                           "{'type_name': 'str'}");
    if (t->what == API_SEQUENCE && kind != VT_LIST)
        return api_problem(s->out, s->at, s->v, "is_instance_of",
                           "Input should be an instance of Sequence",
                           "{'class': 'Sequence'}");
    if (kind != VT_LIST)
        return misfit(s, "list_type", "Input should be a valid list");
    if (!t->has_max || s->v->n <= t->max)
        return fits_items(t, s);
    (void)snprintf(msg, sizeof(msg),
                   "List should have at most %lld items after validation, not %u",
                   (long long)t->max, s->v->n);
    (void)snprintf(ctx, sizeof(ctx),
                   "{'field_type': 'List', 'max_length': %lld, 'actual_length': %u}",
                   (long long)t->max, s->v->n);
    return api_problem(s->out, s->at, s->v, "too_long", msg, ctx);
}

static bool fits_dict(const struct api_type *t, const struct spot *s)
{
    if (s->v->kind != VT_MAP)
        return misfit(s, "dict_type", "Input should be a valid dictionary");
    return fits_items(t, s);
}

static bool fits_model(const struct api_type *t, const struct spot *s)
{
    char msg[128], ctx[96];
    bool all = true;

    for (const struct api_field *f = t->field; s->v->kind == VT_MAP && f && f->name;
         f++) {
        const struct vt_node *child = vt_get(s->v, f->name);
        struct api_place place = {.up = s->at, .name = f->name};

        if (!api_field_known(f, s->out->line))
            continue;
        if (child)
            all = fits(f->type, child, &place, s->out) && all;
        else if (f->required)
            all = api_problem(s->out, &place, s->v, "missing", "Field required", NULL);
    }
    if (s->v->kind == VT_MAP)
        return all;
    if (t->what == API_TYPED_DICT)
        return misfit(s, "dict_type", "Input should be a valid dictionary");
    if (t->what == API_MODEL)
        return misfit(
            s, "model_attributes_type",
            "Input should be a valid dictionary or object to extract fields from");
    (void)snprintf(msg, sizeof(msg),
                   "Input should be a dictionary or an instance of %s", t->label);
    (void)snprintf(ctx, sizeof(ctx), "{'class_name': '%s'}", t->label);
    return api_problem(s->out, s->at, s->v, "dataclass_type", msg, ctx);
}

static bool fits_union(const struct api_type *t, const struct spot *s)
{
    bool wanted = s->out->wanted, one = false;

    s->out->wanted = false;
    for (uint32_t i = 0; i < t->n && !one; i++)
        one = fits(&t->of[i], s->v, s->at, s->out);
    s->out->wanted = wanted;
    for (uint32_t i = 0; wanted && !one && i < t->n; i++) {
        struct api_place place = {.up = s->at, .name = t->of[i].label};

        (void)fits(&t->of[i], s->v, &place, s->out);
    }
    return one;
}

static bool fits(const struct api_type *t, const struct vt_node *v,
                 const struct api_place *at, struct api_problems *out)
{
    static bool (*const kind[])(const struct api_type *t, const struct spot *s) = {
        [API_ANY] = NULL,
        [API_BOOL] = fits_bool,
        [API_INT] = fits_int,
        [API_REAL] = fits_real,
        [API_STR] = fits_str,
        [API_BYTES] = fits_str,
        [API_LIST] = fits_list,
        [API_ITERABLE] = fits_list,
        [API_SEQUENCE] = fits_list,
        [API_DICT] = fits_dict,
        [API_LITERAL] = fits_literal,
        [API_MODEL] = fits_model,
        [API_DATACLASS] = fits_model,
        [API_TYPED_DICT] = fits_model,
        [API_UNION] = fits_union,
    };
    const struct spot s = {v, at, out};
    struct vt_buf message = {0};
    bool ok;

    if (t->nullable && v->kind == VT_NULL)
        return true;
    if (kind[t->what] && !kind[t->what](t, &s))
        return false;
    ok = !t->rule || t->rule(v, &message);
    if (!ok && !message.failed)
        api_problem_raised(out, at, v, "ValueError", "", message.data);
    vt_buf_free(&message);
    return ok;
}

/* ---- a body ------------------------------------------------------------- */

static const struct api_field *find_field(const struct api_field *fields,
                                          const char *name, enum api_line line)
{
    for (const struct api_field *f = fields; f->name; f++)
        if (f->name[0] == name[0] && strcmp(f->name, name) == 0 &&
            api_field_known(f, line))
            return f;
    return NULL;
}

bool api_fields_check(const struct api_field *fields, const struct vt_node *body,
                      enum api_line line, const struct vt_node **slot,
                      struct api_error *e)
{
    const struct api_type whole = {.what = API_MODEL, .field = fields};
    const struct api_place root = {.name = "body"};
    struct api_problems silent = {.line = line};
    struct api_problems problems = {.line = line, .wanted = true};
    bool ok = body->kind == VT_MAP;

    /* The common case in one pass over what came; only a body that does not fit pays
     * for a second one, in the order of the table and with words. */
    for (uint32_t i = 0; ok && i < body->n; i++) {
        const struct vt_node *v = &body->u.item[i];
        const struct api_field *f = find_field(fields, v->key, line);

        ok = !f || fits(f->type, v, NULL, &silent);
        if (f && ok)
            slot[f->slot] = v;
    }
    for (const struct api_field *f = fields; ok && f->name; f++)
        ok = !f->required || slot[f->slot] || !api_field_known(f, line);
    if (ok)
        return true;
    (void)fits(&whole, body, &root, &problems);
    return api_problems_end(&problems, e);
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
    return api_problems_end(&problems, e);
}
