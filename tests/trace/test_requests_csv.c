/* Request lists: columns, prefix groups, and what is refused how. */
#include "fixture.h"

static void load_text(struct vt_workload *w, const char *text)
{
    struct vt_err err = {0};
    int rc = fixture_from(trace_read_requests, w, text, &err);

    if (rc != VT_OK)
        print_error("%s\n", err.msg);
    assert_int_equal(rc, VT_OK);
}

static void columns_in_any_order(void **state)
{
    struct vt_workload w;

    (void)state;
    load_text(&w, "\xef\xbb\xbfoutput_tokens,priority,id,prompt_tokens,arrival_us\r\n"
                  "4,-2,\"x,1\",700,2.5\r\n"
                  "\r\n"
                  "5,,y,1,1\r\n");
    assert_int_equal(w.n, 2);
    assert_string_equal(w.req[0].id, "y");
    assert_string_equal(w.req[1].id, "x,1");
    assert_int_equal(w.req[0].arrival_ns, 1000);
    assert_int_equal(w.req[1].arrival_ns, 2500);
    assert_int_equal(w.req[1].prompt_tokens, 700);
    assert_int_equal(w.req[1].output_tokens, 4);
    assert_int_equal(w.req[1].max_tokens, 4);
    assert_int_equal(w.req[1].priority, -2);
    assert_int_equal(w.req[0].priority, 0);
    assert_int_equal(w.req[1].output_content, vt_content_output("x,1", 3));
    assert_int_equal(w.arrivals, VT_ARRIVALS_RECORDED);
    assert_null(w.measured);
    vt_workload_free(&w);
}

static void a_row_may_name_an_adapter(void **state)
{
    struct vt_workload w;

    (void)state;
    load_text(&w, "id,arrival_us,input_tokens,output_tokens,lora\n"
                  "a,0,10,1,sql\n"
                  "b,1,10,1,\n");
    assert_string_equal(w.req[0].lora, "sql");
    assert_null(w.req[1].lora);
    vt_workload_free(&w);
}

static void groups_share_their_prefix(void **state)
{
    struct vt_workload w;
    const struct vt_segment *s;

    (void)state;
    load_text(&w,
              "id,arrival_us,input_tokens,output_tokens,prefix_group,prefix_tokens\n"
              "a,0,10,1,g,4\n"
              "b,1,10,1,g,10\n"
              "c,2,10,1,h,4\n"
              "d,3,10,1,,4\n"
              "e,4,10,1,g,\n");
    assert_int_equal(w.n_segments, 7);
    s = w.segment;
    assert_int_equal(w.req[0].n_segments, 2);
    assert_int_equal(s[0].tokens, 4);
    assert_int_equal(s[1].tokens, 6);
    assert_int_equal(w.req[1].n_segments, 1); /* nothing of its own */
    assert_int_equal(s[2].content, s[0].content);
    assert_int_equal(s[2].tokens, 10);
    assert_int_not_equal(s[3].content, s[0].content);
    assert_int_equal(w.req[3].n_segments, 1);
    assert_int_equal(w.req[4].n_segments, 1);
    assert_int_not_equal(s[5].content, s[6].content);
    vt_workload_free(&w);
}

static void a_real_list_loads(void **state)
{
    struct vt_workload w;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_requests_load(&w, DATA("requests.csv"), &err), VT_OK);
    assert_int_equal(w.n, 20);
    assert_int_equal(w.req[0].arrival_ns, 35140 * VT_US);
    assert_int_equal(w.req[0].prompt_tokens, 4979);
    vt_workload_free(&w);
}

static void a_long_list_is_small(void **state)
{
    struct vt_buf b = {0};
    struct vt_workload w;
    size_t bytes;

    (void)state;
    vt_buf_str(&b, "id,arrival_us,input_tokens,output_tokens\n");
    for (int i = 0; i < 100000; i++)
        vt_buf_printf(&b, "%d,%d,512,128\n", i, i * 10);
    load_text(&w, b.data);
    bytes = w.cap * sizeof(*w.req) + w.cap_segments * sizeof(*w.segment) +
            w.arena.used_bytes;
    assert_int_equal(w.n, 100000);
    assert_true(bytes < 12000000);
    vt_workload_free(&w);
    vt_buf_free(&b);
}

#define HEADER "id,arrival_us,input_tokens,output_tokens\n"
#define PREFIX "id,arrival_us,input_tokens,output_tokens,prefix_group,prefix_tokens\n"

static struct fixture_bad bad[] = {
    {"an empty file", "", "t: the file is empty"},
    {"a header only", HEADER, "t: there are no requests"},
    {"no header", "0,1,2,3\n", "t: line 1: unknown column '0'"},
    {"a misspelt column", "id,arrival_us,input_token,output_tokens\n",
     "t: line 1: unknown column 'input_token' (did you mean 'input_tokens'?)"},
    {"a missing column", "id,input_tokens,output_tokens\n",
     "t: line 1: column 'arrival_us' is missing"},
    {"a column twice", "id,arrival_us,input_tokens,prompt_tokens,output_tokens\n",
     "t: line 1: column 'prompt_tokens' is there twice"},
    {"too many columns", "id,a,b,c,d,e,f,g,h\n",
     "t: line 1: the header has more than 8 columns"},
    {"a group without its tokens",
     "id,arrival_us,input_tokens,output_tokens,prefix_group\n",
     "t: line 1: 'prefix_group' and 'prefix_tokens' go together"},
    {"a row with a column less", HEADER "a,0,1\n",
     "t: line 2: a row needs 4 columns, as the header has"},
    {"a row with a column more", HEADER "a,0,1,1,1\n",
     "t: line 2: a row needs 4 columns, as the header has"},
    {"an open quote", HEADER "\"a,0,1,1\n",
     "t: line 2: a row needs 4 columns, as the header has"},
    {"tokens that are no number", HEADER "a,0,1x,1\n",
     "t: line 2: column 'input_tokens': '1x' is not an integer in [1, 2147483647]"},
    {"an empty prompt", HEADER "a,0,0,1\n",
     "t: line 2: column 'input_tokens': '0' is not an integer in [1, 2147483647]"},
    {"a negative output", HEADER "a,0,1,-1\n",
     "t: line 2: column 'output_tokens': '-1' is not an integer in [1, 2147483647]"},
    {"a negative arrival", HEADER "a,-5,1,1\n",
     "t: line 2: column 'arrival_us': '-5' is not a number in [0, 1e15]"},
    {"an arrival that is not finite", HEADER "a,inf,1,1\n",
     "t: line 2: column 'arrival_us': 'inf' is not a number in [0, 1e15]"},
    {"an arrival beyond the axis", HEADER "a,1000000000000001,1,1\n",
     "t: line 2: column 'arrival_us': '1000000000000001' is not a number in [0, 1e15]"},
    {"a prefix longer than the prompt", PREFIX "a,0,8,1,g,9\n",
     "t: line 2: column 'prefix_tokens': '9' is not an integer in [0, 8]"},
    {"an id twice", HEADER "b,0,1,1\na,0,1,1\nb,0,1,1\n",
     "t: line 4: id 'b' is used twice"},
    {"no id", HEADER ",0,1,1\n", "t: line 2: an id is empty"},
};

static void refuses(void **state)
{
    fixture_refuses(trace_read_requests, *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_in_any_order),
        cmocka_unit_test(a_row_may_name_an_adapter),
        cmocka_unit_test(groups_share_their_prefix),
        cmocka_unit_test(a_real_list_loads),
        cmocka_unit_test(a_long_list_is_small),
    };

    return fixture_run("requests_csv", tests, VT_COUNT(tests), refuses, bad,
                       VT_COUNT(bad));
}
