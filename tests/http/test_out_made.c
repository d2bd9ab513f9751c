/* From tokens to bytes: what vLLM's output processor, tool parser and servers made of
 * given tokens, for both lines; here by the detokenizer, the stops and the writers. */
#include "out_testing.h"

/* Names of calls in the order in which the text has them. */
static uint32_t name_calls(struct out_case *c, const struct reply *p,
                           struct reply_call *call)
{
    static const char before[] = "{\"name\": \"";
    uint32_t n = 0;

    for (const char *at = p->text; (at = strstr(at, "<tool_call>")); at++, n++) {
        const char *name = strstr(at, before);
        const char *end = name ? strchr(name + strlen(before), '"') : NULL;

        call[n].name = name && end
                           ? vt_arena_copy(&c->r.arena, name + strlen(before),
                                           (size_t)(end - name) - strlen(before))
                           : "get_weather";
        call[n].id = "chatcmpl-tool-0123456789abcdef";
    }
    return n > 0 ? n : 1;
}

static void make_reply(struct out_case *c, const struct reply_source *s,
                       struct reply *p)
{
    const struct vt_node *tokens = vt_get(c->node, "tokens");
    bool calls =
        c->r.n_tools > 0 && tokens->n > 0 && tokens->u.item[0].u.integer == 4094;
    struct reply_draft d = {.s = s, .r = &c->r, .n = tokens->n, .spells_call = calls};
    struct reply_call *call = vt_arena_alloc(&c->r.arena, 4 * sizeof(*call));
    uint32_t *id = vt_arena_alloc(&c->r.arena, (tokens->n + 1) * sizeof(*id));
    struct reply_stops *stops;
    struct vt_err err = {0};

    memcpy(id, ids_of(&c->r.arena, tokens), tokens->n * sizeof(*id));
    d.token = id;
    p->end =
        strcmp(str_of(c->node, "end", ""), "length") == 0 ? REPLY_LENGTH : REPLY_EOS;
    if (strstr(c->name, "cut_tag_open")) /* a tag's beginning, without its token */
        calls = d.spells_call = true;
    assert_int_equal(reply_stops_open(&stops, s, &c->r, &err), VT_OK);
    d.stops = stops;
    if (reply_text_of(p, &d, &err) != VT_OK ||
        (calls && reply_tools_find(p, &d, call, name_calls(c, p, call), &err) != VT_OK))
        fail_msg("%s", err.msg);
    reply_stops_close(stops);
}

static void write_stream(struct out_case *c, struct out_choice *one, struct vt_buf *b)
{
    const struct vt_node *groups = vt_get(c->node, "groups");
    uint32_t upto = 0, i = 0;

    assert_true(out_begin(&c->r, one));
    while (upto < one->reply->n) {
        upto += groups->kind == VT_LIST ? (uint32_t)groups->u.item[i++].u.integer : 1;
        out_tokens(b, &c->r, one, upto < one->reply->n ? upto : one->reply->n, one, 1);
    }
    out_done(b, &c->r, one, 1);
}

static bool check(struct out_case *c)
{
    bool same;
    const struct vt_token_facts *facts = vt_tokenizer_facts(c->context.tokenizer);
    struct reply_source s = {
        .c.tokenizer = c->context.tokenizer, .facts = facts, .token_bytes = 256};
    struct reply reply = {0};
    struct out_choice one = {.reply = &reply,
                             .cached_tokens = (uint32_t)int_of(c->node, "cached", 0)};
    struct vt_buf b = {0};

    make_reply(c, &s, &reply);
    if (c->r.stream)
        write_stream(c, &one, &b);
    else
        out_whole(&b, &c->r, &one, 1);
    assert_false(b.failed);
    same = is_same(c, &b);
    vt_buf_free(&b);
    return same;
}

static void tokens_become_the_bytes_of_vllm(void **state)
{
    (void)state;
    for_cases(VT_TEST_DIR "/cases/http/out-made.jsonl.gz", check);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_become_the_bytes_of_vllm),
    };

    return cmocka_run_group_tests_name("out_made", tests, NULL, NULL);
}
