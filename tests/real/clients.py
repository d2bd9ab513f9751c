"""clients.py URL - several API servers share one engine: what they count adds up to what was
asked, once."""
import asyncio
import sys

from client import COMPLETIONS, TEXT, Server, completion, expect, pieces, run, total

N = 40


async def everyone_is_answered(s):
    # A connection each: which server takes it is up to the kernel.
    body = completion(max_tokens=20, stream_options={"include_usage": True})
    answers = await asyncio.gather(*(s.stream(COMPLETIONS, {**body, "prompt": f"{i} {TEXT}"}) for i in range(N)))
    expect(all(pieces(chunks)[1] == "length" for chunks, _ in answers), "an answer has no end")
    s.asked = {k: sum(chunks[-1]["usage"][k] for chunks, _ in answers) for k in ("prompt_tokens", "completion_tokens")}
    expect(s.asked["completion_tokens"] == N * 20, s.asked)


async def counted_once(s):
    await asyncio.sleep(1)
    m = await s.metrics()
    for name, want in {
        "vllm:generation_tokens_total": s.asked["completion_tokens"],
        "vllm:prompt_tokens_total": s.asked["prompt_tokens"],
        "vllm:prefix_cache_queries_total": s.asked["prompt_tokens"],
        "vllm:request_success_total": N,
        "vllm:num_requests_running": 0,
    }.items():
        expect(total(m, name) == want, name, total(m, name), "and not", want)


async def disconnects(s):
    await asyncio.gather(*(s.stream(COMPLETIONS, completion(max_tokens=1900), leave_after=5) for _ in range(8)))
    await s.quiet()
    await s.post(COMPLETIONS, completion())


if __name__ == "__main__":
    run([everyone_is_answered, counted_once, disconnects], Server(sys.argv[1]))
