"""The openai package, as its users call it."""
import asyncio
import base64
import json
import math
import struct

import jsonschema
import openai

from serving import MODEL_DIR, QUICK, ServeTest, main

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "unit": {"type": "string", "enum": ["celsius", "kelvin"]},
        "where": {"type": "object",
                  "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}},
                  "required": ["lat", "lon"], "additionalProperties": False},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
    },
    "required": ["city", "days", "unit", "where", "tags"],
    "additionalProperties": False,
}
CLOCK = {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]}
TOOLS = [{"type": "function", "function": {"name": name, "description": "d", "parameters": s}}
         for name, s in (("weather", WEATHER), ("clock", CLOCK))]
SCHEMAS = {"weather": WEATHER, "clock": CLOCK}
HELLO = [{"role": "user", "content": "Say something about blocks."}]
EXACT = {"ignore_eos": True}


class OpenAITest(ServeTest):
    def client(self, **more):
        return openai.OpenAI(base_url=self.url + "/v1", max_retries=0, timeout=30,
                             **{"api_key": "none", **more})

    def async_client(self, **more):
        return openai.AsyncOpenAI(base_url=self.url + "/v1", api_key="none", max_retries=0,
                                  timeout=60, **more)

    def setUp(self):
        self.openai = self.client()
        self.addCleanup(self.openai.close)

    def chat(self, **fields):
        return self.openai.chat.completions.create(
            **{"model": "tiny", "messages": HELLO, "max_tokens": 12, **fields})

    def complete(self, **fields):
        return self.openai.completions.create(
            **{"model": "tiny", "prompt": "one two three", "max_tokens": 12, **fields})


class Completions(OpenAITest):
    def test_a_completion_has_the_tokens_that_were_asked_for(self):
        r = self.complete()
        self.assertEqual((r.object, r.model, len(r.choices)), ("text_completion", "tiny", 1))
        self.assertTrue(r.id.startswith("cmpl-"), r.id)
        self.assertEqual(r.choices[0].finish_reason, "length")
        self.assertGreater(len(r.choices[0].text), 0)
        self.assertEqual(r.usage.completion_tokens, 12)
        self.assertEqual(r.usage.total_tokens, r.usage.prompt_tokens + 12)

    def test_a_streamed_one_says_the_same(self):
        whole = self.complete(temperature=0)
        chunks = list(self.complete(temperature=0, stream=True))
        self.assertEqual("".join(c.choices[0].text for c in chunks), whole.choices[0].text)
        self.assertEqual([c.choices[0].finish_reason for c in chunks],
                         [None] * (len(chunks) - 1) + ["length"])
        self.assertEqual(len({c.id for c in chunks}), 1)

    def test_without_a_limit_it_is_sixteen(self):
        self.assertEqual(self.openai.completions.create(
            model="tiny", prompt="one", extra_body=EXACT).usage.completion_tokens, 16)

    def test_many_prompts_and_choices(self):
        r = self.complete(prompt=["one", "two", "three"], n=2)
        self.assertEqual([c.index for c in r.choices], list(range(6)))
        self.assertEqual(r.usage.completion_tokens, 6 * 12)
        self.assertGreater(len({c.text for c in r.choices}), 3)

    def test_token_ids_are_a_prompt_too(self):
        r = self.complete(prompt=[11, 22, 33, 44], extra_body={"return_token_ids": True})
        self.assertEqual(r.usage.prompt_tokens, 4)
        self.assertEqual(r.choices[0].prompt_token_ids, [11, 22, 33, 44])
        self.assertEqual(len(r.choices[0].token_ids), 12)

    def test_log_probabilities(self):
        p = self.complete(logprobs=3, max_tokens=5).choices[0].logprobs
        self.assertEqual([len(p.tokens), len(p.token_logprobs), len(p.top_logprobs),
                          len(p.text_offset)], [5] * 4)
        self.assertTrue(all(x <= 0 for x in p.token_logprobs), p)
        for token, value, top in zip(p.tokens, p.token_logprobs, p.top_logprobs):
            self.assertIn(len(top), (3, 4))
            self.assertEqual(top[token], value)
            self.assertLessEqual(sum(map(math.exp, top.values())), 1.0001)

    def test_echo_begins_with_the_prompt(self):
        r = self.complete(echo=True, logprobs=1, max_tokens=4)
        c = r.choices[0]
        self.assertTrue(c.text.startswith("one two three"), c.text)
        self.assertEqual(len(c.logprobs.tokens), r.usage.prompt_tokens + 4)
        self.assertIsNone(c.logprobs.token_logprobs[0])

    def test_a_stop_string_ends_it_and_is_left_out(self):
        whole = self.complete(temperature=0, max_tokens=40).choices[0].text
        stop = whole[len(whole) // 2:len(whole) // 2 + 3]
        upto = whole[:whole.index(stop)]
        for stream in (False, True):
            with self.subTest(stream=stream):
                r = self.complete(temperature=0, max_tokens=40, stop=[stop, "never\u2603"],
                                  stream=stream)
                last = list(r)[-1] if stream else r
                c = last.choices[0]
                self.assertEqual((c.finish_reason, c.stop_reason), ("stop", stop))
                if not stream:
                    self.assertEqual(c.text, upto)
                    self.assertLess(r.usage.completion_tokens, 40)
        r = self.complete(temperature=0, max_tokens=40, stop=stop,
                          extra_body={"include_stop_str_in_output": True})
        self.assertEqual(r.choices[0].text, upto + stop)

    def test_a_stop_token_ends_it(self):
        ids = self.complete(temperature=0, max_tokens=20,
                            extra_body={"return_token_ids": True}).choices[0].token_ids
        r = self.complete(temperature=0, max_tokens=20, extra_body={"stop_token_ids": [ids[7]]})
        self.assertEqual((r.choices[0].finish_reason, r.choices[0].stop_reason),
                         ("stop", ids[7]))
        self.assertEqual(r.usage.completion_tokens, ids.index(ids[7]) + 1)

    def test_the_seed_decides(self):
        def text(**fields):
            return self.complete(temperature=0.8, **fields).choices[0].text
        self.assertEqual(text(seed=7), text(seed=7))
        self.assertNotEqual(text(seed=7), text(seed=8))
        self.assertGreater(len({text() for _ in range(4)}), 1)

    def test_usage_in_the_stream(self):
        chunks = list(self.complete(stream=True, stream_options={"include_usage": True}))
        self.assertEqual([c.usage for c in chunks[:-1]], [None] * (len(chunks) - 1))
        self.assertEqual((chunks[-1].choices, chunks[-1].usage.completion_tokens), ([], 12))
        chunks = list(self.complete(stream=True, extra_body={"stream_options": {
            "include_usage": True, "continuous_usage_stats": True}}))
        running = [c.usage.completion_tokens for c in chunks]
        self.assertEqual(running, sorted(running))
        self.assertEqual((running[0] >= 1, running[-1]), (True, 12))

    def test_min_tokens_and_ignore_eos(self):
        for _ in range(5):
            r = self.complete(max_tokens=600, extra_body={"min_tokens": 400})
            self.assertGreaterEqual(r.usage.completion_tokens, 400)
        self.assertEqual(self.complete(max_tokens=900, extra_body=EXACT)
                         .usage.completion_tokens, 900)


class Chat(OpenAITest):
    def test_a_chat(self):
        r = self.chat()
        m = r.choices[0].message
        self.assertEqual((r.object, m.role, r.choices[0].finish_reason, m.tool_calls),
                         ("chat.completion", "assistant", "length", None))
        self.assertEqual(r.usage.completion_tokens, 12)
        self.assertGreater(r.usage.prompt_tokens, 5)

    def test_a_streamed_one_says_the_same(self):
        whole = self.chat(temperature=0, max_completion_tokens=9).choices[0].message.content
        chunks = list(self.chat(temperature=0, max_completion_tokens=9, stream=True))
        first, *rest = chunks
        self.assertEqual((first.choices[0].delta.role, first.choices[0].delta.content),
                         ("assistant", ""))
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in rest), whole)
        self.assertEqual(chunks[-1].choices[0].finish_reason, "length")

    def test_two_choices_come_side_by_side(self):
        said = {0: "", 1: ""}
        for c in self.chat(n=2, stream=True, seed=3):
            said[c.choices[0].index] += c.choices[0].delta.content or ""
        whole = self.chat(n=2, seed=3)
        self.assertEqual(said, {c.index: c.message.content for c in whole.choices})
        self.assertNotEqual(said[0], said[1])
        self.assertEqual(whole.usage.completion_tokens, 24)

    def test_log_probabilities(self):
        r = self.chat(logprobs=True, top_logprobs=2, max_tokens=4)
        tokens = r.choices[0].logprobs.content
        self.assertEqual(len(tokens), 4)
        for t in tokens:
            self.assertLessEqual(t.logprob, 0)
            self.assertEqual(len(t.top_logprobs), 2)
        self.assertEqual(b"".join(bytes(t.bytes) for t in tokens).decode(errors="replace"),
                         r.choices[0].message.content)

    def test_without_a_limit_it_ends_by_itself(self):
        reasons, lengths = set(), set()
        for _ in range(6):
            r = self.openai.chat.completions.create(model="tiny", messages=HELLO)
            reasons.add(r.choices[0].finish_reason)
            lengths.add(r.usage.completion_tokens)
        self.assertIn("stop", reasons)
        self.assertGreater(len(lengths), 1)

    def test_content_may_come_in_parts(self):
        parts = [{"role": "system", "content": "Be brief."},
                 {"role": "user", "content": [{"type": "text", "text": "Say something "},
                                              {"type": "text", "text": "about blocks."}]},
                 {"role": "assistant", "content": "No."}, {"role": "user", "content": "Do."}]
        self.assertEqual(self.chat(messages=parts).usage.completion_tokens, 12)

    def test_the_stream_as_a_context(self):
        with self.openai.chat.completions.stream(model="tiny", messages=HELLO) as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_completion()
        self.assertIn("content.delta", kinds)
        self.assertGreater(len(final.choices[0].message.content), 0)


class Tools(OpenAITest):
    flags = (*QUICK, "--tool-call-rate", "0.6", "--seed", "4")

    def check(self, calls):
        for call in calls:
            self.assertTrue(call.id)
            self.assertEqual(call.type, "function")
            jsonschema.validate(json.loads(call.function.arguments), SCHEMAS[call.function.name])

    def test_required_calls_fit_their_schema(self):
        for seed in range(12):
            r = self.chat(tools=TOOLS, tool_choice="required", max_tokens=600, seed=seed)
            c = r.choices[0]
            self.assertEqual(c.finish_reason, "tool_calls", r)
            self.assertGreater(len(c.message.tool_calls), 0)
            self.check(c.message.tool_calls)

    def test_the_named_function_is_called(self):
        for seed in range(6):
            r = self.chat(tools=TOOLS, max_tokens=600, seed=seed,
                          tool_choice={"type": "function", "function": {"name": "clock"}})
            self.assertEqual([t.function.name for t in r.choices[0].message.tool_calls],
                             ["clock"])
            self.check(r.choices[0].message.tool_calls)

    def test_auto_calls_sometimes(self):
        called = 0
        for seed in range(20):
            c = self.chat(tools=TOOLS, tool_choice="auto", max_tokens=600, seed=seed).choices[0]
            self.check(c.message.tool_calls or [])
            self.assertEqual(c.finish_reason == "tool_calls", bool(c.message.tool_calls), c)
            called += bool(c.message.tool_calls)
        self.assertTrue(3 <= called <= 18, called)

    def test_none_never_does(self):
        for seed in range(5):
            c = self.chat(tools=TOOLS, tool_choice="none", seed=seed).choices[0]
            self.assertIsNone(c.message.tool_calls)

    def test_a_streamed_call_is_the_same_call(self):
        for choice in ("required", "auto", {"type": "function", "function": {"name": "weather"}}):
            for seed in range(4):
                with self.subTest(choice=choice, seed=seed):
                    ask = dict(tools=TOOLS, tool_choice=choice, max_tokens=600, seed=seed)
                    whole = self.chat(**ask).choices[0]
                    calls, finish = {}, None
                    for chunk in self.chat(**ask, stream=True):
                        finish = chunk.choices[0].finish_reason or finish
                        for t in chunk.choices[0].delta.tool_calls or []:
                            call = calls.setdefault(t.index, {"name": "", "arguments": ""})
                            call["name"] += t.function.name or ""
                            call["arguments"] += t.function.arguments or ""
                    want = [(t.function.name, json.loads(t.function.arguments))
                            for t in whole.message.tool_calls or []]
                    got = [(c["name"], json.loads(c["arguments"])) for c in calls.values()]
                    self.assertEqual(got, want)
                    self.assertEqual(finish, whole.finish_reason)

    def test_an_answer_that_knows_the_tools_result(self):
        r = self.chat(tools=TOOLS, tool_choice="required", max_tokens=600, seed=1)
        messages = HELLO + [r.choices[0].message.model_dump(exclude_none=True)] + [
            {"role": "tool", "tool_call_id": t.id, "content": "{\"ok\":true}"}
            for t in r.choices[0].message.tool_calls]
        again = self.chat(messages=messages, tools=TOOLS, tool_choice="none")
        self.assertEqual(again.usage.completion_tokens, 12)

    def test_answers_of_a_schema_fit_it(self):
        form = {"type": "json_schema",
                "json_schema": {"name": "weather", "schema": WEATHER, "strict": True}}
        for seed in range(10):
            r = self.chat(response_format=form, max_tokens=600, seed=seed)
            self.assertEqual(r.choices[0].finish_reason, "stop", r)
            jsonschema.validate(json.loads(r.choices[0].message.content), WEATHER)
        text = "".join(c.choices[0].delta.content or "" for c in self.chat(
            response_format=form, max_tokens=600, stream=True))
        jsonschema.validate(json.loads(text), WEATHER)

    def test_any_object(self):
        r = self.chat(response_format={"type": "json_object"}, max_tokens=600)
        self.assertIsInstance(json.loads(r.choices[0].message.content), dict)

    def test_choices_and_expressions(self):
        for outputs, good in (({"choice": ["yes", "no"]}, r"yes|no"),
                              ({"regex": "[a-c]{3}-[0-9]{2}"}, r"[a-c]{3}-[0-9]{2}")):
            for seed in range(4):
                r = self.complete(max_tokens=50, seed=seed,
                                  extra_body={"structured_outputs": outputs})
                self.assertRegex(r.choices[0].text, f"^({good})$")


class Others(OpenAITest):
    def test_embeddings_are_the_same_for_the_same_text(self):
        texts = ["one two", "three four", "one two"]
        r = self.openai.embeddings.create(model="tiny", input=texts)
        self.assertEqual([len(d.embedding) for d in r.data], [384] * 3)
        self.assertEqual(r.data[0].embedding, r.data[2].embedding)
        self.assertNotEqual(r.data[0].embedding, r.data[1].embedding)
        self.assertAlmostEqual(sum(x * x for x in r.data[0].embedding), 1, places=3)
        self.assertEqual(r.usage.total_tokens, r.usage.prompt_tokens)

    def test_embeddings_of_another_form(self):
        plain = self.openai.embeddings.create(model="tiny", input="one", encoding_format="float",
                                              dimensions=32).data[0].embedding
        text = self.openai.embeddings.create(model="tiny", input="one", encoding_format="base64",
                                             dimensions=32).data[0].embedding
        if isinstance(text, str):
            text = struct.unpack("<32f", base64.b64decode(text))
        self.assertEqual(len(plain), 32)
        for a, b in zip(plain, text):
            self.assertAlmostEqual(a, b, places=5)

    def test_a_response(self):
        r = self.openai.responses.create(model="tiny", input="hi", max_output_tokens=9)
        self.assertEqual((r.object, r.status, r.incomplete_details.reason),
                         ("response", "incomplete", "max_output_tokens"))
        self.assertGreater(len(r.output_text), 0)
        self.assertEqual(r.usage.output_tokens, 9)

    def test_a_streamed_response(self):
        events = list(self.openai.responses.create(
            model="tiny", input=[{"role": "user", "content": "hi"}], instructions="Be brief.",
            max_output_tokens=9, temperature=0, stream=True))
        kinds = [e.type for e in events]
        self.assertEqual(kinds[:2], ["response.created", "response.in_progress"])
        self.assertEqual(kinds[-1] in ("response.completed", "response.incomplete"), True, kinds)
        self.assertEqual([e.sequence_number for e in events], list(range(len(events))))
        said = "".join(e.delta for e in events if e.type == "response.output_text.delta")
        self.assertEqual(said, events[-1].response.output_text)

    def test_the_models(self):
        models = self.openai.models.list().data
        self.assertEqual([(m.id, m.owned_by, m.max_model_len, m.root) for m in models],
                         [("tiny", "vllm", 2048, MODEL_DIR)])

    def test_what_is_wrong_becomes_the_right_exception(self):
        cases = (
            (openai.NotFoundError, 404, dict(model="nope")),
            (openai.BadRequestError, 400, dict(max_tokens=-1)),
            (openai.BadRequestError, 400, dict(max_tokens=4000)),
            (openai.BadRequestError, 400, dict(messages=[])),
            (openai.BadRequestError, 400, dict(temperature=-1)),
            (openai.BadRequestError, 400, dict(tools=TOOLS, tool_choice={
                "type": "function", "function": {"name": "nobody"}})),
        )
        for kind, status, fields in cases:
            for stream in (False, True):
                with self.subTest(fields=fields, stream=stream):
                    with self.assertRaises(kind) as caught:
                        self.chat(**fields, stream=stream)
                    self.assertEqual(caught.exception.status_code, status)
                    self.assertEqual(caught.exception.body["code"], status)

    async def test_a_hundred_streams_at_once(self):
        async def one(client, i):
            n = 20 + i % 7
            tokens = 0
            stream = await client.completions.create(
                model="tiny", prompt=f"number {i}", max_tokens=n, stream=True,
                extra_body={**EXACT, "return_token_ids": True})
            async for chunk in stream:
                tokens += len(chunk.choices[0].token_ids or [])
            return tokens == n

        async with self.async_client() as client:
            done = await asyncio.gather(*(one(client, i) for i in range(100)))
        self.assertEqual(sum(done), 100)

    async def test_asynchronous_calls(self):
        async with self.async_client() as client:
            r, c, m = await asyncio.gather(
                client.chat.completions.create(model="tiny", messages=HELLO, max_tokens=7),
                client.completions.create(model="tiny", prompt="one", max_tokens=7),
                client.models.list())
            self.assertEqual((r.usage.completion_tokens, c.usage.completion_tokens,
                              m.data[0].id), (7, 7, "tiny"))
            text = ""
            async for chunk in await client.chat.completions.create(
                    model="tiny", messages=HELLO, max_tokens=7, stream=True):
                text += chunk.choices[0].delta.content or ""
            self.assertGreater(len(text), 0)


class Keys(OpenAITest):
    flags = (*QUICK, "--api-key", "first", "--api-key", "second")

    def test_a_key_must_be_right(self):
        for key in ("first", "second"):
            with self.client(api_key=key) as client:
                self.assertEqual(client.models.list().data[0].id, "tiny")
        for key in ("third", "firs", "firstt", "none"):
            with self.client(api_key=key) as client:
                for call in (client.models.list, lambda c=client: c.completions.create(
                        model="tiny", prompt="one", max_tokens=1)):
                    with self.assertRaises(openai.AuthenticationError) as caught:
                        call()
                    self.assertEqual(caught.exception.body, "Unauthorized")

    async def test_health_and_metrics_need_none(self):
        for path in ("/health", "/metrics", "/version", "/ping"):
            self.assertEqual((await self.http.get(path)).status, 200, path)


class BuiltIn(OpenAITest):
    """Without a model directory."""
    model = ("--served-model-name", "tiny", "--served-model-name", "alias")
    flags = QUICK

    def test_both_names_answer(self):
        for name in ("tiny", "alias"):
            self.assertEqual(self.chat(model=name).usage.completion_tokens, 12)
        self.assertEqual([m.id for m in self.openai.models.list().data], ["tiny", "alias"])

    def test_text_is_counted_as_it_is_made(self):
        r = self.complete(max_tokens=30, extra_body={"return_token_ids": True})
        self.assertEqual(len(r.choices[0].token_ids), 30)
        chunks = list(self.complete(max_tokens=30, stream=True))
        self.assertGreaterEqual(len(chunks), 20)


class Echo(OpenAITest):
    flags = (*QUICK, "--mode", "echo")

    def test_it_says_what_it_was_told(self):
        self.assertEqual(self.complete(prompt="one two three four").choices[0].text,
                         "one two three four")
        r = self.chat(max_tokens=100)
        self.assertEqual((r.choices[0].message.content, r.choices[0].finish_reason),
                         ("Say something about blocks.", "stop"))


class Dataset(OpenAITest):
    @classmethod
    def setUpClass(cls):
        with open("answers.jsonl", "w") as f:
            f.write(json.dumps({"prompt": "What is it?", "completion": "It is a test."}) + "\n")
            f.write(json.dumps({"prompt": "And now?", "completion": "Nothing more."}) + "\n")
        cls.flags = (*QUICK, "--mode", "dataset", "--dataset-path", "answers.jsonl")
        super().setUpClass()

    def test_a_known_prompt_gets_its_answer(self):
        r = self.complete(prompt="What is it?", max_tokens=100)
        self.assertEqual((r.choices[0].text, r.choices[0].finish_reason),
                         ("It is a test.", "stop"))
        r = self.chat(messages=[{"role": "user", "content": "And now?"}], max_tokens=100)
        self.assertEqual(r.choices[0].message.content, "Nothing more.")


if __name__ == "__main__":
    main()
