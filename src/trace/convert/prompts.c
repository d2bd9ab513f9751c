/* prompts.c - whole prompts, as reports keep them, to what requests share.
 *
 * A prefix cache finds what prompts begin with in common. Texts are sorted, so that
 * neighbours share most, and hung into a tree whose inner nodes are the places where
 * texts part; each stretch between two such places becomes a segment that all texts
 * below it have. Equal texts are one leaf and so have equal segments.
 *
 * With the model's tokenizer texts are token ids. Without one only how many a prompt
 * had is known: places in a text become places in tokens by the mean of tokens a byte
 * over the whole report. That moves the end of what is shared by a few percent, and
 * nothing else: a segment that two prompts have is the same content for both, wherever
 * it ends. */
#include <stdlib.h>

#include "trace/convert/convert.h"

/* Texts that part sooner share no block that a cache could find. */
enum { LEAST_TOKENS = 16 };

#define NONE SIZE_MAX

/* ---- a request's body to a text --------------------------------------- */

static void put_content(struct vt_buf *b, const struct vt_node *content)
{
    if (!content)
        return;
    if (content->kind == VT_STR)
        vt_buf_add(b, content->u.str, content->n);
    for (uint32_t i = 0; content->kind == VT_LIST && i < content->n; i++) {
        const struct vt_node *part = &content->u.item[i];

        put_content(b, part->kind == VT_MAP ? vt_get(part, "text") : part);
    }
}

/* As a chat template would begin: what was said first stands first. */
static void put_messages(struct vt_buf *b, const struct vt_node *body)
{
    const struct vt_node *list = vt_get(body, "messages");

    put_content(b, vt_get(body, "system"));
    for (uint32_t i = 0; list && list->kind == VT_LIST && i < list->n; i++) {
        vt_buf_char(b, '\1'); /* no text holds it, so turns stay apart */
        put_content(b, vt_get(&list->u.item[i], "role"));
        vt_buf_char(b, '\n');
        put_content(b, vt_get(&list->u.item[i], "content"));
    }
}

/* Token ids instead of a text. */
static void put_ids(struct vt_buf *b, const struct vt_node *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        uint32_t id = 0;

        if (jsonl_node_u32(&list->u.item[i], 0, &id))
            vt_buf_add(b, &id, sizeof(id));
    }
}

/* What it put. */
static enum convert_prompt_kind put_body(struct vt_buf *b, const struct vt_node *body)
{
    const struct vt_node *inner = vt_get(body, "body"), *prompt;

    if (inner && inner->kind == VT_MAP) /* guidellm's arguments of a call */
        body = inner;
    prompt = vt_get_non_null(body, "prompt");
    if (prompt && prompt->kind == VT_LIST && prompt->n > 0 &&
        prompt->u.item[0].kind == VT_INT) {
        put_ids(b, prompt);
        return CONVERT_IDS;
    }
    if (prompt) {
        put_content(b, prompt);
        return CONVERT_TEXT;
    }
    put_messages(b, body);
    return CONVERT_CHAT;
}

int convert_prompt_add(struct convert_prompts *p, const struct vt_node *request,
                       size_t record, struct vt_err *err)
{
    struct vt_arena scratch = {0};
    const struct vt_node *body = request;
    struct vt_buf text = {0};
    struct convert_prompt *q;
    enum convert_prompt_kind kind = CONVERT_TEXT;
    int rc = VT_OK;

    if (!request)
        return VT_OK;
    /* Either the body as JSON within a string, or the prompt as it is. */
    if (request->kind == VT_STR &&
        (vt_json_parse(&scratch, request->u.str, request->n, 1, &body, NULL) != VT_OK ||
         body->kind != VT_MAP))
        put_content(&text, request);
    else
        kind = put_body(&text, body);
    if (text.failed)
        rc = vt_nomem(err);
    else if (text.len > 0)
        rc = vt_grow(&p->prompt, &p->cap, p->n + 1, sizeof(*p->prompt), err);
    if (rc == VT_OK && text.len > 0) {
        q = &p->prompt[p->n];
        *q = (struct convert_prompt){
            .kind = kind,
            .text = vt_arena_copy(&p->arena, text.data, text.len),
            .len = text.len,
            .record = record,
        };
        p->n += q->text != NULL;
        rc = q->text ? VT_OK : vt_nomem(err);
    }
    vt_buf_free(&text);
    vt_arena_free(&scratch);
    return rc;
}

void convert_prompts_free(struct convert_prompts *p)
{
    vt_arena_free(&p->arena);
    free(p->prompt);
}

/* ---- the tree of texts ------------------------------------------------ */

struct node {
    size_t depth; /* bytes from the texts' start to where they part, or end */
    size_t parent;
    const char *name; /* of the content that ends here; NULL: not needed yet */
};

struct tree {
    struct node *node; /* node[0] is the root */
    size_t n, cap;
    size_t *open; /* nodes from the root to the text last hung in */
    size_t n_open, cap_open;
};

static int by_text(const void *pa, const void *pb)
{
    const struct convert_prompt *a = pa, *b = pb;
    size_t common = a->len < b->len ? a->len : b->len;
    int order = memcmp(a->text, b->text, common);

    if (order != 0)
        return order;
    if (a->len != b->len)
        return a->len < b->len ? -1 : 1;
    return a->record < b->record ? -1 : a->record > b->record;
}

static size_t common_bytes(const struct convert_prompt *a,
                           const struct convert_prompt *b)
{
    size_t i = 0, n = a->len < b->len ? a->len : b->len;

    while (i < n && a->text[i] == b->text[i])
        i++;
    /* Ids are equal as a whole, or not. */
    return a->kind == CONVERT_IDS ? i - i % CONVERT_ID_BYTES : i;
}

/* Opens a node; its parent is known when it is closed. */
static int open_node(struct tree *t, size_t depth, struct vt_err *err)
{
    int rc;

    if ((rc = vt_grow(&t->node, &t->cap, t->n + 1, sizeof(*t->node), err)) ||
        (rc = vt_grow(&t->open, &t->cap_open, t->n_open + 1, sizeof(*t->open), err)))
        return rc;
    t->node[t->n] = (struct node){.depth = depth, .parent = NONE};
    t->open[t->n_open++] = t->n++;
    return VT_OK;
}

/* Closes what the next text, which parts at `depth`, does not go through. */
static int close_to(struct tree *t, size_t depth, struct vt_err *err)
{
    while (t->node[t->open[t->n_open - 1]].depth > depth) {
        size_t closed = t->open[--t->n_open];
        int rc = VT_OK;

        if (t->node[t->open[t->n_open - 1]].depth < depth)
            rc = open_node(t, depth, err);
        if (rc != VT_OK)
            return rc;
        t->node[closed].parent = t->open[t->n_open - 1];
    }
    return VT_OK;
}

static int hang_texts(struct tree *t, struct convert_prompts *p, struct vt_err *err)
{
    int rc = open_node(t, 0, err);

    qsort(p->prompt, p->n, sizeof(*p->prompt), by_text);
    for (size_t i = 0; i < p->n && rc == VT_OK; i++) {
        struct convert_prompt *q = &p->prompt[i];
        size_t common = i > 0 ? common_bytes(q - 1, q) : 0;

        if (i > 0 && common == q->len) { /* sorted: so it is the same text */
            q->node = (q - 1)->node;
            continue;
        }
        rc = close_to(t, common, err);
        if (rc == VT_OK)
            rc = open_node(t, q->len, err);
        q->node = t->n - 1;
    }
    return rc ? rc : close_to(t, 0, err);
}

/* ---- segments --------------------------------------------------------- */

static double tokens_a_byte(const struct convert_prompts *p, const struct vt_records *r)
{
    double tokens = 0, bytes = 0;

    if (p->tokenizer)
        return 1.0 / CONVERT_ID_BYTES;
    for (size_t i = 0; i < p->n; i++) {
        uint32_t counted = r->rec[p->prompt[i].record].prompt_tokens;

        tokens += counted;
        bytes += counted > 0 ? (double)p->prompt[i].len : 0;
    }
    return bytes > 0 ? tokens / bytes : 0;
}

/* Texts are sorted, so that equal ones are neighbours. */
static void count_like(struct convert_prompts *p, struct vt_records *r, size_t i,
                       size_t like)
{
    uint32_t *tokens = &r->rec[p->prompt[i].record].prompt_tokens;

    if (*tokens == 0 && p->prompt[i].node == p->prompt[like].node)
        *tokens = r->rec[p->prompt[like].record].prompt_tokens;
}

static void count_uncounted(struct convert_prompts *p, struct vt_records *r,
                            double rate)
{
    for (size_t i = 1; i < p->n; i++)
        count_like(p, r, i, i - 1);
    for (size_t i = p->n; i-- > 1;)
        count_like(p, r, i - 1, i);
    for (size_t i = 0; i < p->n; i++) {
        struct vt_record *rec = &r->rec[p->prompt[i].record];
        double likely = rate * (double)p->prompt[i].len;

        if (rec->prompt_tokens == 0 && likely >= 1 && likely < TRACE_MAX_TOKENS)
            rec->prompt_tokens = (uint32_t)likely;
    }
}

static int name_node(struct vt_records *r, struct node *n, const char *text,
                     struct vt_err *err)
{
    char name[32];

    if (n->name)
        return VT_OK;
    snprintf(name, sizeof(name), "text-%016llx",
             (unsigned long long)vt_hash_bytes(text, n->depth, 0));
    return vt_arena_text(&r->arena, name, &n->name, err);
}

/* From the root to the text's own node. The last segment has all tokens that are left,
 * so that segments sum to the prompt. */
static int make_segments(struct vt_records *r, const struct tree *t,
                         const struct convert_prompt *q, double rate,
                         struct vt_err *err)
{
    struct vt_record *rec = &r->rec[q->record];
    struct vt_record_segment *s;
    uint32_t n = 0, k = 0, done = 0;
    size_t *path, at;
    int rc = VT_OK;

    for (at = q->node; at != 0; at = t->node[at].parent)
        n++;
    path = malloc((n + 1) * sizeof(*path));
    s = vt_arena_alloc(&r->arena, n * sizeof(*s));
    if (!path || !s) {
        free(path);
        return vt_nomem(err);
    }
    for (at = q->node; at != 0; at = t->node[at].parent)
        path[--n] = at;
    for (;; n++) {
        bool last = path[n] == q->node;
        double to = rate * (double)t->node[path[n]].depth;
        uint32_t end =
            last || to >= rec->prompt_tokens ? rec->prompt_tokens : (uint32_t)to;

        if (!last && end - done < LEAST_TOKENS && end < rec->prompt_tokens)
            continue;
        rc = name_node(r, &t->node[path[n]], q->text, err);
        s[k++] = (struct vt_record_segment){.name = t->node[path[n]].name,
                                            .tokens = end - done};
        done = end;
        if (rc != VT_OK || done == rec->prompt_tokens)
            break;
    }
    free(path);
    rec->segment = s;
    rec->n_segments = k;
    return rc;
}

int convert_prompts_share(struct convert_prompts *p, struct vt_records *r,
                          struct vt_err *err)
{
    double rate = tokens_a_byte(p, r);
    struct tree t = {0};
    int rc = p->tokenizer ? convert_prompts_encode(p, err) : VT_OK;

    if (rc == VT_OK && p->n > 0)
        rc = hang_texts(&t, p, err);
    if (rc == VT_OK)
        count_uncounted(p, r, rate);
    for (size_t i = 0; i < p->n && rc == VT_OK; i++)
        if (r->rec[p->prompt[i].record].prompt_tokens > 0)
            rc = make_segments(r, &t, &p->prompt[i], rate, err);
    free(t.node);
    free(t.open);
    return rc;
}
