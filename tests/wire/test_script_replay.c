/* Scripts from a recording: which record a request gets, and how it ends then. */
#include "script_testing.h"

#include <inttypes.h>
#include <time.h>

struct rec { /* a line of a trace */
    const char *id;
    int arrival_ms; /* -1: not stated */
    uint32_t n_prompt, prompt[12];
    uint32_t n_out, out[8];
    const char *finish; /* NULL: not stated */
};

static void add_list(struct vt_buf *b, const char *key, const uint32_t *v, uint32_t n)
{
    vt_buf_printf(b, ",\"%s\":[", key);
    for (uint32_t i = 0; i < n; i++)
        vt_buf_printf(b, "%s%u", i > 0 ? "," : "", v[i]);
    vt_buf_str(b, "]");
}

static void add_hashes(struct vt_buf *b, const struct rec *r)
{
    uint64_t h = UINT64_C(14695981039346656037);

    vt_buf_str(b, ",\"block_hashes\":[");
    for (uint32_t i = 0; i + 4 <= r->n_prompt; i += 4) {
        h = fnv_block(h, r->prompt + i, 4);
        vt_buf_printf(b, "%s%" PRIu64, i > 0 ? "," : "", h);
    }
    vt_buf_str(b, "]");
}

static void add_line(struct vt_buf *b, const struct rec *r)
{
    vt_buf_printf(b, "{\"prompt_tokens\":%u,\"output_tokens\":%u,\"ttft_ms\":10",
                  r->n_prompt > 0 ? r->n_prompt : 1, r->n_out);
    if (r->id)
        vt_buf_printf(b, ",\"id\":\"%s\"", r->id);
    if (r->arrival_ms >= 0)
        vt_buf_printf(b, ",\"arrival_ms\":%d", r->arrival_ms);
    vt_buf_str(b, ",\"itl_ms\":[");
    for (uint32_t i = 1; i < r->n_out; i++)
        vt_buf_printf(b, "%s5", i > 1 ? "," : "");
    vt_buf_str(b, "]");
    if (r->n_prompt >= 4)
        add_hashes(b, r);
    if (r->out[0] > 0)
        add_list(b, "output_token_ids", r->out, r->n_out);
    if (r->finish)
        vt_buf_printf(b, ",\"finish_reason\":\"%s\"", r->finish);
    vt_buf_str(b, "}\n");
}

static struct scratch traced(const struct rec *r, size_t n)
{
    struct vt_buf b = {0};
    struct scratch f;

    for (size_t i = 0; i < n; i++)
        add_line(&b, &r[i]);
    f = written(b.data, ".jsonl");
    vt_buf_free(&b);
    return f;
}

static struct script_source *from_trace(const struct rec *r, size_t n,
                                        struct vt_play_config c)
{
    struct scratch f = traced(r, n);
    struct script_source *s;

    c.replay_tokens = f.path;
    s = source(c);
    unlink(f.path);
    return s;
}

/* The output's first token stands for the record; 0: it is none of the records'. */
static uint32_t served(struct script_source *s, const struct asked *a)
{
    struct script q = begin(s, a);
    uint32_t first = q.n_token > 0 ? q.token[0] : 0;

    script_end(&q);
    return first;
}

/* ---- by index --------------------------------------------------------- */

/* In the file's order they finished; they arrived in that of their tokens. */
static const struct rec four[] = {
    {"b", 20, 0, {0}, 2, {102, 1}, "length"},
    {"a", 10, 0, {0}, 2, {101, 1}, "length"},
    {"d", 40, 0, {0}, 2, {104, 1}, "length"},
    {"c", 30, 0, {0}, 2, {103, 1}, "length"},
};

static void numbers_name_records_in_order_of_arrival(void **state)
{
    static const struct {
        const char *id;
        uint32_t first;
    } rows[] = {
        {"replay-0", 101},      {"replay-3", 104},
        {"replay-2", 103},      {"replay-3", 104},
        {"replay-4", 0},        {"replay", 0},
        {"cmpl-replay-1", 102}, {"chatcmpl-2", 103},
        {"cmpl-7ca10a90", 101}, {"cmpl-12345678", 102},
        {"cmpl-7ca10aa0", 103}, {"chatcmpl-b0c6cd0fe3a7aef7", 104},
        {"cmpl-7ca10a91", 0},
    };
    struct script_source *s = from_trace(four, 4, (struct vt_play_config){0});
    struct asked a;

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++)
        assert_int_equal(served(s, ask(&a, rows[i].id)), rows[i].first);
    assert_int_equal(script_source_stats(s).records, 4);
    assert_int_equal(script_source_stats(s).requests, VT_COUNT(rows));
    assert_int_equal(script_source_stats(s).matched, 10);
    assert_int_equal(script_source_stats(s).repeated, 6);
    script_source_close(s);
}

static void pythons_number_of_the_prompt_is_not_the_records(void **state)
{
    struct script_source *s = from_trace(four, 4, (struct vt_play_config){0});
    struct asked a;

    (void)state;
    ask(&a, "cmpl-replay-2-0");
    assert_int_equal(served(s, &a), 101);
    a.r.sampling = (struct mp_span){python_sampling, sizeof(python_sampling)};
    assert_int_equal(served(s, &a), 103);
    script_source_close(s);
}

static void without_arrivals_the_order_is_the_files(void **state)
{
    static const struct rec recs[] = {
        {NULL, -1, 0, {0}, 1, {102}, NULL},
        {NULL, -1, 0, {0}, 1, {101}, NULL},
    };
    struct script_source *s = from_trace(recs, 2, (struct vt_play_config){0});
    struct asked a;

    (void)state;
    assert_int_equal(served(s, ask(&a, "r-0")), 102);
    assert_int_equal(served(s, ask(&a, "r-1")), 101);
    script_source_close(s);
}

static void only_those_with_an_arrival_are_numbered(void **state)
{
    static const struct rec recs[] = {
        {NULL, -1, 0, {0}, 1, {101}, NULL},
        {NULL, 20, 0, {0}, 1, {103}, NULL},
        {NULL, 10, 0, {0}, 1, {102}, NULL},
    };
    struct script_source *s = from_trace(recs, 3, (struct vt_play_config){0});
    struct asked a;

    (void)state;
    assert_int_equal(served(s, ask(&a, "r-0")), 102);
    assert_int_equal(served(s, ask(&a, "r-1")), 103);
    assert_int_equal(served(s, ask(&a, "r-2")), 0);
    script_source_close(s);
}

/* ---- how a recorded request ends -------------------------------------- */

static struct ending {
    const char *name;
    const char *finish; /* recorded */
    uint32_t out[5];    /* up to the first 0 */
    uint32_t limit;     /* max_tokens; 0: 9 */
    uint32_t min_tokens;
    enum { EOS_COUNTS, EOS_IGNORED, EOS_UNNAMED } eos;
    bool by_id;        /* which clamps; else by index */
    uint32_t max;      /* expected, as what follows */
    uint32_t eos_nth;  /* 1 is the first token; 0: none */
    uint32_t stop_nth; /* the same */
    const char *told;  /* NULL: by rule */
} endings[] = {
    {.name = "length: random tokens follow",
     .finish = "length",
     .out = {5, 6, 7},
     .max = 9},
    {.name = "length, clamped",
     .finish = "length",
     .out = {5, 6, 7},
     .by_id = true,
     .max = 3,
     .told = "length"},
    {.name = "not stated: random tokens follow", .out = {5, 6, 7}, .max = 9},
    {.name = "cut short by the client",
     .finish = "stop",
     .out = {5, 6, EOS},
     .limit = 2,
     .by_id = true,
     .max = 2},
    {.name = "an EOS ends it",
     .finish = "stop",
     .out = {5, 6, EOS},
     .max = 9,
     .eos_nth = 3},
    {.name = "an EOS ends it, clamped",
     .finish = "stop",
     .out = {5, 6, EOS},
     .by_id = true,
     .max = 3,
     .eos_nth = 3,
     .told = "stop"},
    {.name = "a stop token ends it",
     .finish = "stop",
     .out = {5, 6, STOP},
     .max = 9,
     .stop_nth = 3},
    {.name = "the first that ends it",
     .finish = "length",
     .out = {5, STOP, EOS, 7},
     .max = 9,
     .stop_nth = 2},
    {.name = "not before min_tokens",
     .finish = "length",
     .out = {5, STOP, EOS, 7},
     .min_tokens = 3,
     .max = 9,
     .eos_nth = 3},
    {.name = "an EOS ignored: random tokens follow",
     .finish = "stop",
     .out = {5, 6, EOS},
     .eos = EOS_IGNORED,
     .max = 9},
    {.name = "an EOS that is not even named",
     .finish = "stop",
     .out = {5, 6, EOS},
     .eos = EOS_UNNAMED,
     .max = 9},
    {.name = "an EOS ignored, clamped",
     .finish = "stop",
     .out = {5, 6, EOS},
     .eos = EOS_IGNORED,
     .by_id = true,
     .max = 3,
     .told = "stop"},
    {.name = "a stop string ended it",
     .finish = "stop",
     .out = {5, 6, 7},
     .max = 3,
     .told = "stop"},
    {.name = "a stop string at the limit",
     .finish = "stop",
     .out = {5, 6, 7},
     .limit = 3,
     .max = 3,
     .told = "stop"},
    {.name = "a stop string behind the limit",
     .finish = "stop",
     .out = {5, 6, 7},
     .limit = 2,
     .max = 2},
    {.name = "repetition ended it",
     .finish = "repetition",
     .out = {5, 5, 5},
     .max = 3,
     .told = "repetition"},
    {.name = "its client left",
     .finish = "abort",
     .out = {5, 6},
     .max = 2,
     .told = "abort"},
    {.name = "it failed",
     .finish = "error",
     .out = {5, 6},
     .by_id = true,
     .max = 2,
     .told = "error"},
};

static void ask_as(struct asked *a, const struct ending *e)
{
    static uint32_t stop[] = {STOP}, all[] = {STOP, EOS};

    ask(a, "r-0");
    a->p.max_tokens = e->limit > 0 ? e->limit : 9;
    a->p.min_tokens = e->min_tokens;
    a->p.ignore_eos = e->eos != EOS_COUNTS;
    a->p.eos_token_id = e->eos == EOS_UNNAMED ? -1 : EOS;
    a->p.stop_token_ids = stop;
    a->p.n_stop_token_ids = 1;
    a->p.all_stop_token_ids = all;
    a->p.n_all_stop_token_ids = 2;
}

static void recorded_ends_are_met(void **state)
{
    const struct ending *e = *state;
    struct rec r = {.id = "r-0", .finish = e->finish};
    struct script_source *s;
    struct asked a;
    struct script q;

    for (; e->out[r.n_out] > 0; r.n_out++)
        r.out[r.n_out] = e->out[r.n_out];
    s = from_trace(
        &r, 1,
        (struct vt_play_config){.match = e->by_id ? VT_MATCH_ID : VT_MATCH_INDEX});
    ask_as(&a, e);
    q = begin(s, &a);
    for (uint32_t i = 0; i < r.n_out; i++)
        assert_int_equal(script_token(&q, i), e->out[i]);
    for (uint32_t i = r.n_out; i < 200; i++)
        assert_true(script_token(&q, i) != EOS && script_token(&q, i) != STOP);
    assert_int_equal(q.max_tokens, e->max);
    assert_int_equal(q.eos_at, e->eos_nth > 0 ? e->eos_nth - 1 : VT_NO_STOP);
    assert_int_equal(q.stop_at, e->stop_nth > 0 ? e->stop_nth - 1 : VT_NO_STOP);
    assert_true(q.stop_at == VT_NO_STOP || q.stop_token == STOP);
    if (e->told)
        assert_string_equal(wire_finish_name(q.finish), e->told);
    else
        assert_int_equal(q.finish, -1);
    assert_true(q.min_tokens <= q.max_tokens);
    script_end(&q);
    script_source_close(s);
}

/* ---- by prefix -------------------------------------------------------- */

/* A conversation of three turns, another one that shares its first block, and one more
 * of the first turn. */
static const struct rec talk[] = {
    {"t1", 10, 8, {1, 2, 3, 4, 5, 6, 7, 8}, 1, {201}, NULL},
    {"o1", 20, 9, {1, 2, 3, 4, 9, 9, 9, 9, 9}, 1, {301}, NULL},
    {"t2", 30, 12, {1, 2, 3, 4, 5, 6, 7, 8, 21, 22, 23, 24}, 1, {202}, NULL},
    {"t1b", 40, 8, {1, 2, 3, 4, 5, 6, 7, 8}, 1, {203}, NULL},
    {"z", 50, 3, {1, 2, 3}, 1, {400}, NULL},
};

static void the_deepest_prefix_wins(void **state)
{
    static const struct {
        const char *what;
        uint32_t n, prompt[12], first;
    } rows[] = {
        {"the second turn, though asked first",
         12,
         {1, 2, 3, 4, 5, 6, 7, 8, 21, 22, 23, 24},
         202},
        {"the first turn: the first that arrived", 8, {1, 2, 3, 4, 5, 6, 7, 8}, 201},
        {"the first turn again: the next", 9, {1, 2, 3, 4, 5, 6, 7, 8, 77}, 203},
        {"and again: the first one again", 8, {1, 2, 3, 4, 5, 6, 7, 8}, 201},
        {"one block in common: what is left", 8, {1, 2, 3, 4, 70, 70, 70, 70}, 301},
        {"one block in common: all served", 4, {1, 2, 3, 4}, 201},
        {"no block in common", 8, {2, 2, 3, 4, 5, 6, 7, 8}, 0},
        {"less than a block", 3, {1, 2, 3}, 0},
    };
    struct script_source *s = from_trace(
        talk, VT_COUNT(talk), (struct vt_play_config){.match = VT_MATCH_PREFIX});
    struct asked a;

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        ask(&a, "x");
        prompt_of(&a, rows[i].prompt, rows[i].n);
        if (served(s, &a) != rows[i].first)
            fail_msg("%s", rows[i].what);
    }
    script_source_close(s);
}

/* Many prompts over few tokens against the plainest search there is. */
static void prefixes_are_found_as_by_looking_at_all(void **state)
{
    enum { N = 300, ASKED = 2000 };
    static struct rec recs[N];
    static bool done[N];
    struct script_source *s;

    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        recs[i] = (struct rec){NULL, (int)i, 0, {0}, 1, {500 + i}, NULL};
        recs[i].n_prompt = (uint32_t)(vt_mix64(i) % 12) + 1;
        for (uint32_t k = 0; k < 12; k++)
            recs[i].prompt[k] = (uint32_t)(vt_mix64(i * 100 + k / 4) % 3);
    }
    s = from_trace(recs, N, (struct vt_play_config){.match = VT_MATCH_PREFIX});
    for (uint32_t n = 0; n < ASKED; n++) {
        uint32_t best = 0, want = 0;
        bool fresh = false, equal = false;
        struct asked a;

        ask(&a, "x");
        a.r.n_prompt = (uint32_t)(vt_mix64(n + 7777) % 12) + 1;
        for (uint32_t k = 0; k < 12; k++)
            a.prompt[k] = (uint32_t)(vt_mix64((n + 9999) * 100 + k / 4) % 3);
        for (uint32_t i = 0; i < N; i++) {
            uint32_t d = 0, blocks = recs[i].n_prompt / 4;
            bool is_equal;

            while (d < blocks && d < a.r.n_prompt / 4 &&
                   memcmp(&a.prompt[4 * d], &recs[i].prompt[4 * d], 16) == 0)
                d++;
            is_equal = d == blocks && d == a.r.n_prompt / 4;
            if (d == 0 || d < best)
                continue;
            if (d > best || (!done[i] && (!fresh || (is_equal && !equal))) ||
                (done[i] && !fresh && is_equal && !equal)) {
                fresh = !done[i];
                equal = is_equal;
                want = i + 1;
                best = d;
            }
        }
        assert_int_equal(served(s, &a), want > 0 ? 500 + want - 1 : 0);
        if (want > 0)
            done[want - 1] = true;
    }
    script_source_close(s);
}

/* ---- by id ------------------------------------------------------------ */

static void names_find_records(void **state)
{
    static const struct rec recs[] = {
        {"job-1", 10, 0, {0}, 1, {101}, NULL},
        {"cmpl-job-2-0", 20, 0, {0}, 1, {102}, NULL},
        {"cmpl-job-3", 30, 0, {0}, 1, {103}, NULL},
        {"chatcmpl-job-4", 40, 0, {0}, 1, {104}, NULL},
        {"0_cmpl-job-5-0-9c9c7ca4", 50, 0, {0}, 1, {105}, NULL},
        {"1_cmpl-job-5-0-9c9c7ca4", 60, 0, {0}, 1, {106}, NULL},
        {"cmpl-job-6-0-12345678", 70, 0, {0}, 1, {107}, NULL},
        {"other-7-9c9c7ca4", 80, 0, {0}, 1, {108}, NULL},
    };
    static const struct {
        const char *id, *external;
        bool python;
        uint32_t first;
    } rows[] = {
        {"i", "job-1", false, 101},
        {"i", "cmpl-job-1-0", true, 101},
        {"i", "cmpl-job-1", false, 101},
        {"i", "chatcmpl-job-1", true, 101},
        {"i", "cmpl-job-2-0", true, 102},
        {"i", "cmpl-job-2", false, 102},
        {"i", "cmpl-job-3-0", true, 103},
        {"i", "cmpl-job-3", false, 103},
        {"i", "cmpl-job-4", false, 104},
        {"0_cmpl-job-5-0-aaaaaaaa", "cmpl-job-5-0", true, 105},
        {"1_cmpl-job-5-0-aaaaaaaa", "cmpl-job-5-0", true, 106},
        {"0_cmpl-job-5-0-bbbbbbbb", "cmpl-job-5-0", true, 105},
        {"i", "cmpl-job-6", false, 107},
        {"cmpl-job-6-0-12345678", NULL, false, 107},
        {"i", "other-7", false, 108},
        {"i", "cmpl-other-7-0", true, 108},
        {"i", "job-9", false, 0},
        {"i", "cmpl-7ca10a90", false, 0},
        {"i", "jo", false, 0},
    };
    struct script_source *s =
        from_trace(recs, VT_COUNT(recs), (struct vt_play_config){.match = VT_MATCH_ID});
    struct asked a;

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        ask(&a, rows[i].external);
        a.r.id = chars(rows[i].id);
        if (rows[i].python)
            a.r.sampling = (struct mp_span){python_sampling, sizeof(python_sampling)};
        if (served(s, &a) != rows[i].first)
            fail_msg("%s, %s", rows[i].id, rows[i].external);
    }
    script_source_close(s);
}

/* ---- recorded times --------------------------------------------------- */

static void times_alone_give_the_length(void **state)
{
    static const struct rec recs[] = {
        {"r0", 0, 0, {0}, 3, {0}, "stop"},
        {"r1", 1, 0, {0}, 3, {0}, "length"},
    };
    static const struct {
        const char *id;
        bool ignore_eos;
        uint32_t max_tokens, min_tokens, max, eos_at;
        int told;
    } rows[] = {
        {"r0", false, 9, 0, 3, 2, -1},
        {"r0", false, 9, 3, 3, 2, -1},
        {"r0", false, 9, 4, 3, VT_NO_STOP, WIRE_STOP},
        {"r0", true, 9, 0, 3, VT_NO_STOP, WIRE_STOP},
        {"r0", false, 2, 0, 2, VT_NO_STOP, -1},
        {"r1", false, 9, 0, 3, VT_NO_STOP, WIRE_LENGTH},
        {"r7", false, 9, 0, 9, VT_NO_STOP, -1},
    };
    struct scratch f = traced(recs, 2);
    struct script_source *s = source((struct vt_play_config){.replay_steps = f.path});

    (void)state;
    unlink(f.path);
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct asked a;
        struct script q;

        ask(&a, rows[i].id);
        a.p.max_tokens = rows[i].max_tokens;
        a.p.min_tokens = rows[i].min_tokens;
        a.p.ignore_eos = rows[i].ignore_eos;
        q = begin(s, &a);
        assert_int_equal(q.max_tokens, rows[i].max);
        assert_int_equal(q.eos_at, rows[i].eos_at);
        assert_int_equal(q.finish, rows[i].told);
        if (q.eos_at != VT_NO_STOP)
            assert_int_equal(script_token(&q, q.eos_at), EOS);
        if (rows[i].id[1] == '7') {
            assert_null(q.steps);
        } else {
            assert_string_equal(q.steps->id, rows[i].id);
            assert_int_equal(q.steps->n_gaps, 2);
        }
        script_end(&q);
    }
    script_source_close(s);
}

static void tokens_and_times_may_come_from_one_file_or_two(void **state)
{
    static const struct rec words[] = {{"r0", 0, 0, {0}, 2, {5, 6}, "length"}};
    static const struct rec times[] = {{"q", 5, 0, {0}, 4, {0}, "length"}};
    struct scratch fw = traced(words, 1), ft = traced(times, 1);
    struct script_source *one = source(
        (struct vt_play_config){.replay_tokens = fw.path, .replay_steps = fw.path});
    struct script_source *two = source(
        (struct vt_play_config){.replay_tokens = fw.path, .replay_steps = ft.path});
    struct asked a;
    struct script q = begin(one, ask(&a, "r0"));

    (void)state;
    assert_int_equal(q.n_token, 2);
    assert_ptr_equal(q.token, q.steps->token_id);
    assert_int_equal(q.max_tokens, 2);
    script_end(&q);
    q = begin(two, ask(&a, "r0"));
    assert_int_equal(q.n_token, 2);
    assert_string_equal(q.steps->id, "q");
    assert_int_equal(q.max_tokens, 4);
    script_end(&q);
    script_source_close(one);
    script_source_close(two);
    unlink(fw.path);
    unlink(ft.path);
}

/* ---- lengths ---------------------------------------------------------- */

static void lengths_are_drawn_and_end_by_eos(void **state)
{
    static const struct rec recs[] = {
        {NULL, -1, 0, {0}, 2, {0}, NULL},
        {NULL, -1, 0, {0}, 4, {0}, NULL},
        {NULL, -1, 0, {0}, 4, {0}, NULL},
        {NULL, -1, 0, {0}, 8, {0}, NULL},
    };
    static const struct {
        uint32_t max_tokens, min_tokens, lo, hi;
        bool ignore_eos;
    } rows[] = {{40, 0, 2, 8, false},
                {40, 5, 5, 8, false},
                {5, 0, 2, 4, false},
                {40, 20, 20, 20, false},
                {40, 0, 0, 0, true}};
    struct scratch f = traced(recs, 4);
    struct script_source *s = source((struct vt_play_config){.lengths_from = f.path});

    (void)state;
    unlink(f.path);
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        uint32_t n[64] = {0}, least = 64, most = 0, full = 0;

        for (uint32_t k = 0; k < 2000; k++) {
            struct asked a;
            struct script q;

            ask(&a, "cmpl-7ca10a90");
            a.p.max_tokens = rows[i].max_tokens;
            a.p.min_tokens = rows[i].min_tokens;
            a.p.ignore_eos = rows[i].ignore_eos;
            q = begin(s, &a);
            assert_int_equal(q.max_tokens, rows[i].max_tokens);
            if (q.eos_at == VT_NO_STOP) {
                full++;
            } else {
                assert_int_equal(script_token(&q, q.eos_at), EOS);
                n[q.eos_at + 1]++;
                least = q.eos_at + 1 < least ? q.eos_at + 1 : least;
                most = q.eos_at + 1 > most ? q.eos_at + 1 : most;
            }
            script_end(&q);
        }
        if (rows[i].ignore_eos) {
            assert_int_equal(full, 2000);
            continue;
        }
        assert_int_equal(least, rows[i].lo);
        assert_int_equal(most, rows[i].hi);
        assert_true(full == 0 || rows[i].max_tokens == 5);
        assert_true(i != 0 || (n[4] > 800 && n[8] > 40 && n[8] < 160));
    }
    script_source_close(s);
}

static void a_length_puts_no_eos_where_it_is_not_allowed(void **state)
{
    static const struct rec recs[] = {{NULL, -1, 0, {0}, 5, {0}, NULL}};
    uint32_t allowed[] = {10, 20};
    struct scratch f = traced(recs, 1);
    struct script_source *s = source((struct vt_play_config){.lengths_from = f.path});
    struct asked a;
    struct script q;

    (void)state;
    unlink(f.path);
    ask(&a, "x");
    a.p.allowed_token_ids = allowed;
    a.p.n_allowed_token_ids = 2;
    q = begin(s, &a);
    assert_int_equal(q.eos_at, VT_NO_STOP);
    assert_int_equal(script_token(&q, 4) % 10, 0);
    script_end(&q);
    script_source_close(s);
}

/* ---- large traces ----------------------------------------------------- */

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* All prompts are equal, or all ids: what a careless search takes squared. */
static void many_equal_records_are_served_one_after_the_other(void **state)
{
    enum { N = 20000 };
    struct rec *recs = calloc(N, sizeof(*recs));
    struct scratch f;

    (void)state;
    assert_non_null(recs);
    for (uint32_t i = 0; i < N; i++)
        recs[i] =
            (struct rec){"same", (int)i, 8, {1, 2, 3, 4, 5, 6, 7, 8}, 1, {i + 1}, NULL};
    f = traced(recs, N);
    for (int match = VT_MATCH_PREFIX; match <= VT_MATCH_ID; match++) {
        struct script_source *s = source((struct vt_play_config){
            .replay_tokens = f.path, .match = (enum vt_replay_match)match});
        double start = seconds();
        struct asked a;

        for (uint32_t i = 0; i < 2 * N; i++) {
            ask(&a, "same");
            prompt_of(&a, recs[0].prompt, 8);
            assert_int_equal(served(s, &a), i < N ? i + 1 : 1);
        }
        assert_int_equal(script_source_stats(s).repeated, N);
        assert_true(seconds() - start < 5); /* squared it would be minutes */
        script_source_close(s);
    }
    unlink(f.path);
    free(recs);
}

/* ---- refusals --------------------------------------------------------- */

static void traces_of_no_use_are_refused(void **state)
{
    static const struct {
        const char *text;
        bool steps;
        enum vt_replay_match match;
        const char *message;
    } rows[] = {
        {"{\"prompt_tokens\":3,\"output_tokens\":1,\"ttft_ms\":1}\n", false,
         VT_MATCH_INDEX, "no record has output_token_ids"},
        {"{\"prompt_tokens\":3,\"output_tokens\":1,\"ttft_ms\":1,"
         "\"output_token_ids\":[4]}\n",
         false, VT_MATCH_PREFIX,
         "no record has block_hashes, so none can be found by prefix"},
        {"{\"prompt_tokens\":3,\"output_tokens\":1,\"arrival_ms\":1}\n", true,
         VT_MATCH_INDEX, "no record has times"},
        {"{\"prompt_tokens\":3,\"output_tokens\":2,\"ttft_ms\":1,\"itl_ms\":[1],"
         "\"output_token_ids\":[4]}\n",
         false, VT_MATCH_INDEX, "output_token_ids"},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct scratch f = written(rows[i].text, ".jsonl");
        struct vt_play_config c = {.vocab_size = VOCAB, .engine.block_size = 4};
        struct script_source *s;
        struct vt_err err;

        c.match = rows[i].match;
        if (rows[i].steps)
            c.replay_steps = f.path;
        else
            c.replay_tokens = f.path;
        assert_int_equal(script_source_open(&s, &c, &err), VT_EINPUT);
        assert_null(s);
        assert_memory_equal(err.msg, f.path, strlen(f.path));
        if (!strstr(err.msg, rows[i].message))
            fail_msg("%s", err.msg);
        unlink(f.path);
    }
}

int main(void)
{
    enum { FIXED = 13, N = VT_COUNT(endings) };
    struct CMUnitTest tests[FIXED + N] = {
        cmocka_unit_test(numbers_name_records_in_order_of_arrival),
        cmocka_unit_test(pythons_number_of_the_prompt_is_not_the_records),
        cmocka_unit_test(without_arrivals_the_order_is_the_files),
        cmocka_unit_test(only_those_with_an_arrival_are_numbered),
        cmocka_unit_test(a_length_puts_no_eos_where_it_is_not_allowed),
        cmocka_unit_test(the_deepest_prefix_wins),
        cmocka_unit_test(prefixes_are_found_as_by_looking_at_all),
        cmocka_unit_test(names_find_records),
        cmocka_unit_test(times_alone_give_the_length),
        cmocka_unit_test(tokens_and_times_may_come_from_one_file_or_two),
        cmocka_unit_test(lengths_are_drawn_and_end_by_eos),
        cmocka_unit_test(many_equal_records_are_served_one_after_the_other),
        cmocka_unit_test(traces_of_no_use_are_refused),
    };

    for (size_t i = 0; i < N; i++)
        tests[FIXED + i] = (struct CMUnitTest){.name = endings[i].name,
                                               .test_func = recorded_ends_are_met,
                                               .initial_state = &endings[i]};
    return cmocka_run_group_tests_name("script_replay", tests, NULL, NULL);
}
