/* name.c - what a request is called.
 *
 * A frontend puts "cmpl-" or "chatcmpl-" before the name that a client gave, and draws
 * 8 or 16 hex digits where it gave none. The Python one puts "-0" behind it, the number
 * of the prompt within a list of prompts; "0_" before it where n > 1, in the id that
 * the engine sees; and both put "-xxxxxxxx" behind that id and keep the name without it
 * as the external id. */
#include "wire/script/parts.h"

#include <ctype.h>

enum { SUFFIX = 9 }; /* "-xxxxxxxx" */

static bool all_hex(struct mp_span s, bool *letters)
{
    *letters = false;
    for (size_t i = 0; i < s.len; i++) {
        if (!isdigit(s.at[i]) && (s.at[i] < 'a' || s.at[i] > 'f'))
            return false;
        *letters |= !isdigit(s.at[i]);
    }
    return true;
}

static struct mp_span without_start(struct mp_span s, size_t n)
{
    return (struct mp_span){s.at + n, s.len - n};
}

static struct mp_span without_end(struct mp_span s, size_t n)
{
    return (struct mp_span){s.at, s.len - n};
}

static size_t digits_at_end(struct mp_span s)
{
    size_t n = 0;

    while (n < s.len && isdigit(s.at[s.len - 1 - n]))
        n++;
    return n;
}

/* ---- what is taken off ------------------------------------------------ */

enum suffix { ANY_HEX, WITH_LETTERS };

static struct mp_span without_suffix(struct mp_span id, enum suffix kind)
{
    bool letters;

    if (id.len <= SUFFIX || id.at[id.len - SUFFIX] != '-' ||
        !all_hex(without_start(id, id.len - SUFFIX + 1), &letters) ||
        (kind == WITH_LETTERS && !letters))
        return id;
    return without_end(id, SUFFIX);
}

static struct mp_span without_child(struct mp_span id, uint32_t *child)
{
    size_t n = 0;

    *child = 0;
    while (n < id.len && n < 6 && isdigit(id.at[n])) {
        *child = *child * 10 + (uint32_t)(id.at[n] - '0');
        n++;
    }
    if (n > 0 && n < id.len && id.at[n] == '_')
        return without_start(id, n + 1);
    *child = 0;
    return id;
}

enum api { API_NONE, API_COMPLETION, API_CHAT };

static struct mp_span without_api(struct mp_span id, enum api *api)
{
    static const char *const before[] = {
        [API_COMPLETION] = "cmpl-", [API_CHAT] = "chatcmpl-"};

    for (*api = API_COMPLETION; *api <= API_CHAT; (*api)++) {
        size_t len = strlen(before[*api]);

        if (id.len > len && memcmp(id.at, before[*api], len) == 0)
            return without_start(id, len);
    }
    *api = API_NONE;
    return id;
}

static struct mp_span without_prompt_number(struct mp_span id)
{
    size_t n = digits_at_end(id);

    if (n == 0 || n + 1 >= id.len || id.at[id.len - n - 1] != '-')
        return id;
    return without_end(id, n + 1);
}

/* ---- names ------------------------------------------------------------ */

static void add_form(struct script_name *n, struct mp_span form)
{
    for (uint32_t i = 0; i < n->n_forms; i++)
        if (n->form[i].at == form.at && n->form[i].len == form.len)
            return;
    if (form.len > 0 && n->n_forms < SCRIPT_FORMS)
        n->form[n->n_forms++] = form;
}

void script_name_of(struct script_name *n, const struct wire_request *r,
                    size_t n_numbers)
{
    struct mp_span whole = r->external_id, plain;
    struct mp_span own = without_child(r->id, &n->child);
    size_t digits;
    bool letters, drawn;
    enum api api;

    n->n_forms = 0;
    if (!whole.at) /* eight decimal digits are more likely somebody's number */
        whole = without_suffix(own, WITH_LETTERS);
    n->core = without_api(whole, &api);
    plain = n->core;
    /* Python alone tells how it wants its outputs. */
    if (api == API_COMPLETION && mp_get(r->sampling, "output_kind").at)
        plain = without_prompt_number(plain);
    digits = digits_at_end(plain);
    n->has_number =
        digits > 0 &&
        vt_parse_u64((const char *)plain.at + plain.len - digits, digits, &n->number);
    /* Rust draws 8 digits, Python 16, and 32 where it falls back to a UUID. Where all
     * are decimal they might be a client's number, if there is a use for so large a
     * one. */
    drawn = api != API_NONE && (plain.len == 8 || plain.len == 16 || plain.len == 32) &&
            all_hex(plain, &letters) &&
            (letters || !n->has_number || n->number >= n_numbers);
    n->made_up = plain.len == 0 || drawn;
    add_form(n, r->id);
    add_form(n, whole);
    add_form(n, n->core);
    add_form(n, plain);
}

void script_name_recorded(struct script_name *n, const char *id)
{
    struct mp_span whole = wire_text(id), core;
    enum api api;

    *n = (struct script_name){0};
    add_form(n, whole);
    core = without_api(without_child(whole, &n->child), &api);
    add_form(n, core);
    core = without_suffix(core, ANY_HEX);
    add_form(n, core);
    if (api == API_COMPLETION)
        add_form(n, without_prompt_number(core));
}
