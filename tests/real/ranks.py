"""ranks.py URL - two data-parallel ranks: both work, and each tells its own statistics."""
import asyncio
import sys

from client import COMPLETIONS, TEXT, Server, completion, expect, pieces, run, total

N = 40


def by_rank(metrics, name, **labels):
    return [total(metrics, name, engine=str(rank), **labels) for rank in (0, 1)]


async def both_work(s):
    asks = (s.stream(COMPLETIONS, completion(prompt=f"{i} {TEXT}", max_tokens=30)) for i in range(N))
    for chunks, _ in await asyncio.gather(*asks):
        expect(pieces(chunks)[1] == "length", chunks[-1])
    await asyncio.sleep(1)
    m = await s.metrics()
    for name, sum_of_all in ("vllm:request_success_total", N), ("vllm:generation_tokens_total", 30 * N):
        found = by_rank(m, name)
        expect(sum(found) == sum_of_all and min(found) >= sum_of_all / 4, name, found)
    expect(min(by_rank(m, "vllm:prefix_cache_queries_total")) > 0, "a rank tells nothing")
    return f"{by_rank(m, 'vllm:request_success_total')} requests"


async def one_after_the_other(s):
    """The coordinator's counts are up to date: single requests do not all go to one rank."""
    before = by_rank(await s.metrics(), "vllm:request_success_total")
    for i in range(8):
        await s.post(COMPLETIONS, completion(prompt=f"{i}"))
    after = by_rank(await s.metrics(), "vllm:request_success_total")
    expect(sum(after) - sum(before) == 8, before, after)


async def chosen_rank(s):
    """A client may name the rank."""
    before = by_rank(await s.metrics(), "vllm:request_success_total")
    for _ in range(6):
        await s.post(COMPLETIONS, completion(), headers={"X-data-parallel-rank": "1"})
    after = by_rank(await s.metrics(), "vllm:request_success_total")
    expect([b - a for a, b in zip(before, after)] == [0, 6], before, after)


async def calls_reach_both(s):
    await s.post("/reset_prefix_cache")
    await s.post("/pause")
    expect((await s.get("/is_paused"))["is_paused"], "not paused")
    waiting = [asyncio.ensure_future(s.post(COMPLETIONS, completion())) for _ in range(4)]
    await asyncio.sleep(0.5)
    expect(not any(w.done() for w in waiting), "answered while paused")
    await s.post("/resume")
    await asyncio.wait_for(asyncio.gather(*waiting), 10)


async def disconnects(s):
    await asyncio.gather(*(s.stream(COMPLETIONS, completion(max_tokens=1900), leave_after=5) for _ in range(8)))
    await s.quiet()


if __name__ == "__main__":
    run([both_work, one_after_the_other, chosen_rank, calls_reach_both, disconnects], Server(sys.argv[1]))
