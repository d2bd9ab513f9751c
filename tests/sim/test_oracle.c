/* The scheduler repeats recorded runs of vLLM's own, step for step: of its oldest and
 * its newest release, with one KV group and with several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <unistd.h>

#include "sim/sim.h"

#define CASES VT_TEST_DIR "/cases/scheduler/"

static void case_repeats(void **state)
{
    struct vt_oracle_result r;
    struct vt_err err = {0};
    char path[512];

    (void)snprintf(path, sizeof(path), CASES "%s", (const char *)*state);
    if (vt_oracle_check(path, &r, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_true(r.steps > 0);
}

/* ---- a changed record is found out ------------------------------------ */

static struct change {
    const char *name;
    const char *from, *to; /* first occurrence in c25_kv_events */
    const char *want;      /* in the message */
} changes[] = {
    {"a wrong token count is named", "\"sched\":[[0,69]", "\"sched\":[[0,68]",
     "step 0: field 'sched' differs: got [[0,69],[1,13]], recorded [[0,68],[1,13]]"},
    {"a wrong block id is named", "[1,32,[1,2,6]]", "[1,32,[1,2,7]]",
     "step 0: field 'new' differs"},
    {"a wrong count of free blocks is named", "\"free\":19", "\"free\":18",
     "step 1: field 'free' differs: got 19, recorded 18"},
    {"a wrong output token is named", "[0,[40017],null,null]", "[0,[40018],null,null]",
     "step 1: field 'out' differs"},
    {"a wrong hit count is named", "\"hits\":64", "\"hits\":48",
     "step 1: field 'pc' differs"},
    {"a wrong block hash is named", "6111606063501907064", "6111606063501907065",
     "step 0: field 'kv_events' differs"},
};

static void replace_once(struct vt_buf *text, const char *from, const char *to)
{
    char *at = strstr(text->data, from);
    struct vt_buf out = {0};

    assert_non_null(at);
    vt_buf_add(&out, text->data, (size_t)(at - text->data));
    vt_buf_str(&out, to);
    vt_buf_str(&out, at + strlen(from));
    assert_false(out.failed);
    vt_buf_free(text);
    *text = out;
}

static void change_is_found(void **state)
{
    const struct change *c = *state;
    char path[] = "/tmp/vtwin-oracle-XXXXXX";
    int fd = mkstemp(path);
    struct vt_oracle_result r;
    struct vt_buf text = {0};
    struct vt_err err = {0};

    assert_true(fd >= 0);
    assert_int_equal(
        vt_read_file(CASES "0.26/c25_kv_events.json.gz", 1 << 26, &text, &err), VT_OK);
    replace_once(&text, c->from, c->to);
    assert_int_equal(write(fd, text.data, text.len), (ssize_t)text.len);
    close(fd);
    assert_int_equal(vt_oracle_check(path, &r, &err), VT_ECHECK);
    unlink(path);
    vt_buf_free(&text);
    if (strstr(err.msg, c->want) == NULL)
        fail_msg("'%s' is not in '%s'", c->want, err.msg);
}

/* ---- all cases in the folder ------------------------------------------ */

enum { MAX_CASES = 256 };
static char names[MAX_CASES][64];

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static size_t list_cases(const char *release, size_t n)
{
    char path[256];
    const struct dirent *d;
    DIR *dir;

    (void)snprintf(path, sizeof(path), CASES "%s", release);
    dir = opendir(path);
    if (dir == NULL)
        return n;
    while ((d = readdir(dir)) != NULL && n < MAX_CASES)
        if (strstr(d->d_name, ".json.gz") != NULL)
            (void)snprintf(names[n++], sizeof(names[0]), "%s/%.56s", release,
                           d->d_name);
    closedir(dir);
    qsort(names, n, sizeof(names[0]), by_name);
    return n;
}

int main(void)
{
    struct CMUnitTest tests[MAX_CASES + VT_COUNT(changes)];
    size_t n = list_cases("0.32", list_cases("0.26", 0)), m = VT_COUNT(changes);

    if (n < 163) {
        (void)fprintf(stderr, "only %zu recorded cases found\n", n);
        return 1;
    }
    for (size_t i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){
            .name = names[i], .test_func = case_repeats, .initial_state = names[i]};
    for (size_t i = 0; i < m; i++)
        tests[n + i] = (struct CMUnitTest){.name = changes[i].name,
                                           .test_func = change_is_found,
                                           .initial_state = &changes[i]};
    return _cmocka_run_group_tests("oracle", tests, n + m, NULL, NULL);
}
