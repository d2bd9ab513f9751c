"""controls.py URL - routes that ask something of the engine itself: caches, pause, sleep."""
import asyncio
import sys

from client import COMPLETIONS, Server, completion, expect, run, total

PREFIX = {"prompt": [7] * 64 + [8] * 64}


async def hits(s):
    return total(await s.metrics(), "vllm:prefix_cache_hits_total")


async def hits_of(s, body):
    before = await hits(s)
    await s.post(COMPLETIONS, body)
    await asyncio.sleep(0.1)
    return await hits(s) - before


async def reset_prefix_cache(s):
    body = completion(**PREFIX)
    await s.post(COMPLETIONS, body)
    expect(await hits_of(s, body) == 112, "the prefix is not found")
    await s.post("/reset_prefix_cache")
    expect(await hits_of(s, body) == 0, "the prefix is found after a reset")
    await s.post("/reset_mm_cache")
    await s.post("/reset_encoder_cache")


async def pause_and_resume(s):
    expect(not (await s.get("/is_paused"))["is_paused"], "paused at first")
    await s.post("/pause")
    expect((await s.get("/is_paused"))["is_paused"], "not paused")
    waiting = asyncio.ensure_future(s.post(COMPLETIONS, completion()))
    await asyncio.sleep(0.5)
    expect(not waiting.done(), "answered while paused")
    await s.post("/resume")
    await asyncio.wait_for(waiting, 20)
    expect(not (await s.get("/is_paused"))["is_paused"], "still paused")


async def pause_ends_what_runs(s):
    running = asyncio.ensure_future(s.post(COMPLETIONS, completion(max_tokens=1900)))
    await asyncio.sleep(0.5)
    await s.post("/pause", params={"mode": "abort"})
    answer = await asyncio.wait_for(running, 20)
    expect(answer["choices"][0]["finish_reason"] == "abort", answer["choices"][0]["finish_reason"])
    await s.post("/resume")


async def pause_keeps_what_runs(s):
    running = asyncio.ensure_future(s.post(COMPLETIONS, completion(max_tokens=100)))
    await asyncio.sleep(0.2)
    await s.post("/pause", params={"mode": "keep"})
    await asyncio.sleep(1.5)
    expect(not running.done(), "it went on")
    await s.post("/resume")
    answer = await asyncio.wait_for(running, 20)
    expect(answer["usage"]["completion_tokens"] == 100, answer["usage"])


async def pause_waits_for_what_runs(s):
    running = asyncio.ensure_future(s.post(COMPLETIONS, completion(max_tokens=60)))
    await asyncio.sleep(0.1)
    await s.post("/pause", params={"mode": "wait"})
    answer = await asyncio.wait_for(running, 20)
    expect(answer["usage"]["completion_tokens"] == 60, answer["usage"])
    await s.post("/resume")


async def sleep_and_wake(s):
    expect(not (await s.get("/is_sleeping"))["is_sleeping"], "asleep at first")
    await s.post("/sleep", params={"level": "1"})
    expect((await s.get("/is_sleeping"))["is_sleeping"], "awake")
    state = await s.metrics()
    expect(total(state, "vllm:engine_sleep_state", sleep_state="awake") == 0, "metrics say it is awake")
    await s.post("/wake_up")
    expect(not (await s.get("/is_sleeping"))["is_sleeping"], "still asleep")
    expect(total(await s.metrics(), "vllm:engine_sleep_state", sleep_state="awake") == 1, "metrics say it sleeps")
    await s.post(COMPLETIONS, completion())


async def remote_calls(s):
    await s.post("/collective_rpc", {"method": "check_health"})
    expect((await s.get("/get_world_size"))["world_size"] == 1, "world size")
    await s.post("/abort_requests", {"request_ids": ["nobody's"]})
    expect((await s.http.get("/health")).status_code == 200, "/health")


if __name__ == "__main__":
    run([reset_prefix_cache, pause_and_resume, pause_ends_what_runs, pause_keeps_what_runs,
         pause_waits_for_what_runs, sleep_and_wake, remote_calls], Server(sys.argv[1]))
