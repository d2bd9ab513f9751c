/* What is wrong with a file is said in one line, and where. */
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"

#define BYTES    ",\"pre_tokenizer\":{\"type\":\"ByteLevel\"}"
#define SMALL    "\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}"
#define WITH(x)  "{" SMALL BYTES "," x "}"
#define MODEL(x) "{\"model\":{" x "}" BYTES "}"

static struct row {
    const char *name, *json, *want;
} rows[] = {
    {"nothing", "", "tokenizer.json: line 1: unexpected end of text"},
    {"no JSON", "{\n]", "tokenizer.json: line 2: expected a key in quotes, not ']'"},
    {"not a map", "[]", "tokenizer.json: not a tokenizer.json: it has no 'model'"},
    {"no model", "{}", "tokenizer.json: not a tokenizer.json: it has no 'model'"},
    {"another model", MODEL("\"type\":\"Unigram\",\"vocab\":[]"),
     "tokenizer.json: line 1: type 'Unigram' of model is not supported"},
    {"no vocabulary", MODEL("\"merges\":[]"),
     "tokenizer.json: the model has no map 'vocab'"},
    {"no merges", MODEL("\"type\":\"BPE\",\"vocab\":{}"),
     "tokenizer.json: the model has no list 'merges' of at most 4194304"},
    {"an id that is none", MODEL("\"vocab\":{\"a\":-1},\"merges\":[]"),
     "tokenizer.json: line 1: the id of token 'a' is not one from 0 to 2097151"},
    {"an id beyond all tables", MODEL("\"vocab\":{\"a\":4000000000},\"merges\":[]"),
     "tokenizer.json: line 1: the id of token 'a' is not one from 0 to 2097151"},
    {"an id of two tokens", MODEL("\"vocab\":{\"a\":1,\n\"b\":1},\"merges\":[]"),
     "tokenizer.json: line 2: id 1 belongs to two tokens, 'a' and 'b'"},
    {"a token of two ids", MODEL("\"vocab\":{\"a\":1,\n\"a\":2},\"merges\":[]"),
     "tokenizer.json: line 2: key 'a' appears twice"},
    {"a merge of one", MODEL("\"vocab\":{\"a\":1},\"merges\":[\n\"a\"]"),
     "tokenizer.json: line 2: a merge is not two tokens"},
    {"a merge of three", MODEL("\"vocab\":{\"a\":1},\"merges\":[[\"a\",\"a\",\"a\"]]"),
     "tokenizer.json: line 1: a merge is not two tokens"},
    {"a merge of numbers", MODEL("\"vocab\":{\"a\":1},\"merges\":[7]"),
     "tokenizer.json: line 1: a merge is not two tokens"},
    {"a merge of strangers", MODEL("\"vocab\":{\"a\":1},\"merges\":[\"a x\"]"),
     "tokenizer.json: line 1: a merge names 'x', which is no token"},
    {"a merge into a stranger", MODEL("\"vocab\":{\"a\":1},\"merges\":[\"a a\"]"),
     "tokenizer.json: line 1: a merge names 'aa', which is no token"},
    {"dropout", MODEL("\"dropout\":0.1,\"vocab\":{},\"merges\":[]"),
     "tokenizer.json: line 1: 'dropout' of the model is not supported"},
    {"byte fallback", MODEL("\"byte_fallback\":true,\"vocab\":{},\"merges\":[]"),
     "tokenizer.json: line 1: 'byte_fallback' of the model is not supported"},
    {"an unknown token that is none",
     MODEL("\"unk_token\":\"?\",\"vocab\":{},\"merges\":[]"),
     "tokenizer.json: line 1: unk_token '?' is no token"},
    {"another normalizer", WITH("\"normalizer\":{\"type\":\"NFKC\"}"),
     "tokenizer.json: line 1: type 'NFKC' of normalizer is not supported"},
    {"a sequence without members", WITH("\"normalizer\":{\"type\":\"Sequence\"}"),
     "tokenizer.json: line 1: a Sequence has no list 'normalizers'"},
    {"no pre-tokenizer", "{" SMALL "}",
     "tokenizer.json: pre_tokenizer has no ByteLevel step: only byte-level BPE is "
     "supported"},
    {"another pre-tokenizer", "{" SMALL ",\"pre_tokenizer\":{\"type\":\"Metaspace\"}}",
     "tokenizer.json: line 1: type 'Metaspace' of pre_tokenizer is not supported"},
    {"a step behind ByteLevel",
     "{" SMALL ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
     "\"ByteLevel\"},{\"type\":\"Digits\"}]}}",
     "tokenizer.json: line 1: pre_tokenizer has more than 16 steps, or one behind "
     "ByteLevel"},
    {"a pattern that is none",
     "{" SMALL ",\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\","
     "\"pattern\":{\"Regex\":\"(\"}}}",
     "tokenizer.json: line 1: pattern: missing closing parenthesis (near byte 1)"},
    {"another behavior",
     "{" SMALL ",\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Odd\"}}",
     "tokenizer.json: line 1: behavior 'Odd' is not known"},
    {"another post-processor", WITH("\"post_processor\":{\"type\":\"BertProcessing\"}"),
     "tokenizer.json: line 1: type 'BertProcessing' of post_processor is not "
     "supported"},
    {"a template of nothing",
     WITH("\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}"),
     "tokenizer.json: line 1: post_processor: no sequence, or too many special tokens"},
    {"another decoder", WITH("\"decoder\":{\"type\":\"WordPiece\"}"),
     "tokenizer.json: line 1: type 'WordPiece' of decoder is not supported"},
    {"an added token without content", WITH("\"added_tokens\":[{\"id\":3}]"),
     "tokenizer.json: line 1: an added token has no 'content'"},
    {"an added token twice",
     WITH("\"added_tokens\":[{\"content\":\"x\"},{\"content\":\"x\"}]"),
     "tokenizer.json: added token 'x' appears twice"},
    {"an added token on another's id",
     MODEL("\"vocab\":{\"a\":1},\"merges\":[]},\"added_tokens\":[{\"content\":\"x\"}],"
           "\"x\":{"),
     "tokenizer.json: line 1: id 1 belongs to two tokens, 'a' and 'x'"},
};

static void refuses(void **state)
{
    const struct row *r = *state;
    struct vt_tokenizer_texts texts = {.tokenizer = r->json,
                                       .tokenizer_len = strlen(r->json)};
    struct vt_tokenizer *t = (void *)&texts;
    struct vt_err err = {0};

    assert_int_equal(vt_tokenizer_from(&t, &texts, &err), VT_EINPUT);
    assert_null(t);
    assert_string_equal(err.msg, r->want);
}

static void facts_of_a_model_directory(void **state)
{
    const struct vt_token_facts *f;
    struct vt_tokenizer *t;
    struct vt_err err;
    uint32_t id = 0;
    size_t len;

    (void)state;
    assert_int_equal(vt_tokenizer_open(&t, VT_TEST_DIR "/cases/tiny-qwen3/", &err),
                     VT_OK);
    f = vt_tokenizer_facts(t);
    assert_int_equal(f->vocab_size, 4096);
    assert_int_equal(f->n_special, 3);
    assert_int_equal(f->special[0], 4089);
    assert_int_equal(f->special[2], 4091);
    assert_int_equal(f->bos, VT_NO_TOKEN);
    assert_int_equal(f->eos, 4091);
    assert_int_equal(f->pad, 4089);
    assert_int_equal(f->n_stop, 2);
    assert_int_equal(f->stop[0], 4091);
    assert_int_equal(f->stop[1], 4089);
    assert_string_equal(f->chat, "chatml");
    assert_true(vt_tokenizer_id(t, "<|im_end|>", 10, &id));
    assert_int_equal(id, 4091);
    assert_false(vt_tokenizer_id(t, "<|no|>", 6, &id));
    assert_string_equal(vt_tokenizer_token(t, 4092, &len), "<think>");
    assert_int_equal(len, 7);
    assert_null(vt_tokenizer_token(t, 4096, NULL));
    vt_tokenizer_close(t);
}

static void files_beside_are_optional(void **state)
{
    const struct vt_token_facts *f;
    struct vt_tokenizer *t;
    struct vt_err err;

    (void)state;
    assert_int_equal(
        vt_tokenizer_open(&t, VT_TEST_DIR "/cases/tokenizer/gpt2.json", &err), VT_OK);
    f = vt_tokenizer_facts(t);
    assert_int_equal(f->eos, VT_NO_TOKEN);
    assert_int_equal(f->n_stop, 0);
    assert_null(f->chat);
    vt_tokenizer_close(t);
}

static void write_text(const char *dir, const char *name, const char *text)
{
    char path[256];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (!text) {
        unlink(path);
        return;
    }
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void a_file_that_cannot_be_read_is_named(void **state)
{
    char dir[] = "/tmp/vt_test_load.XXXXXX", want[256];
    struct vt_tokenizer *t;
    struct vt_err err;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(vt_tokenizer_open(&t, dir, &err), VT_EINPUT);
    snprintf(want, sizeof(want), "%s: no tokenizer.json in this directory", dir);
    assert_string_equal(err.msg, want);
    assert_null(t);
    assert_int_not_equal(vt_tokenizer_open(&t, "/nonexistent/x.json", &err), VT_OK);
    assert_non_null(strstr(err.msg, "/nonexistent/x.json"));

    write_text(dir, "tokenizer.json", "{" SMALL BYTES "}");
    write_text(dir, "generation_config.json", "{\"eos_token_id\": [1, \"x\"]}");
    assert_int_equal(vt_tokenizer_open(&t, dir, &err), VT_EINPUT);
    snprintf(want, sizeof(want), "%s: line 1: field 'eos_token_id' is not an id", dir);
    assert_string_equal(err.msg, want);
    write_text(dir, "generation_config.json", "{\"eos_token_id\": 1}");
    write_text(dir, "tokenizer_config.json",
               "{\"eos_token\": {\"content\": \"ab\"}, \"chat_template\": \"x\"}");
    write_text(dir, "chat_template.jinja",
               "{{ '<|im_start|>' + message.role + '\\n' + message.content + "
               "'<|im_end|>\\n' }}");
    assert_int_equal(vt_tokenizer_open(&t, dir, &err), VT_OK);
    assert_int_equal(vt_tokenizer_facts(t)->eos, 2);
    assert_int_equal(vt_tokenizer_facts(t)->n_stop, 2);
    assert_string_equal(vt_tokenizer_facts(t)->chat, "chatml");
    vt_tokenizer_close(t);
    write_text(dir, "tokenizer.json", NULL);
    write_text(dir, "generation_config.json", NULL);
    write_text(dir, "tokenizer_config.json", NULL);
    write_text(dir, "chat_template.jinja", NULL);
    rmdir(dir);
}

int main(void)
{
    struct CMUnitTest tests[VT_COUNT(rows) + 3] = {
        cmocka_unit_test(facts_of_a_model_directory),
        cmocka_unit_test(files_beside_are_optional),
        cmocka_unit_test(a_file_that_cannot_be_read_is_named),
    };

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i + 3] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = refuses, .initial_state = &rows[i]};
    return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
