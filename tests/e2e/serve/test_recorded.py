"""Requests that real vLLMs were sent, sent to serve: status, content type, keys and their
order, types, errors word for word, and the kinds of events of a stream are vLLM's.

tests/cases/http/e2e-VERSION.jsonl.gz holds them; shapes.py made it."""
import gzip
import json
import os

from serving import QUICK, ROOT, ServeTest, exchange, main
from shapes import answer

# What differs, and why.
DEVIATIONS = {
    "server_info": "describes vLLM's own configuration; ours has its own",
    "util_collective_rpc": "no workers, hence no calls to them",
    "util_collective_rpc_bad": "no workers, hence no calls to them",
    "inference_generate": "tokens in and out are not served",
}
# Where an answer of a form ends is the model's affair; when it does, 0.32 tells which token
# of generation_config.json it was, and we always say EOS.
FORMS = {"chat_json_schema", "comp_structured_choice", "comp_structured_regex"}
STOPS = {"comp_stop_string", "comp_stop_string_stream", "comp_stop_include",
         "comp_stop_token_ids"}


def without(found, *keys):
    """Some values blurred."""
    if isinstance(found, list):
        if len(found) == 2 and found[0] in keys:
            return [found[0], "any"]
        return [without(x, *keys) for x in found]
    if isinstance(found, dict):
        return {k: without(v, *keys) for k, v in found.items()}
    return found


class Recorded:
    deviations = DEVIATIONS

    @classmethod
    def setUpClass(cls):
        cls.flags = (*QUICK, "--vllm-version", cls.version)
        path = os.path.join(ROOT, f"tests/cases/http/e2e-{cls.version}.jsonl.gz")
        with gzip.open(path, "rt") as f:
            cls.cases = [json.loads(line) for line in f]
        super().setUpClass()

    async def send(self, case):
        body = case["request"]
        data = b"" if body is None else body.encode() if isinstance(body, str) \
            else json.dumps(body).encode()
        headers = {k.title(): v for k, v in case["headers"].items()}
        x = await exchange(self.port, case["method"], case["path"], data,
                           {"Content-Type": "application/json", **headers})
        try:
            await x.head()
            text = ""
            async for piece in x.pieces():
                text += piece.decode()
                if case["cut"] and text.count("\n\n") >= 6:
                    break
            return x, text
        finally:
            x.close()

    async def own_stop(self, case):
        """The model's words are made up: a stop that it will come to is asked for first."""
        ask = {k: v for k, v in case["request"].items()
               if k not in ("stop", "stop_token_ids", "stream")}
        choice = (await self.http.post(case["path"], {**ask, "return_token_ids": True})).choice
        late = self.version != "0.26.0"  # as in the recording
        if "stop_token_ids" in case["request"]:
            return {"stop_token_ids": [choice["token_ids"][5]]}
        text = choice["text"]
        at = len(text) // 2 if late else 0
        return {"stop": [text[at:at + 4]]}

    async def one(self, case):
        expected = case["answer"]
        if case["name"] in STOPS:
            case["request"].update(await self.own_stop(case))
        x, text = await self.send(case)
        self.assertEqual(x.status, case["status"], text)
        kind = x.headers.get("content-type")
        self.assertEqual((kind, x.headers.get("allow")), (case["type"], case["allow"]))
        if case["cut"]:
            return
        got = answer(x.status, kind, text)
        if case["name"] in STOPS:
            got, expected = (without(v, "completion_tokens") for v in (got, expected))
        if case["name"] in FORMS:
            got, expected = (without(v, "completion_tokens", "finish_reason", "stop_reason")
                             for v in (got, expected))
        self.assertEqual(got, expected)

    async def test_answers_are_of_vllms_shape(self):
        for case in self.cases:
            if case["name"] in self.deviations or case["status"] is None:
                continue
            with self.subTest(case["name"]):
                await self.one(case)
        await self.idle()

    async def test_what_deviates_still_answers(self):
        for case in self.cases:
            if case["name"] in self.deviations:
                with self.subTest(case["name"]):
                    x, text = await self.send(case)
                    self.assertTrue(text)
                    self.assertLess(x.status, 600)


class Version26(Recorded, ServeTest):
    version = "0.26.0"


class Version32(Recorded, ServeTest):
    version = "0.32.0"


if __name__ == "__main__":
    main()
