"""What strangers may ask for at once: limits, what happens beyond them, and that others go on
meanwhile."""
import asyncio
import json
import time

from serving import QUICK, Answer, ServeTest, exchange, main, until

JSON = {"Content-Type": "application/json"}
SLOW = ("--model", "linear:base=50000")  # every step takes 50 ms
MANY = 2000  # choices: more than are dealt with in one go


async def answer(x):
    await x.head()
    return Answer(x.status, x.headers, b"".join([p async for p in x.pieces()]))


class Choices(ServeTest):
    flags = (*QUICK, "--max-choices", str(MANY))

    async def error(self, path, body):
        a = await self.http.post(path, {"model": "tiny", **body})
        return a.status, a.json["error"]["message"]

    async def test_prompts_times_n_are_limited(self):
        status, text = await self.error("/v1/completions", {"prompt": ["x"] * 64, "n": 16384})
        self.assertEqual((status, text), (
            400, f"64 prompts with n=16384 ask for 1048576 choices; this server makes at most "
                 f"{MANY} for a request (--max-choices)."))

    async def test_n_alone_as_in_vllm(self):
        self.assertEqual(await self.error("/v1/completions", {"prompt": "x", "n": 16385}), (
            400, "n must be at most 16384, got 16385. To increase this limit, set the "
                 "VLLM_MAX_N_SEQUENCES environment variable."))

    async def test_inputs_of_embeddings_are_limited_too(self):
        status, text = await self.error("/v1/embeddings", {"input": ["x"] * (MANY + 1)})
        self.assertEqual(status, 400)
        self.assertIn(f"{MANY + 1} prompts", text)
        a = await self.http.post("/v1/embeddings", {"model": "tiny", "input": ["x"] * MANY})
        self.assertEqual((a.status, len(a.json["data"])), (200, MANY))

    async def test_as_many_as_allowed_are_all_answered(self):
        a = await self.http.post("/v1/completions", {
            "model": "tiny", "prompt": ["x"] * 20, "n": MANY // 20, "max_tokens": 2,
            "ignore_eos": True})
        self.assertEqual(a.status, 200)
        self.assertEqual([c["index"] for c in a.json["choices"]], list(range(MANY)))
        self.assertEqual(a.json["usage"]["completion_tokens"], 2 * MANY)

    async def test_and_streamed(self):
        for path, body in (("/v1/completions", {"prompt": "x"}),
                           ("/v1/chat/completions",
                            {"messages": [{"role": "user", "content": "x"}]})):
            a = await self.http.post(path, {"model": "tiny", "n": MANY, "max_tokens": 2,
                                            "ignore_eos": True, "stream": True, **body})
            ends, firsts = set(), 0
            for event in a.body.decode().split("\n\n"):
                if event.startswith("data: {"):
                    for c in json.loads(event[6:])["choices"]:
                        firsts += c.get("delta", {}).get("role") == "assistant"
                        if c["finish_reason"]:
                            ends.add(c["index"])
            self.assertEqual(len(ends), MANY)
            self.assertEqual(firsts, MANY if "chat" in path else 0)


    async def test_log_probabilities_of_one_answer_are_limited(self):
        status, text = await self.error("/v1/completions", {
            "prompt": "x", "n": 100, "max_tokens": 1000, "logprobs": 20, "ignore_eos": True})
        self.assertEqual(status, 400)
        self.assertIn("more than 2097152 log probabilities", text)


class Ends(ServeTest):
    flags = (*SLOW, "--max-choices", str(MANY))

    async def test_one_that_goes_leaves_nothing_behind(self):
        before = (await self.http.metrics())("request_success_total", finished_reason="abort")
        for _ in range(3):
            x = await exchange(self.port, "POST", "/v1/completions", json.dumps({
                "prompt": "x", "n": MANY, "max_tokens": 1500, "ignore_eos": True}).encode(), JSON)
            await until("it runs", self.busy)
            x.close()
            await self.idle()
        after = (await self.http.metrics())("request_success_total", finished_reason="abort")
        self.assertGreater(after, before)
        self.assertLessEqual(after, before + 3 * MANY)
        self.assertEqual((await self.http.complete(max_tokens=3)).status, 200)

    async def busy(self):
        return (await self.http.metrics())("num_requests_running") > 100

    async def test_all_of_them_are_cut_by_one_word(self):
        for stream in (False, True):
            task = asyncio.create_task(self.http.post("/v1/completions", {
                "model": "tiny", "prompt": "x", "n": MANY, "max_tokens": 1500,
                "ignore_eos": True, "stream": stream}, headers={"X-Request-Id": "many"}))
            await until("it runs", self.busy)
            a = await self.http.post("/abort_requests", {"request_ids": ["cmpl-many"]})
            self.assertEqual(a.json, {"status": "aborted", "aborted": 1})
            got = await task
            self.assertEqual(got.body.count(b'"finish_reason":"abort"'), MANY)
            await self.idle()


class Operators(ServeTest):
    flags = SLOW

    async def test_requests_that_share_an_id_end_together(self):
        tasks = [asyncio.create_task(self.http.post("/v1/completions", {
            "model": "tiny", "prompt": "x", "max_tokens": 2000, "ignore_eos": True},
            headers={"X-Request-Id": name})) for name in ("same", "same", "other")]
        await self.runs(3)
        await self.http.post("/abort_requests", {"request_ids": ["none", "cmpl-same", 7]})
        done = await asyncio.gather(*tasks[:2])
        self.assertEqual([a.json["choices"][0]["finish_reason"] for a in done], ["abort"] * 2)
        self.assertFalse(tasks[2].done())
        await self.http.post("/abort_requests", {"request_ids": ["cmpl-other"]})
        self.assertEqual((await tasks[2]).json["choices"][0]["finish_reason"], "abort")

    async def test_without_ids_everything_ends(self):
        for body in ({}, {"request_ids": []}, {"request_ids": None}):
            tasks = [asyncio.create_task(self.http.post("/v1/completions", {
                "model": "tiny", "prompt": "x", "max_tokens": 2000, "ignore_eos": True,
                "n": n})) for n in (1, 2)]
            await self.runs(3)
            a = await self.http.post("/abort_requests", body)
            # Three choices, and the one above the two.
            self.assertEqual((a.status, a.json["aborted"]), (200, 4))
            for a in await asyncio.gather(*tasks):
                self.assertEqual(a.json["choices"][0]["finish_reason"], "abort")

    async def test_long_lists_of_ids_are_read_beside_the_loop_or_refused(self):
        task = asyncio.create_task(self.http.post("/v1/completions", {
            "model": "tiny", "prompt": "x", "max_tokens": 2000, "ignore_eos": True},
            headers={"X-Request-Id": "one"}))
        await self.runs(1)
        a = await self.http.post("/abort_requests", {"request_ids": ["x"] * 70_000 + ["cmpl-one"]})
        self.assertEqual((a.status, a.json["error"]["message"]),
                         (400, "'request_ids' must be a list of ids, of at most 65534"))
        a = await self.http.post("/abort_requests", {"request_ids": ["x"] * 65_000 + ["cmpl-one"]})
        self.assertEqual((a.status, a.json["aborted"]), (200, 65_001))
        self.assertEqual((await task).json["choices"][0]["finish_reason"], "abort")

    async def test_adapters_are_limited_in_number_and_length(self):
        async def load(name, path="/p"):
            a = await self.http.post("/v1/load_lora_adapter",
                                     {"lora_name": name, "lora_path": path})
            return a.status, a.json["error"]["message"] if a.status != 200 else ""
        long = "'lora_name' may have 256 bytes and 'lora_path' 1024."
        self.assertEqual(await load("n" * 257), (400, long))
        self.assertEqual(await load("n" * 20_000_000), (400, long))
        self.assertEqual(await load("n", "p" * 1025), (400, long))
        for i in range(1024):
            self.assertEqual((await load(f"adapter-{i}"))[0], 200)
        self.assertEqual(await load("one more"), (
            400, "There are 1024 lora adapters, which is as many as this server holds."))
        self.assertIn("already been loaded", (await load("adapter-7"))[1])
        await self.http.post("/v1/unload_lora_adapter", {"lora_name": "adapter-7"})
        self.assertEqual((await load("one more"))[0], 200)


class Bodies(ServeTest):
    flags = (*QUICK, "--max-waiting-mb", "1")
    long_work = {"model": "tiny", "prompt": "x", "n": 1000, "max_tokens": 1900,
                 "ignore_eos": True, "temperature": 1}  # for the one that reads requests

    async def test_a_prompt_of_millions_of_ids_is_counted_and_refused(self):
        n = 2_000_000
        body = b'{"model":"tiny","prompt":[1' + b",1" * (n - 1) + b"]}"
        x = await exchange(self.port, "POST", "/v1/completions", body, JSON)
        a = await answer(x)
        self.assertEqual(a.status, 400)
        self.assertIn(f"your prompt contains {n} input tokens", a.json["error"]["message"])

    async def test_more_values_than_anybody_needs_get_413(self):
        body = b'{"model":"tiny","prompt":"x","stop_token_ids":[1' + b",1" * 2_200_000 + b"]}"
        x = await exchange(self.port, "POST", "/v1/completions", body, JSON)
        self.assertEqual((await answer(x)).status, 413)

    async def test_what_waits_to_be_read_is_limited(self):
        body = json.dumps({"model": "tiny", "prompt": "x " * 350_000}).encode()
        before = [await exchange(self.port, "POST", "/v1/completions",
                                 json.dumps(self.long_work).encode(), JSON) for _ in range(8)]
        # Which of the two is whole first is the machine's choice: the other is too much.
        waits = {asyncio.create_task(answer(await exchange(self.port, "POST", path, body, JSON))): read
                 for path, read in (("/v1/completions", 400), ("/tokenize", 200))}
        done, rest = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        a = done.pop().result()
        self.assertEqual((a.status, a.headers.get("retry-after")), (503, "1"))
        self.assertEqual(a.json["error"]["type"], "ServiceUnavailableError")
        for x in before:
            x.close()
        other = rest.pop()
        self.assertEqual((await other).status, waits[other])  # too long a prompt, but read
        x = await exchange(self.port, "POST", "/tokenize", body, JSON)
        self.assertEqual((await answer(x)).status, 200)
        await self.idle()

    async def test_nothing_is_read_for_those_who_have_gone(self):
        data = json.dumps(self.long_work).encode()

        async def large():
            began = time.monotonic()
            x = await exchange(self.port, "POST", "/tokenize", json.dumps(
                {"model": "tiny", "prompt": "x " * 5000}).encode(), JSON)
            self.assertEqual((await answer(x)).status, 200)
            return time.monotonic() - began
        one = await exchange(self.port, "POST", "/v1/completions", data, JSON)
        once = await large()  # behind one of them
        one.close()
        await self.idle()
        gone = [await exchange(self.port, "POST", "/v1/completions", data, JSON)
                for _ in range(12)]
        for x in gone:
            x.close()
        self.assertLess(await large(), 5 * once + 1)
        await self.idle()


if __name__ == "__main__":
    main()
