/* Every recorded 200 of completions, chat, responses and messages, byte for byte. */
#include "out_testing.h"

/* What the recording says of a choice: how many tokens, and the text after each. */
static void read_reply(struct out_case *c, const struct vt_node *n, struct reply *p)
{
    const struct vt_node *reason = vt_get(n, "stop_reason");
    const char *end = str_of(n, "end", "");
    struct vt_buf b = {0};

    p->token = ids_of(&c->r.arena, vt_get(n, "tokens"));
    p->n = vt_get(n, "tokens")->n;
    p->text = str_of(n, "text", "");
    p->text_len = vt_get(n, "text")->n;
    p->text_end = ids_of(&c->r.arena, vt_get(n, "ends"));
    p->end = strcmp(end, "length") == 0 ? REPLY_LENGTH : REPLY_EOS;
    if (reason->kind == VT_STR)
        vt_buf_json_str(&b, reason->u.str, reason->n);
    else if (reason->kind == VT_INT)
        vt_buf_i64(&b, reason->u.integer);
    else
        vt_buf_str(&b, "null");
    p->stop_reason = vt_arena_copy(&c->r.arena, b.data, b.len);
    if (reason->kind == VT_STR)
        p->end = REPLY_STOP_STRING;
    vt_buf_free(&b);
}

static void write_stream(struct out_case *c, struct out_choice *all, uint32_t n,
                         struct vt_buf *b)
{
    const struct vt_node *steps = vt_get(c->node, "steps");

    for (uint32_t i = 0; i < n; i++)
        assert_true(out_begin(&c->r, &all[i]));
    for (uint32_t i = 0; i < steps->n; i++) {
        const struct vt_node *one = steps->u.item[i].u.item;
        int64_t choice = one[0].u.integer;

        out_tokens(b, &c->r, &all[choice], (uint32_t)one[1].u.integer, all, n);
    }
    if (!flag(c->node, "open"))
        out_done(b, &c->r, all, n);
}

/* A stream that was left is not over: there is more to come than was recorded. */
static bool check(struct out_case *c)
{
    bool same;
    const struct vt_node *list = vt_get(c->node, "choices");
    struct out_choice all[MOST_CHOICES] = {0};
    struct reply reply[MOST_CHOICES] = {0};
    struct vt_buf b = {0};

    assert_in_range(list->n, 1, MOST_CHOICES);
    for (uint32_t i = 0; i < list->n; i++) {
        read_reply(c, &list->u.item[i], &reply[i]);
        all[i].reply = &reply[i];
        all[i].index = i;
        all[i].prompt = i / c->r.n;
        if (flag(c->node, "open"))
            reply[i].n++;
    }
    if (c->r.stream)
        write_stream(c, all, list->n, &b);
    else
        out_whole(&b, &c->r, all, list->n);
    assert_false(b.failed);
    same = is_same(c, &b);
    vt_buf_free(&b);
    return same;
}

static void recorded_bodies_are_written_again(void **state)
{
    (void)state;
    for_cases(VT_TEST_DIR "/cases/http/out-recorded.jsonl.gz", check);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_bodies_are_written_again),
    };

    return cmocka_run_group_tests_name("out_recorded", tests, NULL, NULL);
}
