/* Step logs read back, and every line of a file on trial. */
#include "fixture.h"

#include <unistd.h>

static int steps_from(struct vt_steps *s, const char *text, struct vt_err *err)
{
    struct vt_lines *lines;
    int rc = vt_lines_from(&lines, "t", text, strlen(text), err);

    assert_int_equal(rc, VT_OK);
    rc = trace_read_steps(s, lines, err);
    vt_lines_close(lines);
    return rc;
}

static void a_capture_is_read(void **state)
{
    struct vt_steps s;
    struct vt_err err = {0};
    uint64_t prompt_tokens = 0;

    (void)state;
    assert_int_equal(vt_steps_load(&s, DATA("closed-c2.steps.jsonl.gz"), &err), VT_OK);
    assert_int_equal(s.n, 1136);
    assert_int_equal(s.step[0].step, 5398);
    for (size_t i = 0; i < s.n; i++) {
        assert_true(s.step[i].sched_ns <= s.step[i].sched_end_ns);
        assert_true(s.step[i].out_ns <= s.step[i].done_ns);
        for (uint32_t k = 0; k < s.step[i].n_prefill; k++)
            prompt_tokens += s.step[i].prefill[k].tokens;
    }
    assert_int_equal(s.n_prefill, 14);
    assert_int_equal(prompt_tokens, 8017);
    vt_steps_free(&s);
}

/* What vt_steps_write() writes reads back equal, and so does what is then written. */
static void writing_and_reading_agree(void **state)
{
    struct vt_steps s, again;
    struct vt_buf b = {0}, twice = {0};
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_steps_load(&s, DATA("closed-c2.steps.jsonl.gz"), &err), VT_OK);
    for (size_t i = 0; i < s.n; i++)
        vt_steps_write(&b, &s.step[i]);
    assert_int_equal(steps_from(&again, b.data, &err), VT_OK);
    assert_int_equal(again.n, s.n);
    for (size_t i = 0; i < again.n; i++)
        vt_steps_write(&twice, &again.step[i]);
    assert_string_equal(b.data, twice.data);
    vt_buf_free(&b);
    vt_buf_free(&twice);
    vt_steps_free(&s);
    vt_steps_free(&again);
}

static void little_is_needed_and_odd_names_are_kept(void **state)
{
    struct vt_steps s;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(
        steps_from(&s,
                   "{\"step\":7,\"sched_ms\":1.5,\"out_ms\":2,\"more\":{}}\n\n"
                   "{\"step\":9,\"sched_ms\":2,\"sched_end_ms\":2.5,\"out_ms\":3,"
                   "\"prefill\":[[\"?\",1,2,3]],\"preempted\":[\"K\",\"\"],"
                   "\"kv_usage\":null}",
                   &err),
        VT_OK);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.step[0].sched_end_ns, 1500000);
    assert_int_equal(s.step[0].done_ns, 2 * VT_MS);
    assert_string_equal(s.step[1].prefill[0].id, "?");
    assert_int_equal(s.step[1].prefill[0].prompt_tokens, 3);
    assert_int_equal(s.step[1].n_preempted, 2);
    assert_string_equal(s.step[1].preempted[0], "K");
    assert_int_equal(s.n_preempted, 2);
    assert_string_equal(s.source, "t");
    vt_steps_free(&s);
}

/* ---- refusals --------------------------------------------------------- */

#define OK_STEP "\"step\":1,\"sched_ms\":1,\"out_ms\":2"

static struct fixture_bad bads[] = {
    {"nothing", "", "t: there are no steps"},
    {"no number", "{\"sched_ms\":1,\"out_ms\":2}",
     "t: line 1: field 'step' is missing"},
    {"no schedule time", "{\"step\":1,\"out_ms\":2}",
     "t: line 1: field 'sched_ms' is missing"},
    {"no result time", "{\"step\":1,\"sched_ms\":2}",
     "t: line 1: field 'out_ms' is missing"},
    {"a time before zero", "{\"step\":1,\"sched_ms\":-2,\"out_ms\":1}",
     "t: line 1: field 'sched_ms' must be from 0 to 1000000000000, not -2"},
    {"no JSON on the second line", "{" OK_STEP "}\n{\"step\"",
     "t: line 2: the file ends in the middle of this line"},
    {"a list", "[1]\n", "t: line 1: not a JSON object"},
    {"prompts that are no list", "{" OK_STEP ",\"prefill\":3}",
     "t: line 1: field 'prefill' is not a list"},
    {"a prompt without its length", "{" OK_STEP ",\"prefill\":[[\"a\",0,1]]}",
     "t: line 1: field 'prefill' must hold [id, computed, tokens, prompt_tokens]"},
    {"a preempted number", "{" OK_STEP ",\"preempted\":[3]}",
     "t: line 1: field 'preempted' must hold strings"},
    {"more than all blocks", "{" OK_STEP ",\"kv_usage\":1.5}",
     "t: line 1: field 'kv_usage' must be from 0 to 1, not 1.5"},
};

static void is_refused(void **state)
{
    const struct fixture_bad *bad = *state;
    struct vt_steps s;
    struct vt_err err = {0};

    assert_int_equal(steps_from(&s, bad->text, &err), VT_EINPUT);
    assert_string_equal(err.msg, bad->message);
    assert_null(s.step);
}

/* ---- checks of whole files -------------------------------------------- */

struct heard {
    struct vt_buf b;
};

static void hear(void *user, const char *message)
{
    struct heard *h = user;

    vt_buf_printf(&h->b, "%s\n", message);
}

static void write_text(const char *path, const char *text)
{
    struct vt_out *o;
    struct vt_err err = {0};

    assert_int_equal(vt_out_open(&o, path, &err), VT_OK);
    assert_int_equal(vt_out_write(o, text, strlen(text), &err), VT_OK);
    assert_int_equal(vt_out_commit(o, &err), VT_OK);
}

static void every_bad_step_is_told(void **state)
{
    static const char path[] = "bad.steps.jsonl";
    struct heard h = {0};
    struct vt_check c = {.tell = hear, .user = &h};
    struct vt_err err = {0};

    (void)state;
    write_text(path, "{\"step\":1,\"sched_ms\":1,\"out_ms\":2}\n"
                     "{\"step\":2,\"sched_ms\":3,\"out_ms\":2}\n"
                     "{\"step\":2,\"sched_ms\":3,\"out_ms\":4}\n"
                     "{\"step\":3}\n"
                     "{\"step\":4,\"sched_ms\":2,\"out_ms\":5}\n");
    assert_int_equal(vt_check_steps(&c, path, &err), VT_OK);
    assert_int_equal(c.lines, 5);
    assert_int_equal(c.bad, 4);
    assert_string_equal(h.b.data,
                        "line 2: sched_ms, sched_end_ms, out_ms and done_ms do not run "
                        "forward\n"
                        "line 3: step 2 after step 2\n"
                        "line 4: field 'sched_ms' is missing\n"
                        "line 5: times go back behind the step before\n");
    vt_buf_free(&h.b);
    unlink(path);
}

static void every_bad_request_is_told(void **state)
{
    static const char path[] = "bad.trace.jsonl";
    struct heard h = {0};
    struct vt_check c = {.tell = hear, .user = &h};
    struct vt_err err = {0};

    (void)state;
    write_text(path, "{\"meta\":{}}\n{\"prompt_tokens\":0,\"output_tokens\":1}\n"
                     "{\"prompt_tokens\":1,\"output_tokens\":1}\n{]\n");
    assert_int_equal(vt_check_trace(&c, path, &err), VT_OK);
    assert_int_equal(c.lines, 4);
    assert_int_equal(c.bad, 2);
    assert_non_null(strstr(h.b.data, "line 2: field 'prompt_tokens' must be from 1"));
    assert_non_null(strstr(h.b.data, "line 4: "));
    vt_buf_clear(&h.b);
    write_text(path, "{\"id\":\"a\",\"prompt_tokens\":1,\"output_tokens\":1}\n"
                     "{\"id\":\"a\",\"prompt_tokens\":1,\"output_tokens\":1}\n");
    assert_int_equal(vt_check_trace(&c, path, &err), VT_OK);
    assert_int_equal(c.bad, 1); /* each line is fine by itself */
    assert_non_null(strstr(h.b.data, "line 2: id 'a' is used twice"));
    vt_buf_free(&h.b);
    unlink(path);
}

static void captures_pass(void **state)
{
    struct vt_check c = {0};
    struct vt_err err = {0};
    enum vt_file kind;

    (void)state;
    assert_int_equal(vt_check_steps(&c, DATA("closed-c2.steps.jsonl.gz"), &err), VT_OK);
    assert_int_equal(c.bad, 0);
    assert_int_equal(vt_check_trace(&c, DATA("multiturn.trace.jsonl.gz"), &err), VT_OK);
    assert_int_equal(c.bad, 0);
    assert_int_equal(vt_file_kind(DATA("closed-c2.steps.jsonl.gz"), &kind, &err),
                     VT_OK);
    assert_int_equal(kind, VT_FILE_STEPS);
    assert_int_equal(vt_file_kind(DATA("closed.trace.jsonl.gz"), &kind, &err), VT_OK);
    assert_int_equal(kind, VT_FILE_TRACE);
    assert_int_equal(vt_file_kind(DATA("azure.csv"), &kind, &err), VT_OK);
    assert_int_equal(kind, VT_FILE_FOREIGN);
    assert_int_equal(vt_file_kind(DATA("empirical.yaml"), &kind, &err), VT_OK);
    assert_int_equal(kind, VT_FILE_OTHER);
}

int main(void)
{
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(a_capture_is_read),
        cmocka_unit_test(writing_and_reading_agree),
        cmocka_unit_test(little_is_needed_and_odd_names_are_kept),
        cmocka_unit_test(every_bad_step_is_told),
        cmocka_unit_test(every_bad_request_is_told),
        cmocka_unit_test(captures_pass),
    };

    return fixture_run("steps", plain, VT_COUNT(plain), is_refused, bads,
                       VT_COUNT(bads));
}
