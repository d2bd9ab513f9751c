/* Any bytes as a report of a load generator or as TraceV2: read or refused. The first
 * byte chooses the reader. */
#include <assert.h>

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

static void read_tree(int which, const char *text, size_t len)
{
    static int (*const read[])(struct vt_records *r, const struct vt_node *root,
                               struct vt_err *err) = {
        convert_bench_tree, convert_lifecycle_tree, convert_guidellm_tree};
    struct vt_arena a = {0};
    const struct vt_node *root;
    struct vt_records r = {0};
    struct vt_err err;

    if (vt_json_parse(&a, text, len, 1, &root, &err) == VT_OK) {
        (void)convert_recognise_tree(root);
        if (records_init(&r, "fuzz", &err) == VT_OK &&
            read[which](&r, root, &err) == VT_OK)
            check(&r);
        vt_records_free(&r);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] % 4 == 3)
        read_tables((const char *)data + 1, size - 1);
    else
        read_tree(data[0] % 4, (const char *)data + 1, size - 1);
    return 0;
}
