/* Long workloads piece by piece: the same requests as of the whole one, and the same
 * errors. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fixture.h"

static struct vt_err err;

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

#define CSV "id,arrival_us,input_tokens,output_tokens\n"
#define DEEP                                       \
    "prompt: {dist: uniform, min: 10, max: 900}\n" \
    "output: {dist: uniform, min: 1, max: 50}\n"

static const struct input {
    const char *name;
    enum vt_input_kind kind;
    const char *text;
    bool streamed;
    const char *message; /* NULL: it is read */
} inputs[] = {
    {"numbered rows", VT_INPUT_REQUESTS,
     CSV "1,0,10,2\n2,5,11,3\n3,5,12,4\n4,90,13,5\n5,91,14,6\n", true, NULL},
    {"rows of prefix groups with priorities and adapters", VT_INPUT_REQUESTS,
     "priority,id,arrival_us,input_tokens,output_tokens,prefix_group,prefix_tokens,"
     "lora\n"
     "1,a,0,100,2,x,64,\n-2,b,1,90,2,,,l\n3,c,2,100,2,x,64,m\n4,d,2,70,1,y,16,l\n",
     true, NULL},
    {"ids in no order", VT_INPUT_REQUESTS,
     CSV "q9,0,10,2\nq1,5,11,3\nzz,5,12,4\nb,90,13,5\na,91,14,6\n", true, NULL},
    {"ids that ascend no longer", VT_INPUT_REQUESTS,
     CSV "1,0,10,2\n2,5,11,3\n3,5,12,4\n1x,90,13,5\n0x,91,14,6\n", false, NULL},
    {"rows in no order", VT_INPUT_REQUESTS,
     CSV "1,0,10,2\n2,5,11,3\n3,50,12,4\n4,9,13,5\n", false, NULL},
    {"Azure", VT_INPUT_TRACE,
     "TIMESTAMP,ContextTokens,GeneratedTokens\n"
     "2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.0319600,3180,8\n"
     "2023-11-16 18:17:04.0319600,110,27\n2023-11-16 18:17:05.1,7433,14\n",
     true, NULL},
    {"Azure in no order", VT_INPUT_TRACE,
     "TIMESTAMP,ContextTokens,GeneratedTokens\n"
     "2023-11-16 18:17:05,4808,10\n2023-11-16 18:17:06,3180,8\n"
     "2023-11-16 18:17:03,110,27\n",
     false, NULL},
    {"Mooncake", VT_INPUT_TRACE,
     "{\"timestamp\":0,\"input_length\":700,\"output_length\":9,\"hash_ids\":[4,9]}\n"
     "{\"timestamp\":3,\"input_length\":600,\"output_length\":9,\"hash_ids\":[4,8]}\n"
     "{\"timestamp\":3,\"input_length\":100,\"output_length\":9,\"hash_ids\":[7]}\n",
     true, NULL},
    {"a trace with its meta line", VT_INPUT_TRACE,
     "{\"meta\":{\"model\":\"m\",\"block_size\":8}}\n"
     "{\"arrival_ms\":1,\"prompt_tokens\":20,\"output_tokens\":1,\"ttft_ms\":3,"
     "\"block_hashes\":[1,2]}\n"
     "{\"arrival_ms\":2,\"prompt_tokens\":20,\"output_tokens\":0,"
     "\"finish_reason\":\"abort\"}\n"
     "{\"arrival_ms\":3,\"prompt_tokens\":30,\"output_tokens\":2,\"ttft_ms\":3,"
     "\"itl_ms\":[4],\"block_hashes\":[1,2,3]}\n"
     "{\"arrival_ms\":3,\"prompt_tokens\":9,\"output_tokens\":2,\"ttft_ms\":3,"
     "\"itl_ms\":[4],\"max_tokens\":9}\n",
     true, NULL},
    {"a trace of sessions", VT_INPUT_TRACE,
     "{\"id\":\"a\",\"arrival_ms\":1,\"prompt_tokens\":20,\"output_tokens\":1}\n"
     "{\"id\":\"b\",\"arrival_ms\":2,\"prompt_tokens\":20,\"output_tokens\":1}\n"
     "{\"id\":\"c\",\"arrival_ms\":3,\"prompt_tokens\":20,\"output_tokens\":1}\n"
     "{\"id\":\"d\",\"arrival_ms\":4,\"prompt_tokens\":20,\"output_tokens\":1,"
     "\"session\":\"s\",\"turn\":0}\n",
     false, NULL},
    {"drawn with prefixes and priorities", VT_INPUT_SPEC,
     "requests: 20\narrival: {process: poisson, rate: 9}\n" DEEP
     "prefix: {groups: 3, tokens: {dist: uniform, min: 10, max: 99}, share: 0.5}\n"
     "priority: {dist: uniform, min: -3, max: 3}\n",
     true, NULL},
    {"drawn in stages", VT_INPUT_SPEC,
     "stages: [{rate: 9, requests: 5}, {rate: 90, duration_s: 0.1},"
     " {rate: 5, requests: 4}]\narrival: {process: gamma, burstiness: 0.5}\n" DEEP,
     true, NULL},
    {"drawn in bursts", VT_INPUT_SPEC,
     "duration_s: 3\narrival: {process: burst, size: 5, rate: 9}\n" DEEP, true, NULL},
    {"drawn for a closed loop", VT_INPUT_SPEC,
     "requests: 20\narrival: {process: closed, concurrency: 3}\n" DEEP, true, NULL},
    {"drawn sessions", VT_INPUT_SPEC,
     "requests: 20\narrival: {process: poisson, rate: 9}\nsessions: {turns: 3}\n" DEEP,
     true, NULL},
    {"a bad row behind good ones", VT_INPUT_REQUESTS,
     CSV "1,0,10,2\n2,5,11,3\n3,50,12,4\n4,90,13,none\n", false,
     "line 5: column 'output_tokens': 'none' is not an integer in [1, 2147483647]"},
    {"an id again behind ids in no order", VT_INPUT_REQUESTS,
     CSV "b,0,10,2\na,5,11,3\nd,6,12,4\nc,7,12,4\nb,8,13,5\n", false,
     "line 6: id 'b' is used twice"},
    {"an id again behind ids that ascend", VT_INPUT_REQUESTS,
     CSV "a,0,10,2\nb,5,11,3\nc,6,12,4\nb,8,13,5\n", false,
     "line 5: id 'b' is used twice"},
    {"no request at all", VT_INPUT_REQUESTS, CSV, false, "there are no requests"},
};

/* In a directory of its own; removed again. */
static char dir[] = "/tmp/test_stream_XXXXXX";
static char path[64];

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof(path), "%s/input", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static struct vt_input input_of(const struct input *row)
{
    write_text(path, row->text);
    return (struct vt_input){.kind = row->kind, .name = path, .seed = 7};
}

static void check_same(const struct vt_workload *whole, size_t at,
                       const struct vt_workload *piece, size_t i)
{
    const struct vt_work *a = &whole->req[at], *b = &piece->req[i];

    assert_string_equal(a->id, b->id);
    assert_true(a->arrival_ns == b->arrival_ns);
    assert_int_equal(a->prompt_tokens, b->prompt_tokens);
    assert_int_equal(a->output_tokens, b->output_tokens);
    assert_int_equal(a->max_tokens, b->max_tokens);
    assert_int_equal(a->priority, b->priority);
    assert_string_equal(a->lora ? a->lora : "", b->lora ? b->lora : "");
    assert_int_equal(a->line, b->line);
    assert_true(a->output_content == b->output_content);
    assert_int_equal(a->session, b->session);
    assert_int_equal(a->n_segments, b->n_segments);
    assert_memory_equal(&whole->segment[a->first_segment],
                        &piece->segment[b->first_segment],
                        a->n_segments * sizeof(*whole->segment));
}

static void check_pieces(const struct vt_workload *whole, const struct vt_workload *w,
                         size_t size)
{
    struct vt_workload piece = {0};
    struct vt_stream *s;
    size_t n = 0;

    assert_int_equal(vt_stream_open(&s, w, &err), VT_OK);
    do {
        assert_int_equal(vt_stream_next(s, &piece, size, &err), VT_OK);
        for (size_t i = size; i < piece.n; i++) /* a session comes whole */
            assert_false(piece.req[i].first_turn);
        for (size_t i = 0; i < piece.n; i++)
            check_same(whole, n++, &piece, i);
    } while (piece.n > 0);
    assert_int_equal(n, whole->n);
    vt_workload_free(&piece);
    vt_stream_close(s);
}

static void is_read_alike(void **state)
{
    static const size_t sizes[] = {1, 3, 100};
    const struct input *row = *state;
    struct vt_input in = input_of(row);
    struct vt_workload whole, w;
    struct vt_err other = {0};
    int rc = vt_workload_read(&whole, &in, VT_WHOLE, &err);

    assert_int_equal(rc, row->message ? VT_EINPUT : VT_OK);
    assert_int_equal(vt_workload_read(&w, &in, 1, &other), rc);
    if (row->message) {
        assert_non_null(strstr(err.msg, row->message));
        assert_string_equal(err.msg, other.msg);
        return;
    }
    assert_int_equal(vt_workload_streamed(&w), row->streamed);
    assert_int_equal(w.n, whole.n);
    assert_int_equal(w.arrivals, whole.arrivals);
    assert_int_equal(w.concurrency, whole.concurrency);
    assert_true(w.seed == whole.seed);
    assert_int_equal(w.meta.block_size, whole.meta.block_size);
    for (size_t i = 0; row->streamed && i < VT_COUNT(sizes); i++)
        check_pieces(&whole, &w, sizes[i]);
    for (size_t i = 0; !row->streamed && i < w.n; i++)
        check_same(&whole, i, &w, i);
    vt_workload_free(&w);
    vt_workload_free(&whole);
}

/* Another pace is the same of a piece as of the whole. */
static void is_paced_alike(const struct input *row)
{
    static const struct vt_traffic over[] = {
        {.rate = 3}, {.rate = 400, .requests = 2}, {.requests = 3}, {.concurrency = 2}};
    static const size_t sizes[] = {1, 100};

    for (size_t k = 0; k < VT_COUNT(over) && !row->message; k++) {
        struct vt_input in = input_of(row);
        struct vt_workload whole, w;

        in.over = over[k];
        assert_int_equal(vt_workload_read(&whole, &in, VT_WHOLE, &err), VT_OK);
        assert_int_equal(vt_workload_read(&w, &in, 1, &err), VT_OK);
        assert_int_equal(w.n, whole.n);
        assert_int_equal(w.held_to, whole.held_to);
        if (over[k].requests > 0)
            assert_int_equal(w.n, over[k].requests);
        if (over[k].rate > 0 && whole.arrivals == VT_ARRIVALS_RECORDED)
            assert_true(
                fabs((double)(whole.req[w.n - 1].arrival_ns - whole.req[0].arrival_ns) -
                     (double)(w.n - 1) / over[k].rate * 1e9) < 2);
        for (size_t i = 0; vt_workload_streamed(&w) && i < VT_COUNT(sizes); i++)
            check_pieces(&whole, &w, sizes[i]);
        vt_workload_free(&w);
        vt_workload_free(&whole);
    }
}

static void files_are_paced_alike(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(inputs); i++)
        if (inputs[i].kind != VT_INPUT_SPEC)
            is_paced_alike(&inputs[i]);
}

static void short_ones_stay_whole(void **state)
{
    struct vt_input in = input_of(&inputs[0]);
    struct vt_workload w;

    (void)state;
    assert_int_equal(vt_workload_read(&w, &in, 5, &err), VT_OK);
    assert_false(vt_workload_streamed(&w));
    assert_int_equal(w.n, 5);
    vt_workload_free(&w);
}

/* The whole file is checked, however many pieces that takes. */
static void many_ids_in_no_order_are_told_apart(void **state)
{
    enum { N = 10000 };
    struct vt_buf b = {0};
    struct vt_input in = {.kind = VT_INPUT_REQUESTS, .name = path};
    struct vt_workload w;

    (void)state;
    vt_buf_str(&b, CSV);
    for (uint32_t i = 0; i < N; i++)
        vt_buf_printf(&b, "r%u,%u,10,2\n", i * 7919 % N, i);
    vt_buf_char(&b, '\0');
    write_text(path, b.data);
    assert_int_equal(vt_workload_read(&w, &in, 100, &err), VT_OK);
    assert_true(vt_workload_streamed(&w) && w.n == N);
    vt_workload_free(&w);
    b.len--;
    vt_buf_printf(&b, "r%u,%u,10,2\n", 4711, N);
    vt_buf_char(&b, '\0');
    write_text(path, b.data);
    assert_int_equal(vt_workload_read(&w, &in, 100, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "line 10002: id 'r4711' is used twice"));
    vt_buf_free(&b);
}

static void a_file_that_changes_is_noticed(void **state)
{
    static const struct {
        const char *text;
    } rows[] = {
        {CSV "1,0,10,2\n2,5,11,3\n3,5,12,4\n"},                     /* shorter */
        {CSV "1,0,10,2\n2,5,11,3\n3,5,12,4\n4,2,13,5\n5,9,14,6\n"}, /* no order */
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_input in = input_of(&inputs[0]);
        struct vt_workload w, piece = {0};
        struct vt_stream *s;

        assert_int_equal(vt_workload_read(&w, &in, 2, &err), VT_OK);
        write_text(path, rows[i].text);
        assert_int_equal(vt_stream_open(&s, &w, &err), VT_OK);
        assert_int_equal(vt_stream_next(s, &piece, 100, &err), VT_EIO);
        assert_non_null(strstr(err.msg, "changed while it was being read"));
        vt_workload_free(&piece);
        vt_stream_close(s);
        vt_workload_free(&w);
    }
}

static size_t n_told;

static void count_told(void *user, const char *line)
{
    (void)user;
    assert_non_null(strstr(line, "is cut"));
    n_told++;
}

static void a_cut_file_is_told_of_once(void **state)
{
    static const struct input cut = {
        .kind = VT_INPUT_TRACE,
        .text = "{\"arrival_ms\":1,\"prompt_tokens\":20,\"output_tokens\":1}\n"
                "{\"arrival_ms\":2,\"prompt_tokens\":20,\"output_tokens\":1}\n"
                "{\"arrival_ms\":3,\"prompt_tokens\":20,\"output_tokens\":1}\n"
                "{\"arrival_ms\":4,\"promp"};
    struct vt_input in = input_of(&cut);
    struct vt_workload w, whole;

    (void)state;
    n_told = 0;
    vt_take_cut_files(count_told, NULL);
    assert_int_equal(vt_workload_read(&w, &in, 1, &err), VT_OK);
    assert_true(vt_workload_streamed(&w) && w.n == 3);
    assert_int_equal(n_told, 1);
    vt_take_cut_files(count_told, NULL);
    assert_int_equal(vt_workload_read(&whole, &in, VT_WHOLE, &err), VT_OK);
    n_told = 0;
    check_pieces(&whole, &w, 2);
    assert_int_equal(n_told, 0);
    vt_take_cut_files(NULL, NULL);
    vt_workload_free(&w);
    vt_workload_free(&whole);
}

int main(void)
{
    static const struct CMUnitTest plain[] = {
        cmocka_unit_test(files_are_paced_alike),
        cmocka_unit_test(short_ones_stay_whole),
        cmocka_unit_test(many_ids_in_no_order_are_told_apart),
        cmocka_unit_test(a_file_that_changes_is_noticed),
        cmocka_unit_test(a_cut_file_is_told_of_once),
    };
    struct CMUnitTest tests[VT_COUNT(inputs) + VT_COUNT(plain)];

    for (size_t i = 0; i < VT_COUNT(inputs); i++)
        tests[i] = (struct CMUnitTest){
            .name = inputs[i].name,
            .test_func = is_read_alike,
            .initial_state = (void *)(uintptr_t)&inputs[i],
        };
    memcpy(tests + VT_COUNT(inputs), plain, sizeof(plain));
    return cmocka_run_group_tests_name("stream", tests, set_up, tear_down);
}
