/* Datasets: rows of many forms read, and the answers that requests get from them. */
#include "script_testing.h"

/* A tokenizer of one token for each byte; "!" cannot be encoded. */
static int encode(void *user, const char *text, size_t len, uint32_t **ids, size_t *n,
                  struct vt_err *err)
{
    if (memchr(text, '!', len))
        return vt_fail(err, VT_EINPUT, "no token for '!'");
    ++*(int *)user;
    *ids = malloc((len > 0 ? len : 1) * sizeof(**ids));
    if (!*ids)
        return vt_nomem(err);
    for (size_t i = 0; i < len; i++)
        (*ids)[i] = (uint8_t)text[i];
    *n = len;
    return VT_OK;
}

static void put_tokens(struct vt_buf *b, const uint32_t *token, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (token[i] == '\n')
            vt_buf_str(b, "\\n");
        else if (token[i] < 128 && token[i] >= 32)
            vt_buf_char(b, (char)token[i]);
        else
            vt_buf_printf(b, "<%u>", token[i]);
    }
}

/* "answer of row 0|...; prompt=answer of turn 0|..." */
static void show(struct vt_buf *b, const struct vt_dataset *d)
{
    for (size_t i = 0; i < d->n_rows; i++) {
        vt_buf_str(b, i > 0 ? "|" : "");
        put_tokens(b, d->row[i].answer, d->row[i].n_answer);
    }
    vt_buf_str(b, ";");
    for (size_t i = 0; i < d->n_turns; i++) {
        vt_buf_str(b, i > 0 ? "|" : "");
        put_tokens(b, d->turn[i].prompt, d->turn[i].n_prompt);
        vt_buf_str(b, "=");
        put_tokens(b, d->turn[i].answer, d->turn[i].n_answer);
    }
}

/* ---- reading ---------------------------------------------------------- */

static struct form {
    const char *name, *file, *text, *want;
} forms[] = {
    {"token ids", "d.jsonl",
     "{\"prompt_token_ids\":[300,301],\"output_token_ids\":[302]}\n\n"
     "{\"output_token_ids\":[303,304]}\n",
     "<302>|<303><304>;<300><301>=<302>"},
    {"ids win over text", "d.jsonl",
     "{\"prompt\":\"p\",\"prompt_token_ids\":[300],\"output\":\"a\","
     "\"output_token_ids\":[301]}",
     "<301>;<300>=<301>"},
    {"instruction and input", "d.json",
     "[{\"instruction\":\"do\",\"input\":\"this\",\"output\":\"done\"},\n"
     "{\"instruction\":\"do\",\"input\":\"\",\"output\":\"done\"}]",
     "done|done;do\\nthis=done|do=done"},
    {"the first field that says something", "d.jsonl",
     "{\"prompt\":\"\",\"question\":\"q\",\"answer\":null,\"response\":\"r\"}",
     "r;q=r"},
    {"plain text", "d.jsonl", "{\"text\":\"t\",\"label\":3}", "3;t=3"},
    {"a row without an answer keeps its number", "d.jsonl",
     "{\"prompt\":\"p\"}\n{\"prompt\":\"q\",\"answer\":\"a\"}", "|a;q=a"},
    {"rows within an object", "d.json",
     "{\"version\":1,\"data\":[{\"query\":\"q\",\"target\":\"a\"}]}", "a;q=a"},
    {"one row", "d.json", "{\"query\":\"q\",\"target\":\"a\"}", "a;q=a"},
    {"lines under the name of JSON", "d.json",
     "{\"query\":\"q\",\"target\":\"a\"}\n{\"query\":\"r\",\"target\":\"b\"}",
     "a|b;q=a|r=b"},
    {"no name says the form", "data", "[{\"query\":\"q\",\"target\":\"a\"}]", "a;q=a"},
    {"messages", "d.jsonl",
     "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},"
     "{\"role\":\"user\",\"content\":\"u1\"},{\"role\":\"assistant\",\"content\":"
     "\"a1\"},"
     "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"u\"},"
     "{\"type\":\"text\",\"text\":\"2\"}]},{\"role\":\"assistant\",\"content\":\"a2\"}]"
     "}",
     "a1\\na2;u1=a1|u2=a2"},
    {"conversations", "d.json",
     "[{\"id\":\"x\",\"conversations\":[{\"from\":\"human\",\"value\":\"h\"},"
     "{\"from\":\"gpt\",\"value\":\"g\"}]}]",
     "g;h=g"},
    {"messages answered by a field", "d.jsonl",
     "{\"prompt\":[{\"role\":\"user\",\"content\":\"u\"}],\"completion\":\"c\"}",
     "c;u=c"},
    {"a field's answer is the last message's", "d.jsonl",
     "{\"messages\":[{\"role\":\"user\",\"content\":\"u\"},"
     "{\"role\":\"assistant\",\"content\":\"a\"},"
     "{\"role\":\"user\",\"content\":\"v\"}],\"output\":\"c\"}",
     "c;v=c"},
    {"messages answered by messages", "d.jsonl",
     "{\"prompt\":[{\"role\":\"user\",\"content\":\"u\"}],"
     "\"completion\":[{\"role\":\"assistant\",\"content\":\"c\"}]}",
     "c;u=c"},
    {"an answer without a question is no turn", "d.jsonl",
     "{\"messages\":[{\"role\":\"assistant\",\"content\":\"a\"}]}", "a;"},
    {"CSV", "d.csv",
     "question,answer\r\nq1,a1\r\n\"q,\n\"\"2\"\"\",\"a2\"\n\nq3\n,a4\n",
     "a1|a2||a4;q1=a1|q,\\n\"2\"=a2"},
    {"CSV with ids", "d.csv",
     "prompt_token_ids,output_token_ids\n\"[300, 301]\",302 303",
     "<302><303>;<300><301>=<302><303>"},
    {"CSV without a name", "data", "\xef\xbb\xbfquestion,answer\nq,a\n", "a;q=a"},
};

static void rows_are_read(void **state)
{
    const struct form *f = *state;
    struct mp_span text = exact(f->text, strlen(f->text));
    struct vt_buf b = {0};
    struct vt_err err = {0};
    struct vt_dataset d;
    int calls = 0;

    if (vt_dataset_read(&d, f->file, (const char *)text.at, text.len, encode, &calls,
                        &err) != VT_OK)
        fail_msg("%s", err.msg);
    show(&b, &d);
    assert_string_equal(b.data, f->want);
    vt_buf_free(&b);
    vt_dataset_free(&d);
    span_free(text);
}

static struct bad {
    const char *file, *text, *message;
    bool no_tokenizer;
} bad[] = {
    {"d.jsonl", "", "d.jsonl: it is empty", false},
    {"d.jsonl", "\n \n", "d.jsonl: there are no rows", false},
    {"d.json", "[]", "d.json: there are no rows", false},
    {"d.jsonl", "{\"prompt\":\"p\"}",
     "d.jsonl: no row has an answer: output_token_ids, output, response, completion, "
     "answer, target, label, or an assistant's message",
     false},
    {"d.jsonl", "{\"prompt\":\"p\",\"answer\":\"a\"}\n[]",
     "d.jsonl: line 2: a row must be an object", false},
    {"d.json", "[\n{\"answer\":\"a\"},\n3]", "d.json: line 3: a row must be an object",
     false},
    {"d.jsonl", "{\"output_token_ids\":[1,-1]}",
     "d.jsonl: line 1: field 'output_token_ids' must be a list of token ids", false},
    {"d.jsonl", "{\"output_token_ids\":{}}",
     "d.jsonl: line 1: field 'output_token_ids' must be a list of token ids", false},
    {"d.csv", "output_token_ids\n1 2 x",
     "d.csv: line 2: field 'output_token_ids' must be a list of token ids", false},
    {"d.csv", "a,answer\n\"open", "d.csv: line 2: a quote is not closed", false},
    {"d.csv", "a,answer\n\"x\"y,z", "d.csv: line 2: text follows a closing quote",
     false},
    {"d.csv", "a,answer\n1,2\n1,2,3", "d.csv: line 3: more than 2 columns", false},
    {"d.jsonl", "{\"answer\":\"a\"}\n{\"answer\":\"no!\"}",
     "d.jsonl: line 2: no token for '!'", false},
    {"d.jsonl", "\n{\"answer\":\"a\"}",
     "d.jsonl: line 2: the rows hold text, and there is no tokenizer to make tokens of "
     "it",
     true},
    {"d.parquet", "PAR1",
     "d.parquet: Parquet is not read; write it as JSON lines first", false},
};

static void bad_rows_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(bad); i++) {
        struct vt_dataset d;
        struct vt_err err;
        int calls = 0;

        assert_int_equal(
            vt_dataset_read(&d, bad[i].file, bad[i].text, strlen(bad[i].text),
                            bad[i].no_tokenizer ? NULL : encode, &calls, &err),
            VT_EINPUT);
        assert_string_equal(err.msg, bad[i].message);
        assert_null(d.row);
    }
}

static void ids_need_no_tokenizer(void **state)
{
    static const char text[] = "{\"prompt\":\"p\",\"output_token_ids\":[5]}\n"
                               "{\"messages\":[],\"output_token_ids\":[6]}";
    struct vt_dataset d;

    (void)state;
    assert_int_equal(
        vt_dataset_read(&d, "d.jsonl", text, strlen(text), NULL, NULL, NULL), VT_OK);
    assert_int_equal(d.n_rows, 2);
    assert_int_equal(d.n_turns, 0);
    assert_int_equal(d.row[1].answer[0], 6);
    vt_dataset_free(&d);
}

/* ---- serving ---------------------------------------------------------- */

static struct script_source *from_text(const char *text, const char *ending,
                                       enum vt_replay_match match)
{
    struct scratch f = written(text, ending);
    int calls = 0;
    struct script_source *s = source((struct vt_play_config){.replay_tokens = f.path,
                                                             .match = match,
                                                             .encode = encode,
                                                             .encode_user = &calls});

    unlink(f.path);
    return s;
}

static void say(struct asked *a, const char *id, const char *prompt)
{
    ask(a, id);
    a->r.n_prompt = (uint32_t)strlen(prompt);
    assert_true(a->r.n_prompt <= VT_COUNT(a->prompt));
    for (uint32_t i = 0; prompt[i]; i++)
        a->prompt[i] = (uint8_t)prompt[i];
}

static char answer_to(struct script_source *s, const struct asked *a)
{
    struct script q = begin(s, a);
    char first = q.n_token > 0 ? (char)q.token[0] : '-';

    script_end(&q);
    return first;
}

#define ROWS                                                            \
    "{\"prompt\":\"what is the time\",\"answer\":\"1\"}\n"              \
    "{\"prompt\":\"what is the time in Rome\",\"answer\":\"2\"}\n"      \
    "{\"prompt\":\"the sea\",\"answer\":\"3\"}\n"                       \
    "{\"prompt\":\"hi\",\"answer\":\"4\"}\n"                            \
    "{\"prompt\":\"what is the time\",\"answer\":\"5\"}\n"              \
    "{\"messages\":[{\"role\":\"user\",\"content\":\"name a colour\"}," \
    "{\"role\":\"assistant\",\"content\":\"6\"},{\"role\":\"user\","    \
    "\"content\":\"another colour\"},{\"role\":\"assistant\",\"content\":\"7\"}]}\n"

static void prompts_are_found_within_a_template(void **state)
{
    static const struct {
        const char *prompt;
        char answer;
    } rows[] = {
        {"what is the time", '1'},
        {"<u>what is the time</u><a>", '5'},
        {"what is the time", '1'},                   /* all served */
        {"<u>what is the time in Rome</u><a>", '2'}, /* the longer one */
        {"<u>what is the time in Oslo</u><a>", '1'},
        {"<u>_hat is the tim_</u>", '1'}, /* its ends may be joined */
        {"<u>_ha_ is the tim_</u>", '-'},
        {"<u>the sea</u>", '3'},
        {"<u>the se_</u>", '-'}, /* too short for that */
        {"hi", '4'},
        {"<u>hi</u>", '-'}, /* too short to be sure */
        {"h", '-'},
        {"", '-'},
        {"<u>name a colour</u><a>6</a><u>another colour</u>", '7'},
        {"<u>name a colour</u><a>", '6'},
        {"<u>the sea</u><u>what is the time</u>", '1'},
        {"<u>what is the time</u><u>the sea</u>", '3'}, /* the last one said */
    };
    struct script_source *s = from_text(ROWS, ".jsonl", VT_MATCH_PREFIX);
    struct asked a;

    (void)state;
    assert_int_equal(script_source_stats(s).records, 7);
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        say(&a, "x", rows[i].prompt);
        if (answer_to(s, &a) != rows[i].answer)
            fail_msg("%s: %c", rows[i].prompt, answer_to(s, &a));
    }
    script_source_close(s);
}

static void rows_are_found_by_number(void **state)
{
    struct script_source *s = from_text(ROWS, ".jsonl", VT_MATCH_INDEX);
    struct asked a;

    (void)state;
    say(&a, "cmpl-r-2", "whatever");
    assert_int_equal(answer_to(s, &a), '3');
    say(&a, "r-5", "whatever");
    assert_int_equal(answer_to(s, &a), '6');
    say(&a, "r-6", "whatever");
    assert_int_equal(answer_to(s, &a), '-');
    script_source_close(s);
}

/* Texts of few letters against the plainest search there is. */
static void runs_are_found_as_by_looking_everywhere(void **state)
{
    enum { N = 400, ASKED = 1500 };
    static uint32_t prompt[N][24], n_prompt[N];
    struct vt_buf b = {0};
    struct script_source *s;

    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        n_prompt[i] = 8 + (uint32_t)(vt_mix64(i) % 16);
        vt_buf_str(&b, "{\"prompt_token_ids\":[");
        for (uint32_t k = 0; k < n_prompt[i]; k++) {
            prompt[i][k] = (uint32_t)(vt_mix64(i / 2 * 100 + k) >> 20) % 2 + 1;
            vt_buf_printf(&b, "%s%u", k > 0 ? "," : "", prompt[i][k]);
        }
        /* equal runs have equal answers: which of them is served shows not */
        vt_buf_printf(&b, "],\"output_token_ids\":[%u]}\n", n_prompt[i]);
    }
    s = from_text(b.data, ".jsonl", VT_MATCH_PREFIX);
    vt_buf_free(&b);
    for (uint32_t n = 0; n < ASKED; n++) {
        size_t at = 0, len = 0;
        struct asked a;
        struct script q;

        ask(&a, "x");
        a.r.n_prompt = 5 + (uint32_t)(vt_mix64(n + 555) % 55);
        for (uint32_t k = 0; k < a.r.n_prompt; k++)
            a.prompt[k] = (uint32_t)(vt_mix64(n * 1000 + k) >> 20) % 2 + 1;
        for (uint32_t p = 0; p < a.r.n_prompt; p++) {
            size_t best = 0;

            for (uint32_t i = 0; i < N; i++) {
                size_t m = n_prompt[i] - 2;

                if (p + m <= a.r.n_prompt && m > best &&
                    memcmp(&a.prompt[p], &prompt[i][1], m * 4) == 0)
                    best = m;
            }
            if (best > 0 && (len == 0 || best > len || p >= at + len)) {
                at = p;
                len = best;
            }
        }
        q = begin(s, &a);
        assert_int_equal(q.n_token > 0 ? q.token[0] : 0, len > 0 ? len + 2 : 0);
        script_end(&q);
    }
    script_source_close(s);
}

static struct end {
    const char *name;
    enum vt_replay_match match;
    uint32_t max_tokens, min_tokens;
    bool ignore_eos;
    uint32_t max, eos_at;
    int told;
} ends[] = {
    {"an EOS follows the answer", VT_MATCH_INDEX, 40, 0, false, 40, 3, -1},
    {"also by prefix", VT_MATCH_PREFIX, 40, 0, false, 40, 3, -1},
    {"not before min_tokens", VT_MATCH_PREFIX, 40, 9, false, 40, 8, -1},
    {"the limit comes first", VT_MATCH_PREFIX, 3, 0, false, 3, VT_NO_STOP, -1},
    {"random tokens follow where it is ignored", VT_MATCH_INDEX, 40, 0, true, 40,
     VT_NO_STOP, -1},
    {"but not by prefix", VT_MATCH_PREFIX, 40, 0, true, 3, VT_NO_STOP, WIRE_STOP},
};

static void answers_end(void **state)
{
    const struct end *e = *state;
    struct script_source *s =
        from_text("{\"prompt\":\"question\",\"answer\":\"yes\"}", ".jsonl", e->match);
    struct asked a;
    struct script q;

    say(&a, "r-0", "question");
    a.p.max_tokens = e->max_tokens;
    a.p.min_tokens = e->min_tokens;
    a.p.ignore_eos = e->ignore_eos;
    q = begin(s, &a);
    assert_int_equal(q.n_token, 3);
    assert_int_equal(q.max_tokens, e->max);
    assert_int_equal(q.eos_at, e->eos_at);
    assert_int_equal(q.finish, e->told);
    if (e->eos_at != VT_NO_STOP)
        assert_int_equal(script_token(&q, e->eos_at), EOS);
    script_end(&q);
    script_source_close(s);
}

static void matches_that_make_no_sense_are_refused(void **state)
{
    static const struct {
        const char *text;
        enum vt_replay_match match;
        const char *message;
    } rows[] = {
        {"{\"prompt\":\"p\",\"answer\":\"a\"}", VT_MATCH_ID,
         ": a dataset has no request ids: match by index or prefix"},
        {"{\"answer\":\"a\"}", VT_MATCH_PREFIX,
         ": no row has both a prompt and an answer to find it by"},
        {"{\"prompt\":\"a\"}", VT_MATCH_INDEX, ": no row has an answer: "},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct scratch f = written(rows[i].text, ".jsonl");
        int calls = 0;
        struct vt_play_config c = {.vocab_size = VOCAB,
                                   .engine.block_size = 4,
                                   .replay_tokens = f.path,
                                   .match = rows[i].match,
                                   .encode = encode,
                                   .encode_user = &calls};
        struct script_source *s;
        struct vt_err err;

        assert_int_equal(script_source_open(&s, &c, &err), VT_EINPUT);
        assert_memory_equal(err.msg, f.path, strlen(f.path));
        assert_memory_equal(err.msg + strlen(f.path), rows[i].message,
                            strlen(rows[i].message));
        unlink(f.path);
    }
}

int main(void)
{
    enum { FIXED = 6, N = VT_COUNT(forms), M = VT_COUNT(ends) };
    struct CMUnitTest tests[FIXED + N + M] = {
        cmocka_unit_test(bad_rows_are_named),
        cmocka_unit_test(ids_need_no_tokenizer),
        cmocka_unit_test(prompts_are_found_within_a_template),
        cmocka_unit_test(rows_are_found_by_number),
        cmocka_unit_test(runs_are_found_as_by_looking_everywhere),
        cmocka_unit_test(matches_that_make_no_sense_are_refused),
    };

    for (size_t i = 0; i < N; i++)
        tests[FIXED + i] = (struct CMUnitTest){.name = forms[i].name,
                                               .test_func = rows_are_read,
                                               .initial_state = &forms[i]};
    for (size_t i = 0; i < M; i++)
        tests[FIXED + N + i] = (struct CMUnitTest){
            .name = ends[i].name, .test_func = answers_end, .initial_state = &ends[i]};
    return cmocka_run_group_tests_name("dataset", tests, NULL, NULL);
}
