/* Any bytes as a report of a load generator, as TraceV2 or as a request that was sent:
 * read or refused. The first byte chooses the reader. */
#include <assert.h>
#include <stdlib.h>

#include "trace/convert/convert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct vt_records *r)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct vt_record *q = &r->rec[i];
        uint64_t sum = 0;

        assert(q->id && q->prompt_tokens >= 1 && q->output_tokens >= 1);
        assert(q->n_gaps < q->output_tokens);
        for (uint32_t k = 0; k < q->n_gaps; k++)
            assert(vt_record_gap(q, k) >= 0);
        for (uint32_t k = 0; k < q->n_segments; k++)
            sum += q->segment[k].tokens;
        assert(q->n_segments == 0 || sum == q->prompt_tokens);
    }
}

/* What failed may be without lengths, and is without times. */
static void check_all(const struct vt_records *r)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct vt_record *q = &r->rec[i];

        assert(q->id && q->e2e_ns >= 0);
        assert(q->failure || (q->prompt_tokens >= 1 && q->output_tokens >= 1));
        assert(!q->failure || (q->ttft_ns < 0 && q->n_gaps == 0));
    }
}

static void read_whole(const struct vt_node *root)
{
    const struct convert_from all = {.all = true};
    struct vt_records r = {0};
    struct vt_err err;

    if (records_init(&r, "fuzz", &err) == VT_OK &&
        convert_lifecycle_tree(&r, root, &all, &err) == VT_OK)
        check_all(&r);
    vt_records_free(&r);
}

static void read_tree(int which, const char *text, size_t len)
{
    static convert_tree *const read[] = {convert_bench_tree, convert_lifecycle_tree,
                                         convert_guidellm_tree};
    struct vt_arena a = {0};
    const struct vt_node *root;
    struct vt_records r = {0};
    struct vt_err err;

    if (vt_json_parse(&a, text, len, 1, &root, &err) == VT_OK) {
        const char *why = NULL;

        (void)convert_recognise_tree(root, &why);
        if (records_init(&r, "fuzz", &err) == VT_OK &&
            read[which](&r, root, NULL, &err) == VT_OK)
            check(&r);
        vt_records_free(&r);
        if (read[which] == convert_lifecycle_tree)
            read_whole(root);
    }
    vt_arena_free(&a);
}

/* The CSV up to a line "itl", chunk times after it. */
static void read_tables(const char *text, size_t len)
{
    const char *itl = NULL;
    struct vt_lines *csv, *chunks = NULL;
    struct vt_records r;
    struct vt_err err;

    for (size_t i = 0; i + 5 <= len && !itl; i++)
        if (memcmp(&text[i], "\nitl\n", 5) == 0)
            itl = &text[i];
    if (vt_lines_from(&csv, "csv", text, itl ? (size_t)(itl - text) : len, &err) !=
        VT_OK)
        return;
    if (itl && vt_lines_from(&chunks, "itl", itl + 5, len - (size_t)(itl + 5 - text),
                             &err) != VT_OK)
        chunks = NULL;
    if (convert_tracev2_lines(&r, csv, chunks, &err) == VT_OK) {
        check(&r);
        vt_records_free(&r);
    }
    vt_lines_close(csv);
    vt_lines_close(chunks);
}

/* AIPerf's records up to a line "inputs", the prompts after it. */
static void read_aiperf(const char *text, size_t len)
{
    const struct vt_node *inputs = NULL;
    struct vt_lines *lines;
    struct vt_arena a = {0};
    struct vt_records r;
    struct vt_err err;
    size_t end = len;

    for (size_t i = 0; i + 8 <= len && end == len; i++)
        if (memcmp(&text[i], "\ninputs\n", 8) == 0)
            end = i;
    if (end < len &&
        vt_json_parse(&a, text + end + 8, len - end - 8, 1, &inputs, &err) != VT_OK)
        inputs = NULL;
    if (vt_lines_from(&lines, "aiperf", text, end, &err) == VT_OK) {
        if (convert_aiperf_lines(&r, lines, inputs, NULL, &err) == VT_OK) {
            check(&r);
            vt_records_free(&r);
        }
        vt_lines_close(lines);
    }
    vt_arena_free(&a);
}

/* Each line is what a request was asked: however they share, segments are whole. */
static void share_lines(char *text, size_t len)
{
    struct convert_prompts p = {0};
    struct vt_records r = {0};
    struct vt_record *q;
    struct vt_err err;
    int rc = records_init(&r, "fuzz", &err);

    for (size_t i = 0, k; i < len && rc == VT_OK; i = k + 1) {
        struct vt_node line = {.kind = VT_STR};

        for (k = i; k < len && text[k] != '\n'; k++)
            ;
        text[k] = '\0'; /* at the end there is a byte more */
        line.u.str = text + i;
        line.n = (uint32_t)(k - i);
        if ((rc = records_add(&r, &q, &err)))
            break;
        q->output_tokens = 1;
        q->prompt_tokens = 1 + (uint32_t)(k - i) / 3;
        rc = convert_prompt_add(&p, &line, r.n - 1, &err);
    }
    if (rc == VT_OK && convert_prompts_share(&p, &r, &err) == VT_OK && r.n > 0 &&
        convert_from_first(&r, &err) == VT_OK)
        check(&r);
    convert_prompts_free(&p);
    vt_records_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data + 1;
    char *copy;

    if (size == 0)
        return 0;
    switch (data[0] % 8) {
    case 3:
        read_tables(text, size - 1);
        break;
    case 4:
        read_aiperf(text, size - 1);
        break;
    case 5:
        copy = malloc(size);
        if (!copy)
            return 0;
        memcpy(copy, text, size - 1);
        share_lines(copy, size - 1);
        free(copy);
        break;
    default:
        read_tree(data[0] % 4 % 3, text, size - 1);
    }
    return 0;
}
