/* Any bytes as a dataset: the first one chooses the form, and what is read can be
 * looked for and served. */
#include <assert.h>

#include "wire/script/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One token for each byte. */
static int encode(void *user, const char *text, size_t len, uint32_t **ids, size_t *n,
                  struct vt_err *err)
{
    (void)user;
    *ids = malloc((len > 0 ? len : 1) * sizeof(**ids));
    if (!*ids)
        return vt_nomem(err);
    for (size_t i = 0; i < len; i++)
        (*ids)[i] = (uint8_t)text[i];
    *n = len;
    return VT_OK;
}

static void check(const struct vt_dataset *d)
{
    size_t answers = 0;

    for (size_t i = 0; i < d->n_rows; i++) {
        assert(!d->row[i].answer == !d->row[i].n_answer);
        answers += d->row[i].answer != NULL;
    }
    assert(answers > 0);
    for (size_t i = 0; i < d->n_turns; i++)
        assert(d->turn[i].n_prompt > 0 && d->turn[i].n_answer > 0 &&
               d->turn[i].row < d->n_rows);
}

/* Each prompt finds an answer, itself being in the request. */
static void serve(const struct vt_dataset *d)
{
    struct script_turns t;
    struct vt_err err;

    if (script_turns_init(&t, d, VT_MATCH_PREFIX, &err) != VT_OK)
        return;
    for (size_t i = 0; i < d->n_turns && i < 16; i++) {
        struct wire_request r = {.n_prompt = d->turn[i].n_prompt};
        struct script_name name = {0};

        r.prompt = malloc(r.n_prompt * sizeof(*r.prompt));
        assert(r.prompt);
        memcpy(r.prompt, d->turn[i].prompt, r.n_prompt * sizeof(*r.prompt));
        assert(script_turns_match(&t, &r, &name, 0).token);
        free(r.prompt);
    }
    script_turns_free(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"f.jsonl", "f.json", "f.csv", "f"};
    struct vt_dataset d;
    struct vt_err err;

    if (size == 0)
        return 0;
    if (vt_dataset_read(&d, names[data[0] % 4], (const char *)data + 1, size - 1,
                        encode, NULL, &err) != VT_OK)
        return 0;
    check(&d);
    serve(&d);
    vt_dataset_free(&d);
    return 0;
}
