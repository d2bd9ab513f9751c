/* regex.c - a text that a regular expression matches, drawn by key.
 *
 * Understood is what patterns of schemas and guided decoding are made of: alternatives,
 * groups, classes, the escapes \d \w \s and their opposites, and quantifiers. Anchors
 * match nothing, for the text is all there is. Foreign bytes: depth, nodes, the text's
 * length and the work are bounded. An expression is read once for all choices. */
#include "http/reply/parts.h"

#include <string.h>

enum {
    MAX_DEPTH = 48,
    MAX_NODES = 4096,
    MAX_RANGES = 64,
    MAX_REPEAT = 4096,
    MAX_TEXT = 1 << 14,
    MORE = 6, /* repetitions beyond the least, at most */
};

enum kind { SET, SEQUENCE, ALTERNATIVES, REPEAT };

struct range {
    uint32_t low, high;
};

struct item {
    enum kind kind;
    uint32_t shortest, longest; /* characters of its texts; UINT32_MAX: any number */
    uint32_t min, max;          /* of a repeat */
    struct range *range;        /* of a set */
    uint32_t n_ranges;          /* of a set */
    struct item *child, *next;  /* next: sibling */
    struct item *last;          /* child */
};

struct reader {
    struct reply_forms *forms;
    const char *p, *end;
    uint32_t depth, n_items;
    bool failed, no_memory, tired; /* tired: no work is left */
};

static uint32_t add_capped(uint32_t a, uint32_t b)
{
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

static uint32_t times_capped(uint32_t a, uint32_t b)
{
    uint64_t product = (uint64_t)a * b;

    return product < UINT32_MAX ? (uint32_t)product : UINT32_MAX;
}

/* Before each thing that takes time; false: there was too much of it. */
static bool reader_spend(struct reader *r, uint64_t work)
{
    if (!reply_spend(r->forms, work))
        r->failed = r->tired = true;
    return !r->failed;
}

/* ---- reading: sets --------------------------------------------------- */

static struct item *new_item(struct reader *r, enum kind kind)
{
    struct item *i;

    if (!reader_spend(r, 4) || r->n_items++ == MAX_NODES) {
        r->failed = true;
        return NULL;
    }
    i = vt_arena_alloc(&r->forms->arena, sizeof(*i));
    if (!i) {
        r->failed = r->no_memory = true;
        return NULL;
    }
    i->kind = kind;
    i->shortest = i->longest = kind == SET;
    return i;
}

static void add_child(struct item *parent, struct item *child)
{
    if (!parent || !child)
        return;
    if (parent->last)
        parent->last->next = child;
    else
        parent->child = child;
    parent->last = child;
}

static void add_range(struct reader *r, struct item *set, uint32_t low, uint32_t high)
{
    uint32_t n = set ? set->n_ranges : 0;

    if (!set || !reader_spend(r, 1))
        return;
    if (n == MAX_RANGES || low > high) {
        r->failed = true;
        return;
    }
    if ((n & (n - 1)) == 0) { /* full: a power of two, or none */
        struct range *more =
            vt_arena_alloc(&r->forms->arena, (n > 0 ? 2 * n : 1) * sizeof(*more));

        if (!more) {
            r->failed = r->no_memory = true;
            return;
        }
        if (n > 0)
            memcpy(more, set->range, n * sizeof(*more));
        set->range = more;
    }
    set->range[set->n_ranges++] = (struct range){low, high};
}

static bool in_set(const struct item *set, uint32_t c)
{
    for (uint32_t i = 0; i < set->n_ranges; i++)
        if (c >= set->range[i].low && c <= set->range[i].high)
            return true;
    return false;
}

/* Everything printable in ASCII that is not in the set. */
static void invert_set(struct reader *r, struct item *set)
{
    struct item was;

    if (!set || !reader_spend(r, '~' - ' ' + UINT64_C(1) + set->n_ranges))
        return;
    was = *set;
    set->range = NULL;
    set->n_ranges = 0;
    for (uint32_t c = ' '; c <= '~'; c++) {
        uint32_t low = c;

        if (in_set(&was, c))
            continue;
        while (c < '~' && !in_set(&was, c + 1))
            c++;
        add_range(r, set, low, c);
    }
    if (set->n_ranges == 0)
        r->failed = true;
}

static void add_named(struct reader *r, struct item *set, char name)
{
    struct item *all = new_item(r, SET);

    switch (name | 0x20) {
    case 'd':
        add_range(r, all, '0', '9');
        break;
    case 'w':
        add_range(r, all, 'a', 'z');
        add_range(r, all, 'A', 'Z');
        add_range(r, all, '0', '9');
        add_range(r, all, '_', '_');
        break;
    default:
        add_range(r, all, ' ', ' ');
    }
    if ((name & 0x20) == 0)
        invert_set(r, all);
    for (uint32_t i = 0; all && i < all->n_ranges; i++)
        add_range(r, set, all->range[i].low, all->range[i].high);
}

/* The character behind a backslash; true: it names a set instead. */
static bool read_escape(struct reader *r, uint32_t *c)
{
    static const char letters[] = "ntrfv", meant[] = "\n\t\r\f\v";
    char e = r->p < r->end ? *r->p : '\0';
    const char *letter = e != '\0' ? strchr(letters, e) : NULL;

    *c = (unsigned char)e;
    if (r->p < r->end)
        r->p++;
    if (e != '\0' && strchr("dDwWsS", e))
        return true;
    if (letter)
        *c = (unsigned char)meant[letter - letters];
    else if (e == 'x' || e == 'u')
        *c = 0;
    else if (e == '\0' || (e >= '0' && e <= '9') || (e >= 'a' && e <= 'z') ||
             (e >= 'A' && e <= 'Z') || (unsigned char)e >= 0x80)
        r->failed = true;
    for (int digits = e == 'x' ? 2 : e == 'u' ? 4 : 0; digits > 0; digits--) {
        int digit = vt_hex_value(r->p < r->end ? *r->p++ : '\0');

        if (digit >= 0)
            *c = *c * 16 + (uint32_t)digit;
        else
            r->failed = true;
    }
    return false;
}

static bool class_char(struct reader *r, struct item *set, uint32_t *c)
{
    unsigned char lead = (unsigned char)*r->p++;
    int more = lead < 0x80 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;

    if (lead != '\\') {
        *c = more == 0 ? lead : lead & (0x3fU >> more);
        for (; more > 0 && r->p < r->end; more--)
            *c = *c << 6 | ((unsigned char)*r->p++ & 0x3f);
        return true;
    }
    if (!read_escape(r, c))
        return true;
    add_named(r, set, (char)*c);
    return false;
}

static struct item *read_class(struct reader *r)
{
    struct item *set = new_item(r, SET);
    bool inverted = r->p < r->end && *r->p == '^', first = true;

    r->p += inverted;
    while (r->p < r->end && (*r->p != ']' || first) && !r->failed) {
        uint32_t low, high;
        bool one = class_char(r, set, &low);

        first = false;
        high = low;
        if (one && r->end - r->p >= 2 && r->p[0] == '-' && r->p[1] != ']') {
            r->p++;
            if (!class_char(r, set, &high))
                r->failed = true;
        }
        if (one)
            add_range(r, set, low, high);
    }
    if (r->p == r->end)
        r->failed = true;
    else
        r->p++;
    if (inverted)
        invert_set(r, set);
    return set;
}

/* ---- reading: the rest ----------------------------------------------- */

static struct item *read_alternatives(struct reader *r);

/* (?:...) and named groups are groups; what looks around or back is not understood. */
static struct item *read_group(struct reader *r)
{
    struct item *all;

    if (r->end - r->p >= 2 && r->p[0] == '?') {
        bool named = r->p[1] == 'P' || r->p[1] == '<';

        r->p += r->p[1] == 'P' ? 2 : 1;
        if (named && r->end - r->p >= 2 && r->p[0] == '<' && r->p[1] != '=' &&
            r->p[1] != '!') {
            while (r->p < r->end && *r->p != '>')
                r->p++;
        } else if (named || *r->p != ':') {
            r->failed = true;
        }
        if (r->p < r->end)
            r->p++;
    }
    all = read_alternatives(r);
    if (r->p < r->end && *r->p == ')')
        r->p++;
    else
        r->failed = true;
    return all;
}

static struct item *read_atom(struct reader *r)
{
    struct item *set;
    uint32_t c;

    switch (*r->p) {
    case '(':
        r->p++;
        return read_group(r);
    case '[':
        r->p++;
        return read_class(r);
    case '^':
    case '$':
        r->p++;
        return new_item(r, SEQUENCE);
    case '*':
    case '+':
    case '?':
        r->failed = true;
        return NULL;
    default:
        break;
    }
    set = new_item(r, SET);
    if (*r->p == '.') {
        r->p++;
        add_range(r, set, 'a', 'z');
    } else if (class_char(r, set, &c)) {
        add_range(r, set, c, c);
    }
    return set;
}

static uint32_t read_number(struct reader *r, uint32_t otherwise)
{
    uint32_t v = 0;
    const char *from = r->p;

    for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++)
        v = v < MAX_REPEAT ? v * 10 + (uint32_t)(*r->p - '0') : MAX_REPEAT + 1;
    return r->p > from ? v : otherwise;
}

static struct item *read_piece(struct reader *r)
{
    struct item *atom = read_atom(r), *repeat;
    char c = r->p < r->end ? *r->p : '\0';
    bool bounds = /* "{" alone is a character */
        r->end - r->p >= 2 && c == '{' && r->p[1] >= '0' && r->p[1] <= '9';

    if (c != '*' && c != '+' && c != '?' && !bounds)
        return atom;
    repeat = new_item(r, REPEAT);
    if (!repeat)
        return NULL;
    add_child(repeat, atom);
    repeat->min = c == '+';
    repeat->max = c == '?' ? 1 : UINT32_MAX;
    r->p++;
    if (c == '{') {
        repeat->min = repeat->max = read_number(r, 0);
        if (r->p < r->end && *r->p == ',') {
            r->p++;
            repeat->max = read_number(r, UINT32_MAX);
        }
        if (r->p == r->end || *r->p++ != '}')
            r->failed = true;
    }
    if (r->p < r->end && (*r->p == '?' || *r->p == '+')) /* lazy and greedy are alike */
        r->p++;
    if (repeat->min > MAX_REPEAT || repeat->max < repeat->min)
        r->failed = true;
    if (atom) {
        repeat->shortest = times_capped(repeat->min, atom->shortest);
        repeat->longest = times_capped(repeat->max, atom->longest);
    }
    return repeat;
}

/* What can only be empty is left out: a thousand anchors cost nothing to write. */
static struct item *read_sequence(struct reader *r)
{
    struct item *all = new_item(r, SEQUENCE);

    while (r->p < r->end && *r->p != '|' && *r->p != ')' && !r->failed) {
        struct item *piece = read_piece(r);

        if (!all || !piece || piece->longest == 0)
            continue;
        add_child(all, piece);
        all->shortest = add_capped(all->shortest, piece->shortest);
        all->longest = add_capped(all->longest, piece->longest);
    }
    return all && all->child && !all->child->next ? all->child : all;
}

static void add_alternative(struct item *all, struct item *one)
{
    if (!all || !one)
        return;
    if (!all->child || one->shortest < all->shortest)
        all->shortest = one->shortest;
    if (one->longest > all->longest)
        all->longest = one->longest;
    add_child(all, one);
}

static struct item *read_alternatives(struct reader *r)
{
    struct item *all = new_item(r, ALTERNATIVES);

    if (r->depth++ >= MAX_DEPTH)
        r->failed = true;
    add_alternative(all, read_sequence(r));
    while (r->p < r->end && *r->p == '|' && !r->failed) {
        r->p++;
        add_alternative(all, read_sequence(r));
    }
    r->depth--;
    return all && all->child && !all->child->next ? all->child : all;
}

/* The expression's items, read the first time that it is asked for; NULL: it is not
 * understood, or there was no work or memory for it. */
static const struct item *read_expression(struct reply_forms *f, const char *regex,
                                          size_t len)
{
    static const struct item foreign;
    uint64_t *known = vt_map_get(&f->expressions, (uintptr_t)regex);
    struct reader r = {.forms = f, .p = regex, .end = regex + len};
    const struct item *all;

    if (known) {
        all = (const struct item *)(uintptr_t)*known;
        return all == &foreign ? NULL : all;
    }
    all = reader_spend(&r, len) ? read_alternatives(&r) : NULL;
    if (r.tired || r.no_memory) {
        f->no_memory |= r.no_memory;
        return NULL;
    }
    if (r.failed || r.p < r.end)
        all = &foreign;
    known = vt_map_put(&f->expressions, (uintptr_t)regex);
    if (known)
        *known = (uintptr_t)all;
    f->no_memory |= !known;
    return known && all != &foreign ? all : NULL;
}

/* ---- writing --------------------------------------------------------- */

struct writer {
    struct reply_forms *forms;
    struct vt_buf *b;
    struct vt_rng rng;
    size_t limit; /* of the buffer's length */
    bool failed;
};

/* On entry to each item; false: nothing more is written. */
static bool writer_goes_on(struct writer *w, uint64_t work)
{
    if (!reply_spend(w->forms, work) || w->b->len > w->limit || w->b->failed)
        w->failed = true;
    return !w->failed;
}

static void write_set(struct writer *w, const struct item *set)
{
    char bytes[4];
    uint32_t c = 0, tries = 0;

    do {
        const struct range *a;

        if (set->n_ranges == 0 || tries++ == 8) {
            w->failed = true;
            return;
        }
        a = &set->range[vt_rng_below(&w->rng, set->n_ranges)];
        c = a->low + (uint32_t)vt_rng_below(&w->rng, a->high - a->low + 1);
        if (c > '~' && a->low < '~') /* of a wide range, what can be read */
            c = a->low > ' ' ? a->low : '~';
    } while (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) || c == 0);
    vt_buf_add(w->b, bytes, vt_utf8_put(bytes, c));
}

static void write_item(struct writer *w, const struct item *i)
{
    uint64_t k = 0;
    size_t before;

    if (!writer_goes_on(w, 1))
        return;
    switch (i->kind) {
    case SET:
        write_set(w, i);
        break;
    case REPEAT:
        k = i->max - i->min < MORE ? i->max - i->min : MORE;
        for (k = i->min + vt_rng_below(&w->rng, k + 1); k > 0 && !w->failed; k--) {
            before = w->b->len;
            write_item(w, i->child);
            if (w->b->len == before) /* nothing many times is nothing */
                break;
        }
        break;
    case SEQUENCE:
        for (const struct item *c = i->child; c && !w->failed; c = c->next)
            write_item(w, c);
        break;
    case ALTERNATIVES:
        for (const struct item *c = i->child; c; c = c->next)
            k++;
        if (!writer_goes_on(w, 2 * k))
            return;
        k = k > 1 ? vt_rng_below(&w->rng, k) : 0;
        for (const struct item *c = i->child; c; c = c->next)
            if (k-- == 0) {
                write_item(w, c);
                break;
            }
        break;
    }
}

/* ---- writing to a length --------------------------------------------- */

static uint32_t clamp_length(uint32_t want, const struct item *i)
{
    return want < i->shortest ? i->shortest : want > i->longest ? i->longest : want;
}

/* What an item can take of the characters that its elders left over. */
static uint32_t take_length(const struct item *i, uint32_t *more)
{
    uint32_t room = i->longest - i->shortest;
    uint32_t own = room < *more ? room : *more;

    *more -= own;
    return i->shortest + own;
}

static void write_length(struct writer *w, const struct item *i, uint32_t want);

/* The first of those that come nearest. */
static void write_nearest(struct writer *w, const struct item *all, uint32_t want)
{
    const struct item *best = NULL;
    uint32_t least = UINT32_MAX;

    for (const struct item *c = all->child; c && least > 0; c = c->next) {
        uint32_t near = clamp_length(want, c);
        uint32_t off = near > want ? near - want : want - near;

        if (!writer_goes_on(w, 1))
            return;
        if (!best || off < least) {
            best = c;
            least = off;
        }
    }
    if (best)
        write_length(w, best, want);
}

static void write_repeats(struct writer *w, const struct item *all, uint32_t want)
{
    const struct item *one = all->child;
    uint32_t n = want / one->longest + (want % one->longest > 0), more;

    n = n > all->min ? n : all->min;
    n = n < all->max ? n : all->max;
    more = times_capped(n, one->shortest);
    more = want > more ? want - more : 0;
    for (; n > 0 && !w->failed; n--)
        write_length(w, one, take_length(one, &more));
}

/* A text of `want` characters, or near to that: no draws but of characters, no tries,
 * and next to no work for what stays empty. */
static void write_length(struct writer *w, const struct item *i, uint32_t want)
{
    uint32_t more;

    want = clamp_length(want, i);
    if (!writer_goes_on(w, 1) || want == 0)
        return;
    switch (i->kind) {
    case SET:
        write_set(w, i);
        break;
    case REPEAT:
        write_repeats(w, i, want);
        break;
    case SEQUENCE:
        more = want - i->shortest;
        for (const struct item *c = i->child; c && !w->failed; c = c->next)
            write_length(w, c, take_length(c, &more));
        break;
    case ALTERNATIVES:
        write_nearest(w, i, want);
        break;
    }
}

/* ---- both ------------------------------------------------------------ */

static bool is_within(const struct vt_buf *b, size_t from, uint32_t min, uint32_t max)
{
    size_t n = b->len > from ? api_characters(b->data + from, b->len - from) : 0;

    return n >= min && n <= max;
}

bool reply_regex_text(struct reply_forms *f, struct vt_buf *b, const char *regex,
                      size_t len, const struct reply_lengths *l, uint64_t key)
{
    const struct item *all = read_expression(f, regex, len);
    struct writer w = {.forms = f, .b = b, .limit = b->len + MAX_TEXT};
    size_t before = b->len;
    uint32_t tries = l->simple ? 0 : l->tries;

    if (!all || all->shortest > l->max || all->shortest > MAX_TEXT)
        return false;
    for (uint32_t i = 0; i < tries; i++) {
        b->len = before;
        w.failed = false;
        vt_rng_init(&w.rng, i > 0 ? vt_hash2(key, i) : key, "regex");
        write_item(&w, all);
        if (!w.failed && is_within(b, before, l->min, l->max))
            return true;
    }
    b->len = before;
    w.failed = false;
    vt_rng_init(&w.rng, key, "regex");
    write_length(&w, all, l->min);
    if (!w.failed && is_within(b, before, l->min, l->max))
        return true;
    b->len = before;
    return false;
}

bool reply_regex_write(struct reply_forms *f, struct vt_buf *b, const char *regex,
                       size_t len, uint64_t key)
{
    struct reply_lengths l = {.max = MAX_TEXT, .tries = 1};

    reply_forms_limit(f, REPLY_DRAWN);
    if (reply_regex_text(f, b, regex, len, &l, key))
        return true;
    l.simple = true;
    reply_forms_limit(f, REPLY_SIMPLE);
    return reply_regex_text(f, b, regex, len, &l, key);
}
