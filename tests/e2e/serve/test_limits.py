"""How much may be there at once: limits of the queue since 0.29, adapters in one step."""
import asyncio

from serving import STEADY, ServeTest, chat_body, main, until

BUSY = ("The engine is currently busy and cannot accept new requests. "
        "Please try again later or on a different instance.")
BACKLOG = ("The engine has reached its prefill token backlog limit. "
           "Please try again later or on a different instance.")


def error(message):
    return {"error": {"message": message, "type": "Service Unavailable", "param": None,
                      "code": 503}}


class LimitsTest(ServeTest):
    async def refused(self, message, **fields):
        a = await self.http.post("/v1/completions", {"model": "tiny", "prompt": "hi",
                                                     "max_tokens": 4, **fields})
        self.assertEqual((a.status, a.json), (503, error(message)))
        return a

    async def rejections(self):
        text = (await self.http.get("/metrics")).body.decode()
        return [int(float(line.split()[-1])) for line in text.splitlines()
                if line.startswith("vllm:admission_rejections_total{")]

    async def occupy(self, n, tokens=200):
        tasks = [asyncio.create_task(self.http.complete(max_tokens=tokens, ignore_eos=True))
                 for _ in range(n)]

        async def running():
            return (await self.http.get("/load")).json["server_load"] >= n
        await until(f"{n} run", running)
        return tasks


class Requests(LimitsTest):
    flags = (*STEADY, "--vllm-version", "0.32.0", "--max-num-queued-reqs", "2")

    async def test_more_than_so_many_get_503(self):
        tasks = await self.occupy(2)
        before = await self.rejections()
        await self.refused(BUSY)
        await self.refused(BUSY, stream=True)
        # Before the prompt is looked at, but not before the model.
        await self.refused(BUSY, prompt=[1] * 5000)
        a = await self.http.post("/v1/completions", {"model": "other", "prompt": "hi"})
        self.assertEqual(a.status, 404)
        a = await self.http.post("/v1/chat/completions", chat_body("hi"))
        self.assertEqual((a.status, a.json), (503, error(BUSY)))
        a = await self.http.post("/v1/messages", {
            "model": "tiny", "max_tokens": 4, "messages": [{"role": "user", "content": "hi"}]})
        self.assertEqual((a.status, a.json), (503, {"type": "error", "error": {
            "type": "Service Unavailable", "message": BUSY}}))
        self.assertEqual([b - a for a, b in zip(before, await self.rejections())], [5, 0])
        self.assertEqual([(await t).status for t in tasks], [200, 200])
        self.assertEqual((await self.http.complete(max_tokens=4)).status, 200)

    async def test_choices_count_one_by_one(self):
        await self.refused(BUSY, n=3)
        await self.refused(BUSY, prompt=["a", "b", "c"])
        a = await self.http.post("/v1/completions", {"model": "tiny", "prompt": "hi", "n": 2,
                                                     "max_tokens": 4})
        self.assertEqual(a.status, 200)


class Tokens(LimitsTest):
    flags = ("--model", "linear:base=1000000", "--vllm-version", "0.29.0",
             "--max-num-queued-tokens", "0.01k")

    async def test_a_backlog_of_prompts_gets_503_until_they_have_a_token(self):
        # What a request brings itself is not looked at: one may exceed it.
        task = asyncio.create_task(self.http.complete(prompt=[5] * 50, max_tokens=1))

        async def waits():
            return (await self.http.get("/load")).json["server_load"] == 1
        await until("it is there", waits)
        await self.refused(BACKLOG)
        self.assertEqual((await task).status, 200)
        self.assertEqual((await self.http.complete(max_tokens=1)).status, 200)


class Nothing(LimitsTest):
    flags = (*STEADY, "--vllm-version", "0.31.0", "--max-num-queued-tokens", "0")

    async def test_a_limit_of_no_tokens_lets_nobody_in(self):
        await self.refused(BACKLOG)


class Adapters(LimitsTest):
    # With async scheduling one that has ended stays among them for a step.
    flags = (*STEADY, "--no-async-scheduling", "--lora-modules", "a=/a", "--lora-modules", "b=/b")
    together = 1  # of requests for different ones

    async def test_so_many_run_together(self):
        tasks = [asyncio.create_task(self.http.complete(model=m, max_tokens=60, ignore_eos=True))
                 for m in ("a", "b", "a")]
        most = 0
        while not all(t.done() for t in tasks):
            text = (await self.http.get("/metrics")).body.decode()
            most = max([most] + [int(float(line.split()[-1])) for line in text.splitlines()
                                 if line.startswith("vllm:num_requests_running{")])
        self.assertEqual([(await t).status for t in tasks], [200] * 3)
        self.assertEqual(most, self.together + 1)


class MoreAdapters(Adapters):
    flags = (*Adapters.flags, "--max-loras", "2")
    together = 2


if __name__ == "__main__":
    main()
