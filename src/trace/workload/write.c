/* write.c - a spec with what is put over it, as a workload.yaml that says the same. */
#include <ctype.h>
#include <math.h>

#include "trace/workload/spec.h"

/* ---- YAML ----------------------------------------------------------------- */

/* A word that YAML takes for a text without quotes. */
static bool is_bare(const char *text, size_t len)
{
    static const char *const others[] = {"true", "false", "null", "yes", "no",
                                         "on",   "off",   "y",    "n",   NULL};

    if (len == 0 || !isalpha((unsigned char)*text))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_' && text[i] != '-')
            return false;
    return !vt_is_one_of(text, others);
}

static void put_text(struct vt_buf *b, const char *text, size_t len)
{
    if (is_bare(text, len))
        vt_buf_add(b, text, len);
    else
        vt_buf_json_str(b, text, len);
}

/* On one line; JSON for all but maps, lists and words. */
static void put_node(struct vt_buf *b, const struct vt_node *n)
{
    bool map = n->kind == VT_MAP;

    if (n->kind == VT_STR) {
        put_text(b, n->u.str, n->n);
        return;
    }
    if (!map && n->kind != VT_LIST) {
        vt_buf_json_node(b, n, NULL);
        return;
    }
    vt_buf_char(b, map ? '{' : '[');
    for (uint32_t i = 0; i < n->n; i++) {
        if (i > 0)
            vt_buf_str(b, ", ");
        if (map) {
            put_text(b, n->u.item[i].key, strlen(n->u.item[i].key));
            vt_buf_str(b, ": ");
        }
        put_node(b, &n->u.item[i]);
    }
    vt_buf_char(b, map ? '}' : ']');
}

/* ---- what differs ------------------------------------------------------------ */

static void put_number(struct vt_buf *b, const char *before, double v)
{
    vt_buf_str(b, before);
    vt_buf_f64(b, v);
}

static void put_arrival(struct vt_buf *b, const struct spec *s)
{
    vt_buf_printf(b, "arrival: {process: %s", s->process->name);
    if (s->process->closed)
        vt_buf_printf(b, ", concurrency: %u", s->concurrency);
    else
        put_number(b, ", rate: ", s->stage->rate);
    if (vt_is_one_of("burstiness", s->process->keys))
        put_number(b, ", burstiness: ", s->burstiness);
    if (vt_is_one_of("size", s->process->keys))
        vt_buf_printf(b, ", size: %u", s->burst_size);
    vt_buf_str(b, "}\n");
}

/* Whether a member of the file is said anew. */
static bool is_replaced(const char *key, const struct vt_input *in)
{
    const struct vt_traffic *o = &in->over;
    bool paced = o->rate != 0 || o->burstiness != 0 || o->concurrency > 0;

    if (strcmp(key, "seed") == 0)
        return in->seed >= 0;
    if (strcmp(key, "requests") == 0 || strcmp(key, "duration_s") == 0)
        return o->requests > 0;
    if (strcmp(key, "arrival") == 0)
        return paced;
    if (strcmp(key, "prompt") == 0)
        return o->prompt_tokens > 0;
    if (strcmp(key, "output") == 0)
        return o->output_tokens > 0;
    return false;
}

static void put_over(struct vt_buf *b, const struct vt_input *in, const struct spec *s)
{
    const struct vt_traffic *o = &in->over;

    if (is_replaced("seed", in))
        vt_buf_printf(b, "seed: %lld\n", (long long)in->seed);
    if (is_replaced("requests", in))
        vt_buf_printf(b, "requests: %u\n", o->requests);
    if (is_replaced("arrival", in))
        put_arrival(b, s);
    if (is_replaced("prompt", in))
        vt_buf_printf(b, "prompt: %u\n", o->prompt_tokens);
    if (is_replaced("output", in))
        vt_buf_printf(b, "output: %u\n", o->output_tokens);
}

static int check_over(const struct spec *s, const struct vt_input *in,
                      struct vt_err *err)
{
    if (s->held_to > 0)
        return vt_fail(err, VT_EINPUT,
                       "a limit on requests in flight beside a rate has no field in a "
                       "workload file");
    if (s->n_pairs > 0 && (in->over.prompt_tokens > 0 || in->over.output_tokens > 0))
        return vt_fail(err, VT_EINPUT,
                       "it has lengths in pairs: no other ones can be stated");
    return VT_OK;
}

int vt_workload_spec_write(struct vt_buf *b, const struct vt_input *in,
                           struct vt_err *err)
{
    struct trace_files files = {.none = false};
    struct vt_arena arena = {0};
    const struct vt_node *root = NULL;
    struct spec s;
    int rc = in->text ? vt_yaml_parse(&arena, in->text, in->len, &root, err)
                      : vt_tree_load(&arena, in->name, &root, err);

    if (rc || (rc = spec_read(&s, &arena, root, &files, err)) ||
        (rc = spec_put_over(&s, &in->over, err)) || (rc = check_over(&s, in, err)))
        goto out;
    for (uint32_t i = 0; i < root->n; i++) {
        const struct vt_node *member = &root->u.item[i];

        if (is_replaced(member->key, in))
            continue;
        vt_buf_printf(b, "%s: ", member->key);
        put_node(b, member);
        vt_buf_char(b, '\n');
    }
    put_over(b, in, &s);
    rc = b->failed ? vt_nomem(err) : VT_OK;
out:
    vt_arena_free(&arena);
    return vt_within(err, rc, "%s", in->name);
}
