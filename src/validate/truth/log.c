/* log.c - the KV cache's size from vllm.log, and offloading from kv_events.jsonl.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "validate/truth/truth.h"

#define GIB 1073741824.0

enum { LONGEST_NUMBER = 40 };

struct log_facts { /* negative: not seen; the first of each counts */
    double tokens, available_gib, cpu_bytes;
};

static const char *skip_blanks(const char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

/* The number at `at`, of digits and `more`; its commas are dropped. */
static const char *number_at(const char *at, const char *more, double *out)
{
    char text[LONGEST_NUMBER];
    size_t n = 0;

    while (isdigit((unsigned char)*at) || (*at != '\0' && strchr(more, *at))) {
        if (*at != ',' && n + 1 < sizeof(text))
            text[n++] = *at;
        at++;
    }
    return n > 0 && vt_parse_f64(text, n, out) ? at : NULL;
}

/* "GPU KV cache size: 119,408 tokens" */
static void find_tokens(const char *line, struct log_facts *f)
{
    static const char key[] = "GPU KV cache size:";
    const char *at = strstr(line, key);
    double v;

    if (!at || f->tokens >= 0)
        return;
    at += strlen(key);
    if (!isspace((unsigned char)*at))
        return;
    at = number_at(skip_blanks(at), ",", &v);
    if (at && isspace((unsigned char)*at) &&
        strncmp(skip_blanks(at), "tokens", strlen("tokens")) == 0)
        f->tokens = v;
}

/* "Available KV cache memory: 58.31 GiB" */
static void find_memory(const char *line, struct log_facts *f)
{
    static const char key[] = "Available KV cache memory:";
    const char *at = strstr(line, key);
    double v;

    if (!at || f->available_gib >= 0)
        return;
    at = number_at(skip_blanks(at + strlen(key)), ".", &v);
    if (at && strncmp(skip_blanks(at), "GiB", strlen("GiB")) == 0)
        f->available_gib = v;
}

/* "'cpu_bytes_to_use': 8589934592.0", with either quote or none. */
static void find_offload(const char *line, struct log_facts *f)
{
    static const char key[] = "cpu_bytes_to_use";
    const char *at = strstr(line, key);
    double v;

    if (!at || f->cpu_bytes >= 0)
        return;
    at += strlen(key);
    if (*at == '\'' || *at == '"')
        at++;
    at = skip_blanks(at);
    if (*at == ':' && number_at(skip_blanks(at + 1), ".", &v))
        f->cpu_bytes = v;
}

static int apply_facts(struct vt_experiment *e, const struct log_facts *f,
                       struct vt_err *err)
{
    double block_bytes;

    if (f->tokens < 0)
        return vt_fail(err, VT_EINPUT, "no line 'GPU KV cache size: N tokens'");
    if (f->tokens < TRUTH_BLOCK_TOKENS || f->tokens > 1e12)
        return vt_fail(err, VT_EINPUT, "a GPU KV cache of %g tokens", f->tokens);
    e->kv_tokens = (uint64_t)f->tokens;
    e->total_kv_blocks =
        (uint32_t)fmin((double)(e->kv_tokens / TRUTH_BLOCK_TOKENS), INT32_MAX);
    if (f->cpu_bytes < 0)
        return VT_OK;
    if (f->available_gib <= 0)
        return vt_fail(err, VT_EINPUT,
                       "cpu_bytes_to_use without a line 'Available KV cache memory: N "
                       "GiB'");
    block_bytes = f->available_gib * GIB / f->tokens * TRUTH_BLOCK_TOKENS;
    e->cpu_kv_blocks = (uint32_t)fmin(trunc(f->cpu_bytes / block_bytes), INT32_MAX);
    return VT_OK;
}

int truth_read_log(struct vt_experiment *e, struct vt_lines *log, struct vt_err *err)
{
    struct log_facts f = {-1, -1, -1};
    size_t len;
    char *line;
    int rc;

    while ((rc = vt_lines_next(log, &line, &len, NULL, err)) == VT_OK && line) {
        find_tokens(line, &f);
        find_memory(line, &f);
        find_offload(line, &f);
    }
    return rc == VT_OK ? apply_facts(e, &f, err) : rc;
}

/* ---- events --------------------------------------------------------------- */

static bool is_text(const struct vt_node *n, const char *text)
{
    return n->kind == VT_STR && strcmp(n->u.str, text) == 0;
}

/* [type, transfer, request, from, to, blocks, success, sequence] */
static int64_t moved_blocks(const struct vt_node *event)
{
    const struct vt_node *f;

    if (event->kind != VT_LIST || event->n < 7)
        return 0;
    f = event->u.item;
    if (!is_text(&f[0], "TransferCompleted") || f[5].kind != VT_INT ||
        f[5].u.integer < 0 || f[5].u.integer > INT32_MAX || f[6].kind != VT_BOOL ||
        !f[6].u.boolean)
        return 0;
    if (is_text(&f[3], "GPU") && is_text(&f[4], "CPU"))
        return f[5].u.integer;
    return is_text(&f[3], "CPU") && is_text(&f[4], "GPU") ? -f[5].u.integer : 0;
}

int truth_read_kv_events(struct vt_experiment *e, struct vt_lines *events,
                         struct vt_err *err)
{
    struct vt_arena scratch = {0};
    int64_t now = 0, peak = 0;
    size_t len;
    char *line;
    int rc;

    while ((rc = vt_lines_next(events, &line, &len, NULL, err)) == VT_OK && line) {
        const struct vt_node *root = NULL, *list = NULL;

        if (vt_json_parse(&scratch, line, len, 1, &root, NULL) == VT_OK &&
            root->kind == VT_LIST && root->n >= 2 && root->u.item[1].kind == VT_LIST)
            list = &root->u.item[1];
        for (uint32_t i = 0; list && i < list->n; i++) {
            now += moved_blocks(&list->u.item[i]);
            now = now < 0 ? 0 : now > UINT32_MAX ? UINT32_MAX : now;
        }
        peak = now > peak ? now : peak;
        vt_arena_reset(&scratch);
    }
    vt_arena_free(&scratch);
    e->kv_events_peak = (uint32_t)peak;
    return rc;
}
